/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The question "once more?", asked when an attempt has failed: whether, to which host, after what
 * wait. What it takes for an attempt (a place among maxRetries, a token of the budget) is taken
 * here, what stands in the way is counted and flagged here. exchange.c does the deed.
 */
#ifndef EXCHANGE_RETRYING_H
#define EXCHANGE_RETRYING_H

#include <stdbool.h>
#include <stdint.h>

#include "exchange/exchange.h"
#include "policy/retry.h"

/* What became of the attempt, and what is at hand for another. */
struct retrying_case {
    struct retry_failure failure; /* |sent| is filled in here */
    bool replayable;              /* all that was sent of the request can be sent again */
    bool local;                   /* our own want of descriptors or ports: not the host's */
};

enum retrying { RETRYING_NOT, RETRYING_NOW, RETRYING_LATER };

struct retrying_choice {
    enum retrying what;
    uint32_t host; /* NOW */
    span_ns wait;  /* LATER */
};

/* Does the policy in force retry such a failure? Nothing is taken, nothing counted. */
bool retrying_wanted(const struct exchange *x, const struct retrying_case *c);

/* The same, and all else that has to hold. If the attempt was a retry, its place is given back. */
struct retrying_choice retrying_choose(struct exchange *x, const struct retrying_case *c,
                                       mono_ns now);

/* Does the policy in force retry methods that are not idempotent as well? */
bool retrying_any_method(const struct exchange *x);

/* A host with room that the request was not yet on; LB_NO_HOST: there is none. */
uint32_t retrying_other_host(struct exchange *x);

/* A host for a retry: one it was not yet on, else any; as cluster_rt_pick. */
uint32_t retrying_any_host(struct exchange *x);

/*
 * A failover takes a token where there is one, and is made in any case: no host has had work of the
 * attempt before, and there is one a request.
 */
void retrying_charge(struct exchange *x, mono_ns now);

/* One more attempt that nobody asked for by name (resend). False, counted: not now. */
bool retrying_afford(struct exchange *x, mono_ns now);

/* The retry's outcome is known: its place is another's. */
void retrying_give_place(struct exchange *x);

/* The request ends: a retry that still waits is never made, and costs nothing. */
void retrying_call_off(struct exchange *x);

/* The first attempt, and each further one, has begun. */
void retrying_count_first(struct exchange *x, mono_ns now);
void retrying_count_extra(struct exchange *x, mono_ns now);

#endif
