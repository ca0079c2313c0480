/* SPDX-License-Identifier: Apache-2.0 */
/* For commands that show what a running proxy says on its admin address. */
#ifndef MAIN_ASK_ADMIN_H
#define MAIN_ASK_ADMIN_H

#include <stdbool.h>

#include "base/address.h"
#include "base/text.h"
#include "lab/buffer.h"
#include "lab/loop.h"

#define ADMIN_USUAL "127.0.0.1:9901"

/* The row of --admin in a command's table of options. */
#define OPTION_ADMIN(where)                                                                        \
    {                                                                                              \
        .name = "admin", .kind = OPTION_PARSED, .target = (where), .parse = option_parse_address,  \
        .placeholder = "ADDR", .help = "of the proxy (127.0.0.1:9901); unix:PATH too"              \
    }

struct admin_question {
    const char *command; /* who asks, for errors */
    struct address to;
    const char *target; /* "/peers" */
};

/* True: |*answer| is the page, to be released. Else an error was printed. */
bool ask_admin(struct lab_loop *loop, const struct admin_question *q, struct buffer *answer);

/* "KEY=VALUE", percent-encoded, after '?' or '&'. */
void ask_parameter(struct text *target, const char *key, struct bytes value);

#endif
