/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A filter on names: a POSIX extended regular expression that matches anywhere. It comes from
 * whoever asks, so what makes the C library's engine explode is refused: long patterns, back
 * references, and repetitions that multiply.
 */
#ifndef ADMIN_FILTER_H
#define ADMIN_FILTER_H

#include <regex.h>
#include <stdbool.h>

#include "base/bytes.h"

#define FILTER_LENGTH_MAX 256
#define FILTER_WORK_MAX   4096 /* length of a pattern times the product of all its bounds "{m,n}" */

struct filter {
    bool set;    /* else all match */
    bool invert; /* what does not match does */
    regex_t regex;
};

/* Matches all. */
void filter_init(struct filter *f);

/* |pattern| holds no NUL; an empty one matches all. NULL, or why it is refused. */
const char *filter_compile(struct filter *f, struct bytes pattern);

bool filter_matches(const struct filter *f, const char *name);
bool filter_matches_bytes(const struct filter *f, struct bytes name); /* its first 1 KiB */

void filter_release(struct filter *f);

#endif
