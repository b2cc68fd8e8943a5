/*
 * The models WordPiece (the longest piece that fits, again and again; Wu et al. 2016, as BERT has
 * it) and WordLevel (whole words). A word that cannot be spelled is one unknown token.
 */
#include "tokenizer/internal.h"

/* A piece that text may become. */
static int32_t find(const struct encoder *en, const char *text, size_t n)
{
    int32_t id = vocab_find(&en->t->vocab, text, n);
    return id >= 0 && encode_may_become(en, id) ? id : -1;
}

static size_t count_chars(const struct piece *word)
{
    size_t n = 0;
    for (size_t i = 0; i < word->n; i += utf8_size(word->data[i]))
        n++;
    return n;
}

/* The longest piece that begins at `start`; *end: where it ends. */
static int32_t longest(struct encoder *en, const struct piece *word, size_t start, size_t *end)
{
    const struct wordpiece *w = &en->t->wordpiece;
    struct text *text = &en->word; /* prefix and the rest of the word */
    size_t n_prefix = start ? strlen(w->prefix) : 0;
    text_clear(text);
    if (!text_add(text, w->prefix, n_prefix) ||
        !text_add(text, word->data + start, word->n - start)) {
        err_no_memory(en->e);
        return -2;
    }
    for (size_t n = word->n - start; n > 0;) {
        int32_t id = find(en, text->data, n_prefix + n);
        if (id >= 0) {
            *end = start + n;
            return id;
        }
        do {
            n--;
        } while (n > 0 && ((unsigned char)word->data[start + n] & 0xC0) == 0x80);
    }
    return -1;
}

static bool emit_unknown(struct encoder *en, const struct piece *word)
{
    return encode_emit(en, en->t->wordpiece.unk, word, 0, word->n);
}

bool wordpiece_encode(struct encoder *en, const struct piece *word)
{
    if (count_chars(word) > en->t->wordpiece.max_chars)
        return emit_unknown(en, word);
    size_t n_ids = en->out->n;
    size_t n_spans = en->where ? en->where->n : 0;
    size_t end;
    for (size_t start = 0; start < word->n; start = end) {
        int32_t id = longest(en, word, start, &end);
        if (id == -1) {
            en->out->n = n_ids;
            if (en->where)
                en->where->n = n_spans;
            return emit_unknown(en, word);
        }
        if (id < 0 || !encode_emit(en, id, word, start, end))
            return false;
    }
    return true;
}

bool wordpiece_encode_whole(struct encoder *en, const struct piece *word)
{
    int32_t id = find(en, word->data, word->n);
    return id >= 0 ? encode_emit(en, id, word, 0, word->n) : emit_unknown(en, word);
}

/* For both models; WordLevel has no other option than the unknown token. */
bool wordpiece_load(struct tokenizer *t, const struct model_parts *parts, struct err *e)
{
    struct wordpiece *w = &t->wordpiece;
    const struct json *options = parts->options;
    const char *prefix = json_text(json_get(options, "continuing_subword_prefix"), "##");
    const char *unk = json_text(json_get(options, "unk_token"), "[UNK]");
    const struct json *max = json_get(options, "max_input_chars_per_word");
    int64_t max_chars = 100;
    if (max && !json_integer(max, 0, INT32_MAX, &max_chars))
        return err_set(e, ERR_LOAD, "\"max_input_chars_per_word\" must be a count");
    w->max_chars = (size_t)max_chars;
    w->prefix = arena_text(&t->arena, prefix, strlen(prefix));
    if (!w->prefix)
        return err_no_memory(e);
    w->unk = vocab_find(&t->vocab, unk, strlen(unk));
    return w->unk >= 0 ||
           err_set(e, ERR_LOAD, "the unk_token \"%.60s\" is not in the vocabulary", unk);
}
