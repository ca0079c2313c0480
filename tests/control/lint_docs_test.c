/* SPDX-License-Identifier: Apache-2.0 */
/* docs/checks.md has a section for each trap, with its severity, and for nothing else. */
#include "control/lint_trap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define DOCS TESTS_DIR "/../docs/checks.md"

static char docs[256 * 1024];

static void read_docs(void)
{
    FILE *f = fopen(DOCS, "r");

    assert_non_null(f);
    docs[fread(docs, 1, sizeof(docs) - 1, f)] = '\0';
    fclose(f);
}

static void every_trap_is_explained(void **state)
{
    (void)state;
    read_docs();
    for (const struct lint_trap *t = lint_traps; t->id != NULL; t++) {
        const char *severity = lint_severity_text(t->severity);
        char heading[128];
        const char *found;

        snprintf(heading, sizeof(heading), "\n### %s\n\n%c%s. ", t->id, severity[0] - 'a' + 'A',
                 severity + 1);
        found = strstr(docs, heading);
        if (found == NULL)
            fail_msg("docs/checks.md has no section that begins so:%s", heading);
        assert_null(strstr(found + 1, heading));
    }
}

static bool is_trap(const char *name, size_t len)
{
    for (uint32_t i = 0; lint_trap_id(i) != NULL; i++)
        if (strlen(lint_trap_id(i)) == len && strncmp(lint_trap_id(i), name, len) == 0)
            return true;
    return false;
}

static void every_section_is_of_a_trap(void **state)
{
    (void)state;
    read_docs();
    for (const char *at = docs; (at = strstr(at, "\n### ")) != NULL;) {
        size_t len;

        at += strlen("\n### ");
        len = strcspn(at, "\n");
        if (!is_trap(at, len))
            fail_msg("docs/checks.md explains '%.*s', which is no trap", (int)len, at);
    }
}

static void names_are_words_with_dashes_and_each_is_there_once(void **state)
{
    (void)state;
    for (uint32_t i = 0; lint_trap_id(i) != NULL; i++) {
        const char *id = lint_trap_id(i);

        assert_int_equal(strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789-"), strlen(id));
        for (uint32_t k = 0; k < i; k++)
            assert_string_not_equal(lint_trap_id(k), id);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_trap_is_explained),
        cmocka_unit_test(every_section_is_of_a_trap),
        cmocka_unit_test(names_are_words_with_dashes_and_each_is_there_once),
    };

    return cmocka_run_group_tests_name("lint_docs", tests, NULL, NULL);
}
