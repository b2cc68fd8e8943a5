/*
 * The models WordPiece (the longest piece that fits, again and again; Wu et al. 2016, as BERT has
 * it) and WordLevel (whole words). A word that cannot be spelled is one unknown token.
 */
#include "tokenizer/internal.h"

#include <stdlib.h>

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

/* The longest piece that begins at `start`, -1: none does; *end: where it ends. */
static int32_t longest(const struct encoder *en, const struct piece *word, size_t start,
                       size_t *end)
{
    const struct wordpiece *w = &en->t->wordpiece;
    uint32_t node = start ? w->inner : 0;
    int32_t found = -1;
    for (size_t i = start; i < word->n; i++) {
        node = trie_step(&w->trie, node, (unsigned char)word->data[i]);
        if (!node)
            break;
        const int32_t id = w->trie.node[node].value;
        if (id >= 0 && encode_may_become(en, id)) {
            found = id;
            *end = i + 1;
        }
    }
    return found;
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
        const bool may = start == 0 || en->t->wordpiece.has_inner;
        int32_t id = may ? longest(en, word, start, &end) : -1;
        if (id < 0) {
            en->out->n = n_ids;
            if (en->where)
                en->where->n = n_spans;
            return emit_unknown(en, word);
        }
        if (!encode_emit(en, id, word, start, end))
            return false;
    }
    return true;
}

bool wordpiece_encode_whole(struct encoder *en, const struct piece *word)
{
    int32_t id = find(en, word->data, word->n);
    return id >= 0 ? encode_emit(en, id, word, 0, word->n) : emit_unknown(en, word);
}

/* All pieces, and what is behind the prefix among them. */
static bool build_trie(struct tokenizer *t, const char *prefix, struct err *e)
{
    struct wordpiece *w = &t->wordpiece;
    struct trie_entry *entry = malloc(((size_t)t->vocab.n_ids + 1) * sizeof *entry);
    if (!entry)
        return err_no_memory(e);
    size_t n = 0;
    for (int32_t id = 0; id < t->vocab.n_ids; id++) {
        const struct bytes piece = vocab_piece(&t->vocab, id);
        if (piece.size)
            entry[n++] = (struct trie_entry){piece, id};
    }
    const bool good = trie_build(&w->trie, entry, n, e);
    free(entry);
    w->has_inner = good && n;
    for (size_t i = 0; w->has_inner && prefix[i]; i++) {
        w->inner = trie_step(&w->trie, w->inner, (unsigned char)prefix[i]);
        w->has_inner = w->inner;
    }
    return good;
}

/* WordLevel has no other option than the unknown token. */
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
    w->unk = vocab_find(&t->vocab, unk, strlen(unk));
    if (w->unk < 0)
        return err_set(e, ERR_LOAD, "the unk_token \"%.60s\" is not in the vocabulary", unk);
    return t->model != MODEL_WORDPIECE || build_trie(t, prefix, e);
}

void wordpiece_free(struct wordpiece *w)
{
    trie_free(&w->trie);
    *w = (struct wordpiece){0};
}
