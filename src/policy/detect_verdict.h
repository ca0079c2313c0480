/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is done on which evidence: an accusation of the judge (detect.h) becomes nothing, a smaller
 * share of the requests, or an ejection, which the guards of ejection (outlier_judge.h) may still
 * keep from being done. Latency alone makes a suspect; it ejects where another kind of evidence
 * rises with it, or where the host is three times slower and stays so. Pure.
 *
 * Source: reference/detection.md B19, "What to decide on what evidence".
 */
#ifndef POLICY_DETECT_VERDICT_H
#define POLICY_DETECT_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

#include "policy/detect.h"
#include "policy/detection.h"

enum verdict_deed {
    VERDICT_NOTHING, /* the accusation does not hold: |guard| */
    VERDICT_SUSPECT, /* its share is cut to |share| */
    VERDICT_EJECT
};

struct verdict {
    enum verdict_deed deed;
    enum detect_guard guard;
    bool full;      /* it would be ejected, but the others could not carry its load */
    uint32_t share; /* thousandths of a fair one */
};

/* |line| accuses host |index|. */
struct verdict verdict_of(const struct detect *d, const struct detection_config *config,
                          uint32_t index, enum detect_line line);

/* What it asks by the way: does |line| eject in that profile, and is there enough of it? */
bool verdict_may_eject(enum detection_profile profile, enum detect_line line);
bool verdict_is_enough(const struct detect *d, uint32_t index, enum detect_line line);

#endif
