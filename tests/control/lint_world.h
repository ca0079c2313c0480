/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of traps: a configuration in which there is none, and room to put one in. */
#ifndef TESTS_CONTROL_LINT_WORLD_H
#define TESTS_CONTROL_LINT_WORLD_H

#include "control/lint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* What is not said is as in the quiet one. */
struct parts {
    unsigned hosts;         /* 4 */
    const char *route;      /* "timeout: 2s": of the route, within braces */
    const char *cluster;    /* of the cluster, besides its name and hosts; "": connectTimeout */
    const char *pool;       /* of connectionPool; NULL: no such block */
    const char *outlier;    /* of outlierDetection; NULL: no such block */
    const char *resilience; /* of resilience */
    const char *file;       /* lines of the file */
};

static char yaml[16 * 1024];

static inline const char *write_yaml(const struct parts *p)
{
    char hosts[4096] = "";
    size_t at = 0;
    int n;

    for (unsigned i = 0; i < (p->hosts == 0 ? 4 : p->hosts); i++)
        at += (size_t)snprintf(hosts + at, sizeof(hosts) - at, "%s{address: 127.0.0.1:%u}",
                               i == 0 ? "" : ", ", i + 1);
    n = snprintf(yaml, sizeof(yaml),
                 "%s\nlisteners:\n- name: web\n  listen: 127.0.0.1:80\n  routes:\n"
                 "  - {cluster: a, %s}\nclusters:\n- name: a\n  endpoints: [%s]\n  %s\n"
                 "%s%s%s%s%s%s%s  resilience: {%s}\n",
                 p->file == NULL ? "" : p->file, p->route == NULL ? "timeout: 2s" : p->route, hosts,
                 p->cluster == NULL ? "connectTimeout: 300ms" : p->cluster,
                 p->pool == NULL && p->outlier == NULL ? "" : "  trafficPolicy:\n",
                 p->pool == NULL ? "" : "    connectionPool: {", p->pool == NULL ? "" : p->pool,
                 p->pool == NULL ? "" : "}\n", p->outlier == NULL ? "" : "    outlierDetection: {",
                 p->outlier == NULL ? "" : p->outlier, p->outlier == NULL ? "" : "}\n",
                 p->resilience == NULL ? "" : p->resilience);
    assert_true(n > 0 && (size_t)n < sizeof(yaml));
    return yaml;
}

struct looked_at {
    struct config_errors errors;
    struct lint lint;
    struct snapshot *snapshot;
};

static inline void look_at(struct looked_at *w, const char *text, const struct snapshot *before)
{
    const struct config_source source = {BYTES("f.yaml"), bytes_of(text)};
    struct config_loaded loaded;
    char shown[4096];
    struct text t;

    w->snapshot = NULL;
    config_errors_init(&w->errors);
    lint_init(&w->lint);
    text_init(&t, shown, sizeof(shown));
    if (config_open_texts(&loaded, &source, 1, &w->errors) == CONFIG_OK &&
        config_compile(&loaded, NULL, &w->snapshot) == CONFIG_OK)
        lint_run(&w->lint, &loaded, w->snapshot, before);
    config_close(&loaded);
    config_errors_write(&t, &w->errors);
    if (w->snapshot == NULL)
        fail_msg("not valid:\n%s\n%s", text, text_end(&t));
}

static inline void look_away(struct looked_at *w)
{
    snapshot_drop(w->snapshot);
    lint_release(&w->lint);
    config_errors_release(&w->errors);
}

static inline const struct lint_finding *find(const struct looked_at *w, const char *trap)
{
    for (uint32_t i = 0; i < w->lint.kept; i++)
        if (strcmp(w->lint.findings[i].trap, trap) == 0)
            return &w->lint.findings[i];
    return NULL;
}

/* The findings' names with a blank between, in the order of the file. */
static inline const char *names(const struct looked_at *w)
{
    static char room[2048];
    struct text t;

    text_init(&t, room, sizeof(room));
    for (uint32_t i = 0; i < w->lint.kept; i++) {
        text_str(&t, i == 0 ? "" : " ");
        text_str(&t, w->lint.findings[i].trap);
    }
    return text_end(&t);
}

struct border {
    const char *trap; /* those found, in the order of the file; "": none */
    struct parts parts;
};

static inline void check_border(const struct border *b)
{
    struct looked_at w;

    look_at(&w, write_yaml(&b->parts), NULL);
    if (strcmp(names(&w), b->trap) != 0)
        fail_msg("expected '%s', found '%s' in\n%s", b->trap, names(&w), yaml);
    look_away(&w);
}

#define CHECK_ALL(rows)                                                                            \
    for (size_t i = 0; i < sizeof(rows) / sizeof((rows)[0]); i++)                                  \
    check_border(&(rows)[i])

#endif
