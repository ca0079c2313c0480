/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io/poller.h on epoll.
 *
 * Each link is registered once, edge-triggered, for everything; what is readable is remembered in
 * the link. So a request costs no epoll_ctl, and a read that came back short needs no second one to
 * see that the socket is empty: one epoll_wait, one recv, one send.
 */
#ifndef OS_POLLER_H
#define OS_POLLER_H

#include <stddef.h>
#include <stdint.h>

#include "io/poller.h"

/* IO_OK and |*out|, or an io_error. */
int os_poller_create(struct poller **out);

/* Closes what is still open on it, without a word to the owners. Takes NULL. */
void os_poller_free(struct poller *p);

/* Could a poller listen at |at|, TCP, now? IO_OK or the io_error that it would get. */
int os_may_listen(const struct address *at);

struct os_poller_sizes {
    size_t link;          /* bytes of ours for each open link */
    size_t poller;        /* bytes for the poller with its buffers */
    uint64_t links;       /* open now */
    uint64_t allocations; /* made for links so far: stands still in steady state */
};

void os_poller_sizes(struct poller *p, struct os_poller_sizes *out);

#endif
