/* SPDX-License-Identifier: Apache-2.0 */
/* The faults as words: what they are called, which value they take, and reading them as JSON. */
#ifndef LAB_FAULT_KINDS_H
#define LAB_FAULT_KINDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/text.h"
#include "lab/backend_faults.h"

enum fault_value { VALUE_NONE, VALUE_SPAN, VALUE_FACTOR, VALUE_STATUS };

struct fault_kind_row {
    const char *name;
    enum fault_value value;
    const char *example; /* of the value, as JSON */
    bool for_connections;
};

extern const struct fault_kind_row fault_kinds[FAULT_KIND_COUNT];

static inline bool fault_takes_bytes(enum fault_kind k)
{
    return k == FAULT_DRIP || k == FAULT_HEAVY;
}

/*
 * {"fault": "delay", "value": "200ms", "server": 3, "probability": 0.5, "path": "/", "for": "10s",
 * "after": 100}. False: |why| says what is wrong and what to write instead.
 */
bool fault_from_json(struct bytes json, uint32_t servers, struct fault *out, struct text *why);

#endif
