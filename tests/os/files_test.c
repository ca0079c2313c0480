/* SPDX-License-Identifier: Apache-2.0 */
#include "os/files.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/memory.h"
#include "io/error.h"

static char folder[] = "/tmp/fb-os-files-XXXXXX";
static struct files files;

static int set_up(void **state)
{
    (void)state;
    os_files_init(&files);
    return mkdtemp(folder) == NULL ? -1 : 0;
}

static int tear_down(void **state)
{
    (void)state;
    return rmdir(folder); /* every test leaves it empty */
}

static const char *in_folder(const char *name)
{
    static char path[128];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static void what_is_appended_is_read_again(void **state)
{
    const char *path = in_folder("a");
    struct bytes got;
    struct file *f;
    struct stat about;
    (void)state;

    for (int round = 0; round < 2; round++) { /* the second opens what is there */
        assert_int_equal(files_open(&files, path, &f), IO_OK);
        assert_int_equal(files_append(&files, f, BYTES("one ")), 4);
        assert_int_equal(files_append(&files, f, BYTES("two ")), 4);
        files_close(&files, f);
    }
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_mode & 0137, 0); /* at most 0640 */
    assert_int_equal(files_read(&files, path, 16, &got), IO_OK);
    assert_true(bytes_equal(got, BYTES("one two one two ")));
    memory_give((void *)(uintptr_t)got.data);
    assert_int_equal(files_read(&files, path, 15, &got), IO_INVALID);
    unlink(path);
}

static void large_and_empty_files_are_read_whole(void **state)
{
    const char *path = in_folder("b");
    size_t size = 300001;
    uint8_t *data = malloc(size);
    struct bytes got;
    FILE *out = fopen(path, "w");
    (void)state;

    assert_non_null(out);
    fclose(out);
    assert_int_equal(files_read(&files, path, 0, &got), IO_OK);
    assert_int_equal(got.len, 0);
    memory_give((void *)(uintptr_t)got.data);
    for (size_t i = 0; i < size; i++)
        data[i] = (uint8_t)(i * 7);
    out = fopen(path, "w");
    assert_int_equal(fwrite(data, 1, size, out), size);
    fclose(out);
    assert_int_equal(files_read(&files, path, size, &got), IO_OK);
    assert_true(bytes_equal(got, bytes_from(data, size)));
    memory_give((void *)(uintptr_t)got.data);
    assert_int_equal(files_read(&files, path, SIZE_MAX, &got), IO_OK);
    assert_int_equal(got.len, size);
    memory_give((void *)(uintptr_t)got.data);
    assert_int_equal(files_read(&files, "/dev/zero", 100000, &got), IO_INVALID);
    free(data);
    unlink(path);
}

static void each_trouble_has_its_name(void **state)
{
    struct bytes got;
    struct file *f;
    const char *pipe_path = in_folder("pipe");
    (void)state;

    assert_int_equal(files_read(&files, "/nonexistent/x", 10, &got), IO_NOT_FOUND);
    assert_int_equal(files_read(&files, folder, 10, &got), IO_INVALID);
    assert_int_equal(files_open(&files, "/nonexistent/x", &f), IO_NOT_FOUND);
    assert_int_equal(files_open(&files, folder, &f), IO_INVALID);
    /* A pipe that nobody reads: an error, where open alone would wait for ever. */
    assert_int_equal(mkfifo(pipe_path, 0600), 0);
    assert_int_equal(files_open(&files, pipe_path, &f), IO_NOT_FOUND);
    unlink(pipe_path);
    assert_int_equal(files_open(&files, "/dev/full", &f), IO_OK);
    assert_int_equal(files_append(&files, f, BYTES("x")), IO_NO_SPACE);
    files_close(&files, f);
}

static void unreadable_in_child(const char *path)
{
    struct bytes got;
    struct file *f;

    if (geteuid() == 0 && setuid(65534) != 0)
        _exit(2);
    if (files_read(&files, path, 10, &got) != IO_DENIED)
        _exit(3);
    _exit(files_open(&files, path, &f) == IO_DENIED ? 0 : 4);
}

static int status_of(pid_t child)
{
    int status = 0;

    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void what_we_may_not_read_is_denied(void **state)
{
    const char *path = in_folder("secret");
    pid_t child;
    (void)state;

    close(open(path, O_CREAT | O_WRONLY, 0));
    chmod(folder, 0755);
    child = fork();
    if (child == 0)
        unreadable_in_child(path);
    assert_int_equal(status_of(child), 0);
    unlink(path);
}

static void too_large_in_child(const char *path)
{
    const struct rlimit limit = {6, 6};
    struct file *f;

    signal(SIGXFSZ, SIG_IGN); /* as os_signals_block does */
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0 || files_open(&files, path, &f) != IO_OK)
        _exit(2);
    if (files_append(&files, f, BYTES("12345678")) != 6) /* what there was room for */
        _exit(3);
    _exit(files_append(&files, f, BYTES("78")) == IO_NO_SPACE ? 0 : 4);
}

static void a_disk_that_fills_up_takes_a_part_and_then_says_so(void **state)
{
    const char *path = in_folder("small");
    pid_t child = fork();
    (void)state;

    if (child == 0)
        too_large_in_child(path);
    assert_int_equal(status_of(child), 0);
    unlink(path);
}

static void standard_output_in_child(int fd)
{
    struct file *f;

    signal(SIGPIPE, SIG_IGN);
    dup2(fd, STDOUT_FILENO);
    if (files_open(&files, "-", &f) != IO_OK || files_append(&files, f, BYTES("line\n")) != 5)
        _exit(2);
    files_close(&files, f);
    /* Closing gives back a copy; standard output itself lives on. */
    if (files_open(&files, "-", &f) != IO_OK || files_append(&files, f, BYTES("more\n")) != 5)
        _exit(3);
    _exit(0);
}

static void a_dash_is_standard_output(void **state)
{
    char got[32] = "";
    int ends[2];
    pid_t child;
    (void)state;

    assert_int_equal(pipe(ends), 0);
    child = fork();
    if (child == 0)
        standard_output_in_child(ends[1]);
    assert_int_equal(status_of(child), 0);
    assert_int_equal(read(ends[0], got, sizeof(got)), 10);
    assert_string_equal(got, "line\nmore\n");
    close(ends[0]);
    close(ends[1]);
}

static void a_reader_that_went_away_is_an_error(void **state)
{
    struct file *f;
    const char *path = in_folder("pipe");
    int reader;
    (void)state;

    signal(SIGPIPE, SIG_IGN);
    assert_int_equal(mkfifo(path, 0600), 0);
    reader = open(path, O_RDONLY | O_NONBLOCK);
    assert_int_equal(files_open(&files, path, &f), IO_OK);
    assert_int_equal(files_append(&files, f, BYTES("x")), 1);
    close(reader);
    assert_int_equal(files_append(&files, f, BYTES("x")), IO_CLOSED);
    files_close(&files, f);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_appended_is_read_again),
        cmocka_unit_test(large_and_empty_files_are_read_whole),
        cmocka_unit_test(each_trouble_has_its_name),
        cmocka_unit_test(what_we_may_not_read_is_denied),
        cmocka_unit_test(a_disk_that_fills_up_takes_a_part_and_then_says_so),
        cmocka_unit_test(a_dash_is_standard_output),
        cmocka_unit_test(a_reader_that_went_away_is_an_error),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
