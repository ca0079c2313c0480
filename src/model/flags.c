/* SPDX-License-Identifier: Apache-2.0 */
/* Response flags as text. */
#include "model/flags.h"

static void write(struct text *t, uint32_t flags, const char *const names[FLAG_COUNT])
{
    const char *before = "";

    for (unsigned i = 0; i < FLAG_COUNT; i++) {
        if ((flags & 1u << i) == 0)
            continue;
        text_str(t, before);
        text_str(t, names[i]);
        before = ",";
    }
    if (before[0] == '\0')
        text_char(t, '-');
}

#define X(name, long_name) #name,
static const char *const short_names[FLAG_COUNT] = {RESPONSE_FLAGS(X)};
#undef X

const char *flag_name(enum flag_index i)
{
    return short_names[i];
}

void flags_write(struct text *t, uint32_t flags)
{
    write(t, flags, short_names);
}

void flags_write_long(struct text *t, uint32_t flags)
{
#define X(name, long_name) long_name,
    static const char *const names[FLAG_COUNT] = {RESPONSE_FLAGS(X)};
#undef X

    write(t, flags, names);
}
