/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys as rows of tables. One row gives the parser, the range check, the default and the help; the
 * same rows are the reference in docs/configuration.md (config_docs.h).
 */
#ifndef CONTROL_CONFIG_FIELD_H
#define CONTROL_CONFIG_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "control/config_error.h"
#include "control/config_tree.h"

enum field_kind {
    FIELD_SWITCH,  /* bool: on, off, true, false */
    FIELD_COUNT,   /* uint32_t */
    FIELD_SECONDS, /* uint32_t, written as a duration of whole seconds */
    FIELD_SIZE32,  /* uint32_t, bytes */
    FIELD_SIZE,    /* uint64_t, bytes */
    FIELD_SPAN,    /* span_ns, whole milliseconds */
    FIELD_SHARE,   /* uint32_t, thousandths: 20%, 12.5% */
    FIELD_PERCENT, /* the same in Istio's form: 20, 12.5 */
    FIELD_RATE,    /* uint32_t, a second: 3/s */
    FIELD_EVENTS,  /* uint32_t, a week: 1 per week, 2 per day */
    FIELD_TEXT,    /* struct bytes, not empty */
    FIELD_NAME,    /* struct bytes that may stand in a metric's name */
    FIELD_ADDRESS, /* struct address */
    FIELD_CHOICE,  /* uint32_t: one of a few words */
    FIELD_TEXTS,   /* struct field_items of struct field_text */
    FIELD_LABELS,  /* struct field_items of struct field_label: keys of one's own */
    FIELD_LINE,    /* struct field_text, not empty; may end in a line feed */
    FIELD_PAIRS,   /* a map of any keys to lines: struct field_items of struct field_text, |key| */
    FIELD_OBJECT,  /* a struct that |of| describes */
    FIELD_OBJECTS, /* struct field_items of those */
    FIELD_LATER,   /* nothing yet: |help| says what it comes with */
    FIELD_REFUSED  /* never: |help| says why, and what to write instead */
};

/* Of one FIELD_LABELS. */
#define FIELD_LABELS_MAX 64

/* Every struct that a table describes begins with this: where it stands, NULL where it is absent.
 */
struct field_head {
    const struct config_node *node;
};

struct field_items {
    const struct config_node *node; /* NULL: absent */
    uint32_t count;
    void *at;
};

/* An element of FIELD_TEXTS or FIELD_PAIRS, or a FIELD_LINE. */
struct field_text {
    struct field_head head;
    struct bytes text;
    struct bytes key; /* of FIELD_PAIRS */
};

/* An element of FIELD_LABELS. */
struct field_label {
    struct field_head head;
    struct bytes name;
    struct bytes value;
};

struct fields;

struct field {
    const char *name; /* NULL ends the table */
    enum field_kind kind;
    size_t at; /* offset in the struct */
    uint64_t min;
    uint64_t max;            /* 0: no bound but the type's; of FIELD_NAME: its length */
    uint64_t preset;         /* where the key is absent; of FIELD_NAME and FIELD_TEXT: empty */
    const void *preset_of;   /* the same, where it is kept elsewhere; of the field's type */
    const char *preset_text; /* of FIELD_TEXT, FIELD_ADDRESS; or how docs put it */
    const char *word;        /* a word that may stand for a number or an address: none, auto, off */
    uint64_t word_value;
    bool zero_is_word;  /* 0 says the same */
    bool zero_is_unset; /* Istio's integers: 0 is as if the key were absent */
    bool percent;       /* of 100 */
    bool required;
    const char *const *choices;        /* the value is the index; NULL ends them */
    const char *(*choice)(uint32_t i); /* or so: NULL past the last */
    const char *listed_in;             /* where, if they are too many for a message */
    const char *const *later;          /* choices that come later, and what with */
    const struct fields *of;
    const char *warning; /* where the key is given: it is read, but does nothing, because ... */
    const char *help;
};

struct fields {
    const char *name; /* in messages: "outlierDetection", "cluster" */
    const char *path; /* "clusters[].trafficPolicy.outlierDetection"; "" for the whole file */
    size_t size;
    const struct field *rows;
    const char *not_empty; /* what is said of a map without keys; NULL: it is fine */
    bool open;             /* other keys are not ours, and passed over */
    const char *help;
};

struct field_reader {
    struct arena *arena;
    struct config_errors *errors;
    const struct fields *root; /* where a misplaced key is looked for */
    bool no_memory;
};

/* All defaults of a struct, those of the structs in it included; lists are empty. */
void fields_preset(const struct fields *f, void *out);

/* Reads |node| into |out|, which has its defaults. What is wrong is added to the errors. */
void fields_read(struct field_reader *r, const struct fields *f, const struct config_node *node,
                 void *out);

/* The i-th word of a FIELD_CHOICE; NULL: there are fewer. */
const char *field_choice(const struct field *row, uint32_t i);

/*
 * Adds ", did you mean ...?" to a message where one of the words seen by config_guess_word is near
 * enough.
 */
struct config_guess {
    struct bytes wrong;
    struct bytes best;
    unsigned distance;
};

void config_guess_init(struct config_guess *g, struct bytes wrong);
void config_guess_word(struct config_guess *g, struct bytes word);
void config_guess_write(const struct config_guess *g, struct text *t);

#endif
