/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths in the one form that routes are matched against. First percent-encodings and dot segments,
 * then slashes: "/a//../b" is "/a/b", as Envoy has it.
 */
#include "codec/http1_head.h"

static uint8_t hex_digit(uint8_t c)
{
    return (uint8_t)(c <= '9' ? c - '0' : byte_lower(c) - 'a' + 10);
}

static bool is_unreserved(uint8_t c)
{
    return (c >= '0' && c <= '9') || (byte_lower(c) >= 'a' && byte_lower(c) <= 'z') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

static uint8_t upper(uint8_t c)
{
    return c >= 'a' && c <= 'f' ? (uint8_t)(c - 0x20) : c;
}

/* Puts the encoded byte at |in| ("%41") to |out|; how many bytes that took, 0: it is none, or NUL.
 */
static size_t put_encoded(struct bytes in, uint8_t *out)
{
    uint8_t value;

    if (in.len < 3 || !byte_is(in.data[1], BYTE_HEX) || !byte_is(in.data[2], BYTE_HEX))
        return 0;
    value = (uint8_t)(hex_digit(in.data[1]) << 4 | hex_digit(in.data[2]));
    if (value == 0)
        return 0;
    if (is_unreserved(value)) {
        out[0] = value;
        return 1;
    }
    out[0] = '%';
    out[1] = upper(in.data[1]);
    out[2] = upper(in.data[2]);
    return 3;
}

/* Decodes the segment at the start of |in|, up to a '/'; its length in |in|, or SIZE_MAX: bad. */
static size_t put_segment(struct bytes in, uint8_t *out, size_t *len)
{
    size_t i = 0;

    *len = 0;
    while (i < in.len && in.data[i] != '/') {
        size_t put;

        if (in.data[i] != '%') {
            out[(*len)++] = in.data[i++];
            continue;
        }
        put = put_encoded(bytes_skip(in, i), out + *len);
        if (put == 0)
            return SIZE_MAX;
        *len += put;
        i += 3;
    }
    return i;
}

/* Drops the last segment of |out|, which ends in '/'. False: there is none. */
static bool climb(const uint8_t *out, size_t *len)
{
    size_t n = *len;

    if (n <= 1)
        return false;
    do {
        n--;
    } while (n > 0 && out[n - 1] != '/');
    *len = n;
    return true;
}

static void drop_empty_segments(uint8_t *path, size_t *len)
{
    size_t n = 0;

    for (size_t i = 0; i < *len; i++)
        if (path[i] != '/' || n == 0 || path[n - 1] != '/')
            path[n++] = path[i];
    *len = n;
}

/* The segments of |rest|, each after a '/', onto |out|, which holds that '/'. */
static bool put_segments(struct bytes rest, uint8_t *out, size_t *len)
{
    for (;;) {
        size_t segment;
        size_t taken = put_segment(rest, out + *len, &segment);
        struct bytes put = bytes_from(out + *len, segment);
        bool last;

        if (taken == SIZE_MAX)
            return false;
        last = taken == rest.len;
        if (bytes_equal(put, BYTES(".."))) {
            if (!climb(out, len))
                return false;
        } else if (!bytes_equal(put, BYTES("."))) {
            *len += segment;
            if (!last)
                out[(*len)++] = '/';
        }
        if (last)
            return true;
        rest = bytes_skip(rest, taken + 1);
    }
}

bool http1_normalize_path(struct bytes path, bool merge_slashes, uint8_t *out, size_t *len)
{
    size_t n = 0;

    if (path.len == 0 || path.data[0] != '/') { /* "*", or none: nothing to climb in */
        if (put_segment(path, out, &n) != path.len)
            return false;
        *len = n;
        return true;
    }
    out[n++] = '/';
    if (!put_segments(bytes_skip(path, 1), out, &n))
        return false;
    if (merge_slashes)
        drop_empty_segments(out, &n);
    *len = n;
    return true;
}
