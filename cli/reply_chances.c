/*
 * What is told is made of text at once, because the text of a token depends on the one before it
 * (leading spaces), which a second decoder is shown first.
 */
#include "cli/reply_chances.h"

#include <stdlib.h>
#include <string.h>

#include "cli/json_out.h"
#include "cli/logprob.h"

struct reply_chances {
    struct decoder *decoder; /* for tokens that were not taken */
    int n_likeliest;
    int32_t last; /* the token before the next one */
    size_t n_characters;
    struct buffer tokens, logprobs, likeliest, offsets; /* members of the four lists */
    struct logprob_entry entries[];                     /* [n_likeliest] */
};

struct reply_chances *reply_chances_new(const struct tokenizer *t, int n_likeliest, int32_t last,
                                        struct err *e)
{
    struct reply_chances *c = calloc(1, sizeof *c + (size_t)n_likeliest * sizeof c->entries[0]);
    if (c == NULL) {
        err_no_memory(e);
        return NULL;
    }
    c->n_likeliest = n_likeliest;
    c->last = last;
    c->decoder = decoder_new(t, true, e);
    if (c->decoder == NULL) {
        reply_chances_free(c);
        return NULL;
    }
    return c;
}

void reply_chances_free(struct reply_chances *c)
{
    if (c == NULL)
        return;
    decoder_free(c->decoder);
    buffer_free(&c->tokens);
    buffer_free(&c->logprobs);
    buffer_free(&c->likeliest);
    buffer_free(&c->offsets);
    free(c);
}

/* {"token": logprob, ...}, the likeliest first; of two tokens that look the same, that one. */
static void write_likeliest(struct reply_chances *c)
{
    struct buffer *out = &c->likeliest;
    struct buffer key = {0};
    json_out_open(out, NULL, '{');
    const size_t begin = out->n;
    for (int i = 0; i < c->n_likeliest && !out->failed; i++) {
        decoder_reset(c->decoder);
        (void)decoder_next(c->decoder, c->last);
        const struct bytes text = decoder_next(c->decoder, c->entries[i].id);
        key.n = 0;
        buffer_add(&key, (const char *)text.data, text.size);
        if (!key.failed && !json_out_has(out->data + begin, out->n - begin, key.data))
            json_out_number(out, key.data, c->entries[i].logprob);
    }
    out->failed = out->failed || key.failed;
    buffer_free(&key);
    json_out_close(out, '}');
}

static size_t count_characters(struct bytes text)
{
    size_t n = 0;
    for (size_t i = 0; i < text.size; i++)
        n += (text.data[i] & 0xC0) != 0x80;
    return n;
}

bool reply_chances_add(struct reply_chances *c, const float *logits, int n_vocab, int32_t id,
                       struct bytes text, struct err *e)
{
    json_out_text(&c->tokens, NULL, (const char *)text.data, text.size);
    json_out_number(&c->logprobs, NULL, logprob_of(logits, n_vocab, id));
    json_out_unsigned(&c->offsets, NULL, c->n_characters);
    c->n_characters += count_characters(text);
    if (c->n_likeliest > 0) {
        logprob_likeliest(logits, n_vocab, c->n_likeliest, c->entries);
        write_likeliest(c);
    }
    c->last = id;
    return buffer_ok(&c->tokens, e) && buffer_ok(&c->logprobs, e) && buffer_ok(&c->offsets, e) &&
           buffer_ok(&c->likeliest, e);
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
