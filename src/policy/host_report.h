/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a host says of its own load (ORCA). Written by all workers, without locks: shares are
 * smoothed, and of two that write at once one is lost; of named values all those of one report are
 * there, or those of another. Pure.
 */
#ifndef POLICY_HOST_REPORT_H
#define POLICY_HOST_REPORT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/load_report.h"
#include "base/units.h"

/* An older word is none. */
#define HOST_REPORT_FRESH (30 * NS_PER_S)

#define HOST_REPORT_WORDS ((LOAD_NAME_MAX + 1) / 8)

/* A name and its value. */
struct host_report_named {
    _Atomic uint64_t name[HOST_REPORT_WORDS]; /* ends in a NUL */
    _Atomic uint64_t value;                   /* a double's bits */
};

/* Zeroed memory is a host that has said nothing. Fields only touched by host_report.c. */
struct host_report {
    _Atomic uint32_t cpu; /* millionths, and one more; 0: not said. Smoothed, here and below */
    _Atomic uint32_t memory;
    _Atomic uint32_t application;
    _Atomic uint32_t version; /* odd: the named ones are being written */
    _Atomic uint64_t at;      /* the latest one; 0: never */
    _Atomic uint32_t named_count;
    struct host_report_named named[LOAD_NAMED_MAX];
};

void host_report_learn(struct host_report *h, const struct load_report *said, mono_ns now);

/* What it said lately, shares smoothed. False: nothing, or too long ago. */
bool host_report_read(const struct host_report *h, struct load_report *out, mono_ns now);

/*
 * The share of its capacity that is used: the application's own word, else that of its processor.
 * Negative: it said neither lately.
 */
double host_report_utilization(const struct host_report *h, mono_ns now);

#endif
