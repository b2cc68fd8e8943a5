/*
 * Page tables and the layout of a page. Pages are counted by their users: a shared page is copied
 * before it is written (copy on write), a free one goes to a stack. Rings of layers with a window
 * need no table. Allocates nothing and fails nowhere: whoever takes pages has asked kv_pages_wanted
 * before. Not for several threads at once, except kv_put and reading at different places. Computes
 * no attention.
 */
#include "core/kv.h"

#include "core/kernels/kernels.h"

#include <assert.h>
#include <string.h>

_Static_assert((int)KV_PAGE == ATTEND_BLOCK, "a page is what an attention kernel takes at once");
_Static_assert((int)KV_F32 == CACHE_F32 && (int)KV_F16 == CACHE_F16 && (int)KV_Q8 == CACHE_I8,
               "kernels index their tables by type");

enum { NO_PAGE = -1 };

static const size_t element_bytes[] = {[KV_F32] = 4, [KV_F16] = 2, [KV_Q8] = 1};

/* ---- where things lie ------------------------------------------------------------------------ */

size_t kv_value_stride(const struct kv *kv)
{
    return round_up((size_t)kv->v_dim, ATTEND_LANES);
}

static size_t keys_bytes(const struct kv *kv)
{
    return (size_t)kv->k_dim * KV_PAGE * element_bytes[kv->type];
}

static size_t values_bytes(const struct kv *kv)
{
    return KV_PAGE * kv_value_stride(kv) * element_bytes[kv->type];
}

/* Bytes of one head's piece of a page. */
static size_t piece_bytes(const struct kv *kv)
{
    const size_t scales = kv->type == KV_Q8 ? 2 * KV_PAGE * sizeof(float) : 0;
    return keys_bytes(kv) + values_bytes(kv) + scales;
}

size_t kv_page_bytes(const struct kv *kv)
{
    return (size_t)kv->n_kv_heads * piece_bytes(kv);
}

/* Dimensions are checked where the config is read: a page's size is far from overflowing. */
bool kv_bytes(const struct kv *kv, size_t *out)
{
    const struct kv_pages *const pages = kv->pages;
    size_t n = (size_t)pages->n_pages;
    if (kv->n_ring && !checked_mul((size_t)pages->n_sequences, (size_t)kv->n_ring, &n))
        return false;
    return checked_mul(n, kv_page_bytes(kv), out);
}

static int *table_of(const struct kv_pages *pages, int sequence)
{
    assert(sequence >= 0 && sequence < pages->n_sequences);
    return pages->table + (size_t)sequence * (size_t)pages->n_blocks;
}

static unsigned char *page_of(const struct kv *kv, int sequence, int block)
{
    const struct kv_pages *const pages = kv->pages;
    assert(block >= 0 && block < pages->n_blocks);
    const size_t n = kv->n_ring
                         ? (size_t)sequence * (size_t)kv->n_ring + (size_t)(block % kv->n_ring)
                         : (size_t)table_of(pages, sequence)[block];
    assert(kv->n_ring || n < (size_t)pages->n_pages);
    return kv->memory + n * kv_page_bytes(kv);
}

struct kv_block kv_block(const struct kv *kv, int sequence, int head, int block)
{
    unsigned char *const piece = page_of(kv, sequence, block) + (size_t)head * piece_bytes(kv);
    struct kv_block b = {.k = piece, .v = piece + keys_bytes(kv)};
    if (kv->type == KV_Q8) {
        b.k_scales = (float *)(void *)(piece + keys_bytes(kv) + values_bytes(kv));
        b.v_scales = b.k_scales + KV_PAGE;
    }
    return b;
}

int kv_shared(const struct kv *kv, int a, int b, int n)
{
    const int *const one = table_of(kv->pages, a), *const other = table_of(kv->pages, b);
    int shared = 0;
    assert(!kv->n_ring && n <= kv->pages->n_blocks);
    while (shared < n && one[shared] == other[shared])
        shared++;
    return shared;
}

static void put_value(const struct kernels *kernels, const struct kv *kv, const struct kv_block *b,
                      size_t at, const float *v)
{
    unsigned char *const to =
        (unsigned char *)b->v + at * kv_value_stride(kv) * element_bytes[kv->type];
    const float scale = kernels->cache_store[kv->type](to, 1, v, (size_t)kv->v_dim);
    if (b->v_scales)
        b->v_scales[at] = scale;
}

/* Stores keys from place `at` of the block on: as many as the kernel takes at once, at most n.
 * Returns how many. */
static int put_keys(const struct kernels *kernels, const struct kv *kv, const struct kv_block *b,
                    size_t at, int n, const float *k, size_t stride)
{
    unsigned char *const to = (unsigned char *)b->k + at * element_bytes[kv->type];
    if (kv->type == KV_F16 && at % ATTEND_LANES == 0 && n >= ATTEND_LANES) {
        kernels->cache_store_keys((uint16_t *)(void *)to, k, stride, (size_t)kv->k_dim);
        return ATTEND_LANES;
    }
    const float scale = kernels->cache_store[kv->type](to, KV_PAGE, k, (size_t)kv->k_dim);
    if (b->k_scales)
        b->k_scales[at] = scale;
    return 1;
}

struct kv_run kv_run_within(const struct kv_run *run, int begin, int end)
{
    const int first = max_int(begin, run->row), last = min_int(end, run->row + run->n);
    return (struct kv_run){.sequence = run->sequence,
                           .position = run->position + first - run->row,
                           .row = first,
                           .n = max_int(0, last - first)};
}

void kv_put(const struct kernels *kernels, const struct kv *kv, const struct kv_run *run, int head,
            const float *k, const float *v, size_t stride)
{
    for (int i = 0, n_now; i < run->n; i += n_now) {
        const int position = run->position + i;
        const struct kv_block b = kv_block(kv, run->sequence, head, position / KV_PAGE);
        const size_t at = (size_t)(position % KV_PAGE), first = (size_t)(run->row + i) * stride;
        n_now = put_keys(kernels, kv, &b, at, run->n - i, k + first, stride);
        for (int j = 0; j < n_now; j++)
            put_value(kernels, kv, &b, at + (size_t)j, v + first + (size_t)j * stride);
    }
}

/* ---- pages ----------------------------------------------------------------------------------- */

int kv_blocks(int n_positions)
{
    return (int)(((int64_t)n_positions + KV_PAGE - 1) / KV_PAGE);
}

/* The first page to be taken is 0: a single text fills the memory from its beginning. */
void kv_pages_reset(struct kv_pages *pages)
{
    for (int i = 0; i < pages->n_sequences * pages->n_blocks; i++)
        pages->table[i] = NO_PAGE;
    for (int i = 0; i < pages->n_pages; i++) {
        pages->n_users[i] = 0;
        pages->free[i] = pages->n_pages - 1 - i;
    }
    pages->n_free = pages->n_pages;
}

static bool is_own(const struct kv_pages *pages, int page)
{
    return page != NO_PAGE && pages->n_users[page] == 1;
}

int kv_pages_wanted(const struct kv_pages *pages, int sequence, int begin, int end)
{
    const int *const table = table_of(pages, sequence);
    int n = 0;
    for (int b = begin / KV_PAGE; b < kv_blocks(end); b++)
        n += !is_own(pages, table[b]);
    return n;
}

static void copy_page(const struct kv *layers, int n_layers, int from, int to)
{
    for (int i = 0; i < n_layers; i++) {
        const size_t bytes = kv_page_bytes(&layers[i]);
        if (layers[i].n_ring == 0)
            memcpy(layers[i].memory + (size_t)to * bytes, layers[i].memory + (size_t)from * bytes,
                   bytes);
    }
}

void kv_pages_take(struct kv_pages *pages, const struct kv *layers, int n_layers, int sequence,
                   int begin, int end)
{
    int *const table = table_of(pages, sequence);
    for (int b = begin / KV_PAGE; b < kv_blocks(end); b++) {
        const int old = table[b];
        if (is_own(pages, old))
            continue;
        assert(pages->n_free > 0);
        table[b] = pages->free[--pages->n_free];
        pages->n_users[table[b]] = 1;
        if (old != NO_PAGE) {
            copy_page(layers, n_layers, old, table[b]);
            pages->n_users[old]--;
        }
    }
}

void kv_pages_drop(struct kv_pages *pages, int sequence, int n)
{
    int *const table = table_of(pages, sequence);
    for (int b = pages->n_blocks - 1; b >= kv_blocks(n); b--) {
        const int page = table[b];
        table[b] = NO_PAGE;
        if (page != NO_PAGE && --pages->n_users[page] == 0)
            pages->free[pages->n_free++] = page;
    }
}

static void copy_ring(const struct kv *kv, int from, int to)
{
    const size_t bytes = (size_t)kv->n_ring * kv_page_bytes(kv);
    memcpy(kv->memory + (size_t)to * bytes, kv->memory + (size_t)from * bytes, bytes);
}

void kv_pages_share(struct kv_pages *pages, const struct kv *layers, int n_layers, int from, int to,
                    int n)
{
    const int *const source = table_of(pages, from);
    int *const table = table_of(pages, to);
    for (int b = 0; b < kv_blocks(n); b++) {
        assert(table[b] == NO_PAGE && source[b] != NO_PAGE);
        table[b] = source[b];
        pages->n_users[table[b]]++;
    }
    for (int i = 0; i < n_layers; i++)
        if (layers[i].n_ring)
            copy_ring(&layers[i], from, to);
}
