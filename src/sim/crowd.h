/* SPDX-License-Identifier: Apache-2.0 */
/* A crowd of clients: requests of all shapes at random instants, whatever becomes of earlier ones.
 */
#ifndef SIM_CROWD_H
#define SIM_CROWD_H

#include "sim/client.h"

/* Permilles are drawn for each request. */
struct crowd_habits {
    uint32_t rate; /* requests a second, Poisson */
    uint32_t post_permille;
    uint32_t head_permille;
    uint32_t chunked_permille;  /* of uploads, and of answers */
    uint32_t to_close_permille; /* of answers */
    uint32_t large_permille;
    uint32_t small; /* bytes of a body, at most */
    uint32_t large;
    uint32_t cancel_permille;
    span_ns cancel_within;
    uint32_t slow_upload_permille;
    uint32_t endless_permille; /* of slow uploads */
    uint32_t slow_read_permille;
    uint32_t close_permille;
    uint32_t http10_permille;
    uint32_t expect_permille; /* of uploads */
};

struct crowd {
    struct client *client;
    struct crowd_habits habits;
    struct world_event next;
    mono_ns until;
    uint64_t asked;
};

extern const struct crowd_habits crowd_usual;

/* Starts at once, asks until |until|. */
void crowd_start(struct crowd *c, struct client *client, const struct crowd_habits *habits,
                 mono_ns until);
/* |until| was put off. */
void crowd_go_on(struct crowd *c);
void crowd_stop(struct crowd *c);

#endif
