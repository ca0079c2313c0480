/* SPDX-License-Identifier: Apache-2.0 */
/* Detection: what acts where, and what only looks on. */
#include "control/config_build.h"

#define ADAPTIVE_LEAST_SHARE 50 /* thousandths of what is fair, for a suspect */

static bool given(const struct field_head *head, const char *name)
{
    return config_node_find(head->node, name) != NULL;
}

/* A DestinationRule, or its block, without another word: its own rules act, and they alone. */
static bool only_looks_on(const struct config_cluster *from)
{
    return from->policy.outlier.head.node != NULL && !given(&from->resilience.head, "profile");
}

static void build_profile(struct detection_config *d, enum detection_profile profile)
{
    d->profile = profile;
    if (profile != PROFILE_ADAPTIVE)
        return;
    d->life.quick = true;
    d->life.least_share = ADAPTIVE_LEAST_SHARE;
}

void config_build_detection(const struct config_cluster *from, struct cluster *c)
{
    c->detection = default_detection;
    c->large_body = DEFAULT_LARGE_BODY;
    build_profile(&c->detection, (enum detection_profile)from->resilience.profile);
    c->detection.mode = (enum detection_mode)from->resilience.mode;
    c->detection.on = from->resilience.semantics != SEMANTICS_ENVOY;
    if (only_looks_on(from))
        c->detection.mode = DETECTION_OBSERVE;
    c->outlier.return_on_proof = c->detection.on && c->detection.mode == DETECTION_ENFORCE;
}
