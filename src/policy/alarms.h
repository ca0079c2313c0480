/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many accusations are false? One begins where a line of evidence passes the threshold at a
 * host, and is put to the test by what is seen from then on: if the sum grows by half of the
 * threshold more, it is borne out; if it falls to a quarter of it before, it was a false alarm. On
 * evidence of nothing the first happens once in e^(threshold / 2) times.
 *
 * Source: A. Wald, "Sequential tests of statistical hypotheses", 1945. Pure.
 */
#ifndef POLICY_ALARMS_H
#define POLICY_ALARMS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/units.h"

/* One line at one host. Zeroed memory: it is below the threshold. */
enum alarm { ALARM_NONE, ALARM_OPEN, ALARM_SETTLED /* one way or the other; it is not over */ };

/* The line is past the threshold. True: it has only just passed it. */
bool alarm_raise(enum alarm *a);

/* Borne out, or not to be asked: all hosts have the same. */
void alarm_settle(enum alarm *a);

/* What there is of it by now. True: it was a false one. */
bool alarm_follow(enum alarm *a, double sum, double threshold);

#define ALARMS_HOURS 24

/* Those of a cluster within a day. Zeroed memory knows of none. */
struct alarms {
    bool began;
    mono_ns since;
    uint64_t hour; /* number of the one under way */
    uint32_t by_hour[ALARMS_HOURS];
};

/* A false one; and time alone. */
void alarms_add(struct alarms *a, mono_ns now);
void alarms_turn(struct alarms *a, mono_ns now);

/* How many a day there are; of less than an hour nothing is known, and it counts as one. */
double alarms_a_day(const struct alarms *a, mono_ns now);

#endif
