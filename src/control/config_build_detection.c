/* SPDX-License-Identifier: Apache-2.0 */
/* Detection: what acts where, what only looks on, and whose word holds beside outlierDetection. */
#include <string.h>

#include "control/config_build.h"

static bool given(const struct field_head *head, const char *name)
{
    return config_node_find(head->node, name) != NULL;
}

static bool has_rule(const struct config_cluster *from)
{
    return from->policy.outlier.head.node != NULL;
}

/* A DestinationRule, or its block, without another word: its own rules act, and they alone. */
static bool only_looks_on(const struct config_cluster *from)
{
    return has_rule(from) && !given(&from->resilience.head, "profile");
}

/* Where nobody asked for rules, ours are part of what only looks on: they are seen and counted. */
static void hold_rules(const struct config_cluster *from, struct cluster *c)
{
    if (from->resilience.mode == DETECTION_OBSERVE && !has_rule(from))
        memset(c->outlier.enforcing, 0, sizeof(c->outlier.enforcing));
}

static void build_detect(const struct config_detect *from, struct detect_config *d)
{
    d->latency = from->latency;
    d->errors = from->errors;
    d->connections = from->connections;
    if (from->false_alarms > 0)
        d->threshold = detection_threshold(from->false_alarms, DETECTION_FLEET_RATE);
}

static void build_readmit(const struct config_readmit *from, struct life_config *life)
{
    life->after = from->after;
    life->gap = from->gap;
    life->probes = from->probes;
    life->successes = from->successes;
    life->ramp = from->ramp;
}

/* --- ejection: one word for two --- */

static void max_below_base(struct config_build *b, const struct config_ejection *from,
                           const struct life_config *life)
{
    struct text *t = config_build_error(b, config_node_find(from->head.node, "max"));

    text_str(t, "'max' may not be less than 'base', which is ");
    text_duration(t, life->base);
    config_error_end(b->errors);
}

/* The word of a rule holds where ours is not written. */
static void build_lengths(struct config_build *b, const struct config_cluster *from,
                          struct cluster *c)
{
    const struct config_ejection *own = &from->resilience.ejection;
    struct life_config *life = &c->detection.life;

    life->base = own->base;
    life->max = default_detection.life.max;
    if (has_rule(from) && !given(&own->head, "base")) {
        life->base = c->outlier.base_ejection;
        life->max = c->outlier.max_ejection;
    }
    if (own->max > 0)
        life->max = own->max;
    if (own->max > 0 && life->max < life->base)
        max_below_base(b, own, life);
    if (life->max < life->base)
        life->max = life->base;
}

static void broken_percent(struct config_build *b, const struct config_ejection *from)
{
    struct text *t = config_build_error(b, config_node_find(from->head.node, "cap"));

    text_str(t, "'cap' is in whole percent: write ");
    text_u64(t, from->cap_permille / 10);
    text_str(t, "% or ");
    text_u64(t, from->cap_permille / 10 + 1);
    text_str(t, "%");
    config_error_end(b->errors);
}

/* The stricter one, where two hold. */
static void build_cap(struct config_build *b, const struct config_cluster *from, struct cluster *c)
{
    const struct config_ejection *own = &from->resilience.ejection;
    uint32_t percent = own->cap_permille / 10;

    if (own->cap_permille % 10 != 0)
        broken_percent(b, own);
    if (!has_rule(from) || percent < c->outlier.max_ejection_percent)
        c->outlier.max_ejection_percent = percent;
}

static void build_ejection(struct config_build *b, const struct config_cluster *from,
                           struct cluster *c)
{
    build_lengths(b, from, c);
    if (!only_looks_on(from) || given(&from->resilience.ejection.head, "cap"))
        build_cap(b, from, c);
    if (!c->outlier.return_on_proof)
        return;
    c->outlier.base_ejection = c->detection.life.base;
    c->outlier.max_ejection = c->detection.life.max;
}

void config_build_detection(struct config_build *b, const struct config_cluster *from,
                            struct cluster *c)
{
    const struct config_resilience *own = &from->resilience;
    struct detection_config *d = &c->detection;

    *d = default_detection;
    detection_set_profile(d, (enum detection_profile)own->profile);
    d->mode = (enum detection_mode)own->mode;
    d->on = own->semantics != SEMANTICS_ENVOY;
    if (only_looks_on(from))
        d->mode = DETECTION_OBSERVE;
    build_detect(&own->detect, &d->detect);
    config_build_rules(b, &own->rules, d);
    build_readmit(&own->readmit, &d->life);
    d->max_load = own->capacity.max_load_permille / 1000.0;
    d->life.repeated_for = own->escalate.repeated_for;
    d->life.times_per_hour = own->escalate.times_per_hour;
    c->outlier.return_on_proof = d->on && d->mode == DETECTION_ENFORCE;
    build_ejection(b, from, c);
    hold_rules(from, c);
}
