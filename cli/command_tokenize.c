/* tgen tokenize: text -> ids, with nothing but the tokenizer's files of a directory. */
#include "cli/command.h"

#include "cli/help.h"
#include "cli/json_out.h"
#include "cli/load.h"
#include "cli/prompt.h"
#include "cli/stream.h"
#include "cli/terminal.h"

static void write_json(const struct tokenizer *t, const struct ids *ids, struct buffer *out)
{
    json_out_open(out, NULL, '{');
    json_out_open(out, "ids", '[');
    for (size_t i = 0; i < ids->n; i++)
        json_out_unsigned(out, NULL, (uint64_t)ids->id[i]);
    json_out_close(out, ']');
    json_out_open(out, "pieces", '[');
    for (size_t i = 0; i < ids->n; i++) {
        const struct bytes piece = tokenizer_piece(t, ids->id[i]);
        json_out_text(out, NULL, (const char *)piece.data, piece.size);
    }
    json_out_close(out, ']');
    json_out_unsigned(out, "n_tokens", ids->n);
    json_out_close(out, '}');
    buffer_add_string(out, "\n");
}

/* Each piece as the vocabulary spells it, so that spaces and bytes can be seen. A space stands
 * between two; where there is colour, every second one is coloured besides. */
static void write_pieces(const struct tokenizer *t, const struct ids *ids, struct buffer *out)
{
    const bool coloured = terminal_has_colour(STREAM_STDOUT);
    for (size_t i = 0; i < ids->n; i++) {
        const struct bytes piece = tokenizer_piece(t, ids->id[i]);
        buffer_add_string(out, i == 0 ? "" : " ");
        buffer_add_string(out, coloured && i % 2 == 1 ? "\033[36m" : "");
        buffer_add(out, (const char *)piece.data, piece.size);
        buffer_add_string(out, coloured && i % 2 == 1 ? "\033[0m" : "");
    }
    buffer_add_string(out, "\n");
}

static void write_ids(const struct ids *ids, struct buffer *out)
{
    for (size_t i = 0; i < ids->n; i++)
        buffer_addf(out, "%s%d", i == 0 ? "" : " ", ids->id[i]);
    buffer_add_string(out, "\n");
}

static bool tokenize(const struct options *o, const struct buffer *text, struct loaded *l,
                     struct ids *ids, struct err *e)
{
    return load_checkpoint(l, o, e) && load_tokenizer(l, e) &&
           prompt_encode(o, l->tokenizer, text, ids, e);
}

bool command_tokenize(const struct options *o, struct err *e)
{
    struct buffer text = {0}, out = {0};
    struct ids ids = {.n = 0};
    struct loaded l = {.checkpoint = NULL};
    bool given;
    bool ok = prompt_read(o, &text, &given, e) && (given || help_no_prompt("tokenize", e)) &&
              tokenize(o, &text, &l, &ids, e);
    if (ok) {
        if (o->json)
            write_json(l.tokenizer, &ids, &out);
        else if (o->count)
            buffer_addf(&out, "%zu\n", ids.n);
        else if (o->pieces)
            write_pieces(l.tokenizer, &ids, &out);
        else
            write_ids(&ids, &out);
        ok = stream_print(&out, e);
    }
    load_free(&l);
    ids_free(&ids);
    buffer_free(&out);
    buffer_free(&text);
    return ok;
}
