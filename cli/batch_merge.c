/*
 * Holds where each answer lies, not the answers: parts are read once through for the names, and
 * then line by line where the order of the input leads.
 */
#include "cli/batch_merge.h"

#include "cli/batch_answer.h"
#include "cli/batch_resume.h"
#include "cli/batch_source.h"
#include "cli/stream.h"
#include "core/file_write.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FLUSH_SIZE = 1 << 20, MOST_LINKS = 40 /* as the system follows */ };

struct part {
    char *path;
    int fd;
};

/* Where an answer is. */
struct place {
    uint64_t offset;
    size_t size; /* with its newline */
    int part;
    bool is_error, used;
};

struct merge {
    const struct options *o;
    struct part *parts; /* [n_parts] */
    int n_parts;
    struct batch_index names; /* of answers -> index in places */
    struct place *places;     /* [n_places] */
    size_t n_places, capacity;
    struct batch_input input;
    struct batch_source source;
    struct buffer name, out;
    char *result;    /* o->output, or what a link of this name leads to, there or not */
    char *temporary; /* what becomes it */
    int fd;
    size_t n_lines, n_missing, first_missing, n_errors;
    struct err first_error; /* of the line first_missing, if it is a bad one */
};

/* ---- parts ----------------------------------------------------------------------------------- */

/* The n of a name "answers.k-of-n.jsonl" that the parts of `base` have; 0 for another. */
static int parts_of(const char *name, const char *base)
{
    const size_t n_base = strlen(base);
    const char *dot = strrchr(base, '.');
    const size_t n_stem = dot && dot != base ? (size_t)(dot - base) : n_base;
    int k = 0, n = 0, length = 0;
    if (strncmp(name, base, n_stem) != 0 ||
        sscanf(name + n_stem, ".%7d-of-%7d%n", &k, &n, &length) < 2)
        return 0;
    const bool is_part = k > 0 && k <= n && n <= BATCH_SHARD_MOST;
    return is_part && strcmp(name + n_stem + length, base + n_stem) == 0 ? n : 0;
}

/* How many parts the job had, by the files that lie there. A single process has none and writes
 * o->output itself. */
static bool count_parts(struct merge *m, struct err *e)
{
    const char *path = m->o->output, *slash = strrchr(path, '/');
    char *dir = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    DIR *list = dir ? opendir(dir) : NULL;
    if (!list) {
        err_set(e, ERR_RUNTIME, "cannot read the directory of %s: %s", path, strerror(errno));
        free(dir);
        return false;
    }
    bool ok = true;
    for (struct dirent *entry; ok && (errno = 0, entry = readdir(list)) != NULL;) {
        const int n = parts_of(entry->d_name, slash ? slash + 1 : path);
        if (n > 0 && m->n_parts > 0 && n != m->n_parts)
            ok = err_set(e, ERR_RUNTIME, "there are parts of %d and parts of %d of %s", m->n_parts,
                         n, path);
        m->n_parts = n > 0 ? n : m->n_parts;
    }
    if (ok && errno != 0)
        ok = err_set(e, ERR_RUNTIME, "cannot read the directory of %s: %s", path, strerror(errno));
    closedir(list);
    free(dir);
    if (ok && m->n_parts == 0 && access(path, F_OK) == 0)
        m->n_parts = 1;
    if (ok && m->n_parts == 0)
        ok = err_set(e, ERR_RUNTIME, "there are no parts of %s", path);
    return ok;
}

static bool open_part(struct merge *m, int k, struct err *e)
{
    struct part *part = &m->parts[k];
    part->path = batch_shard_path(m->o->output, k + 1, m->n_parts, e);
    if (!part->path)
        return false;
    part->fd = buffer_open_file(part->path, e);
    if (part->fd < 0)
        return false;
    if (flock(part->fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return err_set(e, ERR_RUNTIME, "%s is still being written", part->path);
    return true;
}

static bool open_parts(struct merge *m, struct err *e)
{
    if (!count_parts(m, e))
        return false;
    m->parts = calloc((size_t)m->n_parts, sizeof *m->parts);
    if (!m->parts)
        return err_no_memory(e);
    for (int k = 0; k < m->n_parts; k++)
        m->parts[k].fd = -1;
    for (int k = 0; k < m->n_parts; k++)
        if (!open_part(m, k, e))
            return false;
    return true;
}

/* ---- answers --------------------------------------------------------------------------------- */

static bool add_place(struct merge *m, const struct place *place, struct err *e)
{
    struct place *places =
        grow_array(m->places, &m->capacity, m->n_places + 1, sizeof *places, 1024);
    if (!places)
        return err_no_memory(e);
    m->places = places;
    m->places[m->n_places] = *place;
    return batch_index_add(&m->names, m->name.data, m->name.n, m->n_places++, e);
}

static bool refuse(const struct batch_input *in, const char *what, struct err *e)
{
    return err_set(e, ERR_RUNTIME, "line %zu of %s %s", in->number, in->name, what);
}

/* The names and places of a part's answers. */
static bool read_part(struct merge *m, int k, struct err *e)
{
    struct batch_input in;
    struct bytes text;
    enum batch_answer_kind kind;
    enum batch_input_state state;
    bool ok = true;
    batch_input_begin(&in, m->parts[k].fd, m->parts[k].path);
    while (ok && (state = batch_answer_next(&in, &text, &kind, &m->name, e)) == BATCH_INPUT_LINE) {
        const struct place place = {.offset = in.offset - text.size - 1,
                                    .size = text.size + 1,
                                    .part = k,
                                    .is_error = kind == BATCH_ANSWER_ERROR};
        if (!buffer_ok(&m->name, e))
            ok = false;
        else if (kind == BATCH_ANSWER_NONE)
            ok = refuse(&in, "is no answer", e);
        else if (batch_index_find(&m->names, m->name.data, m->name.n))
            ok = refuse(&in, "answers what was answered already", e);
        else
            ok = add_place(m, &place, e);
    }
    ok = ok && state == BATCH_INPUT_END;
    batch_input_free(&in);
    return ok;
}

static struct place *find_place(struct merge *m, const struct batch_line *line)
{
    const struct batch_index_entry *entry = NULL;
    if (line->error.code == ERR_NONE)
        entry = batch_index_find(&m->names, line->custom_id.data, line->custom_id.n);
    if (!entry) {
        batch_answer_error_name(line->number, &line->custom_id, &m->name);
        entry = batch_index_find(&m->names, m->name.data, m->name.n);
    }
    return entry ? &m->places[entry->value] : NULL;
}

/* ---- the result ------------------------------------------------------------------------------ */

static bool flush(struct merge *m, struct err *e)
{
    if (!buffer_ok(&m->out, e) || !stream_write(m->fd, m->temporary, m->out.data, m->out.n, e))
        return false;
    m->out.n = 0;
    return true;
}

/* Appends the answer that lies there to *out. */
static bool read_place(const struct merge *m, const struct place *place, struct buffer *out,
                       struct err *e)
{
    const struct part *part = &m->parts[place->part];
    char *text = malloc(place->size);
    if (!text)
        return err_no_memory(e);
    size_t n = 0;
    for (ssize_t got = 1; n < place->size && got > 0; n += got > 0 ? (size_t)got : 0)
        got = pread(part->fd, text + n, place->size - n, (off_t)(place->offset + n));
    buffer_add(out, text, n);
    free(text);
    return n == place->size || err_set(e, ERR_RUNTIME, "cannot read %s", part->path);
}

static bool copy(struct merge *m, struct place *place, struct err *e)
{
    place->used = true;
    return read_place(m, place, &m->out, e) && (m->out.n < FLUSH_SIZE || flush(m, e));
}

static bool copy_lines(struct merge *m, struct err *e)
{
    struct batch_line line;
    enum batch_input_state state;
    bool ok = true;
    while (ok && (state = batch_source_next(&m->source, true, &line, e)) == BATCH_INPUT_LINE) {
        struct place *place = find_place(m, &line);
        m->n_lines++;
        if (!place && m->n_missing++ == 0) {
            m->first_missing = line.number;
            m->first_error = line.error;
        }
        if (place) {
            m->n_errors += place->is_error;
            ok = copy(m, place, e);
        }
        batch_line_free(&line);
    }
    return ok && state == BATCH_INPUT_END && flush(m, e);
}

static bool refuse_strange(struct merge *m, const struct place *place, struct err *e)
{
    struct buffer text = {0};
    if (read_place(m, place, &text, e) && buffer_ok(&text, e)) {
        (void)batch_answer_name(text.data, text.n, &m->name);
        if (buffer_ok(&m->name, e))
            err_set(e, ERR_RUNTIME, "%s has an answer that matches no line of %s, to %.*s",
                    m->parts[place->part].path, m->input.name, batch_answer_shown(m->name.n),
                    m->name.data);
    }
    buffer_free(&text);
    return false;
}

static bool check_complete(struct merge *m, struct err *e)
{
    const bool bad = m->first_error.code != ERR_NONE; /* not as the job took it, perhaps */
    if (m->n_missing > 0)
        return err_set(e, ERR_RUNTIME, "%zu of %zu lines have no answer, the first is line %zu%s%s",
                       m->n_missing, m->n_lines, m->first_missing, bad ? ": " : "",
                       bad ? m->first_error.text : "");
    for (size_t i = 0; i < m->n_places; i++)
        if (!m->places[i].used && !m->places[i].is_error) /* errors may be of an earlier input */
            return refuse_strange(m, &m->places[i], e);
    return true;
}

/* The result may replace earlier answers and nothing else: it could be a file of the model, about
 * which nothing is known here. */
static bool check_place(const struct merge *m, struct err *e)
{
    const char *path = m->o->output;
    struct stat about;
    struct err unused;
    if (stat(path, &about) != 0)
        return true;
    const bool regular = S_ISREG(about.st_mode);
    const int fd = regular ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (regular && fd < 0)
        return err_set(e, ERR_RUNTIME, "cannot open %s: %s", path, strerror(errno));
    const bool good = fd >= 0 && batch_resume_check(fd, path, &unused);
    if (fd >= 0)
        close(fd);
    return good || err_set(e, ERR_USAGE,
                           "%s is there already and holds no answers; the merged ones need a file "
                           "of their own",
                           path);
}

/* Whether another process is at work on the file, or has just given it its final name. */
static bool is_taken(const char *path, int fd)
{
    struct stat named, opened;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return true;
    return stat(path, &named) != 0 || fstat(fd, &opened) != 0 || named.st_ino != opened.st_ino;
}

/* Whoever may read the earlier answers may read the merged ones. */
static bool keep_mode(const struct merge *m)
{
    struct stat about;
    return stat(m->o->output, &about) != 0 || fchmod(m->fd, about.st_mode & 0777) == 0;
}

/* One at a time: the ranks of mpirun would all merge the same parts. */
static bool open_temporary(struct merge *m, struct err *e)
{
    const int fd = open(m->temporary, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd >= 0 && is_taken(m->temporary, fd)) {
        close(fd);
        return err_set(e, ERR_RUNTIME, "%s is being merged by another process", m->o->output);
    }
    m->fd = fd;
    return (fd >= 0 && ftruncate(fd, 0) == 0 && keep_mode(m)) ||
           err_set(e, ERR_RUNTIME, "cannot write to %s: %s", m->temporary, strerror(errno));
}

/* Where a link leads that stands at the end of `path`: n bytes of target, which begin at the root
 * or at the link's directory. malloc'ed, NULL without memory. */
static char *path_behind(const char *path, const char *target, size_t n)
{
    const char *slash = target[0] != '/' ? strrchr(path, '/') : NULL;
    const size_t n_dir = slash ? (size_t)(slash + 1 - path) : 0;
    char *behind = malloc(n_dir + n + 1);
    if (behind)
        snprintf(behind, n_dir + n + 1, "%.*s%.*s", (int)n_dir, path, (int)n, target);
    return behind;
}

/* The file that the job itself would write, or make: that of `path`, or of the last link from there
 * on. realpath knows none that is not there yet. NULL and errno. */
static char *follow_links(const char *path)
{
    char target[PATH_MAX];
    char *at = strdup(path);
    ssize_t n;
    for (int n_links = 0; at && (n = readlink(at, target, sizeof target)) >= 0; n_links++) {
        char *behind = n_links < MOST_LINKS ? path_behind(at, target, (size_t)n) : NULL;
        errno = n_links < MOST_LINKS ? errno : ELOOP;
        free(at);
        at = behind;
    }
    return at;
}

static bool open_files(struct merge *m, struct err *e)
{
    const struct options *o = m->o;
    if (!o->output || o->n_words != 1)
        return err_set(e, ERR_USAGE, "--merge needs the job's file of lines and its -o FILE");
    if (o->given[OPT_RESTART] || o->given[OPT_SHARD])
        return err_set(e, ERR_USAGE, "--merge joins all parts and knows no --restart or --shard");
    if (!batch_input_open(&m->input, o->words[0], e) ||
        !batch_input_check_output(&m->input, o->output, e) || !check_place(m, e) ||
        !open_parts(m, e))
        return false;
    m->result = follow_links(o->output);
    const size_t size = m->result ? strlen(m->result) + sizeof ".merging" : 0;
    m->temporary = size > 0 ? malloc(size) : NULL;
    if (!m->temporary)
        return err_set(e, ERR_RUNTIME, "cannot write to %s: %s", o->output, strerror(errno));
    snprintf(m->temporary, size, "%s.merging", m->result);
    return open_temporary(m, e);
}

static bool put_in_place(struct merge *m, struct err *e)
{
    return (file_write_sync(m->fd) && rename(m->temporary, m->result) == 0) ||
           err_set(e, ERR_RUNTIME, "cannot write to %s: %s", m->o->output, strerror(errno));
}

static void free_merge(struct merge *m)
{
    for (int k = 0; m->parts && k < m->n_parts; k++) {
        free(m->parts[k].path);
        if (m->parts[k].fd >= 0)
            close(m->parts[k].fd);
    }
    free(m->parts);
    free(m->places);
    free(m->temporary);
    free(m->result);
    if (m->fd >= 0)
        close(m->fd);
    if (m->input.fd > STDIN_FILENO)
        close(m->input.fd);
    batch_index_free(&m->names);
    batch_source_free(&m->source);
    batch_input_free(&m->input);
    buffer_free(&m->name);
    buffer_free(&m->out);
}

bool batch_merge_run(const struct options *o, enum batch_task task, struct err *e)
{
    struct merge m = {.o = o, .fd = -1};
    m.source =
        (struct batch_source){.o = o, .task = task, .shard = {.k = 1, .n = 1}, .input = &m.input};
    bool ok = open_files(&m, e);
    for (int k = 0; ok && k < m.n_parts; k++)
        ok = read_part(&m, k, e);
    ok = ok && copy_lines(&m, e) && check_complete(&m, e) && put_in_place(&m, e);
    if (!ok && m.temporary && m.fd >= 0)
        unlink(m.temporary);
    if (ok && m.n_errors > 0)
        ok = err_set(e, ERR_RUNTIME,
                     "%zu of %zu lines could not be answered; their answers have an \"error\"",
                     m.n_errors, m.n_lines);
    free_merge(&m);
    return ok;
}
