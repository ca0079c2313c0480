/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From what the user wrote to a snapshot: a file in the native form (docs/configuration.md), or
 * the list of `run --to`. Both end in the same builder, so both get the same defaults and checks.
 *
 *     struct config_errors errors;
 *
 *     config_errors_init(&errors);
 *     if (config_load("firebreak.yaml", files, resolver, &errors, &snapshot) != CONFIG_OK)
 *         ... config_errors_write(&text, &errors);
 *     config_errors_release(&errors);
 */
#ifndef CONTROL_CONFIG_H
#define CONTROL_CONFIG_H

#include "base/address.h"
#include "base/bytes.h"
#include "control/config_error.h"
#include "io/files.h"
#include "model/snapshot.h"

enum config_status {
    CONFIG_OK = 0,
    CONFIG_INVALID = -1,    /* the errors say what is wrong */
    CONFIG_UNREADABLE = -2, /* no such file and so on; the one error says so */
    CONFIG_NO_MEMORY = -3
};

/* How names in addresses become numbers; may block. */
struct config_resolver {
    /* First address of |host|, any port: 0, or a negative io_error. */
    int (*resolve)(struct config_resolver *r, struct bytes host, struct address *out);
};

/*
 * In all three: |resolver| may be NULL, then a name is an error. On CONFIG_OK |*out| is a snapshot
 * with one reference, without run-time state (snapshot_attach_state); else it is left alone and
 * there is at least one error.
 */
int config_load(const char *path, struct files *files, struct config_resolver *resolver,
                struct config_errors *errors, struct snapshot **out);

/* The same of bytes in memory; |errors| was opened on them (config_errors_open). */
int config_parse(struct bytes source, struct config_resolver *resolver,
                 struct config_errors *errors, struct snapshot **out);

/* `firebreak run --to a:1,b:2`. Empty texts: the default. */
struct config_run {
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

int config_from_list(const struct config_run *run, struct config_resolver *resolver,
                     struct config_errors *errors, struct snapshot **out);

/* What --admin says against a file: an address, or "off", which is ADDRESS_NONE. */
bool config_parse_address(struct arena *arena, struct bytes text, struct address *out,
                          const char **why);

#endif
