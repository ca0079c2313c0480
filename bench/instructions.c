/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a request costs in instructions: one worker of the shipped archives, configured as `run
 * --to` does it, between clients and hosts on the simulated network that always say the same. Meant
 * to run under callgrind (scripts/bench-instructions), which collects inside of measured_turn only
 * and cuts its output at row_over; so neither the clients, nor the hosts, nor what goes before
 * count. What the simulated links cost inside of a turn is told apart by source file.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "control/config.h"
#include "io/error.h"
#include "policy/evidence_ring.h"
#include "proxy/worker.h"
#include "sim/actor.h"
#include "sim/log.h"
#include "sim/mailbox.h"

/* Then all hosts have connections, and all that is kept for reuse is there. */
#define WARM_REQUESTS     1000
#define WARM_A_HOST       10
#define MEASURED_REQUESTS 2000
#define CLIENTS_MAX       64
#define HOSTS_MAX         1000
#define CONNECTIONS_MAX   4096
#define DESCRIPTORS       10000
#define MEMORY_LIMIT      (UINT64_C(1) << 30)

/* A client's answer is here, and a host's next is due, one way and back on both sides later. */
#define ROUND_TRIP (800 * NS_PER_US)

struct row {
    const char *name;
    const char *head; /* of the request */
    const char *answer_head;
    bool request_body; /* 1 KiB */
    bool chunked;      /* both ways */
    uint32_t clients;
    uint32_t hosts;
};

#define WRK_HEAD "GET / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n"

#define BROWSER_HEAD                                                                               \
    "GET /shop/items/4711?colour=red&size=42 HTTP/1.1\r\n"                                         \
    "Host: shop.example.com\r\n"                                                                   \
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\n"       \
    "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n"                  \
    "Accept-Language: en-US,en;q=0.5\r\n"                                                          \
    "Accept-Encoding: gzip, deflate, br, zstd\r\n"                                                 \
    "Referer: https://shop.example.com/shop/\r\n"                                                  \
    "Connection: keep-alive\r\n"                                                                   \
    "Cookie: session=4f2a9c1be07d4c5a8a34c1d2e9b7f601; theme=dark; consent=all\r\n"                \
    "Sec-Fetch-Dest: document\r\n"                                                                 \
    "Sec-Fetch-Mode: navigate\r\n"                                                                 \
    "Sec-Fetch-Site: same-origin\r\n"                                                              \
    "Priority: u=0, i\r\n"                                                                         \
    "\r\n"

#define POST_HEAD                                                                                  \
    "POST /items HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nContent-Type: text/plain\r\n"                 \
    "Content-Length: 1024\r\n\r\n"

#define CHUNKED_HEAD                                                                               \
    "POST /items HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nContent-Type: text/plain\r\n"                 \
    "Transfer-Encoding: chunked\r\n\r\n"

#define ANSWER_BEGIN                                                                               \
    "HTTP/1.1 200 OK\r\nServer: origin\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\n"                 \
    "Content-Type: text/plain\r\n"
#define ANSWER_HEAD         ANSWER_BEGIN "Content-Length: 1024\r\nConnection: keep-alive\r\n\r\n"
#define ANSWER_CHUNKED_HEAD ANSWER_BEGIN "Transfer-Encoding: chunked\r\n\r\n"

static const struct row rows[] = {
    {.name = "GET", .head = WRK_HEAD, .answer_head = ANSWER_HEAD, .clients = 64, .hosts = 1},
    {.name = "GET, one client",
     .head = WRK_HEAD,
     .answer_head = ANSWER_HEAD,
     .clients = 1,
     .hosts = 1},
    {.name = "GET, 1000 hosts",
     .head = WRK_HEAD,
     .answer_head = ANSWER_HEAD,
     .clients = 64,
     .hosts = HOSTS_MAX},
    {.name = "GET, a browser's",
     .head = BROWSER_HEAD,
     .answer_head = ANSWER_HEAD,
     .clients = 64,
     .hosts = 1},
    {.name = "POST",
     .head = POST_HEAD,
     .answer_head = ANSWER_HEAD,
     .request_body = true,
     .clients = 64,
     .hosts = 1},
    {.name = "POST, chunked",
     .head = CHUNKED_HEAD,
     .answer_head = ANSWER_CHUNKED_HEAD,
     .request_body = true,
     .chunked = true,
     .clients = 64,
     .hosts = 1},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

struct bench;

/* A client's or a host's connection. It sends |bench->request| or |answer| whole, and knows that
 * the other's message is whole by its last bytes, which stand nowhere else in it. */
struct talk {
    struct bench *bench;
    struct link *link;
    bool fresh; /* nothing came of the present message */
    uint8_t last[8];
};

struct bench {
    const struct row *row;
    struct world world;
    struct net net;
    struct net_process process;
    struct actor_loop clients;
    struct actor_loop hosts;
    struct world_loop loop;
    struct sim_poller poller;
    struct sim_mailbox inbox;
    struct sim_mailbox control;
    struct mailbox *peers[1];
    struct sim_log log;
    struct process_state *state;
    struct snapshot *snapshot;
    struct worker *worker;
    bool measuring;
    uint64_t answered;
    uint64_t received; /* bytes, by the clients */
    struct bytes request;
    struct bytes answer;
    struct bytes request_end;
    struct bytes answer_end;
    char request_room[4096];
    char answer_room[4096];
    char list[HOSTS_MAX * 24];
    uint32_t talk_count;
    struct talk talks[CONNECTIONS_MAX];
};

static void fail(const char *what)
{
    fprintf(stderr, "bench_instructions: %s\n", what);
    exit(1);
}

/* --- what callgrind is told by --- */

void measured_turn(struct worker *w);
void row_over(void);

__attribute__((noinline)) void measured_turn(struct worker *w)
{
    worker_turn(w);
    __asm__ volatile(""); /* no tail call: it has to return here */
}

__attribute__((noinline)) void row_over(void)
{
    __asm__ volatile("");
}

/* --- the worker's loop --- */

static mono_ns loop_wakeup(void *owner)
{
    return worker_wakeup(((struct bench *)owner)->worker);
}

static void loop_turn(void *owner)
{
    struct bench *b = owner;

    if (b->measuring)
        measured_turn(b->worker);
    else
        worker_turn(b->worker);
}

static bool loop_done(void *owner)
{
    return worker_done(((struct bench *)owner)->worker);
}

static const struct world_loop_ops loop_ops = {
    .wakeup = loop_wakeup,
    .turn = loop_turn,
    .done = loop_done,
};

/* --- clients and hosts --- */

static struct talk *make_talk(struct bench *b, struct link *link, const struct link_events *events)
{
    struct talk *t = &b->talks[b->talk_count];

    if (b->talk_count++ == CONNECTIONS_MAX)
        fail("too many connections");
    *t = (struct talk){.bench = b, .link = link, .fresh = true};
    link_own(link, events, t);
    return t;
}

static void send_whole(struct talk *t, struct bytes message)
{
    if (link_write(t->link, &message, 1) != (ptrdiff_t)message.len)
        fail("a simulated link took not all");
}

/* The last eight bytes so far. True: they end with |end|; the next byte is a new message's. */
static bool is_whole(struct talk *t, struct bytes data, struct bytes end)
{
    uint8_t last[16];
    size_t n = data.len < 8 ? data.len : 8;

    t->fresh = false;
    memcpy(last, t->last, 8);
    memcpy(last + 8, data.data + data.len - n, n);
    memcpy(t->last, last + n, 8);
    t->fresh = memcmp(t->last + 8 - end.len, end.data, end.len) == 0;
    return t->fresh;
}

static void on_ended(void *owner)
{
    (void)owner;
    fail("the proxy closed a connection");
}

static void on_failed(void *owner, int error)
{
    (void)owner;
    fail(io_error_text(error));
}

static void on_writable(void *owner)
{
    (void)owner;
}

static void client_opened(void *owner)
{
    struct talk *t = owner;

    link_read_start(t->link);
    send_whole(t, t->bench->request);
}

static void client_received(void *owner, struct bytes data)
{
    struct talk *t = owner;
    struct bench *b = t->bench;

    if (t->fresh && !bytes_start_with(data, BYTES("HTTP/1.1 200 OK\r\n")))
        fail("an answer that is not the host's");
    b->received += data.len;
    if (!is_whole(t, data, b->answer_end))
        return;
    b->answered++;
    send_whole(t, b->request);
}

static void host_opened(void *owner)
{
    (void)owner;
}

static void host_received(void *owner, struct bytes data)
{
    struct talk *t = owner;

    if (is_whole(t, data, t->bench->request_end))
        send_whole(t, t->bench->answer);
}

static const struct link_events client_events = {
    .opened = client_opened,
    .received = client_received,
    .ended = on_ended,
    .writable = on_writable,
    .failed = on_failed,
};

static const struct link_events host_events = {
    .opened = host_opened,
    .received = host_received,
    .ended = on_ended,
    .writable = on_writable,
    .failed = on_failed,
};

static void host_accepted(void *owner, struct link *link, const struct address *peer)
{
    (void)peer;
    make_talk(owner, link, &host_events);
    link_read_start(link);
}

static void host_troubled(void *owner, int error)
{
    on_failed(owner, error);
}

static const struct listener_events host_listener_events = {
    .accepted = host_accepted,
    .troubled = host_troubled,
};

static struct address host_address(uint32_t i)
{
    return (struct address){.kind = ADDRESS_IPV4,
                            .ip = {10, 0, (uint8_t)(i / 250), (uint8_t)(i % 250 + 1)},
                            .port = 8000};
}

static void start_hosts(struct bench *b)
{
    const struct listen_options options = {.backlog = 4096};

    actor_loop_init(&b->hosts, &b->net);
    for (uint32_t i = 0; i < b->row->hosts; i++) {
        const struct address at = host_address(i);
        struct listener *l;

        if (poller_listen(actor_poller(&b->hosts), &at, &options, &l) != IO_OK)
            fail("a host does not listen");
        listener_own(l, &host_listener_events, b);
    }
}

static void start_clients(struct bench *b)
{
    const struct address at = {.kind = ADDRESS_IPV4, .ip = {10, 1, 0, 1}, .port = 8080};
    const struct connect_options options = {.keepalive = false};

    actor_loop_init(&b->clients, &b->net);
    for (uint32_t i = 0; i < b->row->clients; i++) {
        struct link *link;

        if (poller_connect(actor_poller(&b->clients), &at, &options, &link) != IO_OK)
            fail("a client does not connect");
        make_talk(b, link, &client_events);
    }
}

/* --- what is said --- */

static void put_body(struct text *t, size_t len)
{
    for (size_t i = 0; i + 4 < len; i++)
        text_char(t, (char)('a' + i % 26));
    text_str(t, "end\n");
}

/* 1 KiB, in four chunks. */
static void put_chunks(struct text *t)
{
    for (unsigned i = 0; i < 4; i++) {
        text_str(t, "100\r\n");
        put_body(t, 256);
        text_str(t, "\r\n");
    }
    text_str(t, "0\r\n\r\n");
}

static struct bytes write_message(char *room, size_t size, const char *head, const struct row *row,
                                  bool body)
{
    struct text t;

    text_init(&t, room, size);
    text_str(&t, head);
    if (body && row->chunked)
        put_chunks(&t);
    else if (body)
        put_body(&t, 1024);
    if (t.failed)
        fail("no room for a message");
    return text_bytes(&t);
}

static void write_messages(struct bench *b)
{
    const struct row *row = b->row;
    struct bytes body_end = row->chunked ? BYTES("\r\n0\r\n\r\n") : BYTES("end\n");

    b->request =
        write_message(b->request_room, sizeof(b->request_room), row->head, row, row->request_body);
    b->answer = write_message(b->answer_room, sizeof(b->answer_room), row->answer_head, row, true);
    b->request_end = row->request_body ? body_end : BYTES("\r\n\r\n");
    b->answer_end = body_end;
}

/* --- the proxy --- */

static void write_list(struct bench *b, struct text *t)
{
    text_init(t, b->list, sizeof(b->list));
    for (uint32_t i = 0; i < b->row->hosts; i++) {
        const struct address at = host_address(i);

        if (i > 0)
            text_char(t, ',');
        address_write(t, &at);
    }
    if (t->failed)
        fail("no room for the list of hosts");
}

static void load(struct bench *b)
{
    struct config_errors errors;
    struct text list;
    struct config_run run = {.listen = BYTES("10.1.0.1:8080"), .admin = BYTES("off"), .workers = 1};

    write_list(b, &list);
    run.to = text_bytes(&list);
    config_errors_init(&errors);
    if (config_from_list(&run, NULL, &errors, &b->snapshot) != CONFIG_OK)
        fail("the list of hosts is refused");
    config_errors_release(&errors);
    if (!snapshot_attach_state(b->snapshot, 1))
        fail("no memory");
}

static void start_proxy(struct bench *b)
{
    const struct listener_config *failed;

    load(b);
    net_process_init(&b->process);
    sim_log_init(&b->log, &b->world);
    world_loop_init(&b->loop, &b->world, &loop_ops, b);
    sim_mailbox_init(&b->inbox, &b->loop);
    sim_mailbox_init(&b->control, &b->loop);
    sim_poller_init(&b->poller, &b->net, &b->process, &b->loop);
    b->state = process_state_create(1, DESCRIPTORS, MEMORY_LIMIT, b->world.now);
    if (b->state == NULL)
        fail("no memory");

    b->peers[0] = &b->inbox.base;

    const struct worker_setup setup = {
        .seed = 1,
        .clock = &b->world.clock,
        .poller = &b->poller.base,
        .inbox = &b->inbox.base,
        .control = &b->control.base,
        .peers = b->peers,
        .peer_count = 1,
        .log = &b->log.base,
        .process = b->state,
        .snapshot = b->snapshot,
    };

    if (worker_create(&setup, &b->worker, &failed) != IO_OK)
        fail("the worker does not start");
    world_loop_start(&b->loop);
}

/* --- a row --- */

struct figures {
    uint64_t answered;
    uint64_t received;
    uint64_t allocations;
    uint64_t connections; /* to hosts */
};

static struct figures figures(const struct bench *b)
{
    return (struct figures){
        .answered = b->answered,
        .received = b->received,
        .allocations = cell_read(&b->state->worker_cells[0].at[WORKER_heap_allocations]),
        .connections = cluster_state_sum(b->snapshot->clusters[0].state, CLUSTER_upstream_cx_total),
    };
}

/* As the watch does, so that evidence finds room and is never thinned for want of a reader. */
static void take_evidence(struct bench *b)
{
    struct evidence e;

    while (evidence_ring_take(&b->state->rings[0], &e))
        ;
}

static void run_until(struct bench *b, uint64_t answered)
{
    mono_ns too_late = mono_after(b->world.now, 3600 * NS_PER_S);

    while (b->answered < answered && !b->world.failed && b->world.now < too_late) {
        world_run_for(&b->world, ROUND_TRIP);
        take_evidence(b);
    }
    if (b->answered < answered)
        fail(b->world.failed ? b->world.failure : "no answers come");
}

static void measure(struct bench *b)
{
    struct figures before, after;

    run_until(b, WARM_REQUESTS + WARM_A_HOST * (uint64_t)b->row->hosts);
    before = figures(b);
    b->measuring = true;
    run_until(b, b->answered + MEASURED_REQUESTS);
    b->measuring = false;
    after = figures(b);
    printf(
        "%s\t%lu\t%lu\t%lu\t%lu\n", b->row->name, (unsigned long)(after.answered - before.answered),
        (unsigned long)(after.allocations - before.allocations),
        (unsigned long)(after.connections - before.connections),
        (unsigned long)((after.received - before.received) / (after.answered - before.answered)));
}

static void run_row(struct bench *b, const struct row *row)
{
    b->row = row;
    write_messages(b);
    world_init(&b->world, 1);
    if (!net_init(&b->net, &b->world))
        fail("no memory");
    start_hosts(b);
    start_proxy(b);
    start_clients(b);
    measure(b);
    row_over();
    world_loop_stop(&b->loop);
    worker_free(b->worker);
    actor_loop_release(&b->clients);
    actor_loop_release(&b->hosts);
    net_release(&b->net);
    snapshot_drop(b->snapshot);
    process_state_free(b->state);
    world_release(&b->world);
}

/* A line a row: name, requests measured, heap allocations and connections opened to hosts
 * meanwhile, bytes of an answer. */
int main(void)
{
    for (size_t i = 0; i < ROWS; i++) {
        struct bench *b = memory_take(sizeof(*b));

        if (b == NULL)
            fail("no memory");
        run_row(b, &rows[i]);
        memory_give(b);
    }
    return 0;
}
