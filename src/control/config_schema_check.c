/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of what only `firebreak check` reads. */
#include "control/config_schema.h"
#include "control/lint.h"

#define YEAR (365 * 24 * 3600 * NS_PER_S)

#define AT(member) offsetof(struct config_expect, member)
static const struct field expect_rows[] = {
    {.name = "p99",
     .kind = FIELD_SPAN,
     .at = AT(p99),
     .min = NS_PER_MS,
     .max = YEAR,
     .preset = 0,
     .preset_text = "not known",
     .help = "99 of 100 answers are complete after that, on a good day; timeouts are compared "
             "with it"},
    {.name = NULL},
};
#undef AT

const struct fields config_expect_fields = {
    .name = "expect",
    .path = "expect",
    .size = sizeof(struct config_expect),
    .rows = expect_rows,
    .help = "Of a route or a cluster, for `firebreak check`: nothing is done with it at run time.",
};

#define AT(member) offsetof(struct config_accept, member)
static const struct field accept_rows[] = {
    {.name = "trap",
     .kind = FIELD_CHOICE,
     .at = AT(trap),
     .choice = lint_trap_id,
     .listed_in = "docs/checks.md",
     .required = true,
     .help = "which, by the name in brackets at the end of its message"},
    {.name = "reason",
     .kind = FIELD_TEXT,
     .at = AT(reason),
     .required = true,
     .help = "why it is no mistake, for whoever reads it next"},
    {.name = NULL},
};
#undef AT

const struct fields config_accept_fields = {
    .name = "accept",
    .path = "accept[]",
    .size = sizeof(struct config_accept),
    .rows = accept_rows,
    .help = "Of the file, a route or a cluster's `resilience`: the trap is still listed by "
            "`firebreak check`, as accepted, but counts no more.",
};
