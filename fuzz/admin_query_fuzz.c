/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What anybody may send to the admin pages: a query, the regular expression in it, an Accept
 * header. Oracles: a value that is found fits and has no NUL; a filter that is taken answers, and
 * its inverse the opposite.
 */
#include <assert.h>
#include <string.h>

#include "admin/accept.h"
#include "admin/filter.h"
#include "admin/query.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_filter(struct bytes pattern)
{
    static const char *const names[] = {"", "cluster.a.upstream_rq_503",
                                        "cluster.outbound|80||a.b.upstream_cx_overflow"};
    struct filter f;
    const char *why;

    filter_init(&f);
    why = filter_compile(&f, pattern);
    for (size_t i = 0; why == NULL && i < sizeof(names) / sizeof(names[0]); i++) {
        bool matches = filter_matches(&f, names[i]);

        f.invert = true;
        assert(!f.set || filter_matches(&f, names[i]) != matches);
        f.invert = false;
        assert(filter_matches_bytes(&f, bytes_of(names[i])) == matches);
    }
    filter_release(&f);
}

static void check_value(struct bytes query, const char *key)
{
    char room[300];
    struct text value;
    enum query_result found;

    text_init(&value, room, sizeof(room));
    found = query_find(query, key, &value);
    assert(value.len <= sizeof(room));
    if (found != QUERY_FOUND)
        return;
    assert(!value.failed && memchr(room, '\0', value.len) == NULL);
    check_filter(text_bytes(&value));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct message_head head;
    struct bytes all = bytes_from(data, size);

    check_value(all, "filter");
    check_value(all, "format");
    check_value(all, "since");
    check_value(all, "cluster");
    head.field_count = 2;
    head.fields[0] = (struct field){.name = BYTES("Accept"), .value = all};
    head.fields[1] = (struct field){.name = BYTES("accept"), .value = bytes_skip(all, size / 2)};
    (void)accept_openmetrics(&head);
    return 0;
}
