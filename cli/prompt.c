/*
 * An empty stdin joins nothing: `tgen "x" </dev/null`, as cron and CI run it, means just "x".
 */
#include "cli/prompt.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Parts that are there stand with a newline between them. */
static void separate(struct buffer *out)
{
    if (out->n > 0)
        buffer_add(out, "\n", 1);
}

static bool read_stdin(struct buffer *out, struct err *e)
{
    const size_t before = out->n;
    separate(out);
    const size_t begin = out->n;
    if (!buffer_read(out, STDIN_FILENO, "standard input", e))
        return false;
    if (out->n == begin)
        out->n = before;
    return true;
}

bool prompt_read_file(const char *path, struct buffer *out, struct err *e)
{
    if (!path || strcmp(path, "-") == 0)
        return read_stdin(out, e);
    const int fd = buffer_open_file(path, e);
    if (fd < 0)
        return false;
    const bool ok = buffer_read(out, fd, path, e);
    close(fd);
    return ok;
}

/* Which of its sources the options name a prompt in. */
struct sources {
    bool words, file, stdin_asked; /* stdin_asked: as "-", which may stand behind -f as well */
};

static struct sources sources_of(const struct options *o)
{
    const bool dash = o->file && strcmp(o->file, "-") == 0;
    return (struct sources){.words = o->n_words > 0 || o->prompt,
                            .file = o->file && !dash,
                            .stdin_asked = o->wants_stdin || dash};
}

/* True where stdin can hold a prompt: open, and nobody would have to type it. */
static bool has_input(void)
{
    const int flags = fcntl(STDIN_FILENO, F_GETFL);
    return flags != -1 && (flags & O_ACCMODE) != O_WRONLY && !isatty(STDIN_FILENO);
}

bool prompt_read(const struct options *o, struct buffer *out, bool *given, struct err *e)
{
    const struct sources from = sources_of(o);
    const bool from_stdin = from.stdin_asked || (!from.file && has_input());
    *given = from.words || from.file || from_stdin;
    if (o->n_words > 0 && o->prompt)
        return err_set(e, ERR_USAGE, "the prompt is given twice: with -p and as \"%s\"",
                       o->words[0]);

    if (from.file && !prompt_read_file(o->file, out, e))
        return false;
    if (from_stdin && !read_stdin(out, e))
        return false;
    if (from.words)
        separate(out);
    if (o->prompt)
        buffer_add_string(out, o->prompt);
    for (size_t i = 0; i < o->n_words; i++) {
        if (i > 0)
            buffer_add(out, " ", 1);
        buffer_add_string(out, o->words[i]);
    }
    return buffer_ok(out, e);
}

bool prompt_open(const struct options *o, int *fd, const char **name, struct err *e)
{
    const struct sources from = sources_of(o);
    *fd = -1;
    if (from.words || (from.file && from.stdin_asked))
        return true;
    *name = from.file ? o->file : "standard input";
    if (from.file)
        *fd = buffer_open_file(o->file, e);
    else if (from.stdin_asked || has_input())
        *fd = STDIN_FILENO;
    return !from.file || *fd >= 0;
}

void prompt_close(int fd)
{
    if (fd > STDIN_FILENO)
        close(fd);
}

unsigned prompt_flags(const struct options *o)
{
    return (o->no_bos ? 0 : ENCODE_ADD_SPECIAL) | (o->special ? ENCODE_PARSE_SPECIAL : 0);
}

bool prompt_encode(const struct options *o, const struct tokenizer *t, const struct buffer *text,
                   struct ids *out, struct token_spans *where, struct err *e)
{
    const unsigned flags = prompt_flags(o);
    const char *bytes = text->n > 0 ? text->data : "";
    struct encoder *encoder = encoder_new(t, e);
    if (!encoder)
        return false;
    const bool ok = encoder_encode_spans(encoder, bytes, text->n, flags, out, where, e);
    encoder_free(encoder);
    return ok;
}

static bool separates_ids(char c)
{
    return c == ' ' || c == ',' || c == '\n' || c == '\t' || c == '\r';
}

/* word[0..n) as an id; false where it is none. */
static bool parse_id(const char *word, size_t n, int32_t *out)
{
    int64_t id = 0;
    for (size_t i = 0; i < n && id <= INT32_MAX; i++) {
        if (word[i] < '0' || word[i] > '9')
            return false;
        id = id * 10 + (word[i] - '0');
    }
    *out = (int32_t)id;
    return id <= INT32_MAX;
}

bool prompt_parse_ids(const char *name, const char *text, size_t n, struct ids *out, struct err *e)
{
    for (size_t i = 0; i < n; i++) {
        const size_t begin = i;
        while (i < n && !separates_ids(text[i]))
            i++;
        if (i == begin)
            continue;
        int32_t id;
        if (!parse_id(text + begin, i - begin, &id))
            return err_set(e, ERR_USAGE, "%s: \"%.*s\" is no token id", name,
                           (int)min_size(i - begin, 20), text + begin);
        if (!ids_push(out, id, e))
            return false;
    }
    return true;
}
