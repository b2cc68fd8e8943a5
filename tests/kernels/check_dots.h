/*
 * Checks of the slots whose operands are rounded: to_bf16, to_i8, linear_i8, and the products of
 * bf16. Part of check_kernels.c, which has the vocabulary. What is EXACT must equal the definition
 * bit for bit; the definition is held against doubles, from the formulas in kernels.h.
 */
typedef void to_bf16_fn(uint16_t *out, const float *in, size_t n);
typedef void to_i8_fn(unsigned char *out, const float *in, size_t n, size_t group, bool split);
typedef void linear_i8_fn(const struct linear_i8_args *a);
typedef void linear_f8_fn(const struct linear_f8_args *a);

static void check_to_bf16(const struct slot *slot, const struct kernels *k)
{
    to_bf16_fn *f, *truth;
    slot_get(slot, k, &f);
    slot_get(slot, scalar, &truth);
    for (int c = 0; c < 4 * N_CASES; c++) {
        const size_t n = random_size(3000), n_padded = (n + 31) / 32 * 32;
        float *in = area_floats(0, n);
        uint16_t *out = area_place(1, n_padded * sizeof *out, sizeof *out);
        uint16_t *expected = area_place(2, n_padded * sizeof *out, sizeof *out);
        random_arguments(in, n);
        snprintf(parameters, sizeof parameters, "%s %s n %zu", k->level, slot->name, n);
        f(out, in, n);
        truth(expected, in, n);
        for (size_t i = 0; i < n_padded; i++)
            if (out[i] != expected[i])
                fail_msg("[%zu] is 0x%04x, not 0x%04x: %s, seed %lu", i, out[i], expected[i],
                         parameters, seed);
        areas_check();
    }
}

/* One sum's n values in quads, as to_quads has them. */
static void put_in_quads(uint16_t *x, size_t n)
{
    const size_t quarter = (n + 3) / 4;
    uint16_t *const in_order = malloc(n * sizeof *x + 1);
    memcpy(in_order, x, n * sizeof *x);
    for (size_t at = 0; at < 4 * quarter; at++) {
        const size_t k = at % 4 * quarter + at / 4;
        x[at] = k < n ? in_order[k] : 0;
    }
    free(in_order);
}

/* What to_bf16 makes, which has its own check, in another order. */
static void check_to_quads(const struct slot *slot, const struct kernels *k)
{
    to_bf16_fn *f;
    slot_get(slot, k, &f);
    for (int c = 0; c < 4 * N_CASES; c++) {
        const size_t n = random_size(3000), n_out = (n + 3) / 4 * 4;
        float *in = area_floats(0, n);
        uint16_t *out = area_place(1, n_out * sizeof *out, sizeof *out);
        uint16_t *expected = area_place(2, (n + 31) / 32 * 32 * sizeof *out, sizeof *out);
        random_arguments(in, n);
        snprintf(parameters, sizeof parameters, "%s %s n %zu", k->level, slot->name, n);
        f(out, in, n);
        scalar->to_bf16(expected, in, n);
        put_in_quads(expected, n);
        for (size_t i = 0; i < n_out; i++)
            if (out[i] != expected[i])
                fail_msg("[%zu] is 0x%04x, not 0x%04x: %s, seed %lu", i, out[i], expected[i],
                         parameters, seed);
        areas_check();
    }
}

/* Sometimes more values of some rows of x than a kernel packs at a time. */
static struct linear_args bf16_random_shape(bool cols)
{
    struct linear_args a = linear_random_shape(cols);
    if (random_below(64) == 0) {
        a.n_x = 17 + random_below(48);
        a.n_w = a.y_stride = 16 + random_below(3);
        a.n_k = a.x_stride = 150000 / a.n_x;
        a.w_stride = cols ? a.n_w : a.n_k;
    }
    return a;
}

/* Makes some weights no numbers: what is read in another's stead, or where nothing is, shows. */
static void spoil_some(unsigned char *w, size_t n)
{
    static const uint16_t no_numbers[] = {0x7f80, 0xff80, 0x7fc0};
    for (size_t i = random_below(100); i < n; i += 1 + random_below(100))
        memcpy(w + i * sizeof *no_numbers, &no_numbers[random_below(3)], sizeof *no_numbers);
}

/* Where n_first is set, one product has the bits of two. */
static void check_two_sums(linear_fn *f, const struct linear_args *whole, const float *y0)
{
    const size_t n_y = rows_floats(whole->n_x, whole->y_stride, whole->n_w);
    struct linear_args one = *whole;
    one.y = area_floats(4, n_y);
    memcpy(one.y, y0, n_y * sizeof *y0);
    one.n_first = 0;
    one.n_k = whole->n_first;
    f(&one);
    one.x = (const uint16_t *)whole->x + whole->n_first;
    one.w = (const uint16_t *)whole->w + whole->n_first * whole->w_stride;
    one.n_k = whole->n_k - whole->n_first;
    one.bias = NULL;
    one.add = true;
    f(&one);
    expect_same(whole->y, one.y, n_y, "is not the sum of two sums");
}

/* The definition is that of f32 activations which happen to be bf16. Instructions for bf16 take and
 * give zero for subnormal numbers. */
static void check_linear_bf16(const struct slot *slot, const struct kernels *k)
{
    linear_fn *f;
    slot_get(slot, k, &f);
    for (int c = 0; c < N_CASES; c++) {
        struct linear_args a = bf16_random_shape(slot->cols);
        const size_t n_w = linear_n_weights(&a, slot->cols), padded = (a.n_k + 31) / 32 * 32;
        const size_t n_y = rows_floats(a.n_x, a.y_stride, a.n_w), stride = padded + random_below(3);
        uint16_t *x = area_place(0, a.n_x * stride * sizeof *x, sizeof *x);
        float *x_f32 = malloc(a.n_x * a.x_stride * sizeof *x_f32 + 1), *y = area_floats(1, n_y);
        unsigned char *w = area_place(3, n_w * sizeof(uint16_t), 1);
        float *bias = area_floats(2, a.n_w), *y0 = malloc(n_y * sizeof *y0 + 1);
        const bool is_tiny = random_below(4) == 0; /* sums of what is zero for some instructions */
        const size_t n_first =
            slot->cols && random_below(2) ? 32 * random_below(padded / 32 + !padded) : 0;
        a.add = a.add && !is_tiny;
        random_weights(w, n_w, WEIGHT_BF16, PLAIN);
        if (random_below(4) == 0)
            spoil_some(w, n_w);
        random_floats(bias, a.n_w, PLAIN);
        random_floats(y0, n_y, PLAIN);
        for (size_t i = 0; i < a.n_x; i++) {
            random_floats(x_f32 + i * a.x_stride, a.n_k, PLAIN);
            for (size_t j = 0; is_tiny && j < a.n_k; j++)
                x_f32[i * a.x_stride + j] *= 0x1p-124f;
            scalar->to_bf16(x + i * stride, x_f32 + i * a.x_stride, a.n_k);
            scalar->to_f32[WEIGHT_BF16](x_f32 + i * a.x_stride, x + i * stride, a.n_k);
            if (slot->cols && k->to_quads) {
                put_in_quads(x + i * stride, n_first);
                put_in_quads(x + i * stride + n_first, a.n_k - n_first);
            }
        }
        memcpy(y, y0, n_y * sizeof *y);
        a.y = y;
        a.w = w;
        a.bias = random_below(2) && !is_tiny ? bias : NULL;
        a.x = x_f32;
        struct linear_args b = a;
        b.x = x;
        b.x_stride = stride;
        b.n_first = n_first;
        snprintf(parameters, sizeof parameters,
                 "%s %s n_x %zu n_w %zu n_k %zu w_stride %zu n_first %zu", k->level, slot->name,
                 a.n_x, a.n_w, a.n_k, a.w_stride, b.n_first);
        f(&b);
        const size_t offset = slot->cols ? offsetof(struct kernels, linear_cols[2])
                                         : offsetof(struct kernels, linear_rows[2]);
        if (!is_tiny)
            linear_compare(
                &(struct slot){.offset = offset, .type = WEIGHT_BF16, .cols = slot->cols}, &a, y0);
        if (b.n_first)
            check_two_sums(f, &b, y0);
        if (a.n_x && a.n_w) {
            const size_t i = random_below(a.n_x), r = random_below(a.n_w);
            struct linear_args some = b;
            some.n_x = random_below(2) ? 1 : 1 + random_below(a.n_x - i);
            some.n_w = some.y_stride = 1 + random_below(a.n_w - r);
            some.x = x + i * stride;
            some.w = w + r * (slot->cols ? 1 : a.w_stride) * sizeof(uint16_t);
            some.bias = a.bias ? a.bias + r : NULL;
            some.y = area_floats(4, some.n_x * some.n_w);
            for (size_t j = 0; j < some.n_x; j++)
                memcpy(some.y + j * some.n_w, y0 + (i + j) * a.y_stride + r, some.n_w * sizeof *y);
            ask_anyhow();
            f(&some);
            for (size_t j = 0; j < some.n_x; j++)
                expect_same(some.y + j * some.n_w, y + (i + j) * a.y_stride + r, some.n_w,
                            "rows cut differently");
        }
        areas_check();
        free(x_f32);
        free(y0);
    }
}

/* Blocks and their scales; n_w and n_k are at least 1. */
static struct linear_f8_args f8_random(const struct linear_args *args, bool any_scale)
{
    static const float special[] = {0,         -0.0f,    1e-45f, 0x1p7f, 0x1.fffffep6f,
                                    -0x1p100f, INFINITY, NAN};
    enum { N_SPECIAL = sizeof special / sizeof *special };
    struct linear_f8_args a = {.args = *args,
                               .block_out = 1 + random_size(300),
                               .block_in = (size_t)64 << random_below(5)};
    a.n_groups = (args->n_k + a.block_in - 1) / a.block_in;
    a.first = random_below(a.block_out);
    if (a.n_groups > KERNELS_F8_GROUPS || random_below(3) == 0) {
        a.n_groups = 1;
        a.block_in = args->n_k + random_below(3);
    }
    const size_t n = ((a.first + args->n_w - 1) / a.block_out + 1) * a.n_groups;
    float *scales = area_floats(2, n);
    random_floats(scales, n, PLAIN);
    if (random_below(16) == 0)
        scales[random_below(n)] *= 0x1p-130f;
    for (size_t i = 0; any_scale && i < 1 + n / 8; i++)
        scales[random_below(n)] = special[random_below(N_SPECIAL)];
    a.scales = scales;
    unsigned char *w = area_place(3, linear_n_weights(args, false), 1);
    const bool no_numbers = random_below(8) == 0;
    for (size_t i = 0; i < linear_n_weights(args, false); i++) {
        w[i] = (unsigned char)random_bits();
        w[i] -= (w[i] & 0x7f) == 0x7f && !no_numbers;
    }
    a.args.w = w;
    return a;
}

/* What a failure says. */
static void f8_note(const struct slot *slot, const struct kernels *k,
                    const struct linear_f8_args *a)
{
    snprintf(parameters, sizeof parameters,
             "%s %s n_x %zu n_w %zu n_k %zu w_stride %zu blocks %zu x %zu first %zu", k->level,
             slot->name, a->args.n_x, a->args.n_w, a->args.n_k, a->args.w_stride, a->block_out,
             a->block_in, a->first);
}

/* The same weights in f32, [n_w, n_k]. */
static float *f8_values(const struct linear_f8_args *a)
{
    const unsigned char *const w = a->args.w;
    const size_t n_k = a->args.n_k, n_w = a->args.n_w;
    float *const out = malloc(n_w * n_k * sizeof *out);
    for (size_t r = 0; r < n_w; r++)
        for (size_t k = 0; k < n_k; k++) {
            const size_t block = (a->first + r) / a->block_out;
            const float scale = a->scales[block * a->n_groups + k / a->block_in];
            scalar->decode[CODE_F8_E4M3](out + r * n_k + k, &w[r * a->args.w_stride + k], 1, 1,
                                         &scale, NULL);
        }
    return out;
}

/* And in bf16. */
static uint16_t *f8_in_bf16(const struct linear_f8_args *a)
{
    const size_t n = a->args.n_w * a->args.n_k;
    float *const values = f8_values(a);
    uint16_t *const out = malloc((n + 32) * sizeof *out);
    for (size_t i = 0; i < n; i++)
        values[i] = fabsf(values[i]) < FLT_MIN ? copysignf(0, values[i]) : values[i];
    scalar->to_bf16(out, values, n);
    free(values);
    return out;
}

/* The bits that the rung's product of bf16 gives, which has its own check. */
static void check_linear_f8(const struct slot *slot, const struct kernels *k)
{
    const struct kernels *const rung = kernels_for("avx512bf16");
    linear_f8_fn *f;
    slot_get(slot, k, &f);
    for (int c = 0; c < N_CASES; c++) {
        struct linear_args args = bf16_random_shape(false);
        if (!args.n_w || !args.n_x || !args.n_k)
            continue;
        struct linear_f8_args a = f8_random(&args, false);
        const size_t n_y = rows_floats(args.n_x, args.y_stride, args.n_w);
        const size_t stride = (args.n_k + 31) / 32 * 32 + random_below(3);
        uint16_t *const x = area_place(0, args.n_x * stride * sizeof *x, sizeof *x);
        float *const y = area_floats(1, n_y), *const expected = malloc(n_y * sizeof *y);
        float *const row = malloc((args.n_k + args.n_w) * sizeof *row), *bias = row + args.n_k;
        for (size_t i = 0; i < args.n_x; i++) {
            random_floats(row, args.n_k, PLAIN);
            scalar->to_bf16(x + i * stride, row, args.n_k);
        }
        random_floats(bias, args.n_w, PLAIN);
        random_floats(y, n_y, PLAIN);
        memcpy(expected, y, n_y * sizeof *y);
        a.args.x = x;
        a.args.x_stride = stride;
        a.args.bias = random_below(2) ? bias : NULL;
        a.args.y = y;
        f8_note(slot, k, &a);
        ask_anyhow();
        f(&a);
        uint16_t *const w = f8_in_bf16(&a);
        args = a.args;
        args.w = w;
        args.w_stride = args.n_k;
        args.y = expected;
        rung->linear_rows_bf16(&args);
        expect_same(y, expected, n_y, "differs from the product of bf16");
        areas_check();
        free(w);
        free(row);
        free(expected);
    }
}

/* The level's own product of weights in f32, which has its own check, by pieces of rows. */
static void f32_in_pieces(const struct kernels *k, const struct linear_args *whole)
{
    for (size_t at = 0; at < whole->n_k; at += KERNELS_ROWS_K) {
        struct linear_args a = *whole;
        a.x = (const float *)whole->x + at;
        a.w = (const float *)whole->w + at;
        a.n_k = whole->n_k - at < KERNELS_ROWS_K ? whole->n_k - at : KERNELS_ROWS_K;
        a.add = whole->add || at > 0;
        a.bias = at + a.n_k == whole->n_k ? whole->bias : NULL;
        k->linear_rows[WEIGHT_F32](&a);
    }
}

/* Its bits do not depend on how many more rows of x there are. */
static void check_f8_f32(const struct slot *slot, const struct kernels *k)
{
    linear_f8_fn *f;
    slot_get(slot, k, &f);
    for (int c = 0; c < N_CASES; c++) {
        struct linear_args args = linear_random_shape(false);
        args.n_x = 1 + args.n_x % KERNELS_F8_FEW;
        if (!args.n_w || !args.n_k)
            continue;
        struct linear_f8_args a = f8_random(&args, random_below(3) == 0);
        const size_t n_all = args.n_x + random_below(2) * KERNELS_F8_FEW;
        const size_t n_y = rows_floats(args.n_x, args.y_stride, args.n_w);
        const size_t n_more = rows_floats(n_all, args.y_stride, args.n_w);
        const size_t n_floats = rows_floats(n_all, args.x_stride, args.n_k);
        float *const x = area_floats(0, n_floats), *const y = area_floats(1, n_y);
        float *const expected = malloc((n_more + args.n_w) * sizeof *y), *bias = expected + n_more;
        random_floats(x, n_floats, PLAIN);
        random_floats(expected, n_more + args.n_w, PLAIN);
        memcpy(y, expected, n_y * sizeof *y);
        a.args.x = x;
        a.args.bias = random_below(2) ? bias : NULL;
        a.args.y = y;
        f8_note(slot, k, &a);
        ask_anyhow();
        f(&a);
        float *const w = f8_values(&a);
        args = a.args;
        args.n_x = n_all;
        args.w = w;
        args.w_stride = args.n_k;
        args.y = expected;
        f32_in_pieces(k, &args);
        for (size_t i = 0; i < a.args.n_x; i++)
            expect_same(y + i * args.y_stride, expected + i * args.y_stride, args.n_w,
                        "differs from the product of f32");
        areas_check();
        free(w);
        free(expected);
    }
}

static size_t i8_row_bytes(size_t n, size_t group)
{
    return kernels_i8_codes(n) + (n + group - 1) / group * (sizeof(float) + sizeof(int32_t));
}

/* The definition itself: no code is more than half a step from its value, sums are sums. */
static void expect_i8_row(const unsigned char *row, const float *in, size_t n, size_t group,
                          bool split)
{
    const size_t n_groups = (n + group - 1) / group, half = KERNELS_I8_BLOCK / 2;
    const float *scales = (const float *)(const void *)(row + kernels_i8_codes(n));
    const int32_t *sums = (const int32_t *)(const void *)(scales + n_groups);
    for (size_t g = 0; g < n_groups; g++) {
        int32_t sum = 0;
        bool finite = true;
        for (size_t k = g * group; k < n && k < (g + 1) * group; k++) {
            const size_t j = k % KERNELS_I8_BLOCK;
            const size_t at = split ? k - j + j / 2 + j % 2 * half : k;
            const int32_t code = (int8_t)row[at];
            finite = finite && isfinite(in[k]);
            sum += code;
            if (isfinite(scales[g]) &&
                fabs((double)in[k] - code * (double)scales[g]) > 0.5001 * (double)scales[g] + 1e-30)
                fail_msg("[%zu] %g is %d of %g: %s, seed %lu", k, (double)in[k], code,
                         (double)scales[g], parameters, seed);
        }
        assert_int_equal(sums[g], sum);
        assert_true(finite ? isfinite(scales[g]) : isnan(scales[g]));
    }
}

static void check_to_i8(const struct slot *slot, const struct kernels *k)
{
    to_i8_fn *f, *truth;
    slot_get(slot, k, &f);
    slot_get(slot, scalar, &truth);
    for (int c = 0; c < 2 * N_CASES; c++) {
        const size_t n = 1 + random_size(2000), group = (size_t)32 << random_below(3);
        const bool split = random_below(2);
        float *in = area_floats(0, n);
        unsigned char *out = area_place(1, i8_row_bytes(n, group), sizeof(float));
        unsigned char *expected = area_place(2, i8_row_bytes(n, group), sizeof(float));
        random_floats(in, n, random_below(N_KINDS));
        snprintf(parameters, sizeof parameters, "%s %s n %zu group %zu%s", k->level, slot->name, n,
                 group, split ? " split" : "");
        f(out, in, n, group, split);
        truth(expected, in, n, group, split);
        expect_i8_row(expected, in, n, group, split);
        for (size_t i = 0; i < kernels_i8_codes(n); i++)
            assert_int_equal(out[i], expected[i]);
        expect_same((const float *)(const void *)(out + kernels_i8_codes(n)),
                    (const float *)(const void *)(expected + kernels_i8_codes(n)),
                    (n + group - 1) / group, "scales");
        areas_check();
    }
}

static size_t scale_size(int type)
{
    return type == SCALE_E8M0_HALF ? 1 : weight_size(type);
}

/* One of many is at an end of what there is. */
static void random_e8m0(unsigned char *scales, size_t n)
{
    for (size_t i = 0; i < n; i++)
        scales[i] =
            (unsigned char)(random_below(100) ? 110 + random_below(20) : 253 + random_below(7));
}

/* A shape that the areas hold. */
static struct linear_i8_args i8_random_shape(int type, bool woven)
{
    const bool large = random_below(32) == 0; /* more rows than a kernel takes at once */
    struct linear_i8_args a = {.n_x = large ? 500 + random_below(60) : 1 + random_size(40),
                               .n_w = large ? 200 + random_below(60) : random_size(200),
                               .scale = 1};
    ask_anyhow();
    a.x_group = (size_t)32 << random_below(3);
    a.n_k = random_below(2) ? a.x_group * (1 + random_below(12)) : 1 + random_size(1500);
    if (!large && random_below(16) == 0) { /* more groups than a kernel takes at once */
        a.n_x = 1 + random_below(8);
        a.n_w = random_below(40);
        a.n_k = random_below(2) ? a.x_group * (1 + random_below(300)) : 1 + random_below(38000);
    } else if (!large && random_below(16) == 0) { /* more rows of weights */
        a.n_x = 1 + random_below(8);
        a.n_w = 500 + random_below(5000 / a.n_x);
        a.n_k = 1 + random_below(200);
    }
    if (woven) {
        const size_t per_word = type == DOT_I8 ? 4 : 8;
        a.n_w = a.n_w < KERNELS_WOVEN ? KERNELS_WOVEN : a.n_w / KERNELS_WOVEN * KERNELS_WOVEN;
        a.n_w = random_below(16) ? a.n_w : 0;
        a.n_k = (a.n_k + per_word - 1) / per_word * per_word;
    }
    const bool whole = a.n_k % a.x_group != 0 || random_below(3) == 0;
    a.w_group = whole                                                  ? a.n_k
                : a.n_k % (2 * a.x_group) == 0 && random_below(3) == 0 ? 2 * a.x_group
                                                                       : a.x_group;
    const size_t n_groups = a.n_k / a.w_group, row = type == DOT_I8 ? a.n_k : (a.n_k + 1) / 2;
    a.w_stride = row + (woven ? 0 : random_below(4));
    a.y_stride = a.n_w + random_below(4);
    a.x_stride = i8_row_bytes(a.n_k, a.x_group) + 4 * random_below(4);
    a.scale_type = type == DOT_F4 ? (int)SCALE_E8M0_HALF
                   : woven        ? WEIGHT_F16 + (int)random_below(2)
                                  : (int)random_below(N_WEIGHT_TYPES);
    a.scale_stride = woven || random_below(4) ? n_groups : 0;
    a.add = random_below(2);
    a.scale = random_below(3) ? 1 : random_unit() * 4;
    a.zero = type == DOT_U4 ? 8 : 0;
    a.zero_row = woven ? 8 * random_below(3) : random_below(17);
    return a;
}

/* The same with operands; y0 is what y holds before. */
static struct linear_i8_args i8_random(int type, bool woven, float *y0)
{
    struct linear_i8_args a = i8_random_shape(type, woven);
    const size_t n_groups = a.n_k / a.w_group, row = type == DOT_I8 ? a.n_k : (a.n_k + 1) / 2;
    const size_t n_w = a.n_w ? (a.n_w - 1) * a.w_stride + row : 0;
    const size_t n_scales = a.n_w ? (a.n_w - 1) * a.scale_stride + n_groups : 0;
    const size_t n_zeros = (a.zero_row + a.n_w + 7) / 8 * n_groups;
    unsigned char *x = area_place(0, (a.n_x - 1) * a.x_stride + i8_row_bytes(a.n_k, a.x_group), 4);
    unsigned char *w = area_place(1, n_w, 1);
    unsigned char *scales = area_place(2, n_scales * scale_size(a.scale_type), 1);
    unsigned char *zeros = area_place(3, n_zeros * 4, 1);
    float *in = malloc(a.n_k * sizeof *in);
    const bool is_largest = random_below(8) == 0; /* all products, so that short sums are full */
    for (size_t i = 0; i < a.n_x; i++) {
        random_floats(in, a.n_k, PLAIN);
        for (size_t j = 0; is_largest && j < a.n_k; j++)
            in[j] = i % 2 ? -1 : 1;
        scalar->to_i8(x + i * a.x_stride, in, a.n_k, a.x_group, type != DOT_I8);
    }
    free(in);
    static const unsigned char largest[] = {0, 0x77, 0x7f, 0x80, 0xff};
    const unsigned char all = largest[random_below(sizeof largest)];
    for (size_t i = 0; i < n_w; i++)
        w[i] = is_largest ? all : (unsigned char)random_bits();
    for (size_t i = 0; i < 4 * n_zeros; i++)
        zeros[i] = (unsigned char)random_bits();
    if (type == DOT_F4)
        random_e8m0(scales, n_scales);
    else
        random_weights(scales, n_scales, a.scale_type, PLAIN);
    random_floats(y0, a.n_x * a.y_stride, PLAIN);
    a.x = x;
    a.w = w;
    a.scales = scales;
    a.zeros = type == DOT_U4 && random_below(2) ? zeros : NULL;
    return a;
}

/* Rows of n elements, where they lie: all first elements of a strip, all second ones, ... */
static void i8_weave(void *rows, size_t n_rows, size_t n, size_t size)
{
    const size_t n_bytes = n_rows * n * size;
    unsigned char *const to = rows, *const plain = malloc(n_bytes + 1);
    memcpy(plain, rows, n_bytes);
    for (size_t r = 0; r < n_rows; r++)
        for (size_t k = 0; k < n; k++)
            memcpy(to + (r / KERNELS_WOVEN * n + k) * KERNELS_WOVEN * size +
                       r % KERNELS_WOVEN * size,
                   plain + (r * n + k) * size, size);
    free(plain);
}

/* Row i of x against a window of rows of w, `unit` rows of which are inseparable. */
static void i8_again(linear_i8_fn *f, const struct linear_i8_args *a, size_t unit, const float *y0)
{
    const size_t i = random_below(a->n_x), r = random_below(a->n_w / unit) * unit;
    struct linear_i8_args b = *a;
    b.n_x = 1;
    b.n_w = (1 + random_below((a->n_w - r) / unit)) * unit;
    b.x += i * a->x_stride;
    b.w += r * a->w_stride;
    b.scales = (const char *)a->scales + r * a->scale_stride * scale_size(a->scale_type);
    b.zero_row += r;
    b.bias = a->bias ? a->bias + r : NULL;
    b.y = malloc(b.n_w * sizeof *b.y);
    memcpy(b.y, y0 + i * a->y_stride + r, b.n_w * sizeof *b.y);
    ask_anyhow();
    f(&b);
    expect_same(b.y, a->y + i * a->y_stride + r, b.n_w, "rows cut differently");
    free(b.y);
}

/* OCP Microscaling: a sign, two bits of exponent (bias 1; 0: subnormal), one of mantissa. */
static double f4_value(int bits)
{
    const int exponent = bits >> 1 & 3, mantissa = bits & 1;
    const double size = exponent ? ldexp(1 + 0.5 * mantissa, exponent - 1) : 0.5 * mantissa;
    return bits & 8 ? -size : size;
}

/* What a code counts times, a code of E2M1 being its value. */
static double i8_scale(const struct linear_i8_args *a, size_t i)
{
    const char *const at = (const char *)a->scales + i * scale_size(a->scale_type);
    float scale;
    if (a->scale_type == SCALE_E8M0_HALF)
        return *(const unsigned char *)at == 255 ? NAN : ldexp(1, *(const unsigned char *)at - 127);
    scalar->to_f32[a->scale_type](&scale, at, 1);
    return (double)scale;
}

/* One output in double, from the formula. */
static void i8_expect_formula(const struct linear_i8_args *a, int type, const float *y,
                              const float *y0)
{
    const size_t i = random_below(a->n_x), r = random_below(a->n_w);
    const size_t n_groups = a->n_k / a->w_group, half = KERNELS_I8_BLOCK / 2;
    const unsigned char *x = a->x + i * a->x_stride, *w = a->w + r * a->w_stride;
    const float *x_scales = (const float *)(const void *)(x + kernels_i8_codes(a->n_k));
    const double tiny = 0x1p-137; /* codes times what is lost where scales are subnormal */
    double sum = 0, size = 0;
    for (size_t k = 0; k < a->n_k; k++) {
        const size_t j = k % KERNELS_I8_BLOCK, g = k / a->w_group, row = a->zero_row + r;
        const size_t at = type != DOT_I8 ? k - j + j / 2 + j % 2 * half : k;
        const int bits = type == DOT_I8 ? (int8_t)w[k] : (k % 2 ? w[k / 2] >> 4 : w[k / 2] & 15);
        const double code = type == DOT_F4 ? f4_value(bits) : bits;
        int zero = a->zero;
        if (a->zeros) {
            const unsigned char byte = a->zeros[4 * (row / 8 * n_groups + g) + row % 8 / 2];
            zero = row % 2 ? byte >> 4 : byte & 15;
        }
        const double term = i8_scale(a, r * a->scale_stride + g) * (code - zero) *
                            (double)x_scales[k / a->x_group] * (int8_t)x[at];
        sum += term;
        size += fabs(term);
    }
    if (size > 1e30) /* sums of it may be infinite on their way */
        return;
    const double bias = a->bias ? (double)a->bias[r] : 0, scale = (double)a->scale;
    const double old = a->add ? (double)y0[i * a->y_stride + r] : 0;
    expect_close(y[i * a->y_stride + r], (float)(old + scale * (sum + bias)),
                 sum_tolerance(a->n_k, fabs(scale) * size) +
                     8 * ulp * (fabs(old) + fabs(scale * (sum + bias)) + fabs(scale * bias)) +
                     tiny * (double)a->n_k,
                 r);
}

static void check_linear_i8(const struct slot *slot, const struct kernels *k)
{
    enum { MAX_W = 5500, MAX_Y = 560 * 264 };
    static float y0[MAX_Y], bias[MAX_W], expected[MAX_Y];
    const bool woven = slot->offset == offsetof(struct kernels, linear_woven[slot->type]);
    linear_i8_fn *f, *const truth = scalar->linear_i8[slot->type];
    slot_get(slot, k, &f);
    for (int c = 0; c < N_CASES; c++) {
        struct linear_i8_args a = i8_random(slot->type, woven, y0);
        const size_t n_y = a.n_w ? (a.n_x - 1) * a.y_stride + a.n_w : 0;
        float *y = area_floats(4, n_y);
        random_floats(bias, a.n_w, PLAIN);
        a.bias = random_below(2) ? bias : NULL;
        snprintf(parameters, sizeof parameters,
                 "%s %s n_x %zu n_w %zu n_k %zu groups %zu %zu scales %d%s%s", k->level, slot->name,
                 a.n_x, a.n_w, a.n_k, a.x_group, a.w_group, a.scale_type, a.zeros ? " zeros" : "",
                 a.add ? " add" : "");
        memcpy(y, y0, n_y * sizeof *y);
        memcpy(expected, y0, n_y * sizeof *y);
        a.y = expected;
        truth(&a);
        if (a.n_w)
            i8_expect_formula(&a, slot->type, expected, y0);
        if (woven) {
            i8_weave(areas[1].begin, a.n_w, a.w_stride / 4, 4);
            i8_weave(areas[2].begin, a.n_w, a.scale_stride, 2);
        }
        a.y = y;
        f(&a);
        expect_same(y, expected, n_y, "differs from the definition");
        if (a.n_w)
            i8_again(f, &a, woven ? KERNELS_WOVEN : 1, y0);
        areas_check();
    }
}

/* ---- speed ---- */

/* Small x is as good as any: rows of zeros take as long. */
static void speed_linear_bf16(const struct slot *slot, const struct bench *b)
{
    linear_fn *f;
    struct bench own = *b;
    slot_get(slot, b->k, &f);
    own.flops = b->k->peak[PEAK_BF16] ? bench_peak(b->k->peak[PEAK_BF16]) : 0;
    bench_linear(&own, f, slot->cols, WEIGHT_BF16);
}

/* Blocks of 128 x 128, up to so many rows of x. */
static void bench_f8(const struct slot *slot, const struct bench *b, int peak, size_t most)
{
    static const size_t rows[] = {1, 2, 4, 8, 32, 256};
    enum { N_K = 2048, BLOCK = 128 };
    linear_f8_fn *f;
    struct bench own = *b;
    slot_get(slot, b->k, &f);
    own.flops = b->k->peak[peak] ? bench_peak(b->k->peak[peak]) : 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows && rows[i] <= most; i++) {
        const size_t n_w = rows[i] < 32 ? BENCH_WEIGHT_BYTES / 2 / N_K / rows[i] : 1024;
        const struct linear_f8_args a = {.args = {.y = b->y,
                                                  .y_stride = n_w,
                                                  .x = b->x,
                                                  .x_stride = N_K,
                                                  .n_x = rows[i],
                                                  .w = b->w,
                                                  .w_stride = N_K,
                                                  .n_w = n_w,
                                                  .n_k = N_K,
                                                  .scale = 1},
                                         .scales = b->x,
                                         .block_out = BLOCK,
                                         .n_groups = N_K / BLOCK,
                                         .block_in = BLOCK};
        char what[64];
        double seconds;
        snprintf(what, sizeof what, "%zu x [%zu, %d]", rows[i], n_w, (int)N_K);
        BENCH_BEST(seconds, f(&a));
        bench_line(&own, what, seconds, 2. * (double)rows[i] * N_K * (double)n_w,
                   (double)(n_w * N_K));
    }
}

static void speed_linear_f8(const struct slot *slot, const struct bench *b)
{
    bench_f8(slot, b, PEAK_BF16, SIZE_MAX);
}

static void speed_f8_f32(const struct slot *slot, const struct bench *b)
{
    bench_f8(slot, b, PEAK_F32, KERNELS_F8_FEW);
}

static void speed_to_bf16(const struct slot *slot, const struct bench *b)
{
    to_bf16_fn *f;
    double seconds;
    slot_get(slot, b->k, &f);
    BENCH_BEST(seconds, f((uint16_t *)(void *)b->y, b->x, BENCH_K));
    bench_line(b, "row of 2048", seconds, BENCH_K, 4. * BENCH_K);
}

static void speed_to_i8(const struct slot *slot, const struct bench *b)
{
    to_i8_fn *f;
    double seconds;
    slot_get(slot, b->k, &f);
    BENCH_BEST(seconds, f((unsigned char *)b->y, b->x, BENCH_K, 128, true));
    bench_line(b, "row of 2048", seconds, BENCH_K, 4. * BENCH_K);
}

/* Groups of 128 with scales in bf16, or of 32 with E2M1's, beside the level's own dots of int8. */
static void speed_linear_i8(const struct slot *slot, const struct bench *b)
{
    static const size_t rows[] = {1, 2, 4, 8, 32, 256};
    enum { N_K = 2048 };
    const bool is_f4 = slot->type == DOT_F4;
    const size_t group = is_f4 ? 32 : 128;
    const size_t row = slot->type == DOT_I8 ? N_K : N_K / 2, x_stride = i8_row_bytes(N_K, group);
    struct bench own = *b;
    linear_i8_fn *f;
    slot_get(slot, b->k, &f);
    unsigned char *const x = malloc(rows[5] * x_stride);
    own.flops = b->k->peak[PEAK_INT8] ? bench_peak(b->k->peak[PEAK_INT8]) : 0;
    for (size_t i = 0; i < rows[5]; i++)
        b->k->to_i8(x + i * x_stride, b->x, N_K, group, slot->type != DOT_I8);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const size_t n_w = rows[i] < 32 ? BENCH_WEIGHT_BYTES / 2 / row / rows[i] : 1024;
        const struct linear_i8_args a = {.y = b->y,
                                         .y_stride = n_w,
                                         .x = x,
                                         .x_stride = x_stride,
                                         .x_group = group,
                                         .n_x = rows[i],
                                         .n_k = N_K,
                                         .w = (const unsigned char *)b->w,
                                         .w_stride = row,
                                         .n_w = n_w,
                                         .w_group = group,
                                         .scales = b->w,
                                         .scale_stride = N_K / group,
                                         .scale_type =
                                             is_f4 ? (int)SCALE_E8M0_HALF : (int)WEIGHT_BF16,
                                         .zero = is_f4 ? 0 : 8,
                                         .scale = 1};
        char what[64];
        double seconds;
        snprintf(what, sizeof what, "%zu x [%zu, %d]", rows[i], n_w, (int)N_K);
        BENCH_BEST(seconds, f(&a));
        bench_line(&own, what, seconds, 2. * (double)rows[i] * N_K * (double)n_w,
                   (double)(n_w * row));
    }
    free(x);
}
