/*
 * Lists are written as tokens come, because the text of a token depends on the one before it
 * (leading spaces), which a second decoder is shown first.
 */
#include "cli/reply_chances.h"

#include "cli/json_out.h"
#include "cli/logprob.h"
#include "core/utf8.h"

#include <stdlib.h>

struct reply_chances {
    struct decoder *decoder; /* for tokens that were not taken */
    int n_likeliest;
    int32_t last;                                       /* the token before the next one */
    size_t n_characters;                                /* of the text so far, as it is printed */
    struct buffer begun;                                /* of a character that is not whole yet */
    struct buffer tokens, logprobs, likeliest, offsets; /* the four lists, as JSON */
    struct logprob_entry entries[];                     /* [n_likeliest] */
};

struct reply_chances *reply_chances_new(const struct tokenizer *t, int n_likeliest, int32_t last,
                                        struct err *e)
{
    struct reply_chances *c = calloc(1, sizeof *c + (size_t)n_likeliest * sizeof c->entries[0]);
    if (!c) {
        err_no_memory(e);
        return NULL;
    }
    c->n_likeliest = n_likeliest;
    c->last = last;
    c->decoder = decoder_new(t, true, e);
    if (!c->decoder) {
        reply_chances_free(c);
        return NULL;
    }
    return c;
}

void reply_chances_free(struct reply_chances *c)
{
    if (!c)
        return;
    decoder_free(c->decoder);
    buffer_free(&c->begun);
    buffer_free(&c->tokens);
    buffer_free(&c->logprobs);
    buffer_free(&c->likeliest);
    buffer_free(&c->offsets);
    free(c);
}

/* A member of the object that begins at `begin`, unless it has one that looks the same. */
static bool write_entry(struct reply_chances *c, size_t begin, const struct logprob_entry *entry,
                        struct err *e)
{
    struct buffer *out = &c->likeliest;
    struct bytes text;
    decoder_reset(c->decoder);
    if (!decoder_next(c->decoder, c->last, &text, e) ||
        !decoder_next(c->decoder, entry->id, &text, e))
        return false;
    const char *const name = (const char *)text.data;
    if (!out->failed && !json_out_has(out, begin, name, text.size)) {
        json_out_name(out, name, text.size);
        json_out_number(out, NULL, entry->logprob);
    }
    return buffer_ok(out, e);
}

/* {"token": logprob, ...}: the likeliest first, and behind them the one that was drawn. */
static bool write_likeliest(struct reply_chances *c, struct logprob_entry drawn, struct err *e)
{
    json_out_open(&c->likeliest, NULL, '{');
    const size_t begin = c->likeliest.n;
    for (int i = 0; i < c->n_likeliest; i++)
        if (!write_entry(c, begin, &c->entries[i], e))
            return false;
    if (!write_entry(c, begin, &drawn, e))
        return false;
    json_out_close(&c->likeliest, '}');
    return true;
}

/* Bytes that are no UTF-8 are printed as U+FFFD, which counts as a character too. */
static void count_characters(struct reply_chances *c, struct bytes text)
{
    size_t at = 0, size;
    buffer_add(&c->begun, (const char *)text.data, text.size);
    while (at < c->begun.n && utf8_next(c->begun.data + at, c->begun.n - at, &size) != UTF8_CUT) {
        at += size;
        c->n_characters++;
    }
    buffer_drop(&c->begun, at);
}

bool reply_chances_add(struct reply_chances *c, const float *logits, int n_vocab, int32_t id,
                       struct bytes text, struct err *e)
{
    json_out_text(&c->tokens, NULL, (const char *)text.data, text.size);
    const struct logprob_entry drawn = {.id = id, .logprob = logprob_of(logits, n_vocab, id)};
    json_out_number(&c->logprobs, NULL, drawn.logprob);
    json_out_unsigned(&c->offsets, NULL, c->n_characters + (c->begun.n > 0));
    count_characters(c, text);
    if (c->n_likeliest > 0) {
        logprob_likeliest(logits, n_vocab, c->n_likeliest, c->entries);
        if (!write_likeliest(c, drawn, e))
            return false;
    }
    c->last = id;
    return buffer_ok(&c->begun, e) && buffer_ok(&c->tokens, e) && buffer_ok(&c->logprobs, e) &&
           buffer_ok(&c->offsets, e) && buffer_ok(&c->likeliest, e);
}

static void write_list(struct buffer *out, const char *key, const struct buffer *members)
{
    json_out_open(out, key, '[');
    if (members->n > 0)
        buffer_add(out, members->data, members->n);
    json_out_close(out, ']');
}

void reply_chances_write(const struct reply_chances *c, const char *key, struct buffer *out)
{
    json_out_open(out, key, '{');
    write_list(out, "tokens", &c->tokens);
    write_list(out, "token_logprobs", &c->logprobs);
    if (c->n_likeliest > 0)
        write_list(out, "top_logprobs", &c->likeliest);
    else
        json_out_null(out, "top_logprobs");
    write_list(out, "text_offset", &c->offsets);
    json_out_close(out, '}');
}
