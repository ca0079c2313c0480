/* SPDX-License-Identifier: Apache-2.0 */
#include "control/panic_note.h"

#include <inttypes.h>

#include "base/text.h"

#define DURATION_TEXT_MAX 64

static int width(struct bytes b)
{
    return b.len > 256 ? 256 : (int)b.len;
}

static const char *what_is_done(enum panic_policy p)
{
    switch (p) {
    case PANIC_SERVE_ALL:
        return "every host serves, the ejected ones too";
    case PANIC_LEAST_BAD:
        return "of the ejected those that are out for longest serve as well";
    case PANIC_FAIL_FAST:
        return "requests are refused with 503 UH";
    case PANIC_POLICY_COUNT:
        break;
    }
    return "?";
}

static void log_begin(const struct cluster *c, struct log *log, uint32_t healthy, uint32_t all)
{
    log_event(log, LOG_WARNING, "cluster.panic",
              "only %" PRIu32 " of %" PRIu32 " hosts of cluster %.*s are healthy, fewer than "
              "minHealthPercent %" PRIu32 "%%: %s (panic: %s)",
              healthy, all, width(c->name), (const char *)c->name.data, c->panic.threshold,
              what_is_done(c->panic.policy), panic_policy_text(c->panic.policy));
}

static void log_end(const struct cluster *c, struct log *log, span_ns lasted)
{
    char room[DURATION_TEXT_MAX];
    struct text t;

    text_init(&t, room, sizeof(room));
    text_duration(&t, lasted - lasted % NS_PER_MS);
    log_event(log, LOG_INFO, "cluster.panic_over",
              "enough hosts of cluster %.*s are healthy again, after %s of panic", width(c->name),
              (const char *)c->name.data, text_end(&t));
}

void panic_note(const struct cluster *c, struct log *log, mono_ns now)
{
    struct cluster_state *s = c->state;
    uint32_t healthy = host_set_count(&s->hosts, HOST_HEALTHY);
    uint32_t all = healthy + host_set_count(&s->hosts, HOST_EJECTED);
    mono_ns since = atomic_load_explicit(&s->panic_since, memory_order_relaxed);
    bool panic = panic_is_on(&c->panic, healthy, all);

    if (panic == (since != MONO_NEVER))
        return;
    atomic_store_explicit(&s->panic_since, panic ? now : MONO_NEVER, memory_order_relaxed);
    if (panic)
        log_begin(c, log, healthy, all);
    else
        log_end(c, log, mono_since(since, now));
}
