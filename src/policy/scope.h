/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose trouble is it? Before a host is put out for what the judge (detect.h) holds against it, all
 * hosts are looked at together: where a whole zone or version is bad, or all hosts alike, or we
 * ourselves, taking single hosts out helps nobody. Only one node, or several, may be ejected.
 *
 * A group of hosts (a zone, a version) is bad where nearly all of its hosts are past half of the
 * judge's threshold, or where nearly all lean the same way and what they show together is past the
 * whole of it: nats, n KL(share of failures, that of the other groups), or of their medians. Once
 * it is, it gets few requests, which cannot show so much again: it is bad until they show that it
 * is well.
 *
 * What all have is the caller's where segments to nearly all of them have to be sent again: no
 * host, zone or dependency does that. It is want of capacity where more was asked of each host than
 * usual (n requests against the e that are usual: n ln(n/e) - (n - e) nats) before or as they
 * became late, or where they say themselves that they are full; a dependency is slow at an
 * unchanged demand. What callers ask again because it was late comes after it, and does not count.
 * In-flight does not tell the two apart: by Little's law it grows with any latency.
 *
 * Sources: reference/detection.md B16 to B18 ("zone vs node"); the likelihood ratio of a window
 * against the peers' rate is Wilks, 1938. Pure; control thread only.
 */
#ifndef POLICY_SCOPE_H
#define POLICY_SCOPE_H

#include <stdbool.h>
#include <stdint.h>

#include "policy/detect.h"

/* Constant after SCOPE_, name as shown. */
#define SCOPE_KINDS(X)                                                                             \
    X(NONE, none)                                                                                  \
    X(NODE, node)                                                                                  \
    X(NODES, nodes)                                                                                \
    X(VERSION, version)       /* all hosts of one version, and no others */                        \
    X(ZONE, zone)             /* nearly all hosts of one zone, or of some of the zones */          \
    X(FLEET, fleet)           /* nearly all hosts */                                               \
    X(DEPENDENCY, dependency) /* the same, all alike, while they are reached as ever */            \
    X(CALLER, caller)         /* this proxy, or its network: what it sees is no evidence */        \
    X(CLASS_SKEW, class_skew) /* a host has more of the heavy requests, and is as fast in each */  \
    X(CAPACITY, capacity)     /* requests queue at the hosts, and none is worse than others */

#define X(constant, name) SCOPE_##constant,
enum scope_kind { SCOPE_KINDS(X) SCOPE_KIND_COUNT };
#undef X

const char *scope_kind_text(enum scope_kind k);

/* By what it shows. */
#define SCOPE_SIGNS(X)                                                                             \
    X(ERRORS, failures)                                                                            \
    X(CONNECTS, failed_connects)                                                                   \
    X(AGE, late_requests)                                                                          \
    X(PATH, retransmits)                                                                           \
    X(LATENCY, latency)                                                                            \
    X(CLASS, latency_of_a_class)                                                                   \
    X(MARKS, suspects) /* so many hosts are past half of the judge's threshold */

#define X(constant, name) SCOPE_BY_##constant,
enum scope_sign { SCOPE_SIGNS(X) SCOPE_SIGN_COUNT };
#undef X

const char *scope_sign_text(enum scope_sign s);

#define SCOPE_GROUPS_MAX 16               /* zones, and versions, that are told apart */
#define SCOPE_UNGROUPED  SCOPE_GROUPS_MAX /* of no known one, or of one too many */

enum scope_by { SCOPE_ZONES, SCOPE_VERSIONS, SCOPE_BY_COUNT };

#define SCOPE_RATE_COUNT (DETECT_KIND_COUNT + 1) /* the judge's kinds, then the path */

/* Half seconds: then nothing is left of the answers whose median it was. */
#define SCOPE_PLACES 5

struct scope_host {
    uint64_t name[SCOPE_BY_COUNT];  /* stands for that of its zone, version; 0: it has none */
    uint32_t group[SCOPE_BY_COUNT]; /* numbers of scope_adopt's */
    bool out;                       /* accused, and out for it */
    bool suspect;                   /* or has a smaller share for it */
    enum scope_kind cut_for;        /* or has it for the sake of its ZONE, VERSION; NONE: not */
    uint32_t marked; /* the half second after the last in which it was past half of the threshold */
    mono_ns asked;   /* it was last asked whose its trouble is, ... */
    mono_ns asked_first;              /* ... and that without a break since */
    struct detect_rate path;          /* requests lately, and segments that were sent to it again */
    struct detect_rate path_just_now; /* the same of less than a second */
    struct detect_rate since[SCOPE_RATE_COUNT]; /* of each rate, what came in the half second */
    double well[SCOPE_BY_COUNT]; /* nats, while its group is held to be bad: it alone is well */
    bool nearer;                 /* in a zone that some other zone is further away than */
    bool known;                  /* |shift| is */
    double shift;                /* natural logarithm: its median to what is usual in its zone */
    double
        places[SCOPE_PLACES]; /* the same to all hosts', less its usual one, lately; NAN: unknown */
};

struct scope_verdict {
    enum scope_kind kind;
    enum scope_sign sign;
    uint32_t group;  /* number of the zone, the version */
    uint32_t groups; /* zones that are bad */
    uint32_t hosts;  /* that show it ... */
    uint32_t of;     /* ... of so many that might */
    double nats;
    double ratio;   /* natural logarithm: so much slower; 0: not by latency */
    double share;   /* of what they were given that failed ... */
    double others;  /* ... and of what the others were */
    double demand;  /* CAPACITY: what is asked of each, to what is usual; 0: not known */
    bool partly;    /* CALLER: some of our loops; what the others see is evidence */
    uint32_t since; /* half second */
};

/* What is wrong with us. */
enum scope_caller {
    SCOPE_CALLER_WELL,
    SCOPE_CALLER_PARTLY, /* some of our loops are late: what they see is no evidence */
    SCOPE_CALLER_LATE,   /* most of what is seen is seen late */
    SCOPE_CALLER_CUT_OFF /* unrelated clusters cannot be reached at once */
};

struct scope_usual {
    double bins[EVIDENCE_CLASS_MAX];      /* what is usual of the hosts' lower median */
    double middle[EVIDENCE_CLASS_MAX];    /* lower median of them ... */
    uint32_t middles[EVIDENCE_CLASS_MAX]; /* ... of so many half seconds */
    uint32_t learnt[EVIDENCE_CLASS_MAX];
    uint32_t age; /* half seconds that it has had hosts, up to SCOPE_LEARNING and one */
};

/* What is asked of a host that gets its whole share. */
struct scope_demand {
    double now;      /* requests in the half second under way */
    double requests; /* lately, of all ... */
    double shares;   /* ... and how many hosts there were for them, each half second */
    double usual;    /* requests of a host and half second */
    uint32_t learnt; /* half seconds */
    bool first;      /* more than usual was asked before all had the same trouble, or as it began */
};

/* How far apart the hosts are while all have the same trouble. */
struct scope_spread {
    double sum;    /* of each host's place times its place SCOPE_PLACES half seconds earlier: */
    double weight; /* the mean is what the places vary by themselves, without chance */
};

/* A zone or version that was bad, and has not shown yet that it is well. */
struct scope_hold {
    bool on;
    struct scope_verdict how; /* when it was last */
    double well;              /* nats, for its hosts' being no more than half as bad, together */
};

struct scope {
    struct detect *judge;
    struct scope_host *hosts;                         /* as the judge's */
    uint64_t names[SCOPE_BY_COUNT][SCOPE_GROUPS_MAX]; /* 0: none */
    struct scope_usual zones[SCOPE_GROUPS_MAX + 1];
    double versions[SCOPE_GROUPS_MAX]; /* natural logarithm: their usual place among the others */
    struct scope_hold holds[SCOPE_BY_COUNT][SCOPE_GROUPS_MAX];
    struct scope_demand demand;
    struct scope_spread spread;
    uint32_t common_since; /* half second, from 1: all have the same trouble; 0: they have not */
    enum scope_caller caller;
    struct scope_verdict now;
    uint32_t until; /* half second up to which it holds though nothing is seen of it any more */
};

/*
 * Zeroed memory; then this, before the judge adopts |count| hosts, and again when they change: what
 * is known of zones and versions stays. |name| of each host is set, and |group| is then.
 */
void scope_adopt(struct scope *s, struct detect *judge, struct scope_host *hosts, uint32_t count);

/* Just before detect_turn, which begins sums anew that many hosts share. */
void scope_mark(struct scope *s);

/* Just after it. */
void scope_turn(struct scope *s, enum scope_caller caller);

/*
 * Just after that: what the judge has learnt is weighed anew by what is known of our own side. What
 * is our own holds against nobody; where segments to a host's peers get lost, connects to it get
 * lost as well.
 */
void scope_amend(const struct scope *s, struct detect *judge);

/*
 * May a run of SCOPE_RUN lost connects of host |index|, or what more it had, be bad luck, and
 * nothing but that, on a link that loses segments?
 */
#define SCOPE_RUN 3
bool scope_may_be_lost(const struct scope *s, uint32_t index);

/* Since then host |index| ended so many requests, and so many segments were sent to it again. */
void scope_learn_path(struct scope *s, uint32_t index, double requests, double retransmits);

/* So many requests went to the hosts since the last turn; not those that were sent again. */
void scope_learn_demand(struct scope *s, double requests);

/* Is our own link what is wrong, so that no wait says anything of a host? */
bool scope_doubts(const struct scope *s);

/* The verdict as of now. */
const struct scope_verdict *scope_look(struct scope *s);

/*
 * As last looked: what host |index| is accused of by |line| is whose? SCOPE_NODE: its own, and it
 * may go. Where many of its like are on the same way, or have not been tried since, the answer is
 * theirs for up to SCOPE_PATIENCE: by then they have come as far, or have not.
 */
enum scope_kind scope_of(struct scope *s, uint32_t index, enum detect_line line);

#define SCOPE_PATIENCE NS_PER_S

/* The same by the verdict alone. */
enum scope_kind scope_says(const struct scope *s, uint32_t index, enum detect_line line);

/* Is host |index| of the zone or version that is bad? */
bool scope_concerns(const struct scope *s, uint32_t index);

#endif
