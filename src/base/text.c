/* SPDX-License-Identifier: Apache-2.0 */
/* Writing numbers and text. Doubles are converted exactly: no rounding but the last one. */
#include "base/text.h"

#include <assert.h>
#include <string.h>

#define U64_DIGITS_MAX   20
#define DECIMALS_MAX     9
#define MANTISSA_BITS    52
#define EXPONENT_BIAS    1075 /* of a mantissa read as a whole number */
#define EXPONENT_SPECIAL 0x7ff

__extension__ typedef unsigned __int128 wide;

static const char two_digits[] = "00010203040506070809101112131415161718192021222324"
                                 "25262728293031323334353637383940414243444546474849"
                                 "50515253545556575859606162636465666768697071727374"
                                 "75767778798081828384858687888990919293949596979899";

static const uint32_t power_of_ten[] = {1,      10,      100,      1000,      10000,
                                        100000, 1000000, 10000000, 100000000, 1000000000};

void text_put_cut(struct text *t, struct bytes b)
{
    size_t room = t->room - t->len;

    t->failed = true;
    if (room > 0)
        memcpy(t->data + t->len, b.data, room);
    t->len = t->room;
}

/* Writes |v| so that it ends before |end|; returns where it begins. */
static char *digits_before(char *end, uint64_t v)
{
    while (v >= 100) {
        end -= 2;
        memcpy(end, two_digits + 2 * (v % 100), 2);
        v /= 100;
    }
    if (v >= 10) {
        end -= 2;
        memcpy(end, two_digits + 2 * v, 2);
    } else {
        *--end = (char)('0' + v);
    }
    return end;
}

/* |v| below a thousand, as octets and status codes are; there is room for three digits. */
static size_t write_small(char *to, uint64_t v)
{
    if (v < 10) {
        to[0] = (char)('0' + v);
        return 1;
    }
    if (v < 100) {
        memcpy(to, two_digits + 2 * v, 2);
        return 2;
    }
    to[0] = (char)('0' + v / 100);
    memcpy(to + 1, two_digits + 2 * (v % 100), 2);
    return 3;
}

void text_u64(struct text *t, uint64_t v)
{
    char digits[U64_DIGITS_MAX];
    const char *end = digits + sizeof(digits);
    const char *begin;

    if (v < 1000 && t->room - t->len >= 3) {
        t->len += write_small(t->data + t->len, v);
        return;
    }
    begin = digits_before(digits + sizeof(digits), v);
    text_put(t, bytes_from(begin, (size_t)(end - begin)));
}

void text_i64(struct text *t, int64_t v)
{
    if (v < 0)
        text_char(t, '-');
    text_u64(t, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

/* The lowest |count| digits of |v|, leading zeros included. */
static void put_padded(struct text *t, uint64_t v, unsigned count)
{
    char digits[U64_DIGITS_MAX];

    for (unsigned i = count; i > 0; i--) {
        digits[i - 1] = (char)('0' + v % 10);
        v /= 10;
    }
    text_put(t, bytes_from(digits, count));
}

/* |mantissa| << |shift|, written in limbs of nine digits; the largest double takes 35 of them. */
static void put_huge(struct text *t, uint64_t mantissa, unsigned shift)
{
    uint32_t limbs[36] = {(uint32_t)(mantissa % 1000000000), (uint32_t)(mantissa / 1000000000)};
    unsigned count = 2;

    while (shift > 0) {
        unsigned step = shift < 29 ? shift : 29;
        uint64_t carry = 0;

        for (unsigned i = 0; i < count; i++) {
            carry += (uint64_t)limbs[i] << step;
            limbs[i] = (uint32_t)(carry % 1000000000);
            carry /= 1000000000;
        }
        if (carry > 0)
            limbs[count++] = (uint32_t)carry;
        shift -= step;
    }
    text_u64(t, limbs[count - 1]);
    for (unsigned i = count - 1; i > 0; i--)
        put_padded(t, limbs[i - 1], 9);
}

static void put_decimals(struct text *t, uint64_t fraction, unsigned decimals)
{
    if (decimals == 0)
        return;
    text_char(t, '.');
    put_padded(t, fraction, decimals);
}

static void put_sign(struct text *t, uint64_t sign)
{
    if (sign != 0)
        text_char(t, '-');
}

/* What is below one, |low| / 2^|bits|, in units of the last decimal, rounded half up. */
static uint64_t scale_fraction(uint64_t low, unsigned bits, unsigned decimals)
{
    wide product = (wide)low * power_of_ten[decimals]; /* below 2^83 */

    if (bits > 100)
        return 0;
    return (uint64_t)((product + ((wide)1 << (bits - 1))) >> bits);
}

static void put_fractional(struct text *t, uint64_t sign, uint64_t mantissa, unsigned bits,
                           unsigned decimals)
{
    uint64_t whole = bits > MANTISSA_BITS ? 0 : mantissa >> bits;
    uint64_t low = bits > MANTISSA_BITS ? mantissa : mantissa & ((UINT64_C(1) << bits) - 1);
    uint64_t fraction = scale_fraction(low, bits, decimals);

    if (fraction >= power_of_ten[decimals]) {
        fraction -= power_of_ten[decimals];
        whole++;
    }
    put_sign(t, whole == 0 && fraction == 0 ? 0 : sign);
    text_u64(t, whole);
    put_decimals(t, fraction, decimals);
}

void text_double(struct text *t, double value, unsigned decimals)
{
    uint64_t bits, mantissa, sign;
    unsigned exponent;

    assert(decimals <= DECIMALS_MAX);
    memcpy(&bits, &value, sizeof(bits));
    sign = bits >> 63;
    exponent = (unsigned)(bits >> MANTISSA_BITS) & EXPONENT_SPECIAL;
    mantissa = bits & ((UINT64_C(1) << MANTISSA_BITS) - 1);
    if (exponent == EXPONENT_SPECIAL) {
        put_sign(t, mantissa != 0 ? 0 : sign);
        text_str(t, mantissa != 0 ? "nan" : "inf");
        return;
    }
    if (exponent == 0)
        exponent = 1; /* subnormal: no hidden bit */
    else
        mantissa |= UINT64_C(1) << MANTISSA_BITS;
    if (exponent < EXPONENT_BIAS) {
        put_fractional(t, sign, mantissa, EXPONENT_BIAS - exponent, decimals);
        return;
    }
    put_sign(t, sign);
    put_huge(t, mantissa, exponent - EXPONENT_BIAS);
    put_decimals(t, 0, decimals);
}

/* The digits of a byte, for each byte. */
#define ROW(h)                                                                                     \
    h "0" h "1" h "2" h "3" h "4" h "5" h "6" h "7" h "8" h "9" h "a" h "b" h "c" h "d" h "e" h "f"
static const char hex_pairs[] = ROW("0") ROW("1") ROW("2") ROW("3") ROW("4") ROW("5") ROW("6")
    ROW("7") ROW("8") ROW("9") ROW("a") ROW("b") ROW("c") ROW("d") ROW("e") ROW("f");
#undef ROW

void text_hex(struct text *t, uint64_t v, unsigned digits)
{
    char *end;

    for (; digits > t->room - t->len; digits--, v >>= 4)
        t->failed = true; /* the last ones find no room */
    t->len += digits;
    end = t->data + t->len;
    for (; digits >= 2; digits -= 2, v >>= 8)
        memcpy(end -= 2, &hex_pairs[2 * (v & 255)], 2);
    if (digits > 0)
        end[-1] = hex_pairs[2 * (v & 15) + 1];
}

char *text_end(struct text *t)
{
    assert(t->room > 0);
    if (t->len == t->room) {
        t->len--;
        t->failed = true;
    }
    t->data[t->len] = '\0';
    return t->data;
}
