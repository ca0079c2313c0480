/* SPDX-License-Identifier: Apache-2.0 */
#include "admin/samples.h"

#include "base/memory.h"
#include "stats/metrics.h"

#define ARENA_FIRST ((size_t)64 << 10)
#define ARENA_LIMIT ((size_t)128 << 20)
#define FIRST_COUNT 256

void samples_init(struct samples *s, const struct filter *filter, enum samples_order order)
{
    memset(s, 0, sizeof(*s));
    s->filter = filter;
    s->order = order;
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

/* There are a few hundred families, however many samples. */
static const char *keep_family(struct samples *s, const char *text)
{
    size_t at = bytes_hash(bytes_of(text)) & (SAMPLES_FAMILIES - 1);

    while (s->families[at] != NULL && strcmp(s->families[at], text) != 0)
        at = (at + 1) & (SAMPLES_FAMILIES - 1);
    if (s->families[at] != NULL)
        return s->families[at];
    if (s->family_count == SAMPLES_FAMILIES - 1)
        return keep(s, text);
    s->family_count++;
    return s->families[at] = keep(s, text);
}

void samples_add(struct samples *s, const struct sample *sample)
{
    struct sample copy = *sample;
    bool by_name = s->order == SAMPLES_BY_NAME;

    if (s->failed || (s->used_only && is_zero(sample)))
        return;
    copy.name = by_name ? keep(s, sample->name) : NULL;
    copy.family = by_name ? NULL : keep_family(s, sample->family);
    copy.labels = by_name ? NULL : keep(s, sample->labels);
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

static int by_name(const struct sample *x, const struct sample *y)
{
    int late_x = x->kind == SAMPLE_HISTOGRAM, late_y = y->kind == SAMPLE_HISTOGRAM;

    return late_x != late_y ? late_x - late_y : strcmp(x->name, y->name);
}

static int by_family(const struct sample *x, const struct sample *y)
{
    int family = x->family == y->family ? 0 : strcmp(x->family, y->family);

    return family != 0 ? family : strcmp(x->labels, y->labels);
}

static int compare(const struct samples *s, const struct sample *x, const struct sample *y)
{
    return s->order == SAMPLES_BY_NAME ? by_name(x, y) : by_family(x, y);
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The pair of runs at |low|. */
static void begin_pair(struct samples_sorting *t, size_t low, size_t count)
{
    t->low = low;
    t->left = t->out = smaller(low, count);
    t->right = smaller(low + t->width, count);
}

static bool begin_sorting(struct samples *s)
{
    struct samples_sorting *t = &s->sorting;

    t->from = memory_take_array(s->count + 1, sizeof(struct sample *));
    t->to = memory_take_array(s->count + 1, sizeof(struct sample *));
    if (t->from == NULL || t->to == NULL) {
        s->failed = true;
        return false;
    }
    for (size_t i = 0; i < s->count; i++)
        t->from[i] = &s->at[i];
    t->width = 1;
    begin_pair(t, 0, s->count);
    return true;
}

/* One sample from the present pair of runs. False: the pair is used up. */
static bool merge_one(const struct samples *s, struct samples_sorting *t)
{
    size_t middle = smaller(t->low + t->width, s->count);
    size_t end = smaller(t->low + 2 * t->width, s->count);
    bool left;

    if (t->out == end)
        return false;
    if (t->left == middle)
        left = false;
    else
        left = t->right == end || compare(s, t->from[t->left], t->from[t->right]) <= 0;
    t->to[t->out++] = left ? t->from[t->left++] : t->from[t->right++];
    return true;
}

static void begin_pass(struct samples *s, struct samples_sorting *t)
{
    struct sample **sorted = t->to;

    t->to = t->from;
    t->from = sorted;
    t->width *= 2;
    begin_pair(t, 0, s->count);
}

bool samples_sort(struct samples *s, size_t steps)
{
    struct samples_sorting *t = &s->sorting;

    if (t->from == NULL && !begin_sorting(s))
        return true;
    while (t->width < s->count) {
        if (steps-- == 0)
            return false;
        if (merge_one(s, t))
            continue;
        if (t->out < s->count)
            begin_pair(t, t->out, s->count);
        else
            begin_pass(s, t);
    }
    return true;
}

static void add_up(struct sample *into, const struct sample *from)
{
    into->value += from->value;
    if (into->kind == SAMPLE_HISTOGRAM && from->kind == SAMPLE_HISTOGRAM)
        histogram_merge(into->histogram, from->histogram);
}

const struct sample *samples_next(struct samples *s)
{
    struct sample *const *all = s->sorting.from;
    struct sample *next;

    if (s->next == s->count)
        return NULL;
    next = all[s->next++];
    while (s->next < s->count && compare(s, next, all[s->next]) == 0)
        add_up(next, all[s->next++]);
    return next;
}

void samples_release(struct samples *s)
{
    memory_give(s->sorting.from);
    memory_give(s->sorting.to);
    memory_give(s->at);
    arena_release(&s->arena);
    memset(s, 0, sizeof(*s));
}
