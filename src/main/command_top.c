/* SPDX-License-Identifier: Apache-2.0 */
/* firebreak top: the peers of a running proxy side by side, once a second. */
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/list.h"
#include "main/ask_admin.h"
#include "main/command.h"
#include "main/options.h"

#define TARGET_ROOM 2048
#define REDRAW      "\033[H"   /* from the top left corner on */
#define LINE_END    "\033[K\n" /* what was there before is gone */
#define REST_GONE   "\033[J"
#define SCREEN_ON   "\033[?1049h\033[?25l" /* another screen, no cursor */
#define SCREEN_OFF  "\033[?25h\033[?1049l"

static const struct command_help help = {
    .name = "top",
    .usage = "[OPTION ...]",
    .summary =
        "The hosts of each cluster side by side, by class of requests: attempts, failures, "
        "latency\n"
        "as a multiple of the median of their peers, share, state. Once a second until it is\n"
        "interrupted; where the output is no terminal, one page after the other.",
    .notes = "The same is at /peers of the admin pages.\n"
             "Exit code 1: nobody answers at the admin address.",
    .examples = "firebreak top\n"
                "firebreak top --cluster checkout --admin 127.0.0.1:15000\n"
                "firebreak top --once | grep -v healthy",
};

struct arguments {
    struct address admin;
    const char *cluster;
    uint64_t every; /* span_ns */
    bool once;
};

struct screen {
    struct lab_loop loop;
    struct admin_question question;
    struct appointment next;
    bool due;
    bool terminal;
    bool is_on; /* the other screen */
};

static enum options_verdict read_arguments(struct arguments *a, int argc, char **argv)
{
    const struct command_option table[] = {
        OPTION_ADMIN(&a->admin),
        {.name = "cluster",
         .kind = OPTION_TEXT,
         .target = &a->cluster,
         .placeholder = "NAME",
         .help = "only that one"},
        {.name = "every",
         .kind = OPTION_DURATION,
         .target = &a->every,
         .least = 100 * NS_PER_MS,
         .most = 3600 * NS_PER_S,
         .placeholder = "T",
         .help = "how often it looks (1s)"},
        {.name = "once", .kind = OPTION_FLAG, .target = &a->once, .help = "one page, then exit"},
    };

    *a = (struct arguments){.every = NS_PER_S};
    (void)address_parse(BYTES(ADMIN_USUAL), &a->admin);
    return options_read(&help, table, sizeof(table) / sizeof(table[0]), argc, argv);
}

/* --- drawing --- */

static uint32_t rows_of_terminal(void)
{
    struct winsize size = {.ws_row = 0};

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row < 2)
        return 24;
    return size.ws_row;
}

/* As many lines as there is room for, over those that were there. */
static void redraw(struct bytes page)
{
    uint32_t left = rows_of_terminal() - 1;

    fputs(REDRAW, stdout);
    while (page.len > 0 && left-- > 0) {
        size_t end = bytes_find(page, '\n');

        fwrite(page.data, 1, end < page.len ? end : page.len, stdout);
        fputs(LINE_END, stdout);
        page = end < page.len ? bytes_skip(page, end + 1) : BYTES_NONE;
    }
    fputs(REST_GONE, stdout);
}

static void draw(struct screen *s, struct bytes page)
{
    if (!s->terminal) {
        fwrite(page.data, 1, page.len, stdout);
        return;
    }
    if (!s->is_on)
        fputs(SCREEN_ON, stdout);
    s->is_on = true;
    redraw(page);
}

/* False: nobody answers, or nobody reads what is drawn. */
static bool look(struct screen *s)
{
    struct buffer answer;

    if (!ask_admin(&s->loop, &s->question, &answer))
        return false;
    draw(s, buffer_bytes(&answer));
    buffer_release(&answer);
    return fflush(stdout) == 0;
}

static void look_due(struct appointment *a, mono_ns now)
{
    (void)now;
    CONTAINER_OF(a, struct screen, next)->due = true;
}

static void wait(struct screen *s, span_ns every)
{
    s->due = false;
    schedule_arm(&s->loop.schedule, &s->next, mono_after(s->loop.now, every));
    while (!s->due && !s->loop.stopped)
        lab_loop_turn(&s->loop);
    schedule_cancel(&s->loop.schedule, &s->next);
}

static int run(struct screen *s, const struct arguments *a)
{
    bool good = look(s);

    while (good && !a->once && !s->loop.stopped) {
        wait(s, a->every);
        good = s->loop.stopped || look(s);
    }
    if (s->is_on) {
        fputs(SCREEN_OFF, stdout);
        fflush(stdout);
    }
    return good || s->loop.interrupted ? COMMAND_OK : COMMAND_FAILED;
}

int command_top(int argc, char **argv)
{
    struct screen s = {.due = false};
    char room[TARGET_ROOM];
    struct arguments a;
    struct text target;
    enum options_verdict v = read_arguments(&a, argc, argv);
    int code;

    if (v != OPTIONS_GO)
        return v == OPTIONS_HELP ? COMMAND_OK : COMMAND_USAGE;
    text_init(&target, room, sizeof(room) - 1);
    text_str(&target, "/peers");
    if (a.cluster != NULL)
        ask_parameter(&target, "cluster", bytes_of(a.cluster));
    if (target.failed || lab_loop_open(&s.loop) != 0) {
        fprintf(stderr, "firebreak top: no descriptors or memory, or a name too long\n");
        return COMMAND_FAILED;
    }
    s.question =
        (struct admin_question){.command = "top", .to = a.admin, .target = text_end(&target)};
    s.terminal = isatty(STDOUT_FILENO) && !a.once;
    appointment_init(&s.next, look_due);
    code = run(&s, &a);
    lab_loop_close(&s.loop);
    return code;
}
