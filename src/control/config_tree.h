/* SPDX-License-Identifier: Apache-2.0 */
/*
 * YAML as a tree of maps, lists and text, each with its place. Scalars stay text: the schema
 * converts them, so that `on`, `1e3` or `010` never mean what YAML thinks they mean.
 */
#ifndef CONTROL_CONFIG_TREE_H
#define CONTROL_CONFIG_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "control/config_error.h"

/* A file larger than this is no configuration, but a mistake or an attack. */
#define CONFIG_FILE_MAX (16u << 20)
/* Parts of a file: 10,000 endpoints with four keys each need a tenth of it. */
#define CONFIG_EVENTS_MAX 1000000u
/* The deepest key known is seven deep. */
#define CONFIG_DEPTH_MAX 32u

enum config_kind { CONFIG_TEXT, CONFIG_LIST, CONFIG_MAP };

struct config_node {
    enum config_kind kind;
    bool plain;      /* text without quotes */
    uint32_t source; /* of the errors' sources */
    uint32_t line;
    uint32_t column;
    struct bytes text;
    uint32_t count;                /* of children */
    struct config_node *first;     /* child; of a map: a value */
    struct config_node *next;      /* sibling, or the next document */
    const struct config_node *key; /* of a value in a map */
};

/*
 * Parses all documents of the source that |errors| is at; |*documents| is the first, NULL where
 * there is none. Lives as long as |arena|. False: an error was added.
 */
bool config_tree_parse(struct arena *arena, struct config_errors *errors,
                       struct config_node **documents);

/* The value of |key| in a map, the first one; NULL: none, or |map| is none. */
const struct config_node *config_node_find(const struct config_node *map, const char *key);

/* Plain and empty, or "null", or "~": a key without a value. */
bool config_node_empty(const struct config_node *n);

#endif
