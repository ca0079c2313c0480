/* SPDX-License-Identifier: Apache-2.0 */
#include "admin/page.h"

#include "base/memory.h"
#include "codec/json.h"

#define FIRST_SIZE 4096

void page_init(struct page *p, size_t limit)
{
    *p = (struct page){.limit = limit};
}

void page_room(struct page *p, size_t n)
{
    struct text *t = &p->text;
    size_t room = t->room == 0 ? FIRST_SIZE : t->room;
    char *data;

    if (t->failed || n <= t->room - t->len)
        return;
    while (room - t->len < n && room <= p->limit)
        room *= 2;
    data = room > p->limit ? NULL : memory_resize(t->data, room);
    if (data == NULL) {
        t->failed = true;
        return;
    }
    t->data = data;
    t->room = room;
}

void page_put(struct page *p, struct bytes b)
{
    page_room(p, b.len);
    text_put(&p->text, b);
}

void page_str(struct page *p, const char *s)
{
    page_put(p, bytes_of(s));
}

void page_u64(struct page *p, uint64_t v)
{
    page_room(p, 20);
    text_u64(&p->text, v);
}

void page_clear(struct page *p)
{
    p->text.len = 0;
}

void page_release(struct page *p)
{
    memory_give(p->text.data);
    page_init(p, p->limit);
}

void page_list_begin(struct page *p, struct json *j, const char *name)
{
    page_room(p, 64);
    json_init(j, &p->text);
    json_object(j, NULL);
    json_array(j, name);
}

void page_list_end(struct page *p, struct json *j)
{
    page_room(p, 64);
    json_array_end(j);
    json_object_end(j);
    text_char(&p->text, '\n');
}
