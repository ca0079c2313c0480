/* SPDX-License-Identifier: Apache-2.0 */
#include "main/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/address.h"
#include "base/units.h"

#define WORDS_MAX 80

/* What the options of these tests fill in. */
struct values {
    bool flag;
    const char *text;
    struct option_texts texts;
    uint64_t number;
    span_ns span;
    uint64_t size;
    struct address address;
};

static struct values v;
static char said[4096]; /* on standard error, or standard output for help */

static const struct command_help help = {
    .name = "try", .usage = "[OPTION ...]", .summary = "Tries.", .examples = "one\ntwo"};

static const struct command_option options[] = {
    {.name = "flag", .kind = OPTION_FLAG, .target = &v.flag, .help = "a flag"},
    {.name = "config",
     .letter = 'c',
     .kind = OPTION_TEXT,
     .target = &v.text,
     .placeholder = "FILE",
     .help = "a text"},
    {.name = "header",
     .letter = 'H',
     .kind = OPTION_TEXTS,
     .target = &v.texts,
     .placeholder = "TEXT",
     .help = "texts"},
    {.name = "count",
     .kind = OPTION_NUMBER,
     .target = &v.number,
     .placeholder = "N",
     .least = 1,
     .most = 10,
     .help = "a number\nin two lines"},
    {.name = "time",
     .kind = OPTION_DURATION,
     .target = &v.span,
     .placeholder = "T",
     .least = NS_PER_MS,
     .most = NS_PER_S,
     .help = "a time"},
    {.name = "size",
     .kind = OPTION_SIZE,
     .target = &v.size,
     .placeholder = "SIZE",
     .help = "a size"},
    {.name = "listen",
     .kind = OPTION_PARSED,
     .target = &v.address,
     .placeholder = "ADDR",
     .parse = option_parse_address,
     .help = "an address"},
};

/* Runs |call| with |fd| going to |said|. */
static int divert(int fd, FILE **file)
{
    int kept = dup(fd);

    *file = tmpfile();
    assert_non_null(*file);
    fflush(stdout);
    fflush(stderr);
    dup2(fileno(*file), fd);
    return kept;
}

static void restore(int fd, int kept, FILE *file)
{
    size_t n;

    fflush(stdout);
    fflush(stderr);
    dup2(kept, fd);
    close(kept);
    rewind(file);
    n = fread(said, 1, sizeof(said) - 1, file);
    said[n] = '\0';
    fclose(file);
}

static enum options_verdict read_line(const char *line, int fd)
{
    char copy[2048];
    char *words[WORDS_MAX] = {strcpy(copy, line)};
    int argc = 0;
    enum options_verdict verdict;
    FILE *file;
    int kept;
    char *rest = copy;

    while ((words[argc] = strsep(&rest, " ")) != NULL)
        argc++;
    v = (struct values){.number = 7};
    kept = divert(fd, &file);
    verdict = options_read(&help, options, sizeof(options) / sizeof(options[0]), argc, words);
    restore(fd, kept, file);
    return verdict;
}

static void assert_good(const char *line)
{
    if (read_line(line, STDERR_FILENO) != OPTIONS_GO || said[0] != '\0')
        fail_msg("%s: %s", line, said);
}

static void assert_bad(const char *line, const char *words)
{
    assert_int_equal(read_line(line, STDERR_FILENO), OPTIONS_BAD);
    if (strncmp(said, "firebreak try: ", 15) != 0 || strstr(said, words) == NULL ||
        strchr(said, '\n') != said + strlen(said) - 1)
        fail_msg("\"%s\" says: %s", line, said);
}

static void defaults_stay_where_nothing_is_given(void **state)
{
    (void)state;

    assert_good("try");
    assert_int_equal(v.number, 7);
    assert_false(v.flag);
    assert_null(v.text);
}

static void every_kind_is_read_in_both_forms(void **state)
{
    (void)state;

    assert_good("try --flag --config a --header x --header=y -H z --count 10 --time=250ms "
                "--size 64KiB --listen [::1]:80");
    assert_true(v.flag);
    assert_int_equal(v.texts.count, 3);
    assert_int_equal(v.number, 10);
    assert_int_equal(v.span, 250 * NS_PER_MS);
    assert_int_equal(v.size, 65536);
    assert_int_equal(v.address.kind, ADDRESS_IPV6);
    assert_int_equal(v.address.port, 80);
    assert_good("try --config=a=b");
    assert_good("try -c --flag"); /* a value may look like an option */
    assert_false(v.flag);
}

static void the_last_one_counts(void **state)
{
    (void)state;

    assert_good("try --count 1 --count 2");
    assert_int_equal(v.number, 2);
}

static void an_empty_value_is_a_value(void **state)
{
    (void)state;

    assert_good("try --config=");
    assert_non_null(v.text);
}

static void an_address_without_a_host_is_all_of_ipv4(void **state)
{
    (void)state;

    assert_good("try --listen :8080");
    assert_int_equal(v.address.kind, ADDRESS_IPV4);
    assert_int_equal(v.address.port, 8080);
    assert_int_equal(v.address.ip[0], 0);
    assert_bad("try --listen :65536", "127.0.0.1:9001");
    assert_bad("try --listen :", "127.0.0.1:9001");
    assert_bad("try --listen localhost:1", "127.0.0.1:9001");
}

static void bounds_are_kept_and_said(void **state)
{
    (void)state;

    assert_bad("try --count 0", "--count 0: write a whole number, from 1 to 10");
    assert_bad("try --count 11", "from 1 to 10");
    assert_bad("try --count x", "whole number");
    assert_bad("try --count -1", "whole number");
    assert_bad("try --count 99999999999999999999", "whole number");
    assert_bad("try --time 2s", "from 1ms to 1s");
    assert_bad("try --time 10", "250ms");
    assert_bad("try --time 0s", "from 1ms");
    assert_bad("try --size 64kb", "64KiB");
    assert_good("try --size 0");
    assert_int_equal(v.number, 7);
}

static void what_is_missing_or_too_much_is_said(void **state)
{
    (void)state;

    assert_bad("try --count", "--count: its value is missing");
    assert_bad("try -c", "-c: its value is missing");
    assert_bad("try --flag=yes", "takes no value");
    assert_bad("try word", "\"word\" is no option");
    assert_bad("try -", "\"-\" is no option");
}

static void unknown_ones_are_said_with_what_was_meant(void **state)
{
    (void)state;

    assert_bad("try --cuont 3", "no option --cuont; did you mean --count?");
    assert_bad("try --counts=3", "no option --counts; did you mean --count?");
    assert_bad("try --halp", "did you mean --help?");
    assert_bad("try --something", "firebreak try --help lists them");
    assert_bad("try -x", "no option -x");
    assert_bad("try --coun 3", "did you mean --count?"); /* no abbreviations: they hide new ones */
    assert_bad("try -config a", "did you mean --config?");
    assert_bad("try --", "no option --");
}

static void nothing_after_the_first_error_is_read(void **state)
{
    (void)state;

    assert_bad("try --count x --flag", "whole number");
    assert_false(v.flag);
}

static void too_many_texts_are_refused(void **state)
{
    char line[2048] = "try";
    (void)state;

    for (unsigned i = 0; i < OPTION_TEXTS_MAX; i++)
        strcat(line, " -Hx");
    assert_bad(line, "no option -Hx"); /* values stand apart from letters */
    strcpy(line, "try");
    for (unsigned i = 0; i < 35; i++)
        strcat(line, " --header=x");
    assert_good(line);
    assert_int_equal(v.texts.count, 35);
    for (unsigned i = 0; i < 30; i++)
        strcat(line, " --header=x");
    assert_bad(line, "more than 64 times");
}

static void help_names_every_option_and_wins_over_errors_after_it(void **state)
{
    (void)state;

    assert_int_equal(read_line("try --help --cuont", STDOUT_FILENO), OPTIONS_HELP);
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        assert_non_null(strstr(said, options[i].name));
        assert_non_null(strstr(said, options[i].placeholder == NULL ? "" : options[i].placeholder));
    }
    assert_non_null(strstr(said, "firebreak try [OPTION ...]\n"));
    assert_non_null(strstr(said, "Examples:\n  one\n  two\n"));
    assert_non_null(strstr(said, "Exit codes: 0"));
    assert_non_null(strstr(said, "  --count N               a number\n"
                                 "                          in two lines\n"));
    assert_int_equal(read_line("try -h", STDOUT_FILENO), OPTIONS_HELP);
}

static void the_nearest_word_must_be_near(void **state)
{
    static const char *const words[] = {"run", "backend", "load"};
    (void)state;

    assert_string_equal(options_nearest("bakend", words, 3), "backend");
    assert_string_equal(options_nearest("laod", words, 3), "load");
    assert_string_equal(options_nearest("bckedn", words, 3), "backend"); /* two edits */
    assert_null(options_nearest("bckdn", words, 3));
    assert_string_equal(options_nearest("a", (const char *const[]){"ab", "ac"}, 2), "ab");
    assert_null(options_nearest("frontend", words, 3));
    assert_null(options_nearest("", words, 3));
    assert_null(options_nearest("xyz", words, 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_stay_where_nothing_is_given),
        cmocka_unit_test(every_kind_is_read_in_both_forms),
        cmocka_unit_test(the_last_one_counts),
        cmocka_unit_test(an_empty_value_is_a_value),
        cmocka_unit_test(an_address_without_a_host_is_all_of_ipv4),
        cmocka_unit_test(bounds_are_kept_and_said),
        cmocka_unit_test(what_is_missing_or_too_much_is_said),
        cmocka_unit_test(unknown_ones_are_said_with_what_was_meant),
        cmocka_unit_test(nothing_after_the_first_error_is_read),
        cmocka_unit_test(too_many_texts_are_refused),
        cmocka_unit_test(help_names_every_option_and_wins_over_errors_after_it),
        cmocka_unit_test(the_nearest_word_must_be_near),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
