/* SPDX-License-Identifier: Apache-2.0 */
/* Trials that are made good, and retries of a slow fleet: from scripted events. */
#include "exchange/witness_world.h"

#include "policy/retry_budget.h"

#define PROBED 1u

/* --- probes --- */

static uint32_t tokens(const struct fixture *f)
{
    return retry_budget_tokens(&f->cluster.state->retry_budget, &f->cluster.retry_budget, f->now);
}

/* Host PROBED is out, and may be given |n| requests. */
static void grant(struct fixture *f, uint32_t n)
{
    host_set_health(&f->cluster.state->hosts, PROBED, HOST_EJECTED);
    atomic_store(&f->cluster.state->hosts.at[PROBED]->probes, n);
    atomic_store(&f->cluster.state->mistrusts, true);
}

static void ask_probe(struct fixture *f)
{
    grant(f, 1);
    f->cluster.retry_budget.earn_permille = 0;
    f->cluster.retry_budget.floor_per_s = 0;
    ask(f);
    assert_int_equal(exchange_host(&f->x), PROBED);
    assert_true(f->x.attempts[0].trial == TRIAL_PROBE);
    assert_int_equal(tokens(f), f->cluster.retry_budget.capacity - 1);
}

/* The trial was told of, with that of |probe|; another host answers, at once, and the client sees
 * just that. */
static void another_answers(struct scene *s, enum evidence_outcome outcome, uint8_t probe)
{
    struct fixture *f = &s->f;
    struct evidence e = told_only(s, outcome);

    assert_int_equal(e.host, PROBED);
    assert_int_equal(e.flags & EVIDENCE_PROBE, probe);
    assert_true(did(f, ACTION_ATTEMPT));
    assert_false(did(f, ACTION_RESPOND));
    assert_false(did(f, ACTION_FORWARD));
    assert_int_not_equal(exchange_host(&f->x), PROBED);
    assert_int_equal(metric(f, CLUSTER_probe_made_good), 1);
    connect_and_send(f, true);
    SAY(f, EVENT_HEAD, .status = 200);
    assert_true(did(f, ACTION_FORWARD));
    SAY(f, EVENT_UPSTREAM_COMPLETE, .bytes = 1);
    assert_int_equal(told_only(s, EVIDENCE_OK).flags, EVIDENCE_RETRY);
    assert_int_equal(tokens(f), f->cluster.retry_budget.capacity - 1); /* that is what it is for */
    SAY(f, EVENT_DELIVERED);
    assert_int_equal(f->x.status, 200);
    assert_int_equal(f->x.reason, REASON_VIA_UPSTREAM);
    assert_int_equal(f->x.flags, FLAG_NONE);
}

static void made_good(struct scene *s, enum evidence_outcome outcome)
{
    another_answers(s, outcome, EVIDENCE_PROBE);
}

static void a_probe_that_passes_gives_its_token_back(void **state)
{
    struct scene s;
    struct fixture *f = open_scene(&s);
    (void)state;

    ask_probe(f);
    SAY(f, EVENT_HEAD, .status = 200);
    SAY(f, EVENT_UPSTREAM_COMPLETE, .bytes = 1);
    assert_int_equal(told_only(&s, EVIDENCE_OK).flags, EVIDENCE_PROBE | EVIDENCE_FRESH);
    assert_int_equal(tokens(f), f->cluster.retry_budget.capacity);
    close_scene(&s);
}

static void a_probe_whose_client_leaves_gives_its_token_back(void **state)
{
    struct scene s;
    struct fixture *f = open_scene(&s);
    (void)state;

    ask_probe(f);
    SAY(f, EVENT_CLIENT_GONE);
    told_only(&s, EVIDENCE_ABANDONED);
    assert_int_equal(tokens(f), f->cluster.retry_budget.capacity);
    close_scene(&s);
}

static void a_probe_that_is_answered_with_a_5xx_is_made_good(void **state)
{
    (void)state;

    for (uint32_t status = 500; status <= 504; status++) {
        struct scene s;
        struct fixture *f = open_scene(&s);

        ask_probe(f);
        SAY(f, EVENT_HEAD, .status = status, .replayable = true);
        made_good(&s, status < 502 ? EVIDENCE_ERROR : EVIDENCE_GATEWAY);
        close_scene(&s);
    }
}

static void a_probe_that_is_reset_is_made_good(void **state)
{
    struct scene s;
    struct fixture *f = open_scene(&s);
    (void)state;

    ask_probe(f);
    SAY(f, EVENT_BROKEN, .fault = FAULT_RESET, .replayable = true);
    made_good(&s, EVIDENCE_RESET);
    close_scene(&s);
}

static void a_probe_that_cannot_connect_is_made_good(void **state)
{
    struct scene s;
    struct fixture *f = open_scene(&s);
    (void)state;

    grant(f, 1);
    f->cluster.retry_budget.earn_permille = 0;
    f->cluster.retry_budget.floor_per_s = 0;
    begin_method(f, true);
    SAY(f, EVENT_REQUEST_COMPLETE);
    SAY(f, EVENT_BEGIN);
    SAY(f, EVENT_MUST_WAIT);
    SAY(f, EVENT_CONNECT_FAILED, .fault = FAULT_REFUSED, .replayable = true);
    made_good(&s, EVIDENCE_REFUSED);
    close_scene(&s);
}

/* Also where retries are held, where the route has none, and whatever is known to be late. */
static void a_probe_that_is_not_answered_is_made_good_in_time(void **state)
{
    static const struct {
        span_ns known;
        span_ns total;
        span_ns per_try;
        span_ns waits;
    } table[] = {
        {80 * MS, 15 * SEC, MONO_NEVER, 80 * MS},
        {80 * MS, 15 * SEC, 30 * MS, 30 * MS},
        {0, 2 * SEC, MONO_NEVER, SEC}, /* half of the time is the other's */
        {9 * SEC, 2 * SEC, MONO_NEVER, SEC},
        {0, 60 * SEC, MONO_NEVER, 5 * SEC},
        {0, MONO_NEVER, MONO_NEVER, 5 * SEC},
    };
    (void)state;

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct scene s;
        struct fixture *f = open_scene(&s);
        mono_ns asked;

        f->route.timeout = table[i].total;
        f->route.per_try_timeout = table[i].per_try;
        atomic_store(&f->cluster.state->probe_within[f->x.class + 1], 1000); /* another class */
        atomic_store(&f->cluster.state->probe_within[f->x.class],
                     (uint32_t)(table[i].known / 1000));
        atomic_store(&f->cluster.state->retries_held, i % 2 == 0);
        if (i % 2 == 0)
            with_retries(f, RETRY_ON_5XX, 2);
        ask_probe(f);
        asked = f->now;
        wait_for_time(f);
        assert_int_equal(f->now - asked, table[i].waits);
        made_good(&s, EVIDENCE_TIMEOUT);
        close_scene(&s);
    }
}

/* Only what may reach two hosts, and lies here whole, is given to one that is out. */
static void no_probe_is_made_of_what_cannot_be_made_good(void **state)
{
    struct scene s;
    struct fixture *f = open_scene(&s);
    (void)state;

    grant(f, 1);
    begin_method(f, false);
    SAY(f, EVENT_REQUEST_COMPLETE);
    SAY(f, EVENT_BEGIN);
    assert_int_not_equal(exchange_host(&f->x), PROBED);
    SAY(f, EVENT_CLIENT_GONE);
    check_clean(f);
    begin_method(f, true);
    SAY(f, EVENT_BEGIN);
    assert_int_not_equal(exchange_host(&f->x), PROBED);
    SAY(f, EVENT_CLIENT_GONE);
    check_clean(f);
    while (retry_budget_spend(&f->cluster.state->retry_budget, &f->cluster.retry_budget, f->now))
        ;
    begin_method(f, true);
    SAY(f, EVENT_REQUEST_COMPLETE);
    SAY(f, EVENT_BEGIN);
    assert_int_not_equal(exchange_host(&f->x), PROBED);
    SAY(f, EVENT_CLIENT_GONE);
    assert_int_equal(f->cluster.state->hosts.at[PROBED]->probes, 1); /* it is still granted */
    close_scene(&s);
}

static void so_many_probes_as_are_granted_are_made(void **state)
{
    struct scene s;
    struct fixture *f = open_scene(&s);
    uint32_t probes = 0;
    (void)state;

    grant(f, 3);
    for (uint32_t i = 0; i < 9; i++) {
        begin_method(f, true);
        SAY(f, EVENT_REQUEST_COMPLETE);
        SAY(f, EVENT_BEGIN);
        probes += exchange_host(&f->x) == PROBED;
        connect_and_send(f, true);
        SAY(f, EVENT_HEAD, .status = 200);
        SAY(f, EVENT_UPSTREAM_COMPLETE, .bytes = 1);
        SAY(f, EVENT_DELIVERED);
    }
    assert_int_equal(probes, 3);
    close_scene(&s);
}

/* --- trials of a suspect --- */

#define WITHIN (80 * MS)

/* All hosts but one are drained, and that one, PROBED, is a suspect: the next request is its. */
static void suspect(struct fixture *f, uint32_t share)
{
    const struct host_set *hosts = &f->cluster.state->hosts;

    for (uint32_t i = 0; i < hosts->count; i++) {
        if (i != PROBED)
            host_set_drain(hosts, i);
    }
    atomic_store(&hosts->at[PROBED]->cut, HOST_WHOLE - share);
    atomic_store(&f->cluster.state->mistrusts, true);
    atomic_store(&f->cluster.state->probe_within[f->x.class], (uint32_t)(WITHIN / 1000));
    atomic_fetch_add(hosts->epoch, 1);
    f->cluster.retry_budget.earn_permille = 0;
    f->cluster.retry_budget.floor_per_s = 0;
}

/* The others are there again. */
static void ask_suspect(struct fixture *f, uint32_t share)
{
    const struct host_set *hosts = &f->cluster.state->hosts;

    suspect(f, share);
    ask(f);
    assert_int_equal(exchange_host(&f->x), PROBED);
    for (uint32_t i = 0; i < hosts->count; i++)
        host_set_undrain(hosts, i);
}

/* It serves: that counts for its share. */
static void goes_to_another(struct scene *s, enum evidence_outcome outcome)
{
    another_answers(s, outcome, 0);
}

static void waits_for(struct fixture *f, span_ns span)
{
    mono_ns since = f->now;

    wait_for_time(f);
    assert_int_equal(f->now - since, span);
}

static void what_a_suspect_answers_in_time_gives_its_token_back(void **state)
{
    struct scene s;
    struct fixture *f = open_scene(&s);
    (void)state;

    ask_suspect(f, HOST_WHOLE / 20);
    assert_int_equal(tokens(f), f->cluster.retry_budget.capacity - 1);
    SAY(f, EVENT_HEAD, .status = 200);
    SAY(f, EVENT_UPSTREAM_COMPLETE, .bytes = 1);
    assert_int_equal(told_only(&s, EVIDENCE_OK).flags, EVIDENCE_FRESH);
    assert_int_equal(tokens(f), f->cluster.retry_budget.capacity);
    close_scene(&s);
}

static void what_a_suspect_fails_another_answers(void **state)
{
    struct scene s;
    struct fixture *f = open_scene(&s);
    (void)state;

    ask_suspect(f, HOST_WHOLE / 20);
    SAY(f, EVENT_HEAD, .status = 503, .replayable = true);
    goes_to_another(&s, EVIDENCE_GATEWAY);
    close_scene(&s);
}

/* It is cut for that already: no failure, no timeout, and nothing that ejects it by count. */
static void what_a_suspect_is_late_with_another_answers_and_it_has_not_failed(void **state)
{
    struct scene s;
    struct fixture *f = open_scene(&s);
    (void)state;

    f->route.per_try_timeout = 500 * MS;
    ask_suspect(f, HOST_WHOLE / 20);
    waits_for(f, WITHIN);
    assert_false(did(f, ACTION_ACCUSE));
    assert_int_equal(metric(f, CLUSTER_upstream_rq_per_try_timeout), 0);
    assert_int_equal(f->x.attempts[0].outcome, ATTEMPT_CANCELLED);
    goes_to_another(&s, EVIDENCE_ABANDONED);
    close_scene(&s);
}

static void where_nobody_else_can_answer_a_trial_goes_on_as_any_request(void **state)
{
    struct scene s;
    struct fixture *f = open_scene(&s);
    (void)state;

    f->route.per_try_timeout = 500 * MS;
    suspect(f, HOST_WHOLE / 20);
    ask(f);
    waits_for(f, WITHIN);
    assert_int_equal(f->x.state, EXCHANGE_SENT);
    told_nothing(&s);
    waits_for(f, 500 * MS - WITHIN);
    assert_int_equal(f->x.status, 504);
    told_only(&s, EVIDENCE_TIMEOUT);
    assert_int_equal(metric(f, CLUSTER_upstream_rq_per_try_timeout), 1);
    close_scene(&s);
}

/* Nor where nobody is to try again: while the fleet is slow. */
static void who_keeps_more_than_a_trickle_is_not_tried(void **state)
{
    static const struct {
        uint32_t share;
        bool held, idempotent;
        uint32_t tokens;
    } table[] = {{HOST_WHOLE / 5, false, true, 9},
                 {HOST_WHOLE / 20, true, true, 9},
                 {HOST_WHOLE / 20, false, false, 9},
                 {HOST_WHOLE / 20, false, true, 0}};
    (void)state;

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct scene s;
        struct fixture *f = open_scene(&s);

        suspect(f, table[i].share);
        atomic_store(&f->cluster.state->retries_held, table[i].held);
        while (tokens(f) > table[i].tokens)
            retry_budget_spend(&f->cluster.state->retry_budget, &f->cluster.retry_budget, f->now);
        begin_method(f, table[i].idempotent);
        SAY(f, EVENT_REQUEST_COMPLETE);
        SAY(f, EVENT_BEGIN);
        assert_int_equal(exchange_host(&f->x), PROBED);
        assert_int_equal(f->x.attempts[0].trial, TRIAL_NONE);
        assert_int_equal(tokens(f), table[i].tokens);
        connect_and_send(f, true);
        SAY(f, EVENT_HEAD, .status = 200);
        SAY(f, EVENT_UPSTREAM_COMPLETE, .bytes = 1);
        told_only(&s, EVIDENCE_OK);
        close_scene(&s);
    }
}

/* --- a fleet that is slow --- */

static void while_retries_are_held_no_failure_is_retried_and_no_try_given_up(void **state)
{
    struct scene s;
    struct fixture *f = open_scene(&s);
    (void)state;

    with_retries(f, RETRY_ON_5XX, 2);
    atomic_store(&f->cluster.state->retries_held, true);
    ask(f);
    SAY(f, EVENT_HEAD, .status = 503, .replayable = true);
    assert_true(did(f, ACTION_FORWARD));
    assert_int_equal(metric(f, CLUSTER_retry_held), 1);
    SAY(f, EVENT_UPSTREAM_COMPLETE, .bytes = 1);
    told_only(&s, EVIDENCE_GATEWAY);
    close_scene(&s);

    f = open_scene(&s);
    with_retries(f, RETRY_ON_5XX, 2);
    f->route.per_try_timeout = 100 * MS;
    atomic_store(&f->cluster.state->retries_held, true);
    ask(f);
    wait_for_time(f);
    assert_int_equal(f->x.state, EXCHANGE_SENT); /* the host may go on, till the end */
    told_nothing(&s);
    wait_for_time(f);
    assert_int_equal(f->x.status, 504);
    assert_int_equal(told_only(&s, EVIDENCE_TIMEOUT).first_us, 15 * 1000 * 1000 - 3000);
    close_scene(&s);
}

static void a_route_without_retries_gives_up_in_time_though_they_are_held(void **state)
{
    struct scene s;
    struct fixture *f = open_scene(&s);
    (void)state;

    f->route.per_try_timeout = 100 * MS;
    atomic_store(&f->cluster.state->retries_held, true);
    ask(f);
    wait_for_time(f);
    assert_int_equal(f->x.status, 504);
    assert_int_equal(told_only(&s, EVIDENCE_TIMEOUT).first_us, 100000);
    close_scene(&s);
}

static void a_retry_is_told_as_one(void **state)
{
    struct scene s;
    struct fixture *f = open_scene(&s);
    uint32_t first;
    (void)state;

    with_retries(f, RETRY_ON_5XX, 1);
    ask(f);
    first = exchange_host(&f->x);
    SAY(f, EVENT_HEAD, .status = 503, .replayable = true);
    assert_int_equal(told_only(&s, EVIDENCE_GATEWAY).host, first);
    connect_and_send(f, true);
    SAY(f, EVENT_HEAD, .status = 200);
    SAY(f, EVENT_UPSTREAM_COMPLETE, .bytes = 1);
    assert_int_equal(told_only(&s, EVIDENCE_OK).flags, EVIDENCE_RETRY);
    close_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_probe_that_passes_gives_its_token_back),
        cmocka_unit_test(a_probe_whose_client_leaves_gives_its_token_back),
        cmocka_unit_test(a_probe_that_is_answered_with_a_5xx_is_made_good),
        cmocka_unit_test(a_probe_that_is_reset_is_made_good),
        cmocka_unit_test(a_probe_that_cannot_connect_is_made_good),
        cmocka_unit_test(a_probe_that_is_not_answered_is_made_good_in_time),
        cmocka_unit_test(no_probe_is_made_of_what_cannot_be_made_good),
        cmocka_unit_test(so_many_probes_as_are_granted_are_made),
        cmocka_unit_test(what_a_suspect_answers_in_time_gives_its_token_back),
        cmocka_unit_test(what_a_suspect_fails_another_answers),
        cmocka_unit_test(what_a_suspect_is_late_with_another_answers_and_it_has_not_failed),
        cmocka_unit_test(where_nobody_else_can_answer_a_trial_goes_on_as_any_request),
        cmocka_unit_test(who_keeps_more_than_a_trickle_is_not_tried),
        cmocka_unit_test(while_retries_are_held_no_failure_is_retried_and_no_try_given_up),
        cmocka_unit_test(a_route_without_retries_gives_up_in_time_though_they_are_held),
        cmocka_unit_test(a_retry_is_told_as_one),
    };

    return cmocka_run_group_tests_name("exchange/probing", tests, NULL, NULL);
}
