/*
 * The vocabulary: spelling -> id through one flat table with linear probing, id -> spelling through
 * an array. Spellings are copied, so the file that they come from may go.
 */
#include "tokenizer/internal.h"

#include <stdio.h>
#include <stdlib.h>

static uint64_t mix(uint64_t a, uint64_t b)
{
    __uint128_t product = (__uint128_t)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
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
    for (; n > 16; text += 16, n -= 16) {
        h = mix(load(text, 8) ^ k0, load(text + 8, 8) ^ h);
    }
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

static struct vocab_slot *slot_of(const struct vocab *v, uint32_t hash, const char *text, size_t n)
{
    size_t mask = v->n_slots - 1;
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
        struct vocab_slot *s = &v->slot[i];
        if (s->id < 0) {
            return s;
        }
        const struct bytes *piece = &v->piece[s->id];
        if (s->hash == hash && piece->size == n && (n == 0 || memcmp(piece->data, text, n) == 0)) {
            return s;
        }
    }
}

int32_t vocab_find_hashed(const struct vocab *v, uint64_t hash, const char *text, size_t n)
{
    return v->n_slots ? slot_of(v, (uint32_t)hash, text, n)->id : -1;
}

int32_t vocab_find(const struct vocab *v, const char *text, size_t n)
{
    return vocab_find_hashed(v, hash_bytes(text, n), text, n);
}

void vocab_prefetch_slot(const struct vocab *v, uint64_t hash)
{
    if (v->n_slots) {
        __builtin_prefetch(&v->slot[(uint32_t)hash & (v->n_slots - 1)]);
    }
}

void vocab_prefetch_piece(const struct vocab *v, uint64_t hash)
{
    int32_t id = v->n_slots ? v->slot[(uint32_t)hash & (v->n_slots - 1)].id : -1;
    if (id >= 0) {
        __builtin_prefetch(&v->piece[id]);
    }
}

bool vocab_is(const struct vocab *v, int32_t id, const char *text, size_t n)
{
    return id >= 0 && id < v->n_ids && v->piece[id].data && v->piece[id].size == n &&
           (n == 0 || memcmp(v->piece[id].data, text, n) == 0);
}

/* Keeps the table at most half full. */
static bool grow_slots(struct vocab *v)
{
    if (v->n < v->n_slots / 2) {
        return true;
    }
    size_t n_slots = v->n_slots ? v->n_slots * 2 : 1024;
    struct vocab_slot *slot = malloc(n_slots * sizeof *slot);
    if (!slot) {
        return false;
    }
    memset(slot, 0xFF, n_slots * sizeof *slot); /* every id -1 */
    for (size_t i = 0; i < v->n_slots; i++) {
        struct vocab_slot old = v->slot[i];
        if (old.id >= 0) {
            size_t at = old.hash & (n_slots - 1);
            while (slot[at].id >= 0) {
                at = (at + 1) & (n_slots - 1);
            }
            slot[at] = old;
        }
    }
    free(v->slot);
    v->slot = slot;
    v->n_slots = n_slots;
    return true;
}

static bool grow_ids(struct vocab *v, int32_t id)
{
    if (id >= v->capacity) {
        size_t capacity = v->capacity ? (size_t)v->capacity : 1024;
        while (capacity <= (size_t)id) {
            capacity *= 2;
        }
        struct bytes *piece = realloc(v->piece, capacity * sizeof *piece);
        if (!piece) {
            return false;
        }
        memset(piece + v->capacity, 0, (capacity - (size_t)v->capacity) * sizeof *piece);
        v->piece = piece;
        v->capacity = (int32_t)capacity;
    }
    v->n_ids = id >= v->n_ids ? id + 1 : v->n_ids;
    return true;
}

/* For "%.*s" of a sentence. */
static int shown(size_t n)
{
    return n > 40 ? 40 : (int)n;
}

static bool check_id(struct bytes spelling, double id, struct err *e)
{
    return (id >= 0 && id < VOCAB_MAX_IDS && id == (double)(int32_t)id) ||
           err_set(e, ERR_LOAD, "token \"%.*s\" has the id %g, not a whole number within 0 .. %d",
                   shown(spelling.size), (const char *)spelling.data, id, VOCAB_MAX_IDS - 1);
}

bool vocab_add(struct vocab *v, struct bytes spelling, double number, struct err *e)
{
    if (!check_id(spelling, number, e)) {
        return false;
    }
    const char *text = (const char *)spelling.data;
    size_t n = spelling.size;
    int32_t id = (int32_t)number;
    if (!grow_slots(v) || !grow_ids(v, id)) {
        return err_no_memory(e);
    }
    uint32_t hash = (uint32_t)hash_bytes(text, n);
    struct vocab_slot *s = slot_of(v, hash, text, n);
    if (s->id >= 0) {
        return s->id == id || err_set(e, ERR_LOAD, "token \"%.*s\" has two ids, %d and %d",
                                      shown(n), text, s->id, id);
    }
    struct bytes *piece = &v->piece[id];
    if (piece->data) {
        return err_set(e, ERR_LOAD, "id %d has two tokens, \"%.*s\" and \"%.*s\"", id,
                       shown(piece->size), (const char *)piece->data, shown(n), text);
    }
    char *copy = arena_text(&v->text, text, n);
    if (!copy) {
        return err_no_memory(e);
    }
    *piece = (struct bytes){(const unsigned char *)copy, n};
    *s = (struct vocab_slot){hash, id};
    v->n++;
    return true;
}

void vocab_find_bytes(const struct vocab *v, int32_t id[256])
{
    for (unsigned i = 0; i < 256; i++) {
        char text[8];
        int n = snprintf(text, sizeof text, "<0x%02X>", i);
        id[i] = vocab_find(v, text, (size_t)n);
    }
}

void vocab_free(struct vocab *v)
{
    free(v->piece);
    free(v->slot);
    arena_free(&v->text);
    *v = (struct vocab){0};
}
