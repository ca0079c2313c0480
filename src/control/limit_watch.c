/* SPDX-License-Identifier: Apache-2.0 */
#include "control/limit_watch.h"

#include <inttypes.h>

/* For "%.*s". */
static int width(struct bytes b)
{
    return b.len > 256 ? 256 : (int)b.len;
}

static void say_begun(struct log *log, const struct cluster *c, const struct limit_row *r,
                      uint64_t times)
{
    const struct cluster_state *s = c->state;

    log_event(log, LOG_WARNING, "limit.reached",
              "cluster %.*s: %s %" PRIu32 " is reached, %s; now %" PRIu32 " connections, %" PRIu32
              " requests waiting, %" PRIu32 " under way; %" PRIu64 " times so far",
              width(c->name), (const char *)c->name.data, r->key, r->most, r->effect,
              limit_used(&s->connections), limit_used(&s->pending), limit_used(&s->requests),
              times);
}

static void say_over(struct log *log, const struct cluster *c, const struct limit_row *r,
                     uint64_t times)
{
    log_event(log, LOG_INFO, "limit.relieved",
              "cluster %.*s: %s %" PRIu32 " no longer cuts; it did %" PRIu64 " times",
              width(c->name), (const char *)c->name.data, r->key, r->most, times);
}

static void look_at(const struct cluster *c, enum limit_row_kind kind, struct log *log, mono_ns now)
{
    struct limit_episode *e = &c->state->episodes[kind];
    struct limit_row r = limit_row_of(c, kind);
    uint64_t count = cluster_state_sum(c->state, r.cut);

    if (count < e->seen) { /* counters were reset */
        e->seen = count;
        e->before = 0;
    }
    if (count > e->seen) {
        if (!e->on) {
            e->before = e->seen;
            say_begun(log, c, &r, count - e->before);
        }
        e->on = true;
        e->last = now;
        e->seen = count;
    } else if (e->on && mono_since(e->last, now) >= LIMIT_WATCH_QUIET) {
        e->on = false;
        say_over(log, c, &r, count - e->before);
    }
}

void limit_watch_look(const struct snapshot *s, struct log *log, mono_ns now)
{
    for (uint32_t i = 0; i < s->cluster_count; i++)
        for (unsigned kind = 0; kind < LIMIT_ROW_COUNT; kind++)
            look_at(&s->clusters[i], (enum limit_row_kind)kind, log, now);
}
