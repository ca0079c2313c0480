/* SPDX-License-Identifier: Apache-2.0 */
#include "control/decision.h"

#include <assert.h>

#include "codec/json.h"

/* --- names --- */

const char *decision_what_text(enum decision_what w)
{
#define X(constant, name) [DECISION_##constant] = #name,
    static const char *const text[DECISION_COUNT] = {DECISIONS(X)};
#undef X

    assert(w < DECISION_COUNT);
    return text[w];
}

const char *decision_cause_text(enum decision_cause c)
{
#define X(constant, name) [CAUSE_##constant] = #name,
    static const char *const text[CAUSE_COUNT] = {DECISION_CAUSES(X)};
#undef X

    assert(c < CAUSE_COUNT);
    return text[c];
}

const char *decision_guard_name(enum decision_guard g)
{
#define X(constant, name) [GUARD_##constant] = #name,
    static const char *const text[GUARD_COUNT] = {DECISION_GUARDS(X)};
#undef X

    assert(g < GUARD_COUNT);
    return text[g];
}

const char *guard_verdict_text(enum guard_verdict v)
{
    switch (v) {
    case GUARD_NOT_ASKED:
        return "not_asked";
    case GUARD_PASSES:
        return "passes";
    case GUARD_HOLDS:
        return "holds";
    }
    return "?";
}

void decision_name_set(struct decision_name *n, struct bytes text)
{
    size_t len = text.len < DECISION_NAME_MAX ? text.len : DECISION_NAME_MAX;

    n->len = (uint8_t)len;
    if (len > 0)
        memcpy(n->text, text.data, len);
}

enum decision_guard decision_first_guard(const struct decision *d)
{
    for (int g = 0; g < GUARD_COUNT; g++) {
        if (d->verdicts[g] == GUARD_HOLDS)
            return (enum decision_guard)g;
    }
    return GUARD_COUNT;
}

/* --- JSON --- */

#define DECIMALS 6

static void put_evidence(struct json *j, const struct decision *d)
{
    json_text(j, "line", detect_line_text(d->line));
    json_double(j, "statistic", d->statistic, DECIMALS);
    json_double(j, "threshold", d->threshold, DECIMALS);
    json_bool(j, "rated", d->rated);
    if (d->rated) {
        json_double(j, "ratio", d->ratio, DECIMALS);
        json_double(j, "gate", d->gate, DECIMALS);
        json_double(j, "usual", d->usual, DECIMALS);
    }
    json_u64(j, "late_for_ms", d->late_for / NS_PER_MS);
    json_u64(j, "sure_for_ms", d->sure_for / NS_PER_MS);
}

static void put_steps(struct json *j, const struct decision *d)
{
    json_array(j, "buckets");
    for (uint32_t i = 0; i < d->step_count; i++) {
        const struct detect_step *s = &d->steps[i];

        json_object(j, NULL);
        json_u64(j, "n", s->number);
        json_double(j, "from", s->from, DECIMALS);
        json_double(j, "gain", s->gain, DECIMALS);
        json_double(j, "least", s->least, DECIMALS);
        json_double(j, "most", s->most, DECIMALS);
        json_object_end(j);
    }
    json_array_end(j);
}

static void put_sums(struct json *j, const struct decision *d)
{
    json_object(j, "sums");
    for (int line = 0; line < DETECT_LINE_COUNT; line++)
        json_double(j, detect_line_text((enum detect_line)line), d->sums[line], DECIMALS);
    json_object_end(j);
}

static void put_guards(struct json *j, const struct decision *d)
{
    json_object(j, "guards");
    for (int g = 0; g < GUARD_COUNT; g++)
        json_text(j, decision_guard_name((enum decision_guard)g),
                  guard_verdict_text((enum guard_verdict)d->verdicts[g]));
    json_object_end(j);
}

static void put_inputs(struct json *j, const struct decision *d)
{
    json_object(j, "inputs");
    json_bool(j, "fleet_slow", d->fleet_slow);
    json_double(j, "fleet_ratio", d->fleet_ratio, DECIMALS);
    json_text(j, "whose", scope_kind_text(d->whose));
    json_u64(j, "alike", d->alike);
    json_double(j, "load_without", d->load, DECIMALS);
    json_double(j, "load_most", d->load_most, DECIMALS);
    json_u64(j, "hosts", d->look.hosts);
    json_u64(j, "out", d->look.ejected);
    json_u64(j, "serving", d->look.serving);
    json_u64(j, "cap_percent", d->look.cap);
    json_bool(j, "one_out_by_few_rule", d->look.one_by_few);
    json_bool(j, "total_evidence", d->look.total);
    json_object_end(j);
}

static void put_host(struct json *j, const struct decision *d)
{
    if (d->host.len == 0)
        return;
    json_text(j, "before", life_state_text(d->before));
    json_text(j, "state", life_state_text(d->state));
    json_u64(j, "share", d->share);
    if (d->out_for > 0)
        json_u64(j, "out_for_ms", d->out_for / NS_PER_MS);
    json_u64(j, "times_out", d->times);
}

static void put_cause(struct json *j, const struct decision *d)
{
    json_text(j, "cause", decision_cause_text(d->cause));
    if (d->cause == CAUSE_TRIGGER) {
        json_text(j, "trigger", outlier_trigger_text(d->trigger));
        json_double(j, "statistic", d->statistic, DECIMALS);
        json_double(j, "threshold", d->threshold, DECIMALS);
    }
    if (d->cause == CAUSE_RULE) {
        json_text(j, "rule", rule_signal_text(d->rule));
        json_double(j, "statistic", d->statistic, DECIMALS);
        json_double(j, "threshold", d->threshold, DECIMALS);
    }
    if (d->line < DETECT_LINE_COUNT)
        put_evidence(j, d);
}

void decision_json(struct text *t, const struct decision *d)
{
    struct json j;

    json_init(&j, t);
    json_object(&j, NULL);
    json_u64(&j, "number", d->number);
    json_time(&j, "time", d->at);
    json_string(&j, "cluster", decision_name_bytes(&d->cluster));
    if (d->host.len > 0)
        json_string(&j, "host", decision_name_bytes(&d->host));
    json_text(&j, "what", decision_what_text(d->what));
    put_cause(&j, d);
    put_host(&j, d);
    json_text(&j, "guard", d->guard < GUARD_COUNT ? decision_guard_name(d->guard) : NULL);
    put_guards(&j, d);
    put_inputs(&j, d);
    put_sums(&j, d);
    if (d->line < DETECT_LINE_COUNT)
        put_steps(&j, d);
    json_object_end(&j);
}
