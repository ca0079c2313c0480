/* SPDX-License-Identifier: Apache-2.0 */
/* firebreak demo: what ejection does, in half a minute. */
#include <stdio.h>
#include <unistd.h>

#include "lab/demo.h"
#include "main/command.h"
#include "main/options.h"

#define SECONDS 28

#define COUNT_OF(table) (sizeof(table) / sizeof((table)[0]))

static const struct command_help help = {
    .name = "demo",
    .usage = "[OPTION ...]",
    .summary =
        "Starts ten servers, one of them slow and failing half of its requests, and a proxy\n"
        "before them; sends steady open-loop load, first with ejection off, then on; and\n"
        "compares. With --scenario the servers are well at first, then break as it says, and what\n"
        "is compared is detection. Needs no file, no root and no free port of its own choice.",
    .notes = "On a terminal the peers are drawn side by side; else a line is printed each second.",
    .examples = "firebreak demo\n"
                "firebreak demo --seconds 60 --rate 1000\n"
                "firebreak demo --scenario blackhole\n"
                "firebreak demo --keep",
};

struct arguments {
    uint64_t seconds;
    uint64_t rate;
    uint64_t seed;
    const struct demo_scenario *scenario;
    bool keep;
};

static const char *parse_scenario(struct bytes value, void *target)
{
    const struct demo_scenario **out = target;

    *out = demo_scenario_find(value);
    return *out == NULL ? "write slow, minority, fleet, blackhole or zone" : NULL;
}

static enum options_verdict read_arguments(struct arguments *a, int argc, char **argv)
{
    const struct command_option options[] = {
        {.name = "seconds",
         .kind = OPTION_NUMBER,
         .target = &a->seconds,
         .placeholder = "N",
         .least = 2,
         .most = 86400,
         .help = "of load, both halves together (28; of minority 90)"},
        {.name = "rate",
         .kind = OPTION_NUMBER,
         .target = &a->rate,
         .placeholder = "N",
         .least = 1,
         .most = 20000,
         .help = "requests a second (300)"},
        {.name = "seed",
         .kind = OPTION_NUMBER,
         .target = &a->seed,
         .placeholder = "N",
         .help = "of the arrivals, and of which server is bad (1)"},
        {.name = "scenario",
         .kind = OPTION_PARSED,
         .target = &a->scenario,
         .parse = parse_scenario,
         .placeholder = "NAME",
         .help = "what detection does (profile adaptive, round robin) where\n"
                 "slow: a server takes three times as long;\n"
                 "minority: it takes twenty times as long for 5 % of its answers;\n"
                 "fleet: all take three times as long;\n"
                 "blackhole: a server takes requests and never answers;\n"
                 "zone: the servers of one zone of three take three times as long"},
        {.name = "keep",
         .kind = OPTION_FLAG,
         .target = &a->keep,
         .help = "leave it running after the comparison, admin pages open, until Ctrl-C"},
    };

    *a = (struct arguments){.seconds = 0, .rate = 300, .seed = 1};
    return options_read(&help, options, COUNT_OF(options), argc, argv);
}

static uint64_t seconds_of(const struct arguments *a)
{
    if (a->seconds > 0)
        return a->seconds;
    return a->scenario == NULL ? SECONDS : a->scenario->seconds;
}

int command_demo(int argc, char **argv)
{
    struct arguments a;
    enum options_verdict v = read_arguments(&a, argc, argv);

    if (v != OPTIONS_GO)
        return v == OPTIONS_HELP ? COMMAND_OK : COMMAND_USAGE;
    return demo_run(&(struct demo_options){.seconds = seconds_of(&a),
                                           .rate = (double)a.rate,
                                           .seed = a.seed,
                                           .scenario = a.scenario,
                                           .style = isatty(STDOUT_FILENO) ? DEMO_LIVE : DEMO_PLAIN,
                                           .keep = a.keep})
               ? COMMAND_OK
               : COMMAND_FAILED;
}
