/* SPDX-License-Identifier: Apache-2.0 */
/* Comparing and taking apart views of bytes. */
#include "base/bytes.h"

#define EACH_BYTE UINT64_C(0x0101010101010101)

static uint64_t load8(const uint8_t *p)
{
    uint64_t x;

    memcpy(&x, p, sizeof(x));
    return x;
}

static uint64_t load4(const uint8_t *p)
{
    uint32_t x;

    memcpy(&x, p, sizeof(x));
    return x;
}

/* byte_lower of eight bytes at once: no sum below carries out of its byte. */
static uint64_t lower8(uint64_t x)
{
    uint64_t low = x & (EACH_BYTE * 0x7f);
    uint64_t from_a = low + EACH_BYTE * (0x80 - 'A');
    uint64_t past_z = low + EACH_BYTE * (0x7f - 'Z');
    uint64_t upper = (from_a ^ past_z) & ~x & (EACH_BYTE * 0x80);

    return x | (upper >> 2);
}

static bool same8(uint64_t x, uint64_t y)
{
    return x == y || lower8(x) == lower8(y);
}

static bool short_equal(const uint8_t *a, const uint8_t *b, size_t len)
{
    if (len >= 4)
        return same8(load4(a) | load4(a + len - 4) << 32, load4(b) | load4(b + len - 4) << 32);
    for (size_t i = 0; i < len; i++)
        if (byte_lower(a[i]) != byte_lower(b[i]))
            return false;
    return true;
}

bool bytes_equal_nocase(struct bytes a, struct bytes b)
{
    if (a.len != b.len)
        return false;
    if (a.len < 8)
        return short_equal(a.data, b.data, a.len);
    for (size_t i = 0; i + 8 <= a.len; i += 8)
        if (!same8(load8(a.data + i), load8(b.data + i)))
            return false;
    /* What is left, if anything, ends here; it may overlap what was compared. */
    return same8(load8(a.data + a.len - 8), load8(b.data + b.len - 8));
}

size_t bytes_find(struct bytes b, uint8_t c)
{
    const uint8_t *at = b.len == 0 ? NULL : memchr(b.data, c, b.len);

    return at == NULL ? b.len : (size_t)(at - b.data);
}

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\t';
}

struct bytes bytes_trim(struct bytes b)
{
    size_t from = 0;

    while (b.len > 0 && is_blank(b.data[b.len - 1]))
        b.len--;
    while (from < b.len && is_blank(b.data[from]))
        from++;
    return bytes_skip(b, from);
}

bool bytes_next_element(struct bytes *rest, struct bytes *element)
{
    while (rest->len > 0) {
        size_t comma = bytes_find(*rest, ',');
        struct bytes found = bytes_trim(bytes_slice(*rest, 0, comma));

        *rest = bytes_skip(*rest, comma + 1);
        if (found.len > 0) {
            *element = found;
            return true;
        }
    }
    return false;
}

bool bytes_parse_u64(struct bytes b, uint64_t *value)
{
    uint64_t sum = 0;

    if (b.len == 0)
        return false;
    for (size_t i = 0; i < b.len; i++) {
        uint8_t digit = (uint8_t)(b.data[i] - '0');

        if (digit > 9 || sum > (UINT64_MAX - digit) / 10)
            return false;
        sum = sum * 10 + digit;
    }
    *value = sum;
    return true;
}

size_t bytes_utf8(struct bytes b)
{
    uint8_t first = b.data[0];
    size_t n = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    uint8_t low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    uint8_t high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;

    if (first > 0xf4 || n > b.len)
        return 0;
    for (size_t i = 1; i < n; i++) {
        if (b.data[i] < low || b.data[i] > high)
            return 0;
        low = 0x80;
        high = 0xbf;
    }
    return n;
}

uint64_t bytes_hash(struct bytes b)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < b.len; i++)
        hash = (hash ^ b.data[i]) * UINT64_C(0x100000001b3);
    return hash;
}
