/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules judge of one cluster: what teams write down today. Each rule is a signal with its
 * limit, a time, the least evidence it speaks on, and perhaps a second signal that has to agree. It
 * is asked of each host and class apart; a connection has no class, so what is only about
 * connections is asked of the host as a whole. Latency is judged against the median of the peers'
 * own, never by a limit in milliseconds, and not at all where a host has fewer than three peers.
 *
 * Same samples in the same order, same findings (law 9). Pure; control thread only.
 *
 * Source: the rules of Envoy, of AWS and of the teams of reference/scenarios.md (T-000-9).
 */
#ifndef POLICY_DETECT_RULES_H
#define POLICY_DETECT_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/units.h"
#include "policy/evidence.h"

enum rule_kind {
    RULE_OF_RUN,     /* |at_least| failures in a row, the last of them |within| */
    RULE_OF_COUNT,   /* |at_least| failures |within|, whatever succeeded between */
    RULE_OF_SHARE,   /* more than |above| of |min_requests| or more |within| */
    RULE_OF_WAIT,    /* more than half of them waited here for longer than |delay| */
    RULE_OF_MULTIPLE /* |windows| in a row, each |within|: |above| times the peers' median */
};

/* Constant after RULE_, name as configured, kind after RULE_OF_, what it says. */
#define RULE_SIGNALS(X)                                                                            \
    X(CONSECUTIVE_5XX, consecutive5xx, RUN)    /* answers 5xx, no other answer between them */     \
    X(LOCAL_ORIGIN, localOrigin, RUN)          /* no whole answer, none between them */            \
    X(CONNECT_FAILURE, connectFailure, COUNT)  /* connects */                                      \
    X(ERROR, error, SHARE)                     /* answers 5xx */                                   \
    X(TIMEOUT, timeout, SHARE)                 /* no answer in time */                             \
    X(RESET, reset, SHARE)                     /* lost before or within the answer */              \
    X(REFUSED, refused, SHARE)                 /* the connect was refused */                       \
    X(TIMEOUT_OR_RESET, timeoutOrReset, SHARE) /* either */                                        \
    X(QUEUE_DELAY, queueDelay, WAIT)           /* waited here for a connection to it */            \
    X(P95, p95Multiple, MULTIPLE)              /* of the peers' median p95 */                      \
    X(P99, p99Multiple, MULTIPLE)              /* of the peers' median p99 */

#define X(constant, name, kind) RULE_##constant,
enum rule_signal { RULE_SIGNALS(X) RULE_SIGNAL_COUNT };
#undef X

#define RULE_WITH_NONE RULE_SIGNAL_COUNT

const char *rule_signal_text(enum rule_signal s);
enum rule_kind rule_kind_of(enum rule_signal s);

struct rule {
    enum rule_signal signal;
    uint32_t at_least;     /* RUN, COUNT */
    uint32_t above;        /* thousandths: SHARE of all, MULTIPLE of the peers' median */
    span_ns delay;         /* WAIT */
    span_ns within;        /* MONO_NEVER: however long it took (RUN) */
    uint32_t windows;      /* MULTIPLE */
    uint32_t min_requests; /* SHARE, WAIT, MULTIPLE */
    enum rule_signal with; /* a SHARE that has to be higher, too; RULE_WITH_NONE */
};

#define RULES_MAX           16
#define RULE_AT_LEAST_MAX   32
#define RULE_WINDOWS_MAX    10
#define RULE_PEERS_LEAST    3              /* for latency */
#define RULE_P95_LEAST      20             /* answers that a p95 is made of */
#define RULE_WINDOW_LONGEST 6              /* a window goes on for so many more, for those */
#define RULE_WITH_LEAST     3              /* of the second signal, before it can agree */
#define RULE_STANDS         (2 * NS_PER_S) /* a finding, after the sample it was made on */
#define RULE_SLICES         10             /* that the time of a share is cut into */

/* DESIGN.md 4.1. */
#define RULES_DEFAULT_COUNT 5
extern const struct rule rules_default[RULES_DEFAULT_COUNT];

enum rule_level {
    RULE_QUIET,
    RULE_SUSPECT,  /* MULTIPLE: a window is lacking yet; or |with| does not agree */
    RULE_CANDIDATE /* all that the rule asks for */
};

/* What a latency was made of. */
enum rule_basis {
    RULE_AS_WRITTEN,
    RULE_BY_P95,        /* too few answers in the window for a p99, its own or its peers' */
    RULE_BY_LONG_WINDOW /* too few for that, too: more windows than one were taken together */
};

const char *rule_basis_text(enum rule_basis b);

struct rule_finding {
    enum rule_level level;
    uint32_t number; /* of the rule, from 0 */
    uint8_t class;
    enum rule_basis basis;
    uint32_t requests; /* that it rests on */
    uint32_t windows;  /* MULTIPLE: in a row */
    double value;      /* failures; share; times the peers' median */
    bool agreed;       /* |with| does, or there is none */
};

struct rule_cell;

/* The judge's memory of one host. Zeroed memory is that of a new one. */
struct rules_host {
    uint32_t stratum; /* hosts of another one are no peers in latency */
    bool serving;     /* its peers are compared with it */
    bool stirred;     /* some cell may have a finding */
    uint64_t layout;  /* of the rules that the cells are of */
    uint32_t cell_count;
    struct rule_cell *cells[EVIDENCE_CLASS_MAX]; /* one a rule; NULL: nothing seen */
};

void rules_host_release(struct rules_host *h);

struct rules_judge {
    uint64_t layout; /* stands for the rules: with others, what hosts remember is of no use */
    uint32_t rule_count;
    struct rule rules[RULES_MAX];
    uint64_t window[RULES_MAX]; /* MULTIPLE: number of the one under way */
    struct rules_host **hosts;
    uint32_t count;
};

/*
 * Zeroed, then this; again when rules or hosts change. Hosts keep what they remember of the same
 * rules. What is pointed to is the caller's, |rules| only for now.
 */
void rules_adopt(struct rules_judge *j, const struct rule *rules, uint32_t rule_count,
                 struct rules_host **hosts, uint32_t count);

/* One sample of host |index|; in the order of their times. */
void rules_learn(struct rules_judge *j, uint32_t index, const struct evidence *e);

/* Windows that were over at |now| are closed. */
void rules_turn(struct rules_judge *j, mono_ns now);

/* The gravest finding against it, of those the first rule's. */
struct rule_finding rules_look(struct rules_judge *j, uint32_t index, mono_ns now);

/* Its evidence is void. */
void rules_acquit(struct rules_judge *j, uint32_t index);

#endif
