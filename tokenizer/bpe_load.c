/*
 * The model BPE from its files. A list of 280,000 merges names 840,000 pieces, and looking each up
 * in a table of some MB is waiting for memory; so merges are looked up a batch at a time, with the
 * memory that the batch will need asked for ahead.
 */
#include "tokenizer/internal.h"

#include <assert.h>
#include <stdlib.h>

enum { BATCH = 32, PREFETCH_AHEAD = 16 };

/* A merge that is not yet looked up; its two pieces stand one after the other in loader.text. */
struct named_merge {
    size_t at, n_left, n_right;
    uint64_t hash_left, hash_right;
};

struct loader {
    struct tokenizer *t;
    struct err *e;
    struct text text;
    struct named_merge batch[BATCH];
    size_t n_batch;
    struct text joined;     /* where a continuing_subword_prefix falls away */
    struct bpe_merge *list; /* all, in order */
    size_t n, capacity;
};

/* ---- names -> ids ---------------------------------------------------------------------------- */

static bool unknown_piece(const struct loader *l, const char *text, size_t n)
{
    return err_set(l->e, ERR_LOAD, "merge %zu names \"%.*s\", which is not in the vocabulary", l->n,
                   n > 60 ? 60 : (int)n, text);
}

/* The piece that a merge makes, as text. */
static bool join(struct loader *l, const struct named_merge *m, const char **text, size_t *n)
{
    const char *prefix = l->t->bpe.prefix;
    size_t n_prefix = strlen(prefix);
    n_prefix = n_prefix < m->n_right ? n_prefix : m->n_right;
    *text = l->text.data + m->at;
    *n = m->n_left + m->n_right;
    if (n_prefix == 0) {
        return true;
    }
    const struct piece none = {.data = ""};
    text_clear(&l->joined);
    if (!text_put(&l->joined, *text, m->n_left, &none, 0, 0) ||
        !text_put(&l->joined, *text + m->n_left + n_prefix, m->n_right - n_prefix, &none, 0, 0)) {
        return err_no_memory(l->e);
    }
    *text = l->joined.data;
    *n = l->joined.n;
    return true;
}

static int32_t find_joined(const struct loader *l, const char *text, size_t n)
{
    /* Mostly the merges that make a piece follow each other, and pieces the order of their ids. */
    int32_t last = l->n ? l->list[l->n - 1].id : -1;
    for (int32_t guess = last; guess <= last + 1; guess++) {
        if (vocab_is(&l->t->vocab, guess, text, n)) {
            return guess;
        }
    }
    return vocab_find(&l->t->vocab, text, n);
}

static bool reserve(struct loader *l)
{
    if (l->n < l->capacity) {
        return true;
    }
    size_t capacity = l->capacity ? l->capacity * 2 : 4096;
    struct bpe_merge *list =
        capacity < UINT32_MAX / 4 ? realloc(l->list, capacity * sizeof *list) : NULL;
    if (!list) {
        return err_no_memory(l->e);
    }
    l->list = list;
    l->capacity = capacity;
    return true;
}

static bool look_up(struct loader *l, const struct named_merge *m)
{
    const struct vocab *v = &l->t->vocab;
    const char *left = l->text.data + m->at; /* there even where all pieces are empty */
    const char *right = left + m->n_left;
    struct bpe_merge found = {
        .left = vocab_find_hashed(v, m->hash_left, left, m->n_left),
        .right = vocab_find_hashed(v, m->hash_right, right, m->n_right),
        .rank = (uint32_t)l->n,
    };
    if (found.left < 0 || found.right < 0) {
        return found.left < 0 ? unknown_piece(l, left, m->n_left)
                              : unknown_piece(l, right, m->n_right);
    }
    const char *text;
    size_t n;
    if (!join(l, m, &text, &n) || !reserve(l)) {
        return false;
    }
    found.id = find_joined(l, text, n);
    if (found.id < 0) {
        return unknown_piece(l, text, n);
    }
    l->list[l->n++] = found;
    return true;
}

static bool flush(struct loader *l)
{
    for (size_t i = 0; i < l->n_batch; i++) {
        vocab_prefetch_piece(&l->t->vocab, l->batch[i].hash_left);
        vocab_prefetch_piece(&l->t->vocab, l->batch[i].hash_right);
    }
    bool good = true;
    for (size_t i = 0; good && i < l->n_batch; i++) {
        good = look_up(l, &l->batch[i]);
    }
    l->n_batch = 0;
    text_clear(&l->text);
    return good;
}

/* Copies one piece into the batch's text. */
static bool put_piece(struct loader *l, struct bytes piece, size_t *n, uint64_t *hash)
{
    const struct piece none = {.data = ""};
    *n = piece.size;
    *hash = hash_bytes((const char *)piece.data, piece.size);
    vocab_prefetch_slot(&l->t->vocab, *hash);
    return (text_reserve(&l->text, piece.size + 1) &&
            text_put(&l->text, (const char *)piece.data, piece.size, &none, 0, 0)) ||
           err_no_memory(l->e);
}

/* Between the two, `left` may become invalid: so it is put first. */
static bool put_left(struct loader *l, struct bytes left)
{
    if (l->n_batch == BATCH && !flush(l)) {
        return false;
    }
    struct named_merge *m = &l->batch[l->n_batch];
    m->at = l->text.n;
    return put_piece(l, left, &m->n_left, &m->hash_left);
}

static bool put_right(struct loader *l, struct bytes right)
{
    struct named_merge *m = &l->batch[l->n_batch];
    if (!put_piece(l, right, &m->n_right, &m->hash_right)) {
        return false;
    }
    l->n_batch++;
    return true;
}

/* ---- ids -> the table ------------------------------------------------------------------------ */

static bool build_table(struct loader *l)
{
    struct bpe *b = &l->t->bpe;
    b->n_ranks = l->n ? l->list[l->n - 1].rank + 1 : 0;
    b->n_slots = 16;
    while (b->n_slots < l->n * 2) {
        b->n_slots *= 2;
    }
    b->merge = malloc(b->n_slots * sizeof *b->merge);
    if (!b->merge) {
        return err_no_memory(l->e);
    }
    for (size_t i = 0; i < b->n_slots; i++) {
        b->merge[i].left = -1;
    }
    for (size_t i = 0; i < l->n; i++) {
        if (i + PREFETCH_AHEAD < l->n) {
            const struct bpe_merge *later = &l->list[i + PREFETCH_AHEAD];
            __builtin_prefetch(&b->merge[bpe_slot(b, later->left, later->right)], 1);
        }
        const struct bpe_merge *m = &l->list[i];
        size_t at = bpe_slot(b, m->left, m->right);
        while (b->merge[at].left >= 0 &&
               (b->merge[at].left != m->left || b->merge[at].right != m->right)) {
            at = (at + 1) & (b->n_slots - 1);
        }
        b->merge[at] = *m; /* of two equal ones the last counts */
    }
    return true;
}

static bool finish_merges(struct loader *l, bool good)
{
    good = good && flush(l) && build_table(l);
    text_free(&l->text);
    text_free(&l->joined);
    free(l->list);
    return good;
}

/* ---- the lists ------------------------------------------------------------------------------- */

/* "a b": one blank, between the two. */
static bool put_line(struct loader *l, const char *text, size_t n)
{
    const char *blank = memchr(text, ' ', n);
    size_t at = blank ? (size_t)(blank - text) : n;
    if (at == n || memchr(blank + 1, ' ', n - at - 1)) {
        return err_set(l->e, ERR_LOAD,
                       "merge %zu must be two pieces with a blank between, not \"%.*s\"",
                       l->n + l->n_batch, n > 60 ? 60 : (int)n, text);
    }
    return put_left(l, (struct bytes){(const unsigned char *)text, at}) &&
           put_right(l, (struct bytes){(const unsigned char *)blank + 1, n - at - 1});
}

/* "a b" or ["a", "b"] */
static bool put_item(struct loader *l, struct json_scan *s)
{
    struct bytes text;
    if (json_scan_is(s, JSON_STRING)) {
        return json_scan_string(s, &text) && put_line(l, (const char *)text.data, text.size);
    }
    bool good = json_scan_is(s, JSON_ARRAY) && json_scan_array(s) && json_scan_element(s) &&
                json_scan_string(s, &text);
    if (good && !put_left(l, text)) {
        return false;
    }
    good = good && json_scan_element(s) && json_scan_string(s, &text);
    if (good && !put_right(l, text)) {
        return false;
    }
    return (good && !json_scan_element(s) && !s->failed) ||
           err_set(l->e, ERR_LOAD, "merge %zu must be \"a b\" or [\"a\", \"b\"]",
                   l->n + l->n_batch);
}

static bool load_merges(struct tokenizer *t, struct bytes text, struct err *e)
{
    if (!text.data) {
        return err_set(e, ERR_LOAD, "there is no list of \"merges\"");
    }
    struct loader l = {.t = t, .e = e};
    struct json_scan s;
    json_scan_begin(&s, (const char *)text.data, text.size, e);
    bool good = json_scan_array(&s);
    while (good && json_scan_element(&s)) {
        good = put_item(&l, &s);
    }
    good = good && json_scan_done(&s);
    json_scan_end(&s);
    return finish_merges(&l, good);
}

bool bpe_load_text(struct tokenizer *t, struct bytes merges, struct err *e)
{
    t->bpe.prefix = t->bpe.suffix = "";
    t->bpe.unk = -1;
    struct loader l = {.t = t, .e = e};
    bool good = true;
    const char *end = (const char *)merges.data + merges.size;
    for (const char *line = (const char *)merges.data; good && line < end;) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        size_t n = newline ? (size_t)(newline - line) : (size_t)(end - line);
        size_t n_text = n && line[n - 1] == '\r' ? n - 1 : n;
        bool comment = n >= 8 && memcmp(line, "#version", 8) == 0;
        good = n_text == 0 || comment || put_line(&l, line, n_text);
        line += newline ? n + 1 : n;
    }
    return finish_merges(&l, good);
}

/* All merges that make one token. Pieces are cut between characters. */
static bool put_splits(struct loader *l, int32_t id, uint32_t rank)
{
    const struct vocab *v = &l->t->vocab;
    struct bytes token = v->piece[id];
    const char *text = (const char *)token.data;
    for (size_t at = utf8_size(*text); at < token.size; at += utf8_size(text[at])) {
        int32_t left = vocab_find(v, text, at);
        int32_t right = left < 0 ? -1 : vocab_find(v, text + at, token.size - at);
        if (right < 0) {
            continue;
        }
        if (!reserve(l)) {
            return false;
        }
        assert(l->list);
        l->list[l->n++] = (struct bpe_merge){left, right, rank, id};
    }
    return true;
}

bool bpe_load_ranked(struct tokenizer *t, const struct bpe_ranked *ranked, size_t n, struct err *e)
{
    t->bpe.prefix = t->bpe.suffix = "";
    struct loader l = {.t = t, .e = e};
    uint32_t rank = 0;
    bool good = true;
    for (size_t i = 0; good && i < n; i++) {
        rank += i && ranked[i].score < ranked[i - 1].score;
        good = t->vocab.piece[ranked[i].id].size == 0 || put_splits(&l, ranked[i].id, rank);
    }
    return finish_merges(&l, good);
}

static const char *affix(struct tokenizer *t, const struct json *options, const char *key)
{
    const char *text = json_text(json_get(options, key), "");
    return arena_text(&t->arena, text, strlen(text));
}

bool bpe_load(struct tokenizer *t, const struct model_parts *parts, struct err *e)
{
    struct bpe *b = &t->bpe;
    const struct json *options = parts->options;
    if (json_number(json_get(options, "dropout"), 0) != 0) {
        return err_set(e, ERR_LOAD, "BPE with a \"dropout\" is not supported");
    }
    b->fuse_unk = json_bool(json_get(options, "fuse_unk"), false);
    b->has_byte_fallback = json_bool(json_get(options, "byte_fallback"), false);
    b->ignore_merges = json_bool(json_get(options, "ignore_merges"), false);
    b->prefix = affix(t, options, "continuing_subword_prefix");
    b->suffix = affix(t, options, "end_of_word_suffix");
    if (!b->prefix || !b->suffix) {
        return err_no_memory(e);
    }
    const char *unk = json_text(json_get(options, "unk_token"), NULL);
    b->unk = unk ? vocab_find(&t->vocab, unk, strlen(unk)) : -1;
    return load_merges(t, parts->merges, e);
}

/* ---- tables for words ------------------------------------------------------------------------ */

static void find_bytes(struct tokenizer *t)
{
    struct bpe *b = &t->bpe;
    vocab_find_bytes(&t->vocab, b->byte_fallback);
    for (unsigned i = 0; i < 256; i++) {
        char text[4];
        size_t n = utf8_put(text, byte_level_char((unsigned char)i));
        b->byte_level[i] = vocab_find(&t->vocab, text, n);
        if (i < 128) {
            char c = (char)i;
            b->ascii[i] = vocab_find(&t->vocab, &c, 1);
        }
    }
}

static uint32_t last_char(struct bytes piece)
{
    size_t at = piece.size - 1;
    while (at > 0 && (piece.data[at] & 0xC0) == 0x80) {
        at--;
    }
    return utf8_get((const char *)piece.data + at);
}

/* False for the pieces that stand for something other than their characters. */
static bool is_plain_piece(const struct bpe *b, int32_t id, struct bytes piece)
{
    return id != b->unk && piece.size > 0 &&
           !(piece.size == 6 && memcmp(piece.data, "<0x", 3) == 0);
}

/* bpe.joint; none where symbols are not simply the characters of the text. */
static bool build_joints(struct tokenizer *t, struct err *e)
{
    struct bpe *b = &t->bpe;
    if (b->raw || *b->prefix || *b->suffix || b->n_ranks == 0) {
        return true;
    }
    b->joint_bits = 12;
    while (b->joint_bits < 22 && (size_t)1 << b->joint_bits < (size_t)b->n_ranks * 8) {
        b->joint_bits++;
    }
    b->joint = arena_array(&t->arena, ((size_t)1 << b->joint_bits) / 64, sizeof *b->joint);
    if (!b->joint) {
        return err_no_memory(e);
    }
    for (size_t i = 0; i < b->n_slots; i++) {
        const struct bpe_merge *m = &b->merge[i];
        if (m->left < 0) {
            continue;
        }
        struct bytes left = t->vocab.piece[m->left];
        struct bytes right = t->vocab.piece[m->right];
        if (!is_plain_piece(b, m->left, left) || !is_plain_piece(b, m->right, right)) {
            b->joint = NULL;
            return true;
        }
        size_t bit = bpe_joint_bit(b, last_char(left), utf8_get((const char *)right.data));
        b->joint[bit / 64] |= (uint64_t)1 << bit % 64;
    }
    return true;
}

bool bpe_load_finish(struct tokenizer *t, struct err *e)
{
    find_bytes(t);
    return build_joints(t, e);
}

void bpe_free(struct bpe *b)
{
    free(b->merge);
    *b = (struct bpe){0};
}
