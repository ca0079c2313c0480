/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict; what groups of hosts have in common is scope_groups.c. */
#include "policy/scope.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "policy/scope_parts.h"

#define HOLDS 4 /* half seconds that a verdict outlives what it was made of */

/* --- names --- */

const char *scope_kind_text(enum scope_kind k)
{
#define X(constant, name) [SCOPE_##constant] = #name,
    static const char *const text[SCOPE_KIND_COUNT] = {SCOPE_KINDS(X)};
#undef X

    assert(k < SCOPE_KIND_COUNT);
    return text[k];
}

const char *scope_sign_text(enum scope_sign s)
{
#define X(constant, name) [SCOPE_BY_##constant] = #name,
    static const char *const text[SCOPE_SIGN_COUNT] = {SCOPE_SIGNS(X)};
#undef X

    assert(s < SCOPE_SIGN_COUNT);
    return text[s];
}

/* --- zones and versions --- */

static uint32_t find(const uint64_t *names, uint64_t name)
{
    uint32_t g = 0;

    while (g < SCOPE_GROUPS_MAX && names[g] != name)
        g++;
    return g;
}

static bool is_named(const struct scope *s, uint32_t count, enum scope_by by, uint64_t name)
{
    for (uint32_t i = 0; i < count; i++) {
        if (s->hosts[i].name[by] == name)
            return true;
    }
    return false;
}

/* Numbers of those that are gone are free again. */
static void forget_gone(struct scope *s, uint32_t count, enum scope_by by)
{
    for (uint32_t g = 0; g < SCOPE_GROUPS_MAX; g++) {
        if (s->names[by][g] == 0 || is_named(s, count, by, s->names[by][g]))
            continue;
        s->names[by][g] = 0;
        memset(&s->holds[by][g], 0, sizeof(s->holds[by][g]));
        if (by == SCOPE_ZONES)
            memset(&s->zones[g], 0, sizeof(s->zones[g]));
        else
            s->versions[g] = 0;
    }
}

static uint32_t number(struct scope *s, enum scope_by by, uint64_t name)
{
    uint32_t g = name == 0 ? SCOPE_UNGROUPED : find(s->names[by], name);

    if (name == 0 || g < SCOPE_GROUPS_MAX)
        return g;
    g = find(s->names[by], 0);
    if (g < SCOPE_GROUPS_MAX)
        s->names[by][g] = name;
    return g;
}

void scope_adopt(struct scope *s, struct detect *judge, struct scope_host *hosts, uint32_t count)
{
    s->judge = judge;
    s->hosts = hosts;
    for (int by = 0; by < SCOPE_BY_COUNT; by++) {
        forget_gone(s, count, (enum scope_by)by);
        for (uint32_t i = 0; i < count; i++)
            hosts[i].group[by] = number(s, (enum scope_by)by, hosts[i].name[by]);
    }
}

/* --- what is remembered --- */

static double worst_sum(const struct detect *d, uint32_t index)
{
    double worst = 0;

    for (int line = 0; line < DETECT_LINE_COUNT; line++)
        worst = fmax(worst, detect_sum(d, index, (enum detect_line)line));
    return worst;
}

/*
 * The nearer a host, the wider its latencies spread beside those of hosts that are far, whose way
 * is most of it: it has high ranks as often as low ones, and now and then many high ones.
 */
static bool only_spreads(const struct scope *s, uint32_t index)
{
    const struct detect_host *h = s->judge->hosts[index];

    return s->hosts[index].nearer && h->rated && h->ratio - fmax(h->usual, 0) < GATE / 2;
}

/* Past half of the threshold, and on its way up: what it was once lasts where it gets little. */
static bool is_suspicious(const struct scope *s, uint32_t index)
{
    const struct detect *d = s->judge;

    for (int line = 0; line < DETECT_LINE_COUNT; line++) {
        if (d->hosts[index]->gain[line] > 0 &&
            detect_sum(d, index, (enum detect_line)line) > d->config.threshold / 2 &&
            (line != DETECT_RANK || !only_spreads(s, index)))
            return true;
    }
    return false;
}

void scope_mark(struct scope *s)
{
    scope_count_since(s, SCOPE_BY_ERRORS, SCOPE_BY_AGE);
    for (uint32_t i = 0; i < s->judge->count; i++) {
        if (s->judge->hosts[i]->serving && is_suspicious(s, i))
            s->hosts[i].marked = s->judge->bucket + 1;
    }
}

void scope_learn_path(struct scope *s, uint32_t index, double requests, double retransmits)
{
    struct scope_host *h = &s->hosts[index];

    h->path.tries += requests;
    h->path.bad += retransmits;
    h->path_just_now.tries += requests;
    h->path_just_now.bad += retransmits;
}

#define PATH_KEEPS   0.9 /* some five seconds */
#define VERSION_RATE 0.01

bool scope_is_calm(const struct scope *s)
{
    return s->now.kind == SCOPE_NONE || s->now.kind == SCOPE_CLASS_SKEW;
}

/* At first the mean, then what it was in the last minutes. */
static void learn_one(const struct scope *s, struct scope_usual *u, uint32_t class, double bins)
{
    double rate = scope_is_calm(s) ? USUAL_SPEED : SLOW_SPEED;

    if (scope_is_calm(s) || u->learnt[class] < SCOPE_LEARNING)
        rate = fmax(rate, 1.0 / ++u->learnt[class]);
    u->bins[class] += rate * (bins - u->bins[class]);
}

#define HALF_BINS (2 * PEER_BINS)

/* The medians of a zone's hosts, counted by half bins. */
struct medians {
    uint32_t count;
    uint32_t at[HALF_BINS];
};

static void count_medians(const struct scope *s, uint32_t class, struct medians *zones)
{
    for (uint32_t i = 0; i < s->judge->count; i++) {
        const struct detect_host *d = s->judge->hosts[i];
        struct medians *m = &zones[s->hosts[i].group[SCOPE_ZONES]];
        double at;

        if (!d->serving || d->median[class] == 0 || d->seen[class] <= 0)
            continue;
        at = 2 * detect_median(d, class);
        m->at[(uint32_t)fmin(fmax(at, 0), HALF_BINS - 1)]++;
        m->count++;
    }
}

/* The lower one, bins: one bad host does not make it. Only where there are hosts. */
static double middle_of(const struct medians *m)
{
    uint32_t at = 0;

    for (uint32_t below = m->at[0]; below <= (m->count - 1) / 2; below += m->at[at])
        at++;
    return at / 2.0;
}

static void learn_class(struct scope *s, uint32_t class)
{
    struct medians zones[SCOPE_GROUPS_MAX + 1] = {{.count = 0}};

    count_medians(s, class, zones);
    for (uint32_t g = 0; g <= SCOPE_GROUPS_MAX; g++) {
        if (zones[g].count > 0 && scope_held(s, SCOPE_ZONES, g) == NULL)
            learn_one(s, &s->zones[g], class, middle_of(&zones[g]));
    }
}

/* A version's place among the others, as long as it is no more than that of any. */
static void learn_version(struct scope *s, const struct scope_table *t, uint32_t g)
{
    struct scope_verdict v;

    if (t->groups[g].known == 0 || scope_is_bad(s, t, g, &v))
        return;
    v = (struct scope_verdict){.group = g};
    (void)scope_lags(s, t, g, &v);
    s->versions[g] += v.ratio < GATE ? VERSION_RATE * v.ratio : 0;
}

static void learn_usual(struct scope *s)
{
    struct scope_table versions = {.by = SCOPE_VERSIONS, .share = VERSION_SHARE};

    for (uint32_t c = 0; c < EVIDENCE_CLASS_MAX; c++)
        learn_class(s, c);
    scope_learn_away(s);
    scope_set_away(s);
    scope_shift(s);
    if (!scope_is_calm(s))
        return;
    scope_count(s, &versions);
    for (uint32_t g = 0; g < SCOPE_GROUPS_MAX; g++)
        learn_version(s, &versions, g);
}

/* --- groups --- */

/* How they are known to be bad. */
enum proof { BY_NOW, BY_THEN };

struct bad_groups {
    uint32_t now;  /* by what is seen now */
    uint32_t then; /* by that, or by what was and is not refuted yet */
    struct scope_verdict worst;
};

static bool is_bad(const struct scope *s, const struct scope_table *t, uint32_t g,
                   struct bad_groups *bad, struct scope_verdict *v)
{
    const struct scope_verdict *held = scope_held(s, t->by, g);

    if (g == SCOPE_UNGROUPED)
        return false;
    if (scope_is_bad(s, t, g, v)) {
        bad->now++;
        return true;
    }
    if (held != NULL)
        *v = *held;
    return held != NULL;
}

/* All are: none is. */
static struct bad_groups find_bad(const struct scope *s, struct scope_table *t)
{
    struct bad_groups bad = {.now = 0};
    uint32_t others = 0;

    scope_count(s, t);
    for (uint32_t g = 0; g <= SCOPE_GROUPS_MAX; g++) {
        struct scope_verdict one;

        if (t->groups[g].hosts == 0)
            continue;
        if (!is_bad(s, t, g, &bad, &one))
            others++;
        else if (bad.then++ == 0 || one.nats > bad.worst.nats)
            bad.worst = one;
    }
    bad.worst.groups = bad.then;
    return others == 0 ? (struct bad_groups){.now = 0} : bad;
}

static struct scope_verdict of_groups(const struct scope *s, enum proof proof)
{
    struct scope_table t = {.by = SCOPE_ZONES, .share = ZONE_SHARE};
    struct scope_verdict none = {.kind = SCOPE_NONE}, zone = none, version = none;
    struct bad_groups bad = find_bad(s, &t);

    if ((proof == BY_NOW ? bad.now : bad.then) > 0) {
        zone = bad.worst;
        zone.kind = SCOPE_ZONE;
    }
    t = (struct scope_table){.by = SCOPE_VERSIONS, .share = VERSION_SHARE};
    bad = find_bad(s, &t);
    if (bad.then == 1 && (proof == BY_THEN || bad.now == 1)) {
        version = bad.worst;
        version.kind = SCOPE_VERSION;
    }
    if (version.kind == SCOPE_NONE)
        return zone;
    return zone.kind == SCOPE_ZONE && zone.hosts > version.hosts ? zone : version;
}

static struct scope_verdict of_bad_groups(const struct scope *s)
{
    return of_groups(s, BY_NOW);
}

/* What all hosts have goes first: a group of which little is seen is among them. */
static struct scope_verdict of_held_groups(const struct scope *s)
{
    for (uint32_t g = 0; g < SCOPE_GROUPS_MAX; g++) {
        if (s->holds[SCOPE_ZONES][g].on || s->holds[SCOPE_VERSIONS][g].on)
            return of_groups(s, BY_THEN);
    }
    return (struct scope_verdict){.kind = SCOPE_NONE};
}

/* --- one class of requests --- */

#define CLASS_LEAST 10.0 /* answers lately */
#define CLASS_KNOWN 20   /* half seconds in which what is usual of it was learnt */

/* The classes' shift that nearly all hosts reach. */
static bool class_is_slow(const struct scope *s, uint32_t class, struct scope_verdict *v)
{
    struct scope_group g = {.hosts = 0};
    double seen = 0;

    for (uint32_t i = 0; i < s->judge->count; i++) {
        const struct detect_host *d = s->judge->hosts[i];
        const struct scope_usual *usual = &s->zones[s->hosts[i].group[SCOPE_ZONES]];

        if (!d->serving || d->median[class] == 0 || usual->learnt[class] < CLASS_KNOWN)
            continue;
        seen += d->seen[class];
        scope_count_shift(&g, peer_log_ratio(detect_median(d, class) - usual->bins[class]));
    }
    if (g.known < GROUP_LEAST || seen < CLASS_LEAST)
        return false;
    *v = (struct scope_verdict){.kind = SCOPE_DEPENDENCY,
                                .sign = SCOPE_BY_CLASS,
                                .group = class,
                                .hosts = g.known,
                                .of = g.known,
                                .ratio = scope_reached(&g, ZONE_SHARE)};
    return v->ratio > fmax(GATE, DEVIATIONS * DEVIATION_SURE * s->judge->deviation);
}

static struct scope_verdict of_classes(const struct scope *s)
{
    struct scope_verdict v;

    for (uint32_t c = 0; c < EVIDENCE_CLASS_MAX; c++) {
        if (class_is_slow(s, c, &v))
            return v;
    }
    return (struct scope_verdict){.kind = SCOPE_NONE};
}

/* --- single hosts --- */

static bool is_accused(const struct scope *s, uint32_t index)
{
    for (int line = 0; line < DETECT_LINE_COUNT; line++) {
        if (detect_accuses(s->judge, index, (enum detect_line)line) &&
            detect_guard_of(s->judge, index, (enum detect_line)line) == DETECT_HOLDS)
            return true;
    }
    return false;
}

static struct scope_verdict of_hosts(const struct scope *s)
{
    struct scope_verdict v = {.kind = SCOPE_NONE, .sign = SCOPE_BY_MARKS};

    for (uint32_t i = 0; i < s->judge->count; i++) {
        if (!scope_takes_part(s, i))
            continue;
        v.of++;
        v.hosts += s->hosts[i].out || s->hosts[i].suspect || is_accused(s, i);
        v.nats = fmax(v.nats, worst_sum(s->judge, i));
    }
    if (v.hosts > 0)
        v.kind = v.hosts == 1 ? SCOPE_NODE : SCOPE_NODES;
    return v;
}

/* Wherever a host is: the mean of all zones in which it is known. */
static double usual_of(const struct scope *s, uint32_t class)
{
    double sum = 0, n = 0;

    for (uint32_t g = 0; g <= SCOPE_GROUPS_MAX; g++) {
        sum += s->zones[g].learnt[class] > 0 ? s->zones[g].bins[class] : 0;
        n += s->zones[g].learnt[class] > 0;
    }
    return n == 0 ? 0 : sum / n;
}

/* What the host's mix of classes takes, each |usual|; negative: not known. */
static double mix_of(const struct scope *s, uint32_t index, const double usual[EVIDENCE_CLASS_MAX])
{
    const struct detect_host *d = s->judge->hosts[index];
    const struct scope_usual *own = &s->zones[s->hosts[index].group[SCOPE_ZONES]];
    double sum = 0, seen = 0;

    for (uint32_t c = 0; d->serving && c < EVIDENCE_CLASS_MAX; c++) {
        if (own->learnt[c] == 0)
            continue;
        sum += d->seen[c] * usual[c];
        seen += d->seen[c];
    }
    return seen < CLASS_LEAST ? -1 : sum / seen;
}

/* A host whose requests are heavier than its peers', in the mean, and that is no slower in each. */
static struct scope_verdict of_mixes(const struct scope *s)
{
    struct scope_verdict v = {.kind = SCOPE_NONE, .sign = SCOPE_BY_LATENCY};
    double usual[EVIDENCE_CLASS_MAX];
    double sum = 0, n = 0, mean;

    for (uint32_t c = 0; c < EVIDENCE_CLASS_MAX; c++)
        usual[c] = usual_of(s, c);
    for (uint32_t i = 0; i < s->judge->count; i++) {
        double mix = mix_of(s, i, usual);

        sum += fmax(mix, 0);
        n += mix >= 0;
    }
    for (uint32_t i = 0; i < s->judge->count && n > GROUP_LEAST; i++) {
        double mix = mix_of(s, i, usual);

        mean = (sum - mix) / (n - 1);
        if (mix < 0 || peer_log_ratio(mix - mean) < GATE || s->hosts[i].shift > GATE)
            continue;
        v.hosts++;
        v.ratio = fmax(v.ratio, peer_log_ratio(mix - mean));
    }
    v.of = (uint32_t)n;
    v.kind = v.hosts > 0 && v.hosts * 2 <= v.of ? SCOPE_CLASS_SKEW : SCOPE_NONE;
    return v;
}

/* What they see is left out: all else is as it seems. */
static struct scope_verdict of_some_loops(const struct scope *s)
{
    struct scope_verdict v = {.kind = SCOPE_NONE, .sign = SCOPE_BY_LATENCY};

    if (s->caller == SCOPE_CALLER_PARTLY)
        v = (struct scope_verdict){.kind = SCOPE_CALLER, .sign = SCOPE_BY_LATENCY, .partly = true};
    return v;
}

/* --- the verdict --- */

static struct scope_verdict decide(const struct scope *s)
{
    static struct scope_verdict (*const each[])(const struct scope *s) = {
        of_bad_groups, scope_of_path, scope_of_all, of_held_groups,
        of_hosts,      of_classes,    of_mixes,     of_some_loops};
    struct scope_verdict v = {.kind = SCOPE_CALLER, .sign = SCOPE_BY_LATENCY};

    if (s->caller == SCOPE_CALLER_CUT_OFF)
        v.sign = SCOPE_BY_CONNECTS;
    if (s->caller == SCOPE_CALLER_CUT_OFF || s->caller == SCOPE_CALLER_LATE)
        return v;
    for (size_t i = 0; i < sizeof(each) / sizeof(each[0]); i++) {
        v = each[i](s);
        if (v.kind != SCOPE_NONE)
            return v;
    }
    return (struct scope_verdict){.kind = SCOPE_NONE};
}

/* Nothing may be done to a node meanwhile; else a verdict makes room for any other. */
static bool holds_back(const struct scope_verdict *v)
{
    return v->kind != SCOPE_NONE && v->kind != SCOPE_NODE && v->kind != SCOPE_NODES &&
           v->kind != SCOPE_CLASS_SKEW && !v->partly;
}

const struct scope_verdict *scope_look(struct scope *s)
{
    struct scope_verdict v = decide(s);
    bool weaker = v.kind == SCOPE_NONE || (holds_back(&s->now) && !holds_back(&v));

    if (weaker && s->now.kind != SCOPE_NONE && s->judge->bucket < s->until)
        return &s->now;
    v.since = v.kind == s->now.kind && v.group == s->now.group ? s->now.since : s->judge->bucket;
    s->now = v;
    s->until = s->judge->bucket + HOLDS;
    if (v.kind == SCOPE_ZONE || v.kind == SCOPE_VERSION)
        scope_begin_hold(s, v.kind == SCOPE_ZONE ? SCOPE_ZONES : SCOPE_VERSIONS, &v);
    return &s->now;
}

static void fade(struct detect_rate *r, double keeps)
{
    r->tries *= keeps;
    r->bad *= keeps;
}

void scope_turn(struct scope *s, enum scope_caller caller)
{
    s->caller = caller;
    scope_count_since(s, SCOPE_BY_PATH, SCOPE_BY_PATH);
    for (uint32_t i = 0; i < s->judge->count; i++) {
        fade(&s->hosts[i].path, PATH_KEEPS);
        fade(&s->hosts[i].path_just_now, PATH_NOW_KEEPS);
    }
    learn_usual(s);
    scope_turn_holds(s);
    scope_turn_all(s);
    (void)scope_look(s);
}

bool scope_doubts(const struct scope *s)
{
    return s->now.kind == SCOPE_CALLER && s->now.sign == SCOPE_BY_PATH;
}

/* --- what it means to a host --- */

bool scope_concerns(const struct scope *s, uint32_t index)
{
    const struct scope_verdict *v = &s->now;

    if (v->kind == SCOPE_VERSION)
        return s->hosts[index].group[SCOPE_VERSIONS] == v->group;
    return v->kind == SCOPE_ZONE && v->groups == 1 &&
           s->hosts[index].group[SCOPE_ZONES] == v->group;
}

/* What is common is nobody's; what it has nothing to do with still accuses. */
static bool is_of_all(const struct scope_verdict *v, enum detect_line line)
{
    if (v->sign == SCOPE_BY_LATENCY || v->sign == SCOPE_BY_AGE)
        return detect_of_latency(line);
    if (v->sign == SCOPE_BY_ERRORS)
        return line != DETECT_CONNECTS;
    return v->sign == SCOPE_BY_CONNECTS;
}

/*
 * Its zone or version got a smaller share for what all of it had, and most of it still has: with so
 * few requests they cannot show once more that it is common, and a single one of them may seem so.
 */
static enum scope_kind fate_of(const struct scope *s, uint32_t index)
{
    enum scope_kind kind = s->hosts[index].cut_for;
    enum scope_by by = kind == SCOPE_VERSION ? SCOPE_VERSIONS : SCOPE_ZONES;
    uint32_t others = 0, cut = 0;

    for (uint32_t i = 0; i < s->judge->count && kind != SCOPE_NONE; i++) {
        if (i == index || s->hosts[i].group[by] != s->hosts[index].group[by] ||
            !scope_takes_part(s, i))
            continue;
        others++;
        cut += s->hosts[i].cut_for == kind;
    }
    return cut > 0 && cut * 2 >= others ? kind : SCOPE_NODE;
}

enum scope_kind scope_says(const struct scope *s, uint32_t index, enum detect_line line)
{
    const struct scope_verdict *v = &s->now;
    bool concerned = true;

    switch (v->kind) {
    case SCOPE_NONE:
    case SCOPE_NODE:
    case SCOPE_NODES:
    case SCOPE_CLASS_SKEW:
        return fate_of(s, index);
    case SCOPE_ZONE:
        concerned = v->groups > 1 || scope_concerns(s, index);
        break;
    case SCOPE_VERSION:
        concerned = scope_concerns(s, index);
        break;
    case SCOPE_FLEET:
    case SCOPE_DEPENDENCY:
        concerned = is_of_all(v, line);
        break;
    case SCOPE_CAPACITY:
        concerned = line != DETECT_CONNECTS;
        break;
    case SCOPE_CALLER:
        concerned = !v->partly && line != DETECT_ERRORS_SOME && line != DETECT_ERRORS_MANY;
        break;
    case SCOPE_KIND_COUNT:
        break;
    }
    return concerned ? v->kind : fate_of(s, index);
}

/* --- a host that is the first of many --- */

#define LEANS 8.0 /* of the threshold, that part */

static uint32_t kind_of(enum detect_line line)
{
    if (line == DETECT_CONNECTS)
        return DETECT_OF_CONNECTS;
    return line == DETECT_AGE ? DETECT_OF_AGE : DETECT_OF_ERRORS;
}

/* Was it tried often enough since |risen|, when the sum of the accused one began to rise? */
static bool was_tried(const struct detect_host *h, mono_ns risen, enum detect_line line)
{
    return detect_by_half_seconds(line) ? h->rated
                                        : h->tried[kind_of(line)][DETECT_TRIES - 1] >= risen;
}

/* And does it look as if it were on the same way? */
static bool leans(const struct scope *s, uint32_t index, mono_ns risen, enum detect_line line)
{
    if (detect_by_half_seconds(line))
        return detect_sum(s->judge, index, line) > s->judge->config.threshold / LEANS;
    return s->judge->hosts[index]->failed[kind_of(line)] >= risen;
}

#define WELL_SURE   3.0 /* nats */
#define LATELY_SPAN (5 * NS_PER_S / 2)

/* Not one failure since |risen|: how sure is that, were it as bad as the accused one? */
static bool is_surely_well(const struct scope *s, uint32_t index, uint32_t accused,
                           enum detect_line line)
{
    const struct detect_host *h = s->judge->hosts[accused];
    const struct detect_rate *bad = &h->lately[kind_of(line)];
    double since = (double)mono_since(h->risen[line], s->judge->now) / (double)LATELY_SPAN;
    double tries = s->judge->hosts[index]->lately[kind_of(line)].tries * fmin(since, 1);
    double share = fmin(bad->bad / fmax(bad->tries, TRIES_LEAST), SHARE_MOST);

    return detect_by_half_seconds(line) || tries * log(1 / (1 - share)) >= WELL_SURE;
}

/* Of the accused host's like: those of its zone, its version; SCOPE_BY_COUNT: all. */
struct company {
    uint32_t hosts;
    uint32_t known;
    uint32_t leaning;
};

static struct company company_of(const struct scope *s, uint32_t accused, enum detect_line line,
                                 int by)
{
    mono_ns risen = s->judge->hosts[accused]->risen[line];
    struct company c = {.hosts = 0};

    for (uint32_t i = 0; i < s->judge->count; i++) {
        if (i == accused || !s->judge->hosts[i]->serving ||
            (by < SCOPE_BY_COUNT && s->hosts[i].group[by] != s->hosts[accused].group[by]))
            continue;
        c.hosts++;
        c.leaning += leans(s, i, risen, line);
        c.known += leans(s, i, risen, line) ||
                   (was_tried(s->judge->hosts[i], risen, line) &&
                    (by == SCOPE_BY_COUNT || is_surely_well(s, i, accused, line)));
    }
    return c;
}

static bool may_be_common(const struct company *c, double share)
{
    return c->hosts > 0 && c->leaning >= share * c->known;
}

static enum scope_kind by_company(const struct scope *s, uint32_t index, enum detect_line line)
{
    static const struct {
        int by;
        double share;
        enum scope_kind kind;
    } each[] = {{SCOPE_ZONES, ZONE_SHARE, SCOPE_ZONE},
                {SCOPE_VERSIONS, VERSION_SHARE, SCOPE_VERSION},
                {SCOPE_BY_COUNT, ZONE_SHARE, SCOPE_FLEET}};

    for (size_t i = 0; i < sizeof(each) / sizeof(each[0]); i++) {
        struct company c = company_of(s, index, line, each[i].by);
        bool named =
            each[i].by == SCOPE_BY_COUNT || s->hosts[index].group[each[i].by] != SCOPE_UNGROUPED;

        if (named && may_be_common(&c, each[i].share))
            return each[i].kind;
    }
    return SCOPE_NODE;
}

static bool is_patient(struct scope_host *h, mono_ns now)
{
    if (h->asked_first == 0 || mono_since(h->asked, now) > SCOPE_PATIENCE)
        h->asked_first = now;
    h->asked = now;
    return mono_since(h->asked_first, now) < SCOPE_PATIENCE;
}

enum scope_kind scope_of(struct scope *s, uint32_t index, enum detect_line line)
{
    enum scope_kind k = scope_says(s, index, line);

    if (k != SCOPE_NODE || !is_patient(&s->hosts[index], s->judge->now))
        return k;
    if (line == DETECT_CONNECTS && detect_only_loses(s->judge, index))
        return SCOPE_CALLER; /* what became of other segments is not known yet */
    return by_company(s, index, line);
}
