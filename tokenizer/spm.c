/*
 * tokenizer.model of SentencePiece, where there is no tokenizer.json: a protocol buffer with the
 * pieces, their scores and the rules of normalization (google/sentencepiece,
 * src/sentencepiece_model.proto). Model types BPE and UNIGRAM.
 *
 * A piece of a BPE model has a score and no merges: every way to make it of two pieces is a merge,
 * of the rank that the score has.
 */
#include "tokenizer/internal.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

/* ---- protocol buffers ------------------------------------------------------------------------ */

struct message {
    const unsigned char *at, *end;
    bool failed;
};

struct field {
    uint32_t number;
    uint64_t value;     /* varint, or the bits of a fixed size */
    struct bytes bytes; /* string, bytes, message */
};

static uint64_t varint(struct message *m)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && m->at < m->end; shift += 7) {
        unsigned char byte = *m->at++;
        value |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80)
            return value;
    }
    m->failed = true;
    return 0;
}

static struct bytes take(struct message *m, uint64_t n)
{
    struct bytes b = {m->at, 0};
    if (n > (uint64_t)(m->end - m->at)) {
        m->failed = true;
        return b;
    }
    b.size = (size_t)n;
    m->at += n;
    return b;
}

/* The next field, false at the end and on failure. */
static bool next_field(struct message *m, struct field *f)
{
    if (m->failed || m->at == m->end)
        return false;
    *f = (struct field){0};
    uint64_t tag = varint(m);
    f->number = (uint32_t)(tag >> 3);
    switch (tag & 7) {
    case 0:
        f->value = varint(m);
        break;
    case 1:
    case 5:
        f->bytes = take(m, (tag & 7) == 1 ? 8 : 4);
        for (size_t i = f->bytes.size; i-- > 0;)
            f->value = f->value << 8 | f->bytes.data[i];
        break;
    case 2:
        f->bytes = take(m, varint(m));
        break;
    default: /* groups, which the format gave up */
        m->failed = true;
    }
    return !m->failed;
}

static struct message open_message(struct bytes b)
{
    /* A field that is no string of bytes has none. */
    return b.data ? (struct message){.at = b.data, .end = b.data + b.size}
                  : (struct message){.failed = true};
}

/* ---- SentencePiece --------------------------------------------------------------------------- */

enum { TYPE_NORMAL = 1, TYPE_UNKNOWN, TYPE_CONTROL, TYPE_USER_DEFINED, TYPE_UNUSED, TYPE_BYTE };
enum { MODEL_TYPE_UNIGRAM = 1, MODEL_TYPE_BPE = 2 };

struct sp_piece {
    struct bytes text;
    float score;
    uint64_t type;
};

struct sp_model {
    struct sp_piece *piece;
    size_t n, capacity;
    uint64_t algorithm; /* model_type of the trainer */
    bool byte_fallback;
    int32_t bos, eos;
    struct bytes charsmap; /* in the file */
    struct spm_rules rules;
};

static bool reserve_piece(struct sp_model *sp)
{
    struct sp_piece *piece = grow_array(sp->piece, &sp->capacity, sp->n + 1, sizeof *piece, 1024);
    sp->piece = piece ? piece : sp->piece;
    return piece;
}

static bool read_piece(struct sp_model *sp, struct bytes message)
{
    struct sp_piece *p = &sp->piece[sp->n++];
    *p = (struct sp_piece){.type = TYPE_NORMAL};
    struct message m = open_message(message);
    for (struct field f; next_field(&m, &f);) {
        uint32_t bits = (uint32_t)f.value;
        switch (f.number) {
        case 1:
            p->text = f.bytes;
            break;
        case 2:
            memcpy(&p->score, &bits, sizeof bits);
            break;
        case 3:
            p->type = f.value;
            break;
        default:
            break;
        }
    }
    return !m.failed;
}

static bool read_trainer(struct sp_model *sp, struct bytes message)
{
    struct message m = open_message(message);
    for (struct field f; next_field(&m, &f);) {
        switch (f.number) {
        case 3:
            sp->algorithm = f.value;
            break;
        case 24:
            sp->rules.treat_whitespace_as_suffix = f.value;
            break;
        case 35:
            sp->byte_fallback = f.value;
            break;
        case 41:
            sp->bos = (int32_t)f.value;
            break;
        case 42:
            sp->eos = (int32_t)f.value;
            break;
        default:
            break;
        }
    }
    return !m.failed;
}

static bool read_normalizer(struct sp_model *sp, struct bytes message)
{
    struct message m = open_message(message);
    for (struct field f; next_field(&m, &f);) {
        switch (f.number) {
        case 2:
            sp->charsmap = f.bytes;
            break;
        case 3:
            sp->rules.add_dummy_prefix = f.value;
            break;
        case 4:
            sp->rules.remove_extra_whitespaces = f.value;
            break;
        case 5:
            sp->rules.escape_whitespaces = f.value;
            break;
        default:
            break;
        }
    }
    return !m.failed;
}

static bool read_model(struct sp_model *sp, struct bytes file, struct err *e)
{
    *sp = (struct sp_model){
        .algorithm = MODEL_TYPE_UNIGRAM,
        .bos = 1,
        .eos = 2,
        .rules.add_dummy_prefix = true,
        .rules.remove_extra_whitespaces = true,
        .rules.escape_whitespaces = true,
    };
    struct message m = open_message(file);
    bool good = true;
    for (struct field f; good && next_field(&m, &f);) {
        if (f.number == 1 && !reserve_piece(sp))
            return err_no_memory(e);
        good = f.number == 1   ? read_piece(sp, f.bytes)
               : f.number == 2 ? read_trainer(sp, f.bytes)
               : f.number == 3 ? read_normalizer(sp, f.bytes)
                               : true;
    }
    if (!good || m.failed || sp->n == 0) {
        return err_set(e, ERR_LOAD, "not a SentencePiece model, or cut off, at byte %zu of %zu",
                       m.at ? (size_t)(m.at - file.data) : 0, file.size);
    }
    return true;
}

/* ---- into the tokenizer ---------------------------------------------------------------------- */

static bool add_piece(struct tokenizer *t, const struct sp_model *sp, size_t i, struct err *e)
{
    const struct sp_piece *p = &sp->piece[i];
    const char *text = (const char *)p->text.data;
    if (!text || utf8_valid_prefix(text, p->text.size) < p->text.size)
        return err_set(e, ERR_LOAD, "piece %zu is no UTF-8", i);
    if (!isfinite(p->score)) /* NaN has no place in their order */
        return err_set(e, ERR_LOAD, "piece %zu has no score that is a number", i);
    if (p->type == TYPE_UNKNOWN)
        t->bpe.unk = t->unigram.unk = (int32_t)i;
    return t->model == MODEL_UNIGRAM ? unigram_add(t, p->text, (double)p->score, e)
                                     : vocab_add(&t->vocab, p->text, (double)i, e);
}

/* Control pieces are special tokens. User-defined ones are cut out of the normalized text before
 * pairs of a BPE model are merged; a Unigram model weighs them, see set_scores. */
static bool add_token(struct tokenizer *t, const struct sp_model *sp, size_t i, struct err *e)
{
    const struct sp_piece *p = &sp->piece[i];
    bool special = p->type == TYPE_CONTROL || p->type == TYPE_UNKNOWN;
    bool cut = p->type == TYPE_USER_DEFINED && t->model == MODEL_BPE;
    if ((!special && !cut) || p->text.size == 0)
        return true;
    struct added_token token = {
        .content = (const char *)p->text.data,
        .n_content = p->text.size,
        .id = (int32_t)i,
        .special = special,
        .normalized = cut,
        .as_it_is = true,
    };
    return added_add(t, &token, e);
}

static bool load_user_defined(struct tokenizer *t, const struct sp_model *sp, struct err *e)
{
    struct trie_entry *entry = malloc((sp->n + 1) * sizeof *entry);
    if (!entry)
        return err_no_memory(e);
    size_t n = 0;
    for (size_t i = 0; i < sp->n; i++)
        if (sp->piece[i].type == TYPE_USER_DEFINED && sp->piece[i].text.size)
            entry[n++] = (struct trie_entry){sp->piece[i].text, (int32_t)i};
    bool good = trie_build(&t->user_defined, entry, n, e);
    free(entry);
    return good;
}

static int compare_scores(const void *a, const void *b)
{
    const struct bpe_ranked *x = a;
    const struct bpe_ranked *y = b;
    return (x->score < y->score) - (x->score > y->score);
}

static bool load_merges(struct tokenizer *t, const struct sp_model *sp, struct err *e)
{
    struct bpe_ranked *ranked = malloc((sp->n + 1) * sizeof *ranked);
    if (!ranked)
        return err_no_memory(e);
    size_t n = 0;
    for (size_t i = 0; i < sp->n; i++)
        if (sp->piece[i].type == TYPE_NORMAL)
            ranked[n++] = (struct bpe_ranked){.id = (int32_t)i, .score = sp->piece[i].score};
    qsort(ranked, n, sizeof *ranked, compare_scores);
    bool good = bpe_load_ranked(t, ranked, n, e);
    free(ranked);
    return good;
}

/* As SentencePiece does (unigram_model.cc): the minimum is that of the normal pieces, unused ones
 * are skipped, and what the user defined scores as if each of its bytes were the likeliest piece,
 * or one of score 0. */
static void set_scores(struct unigram *u, const struct sp_model *sp)
{
    u->min_score = FLT_MAX;
    float most = FLT_MIN;
    for (size_t i = 0; i < sp->n; i++) {
        float score = sp->piece[i].score;
        if (sp->piece[i].type == TYPE_NORMAL) {
            u->min_score = (double)score < u->min_score ? (double)score : u->min_score;
            most = score > most ? score : most;
        }
    }
    for (size_t i = 0; i < sp->n; i++)
        if (sp->piece[i].type == TYPE_UNUSED)
            u->score[i] = (double)NAN;
        else if (sp->piece[i].type == TYPE_USER_DEFINED)
            u->score[i] = (double)((float)sp->piece[i].text.size * most) - 0.1;
}

static bool load_pieces(struct tokenizer *t, const struct sp_model *sp, struct err *e)
{
    t->bpe.unk = t->unigram.unk = -1;
    t->bpe.has_byte_fallback = t->unigram.has_byte_fallback = sp->byte_fallback;
    t->bpe.fuse_unk = true;
    t->unigram.single = true;
    for (size_t i = 0; i < sp->n; i++)
        if (!add_piece(t, sp, i, e))
            return false;
    for (size_t i = 0; i < sp->n; i++)
        if (!add_token(t, sp, i, e))
            return false;
    if (!load_user_defined(t, sp, e))
        return false;
    if (t->bpe.unk < 0)
        return err_set(e, ERR_LOAD, "none of the %zu pieces is the unknown one", sp->n);
    if (t->model == MODEL_UNIGRAM) {
        set_scores(&t->unigram, sp);
        return true;
    }
    return load_merges(t, sp, e);
}

static bool load_charsmap(struct tokenizer *t, struct charsmap *m, struct bytes blob, struct err *e)
{
    if (blob.size == 0)
        return true; /* no rules */
    const char *kept = arena_text(&t->arena, (const char *)blob.data, blob.size);
    return kept ? charsmap_read(m, (struct bytes){(const unsigned char *)kept, blob.size}, e)
                : err_no_memory(e);
}

bool spm_load(struct tokenizer *t, struct bytes file, struct err *e)
{
    struct sp_model sp;
    bool good = read_model(&sp, file, e);
    if (good && sp.algorithm != MODEL_TYPE_UNIGRAM && sp.algorithm != MODEL_TYPE_BPE) {
        good = err_set(e, ERR_LOAD, "the model type %llu (WORD or CHAR) is not supported",
                       (unsigned long long)sp.algorithm);
    }
    t->model = sp.algorithm == MODEL_TYPE_BPE ? MODEL_BPE : MODEL_UNIGRAM;
    struct spm_rules *const rules = &sp.rules;
    good =
        good && load_pieces(t, &sp, e) && load_charsmap(t, &rules->charsmap, sp.charsmap, e) &&
        normalize_load_spm(t, rules, e) &&
        decode_load_spm(t, rules->remove_extra_whitespaces ? SIZE_MAX : rules->add_dummy_prefix, e);
    if (good) {
        t->bos = sp.bos >= 0 && sp.bos < t->vocab.n_ids ? sp.bos : -1;
        t->eos = sp.eos >= 0 && sp.eos < t->vocab.n_ids ? sp.eos : -1;
        /* What the tokenizers of Llama (BPE) and of T5 and Marian (Unigram) do by default. */
        t->adds_bos = t->model == MODEL_BPE;
        t->adds_eos = t->model == MODEL_UNIGRAM;
    }
    free(sp.piece);
    return good;
}
