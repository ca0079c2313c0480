/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all balancers share: the list of eligible hosts, made anew only when the health of some host
 * has changed, so that a pick costs the same with three hosts and with a thousand; and leaving out
 * the hosts a request was already tried on.
 */
#include "policy/lb.h"

#include <assert.h>
#include <string.h>

#include "policy/lb_choice.h"

struct lb_row {
    const char *name;
    const char *alias;
    uint32_t (*pick)(struct lb *lb, const struct lb_choice *from, struct rng *rng);
};

#define X(constant, name_, alias_)                                                                 \
    [LB_##constant] = {.name = #name_, .alias = alias_, .pick = lb_##name_##_pick},
static const struct lb_row rows[LB_KIND_COUNT] = {LB_KINDS(X)};
#undef X

bool lb_kind_parse(struct bytes name, enum lb_kind *out)
{
    for (uint32_t i = 0; name.len > 0 && i < LB_KIND_COUNT; i++) {
        if (bytes_equal(name, bytes_of(rows[i].name)) ||
            bytes_equal(name, bytes_of(rows[i].alias))) {
            *out = (enum lb_kind)i;
            return true;
        }
    }
    return false;
}

const char *lb_kind_text(enum lb_kind kind)
{
    assert(kind < LB_KIND_COUNT);
    return rows[kind].name;
}

void lb_init(struct lb *lb, enum lb_kind kind, const struct panic_config *panic, uint32_t *room)
{
    assert(kind < LB_KIND_COUNT);
    *lb = (struct lb){.kind = kind, .panic = *panic, .eligible = room};
}

void lb_move(struct lb *lb, uint32_t *room)
{
    uint32_t listed = lb->eligible_count + lb->partial_count;

    if (listed > 0)
        memcpy(room, lb->eligible, listed * sizeof(*room));
    lb->eligible = room;
}

/* Whose turn it is stays; the list is made anew. */
void lb_change(struct lb *lb, enum lb_kind kind, const struct panic_config *panic)
{
    lb->kind = kind;
    lb->panic = *panic;
    lb->epoch--;
}

/* Position of the first eligible host with an index not below |host|. */
static uint32_t lower_bound(const struct lb *lb, uint32_t host)
{
    uint32_t low = 0, high = lb->eligible_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (lb->eligible[middle] < host)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/*
 * The host whose turn it is; the first one is drawn, so that not all workers begin with the same.
 * While nobody is eligible the cursor keeps the host instead of a position.
 */
static uint32_t whose_turn(const struct lb *lb, const struct host_set *hosts, struct rng *rng)
{
    if (!lb->made)
        return hosts->count == 0 ? 0 : rng_below(rng, hosts->count);
    return lb->eligible_count == 0 ? lb->cursor : lb->eligible[lb->cursor];
}

/* The host whose turn it was keeps it, or the next one that is left has it. */
static void remake(struct lb *lb, const struct host_set *hosts, struct rng *rng)
{
    uint32_t turn = whose_turn(lb, hosts, rng);

    lb_collect(lb, hosts);
    lb->cursor = lb->eligible_count == 0 ? turn : lower_bound(lb, turn) % lb->eligible_count;
    lb->made = true;
}

/* The epoch is read before the healths: a change in between only makes the list once more. */
static void refresh(struct lb *lb, const struct host_set *hosts, struct rng *rng)
{
    uint32_t epoch = atomic_load_explicit(hosts->epoch, memory_order_acquire);

    if (lb->made && lb->epoch == epoch)
        return;
    remake(lb, hosts, rng);
    lb->epoch = epoch;
}

/* Puts |position| into the ascending list; one that is there already is not put twice. */
static void leave_out(struct lb_choice *c, uint32_t position)
{
    uint32_t at = c->skip_count;

    for (uint32_t i = 0; i < c->skip_count; i++) {
        if (c->skip[i] == position)
            return;
    }
    for (; at > 0 && c->skip[at - 1] > position; at--)
        c->skip[at] = c->skip[at - 1];
    c->skip[at] = position;
    c->skip_count++;
    c->count--;
}

static void leave_out_tried(struct lb_choice *c, const struct lb *lb, const struct lb_tried *tried)
{
    uint32_t count = tried->count < LB_TRIED_MAX ? tried->count : LB_TRIED_MAX;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t position = lower_bound(lb, tried->at[i]);

        if (position < lb->eligible_count && lb->eligible[position] == tried->at[i])
            leave_out(c, position);
    }
}

static struct lb_choice all_eligible(const struct lb *lb, const struct host_set *hosts, mono_ns now)
{
    return (struct lb_choice){
        .hosts = hosts, .now = now, .eligible = lb->eligible, .count = lb->eligible_count};
}

/* --- hosts with a share --- */

/* As much of |price| as |h| has. False: it has less than |least|, another worker was first. */
static bool pay(struct host *h, uint32_t price, uint32_t least)
{
    uint32_t credit = atomic_load_explicit(&h->credit, memory_order_relaxed);

    while (credit >= least) {
        if (atomic_compare_exchange_weak_explicit(&h->credit, &credit,
                                                  credit > price ? credit - price : 0,
                                                  memory_order_relaxed, memory_order_relaxed))
            return true;
    }
    return false;
}

static uint32_t earn(struct host *h)
{
    uint32_t share = host_share(h);

    return atomic_fetch_add_explicit(&h->credit, share, memory_order_relaxed) + share;
}

/* What a turn costs: a whole round of fair picks is worth one. */
static uint32_t price_of_turn(const struct lb *lb)
{
    return HOST_WHOLE * (lb->eligible_count + lb->partial_count);
}

static uint32_t under_way(const struct host *h)
{
    return atomic_load_explicit(&h->in_flight, memory_order_relaxed);
}

#define BUSY_LOOKS 64

/* It has more under way than the least busy of the others, and one: what it got would wait. */
static bool is_busier(const struct lb *lb, const struct host_set *hosts, const struct host *h)
{
    uint32_t looks = lb->eligible_count < BUSY_LOOKS ? lb->eligible_count : BUSY_LOOKS;
    uint32_t own = under_way(h);

    for (uint32_t n = 0; n < looks; n++) {
        uint32_t at = (lb->cursor + n) % lb->eligible_count;

        if (own > under_way(hosts->at[lb->eligible[at]]) + 1)
            return true;
    }
    return false;
}

/*
 * Each pick earns each of them its share; the one that has earned most, and |least|, pays for a
 * turn. Where there are no others they share all there is, and it pays what all have earned. Of
 * one that is busy a turn waits until it is not, and no more than that one.
 */
static uint32_t pick_partial(const struct lb *lb, const struct host_set *hosts,
                             const struct lb_tried *tried, uint32_t least)
{
    uint32_t best = LB_NO_HOST, most = 0, all = 0;

    for (uint32_t i = 0; i < lb->partial_count; i++) {
        uint32_t host = lb->eligible[lb->eligible_count + i];
        uint32_t credit = earn(hosts->at[host]);

        all += host_share(hosts->at[host]);
        if (!lb_tried_has(tried, host) && (best == LB_NO_HOST || credit > most)) {
            best = host;
            most = credit;
        }
    }
    if (best == LB_NO_HOST || most < least)
        return LB_NO_HOST;
    if (least > 0 && is_busier(lb, hosts, hosts->at[best])) {
        atomic_store_explicit(&hosts->at[best]->credit, least, memory_order_relaxed);
        return LB_NO_HOST;
    }
    return pay(hosts->at[best], lb->eligible_count > 0 ? price_of_turn(lb) : all, least)
               ? best
               : LB_NO_HOST;
}

uint32_t lb_pick_other(struct lb *lb, const struct host_set *hosts, const struct lb_tried *tried,
                       struct rng *rng, mono_ns now)
{
    struct lb_choice from;
    uint32_t earned = LB_NO_HOST;

    refresh(lb, hosts, rng);
    if (tried == NULL && lb->partial_count > 0 && lb->eligible_count > 0)
        earned = pick_partial(lb, hosts, NULL, price_of_turn(lb));
    if (earned != LB_NO_HOST)
        return earned;
    from = all_eligible(lb, hosts, now);
    if (tried != NULL)
        leave_out_tried(&from, lb, tried);
    return from.count == 0 ? pick_partial(lb, hosts, tried, 0)
                           : rows[lb->kind].pick(lb, &from, rng);
}

uint32_t lb_pick(struct lb *lb, const struct host_set *hosts, const struct lb_tried *tried,
                 struct rng *rng, mono_ns now)
{
    uint32_t host = lb_pick_other(lb, hosts, tried, rng, now);

    return host != LB_NO_HOST || tried == NULL ? host : lb_pick_other(lb, hosts, NULL, rng, now);
}

bool lb_serves(struct lb *lb, const struct host_set *hosts, uint32_t host, struct rng *rng)
{
    uint32_t position;

    refresh(lb, hosts, rng);
    position = lower_bound(lb, host);
    for (uint32_t i = 0; i < lb->partial_count; i++) {
        if (lb->eligible[lb->eligible_count + i] == host)
            return true;
    }
    return position < lb->eligible_count && lb->eligible[position] == host;
}
