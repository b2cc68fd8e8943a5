/*
 * Quantised matrices: every format against weights that the test writes down in double before it
 * packs them, by packing code of its own that follows the formats' documents. Products are held to
 * the sum in double, and bit for bit to themselves: any threads, rows of x, parts of the matrix.
 * Every way in which the tensors of a file may disagree is refused with a sentence.
 */
#include "tests/check.h"

#include "core/kernels/kernels.h"
#include "core/linear.h"
#include "core/quant_weave.h"
#include "tests/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- a matrix and how it is stored ----------------------------------------------------------- */

enum zeros { NO_ZEROS, ZEROS_I8, ZEROS_PACKED, ZEROS_8 /* packed, all alike */ };

struct variant {
    const char *name;
    struct quant_format format;
    int n_out, n_in;
    enum dtype scale_dtype;
    enum zeros zeros;
    bool g_idx;
};

static const struct variant variants[] = {
    {"fp8 per tensor", {QUANT_F8, 0, 0, false}, 37, 531, DTYPE_F32, NO_ZEROS, false},
    {"fp8 per row", {QUANT_F8, 1, 0, false}, 19, 70, DTYPE_BF16, NO_ZEROS, false},
    {"fp8 blocks", {QUANT_F8, 128, 128, false}, 300, 1100, DTYPE_F32, NO_ZEROS, false},
    {"fp8 odd blocks", {QUANT_F8, 24, 100, false}, 50, 1030, DTYPE_F16, NO_ZEROS, false},
    {"fp8 powers", {QUANT_F8, 128, 128, false}, 130, 257, DTYPE_F8_E8M0, NO_ZEROS, false},
    {"mxfp4", {QUANT_MXFP4, 0, 0, false}, 45, 544, DTYPE_U8, NO_ZEROS, false},
    {"mxfp4 small", {QUANT_MXFP4, 0, 0, false}, 3, 32, DTYPE_F8_E8M0, NO_ZEROS, false},
    {"int8 per row", {QUANT_INT8, 1, 0, false}, 33, 517, DTYPE_BF16, NO_ZEROS, false},
    {"int8 per tensor", {QUANT_INT8, 0, 0, false}, 8, 9, DTYPE_F32, NO_ZEROS, false},
    {"int8 groups, zeros", {QUANT_INT8, 1, 64, false}, 20, 640, DTYPE_F16, ZEROS_I8, false},
    {"int8 groups of 3", {QUANT_INT8, 1, 3, false}, 20, 1029, DTYPE_F32, ZEROS_I8, false},
    {"packed8", {QUANT_PACKED8, 1, 0, false}, 17, 518, DTYPE_BF16, NO_ZEROS, false},
    {"packed8 zeros", {QUANT_PACKED8, 1, 32, false}, 21, 576, DTYPE_F16, ZEROS_PACKED, false},
    {"packed4", {QUANT_PACKED4, 1, 128, false}, 40, 1152, DTYPE_BF16, NO_ZEROS, false},
    {"packed4 per row", {QUANT_PACKED4, 1, 0, false}, 18, 525, DTYPE_F16, NO_ZEROS, false},
    {"packed4 zeros", {QUANT_PACKED4, 1, 32, false}, 27, 544, DTYPE_F16, ZEROS_PACKED, false},
    {"packed4 zeros I8", {QUANT_PACKED4, 1, 64, false}, 9, 128, DTYPE_F32, ZEROS_I8, false},
    {"packed4 order", {QUANT_PACKED4, 1, 32, false}, 21, 544, DTYPE_BF16, ZEROS_PACKED, true},
    {"packed4 groups of 24", {QUANT_PACKED4, 1, 24, false}, 20, 1032, DTYPE_F16, NO_ZEROS, false},
    {"gptq", {QUANT_GPTQ, 1, 128, true}, 136, 1152, DTYPE_F16, ZEROS_PACKED, false},
    {"gptq symmetric", {QUANT_GPTQ, 1, 128, true}, 296, 1152, DTYPE_F16, ZEROS_8, false},
    {"gptq groups of 64", {QUANT_GPTQ, 1, 64, false}, 88, 192, DTYPE_BF16, ZEROS_PACKED, false},
    {"gptq v2", {QUANT_GPTQ, 1, 64, false}, 24, 584, DTYPE_F16, ZEROS_PACKED, false},
    {"gptq order", {QUANT_GPTQ, 1, 32, true}, 40, 544, DTYPE_F16, ZEROS_PACKED, true},
    {"gptq per row", {QUANT_GPTQ, 1, 0, true}, 8, 16, DTYPE_F32, ZEROS_PACKED, false},
    {"awq", {QUANT_AWQ, 1, 128, false}, 264, 1152, DTYPE_F16, ZEROS_PACKED, false},
    {"awq small", {QUANT_AWQ, 1, 32, false}, 8, 544, DTYPE_BF16, ZEROS_PACKED, false},
    {"int8 woven", {QUANT_INT8, 1, 0, false}, 49, 300, DTYPE_BF16, NO_ZEROS, false},
    {"packed4 long row", {QUANT_PACKED4, 1, 0, false}, 40, 520, DTYPE_BF16, NO_ZEROS, false},
    {"packed4 strips", {QUANT_PACKED4, 1, 64, false}, 32, 640, DTYPE_BF16, ZEROS_PACKED, false},
    {"packed4 sorted", {QUANT_PACKED4, 1, 32, false}, 48, 544, DTYPE_BF16, ZEROS_PACKED, true},
    {"gptq sorted", {QUANT_GPTQ, 1, 128, true}, 304, 1152, DTYPE_F16, ZEROS_PACKED, true},
    {"gptq sorted symmetric", {QUANT_GPTQ, 1, 64, true}, 16, 192, DTYPE_F16, ZEROS_8, true},
};

enum { N_VARIANTS = sizeof variants / sizeof *variants };

struct matrix {
    const struct variant *v;
    size_t n_out, n_in, block_out, block_in, n_groups, n_scale_rows;
    double *w;            /* [n_out, n_in], what the tensors below say */
    double *scale, *zero; /* [n_scale_rows, n_groups] */
    int *group;           /* [n_in] */
    struct tensor tensors[5];
    struct quant_parts parts;
    struct quant quant;
};

/* Exactly n bytes behind an odd address, so that nothing is aligned and an overrun is seen. */
static unsigned char *odd_bytes(size_t n)
{
    return (unsigned char *)calloc(n + 1, 1) + 1;
}

static void odd_free(const void *p)
{
    if (p)
        free((void *)((uintptr_t)p - 1));
}

static struct tensor *add_tensor(struct matrix *m, int i, const char *name, enum dtype dtype,
                                 int64_t rows, int64_t columns)
{
    m->tensors[i] = (struct tensor){.name = name, .dtype = dtype, .n_dims = 2};
    m->tensors[i].shape[0] = rows;
    m->tensors[i].shape[1] = columns;
    m->tensors[i].n_bytes = (size_t)(rows * columns) * dtype_size(dtype);
    m->tensors[i].data = odd_bytes(m->tensors[i].n_bytes);
    return &m->tensors[i];
}

static unsigned char *bytes_of(const struct tensor *t)
{
    return (unsigned char *)(uintptr_t)t->data;
}

/* A code of n_bits into the words of 32 of a tensor: word and place. */
static void put_code(struct tensor *t, size_t word, unsigned place, unsigned n_bits, unsigned code)
{
    uint32_t w;
    memcpy(&w, bytes_of(t) + 4 * word, sizeof w);
    w |= (uint32_t)code << n_bits * place;
    memcpy(bytes_of(t) + 4 * word, &w, sizeof w);
}

/* A random scale, stored as element i; returns what was stored. */
static double put_scale(struct tensor *t, size_t i)
{
    const unsigned exponent = (unsigned)(random_bits() % 8), fraction = (unsigned)random_bits();
    if (t->dtype == DTYPE_U8 || t->dtype == DTYPE_F8_E8M0) {
        bytes_of(t)[i] = (unsigned char)(120 + exponent);
        return ldexp(1, (int)exponent + 120 - 127);
    }
    if (t->dtype == DTYPE_F16) {
        const uint16_t half = (uint16_t)((8 + exponent) << 10 | (fraction & 1023));
        memcpy(bytes_of(t) + 2 * i, &half, sizeof half);
        return ldexp(1 + (fraction & 1023) / 1024., (int)exponent + 8 - 15);
    }
    if (t->dtype == DTYPE_BF16) {
        const uint16_t brain = (uint16_t)((120 + exponent) << 7 | (fraction & 127));
        memcpy(bytes_of(t) + 2 * i, &brain, sizeof brain);
        return ldexp(1 + (fraction & 127) / 128., (int)exponent + 120 - 127);
    }
    const float f = random_unit();
    memcpy(bytes_of(t) + 4 * i, &f, sizeof f);
    return (double)f;
}

static const unsigned awq_order[8] = {0, 2, 4, 6, 1, 3, 5, 7}; /* AutoAWQ: output of each nibble */

static unsigned awq_place(size_t out)
{
    unsigned place = 0;
    while (awq_order[place] != out % 8)
        place++;
    return place;
}

/* A random code, put where the format has it; returns its value before zero point and scale. */
static double put_random_code(struct matrix *m, size_t r, size_t k)
{
    static const double e2m1[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    struct tensor *t = &m->tensors[0];
    unsigned code = (unsigned)random_bits() & 255;
    const unsigned half = code & 15;
    switch (m->v->format.type) {
    case QUANT_F8:
        code = (code & 127) == 127 ? code - 1 : code;
        bytes_of(t)[r * m->n_in + k] = (unsigned char)code;
        const unsigned exponent = code >> 3 & 15, mantissa = code & 7;
        return (code & 128 ? -1 : 1) *
               (exponent ? ldexp(8 + mantissa, (int)exponent - 10) : ldexp(mantissa, -9));
    case QUANT_MXFP4:
        bytes_of(t)[(r * m->n_in + k) / 2] |= (unsigned char)(half << (k % 2 ? 4 : 0));
        return half & 8 ? -e2m1[half & 7] : e2m1[half];
    case QUANT_INT8:
        bytes_of(t)[r * m->n_in + k] = (unsigned char)code;
        return code < 128 ? (double)code : (double)code - 256;
    case QUANT_PACKED8:
        put_code(t, r * ((m->n_in + 3) / 4) + k / 4, k % 4, 8, code);
        return (int)code - 128;
    case QUANT_PACKED4:
        put_code(t, r * ((m->n_in + 7) / 8) + k / 8, k % 8, 4, half);
        return (int)half - 8;
    case QUANT_GPTQ:
        put_code(t, k / 8 * m->n_out + r, k % 8, 4, half);
        return half;
    default:
        put_code(t, k * (m->n_out / 8) + r / 8, awq_place(r), 4, half);
        return half;
    }
}

static void make_codes(struct matrix *m)
{
    const int64_t out = (int64_t)m->n_out, in = (int64_t)m->n_in;
    switch (m->v->format.type) {
    case QUANT_F8:
        m->parts.codes = add_tensor(m, 0, "a.weight", DTYPE_F8_E4M3, out, in);
        break;
    case QUANT_MXFP4: {
        struct tensor *t = add_tensor(m, 0, "a_blocks", DTYPE_U8, out, in / 2);
        t->n_dims = 3;
        t->shape[1] = in / 32;
        t->shape[2] = 16;
        m->parts.codes = t;
        break;
    }
    case QUANT_INT8:
        m->parts.codes = add_tensor(m, 0, "a.weight", DTYPE_I8, out, in);
        break;
    case QUANT_PACKED8:
        m->parts.codes = add_tensor(m, 0, "a.weight_packed", DTYPE_I32, out, (in + 3) / 4);
        break;
    case QUANT_PACKED4:
        m->parts.codes = add_tensor(m, 0, "a.weight_packed", DTYPE_I32, out, (in + 7) / 8);
        break;
    case QUANT_GPTQ:
        m->parts.codes = add_tensor(m, 0, "a.qweight", DTYPE_I32, in / 8, out);
        break;
    default:
        m->parts.codes = add_tensor(m, 0, "a.qweight", DTYPE_I32, in, out / 8);
        break;
    }
}

static bool in_columns(const struct matrix *m)
{
    return m->v->format.type == QUANT_GPTQ || m->v->format.type == QUANT_AWQ;
}

static void make_scales(struct matrix *m)
{
    const int64_t rows = (int64_t)m->n_scale_rows, groups = (int64_t)m->n_groups;
    struct tensor *t = in_columns(m)
                           ? add_tensor(m, 1, "a.scales", m->v->scale_dtype, groups, rows)
                           : add_tensor(m, 1, "a.weight_scale", m->v->scale_dtype, rows, groups);
    for (size_t r = 0; r < m->n_scale_rows; r++)
        for (size_t g = 0; g < m->n_groups; g++)
            m->scale[r * m->n_groups + g] =
                put_scale(t, in_columns(m) ? g * m->n_out + r : r * m->n_groups + g);
    m->parts.scales = t;
}

/* GPTQ's older files store each zero point less one, as subtracted from whole words. */
static void words_less_one(struct tensor *t)
{
    for (size_t i = 0; i < t->n_bytes / 4; i++) {
        uint32_t w;
        memcpy(&w, bytes_of(t) + 4 * i, sizeof w);
        w -= 0x11111111;
        memcpy(bytes_of(t) + 4 * i, &w, sizeof w);
    }
}

static void make_zeros(struct matrix *m)
{
    const bool columns = in_columns(m);
    const unsigned bits = m->v->format.type == QUANT_PACKED8 ? 8 : 4, per_word = 32 / bits;
    const int64_t rows = (int64_t)m->n_scale_rows, groups = (int64_t)m->n_groups;
    struct tensor *t;
    if (m->v->zeros == NO_ZEROS)
        return;
    if (columns)
        t = add_tensor(m, 2, "a.qzeros", DTYPE_I32, groups, rows / 8);
    else if (m->v->zeros == ZEROS_I8)
        t = add_tensor(m, 2, "a.weight_zero_point", DTYPE_I8, rows, groups);
    else
        t = add_tensor(m, 2, "a.weight_zero_point", DTYPE_I32, (rows + per_word - 1) / per_word,
                       groups);
    for (size_t r = 0; r < m->n_scale_rows; r++) {
        for (size_t g = 0; g < m->n_groups; g++) {
            const unsigned any = (unsigned)random_bits() & ((1u << bits) - 1);
            const unsigned code = m->v->zeros == ZEROS_8 ? 8 : any;
            const unsigned half_range = 1u << (bits - 1);
            if (m->v->zeros == ZEROS_I8)
                bytes_of(t)[r * m->n_groups + g] = (unsigned char)(code - half_range);
            else if (m->v->format.type == QUANT_AWQ)
                put_code(t, g * (m->n_out / 8) + r / 8, awq_place(r), 4, code);
            else if (columns)
                put_code(t, g * (m->n_out / 8) + r / 8, r % 8, 4, code);
            else
                put_code(t, r / per_word * m->n_groups + g, r % per_word, bits, code);
            m->zero[r * m->n_groups + g] = columns ? code : (double)code - half_range;
        }
    }
    if (m->v->format.zeros_less_one)
        words_less_one(t);
    m->parts.zeros = t;
}

/* Each column's group: in order, or shuffled with as many columns in each. */
static void make_groups(struct matrix *m)
{
    for (size_t k = 0; k < m->n_in; k++)
        m->group[k] = (int)(k / m->block_in);
    if (!m->v->g_idx)
        return;
    struct tensor *t = add_tensor(m, 3, "a.g_idx", DTYPE_I32, (int64_t)m->n_in, 1);
    t->n_dims = 1;
    for (size_t k = m->n_in - 1; k > 0; k--) {
        const size_t other = (size_t)(random_bits() % (k + 1));
        const int swap = m->group[k];
        m->group[k] = m->group[other];
        m->group[other] = swap;
    }
    for (size_t k = 0; k < m->n_in; k++)
        memcpy(bytes_of(t) + 4 * k, &m->group[k], 4);
    m->parts.g_idx = t;
}

static struct matrix matrix_make(const struct variant *v)
{
    struct matrix m = {.v = v, .n_out = (size_t)v->n_out, .n_in = (size_t)v->n_in};
    m.block_out = v->format.block_out ? (size_t)v->format.block_out : m.n_out;
    m.block_in = v->format.block_in ? (size_t)v->format.block_in : m.n_in;
    if (v->format.type == QUANT_MXFP4) {
        m.block_out = 1;
        m.block_in = 32;
    }
    m.n_groups = (m.n_in + m.block_in - 1) / m.block_in;
    m.n_scale_rows = (m.n_out + m.block_out - 1) / m.block_out;
    m.w = calloc(m.n_out * m.n_in, sizeof *m.w);
    m.scale = calloc(m.n_scale_rows * m.n_groups, sizeof *m.scale);
    m.zero = calloc(m.n_scale_rows * m.n_groups, sizeof *m.zero);
    m.group = calloc(m.n_in, sizeof *m.group);
    return m;
}

/* The tensors' addresses are kept: *m must stay where it is. */
static void matrix_fill(struct matrix *m)
{
    make_codes(m);
    make_scales(m);
    make_zeros(m);
    make_groups(m);
    for (size_t r = 0; r < m->n_out; r++) {
        for (size_t k = 0; k < m->n_in; k++) {
            const size_t at = r / m->block_out * m->n_groups + (size_t)m->group[k];
            m->w[r * m->n_in + k] = (put_random_code(m, r, k) - m->zero[at]) * m->scale[at];
        }
    }
}

static void matrix_free(struct matrix *m)
{
    for (size_t i = 0; i < ARRAY_LEN(m->tensors); i++)
        odd_free(m->tensors[i].data);
    free(m->w);
    free(m->scale);
    free(m->zero);
    free(m->group);
}

static void matrix_init(struct matrix *m)
{
    struct err e;
    if (!quant_init(&m->quant, &m->v->format, &m->parts, m->n_out, m->n_in, &e))
        fail_msg("%s: %s", m->v->name, e.text);
}

/* ---- values ---------------------------------------------------------------------------------- */

/* Scale and code have so few digits that their product in double is exact. */
static void test_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_VARIANTS; i++) {
        struct matrix m = matrix_make(&variants[i]);
        matrix_fill(&m);
        matrix_init(&m);
        float *row = malloc(m.n_in * sizeof *row);
        for (const char *const *level = kernels_levels; *level; level++) {
            const struct kernels *const kernels = kernels_for(*level);
            for (size_t r = 0; kernels && r < m.n_out; r++) {
                quant_row(kernels, &m.quant, r, row);
                for (size_t k = 0; k < m.n_in; k++)
                    if (row[k] != (float)m.w[r * m.n_in + k])
                        fail_msg("%s %s: [%zu, %zu] is %a, not %a", *level, m.v->name, r, k,
                                 (double)row[k], m.w[r * m.n_in + k]);
            }
        }
        free(row);
        matrix_free(&m);
    }
}

/* ---- products -------------------------------------------------------------------------------- */

enum { MAX_X = 40 };

struct product {
    const struct linear *l;
    const float *x;
    float *y;
    size_t x_stride, n;
    enum linear_store store;
    const float *rounded; /* what x means in whole numbers, like x; NULL: products stay with f32 */
    const struct operand_room *room;
};

static void task(struct worker *w, void *context)
{
    const struct product *p = context;
    struct operand x = operand_rows(p->x, p->x_stride, p->n, (size_t)p->l->n_in, p->room);
    linear_apply_dealt(w, p->l, &x, p->y, (size_t)p->l->n_out, p->store);
}

static struct linear linear_of(const struct matrix *m, const float *bias)
{
    return (struct linear){
        .n_out = (int)m->n_out,
        .n_in = (int)m->n_in,
        .bias = bias,
        .scale = 1,
        .block = (int)m->n_out,
        .block_stride = (int)m->n_out,
        .quant = &m->quant,
    };
}

static void random_floats(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = random_unit();
}

/* The row of the matrix that is output r. */
static size_t row_of(const struct linear *l, size_t r)
{
    const size_t block = (size_t)l->block;
    return l->quant_first + r / block * (size_t)l->block_stride + r % block;
}

static double weight_of(const struct matrix *m, const struct linear *l, size_t r, size_t k)
{
    return l->transposed ? m->w[(l->quant_first + k) * m->n_in + r]
                         : m->w[row_of(l, r) * m->n_in + k];
}

static void expect_products(const struct matrix *m, const struct product *p, const float *y0)
{
    const size_t n_out = (size_t)p->l->n_out, n_in = (size_t)p->l->n_in;
    const float *const x = p->rounded ? p->rounded : p->x;
    for (size_t i = 0; i < p->n; i++) {
        for (size_t r = 0; r < n_out; r++) {
            double sum = 0, size = 0;
            for (size_t k = 0; k < n_in; k++) {
                const double term = (double)x[i * p->x_stride + k] * weight_of(m, p->l, r, k);
                sum += term;
                size += fabs(term);
            }
            const double before = p->store == LINEAR_ADD ? (double)y0[i * n_out + r] : 0;
            const double bias = p->l->bias ? (double)p->l->bias[r] : 0;
            const double expected = before + (double)p->l->scale * (sum + bias);
            const double found = (double)p->y[i * n_out + r];
            if (!(fabs(found - expected) <= 1e-6 * (size * (double)p->l->scale + 8)))
                fail_msg("%s: [%zu, %zu] is %g, not %g", m->v->name, i, r, found, expected);
        }
    }
}

static void expect_same(const struct matrix *m, const float *found, const float *expected, size_t n,
                        const char *what)
{
    if (memcmp(found, expected, n * sizeof *found) != 0)
        fail_msg("%s: other bits with %s", m->v->name, what);
}

/* All at once on one thread, then on more, then row by row of x. */
static void check_product(const struct matrix *m, struct product p, const char *level)
{
    const size_t n_out = (size_t)p.l->n_out, n_y = p.n * n_out;
    float *y0 = malloc(n_y * sizeof *y0), *first = malloc(n_y * sizeof *first);
    float *y = malloc(n_y * sizeof *y);
    struct operand_room room;
    struct err e;
    size_t n_bytes;
    assert_true(operand_room_bytes(p.n, m->n_in, 3, &n_bytes));
    void *const base = aligned_alloc(64, n_bytes);
    room = operand_room(base, p.n, m->n_in, 3);
    p.room = p.rounded ? &room : NULL;
    random_floats(y0, n_y);
    for (int n_threads = 1; n_threads <= 3; n_threads++) {
        struct compute *const c = compute_open(n_threads, level, &e);
        p.y = n_threads == 1 ? first : y;
        memcpy(p.y, y0, n_y * sizeof *y0);
        compute_run(c, task, &p);
        if (n_threads == 1)
            expect_products(m, &p, y0);
        else
            expect_same(m, y, first, n_y, "more threads");
        for (size_t i = 0; n_threads == 2 && i < p.n; i++) {
            struct product one = p;
            one.n = 1;
            one.x += i * p.x_stride;
            one.y += i * n_out;
            memcpy(one.y, y0 + i * n_out, n_out * sizeof *y0);
            compute_run(c, task, &one);
        }
        expect_same(m, p.y, first, n_y, "one row of x at a time");
        compute_close(c);
    }
    free(base);
    free(y0);
    free(first);
    free(y);
}

/* Whole, as the rows from 3 on, in blocks as of a fused matrix, and from the other side. */
static void check_products(const struct matrix *m, const char *level)
{
    const size_t x_stride = (m->n_in > m->n_out ? m->n_in : m->n_out) + 1;
    float *x = malloc(MAX_X * x_stride * sizeof *x);
    float *bias = malloc(x_stride * sizeof *bias);
    random_floats(x, MAX_X * x_stride);
    random_floats(bias, x_stride);
    struct linear l = linear_of(m, NULL);
    struct product p = {.l = &l, .x = x, .x_stride = x_stride, .n = MAX_X};
    check_product(m, p, level);
    l = linear_of(m, bias);
    l.scale = 0.25f;
    p.n = 5;
    p.store = LINEAR_ADD;
    check_product(m, p, level);
    if (m->n_out > 3) {
        l.quant_first = 3;
        l.block = l.block_stride = l.n_out = (int)m->n_out - 3;
        check_product(m, p, level);
        l.n_in = l.n_out;
        l.block = l.block_stride = l.n_out = (int)m->n_in;
        l.transposed = true;
        check_product(m, p, level);
        p.n = 1;
        p.store = LINEAR_SET;
        check_product(m, p, level);
    }
    l = linear_of(m, bias);
    l.quant_first = 1;
    l.block = 2;
    l.block_stride = 3;
    l.n_out = (int)(m->n_out - 1) / 3 * 2;
    p.n = 14;
    check_product(m, p, level);
    free(x);
    free(bias);
}

/* ---- products in whole numbers --------------------------------------------------------------- */

/* Bytes of a row of to_i8. */
static size_t whole_stride(const struct matrix *m)
{
    const size_t group = quant_i8_group(&m->quant);
    return kernels_i8_codes(m->n_in) + (m->n_in + group - 1) / group * 8;
}

/* A row as to_i8 makes it, and in plain what this means. */
static void whole_row(const struct quant *q, unsigned char *x, float *plain)
{
    const size_t n = q->n_in, group = quant_i8_group(q), half = KERNELS_I8_BLOCK / 2;
    const bool split = quant_is_split(q);
    kernels_for("scalar")->to_i8(x, plain, n, group, split);
    for (size_t k = 0; k < n; k++) {
        const size_t j = k % KERNELS_I8_BLOCK, at = split ? k - j + j / 2 + j % 2 * half : k;
        float scale;
        memcpy(&scale, x + kernels_i8_codes(n) + k / group * sizeof scale, sizeof scale);
        plain[k] = scale * (float)(int8_t)x[at];
    }
}

/* Random rows, likewise. */
static void whole_x(const struct matrix *m, unsigned char *x, size_t x_stride, float *plain)
{
    for (size_t i = 0; i < MAX_X; i++, x += x_stride, plain += m->n_in) {
        random_floats(plain, m->n_in);
        whole_row(&m->quant, x, plain);
    }
}

/* Outputs [first, first + n) for n_x rows of x, in their places of y. */
static void whole_part(const struct kernels *kernels, const struct quant *q,
                       struct linear_i8_args a, size_t first, size_t n, size_t n_x)
{
    a.n_w = n;
    a.n_x = n_x;
    a.y += first;
    a.bias += first;
    quant_apply_i8(kernels, q, first, &a);
}

/* Products of q in one piece and in others have the bits of `first`; a.y is theirs to write. */
static void check_parts(const struct kernels *kernels, const struct matrix *m,
                        const struct quant *q, struct linear_i8_args a, const float *y0,
                        const float *first)
{
    const size_t n_out = m->n_out, n_y = MAX_X * n_out;
    for (size_t piece = 1; piece <= 2 * n_out; piece = 3 * piece + 5) {
        memcpy(a.y, y0, n_y * sizeof *y0);
        for (size_t r = 0; r < n_out; r += piece)
            whole_part(kernels, q, a, r, piece < n_out - r ? piece : n_out - r, MAX_X);
        expect_same(m, a.y, first, n_y, kernels->level);
        memcpy(a.y, y0, n_y * sizeof *y0);
        whole_part(kernels, q, a, 0, n_out, 1);
        expect_same(m, a.y, first, n_out, "one row of x");
    }
}

/* A woven copy has the values of the matrix. */
static void check_woven_values(const struct kernels *kernels, const struct matrix *m,
                               const struct quant *woven)
{
    struct matrix copy = *m;
    copy.quant = *woven;
    check_products(&copy, kernels->level);
    float *const row = malloc(m->n_in * sizeof *row);
    for (size_t r = 0; r < m->n_out; r++) {
        quant_row(kernels, woven, r, row);
        for (size_t k = 0; k < m->n_in; k++)
            assert_true(row[k] == (float)m->w[r * m->n_in + k]);
    }
    free(row);
}

/* A woven copy is the same matrix, in whole numbers and in f32. */
static bool check_woven(const struct kernels *kernels, const struct matrix *m,
                        struct linear_i8_args a, const float *y0, const float *first)
{
    struct quant woven;
    const size_t n = quant_woven_bytes(kernels, &m->quant);
    if (n == 0)
        return false;
    unsigned char *const to = aligned_alloc(64, (n + 63) / 64 * 64);
    quant_woven_init(&m->quant, to, &woven);
    for (size_t r = 0; r < m->n_out; r += KERNELS_WOVEN)
        quant_weave_rows(&m->quant, to, r, min_size(m->n_out, r + KERNELS_WOVEN));
    check_parts(kernels, m, &woven, a, y0, first);
    memset(to, 0, n);
    quant_woven_init(&m->quant, to, &woven);
    quant_weave_rows(&m->quant, to, 0, m->n_out);
    check_parts(kernels, m, &woven, a, y0, first);
    check_woven_values(kernels, m, &woven);
    free(to);
    return true;
}

/* In one piece held to the sum in double; in others, woven and at any level, the bits are the same.
 * Returns at how many levels it can be woven. */
static int check_whole(const struct matrix *m)
{
    const size_t n_in = m->n_in, n_out = m->n_out, n_y = MAX_X * n_out;
    const size_t group = quant_i8_group(&m->quant), x_stride = whole_stride(m);
    unsigned char *x = aligned_alloc(64, (MAX_X * x_stride + 63) / 64 * 64);
    float *plain = malloc(MAX_X * n_in * sizeof *plain), *bias = malloc(n_out * sizeof *bias);
    float *y0 = malloc(3 * n_y * sizeof *y0), *first = y0 + n_y, *y = first + n_y;
    whole_x(m, x, x_stride, plain);
    random_floats(bias, n_out);
    random_floats(y0, n_y);
    struct linear l = linear_of(m, bias);
    l.scale = 0.5f;
    struct linear_i8_args a = {.y = first,
                               .y_stride = n_out,
                               .x = x,
                               .x_stride = x_stride,
                               .x_group = group,
                               .n_k = n_in,
                               .bias = bias,
                               .scale = l.scale,
                               .add = true};
    memcpy(first, y0, n_y * sizeof *y0);
    whole_part(kernels_for("scalar"), &m->quant, a, 0, n_out, MAX_X);
    const struct product p = {
        .l = &l, .x = plain, .y = first, .x_stride = n_in, .n = MAX_X, .store = LINEAR_ADD};
    expect_products(m, &p, y0);
    a.y = y;
    int n_woven = 0;
    for (const char *const *level = kernels_levels; *level; level++) {
        const struct kernels *const kernels = kernels_for(*level);
        if (!kernels)
            continue;
        check_parts(kernels, m, &m->quant, a, y0, first);
        n_woven += check_woven(kernels, m, a, y0, first);
    }
    free(x);
    free(plain);
    free(bias);
    free(y0);
    return n_woven;
}

static void test_whole(void **state)
{
    (void)state;
    int n = 0, n_woven = 0, n_levels = 0;
    for (const char *const *level = kernels_levels; *level; level++)
        n_levels += kernels_for(*level) && kernels_for(*level)->linear_woven[DOT_U4];
    for (size_t i = 0; i < N_VARIANTS; i++) {
        struct matrix m = matrix_make(&variants[i]);
        matrix_fill(&m);
        matrix_init(&m);
        if (quant_i8_group(&m.quant)) {
            n_woven += check_whole(&m);
            n += in_columns(&m);
        }
        matrix_free(&m);
    }
    assert_int_equal(n, 6); /* of GPTQ and AWQ */
    assert_int_equal(n_woven, 9 * n_levels);
}

/* Random rows, and what they mean once they are rounded in the order of the matrix. */
static void sorted_x(const struct matrix *m, float *x, float *rounded)
{
    const size_t n = m->n_in;
    unsigned char *const whole = malloc(whole_stride(m));
    float *const sorted = malloc(n * sizeof *sorted);
    for (size_t i = 0; i < MAX_X; i++, x += n, rounded += n) {
        random_floats(x, n);
        for (size_t k = 0; k < n; k++)
            sorted[k] = x[m->quant.order[k]];
        whole_row(&m->quant, whole, sorted);
        for (size_t k = 0; k < n; k++)
            rounded[m->quant.order[k]] = sorted[k];
    }
    free(whole);
    free(sorted);
}

/* Where columns have an order of their own, weaving sorts them: products in whole numbers are held
 * to the sum in double. Returns whether it does. */
static bool check_sorted(const struct kernels *kernels, const struct matrix *m)
{
    struct matrix woven = *m;
    const size_t n = quant_woven_bytes(kernels, &m->quant), n_x = MAX_X * m->n_in;
    if (n == 0)
        return false;
    unsigned char *const to = malloc(n); /* an order that is too long shows */
    float *const x = malloc(2 * n_x * sizeof *x), *const rounded = x + n_x;
    quant_woven_init(&m->quant, to, &woven.quant);
    quant_weave_rows(&m->quant, to, 0, m->n_out);
    check_woven_values(kernels, m, &woven.quant);
    sorted_x(&woven, x, rounded);
    const struct linear l = linear_of(&woven, NULL);
    const struct product p = {.l = &l, .x = x, .x_stride = m->n_in, .n = MAX_X, .rounded = rounded};
    check_product(&woven, p, kernels->level);
    free(x);
    free(to);
    return true;
}

static void test_sorted(void **state)
{
    (void)state;
    int n = 0, n_levels = 0;
    for (const char *const *level = kernels_levels; *level; level++) {
        const struct kernels *const kernels = kernels_for(*level);
        if (!kernels)
            continue;
        n_levels += kernels->linear_woven[DOT_U4] != NULL;
        for (size_t i = 0; i < N_VARIANTS; i++) {
            struct matrix m = matrix_make(&variants[i]);
            matrix_fill(&m);
            matrix_init(&m);
            n += m.quant.g_idx && check_sorted(kernels, &m);
            matrix_free(&m);
        }
    }
    assert_int_equal(n, 3 * n_levels); /* the others have rows behind the last strip */
}

/* A group of more columns than the others has scales that are not sorted with it. */
static void test_unsorted(void **state)
{
    (void)state;
    struct matrix m = matrix_make(&variants[N_VARIANTS - 1]);
    const struct kernels *const kernels = kernels_best();
    matrix_fill(&m);
    matrix_init(&m);
    const bool weaves = kernels->linear_woven[DOT_U4];
    assert_true((quant_woven_bytes(kernels, &m.quant) > 0) == weaves);
    const int32_t other = 1;
    size_t k = 0;
    while (m.group[k] == other)
        k++;
    memcpy(bytes_of(&m.tensors[3]) + 4 * k, &other, sizeof other);
    matrix_init(&m);
    assert_true(quant_woven_bytes(kernels, &m.quant) == 0);
    matrix_free(&m);
}

static void test_products(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_VARIANTS; i++) {
        struct matrix m = matrix_make(&variants[i]);
        matrix_fill(&m);
        matrix_init(&m);
        for (const char *const *level = kernels_levels; *level; level++)
            if (kernels_for(*level))
                check_products(&m, *level);
        matrix_free(&m);
    }
}

/* Where the kernels sum in blocks, a tile is one of them: the bits are those of the same matrix
 * written out as f32. */
static void test_written_out(void **state)
{
    (void)state;
    struct err e;
    for (size_t i = 0; i < N_VARIANTS; i++) {
        struct matrix m = matrix_make(&variants[i]);
        matrix_fill(&m);
        matrix_init(&m);
        struct compute *const c = compute_open(1, NULL, &e);
        const bool in_blocks = strcmp(compute_kernels(c)->level, "scalar") != 0;
        float *w = malloc(m.n_out * m.n_in * sizeof *w), *x = malloc(MAX_X * m.n_in * sizeof *x);
        float *y = malloc(MAX_X * m.n_out * sizeof *y),
              *plain_y = malloc(MAX_X * m.n_out * sizeof *y);
        for (size_t j = 0; j < m.n_out * m.n_in; j++)
            w[j] = (float)m.w[j];
        random_floats(x, MAX_X * m.n_in);
        const struct linear l = linear_of(&m, NULL);
        struct linear plain = l;
        plain.quant = NULL;
        plain.w = w;
        plain.dtype = DTYPE_F32;
        plain.stride = m.n_in;
        struct product p = {.l = &l, .x = x, .y = y, .x_stride = m.n_in, .n = MAX_X};
        compute_run(c, task, &p);
        p.l = &plain;
        p.y = plain_y;
        compute_run(c, task, &p);
        if (in_blocks)
            expect_same(&m, y, plain_y, MAX_X * m.n_out, "a copy in f32");
        compute_close(c);
        free(w);
        free(x);
        free(y);
        free(plain_y);
        matrix_free(&m);
    }
}

/* y[MAX_X, n_out] = x times rows of the matrix, from the third on, or of a copy in bf16. */
static void rounded_products(struct compute *c, const struct matrix *m, const uint16_t *copy,
                             const float *x, size_t n, float *y)
{
    struct linear l = linear_of(m, NULL);
    struct operand_room room;
    size_t n_bytes;
    const size_t first = m->n_out > 3 ? 3 : 0;
    l.n_out = l.block = l.block_stride = (int)(m->n_out - first);
    l.quant_first = first;
    if (copy) {
        l.quant = NULL;
        l.w = copy + first * m->n_in;
        l.dtype = DTYPE_BF16;
        l.stride = m->n_in;
    }
    assert_true(operand_room_bytes(n, m->n_in, 3, &n_bytes));
    void *const base = aligned_alloc(64, n_bytes);
    room = operand_room(base, n, m->n_in, 3);
    struct product p = {.l = &l, .x = x, .y = y, .x_stride = m->n_in, .n = n, .room = &room};
    compute_run(c, task, &p);
    free(base);
}

static void check_rounded(const struct matrix *m, const char *level)
{
    struct err e;
    const size_t n_w = m->n_out * m->n_in, n_y = MAX_X * m->n_out;
    uint16_t *const copy = malloc((n_w + 32) * sizeof *copy);
    float *const x = malloc((MAX_X * m->n_in + 2 * n_y) * sizeof *x);
    float *const y = x + MAX_X * m->n_in, *const expected = y + n_y;
    for (size_t i = 0; i < n_w; i++) {
        const float w = (float)m->w[i];
        kernels_for("scalar")->to_bf16(copy + i, &w, 1);
    }
    random_floats(x, MAX_X * m->n_in);
    for (int n_threads = 1; n_threads <= 3; n_threads++)
        for (size_t n = 1; n <= MAX_X; n += 13) {
            struct compute *const c = compute_open(n_threads, level, &e);
            memset(y, 0, 2 * n_y * sizeof *y);
            rounded_products(c, m, NULL, x, n, y);
            rounded_products(c, m, copy, x, n, expected);
            expect_same(m, y, expected, n_y, "a copy in bf16");
            compute_close(c);
        }
    free(copy);
    free(x);
}

/* Where codes are rounded to bf16, the bits are those of the same matrix written out so. */
static void test_rounded(void **state)
{
    (void)state;
    int n = 0, n_levels = 0;
    for (const char *const *level = kernels_levels; *level; level++) {
        const struct kernels *const kernels = kernels_for(*level);
        n_levels += kernels && kernels->linear_rows_f8;
        for (size_t i = 0; kernels && i < N_VARIANTS; i++) {
            struct matrix m = matrix_make(&variants[i]);
            matrix_fill(&m);
            matrix_init(&m);
            if (quant_meets_bf16(kernels, &m.quant)) {
                check_rounded(&m, *level);
                n++;
            }
            matrix_free(&m);
        }
    }
    assert_int_equal(n, 4 * n_levels); /* groups of 100 columns stay with f32 */
}

static void test_lookup(void **state)
{
    (void)state;
    struct matrix m = matrix_make(&variants[0]);
    matrix_fill(&m);
    matrix_init(&m);
    struct linear l = linear_of(&m, NULL);
    l.quant_first = 30;
    l.n_out = l.block = l.block_stride = 7;
    float row[531];
    linear_row(kernels_best(), &l, 6, row);
    for (size_t k = 0; k < m.n_in; k++)
        assert_true(row[k] == (float)m.w[36 * m.n_in + k]);
    matrix_free(&m);
}

/* Codes and scales that no table of weights has. */
static void test_extremes(void **state)
{
    (void)state;
    const unsigned char codes[16] = {0x62}, scales[] = {0}, f8[] = {0x7f, 0x7e, 0x01, 0xff};
    const float huge[] = {0x1p100f};
    const struct tensor t = {.name = "b",
                             .dtype = DTYPE_U8,
                             .n_dims = 3,
                             .shape = {1, 1, 16},
                             .data = codes,
                             .n_bytes = 16};
    const struct tensor s = {
        .name = "s", .dtype = DTYPE_U8, .n_dims = 2, .shape = {1, 1}, .data = scales, .n_bytes = 1};
    const struct tensor w = {.name = "w",
                             .dtype = DTYPE_F8_E4M3,
                             .n_dims = 2,
                             .shape = {1, 4},
                             .data = f8,
                             .n_bytes = 4};
    const struct tensor h = {
        .name = "h", .dtype = DTYPE_F32, .n_dims = 0, .data = huge, .n_bytes = 4};
    struct quant q;
    struct err e;
    float out[32];
    assert_true(quant_init(&q, &(struct quant_format){.type = QUANT_MXFP4},
                           &(struct quant_parts){.codes = &t, .scales = &s}, 1, 32, &e));
    quant_row(kernels_best(), &q, 0, out);
    assert_true(out[0] == 0x1p-127f && out[1] == 4 * 0x1p-127f && out[2] == 0);
    assert_false(quant_init(&q, &(struct quant_format){.type = QUANT_MXFP4},
                            &(struct quant_parts){.codes = &t, .scales = &s}, 1, 16, &e));
    assert_string_equal(e.text, "b: groups of 32 do not divide 16 columns");
    assert_true(quant_init(&q, &(struct quant_format){.type = QUANT_F8},
                           &(struct quant_parts){.codes = &w, .scales = &h}, 1, 4, &e));
    quant_row(kernels_best(), &q, 0, out);
    assert_true(isnan(out[0]) && out[1] == 448 * 0x1p100f && out[2] == 0x1p91f && isnan(out[3]));
}

/* ---- what is refused ------------------------------------------------------------------------- */

/* Initialises a copy of the variant's parts after `change`; expects a sentence that holds `text`.
 */
static void expect_refused(const char *variant, void (*change)(struct matrix *m), const char *text)
{
    const struct variant *v = NULL;
    for (size_t i = 0; i < N_VARIANTS; i++)
        if (strcmp(variants[i].name, variant) == 0)
            v = &variants[i];
    assert_non_null(v);
    struct variant changed = *v;
    struct matrix m = matrix_make(v);
    matrix_fill(&m);
    matrix_init(&m);
    m.v = &changed;
    change(&m);
    struct err e = {ERR_NONE, ""};
    const bool accepted = quant_init(&m.quant, &changed.format, &m.parts, m.n_out, m.n_in, &e);
    if (accepted || e.code != ERR_LOAD || !strstr(e.text, text))
        fail_msg("%s: %s, expected: %s", variant, accepted ? "accepted" : e.text, text);
    matrix_free(&m);
}

static struct quant_format *format_of(struct matrix *m)
{
    return (struct quant_format *)(uintptr_t)&m->v->format;
}

static void group_of_100(struct matrix *m)
{
    format_of(m)->block_in = 100;
}

static void group_of_4(struct matrix *m)
{
    format_of(m)->block_in = 4;
}

static void negative_group(struct matrix *m)
{
    format_of(m)->block_in = -1;
}

static void wider(struct matrix *m)
{
    m->n_in += 32;
}

static void taller(struct matrix *m)
{
    m->n_out += 128;
}

static void nothing(struct matrix *m)
{
    m->n_out = 0;
}

static void odd_rows(struct matrix *m)
{
    m->n_out--;
}

static void codes_f64(struct matrix *m)
{
    m->tensors[0].dtype = DTYPE_F64;
}

static void flat_blocks(struct matrix *m)
{
    m->tensors[0].n_dims = 2;
    m->tensors[0].shape[1] *= 16;
}

static void scales_i32(struct matrix *m)
{
    m->tensors[1].dtype = DTYPE_I32;
}

static void fewer_scales(struct matrix *m)
{
    m->tensors[1].shape[0]--;
}

static void turned_scales(struct matrix *m)
{
    const int64_t rows = m->tensors[1].shape[0];
    m->tensors[1].shape[0] = m->tensors[1].shape[1];
    m->tensors[1].shape[1] = rows;
}

static void no_scales(struct matrix *m)
{
    m->parts.scales = NULL;
}

static void no_zeros(struct matrix *m)
{
    m->parts.zeros = NULL;
}

static void zeros_lost(struct matrix *m)
{
    format_of(m)->needs_zeros = true;
    m->parts.zeros = NULL;
}

static void order_lost(struct matrix *m)
{
    format_of(m)->needs_g_idx = true;
    m->parts.g_idx = NULL;
}

static void zeros_of_scales(struct matrix *m)
{
    m->parts.zeros = m->parts.scales;
}

static void fewer_zeros(struct matrix *m)
{
    m->tensors[2].shape[0]--;
}

static void zeros_f32(struct matrix *m)
{
    m->tensors[2].dtype = DTYPE_F32;
}

static void put_group(struct matrix *m, int group)
{
    memcpy(bytes_of(&m->tensors[3]) + 4 * 5, &group, sizeof group);
}

static void group_beyond(struct matrix *m)
{
    put_group(m, (int)m->n_groups);
}

static void group_below(struct matrix *m)
{
    put_group(m, -2);
}

static void group_missing(struct matrix *m)
{
    put_group(m, -1);
}

static void g_idx_short(struct matrix *m)
{
    m->tensors[3].shape[0]--;
}

static void g_idx_i64(struct matrix *m)
{
    m->tensors[3].dtype = DTYPE_I64;
}

/* As its shapes have it; what is refused is not read. */
static void many_groups(struct matrix *m)
{
    enum { N_GROUPS = 1025 };
    m->n_in = 8 * N_GROUPS;
    format_of(m)->block_in = 8;
    for (int i = 0; i < 3; i++)
        m->tensors[i].shape[1] = N_GROUPS;
    m->parts.g_idx = add_tensor(m, 4, "a.g_idx", DTYPE_I32, (int64_t)m->n_in, 1);
}

static void g_idx_of_scales(struct matrix *m)
{
    m->parts.g_idx = m->parts.scales;
}

static void other_shape(struct matrix *m)
{
    struct tensor *t = add_tensor(m, 4, "a.weight_shape", DTYPE_I64, 2, 1);
    const int64_t shape[2] = {(int64_t)m->n_out, (int64_t)m->n_in + 1};
    memcpy(bytes_of(t), shape, sizeof shape);
    m->parts.shape = t;
}

static void shape_f32(struct matrix *m)
{
    m->parts.shape = add_tensor(m, 4, "a.weight_shape", DTYPE_F32, 2, 1);
}

static void test_refused(void **state)
{
    (void)state;
    expect_refused("packed4", group_of_100, "groups of 100 do not divide 1152 columns");
    expect_refused("awq", group_of_100, "groups of 100 do not divide 1152 columns");
    expect_refused("gptq", group_of_100, "groups of 100 are not supported");
    expect_refused("packed4", group_of_4, "groups of 4 are not supported");
    expect_refused("fp8 blocks", negative_group, "blocks of 128 x -1");
    expect_refused("fp8 blocks", wider, "a.weight has shape [300, 1100], expected [300, 1132]");
    expect_refused("int8 per row", wider, "a.weight has shape [33, 517], expected [33, 549]");
    expect_refused("mxfp4", wider, "a_blocks has shape [45, 17, 16], expected [45, 18, 16]");
    expect_refused("mxfp4", flat_blocks, "a_blocks has shape [45, 272], expected [45, 17, 16]");
    expect_refused("packed8", wider, "a.weight_packed has shape [17, 130], expected [17, 138]");
    expect_refused("gptq per row", wider, "a.qweight has shape [2, 8], expected [6, 8]");
    expect_refused("awq small", wider, "a.qweight has shape [544, 1], expected [576, 1]");
    expect_refused("fp8 blocks", taller, "expected [428, 1100]");
    expect_refused("fp8 blocks", nothing, "0 x 1100 is not supported");
    expect_refused("awq", odd_rows, "AWQ packs whole words, but the matrix is 263 x 1152");
    expect_refused("packed4", codes_f64, "a.weight_packed is F64, expected I32");
    expect_refused("fp8 per row", codes_f64, "a.weight is F64, expected F8_E4M3");
    expect_refused("fp8 blocks", scales_i32, "a.weight_scale is I32, expected F32, F16 or BF16");
    expect_refused("mxfp4", scales_i32, "a.weight_scale is I32, expected U8 or F8_E8M0");
    expect_refused("fp8 blocks", fewer_scales, "a.weight_scale has shape [2, 9], expected [3, 9]");
    expect_refused("fp8 blocks", turned_scales, "a.weight_scale has shape [9, 3], expected [3, 9]");
    expect_refused("gptq", turned_scales, "a.scales has shape [136, 9], expected [9, 136]");
    expect_refused("packed4", no_scales, "a.weight_packed has no tensor of scales beside it");
    expect_refused("awq", no_zeros, "a.qweight has no tensor of zero points beside it");
    expect_refused("packed4 zeros", zeros_lost, "has no tensor of zero points beside it");
    expect_refused("packed4 order", order_lost, "has no tensor of g_idx beside it");
    expect_refused("gptq order", order_lost, "has no tensor of g_idx beside it");
    expect_refused("fp8 per row", zeros_of_scales, "zero points are not supported with FP8");
    expect_refused("mxfp4", zeros_of_scales, "zero points are not supported with MXFP4");
    expect_refused("packed4 zeros", fewer_zeros,
                   "a.weight_zero_point has shape [3, 17], expected [4");
    expect_refused("gptq", fewer_zeros, "a.qzeros has shape [8, 17], expected [9, 17]");
    expect_refused("int8 groups, zeros", zeros_f32, "a.weight_zero_point is F32, expected I8");
    expect_refused("packed4 zeros", zeros_f32, "a.weight_zero_point is F32, expected I8 or I32");
    expect_refused("gptq order", group_beyond, "a.g_idx: column 5 is in group 17 of 17");
    expect_refused("gptq order", group_below, "a.g_idx: column 5 is in group -2 of 17");
    expect_refused("gptq order", group_missing, "a.g_idx: a column is in group -1 of 17");
    expect_refused("packed4 order", g_idx_short, "a.g_idx has shape [543], expected [544");
    expect_refused("packed4 order", g_idx_i64, "a.g_idx is I64, expected I32");
    expect_refused("packed4 order", many_groups, "1025 groups in an order of their own, at most");
    expect_refused("awq", g_idx_of_scales, "an order of columns is not supported with AWQ");
    expect_refused("packed4", other_shape, "a.weight_shape says [40, 1153], expected [40, 1152]");
    expect_refused("packed4", shape_f32, "a.weight_shape is F32, expected I64 or I32");
}

/* What is odd and yet right: scales without their last dimension, an index that was never filled
 * in, the stored shape, an index in order. */
static void test_accepted(void **state)
{
    (void)state;
    struct variant v = variants[7];
    struct matrix m = matrix_make(&v);
    matrix_fill(&m);
    m.tensors[1].n_dims = 1;
    matrix_init(&m);
    matrix_free(&m);

    v = variants[17];
    m = matrix_make(&v);
    matrix_fill(&m);
    matrix_init(&m);
    assert_non_null(m.quant.g_idx);
    put_group(&m, -1);
    matrix_init(&m);
    assert_null(m.quant.g_idx);
    for (size_t k = 0; k < m.n_in; k++) {
        const int group = (int)(k / 32);
        memcpy(bytes_of(&m.tensors[3]) + 4 * k, &group, sizeof group);
    }
    struct tensor *t = add_tensor(&m, 4, "a.weight_shape", DTYPE_I32, 2, 1);
    t->n_dims = 1;
    memcpy(bytes_of(t), (const int32_t[]){v.n_out, v.n_in}, 8);
    m.parts.shape = t;
    matrix_init(&m);
    assert_null(m.quant.g_idx);
    matrix_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),   cmocka_unit_test(test_products),
        cmocka_unit_test(test_whole),    cmocka_unit_test(test_sorted),
        cmocka_unit_test(test_unsorted), cmocka_unit_test(test_written_out),
        cmocka_unit_test(test_rounded),  cmocka_unit_test(test_lookup),
        cmocka_unit_test(test_extremes), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_accepted),
    };
    return cmocka_run_group_tests_name("quant", tests, NULL, NULL);
}
