/* SPDX-License-Identifier: Apache-2.0 */
/* Text that grows as it is written, up to a limit: the body of an answer. */
#ifndef ADMIN_PAGE_H
#define ADMIN_PAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"
#include "base/text.h"

struct json;

#define PAGE_LIMIT ((size_t)256 << 20)

/* What is written goes to |text|, after page_room made room for it. */
struct page {
    struct text text;
    size_t limit;
};

/* Allocates nothing yet. */
void page_init(struct page *p, size_t limit);

/*
 * Makes room for |n| more bytes. Past the limit, or with no memory left, the text fails and stays
 * as it is; writing on does no harm.
 */
void page_room(struct page *p, size_t n);

/* Each makes its own room. */
void page_put(struct page *p, struct bytes b);
void page_str(struct page *p, const char *s);
void page_u64(struct page *p, uint64_t v);

/* A page that is one JSON object with one list in it, |name|; |j| writes it. */
void page_list_begin(struct page *p, struct json *j, const char *name);
void page_list_end(struct page *p, struct json *j);

/* The page is empty again, and keeps its memory. */
void page_clear(struct page *p);

/* Frees the text; the page is empty again. */
void page_release(struct page *p);

#endif
