/* SPDX-License-Identifier: Apache-2.0 */
/* For orca.c and orca_binary.c only: what of a report is kept. */
#ifndef CODEC_ORCA_PARTS_H
#define CODEC_ORCA_PARTS_H

#include "codec/orca.h"

void orca_report_init(struct load_report *r);
bool orca_says_something(const struct load_report *r);

/* What has no room, or is no name, is passed over; of two of a name the first counts. */
void orca_put_named(struct load_report *r, struct bytes name, double value);

/* False: no share can be that. */
bool orca_put_share(double *to, double value);

#endif
