/* SPDX-License-Identifier: Apache-2.0 */
#include "os/error.h"

#include <errno.h>
#include <stddef.h>

#include "io/error.h"

static const struct {
    int number;
    enum io_error error;
} meanings[] = {
    {0, IO_OK},
    {ECONNREFUSED, IO_REFUSED},
    {ECONNRESET, IO_RESET},
    {ECONNABORTED, IO_RESET},
    {EPIPE, IO_CLOSED},
    {ENETUNREACH, IO_UNREACHABLE},
    {EHOSTUNREACH, IO_UNREACHABLE},
    {ENETDOWN, IO_UNREACHABLE},
    {EHOSTDOWN, IO_UNREACHABLE},
    {EAFNOSUPPORT, IO_UNREACHABLE},
    {ETIMEDOUT, IO_TIMED_OUT},
    {EMFILE, IO_NO_DESCRIPTORS},
    {ENFILE, IO_NO_DESCRIPTORS},
    {ENOMEM, IO_NO_MEMORY},
    {ENOBUFS, IO_NO_MEMORY},
    {EADDRNOTAVAIL, IO_NO_PORTS},
    {EADDRINUSE, IO_ADDRESS_IN_USE},
    {EACCES, IO_DENIED},
    {EPERM, IO_DENIED},
    {EROFS, IO_DENIED},
    {ENOENT, IO_NOT_FOUND},
    {ENOTDIR, IO_NOT_FOUND},
    {ENXIO, IO_NOT_FOUND},
    {ENOSPC, IO_NO_SPACE},
    {EDQUOT, IO_NO_SPACE},
    {EFBIG, IO_NO_SPACE},
    {EINVAL, IO_INVALID},
    {EISDIR, IO_INVALID},
    {ENAMETOOLONG, IO_INVALID},
    {ELOOP, IO_INVALID},
};

int os_error(int number)
{
    for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++) {
        if (meanings[i].number == number)
            return meanings[i].error;
    }
    return IO_OTHER;
}
