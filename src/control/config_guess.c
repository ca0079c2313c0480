/* SPDX-License-Identifier: Apache-2.0 */
/* "Did you mean": the nearest of the words that would have been right. */
#include "base/text.h"
#include "control/config_field.h"

#define WORD_MAX 64

/* One slip in a short word, one more every five letters. */
static unsigned allowed(size_t len)
{
    return 1 + (unsigned)(len / 5);
}

static struct bytes lower(struct bytes b, uint8_t *room)
{
    size_t len = b.len < WORD_MAX ? b.len : WORD_MAX;

    for (size_t i = 0; i < len; i++)
        room[i] = byte_lower(b.data[i]);
    return bytes_from(room, len);
}

static bool contains(struct bytes b, struct bytes part)
{
    for (size_t i = 0; i + part.len <= b.len; i++)
        if (bytes_equal(bytes_slice(b, i, part.len), part))
            return true;
    return false;
}

void config_guess_init(struct config_guess *g, struct bytes wrong)
{
    *g = (struct config_guess){.wrong = wrong, .best = BYTES_NONE, .distance = UINT32_MAX};
}

void config_guess_word(struct config_guess *g, struct bytes word)
{
    uint8_t wrong_room[WORD_MAX], word_room[WORD_MAX];
    struct bytes wrong = lower(g->wrong, wrong_room);
    struct bytes right = lower(word, word_room);
    unsigned limit = allowed(wrong.len);
    unsigned distance;

    if (g->wrong.len == 0 || g->wrong.len > WORD_MAX || word.len > WORD_MAX)
        return;
    distance = text_distance(wrong, right, limit);
    /* "maxPending" of "http1MaxPendingRequests": a guess, but the last choice. */
    if (distance > limit && wrong.len >= 4 && contains(right, wrong))
        distance = WORD_MAX;
    else if (distance > limit || distance >= right.len)
        return;
    if (distance < g->distance) {
        g->distance = distance;
        g->best = word;
    }
}

void config_guess_write(const struct config_guess *g, struct text *t)
{
    if (g->best.data == NULL)
        return;
    text_str(t, "; did you mean ");
    config_quote(t, g->best);
    text_char(t, '?');
}
