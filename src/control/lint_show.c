/* SPDX-License-Identifier: Apache-2.0 */
/* Findings as people read them, as programs do, and as a line of the log. */
#include <inttypes.h>

#include "control/lint.h"

#define RESET "\033[0m"
#define BOLD  "\033[1m"

static const char *colour(const struct lint_finding *f)
{
    static const char *const of[LINT_SEVERITY_COUNT] = {
        [LINT_ADVICE] = "\033[36m", [LINT_WARNING] = "\033[33m", [LINT_DANGER] = "\033[31m"};

    return f->accepted ? "\033[2m" : of[f->severity];
}

static void put_if(struct text *t, enum lint_style style, const char *code)
{
    if (style == LINT_COLOURED)
        text_str(t, code);
}

static void put_place(struct text *t, const struct lint_finding *f)
{
    text_put(t, f->file);
    text_char(t, ':');
    text_u64(t, f->place.line);
    text_char(t, ':');
    text_u64(t, f->place.column);
}

static void put_line(struct text *t, const struct lint_finding *f, enum lint_style style)
{
    text_str(t, "    ");
    text_put(t, f->place.excerpt);
    text_str(t, "\n    ");
    for (uint32_t i = 0; i < f->place.caret; i++)
        text_char(t, ' ');
    put_if(t, style, colour(f));
    text_str(t, "^\n");
    put_if(t, style, RESET);
}

void lint_write_finding(struct text *t, const struct lint_finding *f, enum lint_style style)
{
    put_if(t, style, BOLD);
    put_place(t, f);
    put_if(t, style, RESET);
    text_str(t, ": ");
    put_if(t, style, colour(f));
    text_str(t, f->accepted ? "accepted" : lint_severity_text(f->severity));
    put_if(t, style, RESET);
    text_str(t, ": ");
    text_put(t, f->why);
    text_str(t, " [");
    text_str(t, f->trap);
    text_str(t, "]\n");
    if (f->place.line > 0)
        put_line(t, f, style);
    if (!f->accepted && f->instead.len == 0)
        return;
    text_str(t, f->accepted ? "    because " : "    write ");
    text_put(t, f->accepted ? f->reason : f->instead);
    text_char(t, '\n');
}

void lint_write_json(struct json *j, const struct lint_finding *f)
{
    json_object(j, NULL);
    json_text(j, "trap", f->trap);
    json_text(j, "severity", lint_severity_text(f->severity));
    json_string(j, "file", f->file);
    json_u64(j, "line", f->place.line);
    json_u64(j, "column", f->place.column);
    json_string(j, "about", f->about);
    json_string(j, "why", f->why);
    json_string(j, "instead", f->instead);
    json_bool(j, "accepted", f->accepted);
    if (f->accepted)
        json_string(j, "reason", f->reason);
    json_object_end(j);
}

static void log_finding(const struct lint_finding *f, struct log *log)
{
    log_event(log, f->severity == LINT_ADVICE ? LOG_INFO : LOG_WARNING, "config.trap",
              "%.*s:%" PRIu32 ":%" PRIu32 ": %s: %.*s [%s]; `firebreak check` says what to write",
              (int)f->file.len, (const char *)f->file.data, f->place.line, f->place.column,
              lint_severity_text(f->severity), (int)f->why.len, (const char *)f->why.data, f->trap);
}

void lint_log(const struct lint *l, struct log *log)
{
    uint32_t untold = lint_count(l); /* with those that were not kept */
    uint32_t fresh = 0;

    for (uint32_t i = 0; i < l->kept; i++) {
        const struct lint_finding *f = &l->findings[i];

        if (f->accepted)
            continue;
        if (!f->known && fresh++ < LINT_LOGGED_MAX)
            log_finding(f, log);
        if (f->known || fresh <= LINT_LOGGED_MAX)
            untold--;
    }
    if (fresh > LINT_LOGGED_MAX)
        log_event(log, LOG_WARNING, "config.trap",
                  "%" PRIu32 " more; `firebreak check` shows them all", untold);
}
