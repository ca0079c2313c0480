/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of latency: each window a host's p95 or p99 against the median of its peers'. */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "policy/detect_rules_parts.h"

/* --- bins --- */

static uint32_t bin_of(uint32_t us)
{
    double bin = us == 0 ? 0 : floor(log2((double)us) * RULE_OCTAVE);

    return bin >= RULE_BINS ? RULE_BINS - 1 : (uint32_t)bin;
}

/* The bin that all but |beyond| thousandths of the answers lie at or below. */
static int32_t quantile(const struct rule_window *w, uint32_t beyond)
{
    uint64_t most = (uint64_t)w->answers * beyond / 1000, above = 0;
    int32_t bin = RULE_BINS - 1;

    while (bin > 0 && above + w->bins[bin] <= most)
        above += w->bins[bin--];
    return bin;
}

/* --- one sample --- */

static struct rule_window *window_of(struct rule_cell *cell)
{
    if (cell->window != NULL)
        return cell->window;
    cell->window = memory_take(sizeof(*cell->window));
    if (cell->window != NULL)
        cell->window->peers = -1;
    return cell->window;
}

/* Where it was waited for in vain, it took at least that long: that counts where it is long. */
static bool is_latency(const struct rule_window *w, const struct evidence *e)
{
    switch ((enum evidence_outcome)e->outcome) {
    case EVIDENCE_OK:
    case EVIDENCE_TIMEOUT:
        return true;
    case EVIDENCE_ABANDONED:
        return w->peers >= 0 && bin_of(e->first_us) > (uint32_t)w->peers;
    case EVIDENCE_ERROR:
    case EVIDENCE_GATEWAY:
    case EVIDENCE_RESET:
    case EVIDENCE_CUT:
    case EVIDENCE_CONNECT_FAILED:
    case EVIDENCE_REFUSED:
    case EVIDENCE_LATE:
    case EVIDENCE_OUTCOME_COUNT:
        return false;
    }
    return false;
}

void rule_late_learn(struct rule_cell *cell, const struct rule *r, const struct evidence *e)
{
    struct rule_window *w = window_of(cell);

    if (w == NULL || e->outcome == EVIDENCE_LATE)
        return;
    if (is_latency(w, e)) {
        w->bins[bin_of(e->first_us)] += rule_weight(e);
        w->answers += rule_weight(e);
    }
    if (e->outcome == EVIDENCE_ABANDONED)
        return;
    w->now.tries += rule_weight(e);
    w->now.bad += rule_shows(r->with, e) ? rule_weight(e) : 0;
}

/* --- the peers --- */

/* The hosts of one class and stratum, whose windows close together. */
struct group {
    struct rules_judge *judge;
    uint32_t number;
    uint32_t class;
    uint32_t stratum;
};

static struct rule_cell *cell_of(const struct group *g, uint32_t index)
{
    const struct rules_host *h = g->judge->hosts[index];
    struct rule_cell *cells = h->cells[g->class];

    if (cells == NULL || h->stratum != g->stratum || cells[g->number].window == NULL)
        return NULL;
    return &cells[g->number];
}

static const struct rule *rule_of(const struct group *g)
{
    return &g->judge->rules[g->number];
}

enum figure { FIGURE_WRITTEN, FIGURE_P95 };

static int32_t figure_of(const struct rule_window *w, enum figure f)
{
    return f == FIGURE_P95 ? w->own_p95 : w->own;
}

/* How many peers have one, and the median of theirs. */
struct median {
    uint32_t peers;
    int32_t bin;
};

struct figures {
    uint32_t count;
    uint16_t hosts[RULE_BINS];
};

static void count_figures(const struct group *g, enum figure f, struct figures *out)
{
    memset(out, 0, sizeof(*out));
    for (uint32_t i = 0; i < g->judge->count; i++) {
        struct rule_cell *cell = cell_of(g, i);
        int32_t bin = cell == NULL ? -1 : figure_of(cell->window, f);

        if (bin < 0 || !g->judge->hosts[i]->serving || out->hosts[bin] == UINT16_MAX)
            continue;
        out->hosts[bin]++;
        out->count++;
    }
}

/* The |n|-th smallest, from 0, of all but the one at |own|. */
static int32_t nth(const struct figures *all, int32_t own, uint32_t n)
{
    uint32_t seen = 0;

    for (int32_t bin = 0; bin < RULE_BINS; bin++) {
        seen += all->hosts[bin] - (bin == own ? 1u : 0u);
        if (seen > n)
            return bin;
    }
    return RULE_BINS - 1;
}

static struct median median_of_others(const struct figures *all, int32_t own, bool counted)
{
    struct median m = {.peers = all->count - (counted ? 1 : 0)};
    int32_t without = counted ? own : -1;

    if (m.peers > 0)
        m.bin = (nth(all, without, (m.peers - 1) / 2) + nth(all, without, m.peers / 2)) / 2;
    return m;
}

/* --- one host's window is over --- */

static bool is_too_late(const struct rule *r, int32_t own, int32_t peers)
{
    return own - peers > RULE_OCTAVE * log2(r->above / 1000.0);
}

static void note_figures(struct rule_window *w, const struct rule *r)
{
    uint32_t least = r->min_requests > RULE_P95_LEAST ? r->min_requests : RULE_P95_LEAST;

    w->own_p95 = w->answers >= RULE_P95_LEAST ? quantile(w, 50) : -1;
    w->own = w->answers >= least ? quantile(w, r->signal == RULE_P99 ? 10 : 50) : -1;
}

static void start_window(struct rule_window *w)
{
    memset(w->bins, 0, sizeof(w->bins));
    w->answers = 0;
    w->prolonged = 0;
    w->now = (struct rule_with){0, 0};
}

static void add(struct rule_with *to, const struct rule_with *what)
{
    to->tries += what->tries;
    to->bad += what->bad;
}

static void end_run(struct rule_cell *cell)
{
    struct rule_window *w = cell->window;

    w->before.tries = w->before.tries / 2 + w->now.tries;
    w->before.bad = w->before.bad / 2 + w->now.bad;
    w->during = w->others = (struct rule_with){0, 0};
    w->run = 0;
    cell->finding.level = RULE_QUIET;
}

/* More of it than before the run, and more than the peers have meanwhile. */
static bool agrees(const struct rule *r, const struct rule_window *w)
{
    return r->with == RULE_WITH_NONE ||
           (w->during.bad >= RULE_WITH_LEAST && rule_with_above(&w->during, &w->before) &&
            rule_with_above(&w->during, &w->others));
}

static enum rule_level level_of(const struct rule *r, const struct rule_window *w, bool agreed)
{
    uint32_t suspect_at = r->windows > 1 ? r->windows - 1 : 1;

    if (w->run >= r->windows && agreed)
        return RULE_CANDIDATE;
    return w->run >= suspect_at ? RULE_SUSPECT : RULE_QUIET;
}

static void lengthen_run(const struct group *g, struct rule_cell *cell,
                         const struct rule_with *others)
{
    struct rule_window *w = cell->window;

    w->run += w->run < UINT32_MAX;
    add(&w->during, &w->now);
    add(&w->others, others);
    cell->finding.windows = w->run;
    cell->finding.agreed = agrees(rule_of(g), w);
    cell->finding.level = level_of(rule_of(g), w, cell->finding.agreed);
}

/* What the window is judged by; |peers| below RULE_PEERS_LEAST: by nothing. */
struct yardstick {
    int32_t own;
    struct median peers;
    enum rule_basis basis;
};

static struct yardstick choose(const struct group *g, uint32_t index, const struct figures *all)
{
    const struct rule_window *w = cell_of(g, index)->window;
    bool serving = g->judge->hosts[index]->serving;
    struct yardstick y = {.own = w->own, .basis = RULE_AS_WRITTEN};

    if (w->own >= 0)
        y.peers = median_of_others(&all[FIGURE_WRITTEN], w->own, serving);
    if (y.peers.peers < RULE_PEERS_LEAST && w->own_p95 >= 0) {
        y.own = w->own_p95;
        y.peers = median_of_others(&all[FIGURE_P95], w->own_p95, serving);
        y.basis = RULE_BY_P95;
    }
    if (w->prolonged > 0)
        y.basis = RULE_BY_LONG_WINDOW;
    return y;
}

static void judge_window(const struct group *g, uint32_t index, const struct yardstick *y,
                         const struct rule_with *others)
{
    struct rule_cell *cell = cell_of(g, index);

    if (y->peers.peers < RULE_PEERS_LEAST || !is_too_late(rule_of(g), y->own, y->peers.bin)) {
        end_run(cell);
        return;
    }
    cell->finding.value = exp2((double)(y->own - y->peers.bin) / RULE_OCTAVE);
    cell->finding.basis = y->basis;
    cell->finding.requests = cell->window->answers;
    cell->finding.number = g->number;
    cell->finding.class = (uint8_t)g->class;
    lengthen_run(g, cell, others);
    if (cell->finding.level != RULE_QUIET)
        g->judge->hosts[index]->stirred = true;
}

/* Too few answers: it goes on, but not for ever. */
static void prolong(struct rule_cell *cell)
{
    struct rule_window *w = cell->window;

    if (++w->prolonged <= RULE_WINDOW_LONGEST)
        return;
    end_run(cell);
    start_window(w);
}

static void close_one(const struct group *g, uint32_t index, const struct figures *all,
                      const struct rule_with *group_with)
{
    struct rule_cell *cell = cell_of(g, index);
    struct rule_window *w = cell->window;
    struct rule_with others = {.tries = group_with->tries - w->now.tries,
                               .bad = group_with->bad - w->now.bad};
    struct yardstick y;

    if (w->own_p95 < 0) {
        prolong(cell);
        return;
    }
    y = choose(g, index, all);
    w->peers = y.peers.peers < RULE_PEERS_LEAST ? -1 : y.peers.bin;
    judge_window(g, index, &y, &others);
}

static void close_group(const struct group *g)
{
    struct figures all[2];
    struct rule_with with = {0, 0};
    uint32_t members = 0;

    for (uint32_t i = 0; i < g->judge->count; i++) {
        struct rule_cell *cell = cell_of(g, i);

        if (cell == NULL)
            continue;
        members++;
        note_figures(cell->window, rule_of(g));
        add(&with, &cell->window->now);
    }
    if (members == 0)
        return;
    count_figures(g, FIGURE_WRITTEN, &all[FIGURE_WRITTEN]);
    count_figures(g, FIGURE_P95, &all[FIGURE_P95]);
    for (uint32_t i = 0; i < g->judge->count; i++)
        if (cell_of(g, i) != NULL)
            close_one(g, i, all, &with);
    for (uint32_t i = 0; i < g->judge->count; i++)
        if (cell_of(g, i) != NULL && cell_of(g, i)->window->own_p95 >= 0)
            start_window(cell_of(g, i)->window);
}

void rule_late_close(struct rules_judge *j, uint32_t number)
{
    uint32_t strata = 0;

    for (uint32_t i = 0; i < j->count; i++)
        if (j->hosts[i]->stratum >= strata)
            strata = j->hosts[i]->stratum + 1;
    for (uint32_t class = 0; class < EVIDENCE_CLASS_MAX; class ++)
        for (uint32_t stratum = 0; stratum < strata; stratum++)
            close_group(&(struct group){j, number, class, stratum});
}
