/* SPDX-License-Identifier: Apache-2.0 */
#include "control/outlier_event.h"

#include "base/text.h"
#include "codec/json.h"

/* Names may be long, and each of their bytes become six; a line that does not fit is not written.
 */
#define LINE_ROOM 4096

/* A return has the first one, as in Envoy: it is the field's zero. */
static const char *const types[OUTLIER_TRIGGER_COUNT] = {
    [OUTLIER_NONE] = "CONSECUTIVE_5XX",
    [OUTLIER_CONSECUTIVE_5XX] = "CONSECUTIVE_5XX",
    [OUTLIER_CONSECUTIVE_GATEWAY] = "CONSECUTIVE_GATEWAY_FAILURE",
    [OUTLIER_CONSECUTIVE_LOCAL_ORIGIN] = "CONSECUTIVE_LOCAL_ORIGIN_FAILURE",
    [OUTLIER_DETECTED] = "FIREBREAK_DETECTION",
    [OUTLIER_SUCCESS_RATE] = "SUCCESS_RATE",
    [OUTLIER_SUCCESS_RATE_LOCAL_ORIGIN] = "SUCCESS_RATE_LOCAL_ORIGIN",
    [OUTLIER_FAILURE_PERCENTAGE] = "FAILURE_PERCENTAGE",
    [OUTLIER_FAILURE_PERCENTAGE_LOCAL_ORIGIN] = "FAILURE_PERCENTAGE_LOCAL_ORIGIN",
};

static const char *const actions[] = {
    [OUTLIER_ACTION_EJECT] = "EJECT",
    [OUTLIER_ACTION_UNEJECT] = "UNEJECT",
    [OUTLIER_ACTION_DRAIN] = "DRAIN",
    [OUTLIER_ACTION_UNDRAIN] = "UNDRAIN",
};

static uint64_t whole(double percent)
{
    return percent <= 0 ? 0 : (uint64_t)percent;
}

/* A 64-bit number in proto3's JSON is a string. */
static void put_since(struct json *j, span_ns since)
{
    char room[24];
    struct text t;

    text_init(&t, room, sizeof(room));
    text_u64(&t, since / NS_PER_S);
    json_string(j, "secs_since_last_action", text_bytes(&t));
}

static double success_rate(const struct outlier_host *h, enum outlier_origin origin)
{
    const struct outlier_count *n = &h->counts[origin];

    return n->total == 0 ? 0 : 100.0 * (double)n->success / (double)n->total;
}

static void put_success_rate(struct json *j, const struct outlier_event *e,
                             enum outlier_origin origin)
{
    const struct outlier_rates *r = &e->judge->rates[origin];

    json_object(j, "eject_success_rate_event");
    json_u64(j, "host_success_rate", whole(success_rate(e->judged, origin)));
    json_u64(j, "cluster_average_success_rate", whole(r->average));
    json_u64(j, "cluster_success_rate_ejection_threshold", whole(r->threshold));
    json_object_end(j);
}

static void put_failure_percentage(struct json *j, const struct outlier_event *e,
                                   enum outlier_origin origin)
{
    json_object(j, "eject_failure_percentage_event");
    json_u64(j, "host_success_rate", whole(success_rate(e->judged, origin)));
    json_object_end(j);
}

static void put_cause(struct json *j, const struct outlier_event *e)
{
    switch (e->trigger) {
    case OUTLIER_SUCCESS_RATE:
        put_success_rate(j, e, OUTLIER_EXTERNAL);
        return;
    case OUTLIER_SUCCESS_RATE_LOCAL_ORIGIN:
        put_success_rate(j, e, OUTLIER_LOCAL);
        return;
    case OUTLIER_FAILURE_PERCENTAGE:
        put_failure_percentage(j, e, OUTLIER_EXTERNAL);
        return;
    case OUTLIER_FAILURE_PERCENTAGE_LOCAL_ORIGIN:
        put_failure_percentage(j, e, OUTLIER_LOCAL);
        return;
    case OUTLIER_CONSECUTIVE_5XX:
    case OUTLIER_CONSECUTIVE_GATEWAY:
    case OUTLIER_CONSECUTIVE_LOCAL_ORIGIN:
        json_object(j, "eject_consecutive_event");
        json_object_end(j);
        return;
    case OUTLIER_NONE:
    case OUTLIER_DETECTED:
    case OUTLIER_TRIGGER_COUNT:
        return;
    }
}

void outlier_event_put(struct event_log *l, const struct outlier_event *e)
{
    char room[LINE_ROOM];
    struct text t;
    struct json j;

    text_init(&t, room, sizeof(room));
    json_init(&j, &t);
    json_object(&j, NULL);
    json_text(&j, "type", e->by_hand ? "BY_HAND" : types[e->trigger]);
    json_time(&j, "timestamp", e->at);
    if (e->acted_before)
        put_since(&j, e->since_action);
    json_string(&j, "cluster_name", e->cluster);
    json_string(&j, "upstream_url", e->host);
    json_text(&j, "action", actions[e->action]);
    json_u64(&j, "num_ejections", e->judged->ejections);
    json_bool(&j, "enforced", e->enforced);
    put_cause(&j, e);
    json_object_end(&j);
    if (!t.failed)
        event_log_put(l, text_bytes(&t));
}
