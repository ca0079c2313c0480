/* SPDX-License-Identifier: Apache-2.0 */
#include "main/daemon.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "admin/admin.h"
#include "base/text.h"
#include "control/control.h"
#include "io/error.h"
#include "main/command.h"
#include "main/resolve.h"
#include "os/clock.h"
#include "os/mailbox.h"
#include "os/poller.h"
#include "os/process.h"
#include "os/resolver.h"
#include "os/signals.h"
#include "os/threads.h"
#include "os/usage.h"
#include "proxy/worker.h"
#include "telemetry/access_log.h"

/* Messages that may wait for one loop. Accusations are the most of them: one a failing attempt at
 * worst. */
#define MAILBOX_ROOM 4096

#define EXTRAS 4

struct daemon_worker {
    struct daemon *daemon;
    struct poller *poller;
    struct worker *worker;
    struct os_thread thread;
    bool started;
};

struct daemon {
    const struct daemon_setup *setup;
    struct snapshot *snapshot;
    struct clock clock;
    struct process_state *process;
    uint32_t worker_count;
    struct daemon_worker *workers;
    struct mailbox **inboxes; /* of the workers */
    struct poller *poller;    /* the control loop's */
    struct mailbox *inbox;
    struct resolver *resolver;
    struct control *control;
    struct reload *reload; /* NULL: there are no files */
    struct admin *admin;
    struct admin_extra extras[EXTRAS];
    uint32_t extra_count;
    struct os_signals *signals;
    struct access_log *access_log; /* NULL: off */
    char hostname[256];
    struct os_thread writer;
    bool writer_started;
    _Atomic bool writer_stops;
};

/* --- threads --- */

static void run_worker(void *arg)
{
    struct daemon_worker *dw = arg;

    while (!worker_done(dw->worker))
        worker_turn(dw->worker);
}

static void run_writer(void *arg)
{
    struct daemon *d = arg;

    while (!atomic_load(&d->writer_stops))
        if (access_log_drain(d->access_log) == 0)
            os_clock_sleep(ACCESS_LOG_PAUSE);
    while (access_log_drain(d->access_log) > 0)
        continue;
}

static int start_threads(struct daemon *d)
{
    int error;

    for (uint32_t i = 0; i < d->worker_count; i++) {
        char name[24]; /* the kernel shows the first 15 */

        snprintf(name, sizeof(name), "worker-%" PRIu32, i);
        error = os_thread_start(&d->workers[i].thread, name, run_worker, &d->workers[i]);
        if (error != IO_OK)
            return error;
        d->workers[i].started = true;
    }
    if (d->access_log == NULL)
        return IO_OK;
    error = os_thread_start(&d->writer, "access-log", run_writer, d);
    d->writer_started = error == IO_OK;
    return error;
}

static void join_threads(struct daemon *d)
{
    for (uint32_t i = 0; i < d->worker_count; i++)
        if (d->workers[i].started)
            os_thread_join(&d->workers[i].thread);
    atomic_store(&d->writer_stops, true);
    if (d->writer_started)
        os_thread_join(&d->writer);
}

/* --- signals --- */

static void on_signal(void *owner, enum os_signal signal)
{
    struct daemon *d = owner;

    switch (signal) {
    case OS_SIGNAL_TERM:
        control_drain(d->control);
        return;
    case OS_SIGNAL_INT:
        if (control_drains(d->control))
            control_quit(d->control);
        else
            control_drain(d->control);
        return;
    case OS_SIGNAL_HUP:
        if (d->reload != NULL)
            reload_begin(d->reload);
        else
            log_event(d->setup->log, LOG_WARNING, "config.reload",
                      "there is no file to load: firebreak runs with --to, not with -c");
        return;
    case OS_SIGNAL_USR1:
        if (d->access_log != NULL)
            access_log_reopen(d->access_log);
        control_reopen(d->control);
        return;
    }
}

/* --- opening --- */

static int fail(const struct daemon *d, const char *what, int error)
{
    log_event(d->setup->log, LOG_ERROR, "server.failed", "%s: %s", what, io_error_text(error));
    return COMMAND_FAILED;
}

static int open_loops(struct daemon *d)
{
    int error = os_poller_create(&d->poller);

    if (error != IO_OK)
        return error;
    d->inbox = os_mailbox_create(d->poller, MAILBOX_ROOM);
    for (uint32_t i = 0; i < d->worker_count; i++) {
        d->workers[i].daemon = d;
        error = os_poller_create(&d->workers[i].poller);
        if (error != IO_OK)
            return error;
        d->inboxes[i] = os_mailbox_create(d->workers[i].poller, MAILBOX_ROOM);
        if (d->inboxes[i] == NULL)
            return IO_NO_MEMORY;
    }
    return d->inbox == NULL ? IO_NO_MEMORY : IO_OK;
}

static int open_state(struct daemon *d)
{
    uint64_t memory = d->snapshot->memory_limit;

    os_clock_init(&d->clock);
    d->worker_count = d->snapshot->workers == 0 ? os_process_cpus() : d->snapshot->workers;
    d->workers = calloc(d->worker_count, sizeof(*d->workers));
    d->inboxes = calloc(d->worker_count, sizeof(struct mailbox *));
    if (memory == 0)
        memory = os_process_memory() / 2;
    d->process = process_state_create(d->worker_count, os_process_raise_descriptors(),
                                      memory == 0 ? UINT64_MAX : memory, clock_read(&d->clock));
    d->snapshot->version = 1;
    if (d->workers == NULL || d->inboxes == NULL || d->process == NULL ||
        !snapshot_attach_state(d->snapshot, d->worker_count))
        return IO_NO_MEMORY;
    return open_loops(d);
}

static const char *environment(const char *name)
{
    return getenv(name);
}

static int open_access_log(struct daemon *d)
{
    const struct access_log_config *c = &d->snapshot->access_log;
    bool to_stdout = bytes_equal(c->to, BYTES("stdout"));
    struct access_log_setup setup = {
        .files = d->setup->files,
        .format = c->format,
        .around = {.hostname = os_process_hostname(d->hostname, sizeof(d->hostname)),
                   .environment = environment},
        .workers = d->worker_count,
        .log = d->setup->log,
    };

    if (c->to.len == 0 || bytes_equal(c->to, BYTES("off")))
        return COMMAND_OK;
    setup.path = to_stdout ? "-" : arena_text(&d->snapshot->arena, c->to);
    if (setup.path == NULL)
        return fail(d, "accessLog", IO_NO_MEMORY);
    /* What is wrong with the file it has said itself. */
    return access_log_create(&setup, &d->access_log) == IO_OK ? COMMAND_OK : COMMAND_FAILED;
}

static bool open_reload(struct daemon *d)
{
    const struct reload_setup setup = {
        .files = d->setup->source,
        .control = d->control,
        .poller = d->poller,
        .log = d->setup->log,
    };

    if (d->setup->source->count == 0)
        return true;
    d->reload = reload_create(&setup);
    return d->reload != NULL;
}

static void turn(struct daemon *d)
{
    control_turn(d->control);
    if (d->reload != NULL)
        reload_turn(d->reload);
}

static int open_control(struct daemon *d)
{
    const struct control_setup setup = {
        .seed = os_process_seed(),
        .clock = &d->clock,
        .poller = d->poller,
        .inbox = d->inbox,
        .workers = d->inboxes,
        .worker_count = d->worker_count,
        .log = d->setup->log,
        .files = d->setup->files,
        .process = d->process,
        .resolver = d->resolver,
        .snapshot = d->snapshot,
    };

    d->control = control_create(&setup);
    if (d->control == NULL || !open_reload(d))
        return IO_NO_MEMORY;
    return os_signals_create(d->poller, on_signal, d, &d->signals);
}

static const char *address_text(const struct address *a, char *room, size_t size)
{
    struct text t;

    text_init(&t, room, size);
    address_write(&t, a);
    return text_end(&t);
}

static int open_worker(struct daemon *d, uint32_t index)
{
    const struct listener_config *failed;
    char at[ADDRESS_TEXT_MAX];
    const struct worker_setup setup = {
        .index = index,
        .seed = os_process_seed(),
        .clock = &d->clock,
        .poller = d->workers[index].poller,
        .inbox = d->inboxes[index],
        .control = d->inbox,
        .peers = d->inboxes,
        .peer_count = d->worker_count,
        .log = d->setup->log,
        .records = d->access_log == NULL ? NULL : access_log_sink(d->access_log, index),
        .log_format = d->access_log == NULL ? NULL : d->snapshot->access_log.format,
        .process = d->process,
        .snapshot = d->snapshot,
    };
    int error = worker_create(&setup, &d->workers[index].worker, &failed);

    if (error != IO_OK)
        return fail(d, failed == NULL ? "worker" : address_text(&failed->address, at, sizeof(at)),
                    error);
    return COMMAND_OK;
}

static void read_usage(struct admin_usage *out)
{
    struct os_usage u;

    os_usage_read(&u);
    *out = (struct admin_usage){
        .allocated = u.allocated,
        .heap = u.heap,
        .resident = u.resident,
        .descriptors = u.descriptors,
        .descriptors_max = u.descriptors_max,
    };
}

/* Counters of parts that admin does not know. */
static void show_extras(struct daemon *d)
{
    d->extras[d->extra_count++] = (struct admin_extra){
        .info = {"event_log_dropped", METRIC_COUNTER,
                 "lines of the outlier event log dropped for trouble with the file"},
        .cell = control_events_dropped(d->control),
    };
    d->extras[d->extra_count++] = (struct admin_extra){
        .info = {"journal_dropped", METRIC_COUNTER,
                 "lines of the journal of decisions dropped for trouble with the file"},
        .cell = control_journal_dropped(d->control),
    };
    if (d->access_log == NULL)
        return;
    d->extras[d->extra_count++] = (struct admin_extra){
        .info = {"access_log_written", METRIC_COUNTER, "access log lines written"},
        .cell = access_log_written(d->access_log),
    };
    d->extras[d->extra_count++] = (struct admin_extra){
        .info = {"access_log_dropped", METRIC_COUNTER,
                 "access log lines dropped for trouble with the file"},
        .cell = access_log_dropped(d->access_log),
    };
}

static int open_admin(struct daemon *d)
{
    struct admin_setup setup = {
        .control = d->control,
        .clock = &d->clock,
        .address = d->snapshot->admin,
        .log = d->setup->log,
        .extras = d->extras,
        .usage = read_usage,
    };
    char at[ADDRESS_TEXT_MAX];
    int error;

    if (d->snapshot->admin.kind == ADDRESS_NONE)
        return COMMAND_OK;
    show_extras(d);
    setup.extra_count = d->extra_count;
    error = admin_create(&setup, &d->admin);
    if (error != IO_OK)
        return fail(d, address_text(&d->snapshot->admin, at, sizeof(at)), error);
    return COMMAND_OK;
}

static void say_where(struct daemon *d)
{
    char at[ADDRESS_TEXT_MAX];

    for (uint32_t i = 0; i < d->snapshot->listener_count; i++) {
        const struct listener_config *l = &d->snapshot->listeners[i];
        struct address bound = l->address;

        bound.port = (uint16_t)l->state->port;
        printf("listening %.*s %s\n", (int)l->name.len, (const char *)l->name.data,
               address_text(&bound, at, sizeof(at)));
    }
    if (d->admin != NULL) {
        struct address bound;

        admin_address(d->admin, &bound);
        printf("admin %s\n", address_text(&bound, at, sizeof(at)));
    }
    fflush(stdout);
}

/* With everything open that root may be needed for. */
static int drop_privileges(struct daemon *d)
{
    const char *user;
    int error;

    if (d->snapshot->user.len == 0)
        return COMMAND_OK;
    user = arena_text(&d->snapshot->arena, d->snapshot->user);
    error = user == NULL ? IO_NO_MEMORY : os_process_become(user);
    return error == IO_OK ? COMMAND_OK : fail(d, "user", error);
}

static int open_all(struct daemon *d)
{
    int error = open_state(d);

    if (error == IO_OK)
        error = resolve_create(d->poller, &d->resolver);
    if (error == IO_OK)
        error = open_control(d);
    if (error != IO_OK)
        return fail(d, "start", error);
    if (open_access_log(d) != COMMAND_OK)
        return COMMAND_FAILED;
    for (uint32_t i = 0; i < d->worker_count; i++)
        if (open_worker(d, i) != COMMAND_OK)
            return COMMAND_FAILED;
    if (open_admin(d) != COMMAND_OK)
        return COMMAND_FAILED;
    return drop_privileges(d);
}

/* --- closing --- */

static void release(struct daemon *d)
{
    admin_free(d->admin);
    os_signals_free(d->signals);
    for (uint32_t i = 0; i < d->worker_count && d->workers != NULL; i++)
        worker_free(d->workers[i].worker);
    reload_free(d->reload);
    os_resolver_free(d->resolver);
    control_free(d->control);
    access_log_free(d->access_log);
    for (uint32_t i = 0; i < d->worker_count && d->workers != NULL; i++) {
        if (d->inboxes != NULL)
            os_mailbox_free(d->inboxes[i]);
        os_poller_free(d->workers[i].poller);
    }
    os_mailbox_free(d->inbox);
    os_poller_free(d->poller);
    process_state_free(d->process);
    snapshot_drop(d->snapshot);
    free(d->workers);
    free(d->inboxes);
}

int daemon_run(const struct daemon_setup *setup)
{
    struct daemon d = {.setup = setup, .snapshot = snapshot_take(setup->snapshot)};
    int code = open_all(&d);

    if (code == COMMAND_OK && start_threads(&d) != IO_OK) {
        code = fail(&d, "threads", IO_OTHER);
        control_quit(d.control);
    }
    if (code == COMMAND_OK) {
        say_where(&d);
        log_event(setup->log, LOG_INFO, "server.started", "%" PRIu32 " workers", d.worker_count);
        while (!control_done(d.control))
            turn(&d);
        log_event(setup->log, LOG_INFO, "server.stopped", "all requests are finished");
    }
    join_threads(&d);
    release(&d);
    return code;
}
