/* SPDX-License-Identifier: Apache-2.0 */
/* What is our own, taken off what is held against hosts. */
#include <math.h>

#include "policy/scope_parts.h"

/* --- a link that loses segments --- */

#define RESENT_LEAST 1.5  /* segments: one alone says nothing of now */
#define SENT_LEAST   10.0 /* requests */

#define NOBODY UINT32_MAX

enum lately { LATELY, JUST_NOW };

/* Of all hosts; and which of them lost most of it, and second most. */
struct losses {
    enum lately when;
    struct detect_rate all;
    uint32_t worst[2];
};

static struct detect_rate path_of(const struct scope *s, uint32_t index, enum lately when)
{
    struct detect_rate r = {0, 0};

    if (index == NOBODY || !s->judge->hosts[index]->serving)
        return r;
    r = s->hosts[index].path;
    if (when == JUST_NOW) {
        r = s->hosts[index].path_just_now;
        r.tries /= PATH_NOW_KEEPS; /* the half second that was over a moment ago in full */
        r.bad /= PATH_NOW_KEEPS;
    }
    r.bad = fmin(r.bad, r.tries);
    return r;
}

static void place(const struct scope *s, struct losses *l, uint32_t index)
{
    double bad = path_of(s, index, l->when).bad;

    if (bad > path_of(s, l->worst[0], l->when).bad) {
        l->worst[1] = l->worst[0];
        l->worst[0] = index;
    } else if (bad > path_of(s, l->worst[1], l->when).bad) {
        l->worst[1] = index;
    }
}

static struct losses losses(const struct scope *s, enum lately when)
{
    struct losses l = {.when = when, .worst = {NOBODY, NOBODY}};

    for (uint32_t i = 0; i < s->judge->count; i++) {
        struct detect_rate r = path_of(s, i, when);

        l.all.tries += r.tries;
        l.all.bad += r.bad;
        place(s, &l, i);
    }
    return l;
}

/* On the ways to its peers, but the worst of them, which may be that for itself. */
static double loss_beside(const struct scope *s, const struct losses *l, uint32_t index)
{
    uint32_t other = l->worst[l->worst[0] == index];
    struct detect_rate own = path_of(s, index, l->when), worst = path_of(s, other, l->when);
    double sent = l->all.tries - own.tries - worst.tries, resent = l->all.bad - own.bad - worst.bad;

    return sent < SENT_LEAST || resent < RESENT_LEAST ? 0 : fmin(resent / sent, 1);
}

/* A connect takes a segment there and one back. */
static double lost_connects(double loss)
{
    return 1 - (1 - loss) * (1 - loss);
}

/* --- what is known of us, and what was learnt --- */

void scope_amend(const struct scope *s, struct detect *judge)
{
    struct losses lately = losses(s, LATELY), just_now = losses(s, JUST_NOW);

    if (s->now.kind == SCOPE_CALLER && !s->now.partly)
        detect_void_waits(judge);
    for (uint32_t i = 0; i < judge->count; i++) {
        double loss = fmax(loss_beside(s, &lately, i), loss_beside(s, &just_now, i));

        detect_weigh_lost(judge, i, lost_connects(loss));
    }
}

bool scope_may_be_lost(const struct scope *s, uint32_t index)
{
    const struct detect_host *h = s->judge->hosts[index];
    bool refuses = h->refused > 0 && h->refused >= h->risen[DETECT_CONNECTS];
    uint32_t lost = h->unanswered > SCOPE_RUN ? h->unanswered : SCOPE_RUN;

    return h->loss > 0 && !refuses &&
           detect_weight_of_lost(s->judge, index, lost) <= s->judge->config.threshold;
}
