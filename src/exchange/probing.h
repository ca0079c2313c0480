/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that are given to a host which is out, so that it can show that it is well again. Only
 * such that may reach two hosts: where the probe fails, another host answers, and nobody sees it.
 */
#ifndef EXCHANGE_PROBING_H
#define EXCHANGE_PROBING_H

#include <stdbool.h>
#include <stdint.h>

#include "exchange/exchange.h"

/* The first host of a request, and whether it is a probe; as cluster_rt_pick where it is none. */
uint32_t probing_pick(struct exchange *x, bool *probe);

/*
 * Where the present attempt is a probe that fails: the host that is to make it good, at once; its
 * token was taken beforehand. LB_NO_HOST: it is none, or cannot.
 */
uint32_t probing_remedy(struct exchange *x, bool replayable);

/* How long the present attempt may take: a probe no longer than one that can pass, and than half of
 * the request's time. */
span_ns probing_timeout(struct exchange *x);

#endif
