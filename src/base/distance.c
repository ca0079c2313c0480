/* SPDX-License-Identifier: Apache-2.0 */
/* Edit distance, in the restricted form: no pair of letters is edited twice (optimal alignment). */
#include "base/text.h"

#define WORD_MAX 64

typedef uint8_t row[WORD_MAX + 1];

static uint8_t least(unsigned a, unsigned b, unsigned c)
{
    unsigned m = a < b ? a : b;

    return (uint8_t)(m < c ? m : c);
}

/* Row |i| of the table: the distances of |a|'s first |i| letters to each beginning of |b|. */
static void fill_row(row *rows, struct bytes a, struct bytes b, size_t i)
{
    uint8_t *now = rows[i % 3];
    const uint8_t *before = rows[(i + 2) % 3];
    const uint8_t *two_before = rows[(i + 1) % 3];

    now[0] = (uint8_t)i;
    for (size_t j = 1; j <= b.len; j++) {
        unsigned differs = a.data[i - 1] != b.data[j - 1];

        now[j] = least(before[j] + 1U, now[j - 1] + 1U, before[j - 1] + differs);
        if (i > 1 && j > 1 && a.data[i - 1] == b.data[j - 2] && a.data[i - 2] == b.data[j - 1])
            now[j] = least(now[j], two_before[j - 2] + 1U, UINT8_MAX);
    }
}

unsigned text_distance(struct bytes a, struct bytes b, unsigned limit)
{
    row rows[3];
    unsigned distance;

    if (a.len > WORD_MAX || b.len > WORD_MAX)
        return limit + 1;
    for (size_t j = 0; j <= b.len; j++)
        rows[0][j] = (uint8_t)j;
    for (size_t i = 1; i <= a.len; i++)
        fill_row(rows, a, b, i);
    distance = rows[a.len % 3][b.len];
    return distance > limit ? limit + 1 : distance;
}
