/*
 * The order of look-up and the layout of the cache are those of huggingface_hub (constants.py,
 * "Understand caching" in its guides): $HF_HUB_CACHE, $HUGGINGFACE_HUB_CACHE, $HF_HOME/hub,
 * $XDG_CACHE_HOME/huggingface/hub, ~/.cache/huggingface/hub. In the cache,
 * models--ORG--NAME/refs/main holds a commit, and snapshots/COMMIT the files.
 */
#include "cli/locate.h"

#include "cli/buffer.h"
#include "core/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LONGEST_COMMIT = 64 }; /* 40 hexadecimal digits today, 64 where git uses SHA-256 */

/* The text as a malloc'ed string; the caller's text is spent. */
static char *finish(struct buffer *t, struct err *e)
{
    if (!buffer_ok(t, e)) {
        buffer_free(t);
        return NULL;
    }
    return t->data;
}

/* An environment variable that is set and not empty, else NULL. */
static const char *environment(const char *name)
{
    const char *value = getenv(name);
    return value && value[0] != '\0' ? value : NULL;
}

/* A path, and what is below it; "~" at its beginning is the home directory, for shells leave it as
 * it is within quotes. */
static void add_path(struct buffer *t, const char *path, const char *below)
{
    const char *const home = environment("HOME");
    const bool at_home = path[0] == '~' && (path[1] == '/' || path[1] == '\0');
    if (at_home)
        buffer_add_string(t, home ? home : "");
    buffer_add_string(t, path + at_home);
    buffer_add_string(t, below);
}

static void add_hub_cache(struct buffer *t)
{
    const char *hub = environment("HF_HUB_CACHE"), *hf_home = environment("HF_HOME");
    const char *xdg = environment("XDG_CACHE_HOME");
    if (!hub)
        hub = environment("HUGGINGFACE_HUB_CACHE"); /* its older name */
    if (hub)
        add_path(t, hub, "");
    else if (hf_home)
        add_path(t, hf_home, "/hub");
    else if (xdg)
        add_path(t, xdg, "/huggingface/hub");
    else
        add_path(t, "~", "/.cache/huggingface/hub");
}

/* The length of the name at the beginning of the text, in characters that the Hub allows; 0 for one
 * that begins with a dot, so that no name leads out of the cache. */
static size_t plain_name(const char *text)
{
    return text[0] == '.' ? 0
                          : strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                         "0123456789-_.");
}

/* "org/name", or the bare "name" of the Hub's first models. */
static bool is_repository(const char *name)
{
    const size_t first = plain_name(name);
    if (first == 0 || name[first] == '\0')
        return first > 0;
    const char *rest = name + first + 1;
    const size_t second = plain_name(rest);
    return name[first] == '/' && second > 0 && rest[second] == '\0';
}

/* The plain folder that the text in the file names; empty where it names none. */
static void parse_commit(int fd, char commit[LONGEST_COMMIT + 1])
{
    const ssize_t n = read(fd, commit, LONGEST_COMMIT);
    commit[n > 0 ? n : 0] = '\0';
    const size_t length = plain_name(commit);
    const bool whole = commit[length + strspn(commit + length, " \r\n")] == '\0';
    commit[whole ? length : 0] = '\0';
}

/* The commit that refs/main names, empty where the file is missing or names none. False where what
 * is there is no file. */
static bool read_commit(const char *repository, char commit[LONGEST_COMMIT + 1], struct err *e)
{
    struct buffer path = {0};
    struct stat st;
    commit[0] = '\0';
    buffer_addf(&path, "%s/refs/main", repository);
    bool ok = buffer_ok(&path, e);
    /* O_NONBLOCK: opening a named pipe must not wait for somebody to write into it. */
    const int fd = ok ? open(path.data, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        parse_commit(fd, commit);
    else if (fd >= 0)
        ok = err_set(e, ERR_LOAD, "%s: not a regular file", path.data);
    if (fd >= 0)
        close(fd);
    buffer_free(&path);
    return ok;
}

/* The folder of the repository in the cache: CACHE/models--ORG--NAME. */
static void add_repository(struct buffer *t, const char *name)
{
    add_hub_cache(t);
    buffer_add_string(t, "/models--");
    for (const char *c = name; *c != '\0'; c++)
        buffer_add(t, *c == '/' ? "--" : c, *c == '/' ? 2 : 1);
}

/* Why there is no snapshot to use; `path` is the folder that ought to be there. */
static void fail_in_cache(const char *name, const char *path, struct err *e)
{
    struct buffer cache = {0};
    add_hub_cache(&cache);
    if (file_is_directory(path))
        err_set(e, ERR_LOAD, "%s has no snapshot of its main branch; run: hf download %s", path,
                name);
    else
        err_set(e, ERR_LOAD,
                "%s is neither a directory here nor in the Hugging Face cache %s; "
                "run: hf download %s",
                name, cache.data ? cache.data : "", name);
    buffer_free(&cache);
}

static char *locate_in_cache(const char *name, struct err *e)
{
    struct buffer repository = {0}, snapshot = {0};
    char commit[LONGEST_COMMIT + 1];
    add_repository(&repository, name);
    if (!buffer_ok(&repository, e)) {
        buffer_free(&repository);
        return NULL;
    }
    bool good = read_commit(repository.data, commit, e);
    if (good && commit[0] != '\0')
        buffer_addf(&snapshot, "%s/snapshots/%s", repository.data, commit);
    good = good && buffer_ok(&snapshot, e);
    if (good && (snapshot.n == 0 || !file_is_directory(snapshot.data))) {
        fail_in_cache(name, repository.data, e);
        good = false;
    }
    if (!good)
        buffer_free(&snapshot);
    buffer_free(&repository);
    return snapshot.data;
}

static char *locate_named(const char *name, struct err *e)
{
    struct stat st;
    const bool exists = stat(name, &st) == 0;
    const int reason = errno;
    if (exists && !S_ISDIR(st.st_mode)) {
        err_set(e, ERR_LOAD, "%s is a file; a model is the directory that holds its files%s", name,
                text_ends_in(name, ".gguf") ? ", safetensors and not GGUF" : "");
        return NULL;
    }
    if (!exists && (reason == ENOENT || reason == ENOTDIR) && is_repository(name))
        return locate_in_cache(name, e);
    if (!exists && strstr(name, "://")) {
        err_set(e, ERR_LOAD,
                "%s is an address, and tgen reads only directories of this machine; download it "
                "(hf download org/name) and name it (-m org/name)",
                name);
        return NULL;
    }
    if (!exists) {
        err_set(e, ERR_LOAD, "cannot open %s: %s", name[0] != '\0' ? name : "\"\"",
                strerror(reason));
        return NULL;
    }
    struct buffer path = {0};
    buffer_add_string(&path, name);
    return finish(&path, e);
}

/* The directory that the running binary lies in, links resolved; empty where /proc is missing. */
static void add_own_directory(struct buffer *t)
{
    char path[4096];
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path);
    if (n <= 0 || (size_t)n == sizeof path)
        return;
    size_t length = (size_t)n;
    while (length > 1 && path[length - 1] != '/')
        length--;
    buffer_add(t, path, length);
}

static char *locate_bundled(struct err *e)
{
    static const char *const places[] = {"models/tales", "../share/tgen/models/tales"};
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        struct buffer path = {0};
        add_own_directory(&path);
        buffer_add_string(&path, places[i]);
        char *dir = !path.failed && file_is_directory(path.data) ? realpath(path.data, NULL) : NULL;
        buffer_free(&path);
        if (dir)
            return dir;
    }
    err_set(e, ERR_LOAD,
            "there is no bundled model at %s or %s beside the program; "
            "name a model with -m DIR or -m org/name",
            places[0], places[1]);
    return NULL;
}

char *locate_model(const char *name, struct err *e)
{
    if (name)
        return locate_named(name, e);
    const char *fallback = environment("TGEN_MODEL");
    if (!fallback)
        return locate_bundled(e);
    char *dir = locate_named(fallback, e);
    if (!dir)
        err_prefix(e, "$TGEN_MODEL");
    return dir;
}
