/* SPDX-License-Identifier: Apache-2.0 */
/* Open addressing, never more than half full. */
#include "control/config_names.h"

struct config_name {
    struct bytes name;
    uint32_t number;
    bool taken;
};

bool config_names_init(struct config_names *n, struct arena *arena, uint32_t most)
{
    size_t size = 2;

    while (size / 2 < most)
        size *= 2;
    n->slots = arena_take(arena, size * sizeof(*n->slots));
    n->mask = (uint32_t)(size - 1);
    return n->slots != NULL;
}

static struct config_name *slot_of(const struct config_names *n, struct bytes name)
{
    uint32_t i = (uint32_t)bytes_hash(name) & n->mask;

    while (n->slots[i].taken && !bytes_equal(n->slots[i].name, name))
        i = (i + 1) & n->mask;
    return &n->slots[i];
}

uint32_t config_names_find(const struct config_names *n, struct bytes name)
{
    const struct config_name *slot = slot_of(n, name);

    return slot->taken ? slot->number : CONFIG_NO_NAME;
}

uint32_t config_names_add(struct config_names *n, struct bytes name, uint32_t number)
{
    struct config_name *slot = slot_of(n, name);

    if (slot->taken)
        return slot->number;
    *slot = (struct config_name){.name = name, .number = number, .taken = true};
    return CONFIG_NO_NAME;
}
