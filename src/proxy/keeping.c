/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/keeping.h"

#include "base/memory.h"

static struct bytes find(const struct message_head *head, const struct access_header *wanted)
{
    for (uint32_t i = 0; i < head->field_count; i++)
        if (bytes_equal_nocase(head->fields[i].name, wanted->name))
            return bytes_slice(head->fields[i].value, 0, wanted->limit);
    return BYTES_NONE;
}

void kept_take(struct kept_headers *k, const struct access_headers *names,
               const struct message_head *head)
{
    struct bytes found[ACCESS_HEADERS_MAX];
    size_t size = names->count * sizeof(struct bytes);
    uint8_t *at;

    kept_release(k);
    if (names->count == 0)
        return;
    for (uint32_t i = 0; i < names->count; i++) {
        found[i] = find(head, &names->at[i]);
        size += found[i].len;
    }
    k->at = memory_take(size);
    if (k->at == NULL)
        return;
    k->count = names->count;
    at = (uint8_t *)(k->at + k->count);
    for (uint32_t i = 0; i < k->count; i++) {
        k->at[i] = bytes_from(at, found[i].len);
        if (found[i].len > 0)
            memcpy(at, found[i].data, found[i].len);
        at += found[i].len;
    }
}

void kept_release(struct kept_headers *k)
{
    memory_give(k->at);
    *k = (struct kept_headers){.at = NULL};
}
