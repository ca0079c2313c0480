/* SPDX-License-Identifier: Apache-2.0 */
/* firebreak load: open-loop load on one URL. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/list.h"
#include "base/text.h"
#include "io/error.h"
#include "lab/load.h"
#include "lab/load_report.h"
#include "lab/show.h"
#include "lab/url.h"
#include "main/command.h"
#include "main/options.h"
#include "os/process.h"
#include "os/resolver.h"

#define COUNT_OF(table)   (sizeof(table) / sizeof((table)[0]))
#define HEAD_ROOM         65536
#define RATE_MAX          1000000.0
#define BODY_MAX          (UINT64_C(1) << 40)
#define CONNECTIONS_MAX   1000000
#define CONNECTIONS_LEAST 16
#define CONNECTIONS_USUAL 4096 /* with more, connecting is slow: the kernel seeks a free port */
#define OWN_DESCRIPTORS   64   /* for everything but connections */

static const struct command_help help = {
    .name = "load",
    .usage = "--url URL --rate N --duration T [OPTION ...]",
    .summary =
        "Open-loop load: requests become due by a schedule that no slow answer can hold up, and\n"
        "latency counts from that moment. A request for which no connection is free is dropped "
        "and\n"
        "counted apart. Success is a status from 200 to 399.",
    .notes = "A GET without a body on an idle connection that the server has just closed is sent\n"
             "again, once, on a fresh one, as browsers do, and counted as resent.\n"
             "--requests writes a line as each request ends, with tabs between: when it was due "
             "(Unix\n"
             "time), after how many ms from then it ended, how, its status, its "
             "x-firebreak-backend.\n"
             "Exit code 1: nothing succeeded.",
    .examples = "firebreak load --url http://127.0.0.1:8080/ --rate 300 --duration 30s\n"
                "firebreak load --url http://127.0.0.1:9001/echo --method POST --body-size 64KiB "
                "--rate 50 --duration 10s --json",
};

/* What was typed. */
struct arguments {
    const char *url_text;
    struct url url;
    const char *method;
    struct option_texts headers;
    struct load_options load;
    uint64_t body;
    uint64_t connections; /* 0: to be chosen */
    const char *requests; /* a file; NULL: none */
    bool json;
};

/* A load under way, with its lines of progress. */
struct session {
    struct lab_loop loop;
    struct arguments *args;
    struct load *load;
    struct appointment second;
    FILE *requests;        /* NULL: none */
    wall_ns epoch;         /* when the loop's clock was at 0 */
    struct latency recent; /* of this second */
    uint64_t recent_failures;
    unsigned seconds;
    int lookup_error;
    bool found;
};

static const char *parse_url(struct bytes value, void *target)
{
    struct arguments *a = target;
    const char *why = url_parse(value, &a->url);

    if (why == NULL)
        a->url_text = (const char *)value.data;
    return why;
}

static const char *parse_rate(struct bytes value, void *target)
{
    const char *text = (const char *)value.data;
    char *end;
    double rate;

    if (value.len > 2 && bytes_equal(bytes_slice(value, value.len - 2, 2), BYTES("/s")))
        value.len -= 2;
    rate = strtod(text, &end);
    if (end != text + value.len || !(rate >= 0.001) || rate > RATE_MAX)
        return "write how many requests a second, from 0.001 to 1000000";
    *(double *)target = rate;
    return NULL;
}

static const char *parse_arrivals(struct bytes value, void *target)
{
    enum arrivals_kind *out = target;

    if (bytes_equal(value, BYTES("poisson")))
        *out = ARRIVALS_POISSON;
    else if (bytes_equal(value, BYTES("constant")))
        *out = ARRIVALS_CONSTANT;
    else
        return "write poisson or constant";
    return NULL;
}

static bool is_token_byte(uint8_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           (c != 0 && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

static bool is_token(struct bytes b)
{
    for (size_t i = 0; i < b.len; i++)
        if (!is_token_byte(b.data[i]))
            return false;
    return b.len > 0;
}

static const char *parse_method(struct bytes value, void *target)
{
    if (!is_token(value) || value.len > 32)
        return "write a method such as GET or POST";
    if (bytes_equal(value, BYTES("CONNECT")))
        return "CONNECT is not supported; write a method such as GET or POST";
    *(const char **)target = (const char *)value.data;
    return NULL;
}

/* A table of what can be typed. */
static enum options_verdict read_options(struct arguments *a, int argc, char **argv)
{
    const struct command_option options[] = {
        {.name = "url",
         .kind = OPTION_PARSED,
         .target = a,
         .parse = parse_url,
         .placeholder = "URL",
         .help = "http://HOST:PORT/PATH"},
        {.name = "rate",
         .kind = OPTION_PARSED,
         .target = &a->load.rate,
         .parse = parse_rate,
         .placeholder = "N",
         .help = "requests due a second"},
        {.name = "duration",
         .kind = OPTION_DURATION,
         .target = &a->load.duration,
         .placeholder = "T",
         .least = NS_PER_MS,
         .most = 7 * 24 * 3600 * NS_PER_S,
         .help = "how long requests become due: 10s, 5m"},
        {.name = "arrivals",
         .kind = OPTION_PARSED,
         .target = &a->load.arrivals,
         .parse = parse_arrivals,
         .placeholder = "KIND",
         .help = "poisson or constant (poisson)"},
        {.name = "connections",
         .kind = OPTION_NUMBER,
         .target = &a->connections,
         .placeholder = "MAX",
         .least = 1,
         .most = CONNECTIONS_MAX,
         .help = "most at once (rate x timeout, at most 4096)"},
        {.name = "timeout",
         .kind = OPTION_DURATION,
         .target = &a->load.timeout,
         .placeholder = "T",
         .least = NS_PER_MS,
         .most = 3600 * NS_PER_S,
         .help = "of a request, from when it was due (15s)"},
        {.name = "method",
         .kind = OPTION_PARSED,
         .target = &a->method,
         .parse = parse_method,
         .placeholder = "M",
         .help = "GET, POST, ... (GET; POST with --body-size)"},
        {.name = "body-size",
         .kind = OPTION_SIZE,
         .target = &a->body,
         .placeholder = "SIZE",
         .most = BODY_MAX,
         .help = "bytes sent with each request: 1000, 64KiB"},
        {.name = "header",
         .letter = 'H',
         .kind = OPTION_TEXTS,
         .target = &a->headers,
         .placeholder = "\"NAME: VALUE\"",
         .help = "sent with each request; may be given several times"},
        {.name = "seed",
         .kind = OPTION_NUMBER,
         .target = &a->load.seed,
         .placeholder = "N",
         .help = "of the arrivals (1)"},
        {.name = "requests",
         .kind = OPTION_TEXT,
         .target = &a->requests,
         .placeholder = "PATH",
         .help = "a file for a line each"},
        {.name = "json",
         .kind = OPTION_FLAG,
         .target = &a->json,
         .help = "the summary as one JSON object"},
    };

    *a = (struct arguments){
        .load = {.arrivals = ARRIVALS_POISSON, .timeout = 15 * NS_PER_S, .seed = 1}};
    return options_read(&help, options, COUNT_OF(options), argc, argv);
}

static enum options_verdict missing(const char *option)
{
    fprintf(stderr, "firebreak load: %s is missing; firebreak load --help has examples\n", option);
    return OPTIONS_BAD;
}

static enum options_verdict read_arguments(struct arguments *a, int argc, char **argv)
{
    enum options_verdict v = read_options(a, argc, argv);

    if (v != OPTIONS_GO)
        return v;
    if (a->url_text == NULL)
        return missing("--url");
    if (a->load.rate == 0.0)
        return missing("--rate");
    if (a->load.duration == 0)
        return missing("--duration");
    if (a->method == NULL)
        a->method = a->body > 0 ? "POST" : "GET";
    return OPTIONS_GO;
}

/* --- the request --- */

static bool put_header(struct text *t, const char *line)
{
    struct bytes b = bytes_of(line);
    size_t colon = bytes_find(b, ':');
    struct bytes name = bytes_slice(b, 0, colon);
    struct bytes value = bytes_trim(bytes_skip(b, colon + 1));
    bool good = colon < b.len && is_token(name);

    for (size_t i = 0; i < value.len; i++)
        if ((value.data[i] < ' ' && value.data[i] != '\t') || value.data[i] == 0x7f)
            good = false;
    if (!good) {
        fprintf(stderr, "firebreak load: --header \"%s\": write it like \"x-name: value\"\n", line);
        return false;
    }
    if (bytes_equal_nocase(name, BYTES("content-length")) ||
        bytes_equal_nocase(name, BYTES("transfer-encoding"))) {
        fprintf(stderr, "firebreak load: --header \"%s\": the framing follows from --body-size\n",
                line);
        return false;
    }
    text_put(t, name);
    text_str(t, ": ");
    text_put(t, value);
    text_str(t, "\r\n");
    return true;
}

static bool names_host(const char *line)
{
    return bytes_equal_nocase(bytes_slice(bytes_of(line), 0, 5), BYTES("host:"));
}

/* False: an error was printed. */
static bool write_head(const struct arguments *a, struct text *t)
{
    bool has_host = false;

    text_str(t, a->method);
    text_char(t, ' ');
    text_put(t, a->url.target);
    text_str(t, " HTTP/1.1\r\n");
    for (size_t i = 0; i < a->headers.count; i++) {
        has_host = has_host || names_host(a->headers.items[i]);
        if (!put_header(t, a->headers.items[i]))
            return false;
    }
    if (!has_host) {
        text_str(t, "host: ");
        text_put(t, a->url.authority);
        text_str(t, "\r\n");
    }
    if (a->body > 0 || method_lookup(bytes_of(a->method)) == METHOD_POST) {
        text_str(t, "content-length: ");
        text_u64(t, a->body);
        text_str(t, "\r\n");
    }
    text_str(t, "user-agent: firebreak-load/" FIREBREAK_VERSION "\r\n\r\n");
    if (t->failed)
        fprintf(stderr, "firebreak load: --header: all together they are larger than 64 KiB\n");
    return !t->failed;
}

/* --- the address --- */

/* IPv4 first: what listens at "localhost" more often than not listens there. */
static void looked_up(void *owner, int error, const struct address *addresses, size_t n,
                      span_ns ttl)
{
    struct session *s = owner;

    (void)ttl;
    s->found = true;
    s->lookup_error = n == 0 ? error : IO_OK;
    if (n > 0)
        s->args->load.to = addresses[0];
    for (size_t i = n; i > 0; i--)
        if (addresses[i - 1].kind == ADDRESS_IPV4)
            s->args->load.to = addresses[i - 1];
}

static int look_up(struct session *s)
{
    struct resolver *resolver;
    int err;

    if (address_parse_ip(s->args->url.host, &s->args->load.to))
        return IO_OK;
    err = os_resolver_create(s->loop.poller, NULL, &resolver);
    if (err != IO_OK)
        return err;
    resolver_lookup(resolver, s->args->url.host, looked_up, s);
    while (!s->found && !s->loop.stopped)
        lab_loop_turn(&s->loop);
    os_resolver_free(resolver);
    return s->lookup_error;
}

static bool find_address(struct session *s)
{
    int err = look_up(s);

    if (err == IO_OK && !s->loop.stopped) {
        s->args->load.to.port = s->args->url.port;
        return true;
    }
    fprintf(stderr, "firebreak load: --url %s: the host: %s\n", s->args->url_text,
            s->loop.stopped ? "interrupted" : io_error_text(err));
    return false;
}

/* --- the run --- */

static void write_request(struct session *s, const struct shot *shot, const char *peer)
{
    fprintf(s->requests, "%.6f\t%.3f\t%s\t%" PRIu32 "\t%s\n",
            (double)(s->epoch + shot->due_at) / (double)NS_PER_S,
            (double)shot_latency(shot) / (double)NS_PER_MS, call_outcome_text(shot->outcome),
            shot->status, peer);
}

static void observe(void *observer, const struct shot *shot, const char *peer)
{
    struct session *s = observer;

    if (s->requests != NULL)
        write_request(s, shot, peer);
    latency_record(&s->recent, shot_latency(shot));
    s->recent_failures += !shot_succeeded(shot);
}

static void print_progress(struct session *s)
{
    char room[256];
    struct text t;

    text_init(&t, room, sizeof(room));
    text_u64(&t, s->seconds);
    text_str(&t, "s  ended ");
    text_u64(&t, latency_count(&s->recent));
    text_str(&t, "  failed ");
    text_u64(&t, s->recent_failures);
    text_str(&t, "  p50 ");
    show_span(&t, latency_quantile(&s->recent, 0.5));
    text_str(&t, "  p99 ");
    show_span(&t, latency_quantile(&s->recent, 0.99));
    text_str(&t, "  under way ");
    text_u64(&t, load_in_flight(s->load));
    text_str(&t, "  dropped so far ");
    text_u64(&t, load_tally(s->load)->dropped);
    fprintf(stderr, "%s\n", text_end(&t));
}

static void each_second(struct appointment *a, mono_ns now)
{
    struct session *s = CONTAINER_OF(a, struct session, second);

    s->seconds++;
    print_progress(s);
    s->recent = (struct latency){.max = 0};
    s->recent_failures = 0;
    schedule_arm(&s->loop.schedule, a, mono_after(now, NS_PER_S));
}

static int print_report(const struct session *s)
{
    const struct load_report r = {.url = s->args->url_text,
                                  .options = &s->args->load,
                                  .load = s->load,
                                  .interrupted = s->loop.interrupted};
    size_t room = LOAD_REPORT_ROOM + 6 * strlen(s->args->url_text);
    char *data = malloc(room);
    struct text t;

    if (data == NULL)
        return COMMAND_FAILED;
    text_init(&t, data, room);
    if (s->args->json)
        load_report_json(&r, &t);
    else
        load_report_text(&r, &t);
    fwrite(t.data, 1, t.len, stdout);
    free(data);
    if (fflush(stdout) != 0) {
        perror("firebreak load: cannot write the summary");
        return COMMAND_FAILED;
    }
    return load_tally(s->load)->succeeded > 0 ? COMMAND_OK : COMMAND_FAILED;
}

static int run(struct session *s)
{
    int code;

    if (!find_address(s))
        return COMMAND_FAILED;
    s->load = load_create(&s->loop, &s->args->load);
    if (s->load == NULL) {
        fprintf(stderr, "firebreak load: out of memory\n");
        return COMMAND_FAILED;
    }
    appointment_init(&s->second, each_second);
    if (isatty(STDERR_FILENO))
        schedule_arm(&s->loop.schedule, &s->second, mono_after(s->loop.now, NS_PER_S));
    s->epoch = clock_wall(&s->loop.clock) - s->loop.now;
    load_start(s->load);
    while (!load_done(s->load) && !s->loop.stopped)
        lab_loop_turn(&s->loop);
    load_stop(s->load);
    code = print_report(s);
    load_free(s->load);
    return code;
}

static int run_recorded(struct session *s)
{
    int code;
    bool whole;

    s->requests = fopen(s->args->requests, "w");
    if (s->requests == NULL) {
        fprintf(stderr, "firebreak load: --requests %s: %s\n", s->args->requests, strerror(errno));
        return COMMAND_FAILED;
    }
    fputs("due\tms\toutcome\tstatus\tbackend\n", s->requests);
    code = run(s);
    whole = ferror(s->requests) == 0;
    if (fclose(s->requests) == 0 && whole)
        return code;
    fprintf(stderr, "firebreak load: --requests %s: not all of it could be written\n",
            s->args->requests);
    return COMMAND_FAILED;
}

static uint32_t choose_connections(const struct arguments *a)
{
    uint64_t room = os_process_raise_descriptors();
    double wanted = a->load.rate * ((double)a->load.timeout / (double)NS_PER_S);

    room = room > 2 * OWN_DESCRIPTORS ? room - OWN_DESCRIPTORS : OWN_DESCRIPTORS;
    if (a->connections > room)
        fprintf(stderr, "firebreak load: --connections: only %lu descriptors can be had\n",
                (unsigned long)room);
    if (a->connections > 0)
        wanted = (double)a->connections;
    else if (wanted < CONNECTIONS_LEAST)
        wanted = CONNECTIONS_LEAST;
    else if (wanted > CONNECTIONS_USUAL)
        wanted = CONNECTIONS_USUAL;
    return wanted < (double)room ? (uint32_t)wanted : (uint32_t)room;
}

int command_load(int argc, char **argv)
{
    static char head[HEAD_ROOM]; /* too large for the stack */
    struct session s = {.seconds = 0};
    struct arguments a;
    struct text t;
    enum options_verdict v = read_arguments(&a, argc, argv);
    int code;

    if (v != OPTIONS_GO)
        return v == OPTIONS_HELP ? COMMAND_OK : COMMAND_USAGE;
    text_init(&t, head, sizeof(head));
    if (!write_head(&a, &t))
        return COMMAND_USAGE;
    a.load.request = (struct call_request){
        .method = method_lookup(bytes_of(a.method)), .head = text_bytes(&t), .body = a.body};
    a.load.connections = choose_connections(&a);
    a.load.observe = observe;
    a.load.observer = &s;
    s.args = &a;
    if (lab_loop_open(&s.loop) != IO_OK) {
        fprintf(stderr, "firebreak load: no descriptors or memory for a loop\n");
        return COMMAND_FAILED;
    }
    code = a.requests == NULL ? run(&s) : run_recorded(&s);
    lab_loop_close(&s.loop);
    return code;
}
