/* SPDX-License-Identifier: Apache-2.0 */
/* firebreak explain: why is it in or out. */
#include <stdio.h>
#include <string.h>

#include "main/ask_admin.h"
#include "main/command.h"
#include "main/options.h"

#define TARGET_ROOM   3600
#define ARGUMENTS_MAX 64

static const struct command_help help = {
    .name = "explain",
    .usage = "[CLUSTER [HOST]] [OPTION ...]",
    .summary =
        "Why a host is out, or still in: the evidence against it, the threshold, what each guard\n"
        "says, what was done, what would change it, and how long detection takes at its present\n"
        "rate. Without HOST: a line a host, and the latest decisions.",
    .notes = "HOST is written as /clusters of the admin pages shows it. The same is at\n"
             "/explain?cluster=CLUSTER&host=HOST there.\n"
             "Exit code 1: nobody answers at the admin address, or there is no such host.",
    .examples = "firebreak explain\n"
                "firebreak explain checkout 10.0.0.7:8080\n"
                "firebreak explain checkout --admin 127.0.0.1:15000 --json",
};

struct arguments {
    const char *words[2]; /* CLUSTER, HOST */
    size_t count;
    struct address admin;
    bool json;
};

/* What is no option, out of |argv|. False: too much of it, or too many arguments at all. */
static bool take_words(struct arguments *a, int argc, char **argv, char **options, int *n)
{
    for (int i = 0; i < argc; i++) {
        bool word = i > 0 && argv[i][0] != '-' && strcmp(argv[i - 1], "--admin") != 0;

        if (word && a->count == 2)
            return false;
        if (word)
            a->words[a->count++] = argv[i];
        else if (*n < ARGUMENTS_MAX)
            options[(*n)++] = argv[i];
    }
    return true;
}

static enum options_verdict read_arguments(struct arguments *a, int argc, char **argv)
{
    const struct command_option table[] = {
        OPTION_ADMIN(&a->admin),
        {.name = "json", .kind = OPTION_FLAG, .target = &a->json, .help = "the same as JSON"},
    };
    char *options[ARGUMENTS_MAX + 1];
    int n = 0;

    *a = (struct arguments){.count = 0};
    (void)address_parse(BYTES(ADMIN_USUAL), &a->admin);
    if (!take_words(a, argc, argv, options, &n)) {
        fprintf(stderr, "firebreak explain: it takes a cluster and a host, and no more; firebreak "
                        "explain --help has examples\n");
        return OPTIONS_BAD;
    }
    options[n] = NULL;
    return options_read(&help, table, sizeof(table) / sizeof(table[0]), n, options);
}

static bool write_target(const struct arguments *a, struct text *t)
{
    static const char *const keys[] = {"cluster", "host"};

    text_str(t, "/explain");
    for (size_t i = 0; i < a->count; i++)
        ask_parameter(t, keys[i], bytes_of(a->words[i]));
    if (a->json)
        ask_parameter(t, "format", BYTES("json"));
    if (t->failed)
        fprintf(stderr, "firebreak explain: no name is as long as that\n");
    return !t->failed;
}

static int show(const struct arguments *a, const char *target)
{
    const struct admin_question q = {.command = "explain", .to = a->admin, .target = target};
    struct buffer answer;
    struct lab_loop loop;
    int code = COMMAND_FAILED;

    if (lab_loop_open(&loop) != 0) {
        fprintf(stderr, "firebreak explain: no descriptors or memory for a loop\n");
        return code;
    }
    if (ask_admin(&loop, &q, &answer)) {
        fwrite(buffer_bytes(&answer).data, 1, buffer_len(&answer), stdout);
        buffer_release(&answer);
        code = fflush(stdout) == 0 ? COMMAND_OK : COMMAND_FAILED;
    }
    lab_loop_close(&loop);
    return code;
}

int command_explain(int argc, char **argv)
{
    char room[TARGET_ROOM];
    struct arguments a;
    struct text target;
    enum options_verdict v = read_arguments(&a, argc, argv);

    if (v != OPTIONS_GO)
        return v == OPTIONS_HELP ? COMMAND_OK : COMMAND_USAGE;
    text_init(&target, room, sizeof(room) - 1);
    return write_target(&a, &target) ? show(&a, text_end(&target)) : COMMAND_USAGE;
}
