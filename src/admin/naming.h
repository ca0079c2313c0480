/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a metric is called, in both forms; see samples.h. Envoy's keep Envoy's names
 * (reference/envoy-semantics.md 7.3). Ours are "firebreak_*", as Prometheus wants them.
 */
#ifndef ADMIN_NAMING_H
#define ADMIN_NAMING_H

#include <stdint.h>

#include "admin/samples.h"
#include "base/bytes.h"
#include "stats/metrics.h"

#define NAMING_ROOM 1024 /* of a name or of labels; what is longer is cut */

enum scope_kind {
    SCOPE_ENVOY, /* but for those whose help text begins with "firebreak: " */
    SCOPE_OWN
};

/* What the metrics of one thing have in common. */
struct scope {
    enum scope_kind kind;
    const char *family;       /* "cluster_" */
    char name[NAMING_ROOM];   /* "cluster.a." */
    char labels[NAMING_ROOM]; /* of envoy_*: "envoy_cluster_name=\"a\"" */
    char own[NAMING_ROOM];    /* of firebreak_*: "cluster=\"a\"" */
};

/* No name, no labels. |family| is a constant. */
void scope_init(struct scope *s, enum scope_kind kind, const char *family);

/* Adds to the name. */
void scope_name(struct scope *s, struct bytes part);

/* Adds a label to |labels|, which is s->labels or s->own; escapes the value. */
void scope_label(char labels[NAMING_ROOM], const char *name, struct bytes value);

/* A negative gauge is shown as zero: its parts were read one after the other. */
void scope_add(struct samples *s, const struct scope *scope, const struct metric_info *info,
               uint64_t value);

/* "<name>_503", with a label for the code. */
void scope_add_code(struct samples *s, const struct scope *scope, const char *name, uint32_t code,
                    uint64_t value);

/* "<name>response_flags.UO", ours, with a label for the flag; nothing where it is zero. */
void scope_add_flag(struct samples *s, const struct scope *scope, const char *flag, uint64_t value);

/* |h| is of the samples' arena, and filled already. |help|: NULL where Envoy has none either. */
void scope_add_histogram(struct samples *s, const struct scope *scope, const char *name,
                         const char *help, struct histogram *h);

/* Whether the filter wants that name of the scope. */
bool scope_wants(const struct samples *s, const struct scope *scope, const char *name);

#endif
