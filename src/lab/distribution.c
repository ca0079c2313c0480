/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/distribution.h"

#include <math.h>
#include <stddef.h>

#define SIGMA_MAX 5.0
#define TWO_PI    6.283185307179586

#define PARTS_MAX 3

struct form {
    const char *name;
    enum distribution_kind kind;
    unsigned spans;  /* durations after the name */
    unsigned sigmas; /* plain numbers after those */
    const char *wrong;
};

static const struct form forms[] = {
    {"none", DISTRIBUTION_NONE, 0, 0, "\"none\" takes no value"},
    {"const", DISTRIBUTION_CONST, 1, 0, "write it like const:5ms"},
    {"exp", DISTRIBUTION_EXPONENTIAL, 1, 0, "write it like exp:10ms, with the mean"},
    {"lognormal", DISTRIBUTION_LOGNORMAL, 1, 1,
     "write it like lognormal:10ms:0.5, with the median and sigma (0 to 5)"},
    {"uniform", DISTRIBUTION_UNIFORM, 2, 0,
     "write it like uniform:1ms:20ms, with the least and the most"},
};

#define FORM_COUNT (sizeof(forms) / sizeof(forms[0]))

/* Parts between colons; PARTS_MAX + 1 where there are more. */
static unsigned split(struct bytes text, struct bytes *parts)
{
    unsigned n = 0;

    for (;;) {
        size_t colon = bytes_find(text, ':');

        if (n == PARTS_MAX)
            return PARTS_MAX + 1;
        parts[n++] = bytes_slice(text, 0, colon);
        if (colon == text.len)
            return n;
        text = bytes_skip(text, colon + 1);
    }
}

/* Digits with at most one point. */
static bool parse_sigma(struct bytes b, double *out)
{
    double value = 0;
    double place = 0; /* of the next digit after the point; 0: before it */

    for (size_t i = 0; i < b.len; i++) {
        uint8_t c = b.data[i];

        if (c == '.' && place == 0.0 && b.len > 1) {
            place = 0.1;
        } else if (c >= '0' && c <= '9') {
            value = place == 0.0 ? value * 10 + (c - '0') : value + (c - '0') * place;
            place /= 10;
        } else {
            return false;
        }
    }
    if (b.len == 0 || b.len > 16 || value > SIGMA_MAX)
        return false;
    *out = value;
    return true;
}

static bool parse_values(const struct form *f, const struct bytes *parts, struct distribution *d)
{
    span_ns *spans[] = {&d->a, &d->b};

    for (unsigned i = 0; i < f->spans; i++)
        if (!text_parse_duration(parts[1 + i], spans[i]) || *spans[i] > DISTRIBUTION_MAX)
            return false;
    if (f->sigmas > 0 && !parse_sigma(parts[1 + f->spans], &d->sigma))
        return false;
    return d->kind != DISTRIBUTION_UNIFORM || d->a <= d->b;
}

const char *distribution_parse(struct bytes text, struct distribution *out)
{
    struct bytes parts[PARTS_MAX] = {BYTES_NONE};
    unsigned n = split(text, parts);

    for (size_t i = 0; i < FORM_COUNT; i++) {
        struct distribution d = {.kind = forms[i].kind};

        if (!bytes_equal(parts[0], bytes_of(forms[i].name)))
            continue;
        if (n != 1 + forms[i].spans + forms[i].sigmas || !parse_values(&forms[i], parts, &d))
            return forms[i].wrong;
        *out = d;
        return NULL;
    }
    return "write one of " DISTRIBUTION_FORMS;
}

void distribution_write(struct text *t, const struct distribution *d)
{
    text_str(t, forms[d->kind].name);
    if (forms[d->kind].spans > 0) {
        text_char(t, ':');
        text_duration(t, d->a);
    }
    if (forms[d->kind].spans > 1) {
        text_char(t, ':');
        text_duration(t, d->b);
    }
    if (forms[d->kind].sigmas > 0) {
        text_char(t, ':');
        text_double(t, d->sigma, 2);
    }
}

double draw_exponential(struct rng *rng)
{
    return -log(1.0 - rng_unit(rng)) + 1e-12; /* rng_unit is never 1 */
}

/* Box and Muller 1958; the second number of the pair is not kept. */
static double draw_normal(struct rng *rng)
{
    double radius = sqrt(2.0 * draw_exponential(rng));

    return radius * cos(TWO_PI * rng_unit(rng));
}

static span_ns bounded(double ns)
{
    return ns < (double)DISTRIBUTION_MAX ? (span_ns)ns : DISTRIBUTION_MAX;
}

span_ns distribution_draw(const struct distribution *d, struct rng *rng)
{
    switch (d->kind) {
    case DISTRIBUTION_NONE:
        return 0;
    case DISTRIBUTION_CONST:
        return d->a;
    case DISTRIBUTION_EXPONENTIAL:
        return bounded((double)d->a * draw_exponential(rng));
    case DISTRIBUTION_LOGNORMAL:
        return bounded((double)d->a * exp(d->sigma * draw_normal(rng)));
    case DISTRIBUTION_UNIFORM:
        return d->a + bounded(rng_unit(rng) * (double)(d->b - d->a));
    }
    return 0;
}
