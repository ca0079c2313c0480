/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the command that was asked for. */
#include <stdio.h>
#include <string.h>

#include "main/command.h"
#include "main/options.h"

struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
};

static const struct command commands[] = {
    {"run", command_run, "the proxy: protects the callers of a set of hosts from its bad ones"},
    {"check", command_check, "what is wrong with a configuration, and what it will not do"},
    {"explain", command_explain, "why a host of a running proxy is in or out, with the numbers"},
    {"top", command_top, "the hosts of a running proxy side by side, once a second"},
    {"backend", command_backend, "HTTP servers with service times and switchable faults"},
    {"load", command_load, "open-loop load: latency from the moment each request was due"},
    {"demo", command_demo, "what ejection does, on this machine, in half a minute"},
    {"version", command_version, "which version this is"},
};

#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

static void print_help(FILE *to)
{
    fprintf(to, "firebreak keeps one bad instance from becoming an outage.\n\n"
                "firebreak COMMAND [OPTION ...]\n\nCommands:\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        fprintf(to, "  %-10s %s\n", commands[i].name, commands[i].help);
    fprintf(to, "\nfirebreak COMMAND --help tells what a command takes.\n\n"
                "Examples:\n"
                "  firebreak demo\n"
                "  firebreak run --to 127.0.0.1:9001,127.0.0.1:9002\n\n"
                "Exit codes: 0 done, 1 failed at its work, 2 wrong options or configuration\n");
}

static const struct command *find(const char *name)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

static int complain(const char *word)
{
    const char *names[COMMAND_COUNT];
    const char *nearest;

    for (size_t i = 0; i < COMMAND_COUNT; i++)
        names[i] = commands[i].name;
    nearest = options_nearest(word + strspn(word, "-"), names, COMMAND_COUNT);
    if (nearest != NULL)
        fprintf(stderr, "firebreak: there is no command \"%s\"; did you mean %s?\n", word, nearest);
    else
        fprintf(stderr, "firebreak: there is no command \"%s\"; firebreak --help lists them\n",
                word);
    return COMMAND_USAGE;
}

static bool is_any(const char *word, const char *a, const char *b, const char *c)
{
    return strcmp(word, a) == 0 || strcmp(word, b) == 0 || strcmp(word, c) == 0;
}

/* "firebreak help backend" is "firebreak backend --help". */
static int help_on(int argc, char **argv)
{
    const struct command *c = argc > 1 ? find(argv[1]) : NULL;
    char flag[] = "--help";
    char *args[] = {argc > 1 ? argv[1] : NULL, flag, NULL};

    if (c != NULL)
        return c->run(2, args);
    if (argc > 1)
        return complain(argv[1]);
    print_help(stdout);
    return COMMAND_OK;
}

int main(int argc, char **argv)
{
    const struct command *c;

    if (argc < 2) {
        print_help(stderr);
        return COMMAND_USAGE;
    }
    if (is_any(argv[1], "help", "--help", "-h"))
        return help_on(argc - 1, argv + 1);
    if (is_any(argv[1], "--version", "-V", "-v"))
        return command_version(1, argv + 1);
    c = find(argv[1]);
    return c == NULL ? complain(argv[1]) : c->run(argc - 1, argv + 1);
}
