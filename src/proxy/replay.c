/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/replay.h"

#include "exchange/bounds.h"
#include "proxy/downstream.h"

/* What the next loan may add: the loan, and the framing put anew around its last chunk. */
#define LOAN_ROOM (LINK_LOAN_MAX + 1024u)

static bool retries(const struct stream *s)
{
    return s->x.retry != NULL && s->x.retry->attempts > 0;
}

/* Bytes of a body. Without retries so few that another loan always fits beside them. */
static uint32_t most_kept(const struct stream *s)
{
    uint32_t configured = s->down->listener->config->limits.buffer_bytes;

    if (retries(s))
        return s->x.route->retry != NULL ? s->x.route->retry->buffer_bytes : DEFAULT_RETRY_BUFFER;
    return configured < LINK_LOAN_MAX / 2 ? configured : LINK_LOAN_MAX / 2;
}

/* The framing of small chunks may not outgrow what it frames by much. */
static bool too_large(const struct stream *s)
{
    uint32_t most = most_kept(s);

    return s->request.moved > most || s->out.end > most + most / 4 + 1024;
}

static bool grow(struct stream *s)
{
    struct process_state *process = s->worker->setup.process;
    uint32_t size = s->out.size;
    uint32_t now = size > OUTBUF_SIZE ? size : 0;

    if (!bounds_take_replay(process, 2 * (uint64_t)size - now))
        return false;
    s->worker->allocations++;
    if (outbuf_grow(&s->out, &s->worker->outbufs, 2 * size))
        return true;
    bounds_give_replay(process, 2 * (uint64_t)size - now);
    return false;
}

/* Room for one more loan beside what is kept. */
static bool make_room(struct stream *s)
{
    return s->out.data == NULL || s->out.size - s->out.end >= LOAN_ROOM || grow(s);
}

void replay_begin(struct stream *s)
{
    s->out.keep = s->x.repeatable && !http1_body_done(&s->request.body);
}

void replay_check(struct stream *s)
{
    if (s->out.keep && s->forwarding)
        s->out.keep = false;
    if (s->out.keep && (too_large(s) || !make_room(s))) {
        s->out.keep = false;
        if (retries(s))
            cluster_rt_count(s->x.cluster, CLUSTER_retry_or_shadow_abandoned, 1);
    }
    if (!s->out.keep && outbuf_empty(&s->out))
        replay_release(s);
}

bool replay_possible(const struct stream *s)
{
    return s->out.keep || s->request.moved == 0 || !s->x.sent;
}

bool replay_has_room(const struct stream *s)
{
    return s->out.end - s->out.begin < most_kept(s);
}

void replay_forget(struct stream *s)
{
    s->out.keep = false;
    if (outbuf_empty(&s->out))
        replay_release(s);
}

void replay_release(struct stream *s)
{
    if (s->out.size > OUTBUF_SIZE)
        bounds_give_replay(s->worker->setup.process, s->out.size);
    outbuf_release(&s->out, &s->worker->outbufs);
}
