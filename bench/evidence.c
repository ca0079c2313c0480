/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What evidence costs: a worker, that makes one piece of it a request and puts it into its ring;
 * and the watch, that reads all rings and judges, with 1,000 endpoints and 100,000 requests a
 * second. The code is the shipped one, configured as `run --to` does it; the clock is not, so that
 * a second of traffic takes as long as it takes. Processor time of the thread is what counts.
 *
 *     bench_evidence [SECONDS [ROWS]]
 *
 * ROWS: only those of the watch with that in their names.
 */
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/list.h"
#include "base/memory.h"
#include "base/rng.h"
#include "base/text.h"
#include "base/wheel.h"
#include "control/config.h"
#include "control/detection.h"
#include "control/outlier_watch.h"
#include "exchange/attempts.h"
#include "exchange/exchange.h"
#include "exchange/witness.h"
#include "model/process_state.h"
#include "policy/evidence_ring.h"
#include "policy/host.h"
#include "policy/normal.h"

#define HOSTS       1000
#define RATE        100000 /* requests a second, all workers */
#define WORKERS_MAX 16
#define SERVICE_US  20000.0 /* median */
#define SIGMA       0.5

static void fail(const char *what)
{
    fprintf(stderr, "bench_evidence: %s\n", what);
    exit(1);
}

/* Processor time of this thread. */
static uint64_t spent(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static int compare_double(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double quantile(double *at, uint32_t count, double q)
{
    qsort(at, count, sizeof(*at), compare_double);
    return at[(uint32_t)(q * (count - 1))];
}

/* --- a proxy with so many endpoints --- */

static char list[HOSTS * 24];

/* Its one cluster is the snapshot's own, and not yet in use. */
static void set_profile(struct snapshot *s, enum detection_profile profile)
{
    struct cluster *own = arena_take(&s->arena, sizeof(*own));

    if (own == NULL)
        fail("no memory");
    *own = s->clusters[0];
    detection_set_profile(&own->detection, profile);
    s->clusters = own;
}

static struct snapshot *make_snapshot(uint32_t workers, enum detection_profile profile)
{
    struct config_run run = {
        .listen = BYTES("127.0.0.1:8080"), .admin = BYTES("off"), .workers = workers};
    struct config_errors errors;
    struct snapshot *s = NULL;
    struct text t;

    text_init(&t, list, sizeof(list));
    for (uint32_t i = 0; i < HOSTS; i++) {
        text_str(&t, i > 0 ? ",10.0." : "10.0.");
        text_u64(&t, i / 250);
        text_char(&t, '.');
        text_u64(&t, i % 250 + 1);
        text_str(&t, ":8000");
    }
    run.to = text_bytes(&t);
    config_errors_init(&errors);
    if (t.failed || config_from_list(&run, NULL, &errors, &s) != CONFIG_OK)
        fail("the list of hosts is refused");
    config_errors_release(&errors);
    set_profile(s, profile);
    if (!snapshot_attach_state(s, workers))
        fail("no memory");
    return s;
}

/* --- the worker --- */

#define UNDER_WAY 64
#define BATCH     1024
#define BATCHES   4000
#define PATIENCE  (20 * NS_PER_MS)

/* One worker's side, and the watch's hand on the ring: another thread, as in the proxy. */
struct desk {
    struct snapshot *snapshot;
    struct process_state *process;
    struct cluster_rt rt;
    struct witness witness;
    struct route route;
    struct rng rng;
    mono_ns now;
    struct exchange under_way[UNDER_WAY];
    uint32_t hosts[BATCH];  /* drawn before the time is taken */
    _Atomic uint32_t asked; /* odd: the reader is to empty the ring */
    uint64_t taken;
};

static void begin_exchange(struct desk *d, struct exchange *x)
{
    static const enum exchange_event_kind way[] = {EVENT_REQUEST_COMPLETE, EVENT_BEGIN,
                                                   EVENT_CONNECTED};
    const struct exchange_setup setup = {.cluster = &d->rt,
                                         .route = &d->route,
                                         .process = d->process,
                                         .body_timeout = MONO_NEVER,
                                         .idempotent = true};
    struct actions out;

    exchange_init(x, &setup, d->now);
    for (size_t i = 0; i < sizeof(way) / sizeof(way[0]); i++)
        exchange_step(x, &(struct exchange_event){.kind = way[i], .reused = true}, d->now, &out);
    if (x->state != EXCHANGE_SENT)
        fail("a request is not sent");
}

static void open_desk(struct desk *d)
{
    d->now = NS_PER_S;
    d->snapshot = make_snapshot(1, PROFILE_ADAPTIVE);
    d->process = process_state_create(1, 100000, UINT64_C(1) << 32, d->now);
    rng_init(&d->rng, 1);
    if (d->process == NULL ||
        !cluster_rt_init(&d->rt, &d->snapshot->clusters[0], 0, &d->rng, &d->now))
        fail("no memory");
    d->witness = (struct witness){.ring = &d->process->rings[0]};
    d->rt.witness = &d->witness;
    d->route = (struct route){.timeout = MONO_NEVER,
                              .per_try_timeout = MONO_NEVER,
                              .idle_timeout = MONO_NEVER,
                              .large_body = UINT64_MAX};
    for (uint32_t i = 0; i < UNDER_WAY; i++)
        begin_exchange(d, &d->under_way[i]);
}

static void close_desk(struct desk *d)
{
    for (uint32_t i = 0; i < UNDER_WAY; i++)
        witness_forget(&d->under_way[i]);
    cluster_rt_release(&d->rt);
    process_state_free(d->process);
    snapshot_drop(d->snapshot);
    memory_give(d);
}

/* What the exchange has to do with evidence in the life of one request. */
static void one_request(struct desk *d, struct exchange *x, uint32_t host)
{
    attempt_present(x)->host = host;
    attempt_present(x)->connected_at = d->now;
    x->complete_at = d->now;
    witness_open(x);
    x->head_at = d->now + PATIENCE;
    witness_forget(x);
    x->answer_bytes = 1024;
    witness_end(x, EVIDENCE_OK, d->now + PATIENCE);
}

static void *read_ring(void *arg)
{
    struct desk *d = arg;
    struct evidence e;
    uint32_t asked;

    while ((asked = atomic_load(&d->asked)) != UINT32_MAX) {
        if (asked % 2 == 0) {
            sched_yield();
            continue;
        }
        while (evidence_ring_take(d->witness.ring, &e))
            d->taken++;
        (void)evidence_ring_sleep(d->witness.ring);
        atomic_store(&d->asked, asked + 1);
    }
    return NULL;
}

static void have_it_read(struct desk *d)
{
    atomic_fetch_add(&d->asked, 1);
    while (atomic_load(&d->asked) % 2 != 0)
        sched_yield();
    d->witness.tell = false;
}

/* Nanoseconds a request; |gap|: between two of the worker's. */
static double one_batch(struct desk *d, span_ns gap)
{
    uint64_t before;
    double took;

    for (uint32_t i = 0; i < BATCH; i++)
        d->hosts[i] = rng_below(&d->rng, HOSTS);
    before = spent();
    for (uint32_t i = 0; i < BATCH; i++) {
        one_request(d, &d->under_way[i % UNDER_WAY], d->hosts[i]);
        d->now += gap;
    }
    took = (double)(spent() - before) / BATCH;
    have_it_read(d);
    return took;
}

static void measure_worker(const char *name, uint32_t rate)
{
    struct desk *d = memory_take(sizeof(*d));
    double *took = memory_take_array(BATCHES, sizeof(*took));
    pthread_t reader;
    double half, most;

    if (d == NULL || took == NULL)
        fail("no memory");
    open_desk(d);
    if (pthread_create(&reader, NULL, read_ring, d) != 0)
        fail("no thread");
    for (uint32_t i = 0; i < BATCHES; i++)
        took[i] = one_batch(d, NS_PER_S / rate);
    atomic_store(&d->asked, UINT32_MAX);
    pthread_join(reader, NULL);
    half = quantile(took, BATCHES, 0.5);
    most = quantile(took, BATCHES, 0.95);
    printf("worker;%s;%.1f;%.1f;%.3f\n", name, half, most,
           (double)d->taken / ((double)BATCH * BATCHES));
    memory_give(took);
    close_desk(d);
}

/* --- the watch --- */

#define WARM_S  10
#define TICK_NS DETECTION_EVERY

/* What is wrong; the hosts from the first on have it. */
struct trouble {
    const char *name;
    uint32_t workers;
    enum detection_profile profile;
    uint32_t hosts;
    double times;   /* so much slower, */
    double failing; /* such a share of their answers */
};

struct fleet {
    const struct trouble *trouble;
    struct log log;
    struct clock clock;
    struct mailbox inbox;
    struct mailbox *inboxes[WORKERS_MAX];
    struct wheel wheel;
    struct rng rng;
    mono_ns now;
    bool broken; /* the trouble is there */
    struct evidence_ring *rings;
    struct snapshot *snapshot;
    struct outlier_watch *watch;
    uint64_t put;
    uint64_t lines;
};

__attribute__((format(printf, 4, 0))) static void
count_line(struct log *l, enum log_level level, const char *event, const char *format, va_list args)
{
    (void)level;
    (void)event;
    (void)format;
    (void)args;
    CONTAINER_OF(l, struct fleet, log)->lines++;
}

static bool swallow(struct mailbox *m, const struct message *message)
{
    (void)m;
    (void)message;
    return true;
}

static wall_ns wall(struct clock *c)
{
    (void)c;
    return UINT64_C(1800000000) * NS_PER_S;
}

static void open_fleet(struct fleet *f, const struct trouble *t)
{
    static const struct mailbox_ops ops = {.post = swallow};

    f->trouble = t;
    f->log.write = count_line;
    f->clock.wall = wall;
    f->inbox.ops = &ops;
    for (uint32_t i = 0; i < WORKERS_MAX; i++)
        f->inboxes[i] = &f->inbox;
    f->now = 1000 * NS_PER_S;
    wheel_init(&f->wheel, f->now);
    rng_init(&f->rng, 1);
    f->rings = memory_take_array(t->workers, sizeof(*f->rings));
    f->snapshot = make_snapshot(t->workers, t->profile);
    for (uint32_t i = 0; f->rings != NULL && i < t->workers; i++)
        f->rings[i].others = t->workers - 1;
    f->watch = outlier_watch_create(&(struct outlier_watch_setup){.wheel = &f->wheel,
                                                                  .clock = &f->clock,
                                                                  .log = &f->log,
                                                                  .workers = f->inboxes,
                                                                  .rings = f->rings,
                                                                  .worker_count = t->workers,
                                                                  .seed = 1});
    if (f->rings == NULL || f->watch == NULL || !outlier_watch_adopt(f->watch, f->snapshot, f->now))
        fail("no memory");
}

static void close_fleet(struct fleet *f)
{
    outlier_watch_free(f->watch);
    snapshot_drop(f->snapshot);
    memory_give(f->rings);
    memory_give(f);
}

static bool has_it(const struct fleet *f, uint32_t host)
{
    return f->broken && host < f->trouble->hosts;
}

/* As the balancer does: who is out gets nothing, who is cut gets its share. */
static uint32_t draw_host(struct fleet *f)
{
    const struct host_set *hosts = &f->snapshot->clusters[0].hosts;

    for (;;) {
        uint32_t i = rng_below(&f->rng, HOSTS);

        if (host_health(hosts->at[i]) == HOST_HEALTHY &&
            rng_below(&f->rng, HOST_WHOLE) < host_share(hosts->at[i]))
            return i;
    }
}

static void tell(struct fleet *f, mono_ns at)
{
    uint32_t host = draw_host(f);
    double us = SERVICE_US * exp(SIGMA * normal_quantile(fmax(rng_unit(&f->rng), 1e-12)));
    double failing = has_it(f, host) ? f->trouble->failing : 0.001;
    struct evidence e = {.at = at,
                         .cluster = f->snapshot->clusters[0].state,
                         .host = host,
                         .class = rng_below(&f->rng, 5) == 0 ? CLASS_WRITE : CLASS_READ,
                         .outcome = EVIDENCE_OK,
                         .ahead = 2};

    if (has_it(f, host))
        us *= f->trouble->times;
    if (rng_unit(&f->rng) < failing)
        e.outcome = EVIDENCE_ERROR;
    e.first_us = (uint32_t)us;
    switch (evidence_ring_put(&f->rings[rng_below(&f->rng, f->trouble->workers)], &e)) {
    case EVIDENCE_PUT:
    case EVIDENCE_PUT_TELL:
        f->put++;
        return;
    case EVIDENCE_THINNED:
        return;
    case EVIDENCE_LOST:
        fail("the watch is late on a clock of its own");
    }
}

/* What the workers put into their rings between two looks of the watch. */
static void fill(struct fleet *f)
{
    uint64_t n = RATE * TICK_NS / NS_PER_S;

    for (uint64_t i = 0; i < n; i++)
        tell(f, f->now + i * (TICK_NS / n));
}

/* Processor time of the watch's thread for that long. */
static uint64_t run(struct fleet *f, span_ns length, double *turns, uint32_t *count)
{
    mono_ns end = f->now + length;
    uint64_t all = 0;

    for (*count = 0; f->now < end; (*count)++) {
        uint64_t before;

        fill(f);
        f->now += TICK_NS;
        outlier_watch_wake(f->watch, f->now);
        before = spent();
        wheel_run(&f->wheel, f->now);
        turns[*count] = (double)(spent() - before) / (double)NS_PER_MS;
        all += spent() - before;
    }
    return all;
}

static void measure_watch(const struct trouble *t, uint32_t seconds)
{
    struct fleet *f = memory_take(sizeof(*f));
    uint32_t room = (seconds + WARM_S) * (uint32_t)(NS_PER_S / TICK_NS) + 1, count;
    double *turns = memory_take_array(room, sizeof(*turns));
    uint64_t took;

    if (f == NULL || turns == NULL)
        fail("no memory");
    open_fleet(f, t);
    (void)run(f, WARM_S * NS_PER_S, turns, &count);
    f->broken = true;
    f->put = 0;
    took = run(f, seconds * NS_PER_S, turns, &count);
    printf("watch;%s;%.2f;%.2f;%.2f;%" PRIu64 "\n", t->name,
           100.0 * (double)took / (double)(seconds * NS_PER_S), quantile(turns, count, 0.5),
           quantile(turns, count, 1), f->put / seconds);
    fflush(stdout);
    memory_give(turns);
    close_fleet(f);
}

static const struct trouble troubles[] = {
    {"1 worker, all well", 1, PROFILE_ADAPTIVE, 0, 1, 0},
    {"4 workers, all well", 4, PROFILE_ADAPTIVE, 0, 1, 0},
    {"16 workers, all well", 16, PROFILE_ADAPTIVE, 0, 1, 0},
    {"16 workers, starter, all well", 16, PROFILE_STARTER, 0, 1, 0},
    {"16 workers, one x3", 16, PROFILE_ADAPTIVE, 1, 3, 0.001},
    {"16 workers, ten fail 30 %", 16, PROFILE_ADAPTIVE, 10, 1, 0.3},
    {"16 workers, a third fails", 16, PROFILE_ADAPTIVE, 333, 1, 0.5},
    {"16 workers, all fail 30 %", 16, PROFILE_ADAPTIVE, HOSTS, 1, 0.3},
    {"16 workers, all x3", 16, PROFILE_ADAPTIVE, HOSTS, 3, 0.001},
};

int main(int argc, char **argv)
{
    uint32_t seconds = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 20;
    const char *only = argc > 2 ? argv[2] : "";

    if (seconds == 0)
        fail("bench_evidence [SECONDS [ROWS]]");
    if (*only == '\0') {
        measure_worker("each is put", 4000);
        measure_worker("thinned at 100,000/s", RATE);
    }
    for (size_t i = 0; i < sizeof(troubles) / sizeof(troubles[0]); i++) {
        if (strstr(troubles[i].name, only) != NULL)
            measure_watch(&troubles[i], seconds);
    }
    return 0;
}
