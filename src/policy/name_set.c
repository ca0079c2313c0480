/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/name_set.h"

#include <assert.h>

void name_set_init(struct name_set *s, const struct address *only, mono_ns now)
{
    s->count = 1;
    s->at[0] = *only;
    s->seen[0] = now;
}

static bool holds(const struct address *set, size_t n, const struct address *a)
{
    for (size_t i = 0; i < n; i++)
        if (address_equal(&set[i], a))
            return true;
    return false;
}

static void put(struct name_set *s, uint32_t i, const struct address *a, mono_ns now)
{
    s->at[i] = *a;
    s->seen[i] = now;
}

/* True: some are gone. */
static bool keep_known(struct name_set *s, const struct address *fresh, size_t n, span_ns hold,
                       mono_ns now)
{
    uint32_t before = s->count, kept = 0;

    for (uint32_t i = 0; i < before; i++) {
        bool named = holds(fresh, n, &s->at[i]);

        if (named || mono_since(s->seen[i], now) < hold)
            put(s, kept++, &s->at[i], named ? now : s->seen[i]);
    }
    s->count = kept;
    return kept < before;
}

/* NAME_SET_MAX: all were in this answer. */
static uint32_t held_longest(const struct name_set *s, mono_ns now)
{
    uint32_t longest = NAME_SET_MAX;
    mono_ns oldest = now;

    for (uint32_t i = 0; i < s->count; i++)
        if (s->seen[i] < oldest) {
            oldest = s->seen[i];
            longest = i;
        }
    return longest;
}

static bool add(struct name_set *s, const struct address *a, mono_ns now)
{
    uint32_t at = s->count < NAME_SET_MAX ? s->count : held_longest(s, now);

    if (at == NAME_SET_MAX)
        return false;
    put(s, at, a, now);
    if (at == s->count)
        s->count++;
    return true;
}

bool name_set_answer(struct name_set *s, const struct address *fresh, size_t n, span_ns hold,
                     mono_ns now)
{
    bool changed;

    assert(n > 0);
    changed = keep_known(s, fresh, n, hold, now);
    for (size_t i = 0; i < n; i++)
        if (!holds(s->at, s->count, &fresh[i]))
            changed = add(s, &fresh[i], now) || changed;
    return changed;
}
