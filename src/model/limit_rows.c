/* SPDX-License-Identifier: Apache-2.0 */
#include "model/limit_rows.h"

#include "model/snapshot.h"

static const struct {
    const char *key;
    const char *effect;
    enum cluster_metric cut;
} rows[LIMIT_ROW_COUNT] = {
#define X(name, key_, metric, effect_)                                                             \
    [LIMIT_ROW_##name] = {.key = key_, .effect = effect_, .cut = CLUSTER_##metric},
    LIMIT_ROWS(X)
#undef X
};

uint32_t limit_retries_max(const struct cluster *c)
{
    const struct cluster_state *s = c->state;

    if (!c->retry_share.given)
        return c->limits.max_retries;
    return retry_share_max(&c->retry_share,
                           (uint64_t)limit_used(&s->requests) + limit_used(&s->pending));
}

static void fill(struct limit_row *r, const struct limit *l, uint32_t most)
{
    r->used = limit_used(l);
    r->most = most;
}

struct limit_row limit_row_of(const struct cluster *c, enum limit_row_kind kind)
{
    struct limit_row r = {.most = LIMIT_NONE};

    switch (kind) {
    case LIMIT_ROW_CONNECTIONS:
        fill(&r, &c->state->connections, c->limits.max_connections);
        break;
    case LIMIT_ROW_PENDING:
        fill(&r, &c->state->pending, c->limits.max_pending);
        break;
    case LIMIT_ROW_REQUESTS:
        fill(&r, &c->state->requests, c->limits.max_requests);
        break;
    case LIMIT_ROW_RETRIES:
        fill(&r, &c->state->retries, limit_retries_max(c));
        break;
    case LIMIT_ROW_BUDGET:
        break; /* a rate: nothing of it is in use */
    case LIMIT_ROW_COUNT:
        return r;
    }
    r.key = kind == LIMIT_ROW_RETRIES && c->retry_share.given ? "trafficPolicy.retryBudget"
                                                              : rows[kind].key;
    r.effect = rows[kind].effect;
    r.cut = rows[kind].cut;
    return r;
}
