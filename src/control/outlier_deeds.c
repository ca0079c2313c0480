/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict is policy's, the deed is ours: the health of a host, counters, log line, event. */
#include "control/outlier_deeds.h"

#include <inttypes.h>

#include "base/text.h"
#include "control/decision_take.h"
#include "control/detection.h"
#include "control/effect_watch.h"
#include "control/health_news.h"
#include "control/outlier_event.h"
#include "control/panic_note.h"
#include "policy/host.h"
#include "stats/metrics.h"

#define REFUSED_EVERY NS_PER_S /* at most one such line a host in that time */

/* Envoy puts changes of health together that come within that time (its update_merge_window). */
#define MERGE_WINDOW NS_PER_S

static struct host *host_of(const struct watched *c, uint32_t index)
{
    return c->state->hosts.at[c->roster.hosts[index].slot];
}

static struct outlier_host *judged(const struct watched *c, uint32_t index)
{
    return c->roster.members[index].host;
}

/* --- counters --- */

static const struct {
    enum outlier_metric detected;
    enum outlier_metric enforced;
} metrics_of[OUTLIER_TRIGGER_COUNT] = {
    [OUTLIER_CONSECUTIVE_5XX] = {OUTLIER_STAT_ejections_detected_consecutive_5xx,
                                 OUTLIER_STAT_ejections_enforced_consecutive_5xx},
    [OUTLIER_CONSECUTIVE_GATEWAY] = {OUTLIER_STAT_ejections_detected_consecutive_gateway_failure,
                                     OUTLIER_STAT_ejections_enforced_consecutive_gateway_failure},
    [OUTLIER_CONSECUTIVE_LOCAL_ORIGIN] =
        {OUTLIER_STAT_ejections_detected_consecutive_local_origin_failure,
         OUTLIER_STAT_ejections_enforced_consecutive_local_origin_failure},
    [OUTLIER_DETECTED] = {OUTLIER_STAT_ejections_detected_detection,
                          OUTLIER_STAT_ejections_enforced_detection},
    [OUTLIER_SUCCESS_RATE] = {OUTLIER_STAT_ejections_detected_success_rate,
                              OUTLIER_STAT_ejections_enforced_success_rate},
    [OUTLIER_SUCCESS_RATE_LOCAL_ORIGIN] =
        {OUTLIER_STAT_ejections_detected_local_origin_success_rate,
         OUTLIER_STAT_ejections_enforced_local_origin_success_rate},
    [OUTLIER_FAILURE_PERCENTAGE] = {OUTLIER_STAT_ejections_detected_failure_percentage,
                                    OUTLIER_STAT_ejections_enforced_failure_percentage},
    [OUTLIER_FAILURE_PERCENTAGE_LOCAL_ORIGIN] =
        {OUTLIER_STAT_ejections_detected_local_origin_failure_percentage,
         OUTLIER_STAT_ejections_enforced_local_origin_failure_percentage},
};

static void count(struct watched *c, enum outlier_metric m)
{
    cell_add(&c->state->outlier[m], 1);
}

static void count_detected(struct watched *c, enum outlier_trigger t)
{
    count(c, metrics_of[t].detected);
    if (t == OUTLIER_CONSECUTIVE_5XX)
        count(c, OUTLIER_STAT_ejections_consecutive_5xx);
    if (t == OUTLIER_SUCCESS_RATE)
        count(c, OUTLIER_STAT_ejections_success_rate);
}

/* The deprecated sum: who passed the guards, whatever the dice said. */
static void count_admitted(struct watched *c, enum outlier_trigger t)
{
    if (t == OUTLIER_CONSECUTIVE_5XX || t == OUTLIER_SUCCESS_RATE)
        count(c, OUTLIER_STAT_ejections_total);
}

void deeds_show_active(struct watched *c)
{
    atomic_store_explicit(&c->state->outlier[OUTLIER_STAT_ejections_active], c->judge.ejected,
                          memory_order_relaxed);
}

/* --- log lines --- */

#define DURATION_TEXT_MAX 64

static const char *duration_text(char *buffer, span_ns span)
{
    struct text t;

    text_init(&t, buffer, DURATION_TEXT_MAX);
    text_duration(&t, span - span % NS_PER_MS);
    return text_end(&t);
}

/* "HOST of cluster NAME is WHAT SPAN BY; so many hosts out", such as "out for", 30s, " by hand". */
struct change {
    enum log_level level;
    const char *event;
    const char *what;
    span_ns span;
    const char *before_by;
    const char *by;
};

static void log_change(const struct watched *c, uint32_t index, const struct change *change)
{
    struct bytes host = c->roster.hosts[index].text;
    char buffer[DURATION_TEXT_MAX];

    log_event(c->watch->setup.log, change->level, change->event,
              "%.*s of cluster %.*s is %s %s%s%s; %" PRIu32 " of %" PRIu32 " hosts out",
              bytes_width(host), (const char *)host.data, bytes_width(c->config->name),
              (const char *)c->config->name.data, change->what, duration_text(buffer, change->span),
              change->before_by, change->by, c->judge.ejected, c->judge.count);
}

static void log_ejected(const struct watched *c, uint32_t index, span_ns out, const char *before_by,
                        const char *by)
{
    log_change(c, index,
               &(struct change){LOG_WARNING, "endpoint.ejected", "out for", out, before_by, by});
}

static void log_returned(const struct watched *c, uint32_t index, span_ns out)
{
    log_change(c, index,
               &(struct change){LOG_INFO, "endpoint.returned", "in again after", out, "", ""});
}

/* False: the last line was only just said. */
static bool log_refused(struct watched *c, uint32_t index, enum outlier_trigger t,
                        enum outlier_guard guard, mono_ns now)
{
    struct watched_host *h = &c->roster.hosts[index];

    if (now < h->next_line) {
        h->held_back++;
        return false;
    }
    log_event(c->watch->setup.log, LOG_WARNING, "endpoint.ejection_refused",
              "%.*s of cluster %.*s stays in after %s because of %s; %" PRIu32 " of %" PRIu32
              " hosts out, cap %" PRIu32 "%%; %" PRIu32 " refusals before this one not logged",
              bytes_width(h->text), (const char *)h->text.data, bytes_width(c->config->name),
              (const char *)c->config->name.data, outlier_trigger_text(t),
              outlier_guard_text(guard), c->judge.ejected, c->judge.count,
              c->config->outlier.max_ejection_percent, h->held_back);
    h->next_line = mono_after(now, REFUSED_EVERY);
    h->held_back = 0;
    return true;
}

/* --- events --- */

static void tell(struct watched *c, uint32_t index, struct outlier_event *e)
{
    const struct outlier_watch_setup *setup = &c->watch->setup;

    if (setup->events == NULL || !event_log_on(setup->events))
        return;
    e->at = clock_wall(setup->clock);
    e->cluster = c->config->name;
    e->host = c->roster.hosts[index].text;
    e->judge = &c->judge;
    e->judged = judged(c, index);
    outlier_event_put(setup->events, e);
}

/* |before|: what the judge remembered of the host until then. */
static void tell_trigger(struct watched *c, uint32_t index, enum outlier_trigger t,
                         const struct outlier_host *before, mono_ns now)
{
    struct outlier_event e = {
        .action = OUTLIER_ACTION_EJECT,
        .trigger = t,
        .by_hand = t == OUTLIER_NONE,
        .enforced = judged(c, index)->ejected,
        .acted_before = before->ejections > 0,
        .since_action = mono_since(before->returned_at, now),
    };

    tell(c, index, &e);
}

static void tell_returned(struct watched *c, uint32_t index, span_ns out)
{
    struct outlier_event e = {
        .action = OUTLIER_ACTION_UNEJECT, .acted_before = true, .since_action = out};

    tell(c, index, &e);
}

static void tell_pardoned(struct watched *c, uint32_t index, span_ns out)
{
    struct outlier_event e = {.action = OUTLIER_ACTION_UNEJECT,
                              .by_hand = true,
                              .acted_before = true,
                              .since_action = out};

    tell(c, index, &e);
}

void deeds_note_drain(struct watched *c, uint32_t index)
{
    struct outlier_event e = {.action = OUTLIER_ACTION_DRAIN, .by_hand = true, .enforced = true};

    tell(c, index, &e);
}

void deeds_note_undrain(struct watched *c, uint32_t index, span_ns drained)
{
    struct outlier_event e = {.action = OUTLIER_ACTION_UNDRAIN,
                              .by_hand = true,
                              .acted_before = true,
                              .since_action = drained};

    tell(c, index, &e);
}

/* --- the health, as the balancers see it --- */

/* Only where Envoy is followed: changes close upon another wait for the window to end. */
static bool is_late(const struct watched *c, uint32_t index, mono_ns now)
{
    bool same_host = c->changed_slot == c->roster.hosts[index].slot;

    if (c->changed_at == 0 || mono_since(c->changed_at, now) > MERGE_WINDOW)
        return false;
    return as_envoy(c->config->differences,
                    same_host ? DIFFERENCE_REEJECTION_SLOWER : DIFFERENCE_EJECTED_STILL_PICKED);
}

static void set_health(struct watched *c, uint32_t index, mono_ns now)
{
    struct watched_host *h = &c->roster.hosts[index];

    h->late = false;
    c->changed_at = now;
    c->changed_slot = h->slot;
    host_set_health(&c->state->hosts, h->slot,
                    judged(c, index)->ejected ? HOST_EJECTED : HOST_HEALTHY);
    if (judged(c, index)->ejected)
        health_news(c->watch->setup.workers, c->watch->setup.worker_count, c->state);
    panic_note(c->config, c->watch->setup.log, now);
}

void deeds_release(struct watched *c, mono_ns now)
{
    wheel_cancel(c->watch->setup.wheel, &c->release);
    for (uint32_t i = 0; i < c->roster.count; i++) {
        if (c->roster.hosts[i].late)
            set_health(c, i, now);
    }
}

static void publish(struct watched *c, uint32_t index, mono_ns now)
{
    if (!is_late(c, index, now)) {
        deeds_release(c, now);
        set_health(c, index, now);
        return;
    }
    c->roster.hosts[index].late = true;
    if (!timer_armed(&c->release))
        wheel_arm(c->watch->setup.wheel, &c->release, mono_after(now, MERGE_WINDOW));
}

/* --- the deeds --- */

/* What is shown of a host is written before its health, so that who sees it out sees why. */
static void show_ejected(struct watched *c, uint32_t index, enum outlier_trigger t,
                         const struct outlier_verdict *v, mono_ns now)
{
    struct host *h = host_of(c, index);

    atomic_store_explicit(&h->ejections, judged(c, index)->ejections, memory_order_relaxed);
    atomic_store_explicit(&h->last_trigger, (uint32_t)t, memory_order_relaxed);
    atomic_store_explicit(&h->ejected_at, now, memory_order_relaxed);
    atomic_store_explicit(&h->eject_until, mono_after(now, v->eject_for), memory_order_relaxed);
    publish(c, index, now);
    deeds_show_active(c);
    count(c, OUTLIER_STAT_ejections_enforced_total);
    effect_ejected(c, index, now);
    detection_note_ejected(c, index, now);
}

static void eject(struct watched *c, uint32_t index, enum outlier_trigger t,
                  const struct outlier_verdict *v, mono_ns now)
{
    show_ejected(c, index, t, v, now);
    count(c, metrics_of[t].enforced);
    log_ejected(c, index, v->eject_for, " after ", outlier_trigger_text(t));
}

/* How long it was out. */
static span_ns let_back(struct watched *c, uint32_t index, mono_ns now)
{
    span_ns out = mono_since(judged(c, index)->ejected_at, now);

    publish(c, index, now);
    deeds_show_active(c);
    log_returned(c, index, out);
    effect_returned(c, index, now);
    return out;
}

enum outlier_guard deeds_detected(struct watched *c, uint32_t index, mono_ns now)
{
    struct outlier_host before = *judged(c, index);
    struct outlier_verdict v = outlier_consider(&c->judge, index, OUTLIER_DETECTED, now);

    if (v.guard == OUTLIER_GUARD_NONE) {
        count_detected(c, OUTLIER_DETECTED);
        eject(c, index, OUTLIER_DETECTED, &v, now);
        tell_trigger(c, index, OUTLIER_DETECTED, &before, now);
        return v.guard;
    }
    if (v.guard != OUTLIER_GUARD_ALREADY_OUT)
        (void)log_refused(c, index, OUTLIER_DETECTED, v.guard, now);
    return v.guard;
}

void deeds_readmit(struct watched *c, uint32_t index, mono_ns now)
{
    outlier_pardon(&c->judge, index, now);
    tell_returned(c, index, let_back(c, index, now));
}

void deeds_consider(struct watched *c, uint32_t index, enum outlier_trigger t, mono_ns now)
{
    struct outlier_host before = *judged(c, index);
    struct outlier_verdict v = {.guard = OUTLIER_GUARD_ALREADY_OUT};
    struct decision d;

    outlier_runs_restart(c->roster.members[index].runs, t);
    if ((detection_is_common(c, index, now) && c->config->outlier.return_on_proof) ||
        effect_holds_trigger(c, index, t, now))
        return;
    decision_take_trigger(c, index, t, now, &d);
    v = outlier_consider(&c->judge, index, t, now);
    if (v.guard == OUTLIER_GUARD_ALREADY_OUT && !outlier_is_rate(t))
        return;
    count_detected(c, t);
    switch (v.guard) {
    case OUTLIER_GUARD_NONE:
        count_admitted(c, t);
        eject(c, index, t, &v, now);
        tell_trigger(c, index, t, &before, now);
        decision_done_trigger(c, index, v.guard, &d);
        return;
    case OUTLIER_GUARD_NOT_ENFORCED:
        count_admitted(c, t);
        tell_trigger(c, index, t, &before, now);
        decision_done_trigger(c, index, v.guard, &d);
        return;
    case OUTLIER_GUARD_CAP:
    case OUTLIER_GUARD_FEW_HEALTHY:
    case OUTLIER_GUARD_LAST_HOST:
        count(c, OUTLIER_STAT_ejections_overflow);
        if (log_refused(c, index, t, v.guard, now))
            decision_done_trigger(c, index, v.guard, &d);
        return;
    case OUTLIER_GUARD_ALREADY_OUT:
    case OUTLIER_GUARD_COUNT:
        return;
    }
}

enum outlier_guard deeds_eject(struct watched *c, uint32_t index, mono_ns now)
{
    struct outlier_host before = *judged(c, index);
    struct outlier_verdict v;
    struct decision d;

    decision_take_trigger(c, index, OUTLIER_NONE, now, &d);
    v = outlier_eject(&c->judge, index, now);
    if (v.guard != OUTLIER_GUARD_NONE) {
        decision_done_trigger(c, index, v.guard, &d);
        return v.guard;
    }
    show_ejected(c, index, OUTLIER_NONE, &v, now);
    log_ejected(c, index, v.eject_for, " by ", "hand");
    tell_trigger(c, index, OUTLIER_NONE, &before, now);
    decision_done_trigger(c, index, v.guard, &d);
    return v.guard;
}

bool deeds_pardon(struct watched *c, uint32_t index, mono_ns now)
{
    if (!judged(c, index)->ejected)
        return false;
    outlier_pardon(&c->judge, index, now);
    detection_note_pardoned(c, index, now);
    tell_pardoned(c, index, let_back(c, index, now));
    decision_of_return(c, index, CAUSE_HAND, now);
    return true;
}

void deeds_undo(struct watched *c, uint32_t index, mono_ns now)
{
    outlier_pardon(&c->judge, index, now);
    detection_note_pardoned(c, index, now);
    tell_returned(c, index, let_back(c, index, now));
    decision_of_return(c, index, CAUSE_UNDONE, now);
}

/* --- the sweep --- */

static void consider_all(struct watched *c, enum outlier_trigger t, mono_ns now)
{
    for (uint32_t i = 0; i < c->roster.count; i++) {
        if ((c->roster.scratch[i] & outlier_bit(t)) != 0)
            deeds_consider(c, i, t, now);
    }
}

static void show_rates(struct watched *c, enum outlier_origin origin)
{
    struct outlier_shown *shown = &c->state->rates[origin];

    atomic_store_explicit(&shown->average, c->judge.rates[origin].average, memory_order_relaxed);
    atomic_store_explicit(&shown->threshold, c->judge.rates[origin].threshold,
                          memory_order_relaxed);
    for (uint32_t i = 0; i < c->roster.count; i++)
        atomic_store_explicit(&host_of(c, i)->success_rate[origin], judged(c, i)->rates[origin],
                              memory_order_relaxed);
}

void deeds_sweep(struct watched *c, mono_ns now)
{
    uint32_t n = outlier_sweep(&c->judge, c->roster.scratch, now);

    for (uint32_t i = 0; i < n; i++) {
        detection_note_pardoned(c, c->roster.scratch[i], now);
        tell_returned(c, c->roster.scratch[i], let_back(c, c->roster.scratch[i], now));
        decision_of_return(c, c->roster.scratch[i], CAUSE_TIME, now);
    }
    outlier_weigh(&c->judge, OUTLIER_EXTERNAL, c->roster.scratch);
    consider_all(c, OUTLIER_SUCCESS_RATE, now);
    consider_all(c, OUTLIER_FAILURE_PERCENTAGE, now);
    outlier_weigh(&c->judge, OUTLIER_LOCAL, c->roster.scratch);
    consider_all(c, OUTLIER_SUCCESS_RATE_LOCAL_ORIGIN, now);
    consider_all(c, OUTLIER_FAILURE_PERCENTAGE_LOCAL_ORIGIN, now);
    outlier_decay(&c->judge, now);
    for (unsigned i = 0; i < OUTLIER_ORIGIN_COUNT; i++)
        show_rates(c, (enum outlier_origin)i);
}
