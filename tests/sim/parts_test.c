/* SPDX-License-Identifier: Apache-2.0 */
/* The small parts: mailbox, log, files, names, and the two halves of an HTTP/1.1 conversation. */
#include "sim/mailbox.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "sim/files.h"
#include "sim/ledger.h"
#include "sim/log.h"
#include "sim/peers.h"
#include "sim/receiver.h"
#include "sim/resolver.h"
#include "sim/sender.h"

static struct ground g;

/* --- mailbox --- */

static void a_mailbox_keeps_order_refuses_when_full_and_wakes(void **state)
{
    static struct sim_mailbox m;
    struct message out;
    uint64_t turns;
    (void)state;

    ground_start(&g, 1);
    sim_mailbox_init(&m, &g.far_loop.loop);
    m.room = 3;
    world_run_for(&g.world, 1);
    turns = g.far_loop.loop.turns;
    assert_false(mailbox_take(&m.base, &out));
    for (uint64_t round = 0; round < SIM_MAILBOX_ROOM; round++) {
        for (uint64_t i = 0; i < 5; i++)
            assert_true(mailbox_post(&m.base, &(struct message){.value = i}) == (i < 3));
        for (uint64_t i = 0; i < 3; i++) {
            assert_true(mailbox_take(&m.base, &out));
            assert_int_equal(out.value, i);
        }
        assert_false(mailbox_take(&m.base, &out));
    }
    assert_int_equal(m.refused, 2 * SIM_MAILBOX_ROOM);
    world_run_for(&g.world, 1);
    assert_int_equal(g.far_loop.loop.turns, turns + 1);
    ground_stop(&g);
}

/* --- log --- */

static void the_log_counts_events_and_keeps_the_last_lines(void **state)
{
    static struct sim_log l;
    struct world w;
    uint64_t before;
    (void)state;

    world_init(&w, 1);
    sim_log_init(&l, &w);
    before = world_digest(&w);
    log_event(&l.base, LOG_WARNING, "endpoint.ejected", "%s is out after %d", "host", 5);
    assert_int_not_equal(world_digest(&w), before);
    for (unsigned i = 0; i < 100; i++)
        log_event(&l.base, LOG_INFO, "other", "line %u", i);
    log_event(&l.base, LOG_DEBUG, "quiet", "below the least level");
    assert_int_equal(sim_log_count(&l, "endpoint.ejected"), 1);
    assert_int_equal(sim_log_count(&l, "other"), 100);
    assert_int_equal(sim_log_count(&l, "quiet"), 0);
    assert_int_equal(l.levels[LOG_WARNING], 1);
    assert_string_equal(sim_log_line(&l, 0), "0.000000 other line 99");
    assert_string_equal(sim_log_line(&l, 63), "0.000000 other line 36");
    assert_string_equal(sim_log_line(&l, 64), "");
    world_release(&w);
}

/* --- files --- */

static void files_are_read_appended_and_fail_as_told(void **state)
{
    struct sim_files f;
    struct bytes content;
    struct file *file;
    (void)state;

    sim_files_init(&f);
    assert_int_equal(files_read(&f.base, "/none", 100, &content), IO_NOT_FOUND);
    assert_true(sim_files_put(&f, "/a", BYTES("hello")));
    assert_int_equal(files_read(&f.base, "/a", 4, &content), IO_INVALID);
    assert_int_equal(files_read(&f.base, "/a", 5, &content), IO_OK);
    assert_true(bytes_equal(content, BYTES("hello")));
    memory_give((void *)(uintptr_t)content.data);
    assert_int_equal(files_open(&f.base, "/a", &file), IO_OK);
    assert_int_equal(files_append(&f.base, file, BYTES(" world")), 6);
    f.space = 2;
    assert_int_equal(files_append(&f.base, file, BYTES("more")), 2);
    assert_int_equal(files_append(&f.base, file, BYTES("x")), IO_NO_SPACE);
    files_close(&f.base, file);
    assert_true(bytes_equal(sim_files_content(&f, "/a"), BYTES("hello worldmo")));
    f.fault = IO_DENIED;
    assert_int_equal(files_open(&f.base, "/b", &file), IO_DENIED);
    assert_int_equal(files_read(&f.base, "/a", 100, &content), IO_DENIED);
    sim_files_release(&f);
}

/* --- names --- */

struct answer {
    unsigned calls;
    int error;
    size_t n;
    span_ns ttl;
    struct address first;
};

static void note_answer(void *owner, int error, const struct address *addresses, size_t n,
                        span_ns ttl)
{
    struct answer *a = owner;

    a->calls++;
    a->error = error;
    a->n = n;
    a->ttl = ttl;
    if (n > 0)
        a->first = addresses[0];
}

static void names_are_answered_later_and_once(void **state)
{
    static struct sim_resolver r;
    struct answer known = {.calls = 0}, unknown = {.calls = 0}, failing = {.calls = 0};
    struct sim_name *name;
    (void)state;

    ground_start(&g, 1);
    sim_resolver_init(&r, &g.near_loop.poller);
    name = sim_resolver_name(&r, "a.example.test");
    name->at[name->count++] = g.address;
    sim_resolver_name(&r, "bad.example.test")->error = IO_TIMED_OUT;
    assert_ptr_equal(sim_resolver_name(&r, "A.example.test"), name);
    resolver_lookup(&r.base, BYTES("A.EXAMPLE.test"), note_answer, &known);
    resolver_lookup(&r.base, BYTES("b.example.test"), note_answer, &unknown);
    resolver_lookup(&r.base, BYTES("bad.example.test"), note_answer, &failing);
    assert_int_equal(known.calls, 0);
    world_run_for(&g.world, NS_PER_S);
    assert_int_equal(known.calls, 1);
    assert_int_equal(known.error, IO_OK);
    assert_int_equal(known.n, 1);
    assert_int_equal(known.ttl, 60 * NS_PER_S);
    assert_true(address_equal(&known.first, &g.address));
    assert_int_equal(unknown.error, IO_NOT_FOUND);
    assert_int_equal(failing.error, IO_TIMED_OUT);
    resolver_lookup(&r.base, BYTES("a.example.test"), note_answer, &known);
    sim_resolver_release(&r); /* never answered */
    world_run_for(&g.world, NS_PER_S);
    assert_int_equal(known.calls, 1);
    ground_stop(&g);
}

/* --- payload --- */

static void paths_say_what_is_wished(void **state)
{
    static const struct wish wishes[] = {
        {.id = 1, .answer = 0, .framing = FRAMING_NONE},
        {.id = 17, .answer = 2048, .framing = FRAMING_CHUNKED},
        {.id = UINT64_MAX, .answer = UINT64_MAX, .framing = FRAMING_TO_CLOSE},
    };
    struct wish back;
    char room[100];
    struct text t;
    (void)state;

    for (unsigned i = 0; i < 3; i++) {
        text_init(&t, room, sizeof(room));
        wish_write(&t, &wishes[i]);
        assert_true(wish_parse(text_bytes(&t), &back));
        assert_int_equal(back.id, wishes[i].id);
        assert_int_equal(back.answer, wishes[i].answer);
        assert_int_equal(back.framing, wishes[i].framing);
    }
    assert_false(wish_parse(BYTES("/r/x/1/c"), &back));
    assert_false(wish_parse(BYTES("/r/1/1"), &back));
    assert_false(wish_parse(BYTES("/r/1/1/q"), &back));
    assert_false(wish_parse(BYTES("/"), &back));
    assert_false(wish_parse(BYTES(""), &back));
}

static void a_body_betrays_every_mistake(void **state)
{
    static uint8_t body[20000];
    uint64_t key = payload_key_answer(5);
    (void)state;

    payload_fill(key, 0, body, sizeof(body));
    assert_int_equal(payload_check(key, 0, bytes_from(body, sizeof(body))), sizeof(body));
    for (size_t shift = 1; shift < 5000; shift++) /* lost or repeated bytes */
        assert_true(payload_check(key, shift, bytes_from(body, 4000)) < 4000);
    for (uint64_t other = 1; other < 200; other++) { /* somebody else's */
        assert_true(payload_check(payload_key_request(other), 0, bytes_from(body, 64)) < 64);
        if (other != 5)
            assert_true(payload_check(payload_key_answer(other), 0, bytes_from(body, 64)) < 64);
    }
    body[777] ^= 1;
    assert_int_equal(payload_check(key, 0, bytes_from(body, sizeof(body))), 777);
}

/* --- sender and receiver --- */

struct reader {
    struct receiver receiver;
    unsigned heads;
    uint32_t status;
    uint64_t key;
};

static void head_came(struct receiver *r, const struct message_head *head)
{
    struct reader *reader = r->owner;

    reader->heads++;
    reader->status = head->status;
    r->key = reader->key;
}

static void reader_init(struct reader *r, uint64_t key)
{
    *r = (struct reader){.key = key};
    receiver_init(&r->receiver, head_came, r);
    receiver_next(&r->receiver);
}

/* What |s| sends over a narrow and crooked path, as one text. */
static void send_all(struct sender *s, uint64_t seed)
{
    ground_start(&g, seed);
    g.site->path.window = 700;
    g.site->path.short_write_permille = 300;
    g.site->path.cut = NET_CUT_SOME;
    ground_join(&g);
    for (unsigned i = 0; i < 2000; i++) {
        enum sender_result result = sender_go(s, g.a.link);

        assert_int_not_equal(result, SENDER_BROKEN);
        world_run_for(&g.world, NS_PER_MS);
        if (result == SENDER_HELD)
            s->allowed += 100;
        if (result == SENDER_DONE)
            break;
    }
    world_run_for(&g.world, NS_PER_S);
}

static const struct {
    enum framing framing;
    const char *head;
} shapes[] = {
    {FRAMING_NONE, "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"},
    {FRAMING_LENGTH, "HTTP/1.1 200 OK\r\ncontent-length: 12345\r\n\r\n"},
    {FRAMING_CHUNKED, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"},
    {FRAMING_TO_CLOSE, "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n"},
};

static void what_is_sent_is_received_however_it_is_cut(void **state)
{
    struct rng rng;
    (void)state;

    rng_init(&rng, 1);
    for (unsigned shape = 0; shape < 4; shape++) {
        for (uint64_t seed = 1; seed <= 10; seed++) {
            struct sender s;
            struct reader r;

            sender_start(&s, bytes_of(shapes[shape].head), shapes[shape].framing, 99, 12345);
            s.allowed = seed % 2 == 0 ? UINT64_MAX : 0;
            send_all(&s, seed);
            reader_init(&r, 99);
            for (size_t at = 0; at < g.b.len;) {
                size_t n = 1 + rng_below(&rng, seed < 3 ? 1 : 3000);

                receiver_take(&r.receiver, bytes_slice(bytes_from(g.b.got, g.b.len), at, n));
                at += n;
            }
            assert_int_equal(r.heads, 1);
            assert_true(receiver_end(&r.receiver));
            assert_int_equal(r.receiver.got, shape == 0 ? 0 : 12345);
            assert_false(r.receiver.wrong);
            assert_int_equal(r.receiver.to_close, shape == 3);
            ground_stop(&g);
        }
    }
}

static void a_message_that_breaks_off_is_not_whole(void **state)
{
    struct sender s;
    (void)state;

    for (unsigned shape = 1; shape < 3; shape++) {
        sender_start(&s, bytes_of(shapes[shape].head), shapes[shape].framing, 99, 12345);
        send_all(&s, 1);
        for (size_t cut = 0; cut < g.b.len; cut += 37) {
            struct reader r;

            reader_init(&r, 99);
            receiver_take(&r.receiver, bytes_from(g.b.got, cut));
            assert_false(receiver_end(&r.receiver));
        }
        ground_stop(&g);
    }
}

static void a_wrong_byte_is_found_where_it_is(void **state)
{
    struct sender s;
    struct reader r;
    size_t head = strlen(shapes[1].head);
    (void)state;

    sender_start(&s, bytes_of(shapes[1].head), FRAMING_LENGTH, 99, 12345);
    send_all(&s, 1);
    g.b.got[head + 5000] ^= 4;
    reader_init(&r, 99);
    receiver_take(&r.receiver, bytes_from(g.b.got, g.b.len));
    assert_true(r.receiver.wrong);
    assert_int_equal(r.receiver.wrong_at, 5000);
    ground_stop(&g);
}

static void interim_heads_come_before_the_final_one(void **state)
{
    static const char text[] = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n"
                               "HTTP/1.1 201 Created\r\ncontent-length: 2\r\n\r\nhiHTTP/1.1 ";
    (void)state;

    for (size_t cut = 0; cut < sizeof(text); cut++) {
        struct reader r;

        reader_init(&r, 0);
        receiver_take(&r.receiver, bytes_from(text, cut));
        receiver_take(&r.receiver, bytes_from(text + cut, sizeof(text) - 1 - cut));
        assert_int_equal(r.heads, 3);
        assert_int_equal(r.status, 201);
        assert_int_equal(r.receiver.state, RECEIVER_DONE);
        assert_int_equal(r.receiver.got, 2);
        assert_int_equal(r.receiver.len, 9); /* stands behind the message */
    }
}

static void what_is_no_http_is_bad(void **state)
{
    static uint8_t junk[3 * RECEIVER_ROOM];
    struct reader r;
    (void)state;

    reader_init(&r, 0);
    receiver_take(&r.receiver, BYTES("SSH-2.0-x\r\n\r\n"));
    assert_int_equal(r.receiver.state, RECEIVER_BAD);
    assert_true(strlen(r.receiver.why) > 0);
    reader_init(&r, 0);
    receiver_take(&r.receiver, bytes_of(shapes[0].head));
    receiver_take(&r.receiver, bytes_from(junk, sizeof(junk)));
    assert_int_equal(r.receiver.state, RECEIVER_BAD);
}

/* --- the ledger --- */

static void the_ledger_notices_what_cannot_be(void **state)
{
    struct ledger l;
    struct world w;
    uint64_t id;
    (void)state;

    world_init(&w, 1);
    ledger_init(&l, &w);
    for (unsigned i = 0; i < 3000; i++)
        id = ledger_open(&l);
    assert_int_equal(id, 3000);
    ledger_end(&l, 2, OUTCOME_CUT);
    assert_int_equal(l.settled, 0);
    ledger_end(&l, 1, OUTCOME_ANSWERED);
    assert_int_equal(l.settled, 2);
    assert_false(w.failed);
    ledger_end(&l, 1, OUTCOME_CUT);
    assert_non_null(strstr(w.failure, "law 6"));
    w.failed = false;
    assert_null(ledger_fact(&l, 3001));
    assert_non_null(strstr(w.failure, "law 7"));
    ledger_release(&l);
    world_release(&w);
}

static void a_second_record_is_noticed(void **state)
{
    const struct request_record r = {.path = BYTES("/r/1/10/l"), .status = 200};
    struct ledger_sink sink;
    struct ledger l;
    struct world w;
    (void)state;

    world_init(&w, 1);
    ledger_init(&l, &w);
    ledger_sink_init(&sink, &l);
    (void)ledger_open(&l);
    assert_true(record_put(&sink.base, &r));
    assert_int_equal(ledger_fact(&l, 1)->records, 1);
    assert_int_equal(ledger_fact(&l, 1)->record_status, 200);
    assert_false(w.failed);
    assert_true(record_put(&sink.base, &r));
    assert_non_null(strstr(w.failure, "law 6"));
    ledger_release(&l);
    world_release(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mailbox_keeps_order_refuses_when_full_and_wakes),
        cmocka_unit_test(the_log_counts_events_and_keeps_the_last_lines),
        cmocka_unit_test(files_are_read_appended_and_fail_as_told),
        cmocka_unit_test(names_are_answered_later_and_once),
        cmocka_unit_test(paths_say_what_is_wished),
        cmocka_unit_test(a_body_betrays_every_mistake),
        cmocka_unit_test(what_is_sent_is_received_however_it_is_cut),
        cmocka_unit_test(a_message_that_breaks_off_is_not_whole),
        cmocka_unit_test(a_wrong_byte_is_found_where_it_is),
        cmocka_unit_test(interim_heads_come_before_the_final_one),
        cmocka_unit_test(what_is_no_http_is_bad),
        cmocka_unit_test(the_ledger_notices_what_cannot_be),
        cmocka_unit_test(a_second_record_is_noticed),
    };

    return cmocka_run_group_tests_name("parts", tests, NULL, NULL);
}
