/*
 * The model BPE from its files. A list of 280,000 merges names 840,000 pieces, and looking each up
 * in a table of some MB is waiting for memory; so merges are looked up a batch at a time, with the
 * memory that the batch will need asked for ahead. Names stay where the file has them.
 */
#include "tokenizer/internal.h"

#include <assert.h>
#include <stdlib.h>

enum { BATCH = 32, PREFETCH_AHEAD = 16 };

/* A merge that is not yet looked up. */
struct named_merge {
    struct bytes left, right;
    uint64_t hash_left, hash_right;
};

struct loader {
    struct tokenizer *t;
    struct err *e;
    struct arena copies; /* of names that have escapes in the file */
    struct named_merge batch[BATCH];
    size_t n_batch;
    struct text joined;     /* the name of a merge's result, where it has to be looked up */
    struct bpe_merge *list; /* all, in order */
    uint32_t *rank;         /* parallel to it where `ranked` is set */
    bool ranked;
    size_t n, capacity; /* of both */
};

/* ---- names -> ids ---------------------------------------------------------------------------- */

static bool unknown_piece(const struct loader *l, struct bytes piece)
{
    return err_set(l->e, ERR_LOAD, "merge %zu names \"%.*s\", which is not in the vocabulary", l->n,
                   (int)min_size(piece.size, 60), (const char *)piece.data);
}

/* What is left of the right piece behind a left one: the continuing_subword_prefix falls away. */
static struct bytes behind_prefix(const struct loader *l, struct bytes right)
{
    const size_t n = min_size(strlen(l->t->bpe.prefix), right.size);
    return (struct bytes){right.data + n, right.size - n};
}

static bool is_joined(const struct vocab *v, int32_t id, struct bytes left, struct bytes right)
{
    const struct bytes piece = vocab_piece(v, id);
    return piece.data && piece.size == left.size + right.size &&
           memcmp(piece.data, left.data, left.size) == 0 &&
           memcmp(piece.data + left.size, right.data, right.size) == 0;
}

/* The piece that a merge makes; -1 and a sentence. */
static int32_t find_joined(struct loader *l, struct bytes left, struct bytes right)
{
    /* Mostly the merges that make a piece follow each other, and pieces the order of their ids. */
    const int32_t last = l->n ? l->list[l->n - 1].id : -1;
    for (int32_t guess = last; guess <= last + 1; guess++)
        if (is_joined(&l->t->vocab, guess, left, right))
            return guess;
    text_clear(&l->joined);
    if (!text_add(&l->joined, (const char *)left.data, left.size) ||
        !text_add(&l->joined, (const char *)right.data, right.size)) {
        err_no_memory(l->e);
        return -1;
    }
    const struct bytes name = {(const unsigned char *)l->joined.data, l->joined.n};
    const int32_t id = vocab_find(&l->t->vocab, l->joined.data, l->joined.n);
    if (id < 0)
        unknown_piece(l, name);
    return id;
}

static bool reserve(struct loader *l)
{
    size_t capacity = l->capacity;
    if (l->n >= UINT32_MAX / 4)
        return err_no_memory(l->e);
    if (l->ranked) {
        uint32_t *rank = grow_array(l->rank, &capacity, l->n + 1, sizeof *rank, 4096);
        if (!rank)
            return err_no_memory(l->e);
        l->rank = rank;
    }
    struct bpe_merge *list = grow_array(l->list, &l->capacity, l->n + 1, sizeof *list, 4096);
    if (!list)
        return err_no_memory(l->e);
    l->list = list;
    return true;
}

static bool look_up(struct loader *l, const struct named_merge *m)
{
    const struct vocab *v = &l->t->vocab;
    struct bpe_merge found = {
        .left = vocab_find_hashed(v, m->hash_left, (const char *)m->left.data, m->left.size),
        .right = vocab_find_hashed(v, m->hash_right, (const char *)m->right.data, m->right.size),
    };
    if (found.left < 0 || found.right < 0)
        return unknown_piece(l, found.left < 0 ? m->left : m->right);
    found.id = find_joined(l, m->left, behind_prefix(l, m->right));
    if (found.id < 0 || !reserve(l))
        return false;
    l->list[l->n++] = found;
    return true;
}

static bool flush(struct loader *l)
{
    const struct vocab *v = &l->t->vocab;
    for (size_t i = 0; i < l->n_batch; i++) {
        vocab_prefetch_piece(v, l->batch[i].hash_left);
        vocab_prefetch_piece(v, l->batch[i].hash_right);
    }
    for (size_t i = 0; i < l->n_batch; i++) {
        vocab_prefetch_text(v, l->batch[i].hash_left);
        vocab_prefetch_text(v, l->batch[i].hash_right);
    }
    bool good = true;
    for (size_t i = 0; good && i < l->n_batch; i++)
        good = look_up(l, &l->batch[i]);
    l->n_batch = 0;
    return good;
}

/* Both names must last until the batch is flushed. */
static bool put(struct loader *l, struct bytes left, struct bytes right)
{
    if (l->n_batch == BATCH && !flush(l))
        return false;
    struct named_merge *m = &l->batch[l->n_batch++];
    *m = (struct named_merge){
        .left = left,
        .right = right,
        .hash_left = hash_bytes((const char *)left.data, left.size),
        .hash_right = hash_bytes((const char *)right.data, right.size),
    };
    vocab_prefetch_slot(&l->t->vocab, m->hash_left);
    vocab_prefetch_slot(&l->t->vocab, m->hash_right);
    return true;
}

/* ---- ids -> the table ------------------------------------------------------------------------ */

static bool is_pair(const struct bpe *b, uint32_t place, const struct bpe_merge *m)
{
    const struct bpe_merge *other = &b->merge[place - 1];
    return other->left == m->left && other->right == m->right;
}

/* Puts a merge's place into the table. False: there is none near enough. */
static bool enter(struct bpe *b, size_t i)
{
    const uint32_t place = ((uint32_t)1 << b->merge_bits) - 1;
    const struct bpe_merge *m = &b->merge[i];
    const uint32_t hash = bpe_hash(m->left, m->right);
    for (size_t k = 0; k < TABLE_MAX_PROBES; k++) {
        uint32_t *const slot = &b->slot[(hash + k) & (b->n_slots - 1)];
        if (*slot && ((*slot ^ hash) & ~place || !is_pair(b, *slot & place, m)))
            continue;
        *slot = (hash & ~place) | (uint32_t)(i + 1); /* of two equal ones the last counts */
        return true;
    }
    return false;
}

/* Takes the list over. */
static bool build_table(struct loader *l)
{
    struct bpe *b = &l->t->bpe;
    b->merge = l->list;
    b->rank = l->rank;
    b->n_merges = l->n;
    b->n_ranks = (uint32_t)(l->ranked && l->n ? l->rank[l->n - 1] + 1 : l->n);
    l->list = NULL;
    l->rank = NULL;
    b->n_slots = 16;
    while (b->n_slots < b->n_merges + b->n_merges / 2)
        b->n_slots *= 2;
    while ((size_t)1 << b->merge_bits <= b->n_merges)
        b->merge_bits++;
    b->slot = calloc(b->n_slots, sizeof *b->slot);
    if (!b->slot)
        return err_no_memory(l->e);
    for (size_t i = 0; i < b->n_merges; i++) {
        if (i + PREFETCH_AHEAD < b->n_merges) {
            const struct bpe_merge *later = &b->merge[i + PREFETCH_AHEAD];
            const uint32_t hash = bpe_hash(later->left, later->right);
            __builtin_prefetch(&b->slot[hash & (b->n_slots - 1)], 1);
        }
        if (!enter(b, i))
            return err_set(l->e, ERR_LOAD, "thousands of merges have the same hash");
    }
    return true;
}

static bool finish_merges(struct loader *l, bool good)
{
    good = good && flush(l) && build_table(l);
    text_free(&l->joined);
    arena_free(&l->copies);
    free(l->list);
    free(l->rank);
    return good;
}

/* ---- the lists ------------------------------------------------------------------------------- */

/* "a b": one blank, between the two. */
static bool put_line(struct loader *l, struct bytes line)
{
    const unsigned char *blank = line.size ? memchr(line.data, ' ', line.size) : NULL;
    const size_t at = blank ? (size_t)(blank - line.data) : line.size;
    if (at == line.size || memchr(blank + 1, ' ', line.size - at - 1)) {
        return err_set(l->e, ERR_LOAD,
                       "merge %zu must be two pieces with a blank between, not \"%.*s\"",
                       l->n + l->n_batch, (int)min_size(line.size, 60), (const char *)line.data);
    }
    return put(l, (struct bytes){line.data, at}, (struct bytes){blank + 1, line.size - at - 1});
}

/* A string that lasts: in the file, or with its escapes undone a copy. */
static bool scan_name(struct loader *l, struct json_scan *s, struct bytes *out)
{
    if (!json_scan_string(s, out))
        return false;
    if ((uintptr_t)out->data - (uintptr_t)s->text < s->n)
        return true;
    out->data = (const unsigned char *)arena_text(&l->copies, (const char *)out->data, out->size);
    s->failed = !out->data;
    return out->data || err_no_memory(l->e);
}

/* "a b" or ["a", "b"] */
static bool put_item(struct loader *l, struct json_scan *s)
{
    struct bytes left, right;
    if (json_scan_is(s, JSON_STRING))
        return scan_name(l, s, &left) && put_line(l, left);
    bool good = json_scan_array(s) && json_scan_element(s) && scan_name(l, s, &left) &&
                json_scan_element(s) && scan_name(l, s, &right) && !json_scan_element(s) &&
                !s->failed;
    if (good)
        return put(l, left, right);
    return !json_scan_ran_out(s) &&
           err_set(l->e, ERR_LOAD, "merge %zu must be \"a b\" or [\"a\", \"b\"]",
                   l->n + l->n_batch);
}

bool bpe_scan_merges(struct tokenizer *t, struct json_scan *s, struct err *e)
{
    struct loader l = {.t = t, .e = e};
    bool good = json_scan_array(s);
    while (good && json_scan_element(s))
        good = put_item(&l, s);
    return finish_merges(&l, good && !s->failed);
}

static bool load_merges(struct tokenizer *t, struct bytes text, struct err *e)
{
    if (!text.data)
        return err_set(e, ERR_LOAD, "there is no list of \"merges\"");
    struct json_scan s;
    json_scan_begin(&s, (const char *)text.data, text.size, e);
    const bool good = bpe_scan_merges(t, &s, e) && json_scan_done(&s);
    json_scan_end(&s);
    return good;
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
        good = n_text == 0 || comment ||
               put_line(&l, (struct bytes){(const unsigned char *)line, n_text});
        line += newline ? n + 1 : n;
    }
    return finish_merges(&l, good);
}

/* All merges that make one token. Pieces are cut between characters. Looking each cut up takes time
 * with the square of the length. */
static bool put_splits(struct loader *l, int32_t id, uint32_t rank)
{
    const struct vocab *v = &l->t->vocab;
    const struct bytes token = vocab_piece(v, id);
    if (token.size > LONGEST_SOUGHT) {
        return err_set(l->e, ERR_LOAD, "the token %d has %zu bytes, more than the %d that can be",
                       (int)id, token.size, LONGEST_SOUGHT);
    }
    const char *text = (const char *)token.data;
    for (size_t at = utf8_size(*text); at < token.size; at += utf8_size(text[at])) {
        int32_t left = vocab_find(v, text, at);
        int32_t right = left < 0 ? -1 : vocab_find(v, text + at, token.size - at);
        if (right < 0)
            continue;
        if (!reserve(l))
            return false;
        assert(l->list && l->rank);
        l->rank[l->n] = rank;
        l->list[l->n++] = (struct bpe_merge){left, right, id};
    }
    return true;
}

bool bpe_load_ranked(struct tokenizer *t, const struct bpe_ranked *ranked, size_t n, struct err *e)
{
    t->bpe.prefix = t->bpe.suffix = "";
    struct loader l = {.t = t, .e = e, .ranked = true};
    uint32_t rank = 0;
    bool good = true;
    for (size_t i = 0; good && i < n; i++) {
        rank += i && ranked[i].score < ranked[i - 1].score;
        good = vocab_piece(&t->vocab, ranked[i].id).size == 0 || put_splits(&l, ranked[i].id, rank);
    }
    return finish_merges(&l, good);
}

/* What is written before or behind each character. */
static bool load_affix(struct tokenizer *t, const struct json *options, const char *key,
                       const char **out, struct err *e)
{
    const char *text = json_text(json_get(options, key), "");
    const size_t n = strlen(text);
    if (n > LONGEST_SOUGHT)
        return err_set(e, ERR_LOAD, "\"%s\" has more than %d bytes", key, LONGEST_SOUGHT);
    *out = arena_text(&t->arena, text, n);
    return *out || err_no_memory(e);
}

bool bpe_load_options(struct tokenizer *t, const struct json *options, struct err *e)
{
    struct bpe *b = &t->bpe;
    if (json_number(json_get(options, "dropout"), 0) != 0)
        return err_set(e, ERR_LOAD, "BPE with a \"dropout\" is not supported");
    b->fuse_unk = json_bool(json_get(options, "fuse_unk"), false);
    b->has_byte_fallback = json_bool(json_get(options, "byte_fallback"), false);
    b->ignore_merges = json_bool(json_get(options, "ignore_merges"), false);
    if (!load_affix(t, options, "continuing_subword_prefix", &b->prefix, e) ||
        !load_affix(t, options, "end_of_word_suffix", &b->suffix, e))
        return false;
    const char *unk = json_text(json_get(options, "unk_token"), NULL);
    b->unk = unk ? vocab_find(&t->vocab, unk, strlen(unk)) : -1;
    return true;
}

bool bpe_load(struct tokenizer *t, const struct model_parts *parts, struct err *e)
{
    return bpe_load_options(t, parts->options, e) &&
           (parts->has_merges || load_merges(t, parts->merges, e));
}

/* ---- tables for words ------------------------------------------------------------------------ */

static void find_bytes(struct tokenizer *t)
{
    struct bpe *b = &t->bpe;
    vocab_find_bytes(&t->vocab, b->byte_fallback);
    for (unsigned i = 0; i < 256; i++) {
        char text[4];
        size_t n = utf8_put(text, byte_level_char((unsigned char)i));
        b->byte_level[i] = bpe_find_char(t, text, n);
        if (i < 128) {
            char c = (char)i;
            b->ascii[i] = bpe_find_char(t, &c, 1);
        }
    }
}

static uint32_t last_char(struct bytes piece)
{
    size_t at = piece.size - 1;
    while (at > 0 && utf8_is_continuation((char)piece.data[at]))
        at--;
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
    if (b->raw || *b->prefix || *b->suffix || b->n_ranks == 0)
        return true;
    b->joint_bits = 12;
    while (b->joint_bits < 22 && (size_t)1 << b->joint_bits < (size_t)b->n_ranks * 8)
        b->joint_bits++;
    b->joint = arena_array(&t->arena, ((size_t)1 << b->joint_bits) / 64, sizeof *b->joint);
    if (!b->joint)
        return err_no_memory(e);
    for (size_t i = 0; i < b->n_merges; i++) {
        const struct bpe_merge *m = &b->merge[i];
        const struct bytes left = vocab_piece(&t->vocab, m->left);
        const struct bytes right = vocab_piece(&t->vocab, m->right);
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
    free(b->rank);
    free(b->slot);
    *b = (struct bpe){0};
}
