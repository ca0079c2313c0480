/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of the commands: a table says what there is, where its value goes and how it is
 * explained; help and errors come out of it. "--name VALUE", "--name=VALUE", "-c VALUE".
 */
#ifndef MAIN_OPTIONS_H
#define MAIN_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/bytes.h"

enum option_kind {
    OPTION_FLAG,     /* bool: takes no value */
    OPTION_TEXT,     /* const char *: any text */
    OPTION_TEXTS,    /* struct option_texts: may be given several times */
    OPTION_NUMBER,   /* uint64_t from |least| to |most| */
    OPTION_DURATION, /* span_ns from |least| to |most|: 250ms, 15s, 1m30s */
    OPTION_SIZE,     /* uint64_t from |least| to |most| bytes: 64KiB, 1MiB */
    OPTION_PARSED    /* |parse| puts it into |target| */
};

#define OPTION_TEXTS_MAX 64

struct option_texts {
    const char *items[OPTION_TEXTS_MAX];
    size_t count;
};

struct command_option {
    const char *name; /* without the dashes */
    char letter;      /* of the short form; 0: none */
    enum option_kind kind;
    void *target;            /* keeps what it has where the option is not given: the default */
    const char *placeholder; /* of the value, in the help: "N", "ADDR" */
    const char *help;        /* may have several lines */
    uint64_t least;
    uint64_t most; /* 0: no bound */
    /* NULL, or what is wrong and what to write instead: a constant text. */
    const char *(*parse)(struct bytes value, void *target);
};

struct command_help {
    const char *name;     /* "backend" */
    const char *usage;    /* after the name: "--listen ADDR [OPTION ...]" */
    const char *summary;  /* what it does, in one or a few sentences */
    const char *examples; /* a line each */
    const char *notes;    /* more to know, after the options; NULL: nothing */
};

enum options_verdict {
    OPTIONS_GO,
    OPTIONS_HELP, /* was printed: exit with COMMAND_OK */
    OPTIONS_BAD   /* the error was printed: exit with COMMAND_USAGE */
};

/*
 * Reads |argv| from 1 on. Only options: an argument that is none is an error. Help goes to stdout,
 * errors to stderr.
 */
enum options_verdict options_read(const struct command_help *help,
                                  const struct command_option *options, size_t n, int argc,
                                  char **argv);

/* The help text. */
void options_print_help(const struct command_help *help, const struct command_option *options,
                        size_t n, FILE *to);

/* For OPTION_PARSED: |target| is a struct address; "127.0.0.1:80", "[::1]:80", ":80" (all of IPv4).
 */
const char *option_parse_address(struct bytes value, void *target);

/* The word of |words| nearest to |word|, near enough to have been meant; NULL: none. */
const char *options_nearest(const char *word, const char *const *words, size_t n);

#endif
