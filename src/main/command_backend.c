/* SPDX-License-Identifier: Apache-2.0 */
/* firebreak backend: HTTP/1.1 servers to be proxied to. */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/text.h"
#include "io/error.h"
#include "lab/backend.h"
#include "main/command.h"
#include "main/options.h"
#include "os/process.h"

#define COUNT_OF(table) (sizeof(table) / sizeof((table)[0]))

static const struct command_help help = {
    .name = "backend",
    .usage = "[OPTION ...]",
    .summary =
        "HTTP/1.1 servers with a service time, bounded workers with a queue, and faults that are\n"
        "switched while they run. Prints \"listening ADDR\" for each, and \"control ADDR\".",
    .notes =
        "Paths: / /delay/MS /status/CODE /echo /bytes/N /healthz /readyz. The two probes need no\n"
        "worker. Each answer says in x-firebreak-backend who gave it.\n"
        "\n"
        "Faults, by POST /fault on the control address, from the next request on, on live\n"
        "connections too:\n"
        "  {\"fault\": \"delay\", \"value\": \"200ms\"}                 later by that\n"
        "  {\"fault\": \"jitter\", \"value\": \"50ms\"}                 later by 0 to that\n"
        "  {\"fault\": \"slow\", \"value\": 5}                        service takes 5 times as "
        "long\n"
        "  {\"fault\": \"status\", \"value\": 503}                    answers that\n"
        "  {\"fault\": \"refuse\"}                                  closes the port\n"
        "  {\"fault\": \"accept-reset\"}                            accepts and resets\n"
        "  {\"fault\": \"hang\"}                                    never answers; keeps its "
        "worker\n"
        "  {\"fault\": \"reset-mid-body\"}                          resets after half of the body\n"
        "  {\"fault\": \"stop-reading\"}                            reads the head, then nothing\n"
        "  {\"fault\": \"drip\", \"value\": \"100ms\", \"bytes\": 1}      body so many bytes at a "
        "time\n"
        "                                                       (not that of /echo)\n"
        "  {\"fault\": \"stall-every\", \"value\": \"5s\", \"stall\": \"500ms\"}   all work stands "
        "still\n"
        "  {\"fault\": \"heavy\", \"value\": 10, \"bytes\": 65536}     no fault: / is asked for so "
        "many bytes,\n"
        "                                                       and takes 10 times as long\n"
        "each with \"server\": 0 (or \"all\"), \"probability\": 0.5, \"path\": \"/delay\" (its "
        "beginning),\n"
        "\"for\": \"10s\", \"after\": 100 (so many matching requests are let by first).\n"
        "GET /fault lists them, DELETE /fault clears them, GET /stats counts.",
    .examples = "firebreak backend --listen 127.0.0.1:9001 --count 3\n"
                "firebreak backend --service lognormal:10ms:0.5 --workers 4 --control "
                "127.0.0.1:9100\n"
                "curl -d '{\"fault\": \"status\", \"value\": 503, \"server\": 0, \"probability\": "
                "0.5}' 127.0.0.1:9100/fault",
};

/* What was typed. */
struct arguments {
    struct backend_options backend;
    uint64_t count;
    uint64_t workers;
    uint64_t queue;
};

static const char *parse_service(struct bytes value, void *target)
{
    return distribution_parse(value, target);
}

static const char *parse_control(struct bytes value, void *target)
{
    struct backend_options *o = target;

    o->has_control = true;
    return option_parse_address(value, &o->control);
}

static enum options_verdict read_arguments(struct arguments *a, int argc, char **argv)
{
    const struct command_option options[] = {
        {.name = "listen",
         .kind = OPTION_PARSED,
         .target = &a->backend.first,
         .parse = option_parse_address,
         .placeholder = "ADDR",
         .help = "of the first server (127.0.0.1:9001); port 0: free ones"},
        {.name = "count",
         .kind = OPTION_NUMBER,
         .target = &a->count,
         .placeholder = "N",
         .least = 1,
         .most = BACKEND_COUNT_MAX,
         .help = "servers, at consecutive ports (1)"},
        {.name = "control",
         .kind = OPTION_PARSED,
         .target = &a->backend,
         .parse = parse_control,
         .placeholder = "ADDR",
         .help = "where faults are switched (nowhere)"},
        {.name = "workers",
         .kind = OPTION_NUMBER,
         .target = &a->workers,
         .placeholder = "N",
         .least = 1,
         .most = 1000000,
         .help = "requests that one server works on at once (16)"},
        {.name = "queue",
         .kind = OPTION_NUMBER,
         .target = &a->queue,
         .placeholder = "N",
         .least = 0,
         .most = 1000000,
         .help = "requests that wait for one server's workers (1024); more get 503"},
        {.name = "service",
         .kind = OPTION_PARSED,
         .target = &a->backend.service,
         .parse = parse_service,
         .placeholder = "DIST",
         .help = "how long a worker takes (none):\n" DISTRIBUTION_FORMS},
        {.name = "seed",
         .kind = OPTION_NUMBER,
         .target = &a->backend.seed,
         .placeholder = "N",
         .help = "of all that is drawn at random (1)"},
    };

    *a = (struct arguments){
        .backend = {.first = {.kind = ADDRESS_IPV4, .port = 9001, .ip = {127, 0, 0, 1}}, .seed = 1},
        .count = 1,
        .workers = 16,
        .queue = 1024,
    };
    return options_read(&help, options, COUNT_OF(options), argc, argv);
}

static bool ports_fit(const struct arguments *a)
{
    uint64_t last = a->backend.first.port + a->count - 1;

    if (a->backend.first.port == 0 || last <= UINT16_MAX)
        return true;
    fprintf(stderr,
            "firebreak backend: --listen, --count: the last port would be %" PRIu64
            "; ports end at 65535\n",
            last);
    return false;
}

static void print_address(const char *what, const struct address *a)
{
    char room[ADDRESS_TEXT_MAX];
    struct text t;

    text_init(&t, room, sizeof(room));
    address_write(&t, a);
    printf("%s %s\n", what, text_end(&t));
}

static void announce(const struct backend *b, const struct backend_options *o)
{
    struct address a;

    for (uint32_t i = 0; i < o->count; i++) {
        backend_address(b, i, &a);
        print_address("listening", &a);
    }
    if (o->has_control) {
        backend_control_address(b, &a);
        print_address("control", &a);
    }
    fflush(stdout);
}

static int serve(const struct backend_options *o)
{
    struct lab_loop loop;
    struct backend *b;
    char room[256];
    struct text why;
    int err = lab_loop_open(&loop);

    if (err != IO_OK) {
        fprintf(stderr, "firebreak backend: %s\n", io_error_text(err));
        return COMMAND_FAILED;
    }
    text_init(&why, room, sizeof(room));
    b = backend_create(&loop, o, &why);
    if (b == NULL) {
        fprintf(stderr, "firebreak backend: %s\n", text_end(&why));
        lab_loop_close(&loop);
        return COMMAND_FAILED;
    }
    announce(b, o);
    lab_loop_run(&loop);
    backend_free(b);
    lab_loop_close(&loop);
    return COMMAND_OK;
}

int command_backend(int argc, char **argv)
{
    struct arguments a;
    enum options_verdict v = read_arguments(&a, argc, argv);

    if (v != OPTIONS_GO)
        return v == OPTIONS_HELP ? COMMAND_OK : COMMAND_USAGE;
    if (!ports_fit(&a))
        return COMMAND_USAGE;
    a.backend.count = (uint32_t)a.count;
    a.backend.workers = (uint32_t)a.workers;
    a.backend.queue = (uint32_t)a.queue;
    (void)os_process_raise_descriptors();
    return serve(&a.backend);
}
