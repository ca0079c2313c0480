/* SPDX-License-Identifier: Apache-2.0 */
#include "control/config_hosts.h"

#include <string.h>

#include "base/text.h"

#define SERVICE ".svc"
#define DOMAIN  ".svc.cluster.local"

static bool is_part(struct bytes part)
{
    for (size_t i = 0; i < part.len; i++) {
        uint8_t c = byte_lower(part.data[i]);

        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_'))
            return false;
    }
    return part.len > 0;
}

bool config_host_valid(struct bytes host)
{
    struct bytes rest = host;

    if (host.len > CONFIG_HOST_MAX)
        return false;
    for (;;) {
        size_t end = bytes_find(rest, '.');

        if (!is_part(bytes_slice(rest, 0, end)))
            return false;
        if (end == rest.len)
            return true;
        rest = bytes_skip(rest, end + 1);
    }
}

bool config_host_is_pattern(struct bytes host)
{
    return bytes_start_with(host, BYTES("*"));
}

bool config_host_pattern_valid(struct bytes pattern)
{
    if (bytes_equal(pattern, BYTES("*")))
        return true;
    return bytes_start_with(pattern, BYTES("*.")) && config_host_valid(bytes_skip(pattern, 2));
}

static bool ends_with(struct bytes b, struct bytes end)
{
    return b.len >= end.len && bytes_equal(bytes_skip(b, b.len - end.len), end);
}

static unsigned dots(struct bytes b)
{
    unsigned n = 0;

    for (size_t i = 0; i < b.len; i++)
        n += b.data[i] == '.';
    return n;
}

/* In small letters, with up to two parts behind it. */
static struct bytes joined(struct arena *arena, struct bytes a, struct bytes b, struct bytes c)
{
    size_t len = a.len + b.len + c.len;
    char *data = arena_take_bytes(arena, len);
    struct text t;

    if (data == NULL)
        return BYTES_NONE;
    text_init(&t, data, len);
    text_put(&t, a);
    text_put(&t, b);
    text_put(&t, c);
    for (size_t i = 0; i < len; i++)
        data[i] = (char)byte_lower((uint8_t)data[i]);
    return bytes_from(data, len);
}

/* "a.ns" of "a.ns.svc.cluster.local", "a.ns.svc" and "a.ns"; empty: it is none of them. */
static struct bytes with_namespace(struct bytes host)
{
    if (ends_with(host, BYTES(DOMAIN)))
        host = bytes_slice(host, 0, host.len - strlen(DOMAIN));
    else if (ends_with(host, BYTES(SERVICE)))
        host = bytes_slice(host, 0, host.len - strlen(SERVICE));
    return dots(host) == 1 ? host : BYTES_NONE;
}

struct bytes config_host_complete(struct arena *arena, struct bytes host, struct bytes namespace)
{
    struct bytes low = joined(arena, host, BYTES_NONE, BYTES_NONE);

    if (ends_with(low, BYTES(SERVICE)) && dots(low) == 2)
        return joined(arena, bytes_slice(low, 0, low.len - strlen(SERVICE)), BYTES(DOMAIN),
                      BYTES_NONE);
    if (low.data == NULL || dots(low) > 0 || namespace.len == 0)
        return low;
    low = joined(arena, low, BYTES("."), namespace);
    return low.data == NULL ? low : joined(arena, low, BYTES(DOMAIN), BYTES_NONE);
}

unsigned config_host_forms(struct arena *arena, struct bytes host, struct bytes namespace,
                           struct bytes forms[CONFIG_HOST_FORMS])
{
    bool is_short = dots(host) == 0;

    forms[0] = joined(arena, host, BYTES_NONE, BYTES_NONE);
    if (forms[0].data == NULL)
        return 0;
    forms[2] = is_short ? joined(arena, host, BYTES("."), namespace) : with_namespace(forms[0]);
    if (forms[2].len == 0)
        return is_short ? 0 : 1;
    forms[1] = joined(arena, forms[2], BYTES(DOMAIN), BYTES_NONE);
    return forms[1].data != NULL ? 3 : 0;
}

bool config_host_widen(struct bytes *host, char room[CONFIG_HOST_MAX + 1])
{
    struct bytes rest = config_host_is_pattern(*host) ? bytes_skip(*host, 2) : *host;
    size_t dot = bytes_find(rest, '.');

    if (bytes_equal(*host, BYTES("*")))
        return false;
    rest = bytes_skip(rest, dot); /* with its dot */
    room[0] = '*';
    if (rest.len > 0)
        memmove(room + 1, rest.data, rest.len);
    *host = bytes_from(room, rest.len + 1);
    return true;
}
