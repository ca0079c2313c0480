/* SPDX-License-Identifier: Apache-2.0 */
#include "os/process.h"

#include <grp.h>
#include <pwd.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sys/resource.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "io/error.h"
#include "os/threads.h"

/* What changes the process runs in a child, which says by its status where it went wrong. */
static void in_child(int (*run)(void))
{
    int status = 0;
    pid_t child = fork();

    if (child == 0)
        _exit(run());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static int raise_descriptors(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_max < 64)
        return 1;
    limit.rlim_cur = 32;
    limit.rlim_max = 64;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 2;
    if (os_process_raise_descriptors() != 64)
        return 3;
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur == 64 ? 0 : 4;
}

static void the_descriptor_limit_is_raised_to_the_hard_one(void **state)
{
    (void)state;
    in_child(raise_descriptors);
}

static int one_cpu(void)
{
    unsigned before = os_process_cpus();

    if (before < 1 || before > (unsigned)sysconf(_SC_NPROCESSORS_CONF))
        return 1;
    if (os_thread_pin(1) != IO_OK)
        return 2;
    return os_process_cpus() == 1 ? 0 : 3;
}

static void cpus_are_those_we_may_run_on(void **state)
{
    (void)state;
    in_child(one_cpu);
}

/* The |n|-th CPU of |set|. */
static int nth(const cpu_set_t *set, int n)
{
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET((size_t)cpu, set) && n-- == 0)
            return cpu;
    }
    return -1;
}

static int pin_each(void)
{
    cpu_set_t allowed;
    int n;

    sched_getaffinity(0, sizeof(allowed), &allowed);
    n = CPU_COUNT(&allowed);
    for (int i = 0; i < 2 * n; i++) {
        sched_setaffinity(0, sizeof(allowed), &allowed);
        if (os_thread_pin((unsigned)i) != IO_OK)
            return 1;
        if (sched_getcpu() != nth(&allowed, i % n))
            return 2;
    }
    return 0;
}

static void pinning_counts_round_the_allowed_cpus(void **state)
{
    (void)state;
    in_child(pin_each);
}

static void memory_is_no_more_than_the_machine_has(void **state)
{
    uint64_t memory = os_process_memory();
    (void)state;

    assert_true(memory > 1 << 20);
    assert_true(memory <= (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE));
}

static int become_nobody(void)
{
    struct passwd *nobody = getpwnam("nobody");
    const gid_t roots[] = {0, 4242};
    gid_t groups[64];
    int n;

    if (os_process_become("no such user here") != IO_NOT_FOUND)
        return 1;
    if (geteuid() != 0)
        return os_process_become("root") == IO_DENIED ? 0 : 2;
    if (setgroups(2, roots) != 0)
        return 9;
    if (nobody == NULL || os_process_become("nobody") != IO_OK)
        return 3;
    if (getuid() != nobody->pw_uid || getegid() != nobody->pw_gid)
        return 4;
    if (setuid(0) == 0 || seteuid(0) == 0 || setgid(0) == 0)
        return 5;
    n = getgroups(64, groups);
    for (int i = 0; i < n; i++) {
        if (groups[i] == 0 || groups[i] == 4242) /* root's own groups must be gone */
            return 6;
    }
    if (os_process_become("nobody") != IO_OK) /* already so */
        return 7;
    return os_process_become("root") == IO_DENIED ? 0 : 8;
}

static void privileges_once_dropped_are_gone(void **state)
{
    (void)state;
    in_child(become_nobody);
}

static void seeds_differ(void **state)
{
    uint64_t a = os_process_seed();
    uint64_t b = os_process_seed();
    (void)state;

    assert_true(a != b);
    assert_true(a != 0 && b != 0);
}

static void name_of_thread(void *arg)
{
    pthread_getname_np(pthread_self(), arg, 16);
}

static void threads_have_names(void **state)
{
    struct os_thread t;
    char name[16];
    (void)state;

    assert_int_equal(os_thread_start(&t, "fb-worker-0", name_of_thread, name), IO_OK);
    os_thread_join(&t);
    assert_string_equal(name, "fb-worker-0");
    assert_int_equal(os_thread_start(&t, "a name much too long", name_of_thread, name), IO_OK);
    os_thread_join(&t);
    assert_string_equal(name, "a name much too");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_descriptor_limit_is_raised_to_the_hard_one),
        cmocka_unit_test(cpus_are_those_we_may_run_on),
        cmocka_unit_test(pinning_counts_round_the_allowed_cpus),
        cmocka_unit_test(memory_is_no_more_than_the_machine_has),
        cmocka_unit_test(privileges_once_dropped_are_gone),
        cmocka_unit_test(seeds_differ),
        cmocka_unit_test(threads_have_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
