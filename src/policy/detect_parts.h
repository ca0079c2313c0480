/* SPDX-License-Identifier: Apache-2.0 */
/* The constants of the adaptive judge, each said once. For detect*.c only. */
#ifndef POLICY_DETECT_PARTS_H
#define POLICY_DETECT_PARTS_H

#include "policy/detect.h"

/* --- failures; reference/detection.md B18, "Errors" --- */

#define RATE_LEAST 0.001 /* nobody fails less than that */
#define BAD_SOME   0.05  /* shares of failures that the lines are made for */
#define BAD_MANY   0.5
#define BAD_TIMES  4.0 /* and so often more than usual */

/* A share that is not even so many times what is common is no sign of a bad host. */
#define BAD_OVER_USUAL 2.0
#define NATS_OF_COMMON 0.1

#define SATURATED 1.0 /* load: the knee */

/* --- in-flight age: late is beyond a hundredth of the peers --- */

#define LATE_LEAST     0.01
#define LATE_BINS      32      /* x 4, above the peers' p99 */
#define LATE_US_LEAST  20000.0 /* below it may be our own scheduling */
#define LATE_KNOWN     100     /* latencies, before a p99 is one */
#define LATE_HOSTS_MAX 128     /* with more hosts, none of them alone is a hundredth */

/* --- latency; B18 variant F, B19 --- */

#define PLACE_MOST   3.0 /* a rank says no more than that */
#define PLACE_DESIGN 0.5 /* half of the shift the line is made for: one standard deviation */
#define PLACED_FEW   8   /* answers of a half second whose being in time is forgotten */
#define OFFSET_MOST  1.5
#define OFFSET_RATE  3e-4 /* a sample */
#define OFFSET_KNOWN 50   /* samples that none at all is worth at first */
#define OTHERS_LEAST 20   /* latencies of others to be ranked among */

#define TAIL_BINS  21    /* x 2.5, above the peers' p99 */
#define TAIL_LEAST 0.005 /* share of very late answers that is everybody's */

/*
 * As late as what counts while it is open (LATE_BINS), however rare; and four times later still.
 * Everybody's share is learnt from all hosts, beginning with one in two hundred, in five thousand.
 */
#define LONG_BINS      64 /* x 16, above the peers' p99 */
#define STALL_BAD      0.01
#define STALL_LEAST    0.0005
#define STALL_MOST     0.1
#define STALL_AT_FIRST 0.005
#define STALL_KNOWN    500 /* answers that it is worth at first */
#define LONG_LEAST     0.0001
#define LONG_AT_FIRST  0.0002
#define LONG_KNOWN     5000
#define STALL_MEMORY   20000 /* answers that it is the mean of */
#define STALL_PENDING  2000  /* of one host, until they count as usual, whatever its sum */

enum detect_stall { DETECT_IN_TIME, DETECT_STALLED, DETECT_STALLED_LONG };

enum detect_stall detect_stall_of(uint32_t us, uint32_t p99);
void detect_learn_stall(struct detect *d, struct detect_host *h, enum detect_stall stall);

/* It was told while it was open that it had stalled: this is its end. */
void detect_learn_stall_end(struct detect *d, struct detect_host *h, enum detect_stall stall);

/* At the end of a half second: what hosts had that nobody is suspected for is usual. */
void detect_settle_stalls(struct detect *d);

/* What is taken off a sum that is zero is not held against what comes after it, beyond |debt|. */
void detect_add_later(struct detect_host *h, enum detect_line line, double gain, double debt);

#define TOLD_LATE_MOST 1000 /* more are counted twice */

/* --- how far a host is from its peers --- */

#define RATIO_LEAST        0.4054651081081644 /* ln 1.5 */
#define DEVIATIONS         3.5
#define DEVIATION_SURE     1.2533 /* mean absolute deviation to standard deviation */
#define DEVIATION_AT_FIRST 0.12   /* mean absolute: as of medians of 20 where sigma is 0.5 */
#define USUAL_RATE         0.01   /* a half second: what is usual follows in about a minute */
#define SETTLED            100    /* half seconds, after which that is the rate */
#define DEVIATION_KNOWN    20     /* half seconds that the first one is worth */
#define OWN_AT_FIRST       0.6931471805599453 /* ln 2 */
#define OWN_SHARE          0.75 /* of the gate: what is left of |ratio| less the usual one reaches it */
#define ANSWERS_LEAST      5 /* of a host, for a median */

bool detect_past_gate(const struct detect_host *h);
#define LATE_TENTHS 1 /* that it is past the gate: one look is not enough */

/* --- three times slower, as far as the noise of a median lets us see --- */

#define MUCH_SLOWER      1.0986122886681098 /* ln 3 */
#define MUCH_BEGINS      2.2                /* mean deviations that it may fall short of that ... */
#define MUCH_GOES_ON     3.0                /* ... and once it has begun */
#define SURE_TENTHS      20                 /* it stays so for that long */
#define GLANCE_HOSTS_MAX 256                /* with more, what a glance costs is not worth it */

/* May |h| be learnt from as it is? Not while its answers are late by all signs. */
bool detect_seems_well(const struct detect *d, const struct detect_host *h);

/* Hosts are not all of one make: what one is from the first, and is not too much, is its own. */
bool detect_is_settling(const struct detect_host *h);

/* Failures need no half second to be believed, but the sum does not grow beyond all bounds. */
void detect_add_now(struct detect *d, struct detect_host *h, enum detect_line line, double gain);

/* --- the fleet --- */

#define FLEET_DEVIATION_AT_FIRST 0.03

#define FLEET_ON           0.26236426446749106 /* ln 1.3 */
#define FLEET_OFF          0.1823215567939546  /* ln 1.2 */
#define FLEET_SURE         0.6931471805599453  /* ln 2: slow, however much it wanders */
#define FLEET_RISING       0.13976194237515868 /* ln 1.15: it may be about to */
#define FLEET_CALM         4                   /* half seconds below, until it is over */
#define FLEET_WINDOW       4            /* half seconds whose answers count, where there are many */
#define BASELINE_RATE      (1.0 / 600)  /* a half second: it follows in five minutes */
#define BASELINE_RATE_SLOW (1.0 / 2400) /* while the fleet is slow: in twenty */
#define LEARNING           4            /* half seconds in which the first baseline is made ... */
#define SETTLING           40           /* ... and in which it is a mean, whatever comes */

/* Fleet, ratios and gates as they are now; with |learns|, what is usual and what is late, too. */
enum compare { COMPARE_ONLY, COMPARE_AND_LEARN };
void detect_compare(struct detect *d, enum compare what);

/* Alike: more than that share of the hosts past half of the threshold. */
#define CROWD_SHARE       0.3
#define CROWD_SHARE_APART 0.5

/* Weights of what was seen, from one half second to the next. */
#define LATELY_KEEPS   0.8
#define JUST_NOW_KEEPS 0.3
#define SEEN_LEAST     0.05

#endif
