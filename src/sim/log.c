/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/log.h"

#include <stdio.h>
#include <string.h>

static void count(struct sim_log *l, const char *event)
{
    uint32_t i = 0;

    while (i < l->event_count && strcmp(l->events[i], event) != 0)
        i++;
    if (i == SIM_LOG_EVENTS)
        return;
    l->events[i] = event;
    l->counts[i]++;
    if (i == l->event_count)
        l->event_count++;
}

__attribute__((format(printf, 4, 0))) static void write_line(struct log *base, enum log_level level,
                                                             const char *event, const char *format,
                                                             va_list args)
{
    struct sim_log *l = (struct sim_log *)(void *)base;
    char *line = l->last[l->lines++ % SIM_LOG_LINES];
    struct text t;

    l->levels[level]++;
    count(l, event);
    text_init(&t, line, SIM_LOG_LINE);
    text_double(&t, (double)world_elapsed(l->world) / (double)NS_PER_S, 6);
    text_char(&t, ' ');
    text_str(&t, event);
    text_char(&t, ' ');
    (void)text_end(&t);
    if (t.len + 1 < SIM_LOG_LINE)
        (void)vsnprintf(line + t.len, SIM_LOG_LINE - t.len, format, args);
    world_digest_bytes(l->world, bytes_of(line));
}

void sim_log_init(struct sim_log *l, struct world *w)
{
    memset(l, 0, sizeof(*l));
    l->base.write = write_line;
    l->base.least = LOG_INFO;
    l->world = w;
}

uint64_t sim_log_count(const struct sim_log *l, const char *event)
{
    for (uint32_t i = 0; i < l->event_count; i++)
        if (strcmp(l->events[i], event) == 0)
            return l->counts[i];
    return 0;
}

const char *sim_log_line(const struct sim_log *l, uint64_t back)
{
    if (back >= l->lines || back >= SIM_LOG_LINES)
        return "";
    return l->last[(l->lines - 1 - back) % SIM_LOG_LINES];
}
