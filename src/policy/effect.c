/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/effect.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"

/* A half second keeps that much of what is past: sums of 2.5, 10 and 30 seconds. */
#define LATELY_KEEPS 0.8
#define USUAL_KEEPS  0.95
#define LONGER_KEEPS 0.98333333333333328

#define BET_MEMORY     100.0 /* attempts that say what to bet on */
#define BET_PRIOR      10.0  /* ... the first ones being as it was before */
#define BLOCK_MOST     32    /* survivors' attempts a probe is compared with */
#define PRIOR_TRIES    4.0   /* what was seen before the ejection counts as so many probes */
#define PRIOR_UNTIL    20.0  /* ... and no more after that many */
#define RATE_LEAST     0.02  /* of a host that is bad */
#define TIMES_LEAST    100.0 /* latencies, for a p99 */
#define TIMEOUTS_LEAST 5.0
#define SEEN_LEAST     10.0 /* attempts, before a host is said to have been well */

const char *effect_verdict_text(enum effect_verdict v)
{
#define X(constant, name) [EFFECT_##constant] = #name,
    static const char *const text[EFFECT_VERDICT_COUNT] = {EFFECT_VERDICTS(X)};
#undef X

    assert(v < EFFECT_VERDICT_COUNT);
    return text[v];
}

/* --- counting --- */

static void add(struct effect_count *to, const struct effect_count *c, double times)
{
    to->tries += times * c->tries;
    to->bad += times * c->bad;
    to->failed += times * c->failed;
    to->timed_out += times * c->timed_out;
    to->slow += times * c->slow;
    to->unsure += times * c->unsure;
}

static void keep(struct effect_count *c, double share)
{
    struct effect_count old = *c;

    *c = (struct effect_count){0};
    add(c, &old, share);
}

static bool past(uint32_t us, uint32_t limit)
{
    return limit > 0 && us > limit;
}

/* Not a try again where it was counted when it became late. */
static struct effect_count ended(double times, bool told, struct effect_count c)
{
    c.tries = told ? 0 : times;
    c.bad = told ? 0 : c.failed + c.slow + c.unsure;
    c.late_failed = told ? c.failed : 0;
    c.late_slow = told ? c.slow : 0;
    return c;
}

static struct effect_count probe_count(const struct evidence *e, bool slow)
{
    switch ((enum evidence_outcome)e->outcome) {
    case EVIDENCE_OK:
        return ended(1, false, (struct effect_count){.slow = slow});
    case EVIDENCE_TIMEOUT:
        return ended(1, false, (struct effect_count){.unsure = 1});
    case EVIDENCE_ERROR:
    case EVIDENCE_GATEWAY:
    case EVIDENCE_RESET:
    case EVIDENCE_CUT:
    case EVIDENCE_CONNECT_FAILED:
    case EVIDENCE_REFUSED:
        return ended(1, false, (struct effect_count){.failed = 1});
    case EVIDENCE_ABANDONED:
    case EVIDENCE_LATE:
    case EVIDENCE_OUTCOME_COUNT:
        break;
    }
    return (struct effect_count){0};
}

struct effect_count effect_count_of(const struct evidence *e, const struct effect_limit *l)
{
    double times = (double)(UINT32_C(1) << (e->thinned & 31));
    bool slow = past(e->first_us, l->slow), told = past(e->first_us, l->late);

    if ((e->flags & EVIDENCE_PROBE) != 0)
        return probe_count(e, slow);
    switch ((enum evidence_outcome)e->outcome) {
    case EVIDENCE_OK:
        return ended(times, told, (struct effect_count){.slow = slow ? times : 0});
    case EVIDENCE_TIMEOUT:
        return ended(1, told, (struct effect_count){.failed = 1, .timed_out = 1});
    case EVIDENCE_ERROR:
    case EVIDENCE_GATEWAY:
    case EVIDENCE_RESET:
    case EVIDENCE_CUT:
        return ended(1, told, (struct effect_count){.failed = 1});
    case EVIDENCE_CONNECT_FAILED:
    case EVIDENCE_REFUSED:
        return ended(1, false, (struct effect_count){.failed = 1});
    case EVIDENCE_ABANDONED: /* waited for less than what is slow: nobody knows */
        return ended(slow, told, (struct effect_count){.slow = slow});
    case EVIDENCE_LATE:
        return (struct effect_count){.tries = 1, .bad = 1};
    case EVIDENCE_OUTCOME_COUNT:
        break;
    }
    return (struct effect_count){0};
}

void effect_past_add(struct effect_past *p, const struct effect_count *c)
{
    add(&p->lately, c, 1);
    add(&p->usual, c, 1);
    add(&p->longer, c, 1);
    p->waits_failed += c->late_failed;
    p->waits_slow += c->late_slow;
}

void effect_past_fade(struct effect_past *p)
{
    keep(&p->lately, LATELY_KEEPS);
    keep(&p->usual, USUAL_KEEPS);
    keep(&p->longer, LONGER_KEEPS);
    p->waits_failed *= LONGER_KEEPS;
    p->waits_slow *= LONGER_KEEPS;
}

/* --- latencies --- */

void effect_times_add(struct effect_times *t, const struct evidence *e)
{
    float times = (float)(UINT32_C(1) << (e->thinned & 31));

    if (e->outcome == EVIDENCE_LATE)
        return;
    t->at[peer_bin(e->first_us)] += times;
    t->sum += (double)times;
}

void effect_times_fade(struct effect_times *t)
{
    t->sum *= LONGER_KEEPS;
    for (uint32_t i = 0; i < PEER_BINS; i++)
        t->at[i] *= (float)LONGER_KEEPS;
}

double effect_times_p99(const struct effect_times *t)
{
    double above = 0;

    if (t->sum < TIMES_LEAST)
        return 0;
    for (uint32_t i = PEER_BINS; i-- > 0;) {
        above += (double)t->at[i];
        if (above > t->sum / 100)
            return peer_bin_us(i + 0.5);
    }
    return 0;
}

/* --- limits of a share --- */

#define HALVINGS 40

/* Nats an attempt, by which a share |seen| speaks against |p|. */
static double divergence(double seen, double p)
{
    double d = 0;

    if (seen > 0)
        d += seen * log(seen / p);
    if (seen < 1)
        d += (1 - seen) * log((1 - seen) / (1 - p));
    return d;
}

/* The point towards |end| where what was seen becomes as unlikely as |alpha|. */
static double limit(double seen, double tries, double end, double alpha)
{
    double in = seen, out = end;

    for (int i = 0; i < HALVINGS; i++) {
        double p = (in + out) / 2;

        if (tries * divergence(seen, p) > -log(alpha))
            out = p;
        else
            in = p;
    }
    return out;
}

double effect_upper(double bad, double tries, double alpha)
{
    return tries <= 0 ? 1 : limit(fmin(bad / tries, 1), tries, 1, alpha);
}

double effect_lower(double bad, double tries, double alpha)
{
    return tries <= 0 ? 0 : limit(fmin(bad / tries, 1), tries, 0, alpha);
}

/* --- bets --- */

static void gain(struct effect_bet *b, double nats)
{
    b->log_e += nats;
    b->most = fmax(b->most, b->log_e);
}

/*
 * Null: the share of bad ones is at most |most|. What is bet on was known before the sample; where
 * that is no more than |most|, nothing is.
 */
static void bet_above(struct effect_bet *b, double most, bool bad)
{
    double guess = fmin((b->bad + 0.5) / (b->tries + 1), 0.99);

    if (guess > most && most > 0)
        gain(b, bad ? log(guess / most) : log((1 - guess) / (1 - most)));
    b->tries = b->tries * (1 - 1 / BET_MEMORY) + 1;
    b->bad = b->bad * (1 - 1 / BET_MEMORY) + bad;
}

/* The e-variable of a probe and its block: |probe| and |peers| guessed beforehand. */
static void bet_probe(struct effect_bet *b, const struct effect_block *block, double probe,
                      double peers, bool bad)
{
    double n = block->block, k = block->block_bad;
    double same = (probe + n * peers) / (1 + n);

    if (probe <= peers || block->block == 0)
        return;
    gain(b, (bad ? log(probe / same) : log((1 - probe) / (1 - same))) + k * log(peers / same) +
                (n - k) * log((1 - peers) / (1 - same)));
}

/* --- an account --- */

static double ratio(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

static void bet_from(struct effect_bet *b, const struct effect_count *usual)
{
    b->tries = BET_PRIOR;
    b->bad = BET_PRIOR * fmin(ratio(usual->bad, usual->tries), 1);
}

void effect_open(struct effect_account *a, const struct effect_before *b, mono_ns now)
{
    const struct effect_count *host = &b->host->lately, *fleet = &b->fleet->usual;

    *a = (struct effect_account){
        .opened = now,
        .share = b->share > 0 ? b->share : ratio(b->host->longer.tries, b->fleet->longer.tries),
        .host = *b->host,
        .fleet = *b->fleet,
        .p99_before = effect_times_p99(b->times),
        .was_slow = b->was_slow};
    for (uint32_t c = 0; c < EVIDENCE_CLASS_MAX; c++)
        a->slow_after[c] = b->limits[c].slow;
    a->useless_above = effect_upper(host->bad, host->tries, EFFECT_ALPHA / 2) / 2;
    a->harmful_above = effect_upper(fleet->bad, fleet->tries, EFFECT_ALPHA / 2);
    bet_from(&a->useless, fleet);
    bet_from(&a->harmful, fleet);
}

static struct effect_count count_for(const struct effect_account *a, const struct evidence *e,
                                     uint32_t late)
{
    const struct effect_limit l = {.slow = a->slow_after[e->class], .late = late};

    return effect_count_of(e, &l);
}

/* --- the survivors --- */

static void to_block(struct effect_block *block, bool bad)
{
    block->tries += 1;
    block->bad += bad;
    if (block->block == BLOCK_MOST)
        return;
    block->block++;
    block->block_bad += bad;
}

static enum effect_part part_now(const struct effect_account *a)
{
    return a->passed.tries > 0 ? EFFECT_DOUBTED : EFFECT_BETWEEN;
}

/* Good samples may be thinned: then of the bad ones no more are bet on. */
static bool is_sampled(struct effect_account *a, const struct evidence *e)
{
    if (e->outcome != EVIDENCE_OK)
        return (a->unthinned++ & ((UINT32_C(1) << (a->thinned & 31)) - 1)) == 0;
    a->thinned = e->thinned;
    return true;
}

void effect_learn_survivor(struct effect_account *a, const struct evidence *e, uint32_t late)
{
    struct effect_count c = count_for(a, e, late);
    bool bad = c.bad > 0;

    add(&a->parts[part_now(a)], &c, 1);
    effect_times_add(&a->times, e);
    if (c.tries <= 0 || !is_sampled(a, e))
        return;
    bet_above(&a->useless, a->useless_above, bad);
    bet_above(&a->harmful, a->harmful_above, bad);
    to_block(&a->blocks[e->class], bad);
}

/* --- the host's probes --- */

/* The host's shares of failures and of slow answers while it was bad. */
struct rates {
    double failed;
    double slow;
    double bad;
};

static double failing_waits(const struct effect_account *a)
{
    double all = a->host.waits_failed + a->host.waits_slow;

    return all > 0 ? a->host.waits_failed / all : 0.5;
}

/* What led to the ejection began some time before: probes say better how bad the host is. */
static double prior_weight(const struct effect_account *a)
{
    double left = fmax(0, 1 - a->probes.tries / PRIOR_UNTIL);

    return left * PRIOR_TRIES / fmax(a->host.lately.tries, PRIOR_TRIES);
}

/* |passed| as far as the host was bad still when it passed them. */
static struct rates rates_of(const struct effect_account *a, double passed)
{
    struct effect_count c = {0};
    struct rates r = {0};
    double known = 0;

    add(&c, &a->host.lately, prior_weight(a));
    c.unsure += fmax(0, c.bad - c.failed - c.slow); /* late, and not ended yet */
    add(&c, &a->probes, 1);
    add(&c, &a->passed, passed);
    if (c.tries <= 0)
        return r;
    known = failing_waits(a);
    r.failed = fmin((c.failed + known * c.unsure) / c.tries, 1);
    r.slow = fmin((c.slow + (1 - known) * c.unsure) / c.tries, 1);
    r.bad = fmin(r.failed + r.slow, 1);
    return r;
}

/* Each probe makes it likelier, or less likely, that the host is bad still; odds in nats. */
static void doubt(struct effect_account *a, const struct effect_block *peers, bool bad)
{
    double sick = fmin(fmax(rates_of(a, 0).bad, RATE_LEAST), 1 - RATE_LEAST);
    double well = fmin((peers->bad + 0.1) / (peers->tries + 1), sick / 2);

    well = fmax(well, RATE_LEAST / 4);
    a->still += bad ? log(sick / well) : log((1 - sick) / (1 - well));
}

static void forget_block(struct effect_block *block)
{
    block->block = 0;
    block->block_bad = 0;
}

/* The host is bad still: so it was all the time since the last bad one. */
static void confirm(struct effect_account *a)
{
    add(&a->parts[EFFECT_SURE], &a->parts[EFFECT_BETWEEN], 1);
    add(&a->parts[EFFECT_SURE], &a->parts[EFFECT_DOUBTED], 1);
    a->parts[EFFECT_BETWEEN] = a->parts[EFFECT_DOUBTED] = (struct effect_count){0};
    add(&a->probes, &a->passed, 1);
    a->passed = (struct effect_count){0};
    a->still = 0;
}

static void learn_probe(struct effect_account *a, const struct evidence *e,
                        const struct effect_count *c)
{
    struct effect_block *block = &a->blocks[e->class];
    double before = block->tries - block->block;
    double peers = (block->bad - block->block_bad + 0.1) / (before + 1);

    bet_probe(&a->helped, block, fmin((a->all_bad + 1) / (a->all_probes + 2), 0.99),
              fmin(peers, 0.99), c->bad > 0);
    forget_block(block);
    a->all_probes += 1;
    a->all_bad += c->bad > 0;
    doubt(a, block, c->bad > 0);
    add(&a->passed, c, 1);
    if (a->still >= 0)
        confirm(a);
}

void effect_learn_host(struct effect_account *a, const struct evidence *e, uint32_t late)
{
    struct effect_count c = count_for(a, e, late);

    if ((e->flags & EVIDENCE_PROBE) == 0) {
        a->host.waits_failed += c.late_failed; /* how what was under way on it ended */
        a->host.waits_slow += c.late_slow;
    } else if (c.tries > 0) {
        learn_probe(a, e, &c);
    }
}

/* --- the verdict --- */

static enum effect_verdict verdict_of(const struct effect_account *a, bool overloaded)
{
    bool worse = a->harmful.most >= log(2 / EFFECT_ALPHA);
    bool same = a->useless.most >= log(2 / EFFECT_ALPHA);

    if (a->helped.most >= log(1 / EFFECT_ALPHA))
        return EFFECT_HELPED;
    if (worse && (same || overloaded))
        return EFFECT_HARMFUL;
    return same ? EFFECT_USELESS : EFFECT_UNDECIDED;
}

enum effect_verdict effect_judge(struct effect_account *a, bool overloaded, mono_ns now)
{
    if (a->verdict != EFFECT_UNDECIDED)
        return a->verdict;
    a->verdict = verdict_of(a, overloaded);
    a->decided = now;
    return a->verdict;
}

/* --- what was spared --- */

/* That it is bad still, whatever its latest probes say. */
static double still_bad(const struct effect_account *a)
{
    double odds = exp(a->still);

    return 2 * odds / (1 + odds);
}

double effect_badness(const struct effect_account *a)
{
    double still = still_bad(a);

    return still * rates_of(a, still).bad;
}

static void claim(struct effect_claim *c, const struct effect_account *a, enum effect_part part,
                  const struct rates *r, double weight)
{
    const struct effect_count *p = &a->parts[part];

    c->failures += weight * a->share * (p->tries * r->failed - p->failed);
    c->slow += weight * a->share * (p->tries * r->slow - p->slow);
}

/* Where it became well again between the last bad probe and the first good one: half way. */
struct effect_claim effect_claims(const struct effect_account *a)
{
    double still = still_bad(a);
    struct rates r = rates_of(a, still);
    struct effect_claim c = {0};

    claim(&c, a, EFFECT_SURE, &r, 1);
    claim(&c, a, EFFECT_BETWEEN, &r, (1 + still) / 2);
    claim(&c, a, EFFECT_DOUBTED, &r, still);
    return c;
}

/* --- afterwards --- */

void effect_learn_later(struct effect_account *a, const struct evidence *e, uint32_t late,
                        bool of_host)
{
    struct effect_count c = count_for(a, e, late);

    add(of_host ? &a->later : &a->later_peers, &c, 1);
}

static struct effect_count since(const struct effect_account *a)
{
    struct effect_count all = {0};

    for (int part = 0; part < EFFECT_PART_COUNT; part++)
        add(&all, &a->parts[part], 1);
    return all;
}

/* Seen often enough, and no worse than |peers| as far as can be said. */
static bool seems_well(double bad, double tries, const struct effect_count *peers)
{
    return tries >= SEEN_LEAST &&
           effect_lower(bad, tries, EFFECT_ALPHA) <= ratio(peers->bad, peers->tries);
}

bool effect_seems_false(const struct effect_account *a)
{
    struct effect_count before = {0}, after = since(a);

    add(&before, &a->fleet.usual, 1);
    add(&before, &a->host.usual, -1);
    if (a->was_slow || !seems_well(a->host.lately.bad, a->host.lately.tries, &before))
        return false;
    if (effect_lower(a->all_bad, a->all_probes, EFFECT_ALPHA) > ratio(after.bad, after.tries))
        return false;
    return seems_well(a->later.bad, a->later.tries, &a->later_peers);
}

double effect_timeouts_ratio(const struct effect_account *a)
{
    const struct effect_count *before = &a->fleet.longer;
    struct effect_count after = since(a);

    if (before->timed_out < TIMEOUTS_LEAST || after.tries < TIMES_LEAST)
        return -1;
    return ratio(after.timed_out, after.tries) / ratio(before->timed_out, before->tries);
}

double effect_p99_ratio(const struct effect_account *a)
{
    double after = effect_times_p99(&a->times);

    return a->p99_before > 0 && after > 0 ? after / a->p99_before : -1;
}

void effect_host_release(struct effect_host *h)
{
    memory_give(h->account);
    h->account = NULL;
}
