/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing text into a buffer the caller owns. The writer remembers its failure: put as much as you
 * like, check |failed| once. On failure what did not fit is dropped; the buffer stays valid.
 */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

struct text {
    char *data;
    size_t len;
    size_t room; /* size of |data| */
    bool failed;
};

static inline void text_init(struct text *t, char *data, size_t room)
{
    *t = (struct text){.data = data, .room = room};
}

/* What fits of |b|: where not all does. */
void text_put_cut(struct text *t, struct bytes b);

/* Inline, as most of what is put is a constant of a few bytes. */
static inline void text_put(struct text *t, struct bytes b)
{
    if (b.len > t->room - t->len) {
        text_put_cut(t, b);
    } else if (b.len > 0) {
        memcpy(t->data + t->len, b.data, b.len);
        t->len += b.len;
    }
}

static inline void text_str(struct text *t, const char *s)
{
    text_put(t, bytes_of(s));
}

static inline void text_char(struct text *t, char c)
{
    if (t->len == t->room)
        t->failed = true;
    else
        t->data[t->len++] = c;
}

void text_u64(struct text *t, uint64_t v);
void text_i64(struct text *t, int64_t v);

/* |value| with |decimals| (0 to 9) places, exactly rounded, half away from zero; what rounds to
 * zero has no sign. "nan", "inf", "-inf". */
void text_double(struct text *t, double value, unsigned decimals);

/* Lower-case hex, |digits| of them (the lowest ones of |v|). */
void text_hex(struct text *t, uint64_t v, unsigned digits);

/* What was written, as bytes. */
static inline struct bytes text_bytes(const struct text *t)
{
    return bytes_from(t->data, t->len);
}

/* Ends the text with a NUL (not counted in |len|), cutting the last byte where there is no room. */
char *text_end(struct text *t);

/* "15s", "250ms", "1m30s", "1h", "0s" as Go and Istio write durations; fractions: "1.5s". */
bool text_parse_duration(struct bytes b, uint64_t *ns);
void text_duration(struct text *t, uint64_t ns);

/* "64KiB", "1.5MiB", "2GiB", "1TiB", "512Mi" (as Kubernetes writes it), "10B", "65536": bytes. */
bool text_parse_size(struct bytes b, uint64_t *size);

/*
 * Edit distance (Levenshtein with transposition of neighbours), for "did you mean"; at most |limit|
 * + 1 is returned. Words of over 64 bytes: |limit| + 1.
 */
unsigned text_distance(struct bytes a, struct bytes b, unsigned limit);

#endif
