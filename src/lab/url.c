/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/url.h"

#include <stdbool.h>

#include "base/address.h"

#define URL_MAX 8192

#define EXAMPLE "; write http://HOST:PORT/PATH"

static bool all_visible(struct bytes b)
{
    for (size_t i = 0; i < b.len; i++)
        if (b.data[i] <= ' ' || b.data[i] >= 0x7f)
            return false;
    return true;
}

/* Up to the first of '/', '?' and '#'. */
static size_t authority_end(struct bytes b)
{
    size_t n = 0;

    while (n < b.len && b.data[n] != '/' && b.data[n] != '?' && b.data[n] != '#')
        n++;
    return n;
}

/* Without a port: "name", "127.0.0.1" or "[::1]". */
static bool take_bare_host(struct bytes authority, struct bytes *host)
{
    struct address a;

    if (authority.len == 0)
        return false;
    if (authority.data[0] == '[' && authority.data[authority.len - 1] == ']') {
        *host = bytes_slice(authority, 1, authority.len - 2);
        return address_parse_ip(*host, &a);
    }
    *host = authority;
    return bytes_find(authority, ':') == authority.len;
}

static const char *parse_authority(struct bytes authority, struct url *u)
{
    if (bytes_find(authority, '@') < authority.len)
        return "a user name is not supported" EXAMPLE;
    u->authority = authority;
    u->port = 80;
    if (take_bare_host(authority, &u->host))
        return NULL;
    if (address_split(authority, &u->host, &u->port) && u->port != 0)
        return NULL;
    return "the host or port is not valid" EXAMPLE;
}

const char *url_parse(struct bytes text, struct url *out)
{
    struct url u = {.target = BYTES("/")};
    const char *wrong;
    size_t end;

    if (text.len > URL_MAX)
        return "it is longer than 8192 bytes";
    if (!all_visible(text))
        return "it has a blank, a control or a byte that is not ASCII; write those as %20 and so "
               "on";
    if (bytes_equal_nocase(bytes_slice(text, 0, 8), BYTES("https://")))
        return "https is not supported yet" EXAMPLE;
    if (!bytes_equal_nocase(bytes_slice(text, 0, 7), BYTES("http://")))
        return "it does not begin with http://" EXAMPLE;
    text = bytes_skip(text, 7);
    text = bytes_slice(text, 0, bytes_find(text, '#'));
    end = authority_end(text);
    wrong = parse_authority(bytes_slice(text, 0, end), &u);
    if (wrong != NULL)
        return wrong;
    if (end < text.len)
        u.target = bytes_skip(text, end);
    if (u.target.data[0] == '?')
        return "there is no path before the '?'; write http://HOST:PORT/?QUERY";
    *out = u;
    return NULL;
}
