/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of detection: log lines, counters, decisions to be explained. For detection.c. */
#ifndef CONTROL_DETECTION_SAY_H
#define CONTROL_DETECTION_SAY_H

#include "control/detection.h"
#include "policy/alarms.h"
#include "policy/detect.h"
#include "policy/detect_rules.h"
#include "policy/host_life.h"
#include "policy/scope.h"

/* Do requests on connections that were opened since the others were given up come back? */
enum age_fresh { AGE_FRESH_UNKNOWN, AGE_FRESH_WORKS, AGE_FRESH_FAILS };

/* Of one host. */
struct detection_note {
    mono_ns refreshed_at; /* its connections were given up; 0: never */
    enum age_fresh fresh;
    uint64_t path_requests; /* of the host's path, as last read */
    uint64_t path_retransmits;
    uint32_t share;      /* that the others' reports know of */
    mono_ns share_until; /* what it has less now is not in them before; 0: they know */
    mono_ns looked_at;   /* for having failed */
    mono_ns next_try;    /* a guard kept it in: it is not asked again before */
    double places;       /* of the probes since the first, among its peers */
    uint32_t tried;      /* on its way back, since it went */
    uint32_t failed;
    mono_ns bad_at;          /* a suspect last failed or was late, or became one */
    enum scope_kind cut_for; /* a suspect for the sake of its zone, version; NONE: its own */
    uint32_t passed;         /* requests in a row, as fast as its peers' and no failure */
    mono_ns next_line;       /* no line about what is held back before */
    bool ruled;              /* a rule speaks against it, and that is counted */
    mono_ns next_held;       /* nothing is said before of what is held, refused, only observed */
    mono_ns next_refused;
    mono_ns next_observed;
    enum alarm alarms[DETECT_LINE_COUNT];
};

struct detection {
    struct detect judge;
    struct rules_judge rules;
    struct rules_host **ruled;    /* as in the roster */
    struct detect_host **members; /* as in the roster */
    struct detection_note *notes;
    struct scope scope;
    struct scope_host *scoped; /* as in the roster */
    bool looked;               /* at |scope|, and nothing has changed since */
    enum scope_kind said;      /* the last verdict that was told */
    uint32_t learnt;           /* in the half second under way */
    uint32_t doubted;          /* of these, for what this proxy itself has */
    struct detect_rate doubts; /* the same lately */
    uint64_t asked;            /* attempts but retries, as last read */
    mono_ns next_turn;         /* the half second under way ends */
    mono_ns next_glance;       /* a tenth of it does */
    mono_ns next_look;         /* at all hosts, not before; 0: whenever there is a tick */
    uint32_t quiet;            /* looks since there was anything to see */
    bool busy;                 /* there was evidence since the last look */
    bool said_slow;
    struct alarms alarms;
};

/* For "%.*s of cluster %.*s". */
#define WHOM(c, index)                                                                             \
    bytes_width((c)->roster.hosts[index].text), (const char *)(c)->roster.hosts[index].text.data,  \
        bytes_width((c)->config->name), (const char *)(c)->config->name.data

struct decision;

/* What is left of its share; nothing where it serves no more. */
void detection_suspect(struct watched *c, uint32_t index, uint32_t share, mono_ns now);
void detection_suspect_for(struct watched *c, uint32_t index, uint32_t share, struct decision *d);
/* DETECT_LINE_COUNT: it relapsed while its share grew. */
void detection_eject(struct watched *c, uint32_t index, enum detect_line line, mono_ns now);

void say_state(struct watched *c, uint32_t index, enum life_state before, mono_ns now);
void say_escalated(struct watched *c, uint32_t index, mono_ns now);
void say_held(struct watched *c, uint32_t index, enum detect_line line, mono_ns now);
void say_full(struct watched *c, uint32_t index, enum detect_line line, mono_ns now);
void say_scoped(struct watched *c, uint32_t index, enum detect_line line, enum scope_kind whose,
                mono_ns now);
void say_verdict(struct watched *c, mono_ns now);
void say_observed(struct watched *c, uint32_t index, enum detect_line line, mono_ns now);
bool say_may(struct watched *c, uint32_t index, mono_ns now);
void say_ruled(struct watched *c, uint32_t index, const struct rule_finding *f, const char *what);
void say_fleet(struct watched *c, mono_ns now);

/* Of what was taken before the deed. */
void say_suspected(struct watched *c, uint32_t index, struct decision *d);
void say_accused(struct watched *c, uint32_t index, enum outlier_guard guard, struct decision *d);

#endif
