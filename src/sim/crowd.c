/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/crowd.h"

const struct crowd_habits crowd_usual = {
    .rate = 50,
    .post_permille = 200,
    .head_permille = 20,
    .chunked_permille = 300,
    .to_close_permille = 20,
    .large_permille = 20,
    .small = 1000,
    .large = 60000,
    .cancel_permille = 30,
    .cancel_within = 100 * NS_PER_MS,
    .slow_upload_permille = 10,
    .endless_permille = 100,
    .slow_read_permille = 10,
    .close_permille = 20,
    .http10_permille = 10,
    .expect_permille = 50,
};

static struct world *world_of(const struct crowd *c)
{
    return c->client->net->world;
}

static uint64_t draw_size(struct crowd *c)
{
    struct world *w = world_of(c);
    uint32_t most = world_chance(w, c->habits.large_permille) ? c->habits.large : c->habits.small;

    return most == 0 ? 0 : rng_below(&w->rng, most + 1);
}

static void draw_upload(struct crowd *c, struct ask *a)
{
    const struct crowd_habits *h = &c->habits;
    struct world *w = world_of(c);

    a->method = world_chance(w, 700) ? METHOD_POST : METHOD_PUT;
    a->upload =
        world_chance(w, h->chunked_permille) && !a->http10 ? FRAMING_CHUNKED : FRAMING_LENGTH;
    a->body = draw_size(c);
    a->expects = !a->http10 && world_chance(w, h->expect_permille);
    if (a->body > 8 && world_chance(w, h->slow_upload_permille)) {
        a->expects = false;
        a->upload_piece = (uint32_t)(a->body / 8);
        a->upload_gap = world_span(w, 400 * NS_PER_MS);
        a->never_ends = world_chance(w, h->endless_permille);
    }
}

static void draw_answer(struct crowd *c, struct ask *a)
{
    const struct crowd_habits *h = &c->habits;
    struct world *w = world_of(c);

    a->answer = draw_size(c);
    a->framing = FRAMING_LENGTH;
    if (world_chance(w, h->chunked_permille))
        a->framing = FRAMING_CHUNKED;
    if (world_chance(w, h->to_close_permille))
        a->framing = FRAMING_TO_CLOSE;
    if (world_chance(w, h->slow_read_permille))
        a->read_gap = 50 * NS_PER_MS;
}

static void draw(struct crowd *c, struct ask *a)
{
    const struct crowd_habits *h = &c->habits;
    struct world *w = world_of(c);

    *a = (struct ask){.method = METHOD_GET, .cancel_after = MONO_NEVER};
    a->http10 = world_chance(w, h->http10_permille);
    a->says_close = world_chance(w, h->close_permille);
    if (world_chance(w, h->head_permille))
        a->method = METHOD_HEAD;
    if (world_chance(w, h->post_permille))
        draw_upload(c, a);
    draw_answer(c, a);
    if (world_chance(w, h->cancel_permille)) {
        a->cancel_after = world_span(w, h->cancel_within);
        a->cancel_softly = world_chance(w, 500);
    }
}

static void next(struct world_event *e, mono_ns now)
{
    struct crowd *c = CONTAINER_OF(e, struct crowd, next);
    struct world *w = world_of(c);
    struct ask a;

    if (now >= c->until)
        return;
    draw(c, &a);
    c->asked++;
    (void)client_ask(c->client, &a);
    world_arm(w, e, now + world_exponential(w, NS_PER_S / c->habits.rate));
}

void crowd_start(struct crowd *c, struct client *client, const struct crowd_habits *habits,
                 mono_ns until)
{
    *c = (struct crowd){.client = client, .habits = *habits, .until = until};
    world_event_init(&c->next, next);
    world_arm(world_of(c), &c->next, world_of(c)->now);
}

void crowd_go_on(struct crowd *c)
{
    if (!world_armed(&c->next))
        world_arm(world_of(c), &c->next, world_of(c)->now);
}

void crowd_stop(struct crowd *c)
{
    world_cancel(world_of(c), &c->next);
}
