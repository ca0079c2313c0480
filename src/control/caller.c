/* SPDX-License-Identifier: Apache-2.0 */
#include "control/caller.h"

#include "model/snapshot.h"

#define LOOK_EVERY   (NS_PER_S / 2)
#define KEEPS        0.7 /* of what was seen, from one look to the next */
#define FAILED_LEAST 3.0 /* connects lately */
#define FAILED_SHARE 0.9 /* of them: it cannot be reached at all */
#define MOST_OF      3   /* cut off: of three clusters that are connected to, two */
#define STALE_AFTER  (2 * NS_PER_S)

/* A refusal was brought by the network: it is no sign that we are cut off. */
void caller_learn(struct watched *c, const struct evidence *e)
{
    bool failed = e->outcome == EVIDENCE_CONNECT_FAILED;

    if (e->outcome == EVIDENCE_LATE) /* what comes of it is still to be told */
        return;
    if (!failed && e->outcome != EVIDENCE_REFUSED && (e->flags & EVIDENCE_FRESH) == 0)
        return;
    c->connects.tries += 1;
    c->connects.bad += failed;
}

static bool is_unreachable(const struct watched *c)
{
    return c->connects.bad >= FAILED_LEAST && c->connects.bad >= FAILED_SHARE * c->connects.tries;
}

/* Two clusters that have a host in common may fail for what is wrong with that. */
static bool have_host_in_common(const struct cluster *a, const struct cluster *b)
{
    for (uint32_t i = 0; i < a->endpoint_count; i++) {
        for (uint32_t j = 0; j < b->endpoint_count; j++) {
            if (address_equal(&a->endpoints[i].address, &b->endpoints[j].address))
                return true;
        }
    }
    return false;
}

static bool is_cut_off(const struct outlier_watch *w)
{
    const struct watched *first = NULL;
    uint32_t connecting = 0, failing = 0;
    bool unrelated = false;

    for (uint32_t i = 0; i < w->count; i++) {
        const struct watched *c = w->all[i];

        connecting += c->connects.tries >= 1;
        if (!is_unreachable(c))
            continue;
        failing++;
        if (first == NULL)
            first = c;
        else if (!unrelated)
            unrelated = !have_host_in_common(first->config, c->config);
    }
    return unrelated && failing * MOST_OF >= connecting * (MOST_OF - 1);
}

void caller_look(struct outlier_watch *w, mono_ns now)
{
    if (mono_since(w->looked_at, now) < LOOK_EVERY)
        return;
    w->looked_at = now;
    w->cut_off = is_cut_off(w);
    for (uint32_t i = 0; i < w->count; i++) {
        w->all[i]->connects.tries *= KEEPS;
        w->all[i]->connects.bad *= KEEPS;
    }
}

bool caller_believes(const struct watched *c, struct evidence *e, mono_ns now)
{
    bool cut_off = c->watch->cut_off;

    if (mono_since(e->at, now) > STALE_AFTER || cut_off || c->lossy)
        e->flags |= EVIDENCE_DOUBTFUL;
    switch ((enum evidence_outcome)e->outcome) {
    case EVIDENCE_OK:
    case EVIDENCE_ERROR:
    case EVIDENCE_GATEWAY:
    case EVIDENCE_REFUSED:
        return true;
    case EVIDENCE_RESET:
    case EVIDENCE_CUT:
        return !cut_off && !c->lossy;
    case EVIDENCE_TIMEOUT:
    case EVIDENCE_CONNECT_FAILED:
    case EVIDENCE_ABANDONED:
    case EVIDENCE_LATE:
        return (e->flags & EVIDENCE_DOUBTFUL) == 0;
    case EVIDENCE_OUTCOME_COUNT:
        break;
    }
    return false;
}
