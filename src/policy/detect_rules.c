/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/detect_rules.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "policy/detect_rules_parts.h"

/* --- names --- */

const char *rule_signal_text(enum rule_signal s)
{
#define X(constant, name, kind) [RULE_##constant] = #name,
    static const char *const text[RULE_SIGNAL_COUNT] = {RULE_SIGNALS(X)};
#undef X

    assert(s < RULE_SIGNAL_COUNT);
    return text[s];
}

enum rule_kind rule_kind_of(enum rule_signal s)
{
#define X(constant, name, kind) [RULE_##constant] = RULE_OF_##kind,
    static const enum rule_kind kinds[RULE_SIGNAL_COUNT] = {RULE_SIGNALS(X)};
#undef X

    assert(s < RULE_SIGNAL_COUNT);
    return kinds[s];
}

const char *rule_basis_text(enum rule_basis b)
{
    switch (b) {
    case RULE_AS_WRITTEN:
        return "as written";
    case RULE_BY_P95:
        return "p95, too few requests in a window for a p99";
    case RULE_BY_LONG_WINDOW:
        return "p95 of a longer window, too few requests in one";
    }
    return "?";
}

/* --- rules --- */

const struct rule rules_default[RULES_DEFAULT_COUNT] = {
    {.signal = RULE_CONSECUTIVE_5XX,
     .at_least = 5,
     .within = 30 * NS_PER_S,
     .with = RULE_WITH_NONE},
    {.signal = RULE_TIMEOUT_OR_RESET,
     .above = 200,
     .within = 30 * NS_PER_S,
     .min_requests = 20,
     .with = RULE_WITH_NONE},
    {.signal = RULE_P99,
     .above = 2500,
     .windows = 3,
     .within = 10 * NS_PER_S,
     .min_requests = 100,
     .with = RULE_TIMEOUT_OR_RESET},
    {.signal = RULE_LOCAL_ORIGIN, .at_least = 3, .within = MONO_NEVER, .with = RULE_WITH_NONE},
    {.signal = RULE_CONNECT_FAILURE,
     .at_least = 3,
     .within = 10 * NS_PER_S,
     .with = RULE_WITH_NONE},
};

static uint64_t mix(uint64_t hash, uint64_t value)
{
    return (hash ^ value) * UINT64_C(1099511628211) + (hash >> 31);
}

static uint64_t layout_of(const struct rule *rules, uint32_t count)
{
    uint64_t hash = UINT64_C(14695981039346656037);

    for (uint32_t i = 0; i < count; i++) {
        const struct rule *r = &rules[i];

        hash = mix(mix(mix(hash, (uint64_t)r->signal), r->at_least), r->above);
        hash = mix(mix(mix(hash, r->delay), r->within), r->windows);
        hash = mix(mix(hash, r->min_requests), (uint64_t)r->with);
    }
    return hash;
}

/* --- hosts --- */

static void forget(struct rules_host *h)
{
    for (uint32_t c = 0; c < EVIDENCE_CLASS_MAX; c++) {
        for (uint32_t i = 0; h->cells[c] != NULL && i < h->cell_count; i++)
            memory_give(h->cells[c][i].window);
        memory_give(h->cells[c]);
        h->cells[c] = NULL;
    }
    h->stirred = false;
}

void rules_host_release(struct rules_host *h)
{
    forget(h);
}

void rules_acquit(struct rules_judge *j, uint32_t index)
{
    forget(j->hosts[index]);
}

static void adopt_host(struct rules_host *h, const struct rules_judge *j)
{
    if (h->layout == j->layout && h->cell_count == j->rule_count)
        return;
    forget(h);
    h->layout = j->layout;
    h->cell_count = j->rule_count;
}

void rules_adopt(struct rules_judge *j, const struct rule *rules, uint32_t rule_count,
                 struct rules_host **hosts, uint32_t count)
{
    uint64_t layout = layout_of(rules, rule_count);

    assert(rule_count <= RULES_MAX);
    if (layout != j->layout)
        memset(j->window, 0, sizeof(j->window));
    j->layout = layout;
    for (uint32_t i = 0; i < rule_count; i++)
        j->rules[i] = rules[i];
    j->rule_count = rule_count;
    j->hosts = hosts;
    j->count = count;
    for (uint32_t i = 0; i < count; i++)
        adopt_host(hosts[i], j);
}

/* --- one sample --- */

/* A connection belongs to no class. */
static uint32_t class_for(enum rule_signal s, const struct evidence *e)
{
    return s == RULE_LOCAL_ORIGIN || s == RULE_CONNECT_FAILURE ? CLASS_READ : e->class;
}

static struct rule_cell *cell_of(const struct rules_judge *j, struct rules_host *h, uint32_t number,
                                 const struct evidence *e)
{
    struct rule_cell **cells = &h->cells[class_for(j->rules[number].signal, e)];

    if (*cells == NULL)
        *cells = memory_take_array(j->rule_count, sizeof(**cells));
    return *cells == NULL ? NULL : &(*cells)[number];
}

static void learn(struct rules_judge *j, uint32_t index, uint32_t number, const struct evidence *e)
{
    const struct rule *r = &j->rules[number];
    struct rules_host *h = j->hosts[index];
    struct rule_cell *cell = cell_of(j, h, number, e);

    if (cell == NULL)
        return; /* no memory: it teaches nothing */
    if (rule_kind_of(r->signal) == RULE_OF_MULTIPLE) {
        rule_late_learn(cell, r, e);
        return;
    }
    rule_count_learn(j, index, number, cell, e);
    if (cell->finding.level != RULE_QUIET)
        h->stirred = true;
}

void rules_learn(struct rules_judge *j, uint32_t index, const struct evidence *e)
{
    assert(index < j->count && e->class < EVIDENCE_CLASS_MAX);
    rules_turn(j, e->at);
    for (uint32_t i = 0; i < j->rule_count; i++)
        learn(j, index, i, e);
}

/* --- time --- */

static void turn(struct rules_judge *j, uint32_t number, mono_ns now)
{
    uint64_t window = now / j->rules[number].within;
    uint64_t over = j->window[number] == 0 ? 1 : window - j->window[number];

    if (window <= j->window[number])
        return;
    for (uint64_t i = 0; i < over && i <= RULE_WINDOW_LONGEST; i++)
        rule_late_close(j, number);
    j->window[number] = window;
}

void rules_turn(struct rules_judge *j, mono_ns now)
{
    for (uint32_t i = 0; i < j->rule_count; i++) {
        if (rule_kind_of(j->rules[i].signal) == RULE_OF_MULTIPLE)
            turn(j, i, now);
    }
}

/* --- findings --- */

/* What a count found is of the moment; a latency stands until the next window is closed. */
static bool stands(const struct rules_judge *j, const struct rule_cell *cell, uint32_t number,
                   mono_ns now)
{
    return cell->finding.level != RULE_QUIET &&
           (rule_kind_of(j->rules[number].signal) == RULE_OF_MULTIPLE ||
            mono_since(cell->found_at, now) <= RULE_STANDS);
}

struct rule_finding rules_look(struct rules_judge *j, uint32_t index, mono_ns now)
{
    struct rules_host *h = j->hosts[index];
    struct rule_finding worst = {.level = RULE_QUIET};

    if (!h->stirred)
        return worst;
    for (uint32_t i = 0; i < j->rule_count; i++) {
        for (uint32_t c = 0; c < EVIDENCE_CLASS_MAX; c++) {
            const struct rule_cell *cell = h->cells[c] == NULL ? NULL : &h->cells[c][i];

            if (cell != NULL && cell->finding.level > worst.level && stands(j, cell, i, now))
                worst = cell->finding;
        }
    }
    h->stirred = worst.level != RULE_QUIET;
    return worst;
}
