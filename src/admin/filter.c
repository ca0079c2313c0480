/* SPDX-License-Identifier: Apache-2.0 */
#include "admin/filter.h"

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

/* The larger number of the "{m,n}" that begins |b|; 1 where there is none. */
static uint64_t bound_of(struct bytes b)
{
    uint64_t most = 1, number = 0;

    for (size_t i = 0; i < b.len && (is_digit(b.data[i]) || b.data[i] == ','); i++) {
        number = b.data[i] == ',' ? 0 : number * 10 + (uint64_t)(b.data[i] - '0');
        if (number > FILTER_WORK_MAX)
            return number;
        if (number > most)
            most = number;
    }
    return most;
}

/*
 * glibc copies what stands before a '+': that of a group, or of what is repeated already, has
 * copies in it, so these multiply too. A '*' costs no more states than are written.
 */
static bool copies(struct bytes pattern, size_t i)
{
    return pattern.data[i] == '+' && i > 0 && memchr(")}*+?", pattern.data[i - 1], 5) != NULL;
}

static const char *refuse_explosive(struct bytes pattern)
{
    uint64_t repeats = 1;

    for (size_t i = 0; i < pattern.len; i++) {
        uint8_t c = pattern.data[i];

        if (c == '\\' && i + 1 < pattern.len && is_digit(pattern.data[i + 1]))
            return "back references are not supported";
        if (c == '{')
            repeats *= bound_of(bytes_skip(pattern, i + 1));
        if (copies(pattern, i))
            repeats *= 2;
        if (repeats > 1 && repeats * pattern.len > FILTER_WORK_MAX)
            return "too many repetitions";
    }
    return NULL;
}

void filter_init(struct filter *f)
{
    f->set = false;
    f->invert = false;
}

const char *filter_compile(struct filter *f, struct bytes pattern)
{
    char text[FILTER_LENGTH_MAX + 1];
    const char *why = refuse_explosive(pattern);

    if (pattern.len == 0)
        return NULL;
    if (pattern.len > FILTER_LENGTH_MAX)
        return "longer than 256 bytes";
    if (why != NULL)
        return why;
    memcpy(text, pattern.data, pattern.len);
    text[pattern.len] = '\0';
    if (regcomp(&f->regex, text, REG_EXTENDED | REG_NOSUB) != 0)
        return "not a POSIX extended regular expression";
    f->set = true;
    return NULL;
}

bool filter_matches(const struct filter *f, const char *name)
{
    return !f->set || (regexec(&f->regex, name, 0, NULL, 0) == 0) != f->invert;
}

bool filter_matches_bytes(const struct filter *f, struct bytes name)
{
    char room[1024];
    struct text t;

    text_init(&t, room, sizeof(room));
    text_put(&t, name);
    return filter_matches(f, text_end(&t));
}

void filter_release(struct filter *f)
{
    if (f->set)
        regfree(&f->regex);
    f->set = false;
}
