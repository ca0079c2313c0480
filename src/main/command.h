/* SPDX-License-Identifier: Apache-2.0 */
/* The subcommands: one file each, command_<name>.c. |argv[0]| is the subcommand's name. */
#ifndef MAIN_COMMAND_H
#define MAIN_COMMAND_H

#include "base/bytes.h"

/* What every command exits with. */
enum command_exit {
    COMMAND_OK = 0,
    COMMAND_FAILED = 1, /* at its work: a port in use, nothing succeeded, ... */
    COMMAND_USAGE = 2   /* wrong options, or a configuration that is not valid */
};

int command_run(int argc, char **argv);
int command_check(int argc, char **argv);
int command_backend(int argc, char **argv);
int command_load(int argc, char **argv);
int command_demo(int argc, char **argv);
int command_explain(int argc, char **argv);
int command_top(int argc, char **argv);
int command_version(int argc, char **argv);

/* --semantics of `run` and `check`: |target| is an enum config_follow (control/config.h). */
const char *command_parse_semantics(struct bytes value, void *target);

#endif
