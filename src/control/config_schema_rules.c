/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of resilience.rules. */
#include "control/config_schema.h"
#include "policy/detect_rules.h"

#define HOUR (3600 * NS_PER_S)

static const char *signal_choice(uint32_t i)
{
    return i < RULE_SIGNAL_COUNT ? rule_signal_text((enum rule_signal)i) : NULL;
}

/* The shares: they stand together among the signals. */
static const char *with_choice(uint32_t i)
{
    return i <= RULE_TIMEOUT_OR_RESET - RULE_ERROR ? signal_choice(RULE_ERROR + i) : NULL;
}

#define AT(member) offsetof(struct config_detect_rule, member)
static const struct field detect_rule_rows[] = {
    {.name = "signal",
     .kind = FIELD_CHOICE,
     .at = AT(signal),
     .choice = signal_choice,
     .preset = RULE_SIGNAL_COUNT,
     .required = true,
     .help = "what is looked at: `consecutive5xx`, `localOrigin`: failures in a row; "
             "`connectFailure`: connects that failed; `error` (5xx), `timeout`, `reset` (cut "
             "answers, too), `refused`, `timeoutOrReset`: their share of the requests; "
             "`queueDelay`: half of the requests waited longer for a connection; `p95Multiple`, "
             "`p99Multiple`: latency, in the peers' median"},
    {.name = "atLeast",
     .kind = FIELD_COUNT,
     .at = AT(at_least),
     .min = 1,
     .max = RULE_AT_LEAST_MAX,
     .preset = 0,
     .preset_text = "must be given where failures are counted",
     .help = "so many failures; of `consecutive5xx`, `localOrigin`, `connectFailure`"},
    {.name = "above",
     .kind = FIELD_TEXT,
     .at = AT(above),
     .help = "to be given where failures are not counted: more than that; a share (20%), of "
             "`queueDelay` a duration (50ms), of a multiple a "
             "number from 1.1 to 100 (2.5)"},
    {.name = "within",
     .kind = FIELD_SPAN,
     .at = AT(within),
     .min = NS_PER_S,
     .max = HOUR,
     .preset = 0,
     .preset_text = "30s; `localOrigin`: any time; `connectFailure`, `queueDelay` and multiples: "
                    "10s",
     .help = "the time in which; of a multiple: a window's length"},
    {.name = "windows",
     .kind = FIELD_COUNT,
     .at = AT(windows),
     .min = 1,
     .max = RULE_WINDOWS_MAX,
     .preset = 0,
     .preset_text = "3",
     .help = "so many in a row; of multiples"},
    {.name = "minRequests",
     .kind = FIELD_COUNT,
     .at = AT(min_requests),
     .min = 1,
     .max = 1000000,
     .preset = 0,
     .preset_text = "20; `p99Multiple`: 100",
     .help = "with fewer within the time the rule says nothing; a multiple then goes by the p95, "
             "which takes 20, or by a window up to 7 times as long, and says so"},
    {.name = "with",
     .kind = FIELD_CHOICE,
     .at = AT(with),
     .choice = with_choice,
     .preset = RULE_SIGNAL_COUNT,
     .preset_text = "none",
     .help = "a second signal that has to agree: at least 3 of it, a higher share than the peers "
             "have at the time, and for a multiple higher than before; else the host is only "
             "suspect. Not where failures are counted"},
    {.name = NULL},
};
#undef AT

const struct fields config_detect_rule_fields = {
    .name = "rule",
    .path = "clusters[].resilience.rules[]",
    .size = sizeof(struct config_detect_rule),
    .rows = detect_rule_rows,
    .help =
        "At most 16; each is asked of every host and class apart, of connections by the host. With "
        "`profile: rules` they eject, beside `adaptive` where they are written; else what they "
        "would have done is counted (`ejections_detected_rules`). Left out, they are: "
        "`{signal: consecutive5xx, atLeast: 5, within: 30s}`, "
        "`{signal: timeoutOrReset, above: 20%, within: 30s, minRequests: 20}`, "
        "`{signal: p99Multiple, above: 2.5, windows: 3, within: 10s, minRequests: 100, with: "
        "timeoutOrReset}`, `{signal: localOrigin, atLeast: 3}`, "
        "`{signal: connectFailure, atLeast: 3, within: 10s}`. `[]`: none. Latency is not judged "
        "where a host has fewer than three peers.",
};
