/* SPDX-License-Identifier: Apache-2.0 */
/* A decision in words, for the log and for whoever asks why. */
#include "control/decision.h"

#include <math.h>

/* --- small things --- */

static void put_name(struct text *t, const struct decision_name *n)
{
    text_put(t, decision_name_bytes(n));
}

static void put_nats(struct text *t, const struct decision *d)
{
    text_double(t, d->statistic, 1);
    text_str(t, " of ");
    text_double(t, d->threshold, 1);
    text_str(t, " nats");
}

static void put_share(struct text *t, uint32_t thousandths)
{
    text_double(t, thousandths / 10.0, 1);
    text_str(t, " %");
}

static void put_span(struct text *t, span_ns span)
{
    text_duration(t, span - span % (100 * NS_PER_MS));
}

/* --- the evidence --- */

static const char *line_words(enum detect_line line)
{
    switch (line) {
    case DETECT_RANK:
        return "its answers come later than those of its peers";
    case DETECT_TAIL:
        return "too many of its answers come very much later than those of its peers";
    case DETECT_STALLS:
        return "again and again one of its answers comes later than any of its peers' do";
    case DETECT_ERRORS_SOME:
        return "more of its requests fail than those of its peers";
    case DETECT_ERRORS_MANY:
        return "about half of its requests fail, or more";
    case DETECT_CONNECTS:
        return "connects to it fail";
    case DETECT_AGE:
        return "its requests stay open for longer than nearly all others take";
    case DETECT_LINE_COUNT:
        return "";
    }
    return "";
}

static void put_ratio(struct text *t, const struct decision *d)
{
    if (!d->rated)
        return;
    text_str(t, "; its median is ");
    text_double(t, d->ratio, 2);
    text_str(t, " times its peers' (gate ");
    text_double(t, d->gate, 2);
    text_char(t, ')');
}

static void put_line(struct text *t, const struct decision *d)
{
    text_str(t, line_words(d->line));
    text_str(t, " (line ");
    text_str(t, detect_line_text(d->line));
    text_str(t, ": ");
    put_nats(t, d);
    text_char(t, ')');
    put_ratio(t, d);
}

static void put_trigger(struct text *t, const struct decision *d)
{
    text_str(t, outlier_trigger_text(d->trigger));
    text_str(t, " of outlier detection (");
    text_double(t, d->statistic, outlier_is_rate(d->trigger) ? 1 : 0);
    text_str(t, outlier_is_rate(d->trigger) ? " %, limit " : " in a row, limit ");
    text_double(t, d->threshold, outlier_is_rate(d->trigger) ? 1 : 0);
    text_char(t, ')');
}

static void put_reason(struct text *t, const struct decision *d)
{
    switch (d->cause) {
    case CAUSE_ACCUSED:
        if (d->line < DETECT_LINE_COUNT)
            put_line(t, d);
        return;
    case CAUSE_RELAPSED:
        text_str(t, "it failed again while its share grew");
        return;
    case CAUSE_TRIGGER:
        put_trigger(t, d);
        return;
    case CAUSE_RULE:
        text_str(t, "rule ");
        text_str(t, rule_signal_text(d->rule));
        text_str(t, " at ");
        text_double(t, d->statistic, 2);
        text_str(t, ", limit ");
        text_double(t, d->threshold, 2);
        return;
    case CAUSE_HAND:
        text_str(t, "an operator said so");
        return;
    case CAUSE_UNDONE:
        text_str(t, "its ejection did no good, or the others could not do without it");
        return;
    case CAUSE_SCOPE:
        text_str(t, "not it alone is bad, but all of a group: ");
        text_str(t, scope_kind_text(d->whose));
        return;
    case CAUSE_PROOF:
    case CAUSE_TIME:
    case CAUSE_FLEET:
    case CAUSE_COUNT:
        return;
    }
}

/* --- the guards --- */

static void put_count(struct text *t, uint64_t n, const char *what)
{
    text_u64(t, n);
    text_char(t, ' ');
    text_str(t, what);
    if (n != 1)
        text_char(t, 's');
}

static void put_cap(struct text *t, const struct decision *d)
{
    text_u64(t, d->look.ejected);
    text_str(t, " of ");
    put_count(t, d->look.hosts, "host");
    text_str(t, " out, cap ");
    text_u64(t, d->look.cap);
    text_str(t, " %");
}

static void put_few(struct text *t, const struct decision *d)
{
    put_count(t, d->look.serving, "host");
    text_str(t, d->look.serving == 1 ? " serves" : " serve");
    if (d->look.serving >= OUTLIER_FEW_HEALTHY)
        return;
    text_str(t, d->look.one_by_few ? ", and one is out already"
                : d->look.total    ? ", and the evidence is total"
                                   : ", and the evidence is not total (no success at all while "
                                     "a peer is fine)");
}

static void put_certain(struct text *t, const struct decision *d)
{
    text_str(t, "three times slower for ");
    put_span(t, d->sure_for);
    text_str(t, " of 2s, or another kind of evidence past ");
    text_double(t, d->threshold / 2, 1);
    text_str(t, " nats");
}

static void put_fleet_ratio(struct text *t, const struct decision *d)
{
    text_str(t, "the fleet answers in ");
    text_double(t, d->fleet_ratio, 2);
    text_str(t, d->fleet_slow ? " times its usual time: it is slow"
                              : " times its usual time: it is not slow");
}

static void put_gate(struct text *t, const struct decision *d)
{
    text_str(t, "median ");
    text_double(t, d->ratio, 2);
    text_str(t, " times its peers', gate ");
    text_double(t, d->gate, 2);
    text_str(t, ", usually ");
    text_double(t, d->usual, 2);
}

void decision_guard_words(struct text *t, const struct decision *d, enum decision_guard g)
{
    switch (g) {
    case GUARD_FLEET:
        put_fleet_ratio(t, d);
        return;
    case GUARD_CROWD:
        put_count(t, d->alike, "host");
        text_str(t, " of ");
        text_u64(t, d->look.hosts);
        text_str(t, " past half of the threshold on this line; more than ");
        text_u64(t, (uint64_t)lround(100 * detect_crowd_share(d->line, d->fleet_slow)));
        text_str(t, " % would be a crowd");
        return;
    case GUARD_RATED:
        text_str(t, d->rated ? "it has peers and answers enough"
                             : "it has too few peers with answers, or too few answers itself");
        return;
    case GUARD_GATE:
        put_gate(t, d);
        return;
    case GUARD_SCOPE:
        text_str(t, "whose trouble it is: ");
        text_str(t, scope_kind_text(d->whose));
        return;
    case GUARD_MODE:
        text_str(t, d->verdicts[g] == GUARD_HOLDS ? "only observed, as configured" : "enforced");
        return;
    case GUARD_PROFILE:
        text_str(t, d->verdicts[g] == GUARD_HOLDS
                        ? "in this profile such evidence only cuts the share"
                        : "in this profile such evidence ejects");
        return;
    case GUARD_CERTAIN:
        put_certain(t, d);
        return;
    case GUARD_CAPACITY:
        text_str(t, "without it the others would be at ");
        text_double(t, d->load, 2);
        text_str(t, " of what they can carry, limit ");
        text_double(t, d->load_most, 2);
        return;
    case GUARD_ALREADY_OUT:
        text_str(t, d->look.holds[OUTLIER_GUARD_ALREADY_OUT] ? "it is out" : "it is in");
        return;
    case GUARD_LAST_HOST:
    case GUARD_FEW_HEALTHY:
        put_few(t, d);
        return;
    case GUARD_CAP:
        put_cap(t, d);
        return;
    case GUARD_COUNT:
        return;
    }
}

/* --- what was done --- */

static void put_deed(struct text *t, const struct decision *d)
{
    switch (d->what) {
    case DECISION_SUSPECTED:
        text_str(t, "is suspected, its share cut to ");
        put_share(t, d->share);
        return;
    case DECISION_CLEARED:
        text_str(t, "is not suspected any more");
        return;
    case DECISION_EJECTED:
        text_str(t, "is ejected for ");
        put_span(t, d->out_for);
        return;
    case DECISION_REFUSED:
        text_str(t, "stays in");
        return;
    case DECISION_HELD:
        text_str(t, "is not blamed");
        return;
    case DECISION_PROBING:
        text_str(t, "is out and tried with single requests from now on");
        return;
    case DECISION_RAMPING:
        text_str(t, "is in again after its probes succeeded, with a share of ");
        put_share(t, d->share);
        text_str(t, " that grows");
        return;
    case DECISION_RETURNED:
        text_str(t, "is in again as before");
        return;
    case DECISION_NEEDS_HUMAN:
        text_str(t, "was out too often or for too long: it stays out, probed only, until it is "
                    "pardoned");
        return;
    case DECISION_OBSERVED:
        text_str(t, "would be acted on");
        return;
    case DECISION_FLEET_SLOWDOWN:
    case DECISION_FLEET_RECOVERED:
    case DECISION_VERDICT:
    case DECISION_COUNT:
        return;
    }
}

static void put_fleet(struct text *t, const struct decision *d)
{
    text_str(t, "cluster ");
    put_name(t, &d->cluster);
    if (d->what == DECISION_VERDICT) {
        text_str(t, ": whose trouble it is: ");
        text_str(t, scope_kind_text(d->whose));
        return;
    }
    if (d->what == DECISION_FLEET_RECOVERED) {
        text_str(t, " answers as usual again; hosts are blamed for latency, and retries go on");
        return;
    }
    text_str(t, " answers in ");
    text_double(t, d->fleet_ratio, 2);
    text_str(t, " times its usual time, all hosts alike: nobody is ejected for it, retries stop");
}

void decision_words(struct text *t, const struct decision *d)
{
    size_t from;

    if (d->host.len == 0) {
        put_fleet(t, d);
        return;
    }
    put_name(t, &d->host);
    text_str(t, " of cluster ");
    put_name(t, &d->cluster);
    text_char(t, ' ');
    put_deed(t, d);
    from = t->len;
    text_str(t, ": ");
    put_reason(t, d);
    if (t->len == from + 2)
        t->len = from;
    if (d->guard == GUARD_COUNT)
        return;
    text_str(t, "; guard ");
    text_str(t, decision_guard_name(d->guard));
    text_str(t, ": ");
    decision_guard_words(t, d, d->guard);
}

/* --- what would change it --- */

/* Whatever the mode is, a rule or a trigger may be one that only counts. */
static const char *mode_remedy(enum decision_cause cause)
{
    if (cause == CAUSE_RULE)
        return "resilience.mode: enforce, with rules that are written down (resilience.rules) or "
               "resilience.profile: rules";
    if (cause == CAUSE_TRIGGER)
        return "resilience.mode: enforce, and what that trigger is enforced by: resilience.outlier";
    return "resilience.mode: enforce";
}

static const char *guard_remedy(const struct decision *d, enum decision_guard g)
{
    switch (g) {
    case GUARD_FLEET:
        return "it is judged again when the fleet is no more slow: look for what all hosts share";
    case GUARD_CROWD:
        return "hosts so many of which look alike share a cause: look for it; if they are really "
               "bad each for itself, eject by hand";
    case GUARD_RATED:
        return "more requests to it and to at least two peers";
    case GUARD_GATE:
        return "a median past the gate";
    case GUARD_SCOPE:
        return "it is its own trouble once others that share what it shares are well: look at the "
               "cluster's verdict";
    case GUARD_MODE:
        return mode_remedy(d->cause);
    case GUARD_PROFILE:
        return "resilience.profile: adaptive ejects on such evidence";
    case GUARD_CERTAIN:
        return "two seconds at three times its peers' median, or failures, failed connects or "
               "overdue requests beside the latency";
    case GUARD_CAPACITY:
        return "more hosts, or less load";
    case GUARD_ALREADY_OUT:
        return "nothing: it is out";
    case GUARD_LAST_HOST:
        return "another host that serves";
    case GUARD_CAP:
        return "another host's return, more hosts, or a higher outlierDetection.maxEjectionPercent";
    case GUARD_FEW_HEALTHY:
        return "no success at all in 20 attempts and 5 s, or every connect refused for 1 s, while "
               "a peer is fine; or a fourth host";
    case GUARD_COUNT:
        return "";
    }
    return "";
}

static const char *deed_remedy(const struct decision *d)
{
    switch (d->what) {
    case DECISION_SUSPECTED:
        return "it is cleared when its sums fall below a quarter of the threshold, or after ten "
               "requests in a row that are as good as its peers'; for stalls, no sooner than "
               "a quarter longer than they were apart";
    case DECISION_EJECTED:
        return "it comes back on proof (probes that succeed) or by the clock, as configured; POST "
               "/clusters/CLUSTER/hosts/HOST/pardon lets it in at once";
    case DECISION_PROBING:
        return "successes in a row, as fast as its peers, let it in; one failure rests it again; "
               "with profile adaptive they have to go on for one ejection.base more each time it "
               "was out lately; after stalls, for a quarter longer than those were apart";
    case DECISION_RAMPING:
        return "a failure ejects it again, and for longer";
    case DECISION_NEEDS_HUMAN:
        return "replace it, roll it back, or check the rollout; then POST "
               "/clusters/CLUSTER/hosts/HOST/pardon";
    case DECISION_FLEET_SLOWDOWN:
        return "look for what all hosts share: a dependency, load, a rollout";
    case DECISION_REFUSED:
    case DECISION_HELD:
    case DECISION_OBSERVED:
    case DECISION_CLEARED:
    case DECISION_RETURNED:
    case DECISION_FLEET_RECOVERED:
    case DECISION_VERDICT:
    case DECISION_COUNT:
        return "";
    }
    return "";
}

void decision_remedy(struct text *t, const struct decision *d)
{
    text_str(t, d->guard < GUARD_COUNT ? guard_remedy(d, d->guard) : deed_remedy(d));
}
