/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/demo.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/list.h"
#include "base/rng.h"
#include "io/error.h"
#include "lab/child.h"
#include "lab/demo_score.h"
#include "lab/fetch.h"
#include "lab/load.h"
#include "lab/loop.h"

#define START_WITHIN  (10 * NS_PER_S)
#define STOP_WITHIN   (3 * NS_PER_S)
#define FETCH_WITHIN  (2 * NS_PER_S)
#define TICK          (250 * NS_PER_MS)
#define LOAD_TIMEOUT  (5 * NS_PER_S)
#define CONNECTIONS   1000
#define SCREEN        8192
#define CLUSTER       "demo"
#define BAD_STATUS    "503"
#define BAD_SHARE     "0.5"
#define BAD_DELAY     "300ms"
#define SERVICE       "lognormal:10ms:0.5"
#define EJECT_AFTER   5 /* answers 5xx in a row, as `firebreak run --to` does */
#define EJECT_NEVER   0
#define PATH_ROOM     512
#define FOREVER       (7 * 24 * 3600 * NS_PER_S)
#define LINES_A_TABLE DEMO_TABLE_LINES

struct demo {
    struct demo_options options;
    struct lab_loop loop;
    struct child servers;
    struct child proxy;
    struct address server[DEMO_PEERS];
    uint32_t servers_known;
    struct address control;
    struct address web;
    struct address admin;
    bool has_control;
    bool has_web;
    bool has_admin;
    struct appointment tick;
    bool ticked;
    bool drawn;            /* a table is on the screen, to be drawn over */
    uint64_t plain_second; /* the last one that has its line */
    uint32_t chosen;       /* the server that is bad, where it is one */
    span_ns fault_after;   /* a half began, where there is a scenario */
    struct demo_half half[2];
};

/* --- words --- */

static bool complain(const char *what, const char *why)
{
    fprintf(stderr, "firebreak demo: %s: %s\n", what, why);
    return false;
}

static bool complain_child(const char *what, const struct child *c)
{
    fprintf(stderr, "firebreak demo: %s%s%s\n", what, c->tail[0] == '\0' ? "" : "; it said:\n",
            c->tail);
    return false;
}

static const char *address_words(const struct address *a, char *room, size_t size)
{
    struct text t;

    text_init(&t, room, size);
    address_write(&t, a);
    return text_end(&t);
}

/* --- children --- */

static void server_line(void *owner, struct bytes line)
{
    struct demo *d = owner;
    struct bytes listening = BYTES("listening ");
    struct bytes control = BYTES("control ");

    if (bytes_start_with(line, listening) && d->servers_known < DEMO_PEERS &&
        address_parse(bytes_skip(line, listening.len), &d->server[d->servers_known]))
        d->servers_known++;
    if (bytes_start_with(line, control))
        d->has_control = address_parse(bytes_skip(line, control.len), &d->control);
}

static void proxy_line(void *owner, struct bytes line)
{
    struct demo *d = owner;
    struct bytes listening = BYTES("listening web ");
    struct bytes admin = BYTES("admin ");

    if (bytes_start_with(line, listening))
        d->has_web = address_parse(bytes_skip(line, listening.len), &d->web);
    if (bytes_start_with(line, admin))
        d->has_admin = address_parse(bytes_skip(line, admin.len), &d->admin);
}

static bool servers_ready(const struct demo *d)
{
    return d->servers_known == DEMO_PEERS && d->has_control;
}

static bool proxy_ready(const struct demo *d)
{
    return d->has_web && d->has_admin;
}

static void tick(struct appointment *a, mono_ns now)
{
    struct demo *d = CONTAINER_OF(a, struct demo, tick);

    d->ticked = true;
    schedule_arm(&d->loop.schedule, a, mono_after(now, TICK));
}

/* Turns the loop until |ready|; false: it ended, took too long, or we were interrupted. */
static bool await(struct demo *d, struct child *c, bool (*ready)(const struct demo *d))
{
    mono_ns until = mono_after(d->loop.now, START_WITHIN);

    while (!ready(d)) {
        if (!child_runs(c) || d->loop.now > until || d->loop.stopped)
            return false;
        lab_loop_turn(&d->loop);
    }
    return true;
}

/* execv wants its arguments writable, and literals are not: so they are copied. */
static int start_child(struct child *c, const char *const *words)
{
    char *argv[24] = {NULL};
    size_t n = 0;
    int err;

    while (words[n] != NULL && n < 23) {
        argv[n] = strdup(words[n]);
        n++;
    }
    err = child_start(c, argv);
    while (n > 0)
        free(argv[--n]);
    return err;
}

static bool start_servers(struct demo *d)
{
    static const char *const words[] = {"firebreak", "backend", "--listen",  "127.0.0.1:0",
                                        "--count",   "10",      "--control", "127.0.0.1:0",
                                        "--service", SERVICE,   NULL};
    int err;

    d->servers.line = server_line;
    d->servers.owner = d;
    err = start_child(&d->servers, words);
    if (err != IO_OK)
        return complain("cannot start the servers", io_error_text(err));
    if (await(d, &d->servers, servers_ready))
        return true;
    return d->loop.stopped ? false : complain_child("the servers did not start", &d->servers);
}

/* --- faults --- */

static bool set_fault(struct demo *d, uint32_t server, const char *fault)
{
    char room[256];
    struct text t;
    struct buffer answer;
    enum call_outcome outcome;
    uint32_t status;

    text_init(&t, room, sizeof(room));
    text_str(&t, "{\"server\": ");
    text_u64(&t, server);
    text_str(&t, ", ");
    text_str(&t, fault);
    text_char(&t, '}');
    status = fetch(&d->loop,
                   &(struct fetch){.to = d->control,
                                   .method = "POST",
                                   .target = "/fault",
                                   .body = text_bytes(&t),
                                   .timeout = FETCH_WITHIN},
                   &answer, &outcome);
    buffer_release(&answer);
    if (status == 200)
        return true;
    return complain("cannot break a server", status == 0 ? call_outcome_text(outcome) : room);
}

static bool clear_faults(struct demo *d)
{
    struct buffer answer;
    enum call_outcome outcome;
    uint32_t status = fetch(
        &d->loop,
        &(struct fetch){
            .to = d->control, .method = "DELETE", .target = "/fault", .timeout = FETCH_WITHIN},
        &answer, &outcome);

    buffer_release(&answer);
    return status == 200 || complain("cannot mend the servers", call_outcome_text(outcome));
}

/* Once, after a time in which all are well: what is usual is learnt then. */
static bool break_by_scenario(struct demo *d, struct demo_half *half, span_ns elapsed)
{
    const struct demo_scenario *s = d->options.scenario;
    span_ns length = d->options.seconds * NS_PER_S / 2;
    uint32_t bad;

    if (s == NULL || half->faulty || elapsed < d->fault_after || elapsed >= length)
        return true;
    bad = demo_bad_servers(s, d->chosen);
    for (uint32_t i = 0; i < DEMO_PEERS; i++)
        if ((bad >> i & 1) != 0 && !set_fault(d, i, s->fault))
            return false;
    demo_half_break(half, bad, d->loop.now, mono_after(d->loop.now, length - elapsed));
    return true;
}

static void announce(struct demo *d)
{
    const struct demo_scenario *s = d->options.scenario;
    char room[ADDRESS_TEXT_MAX];

    d->fault_after = d->options.seconds * NS_PER_S / 6;
    printf("Ten servers in three zones take " SERVICE " each. After %.1f s of each half\n%s %s.\n"
           "%.0f requests a second (Poisson), to each server in turn, no retries, timeout 2 s.\n\n",
           (double)d->fault_after / NS_PER_S,
           s->bad == 1            ? address_words(&d->server[d->chosen], room, sizeof(room))
           : s->bad == DEMO_PEERS ? "all of them"
                                  : "some of them",
           s->what, d->options.rate);
    fflush(stdout);
}

static bool break_one(struct demo *d)
{
    char room[ADDRESS_TEXT_MAX];
    struct rng rng;
    uint32_t bad;

    rng_init(&rng, d->options.seed);
    bad = d->chosen = rng_below(&rng, DEMO_PEERS);
    if (d->options.scenario != NULL) {
        announce(d);
        return true;
    }
    printf("Ten servers take " SERVICE " each. %s is bad:\n"
           "it is " BAD_DELAY " late, and half of its answers are " BAD_STATUS ".\n"
           "%.0f requests a second (Poisson), to each server in turn, no retries.\n\n",
           address_words(&d->server[bad], room, sizeof(room)), d->options.rate);
    fflush(stdout);
    return set_fault(d, bad,
                     "\"fault\": \"status\", \"value\": " BAD_STATUS
                     ", \"probability\": " BAD_SHARE) &&
           set_fault(d, bad, "\"fault\": \"delay\", \"value\": \"" BAD_DELAY "\"");
}

/* --- the proxy --- */

static void write_judges(const struct demo *d, unsigned errors, FILE *to)
{
    if (d->options.scenario != NULL)
        fprintf(to, "    resilience: { %s }\n",
                errors == EJECT_NEVER ? "mode: observe" : "profile: adaptive");
    else
        fprintf(to,
                "    trafficPolicy:\n"
                "      outlierDetection:\n"
                "        consecutive5xxErrors: %u\n"
                "        baseEjectionTime: 30s\n"
                "        maxEjectionPercent: 20\n",
                errors);
}

static void write_config(const struct demo *d, unsigned errors, FILE *to)
{
    char room[ADDRESS_TEXT_MAX];

    fprintf(to,
            "admin: { listen: 127.0.0.1:0 }\n"
            "workers: 1\n"
            "accessLog: { to: off }\n"
            "listeners:\n"
            "  - name: web\n"
            "    listen: 127.0.0.1:0\n"
            "    routes:\n"
            "      - cluster: " CLUSTER "\n"
            "        timeout: %s\n"
            "clusters:\n"
            "  - name: " CLUSTER "\n"
            "    loadBalancer: round_robin\n"
            "    endpoints:\n",
            d->options.scenario == NULL ? "15s" : "2s");
    for (uint32_t i = 0; i < DEMO_PEERS; i++)
        fprintf(to, "      - { address: \"%s\", zone: %s }\n",
                address_words(&d->server[i], room, sizeof(room)), demo_zone(i));
    write_judges(d, errors, to);
}

/* A file of our own in TMPDIR; the caller removes it. */
static bool make_config(const struct demo *d, unsigned errors, char *path, size_t room)
{
    const char *folder = getenv("TMPDIR");
    FILE *f;
    int fd;
    int n = snprintf(path, room, "%s/firebreak-demo-XXXXXX",
                     folder == NULL || folder[0] == '\0' ? "/tmp" : folder);

    if (n < 0 || (size_t)n >= room)
        return complain("TMPDIR", "its path is too long");
    fd = mkstemp(path);
    if (fd < 0)
        return complain(path, strerror(errno));
    f = fdopen(fd, "w");
    if (f == NULL) {
        close(fd);
        unlink(path);
        return complain(path, strerror(errno));
    }
    write_config(d, errors, f);
    if (fclose(f) == 0)
        return true;
    (void)complain(path, strerror(errno));
    unlink(path);
    return false;
}

static bool start_proxy(struct demo *d, unsigned errors)
{
    char path[PATH_ROOM];
    const char *const words[] = {"firebreak", "run", "-c", path, NULL};
    bool ready;
    int err;

    if (!make_config(d, errors, path, sizeof(path)))
        return false;
    child_init(&d->proxy, &d->loop);
    d->proxy.line = proxy_line;
    d->proxy.owner = d;
    d->has_web = d->has_admin = false;
    err = start_child(&d->proxy, words);
    ready = err == IO_OK && await(d, &d->proxy, proxy_ready);
    unlink(path);
    if (ready)
        return true;
    if (err != IO_OK)
        return complain("cannot start the proxy", io_error_text(err));
    return d->loop.stopped ? false : complain_child("the proxy did not start", &d->proxy);
}

/* --- a half --- */

static void observe(void *observer, const struct shot *s, const char *peer)
{
    demo_half_learn(observer, s, peer);
}

static void poll_admin(struct demo *d, struct demo_half *half, span_ns elapsed)
{
    struct peer_state states[DEMO_PEERS];
    struct buffer page;
    enum call_outcome outcome;
    uint32_t status = fetch(&d->loop,
                            &(struct fetch){.to = d->admin,
                                            .method = "GET",
                                            .target = "/clusters?format=json",
                                            .timeout = FETCH_WITHIN},
                            &page, &outcome);

    if (status == 200)
        demo_half_see(half, states, peers_read(buffer_bytes(&page), CLUSTER, states, DEMO_PEERS),
                      elapsed, d->loop.now);
    buffer_release(&page);
}

/* Ends the demo where nobody reads any more, or nothing more can be written. */
static void print_text(struct demo *d, const struct text *t)
{
    fwrite(t->data, 1, t->len, stdout);
    if (fflush(stdout) == 0 || d->loop.stopped)
        return;
    (void)complain("cannot write", strerror(errno));
    lab_loop_stop(&d->loop);
}

/* Over the one drawn before. */
static void draw_table(struct demo *d, const struct demo_half *half, span_ns elapsed)
{
    char room[SCREEN];
    char lines[SCREEN];
    struct text table;
    struct text out;

    text_init(&table, room, sizeof(room));
    demo_write_table(&table, half, elapsed);
    text_init(&out, lines, sizeof(lines));
    if (d->drawn) {
        text_str(&out, "\033[");
        text_u64(&out, LINES_A_TABLE);
        text_char(&out, 'A');
    }
    for (size_t i = 0; i < table.len; i++) {
        if (room[i] == '\n')
            text_str(&out, "\033[K"); /* what the longer line before left there */
        text_char(&out, room[i]);
    }
    print_text(d, &out);
    d->drawn = true;
}

static void draw(struct demo *d, const struct demo_half *half, span_ns elapsed)
{
    char room[SCREEN];
    struct text t;

    if (d->options.style == DEMO_LIVE) {
        draw_table(d, half, elapsed);
        return;
    }
    if (elapsed / NS_PER_S == d->plain_second)
        return;
    d->plain_second = elapsed / NS_PER_S;
    text_init(&t, room, sizeof(room));
    demo_write_line(&t, half, elapsed);
    print_text(d, &t);
}

/* Until all requests have ended. False: interrupted, or a child died. */
static bool watch_load(struct demo *d, struct demo_half *half, struct load *load)
{
    while (!load_done(load)) {
        lab_loop_turn(&d->loop);
        if (d->loop.stopped)
            return false;
        if (!d->ticked)
            continue;
        d->ticked = false;
        if (!child_runs(&d->proxy))
            return complain_child("the proxy has ended", &d->proxy);
        if (!child_runs(&d->servers))
            return complain_child("the servers have ended", &d->servers);
        if (!break_by_scenario(d, half, load_elapsed(load)))
            return false;
        poll_admin(d, half, load_elapsed(load));
        draw(d, half, load_elapsed(load));
    }
    return true;
}

static struct call_request request_for_demo(void)
{
    return (struct call_request){
        .method = METHOD_GET,
        .head = BYTES("GET / HTTP/1.1\r\nhost: demo\r\nuser-agent: firebreak-demo\r\n\r\n")};
}

static bool run_load(struct demo *d, struct demo_half *half, span_ns duration)
{
    const struct load_options o = {.to = d->web,
                                   .request = request_for_demo(),
                                   .arrivals = ARRIVALS_POISSON,
                                   .rate = d->options.rate,
                                   .duration = duration,
                                   .timeout = LOAD_TIMEOUT,
                                   .connections = CONNECTIONS,
                                   .seed = d->options.seed,
                                   .observe = observe,
                                   .observer = half};
    struct load *load = load_create(&d->loop, &o);
    bool good;

    if (load == NULL)
        return complain("the load", "out of memory");
    d->drawn = false;
    d->plain_second = UINT64_MAX;
    load_start(load);
    good = watch_load(d, half, load);
    if (good) {
        poll_admin(d, half, load_elapsed(load)); /* all attempts are made by now */
        draw(d, half, load_elapsed(load));
    }
    half->due = load_tally(load)->due;
    half->dropped = load_tally(load)->dropped;
    load_free(load);
    return good;
}

static bool run_half(struct demo *d, struct demo_half *half, const char *title, unsigned errors)
{
    demo_half_init(half, title, d->server);
    return start_proxy(d, errors) && run_load(d, half, d->options.seconds * NS_PER_S / 2);
}

/* --- all of it --- */

static void print_comparison(struct demo *d)
{
    char room[SCREEN];
    struct text t;

    text_init(&t, room, sizeof(room));
    text_str(&t, d->options.style == DEMO_LIVE ? "" : "\n");
    if (d->options.scenario != NULL)
        demo_write_scenario(&t, d->options.scenario, &d->half[0], &d->half[1]);
    else
        demo_write_comparison(&t, &d->half[0], &d->half[1]);
    print_text(d, &t);
}

/* The comparison was shown, so however this ends, all went well. */
static void keep_on(struct demo *d)
{
    char web[ADDRESS_TEXT_MAX];
    char admin[ADDRESS_TEXT_MAX];
    char control[ADDRESS_TEXT_MAX];
    struct demo_half *half = &d->half[0];

    printf("\nStill running: proxy http://%s/, admin http://%s/, faults http://%s/fault\n"
           "Ctrl-C ends it.\n\n",
           address_words(&d->web, web, sizeof(web)), address_words(&d->admin, admin, sizeof(admin)),
           address_words(&d->control, control, sizeof(control)));
    fflush(stdout);
    demo_half_init(half, "Ejection on", d->server);
    (void)run_load(d, half, FOREVER);
}

static bool show(struct demo *d)
{
    bool scenario = d->options.scenario != NULL;
    bool good;

    if (!start_servers(d) || !break_one(d))
        return false;
    good = run_half(d, &d->half[0], scenario ? "Detection off" : "Ejection off", EJECT_NEVER);
    child_stop(&d->proxy, STOP_WITHIN);
    if (good && scenario)
        good = clear_faults(d);
    good = good && run_half(d, &d->half[1], scenario ? "Detection on" : "Ejection on", EJECT_AFTER);
    if (!good)
        return false;
    print_comparison(d);
    good = !d->loop.stopped;
    if (good && d->options.keep)
        keep_on(d);
    return good;
}

/* Stopping needs turns, so an interrupt must not end those. */
static void stop_children(struct demo *d)
{
    child_stop(&d->proxy, STOP_WITHIN);
    child_stop(&d->servers, STOP_WITHIN);
}

bool demo_run(const struct demo_options *o)
{
    struct demo *d = calloc(1, sizeof(*d));
    bool good = false;
    int err;

    if (d == NULL)
        return complain("cannot begin", "out of memory");
    d->options = *o;
    err = lab_loop_open(&d->loop);
    if (err != IO_OK) {
        free(d);
        return complain("cannot begin", io_error_text(err));
    }
    child_init(&d->servers, &d->loop);
    child_init(&d->proxy, &d->loop);
    appointment_init(&d->tick, tick);
    schedule_arm(&d->loop.schedule, &d->tick, mono_after(d->loop.now, TICK));
    good = show(d);
    if (d->loop.interrupted && !good)
        fprintf(stderr, "firebreak demo: interrupted\n");
    stop_children(d);
    lab_loop_close(&d->loop);
    free(d);
    return good;
}
