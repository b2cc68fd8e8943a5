/*
 * A window over the file that grows with the longest line. A newline is searched for once per byte,
 * however many reads a line takes.
 */
#include "cli/batch_input.h"

#include "cli/stream.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_SIZE = 1 << 16, PATIENCE_MS = 200 };

/* A line is held whole, and /dev/zero has no newline. */
static const size_t LONGEST = (size_t)1 << 30;

void batch_input_begin(struct batch_input *in, int fd, const char *name)
{
    struct stat about;
    const bool file = fstat(fd, &about) == 0 && S_ISREG(about.st_mode);
    *in = (struct batch_input){
        .fd = fd, .name = name, .start = file ? (int64_t)lseek(fd, 0, SEEK_CUR) : -1};
}

bool batch_input_open(struct batch_input *in, const char *path, struct err *e)
{
    if (path[0] == '\0')
        return err_set(e, ERR_USAGE, "the name of a file is empty");
    const int fd = buffer_open_file(path, e);
    if (fd < 0 && stream_interrupted()) /* while nobody wrote into a pipe */
        return err_interrupted(e);
    if (fd < 0)
        return false;
    batch_input_begin(in, fd, path);
    return true;
}

bool batch_input_check_output(const struct batch_input *in, const char *path, struct err *e)
{
    struct stat lines, answers;
    const int got = path ? stat(path, &answers) : fstat(STREAM_STDOUT, &answers);
    if (got != 0 || fstat(in->fd, &lines) != 0 || !S_ISREG(lines.st_mode) ||
        lines.st_dev != answers.st_dev || lines.st_ino != answers.st_ino)
        return true;
    return err_set(e, ERR_USAGE, "%s holds the lines; the answers need a file of their own",
                   in->name);
}

/* Whether read(2) would find something; a signal is heard at least every PATIENCE_MS. Not left to
 * EINTR alone: the signal may come before the call. */
static bool is_ready(const struct batch_input *in, bool wait)
{
    struct pollfd asked = {.fd = in->fd, .events = POLLIN};
    for (;;) {
        const int n = poll(&asked, 1, wait ? PATIENCE_MS : 0);
        if (n > 0 || (n < 0 && errno != EINTR))
            return true; /* an error too: read will tell which */
        if (!wait || stream_interrupted())
            return false;
    }
}

/* Room for READ_SIZE bytes behind what is there, which moves to the front first. */
static bool make_room(struct batch_input *in, struct err *e)
{
    struct buffer *t = &in->data;
    buffer_drop(t, in->at);
    in->searched -= in->at;
    in->at = 0;
    if (t->n > LONGEST)
        return err_set(e, ERR_RUNTIME, "line %zu of %s is longer than %zu bytes", in->number + 1,
                       in->name, LONGEST);
    return buffer_reserve(t, READ_SIZE) || err_no_memory(e);
}

/* Nothing is no failure: another reader may have taken what was there, and then only is_ready must
 * wait, or a signal would not be heard. */
static bool read_more(struct batch_input *in, struct err *e)
{
    if (!make_room(in, e))
        return false;
    const ssize_t got = read(in->fd, in->data.data + in->data.n, READ_SIZE);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return true;
    if (got < 0)
        return err_set(e, ERR_RUNTIME, "cannot read %s: %s", in->name, strerror(errno));
    in->data.n += (size_t)got;
    in->data.data[in->data.n] = '\0';
    in->end = got == 0;
    return true;
}

static enum batch_input_state take(struct batch_input *in, size_t n, bool whole, struct bytes *line)
{
    *line = (struct bytes){(const unsigned char *)in->data.data + in->at, n};
    in->at += n + whole;
    in->offset += n + whole;
    in->searched = in->at;
    in->number++;
    return BATCH_INPUT_LINE;
}

enum batch_input_state batch_input_next(struct batch_input *in, bool wait, struct bytes *line,
                                        bool *whole, struct err *e)
{
    for (;;) {
        const size_t left = in->data.n - in->searched;
        const char *from = left > 0 ? in->data.data + in->searched : NULL;
        const char *newline = left > 0 ? memchr(from, '\n', left) : NULL;
        *whole = newline != NULL;
        if (newline)
            return take(in, (size_t)(newline - in->data.data) - in->at, true, line);
        in->searched = in->data.n;
        if (in->end)
            return in->data.n > in->at ? take(in, in->data.n - in->at, false, line)
                                       : BATCH_INPUT_END;
        if (!is_ready(in, wait))
            return BATCH_INPUT_WAIT;
        if (!read_more(in, e))
            return BATCH_INPUT_FAILED;
    }
}

bool batch_input_is_blank(struct bytes line)
{
    for (size_t i = 0; i < line.size; i++)
        if (!memchr(" \t\r", line.data[i], 3))
            return false;
    return true;
}

bool batch_input_rewind(struct batch_input *in, struct err *e)
{
    if (in->start < 0 || lseek(in->fd, in->start, SEEK_SET) != in->start)
        return err_set(e, ERR_RUNTIME, "cannot read %s a second time", in->name);
    in->data.n = in->at = in->searched = in->number = 0;
    in->offset = 0;
    in->end = false;
    return true;
}

void batch_input_free(struct batch_input *in)
{
    buffer_free(&in->data);
}
