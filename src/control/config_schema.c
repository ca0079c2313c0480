/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of the file, its listeners and their routes. Clusters: config_schema_cluster.c. */
#include "control/config_schema.h"

#define YEAR (365 * 24 * 3600 * NS_PER_S)

#define AT(member) offsetof(struct config_match, member)
static const struct field match_rows[] = {
    {.name = "hosts",
     .kind = FIELD_TEXTS,
     .at = AT(hosts),
     .preset_text = "any host",
     .help = "`Host` of the request, with or without its port: `example.test`, `*.example.test`, "
             "or `*` for any"},
    {.name = "pathPrefix",
     .kind = FIELD_TEXT,
     .at = AT(path_prefix),
     .preset_text = "/",
     .help = "what the normalised path begins with; `/a` matches `/ab` as well"},
    {.name = "path",
     .kind = FIELD_TEXT,
     .at = AT(path),
     .help = "the whole normalised path, instead of `pathPrefix`"},
    {.name = "methods",
     .kind = FIELD_TEXTS,
     .at = AT(methods),
     .preset_text = "any method",
     .help = "methods of the request, in capitals"},
    {.name = "headers", .kind = FIELD_LATER, .help = "matching on headers"},
    {.name = "query", .kind = FIELD_LATER, .help = "matching on the query"},
    {.name = NULL},
};
#undef AT

static const struct fields match_fields = {
    .name = "match",
    .path = "listeners[].routes[].match",
    .size = sizeof(struct config_match),
    .rows = match_rows,
    .help = "All that is given must match.",
};

#define AT(member) offsetof(struct config_route, member)
static const struct field route_rows[] = {
    {.name = "name", .kind = FIELD_NAME, .at = AT(name), .help = "shown in the access log"},
    {.name = "match",
     .kind = FIELD_OBJECT,
     .at = AT(match),
     .of = &match_fields,
     .preset_text = "every request",
     .help = "which requests take this route"},
    {.name = "cluster",
     .kind = FIELD_NAME,
     .at = AT(cluster),
     .required = true,
     .help = "name of the cluster they go to"},
    {.name = "timeout",
     .kind = FIELD_SPAN,
     .at = AT(timeout),
     .min = NS_PER_MS,
     .max = YEAR,
     .preset = DEFAULT_ROUTE_TIMEOUT,
     .word = "none",
     .word_value = MONO_NEVER,
     .zero_is_word = true,
     .help = "total, from the end of the request to the end of the answer; over it: 504 UT"},
    {.name = "perTryTimeout",
     .kind = FIELD_SPAN,
     .at = AT(per_try_timeout),
     .min = NS_PER_MS,
     .max = YEAR,
     .preset = MONO_NEVER,
     .word = "none",
     .word_value = MONO_NEVER,
     .zero_is_word = true,
     .help = "the same, for each attempt"},
    {.name = "idleTimeout",
     .kind = FIELD_SPAN,
     .at = AT(idle_timeout),
     .min = NS_PER_MS,
     .max = YEAR,
     .preset = DEFAULT_STREAM_IDLE,
     .word = "none",
     .word_value = MONO_NEVER,
     .zero_is_word = true,
     .help = "longest time in which nothing moves either way; the only one after an upgrade"},
    {.name = "requestHeaders", .kind = FIELD_LATER, .help = "changing headers"},
    {.name = "responseHeaders", .kind = FIELD_LATER, .help = "changing headers"},
    {.name = "class", .kind = FIELD_LATER, .help = "detection by class of request"},
    {.name = "largeBody", .kind = FIELD_LATER, .help = "detection by class of request"},
    {.name = "priority", .kind = FIELD_LATER, .help = "load shedding"},
    {.name = "deadline", .kind = FIELD_LATER, .help = "deadline budgets"},
    {.name = "retry", .kind = FIELD_LATER, .help = "retries and their budget"},
    {.name = NULL},
};
#undef AT

const struct fields config_route_fields = {
    .name = "route",
    .path = "listeners[].routes[]",
    .size = sizeof(struct config_route),
    .rows = route_rows,
    .help = "The first route that matches wins; where none does: 404 NR.",
};

#define AT(member) offsetof(struct config_limits, is.member)
static const struct field limits_rows[] = {
    {.name = "headBytes",
     .kind = FIELD_SIZE32,
     .at = AT(head_bytes),
     .min = 1024,
     .max = 256 * 1024,
     .preset_of = &default_http_limits.head_bytes,
     .help = "request line and header fields together; more: 431, or 414 for the line alone"},
    {.name = "fields",
     .kind = FIELD_COUNT,
     .at = AT(fields),
     .min = 1,
     .max = 10000,
     .preset_of = &default_http_limits.fields,
     .help = "number of header fields; more: 431"},
    {.name = "bodyBytes",
     .kind = FIELD_SIZE,
     .at = AT(body_bytes),
     .preset_of = &default_http_limits.body_bytes,
     .word = "none",
     .word_value = UINT64_MAX,
     .help = "body of a request; more: 413"},
    {.name = "bufferBytes",
     .kind = FIELD_SIZE32,
     .at = AT(buffer_bytes),
     .min = 1024,
     .max = 32 * 1024,
     .preset_of = &default_http_limits.buffer_bytes,
     .help = "what is kept of a request so that it can be sent again where that is safe; beyond "
             "it, it is only streamed"},
    {.name = NULL},
};
#undef AT

static const struct fields limits_fields = {
    .name = "limits",
    .path = "listeners[].limits",
    .size = sizeof(struct config_limits),
    .rows = limits_rows,
    .help = "What one client may make the proxy hold.",
};

#define AT(member) offsetof(struct config_listener, member)
static const struct field listener_rows[] = {
    {.name = "name",
     .kind = FIELD_NAME,
     .at = AT(name),
     .required = true,
     .help = "stands in metrics (`http.NAME.`); once in the file"},
    {.name = "listen",
     .kind = FIELD_ADDRESS,
     .at = AT(listen),
     .required = true,
     .help = "`0.0.0.0:8080` for every interface, `127.0.0.1:8080`, `[::]:8080`; port 0: any free"},
    {.name = "limits",
     .kind = FIELD_OBJECT,
     .at = AT(limits),
     .of = &limits_fields,
     .help = "sizes"},
    {.name = "headTimeout",
     .kind = FIELD_SPAN,
     .at = AT(head_timeout),
     .min = NS_PER_MS,
     .max = YEAR,
     .preset = DEFAULT_HEAD_TIMEOUT,
     .help = "from the first byte of a request's head to its last; over it: 408"},
    {.name = "bodyTimeout",
     .kind = FIELD_SPAN,
     .at = AT(body_timeout),
     .min = NS_PER_MS,
     .max = YEAR,
     .preset = DEFAULT_BODY_TIMEOUT,
     .word = "none",
     .word_value = MONO_NEVER,
     .zero_is_word = true,
     .help = "from the head to the last byte of the body; over it: 408"},
    {.name = "idleTimeout",
     .kind = FIELD_SPAN,
     .at = AT(idle_timeout),
     .min = NS_PER_MS,
     .max = YEAR,
     .preset = DEFAULT_CLIENT_IDLE,
     .help = "a client's connection without a request is closed after that"},
    {.name = "trustedHops",
     .kind = FIELD_COUNT,
     .at = AT(trusted_hops),
     .max = 32,
     .preset = 0,
     .help = "proxies in front whose `X-Forwarded-For` entries are believed"},
    {.name = "via", .kind = FIELD_SWITCH, .at = AT(via), .help = "add a `Via` field"},
    {.name = "forwardNormalized",
     .kind = FIELD_SWITCH,
     .at = AT(forward_normalized),
     .preset = 1,
     .help =
         "forward the path as it was matched (`%2e`, `..` resolved); off: as the client sent it"},
    {.name = "mergeSlashes",
     .kind = FIELD_SWITCH,
     .at = AT(merge_slashes),
     .preset = 1,
     .help = "`//` counts as `/` when paths are normalised"},
    {.name = "routes",
     .kind = FIELD_OBJECTS,
     .at = AT(routes),
     .of = &config_route_fields,
     .required = true,
     .help = "where requests go, in order"},
    {.name = "tls", .kind = FIELD_LATER, .help = "TLS"},
    {.name = "proxyProtocol", .kind = FIELD_LATER, .help = "the PROXY protocol"},
    {.name = NULL},
};
#undef AT

const struct fields config_listener_fields = {
    .name = "listener",
    .path = "listeners[]",
    .size = sizeof(struct config_listener),
    .rows = listener_rows,
    .help = "Where clients connect. HTTP/1.1 and 1.0.",
};

#define AT(member) offsetof(struct config_admin, member)
static const struct field admin_rows[] = {
    {.name = "listen",
     .kind = FIELD_ADDRESS,
     .at = AT(listen),
     .preset_text = "127.0.0.1:9901",
     .word = "off",
     .help = "address of the admin pages; keep it on loopback, it knows no passwords"},
    {.name = NULL},
};
#undef AT

static const struct fields admin_fields = {
    .name = "admin",
    .path = "admin",
    .size = sizeof(struct config_admin),
    .rows = admin_rows,
    .help = "`/stats`, `/clusters`, `/ready` and the other pages.",
};

static const char *const log_formats[] = {
    [LOG_FORMAT_JSON] = "json", [LOG_FORMAT_TEXT] = "text", NULL};

#define AT(member) offsetof(struct config_access_log, member)
static const struct field access_log_rows[] = {
    {.name = "to",
     .kind = FIELD_TEXT,
     .at = AT(to),
     .preset_text = "off",
     .help = "`stdout`, `off`, or a file to append to"},
    {.name = "format",
     .kind = FIELD_CHOICE,
     .at = AT(format),
     .preset = LOG_FORMAT_JSON,
     .choices = log_formats,
     .help = "`json`: one object a line; `text`: Envoy's default line"},
    {.name = NULL},
};
#undef AT

static const struct fields access_log_fields = {
    .name = "accessLog",
    .path = "accessLog",
    .size = sizeof(struct config_access_log),
    .rows = access_log_rows,
    .help = "One line a request, written beside the traffic: it never blocks, drops are counted.",
};

#define AT(member) offsetof(struct config_file, member)
static const struct field file_rows[] = {
    {.name = "admin",
     .kind = FIELD_OBJECT,
     .at = AT(admin),
     .of = &admin_fields,
     .help = "the admin pages"},
    {.name = "workers",
     .kind = FIELD_COUNT,
     .at = AT(workers),
     .min = 1,
     .max = 256,
     .preset = 0,
     .word = "auto",
     .word_value = 0,
     .help = "threads that carry traffic; `auto`: one a CPU"},
    {.name = "user",
     .kind = FIELD_TEXT,
     .at = AT(user),
     .help = "user to become once the sockets are open"},
    {.name = "accessLog",
     .kind = FIELD_OBJECT,
     .at = AT(access_log),
     .of = &access_log_fields,
     .help = "the log of requests"},
    {.name = "memoryLimit",
     .kind = FIELD_SIZE,
     .at = AT(memory_limit),
     .min = 16u << 20,
     .preset = 0,
     .word = "auto",
     .word_value = 0,
     .help = "bounds how many requests may be under way at once; `auto`: half of the memory"},
    {.name = "drainTimeout",
     .kind = FIELD_SPAN,
     .at = AT(drain_timeout),
     .max = 24 * 3600 * NS_PER_S,
     .preset = DEFAULT_DRAIN_TIMEOUT,
     .help = "from the first TERM or INT to the hard end"},
    {.name = "listeners",
     .kind = FIELD_OBJECTS,
     .at = AT(listeners),
     .of = &config_listener_fields,
     .required = true,
     .help = "where clients connect"},
    {.name = "clusters",
     .kind = FIELD_OBJECTS,
     .at = AT(clusters),
     .of = &config_cluster_fields,
     .required = true,
     .help = "sets of interchangeable hosts"},
    {.name = "log", .kind = FIELD_LATER, .help = "log settings in the file (use --log-level)"},
    {.name = "telemetry", .kind = FIELD_LATER, .help = "OTLP export"},
    {.name = NULL},
};
#undef AT

const struct fields config_file_fields = {
    .name = "the file",
    .path = "",
    .size = sizeof(struct config_file),
    .rows = file_rows,
    .help = "",
};
