/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A set of HTTP/1.1 servers to be proxied to: answers of any size and delay, a service time, so
 * many workers with a queue, and faults that are switched over a control address.
 */
#ifndef LAB_BACKEND_H
#define LAB_BACKEND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/address.h"
#include "base/text.h"
#include "lab/distribution.h"
#include "lab/loop.h"

#define BACKEND_COUNT_MAX 1000

struct backend_options {
    struct address first; /* port 0: each gets a free one; else consecutive ports */
    uint32_t count;
    bool has_control;
    struct address control;
    uint32_t workers; /* of each server */
    uint32_t queue;
    struct distribution service;
    uint64_t seed;
};

struct backend;

/* Listens. NULL: |why| says what could not be done. */
struct backend *backend_create(struct lab_loop *loop, const struct backend_options *o,
                               struct text *why);

/* Where they listen, as bound. */
void backend_address(const struct backend *b, uint32_t index, struct address *out);
void backend_control_address(const struct backend *b, struct address *out);

/* Closes all. Takes NULL. */
void backend_free(struct backend *b);

#endif
