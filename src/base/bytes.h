/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A view of bytes that somebody else owns. Never NUL-terminated, may hold any byte.
 */
#ifndef BASE_BYTES_H
#define BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct bytes {
    const uint8_t *data;
    size_t len;
};

/* From a string literal, without counting at run time. */
#define BYTES(literal) ((struct bytes){(const uint8_t *)(literal), sizeof(literal) - 1})

#define BYTES_NONE ((struct bytes){NULL, 0})

static inline struct bytes bytes_from(const void *data, size_t len)
{
    return (struct bytes){(const uint8_t *)data, len};
}

/* From a NUL-terminated string; NULL gives none. */
static inline struct bytes bytes_of(const char *text)
{
    return text == NULL ? BYTES_NONE : bytes_from(text, strlen(text));
}

/* For "%.*s"; what is longer is cut. */
static inline int bytes_width(struct bytes b)
{
    return b.len > 256 ? 256 : (int)b.len;
}

static inline bool bytes_equal(struct bytes a, struct bytes b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

/* |from| .. |from + len|, cut to what is there. */
static inline struct bytes bytes_slice(struct bytes b, size_t from, size_t len)
{
    if (from > b.len)
        from = b.len;
    if (len > b.len - from)
        len = b.len - from;
    return bytes_from(b.len == 0 ? b.data : b.data + from, len);
}

static inline struct bytes bytes_skip(struct bytes b, size_t n)
{
    return bytes_slice(b, n, b.len);
}

static inline bool bytes_start_with(struct bytes b, struct bytes prefix)
{
    return b.len >= prefix.len && bytes_equal(bytes_slice(b, 0, prefix.len), prefix);
}

/* ASCII only, whatever the locale. */
static inline uint8_t byte_lower(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? (uint8_t)(c | 0x20) : c;
}

/* Equal but for ASCII case. */
bool bytes_equal_nocase(struct bytes a, struct bytes b);

/* Index of the first |c|, or |b.len| where there is none. */
size_t bytes_find(struct bytes b, uint8_t c);

/* Without blanks and tabs at both ends. */
struct bytes bytes_trim(struct bytes b);

/*
 * Takes the next element off a comma-separated list, trimmed; empty elements are skipped.
 * False at the end. |rest| moves on.
 */
bool bytes_next_element(struct bytes *rest, struct bytes *element);

/* Decimal digits only, at least one, all of |b|; false where it is not that or overflows. */
bool bytes_parse_u64(struct bytes b, uint64_t *value);

/* Length of the UTF-8 character that |b| (not empty) begins with; 0 where it begins with none (RFC
 * 3629). */
size_t bytes_utf8(struct bytes b);

/* FNV-1a, 64 bits: the same on every machine. */
uint64_t bytes_hash(struct bytes b);

#endif
