/* SPDX-License-Identifier: Apache-2.0 */
#include "admin/samples.h"

#include <stdlib.h>

#include "base/memory.h"
#include "stats/metrics.h"

#define ARENA_FIRST ((size_t)64 << 10)
#define ARENA_LIMIT ((size_t)512 << 20)
#define FIRST_COUNT 256

void samples_init(struct samples *s, const struct filter *filter)
{
    *s = (struct samples){.filter = filter};
    arena_init(&s->arena, ARENA_FIRST, ARENA_LIMIT);
}

bool samples_wanted(const struct samples *s, const char *name)
{
    return filter_matches(s->filter, name);
}

static bool make_room(struct samples *s)
{
    size_t room = s->room == 0 ? FIRST_COUNT : 2 * s->room;
    struct sample *at;

    if (s->count < s->room)
        return true;
    at = memory_resize(s->at, room * sizeof(*at));
    if (at == NULL)
        return false;
    s->at = at;
    s->room = room;
    return true;
}

static bool is_zero(const struct sample *sample)
{
    if (sample->kind == SAMPLE_HISTOGRAM)
        return cell_read(&sample->histogram->count) == 0;
    return sample->value == 0;
}

static const char *keep(struct samples *s, const char *text)
{
    const char *copy = arena_text(&s->arena, bytes_of(text));

    if (copy == NULL)
        s->failed = true;
    return copy;
}

void samples_add(struct samples *s, const struct sample *sample)
{
    struct sample copy = *sample;

    if (s->failed || (s->used_only && is_zero(sample)))
        return;
    copy.name = keep(s, sample->name);
    copy.family = keep(s, sample->family);
    copy.labels = keep(s, sample->labels);
    if (!s->failed && !make_room(s))
        s->failed = true;
    if (!s->failed)
        s->at[s->count++] = copy;
}

struct histogram *samples_histogram(struct samples *s)
{
    struct histogram *h = arena_take(&s->arena, sizeof(*h));

    if (h == NULL)
        s->failed = true;
    return h;
}

/* --- order --- */

typedef int (*compare)(const void *a, const void *b);

static int by_name(const void *a, const void *b)
{
    const struct sample *x = a, *y = b;
    int late_x = x->kind == SAMPLE_HISTOGRAM, late_y = y->kind == SAMPLE_HISTOGRAM;

    return late_x != late_y ? late_x - late_y : strcmp(x->name, y->name);
}

static int by_family(const void *a, const void *b)
{
    const struct sample *x = a, *y = b;
    int family = strcmp(x->family, y->family);

    return family != 0 ? family : strcmp(x->labels, y->labels);
}

static void add_up(struct sample *into, const struct sample *from)
{
    into->value += from->value;
    if (into->kind == SAMPLE_HISTOGRAM && from->kind == SAMPLE_HISTOGRAM)
        histogram_merge(into->histogram, from->histogram);
}

static void sort(struct samples *s, compare order)
{
    size_t kept = 0;

    if (s->count == 0)
        return;
    qsort(s->at, s->count, sizeof(s->at[0]), order);
    for (size_t i = 1; i < s->count; i++) {
        if (order(&s->at[kept], &s->at[i]) == 0)
            add_up(&s->at[kept], &s->at[i]);
        else
            s->at[++kept] = s->at[i];
    }
    s->count = kept + 1;
}

void samples_sort_by_name(struct samples *s)
{
    sort(s, by_name);
}

void samples_sort_by_family(struct samples *s)
{
    sort(s, by_family);
}

void samples_release(struct samples *s)
{
    memory_give(s->at);
    arena_release(&s->arena);
    s->at = NULL;
    s->count = s->room = 0;
}
