/* SPDX-License-Identifier: Apache-2.0 */
/* `firebreak run`: the proxy, from a list of hosts or a file. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/text.h"
#include "control/config.h"
#include "control/lint.h"
#include "io/log.h"
#include "main/command.h"
#include "main/daemon.h"
#include "main/options.h"
#include "main/resolve.h"
#include "os/files.h"
#include "os/log.h"
#include "os/signals.h"

#define WORKERS_MAX 256

static const struct command_help help = {
    .name = "run",
    .usage = "--to HOST:PORT[,HOST:PORT ...] [OPTION ...]\n"
             "       firebreak run -c FILE [-c FILE ...] [OPTION ...]",
    .summary = "Proxies HTTP/1.1 to the hosts, spreads the load, and takes a host out that fails.\n"
               "Prints \"listening NAME ADDR\" for each listener, and \"admin ADDR\".",
    .notes =
        "Protection of --to:\n"
        "  consecutive 5xx             5     then the host is out\n"
        "  consecutive local failures  3     (refused, reset, timed out)\n"
        "  ejection                    30s   times the number of ejections, at most 5m\n"
        "  sweep (return)              30s\n"
        "  most hosts out at once      20%   but one of a set of two or more; never the last;\n"
        "                                    of fewer than four healthy ones only on total "
        "evidence\n"
        "  retries                     none  but a connect that failed moves to another host, "
        "once,\n"
        "                                    within a budget: 20% of the requests, and 3 a second\n"
        "  total timeout               15s   from the end of the request; connect 5s\n"
        "  requests in flight          70% of the descriptors, and memoryLimit: half of the "
        "memory\n"
        "\n"
        "Signals: TERM and INT finish what is under way and exit (again: at once), USR1 opens the\n"
        "access log anew, HUP loads the -c files anew, as POST /reload on the admin page does: "
        "what\n"
        "is wrong changes nothing and is said, what is right takes effect without losing a "
        "request.\n"
        "\n"
        "Exit codes: 0 stopped as told, 1 failed at work (port in use, ...), 2 bad usage or "
        "configuration.",
    .examples =
        "firebreak run --to 127.0.0.1:9001,127.0.0.1:9002\n"
        "firebreak run --to app-1:8080,app-2:8080 --listen 0.0.0.0:8000 --access-log stdout\n"
        "firebreak run -c /etc/firebreak/firebreak.yaml --workers 4\n"
        "firebreak run -c firebreak.yaml -c destinationrule.yaml",
};

struct run_options {
    const char *to;
    struct option_texts config;
    const char *listen;
    const char *admin;
    const char *access_log;
    uint64_t workers;
    bool watch;
    enum config_follow follow;
    enum log_level level;
    enum os_log_format format;
};

static const char *parse_level(struct bytes value, void *target)
{
    for (unsigned i = 0; i < LOG_LEVEL_COUNT; i++) {
        if (bytes_equal(value, bytes_of(log_level_text((enum log_level)i)))) {
            *(enum log_level *)target = (enum log_level)i;
            return NULL;
        }
    }
    return "no such level; write debug, info, warning or error";
}

const char *command_parse_semantics(struct bytes value, void *target)
{
    bool envoy = bytes_equal(value, BYTES("envoy"));

    if (!envoy && !bytes_equal(value, BYTES("firebreak")))
        return "no such semantics; write firebreak or envoy";
    *(enum config_follow *)target = envoy ? FOLLOW_ENVOY : FOLLOW_FIREBREAK;
    return NULL;
}

static const char *parse_format(struct bytes value, void *target)
{
    bool json = bytes_equal(value, BYTES("json"));

    if (!json && !bytes_equal(value, BYTES("text")))
        return "no such format; write text or json";
    *(enum os_log_format *)target = json ? OS_LOG_JSON : OS_LOG_TEXT;
    return NULL;
}

static int usage(const char *what, const char *instead)
{
    fprintf(stderr, "firebreak run: %s; %s\n", what, instead);
    return COMMAND_USAGE;
}

static int check_options(const struct run_options *o)
{
    if ((o->to == NULL) == (o->config.count == 0))
        return usage("where to?", "write --to HOST:PORT,... or -c FILE, and not both");
    if (o->config.count == 0 && o->watch)
        return usage("--watch goes with -c", "there is no file to watch with --to");
    if (o->config.count > 0 && o->listen != NULL)
        return usage("--listen goes with --to", "with -c write `listen:` in the file");
    return COMMAND_OK;
}

static struct command_option semantics_option(struct run_options *o)
{
    return (struct command_option){
        .name = "semantics",
        .kind = OPTION_PARSED,
        .target = &o->follow,
        .placeholder = "WHOSE",
        .help = "firebreak or envoy, for all clusters [as the file says]: envoy does in all of\n"
                "docs/differences.md as Envoy does; single `differences` of the file still hold",
        .parse = command_parse_semantics,
    };
}

static enum options_verdict read_options(int argc, char **argv, struct run_options *o)
{
    const struct command_option options[] = {
        {.name = "to",
         .kind = OPTION_TEXT,
         .target = &o->to,
         .placeholder = "LIST",
         .help = "hosts, with sane protection and no file"},
        {.name = "config",
         .letter = 'c',
         .kind = OPTION_TEXTS,
         .target = &o->config,
         .placeholder = "FILE",
         .help = "YAML: Firebreak's own form and Istio's DestinationRules\n"
                 "(docs/configuration.md); may be given several times"},
        {.name = "watch",
         .kind = OPTION_FLAG,
         .target = &o->watch,
         .help = "load the files anew when one has changed (looks once a second)"},
        {.name = "listen",
         .kind = OPTION_TEXT,
         .target = &o->listen,
         .placeholder = "ADDR",
         .help = "where clients come [0.0.0.0:8080]; with --to only"},
        {.name = "admin",
         .kind = OPTION_TEXT,
         .target = &o->admin,
         .placeholder = "ADDR",
         .help = "admin pages [127.0.0.1:9901]; off: none"},
        {.name = "workers",
         .kind = OPTION_NUMBER,
         .target = &o->workers,
         .placeholder = "N",
         .help = "loops [one a CPU]",
         .least = 1,
         .most = WORKERS_MAX},
        {.name = "access-log",
         .kind = OPTION_TEXT,
         .target = &o->access_log,
         .placeholder = "PATH",
         .help = "a line a request: stdout, a path, or off [off with --to]"},
        semantics_option(o),
        {.name = "log-level",
         .kind = OPTION_PARSED,
         .target = &o->level,
         .placeholder = "LEVEL",
         .help = "debug, info, warning or error [info]",
         .parse = parse_level},
        {.name = "log-format",
         .kind = OPTION_PARSED,
         .target = &o->format,
         .placeholder = "FORMAT",
         .help = "text or json [text]; the daemon's own log, on standard error",
         .parse = parse_format},
    };

    return options_read(&help, options, sizeof(options) / sizeof(options[0]), argc, argv);
}

/* What a start and each reload need. */
struct run {
    const struct run_options *options;
    struct files files;
    struct log *log;
};

/* What the command line says against the file. */
static bool override(struct snapshot *s, const struct run_options *o, struct text *errors)
{
    const char *why;

    if (o->workers != 0)
        s->workers = (uint32_t)o->workers;
    if (o->access_log != NULL)
        s->access_log.to = bytes_of(o->access_log);
    if (o->admin == NULL || config_parse_address(&s->arena, bytes_of(o->admin), &s->admin, &why))
        return true;
    text_str(errors, "--admin ");
    text_str(errors, o->admin);
    text_str(errors, ": ");
    text_str(errors, why);
    text_char(errors, '\n');
    return false;
}

static int load_list(const struct run_options *o, struct config_resolver *resolver,
                     struct config_errors *errors, struct snapshot **out)
{
    const struct config_run run = {
        .to = bytes_of(o->to),
        .listen = bytes_of(o->listen),
        .admin = bytes_of(o->admin),
        .access_log = bytes_of(o->access_log),
        .workers = (uint32_t)o->workers,
        .follow = o->follow,
    };

    return config_from_list(&run, resolver, errors, out);
}

static int load_files(struct run *r, const struct snapshot *before,
                      struct config_resolver *resolver, struct config_errors *errors,
                      struct snapshot **out)
{
    const struct lint_load load = {.paths = r->options->config.items,
                                   .count = (uint32_t)r->options->config.count,
                                   .files = &r->files,
                                   .resolver = resolver,
                                   .before = before,
                                   .follow = r->options->follow};
    struct lint lint;
    int status;

    lint_init(&lint);
    status = lint_load(&lint, &load, errors, out);
    if (status == CONFIG_OK)
        lint_log(&lint, r->log);
    lint_release(&lint);
    return status;
}

static struct snapshot *load(void *owner, const struct snapshot *before, struct text *why)
{
    struct run *r = owner;
    struct config_resolver *resolver = resolve_open(before);
    struct snapshot *s = NULL;
    struct config_errors errors;
    int status;

    config_errors_init(&errors);
    status = r->options->to != NULL ? load_list(r->options, resolver, &errors, &s)
                                    : load_files(r, before, resolver, &errors, &s);
    if (status != CONFIG_OK)
        config_errors_write(why, &errors);
    config_errors_release(&errors);
    resolve_close(resolver);
    if (s == NULL || r->options->to != NULL || override(s, r->options, why))
        return s;
    snapshot_drop(s);
    return NULL;
}

static struct snapshot *first_load(struct run *r)
{
    size_t room = 256 * 1024;
    char *data = malloc(room);
    struct snapshot *s;
    struct text why;

    if (data == NULL)
        return NULL;
    text_init(&why, data, room);
    s = load(r, NULL, &why);
    fwrite(why.data, 1, why.len, stderr);
    free(data);
    return s;
}

static int run(const struct run_options *o)
{
    struct run r = {.options = o, .log = os_log_create(STDERR_FILENO, o->format, o->level)};
    const struct config_source_files source = {.load = load,
                                               .owner = &r,
                                               .paths = o->config.items,
                                               .count = (uint32_t)o->config.count,
                                               .watch = o->watch};
    struct daemon_setup setup = {.source = &source, .files = &r.files, .log = r.log};
    int code = COMMAND_USAGE;

    os_signals_block();
    os_files_init(&r.files);
    setup.snapshot = first_load(&r);
    if (setup.snapshot != NULL)
        code = daemon_run(&setup);
    snapshot_drop(setup.snapshot);
    os_log_free(r.log);
    return code;
}

int command_run(int argc, char **argv)
{
    struct run_options o = {.level = LOG_INFO, .format = OS_LOG_TEXT};
    int code;

    switch (read_options(argc, argv, &o)) {
    case OPTIONS_HELP:
        return COMMAND_OK;
    case OPTIONS_BAD:
        return COMMAND_USAGE;
    case OPTIONS_GO:
        break;
    }
    code = check_options(&o);
    return code == COMMAND_OK ? run(&o) : code;
}
