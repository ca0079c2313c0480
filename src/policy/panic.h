/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Panic: what is done where so few hosts are healthy that they could not carry the load, so that
 * keeping away from the others would do more harm than they can. When it begins is Envoy's rule
 * (reference/envoy-semantics.md 3.2, 3.3) with Istio's threshold, minHealthPercent; who serves
 * meanwhile is one named policy. Pure.
 */
#ifndef POLICY_PANIC_H
#define POLICY_PANIC_H

#include <stdbool.h>
#include <stdint.h>

/* Constant after PANIC_, name as configured and shown. */
#define PANIC_POLICIES(X)                                                                          \
    X(SERVE_ALL, serveAll) /* Envoy's and Istio's: every host, the ejected ones too */             \
    X(LEAST_BAD, leastBad) /* the healthy ones and of the ejected as many as reach the threshold:  \
                              those out for longest, then those with the least evidence */         \
    X(FAIL_FAST, failFast) /* nobody: requests are refused at once */

#define X(constant, name) PANIC_##constant,
enum panic_policy { PANIC_POLICIES(X) PANIC_POLICY_COUNT };
#undef X

struct panic_config {
    enum panic_policy policy;
    uint32_t threshold; /* percent of healthy hosts below which there is panic; 0: never */
};

const char *panic_policy_text(enum panic_policy p);

/*
 * Is there panic with |healthy| of |hosts|? Strictly below the threshold, and never while the
 * healthy ones could carry all with 1.4 times their share (5 of 7, 72 %).
 */
bool panic_is_on(const struct panic_config *c, uint32_t healthy, uint32_t hosts);

/* The fewest of |hosts| that reach the threshold; at least one where there is one. */
uint32_t panic_floor(const struct panic_config *c, uint32_t hosts);

#endif
