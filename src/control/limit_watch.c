/* SPDX-License-Identifier: Apache-2.0 */
#include "control/limit_watch.h"

#include <inttypes.h>

#include "base/text.h"

#define KEY_MAX 64

/* With its value; a rate has none. */
static const char *key_of(const struct limit_row *r, char room[KEY_MAX])
{
    struct text t;

    text_init(&t, room, KEY_MAX);
    text_str(&t, r->key);
    if (r->most != LIMIT_NONE) {
        text_char(&t, ' ');
        text_u64(&t, r->most);
    }
    return text_end(&t);
}

static void say_begun(struct log *log, const struct cluster *c, const struct limit_row *r,
                      uint64_t times)
{
    const struct cluster_state *s = c->state;
    char key[KEY_MAX];

    log_event(log, LOG_WARNING, "limit.reached",
              "cluster %.*s: %s is reached, %s; now %" PRIu32 " connections, %" PRIu32
              " requests waiting, %" PRIu32 " under way; %" PRIu64 " times so far",
              bytes_width(c->name), (const char *)c->name.data, key_of(r, key), r->effect,
              limit_used(&s->connections), limit_used(&s->pending), limit_used(&s->requests),
              times);
}

static void say_over(struct log *log, const struct cluster *c, const struct limit_row *r,
                     uint64_t times)
{
    char key[KEY_MAX];

    log_event(log, LOG_INFO, "limit.relieved",
              "cluster %.*s: %s no longer cuts; it did %" PRIu64 " times", bytes_width(c->name),
              (const char *)c->name.data, key_of(r, key), times);
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
