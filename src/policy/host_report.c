/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/host_report.h"

#include <math.h>
#include <string.h>

/* --- shares --- */

#define WHOLE     1000000.0
#define SHARE_MAX 4000.0 /* four thousand times what there is; a uint32_t holds it */
#define WEIGHT    8      /* a word counts for an eighth */

static double share_of(const _Atomic uint32_t *at)
{
    uint32_t was = atomic_load_explicit(at, memory_order_relaxed);

    return was == 0 ? LOAD_NOT_SAID : (was - 1) / WHOLE;
}

/* |fresh|: what was known is too old to be a mean with. */
static void smooth(_Atomic uint32_t *at, double said, bool fresh)
{
    double was = share_of(at);

    if (said < 0)
        return;
    said = fmin(said, SHARE_MAX);
    if (was >= 0 && !fresh)
        said = was + (said - was) / WEIGHT;
    atomic_store_explicit(at, (uint32_t)lrint(said * WHOLE) + 1, memory_order_relaxed);
}

/* --- named values --- */

static void write_one(struct host_report_named *to, const struct load_named *from)
{
    uint64_t words[HOST_REPORT_WORDS] = {0};
    uint64_t value;

    memcpy(words, from->name, from->len);
    memcpy(&value, &from->value, sizeof(value));
    for (size_t i = 0; i < HOST_REPORT_WORDS; i++)
        atomic_store_explicit(&to->name[i], words[i], memory_order_relaxed);
    atomic_store_explicit(&to->value, value, memory_order_relaxed);
}

/* Where another worker writes, ours is as good as lost: the next one comes soon. */
static void write_named(struct host_report *h, const struct load_report *said)
{
    uint32_t version = atomic_load_explicit(&h->version, memory_order_relaxed);

    if ((version & 1) != 0 ||
        !atomic_compare_exchange_strong_explicit(&h->version, &version, version + 1,
                                                 memory_order_acquire, memory_order_relaxed))
        return;
    atomic_thread_fence(memory_order_release);
    for (uint32_t i = 0; i < said->named_count; i++)
        write_one(&h->named[i], &said->named[i]);
    atomic_store_explicit(&h->named_count, said->named_count, memory_order_relaxed);
    atomic_store_explicit(&h->version, version + 2, memory_order_release);
}

static void read_one(const struct host_report_named *from, struct load_named *to)
{
    uint64_t words[HOST_REPORT_WORDS];
    uint64_t value = atomic_load_explicit(&from->value, memory_order_relaxed);

    for (size_t i = 0; i < HOST_REPORT_WORDS; i++)
        words[i] = atomic_load_explicit(&from->name[i], memory_order_relaxed);
    memcpy(to->name, words, sizeof(to->name));
    memcpy(&to->value, &value, sizeof(value));
    to->name[LOAD_NAME_MAX] = '\0';
    to->len = (uint32_t)strlen(to->name);
}

/* Until they are of one report; writers are short. None where that does not come to be. */
static void read_named(const struct host_report *h, struct load_report *out)
{
    for (int i = 0; i < 100; i++) {
        uint32_t version = atomic_load_explicit(&h->version, memory_order_acquire);
        uint32_t count = atomic_load_explicit(&h->named_count, memory_order_relaxed);

        out->named_count = count < LOAD_NAMED_MAX ? count : LOAD_NAMED_MAX;
        for (uint32_t n = 0; n < out->named_count; n++)
            read_one(&h->named[n], &out->named[n]);
        atomic_thread_fence(memory_order_acquire);
        if ((version & 1) == 0 &&
            atomic_load_explicit(&h->version, memory_order_relaxed) == version)
            return;
    }
    out->named_count = 0;
}

/* --- all of it --- */

static bool is_fresh(const struct host_report *h, mono_ns now)
{
    mono_ns at = atomic_load_explicit(&h->at, memory_order_relaxed);

    return at != 0 && mono_since(at, now) <= HOST_REPORT_FRESH;
}

void host_report_learn(struct host_report *h, const struct load_report *said, mono_ns now)
{
    bool first = !is_fresh(h, now);

    smooth(&h->cpu, said->cpu, first);
    smooth(&h->memory, said->memory, first);
    smooth(&h->application, said->application, first);
    write_named(h, said);
    atomic_store_explicit(&h->at, now == 0 ? 1 : now, memory_order_relaxed);
}

bool host_report_read(const struct host_report *h, struct load_report *out, mono_ns now)
{
    if (!is_fresh(h, now))
        return false;
    out->cpu = share_of(&h->cpu);
    out->memory = share_of(&h->memory);
    out->application = share_of(&h->application);
    read_named(h, out);
    return true;
}

double host_report_utilization(const struct host_report *h, mono_ns now)
{
    double application = share_of(&h->application);

    if (!is_fresh(h, now))
        return LOAD_NOT_SAID;
    return application >= 0 ? application : share_of(&h->cpu);
}
