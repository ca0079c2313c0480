/* SPDX-License-Identifier: Apache-2.0 */
#include "base/date.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static void dates_agree_with_the_c_library(void **state)
{
    (void)state;
    for (uint64_t day = 0; day < 200 * 366; day++) {
        time_t seconds = (time_t)(day * 86400 + day % 86400);
        struct tm tm;
        char want[64], got[64];
        struct text t;

        gmtime_r(&seconds, &tm);
        strftime(want, sizeof(want), "%Y-%m-%dT%H:%M:%S.007Z", &tm);
        text_init(&t, got, sizeof(got));
        date_utc(&t, (uint64_t)seconds * NS_PER_S + 7999999);
        text_end(&t);
        assert_string_equal(got, want);
    }
}

/* But years of two digits, which the compiler warns of. */
static void all_letters_agree_with_the_c_library(void **state)
{
    static const char format[] = "%Y %m %d %e %H %M %S %T %F %R %j %b %a %s %z %Z%%";
    (void)state;

    for (uint64_t i = 0; i < 20000; i++) {
        time_t seconds = (time_t)(i * 315569 + i * i % 86400);
        struct tm tm;
        char want[200], got[200];
        struct text t;

        gmtime_r(&seconds, &tm);
        strftime(want, sizeof(want), "%Y %m %d %e %H %M %S %T %F %R %j %b %a ", &tm);
        snprintf(want + strlen(want), sizeof(want) - strlen(want), "%lld +0000 UTC%%",
                 (long long)seconds);
        text_init(&t, got, sizeof(got));
        date_write(&t, (uint64_t)seconds * NS_PER_S, bytes_of(format));
        assert_string_equal(text_end(&t), want);
    }
}

static void fractions_have_as_many_digits_as_asked_for(void **state)
{
    char got[100];
    struct text t;
    (void)state;

    text_init(&t, got, sizeof(got));
    date_write(&t, 7 * NS_PER_S + 12345678, BYTES("%y %D %1f %3f %f %9f %"));
    assert_string_equal(text_end(&t), "70 01/01/70 0 012 012345 012345678 %");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dates_agree_with_the_c_library),
        cmocka_unit_test(all_letters_agree_with_the_c_library),
        cmocka_unit_test(fractions_have_as_many_digits_as_asked_for),
    };

    return cmocka_run_group_tests_name("access_time", tests, NULL, NULL);
}
