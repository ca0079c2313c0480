/* SPDX-License-Identifier: Apache-2.0 */
/* What the demonstration counts, and how it is laid out. Knows no processes and no clock. */
#ifndef LAB_DEMO_SCORE_H
#define LAB_DEMO_SCORE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "lab/peers.h"
#include "lab/tally.h"

#define DEMO_PEERS 10

struct demo_score {
    uint64_t ended;
    uint64_t succeeded;
    struct latency latency; /* of all that ended */
};

struct demo_peer {
    char name[ADDRESS_TEXT_MAX];
    struct demo_score score; /* of answers that bear its name */
    struct peer_state state;
};

/* One half. */
struct demo_half {
    const char *title;
    struct demo_peer peers[DEMO_PEERS];
    struct demo_score whole;
    struct demo_score since_ejection; /* of what was due after it was seen */
    bool ejected;                     /* somebody was, so far */
    mono_ns ejection_seen_at;
    char ejected_name[ADDRESS_TEXT_MAX];
    char ejected_reason[PEER_REASON_MAX + 1];
    span_ns ejected_after;
    uint32_t bad;     /* servers, a bit each */
    bool faulty;      /* they are */
    mono_ns fault_at; /* since then */
    mono_ns late_at;  /* from then on it is the fault's second half */
    struct demo_score since_fault;
    struct demo_score late;
    uint64_t answered; /* since then, by anybody, ... */
    uint64_t answered_by_bad;
    uint32_t outs;  /* servers that were ejected since then, a bit each */
    mono_ns out_at; /* the first of them */
    uint64_t attempts;
    uint64_t due;
    uint64_t dropped;
};

void demo_half_init(struct demo_half *h, const char *title, const struct address *servers);

/* From now to |until| the servers in |bad| are bad. */
void demo_half_break(struct demo_half *h, uint32_t bad, mono_ns now, mono_ns until);

/* A request is over; |peer| answered, or "" for nobody. */
void demo_half_learn(struct demo_half *h, const struct shot *s, const char *peer);

/* What the proxy says of its hosts at |now|, |elapsed| after the half began. */
void demo_half_see(struct demo_half *h, const struct peer_state *states, uint32_t n,
                   span_ns elapsed, mono_ns now);

/* The table of peers. Always the same number of lines, DEMO_TABLE_LINES. */
#define DEMO_TABLE_LINES (DEMO_PEERS + 4)
void demo_write_table(struct text *t, const struct demo_half *h, span_ns elapsed);

/* One line instead of the table. */
void demo_write_line(struct text *t, const struct demo_half *h, span_ns elapsed);

void demo_write_comparison(struct text *t, const struct demo_half *off, const struct demo_half *on);

#endif
