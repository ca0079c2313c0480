/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files that make up the backend: its servers, and one connection's request. */
#ifndef LAB_BACKEND_INTERNAL_H
#define LAB_BACKEND_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/rng.h"
#include "base/slab.h"
#include "base/slots.h"
#include "lab/backend.h"
#include "lab/backend_faults.h"
#include "lab/served.h"

#define BACKEND_NAME_MAX 64

/* What GET /stats tells of a server. */
#define BACKEND_COUNTS(X)                                                                          \
    X(accepted)                                                                                    \
    X(accept_resets)                                                                               \
    X(requests)                                                                                    \
    X(answered_2xx)                                                                                \
    X(answered_3xx)                                                                                \
    X(answered_4xx)                                                                                \
    X(answered_5xx)                                                                                \
    X(queue_full)                                                                                  \
    X(resets_mid_body)                                                                             \
    X(held)                                                                                        \
    X(abandoned)

#define X(name) uint64_t name;
struct backend_counts {
    BACKEND_COUNTS(X)
};
#undef X

struct backend_server {
    struct backend *backend;
    uint32_t index;
    struct address address;
    char name[BACKEND_NAME_MAX];
    struct listener *listener; /* NULL: it refuses */
    struct appointment retry;  /* to accept or to listen again */
    struct slots slots;
    struct list connections;
    uint32_t open; /* connections */
    struct backend_counts counts;
};

struct backend {
    struct lab_loop *loop;
    struct backend_options options;
    struct rng rng;
    struct fault_set faults;
    struct appointment expiry; /* of the fault that ends first */
    struct slab slab;          /* of backend_conn */
    struct listener *control;  /* NULL: none */
    struct appointment control_retry;
    struct list control_connections;
    struct backend_server *servers;
};

enum page { PAGE_TEXT, PAGE_DELAY, PAGE_STATUS, PAGE_ECHO, PAGE_BYTES, PAGE_HEALTH, PAGE_UNKNOWN };

/* How far a request has come. */
enum work {
    WORK_NONE,
    WORK_READING,   /* its body */
    WORK_QUEUED,    /* for a worker */
    WORK_SERVICE,   /* until |due| */
    WORK_HELD,      /* by a fault, until |due| at the latest */
    WORK_ANSWERING, /* its body is going out; |due| for the next drip */
    WORK_RESETTING  /* at |due| */
};

struct backend_conn {
    struct served served;
    struct backend_server *server;
    struct list link;
    struct list job; /* on the queue of |server->slots| */
    struct appointment due;
    struct request_plan plan;
    enum work work;
    enum page page;
    bool in_slot;
    bool orphan;          /* the peer has gone; a worker is still at it */
    uint64_t number;      /* of /delay/5, /status/503, /bytes/1024 */
    uint64_t left;        /* bytes of the body still to be written */
    char echo_lines[640]; /* field lines of the answer to /echo */
    bool stated_length;   /* of the request */
    uint64_t length;
};

/* Which page |path| is, with its number; PAGE_UNKNOWN for what is none. */
enum page backend_page(struct bytes path, uint64_t *number);

/* What an answer without faults has as status and, unless streamed, as body length. */
uint32_t backend_page_status(const struct backend_conn *c);
struct bytes backend_page_text(const struct backend_conn *c, char *room, size_t size);

/* A connection was accepted. */
void backend_conn_open(struct backend_server *server, struct link *link);

/* Resets the connections held by faults that are set no more. */
void backend_release_held(struct backend *b);

/* Frees all connections of a server, without a word to their peers. */
void backend_drop_connections(struct backend_server *server);

/* Faults were added, cleared or ran out: opens and closes ports, lets connections go. */
void backend_faults_changed(struct backend *b);

/* A fault may now end earlier than was known. */
void backend_arm_expiry(struct backend *b);

/* The control address: IO_OK or an io_error. */
int backend_control_open(struct backend *b);
void backend_control_close(struct backend *b);

#endif
