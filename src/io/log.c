/* SPDX-License-Identifier: Apache-2.0 */
#include "io/log.h"

#include <stddef.h>
#include <string.h>

static const char *const level_names[LOG_LEVEL_COUNT] = {"debug", "info", "warning", "error"};

const char *log_level_text(enum log_level level)
{
    return level_names[level];
}

bool log_level_parse(const char *text, enum log_level *out)
{
    for (unsigned i = 0; i < LOG_LEVEL_COUNT; i++) {
        if (strcmp(text, level_names[i]) == 0) {
            *out = (enum log_level)i;
            return true;
        }
    }
    return false;
}

void log_event(struct log *l, enum log_level level, const char *event, const char *format, ...)
{
    va_list args;

    if (l == NULL || level < log_least(l))
        return;
    va_start(args, format);
    l->write(l, level, event, format, args);
    va_end(args);
}
