/* SPDX-License-Identifier: Apache-2.0 */
#include "admin/accept.h"

#include <stdint.h>

/* "0.35" in thousandths; 0 where it is no weight. */
static uint32_t parse_weight(struct bytes b)
{
    uint32_t unit = 1000, weight = 0;

    if (b.len == 0 || b.len > 5 || (b.len > 1 && b.data[1] != '.'))
        return 0;
    for (size_t i = 0; i < b.len; i++) {
        if (i == 1)
            continue;
        if (b.data[i] < '0' || b.data[i] > '9')
            return 0;
        weight += unit * (uint32_t)(b.data[i] - '0');
        unit /= 10;
    }
    return weight > 1000 ? 0 : weight;
}

/* Of an element "type/subtype; a=b; q=0.5". */
static uint32_t weight_of(struct bytes parameters)
{
    while (parameters.len > 0) {
        size_t end = bytes_find(parameters, ';');
        struct bytes one = bytes_trim(bytes_slice(parameters, 0, end));

        if (one.len > 2 && byte_lower(one.data[0]) == 'q' && one.data[1] == '=')
            return parse_weight(bytes_skip(one, 2));
        parameters = bytes_skip(parameters, end + 1);
    }
    return 1000;
}

static void raise(uint32_t *to, uint32_t weight)
{
    if (weight > *to)
        *to = weight;
}

bool accept_openmetrics(const struct message_head *head)
{
    uint32_t open = 0, plain = 0;

    for (uint32_t i = 0; i < head->field_count; i++) {
        struct bytes rest = head->fields[i].value, element;

        if (!bytes_equal_nocase(head->fields[i].name, BYTES("accept")))
            continue;
        while (bytes_next_element(&rest, &element)) {
            size_t end = bytes_find(element, ';');
            struct bytes type = bytes_trim(bytes_slice(element, 0, end));
            uint32_t weight = weight_of(bytes_skip(element, end + 1));

            if (bytes_equal_nocase(type, BYTES("application/openmetrics-text")))
                raise(&open, weight);
            else if (bytes_equal_nocase(type, BYTES("text/plain")))
                raise(&plain, weight);
        }
    }
    return open > 0 && open >= plain;
}
