/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is wrong with a configuration: up to a screenful of errors, each with its place and the
 * line it is in, in the order of the file.
 */
#ifndef CONTROL_CONFIG_ERROR_H
#define CONTROL_CONFIG_ERROR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/text.h"

/* More than a screen of them helps nobody: what comes beyond is not looked for. */
#define CONFIG_ERRORS_MAX 20

struct config_error {
    uint32_t line;   /* from 1; 0: the file as a whole */
    uint32_t column; /* in characters, from 1 */
    struct bytes message;
    struct bytes excerpt; /* the line, or the part of it around the place, safe to print */
    uint32_t caret;       /* characters before the place in |excerpt| */
};

struct config_errors {
    struct arena arena;
    struct bytes file;   /* as the user named it */
    struct bytes source; /* only while it is being read */
    uint32_t count;
    struct config_error at[CONFIG_ERRORS_MAX];
    struct text text; /* the message under way */
    uint32_t line, column;
    char room[1024];
};

void config_errors_init(struct config_errors *e);
void config_errors_release(struct config_errors *e);

/* Names what is about to be read; positions are looked up in |source| until config_errors_close. */
void config_errors_open(struct config_errors *e, struct bytes file, struct bytes source);
void config_errors_close(struct config_errors *e);

/* True where no more are kept, so that looking for more is a waste. */
bool config_errors_full(const struct config_errors *e);

/* Bytes of the line break at the beginning of |b|, as YAML has them: LF, CR, CRLF, NEL, LS, PS; 0:
 * none. */
size_t config_line_break(struct bytes b);

/* Begins an error: put its message into the result, then config_error_end. Line 0: no place. */
struct text *config_error_begin(struct config_errors *e, uint32_t line, uint32_t column);
void config_error_end(struct config_errors *e);

/* A whole error of two parts; |detail| may be NULL. */
void config_error_add(struct config_errors *e, uint32_t line, uint32_t column, const char *message,
                      const char *detail);

/* |b| in quotes, cut where it is long, without what a terminal would obey. */
void config_quote(struct text *t, struct bytes b);

/* True where |b| has a control character in it, ASCII's or Unicode's (C1). */
bool config_has_control(struct bytes b);

/* "file:line:column: message", the line and a caret under the place; ends with a newline. */
void config_error_write(struct text *t, const struct config_errors *e, uint32_t index);

/* All of them, and whether there may be more. */
void config_errors_write(struct text *t, const struct config_errors *e);

#endif
