/* SPDX-License-Identifier: Apache-2.0 */
/* `firebreak check`: what is wrong with a configuration, what it will do, and what it will not. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/text.h"
#include "codec/json.h"
#include "control/config.h"
#include "control/explain.h"
#include "control/lint.h"
#include "main/command.h"
#include "main/options.h"
#include "main/resolve.h"
#include "os/files.h"

/* All that one run can print: 200 findings of 2 KiB, or the words about one cluster. */
#define ROOM (1u << 20)

static const struct command_help help = {
    .name = "check",
    .usage = "-c FILE [-c FILE ...] [OPTION ...]",
    .summary =
        "Says what is wrong with a configuration (file:line:column, the line, a caret), and\n"
        "what is valid but will not do what it seems to, with the numbers of this very\n"
        "configuration and what to write instead. Nothing is started and nothing changed.",
    .notes =
        "Each trap has a name in brackets; docs/checks.md has its reason, arithmetic and remedy.\n"
        "One that is there on purpose is accepted by name, and listed as accepted:\n"
        "\n"
        "  resilience: {accept: [{trap: few-peers, reason: two racks are all we have}]}\n"
        "\n"
        "or by `accept:` of a route, or of the file.\n"
        "\n"
        "  danger    can take the service down\n"
        "  warning   does not do what it seems to\n"
        "  advice    could be said better, or will surprise somebody\n"
        "\n"
        "Exit codes: 0 valid, 1 valid but with traps and --strict, 2 bad usage or not valid.",
    .examples = "firebreak check -c firebreak.yaml\n"
                "firebreak check -c firebreak.yaml -c destinationrule.yaml --explain\n"
                "firebreak check -c new.yaml --against running.yaml --strict\n"
                "firebreak check -c firebreak.yaml --json | jq '.findings[].trap'",
};

struct check_options {
    struct option_texts files;
    struct option_texts against;
    enum config_follow follow;
    bool explain;
    bool json;
    bool strict;
};

/* A configuration, read and looked at. */
struct checked {
    struct config_errors errors;
    struct lint lint;
    struct snapshot *snapshot; /* NULL: not valid */
};

static enum options_verdict read_options(int argc, char **argv, struct check_options *o)
{
    const struct command_option options[] = {
        {.name = "config",
         .letter = 'c',
         .kind = OPTION_TEXTS,
         .target = &o->files,
         .placeholder = "FILE",
         .help = "as `firebreak run -c` takes it"},
        {.name = "against",
         .kind = OPTION_TEXTS,
         .target = &o->against,
         .placeholder = "FILE",
         .help = "what it is to replace: says what a reload to -c would change by halves"},
        {.name = "semantics",
         .kind = OPTION_PARSED,
         .target = &o->follow,
         .placeholder = "WHOSE",
         .help = "firebreak or envoy, as for `firebreak run` [as the file says]",
         .parse = command_parse_semantics},
        {.name = "explain",
         .kind = OPTION_FLAG,
         .target = &o->explain,
         .help = "what the policy of each cluster comes to, in words"},
        {.name = "json",
         .kind = OPTION_FLAG,
         .target = &o->json,
         .help = "all of it as one object"},
        {.name = "strict",
         .kind = OPTION_FLAG,
         .target = &o->strict,
         .help = "exit code 1 where a trap is not accepted"},
    };

    return options_read(&help, options, sizeof(options) / sizeof(options[0]), argc, argv);
}

static int load(struct checked *c, const struct option_texts *paths, const struct check_options *o,
                const struct snapshot *before)
{
    struct files files;
    const struct lint_load load = {.paths = paths->items,
                                   .count = (uint32_t)paths->count,
                                   .files = &files,
                                   .resolver = resolve_open(NULL),
                                   .before = before,
                                   .follow = o->follow};
    int status;

    os_files_init(&files);
    config_errors_init(&c->errors);
    lint_init(&c->lint);
    status = lint_load(&c->lint, &load, &c->errors, &c->snapshot);
    resolve_close(load.resolver);
    return status;
}

static void release(struct checked *c)
{
    config_errors_release(&c->errors);
    lint_release(&c->lint);
    if (c->snapshot != NULL)
        snapshot_drop(c->snapshot);
}

/* --- for people --- */

static enum lint_style style_of(FILE *to)
{
    const char *no = getenv("NO_COLOR"); /* no-color.org: set, and not empty */

    return isatty(fileno(to)) && (no == NULL || no[0] == '\0') ? LINT_COLOURED : LINT_PLAIN;
}

static void print(struct text *t)
{
    fwrite(t->data, 1, t->len, stdout);
    t->len = 0;
}

static void print_count(uint32_t n, const char *word, const char *many)
{
    if (n > 0)
        printf(", %" PRIu32 " %s", n, n == 1 ? word : many);
}

static void print_sum(const struct checked *c)
{
    const struct lint *l = &c->lint;
    const struct snapshot *s = c->snapshot;
    uint32_t endpoints = 0;

    for (uint32_t i = 0; i < s->cluster_count; i++)
        endpoints += s->clusters[i].endpoint_count;
    printf("valid: %" PRIu32 " listener%s, %" PRIu32 " cluster%s, %" PRIu32 " endpoint%s",
           s->listener_count, s->listener_count == 1 ? "" : "s", s->cluster_count,
           s->cluster_count == 1 ? "" : "s", endpoints, endpoints == 1 ? "" : "s");
    print_count(l->counts[LINT_DANGER], "danger", "dangers");
    print_count(l->counts[LINT_WARNING], "warning", "warnings");
    print_count(l->counts[LINT_ADVICE], "piece of advice", "pieces of advice");
    print_count(l->accepted, "accepted", "accepted");
    printf(lint_count(l) + l->accepted > l->kept ? ", not all of them shown\n" : "\n");
}

static void print_people(const struct checked *c, const struct check_options *o, struct text *t)
{
    if (c->snapshot == NULL) {
        config_errors_write(t, &c->errors);
        fwrite(t->data, 1, t->len, stderr);
        return;
    }
    for (uint32_t i = 0; i < c->lint.kept; i++) {
        lint_write_finding(t, &c->lint.findings[i], style_of(stdout));
        print(t);
    }
    for (uint32_t i = 0; o->explain && i < c->snapshot->cluster_count; i++) {
        explain_cluster(t, c->snapshot, i);
        print(t);
    }
    print_sum(c);
}

/* --- for programs --- */

static void put_error(struct json *j, const struct config_errors *e,
                      const struct config_error *error)
{
    json_object(j, NULL);
    json_string(j, "file", e->sources[error->source].name);
    json_u64(j, "line", error->line);
    json_u64(j, "column", error->column);
    json_string(j, "message", error->message);
    json_object_end(j);
}

static void put_counts(struct json *j, const struct lint *l)
{
    json_object(j, "counts");
    for (unsigned i = LINT_SEVERITY_COUNT; i-- > 0;)
        json_u64(j, lint_severity_text((enum lint_severity)i), l->counts[i]);
    json_u64(j, "accepted", l->accepted);
    json_object_end(j);
}

static void put_explained(struct json *j, const struct snapshot *s, struct text *words)
{
    json_array(j, "clusters");
    for (uint32_t i = 0; i < s->cluster_count; i++) {
        words->len = 0;
        explain_cluster(words, s, i);
        json_object(j, NULL);
        json_string(j, "name", s->clusters[i].name);
        json_string(j, "explained", text_bytes(words));
        json_object_end(j);
    }
    json_array_end(j);
}

/* What was put goes out now and then, so that the room is enough for any number of clusters. */
static void print_json(const struct checked *c, const struct check_options *o, struct text *t,
                       struct text *words)
{
    struct json j;

    json_init(&j, t);
    json_object(&j, NULL);
    json_bool(&j, "valid", c->snapshot != NULL);
    json_array(&j, "errors");
    for (uint32_t i = 0; i < c->errors.count; i++)
        put_error(&j, &c->errors, &c->errors.at[i]);
    json_array_end(&j);
    json_array(&j, "findings");
    for (uint32_t i = 0; i < c->lint.kept; i++) {
        lint_write_json(&j, &c->lint.findings[i]);
        print(t);
    }
    json_array_end(&j);
    put_counts(&j, &c->lint);
    if (o->explain && c->snapshot != NULL)
        put_explained(&j, c->snapshot, words);
    json_object_end(&j);
    print(t);
    putchar('\n');
}

static void show(const struct checked *c, const struct check_options *o)
{
    char *room = malloc(2 * ROOM);
    struct text t, words;

    if (room == NULL)
        return;
    text_init(&t, room, ROOM);
    text_init(&words, room + ROOM, ROOM);
    if (o->json)
        print_json(c, o, &t, &words);
    else
        print_people(c, o, &t);
    free(room);
}

static int verdict(const struct checked *c, const struct check_options *o)
{
    if (c->snapshot == NULL)
        return COMMAND_USAGE;
    return o->strict && lint_count(&c->lint) > 0 ? COMMAND_FAILED : COMMAND_OK;
}

static int check(const struct check_options *o)
{
    struct checked before = {.snapshot = NULL}, now = {.snapshot = NULL};
    int code = COMMAND_USAGE;

    if (o->against.count > 0 && load(&before, &o->against, o, NULL) != CONFIG_OK) {
        show(&before, o);
    } else {
        load(&now, &o->files, o, before.snapshot);
        show(&now, o);
        code = verdict(&now, o);
        release(&now);
    }
    if (o->against.count > 0)
        release(&before);
    return code;
}

int command_check(int argc, char **argv)
{
    struct check_options o = {.explain = false};

    switch (read_options(argc, argv, &o)) {
    case OPTIONS_HELP:
        return COMMAND_OK;
    case OPTIONS_BAD:
        return COMMAND_USAGE;
    case OPTIONS_GO:
        break;
    }
    if (o.files.count > 0)
        return check(&o);
    fprintf(stderr, "firebreak check: check what? write -c FILE\n");
    return COMMAND_USAGE;
}
