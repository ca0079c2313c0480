/* SPDX-License-Identifier: Apache-2.0 */
#include "base/slots.h"

#include <assert.h>

void slots_init(struct slots *s, uint32_t workers, uint32_t room)
{
    assert(workers >= 1);

    *s = (struct slots){.workers = workers, .room = room};
    list_init(&s->queue);
}

enum slots_verdict slots_arrive(struct slots *s, struct list *job)
{
    if (s->busy < s->workers) {
        s->busy++;
        return SLOTS_RUN;
    }
    if (s->waiting == s->room)
        return SLOTS_FULL;
    list_push_back(&s->queue, job);
    s->waiting++;
    return SLOTS_WAIT;
}

struct list *slots_leave(struct slots *s)
{
    struct list *next = list_pop_front(&s->queue);

    assert(s->busy > 0);
    if (next == NULL)
        s->busy--;
    else
        s->waiting--;
    return next;
}

void slots_forget(struct slots *s, struct list *job)
{
    assert(!list_empty(job) && s->waiting > 0);

    list_remove(job);
    s->waiting--;
}
