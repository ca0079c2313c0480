/* SPDX-License-Identifier: Apache-2.0 */
/* A load's numbers, for people and for programs. */
#ifndef LAB_LOAD_REPORT_H
#define LAB_LOAD_REPORT_H

#include "base/text.h"
#include "lab/load.h"

/* What the numbers are about. */
struct load_report {
    const char *url;
    const struct load_options *options;
    const struct load *load;
    bool interrupted;
};

#define LOAD_REPORT_ROOM 65536 /* enough for either, but for a very long URL */

void load_report_text(const struct load_report *r, struct text *t);
void load_report_json(const struct load_report *r, struct text *t);

#endif
