/*
 * Keys and values of the past of many texts, in pages of KV_PAGE positions.
 *
 * A layer that sees everything keeps its pages in a pool that the sequences share: a table says
 * which page holds which block of a sequence's positions, one table for all such layers, since a
 * page's number is its place in each layer's memory. Sequences with the same beginning may share
 * its pages; a sequence that writes into a shared page gets a copy of it first. A layer with a
 * window has no pages in the pool but a ring of them for each sequence: block b lies in page
 * b % n_ring, so what fell out of the window is overwritten where it lies.
 *
 * Within a page each head has a piece of its own: keys dimension by dimension, then values position
 * by position, as the attention kernels read them. The memory is the session's; pages are touched
 * only when something is put there.
 */
#ifndef CORE_KV_H
#define CORE_KV_H

#include "core/base.h"

struct kernels;

enum { KV_PAGE = 64 };

enum kv_type {
    KV_F32,
    KV_F16, /* stored values stop at +-65504 */
    KV_Q8   /* 8 bits and a scale for each key and each value */
};

/* Who uses which pages. */
struct kv_pages {
    int n_pages;
    int n_sequences;
    int n_blocks; /* pages that the longest text needs */
    int *table;   /* [n_sequences, n_blocks]: the page of each block of positions; -1: none yet */
    int *n_users; /* [n_pages]: sequences that have it in their table */
    int *free;    /* [n_pages]; the first n_free are the pages that nobody uses */
    int n_free;
};

/* One layer. */
struct kv {
    unsigned char *memory; /* kv_bytes() of it, in cache lines */
    const struct kv_pages *pages;
    enum kv_type type;
    int n_kv_heads;
    int k_dim;
    int v_dim;
    int n_ring; /* pages of a sequence's ring; 0: the layer takes part in the pool */
};

/* Where a block of positions of one head lies. */
struct kv_block {
    void *k;         /* [k_dim, KV_PAGE] */
    void *v;         /* [KV_PAGE, kv_value_stride()] */
    float *k_scales; /* [KV_PAGE], or NULL where elements need none */
    float *v_scales;
};

/* Blocks that so many positions need. */
int kv_blocks(int n_positions);

/* v_dim rounded up to whole vectors. */
size_t kv_value_stride(const struct kv *kv);

/* Bytes of a page: KV_PAGE positions of all heads. */
size_t kv_page_bytes(const struct kv *kv);

/* Bytes of all pages; false on overflow. */
bool kv_bytes(const struct kv *kv, size_t *out);

struct kv_block kv_block(const struct kv *kv, int sequence, int head, int block);

/* How many blocks two sequences have in common at their beginnings, of the first n: the same pages
 * of the pool. */
int kv_shared(const struct kv *kv, int a, int b, int n);

/* Rows, of keys and values or of queries, that follow each other in one sequence. */
struct kv_run {
    int sequence;
    int position; /* of the first; the next ones stand behind it */
    int row;      /* where the first lies among the rows of a call */
    int n;
};

/* The part of a run that is rows [begin, end) of the call; n is 0 where there is none. */
struct kv_run kv_run_within(const struct kv_run *run, int begin, int end);

/* Writes the keys and values of one head, rows k [.., k_dim] and v [.., v_dim] that lie `stride`
 * floats apart, for the rows and positions of a run, whose pages have been taken. */
void kv_put(const struct kernels *kernels, const struct kv *kv, const struct kv_run *run, int head,
            const float *k, const float *v, size_t stride);

/* All pages free, all tables empty. */
void kv_pages_reset(struct kv_pages *pages);

/* How many free pages are needed before positions [begin, end) of a sequence can be put: those that
 * it lacks, and copies of those that it shares. */
int kv_pages_wanted(const struct kv_pages *pages, int sequence, int begin, int end);

/* Takes them; there must be enough. */
void kv_pages_take(struct kv_pages *pages, const struct kv *layers, int n_layers, int sequence,
                   int begin, int end);

/* Gives back what lies behind the first n positions of a sequence. */
void kv_pages_drop(struct kv_pages *pages, int sequence, int n);

/* Sequence `to`, which must be empty, begins with the first n positions of `from`: pages of the
 * pool are shared, rings copied. */
void kv_pages_share(struct kv_pages *pages, const struct kv *layers, int n_layers, int from, int to,
                    int n);

#endif
