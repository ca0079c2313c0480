/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets without a loop: addresses as the kernel wants them, and what is set on each socket. */
#ifndef OS_SOCKETS_H
#define OS_SOCKETS_H

#include <stdbool.h>
#include <stddef.h>

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/address.h"
#include "io/poller.h"

union socket_name {
    struct sockaddr any;
    struct sockaddr_in ipv4;
    struct sockaddr_in6 ipv6;
    struct sockaddr_un local;
};

/* IO_OK and |*out| with its |*len|; IO_INVALID for ADDRESS_NONE and paths that are too long. */
int socket_name_from(const struct address *a, union socket_name *out, socklen_t *len);

/* A unix path is not copied: it gives "". */
void socket_name_to(const union socket_name *n, struct address *out);

/*
 * Non-blocking, close-on-exec, without Nagle's delay, with |o|'s keep-alive (|o| may be NULL). The
 * descriptor, or a negative io_error.
 */
int socket_to_connect(const struct address *to, const struct connect_options *o);

/* Bound and listening; a stale unix socket at the path is replaced. The descriptor, or an io_error.
 */
int socket_to_listen(const struct address *at, const struct listen_options *o);

/* The error that waits on the socket, as an io_error; it is taken off. */
int socket_error(int fd);

/* Where it is bound. IO_OK or an io_error. */
int socket_local(int fd, struct address *out);

/*
 * True where a TCP socket got itself as its peer: on one machine a connect to a port of the
 * ephemeral range that nobody listens at may be given that very port to come from.
 */
bool socket_met_itself(int fd, uint16_t port);

/*
 * From now on the listening TCP socket takes part in no new handshake: SYNs are dropped, so that
 * the client's kernel asks again when the socket is closed and another one may have taken its
 * place. Handshakes under way go on.
 */
void socket_turn_away(int fd);

/* close() will send a RST. */
void socket_close_hard(int fd);

#endif
