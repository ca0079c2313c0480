/* SPDX-License-Identifier: Apache-2.0 */
#include "os/signals.h"

#include <signal.h>
#include <unistd.h>

#include "os/loop.h"
#include "os/threads.h"

struct heard {
    unsigned count[4];
    struct os_signals *signals;
    bool free_at_first;
};

static void told(void *owner, enum os_signal signal)
{
    struct heard *h = owner;

    h->count[signal]++;
    if (h->free_at_first) {
        os_signals_free(h->signals);
        h->signals = NULL;
    }
}

static int block(void **state)
{
    (void)state;
    os_signals_block();
    return 0;
}

static void signals_become_events(void **state)
{
    const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1};
    struct loop l;
    struct heard h = {.count = {0}};
    (void)state;

    loop_init(&l);
    kill(getpid(), SIGTERM); /* before anybody listened: not lost */
    assert_int_equal(os_signals_create(l.poller, told, &h, &h.signals), IO_OK);
    UNTIL(&l, h.count[OS_SIGNAL_TERM] == 1);
    for (unsigned i = 0; i < 4; i++) {
        unsigned before = h.count[i];

        kill(getpid(), numbers[i]);
        UNTIL(&l, h.count[i] == before + 1);
    }
    kill(getpid(), SIGTERM);
    kill(getpid(), SIGHUP);
    UNTIL(&l, h.count[OS_SIGNAL_TERM] == 3 && h.count[OS_SIGNAL_HUP] == 2);
    settle_down(&l);
    assert_int_equal(h.count[OS_SIGNAL_INT], 1);
    os_signals_free(h.signals);
    os_signals_free(NULL);
    loop_stop(&l);
}

static void the_listener_may_go_while_it_is_told(void **state)
{
    struct loop l;
    struct heard h = {.free_at_first = true};
    sigset_t pending;
    siginfo_t info;
    (void)state;

    loop_init(&l);
    assert_int_equal(os_signals_create(l.poller, told, &h, &h.signals), IO_OK);
    kill(getpid(), SIGHUP);
    kill(getpid(), SIGUSR1);
    UNTIL(&l, h.signals == NULL);
    settle_down(&l);
    assert_int_equal(h.count[OS_SIGNAL_HUP] + h.count[OS_SIGNAL_USR1], 1);
    assert_int_equal(sigpending(&pending), 0);
    assert_true(sigismember(&pending, SIGHUP) + sigismember(&pending, SIGUSR1) == 1);
    assert_true(sigwaitinfo(&pending, &info) > 0);
    loop_stop(&l);
}

static void a_broken_pipe_kills_nobody(void **state)
{
    int ends[2];
    (void)state;

    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    assert_int_equal(write(ends[1], "x", 1), -1);
    close(ends[1]);
}

static void look_at_mask(void *arg)
{
    sigset_t *mask = arg;

    pthread_sigmask(SIG_SETMASK, NULL, mask);
}

static void threads_leave_signals_to_the_loop(void **state)
{
    struct os_thread t;
    sigset_t mask, mine;
    (void)state;

    assert_int_equal(os_thread_start(&t, "fb-test", look_at_mask, &mask), IO_OK);
    os_thread_join(&t);
    assert_true(sigismember(&mask, SIGTERM) == 1 && sigismember(&mask, SIGCHLD) == 1);
    assert_true(sigismember(&mask, SIGSEGV) == 0 && sigismember(&mask, SIGABRT) == 0);
    pthread_sigmask(SIG_SETMASK, NULL, &mine);
    assert_true(sigismember(&mine, SIGCHLD) == 0); /* the starter's own mask is as before */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signals_become_events),
        cmocka_unit_test(the_listener_may_go_while_it_is_told),
        cmocka_unit_test(a_broken_pipe_kills_nobody),
        cmocka_unit_test(threads_leave_signals_to_the_loop),
    };

    return cmocka_run_group_tests(tests, block, NULL);
}
