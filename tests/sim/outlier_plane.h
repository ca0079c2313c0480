/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of outlier detection on the data plane share: a host with a script. */
#ifndef TESTS_SIM_OUTLIER_PLANE_H
#define TESTS_SIM_OUTLIER_PLANE_H

#include "sim/plane.h"

#include "model/flags.h"
#include "model/host_state.h"

#define S NS_PER_S

static struct plane p;

/* What host 0 answers, one after another; then 200. The others answer 200. */
static struct {
    uint32_t at[600];
    uint32_t count;
    uint32_t next;
} script;

static inline void say(const uint32_t *statuses, uint32_t count)
{
    memcpy(script.at, statuses, count * sizeof(*statuses));
    script.count = count;
    script.next = 0;
}

static inline void say_often(uint32_t status, uint32_t times)
{
    for (uint32_t i = 0; i < times; i++)
        script.at[i] = status;
    script.count = times;
    script.next = 0;
}

static inline void decide(struct server *s, const struct wish *wish,
                          const struct message_head *head, struct answer_plan *plan)
{
    (void)s;
    (void)wish;
    (void)head;
    if (script.next < script.count)
        plan->status = script.at[script.next++];
}

/* Envoy's exactly, but that changes of health are not held back; Istio's numbers of acceptance 1.
 */
static inline void settings(uint32_t hosts, uint32_t percent)
{
    const difference_set merged = (difference_set)1 << DIFFERENCE_REEJECTION_SLOWER |
                                  (difference_set)1 << DIFFERENCE_EJECTED_STILL_PICKED;
    struct outlier_config *o = &p.settings.cluster.outlier;

    plane_settings(&p, hosts, 1);
    p.settings.cluster.differences = DIFFERENCES_ENVOY & ~merged;
    p.settings.cluster.connect_failover = false;
    p.settings.cluster.panic.threshold = 0;
    o->split = false;
    o->consecutive_5xx = 7;
    o->consecutive_gateway = 5;
    o->consecutive_local_origin = 5;
    o->interval = 30 * S;
    o->base_ejection = 300 * S;
    o->max_ejection_percent = percent;
    say_often(200, 0);
}

/* Envoy's defaults, as section 12 has them. */
static inline void defaults(uint32_t hosts, uint32_t percent)
{
    settings(hosts, percent);
    p.settings.cluster.outlier.consecutive_5xx = 5;
    p.settings.cluster.outlier.enforcing[OUTLIER_CONSECUTIVE_GATEWAY] = 0;
    p.settings.cluster.outlier.interval = 10 * S;
    p.settings.cluster.outlier.base_ejection = 30 * S;
}

static inline void go(void)
{
    plane_go(&p);
    for (uint32_t i = 0; i < p.settings.hosts; i++)
        p.rig.servers[i].decide = NULL;
    p.rig.servers[0].decide = decide;
}

static inline const struct host *host(uint32_t i)
{
    return rig_state(&p.rig)->hosts.at[i];
}

static inline uint64_t stat(enum outlier_metric m)
{
    return cell_read(&rig_state(&p.rig)->outlier[m]);
}

static inline uint64_t arrivals(uint32_t i)
{
    return p.rig.servers[i].arrivals;
}

/* Requests until host 0 is out, with |hosts| in turn; how many reached it. At most |most|. */
static inline uint32_t until_out(uint32_t most)
{
    uint64_t before =
        host_state_sum(host_state_of(rig_state(&p.rig)->hosts.at[0]), ENDPOINT_rq_error);
    uint32_t reached = 0;

    for (uint32_t i = 0; i < most * p.settings.hosts && !plane_out(&p, 0); i++) {
        plane_get(&p);
        plane_run(&p, 100 * NS_PER_MS);
    }
    reached = (uint32_t)(host_state_sum(host_state_of(rig_state(&p.rig)->hosts.at[0]),
                                        ENDPOINT_rq_error) -
                         before);
    return reached;
}

/* Ejects host 0 anew; when it is back, how long it was out. */
static inline span_ns out_for(uint32_t failures)
{
    mono_ns since;

    say_often(500, failures);
    assert_int_equal(until_out(failures), failures);
    since = host(0)->ejected_at;
    while (plane_out(&p, 0))
        plane_run(&p, 50 * NS_PER_MS);
    return p.rig.world.now - since;
}

#endif
