/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts fail one after another, as badly as they can, until the judge lets no more go. */
#include "control/reach.h"

#include "base/memory.h"
#include "policy/outlier_judge.h"

/* Time enough for one host's total evidence, and for its peers to have answered meanwhile. */
#define STEP (20 * NS_PER_S)

/* For the lengths: enough hosts that no guard speaks. */
#define PLENTY 16u

struct court {
    struct outlier judge;
    struct outlier_config config;
    struct outlier_host *hosts;
    struct outlier_runs *runs;
    struct outlier_member *members;
    struct rng rng;
    mono_ns now;
};

static bool court_open(struct court *c, const struct outlier_config *config, uint32_t hosts)
{
    *c = (struct court){.config = *config, .now = 1000 * NS_PER_S};
    c->hosts = memory_take_array(hosts, sizeof(*c->hosts));
    c->runs = memory_take_array(hosts, sizeof(*c->runs));
    c->members = memory_take_array(hosts, sizeof(*c->members));
    if (c->hosts == NULL || c->runs == NULL || c->members == NULL)
        return false;
    for (uint32_t i = 0; i < hosts; i++) {
        outlier_runs_init(&c->runs[i]);
        outlier_host_init(&c->hosts[i]);
        c->members[i] = (struct outlier_member){&c->runs[i], &c->hosts[i]};
    }
    rng_init(&c->rng, 1);
    outlier_init(&c->judge, &c->rng);
    for (unsigned t = OUTLIER_NONE; t < OUTLIER_TRIGGER_COUNT; t++)
        c->config.enforcing[t] = 100; /* what could be */
    outlier_adopt(&c->judge, &c->config, c->members, hosts);
    return true;
}

static void court_close(struct court *c)
{
    memory_give(c->hosts);
    memory_give(c->runs);
    memory_give(c->members);
}

static void answer(struct court *c, uint32_t host, uint32_t status, mono_ns when)
{
    outlier_learn(&c->runs[host], &c->config, OUTLIER_ANSWERED, status, when);
}

static bool eject(struct court *c, uint32_t host)
{
    return outlier_consider(&c->judge, host, OUTLIER_CONSECUTIVE_5XX, c->now).guard ==
           OUTLIER_GUARD_NONE;
}

/* Nothing but errors for longer than total evidence needs, while the next host answers. */
static void fail_for_long(struct court *c, uint32_t host)
{
    uint32_t peer = (host + 1) % c->judge.count;
    span_ns lasting = OUTLIER_FAILING_SPAN + NS_PER_S;

    for (unsigned i = 0; i < OUTLIER_FAILING_ATTEMPTS; i++)
        answer(c, host, 500, c->now - lasting);
    answer(c, host, 500, c->now);
    if (peer != host)
        answer(c, peer, 200, c->now - 1);
}

static uint32_t most_out(struct court *c, void (*fail)(struct court *c, uint32_t host))
{
    uint32_t out = 0;

    for (uint32_t i = 0; i < c->judge.count; i++) {
        c->now += STEP;
        if (fail != NULL)
            fail(c, i);
        out += eject(c, i);
    }
    return out;
}

static bool count_out(const struct outlier_config *config, uint32_t hosts,
                      void (*fail)(struct court *c, uint32_t host), uint32_t *out)
{
    struct court court;
    bool open = court_open(&court, config, hosts);

    if (open)
        *out = most_out(&court, fail);
    court_close(&court);
    return open;
}

/* One host, ejected again as soon as it is back. */
static span_ns next_length(struct court *c)
{
    uint32_t returned[PLENTY];
    span_ns length = outlier_consider(&c->judge, 0, OUTLIER_CONSECUTIVE_5XX, c->now).eject_for;

    c->now += length;
    outlier_sweep(&c->judge, returned, c->now);
    return length;
}

static bool measure_lengths(const struct outlier_config *config, struct reach *r)
{
    struct court court;
    bool open = court_open(&court, config, PLENTY);

    court.config.max_ejection_percent = 100;
    court.config.jitter = 0;
    court.config.return_on_proof = false; /* the least, where proof is asked for beside it */
    while (open) {
        span_ns length = next_length(&court);

        if (r->steps > 0 && length == r->lengths[r->steps - 1])
            break;
        r->grows_on = r->steps == REACH_STEPS_MAX;
        if (r->grows_on)
            break;
        r->lengths[r->steps++] = length;
    }
    court_close(&court);
    return open;
}

/* Whether any rule is on that ejects. */
static bool has_rule(const struct outlier_config *c)
{
    return outlier_ejecting_run(c, OUTLIER_CONSECUTIVE_5XX) > 0 ||
           outlier_ejecting_run(c, OUTLIER_CONSECUTIVE_GATEWAY) > 0 ||
           outlier_ejecting_run(c, OUTLIER_CONSECUTIVE_LOCAL_ORIGIN) > 0 || outlier_rates_eject(c);
}

bool reach_compute(const struct outlier_config *c, uint32_t hosts, struct reach *out)
{
    *out = (struct reach){.hosts = hosts};
    out->longest = c->max_ejection > c->base_ejection ? c->max_ejection : c->base_ejection;
    if (!c->enabled || hosts == 0 || !has_rule(c))
        return true;
    return count_out(c, hosts, NULL, &out->by_runs) &&
           count_out(c, hosts, fail_for_long, &out->by_evidence) && measure_lengths(c, out);
}

bool reach_panic(const struct panic_config *p, uint32_t hosts, uint32_t *healthy)
{
    uint32_t n = hosts + 1;

    while (n > 0 && !panic_is_on(p, n - 1, hosts))
        n--;
    if (n == 0)
        return false;
    *healthy = n - 1;
    return true;
}
