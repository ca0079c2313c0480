/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Load balancing: which host gets the next attempt. A balancer is one file lb_<name>.c with a pick
 * function and one row in lb_kinds.h. Pure; one struct lb a worker and cluster.
 */
#ifndef POLICY_LB_H
#define POLICY_LB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/rng.h"
#include "base/units.h"
#include "policy/host.h"
#include "policy/lb_kinds.h"
#include "policy/panic.h"

#define X(constant, name, alias) LB_##constant,
enum lb_kind { LB_KINDS(X) LB_KIND_COUNT };
#undef X

#define LB_NO_HOST   UINT32_MAX
#define LB_TRIED_MAX 8

/* Hosts this request was already tried on: avoided while there is another. */
struct lb_tried {
    uint32_t count;
    uint32_t at[LB_TRIED_MAX];
};

static inline bool lb_tried_has(const struct lb_tried *tried, uint32_t host)
{
    for (uint32_t i = 0; tried != NULL && i < tried->count && i < LB_TRIED_MAX; i++) {
        if (tried->at[i] == host)
            return true;
    }
    return false;
}

struct lb {
    enum lb_kind kind;
    struct panic_config panic;
    uint32_t *eligible; /* indices of who may be picked: the healthy ones, or in panic whom the
                           policy names; in order; room for all is the caller's */
    uint32_t eligible_count;
    uint32_t partial_count; /* behind them in |eligible|: those that get a share of what is fair */
    uint32_t epoch;         /* of the host set when |eligible| was made */
    uint32_t cursor;        /* round robin: whose turn it is; the first turn is drawn */
    bool made;
    bool in_panic;
};

/* "round_robin", "random", "p2c" (also "two_choices"): as written in the configuration. */
bool lb_kind_parse(struct bytes name, enum lb_kind *out);
const char *lb_kind_text(enum lb_kind kind);

/* |room| holds as many indices as the set has hosts, and outlives |lb|. */
void lb_init(struct lb *lb, enum lb_kind kind, const struct panic_config *panic, uint32_t *room);

/* Another |room|, for as many hosts or more; the old one may be given back. */
void lb_move(struct lb *lb, uint32_t *room);

/* The hosts of the set are others now, or the kind is. */
void lb_change(struct lb *lb, enum lb_kind kind, const struct panic_config *panic);

/*
 * Index of the host to use; an eligible one, not in |tried| (may be NULL) while there is such a
 * one, else any eligible one. LB_NO_HOST: there is none. Ejection shows at the very next pick.
 *
 * A host with a share below the whole gets exactly that much of what is fair, whatever the kind
 * says, as long as it does not have more under way than others; and no request that was tried
 * elsewhere while there is a host without such a bound.
 */
uint32_t lb_pick(struct lb *lb, const struct host_set *hosts, const struct lb_tried *tried,
                 struct rng *rng, mono_ns now);

/* The same, but LB_NO_HOST rather than a host already tried. */
uint32_t lb_pick_other(struct lb *lb, const struct host_set *hosts, const struct lb_tried *tried,
                       struct rng *rng, mono_ns now);

/* Was there panic at the last pick? */
static inline bool lb_in_panic(const struct lb *lb)
{
    return lb->in_panic;
}

/* May |host| be picked, as things are now? */
bool lb_serves(struct lb *lb, const struct host_set *hosts, uint32_t host, struct rng *rng);

#endif
