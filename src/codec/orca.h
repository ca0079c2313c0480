/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Load reports of hosts (Open Request Cost Aggregation): the values of `endpoint-load-metrics`
 * and `endpoint-load-metrics-bin`. One pass, no heap; what is no report is none as a whole.
 *
 *    TEXT cpu_utilization=0.3,mem_utilization=0.8,named_metrics.queue=7
 *    JSON {"cpu_utilization": 0.3, "named_metrics": {"queue": 7}}
 *    BIN CTMzMzMzM9M/            xds.data.orca.v3.OrcaLoadReport in base64
 *
 * Source: https://github.com/cncf/xds, xds/data/orca/v3/orca_load_report.proto.
 */
#ifndef CODEC_ORCA_H
#define CODEC_ORCA_H

#include <stdbool.h>

#include "base/bytes.h"
#include "base/load_report.h"

#define ORCA_VALUE_MAX 2048 /* bytes; a longer one is none */

/* Any of the three. False: it is none of them, broken, or says nothing that we know. */
bool orca_read(struct bytes value, struct load_report *out);

/* What follows BIN. */
bool orca_read_binary(struct bytes base64, struct load_report *out);

#endif
