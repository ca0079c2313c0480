/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes JSON into a struct text. |key| is NULL inside an array and for the outermost value. Bytes
 * that are no UTF-8 are written as U+FFFD, so that what leaves is always valid JSON. (Reading JSON
 * is jansson's job.)
 */
#ifndef CODEC_JSON_H
#define CODEC_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/text.h"
#include "base/units.h"

struct json {
    struct text *text;
    bool need_comma;
};

/*
 * libjansson has functions by these four names too, and inside a program the program's win: it
 * would build its objects with ours. So ours have other names for the linker.
 */
#define JSON_LINKED_AS(name) __asm__("codec_" #name)

void json_init(struct json *j, struct text *text);
void json_object(struct json *j, const char *key) JSON_LINKED_AS(json_object);
void json_object_end(struct json *j);
void json_array(struct json *j, const char *key) JSON_LINKED_AS(json_array);
void json_array_end(struct json *j);
/* The key of the next value, which is then given with none. */
void json_key(struct json *j, struct bytes key);
void json_string(struct json *j, const char *key, struct bytes value) JSON_LINKED_AS(json_string);
void json_text(struct json *j, const char *key, const char *value); /* NULL: null */
void json_u64(struct json *j, const char *key, uint64_t value);
void json_i64(struct json *j, const char *key, int64_t value);
void json_double(struct json *j, const char *key, double value,
                 unsigned decimals); /* not finite: null */
void json_bool(struct json *j, const char *key, bool value);
void json_time(struct json *j, const char *key, wall_ns at); /* "2016-04-15T20:17:00.310Z" */
void json_null(struct json *j, const char *key) JSON_LINKED_AS(json_null);

#endif
