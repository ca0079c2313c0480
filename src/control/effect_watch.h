/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Did it help? Each ejection in a cluster under detection opens an account (policy/effect.h); what
 * was useless or did harm is undone as soon as that is known, and survivors that cannot carry the
 * load get the least bad host back. For detection.c and outlier_deeds.c.
 *
 * A host whose ejection was undone is not ejected again on the same line of evidence for a minute,
 * twice as long each time that happens within ten minutes, at most ten: the line has just been
 * shown to accuse it of what its peers have as well, and goes on doing so while that lasts. It may
 * go at once where the peers have recovered, or on any other line.
 */
#ifndef CONTROL_EFFECT_WATCH_H
#define CONTROL_EFFECT_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "control/outlier_deeds.h"
#include "policy/detect.h"
#include "policy/evidence.h"

/* Accounts of one cluster at a time; further ejections have none. */
#define EFFECT_OPEN_MOST 16

/* The hosts are others now, or detection was switched on or off. False: no memory. */
bool effects_adopt(struct watched *c);
void effects_free(struct effects *e);

/* The ejection that comes next, if any does, is on this line. */
void effect_accused(struct watched *c, enum detect_line line);

/* Member |index| has just gone out, or come back. */
void effect_ejected(struct watched *c, uint32_t index, mono_ns now);
void effect_returned(struct watched *c, uint32_t index, mono_ns now);

/* About member |index|, before anything is made of it. */
void effect_learn(struct watched *c, uint32_t index, const struct evidence *e);

/* A half second is over. */
void effect_turn(struct watched *c, mono_ns now);

/* All there was is learnt: what is to be undone is. False: no account is open. */
bool effect_look(struct watched *c, mono_ns now);

/* Was an ejection on the same grounds undone lately, and do the peers still have the same? */
bool effect_holds_line(const struct watched *c, uint32_t index, enum detect_line line, mono_ns now);
void effect_say_held(struct watched *c, uint32_t index, enum detect_line line, mono_ns now);
bool effect_holds_trigger(const struct watched *c, uint32_t index, enum outlier_trigger t,
                          mono_ns now);

/* Would it help to leave member |index| out; where it is, has it? Lines of text, or none. */
void effect_why(const struct watched *c, uint32_t index, struct text *t);

#endif
