/* SPDX-License-Identifier: Apache-2.0 */
#include "io/poller.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "os/loop.h"

/* A plain blocking socket, for what links do not do. */
static int raw_connect(const struct address *to)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(to->port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    memcpy(&in.sin_addr, to->ip, 4);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&in, sizeof(in)), 0);
    return fd;
}

static void echo_back(struct end *e, struct bytes data)
{
    assert_int_equal(link_write(e->link, &data, 1), data.len);
}

/* In a child: the limit must not disturb the other tests. */
static void no_descriptors_in_child(void)
{
    struct loop l;
    struct end server = {.link = NULL};
    struct end refused = {.link = NULL};
    struct rlimit limit;
    int fds[64];
    unsigned n = 0;
    int client;

    loop_start(&l);
    client = raw_connect(&l.at);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = (rlim_t)client + 8;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    while (n < 64 && (fds[n] = dup(client)) >= 0)
        n++;
    l.accept_into = &server;
    UNTIL(&l, l.troubled);
    assert_int_equal(l.trouble, IO_NO_DESCRIPTORS);
    for (int i = 0; i < 50; i++)
        turn(&l, 0);
    assert_int_equal(l.troubled, 1); /* paused: told once, not again and again */
    assert_int_equal(poller_connect(l.poller, &l.at, NULL, &refused.link), IO_NO_DESCRIPTORS);
    listener_resume(l.listener);
    UNTIL(&l, l.troubled == 2);
    while (n > 0)
        close(fds[--n]);
    settle_down(&l);
    assert_null(server.link);
    listener_resume(l.listener);
    UNTIL(&l, server.link != NULL); /* who waited in the queue is served after all */
    assert_int_equal(send(client, "hi", 2, 0), 2);
    UNTIL(&l, server.received == 2);
    end_close(&server);
    close(client);
    loop_stop(&l);
}

static void without_descriptors_accepting_pauses_and_resumes(void **state)
{
    pid_t child = fork();
    int status = 0;
    (void)state;

    if (child == 0) {
        no_descriptors_in_child();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void a_paused_listener_leaves_them_in_the_queue(void **state)
{
    struct loop l;
    struct end client = {.link = NULL}, server = {.link = NULL};
    (void)state;

    loop_start(&l);
    listener_pause(l.listener);
    listener_pause(l.listener);
    l.accept_into = &server;
    end_connect(&client, &l, &l.at);
    UNTIL(&l, client.opened); /* by the kernel */
    settle_down(&l);
    assert_int_equal(l.accepted, 0);
    listener_resume(l.listener);
    listener_resume(l.listener);
    UNTIL(&l, l.accepted == 1);
    end_close(&client);
    end_close(&server);
    loop_stop(&l);
}

static void hang_up(struct loop *l, struct link *link)
{
    (void)l;
    link_close(link);
}

static void a_burst_is_accepted_in_batches(void **state)
{
    struct loop l;
    int clients[100];
    (void)state;

    loop_start(&l);
    l.on_accepted = hang_up;
    for (int i = 0; i < 100; i++)
        clients[i] = raw_connect(&l.at);
    turn(&l, PATIENCE);
    assert_int_equal(l.accepted, 64);
    turn(&l, PATIENCE);
    assert_int_equal(l.accepted, 100);
    for (int i = 0; i < 100; i++)
        close(clients[i]);
    loop_stop(&l);
}

static void pause_now(struct loop *l, struct link *link)
{
    listener_pause(l->listener);
    link_close(link);
}

static void close_now(struct loop *l, struct link *link)
{
    listener_close(l->listener);
    l->listener = NULL;
    link_close(link);
}

static void a_listener_may_be_paused_and_closed_while_it_accepts(void **state)
{
    struct loop l;
    struct end clients[3];
    (void)state;

    loop_start(&l);
    l.on_accepted = pause_now;
    memset(clients, 0, sizeof(clients));
    for (int i = 0; i < 3; i++)
        end_connect(&clients[i], &l, &l.at);
    UNTIL(&l, clients[0].opened && clients[1].opened && clients[2].opened && l.accepted);
    settle_down(&l);
    assert_int_equal(l.accepted, 1);
    l.on_accepted = close_now;
    listener_resume(l.listener);
    UNTIL(&l, l.listener == NULL);
    settle_down(&l);
    assert_int_equal(l.accepted, 2);
    UNTIL(&l, clients[0].ended + clients[0].failed && clients[1].ended + clients[1].failed);
    UNTIL(&l, clients[2].ended + clients[2].failed); /* the kernel resets who was never accepted */
    for (int i = 0; i < 3; i++)
        end_close(&clients[i]);
    loop_stop(&l);
}

static void several_pollers_share_a_port_and_others_may_not(void **state)
{
    struct loop l, m;
    struct listener *other;
    struct listen_options shared = {.reuse_port = true};
    struct address any = loopback(0);
    (void)state;

    loop_init(&l);
    loop_init(&m);
    assert_int_equal(poller_listen(l.poller, &any, &shared, &l.listener), IO_OK);
    listener_address(l.listener, &l.at);
    assert_int_not_equal(l.at.port, 0);
    assert_int_equal(poller_listen(m.poller, &l.at, &shared, &m.listener), IO_OK);
    assert_int_equal(poller_listen(m.poller, &l.at, NULL, &other), IO_ADDRESS_IN_USE);
    any.ip[0] = 203; /* not ours: TEST-NET-3 */
    any.ip[1] = 0;
    any.ip[2] = 113;
    assert_int_equal(poller_listen(m.poller, &any, NULL, &other), IO_INVALID);
    loop_stop(&l);
    loop_stop(&m);
}

static void it_speaks_ipv6(void **state)
{
    struct loop l;
    struct end client, server;
    struct address at = {.kind = ADDRESS_IPV6, .ip = {[15] = 1}};
    int probe = socket(AF_INET6, SOCK_STREAM, 0);
    struct sockaddr_in6 in = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    (void)state;

    if (probe < 0 || bind(probe, (struct sockaddr *)&in, sizeof(in)) != 0) {
        close(probe);
        skip();
    }
    close(probe);
    loop_init(&l);
    loop_listen(&l, &at);
    pair(&l, &client, &server);
    assert_int_equal(l.peer.kind, ADDRESS_IPV6);
    say(&client, "six");
    UNTIL(&l, server.received == 3);
    end_close(&client);
    end_close(&server);
    loop_stop(&l);
}

static void unix_sockets_come_and_go_with_their_path(void **state)
{
    struct loop l;
    struct end client, server;
    struct stat about;
    struct listener *second;
    char path[64];
    struct address at = {.kind = ADDRESS_UNIX, .path = path};
    (void)state;

    snprintf(path, sizeof(path), "/tmp/fb-os-test-%d", (int)getpid());
    for (int round = 0; round < 2; round++) {
        loop_init(&l);
        loop_listen(&l, &at);
        assert_string_equal(l.at.path, path);
        pair(&l, &client, &server);
        server.on_received = echo_back;
        say(&client, "local");
        UNTIL(&l, client.received == 5);
        /* Somebody listens: it is not stale. */
        l.on_accepted = hang_up; /* finding that out is a connection, closed at once */
        assert_int_equal(poller_listen(l.poller, &at, NULL, &second), IO_ADDRESS_IN_USE);
        end_close(&client);
        UNTIL(&l, server.ended);
        end_close(&server);
        loop_stop(&l);
        assert_int_equal(lstat(path, &about), -1);
        if (round == 0) { /* left behind by a kill */
            struct sockaddr_un name = {.sun_family = AF_UNIX};
            int fd = socket(AF_UNIX, SOCK_STREAM, 0);

            strcpy(name.sun_path, path);
            assert_int_equal(bind(fd, (struct sockaddr *)&name, sizeof(name)), 0);
            close(fd);
            assert_int_equal(lstat(path, &about), 0);
        }
    }
}

static void pollers_of_one_process_share_a_unix_path(void **state)
{
    struct loop l, m;
    struct end clients[2];
    struct listen_options shared = {.reuse_port = true};
    struct stat about;
    char path[64];
    struct address at = {.kind = ADDRESS_UNIX, .path = path};
    (void)state;

    snprintf(path, sizeof(path), "/tmp/fb-os-shared-%d", (int)getpid());
    loop_init(&l);
    loop_init(&m);
    assert_int_equal(poller_listen(l.poller, &at, &shared, &l.listener), IO_OK);
    assert_int_equal(poller_listen(m.poller, &at, &shared, &m.listener), IO_OK);
    listener_own(l.listener, &loop_events, &l);
    listener_own(m.listener, &loop_events, &m);
    l.on_accepted = hang_up;
    memset(clients, 0, sizeof(clients));
    m.on_accepted = hang_up;
    /* Each can be the one that accepts; who pauses leaves it to the other. */
    listener_pause(m.listener);
    end_connect(&clients[0], &l, &at);
    UNTIL(&l, l.accepted == 1);
    listener_resume(m.listener);
    listener_pause(l.listener);
    end_connect(&clients[1], &l, &at);
    UNTIL(&m, m.accepted == 1);
    UNTIL(&l, clients[0].ended && clients[1].ended);
    end_close(&clients[0]);
    end_close(&clients[1]);
    loop_stop(&m); /* the first to go takes the name with it */
    assert_int_equal(lstat(path, &about), -1);
    /* So a third listens anew, and is not confused with what still listens without a name. */
    loop_init(&m);
    assert_int_equal(poller_listen(m.poller, &at, &shared, &m.listener), IO_OK);
    assert_int_equal(lstat(path, &about), 0);
    loop_stop(&m);
    loop_stop(&l);
}

static void a_file_at_the_path_is_never_removed(void **state)
{
    struct loop l;
    struct listener *listener;
    struct stat about;
    char path[64];
    char long_path[200];
    struct address at = {.kind = ADDRESS_UNIX, .path = path};
    int fd;
    (void)state;

    loop_init(&l);
    snprintf(path, sizeof(path), "/tmp/fb-os-file-%d", (int)getpid());
    fd = open(path, O_CREAT | O_WRONLY, 0600);
    assert_true(fd >= 0);
    assert_int_equal(poller_listen(l.poller, &at, NULL, &listener), IO_ADDRESS_IN_USE);
    assert_int_equal(lstat(path, &about), 0);
    assert_true(S_ISREG(about.st_mode));
    close(fd);
    unlink(path);
    /* A path that became somebody else's meanwhile is left alone, too. */
    assert_int_equal(poller_listen(l.poller, &at, NULL, &l.listener), IO_OK);
    unlink(path);
    fd = open(path, O_CREAT | O_WRONLY, 0600);
    listener_close(l.listener);
    l.listener = NULL;
    assert_int_equal(lstat(path, &about), 0);
    close(fd);
    unlink(path);
    memset(long_path, 'a', sizeof(long_path) - 1);
    long_path[sizeof(long_path) - 1] = '\0';
    at.path = long_path;
    assert_int_equal(poller_listen(l.poller, &at, NULL, &listener), IO_INVALID);
    loop_stop(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_descriptors_accepting_pauses_and_resumes),
        cmocka_unit_test(a_paused_listener_leaves_them_in_the_queue),
        cmocka_unit_test(a_burst_is_accepted_in_batches),
        cmocka_unit_test(a_listener_may_be_paused_and_closed_while_it_accepts),
        cmocka_unit_test(several_pollers_share_a_port_and_others_may_not),
        cmocka_unit_test(it_speaks_ipv6),
        cmocka_unit_test(unix_sockets_come_and_go_with_their_path),
        cmocka_unit_test(pollers_of_one_process_share_a_unix_path),
        cmocka_unit_test(a_file_at_the_path_is_never_removed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
