/* SPDX-License-Identifier: Apache-2.0 */
/* What the demonstration can break, and how it says so. */
#ifndef LAB_DEMO_SCENARIO_H
#define LAB_DEMO_SCENARIO_H

#include <stdint.h>

#include "base/bytes.h"
#include "base/text.h"
#include "lab/demo_score.h"

struct demo_scenario {
    const char *name;
    const char *what;  /* of the bad servers, after their names */
    const char *fault; /* as the control page takes it, but for the server */
    uint32_t bad;      /* so many servers */
    uint32_t seconds;  /* long enough to see it */
    const char *see;   /* what detection does of it */
};

/* Ends with a name of NULL. */
extern const struct demo_scenario demo_scenarios[];

/* NULL: there is none of that name. */
const struct demo_scenario *demo_scenario_find(struct bytes name);

/* The zone of server |i|: "a" (four servers), "b", "c" (three each). */
const char *demo_zone(uint32_t i);

/* The servers that are bad, a bit each; of a single one |drawn| says which. */
uint32_t demo_bad_servers(const struct demo_scenario *s, uint32_t drawn);

/* Both halves side by side, from the moment the fault began. */
void demo_write_scenario(struct text *t, const struct demo_scenario *s, const struct demo_half *off,
                         const struct demo_half *on);

#endif
