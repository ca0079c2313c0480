/* SPDX-License-Identifier: Apache-2.0 */
#include "control/detection_age.h"

#include "control/health_news.h"
#include "policy/host.h"

#define REFRESH_EVERY (5 * NS_PER_S)
#define CHANCE_MOST   (NS_PER_S / 2)
#define CHANCE_TIMES  2 /* what is late, so often */

static void refresh(struct watched *c, uint32_t index, mono_ns now)
{
    struct host *h = c->state->hosts.at[c->roster.hosts[index].slot];

    c->detection->notes[index].refreshed_at = now;
    c->detection->notes[index].fresh = AGE_FRESH_UNKNOWN;
    atomic_fetch_add_explicit(&h->refreshed, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(c->state->hosts.epoch, 1, memory_order_release);
    health_news(c->watch->setup.workers, c->watch->setup.worker_count, c->state);
    cell_add(&c->state->outlier[OUTLIER_STAT_connections_refreshed], 1);
}

static bool is_due(const struct detection_note *n, mono_ns now)
{
    return n->refreshed_at == 0 || mono_since(n->refreshed_at, now) >= REFRESH_EVERY;
}

/* Its request went out before the connections were given up. */
static bool is_old(const struct detection_note *n, const struct evidence *e)
{
    return n->refreshed_at == 0 || e->at < n->refreshed_at + (mono_ns)e->first_us * NS_PER_US;
}

static void learn_fresh(struct watched *c, uint32_t index, const struct evidence *e)
{
    struct detection_note *n = &c->detection->notes[index];
    bool works = e->outcome == EVIDENCE_OK || e->outcome == EVIDENCE_ERROR;

    if ((e->flags & EVIDENCE_FRESH) == 0 || is_old(n, e) || n->fresh == AGE_FRESH_FAILS)
        return;
    n->fresh = works ? AGE_FRESH_WORKS : AGE_FRESH_FAILS;
    if (works)
        detect_clear_age(&c->detection->judge, index);
}

bool detection_age_learn(struct watched *c, uint32_t index, const struct evidence *e, mono_ns now)
{
    struct detection_note *n = &c->detection->notes[index];
    bool late = e->outcome == EVIDENCE_LATE;

    if (c->config->detection.mode != DETECTION_ENFORCE)
        return true;
    if (late && n->fresh == AGE_FRESH_WORKS && is_old(n, e))
        return false;
    if (late && is_due(n, now))
        refresh(c, index, now);
    learn_fresh(c, index, e);
    return true;
}

bool detection_age_accuses(const struct watched *c, uint32_t index, mono_ns now)
{
    const struct detection_note *n = &c->detection->notes[index];
    span_ns chance = 0;

    if (c->config->detection.mode != DETECTION_ENFORCE || n->fresh == AGE_FRESH_FAILS)
        return true;
    for (uint32_t class = 0; class < EVIDENCE_CLASS_MAX; class ++) {
        span_ns late = (span_ns)c->detection->judge.late_after[class] * NS_PER_US;

        chance = late * CHANCE_TIMES > chance ? late * CHANCE_TIMES : chance;
    }
    return mono_since(n->refreshed_at, now) >= (chance < CHANCE_MOST ? chance : CHANCE_MOST);
}
