/* SPDX-License-Identifier: Apache-2.0 */
#include "io/error.h"

const char *io_error_text(int error)
{
    switch ((enum io_error)error) {
    case IO_OK:
        return "ok";
    case IO_REFUSED:
        return "connection refused";
    case IO_RESET:
        return "connection reset by peer";
    case IO_CLOSED:
        return "closed by peer";
    case IO_UNREACHABLE:
        return "unreachable";
    case IO_TIMED_OUT:
        return "timed out";
    case IO_NO_DESCRIPTORS:
        return "no descriptors left";
    case IO_NO_MEMORY:
        return "out of memory";
    case IO_NO_PORTS:
        return "no local ports left";
    case IO_ADDRESS_IN_USE:
        return "address already in use";
    case IO_DENIED:
        return "permission denied";
    case IO_NOT_FOUND:
        return "not found";
    case IO_NO_SPACE:
        return "no space left";
    case IO_INVALID:
        return "invalid";
    case IO_OTHER:
        break;
    }
    return "I/O error";
}
