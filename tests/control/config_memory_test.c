/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Out of memory at every single allocation of a load, one after the other: always an answer, never
 * a crash, never a leak. The heap below is glibc's own behind a counter; not under a sanitizer,
 * which brings its own.
 */
#include "control/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/memory.h"
#include "io/error.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif

static long until_failure = -1; /* -1: never */
static long out;                /* blocks taken and not given back */
static bool reached;

#if !defined(SANITIZED) && defined(__GLIBC__)
#define COUNTED 1

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void __libc_free(void *p);

static bool fails(void)
{
    if (until_failure < 0 || until_failure-- > 0)
        return false;
    reached = true;
    return true;
}

void *malloc(size_t size)
{
    void *p = fails() ? NULL : __libc_malloc(size);

    out += p != NULL;
    return p;
}

void *calloc(size_t count, size_t size)
{
    void *p = fails() ? NULL : __libc_calloc(count, size);

    out += p != NULL;
    return p;
}

void *realloc(void *old, size_t size)
{
    void *p = fails() ? NULL : __libc_realloc(old, size);

    out += p != NULL && old == NULL;
    return p;
}

void free(void *p)
{
    out -= p != NULL;
    __libc_free(p);
}
#endif

static int resolve(struct config_resolver *r, struct bytes host, struct address *to)
{
    (void)r;
    *to = (struct address){.kind = ADDRESS_IPV4, .ip = {10, 0, 0, (uint8_t)host.len}};
    return 0;
}

/* Good, with a bit of everything that is copied or allocated; and one with errors. */
static const char good[] =
    "admin: {listen: 'unix:/run/a'}\nuser: nobody\n"
    "listeners:\n"
    "- {name: w, listen: 'unix:/run/l', routes: [{name: r, cluster: a, match: {hosts: [x, y],\n"
    "    methods: [GET], pathPrefix: /p}}, {cluster: b}]}\n"
    "- {name: v, listen: '127.0.0.1:1', routes: [{cluster: b}]}\n"
    "clusters:\n"
    "- {name: a, endpoints: [{address: 'h:1', zone: z, version: v}, {address: 'unix:/run/e'}]}\n"
    "- {name: b, endpoints: [{address: '[::1]:1'}], host: s.t, "
    "trafficPolicy: {connectionPool: {tcp: {}}}}\n"
    "---\napiVersion: networking.istio.io/v1\nkind: DestinationRule\n"
    "spec: {host: s.t, trafficPolicy: {outlierDetection: {}}, subsets: [{name: x}]}\n";
static const char bad[] = "workers: x\nlisteners: [{nam: x}]\nclusters: [{name: a b}]\n";

/* Larger than the first blocks of the arenas, so that each growth can fail too. */
static char large[64 * 1024];

static void make_large(void)
{
    int len = snprintf(large, sizeof(large),
                       "listeners: [{name: w, listen: '0.0.0.0:1', routes: "
                       "[{cluster: c0}]}]\nclusters:\n");

    for (int i = 0; i < 60; i++)
        len += snprintf(large + len, sizeof(large) - (size_t)len,
                        "- {name: c%d, host: s%d.n, endpoints: [{address: 'name%d.test:80', zone: "
                        "zzzzzz}]}\n",
                        i, i, i);
    snprintf(large + len, sizeof(large) - (size_t)len,
             "---\napiVersion: networking.istio.io/v1\nkind: DestinationRule\n"
             "spec: {host: '*', subsets: [{name: x, labels: {}}, {name: y}]}\n");
}

/* The "path" is the content. */
static int read_text(struct files *f, const char *path, size_t limit, struct bytes *content)
{
    char *copy = memory_take(strlen(path));
    (void)f;

    assert_true(strlen(path) < limit);
    if (copy == NULL)
        return IO_NO_MEMORY;
    memcpy(copy, path, strlen(path));
    *content = bytes_from(copy, strlen(path));
    return IO_OK;
}

static const struct files_ops files_ops = {.read = read_text};

static int load_once(const char *text)
{
    struct files files = {.ops = &files_ops};
    struct config_resolver resolver = {resolve};
    struct config_errors e;
    struct snapshot *s = NULL;
    int status;

    config_errors_init(&e);
    status = config_load(&(const char *){text}, 1, &files, &resolver, &e, &s);
    if (status == CONFIG_OK && !snapshot_attach_state(s, 2))
        status = CONFIG_NO_MEMORY;
    else if (status != CONFIG_OK)
        assert_true(e.count > 0 && s == NULL);
    config_errors_release(&e);
    snapshot_drop(s);
    return status;
}

static int list_once(const char *text)
{
    const struct config_run run = {
        .to = bytes_of(text), .admin = BYTES("unix:/a"), .listen = BYTES("unix:/l")};
    struct config_resolver resolver = {resolve};
    struct config_errors e;
    struct snapshot *s = NULL;
    int status;

    config_errors_init(&e);
    status = config_from_list(&run, &resolver, &e, &s);
    assert_true(status == CONFIG_OK || (e.count > 0 && s == NULL));
    config_errors_release(&e);
    snapshot_drop(s);
    return status;
}

static void fail_each(int (*once)(const char *text), const char *text, int expected)
{
    long nth = 0;

    do {
        long before = out;
        int status;

        reached = false;
        until_failure = nth++;
        status = once(text);
        until_failure = -1;
        assert_int_equal(out, before);
        if (!reached)
            assert_int_equal(status, expected);
        else if (status != CONFIG_NO_MEMORY && status != expected && status != CONFIG_INVALID)
            fail_msg("allocation %ld: status %d", nth, status);
    } while (reached);
    assert_true(nth > 3);
}

static void every_allocation_of_a_load_may_fail(void **state)
{
    (void)state;
#ifndef COUNTED
    skip();
#endif
    make_large();
    fail_each(load_once, good, CONFIG_OK);
    fail_each(load_once, bad, CONFIG_INVALID);
    fail_each(load_once, large, CONFIG_OK);
    fail_each(list_once, "a:1,b:2,[::1]:3", CONFIG_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_of_a_load_may_fail),
    };

    return cmocka_run_group_tests_name("config_memory", tests, NULL, NULL);
}
