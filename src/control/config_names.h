/* SPDX-License-Identifier: Apache-2.0 */
/* Names to numbers, while a configuration is built: ten thousand of them must not cost a square. */
#ifndef CONTROL_CONFIG_NAMES_H
#define CONTROL_CONFIG_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/bytes.h"

#define CONFIG_NO_NAME UINT32_MAX

struct config_name;

struct config_names {
    struct config_name *slots;
    uint32_t mask;
};

/* Room for |most| names, which are not copied. False: no memory. */
bool config_names_init(struct config_names *n, struct arena *arena, uint32_t most);

/* Number of |name|; CONFIG_NO_NAME where there is none. */
uint32_t config_names_find(const struct config_names *n, struct bytes name);

/* Adds |name|, and gives CONFIG_NO_NAME; or the number that it has already. */
uint32_t config_names_add(struct config_names *n, struct bytes name, uint32_t number);

#endif
