/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of names that the lists in metrics.h give, and the cells of status codes. */
#include "stats/metrics.h"

#define X(name, kind, help) [CLUSTER_##name] = {#name, METRIC_##kind, help},
const struct metric_info cluster_metric_info[CLUSTER_METRIC_COUNT] = {CLUSTER_METRICS(X)};
#undef X
#define X(name, kind, help) [RETRY_STAT_##name] = {#name, METRIC_##kind, help},
const struct metric_info retry_metric_info[RETRY_METRIC_COUNT] = {RETRY_METRICS(X)};
#undef X
#define X(name, kind, help) [ENDPOINT_##name] = {#name, METRIC_##kind, help},
const struct metric_info endpoint_metric_info[ENDPOINT_METRIC_COUNT] = {ENDPOINT_METRICS(X)};
#undef X
#define X(name, kind, help) [OUTLIER_STAT_##name] = {#name, METRIC_##kind, help},
const struct metric_info outlier_metric_info[OUTLIER_METRIC_COUNT] = {OUTLIER_METRICS(X)};
#undef X
#define X(name, kind, help) [HTTP_##name] = {#name, METRIC_##kind, help},
const struct metric_info http_metric_info[HTTP_METRIC_COUNT] = {HTTP_METRICS(X)};
#undef X
#define X(name, kind, help) [EFFECT_STAT_##name] = {#name, METRIC_##kind, help},
const struct metric_info effect_metric_info[EFFECT_METRIC_COUNT] = {EFFECT_METRICS(X)};
#undef X
#define X(name, kind, help) [DISCOVERY_##name] = {#name, METRIC_##kind, help},
const struct metric_info discovery_metric_info[DISCOVERY_METRIC_COUNT] = {DISCOVERY_METRICS(X)};
#undef X
#define X(name, kind, help) [WORKER_##name] = {#name, METRIC_##kind, help},
const struct metric_info worker_metric_info[WORKER_METRIC_COUNT] = {WORKER_METRICS(X)};
#undef X

/*
 * The count goes in before the code is published, so that a reader that sees a code never reads a
 * count of zero beside it.
 */
void status_cells_add_many(struct status_cells *s, uint32_t code, uint64_t n)
{
    if (code == 0)
        return;
    for (unsigned i = 0; i < STATUS_SLOTS; i++) {
        uint32_t there = atomic_load_explicit(&s->code[i], memory_order_relaxed);

        if (there != 0 && there != code)
            continue;
        cell_add(&s->count[i], n);
        if (there == 0)
            atomic_store_explicit(&s->code[i], code, memory_order_release);
        return;
    }
}

void status_cells_add(struct status_cells *s, uint32_t code)
{
    status_cells_add_many(s, code, 1);
}

void flag_cells_add(struct flag_cells *f, uint32_t flags)
{
    for (; flags != 0; flags &= flags - 1)
        cell_add(&f->at[__builtin_ctz(flags)], 1);
}

void retry_cells_add(struct cluster_cells *c, uint32_t status)
{
    unsigned of_class = status < 100 || status > 599 ? 5 : status / 100;

    cell_add(&c->retry[RETRY_STAT_upstream_rq_completed], 1);
    cell_add(&c->retry[RETRY_STAT_upstream_rq_1xx + of_class - 1], 1);
    status_cells_add(&c->retry_statuses, status);
}
