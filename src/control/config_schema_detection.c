/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of detection, below a cluster's `resilience`. */
#include "control/config_schema.h"

#define YEAR (365 * 24 * 3600 * NS_PER_S)
#define HOUR (3600 * NS_PER_S)

#define FALSE_ALARMS_MAX 700 /* a week: more, and the evidence is hardly any */

#define AT(member) offsetof(struct config_detect, member)
static const struct field detect_rows[] = {
    {.name = "latency",
     .kind = FIELD_SWITCH,
     .at = AT(latency),
     .preset_of = &default_detection.detect.latency,
     .help = "the lines `rank`, `tail`, `stalls` and `age`: answers later than those of its peers"},
    {.name = "errors",
     .kind = FIELD_SWITCH,
     .at = AT(errors),
     .preset_of = &default_detection.detect.errors,
     .help = "the lines `errors_some` and `errors_many`: answers 5xx, resets, timeouts, cut bodies "
             "more often than its peers"},
    {.name = "connections",
     .kind = FIELD_SWITCH,
     .at = AT(connections),
     .preset_of = &default_detection.detect.connections,
     .help = "the line `connects`: connects that fail or are refused more often than its peers'"},
    {.name = "falseAlarms",
     .kind = FIELD_EVENTS,
     .at = AT(false_alarms),
     .min = 1,
     .max = FALSE_ALARMS_MAX,
     .preset = 0,
     .preset_text = "as of a threshold of 11 nats: 45 per day",
     .help = "how often a line of evidence may pass the threshold by chance alone, before any gate "
             "and guard, for a fleet of 200 requests a second (20 hosts of 10 each), twice as "
             "often for twice as many; 1 per week is 16.8 nats, and each tenth of the rate costs "
             "2.3 more"},
    {.name = NULL},
};
#undef AT

const struct fields config_detect_fields = {
    .name = "detect",
    .path = "clusters[].resilience.detect",
    .size = sizeof(struct config_detect),
    .rows = detect_rows,
    .help = "What the adaptive judge looks at. Each line is a sum in nats that rises while a host "
            "looks worse than its peers, and accuses past one threshold "
            "([detection.md](detection.md)).",
};

#define AT(member) offsetof(struct config_ejection, member)
static const struct field ejection_rows[] = {
    {.name = "cap",
     .kind = FIELD_SHARE,
     .at = AT(cap_permille),
     .min = 10,
     .max = 1000,
     .preset = 200,
     .help = "most hosts out at once, in whole percent, counted after the ejection; one of a set "
             "of two or more may always go; the stricter of it and `maxEjectionPercent` holds"},
    {.name = "base",
     .kind = FIELD_SPAN,
     .at = AT(base),
     .min = NS_PER_MS,
     .max = YEAR,
     .preset_of = &default_detection.life.base,
     .preset_text = "30s, or baseEjectionTime where that is written",
     .help = "quarantine, times how often the host was out lately: with `starter` and `rules` "
             "before its first probe; with `adaptive` the longest gap between probes, and how much "
             "longer each time they have to go well where it was out lately"},
    {.name = "max",
     .kind = FIELD_SPAN,
     .at = AT(max),
     .min = NS_PER_MS,
     .max = YEAR,
     .preset = 0,
     .preset_text = "5m, or `base` if longer",
     .help = "the quarantine grows no longer"},
    {.name = NULL},
};
#undef AT

const struct fields config_ejection_fields = {
    .name = "ejection",
    .path = "clusters[].resilience.ejection",
    .size = sizeof(struct config_ejection),
    .rows = ejection_rows,
    .help = "Whoever accuses: rules, the adaptive judge, `outlierDetection`. Fewer than four "
            "healthy hosts: at most one more, and only on total evidence; never the last one.",
};

#define AT(member) offsetof(struct config_readmit, member)
static const struct field readmit_rows[] = {
    {.name = "after",
     .kind = FIELD_SPAN,
     .at = AT(after),
     .min = 100 * NS_PER_MS,
     .max = HOUR,
     .preset_of = &default_detection.life.after,
     .help = "from the ejection to the first probe; only with `adaptive`"},
    {.name = "gap",
     .kind = FIELD_SPAN,
     .at = AT(gap),
     .min = 100 * NS_PER_MS,
     .max = HOUR,
     .preset_of = &default_detection.life.gap,
     .help = "between probes while they fail, in the first minute; then it grows, up to the "
             "quarantine; longer where traffic is so little that probes would be much of it; only "
             "with `adaptive`"},
    {.name = "probes",
     .kind = FIELD_COUNT,
     .at = AT(probes),
     .min = 1,
     .max = LIFE_PROBE_MAX,
     .preset_of = &default_detection.life.probes,
     .help = "live requests that are sent to it at once at first; twice as many after each round "
             "without a failure, up to 8"},
    {.name = "successes",
     .kind = FIELD_COUNT,
     .at = AT(successes),
     .min = 1,
     .max = 1000,
     .preset_of = &default_detection.life.successes,
     .help = "probes in a row that pass (no failure, none later than twice its peers' p99, all "
             "of them together about as late as its peers' answers), before it serves again"},
    {.name = "ramp",
     .kind = FIELD_SPAN,
     .at = AT(ramp),
     .min = 0,
     .max = HOUR,
     .preset_of = &default_detection.life.ramp,
     .help = "from four tenths of its share to the whole, at most, success by success; at most 1s "
             "after less than a minute out; `0s`: as fast as it succeeds"},
    {.name = NULL},
};
#undef AT

const struct fields config_readmit_fields = {
    .name = "readmit",
    .path = "clusters[].resilience.readmit",
    .size = sizeof(struct config_readmit),
    .rows = readmit_rows,
    .help = "A host comes back on proof: by live requests that are answered as those of its peers "
            "are. One that fails is made good on another host, from the retry budget.",
};

#define AT(member) offsetof(struct config_capacity, member)
static const struct field capacity_rows[] = {
    {.name = "maxLoad",
     .kind = FIELD_SHARE,
     .at = AT(max_load_permille),
     .min = 100,
     .max = 1000,
     .preset = 750,
     .help = "of their capacity as hosts report it (ORCA, `endpoint-load-metrics`; where half of "
             "them do), else of the load at which latency begins to grow, learnt from the traffic: "
             "where the others would be past it, a slow host is not ejected but gets less"},
    {.name = NULL},
};
#undef AT

const struct fields config_capacity_fields = {
    .name = "capacity",
    .path = "clusters[].resilience.capacity",
    .size = sizeof(struct config_capacity),
    .rows = capacity_rows,
    .help = "",
};

#define AT(member) offsetof(struct config_escalate, member)
static const struct field escalate_rows[] = {
    {.name = "repeatedFor",
     .kind = FIELD_SPAN,
     .at = AT(repeated_for),
     .min = NS_PER_S,
     .max = YEAR,
     .preset_of = &default_detection.life.repeated_for,
     .word = "none",
     .word_value = MONO_NEVER,
     .help = "out for so long without a break: only a pardon lets it back"},
    {.name = "timesPerHour",
     .kind = FIELD_COUNT,
     .at = AT(times_per_hour),
     .min = 1,
     .max = LIFE_TIMES_KEPT,
     .preset_of = &default_detection.life.times_per_hour,
     .word = "none",
     .word_value = 0,
     .help = "or out so often within an hour"},
    {.name = NULL},
};
#undef AT

const struct fields config_escalate_fields = {
    .name = "escalate",
    .path = "clusters[].resilience.escalate",
    .size = sizeof(struct config_escalate),
    .rows = escalate_rows,
    .help = "A host that needs a human goes on to be probed, and stays out until it is pardoned "
            "(`POST /clusters/NAME/hosts/ADDR/pardon`).",
};
