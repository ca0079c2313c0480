/* SPDX-License-Identifier: Apache-2.0 */
#include "main/reload.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "io/error.h"
#include "os/files.h"
#include "os/poller.h"
#include "os/threads.h"

#define WATCH_EVERY NS_PER_S

struct reload {
    struct reloader reloader;
    struct reload_setup setup;
    struct os_thread thread;
    bool running;
    _Atomic bool loaded;     /* by the thread: |next| and |why| are there */
    uint64_t serves;         /* the last wish that the run under way fulfils */
    struct snapshot *before; /* a reference, for the thread */
    struct snapshot *next;   /* NULL: refused */
    char why[RELOAD_WHY_MAX];
    struct timer watch;
    uint64_t stamp;      /* of the files as they were last loaded */
    uint64_t last_stamp; /* as they were last seen: a file that is being written changes again */
};

/* --- the thread --- */

static void load(void *arg)
{
    struct reload *r = arg;
    const struct config_source_files *files = r->setup.files;
    struct text why;

    os_thread_give_way();
    text_init(&why, r->why, sizeof(r->why));
    r->next = files->load(files->owner, r->before, &why);
    text_end(&why);
    atomic_store_explicit(&r->loaded, true, memory_order_release);
    poller_wake(r->setup.poller);
}

/* --- the control loop --- */

static uint64_t stamp_of(const struct reload *r)
{
    const struct config_source_files *files = r->setup.files;
    uint64_t sum = 0;

    for (uint32_t i = 0; i < files->count; i++)
        sum = sum * 31 + os_file_stamp(files->paths[i]);
    return sum;
}

static void settle(struct reload *r, bool ok)
{
    r->reloader.ok = ok;
    memcpy(r->reloader.why, r->why, sizeof(r->why));
    r->reloader.done = r->serves;
}

static void refuse(struct reload *r)
{
    log_event(r->setup.log, LOG_ERROR, "config.rejected", "the configuration stays as it is: %.*s",
              (int)strcspn(r->why, "\n"), r->why);
    settle(r, false);
}

static void start(struct reload *r)
{
    if (r->running || r->reloader.done == r->reloader.asked)
        return;
    r->serves = r->reloader.asked;
    r->stamp = r->last_stamp = stamp_of(r);
    r->before = snapshot_take((struct snapshot *)(uintptr_t)control_snapshot(r->setup.control));
    r->running = os_thread_start(&r->thread, "reload", load, r) == IO_OK;
    if (r->running)
        return;
    snapshot_drop(r->before);
    r->before = NULL;
    strcpy(r->why, "no thread can be started to load it");
    refuse(r);
}

static void begin(struct reloader *base)
{
    base->asked++;
    start(CONTAINER_OF(base, struct reload, reloader));
}

/* Values that only a start can change. */
static void warn_of_the_unchangeable(struct reload *r, const struct snapshot *a,
                                     const struct snapshot *b)
{
    const struct {
        const char *key;
        bool same;
    } rows[] = {
        {"admin", address_equal(&a->admin, &b->admin)},
        {"workers", a->workers == b->workers},
        {"user", bytes_equal(a->user, b->user)},
        {"memoryLimit", a->memory_limit == b->memory_limit},
        {"accessLog.to", bytes_equal(a->access_log.to, b->access_log.to)},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (!rows[i].same)
            log_event(r->setup.log, LOG_WARNING, "config.needs_restart",
                      "%s has changed: that takes effect at the next start", rows[i].key);
}

static const struct listener_config *same_listener(const struct snapshot *s,
                                                   const struct listener_config *l)
{
    for (uint32_t i = 0; i < s->listener_count; i++)
        if (address_equal(&s->listeners[i].address, &l->address))
            return &s->listeners[i];
    return NULL;
}

/* Can we listen where we do not yet? */
static bool may_listen(struct reload *r)
{
    for (uint32_t i = 0; i < r->next->listener_count; i++) {
        const struct listener_config *l = &r->next->listeners[i];
        int error = same_listener(r->before, l) != NULL ? IO_OK : os_may_listen(&l->address);
        struct text why;

        if (error == IO_OK)
            continue;
        text_init(&why, r->why, sizeof(r->why));
        text_str(&why, "listener ");
        text_put(&why, l->name);
        text_str(&why, " cannot listen at ");
        address_write(&why, &l->address);
        text_str(&why, ": ");
        text_str(&why, io_error_text(error));
        text_end(&why);
        return false;
    }
    return true;
}

static void adopt(struct reload *r)
{
    if (!control_publish(r->setup.control, r->next)) {
        strcpy(r->why, "no memory");
        refuse(r);
        return;
    }
    warn_of_the_unchangeable(r, r->before, r->next);
    log_event(r->setup.log, LOG_INFO, "config.reloaded", "version %" PRIu64 " is in force",
              r->next->version);
    settle(r, true);
}

static void finish(struct reload *r)
{
    os_thread_join(&r->thread);
    r->running = false;
    atomic_store_explicit(&r->loaded, false, memory_order_relaxed);
    if (r->next != NULL && may_listen(r))
        adopt(r);
    else
        refuse(r);
    snapshot_drop(r->next);
    snapshot_drop(r->before);
    r->next = NULL;
    r->before = NULL;
}

void reload_turn(struct reload *r)
{
    if (r->running && atomic_load_explicit(&r->loaded, memory_order_acquire)) {
        finish(r);
        start(r);
    }
}

void reload_begin(struct reload *r)
{
    begin(&r->reloader);
}

/* --- watching --- */

static void look(struct timer *t, mono_ns now)
{
    struct reload *r = CONTAINER_OF(t, struct reload, watch);
    uint64_t stamp = stamp_of(r);

    wheel_arm(control_wheel(r->setup.control), t, mono_after(now, WATCH_EVERY));
    if (stamp != r->stamp && stamp == r->last_stamp)
        begin(&r->reloader);
    r->last_stamp = stamp;
}

/* --- life --- */

struct reload *reload_create(const struct reload_setup *setup)
{
    struct reload *r = calloc(1, sizeof(*r));

    if (r == NULL)
        return NULL;
    r->setup = *setup;
    r->reloader.begin = begin;
    timer_init(&r->watch, look);
    r->stamp = r->last_stamp = stamp_of(r);
    if (setup->files->watch)
        wheel_arm(control_wheel(setup->control), &r->watch,
                  mono_after(control_now(setup->control), WATCH_EVERY));
    control_set_reloader(setup->control, &r->reloader);
    return r;
}

void reload_free(struct reload *r)
{
    if (r == NULL)
        return;
    if (r->running)
        os_thread_join(&r->thread);
    wheel_cancel(control_wheel(r->setup.control), &r->watch);
    control_set_reloader(r->setup.control, NULL);
    snapshot_drop(r->next);
    snapshot_drop(r->before);
    free(r);
}
