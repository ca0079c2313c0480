/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Did an ejection help? Each one opens an account. It compares what the survivors show from then on
 * with what the host was like just before and with what its own probes show, and says in between
 * and at the end: it helped | it was useless | it did harm, and how many failures and slow answers
 * it has spared so far.
 *
 * The verdicts are e-processes: bets against a null hypothesis that pay at most as much as they
 * cost while it is true, whenever one looks. So a null is called false with a chance of at most
 * EFFECT_ALPHA, however long and however often the account is read:
 *
 * - helped. Null: at no time was the host any worse than the survivors. Each probe of it is
 * compared with the survivors' attempts of the same class since the one before.
 * - useless. Null: the survivors fail, or are slow, at most half as often as the host did just
 *   before. What they share with it was not its fault.
 * - harmful. Useless, or the survivors overloaded, and the null false that they are no worse now
 *   than all hosts together were before.
 *
 * What led to the ejection is never evidence that it helped: it was picked for being bad. Of the
 * rates before only an upper limit is used, at half of alpha; the bet has the other half.
 *
 * Pure; control thread only. Sources: J. Ville, "Étude critique de la notion de collectif", 1939
 * (P(sup E >= 1/alpha) <= alpha); H. Robbins, "Statistical methods related to the law of the
 * iterated logarithm", 1970 (predictable plug-in); R. Turner, A. Ly, P. Grünwald, "Generic
 * E-variables for exact sequential k-sample tests", 2021 (a probe against its block); the upper
 * limit is Chernoff's bound. reference/detection.md B17.
 */
#ifndef POLICY_EFFECT_H
#define POLICY_EFFECT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/units.h"
#include "policy/evidence.h"
#include "policy/peer_pool.h"

#define EFFECT_ALPHA  0.05
#define EFFECT_FOR    (300 * NS_PER_S) /* an account is open at most so long */
#define EFFECT_LATER  (10 * NS_PER_S)  /* after the host's return: does it do well? */
#define EFFECT_BUCKET (NS_PER_S / 2)   /* how often what is past fades */

/* Constant after EFFECT_, name as shown. */
#define EFFECT_VERDICTS(X)                                                                         \
    X(UNDECIDED, undecided)                                                                        \
    X(HELPED, helped)                                                                              \
    X(USELESS, useless)                                                                            \
    X(HARMFUL, harmful)

#define X(constant, name) EFFECT_##constant,
enum effect_verdict { EFFECT_VERDICTS(X) EFFECT_VERDICT_COUNT };
#undef X

const char *effect_verdict_text(enum effect_verdict v);

/* --- what is counted --- */

/* Numbers of attempts. Where one is told late first and ends later, it is one. */
struct effect_count {
    double tries;
    double bad; /* failed, or slow */
    double failed;
    double timed_out;   /* of the failed */
    double slow;        /* answered, but later than nearly all are in usual times */
    double unsure;      /* probes: given up before it was known which of the two */
    double late_failed; /* told late first, and then failed ... */
    double late_slow;   /* ... or were answered */
};

/* Of one class, microseconds; 0: not known. */
struct effect_limit {
    uint32_t slow; /* later is slow */
    uint32_t late; /* after that an open attempt is told as EVIDENCE_LATE */
};

struct effect_count effect_count_of(const struct evidence *e, const struct effect_limit *l);

/* What was seen of a host, or of all that serve, each half second weighing less. Zeroed: nothing.
 */
struct effect_past {
    struct effect_count lately; /* some two seconds */
    struct effect_count usual;  /* some ten */
    struct effect_count longer; /* half a minute */
    double waits_failed;        /* half a minute, too: what became of those told late */
    double waits_slow;
};

void effect_past_add(struct effect_past *p, const struct effect_count *c);
void effect_past_fade(struct effect_past *p); /* each EFFECT_BUCKET */

/* Latencies of half a minute. Zeroed: none. */
struct effect_times {
    double sum;
    float at[PEER_BINS];
};

void effect_times_add(struct effect_times *t, const struct evidence *e);
void effect_times_fade(struct effect_times *t);
double effect_times_p99(const struct effect_times *t); /* microseconds; 0: too few to say */

/* --- an account --- */

/* A bet: Robbins' plug-in against one bound. */
struct effect_bet {
    double log_e; /* natural logarithm of the e-value */
    double most;  /* ... and the largest so far, which is what counts (Ville) */
    double tries; /* lately, to know what to bet on */
    double bad;
};

/* The survivors' attempts in one class, all told and since the last probe. */
struct effect_block {
    double tries;
    double bad;
    uint32_t block;
    uint32_t block_bad;
};

/* How sure it is that the host was bad all along: by what its probes said last. */
enum effect_part { EFFECT_SURE, EFFECT_BETWEEN, EFFECT_DOUBTED, EFFECT_PART_COUNT };

struct effect_account {
    mono_ns opened;
    mono_ns decided;
    enum effect_verdict verdict;
    double share;                            /* of the traffic that the host had */
    uint32_t slow_after[EVIDENCE_CLASS_MAX]; /* microseconds: later is slow */
    struct effect_past host;                 /* as it was before; its waits go on */
    struct effect_past fleet;                /* the same, all hosts */
    double p99_before;                       /* microseconds; 0: not known */
    double useless_above;                    /* the nulls' bounds: shares of bad attempts */
    double harmful_above;
    struct effect_bet helped;
    struct effect_bet useless;
    struct effect_bet harmful;
    struct effect_block blocks[EVIDENCE_CLASS_MAX];
    struct effect_count parts[EFFECT_PART_COUNT]; /* the survivors' attempts since */
    struct effect_count probes;                   /* while it was bad by all signs */
    struct effect_count passed;                   /* since it may have become well */
    double still;                                 /* odds that it has not, nats; at most 0 */
    double all_probes, all_bad;                   /* since it was opened */
    uint8_t thinned;                              /* as the latest good sample was */
    uint32_t unthinned;                           /* bad samples, to bet on as few of them */
    struct effect_times times;                    /* of the survivors */
    struct effect_count later;                    /* after the return: the host's */
    struct effect_count later_peers;              /* ... and the others' */
    bool was_slow;  /* the caller: its median stood out when it went */
    bool summed_up; /* the caller: the time out, or five minutes of it, are over */
};

/* How it was before. */
struct effect_before {
    const struct effect_past *host;
    const struct effect_past *fleet; /* the host included */
    const struct effect_times *times;
    const struct effect_limit *limits; /* [EVIDENCE_CLASS_MAX] */
    double share; /* of the traffic, before it was cut; 0: as |host| and |fleet| say */
    bool was_slow;
};

void effect_open(struct effect_account *a, const struct effect_before *b, mono_ns now);

/* While the host is out: a sample of it, or of one that serves. */
void effect_learn_host(struct effect_account *a, const struct evidence *e, uint32_t late);
void effect_learn_survivor(struct effect_account *a, const struct evidence *e, uint32_t late);

/* The verdict as of now; it does not change again once it is one. */
enum effect_verdict effect_judge(struct effect_account *a, bool overloaded, mono_ns now);

/* After its return. */
void effect_learn_later(struct effect_account *a, const struct evidence *e, uint32_t late,
                        bool of_host);

/* Spared so far by there being no attempts on the host; negative: they would have done better. */
struct effect_claim {
    double failures;
    double slow;
};

struct effect_claim effect_claims(const struct effect_account *a);

/* How bad the host is, or was while it was bad: the share of its attempts that fail or are slow. */
double effect_badness(const struct effect_account *a);

/*
 * Was nothing wrong with the host just before, and nothing after? False, too, where too little was
 * seen to say.
 */
bool effect_seems_false(const struct effect_account *a);

/* Since to before, of all that was tried; negative: too little was seen, or there was none before.
 */
double effect_timeouts_ratio(const struct effect_account *a);
double effect_p99_ratio(const struct effect_account *a);

/* --- a host --- */

/* What is kept of a host beside its account. Zeroed memory is that of a new one. */
struct effect_host {
    struct effect_past past;
    struct effect_account *account; /* NULL: none is open */
    struct effect_host *next;       /* with one that is */
    mono_ns returned;               /* 0: it is out, or never was */
    mono_ns undone;                 /* 0: no ejection of it ever was */
    span_ns held_for;               /* since then: not ejected again on |held| ... */
    uint32_t held;                  /* causes, a bit each */
    double held_above;              /* ... unless fewer of its peers' attempts are bad */
    uint32_t cause;                 /* of its latest ejection */
    double badness;
    double share; /* of the traffic, while it had a whole one */
    mono_ns next_line;
};

void effect_host_release(struct effect_host *h);

/* Chernoff: |bad| of |tries| were bad; the true share is not above, or below, but by |alpha|. */
double effect_upper(double bad, double tries, double alpha);
double effect_lower(double bad, double tries, double alpha);

#endif
