/* SPDX-License-Identifier: Apache-2.0 */
/* A cluster under detection in virtual time, whose hosts have faults of any kind and time. */
#ifndef TESTS_SIM_EFFECT_PLANE_H
#define TESTS_SIM_EFFECT_PLANE_H

#include "sim/plane.h"

#include <math.h>

#include "policy/effect.h"

#define S        NS_PER_S
#define GAP      (10 * NS_PER_MS) /* between requests: 100 a second */
#define SERVICE  (10 * NS_PER_MS) /* shortest; an exponential of as much is added */
#define HOSTS    10u
#define PATIENCE (1 * S) /* of the route */

static struct plane p;

/* What a host does to so many in a thousand of its requests, one after another. */
struct fault {
    uint32_t errors;
    uint32_t hangs;
    uint32_t slow;   /* times; 0: not at all */
    double owing[2]; /* errors, hangs */
};

static struct fault faults[HOSTS];

static inline void effect_decide(struct server *s, const struct wish *wish,
                                 const struct message_head *head, struct answer_plan *plan)
{
    struct fault *f = &faults[s->index];
    (void)wish;
    (void)head;

    if (f->slow > 1)
        plan->delay *= f->slow;
    if (is_due(&f->owing[0], f->errors))
        plan->status = 500;
    if (is_due(&f->owing[1], f->hangs))
        plan->delay = MONO_NEVER;
}

static inline void effect_settings(enum detection_profile profile, enum detection_mode mode,
                                   uint64_t seed)
{
    struct cluster *c = &p.settings.cluster;

    plane_settings(&p, HOSTS, 2);
    memset(faults, 0, sizeof(faults));
    p.settings.seed = seed;
    p.settings.route.timeout = PATIENCE;
    p.settings.route.large_body = UINT64_MAX;
    c->detection = default_detection;
    c->detection.mode = mode;
    c->detection.profile = profile;
    c->detection.life.quick = profile == PROFILE_ADAPTIVE;
    c->outlier.return_on_proof = mode == DETECTION_ENFORCE;
    if (mode == DETECTION_OBSERVE)
        memset(c->outlier.enforcing, 0, sizeof(c->outlier.enforcing));
}

static inline void effect_go(void)
{
    plane_go(&p);
    for (uint32_t i = 0; i < HOSTS; i++) {
        p.rig.servers[i].decide = effect_decide;
        p.rig.servers[i].patience = 100 * NS_PER_MS; /* what is slower is cause for blame */
        p.rig.servers[i].mood.service = SERVICE;
    }
}

static inline void serve(span_ns length)
{
    mono_ns end = p.rig.world.now + length;

    while (p.rig.world.now < end) {
        plane_get(&p);
        plane_run(&p, GAP);
    }
}

/* By hand. */
static inline void force_out(uint32_t host)
{
    char said[256];

    server_blame(&p.rig.servers[host]); /* the laws are told that it is no mistake of the judge */
    assert_int_equal(plane_order(&p, HOST_DEED_EJECT, host, said, sizeof(said)), HOST_ANSWER_DONE);
}

/* Serves until host |i| is out, or in again; for how long. At most |most|. */
static inline span_ns serve_until(uint32_t i, bool out, span_ns most)
{
    mono_ns since = p.rig.world.now;

    while (plane_out(&p, i) != out && p.rig.world.now - since < most)
        serve(GAP);
    assert_int_equal(plane_out(&p, i), out);
    return p.rig.world.now - since;
}

static inline uint64_t effect_stat(enum effect_metric m)
{
    return cell_read(&rig_state(&p.rig)->effect[m]);
}

static inline const struct effect_account *account_of(uint32_t i)
{
    return rig_state(&p.rig)->hosts.at[i]->effect->account;
}

#endif
