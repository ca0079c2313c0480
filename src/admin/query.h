/* SPDX-License-Identifier: Apache-2.0 */
/* The query of an admin request: "?filter=a%7Cb&usedonly". */
#ifndef ADMIN_QUERY_H
#define ADMIN_QUERY_H

#include <stdbool.h>

#include "base/bytes.h"
#include "base/text.h"

enum query_result {
    QUERY_ABSENT,
    QUERY_FOUND,
    QUERY_BAD /* a '%' without two hex digits, a NUL, or longer than |value| has room for */
};

/* Appends |from|, percent-decoded. False: a '%' without two hex digits, a NUL, or no room. */
bool query_decode(struct bytes from, struct text *to);

/*
 * Looks for the first parameter |key| in |query| (with its '?', as in a message head) and writes
 * its value, percent-decoded, to |value|; empty where there is no '='. A '+' stays a '+'.
 */
enum query_result query_find(struct bytes query, const char *key, struct text *value);

#endif
