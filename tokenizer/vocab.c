/*
 * The vocabulary: id -> spelling through an array, spelling -> id through one flat table with
 * linear probing. Built for a start in milliseconds: the spellings lie one behind the other in one
 * block, and a slot is four bytes, so that 128,000 tokens take 3 MB of fresh pages and mostly stay
 * in the processor's cache while merges look up their pieces. Spellings are copied, so the file
 * that they come from may go.
 */
#include "tokenizer/vocab.h"

#include <stdlib.h>

/* A slot: 0 where it is free, else a set bit, nine bits of the hash, the id. */
enum { ID_BITS = 22, TAG_BITS = 9 };
_Static_assert(VOCAB_MAX_IDS == 1 << ID_BITS, "every id fits a slot");

/* The lower half of a * b xor the upper one; where C has no such product, from halves of a and b.
 */
static uint64_t mix(uint64_t a, uint64_t b)
{
#if defined(__SIZEOF_INT128__)
    const __uint128_t product = (__uint128_t)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
#else
    const uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
    const uint64_t middle = a1 * b0 + (a0 * b0 >> 32), rest = a0 * b1 + (uint32_t)middle;
    return a * b ^ (a1 * b1 + (middle >> 32) + (rest >> 32));
#endif
}

static uint64_t load(const char *text, size_t n)
{
    uint64_t word = 0;
    memcpy(&word, text, n);
    return word;
}

/* Multiply and fold, the mixing step of wyhash (Wang Yi, 2019); the constants are its. What is left
 * over is read as two words that may overlap. */
uint64_t hash_bytes(const char *text, size_t n)
{
    const uint64_t k0 = 0xA0761D6478BD642Fu;
    const uint64_t k1 = 0xE7037ED1A0B428DBu;
    uint64_t h = n * k1;
    for (; n > 16; text += 16, n -= 16)
        h = mix(load(text, 8) ^ k0, load(text + 8, 8) ^ h);
    uint64_t a = 0;
    uint64_t b = 0;
    if (n >= 8) {
        a = load(text, 8);
        b = load(text + n - 8, 8);
    } else if (n >= 4) {
        a = load(text, 4);
        b = load(text + n - 4, 4);
    } else if (n > 0) {
        a = (uint64_t)(unsigned char)text[0] << 16 | (uint64_t)(unsigned char)text[n / 2] << 8 |
            (unsigned char)text[n - 1];
    }
    return mix(mix(a ^ k0, b ^ h), k1);
}

static size_t first_slot(const struct vocab *v, uint64_t hash)
{
    return (size_t)hash & (v->n_slots - 1);
}

/* What a slot of the hash holds above the id. */
static uint32_t tag_of(uint64_t hash)
{
    return (1u << TAG_BITS | (uint32_t)(hash >> (64 - TAG_BITS))) << ID_BITS;
}

static int32_t slot_id(uint32_t slot)
{
    return slot ? (int32_t)(slot & (VOCAB_MAX_IDS - 1)) : -1;
}

/* Whether that is how the id is spelled. */
static bool is_spelled(const struct vocab *v, int32_t id, const char *text, size_t n)
{
    const struct bytes piece = vocab_piece(v, id);
    return piece.data && piece.size == n && (n == 0 || memcmp(piece.data, text, n) == 0);
}

/* The slot that holds the spelling, or the free one where it would stand; NULL where there is none
 * near enough. */
static uint32_t *slot_of(const struct vocab *v, uint64_t hash, const char *text, size_t n)
{
    const uint32_t tag = tag_of(hash);
    const size_t first = first_slot(v, hash);
    for (size_t i = 0; i < TABLE_MAX_PROBES; i++) {
        uint32_t *slot = &v->slot[(first + i) & (v->n_slots - 1)];
        if (*slot == 0 ||
            (*slot >> ID_BITS << ID_BITS == tag && is_spelled(v, slot_id(*slot), text, n)))
            return slot;
    }
    return NULL;
}

static bool refuse_hashes(struct err *e)
{
    return err_set(e, ERR_LOAD, "thousands of tokens have the same hash");
}

int32_t vocab_find_hashed(const struct vocab *v, uint64_t hash, const char *text, size_t n)
{
    const uint32_t *const slot = v->n_slots ? slot_of(v, hash, text, n) : NULL;
    return slot ? slot_id(*slot) : -1;
}

int32_t vocab_find(const struct vocab *v, const char *text, size_t n)
{
    return vocab_find_hashed(v, hash_bytes(text, n), text, n);
}

void vocab_prefetch_slot(const struct vocab *v, uint64_t hash)
{
    if (v->n_slots)
        __builtin_prefetch(&v->slot[first_slot(v, hash)]);
}

void vocab_prefetch_piece(const struct vocab *v, uint64_t hash)
{
    int32_t id = v->n_slots ? slot_id(v->slot[first_slot(v, hash)]) : -1;
    if (id >= 0)
        __builtin_prefetch(&v->piece[id]);
}

void vocab_prefetch_text(const struct vocab *v, uint64_t hash)
{
    int32_t id = v->n_slots ? slot_id(v->slot[first_slot(v, hash)]) : -1;
    if (id >= 0)
        __builtin_prefetch(v->text + v->piece[id].at);
}

/* A table for n spellings, at most half full, and in it those that are there. Two ids of one
 * spelling: *twice is the larger one. */
static bool build_slots(struct vocab *v, size_t n, int32_t *twice, struct err *e)
{
    enum { AHEAD = 16 };
    uint64_t hash[AHEAD] = {0}; /* of the next ids, whose slots are on their way to the cache */
    size_t n_slots = 1024;
    while (n_slots < 2 * n)
        n_slots *= 2;
    free(v->slot);
    v->slot = calloc(n_slots, sizeof *v->slot);
    v->n_slots = v->slot ? n_slots : 0;
    for (int32_t i = 0; v->slot && i < v->n_ids + AHEAD; i++) {
        const int32_t id = i - AHEAD;
        const struct bytes piece = vocab_piece(v, id), later = vocab_piece(v, i);
        if (piece.data) {
            uint32_t *slot = slot_of(v, hash[i % AHEAD], (const char *)piece.data, piece.size);
            if (!slot)
                return refuse_hashes(e);
            *twice = *slot ? id : *twice;
            *slot = *slot ? *slot : tag_of(hash[i % AHEAD]) | (uint32_t)id;
        }
        if (later.data) {
            hash[i % AHEAD] = hash_bytes((const char *)later.data, later.size);
            vocab_prefetch_slot(v, hash[i % AHEAD]);
        }
    }
    return v->slot || err_no_memory(e);
}

/* The ids up to this one exist afterwards. Memory that is not yet used is not touched: fresh pages
 * are expensive. */
static bool grow_ids(struct vocab *v, int32_t id)
{
    struct vocab_piece *piece =
        grow_array(v->piece, &v->capacity, (size_t)id + 1, sizeof *piece, 1024);
    if (!piece)
        return false;
    v->piece = piece;
    for (; v->n_ids <= id; v->n_ids++)
        v->piece[v->n_ids] = (struct vocab_piece){.n = VOCAB_NO_PIECE};
    return true;
}

/* Room for n more bytes, and always for one: a spelling of nothing has an address too. */
static bool grow_text(struct vocab *v, size_t n)
{
    size_t needed;
    if (!checked_add(v->n_text, n > 0 ? n : 1, &needed) || needed > UINT32_MAX)
        return false;
    char *text = grow_array(v->text, &v->text_capacity, needed, 1, 16 << 10);
    if (!text)
        return false;
    v->text = text;
    return true;
}

/* For "%.*s" of a sentence. */
static int shown(size_t n)
{
    return (int)min_size(n, 40);
}

static bool check_id(struct bytes spelling, double id, struct err *e)
{
    return (id >= 0 && id < VOCAB_MAX_IDS && id == (double)(int32_t)id) ||
           err_set(e, ERR_LOAD, "token \"%.*s\" has the id %g, not a whole number within 0 .. %d",
                   shown(spelling.size), (const char *)spelling.data, id, VOCAB_MAX_IDS - 1);
}

static bool refuse_two_ids(const struct vocab *v, int32_t first, int32_t second, struct err *e)
{
    const struct bytes piece = vocab_piece(v, first);
    return err_set(e, ERR_LOAD, "token \"%.*s\" has two ids, %d and %d", shown(piece.size),
                   (const char *)piece.data, first, second);
}

bool vocab_append(struct vocab *v, struct bytes spelling, double number, struct err *e)
{
    if (!check_id(spelling, number, e))
        return false;
    const int32_t id = (int32_t)number;
    const size_t n = spelling.size;
    if (!grow_ids(v, id) || !grow_text(v, n))
        return err_no_memory(e);
    if (is_spelled(v, id, (const char *)spelling.data, n))
        return true;
    const struct bytes other = vocab_piece(v, id);
    if (other.data) {
        return err_set(e, ERR_LOAD, "id %d has two tokens, \"%.*s\" and \"%.*s\"", id,
                       shown(other.size), (const char *)other.data, shown(n),
                       (const char *)spelling.data);
    }
    if (n)
        memcpy(v->text + v->n_text, spelling.data, n);
    v->piece[id] = (struct vocab_piece){.at = (uint32_t)v->n_text, .n = (uint32_t)n};
    v->n_text += n;
    v->n++;
    return true;
}

bool vocab_index(struct vocab *v, struct err *e)
{
    int32_t twice = -1;
    if (!build_slots(v, v->n, &twice, e))
        return false;
    if (twice < 0)
        return true;
    const struct bytes piece = vocab_piece(v, twice);
    return refuse_two_ids(v, vocab_find(v, (const char *)piece.data, piece.size), twice, e);
}

bool vocab_add(struct vocab *v, struct bytes spelling, double number, struct err *e)
{
    int32_t twice = -1;
    if (!check_id(spelling, number, e))
        return false;
    if (2 * v->n >= v->n_slots && !build_slots(v, 2 * v->n, &twice, e))
        return false;
    const int32_t id = (int32_t)number;
    const uint64_t hash = hash_bytes((const char *)spelling.data, spelling.size);
    uint32_t *slot = slot_of(v, hash, (const char *)spelling.data, spelling.size);
    if (!slot)
        return refuse_hashes(e);
    if (*slot)
        return slot_id(*slot) == id || refuse_two_ids(v, slot_id(*slot), id, e);
    if (!vocab_append(v, spelling, number, e))
        return false;
    *slot = tag_of(hash) | (uint32_t)id;
    return true;
}

void vocab_find_bytes(const struct vocab *v, int32_t id[256])
{
    for (unsigned i = 0; i < 256; i++) {
        static const char digits[] = "0123456789ABCDEF";
        const char text[] = {'<', '0', 'x', digits[i / 16], digits[i % 16], '>'};
        id[i] = vocab_find(v, text, sizeof text);
    }
}

void vocab_free(struct vocab *v)
{
    free(v->piece);
    free(v->slot);
    free(v->text);
    *v = (struct vocab){0};
}
