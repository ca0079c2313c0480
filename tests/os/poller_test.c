/* SPDX-License-Identifier: Apache-2.0 */
#include "os/poller.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include <sys/resource.h>
#include <sys/stat.h>

#include "os/loop.h"

static unsigned open_descriptors(void)
{
    unsigned n = 0;

    for (int fd = 0; fd < 4096; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static void echo_back(struct end *e, struct bytes data)
{
    assert_int_equal(link_write(e->link, &data, 1), data.len);
}

static void nothing_is_told_outside_dispatch(void **state)
{
    struct loop l;
    struct end client, server;
    (void)state;

    loop_start(&l);
    pair(&l, &client, &server);
    say(&client, "x");
    poller_wait(l.poller, PATIENCE);
    assert_int_equal(server.received, 0);
    poller_wait(l.poller, MONO_NEVER); /* a second wait forgets nothing and does not sleep */
    poller_dispatch(l.poller);
    UNTIL(&l, server.received == 1);
    end_close(&client);
    end_close(&server);
    loop_stop(&l);
}

static struct end *crowd;

static unsigned crowd_count;

static void crowd_accepted(struct loop *l, struct link *link)
{
    struct end *e = &crowd[crowd_count++];

    *e = (struct end){.link = link, .loop = l, .on_received = echo_back};
    link_own(link, &end_events, e);
    link_read_start(link);
}

#define CROWD 1000U

static void a_thousand_links_at_once(void **state)
{
    struct loop l;
    struct end *clients = calloc(CROWD, sizeof(*clients));
    struct os_poller_sizes sizes;
    struct rlimit limit;
    unsigned n = 0;
    (void)state;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    crowd = calloc(CROWD, sizeof(*crowd));
    crowd_count = 0;
    loop_start(&l);
    l.on_accepted = crowd_accepted;
    for (unsigned i = 0; i < CROWD; i++)
        end_connect(&clients[i], &l, &l.at);
    UNTIL(&l, crowd_count == CROWD);
    os_poller_sizes(l.poller, &sizes);
    assert_int_equal(sizes.links, 2 * CROWD);
    assert_true(sizes.link <= 160);
    for (unsigned round = 1; round <= 3; round++) {
        for (unsigned i = 0; i < CROWD; i++)
            assert_int_equal(say(&clients[i], "ping"), 4);
        for (n = 0; n < CROWD; n++)
            UNTIL(&l, clients[n].received == 4 * round);
    }
    for (unsigned i = 0; i < CROWD; i++) {
        end_close(&clients[i]);
        assert_int_equal(clients[i].opened, 1);
    }
    for (n = 0; n < CROWD; n++) {
        UNTIL(&l, crowd[n].ended);
        end_close(&crowd[n]);
    }
    settle_down(&l);
    os_poller_sizes(l.poller, &sizes);
    assert_int_equal(sizes.links, 0);
    loop_stop(&l);
    free(crowd);
    free(clients);
}

static void closed_links_are_used_again(void **state)
{
    struct loop l;
    struct os_poller_sizes first, later;
    struct end a, b;
    (void)state;

    loop_start(&l);
    for (int i = 0; i < 50; i++) {
        pair(&l, &a, &b);
        end_close(&a);
        end_close(&b);
        settle_down(&l);
        if (i == 0)
            os_poller_sizes(l.poller, &first);
    }
    os_poller_sizes(l.poller, &later);
    assert_int_equal(later.allocations, first.allocations);
    loop_stop(&l);
}

static void waiting_ends_at_the_time_asked_for(void **state)
{
    struct loop l;
    mono_ns before, after;
    (void)state;

    loop_init(&l);
    for (span_ns length = 300 * NS_PER_US; length <= 3 * NS_PER_MS; length += NS_PER_MS) {
        before = clock_read(&l.clock);
        poller_wait(l.poller, length);
        after = clock_read(&l.clock);
        assert_true(after >= before + length);
        assert_true(after < before + length + NS_PER_S);
        poller_dispatch(l.poller);
    }
    poller_wait(l.poller, 0);
    poller_dispatch(l.poller);
    loop_stop(&l);
}

struct waker {
    struct poller *poller;
    unsigned wakes;
    _Atomic unsigned done;
};

static void *wake_often(void *arg)
{
    struct waker *w = arg;

    for (unsigned i = 0; i < w->wakes; i++) {
        w->done = i + 1;
        poller_wake(w->poller);
    }
    return NULL;
}

static void a_wake_from_another_thread_is_never_lost(void **state)
{
    struct loop l;
    struct waker w = {.wakes = 20000};
    pthread_t thread;
    (void)state;

    loop_init(&l);
    w.poller = l.poller;
    assert_int_equal(pthread_create(&thread, NULL, wake_often, &w), 0);
    /* Were one lost, this would sleep for ever: nothing else happens on this poller. */
    while (w.done < w.wakes) {
        poller_wait(l.poller, MONO_NEVER);
        poller_dispatch(l.poller);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    poller_wake(l.poller); /* before the wait counts, too */
    poller_wait(l.poller, MONO_NEVER);
    poller_dispatch(l.poller);
    loop_stop(&l);
}

static void freeing_the_poller_closes_what_is_open(void **state)
{
    struct loop l;
    struct end a, b, c = {.link = NULL};
    unsigned before = open_descriptors();
    char path[64];
    struct address at = {.kind = ADDRESS_UNIX, .path = path};
    struct listener *local;
    struct stat about;
    (void)state;

    snprintf(path, sizeof(path), "/tmp/fb-os-free-%d", (int)getpid());
    loop_start(&l);
    assert_int_equal(poller_listen(l.poller, &at, NULL, &local), IO_OK);
    pair(&l, &a, &b);
    at.path = "/nonexistent/x";
    end_connect(&c, &l, &at);
    l.listener = NULL;
    loop_stop(&l);
    assert_int_equal(open_descriptors(), before);
    assert_int_equal(lstat(path, &about), -1);
    os_poller_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_told_outside_dispatch),
        cmocka_unit_test(a_thousand_links_at_once),
        cmocka_unit_test(closed_links_are_used_again),
        cmocka_unit_test(waiting_ends_at_the_time_asked_for),
        cmocka_unit_test(a_wake_from_another_thread_is_never_lost),
        cmocka_unit_test(freeing_the_poller_closes_what_is_open),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
