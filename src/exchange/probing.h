/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that are given to a host which is not trusted: one that is out, so that it can show that
 * it is well again, or a suspect that is left with next to nothing. Only such that may reach two
 * hosts: where the trial fails or is late, another host answers, and nobody sees it.
 */
#ifndef EXCHANGE_PROBING_H
#define EXCHANGE_PROBING_H

#include <stdbool.h>
#include <stdint.h>

#include "exchange/exchange.h"

/* The first host of a request, and whether it is a trial; as cluster_rt_pick where it is none. */
uint32_t probing_pick(struct exchange *x, enum attempt_trial *trial);

/*
 * Where the present attempt is a trial that fails: the host that is to make it good, at once; its
 * token was taken beforehand. LB_NO_HOST: it is none, or cannot.
 */
uint32_t probing_remedy(struct exchange *x, bool replayable);

/* How long the present attempt may take: a trial no longer than a probe that can pass, and than
 * half of the request's time. */
span_ns probing_timeout(struct exchange *x);

/*
 * Its time is up, and |other| is who makes it good. To give it up for another try that will not be
 * made helps nobody: does it go on, as if it were no trial, or where retries are held till the end?
 */
bool probing_goes_on(struct exchange *x, uint32_t other, mono_ns now);

/* Is it a suspect's, and later than that may be, but not than the route allows? That is no failure
 * of its host. */
bool probing_only_late(struct exchange *x, mono_ns now);

#endif
