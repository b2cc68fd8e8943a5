/*
 * tgen detokenize: ids -> text. Input is taken as it comes, so that the ids of a running `tgen
 * --print-ids` show as text at once and a file of any length passes through little memory.
 */
#include "cli/command.h"

#include "cli/json_out.h"
#include "cli/load.h"
#include "cli/prompt.h"
#include "cli/stream.h"

#include <string.h>
#include <unistd.h>

struct detokenizer {
    const struct tokenizer *tokenizer;
    struct decoder *decoder;
    struct ids ids;     /* of one read */
    struct buffer text; /* that they make: one write, not one for each */
    struct stream stream;
};

/* The text of the ids that `digits` spell goes out. */
static bool put_ids(struct detokenizer *d, const char *digits, size_t n, struct err *e)
{
    const int32_t n_ids = tokenizer_n_ids(d->tokenizer);
    d->ids.n = 0;
    if (!prompt_parse_ids("the ids", digits, n, &d->ids, e))
        return false;
    for (size_t i = 0; i < d->ids.n; i++) {
        if (d->ids.id[i] >= n_ids)
            return err_set(e, ERR_USAGE, "the token id %d is not in the vocabulary of %d",
                           d->ids.id[i], n_ids);
    }
    d->text.n = 0;
    for (size_t i = 0; i < d->ids.n; i++) {
        struct bytes bytes;
        if (!decoder_next(d->decoder, d->ids.id[i], &bytes, e))
            return false;
        buffer_add(&d->text, (const char *)bytes.data, bytes.size);
    }
    return buffer_ok(&d->text, e) && stream_put(&d->stream, d->text.data, d->text.n, e);
}

static bool put_words(struct detokenizer *d, const struct options *o, struct err *e)
{
    struct buffer digits = {0};
    for (size_t i = 0; i < o->n_words; i++)
        buffer_addf(&digits, "%s ", o->words[i]);
    const bool ok = buffer_ok(&digits, e) && put_ids(d, digits.data, digits.n, e);
    buffer_free(&digits);
    return ok;
}

/* The bytes up to the last one that cannot be inside an id. */
static size_t whole_ids(const char *digits, size_t n)
{
    while (n > 0 && digits[n - 1] >= '0' && digits[n - 1] <= '9')
        n--;
    return n;
}

/* Ids as they arrive from fd; one that the end of a read cuts waits for the rest. */
static bool put_input(struct detokenizer *d, int fd, const char *name, struct err *e)
{
    char digits[1 << 16];
    size_t n = 0;
    for (;;) {
        size_t got;
        if (!buffer_read_once(digits + n, sizeof digits - n, &got, fd, name, e))
            return false;
        n += got;
        const bool last = got == 0;
        size_t whole = last ? n : whole_ids(digits, n);
        if (whole == 0 && n == sizeof digits)
            whole = n; /* no id is that long, and put_ids will say so */
        if (!put_ids(d, digits, whole, e))
            return false;
        n -= whole;
        memmove(digits, digits + whole, n);
        if (last)
            return true;
    }
}

static bool put_all(struct detokenizer *d, const struct options *o, struct err *e)
{
    if (o->n_words > 0)
        return put_words(d, o, e);
    if (!o->file || strcmp(o->file, "-") == 0)
        return put_input(d, STDIN_FILENO, "standard input", e);
    const int fd = buffer_open_file(o->file, e);
    if (fd < 0)
        return false;
    const bool ok = put_input(d, fd, o->file, e);
    close(fd);
    return ok;
}

static bool print_json(const struct buffer *text, struct err *e)
{
    struct buffer out = {0};
    json_out_open(&out, NULL, '{');
    json_out_text(&out, "text", text->data, text->n);
    json_out_close(&out, '}');
    buffer_add_string(&out, "\n");
    const bool ok = stream_print(&out, e);
    buffer_free(&out);
    return ok;
}

bool command_detokenize(const struct options *o, struct err *e)
{
    const int n_sources = (o->n_words > 0) + (o->file != NULL) + o->wants_stdin;
    if (n_sources > 1)
        return err_set(e, ERR_USAGE, "the ids come from one place: the words, -f or -");
    if (n_sources == 0 && isatty(STDIN_FILENO))
        return err_set(e, ERR_USAGE, "no ids: tgen detokenize 1 2 3, -f FILE, or a pipe");

    struct loaded l = {.checkpoint = NULL};
    struct detokenizer d = {.stream = {.fd = o->json ? STREAM_COLLECT : STREAM_STDOUT}};
    bool ok = load_checkpoint(&l, o, e) && load_tokenizer(&l, true, e);
    if (ok) {
        d.tokenizer = l.tokenizer;
        d.decoder = decoder_new(l.tokenizer, o->special, e);
        ok = d.decoder && put_all(&d, o, e) && stream_end(&d.stream, true, e) &&
             (!o->json || print_json(&d.stream.collected, e));
    }
    decoder_free(d.decoder);
    stream_free(&d.stream);
    buffer_free(&d.text);
    ids_free(&d.ids);
    load_free(&l);
    return ok;
}
