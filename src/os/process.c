/* SPDX-License-Identifier: Apache-2.0 */
#include "os/process.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <sys/random.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "io/error.h"
#include "os/cgroup.h"
#include "os/error.h"

#define SELF  "/proc/self/cgroup"
#define MOUNT "/sys/fs/cgroup"

#define CPUS_MAX 65536 /* more than any machine has: the affinity mask is grown up to here */

uint64_t os_process_raise_descriptors(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 1024; /* POSIX promises less, but every Linux has it */
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        (void)getrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur == RLIM_INFINITY ? INT32_MAX : (uint64_t)limit.rlim_cur;
}

/* The kernel wants a mask at least as large as its own. */
static unsigned allowed_cpus(void)
{
    for (size_t n = 1024; n <= CPUS_MAX; n *= 2) {
        cpu_set_t *set = CPU_ALLOC(n);
        size_t size = CPU_ALLOC_SIZE(n);
        int count = 0;

        if (set == NULL)
            return 1;
        if (sched_getaffinity(0, size, set) == 0)
            count = CPU_COUNT_S(size, set);
        CPU_FREE(set);
        if (count > 0)
            return (unsigned)count;
    }
    return 1;
}

unsigned os_process_cpus(void)
{
    struct os_cgroup_limits limits;

    os_cgroup_read(SELF, MOUNT, &limits);
    return os_cgroup_cpus(&limits, allowed_cpus());
}

uint64_t os_process_memory(void)
{
    struct os_cgroup_limits limits;
    long pages = sysconf(_SC_PHYS_PAGES);
    long size = sysconf(_SC_PAGESIZE);
    uint64_t machine = pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : 0;

    os_cgroup_read(SELF, MOUNT, &limits);
    return limits.memory < machine ? limits.memory : machine;
}

static bool is_wholly(uid_t uid, gid_t gid)
{
    uid_t ruid, euid, suid;
    gid_t rgid, egid, sgid;

    if (getresuid(&ruid, &euid, &suid) != 0 || getresgid(&rgid, &egid, &sgid) != 0)
        return false;
    return ruid == uid && euid == uid && suid == uid && rgid == gid && egid == gid && sgid == gid;
}

/* Root could still be had back if one of the ids had been left behind: try. */
static bool is_final(uid_t uid)
{
    return uid == 0 || (setuid(0) != 0 && seteuid(0) != 0);
}

int os_process_become(const char *user)
{
    struct passwd *entry;

    errno = 0;
    entry = getpwnam(user);
    if (entry == NULL)
        return errno == EMFILE || errno == ENFILE ? IO_NO_DESCRIPTORS : IO_NOT_FOUND;
    if (geteuid() != 0)
        return is_wholly(entry->pw_uid, entry->pw_gid) ? IO_OK : IO_DENIED;
    if (initgroups(user, entry->pw_gid) != 0)
        return os_error(errno);
    if (setresgid(entry->pw_gid, entry->pw_gid, entry->pw_gid) != 0)
        return os_error(errno);
    if (setresuid(entry->pw_uid, entry->pw_uid, entry->pw_uid) != 0)
        return os_error(errno);
    if (!is_wholly(entry->pw_uid, entry->pw_gid) || !is_final(entry->pw_uid))
        return IO_OTHER;
    return IO_OK;
}

const char *os_process_hostname(char *room, size_t size)
{
    if (gethostname(room, size) != 0)
        return NULL;
    room[size - 1] = '\0';
    return room;
}

uint64_t os_process_seed(void)
{
    uint64_t seed = 0;
    struct timespec now = {0, 0};

    if (getrandom(&seed, sizeof(seed), 0) == (ssize_t)sizeof(seed))
        return seed;
    (void)clock_gettime(CLOCK_REALTIME, &now); /* a sandbox without getrandom: not for secrets */
    return (uint64_t)now.tv_nsec * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)now.tv_sec ^
           (uint64_t)getpid() << 32;
}
