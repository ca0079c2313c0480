/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "main/command.h"
#include "main/options.h"

static const struct command_help help = {
    .name = "version",
    .usage = "",
    .summary = "Prints which version this is.",
    .examples = "firebreak version",
};

int command_version(int argc, char **argv)
{
    switch (options_read(&help, NULL, 0, argc, argv)) {
    case OPTIONS_GO:
        printf("firebreak %s\n", FIREBREAK_VERSION);
        return COMMAND_OK;
    case OPTIONS_HELP:
        return COMMAND_OK;
    case OPTIONS_BAD:
        break;
    }
    return COMMAND_USAGE;
}
