/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's log in the simulator: counted by event, part of the digest, the last lines kept. */
#ifndef SIM_LOG_H
#define SIM_LOG_H

#include <stdint.h>

#include "io/log.h"
#include "sim/world.h"

#define SIM_LOG_EVENTS 64
#define SIM_LOG_LINES  64
#define SIM_LOG_LINE   320

struct sim_log {
    struct log base; /* first */
    struct world *world;
    uint64_t levels[LOG_LEVEL_COUNT];
    uint32_t event_count;
    const char *events[SIM_LOG_EVENTS]; /* constants of the callers */
    uint64_t counts[SIM_LOG_EVENTS];
    uint64_t lines; /* written so far; the last SIM_LOG_LINES are kept */
    char last[SIM_LOG_LINES][SIM_LOG_LINE];
};

void sim_log_init(struct sim_log *l, struct world *w);

/* How often |event| was logged. */
uint64_t sim_log_count(const struct sim_log *l, const char *event);

/* The |back|-th line from the end (0: the last); "" where there is none. "12.004 endpoint.ejected
 * ..." */
const char *sim_log_line(const struct sim_log *l, uint64_t back);

#endif
