/* SPDX-License-Identifier: Apache-2.0 */
/* Lengths of time and sizes, as people write them. */
#include "base/text.h"
#include "base/units.h"

#define NS_PER_MINUTE (60 * NS_PER_S)
#define NS_PER_HOUR   (60 * NS_PER_MINUTE)

struct unit {
    const char *name;
    uint64_t factor;
};

/* A name that begins another stands after it. Both ways to write the micro sign are Go's. */
static const struct unit time_units[] = {
    {"ns", 1},         {"us", NS_PER_US}, {"\xc2\xb5s", NS_PER_US}, {"\xce\xbcs", NS_PER_US},
    {"ms", NS_PER_MS}, {"s", NS_PER_S},   {"m", NS_PER_MINUTE},     {"h", NS_PER_HOUR},
    {NULL, 0},
};

static const struct unit size_units[] = {
    {"KiB", UINT64_C(1) << 10},
    {"Ki", UINT64_C(1) << 10},
    {"MiB", UINT64_C(1) << 20},
    {"Mi", UINT64_C(1) << 20},
    {"GiB", UINT64_C(1) << 30},
    {"Gi", UINT64_C(1) << 30},
    {"TiB", UINT64_C(1) << 40},
    {"Ti", UINT64_C(1) << 40},
    {"B", 1},
    {NULL, 0},
};

/* Digits off the front of |b|. */
static struct bytes take_digits(struct bytes *b)
{
    struct bytes digits = {b->data, 0};

    while (digits.len < b->len && (uint8_t)(b->data[digits.len] - '0') <= 9)
        digits.len++;
    *b = bytes_skip(*b, digits.len);
    return digits;
}

static const struct unit *take_unit(struct bytes *b, const struct unit *units)
{
    for (const struct unit *u = units; u->name != NULL; u++)
        if (bytes_start_with(*b, bytes_of(u->name))) {
            *b = bytes_skip(*b, strlen(u->name));
            return u;
        }
    return NULL;
}

/*
 * 0.|digits| times |factor|, rounded down. Exact however many digits there are: from the last one
 * on, and rounding down at each step is as good as doing so once at the end.
 */
static uint64_t fraction_of(struct bytes digits, uint64_t factor)
{
    uint64_t sum = 0;

    for (size_t i = digits.len; i > 0; i--)
        sum = (sum + factor * (uint64_t)(digits.data[i - 1] - '0')) / 10;
    return sum;
}

/* One "12.5unit" off the front of |b|. */
static bool take_quantity(struct bytes *b, const struct unit *units, uint64_t *value)
{
    struct bytes whole = take_digits(b);
    struct bytes part = BYTES_NONE;
    const struct unit *u;
    uint64_t count = 0;

    if (b->len > 0 && b->data[0] == '.') {
        *b = bytes_skip(*b, 1);
        part = take_digits(b);
    }
    u = take_unit(b, units);
    if (u == NULL || whole.len + part.len == 0)
        return false;
    if (whole.len > 0 && !bytes_parse_u64(whole, &count))
        return false;
    if (count > UINT64_MAX / u->factor)
        return false;
    *value = fraction_of(part, u->factor);
    if (count * u->factor > UINT64_MAX - *value)
        return false;
    *value += count * u->factor;
    return true;
}

bool text_parse_duration(struct bytes b, uint64_t *ns)
{
    uint64_t sum = 0;

    if (bytes_equal(b, BYTES("0"))) {
        *ns = 0;
        return true;
    }
    if (b.len == 0)
        return false;
    while (b.len > 0) {
        uint64_t one;

        if (!take_quantity(&b, time_units, &one) || one > UINT64_MAX - sum)
            return false;
        sum += one;
    }
    *ns = sum;
    return true;
}

/* |value| / |unit|, exactly, without zeros at the end. |unit| is a power of ten. */
static void put_exact(struct text *t, uint64_t value, uint64_t unit)
{
    uint64_t rest = value % unit;

    text_u64(t, value / unit);
    if (rest > 0)
        text_char(t, '.');
    while (rest > 0) {
        unit /= 10;
        text_char(t, (char)('0' + rest / unit));
        rest %= unit;
    }
}

static void put_part(struct text *t, uint64_t count, char unit)
{
    if (count == 0)
        return;
    text_u64(t, count);
    text_char(t, unit);
}

void text_duration(struct text *t, uint64_t ns)
{
    uint64_t below_minute = ns % NS_PER_MINUTE;

    if (ns == 0) {
        text_str(t, "0s");
    } else if (ns < NS_PER_US) {
        text_u64(t, ns);
        text_str(t, "ns");
    } else if (ns < NS_PER_MS) {
        put_exact(t, ns, NS_PER_US);
        text_str(t, "us");
    } else if (ns < NS_PER_S) {
        put_exact(t, ns, NS_PER_MS);
        text_str(t, "ms");
    } else {
        put_part(t, ns / NS_PER_HOUR, 'h');
        put_part(t, ns % NS_PER_HOUR / NS_PER_MINUTE, 'm');
        if (below_minute > 0) {
            put_exact(t, below_minute, NS_PER_S);
            text_char(t, 's');
        }
    }
}

bool text_parse_size(struct bytes b, uint64_t *size)
{
    uint64_t sum;

    if (bytes_parse_u64(b, size))
        return true;
    if (!take_quantity(&b, size_units, &sum) || b.len > 0)
        return false;
    *size = sum;
    return true;
}
