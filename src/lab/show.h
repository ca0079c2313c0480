/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as people read them. */
#ifndef LAB_SHOW_H
#define LAB_SHOW_H

#include <stdint.h>

#include "base/text.h"
#include "base/units.h"

/* Three digits that count: "812us", "5.12ms", "51.2ms", "1.53s". */
void show_span(struct text *t, span_ns ns);

/* "99.94 %", cut and not rounded: only all of |whole| is 100. "-" where |whole| is 0. */
void show_share(struct text *t, uint64_t part, uint64_t whole);

/* Blanks up to |column| counted from |from|; at least one. */
void show_pad(struct text *t, size_t from, size_t column);

#endif
