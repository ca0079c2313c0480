/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A zone of fewer than four hosts is ranked among the hosts of others, less what its answers take
 * longer because of where it is: the logarithm of the ratio, by class. Before anything is known it
 * is nothing (the prior); the first two seconds make it, as they make the fleet's baseline, and
 * from then on it follows in minutes, while nobody is accused. It is the lower median of the hosts'
 * medians, so that one bad host of a zone does not make it, and no half second counts for more than
 * a third of a factor. What is no more than chance is none.
 */
#include <math.h>
#include <string.h>

#include "policy/scope_parts.h"

#define STEP_MOST  8.0 /* bins: what is further off counts as no more */
#define AWAY_SURE  2.5 /* deviations */
#define AWAY_LEAST 2.0 /* bins: less is none */
#define BINS_OF_E  23.083120654223414

static bool takes_part(const struct scope *s, uint32_t index, uint32_t zone, uint32_t class)
{
    const struct detect_host *d = s->judge->hosts[index];

    return s->hosts[index].group[SCOPE_ZONES] == zone && d->stratum == 0 && d->serving &&
           d->median[class] != 0 && d->seen[class] > 0;
}

#define HOSTS_MOST 3 /* with more, a zone has peers enough */

/* Lower median of the zone's hosts; negative: fewer than two are known. */
static double middle_of(const struct scope *s, uint32_t zone, uint32_t class)
{
    double sorted[HOSTS_MOST];
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->judge->count && n < HOSTS_MOST; i++) {
        if (takes_part(s, i, zone, class))
            scope_insert(sorted, n++, detect_median(s->judge->hosts[i], class));
    }
    return n < GROUP_LEAST ? -1 : sorted[(n - 1) / 2];
}

static void learn_zone(struct scope_usual *u, uint32_t class, double middle)
{
    double off = middle - u->middle[class];

    if (u->middles[class]++ >= SCOPE_LEARNING)
        off = fmin(fmax(off, -STEP_MOST), STEP_MOST);
    u->middle[class] += fmax(USUAL_SPEED, 1.0 / u->middles[class]) * off;
}

/* Those that have peers enough by now: should they be few again, they may be elsewhere. */
static void forget_grown(struct scope *s)
{
    bool grown[SCOPE_GROUPS_MAX + 1] = {false}, few[SCOPE_GROUPS_MAX + 1] = {false};

    for (uint32_t i = 0; i < s->judge->count; i++) {
        bool among = s->judge->hosts[i]->stratum == 0;

        (among ? few : grown)[s->hosts[i].group[SCOPE_ZONES]] = true;
    }
    for (uint32_t zone = 0; zone < SCOPE_GROUPS_MAX; zone++) {
        if (grown[zone] && !few[zone]) {
            memset(s->zones[zone].middles, 0, sizeof(s->zones[zone].middles));
            s->zones[zone].age = 0;
        }
    }
}

/* At first also where something seems wrong: it may be that, and would never be known. */
void scope_learn_away(struct scope *s)
{
    forget_grown(s);
    for (uint32_t class = 0; class < EVIDENCE_CLASS_MAX; class ++) {
        for (uint32_t zone = 0; zone < SCOPE_GROUPS_MAX; zone++) {
            struct scope_usual *u = &s->zones[zone];
            double middle = middle_of(s, zone, class);

            if (middle >= 0 && (scope_is_calm(s) || u->middles[class] < SCOPE_LEARNING))
                learn_zone(u, class, middle);
        }
    }
}

/* --- what it comes to --- */

static bool is_learnt(const struct scope *s, uint32_t zone, uint32_t class)
{
    return zone < SCOPE_GROUPS_MAX && s->zones[zone].middles[class] >= SCOPE_LEARNING;
}

/* Where the zones are among which it is, lower median; negative: there are none. */
static double usual_place(const struct scope *s, uint32_t class)
{
    double sorted[SCOPE_GROUPS_MAX];
    uint32_t n = 0;

    for (uint32_t zone = 0; zone < SCOPE_GROUPS_MAX; zone++) {
        if (is_learnt(s, zone, class))
            scope_insert(sorted, n++, s->zones[zone].middle[class]);
    }
    return n < 2 ? -1 : sorted[(n - 1) / 2];
}

/* Bins. |usual|: of the zones. */
static int32_t away_of(const struct scope *s, uint32_t zone, uint32_t class, double usual)
{
    double looks, off, chance;

    if (usual < 0 || !is_learnt(s, zone, class))
        return 0;
    looks = fmin(s->zones[zone].middles[class], 1 / USUAL_SPEED);
    off = s->zones[zone].middle[class] - usual;
    chance = AWAY_SURE * BINS_OF_E * scope_deviation(s) * sqrt((1 + SCOPE_PLACES / looks) / 2) *
             sqrt(fmin(1, SCOPE_PLACES / looks));
    return fabs(off) <= fmax(chance, AWAY_LEAST) ? 0 : (int32_t)lround(off);
}

/* It is not known yet how far the zone is. */
static void begin_ranks(struct scope *s)
{
    for (uint32_t i = 0; i < s->judge->count; i++) {
        uint32_t zone = s->hosts[i].group[SCOPE_ZONES];

        if (s->judge->hosts[i]->stratum == 0 && zone != SCOPE_UNGROUPED &&
            s->zones[zone].age <= SCOPE_LEARNING)
            detect_begin_ranks(s->judge, i);
    }
}

static void grow_older(struct scope *s)
{
    for (uint32_t zone = 0; zone < SCOPE_GROUPS_MAX; zone++)
        s->zones[zone].age +=
            s->names[SCOPE_ZONES][zone] != 0 && s->zones[zone].age <= SCOPE_LEARNING;
}

static void set_class(struct scope *s, uint32_t class)
{
    double usual = usual_place(s, class);
    int32_t away[SCOPE_GROUPS_MAX + 1], most = 0;

    for (uint32_t zone = 0; zone <= SCOPE_GROUPS_MAX; zone++) {
        away[zone] = away_of(s, zone, class, usual);
        most = away[zone] > most ? away[zone] : most;
    }
    for (uint32_t i = 0; i < s->judge->count; i++) {
        bool among = s->judge->hosts[i]->stratum == 0;
        int32_t own = among ? away[s->hosts[i].group[SCOPE_ZONES]] : 0;

        s->hosts[i].nearer = (class > 0 && s->hosts[i].nearer) || (among && own < most);
        detect_set_away(s->judge, i, class, own);
    }
}

void scope_set_away(struct scope *s)
{
    grow_older(s);
    begin_ranks(s);
    for (uint32_t class = 0; class < EVIDENCE_CLASS_MAX; class ++)
        set_class(s, class);
}
