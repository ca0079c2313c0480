/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From what the user wrote to a snapshot: files in the native form and with Istio's documents
 * (docs/configuration.md), or the list of `run --to`. All end in the same builder, so all get the
 * same defaults and checks. No state but what is passed in: called again for each reload.
 *
 *     struct config_errors errors;
 *
 *     config_errors_init(&errors);
 *     if (config_load(paths, 2, files, resolver, &errors, &snapshot) != CONFIG_OK)
 *         ... config_errors_write(&text, &errors);
 *     config_errors_release(&errors);
 *
 * In two steps, for who wants to see what was written, or looks names up without waiting:
 *
 *     struct config_loaded loaded;
 *
 *     status = config_open(&loaded, paths, 2, files, &errors);
 *     if (status == CONFIG_OK)
 *         ... loaded.file, loaded.names
 *         status = config_compile(&loaded, resolver, &snapshot);
 *     config_close(&loaded);
 */
#ifndef CONTROL_CONFIG_H
#define CONTROL_CONFIG_H

#include "base/address.h"
#include "base/bytes.h"
#include "control/config_error.h"
#include "control/config_schema.h"
#include "io/files.h"
#include "model/snapshot.h"

enum config_status {
    CONFIG_OK = 0,
    CONFIG_INVALID = -1,    /* the errors say what is wrong */
    CONFIG_UNREADABLE = -2, /* no such file and so on; the errors say so */
    CONFIG_NO_MEMORY = -3
};

/* How names in addresses become numbers; may block. */
struct config_resolver {
    /* First address of |host|, any port: 0, or a negative io_error. */
    int (*resolve)(struct config_resolver *r, struct bytes host, struct address *out);
};

/*
 * Everything as it was written, typed, with its places. |file->clusters| are the clusters as they
 * will be in the snapshot, in the same order: those of the native document, with what Istio's
 * documents say of them put in, and their subsets. Each part has the place it comes from
 * (field_head; `node->source` is the file, an index into |errors->sources|), NULL where nobody
 * wrote it.
 */
struct config_loaded {
    struct arena arena;
    struct config_errors *errors;
    struct bytes texts[CONFIG_SOURCES_MAX]; /* of the files read, to be given back */
    uint32_t text_count;
    struct config_file *file; /* NULL: could not even be read as keys and values */
    uint32_t name_count;      /* hosts to be looked up, each once */
    const struct bytes *names;
};

/*
 * Reads the files, waits for nothing but them. CONFIG_OK: there is a typed form to be compiled;
 * errors may have been added all the same. |errors| is initialised and outlives |l|.
 * config_close in any case; until then places can be shown, of errors and warnings added too.
 */
int config_open(struct config_loaded *l, const char *const *paths, uint32_t count,
                struct files *files, struct config_errors *errors);
/* The same of texts in memory, which outlive |l|. */
int config_open_texts(struct config_loaded *l, const struct config_source *sources, uint32_t count,
                      struct config_errors *errors);

/*
 * |resolver| may be NULL, then a name is an error. On CONFIG_OK |*out| is a snapshot with one
 * reference, without run-time state (snapshot_attach_state), and there are no errors; else it is
 * left alone and there is at least one.
 */
int config_compile(struct config_loaded *l, struct config_resolver *resolver,
                   struct snapshot **out);

void config_close(struct config_loaded *l);

/* All steps at once. */
int config_load(const char *const *paths, uint32_t count, struct files *files,
                struct config_resolver *resolver, struct config_errors *errors,
                struct snapshot **out);
int config_parse(const struct config_source *sources, uint32_t count,
                 struct config_resolver *resolver, struct config_errors *errors,
                 struct snapshot **out);

/* Whom the clusters of a run follow: as the files say, or all of them one, but for their single
 * differences. */
enum config_follow { FOLLOW_FILES, FOLLOW_FIREBREAK, FOLLOW_ENVOY };

/* Between config_open and config_compile. */
void config_follow(struct config_loaded *l, enum config_follow whom);

/* `firebreak run --to a:1,b:2`. Empty texts: the default. */
struct config_run {
    enum config_follow follow;
    struct bytes to;
    struct bytes listen;     /* 0.0.0.0:8080 */
    struct bytes admin;      /* 127.0.0.1:9901; "off" */
    struct bytes access_log; /* off */
    uint32_t workers;        /* 0: one a CPU */
};

/* What the list becomes: http.web. and cluster.backend. in the metrics. */
#define CONFIG_LIST_LISTENER  "web"
#define CONFIG_LIST_CLUSTER   "backend"
#define CONFIG_LISTEN_DEFAULT "0.0.0.0:8080"

/* As config_open. */
int config_open_list(struct config_loaded *l, const struct config_run *run,
                     struct config_errors *errors);
int config_from_list(const struct config_run *run, struct config_resolver *resolver,
                     struct config_errors *errors, struct snapshot **out);

/* What --admin says against a file: an address, or "off", which is ADDRESS_NONE. */
bool config_parse_address(struct arena *arena, struct bytes text, struct address *out,
                          const char **why);

#endif
