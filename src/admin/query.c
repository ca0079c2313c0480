/* SPDX-License-Identifier: Apache-2.0 */
#include "admin/query.h"

static int hex_value(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = byte_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool query_decode(struct bytes from, struct text *to)
{
    for (size_t i = 0; i < from.len; i++) {
        int high, low;

        if (from.data[i] == '\0')
            return false;
        if (from.data[i] != '%') {
            text_char(to, (char)from.data[i]);
            continue;
        }
        if (from.len - i < 3)
            return false;
        high = hex_value(from.data[i + 1]);
        low = hex_value(from.data[i + 2]);
        if (high < 0 || low < 0 || (high == 0 && low == 0))
            return false;
        text_char(to, (char)(high * 16 + low));
        i += 2;
    }
    return !to->failed;
}

enum query_result query_find(struct bytes query, const char *key, struct text *value)
{
    struct bytes rest = bytes_start_with(query, BYTES("?")) ? bytes_skip(query, 1) : query;

    while (rest.len > 0) {
        size_t end = bytes_find(rest, '&');
        struct bytes parameter = bytes_slice(rest, 0, end);
        size_t equals = bytes_find(parameter, '=');

        rest = bytes_skip(rest, end + 1);
        if (bytes_equal(bytes_slice(parameter, 0, equals), bytes_of(key)))
            return query_decode(bytes_skip(parameter, equals + 1), value) ? QUERY_FOUND : QUERY_BAD;
    }
    return QUERY_ABSENT;
}
