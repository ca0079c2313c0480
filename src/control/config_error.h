/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is wrong with a configuration: up to a screenful of errors, each with its place and the
 * line it is in, in the order of the files. And warnings: what is valid, but hardly meant.
 */
#ifndef CONTROL_CONFIG_ERROR_H
#define CONTROL_CONFIG_ERROR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/text.h"

/* More than a screen of them helps nobody: what comes beyond is not looked for. */
#define CONFIG_ERRORS_MAX   20
#define CONFIG_WARNINGS_MAX 100

/* Files of one configuration. */
#define CONFIG_SOURCES_MAX 64

/* A file: as the user named it, and what is in it. */
struct config_source {
    struct bytes name;
    struct bytes text;
};

struct config_error {
    uint32_t source; /* which file, in the order they were opened */
    uint32_t line;   /* from 1; 0: the file as a whole */
    uint32_t column; /* in characters, from 1 */
    struct bytes message;
    struct bytes excerpt; /* the line, or the part of it around the place, safe to print */
    uint32_t caret;       /* characters before the place in |excerpt| */
};

/* Where a line begins. */
struct config_mark {
    uint32_t source;
    uint32_t line; /* 0: none */
    size_t offset;
};

struct config_errors {
    struct arena arena;
    uint32_t source_count;
    struct config_source sources[CONFIG_SOURCES_MAX]; /* the texts: until config_errors_close */
    uint32_t source;                                  /* what the next message is about */
    uint32_t count;
    struct config_error at[CONFIG_ERRORS_MAX];
    uint32_t warning_count;
    struct config_error warnings[CONFIG_WARNINGS_MAX];
    struct config_mark mark; /* the line shown last */
    struct text text;        /* the message under way */
    uint32_t line, column;
    bool warns; /* it is a warning */
    char room[1024];
};

void config_errors_init(struct config_errors *e);
void config_errors_release(struct config_errors *e);

/*
 * Names what is about to be read, a further file; messages are about it until config_errors_at.
 * Positions are looked up in |text| until config_errors_close. At most CONFIG_SOURCES_MAX times.
 */
void config_errors_open(struct config_errors *e, struct bytes file, struct bytes text);
void config_errors_at(struct config_errors *e, uint32_t source);
void config_errors_close(struct config_errors *e);

/* True where no more are kept, so that looking for more is a waste. */
bool config_errors_full(const struct config_errors *e);

/* Bytes of the line break at the beginning of |b|, as YAML has them: LF, CR, CRLF, NEL, LS, PS; 0:
 * none. */
size_t config_line_break(struct bytes b);

/* Begins an error: put its message into the result, then config_error_end. Line 0: no place. */
struct text *config_error_begin(struct config_errors *e, uint32_t line, uint32_t column);
/* The same of a warning: it does not make the configuration invalid. Ended the same way. */
struct text *config_warning_begin(struct config_errors *e, uint32_t line, uint32_t column);
/* One that is there already, at the same place, is not said again. */
void config_error_end(struct config_errors *e);

/* A whole error of two parts; |detail| may be NULL. */
void config_error_add(struct config_errors *e, uint32_t line, uint32_t column, const char *message,
                      const char *detail);

/* "line 3", or "line 3 of b.yaml" where the message under way is about another file. */
void config_error_place(struct text *t, const struct config_errors *e, uint32_t source,
                        uint32_t line);

/* |b| in quotes, cut where it is long, without what a terminal would obey. */
void config_quote(struct text *t, struct bytes b);

/* True where |b| has a control character in it, ASCII's or Unicode's (C1). */
bool config_has_control(struct bytes b);

/* All of them: "file:line:column: message", the line and a caret under the place; and whether there
 * may be more. */
void config_errors_write(struct text *t, const struct config_errors *e);
/* Each begins with "warning: " after its place. */
void config_warnings_write(struct text *t, const struct config_errors *e);

#endif
