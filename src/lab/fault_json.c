/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/fault_json.h"

#include "lab/fault_kinds.h"

const struct fault_kind_row fault_kinds[FAULT_KIND_COUNT] = {
    [FAULT_DELAY] = {"delay", VALUE_SPAN, "\"200ms\"", false},
    [FAULT_JITTER] = {"jitter", VALUE_SPAN, "\"50ms\"", false},
    [FAULT_SLOW] = {"slow", VALUE_FACTOR, "5", false},
    [FAULT_STATUS] = {"status", VALUE_STATUS, "503", false},
    [FAULT_REFUSE] = {"refuse", VALUE_NONE, NULL, true},
    [FAULT_ACCEPT_RESET] = {"accept-reset", VALUE_NONE, NULL, true},
    [FAULT_HANG] = {"hang", VALUE_NONE, NULL, false},
    [FAULT_RESET_MID_BODY] = {"reset-mid-body", VALUE_NONE, NULL, false},
    [FAULT_STOP_READING] = {"stop-reading", VALUE_NONE, NULL, false},
    [FAULT_DRIP] = {"drip", VALUE_SPAN, "\"100ms\"", false},
    [FAULT_STALL_EVERY] = {"stall-every", VALUE_SPAN, "\"5s\"", false},
    [FAULT_HEAVY] = {"heavy", VALUE_FACTOR, "10", false},
};

static void json_span(struct json *j, const char *key, span_ns ns)
{
    char room[40];
    struct text t;

    text_init(&t, room, sizeof(room));
    text_duration(&t, ns);
    json_string(j, key, text_bytes(&t));
}

static void put_value(struct json *j, const struct fault *f)
{
    switch (fault_kinds[f->kind].value) {
    case VALUE_NONE:
        break;
    case VALUE_SPAN:
        json_span(j, "value", f->span);
        break;
    case VALUE_FACTOR:
        json_double(j, "value", f->factor, 3);
        break;
    case VALUE_STATUS:
        json_u64(j, "value", f->status);
        break;
    }
    if (f->kind == FAULT_STALL_EVERY)
        json_span(j, "stall", f->stall);
    if (fault_takes_bytes(f->kind))
        json_u64(j, "bytes", f->bytes);
}

void fault_to_json(struct json *j, const struct fault *f, mono_ns now)
{
    json_object(j, NULL);
    json_u64(j, "id", f->id);
    json_text(j, "fault", fault_kinds[f->kind].name);
    if (f->server == FAULT_ALL)
        json_text(j, "server", "all");
    else
        json_u64(j, "server", f->server);
    put_value(j, f);
    json_double(j, "probability", f->probability, 6);
    if (f->path[0] != '\0')
        json_text(j, "path", f->path);
    if (f->after > 0)
        json_u64(j, "after", f->after);
    if (f->lasts > 0)
        json_span(j, "for", f->lasts);
    if (f->until != MONO_NEVER)
        json_span(j, "left", mono_since(now, f->until));
    json_u64(j, "matched", f->matched);
    json_u64(j, "struck", f->struck);
    json_object_end(j);
}
