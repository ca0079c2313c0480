/* SPDX-License-Identifier: Apache-2.0 */
#include "main/ask_admin.h"

#include <stdio.h>
#include <string.h>

#include "lab/fetch.h"

#define ANSWER_WITHIN (10 * NS_PER_S)

static void say_unreached(const struct admin_question *q, enum call_outcome outcome)
{
    char room[ADDRESS_TEXT_MAX];
    struct text address;

    text_init(&address, room, sizeof(room));
    address_write(&address, &q->to);
    fprintf(
        stderr,
        "firebreak %s: the admin address %s: %s; does firebreak run, and is `admin: { listen }` "
        "that? --admin ADDR says another one\n",
        q->command, text_end(&address), call_outcome_text(outcome));
}

bool ask_admin(struct lab_loop *loop, const struct admin_question *q, struct buffer *answer)
{
    const struct fetch f = {
        .to = q->to, .method = "GET", .target = q->target, .timeout = ANSWER_WITHIN};
    enum call_outcome outcome;
    uint32_t status = fetch(loop, &f, answer, &outcome);
    struct bytes page;

    if (status == 200)
        return true;
    if (loop->interrupted)
        return false;
    if (status == 0) {
        say_unreached(q, outcome);
        return false;
    }
    page = bytes_trim(buffer_bytes(answer));
    fprintf(stderr, "firebreak %s: %.*s (status %u)\n", q->command,
            page.len > 1000 ? 1000 : (int)page.len, (const char *)page.data, status);
    buffer_release(answer);
    return false;
}

static bool is_plain(uint8_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c != 0 && strchr("-._~:", c) != NULL);
}

void ask_parameter(struct text *target, const char *key, struct bytes value)
{
    text_char(target, bytes_find(text_bytes(target), '?') < target->len ? '&' : '?');
    text_str(target, key);
    text_char(target, '=');
    for (size_t i = 0; i < value.len; i++) {
        if (is_plain(value.data[i])) {
            text_char(target, (char)value.data[i]);
        } else {
            text_char(target, '%');
            text_hex(target, value.data[i], 2);
        }
    }
}
