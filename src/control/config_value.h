/* SPDX-License-Identifier: Apache-2.0 */
/* One value of the configuration: text to typed field by the field's row, and back for the docs. */
#ifndef CONTROL_CONFIG_VALUE_H
#define CONTROL_CONFIG_VALUE_H

#include "base/address.h"
#include "control/config_field.h"

/* The default. */
void config_value_preset(const struct field *row, void *out);

/* Reads the text of |node|; leaves |out| and adds an error where it is wrong or out of range. */
void config_value_read(struct field_reader *r, const struct field *row,
                       const struct config_node *node, void *out);

/* "15s", "64KiB", "none": a number of that row as one would write it. */
void config_value_write(struct text *t, const struct field *row, uint64_t value);

/* The number that the default of |row| is. */
uint64_t config_value_preset_number(const struct field *row);

/*
 * "127.0.0.1:80", "[::1]:80", "unix:/path" (copied to |arena|). False: |*why| says what is wrong.
 */
bool config_address_parse(struct arena *arena, struct bytes text, struct address *out,
                          const char **why);

#endif
