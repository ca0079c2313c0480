/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The grammar:  text = { literal | "%%" | "%" NAME [ "(" argument ")" ] [ ":" digits ] "%" }
 */
#include "model/access_format.h"

#include "model/record.h"

#define NUMBER_ROOM 24
#define TIME_ROOM   1024
#define VALUE_ROOM  1024 /* of values that are neither texts of the request nor numbers */

enum argument { ARGUMENT_NOTHING, ARGUMENT_NAME, ARGUMENT_HEADER, ARGUMENT_TIME };
enum value { VALUE_TEXT, VALUE_NUMBER };

static const struct {
    const char *name;
    enum value value;
    enum argument argument;
} operators[] = {
#define X(constant, name, value, argument) {name, VALUE_##value, ARGUMENT_##argument},
    ACCESS_OPERATORS(X)
#undef X
};

#define LINE_BEGIN                                                                                 \
    "[%START_TIME%] \"%REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH)% %PROTOCOL%\" "             \
    "%RESPONSE_CODE% %RESPONSE_FLAGS% "
#define LINE_MIDDLE                                                                                \
    "%BYTES_RECEIVED% %BYTES_SENT% %DURATION% %RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)% "              \
    "\"%REQ(X-FORWARDED-FOR)%\" \"%REQ(USER-AGENT)%\" \"%REQ(X-REQUEST-ID)%\" "                    \
    "\"%REQ(:AUTHORITY)%\" \"%UPSTREAM_HOST%\""

const char access_format_envoy[] = LINE_BEGIN LINE_MIDDLE;
const char access_format_istio[] =
    LINE_BEGIN "%RESPONSE_CODE_DETAILS% %CONNECTION_TERMINATION_DETAILS% "
               "\"%UPSTREAM_TRANSPORT_FAILURE_REASON%\" " LINE_MIDDLE
               " %UPSTREAM_CLUSTER_RAW% %UPSTREAM_LOCAL_ADDRESS% %DOWNSTREAM_LOCAL_ADDRESS% "
               "%DOWNSTREAM_REMOTE_ADDRESS% %REQUESTED_SERVER_NAME% %ROUTE_NAME%";

/*
 * What REQ() and RESP() name that is no header, or is in the record anyway. Nobody rewrites paths
 * here, so the original one is the path: the header by that name would be the client's word.
 */
static const struct {
    bool response;
    const char *name;
    enum access_op op;
} facts[] = {
    {false, ":method", ACCESS_METHOD},
    {false, ":path", ACCESS_PATH},
    {false, ":authority", ACCESS_AUTHORITY},
    {false, ":scheme", ACCESS_SCHEME},
    {false, "host", ACCESS_AUTHORITY},
    {false, "user-agent", ACCESS_USER_AGENT},
    {false, "x-request-id", ACCESS_REQUEST_ID},
    {false, "x-forwarded-for", ACCESS_FORWARDED_FOR},
    {false, "x-envoy-original-path", ACCESS_PATH},
    {true, ":status", ACCESS_STATUS_TEXT},
    {true, "x-envoy-upstream-service-time", ACCESS_SERVICE_TIME_TEXT},
};

struct compiler {
    struct arena *arena;
    struct access_format *format;
    struct access_fault *fault;
    struct bytes text;
    size_t at;
    struct access_item *items;
    uint32_t count;
};

const char *access_operator(uint32_t i)
{
    return i < ACCESS_OPERATOR_COUNT ? operators[i].name : NULL;
}

bool access_is_number(enum access_op op)
{
    return op < ACCESS_OPERATOR_COUNT && operators[op].value == VALUE_NUMBER;
}

static bool fail(struct compiler *c, size_t at, struct bytes word, const char *why)
{
    *c->fault = (struct access_fault){.at = at, .word = word, .why = why};
    return false;
}

static bool no_memory(struct compiler *c)
{
    return fail(c, 0, BYTES_NONE, NULL);
}

/* --- headers --- */

static bool is_among(const char *set, uint8_t c)
{
    return c != '\0' && strchr(set, c) != NULL;
}

static bool is_token(uint8_t c)
{
    return (c >= '0' && c <= '9') || (byte_lower(c) >= 'a' && byte_lower(c) <= 'z') ||
           is_among("!#$%&'*+-.^_`|~", c);
}

static bool is_header_name(struct bytes name)
{
    for (size_t i = 0; i < name.len; i++)
        if (!is_token(name.data[i]))
            return false;
    return name.len > 0 && name.len <= 256;
}

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* The index of the header among those kept; ACCESS_HEADERS_MAX: no room or no memory. */
static uint32_t keep(struct compiler *c, struct access_headers *all, struct bytes name,
                     uint32_t limit)
{
    struct bytes copy;

    for (uint32_t i = 0; i < all->count; i++) {
        if (!bytes_equal_nocase(all->at[i].name, name))
            continue;
        all->at[i].limit = larger(all->at[i].limit, limit);
        return i;
    }
    if (all->count == ACCESS_HEADERS_MAX) {
        fail(c, c->at, name, "the format names more than 16 headers");
        return ACCESS_HEADERS_MAX;
    }
    copy = arena_copy(c->arena, name);
    if (copy.data == NULL) {
        no_memory(c);
        return ACCESS_HEADERS_MAX;
    }
    for (size_t i = 0; i < copy.len; i++)
        ((uint8_t *)(uintptr_t)copy.data)[i] = byte_lower(copy.data[i]);
    all->at[all->count] = (struct access_header){.name = copy, .limit = limit};
    return all->count++;
}

/* What "X" of REQ(X?Y) stands for. */
static bool find_header(struct compiler *c, bool response, struct bytes name, uint32_t limit,
                        enum access_op *op, uint32_t *index)
{
    for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
        if (facts[i].response != response || !bytes_equal_nocase(bytes_of(facts[i].name), name))
            continue;
        *op = facts[i].op;
        return true;
    }
    if (!is_header_name(name))
        return fail(c, c->at, name, "no header can be called so");
    *op = response ? ACCESS_KEPT_RESPONSE : ACCESS_KEPT_REQUEST;
    *index = keep(c, response ? &c->format->response : &c->format->request, name,
                  limit == 0 ? ACCESS_HEADER_LIMIT : limit);
    return *index < ACCESS_HEADERS_MAX;
}

static bool compile_header(struct compiler *c, struct access_item *item, struct bytes argument)
{
    bool response = item->op == ACCESS_RESP || item->op == ACCESS_RESPONSE_HEADER;
    size_t mark = bytes_find(argument, '?');
    struct bytes other = bytes_skip(argument, mark + 1);

    if (mark < argument.len &&
        !find_header(c, response, other, item->limit, &item->other, &item->other_index))
        return false;
    return find_header(c, response, bytes_slice(argument, 0, mark), item->limit, &item->op,
                       &item->index);
}

/* --- times --- */

/* "%3f": a digit may stand before 'f'. */
static bool check_time(struct compiler *c, struct bytes format)
{
    for (size_t i = 0; i < format.len; i++) {
        if (format.data[i] != '%')
            continue;
        i++;
        if (i + 1 < format.len && format.data[i] >= '1' && format.data[i] <= '9' &&
            format.data[i + 1] == 'f')
            i++;
        else if (i >= format.len || !is_among("YymdeHMSTFRDjbasfzZ%", format.data[i]))
            return fail(c, c->at, format,
                        "a time is written with %Y %y %m %d %e %H %M %S %T %F %R %D %j %b %a %s "
                        "%f %3f %z %Z %%");
    }
    return format.len <= 256 || fail(c, c->at, BYTES_NONE, "the format of the time is too long");
}

/* --- one operator --- */

static bool is_name(uint8_t c)
{
    return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool find_operator(struct compiler *c, struct bytes name, enum access_op *op)
{
    for (uint32_t i = 0; i < ACCESS_OPERATOR_COUNT; i++) {
        if (!bytes_equal(bytes_of(operators[i].name), name))
            continue;
        *op = (enum access_op)i;
        return true;
    }
    if (bytes_equal(name, BYTES("TRAILER")) || bytes_equal(name, BYTES("RESPONSE_TRAILER")))
        return fail(c, c->at, name, "trailers are not kept; RESP() gives headers");
    if (bytes_equal(name, BYTES("GRPC_STATUS")) || bytes_equal(name, BYTES("GRPC_STATUS_NUMBER")))
        return fail(c, c->at, name, "it comes with HTTP/2; RESP(grpc-status) gives the header");
    return fail(c, c->at, name, "unknown operator");
}

static bool take(struct compiler *c, uint8_t wanted)
{
    if (c->at >= c->text.len || c->text.data[c->at] != wanted)
        return false;
    c->at++;
    return true;
}

static struct bytes take_name(struct compiler *c)
{
    size_t from = c->at;

    while (c->at < c->text.len && is_name(c->text.data[c->at]))
        c->at++;
    return bytes_slice(c->text, from, c->at - from);
}

/* "(...)" if it is there; |*given| says. */
static bool take_argument(struct compiler *c, struct bytes *argument, bool *given)
{
    struct bytes rest;
    size_t end;

    *given = take(c, '(');
    *argument = BYTES_NONE;
    if (!*given)
        return true;
    rest = bytes_skip(c->text, c->at);
    end = bytes_find(rest, ')');
    if (end == rest.len)
        return fail(c, c->at - 1, BYTES_NONE, "the bracket is not closed: write )");
    *argument = bytes_slice(rest, 0, end);
    c->at += end + 1;
    return true;
}

/* ":20" if it is there. */
static bool take_limit(struct compiler *c, uint32_t *limit)
{
    size_t from = c->at;
    uint32_t n = 0;

    *limit = 0;
    if (!take(c, ':'))
        return true;
    while (c->at < c->text.len && c->text.data[c->at] >= '0' && c->text.data[c->at] <= '9' &&
           n <= ACCESS_HEADER_MAX)
        n = n * 10 + (uint32_t)(c->text.data[c->at++] - '0');
    if (n == 0 || n > ACCESS_HEADER_MAX)
        return fail(c, from, BYTES_NONE, "after ':' stands the most bytes to be shown, 1 to 4096");
    *limit = n;
    return true;
}

static bool check_argument(struct compiler *c, struct access_item *item, struct bytes name,
                           struct bytes argument, bool given)
{
    switch (operators[item->op].argument) {
    case ARGUMENT_NOTHING:
        return !given || fail(c, c->at, name, "it takes nothing in brackets");
    case ARGUMENT_NAME:
        item->text = argument;
        return argument.len > 0 || fail(c, c->at, name, "it needs a name in brackets");
    case ARGUMENT_HEADER:
        if (argument.len == 0)
            return fail(c, c->at, name, "it needs a header in brackets, such as (user-agent)");
        return compile_header(c, item, argument);
    case ARGUMENT_TIME:
        item->text = argument;
        return check_time(c, argument);
    }
    return false;
}

/* After its '%'. */
static bool compile_operator(struct compiler *c, struct access_item *item)
{
    size_t from = c->at;
    struct bytes name = take_name(c), argument;
    size_t after;
    bool given;

    item->other = ACCESS_NOTHING;
    if (!take_argument(c, &argument, &given) || !take_limit(c, &item->limit))
        return false;
    if (!take(c, '%'))
        return fail(c, from - 1, name,
                    "an operator ends in '%'; a '%' of its own is written \"%%\"");
    after = c->at;
    c->at = from; /* what is wrong from here on is wrong with this operator */
    if (!find_operator(c, name, &item->op) || !check_argument(c, item, name, argument, given))
        return false;
    c->at = after;
    return true;
}

/* --- the whole --- */

static struct access_item *add_item(struct compiler *c)
{
    if (c->count == ACCESS_ITEMS_MAX) {
        fail(c, c->at, BYTES_NONE, "the format has too many parts");
        return NULL;
    }
    return &c->items[c->count++];
}

/* Up to the next '%'; "%%" is one. */
static bool compile_literal(struct compiler *c)
{
    struct bytes rest = bytes_skip(c->text, c->at);
    size_t len = bytes_find(rest, '%');
    struct access_item *item = add_item(c);

    if (item == NULL)
        return false;
    if (len == 0)
        len = 1; /* of "%%", the first */
    *item = (struct access_item){
        .op = ACCESS_LITERAL, .other = ACCESS_NOTHING, .text = bytes_slice(rest, 0, len)};
    c->at += len;
    return true;
}

static bool compile_next(struct compiler *c)
{
    struct access_item *item;

    if (c->text.data[c->at] != '%')
        return compile_literal(c);
    if (c->at + 1 < c->text.len && c->text.data[c->at + 1] == '%') {
        c->at++;
        return compile_literal(c);
    }
    item = add_item(c);
    c->at++;
    return item != NULL && compile_operator(c, item);
}

static size_t count_parts(struct bytes text)
{
    size_t n = 1;

    for (size_t i = 0; i < text.len; i++)
        n += text.data[i] == '%';
    return n < ACCESS_ITEMS_MAX ? n : ACCESS_ITEMS_MAX;
}

bool access_compile(struct arena *arena, struct bytes text, struct access_format *format,
                    struct access_program *program, struct access_fault *fault)
{
    struct compiler c = {.arena = arena, .format = format, .fault = fault, .text = text};

    if (text.len > ACCESS_FORMAT_MAX)
        return fail(&c, 0, BYTES_NONE, "the format is longer than 8 KiB");
    c.items = arena_take(arena, count_parts(text) * sizeof(*c.items));
    if (c.items == NULL)
        return no_memory(&c);
    while (c.at < text.len)
        if (!compile_next(&c))
            return false;
    *program = (struct access_program){.count = c.count, .items = c.items};
    return true;
}

/* --- how long a line can be --- */

static size_t op_room(const struct access_format *f, enum access_op op, uint32_t index)
{
    if (op == ACCESS_KEPT_REQUEST)
        return f->request.at[index].limit;
    if (op == ACCESS_KEPT_RESPONSE)
        return f->response.at[index].limit;
    if (op == ACCESS_PATH)
        return RECORD_PATH_MAX + VALUE_ROOM;
    if (op == ACCESS_ENVIRONMENT || op == ACCESS_UPSTREAM_HOSTS_ATTEMPTED ||
        op == ACCESS_START_TIME)
        return 4 * VALUE_ROOM;
    return access_is_number(op) ? NUMBER_ROOM : VALUE_ROOM + 16;
}

static size_t item_room(const struct access_format *f, const struct access_item *i)
{
    size_t one, other;

    if (i->op == ACCESS_LITERAL)
        return i->text.len;
    one = op_room(f, i->op, i->index);
    other = op_room(f, i->other, i->other_index);
    return one > other ? one : other;
}

size_t access_program_room(const struct access_format *format, const struct access_program *p)
{
    size_t sum = 1;

    for (uint32_t i = 0; i < p->count; i++)
        sum += item_room(format, &p->items[i]);
    return sum;
}
