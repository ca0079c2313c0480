/* SPDX-License-Identifier: Apache-2.0 */
/* What can go wrong below the io interfaces, in words the layers above understand. */
#ifndef IO_ERROR_H
#define IO_ERROR_H

enum io_error {
    IO_OK = 0,
    IO_REFUSED = -1,        /* nobody listens there */
    IO_RESET = -2,          /* the peer reset the connection */
    IO_CLOSED = -3,         /* written to after the peer closed (EPIPE) */
    IO_UNREACHABLE = -4,    /* no route, network or host down */
    IO_TIMED_OUT = -5,      /* the kernel gave up (ETIMEDOUT) */
    IO_NO_DESCRIPTORS = -6, /* EMFILE, ENFILE: ours, not the peer's fault */
    IO_NO_MEMORY = -7,      /* ENOMEM, ENOBUFS */
    IO_NO_PORTS = -8,       /* no local port left (EADDRNOTAVAIL on connect) */
    IO_ADDRESS_IN_USE = -9, /* on listen */
    IO_DENIED = -10,        /* EACCES, EPERM */
    IO_NOT_FOUND = -11,     /* no such file, no such name */
    IO_NO_SPACE = -12,      /* disk full, quota, file too large */
    IO_INVALID = -13,       /* not possible as asked */
    IO_OTHER = -14
};

/* "connection refused", "no descriptors left", ... A constant. */
const char *io_error_text(int error);

#endif
