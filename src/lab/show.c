/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/show.h"

static void put_scaled(struct text *t, span_ns ns, span_ns unit, const char *name)
{
    double value = (double)ns / (double)unit;

    text_double(t, value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
    text_str(t, name);
}

void show_span(struct text *t, span_ns ns)
{
    if (ns < NS_PER_MS) {
        text_u64(t, ns / NS_PER_US);
        text_str(t, "us");
    } else if (ns < NS_PER_S) {
        put_scaled(t, ns, NS_PER_MS, "ms");
    } else {
        put_scaled(t, ns, NS_PER_S, "s");
    }
}

void show_share(struct text *t, uint64_t part, uint64_t whole)
{
    uint64_t hundredths;

    if (whole == 0) {
        text_char(t, '-');
        return;
    }
    hundredths = (uint64_t)((double)part / (double)whole * 10000.0);
    if (part < whole && hundredths > 9999)
        hundredths = 9999;
    text_u64(t, hundredths / 100);
    text_char(t, '.');
    text_char(t, (char)('0' + hundredths / 10 % 10));
    text_char(t, (char)('0' + hundredths % 10));
    text_str(t, " %");
}

void show_pad(struct text *t, size_t from, size_t column)
{
    do
        text_char(t, ' ');
    while (t->len < from + column && !t->failed);
}
