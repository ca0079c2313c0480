/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/evidence_ring.h"

#define SLICE (NS_PER_S / 2)

static bool is_failure(const struct evidence *s)
{
    return s->outcome != EVIDENCE_OK;
}

/* How many halvings what came in this half second calls for. */
static uint8_t halvings(const struct evidence_ring *r)
{
    uint32_t in_slice = r->in_slice, most = EVIDENCE_RATE / (1 + r->others);
    uint8_t n = 0;

    while (in_slice >= most && n < 16) {
        in_slice /= 2;
        n++;
    }
    return n;
}

static uint8_t thinning(struct evidence_ring *r, const struct evidence *s)
{
    uint64_t slice = s->at / SLICE;

    if (slice != r->slice) {
        r->slice = slice;
        r->in_slice = 0;
    }
    r->in_slice++;
    return is_failure(s) || (s->flags & EVIDENCE_PROBE) != 0 ? 0 : halvings(r);
}

/* One of 2^|thinned|, as if drawn: hosts that take turns must not all fall on the same side.
 * Source: the finalizer of MurmurHash3 (Austin Appleby, public domain). */
static bool is_drawn(struct evidence_ring *r, uint8_t thinned)
{
    uint32_t h = ++r->draws * 0x9e3779b9u;

    h = (h ^ (h >> 16)) * 0x85ebca6bu;
    h = (h ^ (h >> 13)) * 0xc2b2ae35u;
    h ^= h >> 16;
    return (h & ((UINT32_C(1) << thinned) - 1)) == 0;
}

static enum evidence_put push(struct evidence_ring *r, const struct evidence *s, uint8_t thinned)
{
    uint32_t written = atomic_load_explicit(&r->written, memory_order_relaxed);
    uint32_t read = atomic_load_explicit(&r->read, memory_order_acquire);

    if (written - read == EVIDENCE_RING_ROOM)
        return EVIDENCE_LOST;
    r->at[written % EVIDENCE_RING_ROOM] = *s;
    r->at[written % EVIDENCE_RING_ROOM].thinned = thinned;
    atomic_store(&r->written, written + 1);
    if (atomic_load(&r->asked_for) && atomic_exchange(&r->asked_for, false))
        return EVIDENCE_PUT_TELL;
    return EVIDENCE_PUT;
}

enum evidence_put evidence_ring_put(struct evidence_ring *r, const struct evidence *s)
{
    uint8_t thinned = thinning(r, s);

    if (thinned > 0 && !is_drawn(r, thinned))
        return EVIDENCE_THINNED;
    return push(r, s, thinned);
}

bool evidence_ring_take(struct evidence_ring *r, struct evidence *out)
{
    uint32_t read = atomic_load_explicit(&r->read, memory_order_relaxed);

    if (read == atomic_load_explicit(&r->written, memory_order_acquire))
        return false;
    *out = r->at[read % EVIDENCE_RING_ROOM];
    atomic_store_explicit(&r->read, read + 1, memory_order_release);
    return true;
}

/* Asked first and looked again after: what is put in between is either seen or told. */
bool evidence_ring_sleep(struct evidence_ring *r)
{
    atomic_store(&r->asked_for, true);
    if (atomic_load(&r->written) == atomic_load_explicit(&r->read, memory_order_relaxed))
        return true;
    atomic_store(&r->asked_for, false);
    return false;
}
