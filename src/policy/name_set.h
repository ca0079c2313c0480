/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The addresses of a name, over its answers. One that an answer leaves out is kept until |hold|
 * after the last answer that had it: where a name server gives a few of many addresses in turn,
 * hosts do not come and go with each answer. Those that stay keep their order, so that a name
 * server that rotates changes nothing.
 *
 * Pure: no clock, no I/O, no allocation.
 */
#ifndef POLICY_NAME_SET_H
#define POLICY_NAME_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/address.h"
#include "base/units.h"

#define NAME_SET_MAX 256 /* addresses; those beyond are not used */

/* Embed by value. */
struct name_set {
    uint32_t count;
    struct address at[NAME_SET_MAX];
    mono_ns seen[NAME_SET_MAX]; /* the last answer that had it */
};

void name_set_init(struct name_set *s, const struct address *only, mono_ns now);

/*
 * An answer of |n| addresses, at least one. An address of it takes the place of one that is only
 * held where there is no room, the one held longest first. True: the set is another one now.
 */
bool name_set_answer(struct name_set *s, const struct address *fresh, size_t n, span_ns hold,
                     mono_ns now);

#endif
