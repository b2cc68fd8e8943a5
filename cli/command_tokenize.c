/*
 * tgen tokenize: text -> ids, with nothing but the tokenizer's files of a directory. A file or
 * stdin is encoded as it is read and written as it is encoded, in memory that does not grow with
 * it, as far as the tokenizer can settle ids before it has seen all. Only --json, which writes one
 * list behind the other, and words of the command line keep all ids.
 */
#include "cli/command.h"

#include "cli/help.h"
#include "cli/json_out.h"
#include "cli/load.h"
#include "cli/prompt.h"
#include "cli/stream.h"
#include "cli/terminal.h"
#include "core/utf8.h"

struct tokens {
    const struct tokenizer *tokenizer;
    struct ids ids;
    struct token_spans spans; /* of each id, for --json */
    size_t n_before;          /* ids that have been written already */
};

/* Bytes of a part: the end of one, which is encoded twice, should be little beside it. */
static const size_t PART_SIZE = (size_t)1 << 20;

static void write_json_spans(const struct tokens *t, struct buffer *out)
{
    json_out_open(out, "offsets", '[');
    for (size_t i = 0; i < t->spans.n; i++) {
        json_out_open(out, NULL, '[');
        json_out_unsigned(out, NULL, t->spans.at[i].start);
        json_out_unsigned(out, NULL, t->spans.at[i].end);
        json_out_close(out, ']');
    }
    json_out_close(out, ']');
}

static void write_json(const struct tokens *t, struct buffer *out)
{
    json_out_open(out, NULL, '{');
    json_out_ids(out, "ids", t->ids.id, t->ids.n);
    json_out_open(out, "pieces", '[');
    for (size_t i = 0; i < t->ids.n; i++) {
        const struct bytes piece = tokenizer_piece(t->tokenizer, t->ids.id[i]);
        json_out_text(out, NULL, (const char *)piece.data, piece.size);
    }
    json_out_close(out, ']');
    write_json_spans(t, out);
    json_out_unsigned(out, "n_tokens", t->ids.n);
    json_out_close(out, '}');
    buffer_add_string(out, "\n");
}

/* A piece as the vocabulary spells it. Few vocabularies spell control characters as they are; here
 * they would break the line, or steer the terminal. */
static void write_piece(struct bytes piece, struct buffer *out)
{
    const char *text = (const char *)piece.data;
    for (size_t at = 0, size; at < piece.size; at += size) {
        if (utf8_next(text + at, piece.size - at, &size) == UTF8_WHOLE &&
            !utf8_is_control(text + at))
            buffer_add(out, text + at, size);
        else
            for (size_t i = at; i < at + size; i++)
                buffer_addf(out, "\\x%02x", piece.data[i]);
    }
}

/* A space stands between two pieces; where there is colour, every second one is coloured besides.
 */
static void write_pieces(const struct tokens *t, struct buffer *out)
{
    const bool has_colour = terminal_has_colour(STREAM_STDOUT);
    for (size_t i = 0; i < t->ids.n; i++) {
        const bool coloured = has_colour && (t->n_before + i) % 2 == 1;
        buffer_add_string(out, t->n_before + i == 0 ? "" : " ");
        buffer_add_string(out, coloured ? "\033[36m" : "");
        write_piece(tokenizer_piece(t->tokenizer, t->ids.id[i]), out);
        buffer_add_string(out, coloured ? "\033[0m" : "");
    }
}

static void write_ids(const struct tokens *t, struct buffer *out)
{
    for (size_t i = 0; i < t->ids.n; i++)
        buffer_addf(out, "%s%d", t->n_before + i == 0 ? "" : " ", t->ids.id[i]);
}

/* Prints the ids that have come, and forgets them; --json waits for the last. */
static bool print_tokens(const struct options *o, struct tokens *t, bool last, struct err *e)
{
    struct buffer out = {0};
    if (o->json && !last)
        return true;
    if (o->json)
        write_json(t, &out);
    else if (o->pieces && !o->count)
        write_pieces(t, &out);
    else if (!o->count)
        write_ids(t, &out);
    t->n_before += t->ids.n;
    t->ids.n = 0;
    if (last && !o->json && o->count)
        buffer_addf(&out, "%zu", t->n_before);
    if (last && !o->json)
        buffer_add_string(&out, "\n");
    const bool ok = stream_print(&out, e);
    buffer_free(&out);
    return ok;
}

/* Part by part, each longer than what the one before has left over. */
static bool encode_stream(const struct options *o, struct tokens *t, struct encoder *encoder,
                          int fd, const char *name, struct err *e)
{
    struct buffer text = {0};
    struct encode_progress progress = {.done = 0};
    struct token_spans *spans = o->json ? &t->spans : NULL;
    bool ok = true;
    for (bool last = false; ok && !last;) {
        const size_t done = progress.done;
        ok = buffer_read_some(&text, text.n + (text.n > PART_SIZE ? text.n : PART_SIZE), &last, fd,
                              name, e) &&
             encoder_encode_part(encoder, text.data, text.n, last, prompt_flags(o), &progress,
                                 &t->ids, spans, e) &&
             print_tokens(o, t, last, e);
        if (ok)
            buffer_drop(&text, progress.done - done);
    }
    buffer_free(&text);
    return ok;
}

static bool tokenize_stream(const struct options *o, struct tokens *t, int fd, const char *name,
                            struct err *e)
{
    struct encoder *encoder = encoder_new(t->tokenizer, e);
    const bool ok = encoder && encode_stream(o, t, encoder, fd, name, e);
    encoder_free(encoder);
    return ok;
}

/* Words of the command line, or several sources at once. */
static bool tokenize_words(const struct options *o, struct tokens *t, struct err *e)
{
    struct buffer text = {0};
    bool given;
    const bool ok = prompt_read(o, &text, &given, e) && (given || help_no_prompt("tokenize", e)) &&
                    prompt_encode(o, t->tokenizer, &text, &t->ids, o->json ? &t->spans : NULL, e) &&
                    print_tokens(o, t, true, e);
    buffer_free(&text);
    return ok;
}

bool command_tokenize(const struct options *o, struct err *e)
{
    struct loaded l = {.checkpoint = NULL};
    struct tokens t = {.tokenizer = NULL};
    int fd;
    const char *name;
    if (!prompt_open(o, &fd, &name, e))
        return false;
    bool ok = load_checkpoint(&l, o, e) && load_tokenizer(&l, true, e);
    t.tokenizer = l.tokenizer;
    ok = ok && (fd >= 0 ? tokenize_stream(o, &t, fd, name, e) : tokenize_words(o, &t, e));
    prompt_close(fd);
    token_spans_free(&t.spans);
    ids_free(&t.ids);
    load_free(&l);
    return ok;
}
