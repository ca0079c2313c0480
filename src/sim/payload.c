/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/payload.h"

static uint64_t mix(uint64_t v)
{
    v = (v ^ (v >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    v = (v ^ (v >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (v ^ (v >> 31)) | 1;
}

uint64_t payload_key_request(uint64_t id)
{
    return mix(2 * id + 1);
}

uint64_t payload_key_answer(uint64_t id)
{
    return mix(2 * id + 2);
}

void payload_fill(uint64_t key, uint64_t from, uint8_t *to, size_t len)
{
    for (size_t i = 0; i < len; i++)
        to[i] = payload_byte(key, from + i);
}

size_t payload_check(uint64_t key, uint64_t from, struct bytes data)
{
    size_t i = 0;

    while (i < data.len && data.data[i] == payload_byte(key, from + i))
        i++;
    return i;
}

static const char letters[] = "nlct"; /* in the order of enum framing */

void wish_write(struct text *t, const struct wish *w)
{
    text_str(t, "/r/");
    text_u64(t, w->id);
    text_char(t, '/');
    text_u64(t, w->answer);
    text_char(t, '/');
    text_char(t, letters[w->framing]);
}

static bool number(struct bytes *rest, uint64_t *out)
{
    size_t end = bytes_find(*rest, '/');
    bool good = bytes_parse_u64(bytes_slice(*rest, 0, end), out);

    *rest = bytes_skip(*rest, end + 1);
    return good;
}

bool wish_parse(struct bytes path, struct wish *out)
{
    struct bytes rest = bytes_skip(path, 3);
    struct wish w;
    size_t which;

    if (!bytes_start_with(path, BYTES("/r/")) || !number(&rest, &w.id) ||
        !number(&rest, &w.answer) || rest.len == 0)
        return false;
    which = bytes_find(bytes_from(letters, sizeof(letters) - 1), rest.data[0]);
    if (which == sizeof(letters) - 1)
        return false;
    w.framing = (enum framing)which;
    *out = w;
    return true;
}
