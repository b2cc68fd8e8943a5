/* tgen tokenize: text -> ids, with nothing but the tokenizer's files of a directory. */
#include "cli/command.h"

#include "cli/help.h"
#include "cli/json_out.h"
#include "cli/load.h"
#include "cli/prompt.h"
#include "cli/stream.h"
#include "cli/terminal.h"

struct tokens {
    const struct tokenizer *tokenizer;
    struct ids ids;
    struct token_spans spans; /* of each id, for --json */
};

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
    json_out_open(out, "ids", '[');
    for (size_t i = 0; i < t->ids.n; i++)
        json_out_unsigned(out, NULL, (uint64_t)t->ids.id[i]);
    json_out_close(out, ']');
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
    for (size_t i = 0; i < piece.size; i++) {
        if (piece.data[i] < 0x20 || piece.data[i] == 0x7f)
            buffer_addf(out, "\\x%02x", piece.data[i]);
        else
            buffer_add(out, (const char *)piece.data + i, 1);
    }
}

/* A space stands between two pieces; where there is colour, every second one is coloured besides.
 */
static void write_pieces(const struct tokens *t, struct buffer *out)
{
    const bool has_colour = terminal_has_colour(STREAM_STDOUT);
    for (size_t i = 0; i < t->ids.n; i++) {
        const bool coloured = has_colour && i % 2 == 1;
        buffer_add_string(out, i == 0 ? "" : " ");
        buffer_add_string(out, coloured ? "\033[36m" : "");
        write_piece(tokenizer_piece(t->tokenizer, t->ids.id[i]), out);
        buffer_add_string(out, coloured ? "\033[0m" : "");
    }
    buffer_add_string(out, "\n");
}

static void write_ids(const struct tokens *t, struct buffer *out)
{
    for (size_t i = 0; i < t->ids.n; i++)
        buffer_addf(out, "%s%d", i == 0 ? "" : " ", t->ids.id[i]);
    buffer_add_string(out, "\n");
}

static bool print_tokens(const struct options *o, const struct tokens *t, struct err *e)
{
    struct buffer out = {0};
    if (o->json)
        write_json(t, &out);
    else if (o->count)
        buffer_addf(&out, "%zu\n", t->ids.n);
    else if (o->pieces)
        write_pieces(t, &out);
    else
        write_ids(t, &out);
    const bool ok = stream_print(&out, e);
    buffer_free(&out);
    return ok;
}

bool command_tokenize(const struct options *o, struct err *e)
{
    struct buffer text = {0};
    struct loaded l = {.checkpoint = NULL};
    struct tokens t = {.tokenizer = NULL};
    bool given;
    bool ok = prompt_read(o, &text, &given, e) && (given || help_no_prompt("tokenize", e)) &&
              load_checkpoint(&l, o, e) && load_tokenizer(&l, true, e);
    t.tokenizer = l.tokenizer;
    ok = ok && prompt_encode(o, t.tokenizer, &text, &t.ids, o->json ? &t.spans : NULL, e) &&
         print_tokens(o, &t, e);
    token_spans_free(&t.spans);
    ids_free(&t.ids);
    load_free(&l);
    buffer_free(&text);
    return ok;
}
