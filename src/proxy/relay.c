/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/relay.h"

void gather_flush(struct gather *g)
{
    if (g->count == 0)
        return;
    g->sink(g->to, g->parts, g->count);
    g->count = 0;
    g->frame_count = 0;
}

void gather_add(struct gather *g, struct bytes part)
{
    if (part.len == 0)
        return;
    if (g->count == LINK_PARTS_MAX)
        gather_flush(g);
    g->parts[g->count++] = part;
}

static void add_chunk(struct gather *g, struct bytes data)
{
    uint8_t *frame;

    if (g->count + 3 > LINK_PARTS_MAX)
        gather_flush(g);
    frame = g->frames[g->frame_count++];
    gather_add(g, bytes_from(frame, http1_write_chunk_head(frame, data.len)));
    gather_add(g, data);
    gather_add(g, BYTES("\r\n"));
}

static void add_end(struct gather *g, struct bytes trailers)
{
    struct field field;

    gather_add(g, BYTES("0\r\n"));
    while (http1_next_trailer(&trailers, &field)) {
        gather_add(g, field.name);
        gather_add(g, BYTES(": "));
        gather_add(g, field.value);
        gather_add(g, BYTES("\r\n"));
    }
    gather_add(g, BYTES("\r\n"));
}

enum relay_result relay_feed(struct relay *r, struct bytes *in, struct gather *g,
                             struct http1_fault *fault)
{
    while (!http1_body_done(&r->body)) {
        struct bytes data = BYTES_NONE;
        struct bytes trailers = BYTES_NONE;
        enum http1_result result = http1_body_read(&r->body, in, &data, &trailers, fault);

        if (result == HTTP1_BAD)
            return RELAY_BAD;
        r->moved += data.len;
        if (data.len > 0 && r->framing == RELAY_CHUNKED)
            add_chunk(g, data);
        else
            gather_add(g, data);
        if (http1_body_done(&r->body) && r->framing == RELAY_CHUNKED)
            add_end(g, trailers);
        else if (result == HTTP1_MORE)
            return RELAY_MORE;
    }
    return RELAY_DONE;
}

enum relay_result relay_end(struct relay *r, struct gather *g)
{
    if (!http1_body_ended(&r->body))
        return RELAY_BAD;
    if (r->framing == RELAY_CHUNKED)
        add_end(g, BYTES_NONE);
    return RELAY_DONE;
}
