/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/schedule.h"

#include <assert.h>

static bool before(const struct appointment *a, const struct appointment *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

/* One heap of two; either may be NULL. Roots have neither |next| nor |back|. */
static struct appointment *meld(struct appointment *a, struct appointment *b)
{
    struct appointment *later = b;

    if (a == NULL || b == NULL)
        return a == NULL ? b : a;
    if (before(b, a)) {
        later = a;
        a = b;
    }
    later->next = a->child;
    if (a->child != NULL)
        a->child->back = later;
    later->back = a;
    a->child = later;
    return a;
}

/* Takes the first two off the list at |*rest| and melds them. */
static struct appointment *meld_pair(struct appointment **rest)
{
    struct appointment *a = *rest;
    struct appointment *b = a->next;

    *rest = b == NULL ? NULL : b->next;
    a->next = a->back = NULL;
    if (b != NULL)
        b->next = b->back = NULL;
    return meld(a, b);
}

/* The children of a node that goes: pairs from the left, then all together from the right. */
static struct appointment *meld_children(struct appointment *rest)
{
    struct appointment *pairs = NULL;
    struct appointment *all = NULL;

    while (rest != NULL) {
        struct appointment *pair = meld_pair(&rest);

        pair->next = pairs;
        pairs = pair;
    }
    while (pairs != NULL) {
        struct appointment *pair = pairs;

        pairs = pair->next;
        pair->next = NULL;
        all = meld(all, pair);
    }
    return all;
}

/* Takes a node that is not the root out of the list of its siblings. */
static void cut(struct appointment *a)
{
    if (a->back->child == a)
        a->back->child = a->next;
    else
        a->back->next = a->next;
    if (a->next != NULL)
        a->next->back = a->back;
    a->next = a->back = NULL;
}

void schedule_cancel(struct schedule *s, struct appointment *a)
{
    struct appointment *children;

    if (!appointment_armed(a))
        return;
    children = meld_children(a->child);
    a->child = NULL;
    if (s->first == a) {
        s->first = children;
    } else {
        cut(a);
        s->first = meld(s->first, children);
    }
    a->at = MONO_NEVER;
}

void schedule_arm(struct schedule *s, struct appointment *a, mono_ns at)
{
    schedule_cancel(s, a);
    if (at == MONO_NEVER)
        return;
    a->at = at;
    a->order = s->order++;
    s->first = meld(s->first, a);
}

unsigned schedule_run(struct schedule *s, mono_ns now)
{
    unsigned fired = 0;

    while (s->first != NULL && s->first->at <= now) {
        struct appointment *a = s->first;

        schedule_cancel(s, a);
        a->fire(a, now);
        fired++;
    }
    return fired;
}
