/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is valid, but will not do what it seems to: traps of a configuration that was built. A trap
 * is a row of a table and a function over the snapshot; each says where, why with the numbers of
 * this very configuration, and what to write instead. docs/checks.md has a section for each.
 *
 *     struct lint lint;
 *
 *     lint_init(&lint);
 *     if (lint_load(&lint, &load, &errors, &snapshot) == CONFIG_OK)
 *         lint_log(&lint, log);
 *     lint_release(&lint);
 */
#ifndef CONTROL_LINT_H
#define CONTROL_LINT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/text.h"
#include "codec/json.h"
#include "control/config.h"
#include "control/config_error.h"
#include "io/log.h"
#include "model/snapshot.h"

/* More are counted, but not kept: nobody reads them. */
#define LINT_FINDINGS_MAX 200

enum lint_severity {
    LINT_ADVICE,  /* could be said better, or will surprise somebody who comes from Istio */
    LINT_WARNING, /* does not do what it seems to */
    LINT_DANGER,  /* can take the service down */
    LINT_SEVERITY_COUNT
};

/* "advice", "warning", "danger". */
const char *lint_severity_text(enum lint_severity s);

struct lint_finding {
    const char *trap; /* "cap-few-hosts" */
    enum lint_severity severity;
    struct bytes about; /* "cluster 'a'", "route 2 of listener 'web'", "" */
    struct bytes why;
    struct bytes instead; /* what to write */
    bool known;           /* it was there, word for word, in what is to be replaced */
    bool accepted;
    struct bytes reason; /* of the acceptance, as the user wrote it */
    struct config_error place;
    struct bytes file;
};

struct lint {
    struct arena arena;
    struct config_errors places; /* borrows its way to show a line */
    uint32_t kept;
    uint32_t accepted;                    /* of all */
    uint32_t counts[LINT_SEVERITY_COUNT]; /* of those that were not accepted */
    struct lint_finding *findings;        /* the first |kept| of them, in the order of the file */
    bool no_memory;
};

void lint_init(struct lint *l);
void lint_release(struct lint *l);

/*
 * Finds the traps of |s|, which was compiled of |loaded|, not yet closed. |before|: what it is to
 * replace; NULL: nothing. What the loader warned of is among them (istio-says).
 */
void lint_run(struct lint *l, const struct config_loaded *loaded, const struct snapshot *s,
              const struct snapshot *before);

/* The snapshot knows its traps from now on, for the lint_run of its successor. */
void lint_remember(const struct lint *l, struct snapshot *s);

/* What config_load is given. */
struct lint_load {
    const char *const *paths;
    uint32_t count;
    struct files *files;
    struct config_resolver *resolver;
    const struct snapshot *before; /* as for lint_run */
    enum config_follow follow;
};

/* config_load with lint_run and lint_remember in it. */
int lint_load(struct lint *l, const struct lint_load *load, struct config_errors *errors,
              struct snapshot **out);

/* Findings that were not accepted. */
uint32_t lint_count(const struct lint *l);

/* Colours, or none. */
enum lint_style { LINT_PLAIN, LINT_COLOURED };

/* "file:line:column: danger: why [trap]", the line, a caret, and what to write. */
void lint_write_finding(struct text *t, const struct lint_finding *f, enum lint_style style);

void lint_write_json(struct json *j, const struct lint_finding *f);

/* What the log gets of a file with many traps. */
#define LINT_LOGGED_MAX 20u

/* One line each, without those accepted or known, with a pointer to `firebreak check`. */
void lint_log(const struct lint *l, struct log *log);

/* The i-th trap's id; NULL: there are fewer. */
const char *lint_trap_id(uint32_t i);

#endif
