/* SPDX-License-Identifier: Apache-2.0 */
/* The control loop: what a turn does and in which order, and that workers are told, sooner or
 * later. */
#include "control/control.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/list.h"
#include "model/messages.h"

#define S       NS_PER_S
#define WORKERS 3
#define ROOM    4096

struct fake_mailbox {
    struct mailbox base;
    struct message messages[ROOM];
    uint32_t head, count, room;
};

/* A world of one thread: a clock that moves on while the poller waits, to where it is told. */
struct world {
    struct clock clock;
    mono_ns now;
    mono_ns woken_at; /* once the poller has waited */
    uint32_t readings;
    struct poller poller;
    mono_ns waited_until;
    uint32_t waits;
    void (*in_dispatch)(struct world *w);
    struct fake_mailbox inbox;
    struct fake_mailbox workers[WORKERS];
    struct mailbox *worker_pointers[WORKERS];
    struct log log;
    char events[1024]; /* names of what was logged, each followed by a space */
    char last_line[200];
    struct process_state *process;
    struct snapshot *snapshot;
    struct control *control;
};

static mono_ns read_clock(struct clock *c)
{
    struct world *w = CONTAINER_OF(c, struct world, clock);

    w->readings++;
    return w->now;
}

static wall_ns read_wall(struct clock *c)
{
    return CONTAINER_OF(c, struct world, clock)->now;
}

static void wait(struct poller *p, span_ns most)
{
    struct world *w = CONTAINER_OF(p, struct world, poller);

    w->waited_until = mono_after(w->now, most);
    w->waits++;
    w->now = w->woken_at;
}

static void dispatch(struct poller *p)
{
    struct world *w = CONTAINER_OF(p, struct world, poller);

    if (w->in_dispatch != NULL)
        w->in_dispatch(w);
}

static bool post(struct mailbox *m, const struct message *message)
{
    struct fake_mailbox *f = CONTAINER_OF(m, struct fake_mailbox, base);

    if (f->count == f->room)
        return false;
    f->messages[(f->head + f->count++) % ROOM] = *message;
    return true;
}

static bool take(struct mailbox *m, struct message *out)
{
    struct fake_mailbox *f = CONTAINER_OF(m, struct fake_mailbox, base);

    if (f->count == 0)
        return false;
    *out = f->messages[f->head];
    f->head = (f->head + 1) % ROOM;
    f->count--;
    return true;
}

static const struct mailbox_ops mailbox_operations = {.post = post, .take = take};
static const struct poller_ops poller_operations = {.wait = wait, .dispatch = dispatch};

__attribute__((format(printf, 4, 0))) static void
remember(struct log *l, enum log_level level, const char *event, const char *format, va_list args)
{
    struct world *w = CONTAINER_OF(l, struct world, log);
    size_t used = strlen(w->events);

    (void)level;
    snprintf(w->events + used, sizeof(w->events) - used, "%s ", event);
    vsnprintf(w->last_line, sizeof(w->last_line), format, args);
}

static struct snapshot *make_snapshot(void)
{
    struct snapshot *s = snapshot_create();
    struct cluster *cluster = arena_take(&s->arena, sizeof(*cluster));
    struct endpoint *endpoints = arena_take(&s->arena, 10 * sizeof(*endpoints));

    for (uint32_t i = 0; i < 10; i++)
        endpoints[i].text = BYTES("10.0.0.1:80");
    cluster->name = BYTES("checkout");
    cluster->endpoint_count = 10;
    cluster->endpoints = endpoints;
    cluster->outlier = default_outlier;
    s->clusters = cluster;
    s->cluster_count = 1;
    s->drain_timeout = 30 * S;
    assert_true(snapshot_attach_state(s, WORKERS));
    return s;
}

static struct world *start(void)
{
    static struct world w;
    struct control_setup setup;

    w = (struct world){.clock = {.read = read_clock, .wall = read_wall},
                       .poller = {.ops = &poller_operations},
                       .log = {.write = remember},
                       .now = 1000 * S,
                       .inbox = {.base = {.ops = &mailbox_operations}, .room = ROOM}};
    for (uint32_t i = 0; i < WORKERS; i++) {
        w.workers[i].base.ops = &mailbox_operations;
        w.workers[i].room = ROOM;
        w.worker_pointers[i] = &w.workers[i].base;
    }
    w.process = process_state_create(WORKERS, 1000, UINT64_C(1) << 30, w.now);
    w.snapshot = make_snapshot();
    setup = (struct control_setup){.seed = 1,
                                   .clock = &w.clock,
                                   .poller = &w.poller,
                                   .inbox = &w.inbox.base,
                                   .workers = w.worker_pointers,
                                   .worker_count = WORKERS,
                                   .log = &w.log,
                                   .process = w.process,
                                   .snapshot = w.snapshot};
    w.control = control_create(&setup);
    assert_non_null(w.control);
    w.readings = 0;
    return &w;
}

static void stop(struct world *w)
{
    control_free(w->control);
    assert_int_equal(w->snapshot->refs, 1);
    snapshot_drop(w->snapshot);
    process_state_free(w->process);
}

static void turn_at(struct world *w, mono_ns now)
{
    w->woken_at = now;
    control_turn(w->control);
}

static void from_worker(struct world *w, enum message_kind kind, uint32_t index)
{
    const struct message m = {.kind = kind,
                              .index = index,
                              .value = UINT64_C(1) << OUTLIER_CONSECUTIVE_5XX,
                              .object = w->snapshot->clusters[0].state};

    assert_true(mailbox_post(&w->inbox.base, &m));
}

static bool out(const struct world *w, uint32_t index)
{
    return host_health(w->snapshot->clusters[0].state->hosts.at[index]) == HOST_EJECTED;
}

static void a_turn_waits_until_the_next_timer_and_reads_the_clock_around_it(void **state)
{
    struct world *w = start();
    mono_ns wakeup = control_wakeup(w->control);
    (void)state;

    assert_true(wakeup > 1000 * S && wakeup <= 1030 * S + NS_PER_MS);
    turn_at(w, 1001 * S);
    assert_true(w->waited_until == wakeup);
    assert_int_equal(w->waits, 1);
    assert_int_equal(w->readings, 2);
    assert_true(control_now(w->control) == 1001 * S);
    assert_ptr_equal(control_snapshot(w->control), w->snapshot);
    assert_ptr_equal(control_process(w->control), w->process);
    assert_ptr_equal(control_poller(w->control), &w->poller);
    stop(w);
}

static void an_accused_host_is_out_in_the_same_turn_and_back_by_timer(void **state)
{
    struct world *w = start();
    (void)state;

    from_worker(w, MESSAGE_OUTLIER, 4);
    turn_at(w, 1001 * S);
    assert_true(out(w, 4));
    assert_string_equal(w->events, "endpoint.ejected ");
    for (mono_ns now = 1002 * S; now < 1060 * S; now = control_wakeup(w->control))
        turn_at(w, now);
    assert_true(out(w, 4));
    turn_at(w, 1061 * S);
    assert_false(out(w, 4));
    assert_string_equal(w->events, "endpoint.ejected endpoint.returned ");
    stop(w);
}

struct note {
    struct timer timer;
    mono_ns fired_at;
};

static void note_fired(struct timer *t, mono_ns now)
{
    CONTAINER_OF(t, struct note, timer)->fired_at = now;
}

static void timers_of_others_run_on_its_wheel_at_its_time(void **state)
{
    struct world *w = start();
    struct note note = {.fired_at = 0};
    (void)state;

    timer_init(&note.timer, note_fired);
    wheel_arm(control_wheel(w->control), &note.timer, 1001 * S);
    assert_true(control_wakeup(w->control) <= 1001 * S + NS_PER_MS);
    turn_at(w, 1000 * S + 500 * NS_PER_MS);
    assert_int_equal(note.fired_at, 0);
    turn_at(w, 1002 * S);
    assert_true(note.fired_at == 1002 * S);
    stop(w);
}

static void a_flood_of_messages_is_worked_off_over_turns_without_sleeping(void **state)
{
    struct world *w = start();
    (void)state;

    for (uint32_t i = 0; i < 3000; i++)
        from_worker(w, MESSAGE_OUTLIER, 0);
    turn_at(w, 1001 * S);
    assert_int_not_equal(w->inbox.count, 0);
    assert_int_not_equal(w->inbox.count, 3000);
    for (uint32_t i = 0; i < 5 && w->inbox.count > 0; i++) {
        assert_true(control_wakeup(w->control) <= w->now);
        turn_at(w, 1001 * S);
    }
    assert_int_equal(w->inbox.count, 0);
    turn_at(w, 1001 * S);
    assert_true(control_wakeup(w->control) > w->now);
    stop(w);
}

static void it_is_done_when_each_worker_has_said_so_once(void **state)
{
    struct world *w = start();
    (void)state;

    assert_false(control_done(w->control));
    from_worker(w, MESSAGE_WORKER_DONE, 0);
    from_worker(w, MESSAGE_WORKER_DONE, 2);
    from_worker(w, MESSAGE_WORKER_DONE, 2);
    from_worker(w, MESSAGE_WORKER_DONE, WORKERS);
    turn_at(w, 1001 * S);
    assert_false(control_done(w->control));
    from_worker(w, MESSAGE_WORKER_DONE, 1);
    turn_at(w, 1002 * S);
    assert_true(control_done(w->control));
    stop(w);
}

static void messages_that_are_for_workers_change_nothing(void **state)
{
    struct world *w = start();
    (void)state;

    from_worker(w, MESSAGE_DRAIN, 0);
    from_worker(w, MESSAGE_QUIT, 0);
    from_worker(w, MESSAGE_SLOT, 0);
    from_worker(w, (enum message_kind)77, 0);
    turn_at(w, 1001 * S);
    assert_int_equal(w->inbox.count, 0);
    assert_string_equal(w->events, "");
    assert_false(w->process->draining);
    stop(w);
}

static void draining_tells_each_worker_once_and_by_when(void **state)
{
    struct world *w = start();
    (void)state;

    turn_at(w, 1001 * S);
    w->now = 5000 * S; /* the loop slept long: the last turn's time is no good */
    control_drain(w->control);
    control_drain(w->control);
    turn_at(w, 5001 * S);
    control_drain(w->control);
    assert_true(w->process->draining);
    for (uint32_t i = 0; i < WORKERS; i++) {
        struct message m;

        assert_true(mailbox_take(&w->workers[i].base, &m));
        assert_int_equal(m.kind, MESSAGE_DRAIN);
        assert_true(m.at == 5030 * S);
        assert_false(mailbox_take(&w->workers[i].base, &m));
    }
    assert_string_equal(w->events, "process.draining ");
    assert_non_null(strstr(w->last_line, "30s"));
    stop(w);
}

static void shedding_is_told_once_and_is_no_drain_yet(void **state)
{
    struct world *w = start();
    (void)state;

    control_shed(w->control);
    control_shed(w->control);
    assert_true(w->process->draining);
    control_drain(w->control);
    control_shed(w->control);
    for (uint32_t i = 0; i < WORKERS; i++) {
        struct message m;

        assert_int_equal(w->workers[i].count, 2);
        assert_true(mailbox_take(&w->workers[i].base, &m));
        assert_int_equal(m.kind, MESSAGE_SHED);
        assert_true(mailbox_take(&w->workers[i].base, &m));
        assert_int_equal(m.kind, MESSAGE_DRAIN);
    }
    assert_string_equal(w->events, "process.shedding process.draining ");
    stop(w);
}

static void expect_message(struct world *w, enum message_kind kind, mono_ns at)
{
    for (uint32_t i = 0; i < WORKERS; i++) {
        struct message m;

        assert_true(mailbox_take(&w->workers[i].base, &m));
        assert_int_equal(m.kind, kind);
        assert_true(at == 0 || m.at == at);
        assert_false(mailbox_take(&w->workers[i].base, &m));
    }
}

/* Nobody is told anything by |at|. */
static void expect_silence(struct world *w, mono_ns at)
{
    struct message m;

    turn_at(w, at);
    for (uint32_t i = 0; i < WORKERS; i++)
        assert_false(mailbox_take(&w->workers[i].base, &m));
}

static void with_a_drain_wait_workers_close_later_and_the_end_stays_where_it_was(void **state)
{
    struct world *w = start();
    (void)state;

    w->snapshot->drain_wait = 5 * S;
    turn_at(w, 1001 * S);
    control_drain(w->control);
    assert_true(w->process->draining); /* /ready says so at once */
    assert_true(control_drains(w->control));
    assert_non_null(strstr(w->last_line, "after 5s"));
    assert_non_null(strstr(w->last_line, "30s"));
    expect_message(w, MESSAGE_SHED, 0);
    expect_silence(w, 1003 * S);
    control_drain(w->control); /* told again: nothing changes */
    control_shed(w->control);
    expect_silence(w, 1005 * S);
    turn_at(w, 1006 * S);
    expect_message(w, MESSAGE_DRAIN, 1031 * S);
    assert_string_equal(w->events, "process.draining process.closing ");
    stop(w);
}

static void quitting_does_not_wait_for_the_drain_wait(void **state)
{
    struct world *w = start();
    (void)state;

    w->snapshot->drain_wait = 5 * S;
    turn_at(w, 1001 * S);
    control_shed(w->control);
    expect_message(w, MESSAGE_SHED, 0);
    assert_false(control_drains(w->control));
    control_drain(w->control);
    control_quit(w->control);
    turn_at(w, 1002 * S);
    expect_message(w, MESSAGE_QUIT, 0);
    expect_silence(w, 1007 * S);
    stop(w);
}

static void drain_inside(struct world *w)
{
    control_drain(w->control);
}

static void draining_inside_a_turn_takes_the_turns_time(void **state)
{
    struct world *w = start();
    struct message m;
    (void)state;

    w->in_dispatch = drain_inside;
    turn_at(w, 1001 * S);
    assert_int_equal(w->readings, 2);
    assert_true(mailbox_take(&w->workers[0].base, &m));
    assert_true(m.at == 1031 * S);
    stop(w);
}

static void quitting_tells_each_worker_once_also_after_draining(void **state)
{
    struct world *w = start();
    (void)state;

    control_drain(w->control);
    control_quit(w->control);
    control_quit(w->control);
    control_drain(w->control);
    for (uint32_t i = 0; i < WORKERS; i++) {
        struct message m;

        assert_int_equal(w->workers[i].count, 2);
        assert_true(mailbox_take(&w->workers[i].base, &m));
        assert_int_equal(m.kind, MESSAGE_DRAIN);
        assert_true(mailbox_take(&w->workers[i].base, &m));
        assert_int_equal(m.kind, MESSAGE_QUIT);
    }
    stop(w);
}

static void quitting_at_once_is_a_drain_too_for_those_who_ask(void **state)
{
    struct world *w = start();
    (void)state;

    control_quit(w->control);
    control_drain(w->control);
    assert_true(w->process->draining);
    assert_int_equal(w->workers[0].count, 1);
    assert_int_equal(w->workers[0].messages[0].kind, MESSAGE_QUIT);
    stop(w);
}

static void a_worker_with_a_full_mailbox_is_told_as_soon_as_there_is_room(void **state)
{
    struct world *w = start();
    struct message m;
    (void)state;

    w->workers[1].room = 0;
    control_drain(w->control);
    control_quit(w->control);
    assert_int_equal(w->workers[0].count, 2);
    assert_int_equal(w->workers[1].count, 0);
    assert_int_equal(w->workers[2].count, 2); /* who comes after does not wait */
    for (uint32_t i = 0; i < 10; i++) {
        assert_true(control_wakeup(w->control) <= w->now + 3 * NS_PER_MS);
        turn_at(w, w->now + 2 * NS_PER_MS);
    }
    w->workers[1].room = 1;
    turn_at(w, w->now + 2 * NS_PER_MS);
    turn_at(w, w->now + 2 * NS_PER_MS);
    assert_true(mailbox_take(&w->workers[1].base, &m));
    assert_int_equal(m.kind, MESSAGE_DRAIN);
    assert_true(m.at == 1030 * S);
    turn_at(w, w->now + 2 * NS_PER_MS);
    assert_true(mailbox_take(&w->workers[1].base, &m));
    assert_int_equal(m.kind, MESSAGE_QUIT);
    turn_at(w, w->now + 2 * NS_PER_MS);
    assert_int_equal(w->workers[0].count, 2); /* nobody is told twice */
    assert_int_equal(w->workers[1].count, 0);
    assert_true(control_wakeup(w->control) > w->now + S / 2); /* to look at the limits */
    stop(w);
}

static void a_worker_that_is_done_is_told_nothing_more(void **state)
{
    struct world *w = start();
    (void)state;

    from_worker(w, MESSAGE_WORKER_DONE, 1);
    turn_at(w, 1001 * S);
    control_quit(w->control);
    assert_int_equal(w->workers[0].count, 1);
    assert_int_equal(w->workers[1].count, 0);
    stop(w);
}

static void freeing_nothing_does_nothing(void **state)
{
    (void)state;
    control_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_turn_waits_until_the_next_timer_and_reads_the_clock_around_it),
        cmocka_unit_test(an_accused_host_is_out_in_the_same_turn_and_back_by_timer),
        cmocka_unit_test(timers_of_others_run_on_its_wheel_at_its_time),
        cmocka_unit_test(a_flood_of_messages_is_worked_off_over_turns_without_sleeping),
        cmocka_unit_test(it_is_done_when_each_worker_has_said_so_once),
        cmocka_unit_test(messages_that_are_for_workers_change_nothing),
        cmocka_unit_test(draining_tells_each_worker_once_and_by_when),
        cmocka_unit_test(shedding_is_told_once_and_is_no_drain_yet),
        cmocka_unit_test(with_a_drain_wait_workers_close_later_and_the_end_stays_where_it_was),
        cmocka_unit_test(quitting_does_not_wait_for_the_drain_wait),
        cmocka_unit_test(draining_inside_a_turn_takes_the_turns_time),
        cmocka_unit_test(quitting_tells_each_worker_once_also_after_draining),
        cmocka_unit_test(quitting_at_once_is_a_drain_too_for_those_who_ask),
        cmocka_unit_test(a_worker_with_a_full_mailbox_is_told_as_soon_as_there_is_room),
        cmocka_unit_test(a_worker_that_is_done_is_told_nothing_more),
        cmocka_unit_test(freeing_nothing_does_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
