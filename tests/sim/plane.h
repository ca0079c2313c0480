/* SPDX-License-Identifier: Apache-2.0 */
/* For tests that put the whole data plane into one particular situation. */
#ifndef TESTS_SIM_PLANE_H
#define TESTS_SIM_PLANE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "control/control.h"
#include "model/messages.h"
#include "sim/laws.h"
#include "sim/rig.h"

struct plane {
    struct rig rig;
    struct rig_settings settings;
    struct laws laws;
    struct answer_plan plans[64]; /* what |planned| does to request [id] */
    bool has_plan[64];
};

/* Ten quick hosts, no jitter, nothing drawn: what is to be special is set before plane_go. */
static inline void plane_settings(struct plane *p, uint32_t hosts, uint32_t workers)
{
    memset(p->has_plan, 0, sizeof(p->has_plan));
    rig_settings_init(&p->settings, 1);
    p->settings.hosts = hosts;
    p->settings.workers = workers;
    p->settings.cluster.lb = LB_ROUND_ROBIN;
}

/* Lets the test decide about single requests: p->plans[id] holds where p->has_plan[id] is set. */
static inline void plane_decide(struct server *s, const struct wish *wish,
                                const struct message_head *head, struct answer_plan *plan)
{
    struct plane *p = s->owner;
    struct answer_plan *mine;
    (void)head;

    if (wish->id >= 64 || !p->has_plan[wish->id])
        return;
    mine = &p->plans[wish->id];
    mine->framing = plan->framing;
    mine->length = plan->length;
    mine->key = plan->key;
    *plan = *mine;
}

static inline void plane_go(struct plane *p)
{
    assert_true(rig_start(&p->rig, &p->settings));
    laws_init(&p->laws, &p->rig, &p->settings);
    for (uint32_t i = 0; i < p->settings.hosts; i++) {
        p->rig.servers[i].decide = plane_decide;
        p->rig.servers[i].owner = p;
    }
}

/* The plan of the request that will be asked next (+ |ahead|); to be filled in. */
static inline struct answer_plan *plane_plan(struct plane *p, uint64_t ahead)
{
    uint64_t id = p->rig.ledger.count + 1 + ahead;

    assert_true(id < 64);
    p->has_plan[id] = true;
    p->plans[id] = (struct answer_plan){.delay = 10 * NS_PER_MS, .status = 200};
    return &p->plans[id];
}

static inline uint64_t plane_ask(struct plane *p, const struct ask *a)
{
    uint64_t id = client_ask(&p->rig.client, a);

    assert_true(id != 0);
    return id;
}

static inline uint64_t plane_get(struct plane *p)
{
    const struct ask plain = ASK_PLAIN;

    return plane_ask(p, &plain);
}

static inline void plane_run(struct plane *p, span_ns d)
{
    world_run_for(&p->rig.world, d);
    assert_string_equal(p->rig.world.failure, "");
}

static inline const struct fact *plane_fact(struct plane *p, uint64_t id)
{
    return client_fact(&p->rig.client, id);
}

/* |count| plain requests, one each |gap|; runs on until all have ended. */
static inline void plane_traffic(struct plane *p, unsigned count, span_ns gap)
{
    for (unsigned i = 0; i < count; i++) {
        plane_get(p);
        plane_run(p, gap);
    }
}

static inline void plane_expect(struct plane *p, uint64_t id, uint32_t status)
{
    assert_int_equal(plane_fact(p, id)->outcome, OUTCOME_ANSWERED);
    assert_int_equal(plane_fact(p, id)->status, status);
}

static inline uint64_t plane_answered(const struct plane *p, unsigned class)
{
    return p->rig.ledger.statuses[class];
}

static inline uint64_t plane_count(const struct plane *p, enum cluster_metric m)
{
    return rig_cluster_sum(&p->rig, m);
}

/* As an operator does it; what is answered goes to |said|. */
static inline enum host_answer plane_order(struct plane *p, enum host_deed deed, uint32_t host,
                                           char *said, size_t size)
{
    const struct host_order o = {.deed = deed,
                                 .cluster = rig_cluster(&p->rig)->name,
                                 .host = rig_cluster(&p->rig)->endpoints[host].text};
    const struct message wake = {.kind = MESSAGE_ADOPTED};
    struct text t;
    enum host_answer a;

    text_init(&t, said, size);
    a = control_host(p->rig.control, &o, &t);
    text_end(&t);
    mailbox_post(&p->rig.control_inbox.base, &wake); /* the admin pages are inside its turn */
    return a;
}

/* Of requests one after another, so many in a thousand. */
static inline bool is_due(double *owing, uint32_t permille)
{
    *owing += permille / 1000.0;
    if (*owing < 1)
        return false;
    *owing -= 1;
    return true;
}

static inline bool plane_out(const struct plane *p, uint32_t host)
{
    return host_health(rig_state(&p->rig)->hosts.at[host]) == HOST_EJECTED;
}

/* All requests have had their time: the laws hold to the end, and nothing leaks. */
static inline void plane_end(struct plane *p)
{
    laws_check_quiet(&p->laws);
    assert_string_equal(p->rig.world.failure, "");
    assert_true(rig_drain(&p->rig, p->settings.drain_timeout + NS_PER_S));
    rig_free_proxy(&p->rig);
    laws_check_freed(&p->laws);
    assert_string_equal(p->rig.world.failure, "");
    rig_stop(&p->rig);
}

#endif
