/* SPDX-License-Identifier: Apache-2.0 */
/* The methods of HTTP that are known by name. */
#ifndef CODEC_METHOD_H
#define CODEC_METHOD_H

/* Well-known methods; any other token is METHOD_OTHER and passes. */
enum method {
    METHOD_OTHER,
    METHOD_GET,
    METHOD_HEAD,
    METHOD_POST,
    METHOD_PUT,
    METHOD_DELETE,
    METHOD_OPTIONS,
    METHOD_TRACE,
    METHOD_CONNECT,
    METHOD_PATCH
};

#endif
