/* Control groups as the kernel lists and shows them, in a folder of their own. */
#include "tests/check.h"

#include "core/cgroup.h"
#include "core/cpus.h"
#include "core/memory.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char root[] = "/tmp/test_cpus.XXXXXX";

static void put(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", root, name);
    for (char *slash = strchr(path + sizeof root, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void expect(const char *groups, int cpus)
{
    char path[256];
    put("self", groups);
    snprintf(path, sizeof path, "%s/self", root);
    assert_int_equal(cpus_of_quota(path, root), cpus);
}

static void expect_limit(const char *groups, uint64_t bytes)
{
    char path[256];
    put("self", groups);
    snprintf(path, sizeof path, "%s/self", root);
    assert_true(memory_of_groups(path, root) == bytes);
}

static void remove_all(void)
{
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", root);
    assert_int_equal(system(command), 0);
    strcpy(root + strlen(root) - 6, "XXXXXX");
}

static void quotas(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(root));
    expect("0::/\n", 0);
    put("a/b/cpu.max", "max 100000\n");
    expect("0::/a/b\n", 0);
    put("a/cpu.max", "160000 100000\n"); /* a group is bound by those that it is part of */
    expect("0::/a/b\n", 2);
    expect("0::/elsewhere\n", 0);
    put("cpu.max", "20000 100000\n");
    expect("0::/a/b\n", 1);
    expect("0::/no/such/path\n", 1); /* as within a container */
    put("cpu.max", "max 100000\n");
    put("cpu/docker/cpu.cfs_quota_us", "400000\n");
    put("cpu/docker/cpu.cfs_period_us", "100000\n");
    expect("5:cpuset:/docker\n4:cpu,cpuacct:/docker\n0::/\n", 4);
    expect("4:cpuacct,cpu:/docker\n", 4);
    expect("5:cpuset:/docker\n", 0);
    put("cpu/docker/cpu.cfs_quota_us", "-1\n");
    expect("4:cpu:/docker\n", 0);
    put("cpu/docker/cpu.cfs_quota_us", "lots\n");
    expect("4:cpu:/docker\n4\n:::\n", 0);
    assert_int_equal(cpus_of_quota("/no/such/file", root), 0);
    remove_all();
}

static void memory(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(root));
    expect_limit("0::/a/b\n", UINT64_MAX);
    put("a/b/memory.max", "max\n");
    expect_limit("0::/a/b\n", UINT64_MAX);
    put("a/memory.max", "17179869184\n");
    expect_limit("0::/a/b\n", UINT64_C(16) << 30);
    put("memory.max", "536870912\n");
    expect_limit("0::/a/b\n", UINT64_C(512) << 20);
    expect_limit("0::/no/such/path\n", UINT64_C(512) << 20);
    put("memory.max", "much\n");
    put("memory/docker/memory.limit_in_bytes", "2147483648\n");
    expect_limit("9:memory:/docker\n4:cpu:/docker\n0::/\n", UINT64_C(2) << 30);
    expect_limit("4:cpu:/docker\n", UINT64_MAX);
    put("memory/docker/memory.limit_in_bytes", "9223372036854771712\n");
    expect_limit("9:memory:/docker\n", 9223372036854771712u);
    put("memory.max", ""); /* no word is no limit, whatever stood where it would go */
    char limit[32] = "1", none[32] = "";
    assert_int_equal(cgroup_words(root, "memory.max", limit, none), 0);
    expect_limit("0::/\n", UINT64_MAX);
    remove_all();
}

static int possible; /* CPUs that the kernel knows; 0: it tells nothing */

/* In place of libc's: three CPUs are allowed, the last ones. */
int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
    (void)pid;
    errno = possible ? EINVAL : EPERM;
    if (!possible || size * 8 < (size_t)possible)
        return -1;
    memset(set, 0, size);
    for (int i = 1; i <= 3; i++)
        CPU_SET_S((size_t)(possible - i), size, set);
    return 0;
}

static void usable(void **state)
{
    (void)state;
    const int quota = cpus_of_quota(CGROUP_SELF, CGROUP_ROOT);
    for (possible = 4; possible < 40000; possible *= 10)
        assert_int_equal(cpus_usable(), quota > 0 && quota < 3 ? quota : 3);
    possible = 0;
    assert_int_equal(cpus_usable(), 1);
    assert_true(memory_usable() >= 1 << 20);
}

/* ulimit -v counts, too; a sanitizer lives beyond any. */
static void limited(void **state)
{
    (void)state;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    int status;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const rlim_t most = 100 << 20;
        const struct rlimit addresses = {.rlim_cur = most, .rlim_max = most};
        _exit(setrlimit(RLIMIT_AS, &addresses) == 0 && memory_usable() == most ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(quotas), cmocka_unit_test(memory),
                                       cmocka_unit_test(usable), cmocka_unit_test(limited)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
