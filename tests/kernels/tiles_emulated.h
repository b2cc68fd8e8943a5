/*
 * AMX for machines that lack it: what the intrinsics of tiles do, in C, after the pseudocode of
 * Intel's "Architecture Instruction Set Extensions Programming Reference", chapter 3. tiles.sh
 * includes it before each source of the kernels. Tiles are a source's own, as every call of a
 * kernel configures them.
 */
#ifndef TESTS_KERNELS_TILES_EMULATED_H
#define TESTS_KERNELS_TILES_EMULATED_H

#include <immintrin.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct emulated_tile {
    int rows, bytes; /* of a row */
    unsigned char row[16][64];
};

static _Thread_local struct emulated_tile emulated_tiles[8];

static inline void emulated_config(const void *config)
{
    const unsigned char *const c = config;
    for (int i = 0; i < 8; i++) {
        struct emulated_tile *const t = &emulated_tiles[i];
        *t =
            (struct emulated_tile){.rows = c[48 + i], .bytes = c[16 + 2 * i] + 256 * c[17 + 2 * i]};
        if (c[0] != 1 || c[1] != 0 || t->rows > 16 || t->bytes > 64 || t->bytes % 4 != 0 ||
            !t->rows != !t->bytes)
            abort(); /* as the processor refuses it */
    }
}

static inline struct emulated_tile *emulated_tile(int i)
{
    if (emulated_tiles[i].rows == 0)
        abort();
    return &emulated_tiles[i];
}

static inline void emulated_zero(int i)
{
    memset(emulated_tile(i)->row, 0, sizeof emulated_tile(i)->row);
}

static inline void emulated_load(int i, const void *from, size_t stride)
{
    struct emulated_tile *const t = emulated_tile(i);
    emulated_zero(i);
    for (int r = 0; r < t->rows; r++)
        memcpy(t->row[r], (const char *)from + (size_t)r * stride, (size_t)t->bytes);
}

static inline void emulated_store(int i, void *to, size_t stride)
{
    const struct emulated_tile *const t = emulated_tile(i);
    for (int r = 0; r < t->rows; r++)
        memcpy((char *)to + (size_t)r * stride, t->row[r], (size_t)t->bytes);
}

/* The three must be different tiles whose shapes fit, or the processor refuses the product. */
static inline void emulated_fit(int to, int a, int b)
{
    const struct emulated_tile *const sums = emulated_tile(to), *const left = emulated_tile(a),
                                      *const right = emulated_tile(b);
    if (to == a || to == b || a == b || sums->rows != left->rows || sums->bytes != right->bytes ||
        left->bytes != 4 * right->rows)
        abort();
}

static inline float emulated_bf16(const unsigned char *at)
{
    const uint32_t bits = (uint32_t)at[0] << 16 | (uint32_t)at[1] << 24;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Of each pair the first and the second have sums of their own. */
static inline void emulated_dpbf16ps(int to, int a, int b)
{
    emulated_fit(to, a, b);
    struct emulated_tile *const sums = emulated_tile(to);
    const struct emulated_tile *const left = emulated_tile(a), *const right = emulated_tile(b);
    const unsigned csr = _mm_getcsr();
    _mm_setcsr(csr | _MM_FLUSH_ZERO_ON | _MM_DENORMALS_ZERO_ON);
    for (int m = 0; m < sums->rows; m++)
        for (int n = 0; n < sums->bytes / 4; n++) {
            float sum, first = 0, second = 0;
            for (int k = 0; k < right->rows; k++) {
                const unsigned char *const l = left->row[m] + 4 * k, *const r =
                                                                         right->row[k] + 4 * n;
                first = fmaf(emulated_bf16(l), emulated_bf16(r), first);
                second = fmaf(emulated_bf16(l + 2), emulated_bf16(r + 2), second);
            }
            memcpy(&sum, sums->row[m] + 4 * n, sizeof sum);
            sum += first + second;
            memcpy(sums->row[m] + 4 * n, &sum, sizeof sum);
        }
    _mm_setcsr(csr);
}

static inline void emulated_dpbssd(int to, int a, int b)
{
    emulated_fit(to, a, b);
    struct emulated_tile *const sums = emulated_tile(to);
    const struct emulated_tile *const left = emulated_tile(a), *const right = emulated_tile(b);
    for (int m = 0; m < sums->rows; m++)
        for (int n = 0; n < sums->bytes / 4; n++) {
            int32_t sum;
            memcpy(&sum, sums->row[m] + 4 * n, sizeof sum);
            for (int k = 0; k < right->rows * 4; k++)
                sum += (int8_t)left->row[m][k] * (int8_t)right->row[k / 4][4 * n + k % 4];
            memcpy(sums->row[m] + 4 * n, &sum, sizeof sum);
        }
}

#define TILES_EMULATED true

#undef _tile_loadd
#undef _tile_stored
#undef _tile_zero
#undef _tile_dpbf16ps
#undef _tile_dpbssd
#define _tile_loadconfig(config)        emulated_config(config)
#define _tile_release()                 memset(emulated_tiles, 0, sizeof emulated_tiles)
#define _tile_zero(i)                   emulated_zero(i)
#define _tile_loadd(i, from, stride)    emulated_load(i, from, stride)
#define _tile_stored(i, to, stride)     emulated_store(i, to, stride)
#define _tile_dpbf16ps(to, left, right) emulated_dpbf16ps(to, left, right)
#define _tile_dpbssd(to, left, right)   emulated_dpbssd(to, left, right)

#endif
