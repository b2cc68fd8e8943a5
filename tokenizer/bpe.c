/*
 * The model BPE: a word's characters become symbols, and the pair of neighbours with the lowest
 * rank is merged, leftmost first, until no pair is in the list of merges (Sennrich et al. 2016).
 *
 * Symbols are ids throughout; one hash table maps (left, right) to (rank, id). Three things make it
 * fast: a cache of whole words; for short words a plain array of ranks; for long ones a list of
 * positions per rank, so that a million letters without a blank take near-linear time.
 *
 * Text that comes without a pre-tokenizer (Llama 2) is one word of any length. It is cut where no
 * merge can join the two characters that meet, which changes nothing and makes words short again.
 */
#include "tokenizer/internal.h"

#include <assert.h>
#include <stdlib.h>

enum {
    SHORT_WORD = 32, /* symbols up to which a search through all ranks beats lists */
    CACHE_SLOTS = 1 << 15,
    CACHE_KEY = 38, /* bytes; with the ids below a slot is one line of the processor's cache */
    CACHE_IDS = 6
};

#define NONE UINT32_MAX

struct cache_slot {
    unsigned char n_key, n_ids; /* n_key 0: free */
    char key[CACHE_KEY];
    int32_t id[CACHE_IDS];
};

/* A symbol of a long word, and its place in the list of the pairs of its rank. */
struct symbol {
    uint32_t prev, next;
    uint32_t merge; /* of this and the next symbol, NONE */
    uint32_t before, behind;
};

/* All pairs of one rank, by position. */
struct rank_list {
    uint32_t head, tail; /* NONE: empty */
    bool sorted, queued;
};

struct bpe_scratch {
    struct cache_slot *cache;
    int32_t *id;     /* the symbols of a word */
    uint32_t *start; /* their first bytes in the word */
    size_t n, capacity;

    struct symbol *symbol;
    size_t n_symbols;       /* capacity */
    struct rank_list *list; /* [n_ranks], made for the first long word */
    uint32_t *queue;        /* a heap of the ranks whose lists may hold something */
    size_t n_queue, queue_capacity;
};

/* ---- the table of merges --------------------------------------------------------------------- */

/* The merge's place in the list, NONE where there is none. */
static uint32_t find_merge(const struct bpe *b, int32_t left, int32_t right)
{
    const uint32_t hash = bpe_hash(left, right), place = ((uint32_t)1 << b->merge_bits) - 1;
    for (size_t i = 0; i < TABLE_MAX_PROBES; i++) {
        const uint32_t slot = b->slot[(hash + i) & (b->n_slots - 1)];
        if (slot == 0)
            return NONE;
        const struct bpe_merge *m = &b->merge[(slot & place) - 1];
        if (((slot ^ hash) & ~place) == 0 && m->left == left && m->right == right)
            return (slot & place) - 1;
    }
    return NONE;
}

static uint32_t rank_of(const struct bpe *b, uint32_t merge)
{
    return b->rank ? b->rank[merge] : merge;
}

/* ---- characters -> symbols ------------------------------------------------------------------- */

static bool push(struct bpe_scratch *s, int32_t id, size_t start)
{
    size_t capacity = s->capacity;
    int32_t *ids = grow_array(s->id, &capacity, s->n + 1, sizeof *ids, 256);
    s->id = ids ? ids : s->id;
    uint32_t *starts =
        ids ? grow_array(s->start, &s->capacity, s->n + 1, sizeof *starts, 256) : NULL;
    if (!starts)
        return false;
    s->start = starts;
    s->id[s->n] = id;
    s->start[s->n++] = (uint32_t)start;
    return true;
}

/* The character, with what the model writes around it: in `out` where that is anything. */
static bool decorated(const struct bpe *b, struct text *out, const char **c, size_t *n, bool first,
                      bool last)
{
    size_t n_prefix = first ? 0 : strlen(b->prefix);
    size_t n_suffix = last ? strlen(b->suffix) : 0;
    if (n_prefix + n_suffix == 0)
        return true;
    text_clear(out);
    if (!text_add(out, b->prefix, n_prefix) || !text_add(out, *c, *n) ||
        !text_add(out, b->suffix, n_suffix))
        return false;
    *c = out->data;
    *n = out->n;
    return true;
}

/* The unknown token that is still to come, if any: *unknown is where its characters begin, or NONE.
 */
static bool push_pending(const struct bpe *b, struct bpe_scratch *s, size_t at, uint32_t *unknown)
{
    const uint32_t start = *unknown;
    if (start == NONE)
        return true;
    *unknown = NONE;
    const bool passed = s->n && s->start[s->n - 1] > start; /* by bytes */
    return push(s, b->unk, passed ? at : start);
}

/* For a character (the word has `size` bytes of it at `start`) that is not in the vocabulary with
 * what is written around it, c[0..n): all bytes of that where each has a token, else the unknown
 * token, else nothing. As in huggingface/tokenizers, the unknown token comes once a character is
 * neither fused with it nor spelled in bytes. */
static bool push_unknown(const struct bpe *b, struct bpe_scratch *s, const char *c, size_t n,
                         size_t start, size_t size, uint32_t *unknown)
{
    int escaped = n == 3 ? utf8_escaped_byte(utf8_get(c)) : -1;
    char byte = (char)escaped;
    if (escaped >= 0) {
        c = &byte;
        n = 1;
    }
    bool all = b->has_byte_fallback;
    for (size_t i = 0; all && i < n; i++)
        all = b->byte_fallback[(unsigned char)c[i]] >= 0;
    for (size_t i = 0; all && i < n; i++)
        if (!push(s, b->byte_fallback[(unsigned char)c[i]], start + min_size(i, size)))
            return false;
    if (all || b->unk < 0 || (*unknown != NONE && b->fuse_unk))
        return true;
    if (!push_pending(b, s, start, unknown))
        return false;
    *unknown = (uint32_t)start;
    return true;
}

static bool push_known(const struct bpe *b, struct bpe_scratch *s, int32_t id, size_t start,
                       uint32_t *unknown)
{
    return push_pending(b, s, start, unknown) && push(s, id, start);
}

static bool symbols_of_bytes(const struct bpe *b, struct bpe_scratch *s, const struct piece *word)
{
    uint32_t unknown = NONE;
    for (size_t i = 0; i < word->n; i++) {
        int32_t id = b->byte_level[(unsigned char)word->data[i]];
        if (id >= 0) {
            if (!push_known(b, s, id, i, &unknown))
                return false;
            continue;
        }
        char utf8[4];
        size_t n = utf8_put(utf8, byte_level_char((unsigned char)word->data[i]));
        if (!push_unknown(b, s, utf8, n, i, 1, &unknown))
            return false;
    }
    return push_pending(b, s, word->n, &unknown);
}

int32_t bpe_find_char(const struct tokenizer *t, const char *c, size_t n)
{
    const int32_t id = vocab_find(&t->vocab, c, n);
    return id >= 0 && !(t->mark[id] & TOKEN_OUTSIDE) ? id : -1;
}

static bool symbols_of_chars(struct encoder *en, struct bpe_scratch *s, const struct piece *word)
{
    const struct bpe *b = &en->t->bpe;
    bool plain = !*b->prefix && !*b->suffix;
    uint32_t unknown = NONE;
    for (size_t i = 0; i < word->n;) {
        const char *c = word->data + i;
        size_t size = utf8_size(*c);
        size_t n = size;
        int32_t id;
        if (plain && size == 1) {
            id = b->ascii[(unsigned char)*c];
        } else {
            if (!decorated(b, &en->word, &c, &n, i == 0, i + size == word->n))
                return false;
            id = bpe_find_char(en->t, c, n);
        }
        if (!(id >= 0 ? push_known(b, s, id, i, &unknown)
                      : push_unknown(b, s, c, n, i, size, &unknown)))
            return false;
        i += size;
    }
    return push_pending(b, s, word->n, &unknown);
}

/* ---- merging a short word -------------------------------------------------------------------- */

/* Looks up the pair that begins at i. */
static void find_pair(const struct bpe *b, const struct bpe_scratch *s, size_t i, uint32_t *merge,
                      uint32_t *rank)
{
    merge[i] = find_merge(b, s->id[i], s->id[i + 1]);
    rank[i] = merge[i] == NONE ? NONE : rank_of(b, merge[i]);
}

static void merge_short(const struct bpe *b, struct bpe_scratch *s)
{
    uint32_t merge[SHORT_WORD];
    uint32_t rank[SHORT_WORD];
    size_t n = s->n;
    for (size_t i = 0; i + 1 < n; i++)
        find_pair(b, s, i, merge, rank);
    for (;;) {
        size_t best = 0;
        uint32_t lowest = NONE;
        for (size_t i = 0; i + 1 < n; i++) {
            best = rank[i] < lowest ? i : best;
            lowest = rank[i] < lowest ? rank[i] : lowest;
        }
        if (lowest == NONE)
            break;
        s->id[best] = b->merge[merge[best]].id;
        n--;
        for (size_t i = best + 1; i < n; i++) {
            s->id[i] = s->id[i + 1];
            s->start[i] = s->start[i + 1];
            merge[i - 1] = merge[i];
            rank[i - 1] = rank[i];
        }
        for (size_t i = best ? best - 1 : 0; i <= best && i + 1 < n; i++)
            find_pair(b, s, i, merge, rank);
    }
    s->n = n;
}

/* ---- merging a long word --------------------------------------------------------------------- */

static bool queue_push(struct bpe_scratch *s, uint32_t rank)
{
    uint32_t *queue = grow_array(s->queue, &s->queue_capacity, s->n_queue + 1, sizeof *queue, 256);
    if (!queue)
        return false;
    s->queue = queue;
    size_t i = s->n_queue++;
    for (; i && s->queue[(i - 1) / 2] > rank; i = (i - 1) / 2)
        s->queue[i] = s->queue[(i - 1) / 2];
    s->queue[i] = rank;
    return true;
}

static void queue_pop(struct bpe_scratch *s)
{
    uint32_t last = s->queue[--s->n_queue];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < s->n_queue; i = child) {
        if (child + 1 < s->n_queue && s->queue[child + 1] < s->queue[child])
            child++;
        if (s->queue[child] >= last)
            break;
        s->queue[i] = s->queue[child];
    }
    s->queue[i] = last;
}

/* Puts a pair into the list of its rank. While a rank is being worked off, all that joins its list
 * stands left of its head (merges reach no further than the pair before), so lists are sorted at
 * most once. */
static bool list_add(const struct bpe *b, struct bpe_scratch *s, uint32_t at)
{
    struct symbol *symbol = &s->symbol[at];
    struct rank_list *l = &s->list[rank_of(b, symbol->merge)];
    symbol->before = symbol->behind = NONE;
    if (l->head == NONE) {
        l->head = l->tail = at;
        l->sorted = true;
    } else if (at < l->head) {
        symbol->behind = l->head;
        s->symbol[l->head].before = at;
        l->head = at;
    } else {
        l->sorted = l->sorted && at > l->tail;
        symbol->before = l->tail;
        s->symbol[l->tail].behind = at;
        l->tail = at;
    }
    if (!l->queued) {
        l->queued = true;
        return queue_push(s, rank_of(b, symbol->merge));
    }
    return true;
}

static void list_remove(const struct bpe *b, struct bpe_scratch *s, uint32_t at)
{
    struct symbol *symbol = &s->symbol[at];
    if (symbol->merge == NONE)
        return;
    struct rank_list *l = &s->list[rank_of(b, symbol->merge)];
    if (symbol->before == NONE)
        l->head = symbol->behind;
    else
        s->symbol[symbol->before].behind = symbol->behind;
    if (symbol->behind == NONE)
        l->tail = symbol->before;
    else
        s->symbol[symbol->behind].before = symbol->before;
    symbol->merge = NONE;
}

static int compare_positions(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* The list is not empty. */
static bool list_sort(struct bpe_scratch *s, struct rank_list *l)
{
    size_t n = 0;
    for (uint32_t at = l->head; at != NONE; at = s->symbol[at].behind)
        n++;
    assert(n > 0);
    uint32_t *order = malloc(n * sizeof *order);
    if (!order)
        return false;
    size_t i = 0;
    for (uint32_t at = l->head; at != NONE; at = s->symbol[at].behind)
        order[i++] = at;
    qsort(order, n, sizeof *order, compare_positions);
    for (i = 0; i < n; i++) {
        s->symbol[order[i]].before = i ? order[i - 1] : NONE;
        s->symbol[order[i]].behind = i + 1 < n ? order[i + 1] : NONE;
    }
    l->head = order[0];
    l->tail = order[n - 1];
    l->sorted = true;
    free(order);
    return true;
}

/* Looks up the pair that begins at `at` anew. */
static bool pair_changed(const struct bpe *b, struct bpe_scratch *s, uint32_t at)
{
    list_remove(b, s, at);
    struct symbol *symbol = &s->symbol[at];
    if (symbol->next != NONE)
        symbol->merge = find_merge(b, s->id[at], s->id[symbol->next]);
    return symbol->merge == NONE || list_add(b, s, at);
}

static bool merge_at(const struct bpe *b, struct bpe_scratch *s, uint32_t at)
{
    struct symbol *symbol = &s->symbol[at];
    uint32_t right = symbol->next;
    int32_t id = b->merge[symbol->merge].id;
    list_remove(b, s, right);
    s->id[at] = id;
    s->id[right] = -1;
    symbol->next = s->symbol[right].next;
    if (symbol->next != NONE)
        s->symbol[symbol->next].prev = at;
    return pair_changed(b, s, at) && (symbol->prev == NONE || pair_changed(b, s, symbol->prev));
}

static bool reserve_long(const struct bpe *b, struct bpe_scratch *s)
{
    if (s->n > s->n_symbols) {
        struct symbol *symbol = realloc(s->symbol, s->n * sizeof *symbol);
        if (!symbol)
            return false;
        s->symbol = symbol;
        s->n_symbols = s->n;
    }
    if (!s->list) {
        assert(b->n_ranks > 0);
        s->list = malloc(b->n_ranks * sizeof *s->list);
        for (size_t i = 0; s->list && i < b->n_ranks; i++)
            s->list[i] = (struct rank_list){.head = NONE, .tail = NONE};
    }
    return s->list;
}

static bool merge_long(const struct bpe *b, struct bpe_scratch *s)
{
    if (!reserve_long(b, s))
        return false;
    for (uint32_t i = 0; i < s->n; i++) {
        s->symbol[i] = (struct symbol){
            .prev = i ? i - 1 : NONE, .next = i + 1 < s->n ? i + 1 : NONE, .merge = NONE};
    }
    for (uint32_t i = 0; i < s->n; i++)
        if (!pair_changed(b, s, i))
            return false;
    while (s->n_queue) {
        struct rank_list *l = &s->list[s->queue[0]];
        if (l->head == NONE) {
            l->queued = false;
            queue_pop(s);
        } else if ((!l->sorted && !list_sort(s, l)) || !merge_at(b, s, l->head)) {
            return false;
        }
    }
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (s->id[i] >= 0) {
            s->id[n] = s->id[i];
            s->start[n++] = s->start[i];
        }
    }
    s->n = n;
    return true;
}

/* ---- words ----------------------------------------------------------------------------------- */

static bool emit_all(struct encoder *en, const struct bpe_scratch *s, const struct piece *word)
{
    for (size_t i = 0; i < s->n; i++) {
        size_t end = i + 1 < s->n ? s->start[i + 1] : word->n;
        if (!encode_emit(en, s->id[i], word, s->start[i], end))
            return false;
    }
    return true;
}

static void remember(struct cache_slot *slot, const struct bpe_scratch *s, const struct piece *word)
{
    if (s->n > CACHE_IDS)
        return;
    slot->n_key = (unsigned char)word->n;
    slot->n_ids = (unsigned char)s->n;
    memcpy(slot->key, word->data, word->n);
    if (s->n)
        memcpy(slot->id, s->id, s->n * sizeof *s->id);
}

static bool encode_part(struct encoder *en, const struct piece *word)
{
    const struct bpe *b = &en->t->bpe;
    struct bpe_scratch *s = en->bpe;
    struct cache_slot *slot = NULL;
    if (word->n <= CACHE_KEY && !en->where) {
        slot = &s->cache[hash_bytes(word->data, word->n) & (CACHE_SLOTS - 1)];
        if (slot->n_key == word->n && memcmp(slot->key, word->data, word->n) == 0)
            return encode_emit_all(en, slot->id, slot->n_ids);
    }
    s->n = 0;
    bool good = b->raw ? symbols_of_bytes(b, s, word) : symbols_of_chars(en, s, word);
    if (good && s->n <= SHORT_WORD)
        merge_short(b, s);
    else if (good && b->n_ranks > 0)
        good = merge_long(b, s);
    if (!good)
        return err_no_memory(en->e);
    if (slot)
        remember(slot, s, word);
    return emit_all(en, s, word);
}

static bool is_known(const struct encoder *en, const char *c)
{
    const size_t n = utf8_size(*c);
    return (n == 1 ? en->t->bpe.ascii[(unsigned char)*c] : bpe_find_char(en->t, c, n)) >= 0;
}

static bool may_cut(const struct encoder *en, uint32_t left, const char *right)
{
    const struct bpe *b = &en->t->bpe;
    size_t bit = bpe_joint_bit(b, left, utf8_get(right));
    if (b->joint[bit / 64] >> bit % 64 & 1)
        return false;
    /* An unknown character may be fused with what stands before. */
    return is_known(en, right);
}

static bool encode_cut(struct encoder *en, const struct piece *word)
{
    size_t start = 0;
    uint32_t left = 0;
    for (size_t i = 0; i < word->n; i += utf8_size(word->data[i])) {
        if (i && may_cut(en, left, word->data + i)) {
            struct piece part = piece_slice(word, start, i);
            if (!encode_part(en, &part))
                return false;
            start = i;
        }
        /* An unknown character that nothing stands for lets its neighbours meet. */
        if (en->t->bpe.unk >= 0 || is_known(en, word->data + i))
            left = utf8_get(word->data + i);
    }
    struct piece part = piece_slice(word, start, word->n);
    return encode_part(en, &part);
}

/* The id of a word that is in the vocabulary as it stands, -1 where there is none. */
static int32_t whole_word(struct encoder *en, const struct piece *word)
{
    const struct vocab *v = &en->t->vocab;
    if (!en->t->bpe.raw)
        return vocab_find(v, word->data, word->n);
    char spelled[256];
    size_t n = 0;
    if (word->n > sizeof spelled / 2)
        return -1; /* no vocabulary has words of 128 bytes */
    for (size_t i = 0; i < word->n; i++)
        n += utf8_put(spelled + n, byte_level_char((unsigned char)word->data[i]));
    return vocab_find(v, spelled, n);
}

bool bpe_encode(struct encoder *en, const struct piece *word)
{
    const struct bpe *b = &en->t->bpe;
    if (word->n >= NONE)
        return err_set(en->e, ERR_RUNTIME, "a word of %zu bytes is too long to tokenize", word->n);
    if (b->ignore_merges) {
        int32_t id = whole_word(en, word);
        if (id >= 0 && encode_may_become(en, id))
            return encode_emit(en, id, word, 0, word->n);
    }
    return b->joint ? encode_cut(en, word) : encode_part(en, word);
}

struct bpe_scratch *bpe_scratch_new(struct err *e)
{
    struct bpe_scratch *s = calloc(1, sizeof *s);
    if (s)
        s->cache = calloc(CACHE_SLOTS, sizeof *s->cache);
    if (!s || !s->cache) {
        bpe_scratch_free(s);
        err_no_memory(e);
        return NULL;
    }
    return s;
}

void bpe_scratch_free(struct bpe_scratch *s)
{
    if (s) {
        free(s->cache);
        free(s->id);
        free(s->start);
        free(s->symbol);
        free(s->list);
        free(s->queue);
        free(s);
    }
}
