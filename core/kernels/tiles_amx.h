/*
 * Tiles of AMX, for the rungs that use them: 16 rows of 64 bytes. They belong to a thread: each
 * call configures them (tiles_open) and gives them back (_tile_release).
 */
#ifndef CORE_KERNELS_TILES_AMX_H
#define CORE_KERNELS_TILES_AMX_H

#include <immintrin.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    T_ROWS = 16,
    T_BYTES = 64, /* of a row */
};

/* do_it(i) for tiles 0 to n_tiles - 1: instructions want their numbers as constants. */
#define EACH_TILE(do_it)                                                                           \
    do {                                                                                           \
        do_it(0);                                                                                  \
        if (n_tiles > 1) {                                                                         \
            do_it(1);                                                                              \
        }                                                                                          \
        if (n_tiles > 2) {                                                                         \
            do_it(2);                                                                              \
        }                                                                                          \
        if (n_tiles > 3) {                                                                         \
            do_it(3);                                                                              \
        }                                                                                          \
    } while (0)

/* The 64 bytes of LDTILECFG. */
struct tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};

/* Tile loads are unknown to compilers as reads of memory: between them and writes stands this. */
static inline void memory_is_written(void)
{
    __asm__ volatile("" ::: "memory");
}

/* Tiles first to last: their rows and the bytes of a row. */
static inline void tiles_shape(struct tile_config *c, size_t first, size_t last, size_t rows,
                               size_t bytes)
{
    c->palette = 1;
    for (size_t i = first; i <= last; i++) {
        c->rows[i] = (uint8_t)rows;
        c->row_bytes[i] = (uint16_t)bytes;
    }
}

static inline void tiles_open(const struct tile_config *c)
{
    memory_is_written();
    _tile_loadconfig(c);
}

/* The first of the T_ROWS rows that a tile takes of n, at least T_ROWS, for those from r on: the
 * last tile has rows of the one before. */
static inline size_t tile_row(size_t r, size_t n)
{
    return r < n - T_ROWS ? r : n - T_ROWS;
}

/* The lanes of such a tile that are its alone. */
static inline __mmask16 tile_lanes(size_t r, size_t n)
{
    const size_t n_before = r - tile_row(r, n);
    return (__mmask16)(0xffffu << (n_before < T_ROWS ? n_before : T_ROWS));
}

/* Asks for (prefetches) a tile that will be loaded soon: loads of tiles wait for each of their
 * rows. */
static inline void tile_foresee(const void *tile, size_t stride)
{
    for (size_t i = 0; i < T_ROWS; i++)
        __builtin_prefetch((const char *)tile + i * stride);
}

/* What sums of the same rows of weights become, for the lanes of the mask. */
struct tile_finish {
    __m512 bias, scale;
    __mmask16 lanes;
    bool add;
};

/* bias: of the first row; may be NULL. */
static inline struct tile_finish tile_finish(const float *bias, float scale, bool add,
                                             __mmask16 lanes)
{
    return (struct tile_finish){
        .bias = bias ? _mm512_maskz_loadu_ps(lanes, bias) : _mm512_setzero_ps(),
        .scale = _mm512_set1_ps(scale),
        .lanes = lanes,
        .add = add,
    };
}

/* y[lane] = (add ? y[lane] : 0) + scale * (sum[lane] + bias[lane]) */
static inline void tile_put(float *y, __m512 sum, const struct tile_finish *f)
{
    const __m512 old = f->add ? _mm512_maskz_loadu_ps(f->lanes, y) : _mm512_setzero_ps();
    _mm512_mask_storeu_ps(y, f->lanes, old + f->scale * (sum + f->bias));
}

/*
 * Part of a matrix that will be used soon, asked for little by little: processors foresee no rows
 * that are left after some values. It is asked for in four places at once: with rows side by side,
 * in one place, memory is at two thirds of its speed.
 */
struct tile_fetch {
    const char *row; /* of the first quarter, n_bytes, of which `at` are done */
    size_t stride, n_bytes, at;
    size_t n_left;        /* rows of a quarter */
    size_t far, n_places; /* bytes between quarters, and how many there are */
    size_t lines_a_step;  /* of each */
};

/* All of it in n_steps. */
static inline struct tile_fetch tile_fetch(const void *rows, size_t n_rows, size_t n_bytes,
                                           size_t stride, size_t n_steps)
{
    const size_t quarter = n_rows > 4 ? (n_rows + 3) / 4 : 1;
    const size_t n_lines = quarter * ((n_bytes + T_BYTES - 1) / T_BYTES);
    return (struct tile_fetch){.row = rows,
                               .stride = stride,
                               .n_bytes = n_bytes,
                               .n_left = quarter,
                               .far = quarter * stride,
                               .n_places = n_rows / quarter,
                               .lines_a_step = (n_lines + n_steps - 1) / n_steps};
}

static inline void tile_fetch_step(struct tile_fetch *f)
{
    for (size_t j = 0; j < f->lines_a_step && f->n_left > 0; j++) {
        for (size_t i = 0; i < f->n_places; i++)
            __builtin_prefetch(f->row + i * f->far + f->at, 0, 2);
        f->at += T_BYTES;
        if (f->at >= f->n_bytes) {
            f->at = 0;
            f->row += f->stride;
            f->n_left--;
        }
    }
}

#endif
