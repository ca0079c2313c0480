/* SPDX-License-Identifier: Apache-2.0 */
/* Load reports in their three forms, broken ones, and what random reports come to. */
#include "codec/orca.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "base/text.h"

/* A copy of just that size, so that a byte read beyond it is seen. */
static bool read_exactly(struct bytes value, struct load_report *r)
{
    uint8_t *copy = malloc(value.len == 0 ? 1 : value.len);
    bool good;

    if (value.len > 0)
        memcpy(copy, value.data, value.len);
    good = orca_read(bytes_from(copy, value.len), r);
    free(copy);
    return good;
}

static struct load_report good(const char *value)
{
    struct load_report r;

    if (!read_exactly(bytes_of(value), &r))
        fail_msg("refused: %s", value);
    return r;
}

static void assert_named(const struct load_report *r, uint32_t i, const char *name, double value)
{
    assert_true(i < r->named_count);
    assert_string_equal(r->named[i].name, name);
    assert_int_equal(r->named[i].len, strlen(name));
    assert_true(r->named[i].value == value);
}

static void assert_is_example(const struct load_report *r)
{
    assert_true(r->cpu == 0.3 && r->memory == 0.8 && r->application == 1.25);
    assert_int_equal(r->named_count, 1);
    assert_named(r, 0, "queue", -7);
}

static void three_forms_say_the_same(void **state)
{
    struct load_report r;
    (void)state;

    r = good("TEXT cpu_utilization=0.3,mem_utilization=0.8, application_utilization=1.25,"
             "named_metrics.queue=-7");
    assert_is_example(&r);
    r = good("TEXT cpu_utilization:0.3,mem_utilization:0.8,application_utilization:1.25,"
             "named_metrics.queue:-7");
    assert_is_example(&r);
    r = good("JSON {\"cpu_utilization\": 0.3, \"mem_utilization\":0.8,\"rps\":[1,{\"a\":null}],"
             "\"application_utilization\":1.25, \"named_metrics\":{\"queue\":-7}}");
    assert_is_example(&r);
    r = good("JSON {\"cpuUtilization\":0.3,\"memUtilization\":8e-1,"
             "\"applicationUtilization\":12.5E-1,\"namedMetrics\":{\"queue\":-7}}");
    assert_is_example(&r);
    /* with rps_fractional (6) and a request_cost (4) beside them */
    r = good("BIN CTMzMzMzM9M/EZqZmZmZmek/MQAAAAAAAFlAIgwKAWERAAAAAAAA8D9CEAoFcXVldWURAAAAAAAAHMBJ"
             "AAAAAAAA9D8=");
    assert_is_example(&r);
}

static void what_is_not_said_is_known_as_such(void **state)
{
    struct load_report r = good("TEXT cpu_utilization=0");
    (void)state;

    assert_true(r.cpu == 0 && r.memory == LOAD_NOT_SAID && r.application == LOAD_NOT_SAID);
    assert_int_equal(r.named_count, 0);
}

static void what_is_no_report_is_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "TEXT",
        "TEXT ",
        "text cpu_utilization=1",
        "cpu_utilization=1",
        "TEXT cpu_utilization",
        "TEXT cpu_utilization=",
        "TEXT =1",
        "TEXT cpu_utilization=-0.1",
        "TEXT cpu_utilization=nan",
        "TEXT cpu_utilization=1e999",
        "TEXT cpu_utilization=0x1",
        "TEXT cpu_utilization=1.",
        "TEXT cpu_utilization=.5",
        "TEXT cpu_utilization=1e",
        "TEXT cpu_utilization=1 2",
        "TEXT cpu_utilization=1,mem_utilization=-1",
        "TEXT rps=5", /* nothing that we know */
        "JSON",
        "JSON {}",
        "JSON {\"rps\":5}",
        "JSON {\"cpu_utilization\":0.5",
        "JSON {\"cpu_utilization\":0.5}}",
        "JSON {\"cpu_utilization\":0.5,}",
        "JSON {\"cpu_utilization\" 0.5}",
        "JSON {\"cpu_utilization\":-0.5}",
        "JSON {\"cpu_utilization:0.5}",
        "JSON {\"named_metrics\":{\"a\":\"b\"}}",
        "JSON {\"named_metrics\":3}",
        "JSON {\"cpu_utilization\":0.5,\"x\":[[[[[[[[[[1]]]]]]]]]]}",
        "JSON [0.5]",
        "BIN",
        "BIN ",
        "BIN !",
        "BIN A",
        "BIN AA==",             /* field number 0 */
        "BIN CTMzMzMzM9M",      /* not a whole byte's bits are zero */
        "BIN CTMzMzMzMw==",     /* cut */
        "BIN CQAAAAAAAPh/",     /* not a number */
        "BIN CQAAAAAAAPC/",     /* -1 */
        "BIN //////////////8B", /* a tag of more than ten bytes */
    };
    (void)state;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct load_report r;

        if (read_exactly(bytes_of(bad[i]), &r))
            fail_msg("taken: %s", bad[i]);
    }
}

static void too_much_is_passed_over_or_refused(void **state)
{
    static char value[ORCA_VALUE_MAX + 2];
    struct load_report r;
    struct text t;
    (void)state;

    text_init(&t, value, sizeof(value));
    text_str(&t, "TEXT named_metrics.a=1,named_metrics.a=2,named_metrics."
                 "a_name_of_thirty_two_bytes______=3");
    for (char c = 'b'; c <= 'z'; c++) {
        text_str(&t, ",named_metrics.");
        text_char(&t, c);
        text_str(&t, "=1");
    }
    text_str(&t, ",cpu_utilization=0.5");
    assert_true(read_exactly(text_bytes(&t), &r));
    assert_int_equal(r.named_count, LOAD_NAMED_MAX);
    assert_named(&r, 0, "a", 1);
    assert_named(&r, 7, "h", 1);
    assert_true(r.cpu == 0.5);
    while (t.len < ORCA_VALUE_MAX)
        text_char(&t, ' ');
    assert_true(read_exactly(text_bytes(&t), &r));
    text_char(&t, ' ');
    assert_false(read_exactly(text_bytes(&t), &r));
}

static void names_that_would_break_a_line_are_no_names(void **state)
{
    struct load_report r = good("JSON {\"named_metrics\":{\"a "
                                "b\":1,\"\":2,\"c\\\"d\":3,\"f\\\\g\":5,\"h\":1.1e15,\"e\":4}}");
    (void)state;

    assert_int_equal(r.named_count, 1);
    assert_named(&r, 0, "e", 4);
}

/* --- random reports --- */

static void base64(struct text *t, const uint8_t *b, size_t len)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    for (size_t i = 0; i < len; i += 3) {
        uint32_t v = (uint32_t)b[i] << 16 | (i + 1 < len ? (uint32_t)b[i + 1] << 8 : 0) |
                     (i + 2 < len ? b[i + 2] : 0u);

        for (unsigned k = 0; k < 4; k++)
            text_char(t, i + k > len ? '=' : digits[v >> (18 - 6 * k) & 63]);
    }
}

struct raw {
    uint8_t at[1024];
    size_t len;
};

static void put_double(struct raw *r, uint8_t tag, double value)
{
    r->at[r->len++] = tag;
    memcpy(r->at + r->len, &value, 8); /* on a little-endian machine */
    r->len += 8;
}

static void put_entry(struct raw *r, const struct load_named *n)
{
    r->at[r->len++] = 8 << 3 | 2;
    r->at[r->len++] = (uint8_t)(2 + n->len + 9);
    r->at[r->len++] = 1 << 3 | 2;
    r->at[r->len++] = (uint8_t)n->len;
    memcpy(r->at + r->len, n->name, n->len);
    r->len += n->len;
    put_double(r, 2 << 3 | 1, n->value);
}

static void write_binary(struct text *t, const struct load_report *from)
{
    struct raw r = {.len = 0};

    put_double(&r, 1 << 3 | 1, from->cpu);
    put_double(&r, 2 << 3 | 1, from->memory);
    put_double(&r, 9 << 3 | 1, from->application);
    for (uint32_t i = 0; i < from->named_count; i++)
        put_entry(&r, &from->named[i]);
    text_str(t, "BIN ");
    base64(t, r.at, r.len);
}

static void write_words(struct text *t, const struct load_report *from, const char *start,
                        const char *quote, const char *is)
{
    char room[64];

    text_str(t, start);
    snprintf(room, sizeof(room), "%scpu_utilization%s%s%.17g,", quote, quote, is, from->cpu);
    text_str(t, room);
    snprintf(room, sizeof(room), "%smem_utilization%s%s%.17g,", quote, quote, is, from->memory);
    text_str(t, room);
    snprintf(room, sizeof(room), "%sapplication_utilization%s%s%.17g", quote, quote, is,
             from->application);
    text_str(t, room);
}

static void write_text(struct text *t, const struct load_report *from)
{
    char room[128];

    write_words(t, from, "TEXT ", "", "=");
    for (uint32_t i = 0; i < from->named_count; i++) {
        snprintf(room, sizeof(room), ",named_metrics.%s=%.17g", from->named[i].name,
                 from->named[i].value);
        text_str(t, room);
    }
}

static void write_json(struct text *t, const struct load_report *from)
{
    char room[128];

    write_words(t, from, "JSON {", "\"", ": ");
    text_str(t, ", \"named_metrics\": {");
    for (uint32_t i = 0; i < from->named_count; i++) {
        snprintf(room, sizeof(room), "%s\"%s\": %.17g", i == 0 ? "" : ", ", from->named[i].name,
                 from->named[i].value);
        text_str(t, room);
    }
    text_str(t, "}}");
}

static double draw_number(struct rng *rng)
{
    return ldexp(rng_unit(rng), (int)rng_below(rng, 60) - 40);
}

static struct load_report draw(struct rng *rng)
{
    struct load_report r = {.cpu = draw_number(rng),
                            .memory = draw_number(rng),
                            .application = draw_number(rng),
                            .named_count = rng_below(rng, LOAD_NAMED_MAX + 1)};

    for (uint32_t i = 0; i < r.named_count; i++) {
        struct load_named *n = &r.named[i];

        n->len = 2 + rng_below(rng, LOAD_NAME_MAX - 2);
        for (uint32_t k = 0; k < n->len; k++)
            n->name[k] = (char)('a' + rng_below(rng, 26));
        n->name[0] = (char)('A' + i);
        n->value = rng_below(rng, 2) == 0 ? draw_number(rng) : -draw_number(rng);
    }
    return r;
}

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-14 * fabs(b);
}

static void assert_same(const struct load_report *a, const struct load_report *b)
{
    assert_true(near(a->cpu, b->cpu) && near(a->memory, b->memory));
    assert_true(near(a->application, b->application));
    assert_int_equal(a->named_count, b->named_count);
    for (uint32_t i = 0; i < b->named_count; i++) {
        assert_string_equal(a->named[i].name, b->named[i].name);
        assert_true(near(a->named[i].value, b->named[i].value));
    }
}

/* Cut anywhere it is less, or none; never more, never beyond its end. */
static void assert_cut_is_harmless(struct bytes whole, const struct load_report *said)
{
    for (size_t len = 0; len < whole.len; len++) {
        struct load_report r;

        if (!read_exactly(bytes_slice(whole, 0, len), &r))
            continue;
        assert_true(r.named_count <= said->named_count);
        assert_int_not_equal(whole.data[0], 'J'); /* JSON has an end */
    }
}

static void random_reports_are_read_as_they_were_written(void **state)
{
    static void (*const forms[])(struct text *, const struct load_report *) = {
        write_text, write_json, write_binary};
    static char room[4096];
    (void)state;

    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct rng rng;
        struct load_report said, read;

        rng_init(&rng, seed);
        said = draw(&rng);
        for (size_t f = 0; f < 3; f++) {
            struct text t;

            text_init(&t, room, sizeof(room));
            forms[f](&t, &said);
            if (!read_exactly(text_bytes(&t), &read))
                fail_msg("refused: %s", text_end(&t));
            assert_same(&read, &said);
            assert_cut_is_harmless(text_bytes(&t), &said);
        }
    }
}

static uint8_t any_byte(struct rng *rng)
{
    static const char telling[] = "09.eE-+,=:{}[]\"A/";

    return rng_below(rng, 2) == 0 ? (uint8_t)rng_below(rng, 256)
                                  : (uint8_t)telling[rng_below(rng, sizeof(telling) - 1)];
}

/* With any bytes changed: shares that are none never come out of it. */
static void no_change_of_bytes_makes_a_share_that_is_none(void **state)
{
    static const char *const seeds[] = {
        "TEXT cpu_utilization=0.3,named_metrics.queue=-7e3",
        "JSON {\"cpu_utilization\": 0.3, \"named_metrics\": {\"queue\": -7}}",
        "BIN CTMzMzMzM9M/EZqZmZmZmek/QhAKBXF1ZXVlEQAAAAAAABzASQAAAAAAAPQ/",
    };
    uint32_t taken = 0;
    (void)state;

    for (uint64_t seed = 1; seed <= 30000; seed++) {
        uint8_t changed[128];
        struct load_report r;
        struct rng rng;
        size_t len;

        rng_init(&rng, seed);
        len = strlen(seeds[seed % 3]);
        memcpy(changed, seeds[seed % 3], len);
        for (uint32_t i = 0; i <= rng_below(&rng, 3); i++)
            changed[4 + rng_below(&rng, (uint32_t)len - 4)] = any_byte(&rng);
        if (!read_exactly(bytes_from(changed, len), &r))
            continue;
        taken++;
        assert_true(r.cpu >= 0 || r.cpu == LOAD_NOT_SAID);
        assert_true(isfinite(r.cpu) && isfinite(r.memory) && isfinite(r.application));
        for (uint32_t i = 0; i < r.named_count; i++)
            assert_true(isfinite(r.named[i].value) && strlen(r.named[i].name) == r.named[i].len);
    }
    assert_true(taken > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(three_forms_say_the_same),
        cmocka_unit_test(what_is_not_said_is_known_as_such),
        cmocka_unit_test(what_is_no_report_is_refused),
        cmocka_unit_test(too_much_is_passed_over_or_refused),
        cmocka_unit_test(names_that_would_break_a_line_are_no_names),
        cmocka_unit_test(random_reports_are_read_as_they_were_written),
        cmocka_unit_test(no_change_of_bytes_makes_a_share_that_is_none),
    };

    return cmocka_run_group_tests_name("orca", tests, NULL, NULL);
}
