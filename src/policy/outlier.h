/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Outlier detection, first set: consecutive 5xx, gateway and local-origin failures.
 *
 * Two halves. The evidence (struct outlier_runs) is shared by all workers: each outcome of an
 * attempt is fed to it, and it says at once when a run has reached its threshold. The judgement
 * (struct outlier) belongs to the control thread alone: it weighs a trigger against the guards of
 * law 1 (cap, few healthy hosts, last host) and says for how long; its sweep says who comes back.
 *
 * Source: Envoy's outlier detection (reference/envoy-semantics.md 1.3, 1.5 to 1.7) with the cap of
 * DESIGN.md law 1, and one difference in split mode: a connect that works does not end the run of
 * local failures, only an answer does. So a host that accepts and never answers does not escape.
 * Pure: no clock, no I/O, no allocation.
 */
#ifndef POLICY_OUTLIER_H
#define POLICY_OUTLIER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"
#include "base/units.h"

struct outlier_config {
    uint32_t consecutive_5xx;          /* 0: off */
    uint32_t consecutive_gateway;      /* 502, 503, 504; 0: off */
    uint32_t consecutive_local_origin; /* 0: off; only counts with |split| */
    bool split;       /* local-origin failures apart from answers; else as 503 and 504 */
    bool enabled;     /* false: nothing is learnt, nobody is ejected */
    span_ns interval; /* of the sweep */
    span_ns base_ejection;
    span_ns max_ejection;          /* the time never grows beyond max(this, base) */
    span_ns jitter;                /* added, 0 .. jitter, outside the maximum */
    uint32_t max_ejection_percent; /* 0: observe only; a set of 2 or more may always lose one
                                      otherwise */
};

enum outlier_trigger {
    OUTLIER_NONE,
    OUTLIER_CONSECUTIVE_5XX,
    OUTLIER_CONSECUTIVE_GATEWAY,
    OUTLIER_CONSECUTIVE_LOCAL_ORIGIN,
    OUTLIER_TRIGGER_COUNT
};

/* "consecutive_5xx", "consecutive_gateway_failure", "consecutive_local_origin_failure". */
const char *outlier_trigger_text(enum outlier_trigger t);

/* What became of one attempt that was really made. What the proxy itself refused is never one. */
enum outlier_report {
    OUTLIER_CONNECTED,      /* a connection was opened for it */
    OUTLIER_ANSWERED,       /* response head; with its status */
    OUTLIER_TIMED_OUT,      /* no response head in time, though the request was sent */
    OUTLIER_CONNECT_FAILED, /* refused, unreachable, connect timeout */
    OUTLIER_RESET           /* broken after connect, or an answer that is no HTTP */
};

/* Shared by all workers; fields only touched by outlier.c. */
struct outlier_runs {
    _Atomic uint32_t run_5xx;
    _Atomic uint32_t run_gateway;
    _Atomic uint32_t run_local;
    _Atomic uint32_t without_success; /* attempts since the last success (status < 500) */
    _Atomic uint32_t refused;       /* connect failures since a connect worked or an answer came */
    _Atomic uint64_t failing_since; /* mono_ns of the first of |without_success|; or MONO_NEVER */
    _Atomic uint64_t refused_since; /* mono_ns of the first of |refused|; or MONO_NEVER */
    _Atomic uint64_t last_success;  /* mono_ns; 0: never */
};

void outlier_runs_init(struct outlier_runs *r);

/* Several triggers of one report, as bits 1 << enum outlier_trigger. The caller tells the judge. */
typedef uint32_t outlier_triggers;

/*
 * Any worker. |status| only for OUTLIER_ANSWERED. A trigger is said with each full run. The caller
 * tells the judge; where a message is lost, the next full run triggers again.
 */
outlier_triggers outlier_learn(struct outlier_runs *r, const struct outlier_config *c,
                               enum outlier_report report, uint32_t status, mono_ns now);

/* The run of |t| begins anew: called after the judge considered a trigger, whatever it said. */
void outlier_runs_restart(struct outlier_runs *r, enum outlier_trigger t);

/*
 * Law 1, fewer than four healthy hosts: one of them may go, if none that went by this rule is still
 * out, and there is total evidence: no success in 20 attempts and 5 s, or every connect refused in
 * 5 attempts and 1 s. And while peers are fine: at least one other healthy host had a success after
 * this one began to fail, in the last 10 s, and has no total evidence against itself.
 */
#define OUTLIER_FEW_HEALTHY      4
#define OUTLIER_FAILING_ATTEMPTS 20
#define OUTLIER_FAILING_SPAN     (5 * NS_PER_S)
#define OUTLIER_REFUSED_ATTEMPTS 5
#define OUTLIER_REFUSED_SPAN     (1 * NS_PER_S)
#define OUTLIER_PEER_FINE_SPAN   (10 * NS_PER_S)

/* Why a trigger did not lead to an ejection. */
enum outlier_guard {
    OUTLIER_GUARD_NONE, /* it did */
    OUTLIER_GUARD_ALREADY_OUT,
    OUTLIER_GUARD_CAP,         /* more hosts out than max_ejection_percent allows */
    OUTLIER_GUARD_FEW_HEALTHY, /* fewer than four healthy, and no total evidence or one is out
                                  already */
    OUTLIER_GUARD_LAST_HOST,
    OUTLIER_GUARD_COUNT
};

/* "none", "already_out", "cap", "few_healthy", "last_host". */
const char *outlier_guard_text(enum outlier_guard g);

struct outlier_verdict {
    enum outlier_guard guard; /* OUTLIER_GUARD_NONE: eject */
    span_ns eject_for;        /* where ejected: min(base x multiplier, max(max, base)) + jitter */
    uint32_t multiplier;
};

/* The judge's memory of one host. Control thread only. */
struct outlier_host {
    bool ejected;
    bool by_few_rule; /* ejected, and that while fewer than four were healthy */
    uint32_t multiplier;
    uint32_t ejections; /* in total; never decays */
    mono_ns ejected_at;
    span_ns eject_for;
    mono_ns returned_at;
};

/* The judge of one cluster. |hosts| is the caller's, |count| of them, zeroed at first. */
struct outlier {
    struct outlier_host *hosts;
    uint32_t count;
    uint32_t ejected;
};

void outlier_init(struct outlier *o, struct outlier_host *hosts, uint32_t count);

/*
 * Weighs one trigger against host |index|. The caller restarts the run of that trigger. |runs| is
 * an array of pointers to all hosts' evidence, for "total evidence" and "while peers are fine".
 * Where the verdict is to eject, the host is marked out here; the caller does the deed (health,
 * counters, log).
 */
struct outlier_verdict outlier_consider(struct outlier *o, const struct outlier_config *c,
                                        struct outlier_runs *const *runs, uint32_t index,
                                        struct rng *rng, mono_ns now);

/*
 * The sweep, once an interval. Marks hosts whose time is over as in again (runs restarted) and
 * writes their indices to |returned| (room for |count|); decays multipliers of hosts that had no
 * trouble for an interval. Returns how many came back. Where detection is off, all come back.
 *
 * It ejects nobody: a host that keeps failing triggers again with each full run, and total evidence
 * is weighed anew each time. Against a host that went on total evidence that evidence goes on until
 * it has a success, so that it goes again at its first full run; any other is judged from the
 * beginning.
 */
uint32_t outlier_sweep(struct outlier *o, const struct outlier_config *c,
                       struct outlier_runs *const *runs, uint32_t *returned, mono_ns now);

#endif
