/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an operator does to a host by hand. A drained host gets no new requests and no part in
 * panic; what is under way on it goes on, its connections are closed as they fall idle, and it is
 * logged when nothing is left. That is no ejection and is counted as none; it lasts until it is
 * taken back or the host is no longer configured. Control thread only.
 */
#ifndef CONTROL_HOST_HAND_H
#define CONTROL_HOST_HAND_H

#include <stdint.h>

#include "base/text.h"
#include "base/wheel.h"
#include "io/log.h"
#include "io/mailbox.h"
#include "model/snapshot.h"

enum host_deed { HOST_DEED_DRAIN, HOST_DEED_UNDRAIN, HOST_DEED_EJECT, HOST_DEED_PARDON };

struct host_order {
    enum host_deed deed;
    struct bytes cluster; /* its name, or its alias */
    struct bytes host;    /* as shown: "127.0.0.1:9001" */
};

enum host_answer {
    HOST_ANSWER_DONE,
    HOST_ANSWER_ALREADY, /* it was so before */
    HOST_ANSWER_REFUSED, /* by a guard, which is said */
    HOST_ANSWER_NO_CLUSTER,
    HOST_ANSWER_NO_HOST
};

struct host_hand;
struct outlier_watch;

struct host_hand_setup {
    struct wheel *wheel;
    struct log *log;
    struct outlier_watch *watch; /* ejections by hand go through its judge, and its guards */
    struct mailbox *const *workers;
    uint32_t worker_count;
};

/* What |setup| points to outlives it. NULL: no memory. */
struct host_hand *host_hand_create(const struct host_hand_setup *setup);
void host_hand_free(struct host_hand *h);

/* |s| is in force from now on and outlives its successor's adoption. */
void host_hand_adopt(struct host_hand *h, const struct snapshot *s);

/* Does it, and puts into |said| a line for the operator, what is left to wait for. */
enum host_answer host_hand_obey(struct host_hand *h, const struct host_order *order,
                                struct text *said, mono_ns now);

/* Attempts under way or waiting, and connections open, on all workers. */
struct host_rest {
    uint64_t requests;
    uint64_t connections;
};

struct host_rest host_rest_of(const struct host_state *h);

#endif
