/*
 * The arithmetic, as a table of functions, each in its slot. Every level of the ladder is one such
 * table:
 *
 *     scalar < avx2 (fma, f16c) < avxvnni < avx512 (f, bw, dq, vl) < avx512vnni < avx512bf16 < amx
 *                                          on x86-64, where avx512 may be without avxvnni
 *     scalar < neon < neondot < neoni8mm < neonbf16                             on 64-bit ARM
 *     scalar                                                                    on anything else
 *
 * The scalar functions are the definition: plain loops, double sums. Each rung, the code that a
 * level adds to the one below, overwrites what it does better. Kernels know no threads, no models
 * and no memory but what they are given; pointers to weights are aligned to nothing, and nothing
 * outside the given ranges is ever read.
 *
 * Some slots are shortcuts, NULL at the scalar level and at others: linear_rows_bf16,
 * linear_cols_bf16, linear_rows_f8, linear_f8_f32, linear_woven and attend_bf16. The comment at
 * each defines it by other slots. Callers ask whether a level has one, and take the long way where
 * it has not. Peaks, but for PEAK_F32, may be NULL as well.
 *
 * Every slot has a class, which says how far a rung may differ from the definition:
 *   EXACT   the same bits (conversions, copies)
 *   ORDER   f32 arithmetic whose order, or whose exp() and tanh(), differs
 *   ROUNDED the same with activations that were rounded to bf16
 *
 * What a rung promises besides, bit for bit: the result for one row of activations does not depend
 * on how many other rows, or other weights, the same call holds. So a prompt may be cut anywhere
 * and rows split over threads.
 */
#ifndef CORE_KERNELS_KERNELS_H
#define CORE_KERNELS_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Types of stored weights that kernels read in place; values equal DTYPE_F32, DTYPE_F16,
 * DTYPE_BF16. */
enum { WEIGHT_F32, WEIGHT_F16, WEIGHT_BF16, N_WEIGHT_TYPES };

/* Codes of quantised weights. E4M3 is OCP 8-bit floating point as in "FP8 Formats for Deep
 * Learning" (bias 7, no infinities, NaN 0x7f and 0xff), E2M1 the 4-bit one of OCP Microscaling.
 * The 4-bit codes lie two to a byte, the lower half first. */
enum { CODE_F8_E4M3, CODE_I8, CODE_U8, CODE_U4, CODE_F4_E2M1, N_CODE_TYPES };

/* What a level's dots multiply: f32 by FMA, pairs of bf16 into f32, fours of int8 into int32. */
enum { PEAK_F32, PEAK_BF16, PEAK_INT8, N_PEAKS };

/* Codes of weights that linear_i8 multiplies as integers; linear_woven has the first two. U4 and F4
 * lie two to a byte, the lower half first. F4 are of E2M1 and count twice their value, a whole
 * number from -12 to 12, so their scales count half: bytes that mean 2^(byte - 128) where OCP
 * Microscaling's E8M0 has 2^(byte - 127), and 255 is NaN. They have no zero points. */
enum { DOT_I8, DOT_U4, N_WOVEN_TYPES, DOT_F4 = N_WOVEN_TYPES, N_DOT_TYPES };
enum { SCALE_E8M0_HALF = N_WEIGHT_TYPES };

/*
 * y[i, r] = (add ? y[i, r] : 0) + scale * (sum over k of x[i, k] * w(r, k) + (bias ? bias[r] : 0))
 * for i in [0, n_x) and r in [0, n_w). The kernel may be handed any window of rows r.
 *   linear_rows: w(r, k) is w[r * w_stride + k]    (torch.nn.Linear, [out, in])
 *   linear_cols: w(r, k) is w[k * w_stride + r]    (GPT-2's Conv1D, [in, out])
 * Strides count elements. The sum's order is a function of k and n_k alone; what is added to y is
 * rounded before, as it would be on its way through memory. Where n_first, a multiple of 32, is not
 * 0, there are two sums: of the first n_first values of k and then, added to y without a bias, of
 * the others.
 */
struct linear_args {
    float *y;
    size_t y_stride;
    const void *x; /* f32, or bf16 where the slot says so */
    size_t x_stride;
    size_t n_x;
    const void *w;
    size_t w_stride;
    size_t n_w;
    size_t n_k;
    const float *bias; /* [n_w] or NULL */
    float scale;
    bool add;
    size_t n_first; /* linear_cols_bf16 alone */
};

/*
 * The same with weights of E4M3 that share scales in blocks of rows and columns:
 *     w(r, k) = code(r, k) * scales[(first + r) / block_out * n_groups + k / block_in]
 * linear_rows_f8 rounds them to bf16 then; what is subnormal in f32 is 0 there, and so is what has
 * the code 0. n_groups is KERNELS_F8_GROUPS at most.
 */
enum { KERNELS_F8_GROUPS = 256, KERNELS_F8_FEW = 12 };

struct linear_f8_args {
    struct linear_args args; /* w: the codes; n_k is at least 1 */
    const float *scales;
    size_t first;
    size_t block_out;
    size_t n_groups;
    size_t block_in; /* a power of two from 64 on; or any from n_k on, where n_groups is 1 */
};

/* Elements of a KV cache. */
enum { CACHE_F32, CACHE_F16, CACHE_I8, N_CACHE_TYPES };

/* A block of attention is as many positions of the cache, and begins at a multiple of it. Values
 * lie in rows of whole ATTEND_LANES, so that no vector ends within one. */
enum { ATTEND_BLOCK = 64, ATTEND_LANES = 16 };

/* One query of one head on its way over the blocks that it sees, from the first to the last. It
 * begins with max -INFINITY (or the head's sink), sum 0 (or 1, the sink's share) and acc zero; what
 * attention brings is acc / sum. */
struct attend_row {
    const void *q; /* [k_dim] f32, or bf16 where the slot says so */
    float *acc;    /* [v_dim]: the sum over positions of exp(score - max) * value */
    float max;     /* of the scores so far */
    float sum;     /* of exp(score - max) */
    float slope;   /* the score falls by slope * distance (ALiBi); 0: it does not */
    int position;  /* of the query: the last that it sees */
    int first;     /* the first that it sees */
};

/*
 * Takes rows over one block (online softmax, Milakov and Gimelshein 2018; Dao et al. 2022):
 *   score(j) = softcap(scale * sum over d of q[d] * k[d, j]) - slope * (row's position - j)
 *   max' = max(max, scores), p(j) = exp(score(j) - max')
 *   sum = sum * exp(max - max') + sum over j of p(j)
 *   acc[d] = acc[d] * exp(max - max') + sum over j of p(j) * v[j, d]
 * over the positions j of the block that the row sees; no other values are touched, and a row that
 * sees none stays as it is. softcap(x) is softcap * tanh(x / softcap), or x where that is 0. A
 * stored element counts times the scale of its position, where scales are given.
 */
struct attend_args {
    struct attend_row *rows; /* [n_rows], one at least */
    size_t n_rows;
    const void *k;         /* [k_dim, ATTEND_BLOCK] */
    const void *v;         /* [ATTEND_BLOCK, v_dim] */
    const float *k_scales; /* [ATTEND_BLOCK] or NULL */
    const float *v_scales; /* [ATTEND_BLOCK] or NULL */
    const void *next_k;    /* k and v of the call to come, to be brought nearer meanwhile; NULL: */
    const void *next_v;    /* nothing */
    size_t k_dim;
    size_t v_dim; /* a multiple of ATTEND_LANES */
    int position; /* of the block's first */
    float scale;
    float softcap;
    void *room; /* of attend_bf16: kernels_attend_room() bytes, in cache lines */
};

static inline size_t kernels_attend_room(size_t k_dim, size_t v_dim)
{
    return ((k_dim + 1) / 2 * 2 + v_dim) * ATTEND_BLOCK * sizeof(uint16_t);
}

/*
 * A row of activations in int8, as to_i8 makes it from n values: k rounded up to whole blocks, zero
 * behind n; then a scale (float) and a sum of codes (int32_t) for each group. Blocks are the unit
 * of the order that weights of 4 bits want: where a byte holds codes 2j (low) and 2j + 1 (high) of
 * a block, the split order of its activations is all 2j first, then all 2j + 1.
 */
enum { KERNELS_I8_BLOCK = 128 };

static inline size_t kernels_i8_codes(size_t n)
{
    return (n + KERNELS_I8_BLOCK - 1) / KERNELS_I8_BLOCK * KERNELS_I8_BLOCK;
}

/*
 * y as in linear_args, with int8 activations and whole-numbered weights:
 *
 *     w(r, k) = (code(r, k) - zero(r, k / w_group)) * scale(r, k / w_group)
 *
 * The codes of a group of x (x_group: 32, 64 or 128, and w_group a multiple of it, or any where
 * there is one group to a row) give a whole number, exactly; groups are added in turn, each by one
 * f32 FMA with scale(r) * scale(x). Nothing is left to the level.
 */
struct linear_i8_args {
    float *y;
    size_t y_stride;
    const unsigned char *x; /* n_x rows of to_i8 */
    size_t x_stride;        /* bytes */
    size_t x_group;
    size_t n_x;
    size_t n_k;             /* at least 1 */
    const unsigned char *w; /* n_w rows of codes; nothing behind a row's last byte is read */
    size_t w_stride;        /* bytes */
    size_t n_w;
    size_t w_group;
    const void *scales; /* [n_w, n_k / w_group] of a WEIGHT_ type, or SCALE_E8M0_HALF */
    size_t scale_stride;
    int scale_type;
    int32_t zero;               /* of all codes, where zeros is NULL */
    const unsigned char *zeros; /* U4: words of 4 bits for 8 rows, [(zero_row + n_w) / 8 rounded up,
                                   n_k / w_group]; row r's is number zero_row + r */
    size_t zero_row;
    const float *bias; /* [n_w] or NULL */
    float scale;
    bool add;
};

/* For codes of 4 bits: how many scales are tried for a group of values, how long it may be, and the
 * largest of their weights. */
enum { QUANT_TRIES = 4, QUANT_GROUP = 128, QUANT_WEIGHT = 4095 };

/* Rows of weights that are woven together: a cache line holds a word of each. */
enum { KERNELS_WOVEN = 16 };

/* The values of a row whose products linear_rows sums before they are added to what was before. */
enum { KERNELS_ROWS_K = 512 };

struct kernels {
    const char *level; /* "scalar", "avx2", ... */

    /* ORDER. One per type of stored weight. */
    void (*linear_rows[N_WEIGHT_TYPES])(const struct linear_args *a);
    void (*linear_cols[N_WEIGHT_TYPES])(const struct linear_args *a);

    /* ROUNDED. linear_rows[WEIGHT_BF16] and linear_cols[WEIGHT_BF16] with x in bf16 as well, as
     * to_bf16 makes it: rows of x are zero up to a multiple of 32 values. In columns as to_quads
     * makes it where the level has that, each sum by itself. NULL where the level has no
     * instruction for it. */
    void (*linear_rows_bf16)(const struct linear_args *a);
    void (*linear_cols_bf16)(const struct linear_args *a);

    /* ROUNDED. The bits of the same level's linear_rows_bf16 with what the codes mean (struct
     * linear_f8_args). NULL where a level has no use for it. */
    void (*linear_rows_f8)(const struct linear_f8_args *a);

    /* ORDER. The bits of linear_rows[WEIGHT_F32] with what decode makes of the codes, called for
     * each KERNELS_ROWS_K columns, the first as args say, the others to add, the bias with the
     * last. x in f32, KERNELS_F8_FEW rows at most. NULL at the scalar level alone. */
    void (*linear_f8_f32)(const struct linear_f8_args *a);

    /* EXACT. One per DOT_ type. */
    void (*linear_i8[N_DOT_TYPES])(const struct linear_i8_args *a);

    /* EXACT. linear_i8 with weights that are woven: a strip of KERNELS_WOVEN rows has the first 4
     * bytes of codes of each row side by side, then the second, ...; and likewise their scales, F16
     * or BF16. n_w is a number of whole strips, n_k a multiple of 4, or of 8 for U4; w_stride and
     * scale_stride are what a row takes, zero_row is a multiple of 8. The slot is NULL where a
     * level has no use for it. */
    void (*linear_woven[N_WOVEN_TYPES])(const struct linear_i8_args *a);

    /* EXACT. n f32 -> bf16, to the nearest, ties to even, NaNs stay NaNs; zero up to a multiple of
     * 32 values. */
    void (*to_bf16)(uint16_t *out, const float *in, size_t n);

    /* EXACT. The same in the order of linear_cols_bf16 where that reads the quarters of a sum's
     * rows of weights side by side: quad i has the values i, q + i, 2 q + i and 3 q + i, zeros for
     * those from n on; q, the number of quads, is n / 4, rounded up. NULL elsewhere. */
    void (*to_quads)(uint16_t *out, const float *in, size_t n);

    /* EXACT. A row for linear_i8: code = in * (127 / max |in|) to the nearest whole, ties to even,
     * scale = max |in| / 127, in groups of 32, 64 or 128; a group that is tiny (below 1e-30) is
     * zero, one with a NaN or an infinity has the scale NaN. */
    void (*to_i8)(unsigned char *out, const float *in, size_t n, size_t group, bool split);

    /* EXACT. n stored weights -> f32. */
    void (*to_f32[N_WEIGHT_TYPES])(float *out, const void *in, size_t n);

    /* EXACT. n codes -> f32: out[k] = (code(k) - zeros[k / group]) * scales[k / group], where zeros
     * NULL means 0; both steps in f32. group is even for 4-bit codes. */
    void (*decode[N_CODE_TYPES])(float *out, const void *in, size_t n, size_t group,
                                 const float *scales, const float *zeros);

    /* ORDER. RMSNorm, Zhang and Sennrich 2019: out = x / sqrt(mean(x^2) + eps) * weight. In both
     * norms out may be x, and n is at least 1. */
    void (*norm_rms)(float *out, const float *x, const float *weight, size_t n, float eps);

    /* ORDER. LayerNorm, Ba et al. 2016: out = (x - mean) / sqrt(var + eps) * weight + bias. bias
     * may be NULL. */
    void (*norm_layer)(float *out, const float *x, const float *weight, const float *bias, size_t n,
                       float eps);

    /* ORDER. In place. GELU_TANH is Hendrycks and Gimpel 2016 with tanh: 0.5 x (1 + tanh(sqrt(2/pi)
     * (x + 0.044715 x^3))); GELU_ERF the exact form; SILU x / (1 + exp(-x)). */
    void (*silu)(float *x, size_t n);
    void (*gelu_tanh)(float *x, size_t n);
    void (*gelu_erf)(float *x, size_t n);
    void (*relu)(float *x, size_t n);

    /* EXACT. y[i] *= x[i]; y[i] += x[i] */
    void (*mul)(float *y, const float *x, size_t n);
    void (*add)(float *y, const float *x, size_t n);

    /* EXACT. y[i] = x[i] * factor; y may be x. */
    void (*scale)(float *y, const float *x, float factor, size_t n);

    /* ORDER. Rotates one head in place, half-split pairs (x[i], x[i + n/2]) by angles whose cos and
     * sin are given, [n / 2] each. Su et al. 2021; Hugging Face's rotate_half. */
    void (*rope_half)(float *x, const float *cos, const float *sin, size_t n);

    /* ORDER. In place: exp(x - max) / sum. Where all are -inf the result is all zero. */
    void (*softmax)(float *x, size_t n);

    /* EXACT. Writes n floats as elements of a cache, `stride` elements apart, and returns their
     * scale: 1 but for I8. F16 rounds to the nearest (even) and stops at +-65504. I8 stores
     * x * (127 / max |x|) rounded, the scale being max |x| / 127; where max |x| is below 1e-30 all
     * is zero, where there is a NaN the scale is NaN. */
    float (*cache_store[N_CACHE_TYPES])(void *out, size_t stride, const float *x, size_t n);

    /* EXACT. ATTEND_LANES keys of n floats, x_stride apart, as cache_store writes F16: side by
     * side, ATTEND_BLOCK elements from one dimension to the next. */
    void (*cache_store_keys)(uint16_t *out, const float *x, size_t x_stride, size_t n);

    /* ORDER. One block of attention, as struct attend_args defines it. */
    void (*attend[N_CACHE_TYPES])(const struct attend_args *a);

    /* ROUNDED. attend with queries in bf16, rows of q zero up to a multiple of 2 values; keys,
     * values and what these are multiplied with are rounded to bf16. A value that is no number may
     * spoil every row of a call in which some row sees it. NULL where the level has no
     * instruction for it, and for F32, which is there to be exact. */
    void (*attend_bf16[N_CACHE_TYPES])(const struct attend_args *a);

    /* EXACT. A row in 8 bits: the scale, max |x| / 127 rounded to bf16 (to 0 where it would be
     * subnormal), is returned, and codes[k] = x[k] / scale, rounded to the nearest whole number
     * (half to even) and held within [-127, 127]. It is computed as fma(x[k], 1 / scale,
     * 1.5 * 2^23) - 1.5 * 2^23; where scale is 0 so are the codes. The scale is infinite where an
     * x[k] is, or is NaN. */
    float (*quant_row)(int8_t *codes, const float *x, size_t n);

    /* EXACT. The scales that suit n values in 4 bits, one for each group of them: of a multiple of
     * 8 values, at most QUANT_GROUP, n being whole groups. e is the least or the largest of a group
     * and 0, whichever is further from 0 (the largest where both are). Each of the tries, in
     * sixteenths from 16 to 256, maps e to -try and so gives codes in [-8, 7]; what is best for
     * them, by least squares weighted with whole numbers from 1 to QUANT_WEIGHT (some of them
     * near it, for the digits' sake), is
     *     scale = sum of weight * x * code / sum of weight * code^2,
     * and the try that takes most from the error (sum of weight * x * code)^2 / sum of weight *
     * code^2 wins, the first one if several do. All sums are of whole numbers:
     *     part = 32767 * x / e       by fma(x, 32767 / e, 1.5 * 2^23) - 1.5 * 2^23
     *     code = part / 16 * -try    >> 15, each step rounded, half up
     *     part * weight              >> 12, rounded likewise
     * The scale is rounded to bf16 (to 0 where it would be subnormal); where |e| is below 2^-100 it
     * is 0; where a value of the group is infinite or NaN it is infinite. */
    void (*quant_scales)(float *scales, const float *x, const int16_t *weights, size_t n,
                         size_t group, const int16_t tries[QUANT_TRIES]);

    /* EXACT. n values in groups of a multiple of 8 -> codes of 4 bits, as in quant_row, held within
     * [-8, 7], plus 8, two to a byte, the lower half first. */
    void (*quant_codes)(unsigned char *out, const float *x, const float *scales, size_t n,
                        size_t group);

    /* For measuring, in no class: n_steps rounds of the level's best instruction on registers
     * alone, in enough independent chains to keep it busy. Gives the multiplications and additions
     * done. NULL where the level has no such instruction; PEAK_F32 is always there. */
    double (*peak[N_PEAKS])(size_t n_steps);

    /* What peak is for arithmetic, for memory: looks at each of n bytes, as fast as this level can,
     * and does nothing with them. */
    void (*read_all)(const void *p, size_t n);

    /* For sharing work out, no more than about right: products that the level makes in a cycle with
     * the instruction of each peak, or with what it has instead. */
    int per_cycle[N_PEAKS];
};

/* The levels of this architecture from lowest to highest, ended by NULL, whether or not this
 * machine has them. */
extern const char *const kernels_levels[];

/* The table that is fastest on this machine: the highest that it can run (CPU flags and operating
 * system state are both asked), but for levels that do not pay on its processor. */
const struct kernels *kernels_best(void);

/* The table of that level; NULL where it is unknown or this machine lacks it. */
const struct kernels *kernels_for(const char *level);

#endif
