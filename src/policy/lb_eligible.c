/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may be picked at all: the healthy hosts, or in panic whom the policy names. Made anew only
 * when the health of some host has changed.
 */
#include <string.h>

#include "policy/lb_choice.h"
#include "policy/panic.h"

typedef bool (*comes_before)(const struct host_set *hosts, uint32_t a, uint32_t b);

static bool by_index(const struct host_set *hosts, uint32_t a, uint32_t b)
{
    (void)hosts;
    return a < b;
}

/* Out for longer, or for as long and with less evidence against it. */
static bool less_bad(const struct host_set *hosts, uint32_t a, uint32_t b)
{
    const struct host *x = hosts->at[a], *y = hosts->at[b];
    uint64_t x_out = atomic_load_explicit(&x->ejected_at, memory_order_relaxed);
    uint64_t y_out = atomic_load_explicit(&y->ejected_at, memory_order_relaxed);
    uint32_t x_failed = atomic_load_explicit(&x->runs.without_success, memory_order_relaxed);
    uint32_t y_failed = atomic_load_explicit(&y->runs.without_success, memory_order_relaxed);

    if (x_out != y_out)
        return x_out < y_out;
    return x_failed != y_failed ? x_failed < y_failed : a < b;
}

static void swap(uint32_t *a, uint32_t *b)
{
    uint32_t held = *a;

    *a = *b;
    *b = held;
}

struct sorting {
    const struct host_set *hosts;
    comes_before before;
    uint32_t *at;
};

static void sift_down(const struct sorting *s, uint32_t root, uint32_t count)
{
    for (uint32_t child; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count && s->before(s->hosts, s->at[child], s->at[child + 1]))
            child++;
        if (!s->before(s->hosts, s->at[root], s->at[child]))
            return;
        swap(&s->at[root], &s->at[child]);
    }
}

/* Heapsort: in place, and harmless where what it compares changes meanwhile. */
static void sort(const struct sorting *s, uint32_t count)
{
    for (uint32_t i = count / 2; i-- > 0;)
        sift_down(s, i, count);
    for (uint32_t left = count; left > 1;) {
        swap(&s->at[0], &s->at[--left]);
        sift_down(s, 0, left);
    }
}

static void append(struct lb *lb, const struct host_set *hosts, enum host_health health)
{
    for (uint32_t i = 0; i < hosts->count; i++) {
        if (host_set_health_of(hosts, i) == health)
            lb->eligible[lb->eligible_count++] = i;
    }
}

/* Behind the healthy ones that are there: the least bad of the ejected, as many as are missing. */
static void add_least_bad(struct lb *lb, const struct host_set *hosts, uint32_t all)
{
    uint32_t healthy = lb->eligible_count;
    uint32_t most = panic_floor(&lb->panic, all);

    append(lb, hosts, HOST_EJECTED);
    sort(&(struct sorting){hosts, less_bad, lb->eligible + healthy}, lb->eligible_count - healthy);
    if (lb->eligible_count > most)
        lb->eligible_count = most;
    sort(&(struct sorting){hosts, by_index, lb->eligible}, lb->eligible_count);
}

static void add_all(struct lb *lb, const struct host_set *hosts)
{
    append(lb, hosts, HOST_EJECTED);
    sort(&(struct sorting){hosts, by_index, lb->eligible}, lb->eligible_count);
}

/* The healthy ones with a whole share, and behind them those with less. */
static void append_healthy(struct lb *lb, const struct host_set *hosts)
{
    append(lb, hosts, HOST_HEALTHY);
    for (uint32_t i = lb->eligible_count; i-- > 0;) {
        uint32_t host = lb->eligible[i];

        if (host_share(hosts->at[host]) == HOST_WHOLE)
            continue;
        memmove(&lb->eligible[i], &lb->eligible[i + 1],
                (lb->eligible_count + lb->partial_count - i - 1) * sizeof(*lb->eligible));
        lb->eligible_count--;
        lb->eligible[lb->eligible_count + lb->partial_count] = host;
        lb->partial_count++;
    }
}

/* A host that is drained by hand counts as if it were not there. */
void lb_collect(struct lb *lb, const struct host_set *hosts)
{
    uint32_t healthy, all;

    lb->eligible_count = 0;
    lb->partial_count = 0;
    append_healthy(lb, hosts);
    healthy = lb->eligible_count + lb->partial_count;
    all = healthy + host_set_count(hosts, HOST_EJECTED);
    lb->in_panic = panic_is_on(&lb->panic, healthy, all);
    if (!lb->in_panic)
        return;
    lb->eligible_count = 0;
    lb->partial_count = 0;
    append(lb, hosts, HOST_HEALTHY);
    switch (lb->panic.policy) {
    case PANIC_SERVE_ALL:
        add_all(lb, hosts);
        return;
    case PANIC_LEAST_BAD:
        add_least_bad(lb, hosts, all);
        return;
    case PANIC_FAIL_FAST:
        lb->eligible_count = 0;
        return;
    case PANIC_POLICY_COUNT:
        return;
    }
}
