/* SPDX-License-Identifier: Apache-2.0 */
/* Sees from outside what the proxy does with the hosts of a rig: who is cut or out, since when. */
#ifndef SIM_ONLOOKER_H
#define SIM_ONLOOKER_H

#include <stdbool.h>
#include <stdint.h>

#include "policy/scope.h"
#include "sim/rig.h"

struct seen_host {
    bool out;
    uint32_t share; /* thousandths of what is fair */
    /* Since onlooker_forget: */
    uint32_t least_share;
    mono_ns first_cut; /* MONO_NEVER: not */
    mono_ns first_out;
    mono_ns last_back;
    uint32_t outs;
    span_ns time_out; /* of times that are over */
    mono_ns out_since;
};

struct onlooker {
    struct world_watch watch; /* first */
    struct rig *rig;
    uint32_t epoch;
    struct seen_host hosts[RIG_HOSTS_MAX];
    enum scope_kind verdict; /* as the proxy says it is now, ... */
    mono_ns verdict_since;
    span_ns verdicts[SCOPE_KIND_COUNT]; /* ... and for how long it said what, so far */
};

/* From now on; the rig has started. */
void onlooker_init(struct onlooker *o, struct rig *r);

/* What was seen so far does not count; hosts that are out count as put out now. */
void onlooker_forget(struct onlooker *o);

/* How often hosts in |which|, a bit each, went out. */
uint32_t onlooker_outs(const struct onlooker *o, uint64_t which);

/* The verdict that held for longest, where one did for a second in all; else SCOPE_NONE. */
enum scope_kind onlooker_verdict(struct onlooker *o);

/* Hosts that were out, or had no more than |share|, at some time; a bit each. */
uint64_t onlooker_out(const struct onlooker *o);
uint64_t onlooker_cut(const struct onlooker *o, uint32_t share);

#endif
