/* SPDX-License-Identifier: Apache-2.0 */
/* A free list through the first bytes of the objects on it. */
#include "base/slab.h"

#include <assert.h>

#include "base/memory.h"
#include "base/poison.h"

struct slab_free {
    struct slab_free *next;
};

void slab_init(struct slab *s, size_t size, uint32_t keep_max)
{
    *s = (struct slab){.size = size, .keep_max = keep_max};
    if (s->size < sizeof(struct slab_free))
        s->size = sizeof(struct slab_free);
}

static void *pop(struct slab *s)
{
    struct slab_free *first = s->free;

    unpoison(first, s->size);
    s->free = first->next;
    s->kept--;
    return first;
}

void *slab_take(struct slab *s)
{
    void *object;

    if (s->free != NULL) {
        object = pop(s);
    } else {
        object = memory_resize(NULL, s->size);
        if (object == NULL)
            return NULL;
        if (s->grown != NULL)
            ++*s->grown;
    }
    s->in_use++;
    return object;
}

void slab_give(struct slab *s, void *object)
{
    struct slab_free *first = object;

    if (first == NULL)
        return;
    assert(s->in_use > 0);
    s->in_use--;
    if (s->kept >= s->keep_max) {
        memory_give(first);
        return;
    }
    first->next = s->free;
    s->free = first;
    s->kept++;
    poison(first, s->size);
}

void slab_release(struct slab *s)
{
    assert(s->in_use == 0);
    while (s->free != NULL)
        memory_give(pop(s));
}
