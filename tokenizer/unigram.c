/*
 * The model Unigram: of all ways to cut a word into pieces the one with the highest sum of scores
 * (Kudo 2018), found by dynamic programming over the places where pieces can end.
 *
 * Sums are added from left to right and of two equal ones the first found stays. They are doubles
 * for tokenizer.json as in huggingface/tokenizers, and kept as floats for tokenizer.model as in
 * SentencePiece: with other roundings, ties would fall differently. Where no piece reaches over a
 * place, the best way up to it is settled and goes out at once, so a text that is not cut into
 * words needs little memory.
 *
 * Unlike in these two, names of special tokens and byte tokens in a text are text.
 */
#include "tokenizer/internal.h"

#include <math.h>
#include <stdlib.h>

/* An unknown character costs this much more than the worst piece: kUnkPenalty of SentencePiece,
 * unigram_model.cc. */
static const double unk_penalty = 10.0;

enum { FIRST_WAYS = 256 };

/* The best way to a place in the word. */
struct way {
    double score;
    size_t start; /* of its last piece; SIZE_MAX: no way yet */
    int32_t id;
};

struct unigram_scratch {
    struct way *way; /* for the places from `base` of the word on */
    size_t capacity;
    struct token_span *piece; /* a settled stretch, last piece first */
    int32_t *id;
    size_t n, n_capacity;
    struct token_span unknown; /* unknown characters that wait to be one token */
};

/* ---- the way out ----------------------------------------------------------------------------- */

/* Unknown characters side by side are one token, or their bytes. */
static bool emit_unknown(struct encoder *en, const struct piece *word)
{
    struct token_span run = en->unigram->unknown;
    if (run.start == run.end)
        return true;
    en->unigram->unknown = (struct token_span){0};
    const struct unigram *u = &en->t->unigram;
    struct piece part = piece_slice(word, run.start, run.end);
    struct text *bytes = &en->word;
    text_clear(bytes);
    if (!text_unescape(bytes, &part))
        return err_no_memory(en->e);
    bool all = u->has_byte_fallback;
    for (size_t i = 0; all && i < bytes->n; i++)
        all = u->byte_fallback[(unsigned char)bytes->data[i]] >= 0;
    if (!all)
        return encode_emit(en, u->unk, word, run.start, run.end);
    for (size_t i = 0; i < bytes->n; i++)
        if (!encode_emit(en, u->byte_fallback[(unsigned char)bytes->data[i]], word, run.start,
                         run.end))
            return false;
    return true;
}

static bool emit_piece(struct encoder *en, const struct piece *word, struct token_span at,
                       int32_t id)
{
    struct token_span *unknown = &en->unigram->unknown;
    if (id != en->t->unigram.unk)
        return emit_unknown(en, word) && encode_emit(en, id, word, at.start, at.end);
    unknown->start = unknown->start == unknown->end ? at.start : unknown->start;
    unknown->end = at.end;
    return true;
}

static bool push(struct unigram_scratch *s, struct token_span span, int32_t id)
{
    size_t capacity = s->n_capacity;
    int32_t *ids = grow_array(s->id, &capacity, s->n + 1, sizeof *ids, 64);
    s->id = ids ? ids : s->id;
    struct token_span *piece =
        ids ? grow_array(s->piece, &s->n_capacity, s->n + 1, sizeof *piece, 64) : NULL;
    if (!piece)
        return false;
    s->piece = piece;
    s->piece[s->n] = span;
    s->id[s->n++] = id;
    return true;
}

/* Emits the best way from `base` to `end`. */
static bool settle(struct encoder *en, const struct piece *word, size_t base, size_t end)
{
    struct unigram_scratch *s = en->unigram;
    s->n = 0;
    for (size_t at = end; at > base; at = s->way[at - base].start) {
        const struct way *w = &s->way[at - base];
        if (!push(s, (struct token_span){w->start, at}, w->id))
            return err_no_memory(en->e);
    }
    while (s->n) {
        s->n--;
        if (!emit_piece(en, word, s->piece[s->n], s->id[s->n]))
            return false;
    }
    return true;
}

/* ---- the search ------------------------------------------------------------------------------ */

static void offer(const struct unigram *u, struct way *w, double score, size_t start, int32_t id)
{
    if (w->start == SIZE_MAX || score > w->score)
        *w = (struct way){u->single ? (double)(float)score : score, start, id};
}

/* Makes places up to *reach, where pieces can end, as far as `end`. */
static bool extend(struct unigram_scratch *s, size_t base, size_t *reach, size_t end)
{
    if (end <= *reach)
        return true;
    size_t n = end - base + 1;
    struct way *way = grow_array(s->way, &s->capacity, n, sizeof *way, FIRST_WAYS);
    if (!way)
        return false;
    s->way = way;
    for (size_t i = *reach - base + 1; i < n; i++)
        s->way[i].start = SIZE_MAX;
    *reach = end;
    return true;
}

/* Offers every piece that begins at `at`, which a way leads to. */
static bool offer_pieces(struct encoder *en, const struct piece *word, size_t base, size_t at,
                         size_t *reach)
{
    const struct unigram *u = &en->t->unigram;
    struct unigram_scratch *s = en->unigram;
    double score = s->way[at - base].score;
    size_t next = at + utf8_size(word->data[at]);
    if (!extend(s, base, reach, next))
        return false;
    bool known = false; /* the character alone is a piece */
    uint32_t node = 0;
    for (size_t i = at; i < word->n; i++) {
        node = trie_step(&u->trie, node, (unsigned char)word->data[i]);
        if (!node)
            break;
        int32_t id = u->trie.node[node].value;
        if (id >= 0) {
            if (!extend(s, base, reach, i + 1))
                return false;
            offer(u, &s->way[i + 1 - base], score + u->score[id], at, id);
            known = known || i + 1 == next;
        }
    }
    if (!known) {
        const double unknown = u->min_score - unk_penalty;
        offer(u, &s->way[next - base], score + (u->single ? (double)(float)unknown : unknown), at,
              u->unk);
    }
    return true;
}

bool unigram_encode(struct encoder *en, const struct piece *word)
{
    struct unigram_scratch *s = en->unigram;
    size_t base = 0;
    size_t reach = 0;
    s->way[0].score = 0;
    s->unknown = (struct token_span){0};
    for (size_t at = 0; at < word->n; at += utf8_size(word->data[at])) {
        if (at == reach && at > base) {
            double score = s->way[at - base].score;
            if (!settle(en, word, base, at))
                return false;
            base = at;
            s->way[0].score = score;
        }
        if (!offer_pieces(en, word, base, at, &reach))
            return err_no_memory(en->e);
    }
    return settle(en, word, base, word->n) && emit_unknown(en, word);
}

struct unigram_scratch *unigram_scratch_new(struct err *e)
{
    struct unigram_scratch *s = calloc(1, sizeof *s);
    if (s)
        s->way = grow_array(NULL, &s->capacity, 1, sizeof *s->way, FIRST_WAYS);
    if (!s || !s->way) {
        unigram_scratch_free(s);
        err_no_memory(e);
        return NULL;
    }
    return s;
}

void unigram_scratch_free(struct unigram_scratch *s)
{
    if (s) {
        free(s->way);
        free(s->piece);
        free(s->id);
        free(s);
    }
}

/* ---- loading --------------------------------------------------------------------------------- */

bool unigram_add(struct tokenizer *t, struct bytes spelling, double score, struct err *e)
{
    struct unigram *u = &t->unigram;
    if (!(score > -1e30 && score < 1e30))
        return err_set(e, ERR_LOAD, "piece %d has no score that is a number", t->vocab.n_ids);
    size_t n = (size_t)t->vocab.n_ids;
    double *scores = grow_array(u->score, &u->capacity, n + 1, sizeof *scores, 4096);
    if (!scores)
        return err_no_memory(e);
    u->score = scores;
    if (!vocab_add(&t->vocab, spelling, (double)n, e))
        return false;
    u->score[n] = score;
    u->n = n + 1;
    u->min_score = n == 0 || score < u->min_score ? score : u->min_score;
    return true;
}

static bool add_checked(struct tokenizer *t, struct bytes spelling, double score, struct err *e)
{
    if (utf8_valid_prefix((const char *)spelling.data, spelling.size) < spelling.size)
        return err_set(e, ERR_LOAD, "piece %d is not UTF-8", t->vocab.n_ids);
    return unigram_add(t, spelling, score, e);
}

/* [["spelling", score], ...] */
static bool load_pieces(struct tokenizer *t, struct bytes text, struct err *e)
{
    struct json_scan s;
    json_scan_begin(&s, (const char *)text.data, text.size, e);
    bool good = json_scan_array(&s);
    while (good && json_scan_element(&s)) {
        struct bytes spelling;
        double score;
        good = json_scan_array(&s) && json_scan_element(&s) && json_scan_string(&s, &spelling) &&
               json_scan_element(&s) && json_scan_number(&s, &score) && !json_scan_element(&s) &&
               !s.failed;
        if (good)
            good = add_checked(t, spelling, score, e);
        else if (!json_scan_ran_out(&s))
            err_set(e, ERR_LOAD, "\"vocab\" must be [[piece, score], ...]: see entry %d",
                    t->vocab.n_ids);
    }
    good = good && json_scan_done(&s);
    json_scan_end(&s);
    return good;
}

bool unigram_load(struct tokenizer *t, const struct model_parts *parts, struct err *e)
{
    struct unigram *u = &t->unigram;
    u->has_byte_fallback = json_bool(json_get(parts->options, "byte_fallback"), false);
    if (!parts->vocab.data)
        return err_set(e, ERR_LOAD, "there is no \"vocab\"");
    if (!load_pieces(t, parts->vocab, e))
        return false;
    int64_t unk;
    if (!json_integer(json_get(parts->options, "unk_id"), 0, t->vocab.n_ids - 1, &unk)) {
        return err_set(e, ERR_LOAD, "Unigram needs an \"unk_id\" within its %d pieces",
                       t->vocab.n_ids);
    }
    u->unk = (int32_t)unk;
    return true;
}

/* Pieces that can be found in text: not those whose names mean something else. */
static bool is_text(const struct tokenizer *t, int32_t id)
{
    if (t->mark[id] & TOKEN_RESERVED || id == t->unigram.unk ||
        vocab_piece(&t->vocab, id).size == 0 || isnan(t->unigram.score[id]))
        return false;
    bool byte_name = vocab_piece(&t->vocab, id).size == 6 && t->unigram.has_byte_fallback;
    for (size_t b = 0; byte_name && b < 256; b++)
        if (t->unigram.byte_fallback[b] == id)
            return false;
    return true;
}

bool unigram_finish(struct tokenizer *t, struct err *e)
{
    struct unigram *u = &t->unigram;
    struct trie_entry *entry = malloc((u->n + 1) * sizeof *entry);
    if (!entry)
        return err_no_memory(e);
    vocab_find_bytes(&t->vocab, u->byte_fallback);
    size_t n = 0;
    for (size_t i = 0; i < u->n; i++)
        if (is_text(t, (int32_t)i))
            entry[n++] = (struct trie_entry){vocab_piece(&t->vocab, (int32_t)i), (int32_t)i};
    bool good = trie_build(&u->trie, entry, n, e);
    free(entry);
    return good;
}

void unigram_free(struct unigram *u)
{
    trie_free(&u->trie);
    free(u->score);
    *u = (struct unigram){0};
}
