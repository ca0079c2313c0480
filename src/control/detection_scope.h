/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose trouble it is, in one cluster under watch (policy/scope.h): zones and versions of its
 * hosts, the verdict, and the shares of a zone or version that is bad. For detection.c.
 */
#ifndef CONTROL_DETECTION_SCOPE_H
#define CONTROL_DETECTION_SCOPE_H

#include "control/detection_say.h"

/*
 * The roster's hosts in their zones and versions; those of a zone that has peers enough are
 * compared with each other only. Before the judge adopts them.
 */
void detection_stratify(struct watched *c);

/* What host |index| is accused of by |line| is whose? SCOPE_NODE: its own. */
enum scope_kind detection_scope_of(struct watched *c, uint32_t index, enum detect_line line);

/* The same without patience: for what is asked only once. */
enum scope_kind detection_scope_says(struct watched *c, uint32_t index, enum detect_line line);

/* A half second is over. */
void detection_scope_turn(struct watched *c, mono_ns now);

#endif
