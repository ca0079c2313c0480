/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/bad_days.h"

#define LONGEST (20 * NS_PER_S)

enum bad_day_kind {
    DAY_ERRORS,
    DAY_ALL_ERRORS,
    DAY_SLOW,
    DAY_HANGS,
    DAY_RESETS,
    DAY_DRIPS,
    DAY_ACCEPT_RESET,
    DAY_REFUSES,
    DAY_BLACK_HOLE,
    DAY_ROAD_REFUSES,
    DAY_UNREACHABLE,
    DAY_KILLED,
    DAY_POWER,
    DAY_CLOSES,
    DAY_IDLE_CLOSE,
    DAY_LOSSY,
    DAY_CROOKED,
    DAY_KIND_COUNT
};

static struct world *world_of(const struct bad_days *b)
{
    return &b->rig->world;
}

static void some_errors(struct server *s, struct world *w)
{
    static const uint32_t statuses[] = {500, 502, 503, 504};

    s->mood.error_permille = 100 + rng_below(&w->rng, 800);
    s->mood.error_status = statuses[rng_below(&w->rng, 4)];
}

static void kill(struct server *s, struct world *w)
{
    server_kill(s, world_chance(w, 500) ? DEATH_OF_PROCESS : DEATH_BY_RESET);
}

static void power_off(struct server *s)
{
    server_kill(s, DEATH_OF_POWER);
    server_set_road(s, ROAD_BLACK_HOLE);
}

static void lose(struct server *s)
{
    s->site->path.loss_permille = 50;
    s->site->path.jitter = 20 * NS_PER_MS;
}

static void crook(struct server *s, struct world *w)
{
    s->site->path.cut = world_chance(w, 300) ? NET_CUT_BYTES : NET_CUT_SOME;
    s->site->path.window = 1 + rng_below(&w->rng, 4096);
    s->site->path.short_write_permille = 200;
    s->mood.interim_permille = 200;
    s->mood.early_permille = 200;
    s->mood.says_close_permille = 100;
}

static void begin(struct server *s, enum bad_day_kind kind, struct world *w)
{
    switch (kind) {
    case DAY_ERRORS:
        some_errors(s, w);
        break;
    case DAY_ALL_ERRORS:
        s->mood.error_permille = 1000;
        s->mood.error_status = 503;
        break;
    case DAY_SLOW:
        s->mood.pace.slow = 2 + rng_below(&w->rng, 100);
        break;
    case DAY_HANGS:
        s->mood.hang_permille = 50 + rng_below(&w->rng, 950);
        break;
    case DAY_RESETS:
        s->mood.reset_permille = 50 + rng_below(&w->rng, 950);
        s->mood.soft_permille = 500;
        break;
    case DAY_DRIPS:
        s->mood.drip_permille = 500;
        break;
    case DAY_ACCEPT_RESET:
        s->mood.accept_reset = true;
        break;
    case DAY_REFUSES:
        server_refuse(s);
        break;
    case DAY_BLACK_HOLE:
        server_set_road(s, ROAD_BLACK_HOLE);
        break;
    case DAY_ROAD_REFUSES:
        server_set_road(s, ROAD_REFUSES);
        break;
    case DAY_UNREACHABLE:
        server_set_road(s, ROAD_UNREACHABLE);
        break;
    case DAY_KILLED:
        kill(s, w);
        break;
    case DAY_POWER:
        power_off(s);
        break;
    case DAY_CLOSES:
        s->mood.closes_permille = 300;
        break;
    case DAY_IDLE_CLOSE:
        s->mood.idle_close = world_span(w, 300 * NS_PER_MS);
        break;
    case DAY_LOSSY:
        lose(s);
        break;
    case DAY_CROOKED:
        crook(s, w);
        break;
    case DAY_KIND_COUNT:
        break;
    }
}

static void recover(struct bad_day *d)
{
    server_set_road(d->server, ROAD_OPEN);
    d->server->site->path = d->server->usual_path;
    d->server->mood = d->server->usual_mood;
    if (!server_listen(d->server))
        world_fail(d->server->net->world, "simulator", "a server cannot come back; host",
                   d->server->index);
    d->on = false;
    d->server->troubled = false;
    d->server->trouble_over = d->server->net->world->now;
}

static void over(struct world_event *e, mono_ns now)
{
    (void)now;
    recover(CONTAINER_OF(e, struct bad_day, over));
}

static void next(struct world_event *e, mono_ns now)
{
    struct bad_days *b = CONTAINER_OF(e, struct bad_days, next);
    struct world *w = world_of(b);
    struct bad_day *d = &b->days[rng_below(&w->rng, b->hosts)];

    if (now >= b->until)
        return;
    if (!d->on) {
        d->on = true;
        b->count++;
        d->server->blamable = true;
        d->server->troubled = true;
        begin(d->server, (enum bad_day_kind)rng_below(&w->rng, DAY_KIND_COUNT), w);
        world_arm(w, &d->over, now + world_span(w, LONGEST));
    }
    world_arm(w, e, now + world_exponential(w, b->calm));
}

void bad_days_start(struct bad_days *b, struct rig *r, uint32_t hosts, span_ns calm, mono_ns until)
{
    *b = (struct bad_days){.rig = r, .hosts = hosts, .calm = calm, .until = until};
    for (uint32_t i = 0; i < hosts; i++) {
        b->days[i].server = &r->servers[i];
        world_event_init(&b->days[i].over, over);
    }
    world_event_init(&b->next, next);
    if (hosts > 0)
        world_arm(&r->world, &b->next, r->world.now + world_exponential(&r->world, calm));
}

void bad_days_end(struct bad_days *b)
{
    world_cancel(world_of(b), &b->next);
    for (uint32_t i = 0; i < b->hosts; i++) {
        world_cancel(world_of(b), &b->days[i].over);
        if (b->days[i].on)
            recover(&b->days[i]);
    }
}
