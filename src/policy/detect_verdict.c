/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/detect_verdict.h"

#include <math.h>
#include <stddef.h>

#include "policy/detect_parts.h"

#define TAIL_SHARE 200 /* of a host that is very slow now and then */
#define CUT_POWER  3   /* twice slower: an eighth of the requests ... */
#define RATIO_CUT                                                                                  \
    0.6931471805599453 /* ln 2 ... and no accused host is taken for faster than that */

bool verdict_may_eject(enum detection_profile profile, enum detect_line line)
{
    return detect_of_latency(line) ? profile == PROFILE_ADAPTIVE : profile != PROFILE_RULES;
}

/* Does another kind of evidence rise with the latency? */
static bool has_cosignal(const struct detect *d, uint32_t index)
{
    static const enum detect_line lines[] = {DETECT_ERRORS_SOME, DETECT_ERRORS_MANY,
                                             DETECT_CONNECTS, DETECT_AGE};

    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        if (detect_sum(d, index, lines[i]) > d->config.threshold / 2)
            return true;
    }
    return false;
}

bool verdict_is_enough(const struct detect *d, uint32_t index, enum detect_line line)
{
    if (line == DETECT_RANK && detect_much_slower(d, index) >= SURE_TENTHS)
        return true;
    return !detect_by_half_seconds(line) || has_cosignal(d, index);
}

/* So much slower, so much less: then it works no longer than its peers. */
static uint32_t fair_work(const struct detect *d, uint32_t index)
{
    return (uint32_t)(LIFE_WHOLE * exp(-fmax(d->hosts[index]->ratio, RATIO_CUT)));
}

static uint32_t share_for(const struct detect *d, uint32_t index, enum detect_line line)
{
    if (line == DETECT_RANK)
        return (uint32_t)(LIFE_WHOLE * exp(-CUT_POWER * fmax(d->hosts[index]->ratio, RATIO_CUT)));
    return detect_by_half_seconds(line) ? TAIL_SHARE : 0;
}

struct verdict verdict_of(const struct detect *d, const struct detection_config *config,
                          uint32_t index, enum detect_line line)
{
    struct verdict v = {.deed = VERDICT_NOTHING, .guard = detect_guard_of(d, index, line)};

    if (v.guard != DETECT_HOLDS)
        return v;
    v.deed = VERDICT_SUSPECT;
    v.share = share_for(d, index, line);
    if (!verdict_may_eject(config->profile, line) || !verdict_is_enough(d, index, line))
        return v;
    if (detect_of_latency(line) && detect_load_without(d, index) > config->max_load) {
        v.full = true;
        v.share = fair_work(d, index);
        return v;
    }
    v.deed = VERDICT_EJECT;
    return v;
}
