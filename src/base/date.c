/* SPDX-License-Identifier: Apache-2.0 */
#include "base/date.h"

/* Days since 1970-01-01 to a date (proleptic Gregorian; years from March, so that leap days end
 * one). */
struct date {
    uint64_t year;
    unsigned month;
    unsigned day;
};

static struct date date_of(uint64_t days)
{
    uint64_t shifted = days + 719468; /* from 0000-03-01 */
    uint64_t era = shifted / 146097;
    uint64_t day_of_era = shifted % 146097;
    uint64_t year =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    uint64_t day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
    unsigned from_march = (unsigned)((5 * day_of_year + 2) / 153);
    struct date d = {
        .year = year + era * 400 + (from_march >= 10),
        .month = from_march < 10 ? from_march + 3 : from_march - 9,
        .day = (unsigned)(day_of_year - (153 * from_march + 2) / 5) + 1,
    };

    return d;
}

/* |digits| decimal digits, with zeros before. */
static void put_digits(struct text *t, uint64_t v, unsigned digits)
{
    uint64_t unit = 1;

    for (unsigned i = 1; i < digits; i++)
        unit *= 10;
    for (; unit > 0; unit /= 10)
        text_char(t, (char)('0' + v / unit % 10));
}

/* 1 January is the first. */
static uint64_t day_of_year(const struct date *d)
{
    static const unsigned before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
    bool leap = (d->year % 4 == 0 && d->year % 100 != 0) || d->year % 400 == 0;

    return before[d->month - 1] + d->day + (leap && d->month > 2);
}

/* The letters that are numbers; false: |letter| is none of them. */
static bool put_number(struct text *t, uint8_t letter, const struct date *d, uint64_t seconds)
{
    const struct {
        uint8_t letter;
        unsigned digits;
        uint64_t value;
    } parts[] = {
        {'Y', 4, d->year},
        {'y', 2, d->year},
        {'m', 2, d->month},
        {'d', 2, d->day},
        {'H', 2, seconds / 3600 % 24},
        {'M', 2, seconds / 60 % 60},
        {'S', 2, seconds % 60},
        {'j', 3, day_of_year(d)},
    };

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (parts[i].letter != letter)
            continue;
        put_digits(t, parts[i].value, parts[i].digits);
        return true;
    }
    return false;
}

/* The others. */
static void put_word(struct text *t, uint8_t letter, const struct date *d, uint64_t seconds)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    static const char days[] = "ThuFriSatSunMonTueWed"; /* 1970-01-01 was a Thursday */

    if (letter == 'b')
        text_put(t, bytes_from(months + (size_t)3 * (d->month - 1), 3));
    else if (letter == 'a')
        text_put(t, bytes_from(days + 3 * (seconds / 86400 % 7), 3));
    else if (letter == 's')
        text_u64(t, seconds);
    else if (letter == 'z')
        text_str(t, "+0000");
    else if (letter == 'Z')
        text_str(t, "UTC");
    else if (letter == 'e' && d->day < 10)
        text_char(t, ' ');
    else if (letter == '%')
        text_char(t, '%');
    if (letter == 'e')
        text_u64(t, d->day);
}

static void put_fraction(struct text *t, wall_ns at, unsigned digits)
{
    uint64_t fraction = at % NS_PER_S;

    for (unsigned i = digits; i < 9; i++)
        fraction /= 10;
    put_digits(t, fraction, digits);
}

static const char *composed_of(uint8_t letter)
{
    if (letter == 'T')
        return "%H:%M:%S";
    if (letter == 'F')
        return "%Y-%m-%d";
    if (letter == 'R')
        return "%H:%M";
    return letter == 'D' ? "%m/%d/%y" : NULL;
}

void date_write(struct text *t, wall_ns at, struct bytes format)
{
    uint64_t seconds = at / NS_PER_S;
    struct date d = date_of(seconds / 86400);

    for (size_t i = 0; i < format.len; i++) {
        uint8_t c = format.data[i];

        if (c != '%' || i + 1 == format.len) {
            text_char(t, (char)c);
            continue;
        }
        c = format.data[++i];
        if (c >= '1' && c <= '9') {
            put_fraction(t, at, (unsigned)(c - '0'));
            i++; /* the 'f' */
        } else if (c == 'f') {
            put_fraction(t, at, 6);
        } else if (composed_of(c) != NULL) {
            date_write(t, at, bytes_of(composed_of(c)));
        } else if (!put_number(t, c, &d, seconds)) {
            put_word(t, c, &d, seconds);
        }
    }
}

void date_utc(struct text *t, wall_ns at)
{
    date_write(t, at, BYTES("%FT%T.%3fZ"));
}
