/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/sender.h"

#include <assert.h>

#define PIECE 4000u

void sender_start(struct sender *s, struct bytes head, enum framing framing, uint64_t key,
                  uint64_t total)
{
    assert(head.len <= SENDER_ROOM);
    s->key = key;
    s->total = framing == FRAMING_NONE ? 0 : total;
    s->made = 0;
    s->allowed = UINT64_MAX;
    s->piece = PIECE;
    s->framing = framing;
    s->end_made = framing != FRAMING_CHUNKED;
    s->len = (uint32_t)head.len;
    s->at = 0;
    memcpy(s->out, head.data, head.len);
}

static void put(struct sender *s, const char *text)
{
    size_t len = strlen(text);

    memcpy(s->out + s->len, text, len);
    s->len += (uint32_t)len;
}

static void put_hex(struct sender *s, uint32_t v)
{
    static const char digits[] = "0123456789abcdef";
    unsigned shift = 28;

    while (shift > 0 && v >> shift == 0)
        shift -= 4;
    for (;; shift -= 4) {
        s->out[s->len++] = (uint8_t)digits[v >> shift & 15];
        if (shift == 0)
            break;
    }
}

/* Frames the next stretch. False: nothing may be, now or ever. */
static bool refill(struct sender *s)
{
    uint64_t until = s->allowed < s->total ? s->allowed : s->total;
    uint64_t left = until > s->made ? until - s->made : 0;
    uint32_t n = left < s->piece ? (uint32_t)left : s->piece;

    s->at = 0;
    s->len = 0;
    if (n > 0 && s->framing == FRAMING_CHUNKED) {
        put_hex(s, n);
        put(s, "\r\n");
    }
    payload_fill(s->key, s->made, s->out + s->len, n);
    s->len += n;
    s->made += n;
    if (n > 0 && s->framing == FRAMING_CHUNKED)
        put(s, "\r\n");
    if (s->made == s->total && s->allowed >= s->total && !s->end_made) {
        put(s, "0\r\n\r\n");
        s->end_made = true;
    }
    return s->len > 0;
}

enum sender_result sender_go(struct sender *s, struct link *l)
{
    struct bytes part;
    ptrdiff_t took;

    for (;;) {
        if (s->at == s->len && !refill(s))
            return s->made == s->total && s->end_made ? SENDER_DONE : SENDER_HELD;
        part = bytes_from(s->out + s->at, s->len - s->at);
        took = link_write(l, &part, 1);
        if (took < 0)
            return SENDER_BROKEN;
        s->at += (uint32_t)took;
        if (s->at < s->len)
            return SENDER_BLOCKED;
    }
}
