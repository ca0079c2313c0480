/* SPDX-License-Identifier: Apache-2.0 */
/* One finished request as one line in a format of the operator's (model/access_format.h). */
#ifndef TELEMETRY_ACCESS_RENDER_H
#define TELEMETRY_ACCESS_RENDER_H

#include "base/text.h"
#include "model/access_format.h"
#include "telemetry/record_copy.h"

/* What a format may ask for beside the request. */
struct access_surroundings {
    const char *hostname;                         /* NULL: not known */
    const char *(*environment)(const char *name); /* NULL, and what it returns: not known */
};

/* Bytes that suffice for a line, and for |scratch| below. */
size_t access_render_room(const struct access_format *f);

/*
 * Appends a line to |t|, with a line feed at its end. |scratch| is for values that are put together
 * before they are escaped.
 */
void access_render(struct text *t, struct text *scratch, const struct access_format *f,
                   const struct record_copy *c, const struct access_surroundings *around);

#endif
