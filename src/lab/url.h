/* SPDX-License-Identifier: Apache-2.0 */
/* The URL that load is sent to: http, a host, a port, a target. */
#ifndef LAB_URL_H
#define LAB_URL_H

#include <stdint.h>

#include "base/bytes.h"

/* Views into the text that was parsed; |target| of a URL without a path is "/". */
struct url {
    struct bytes host; /* without brackets */
    uint16_t port;
    struct bytes authority; /* as written: the Host field */
    struct bytes target;    /* path and query, without the fragment */
};

/* NULL and |*out|, or what is wrong with it and what to write instead: a constant text. */
const char *url_parse(struct bytes text, struct url *out);

#endif
