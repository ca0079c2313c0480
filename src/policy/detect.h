/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The adaptive judge of one cluster: which host is bad against its peers, said with evidence in
 * nats. Seven sums a host, each a CUSUM: they rise where what is seen is likelier of a bad host
 * than of a good one, fall to zero otherwise, and accuse past one threshold. Latency is judged by
 * where an answer stands among the peers' latest (peer_pool.h), never by a limit; failures against
 * the peers' own rate. What is common to the fleet accuses nobody.
 *
 * Time is cut into half seconds. Failures are weighed as they come, latencies at the end of each.
 * Same samples in the same order, same findings (law 9). Pure; control thread only.
 *
 * Sources: E. S. Page, "Continuous inspection schemes", 1954 (CUSUM); reference/detection.md B17 to
 * B19 for the lines, their constants and what they were measured to reach.
 */
#ifndef POLICY_DETECT_H
#define POLICY_DETECT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/units.h"
#include "policy/evidence.h"
#include "policy/knee.h"
#include "policy/peer_pool.h"

#define DETECT_BUCKET  (NS_PER_S / 2)
#define DETECT_GLANCE  (NS_PER_S / 10)
#define DETECT_GLANCES 5 /* in a half second, its end included */

/* Constant after DETECT_, name as shown, what it says. */
#define DETECT_LINES(X)                                                                            \
    X(RANK, rank)               /* its answers come later than those of its peers */               \
    X(TAIL, tail)               /* too many of them come very much later */                        \
    X(STALLS, stalls)           /* a few of them come later than any ought to, again and again */  \
    X(ERRORS_SOME, errors_some) /* some of them fail: one in twenty, or four times the peers' */   \
    X(ERRORS_MANY, errors_many) /* half of them fail */                                            \
    X(CONNECTS, connects)       /* half of the connects fail */                                    \
    X(AGE, age)                 /* requests stay open for longer than nearly all others take */

#define X(constant, name) DETECT_##constant,
enum detect_line { DETECT_LINES(X) DETECT_LINE_COUNT };
#undef X

const char *detect_line_text(enum detect_line line);

struct detect_config {
    double threshold; /* nats */
    bool latency;
    bool errors;
    bool connections;
};

#define DETECT_THRESHOLD 11.0 /* unless a rate of false alarms is asked for */

/* Numbers of the attempts lately seen, each half second weighing less. */
struct detect_rate {
    double tries;
    double bad;
};

#define DETECT_TRIES 3

enum detect_kind { DETECT_OF_ERRORS, DETECT_OF_CONNECTS, DETECT_OF_AGE, DETECT_KIND_COUNT };

/*
 * What one half second made of a sum that was |from| at its begin. By sample: however many there
 * were, min(max(from + gain, least), most). By the half second (rank, tail, stalls): the same of
 * min(gain, detect_step_share of the threshold), with |least| 0.
 */
struct detect_step {
    uint32_t number;
    double from;
    double gain; /* nats, before any cap */
    double least;
    double most;
};

#define DETECT_STEP_SHARE  0.26 /* so that latency alone takes four half seconds */
#define DETECT_STALL_SHARE 0.28 /* and four stalls are enough, with what is well between them */
#define DETECT_SUM_MOST    1.5  /* thresholds: no sum grows beyond, so that each can fall again */

/* One half second as it is kept. */
struct detect_bucket {
    uint32_t number;
    float from[DETECT_LINE_COUNT];
    float gain[DETECT_LINE_COUNT];
    float least[DETECT_LINE_COUNT];
    float most[DETECT_LINE_COUNT];
};

/* Answers that come later than any ought to: by their peers' p99, and of those the very long ones.
 */
#define DETECT_STALL_KINDS 2

struct detect_stalls {
    uint32_t answers;
    uint32_t seen[DETECT_STALL_KINDS];
    uint32_t latest; /* half second */
    uint32_t pause;  /* the longest from one to the next, half seconds */
};

struct detect_usual {
    double share;
    uint32_t known; /* answers that it is the mean of, up to a number */
};

#define DETECT_HISTORY 16 /* half seconds that are kept to be shown */

/* The judge's memory of one host. Zeroed memory is that of a new one. */
struct detect_host {
    uint32_t stratum;   /* hosts of another one are no peers in latency */
    bool serving;       /* requests go to it as to others: its peers are compared with it */
    bool reports;       /* it says how loaded it is: |utilization| */
    uint32_t cut;       /* thousandths of a fair share that it does not get */
    uint32_t moved;     /* ... that it lost so lately that no report of the others knows of it */
    double utilization; /* share of its capacity, by its own word */
    double sum[DETECT_LINE_COUNT];
    mono_ns risen[DETECT_LINE_COUNT];               /* of failures: the sum was last nothing */
    mono_ns tried[DETECT_KIND_COUNT][DETECT_TRIES]; /* the latest tries, latest first */
    mono_ns failed[DETECT_KIND_COUNT];              /* last */
    mono_ns refused;                                /* a connect, last */
    uint32_t unanswered;      /* connects without any answer, since CONNECTS began to rise ... */
    double unanswered_weight; /* ... and the nats that they gave */
    double loss;              /* how likely is such a one of any host; detect_weigh_lost */
    double from[DETECT_LINE_COUNT]; /* of the half second under way, here and the next three */
    double gain[DETECT_LINE_COUNT];
    double least[DETECT_LINE_COUNT];
    double lost[DETECT_LINE_COUNT]; /* what |most| is less than the most that a sum can be */
    struct detect_rate lately[DETECT_KIND_COUNT];   /* some two seconds */
    struct detect_rate just_now[DETECT_KIND_COUNT]; /* less than one */
    double seen[EVIDENCE_CLASS_MAX];                /* latencies lately, by class */
    int16_t away[EVIDENCE_CLASS_MAX];    /* bins: so much later its answers come for where it is */
    uint16_t median[EVIDENCE_CLASS_MAX]; /* of its latest ones less that: half bins, from 1; 0: not
                                            known */
    double offset;      /* its usual place among its peers, in standard deviations */
    uint32_t offset_of; /* answers of its first time that it was made of */
    double usual_slow;  /* its usual share of very late answers */
    double usual_stalls[DETECT_STALL_KINDS]; /* and of those that are later still */
    struct detect_stalls stalls;             /* since the sum of that line was last nothing */
    uint32_t placed;                         /* answers ranked in the half second under way */
    uint32_t told_late;  /* requests that were very late while they were open: they count already */
    double usual;        /* its usual |ratio| */
    uint32_t settled;    /* half seconds that |usual| is made of, up to a number */
    double deviation;    /* of |ratio| from |usual|, the mean of them */
    double ratio;        /* natural logarithm: its median to its peers' */
    double gate;         /* |ratio| has to reach it */
    uint32_t late_since; /* tenth since which |ratio| is past |gate|; 0: it is not */
    uint32_t slow_since; /* tenth since which it is three times slower; 0: it is not */
    bool rated;          /* |ratio| and |gate| are of now */
    double ratio_sum;    /* only while |ratio| is worked out */
    double ratio_weight;
    uint32_t history_next;
    struct detect_bucket history[DETECT_HISTORY];
    struct peer_series *series[EVIDENCE_CLASS_MAX];              /* NULL: nothing seen */
    uint64_t counts[EVIDENCE_CLASS_MAX][EVIDENCE_OUTCOME_COUNT]; /* attempts, ever; detect_count */
};

void detect_host_release(struct detect_host *h);

#define DETECT_STRATUM_MAX 16

struct detect_class {
    double typical;   /* median of the hosts' medians, bins; negative: not known */
    double baseline;  /* what is usual of it; negative: not known */
    double deviation; /* natural logarithm: of |typical| from |baseline|, the mean */
};

/* The fleet as a whole. */
struct detect_fleet {
    bool slow;           /* the answers of most hosts come later than usual */
    double ratio;        /* natural logarithm: typical latency to the usual one, the mean */
    uint32_t calm;       /* half seconds since most of it was slow */
    uint32_t slow_since; /* number of the half second */
};

struct detect {
    struct detect_config config;
    struct detect_host **hosts;
    uint32_t count;
    uint32_t bucket;                                /* number of the half second under way */
    mono_ns now;                                    /* of the last sample */
    uint32_t tenth;                                 /* of a second, from 1 */
    uint32_t learnt;                                /* half seconds with latencies so far */
    struct detect_rate lately[DETECT_KIND_COUNT];   /* of all serving hosts */
    struct detect_rate just_now[DETECT_KIND_COUNT]; /* the same */
    struct detect_class classes[EVIDENCE_CLASS_MAX][DETECT_STRATUM_MAX];
    struct peer_pool *pools[EVIDENCE_CLASS_MAX][DETECT_STRATUM_MAX]; /* NULL: nothing seen */
    struct detect_fleet fleet;
    struct knee knee;
    bool saturated;   /* most requests have to queue at the hosts */
    bool disturbed;   /* some host is out of line: what is usual is not to be learnt from it */
    double deviation; /* natural logarithm: of hosts from their peers in normal times, the mean */
    struct detect_usual stalls[DETECT_STALL_KINDS]; /* of all answers */
    uint32_t p99[EVIDENCE_CLASS_MAX];               /* of the hosts, microseconds; 0: not known */
    uint32_t late_after[EVIDENCE_CLASS_MAX];        /* microseconds; 0: not known */
};

/* Zeroed; then detect_adopt. */
void detect_init(struct detect *d);
void detect_release(struct detect *d);

/*
 * The cluster's present hosts, who keep what is remembered of them; called again when they or the
 * configuration change. What is pointed to is the caller's. |stratum| of each is set.
 */
void detect_adopt(struct detect *d, const struct detect_config *config, struct detect_host **hosts,
                  uint32_t count);

/* From now on the host serves as others do, or no more. */
void detect_set_serving(struct detect *d, uint32_t index, bool serving);

/* Its evidence is void: it was put out, or is back and on its own merits. */
void detect_acquit(struct detect *d, uint32_t index);

/*
 * What its answers take longer than its peers' for where it is, by no fault of its own, is taken
 * off before it is compared with them: bins; all that is remembered of it is as if it always had
 * been.
 */
void detect_set_away(struct detect *d, uint32_t index, uint32_t class, int32_t bins);

/* What was late was a connection's fault: as much as its sum is taken off it, and shown so. */
void detect_clear_age(struct detect *d, uint32_t index);

/* How late its answers come says nothing yet: it is not known where it is. */
void detect_begin_ranks(struct detect *d, uint32_t index);

/* The median of its latest answers as they came, bins. Only where |median| is known. */
double detect_median(const struct detect_host *h, uint32_t class);

/* One attempt of host |index| is counted, whether or not it is evidence. */
void detect_count(struct detect *d, uint32_t index, const struct evidence *s);

/* One sample of host |index|; in the order of their times. */
void detect_learn(struct detect *d, uint32_t index, const struct evidence *s);

/*
 * Of the segments to and from host |index|'s peers that share is lost: a connect that is not
 * answered says no more against it than against any host. What such connects were weighed before
 * that was known is weighed anew.
 */
void detect_weigh_lost(struct detect *d, uint32_t index, double loss);

/* What |times| such connects weigh by that. */
double detect_weight_of_lost(const struct detect *d, uint32_t index, uint32_t times);

/* Just after detect_turn: what was waited for was no host's fault, and holds against none. */
void detect_void_waits(struct detect *d);

/* Was host |index| lost from sight to new connections alone, since CONNECTS began to rise? */
bool detect_only_loses(const struct detect *d, uint32_t index);

/*
 * The half second is over: latencies are weighed, the fleet is looked at, usual values are learnt.
 * Where no sample came at all, as well.
 */
void detect_turn(struct detect *d);

/*
 * A tenth of a second is over, if no half second: where a host stands accused and it is not known
 * yet how much slower it is, that is worked out without waiting for the turn.
 */
void detect_glance(struct detect *d);

/* For how many tenths of a second the host has been three times slower than its peers, or more. */
uint32_t detect_much_slower(const struct detect *d, uint32_t index);

/* Why an accusation does not hold. */
enum detect_guard {
    DETECT_HOLDS,
    DETECT_NOT_RATED, /* latency: too few peers, or too few answers */
    DETECT_GATE,      /* latency: not late enough, whatever the ranks say */
    DETECT_CROWD,     /* too many hosts look alike */
    DETECT_FLEET      /* the fleet is slow: latency and what follows from it accuse nobody */
};

const char *detect_guard_text(enum detect_guard g);

/* Is |line| weighed by the half second, and is it about latency? */
bool detect_by_half_seconds(enum detect_line line);
bool detect_of_latency(enum detect_line line);

/* Of the threshold: what a half second adds at most, by a line that is weighed so. */
double detect_step_share(enum detect_line line);

/* Nats against the host, the half second under way included. */
double detect_sum(const struct detect *d, uint32_t index, enum detect_line line);

/* Is |line| past the threshold at host |index|; is any? */
bool detect_accuses(const struct detect *d, uint32_t index, enum detect_line line);
bool detect_accuses_at_all(const struct detect *d, uint32_t index);

/* And if it is, does the accusation hold? */
enum detect_guard detect_guard_of(const struct detect *d, uint32_t index, enum detect_line line);

/*
 * Where a latency stands among those of the host's peers, in standard deviations; 0: in the middle,
 * or there are too few to tell.
 */
double detect_place(const struct detect *d, uint32_t index, uint32_t class, uint32_t us);

/* For how many tenths of a second it has been past the gate; one look is not enough. */
uint32_t detect_late_for(const struct detect *d, uint32_t index);

/* Does |g| say anything about accusations by |line|, and is it against one of host |index| now? */
bool detect_guard_asked(enum detect_line line, enum detect_guard g);
bool detect_guard_holds(const struct detect *d, uint32_t index, enum detect_line line,
                        enum detect_guard g);

/* How many hosts have more than half of the threshold against them. */
uint32_t detect_alike(const struct detect *d, enum detect_line line);

/* More than that share of the hosts so: nobody is blamed. */
double detect_crowd_share(enum detect_line line, bool fleet_slow);

/* The |n|-th half second back from the one under way, which is 0. False: it is not kept. */
bool detect_past(const struct detect *d, uint32_t index, enum detect_line line, uint32_t n,
                 struct detect_step *out);

/*
 * How loaded the others would be without it: by what they report, where half of them do; else 1 is
 * where their latency begins to grow (knee.h).
 */
double detect_load_without(const struct detect *d, uint32_t index);

/*
 * The longest that the host paused from one stall to the next, where stalls are what is most
 * against it; else 0. And may the next one still come: has it gone without one for less than that
 * and a quarter?
 */
span_ns detect_pause(const struct detect *d, uint32_t index);
bool detect_may_stall(const struct detect *d, uint32_t index);

/* Failures the host's peers have, as a share; at least a thousandth. */
double detect_peers_rate(const struct detect *d, uint32_t index, enum detect_kind kind);

#endif
