/* SPDX-License-Identifier: Apache-2.0 */
#include "os/mailbox.h"

#include <pthread.h>
#include <sched.h>

#include "os/loop.h"

static void messages_come_out_as_they_went_in(void **state)
{
    struct mailbox *m = os_mailbox_create(NULL, 4);
    struct message in = {.kind = 1, .index = 2, .value = 3, .at = 4, .object = m};
    struct message out = {.kind = 0};
    (void)state;

    assert_false(mailbox_take(m, &out));
    assert_true(mailbox_post(m, &in));
    in.kind = 9;
    assert_true(mailbox_post(m, &in));
    assert_true(mailbox_take(m, &out));
    assert_int_equal(out.kind, 1);
    assert_int_equal(out.index, 2);
    assert_int_equal(out.value, 3);
    assert_int_equal(out.at, 4);
    assert_ptr_equal(out.object, m);
    assert_true(mailbox_take(m, &out));
    assert_int_equal(out.kind, 9);
    assert_false(mailbox_take(m, &out));
    os_mailbox_free(m);
    os_mailbox_free(NULL);
}

static void a_full_one_refuses_until_one_is_taken(void **state)
{
    struct mailbox *m = os_mailbox_create(NULL, 4);
    struct message message = {.kind = 0};
    (void)state;

    for (unsigned round = 0; round < 10; round++) {
        for (unsigned i = 0; i < 4; i++) {
            message.value = round * 10 + i;
            assert_true(mailbox_post(m, &message));
        }
        message.value = 999;
        assert_false(mailbox_post(m, &message));
        assert_true(mailbox_take(m, &message));
        assert_int_equal(message.value, round * 10);
        message.value = round * 10 + 4;
        assert_true(mailbox_post(m, &message));
        assert_false(mailbox_post(m, &message));
        for (unsigned i = 1; i < 5; i++) {
            assert_true(mailbox_take(m, &message));
            assert_int_equal(message.value, round * 10 + i);
        }
        assert_false(mailbox_take(m, &message));
    }
    os_mailbox_free(m);
}

#define SENDERS 4
#define EACH    20000

struct sender {
    struct mailbox *to;
    uint32_t index;
    uint64_t refused;
    pthread_t thread;
};

static void *send_all(void *arg)
{
    struct sender *s = arg;
    struct message message = {.index = s->index};

    for (message.value = 0; message.value < EACH; message.value++) {
        while (!mailbox_post(s->to, &message)) {
            s->refused++;
            sched_yield();
        }
    }
    return NULL;
}

/* The receiver sleeps without end whenever it has nothing: a lost wake hangs the test. */
static void nothing_is_lost_doubled_or_overtaken(void **state)
{
    struct loop l;
    struct sender senders[SENDERS];
    uint64_t next[SENDERS] = {0};
    struct message message;
    uint64_t taken = 0;
    (void)state;

    loop_init(&l);
    struct mailbox *m = os_mailbox_create(l.poller, 64);

    for (uint32_t i = 0; i < SENDERS; i++) {
        senders[i] = (struct sender){.to = m, .index = i};
        assert_int_equal(pthread_create(&senders[i].thread, NULL, send_all, &senders[i]), 0);
    }
    while (taken < SENDERS * EACH) {
        poller_wait(l.poller, MONO_NEVER);
        poller_dispatch(l.poller);
        while (mailbox_take(m, &message)) {
            assert_true(message.index < SENDERS);
            assert_int_equal(message.value, next[message.index]);
            next[message.index]++;
            taken++;
        }
    }
    for (uint32_t i = 0; i < SENDERS; i++)
        pthread_join(senders[i].thread, NULL);
    assert_false(mailbox_take(m, &message));
    os_mailbox_free(m);
    loop_stop(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_come_out_as_they_went_in),
        cmocka_unit_test(a_full_one_refuses_until_one_is_taken),
        cmocka_unit_test(nothing_is_lost_doubled_or_overtaken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
