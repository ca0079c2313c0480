/* SPDX-License-Identifier: Apache-2.0 */
/* resilience.rules: which keys a signal takes, what they are where they are not written. */
#include "control/config_build.h"
#include "policy/detect_rules.h"

#define P99_LEAST 100 /* requests that a p99 is made of */
#define TIMES_MIN 1100
#define TIMES_MAX 100000

/* One rule, where it stands. */
struct rule_at {
    struct config_build *b;
    const struct config_detect_rule *from;
    enum rule_kind kind;
    struct rule *rule;
};

static const struct config_node *key(const struct rule_at *at, const char *name)
{
    return config_node_find(at->from->head.node, name);
}

static const char *signal_text(const struct rule_at *at)
{
    return rule_signal_text(at->rule->signal);
}

static struct text *wrong(const struct rule_at *at, const char *name)
{
    const struct config_node *node = key(at, name);

    return config_build_error(at->b, node != NULL ? node : at->from->head.node);
}

static void end(const struct rule_at *at)
{
    config_error_end(at->b->errors);
}

/* --- keys that a signal has no use for, or cannot do without --- */

static void no_use(const struct rule_at *at, const char *name, const char *instead)
{
    struct text *t;

    if (key(at, name) == NULL)
        return;
    t = wrong(at, name);
    text_str(t, "'");
    text_str(t, name);
    text_str(t, "' says nothing beside 'signal: ");
    text_str(t, signal_text(at));
    text_str(t, "': ");
    text_str(t, instead);
    end(at);
}

static void lacking(const struct rule_at *at, const char *name, const char *such_as)
{
    struct text *t;

    if (key(at, name) != NULL)
        return;
    t = wrong(at, name);
    text_str(t, "'signal: ");
    text_str(t, signal_text(at));
    text_str(t, "' needs '");
    text_str(t, name);
    text_str(t, "', such as '");
    text_str(t, name);
    text_str(t, ": ");
    text_str(t, such_as);
    text_str(t, "'");
    end(at);
}

static const char *such_as(enum rule_kind kind)
{
    switch (kind) {
    case RULE_OF_SHARE:
        return "20%";
    case RULE_OF_WAIT:
        return "50ms";
    case RULE_OF_MULTIPLE:
        return "2.5";
    case RULE_OF_RUN:
    case RULE_OF_COUNT:
        return "5";
    }
    return "";
}

static void check_keys(const struct rule_at *at)
{
    bool counts = at->kind == RULE_OF_RUN || at->kind == RULE_OF_COUNT;

    if (counts) {
        lacking(at, "atLeast", such_as(at->kind));
        no_use(at, "above", "write 'atLeast: 5'");
        no_use(at, "minRequests", "write 'atLeast: 5'");
        no_use(at, "with", "it counts alone; leave it out");
    } else {
        lacking(at, "above", such_as(at->kind));
        no_use(at, "atLeast", "write 'above' and 'minRequests'");
    }
    if (at->kind != RULE_OF_MULTIPLE)
        no_use(at, "windows", "write 'within'");
}

/* --- above --- */

/* "20%", "12.5%" as thousandths; "2.5", "2.25" times as thousandths with |places| 3. */
static bool parse_decimal(struct bytes b, unsigned places, uint64_t *value)
{
    size_t dot = bytes_find(b, '.');
    uint64_t whole, rest = 0;
    struct bytes after = dot < b.len ? bytes_skip(b, dot + 1) : BYTES_NONE;

    if (!bytes_parse_u64(bytes_slice(b, 0, dot), &whole) || whole > 1000000 || after.len > places)
        return false;
    if (dot < b.len && !bytes_parse_u64(after, &rest))
        return false;
    for (size_t i = after.len; i < places; i++)
        rest *= 10;
    for (unsigned i = 0; i < places; i++)
        whole *= 10;
    *value = whole + rest;
    return true;
}

static bool parse_share(struct bytes b, uint64_t *permille)
{
    return b.len > 1 && b.data[b.len - 1] == '%' &&
           parse_decimal(bytes_slice(b, 0, b.len - 1), 1, permille) && *permille < 1000;
}

static bool parse_times(struct bytes b, uint64_t *thousandths)
{
    return parse_decimal(b, 3, thousandths) && *thousandths >= TIMES_MIN &&
           *thousandths <= TIMES_MAX;
}

static bool read_above(const struct rule_at *at)
{
    uint64_t value = 0;
    bool good = false;

    if (at->kind == RULE_OF_SHARE)
        good = parse_share(at->from->above, &value);
    else if (at->kind == RULE_OF_MULTIPLE)
        good = parse_times(at->from->above, &value);
    else if (at->kind == RULE_OF_WAIT)
        good = text_parse_duration(at->from->above, &at->rule->delay) && at->rule->delay > 0;
    at->rule->above = (uint32_t)value;
    return good;
}

static void build_above(const struct rule_at *at)
{
    static const char *const wanted[] = {
        [RULE_OF_RUN] = "",
        [RULE_OF_COUNT] = "",
        [RULE_OF_SHARE] = "a share below 100% with its sign, such as 20% or 12.5%",
        [RULE_OF_WAIT] = "a duration, such as 50ms",
        [RULE_OF_MULTIPLE] = "a number from 1.1 to 100, such as 2.5",
    };
    struct text *t;

    if (at->kind == RULE_OF_RUN || at->kind == RULE_OF_COUNT || at->from->above.len == 0 ||
        read_above(at))
        return;
    t = wrong(at, "above");
    text_str(t, "'above' of ");
    text_str(t, signal_text(at));
    text_str(t, " is ");
    text_str(t, wanted[at->kind]);
    text_str(t, "; not ");
    config_quote(t, at->from->above);
    end(at);
}

/* --- what is not written --- */

static span_ns within_of(const struct rule_at *at)
{
    if (at->from->within > 0)
        return at->from->within;
    if (at->rule->signal == RULE_LOCAL_ORIGIN)
        return MONO_NEVER;
    return at->kind == RULE_OF_SHARE || at->kind == RULE_OF_RUN ? 30 * NS_PER_S : 10 * NS_PER_S;
}

static void build_min_requests(const struct rule_at *at)
{
    uint32_t least = at->rule->signal == RULE_P99 ? P99_LEAST : RULE_P95_LEAST;
    struct text *t;

    at->rule->min_requests = at->from->min_requests > 0 ? at->from->min_requests : least;
    if (at->kind != RULE_OF_MULTIPLE || at->rule->min_requests >= least)
        return;
    t = wrong(at, "minRequests");
    text_str(t, "'minRequests' of ");
    text_str(t, signal_text(at));
    text_str(t, " is at least ");
    text_u64(t, least);
    text_str(t, ": of fewer it is only their slowest");
    end(at);
}

static void build_one(struct config_build *b, const struct config_detect_rule *from,
                      struct rule *rule)
{
    struct rule_at at = {b, from, RULE_OF_RUN, rule};

    if (from->signal == RULE_SIGNAL_COUNT)
        return; /* said already */
    rule->signal = (enum rule_signal)from->signal;
    at.kind = rule_kind_of(rule->signal);
    rule->with = from->with == RULE_SIGNAL_COUNT ? RULE_WITH_NONE
                                                 : (enum rule_signal)(RULE_ERROR + from->with);
    rule->at_least = from->at_least;
    rule->within = within_of(&at);
    check_keys(&at);
    build_above(&at);
    if (at.kind != RULE_OF_RUN && at.kind != RULE_OF_COUNT)
        build_min_requests(&at);
    if (at.kind == RULE_OF_MULTIPLE)
        rule->windows = from->windows > 0 ? from->windows : 3;
}

static void too_many(struct config_build *b, const struct config_node *node)
{
    struct text *t = config_build_error(b, node);

    text_str(t, "at most ");
    text_u64(t, RULES_MAX);
    text_str(t, " rules: each is asked at every request of every host");
    config_error_end(b->errors);
}

void config_build_rules(struct config_build *b, const struct field_items *from,
                        struct detection_config *d)
{
    const struct config_detect_rule *each = from->at;
    struct rule *rules;

    d->rules = rules_default;
    d->rule_count = RULES_DEFAULT_COUNT;
    d->rules_act =
        d->profile == PROFILE_RULES || (d->profile == PROFILE_ADAPTIVE && from->node != NULL);
    if (from->node == NULL)
        return;
    if (from->count > RULES_MAX) {
        too_many(b, from->node);
        return;
    }
    rules = config_build_array(b, from->count, sizeof(*rules));
    for (uint32_t i = 0; rules != NULL && i < from->count; i++)
        build_one(b, &each[i], &rules[i]);
    d->rules = rules;
    d->rule_count = rules == NULL ? 0 : from->count;
}
