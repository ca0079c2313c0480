/* SPDX-License-Identifier: Apache-2.0 */
/* Sentences about detection. How soon it sees what is the judge's own word (detection_reach.h). */
#include "control/detection_reach.h"
#include "control/explain_parts.h"
#include "control/lint_trap.h"

#define PEERS_LEAST 3 /* hosts, for latency to be compared */

/* --- what is looked at --- */

static const char *profile_words(enum detection_profile p)
{
    switch (p) {
    case PROFILE_STARTER:
        return "errors and failed connects eject, latency only cuts a host's share";
    case PROFILE_RULES:
        return "rules eject, other evidence only cuts a host's share";
    case PROFILE_ADAPTIVE:
        return "all evidence against its peers ejects a host";
    case PROFILE_COUNT:
        break;
    }
    return "";
}

static const char *mode_words(const struct cluster *c)
{
    if (c->detection.mode == DETECTION_ENFORCE)
        return "";
    return c->outlier.enforcing[OUTLIER_CONSECUTIVE_5XX] > 0
               ? "; it only observes, what it finds is logged, and the rules above act"
               : "; it only observes: what it finds is logged, and nothing is done";
}

static void put_line(struct text *t, bool on, const char *what)
{
    if (!on)
        return;
    explain_next_line(t);
    text_str(t, what);
}

static void put_looks(struct text *t, const struct cluster *c)
{
    const struct detect_config *d = &c->detection.detect;

    explain_heading(t, "detection");
    lint_say(t, "profile %s: %s%s", detection_profile_text(c->detection.profile),
             profile_words(c->detection.profile), mode_words(c));
    put_line(t, d->latency,
             "it is accused where its answers come later than its peers' of the same class (rank), "
             "too many very late (tail), a few later still (stalls),");
    put_line(t, d->latency,
             "or its requests stay open longer than nearly all of theirs take (age);");
    put_line(t, d->errors,
             "where more of its answers fail than of theirs (errors_some, errors_many);");
    put_line(t, d->connections, "where more connects to it fail (connects);");
    explain_next_line(t);
    lint_say(
        t,
        "past %.1f nats each; by chance that is %.1f a day in a fleet of 200 requests a second, "
        "before gates and guards\n",
        d->threshold, detection_false_alarms(d->threshold, DETECTION_FLEET_RATE) / 7);
}

/* --- how soon --- */

static void put_soon(struct text *t, const struct detect_config *d, uint32_t hosts,
                     struct detection_fault fault)
{
    static const uint32_t rates[] = {100, 10, 1};
    const char *before = ": ";

    for (uint32_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
        span_ns took;

        fault.rate = rates[i];
        took = detection_reach(d, hosts, &fault);
        if (took == MONO_NEVER)
            lint_say(t, "%snot with", before);
        else
            lint_say(t, "%safter %.1fs with", before, (double)took / (double)NS_PER_S);
        lint_say(t, " %u request%s/s a host", rates[i], rates[i] == 1 ? "" : "s");
        before = ", ";
    }
}

static void put_seen(struct text *t, const struct cluster *c)
{
    const struct detect_config *d = &c->detection.detect;
    uint32_t hosts = c->endpoint_count;
    const char *what = "a host that takes 3 times as long is accused";

    explain_heading(t, "seen");
    if (d->latency && hosts >= PEERS_LEAST) {
        text_str(t, what);
        put_soon(t, d, hosts, (struct detection_fault){.times = 3});
    } else {
        text_str(t, d->latency ? "with fewer than three hosts no slow one is told apart by latency"
                               : "latency is not looked at");
    }
    explain_next_line(t);
    if (d->errors) {
        text_str(t, "one that fails every second request");
        put_soon(t, d, hosts, (struct detection_fault){.times = 1, .failing = 0.5});
    } else {
        text_str(t, "errors are not looked at");
    }
    text_char(t, '\n');
}

/* --- what comes of it --- */

static void put_deeds(struct text *t, const struct cluster *c)
{
    const struct detection_config *d = &c->detection;
    bool adaptive = d->profile == PROFILE_ADAPTIVE;

    explain_heading(t, "suspect");
    lint_say(t,
             "accused of latency: its share is cut by how slow it is, down to %u %% of a fair one, "
             "until it looks like its peers again\n",
             d->life.least_share / 10);
    explain_heading(t, "out");
    if (d->profile != PROFILE_RULES)
        text_str(t, "accused of errors or of failed connects");
    else
        text_str(t, "what rules say");
    if (adaptive) {
        text_str(t, "; of open requests; or of latency, if it is 3 times as slow for 2s, or");
        explain_next_line(t);
        text_str(t, "other evidence rises with it, and the others stay within ");
        lint_say(t, "%.0f %% of the load where latency begins to grow", 100 * d->max_load);
    }
    text_char(t, ';');
    explain_next_line(t);
    text_str(t, "nobody while most hosts look alike, or for latency while the whole fleet is slow: "
                "retries stop then\n");
}

static void put_first_probe(struct text *t, const struct life_config *l)
{
    if (l->quick)
        lint_say(t,
                 "probed %s after it went, then every %s, after a minute out less and less often, "
                 "up to %s x times out, %s at most",
                 lint_span(l->after).text, lint_span(l->gap).text, lint_span(l->base).text,
                 lint_span(l->max).text);
    else
        lint_say(t, "probed after %s x times out lately, %s at most", lint_span(l->base).text,
                 lint_span(l->max).text);
    text_char(t, ';');
}

static void put_escalation(struct text *t, const struct life_config *l)
{
    if (l->repeated_for == MONO_NEVER && l->times_per_hour == 0)
        return;
    explain_next_line(t);
    text_str(t, "out");
    if (l->repeated_for != MONO_NEVER)
        lint_say(t, " for %s without a break", lint_span(l->repeated_for).text);
    if (l->repeated_for != MONO_NEVER && l->times_per_hour != 0)
        text_str(t, ", or");
    if (l->times_per_hour != 0)
        lint_say(t, " %u times within an hour", l->times_per_hour);
    text_str(t, ": it stays out until a human pardons it");
}

static void put_back(struct text *t, const struct life_config *l)
{
    explain_heading(t, "back");
    put_first_probe(t, l);
    explain_next_line(t);
    lint_say(t,
             "after %u probes in a row as good as its peers' answers (%u at once at first, paid "
             "from the retry budget), its share grows",
             l->successes, l->probes);
    explain_next_line(t);
    lint_say(t,
             "to the whole within %s, success by success; a failure puts it out again, for longer",
             lint_span(l->ramp).text);
    put_escalation(t, l);
    text_char(t, '\n');
    explain_heading(t, "and then");
    text_str(t,
             "a caller sees no probe fail: another host answers; what failed before the ejection "
             "he has seen, unless his route retries\n");
}

void explain_detection(struct text *t, const struct cluster *c)
{
    if (!c->detection.on) {
        explain_heading(t, "detection");
        text_str(t, "none beyond that: semantics are Envoy's\n");
        return;
    }
    put_looks(t, c);
    if (c->endpoint_count > 1)
        put_seen(t, c);
    if (c->detection.mode == DETECTION_OBSERVE)
        return;
    put_deeds(t, c);
    put_back(t, &c->detection.life);
}
