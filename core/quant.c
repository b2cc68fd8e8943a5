/*
 * The formats as a table, and whether the tensors of a matrix fit together: shapes, dtypes, group
 * sizes, indices of groups. The sentences here are what a user of an odd checkpoint sees.
 * Computing with it is quant_apply.c's business.
 */
#include "core/quant.h"

#include "core/kernels/kernels.h"
#include "core/quant_layout.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const struct quant_layout quant_layouts[QUANT_TYPE_COUNT] = {
    [QUANT_F8] = {"FP8", CODE_F8_E4M3, 8, 0, DTYPE_F8_E4M3, false},
    [QUANT_MXFP4] = {"MXFP4", CODE_F4_E2M1, 4, 0, DTYPE_U8, false},
    [QUANT_INT8] = {"int8", CODE_I8, 8, 0, DTYPE_I8, false},
    [QUANT_PACKED8] = {"packed int8", CODE_U8, 8, 128, DTYPE_I32, false},
    [QUANT_PACKED4] = {"packed int4", CODE_U4, 4, 8, DTYPE_I32, false},
    [QUANT_GPTQ] = {"GPTQ", CODE_U4, 4, 0, DTYPE_I32, true},
    [QUANT_AWQ] = {"AWQ", CODE_U4, 4, 0, DTYPE_I32, true},
};

enum { MXFP4_BLOCK = 32 };

static size_t divide_up(size_t n, size_t by)
{
    return n / by + (n % by != 0);
}

/* Elements of the stored dtype that a row takes; packed ones are padded to whole words. */
static size_t row_elements(const struct quant *q)
{
    return divide_up(q->n_in * q->layout->bits, 8 * dtype_size(q->layout->dtype));
}

/* ---- one tensor ------------------------------------------------------------------------------ */

/* One of up to three dtypes; the last is repeated where there are fewer. */
static bool expect_dtype(const struct tensor *t, enum dtype a, enum dtype b, enum dtype c,
                         struct err *e)
{
    if (t->dtype == a || t->dtype == b || t->dtype == c)
        return true;
    char more[32] = "";
    if (b != a)
        snprintf(more, sizeof more, c != b ? ", %s or %s" : " or %s", dtype_name(b), dtype_name(c));
    return err_set(e, ERR_LOAD, "%s is %s, expected %s%s", t->name, dtype_name(t->dtype),
                   dtype_name(a), more);
}

/* Leading dimensions may be multiplied, and those of 1 at the end left out. */
static bool expect_shape(const struct tensor *t, size_t rows, size_t columns, struct err *e)
{
    char text[128];
    const size_t last = t->n_dims ? (size_t)t->shape[t->n_dims - 1] : 1;
    const bool fits = last == columns || columns == 1;
    if (fits && (size_t)tensor_count(t) == rows * columns)
        return true;
    return err_set(e, ERR_LOAD, "%s has shape %s, expected [%zu, %zu]", t->name,
                   tensor_shape_text(t->shape, t->n_dims, text, sizeof text), rows, columns);
}

static bool expect_present(const struct tensor *t, const char *what, const struct tensor *codes,
                           struct err *e)
{
    return t || err_set(e, ERR_LOAD, "%s has no tensor of %s beside it", codes->name, what);
}

/* ---- the parts ------------------------------------------------------------------------------- */

static bool check_groups(struct quant *q, const struct quant_format *format, const char *name,
                         struct err *e)
{
    if (format->block_out < 0 || format->block_in < 0)
        return err_set(e, ERR_LOAD, "blocks of %d x %d are none", format->block_out,
                       format->block_in);
    q->block_out = format->block_out ? (size_t)format->block_out : q->n_out;
    q->block_in = format->block_in ? (size_t)format->block_in : q->n_in;
    if (q->type == QUANT_MXFP4) {
        q->block_out = 1;
        q->block_in = MXFP4_BLOCK;
    } else if (q->block_in > q->n_in)
        q->block_in = q->n_in;
    q->n_groups = divide_up(q->n_in, q->block_in);
    const bool may_be_cut = q->type == QUANT_F8 || q->type == QUANT_GPTQ;
    if (!may_be_cut && q->n_in % q->block_in != 0)
        return err_set(e, ERR_LOAD, "%s: groups of %zu do not divide %zu columns", name,
                       q->block_in, q->n_in);
    if (q->layout->bits < 8 && q->n_groups > 1 && q->block_in % 8 != 0)
        return err_set(e, ERR_LOAD, "%s: groups of %zu are not supported, expected a multiple of 8",
                       name, q->block_in);
    if (q->layout->in_columns && (q->n_in % 8 != 0 || q->n_out % 8 != 0))
        return err_set(e, ERR_LOAD, "%s: %s packs whole words, but the matrix is %zu x %zu", name,
                       q->layout->name, q->n_out, q->n_in);
    return true;
}

/* Blocks of 16 bytes: the only one whose codes have a dimension more than the matrix. */
static bool check_mxfp4(const struct quant *q, const struct tensor *t, struct err *e)
{
    char text[128];
    const size_t half = MXFP4_BLOCK / 2, n = q->n_out * q->n_groups * half;
    if (t->n_dims >= 2 && (size_t)t->shape[t->n_dims - 1] == half &&
        (size_t)t->shape[t->n_dims - 2] == q->n_groups && (size_t)tensor_count(t) == n)
        return true;
    return err_set(e, ERR_LOAD, "%s has shape %s, expected [%zu, %zu, %zu]", t->name,
                   tensor_shape_text(t->shape, t->n_dims, text, sizeof text), q->n_out, q->n_groups,
                   half);
}

static bool check_codes(struct quant *q, const struct tensor *t, struct err *e)
{
    const struct quant_layout *layout = q->layout;
    if (!expect_dtype(t, layout->dtype, layout->dtype, layout->dtype, e))
        return false;
    q->codes = t->data;
    q->row_bytes = row_elements(q) * dtype_size(layout->dtype);
    switch (q->type) {
    case QUANT_MXFP4:
        return check_mxfp4(q, t, e);
    case QUANT_GPTQ:
        return expect_shape(t, q->n_in / 8, q->n_out, e);
    case QUANT_AWQ:
        return expect_shape(t, q->n_in, q->n_out / 8, e);
    default:
        return expect_shape(t, q->n_out, row_elements(q), e);
    }
}

static bool check_scales(struct quant *q, const struct tensor *t, struct err *e)
{
    const bool powers =
        t->dtype == DTYPE_F8_E8M0 && (q->type == QUANT_F8 || q->type == QUANT_MXFP4);
    if (q->type == QUANT_MXFP4 ? !expect_dtype(t, DTYPE_U8, DTYPE_F8_E8M0, DTYPE_F8_E8M0, e)
                               : !powers && !expect_dtype(t, DTYPE_F32, DTYPE_F16, DTYPE_BF16, e))
        return false;
    q->scales = t->data;
    q->scale_dtype = t->dtype;
    if (q->layout->in_columns)
        return expect_shape(t, q->n_groups, q->n_out, e);
    return expect_shape(t, divide_up(q->n_out, q->block_out), q->n_groups, e);
}

static bool check_zeros(struct quant *q, const struct tensor *t, bool less_one, struct err *e)
{
    const struct quant_layout *layout = q->layout;
    const size_t rows = divide_up(q->n_out, q->block_out), per_word = 32 / layout->bits;
    if (layout->code == CODE_F8_E4M3 || layout->code == CODE_F4_E2M1)
        return err_set(e, ERR_LOAD, "%s: zero points are not supported with %s", t->name,
                       layout->name);
    q->zeros = t->data;
    q->zeros_packed = t->dtype == DTYPE_I32;
    if (layout->in_columns) {
        q->zeros_add = less_one && q->type == QUANT_GPTQ ? 0x11111111 : 0;
        return expect_dtype(t, DTYPE_I32, DTYPE_I32, DTYPE_I32, e) &&
               expect_shape(t, q->n_groups, q->n_out / per_word, e);
    }
    const enum dtype packed = layout->dtype == DTYPE_I32 ? DTYPE_I32 : DTYPE_I8;
    return expect_dtype(t, DTYPE_I8, packed, packed, e) &&
           expect_shape(t, q->zeros_packed ? divide_up(rows, per_word) : rows, q->n_groups, e);
}

/* An index that holds -1 was never filled in: compressed-tensors then takes the columns in order.
 * One that names them in order (GPTQ without act-order) is ignored, too, because that is faster. */
static bool check_g_idx(struct quant *q, const struct tensor *t, struct err *e)
{
    if (q->layout->dtype != DTYPE_I32 || q->type == QUANT_AWQ)
        return err_set(e, ERR_LOAD, "%s: an order of columns is not supported with %s", t->name,
                       q->layout->name);
    if (!expect_dtype(t, DTYPE_I32, DTYPE_I32, DTYPE_I32, e) || !expect_shape(t, q->n_in, 1, e))
        return false;
    bool in_order = true, filled = true;
    for (size_t k = 0; k < q->n_in; k++) {
        int32_t group;
        memcpy(&group, (const unsigned char *)t->data + 4 * k, sizeof group);
        filled = filled && group != -1;
        in_order = in_order && group >= 0 && (size_t)group == k / q->block_in;
        if (group < -1 || (group >= 0 && (size_t)group >= q->n_groups))
            return err_set(e, ERR_LOAD, "%s: column %zu is in group %" PRId32 " of %zu", t->name, k,
                           group, q->n_groups);
    }
    if (!filled && q->type == QUANT_GPTQ)
        return err_set(e, ERR_LOAD, "%s: a column is in group -1 of %zu", t->name, q->n_groups);
    q->g_idx = filled && !in_order ? t->data : NULL;
    if (q->g_idx && q->n_groups > QUANT_LAYOUT_MAX_GROUPS)
        return err_set(e, ERR_LOAD,
                       "%s: %zu groups in an order of their own, at most %d are supported", t->name,
                       q->n_groups, QUANT_LAYOUT_MAX_GROUPS);
    return true;
}

static bool check_stored_shape(const struct quant *q, const struct tensor *t, struct err *e)
{
    int64_t shape[2] = {0};
    if (!expect_dtype(t, DTYPE_I64, DTYPE_I32, DTYPE_I32, e) || !expect_shape(t, 2, 1, e))
        return false;
    for (int i = 0; i < 2; i++) {
        int32_t narrow;
        memcpy(&narrow, (const unsigned char *)t->data + 4 * i, sizeof narrow);
        if (t->dtype == DTYPE_I64)
            memcpy(&shape[i], (const unsigned char *)t->data + 8 * i, sizeof *shape);
        else
            shape[i] = narrow;
    }
    if (shape[0] == (int64_t)q->n_out && shape[1] == (int64_t)q->n_in)
        return true;
    return err_set(e, ERR_LOAD, "%s says [%" PRId64 ", %" PRId64 "], expected [%zu, %zu]", t->name,
                   shape[0], shape[1], q->n_out, q->n_in);
}

bool quant_init(struct quant *q, const struct quant_format *format, const struct quant_parts *parts,
                size_t n_out, size_t n_in, struct err *e)
{
    *q = (struct quant){.type = format->type,
                        .layout = &quant_layouts[format->type],
                        .n_out = n_out,
                        .n_in = n_in,
                        .n_woven = format->woven ? n_out / KERNELS_WOVEN * KERNELS_WOVEN : 0};
    const bool needs_zeros = q->layout->in_columns || format->needs_zeros;
    const bool needs_g_idx = format->needs_g_idx && format->block_in > 0;
    assert(!format->woven ||
           ((q->type == QUANT_INT8 || q->type == QUANT_PACKED4) && format->block_out == 1 &&
            n_in * q->layout->bits % 32 == 0 && !parts->zeros && !parts->g_idx));
    if (n_out == 0 || n_in == 0 || n_out > INT32_MAX || n_in > INT32_MAX)
        return err_set(e, ERR_LOAD, "%s: a matrix of %zu x %zu is not supported",
                       parts->codes->name, n_out, n_in);
    return check_groups(q, format, parts->codes->name, e) && check_codes(q, parts->codes, e) &&
           expect_present(parts->scales, "scales", parts->codes, e) &&
           check_scales(q, parts->scales, e) &&
           (!needs_zeros || expect_present(parts->zeros, "zero points", parts->codes, e)) &&
           (!parts->zeros || check_zeros(q, parts->zeros, format->zeros_less_one, e)) &&
           (!needs_g_idx || expect_present(parts->g_idx, "g_idx", parts->codes, e)) &&
           (!parts->g_idx || check_g_idx(q, parts->g_idx, e)) &&
           (!parts->shape || check_stored_shape(q, parts->shape, e));
}

unsigned quant_bits(const struct quant *q)
{
    return q->layout->bits;
}

double quant_row_bytes(const struct quant *q)
{
    const double scale_bits = 8.0 * (double)dtype_size(q->scale_dtype);
    const double zero_bits = !q->zeros ? 0 : q->zeros_packed ? q->layout->bits : 8;
    const double bits = (double)q->n_in * q->layout->bits +
                        (double)q->n_groups * (scale_bits + zero_bits) / (double)q->block_out;
    return bits / 8;
}
