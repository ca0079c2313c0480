/* SPDX-License-Identifier: Apache-2.0 */
/* Run-time state of a host: one block of memory. */
#include "model/host_state.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "model/block.h"

struct host_block {
    void *raw;
    char *path;
    uint8_t *text;
    struct host_state *state;
};

static size_t path_size(const struct address *a)
{
    return a->kind == ADDRESS_UNIX ? strlen(a->path) + 1 : 0;
}

static struct host_block lay_out(struct block *b, const struct address *address, size_t text,
                                 uint32_t workers)
{
    struct host_block h;
    size_t cells = sizeof(struct endpoint_cells) * workers;

    h.state = block_take(b, 1, sizeof(struct host_state) + cells);
    h.text = block_take(b, text, 1);
    h.path = block_take(b, path_size(address), 1);
    h.raw = b->raw;
    return h;
}

struct host_state *host_state_create(const struct address *address, struct bytes text,
                                     uint32_t workers)
{
    struct block b;
    struct host_block h;

    block_init(&b);
    lay_out(&b, address, text.len, workers);
    if (!block_allocate(&b))
        return NULL;
    h = lay_out(&b, address, text.len, workers);
    h.state->raw = h.raw;
    h.state->address = *address;
    if (address->kind == ADDRESS_UNIX) {
        memcpy(h.path, address->path, path_size(address));
        h.state->address.path = h.path;
    }
    if (text.len > 0)
        memcpy(h.text, text.data, text.len);
    h.state->text = (struct bytes){.data = h.text, .len = text.len};
    h.state->workers = workers;
    host_init(&h.state->host);
    return h.state;
}

void host_state_free(struct host_state *h)
{
    if (h == NULL)
        return;
    if (h->host.effect != NULL) {
        effect_host_release(h->host.effect);
        memory_give(h->host.effect);
    }
    if (h->host.detected != NULL) {
        detect_host_release(h->host.detected);
        memory_give(h->host.detected);
    }
    rules_host_release(&h->host.ruled);
    memory_give(h->raw);
}

static uint64_t sum_of_all(const struct host_state *h, unsigned m)
{
    uint64_t sum = 0;

    for (uint32_t w = 0; w < h->workers; w++)
        sum += cell_read(&h->cells[w].at[m]);
    return sum;
}

uint64_t host_state_sum(const struct host_state *h, enum endpoint_metric m)
{
    assert(m < ENDPOINT_METRIC_COUNT);
    return sum_of_all(h, m) - cell_read(&h->before[m]);
}

void host_state_reset(struct host_state *h)
{
    for (unsigned m = 0; m < ENDPOINT_METRIC_COUNT; m++)
        if (endpoint_metric_info[m].kind == METRIC_COUNTER)
            atomic_store_explicit(&h->before[m], sum_of_all(h, m), memory_order_relaxed);
}
