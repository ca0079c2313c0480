/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of resilience.outlier and resilience.differences. */
#include "control/config_schema.h"

#define YEAR (365 * 24 * 3600 * NS_PER_S)

#define ENFORCED "percent of what is found that is ejected, by dice; 0: only counted"

/* Rows that both statistics have, at |AT|. */
#define ROW_OF_LOCAL_ORIGIN(preset_)                                                               \
    {                                                                                              \
        .name = "enforcingLocalOrigin", .kind = FIELD_COUNT, .at = AT(enforcing_local),            \
        .max = 100, .preset = preset_,                                                             \
        .help = "the same for connects, resets and timeouts; only with "                           \
                "`splitExternalLocalOriginErrors`"                                                 \
    }
#define ROWS_OF_VOLUME(preset_)                                                                    \
    {.name = "minimumHosts",                                                                       \
     .kind = FIELD_COUNT,                                                                          \
     .at = AT(minimum_hosts),                                                                      \
     .preset = 5,                                                                                  \
     .help = "hosts with requests enough, before anybody is looked at"},                           \
    {                                                                                              \
        .name = "requestVolume", .kind = FIELD_COUNT, .at = AT(request_volume), .preset = preset_, \
        .help = "requests a host must have had in the interval to be looked at"                    \
    }

#define AT(member) offsetof(struct config_success_rate, member)
static const struct field success_rate_rows[] = {
    {.name = "enforcing",
     .kind = FIELD_COUNT,
     .at = AT(enforcing),
     .max = 100,
     .preset = 100,
     .help = ENFORCED},
    ROW_OF_LOCAL_ORIGIN(100),
    ROWS_OF_VOLUME(100),
    {.name = "stdevFactor",
     .kind = FIELD_COUNT,
     .at = AT(stdev_factor),
     .preset = 1900,
     .help = "a host goes whose rate is below the mean less so many thousandths of the standard "
             "deviation"},
    {.name = NULL},
};
#undef AT

static const struct fields success_rate_fields = {
    .name = "successRate",
    .path = "clusters[].resilience.outlier.successRate",
    .size = sizeof(struct config_success_rate),
    .rows = success_rate_rows,
    .help = "Present, even empty (`{}`): hosts are ejected for a success rate that stands out in "
            "the interval. Absent: it is only counted.",
};

#define AT(member) offsetof(struct config_failure_percentage, member)
static const struct field failure_percentage_rows[] = {
    {.name = "enforcing",
     .kind = FIELD_COUNT,
     .at = AT(enforcing),
     .max = 100,
     .required = true,
     .help = ENFORCED " (Envoy's default)"},
    ROW_OF_LOCAL_ORIGIN(0),
    {.name = "threshold",
     .kind = FIELD_COUNT,
     .at = AT(threshold),
     .max = 100,
     .preset = 85,
     .help = "a host goes of whose requests so many percent failed, or more"},
    ROWS_OF_VOLUME(50),
    {.name = NULL},
};
#undef AT

static const struct fields failure_percentage_fields = {
    .name = "failurePercentage",
    .path = "clusters[].resilience.outlier.failurePercentage",
    .size = sizeof(struct config_failure_percentage),
    .rows = failure_percentage_rows,
    .help = "",
};

#define AT(member) offsetof(struct config_outlier_more, member)
static const struct field outlier_more_rows[] = {
    {.name = "successRate",
     .kind = FIELD_OBJECT,
     .at = AT(success_rate),
     .of = &success_rate_fields,
     .help = "low success rates among the peers, at each interval"},
    {.name = "failurePercentage",
     .kind = FIELD_OBJECT,
     .at = AT(failure_percentage),
     .of = &failure_percentage_fields,
     .help = "too many failures, whatever the peers do, at each interval"},
    {.name = "maxEjectionTime",
     .kind = FIELD_SPAN,
     .at = AT(max_ejection),
     .min = NS_PER_MS,
     .max = YEAR,
     .preset = 300 * NS_PER_S,
     .preset_text = "300s, or baseEjectionTime if longer",
     .help = "an ejection grows no longer"},
    {.name = "maxEjectionTimeJitter",
     .kind = FIELD_SPAN,
     .at = AT(jitter),
     .max = YEAR,
     .preset = 0,
     .help = "up to that is added to each ejection, drawn at random, outside the maximum"},
    {.name = "enforcingConsecutive5xx",
     .kind = FIELD_COUNT,
     .at = AT(enforcing_5xx),
     .max = 100,
     .preset = 100,
     .help = ENFORCED},
    {.name = "enforcingConsecutiveGatewayFailure",
     .kind = FIELD_COUNT,
     .at = AT(enforcing_gateway),
     .max = 100,
     .preset = 100,
     .preset_text = "100, or 0 without consecutiveGatewayErrors",
     .help = ENFORCED},
    {.name = "enforcingConsecutiveLocalOriginFailure",
     .kind = FIELD_COUNT,
     .at = AT(enforcing_local),
     .max = 100,
     .preset = 100,
     .help = ENFORCED},
    {.name = "alwaysEjectOneHost",
     .kind = FIELD_SWITCH,
     .at = AT(always_eject_one),
     .preset = 0,
     .help = "`maxEjectionPercent` never keeps the first one in; needed only where the difference "
             "`capRoundsToNobody` is Envoy's"},
    {.name = NULL},
};
#undef AT

const struct fields config_outlier_more_fields = {
    .name = "outlier",
    .path = "clusters[].resilience.outlier",
    .size = sizeof(struct config_outlier_more),
    .rows = outlier_more_rows,
    .help = "Beside `trafficPolicy.outlierDetection`, or without it beside the defaults.",
};

const char *const config_semantics_words[] = {"firebreak", "envoy", NULL};

#define X(which, key, text)                                                                        \
    {.name = key,                                                                                  \
     .kind = FIELD_CHOICE,                                                                         \
     .at = offsetof(struct config_differences, is[DIFFERENCE_##which]),                            \
     .choices = config_semantics_words,                                                            \
     .preset_text = "as `semantics`",                                                              \
     .help = text},
static const struct field differences_rows[] = {DIFFERENCES(X){.name = NULL}};
#undef X

const struct fields config_differences_fields = {
    .name = "differences",
    .path = "clusters[].resilience.differences",
    .size = sizeof(struct config_differences),
    .rows = differences_rows,
    .help = "Each key is named by what Envoy does; `envoy`: so do we, `firebreak`: not. What we do "
            "instead, and why, is in docs/differences.md.",
};
