/*
 * Start-up as a user meets it: whole processes, from before exec to the first byte on stdout and to
 * the end, and the anonymous memory (RssAnon) that they take.
 *
 *     bench_startup [-r RUNS] PROGRAM[,PROGRAM...] [ARGUMENT...]
 *
 * Several programs, builds of tgen for instance, take turns with the same arguments, so that a
 * machine whose speed wanders treats them alike; medians and minima are printed. Memory is looked
 * at in a run of its own, again and again until the first byte, which waits in a full pipe.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { MAX_PROGRAMS = 8, MAX_RUNS = 1001 };

struct times {
    char *program;
    double first[MAX_RUNS], whole[MAX_RUNS]; /* milliseconds */
    long anonymous;                          /* KiB at most */
};

static void die(const char *what)
{
    fprintf(stderr, "bench_startup: %s: %s\n", what, strerror(errno));
    exit(1);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* Its stdout is the pipe; stdin is empty, stderr ours. */
static pid_t start(char **argv, int out)
{
    pid_t pid;
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
    errno = posix_spawnp(&pid, argv[0], &files, NULL, argv, environ);
    if (errno != 0)
        die(argv[0]);
    posix_spawn_file_actions_destroy(&files);
    return pid;
}

static void finish(pid_t pid, const char *program)
{
    int status;
    if (waitpid(pid, &status, 0) != pid)
        die("waitpid");
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        fprintf(stderr, "bench_startup: %s failed\n", program);
        exit(1);
    }
}

static void time_one(char **argv, double *first, double *whole)
{
    char text[4096];
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        die("pipe");
    const double began = now();
    const pid_t pid = start(argv, ends[1]);
    close(ends[1]);
    *first = read(ends[0], text, sizeof text) > 0 ? now() - began : 0;
    while (read(ends[0], text, sizeof text) > 0) {
    }
    finish(pid, argv[0]);
    *whole = now() - began;
    close(ends[0]);
}

/* Of a file of /proc/PID, what stands behind `key`: RssAnon in KiB, or the whole line of stat. */
static bool look(pid_t pid, const char *name, const char *key, char *line, size_t size)
{
    char path[64];
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    FILE *f = fopen(path, "re");
    while (f && !found && fgets(line, (int)size, f))
        found = strncmp(line, key, strlen(key)) == 0;
    if (f)
        fclose(f);
    return found;
}

/* Clock ticks that the threads have run, -1 where the process has ended. */
static long ticks(pid_t pid)
{
    char line[1024];
    unsigned long user, system;
    if (!look(pid, "stat", "", line, sizeof line))
        return -1;
    const char *behind_name = strrchr(line, ')');
    if (!behind_name || behind_name[2] == 'Z' ||
        sscanf(behind_name + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
               &system) != 2)
        return -1;
    return (long)(user + system);
}

/* Fills the pipe, so that the first byte waits until all has been seen: until the process has not
 * run for half a second. */
static long measure_memory(char **argv)
{
    static char filling[4096];
    char text[4096];
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0 || fcntl(ends[1], F_SETFL, O_NONBLOCK) != 0)
        die("pipe");
    while (write(ends[1], filling, sizeof filling) > 0) {
    }
    fcntl(ends[1], F_SETFL, 0);
    const pid_t pid = start(argv, ends[1]);
    close(ends[1]);
    long most = 0, ran = 0;
    for (double since = now(); now() - since < 500; usleep(200)) {
        const long so_far = ticks(pid);
        if (so_far < 0)
            break;
        if (so_far != ran)
            since = now();
        ran = so_far;
        if (look(pid, "status", "RssAnon:", text, sizeof text)) {
            const long anonymous = strtol(text + strlen("RssAnon:"), NULL, 10);
            most = anonymous > most ? anonymous : most;
        }
    }
    while (read(ends[0], text, sizeof text) > 0) {
    }
    finish(pid, argv[0]);
    close(ends[0]);
    return most;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print(struct times *t, int runs)
{
    const size_t n = (size_t)runs;
    qsort(t->first, n, sizeof *t->first, compare);
    qsort(t->whole, n, sizeof *t->whole, compare);
    printf("%-24s first byte %7.2f ms (least %7.2f)  whole %7.2f ms (least %7.2f)  "
           "anonymous %7.1f MB\n",
           t->program, t->first[n / 2], t->first[0], t->whole[n / 2], t->whole[0],
           (double)t->anonymous * 1024e-6);
}

int main(int argc, char **argv)
{
    static struct times times[MAX_PROGRAMS];
    int runs = 21, at = 1, n = 0;
    if (argc > 3 && strcmp(argv[1], "-r") == 0) {
        runs = atoi(argv[2]);
        at = 3;
    }
    if (at >= argc || runs < 1 || runs > MAX_RUNS) {
        fprintf(stderr, "usage: bench_startup [-r 1..%d] PROGRAM[,PROGRAM...] [ARGUMENT...]\n",
                MAX_RUNS);
        return 2;
    }
    for (char *name = strtok(argv[at], ","); name && n < MAX_PROGRAMS; name = strtok(NULL, ","))
        times[n++].program = name;
    for (int i = 0; i < n; i++) {
        argv[at] = times[i].program;
        times[i].anonymous = measure_memory(argv + at); /* which warms the page cache too */
    }
    for (int r = 0; r < runs; r++) {
        for (int i = 0; i < n; i++) {
            argv[at] = times[i].program;
            time_one(argv + at, &times[i].first[r], &times[i].whole[r]);
        }
    }
    for (int i = 0; i < n; i++)
        print(&times[i], runs);
    return 0;
}
