/* SPDX-License-Identifier: Apache-2.0 */
/* firebreak demo: what ejection does, in half a minute. */
#include <stdio.h>
#include <unistd.h>

#include "lab/demo.h"
#include "main/command.h"
#include "main/options.h"

#define COUNT_OF(table) (sizeof(table) / sizeof((table)[0]))

static const struct command_help help = {
    .name = "demo",
    .usage = "[OPTION ...]",
    .summary =
        "Starts ten servers, one of them slow and failing half of its requests, and a proxy\n"
        "before them; sends steady open-loop load, first with ejection off, then on; and\n"
        "compares. Needs no file, no root and no free port of its own choice.",
    .notes = "On a terminal the peers are drawn side by side; else a line is printed each second.",
    .examples = "firebreak demo\n"
                "firebreak demo --seconds 60 --rate 1000\n"
                "firebreak demo --keep",
};

struct arguments {
    uint64_t seconds;
    uint64_t rate;
    uint64_t seed;
    bool keep;
};

static enum options_verdict read_arguments(struct arguments *a, int argc, char **argv)
{
    const struct command_option options[] = {
        {.name = "seconds",
         .kind = OPTION_NUMBER,
         .target = &a->seconds,
         .placeholder = "N",
         .least = 2,
         .most = 86400,
         .help = "of load, both halves together (28)"},
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
        {.name = "keep",
         .kind = OPTION_FLAG,
         .target = &a->keep,
         .help = "leave it running after the comparison, admin pages open, until Ctrl-C"},
    };

    *a = (struct arguments){.seconds = 28, .rate = 300, .seed = 1};
    return options_read(&help, options, COUNT_OF(options), argc, argv);
}

int command_demo(int argc, char **argv)
{
    struct arguments a;
    enum options_verdict v = read_arguments(&a, argc, argv);

    if (v != OPTIONS_GO)
        return v == OPTIONS_HELP ? COMMAND_OK : COMMAND_USAGE;
    return demo_run(&(struct demo_options){.seconds = a.seconds,
                                           .rate = (double)a.rate,
                                           .seed = a.seed,
                                           .style = isatty(STDOUT_FILENO) ? DEMO_LIVE : DEMO_PLAIN,
                                           .keep = a.keep})
               ? COMMAND_OK
               : COMMAND_FAILED;
}
