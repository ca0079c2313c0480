/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formats of the access log: the first line of the input is a format, the rest is what a client
 * sent. Oracles: it is refused with a place inside it, or makes one line, in as much room as is
 * said to suffice, with nothing in it that would break a line; as JSON, too.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"
#include "model/access_format.h"
#include "telemetry/access_render.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_clean(struct bytes b)
{
    for (size_t i = 0; i < b.len; i++)
        if (b.data[i] < 0x20 || b.data[i] == 0x7f)
            return false;
    return true;
}

static struct request_record record_of(struct bytes sent, const struct access_format *f,
                                       struct bytes headers[2][ACCESS_HEADERS_MAX])
{
    struct request_record r = {.method = bytes_slice(sent, 0, 7),
                               .path = sent,
                               .authority = bytes_skip(sent, 3),
                               .user_agent = bytes_skip(sent, 5),
                               .forwarded_for = bytes_skip(sent, 1),
                               .protocol = "HTTP/1.1",
                               .details = "via_upstream",
                               .started = sent.len * NS_PER_S * 86399,
                               .status = (uint32_t)sent.len,
                               .flags = UINT32_MAX,
                               .trusts_forwarded_for = true};

    for (uint32_t i = 0; i < ACCESS_HEADERS_MAX; i++) {
        headers[0][i] = bytes_slice(sent, i, f->request.at[i].limit);
        headers[1][i] = bytes_slice(sent, i, f->response.at[i].limit);
    }
    r.request_headers = headers[0];
    r.response_headers = headers[1];
    r.request_header_count = f->request.count;
    r.response_header_count = f->response.count;
    return r;
}

static void check_line(const struct access_format *f, const struct record_copy *c, bool clean)
{
    const struct access_surroundings around = {.hostname = "host"};
    size_t room = access_render_room(f);
    struct text line, scratch;

    text_init(&line, malloc(room), room);
    text_init(&scratch, malloc(room), room);
    access_render(&line, &scratch, f, c, &around);
    assert(!line.failed && !scratch.failed && line.len > 0);
    assert(line.data[line.len - 1] == '\n');
    assert(!clean || is_clean(bytes_slice(text_bytes(&line), 0, line.len - 1)));
    free(line.data);
    free(scratch.data);
}

static void render(struct access_format *f, struct bytes sent, bool clean)
{
    struct bytes headers[2][ACCESS_HEADERS_MAX];
    struct request_record r = record_of(sent, f, headers);
    struct record_copy *c = malloc(record_copy_size(&r));
    const struct access_key key = {.name = BYTES("k\n"), .value = f->text};

    record_copy_fill(c, &r);
    check_line(f, c, clean);
    f->keys = &key;
    f->key_count = 1;
    check_line(f, c, true);
    free(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes all = bytes_from(data, size);
    struct bytes text = bytes_slice(all, 0, bytes_find(all, '\n'));
    struct access_format f = {.key_count = 0};
    struct access_fault fault = {.at = SIZE_MAX};
    struct arena arena;

    arena_init(&arena, 4096, SIZE_MAX);
    if (access_compile(&arena, text, &f, &f.text, &fault)) {
        assert(f.text.count <= ACCESS_ITEMS_MAX && f.request.count <= ACCESS_HEADERS_MAX);
        /* What stands in the format itself the configuration has looked at. */
        render(&f, bytes_skip(all, text.len + 1), is_clean(text));
    } else {
        assert(fault.why != NULL && fault.at <= text.len);
    }
    arena_release(&arena);
    return 0;
}
