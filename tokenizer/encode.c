/*
 * Text -> ids: the order of the steps, and the memory that one thread needs for them.
 */
#include "tokenizer/internal.h"

#include <stdlib.h>

bool ids_push(struct ids *list, int32_t id, struct err *e)
{
    int32_t *ids = grow_array(list->id, &list->capacity, list->n + 1, sizeof *ids, 64);
    if (!ids)
        return err_no_memory(e);
    list->id = ids;
    list->id[list->n++] = id;
    return true;
}

void ids_free(struct ids *list)
{
    free(list->id);
    *list = (struct ids){0};
}

static bool spans_push(struct token_spans *list, struct token_span span, struct err *e)
{
    struct token_span *at = grow_array(list->at, &list->capacity, list->n + 1, sizeof *at, 64);
    if (!at)
        return err_no_memory(e);
    list->at = at;
    list->at[list->n++] = span;
    return true;
}

void token_spans_free(struct token_spans *list)
{
    free(list->at);
    *list = (struct token_spans){0};
}

bool encode_emit(struct encoder *en, int32_t id, const struct piece *in, size_t start, size_t end)
{
    return ids_push(en->out, id, en->e) &&
           (!en->where || spans_push(en->where, piece_span(in, start, end), en->e));
}

bool encode_emit_all(struct encoder *en, const int32_t *id, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!ids_push(en->out, id[i], en->e))
            return false;
    return true;
}

bool encode_word(struct encoder *en, const struct piece *word)
{
    switch (en->t->model) {
    case MODEL_BPE:
        return bpe_encode(en, word);
    case MODEL_UNIGRAM:
        return unigram_encode(en, word);
    case MODEL_WORDPIECE:
        return wordpiece_encode(en, word);
    default:
        return wordpiece_encode_whole(en, word);
    }
}

/* ---- added tokens cut the text --------------------------------------------------------------- */

bool encode_cut_added(struct encoder *en, const struct added_set *set, const struct piece *in,
                      bool (*plain)(struct encoder *en, const struct piece *in))
{
    bool parse_special = en->flags & ENCODE_PARSE_SPECIAL;
    size_t done = 0;
    struct added_search search = {0};
    struct token_span match;
    const struct added_token *token;
    while ((token = added_find(&en->t->added, set, in, parse_special, &search, &match))) {
        struct piece before = piece_slice(in, min_size(done, match.start), match.start);
        if ((before.n && !plain(en, &before)) ||
            !encode_emit(en, token->id, in, match.start, match.end))
            return false;
        done = match.end;
    }
    struct piece rest = piece_slice(in, done, in->n);
    return rest.n == 0 || plain(en, &rest);
}

bool encode_raw(struct encoder *en, const struct piece *in)
{
    struct piece normal;
    return normalize_run(en->t, &en->normalize, in, &normal, en->e) &&
           encode_cut_added(en, &en->t->added.normalized, &normal, pretokenize_run);
}

bool encode_around(struct encoder *en, const int32_t *id, size_t n, const struct piece *in,
                   size_t at)
{
    for (size_t i = 0; i < n && en->flags & ENCODE_ADD_SPECIAL; i++)
        if (!encode_emit(en, id[i], in, at, at))
            return false;
    return true;
}

/* ---- the encoder ----------------------------------------------------------------------------- */

/* Buffers keep origins from their first byte on or not at all, so a change empties them. */
static void track(struct encoder *en, bool on)
{
    if (en->escaped.track == on)
        return;
    struct text *fixed[] = {&en->escaped, &en->normalize.text[0], &en->normalize.text[1]};
    for (size_t i = 0; i < ARRAY_LEN(fixed); i++) {
        text_free(fixed[i]);
        fixed[i]->track = on;
    }
    for (size_t i = 0; i < en->t->n_pretokenizers; i++) {
        text_free(&en->stage[i]);
        text_free(&en->spelled[i]);
        en->stage[i].track = en->spelled[i].track = on;
    }
}

bool encode_begin(struct encoder *en, struct piece *in, unsigned flags, bool tracks)
{
    en->flags = flags;
    track(en, tracks);
    en->escapes = utf8_valid_prefix(in->data, in->n) < in->n;
    if (en->escapes) {
        text_clear(&en->escaped);
        if (!text_escape(&en->escaped, in))
            return err_no_memory(en->e);
        *in = text_piece(&en->escaped, in);
    }
    regex_scratch_begin(en->regex, in->n);
    en->normalize.room = text_room(in->n);
    return true;
}

bool encoder_encode_spans(struct encoder *en, const char *text, size_t n, unsigned flags,
                          struct ids *out, struct token_spans *where, struct err *e)
{
    struct encode_progress whole = {.done = 0};
    return encoder_encode_part(en, text, n, true, flags, &whole, out, where, e);
}

bool encoder_encode(struct encoder *en, const char *text, size_t n, unsigned flags, struct ids *out,
                    struct err *e)
{
    return encoder_encode_spans(en, text, n, flags, out, NULL, e);
}

struct encoder *encoder_new(const struct tokenizer *t, struct err *e)
{
    struct encoder *en = calloc(1, sizeof *en);
    if (!en) {
        err_no_memory(e);
        return NULL;
    }
    en->t = t;
    en->stage = calloc(t->n_pretokenizers + 1, sizeof *en->stage);
    en->spelled = calloc(t->n_pretokenizers + 1, sizeof *en->spelled);
    en->regex = regex_scratch_new();
    en->normalize.regex = en->regex;
    en->bpe = t->model == MODEL_BPE ? bpe_scratch_new(e) : NULL;
    en->unigram = t->model == MODEL_UNIGRAM ? unigram_scratch_new(e) : NULL;
    if (!en->stage || !en->spelled || !en->regex || (t->model == MODEL_BPE && !en->bpe) ||
        (t->model == MODEL_UNIGRAM && !en->unigram)) {
        encoder_free(en);
        err_no_memory(e);
        return NULL;
    }
    return en;
}

void encoder_free(struct encoder *en)
{
    if (!en)
        return;
    for (size_t i = 0; en->stage && en->spelled && i < en->t->n_pretokenizers; i++) {
        text_free(&en->stage[i]);
        text_free(&en->spelled[i]);
    }
    free(en->stage);
    free(en->spelled);
    text_free(&en->escaped);
    text_free(&en->word);
    text_free(&en->normalize.text[0]);
    text_free(&en->normalize.text[1]);
    regex_scratch_free(en->regex);
    bpe_scratch_free(en->bpe);
    unigram_scratch_free(en->unigram);
    free(en);
}
