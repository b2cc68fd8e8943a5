/*
 * The vocabulary: spelling <-> id.
 */
#ifndef TOKENIZER_VOCAB_H
#define TOKENIZER_VOCAB_H

#include "core/base.h"
#include "core/err.h"

/* The most ids that a file may ask for; the largest vocabularies have 262,144. */
enum { VOCAB_MAX_IDS = 1 << 22 };

#define VOCAB_NO_PIECE UINT32_MAX

/* A spelling: vocab.text[at .. at + n). */
struct vocab_piece {
    uint32_t at, n; /* n VOCAB_NO_PIECE: the id has none */
};

struct vocab {
    struct vocab_piece *piece; /* [n_ids] */
    int32_t n_ids;             /* one more than the largest */
    size_t capacity;           /* of piece */
    size_t n;                  /* spellings in the table */
    uint32_t *slot;            /* see vocab.c */
    size_t n_slots;            /* a power of two */
    char *text;                /* moves as it grows */
    size_t n_text, text_capacity;
};

/* How the id is spelled, {NULL, 0} where it is not; valid until the next vocab_add. */
static inline struct bytes vocab_piece(const struct vocab *v, int32_t id)
{
    const bool spelled = id >= 0 && id < v->n_ids && v->piece[id].n != VOCAB_NO_PIECE;
    return spelled
               ? (struct bytes){(const unsigned char *)v->text + v->piece[id].at, v->piece[id].n}
               : (struct bytes){.data = NULL, .size = 0};
}

/* Gives an id its spelling. Refused: an id that is no whole number within the limits, a spelling
 * with two ids, an id with two spellings. Adding the same once more changes nothing. */
bool vocab_add(struct vocab *v, struct bytes spelling, double id, struct err *e);

/* The same for many at once: spellings first, none of which can be found yet, and then the table,
 * in its final size. */
bool vocab_append(struct vocab *v, struct bytes spelling, double id, struct err *e);
bool vocab_index(struct vocab *v, struct err *e);

/* -1 where there is none. */
int32_t vocab_find(const struct vocab *v, const char *text, size_t n);

/* The same with hash_bytes at hand; vocab_prefetch some time before hides the wait for memory,
 * first for the slot, then for the piece that it leads to, then for its text. */
int32_t vocab_find_hashed(const struct vocab *v, uint64_t hash, const char *text, size_t n);
void vocab_prefetch_slot(const struct vocab *v, uint64_t hash);
void vocab_prefetch_piece(const struct vocab *v, uint64_t hash);
void vocab_prefetch_text(const struct vocab *v, uint64_t hash);

void vocab_free(struct vocab *v);

/* A hash of short text, for tables whose keys are compared as well. */
uint64_t hash_bytes(const char *text, size_t n);

/* The ids of <0x00> to <0xFF>, -1 where there is none. */
void vocab_find_bytes(const struct vocab *v, int32_t id[256]);

/* How far from where its hash points an entry of a table may stand. By chance it is some hundred
 * slots; a file could be made for more, and filling its table would take hours. */
enum { TABLE_MAX_PROBES = 4096 };

#endif
