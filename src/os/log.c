/* SPDX-License-Identifier: Apache-2.0 */
#include "os/log.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/list.h"
#include "base/text.h"
#include "base/units.h"

#define MESSAGE_MAX 2000 /* of a message before escaping; longer ones are cut */
#define LINE_MAX_   4096 /* what a pipe takes whole or not at all (PIPE_BUF) */
#define LINE_TAIL   80   /* kept free for the end of a line that was cut */
#define STALL_MS    50   /* patience with a reader that stalls, once */

struct os_log {
    struct log base;
    int fd;
    enum os_log_format format;
    pthread_mutex_t mutex;
    bool stalled;  /* the last line found no room: do not wait for the next */
    uint64_t lost; /* lines since the last that was written */
};

/* ------------------------------------------------------------------------------- escaping */

/* U+0080 to U+009F steer some terminals as the C0 controls do. */
static bool is_control(struct bytes character)
{
    uint8_t c = character.data[0];

    if (character.len == 2)
        return c == 0xc2 && character.data[1] < 0xa0;
    return character.len == 1 && (c < 0x20 || c == 0x7f);
}

static void escape_text(struct text *t, struct bytes piece)
{
    for (size_t i = 0; i < piece.len; i++) {
        text_str(t, "\\x");
        text_hex(t, piece.data[i], 2);
    }
}

static void escape_json(struct text *t, struct bytes piece, size_t length)
{
    if (length == 0) {
        text_str(t, "\\ufffd");
        return;
    }
    text_str(t, "\\u00");
    text_hex(t, piece.data[length - 1], 2); /* for two bytes, U+0080 .. U+009F: the second */
}

static void put_character(struct text *t, enum os_log_format format, struct bytes piece,
                          size_t length)
{
    if (length == 0 || is_control(piece)) {
        if (format == OS_LOG_JSON)
            escape_json(t, piece, length);
        else
            escape_text(t, piece);
        return;
    }
    if (piece.data[0] == '\\' || (piece.data[0] == '"' && format == OS_LOG_JSON))
        text_char(t, '\\');
    text_put(t, piece);
}

/* As much of |b| as there is room for before the tail; true: all. */
static bool put_escaped(struct text *t, enum os_log_format format, struct bytes b)
{
    while (b.len > 0) {
        size_t length = bytes_utf8(b);
        size_t step = length == 0 ? 1 : length;

        if (t->room - t->len < LINE_TAIL)
            return false;
        put_character(t, format, bytes_slice(b, 0, step), length);
        b = bytes_skip(b, step);
    }
    return true;
}

/* ------------------------------------------------------------------------------------ lines */

static void put_padded(struct text *t, int value, unsigned digits)
{
    char reversed[8];
    unsigned n = 0;

    for (; n < digits; value /= 10)
        reversed[n++] = (char)('0' + value % 10);
    while (n > 0)
        text_char(t, reversed[--n]);
}

static void put_time(struct text *t)
{
    struct timespec now = {0, 0};
    struct tm tm;
    const char *marks = "--T::";

    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (gmtime_r(&now.tv_sec, &tm) == NULL)
        return;
    const int fields[] = {tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min};

    for (unsigned i = 0; i < 5; i++) {
        put_padded(t, fields[i], i == 0 ? 4 : 2);
        text_char(t, marks[i]);
    }
    put_padded(t, tm.tm_sec, 2);
    text_char(t, '.');
    put_padded(t, (int)(now.tv_nsec / 1000000), 3);
    text_char(t, 'Z');
}

static void put_line_text(struct text *t, enum log_level level, const char *event,
                          struct bytes message)
{
    put_time(t);
    text_char(t, ' ');
    text_str(t, log_level_text(level));
    text_char(t, ' ');
    put_escaped(t, OS_LOG_TEXT, bytes_slice(bytes_of(event), 0, 128));
    text_char(t, ' ');
    if (!put_escaped(t, OS_LOG_TEXT, message))
        text_str(t, "...");
    text_char(t, '\n');
}

static void put_line_json(struct text *t, enum log_level level, const char *event,
                          struct bytes message)
{
    text_str(t, "{\"time\":\"");
    put_time(t);
    text_str(t, "\",\"level\":\"");
    text_str(t, log_level_text(level));
    text_str(t, "\",\"event\":\"");
    put_escaped(t, OS_LOG_JSON, bytes_slice(bytes_of(event), 0, 128));
    text_str(t, "\",\"message\":\"");
    if (!put_escaped(t, OS_LOG_JSON, message))
        text_str(t, "...");
    text_str(t, "\"}\n");
}

/* True: a line can be written without waiting, as far as one can know. */
static bool has_room(struct os_log *l)
{
    struct pollfd room = {.fd = l->fd, .events = POLLOUT};
    int n;

    do {
        n = poll(&room, 1, l->stalled ? 0 : STALL_MS);
    } while (n < 0 && errno == EINTR && !l->stalled);
    l->stalled = n == 0;
    return n > 0;
}

static void put_line(struct os_log *l, enum log_level level, const char *event,
                     struct bytes message)
{
    char line[LINE_MAX_];
    struct text t;
    ssize_t n;

    if (!has_room(l)) {
        l->lost++;
        return;
    }
    text_init(&t, line, sizeof(line));
    if (l->format == OS_LOG_JSON)
        put_line_json(&t, level, event, message);
    else
        put_line_text(&t, level, event, message);
    do {
        n = write(l->fd, t.data, t.len);
    } while (n < 0 && errno == EINTR);
    l->lost += n < 0;
}

static void report_lost(struct os_log *l)
{
    char message[64];
    uint64_t lost = l->lost;
    int n;

    if (lost == 0)
        return;
    l->lost = 0;
    n = snprintf(message, sizeof(message), "%llu lines lost: the reader stalled",
                 (unsigned long long)lost);
    put_line(l, LOG_WARNING, "log.lost", bytes_from(message, n < 0 ? 0 : (size_t)n));
    if (l->lost > 0)
        l->lost = lost;
}

/* What vsnprintf left in |message|; one that did not fit ends in dots. */
static size_t message_length(char *message, size_t room, int wanted)
{
    if (wanted < 0)
        return 0;
    if ((size_t)wanted < room)
        return (size_t)wanted;
    for (size_t i = room - 4; i < room - 1; i++)
        message[i] = '.';
    return room - 1;
}

__attribute__((format(printf, 4, 0))) static void os_log_write(struct log *base,
                                                               enum log_level level,
                                                               const char *event,
                                                               const char *format, va_list args)
{
    struct os_log *l = CONTAINER_OF(base, struct os_log, base);
    char message[MESSAGE_MAX];
    int wanted = vsnprintf(message, sizeof(message), format, args);
    size_t n = message_length(message, sizeof(message), wanted);

    pthread_mutex_lock(&l->mutex);
    report_lost(l);
    if (l->lost == 0 || !l->stalled)
        put_line(l, level, event, bytes_from(message, n));
    else
        l->lost++;
    pthread_mutex_unlock(&l->mutex);
}

struct log *os_log_create(int fd, enum os_log_format format, enum log_level least)
{
    struct os_log *l = calloc(1, sizeof(*l));

    if (l == NULL)
        return NULL;
    l->base = (struct log){.write = os_log_write, .least = least};
    l->fd = fd;
    l->format = format;
    pthread_mutex_init(&l->mutex, NULL);
    return &l->base;
}

void os_log_free(struct log *base)
{
    struct os_log *l;

    if (base == NULL)
        return;
    l = CONTAINER_OF(base, struct os_log, base);
    pthread_mutex_destroy(&l->mutex);
    free(l);
}
