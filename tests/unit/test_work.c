/*
 * What a pass has to read and compute, against sums written out by hand from the tensors that the
 * directories hold: a plain model, a mixture of experts, quantised matrices.
 */
#include "tests/check.h"

#include "models/work.h"

struct opened {
    struct checkpoint *checkpoint;
    struct model *model;
};

static struct opened open_model(const char *dir)
{
    struct err e = {.code = ERR_NONE};
    struct opened o = {.checkpoint = checkpoint_open(dir, &e)};
    o.model = o.checkpoint ? model_open(o.checkpoint, &e) : NULL;
    if (!o.model)
        fail_msg("%s", e.text);
    return o;
}

static void close_model(struct opened *o)
{
    model_close(o->model);
    checkpoint_close(o->checkpoint);
}

static void expect(double found, double expected)
{
    if (found != expected)
        fail_msg("%.17g, expected %.17g", found, expected);
}

/* 256 x 5, 8 heads over 4 of 32, 640 inside, a tied vocabulary of 4096; BF16. */
static void test_plain(void **state)
{
    (void)state;
    struct opened o = open_model("models/tales");
    const double memory = 2 * 128 * 256, head = 4096 * 256;
    const double layer = 2 * 256 * 256 + memory + 3 * 640 * 256;
    const double norms = 11 * 256 * 4;
    struct work w;
    work_of_pass(o.model, 0, 1, false, &w);
    expect(w.weight_bytes, 2 * (5 * layer + head + 256) + norms);
    expect(w.operations[WORK_BF16], 2 * (5 * layer + head) + 5 * 8 * 2 * 2 * 32);
    expect(w.operations[WORK_F32], 0);
    expect(w.operations[WORK_INT8], 0);

    work_of_pass(o.model, 100, 3, true, &w);
    expect(w.weight_bytes, 2 * (5 * layer + head + 3 * 256) + norms);
    expect(w.operations[WORK_BF16], 2 * ((3 * 4 + 1) * layer + 2 * memory + head));
    expect(w.kv_positions, 103);
    expect(w.operations[WORK_F32], (4 * (101. + 102) + 5 * 103) * 8 * 2 * 2 * 32);
    close_model(&o);
}

/* 40 x 2, 4 heads over 2 of 10, 2 of 6 experts with 16 inside, 67 words; BF16. */
static void test_experts(void **state)
{
    (void)state;
    struct opened o = open_model("tests/golden/mixtral");
    const double memory = 2 * 20 * 40, shared = 2 * 40 * 40 + memory + 6 * 40;
    const double expert = 3 * 16 * 40, head = 67 * 40;
    const double norms = 5 * 40 * 4;
    struct work w;
    work_of_pass(o.model, 0, 1, false, &w);
    expect(w.weight_bytes, 2 * (2 * (shared + 2 * expert) + head + 40) + norms);
    expect(w.operations[WORK_BF16], 2 * (2 * (shared + 2 * expert) + head) + 2 * 4 * 2 * 2 * 10);

    work_of_pass(o.model, 0, 5, true, &w);
    expect(w.weight_bytes, 2 * (2 * shared + (6 + 2) * expert + head + 5 * 40) + norms);
    expect(w.operations[WORK_BF16], 2 * ((5 + 1) * (shared + 2 * expert) + 4 * memory + head));
    close_model(&o);
}

/* Queries see 8 tokens in the first layer and all in the second. */
static void test_window(void **state)
{
    (void)state;
    struct opened o = open_model("tests/golden/gpt_oss-bf16");
    struct work near, far;
    work_of_pass(o.model, 3, 1, true, &near);
    work_of_pass(o.model, 199, 1, true, &far);
    expect(far.weight_bytes, near.weight_bytes);
    expect(near.kv_positions, 4);
    expect(far.kv_positions, (8. + 200) / 2);
    expect(far.operations[WORK_F32] / near.operations[WORK_F32], (8. + 200) / (4 + 4));
    work_of_pass(o.model, 197, 3, true, &far);
    expect(far.kv_positions, (10. + 200) / 2);
    expect(far.operations[WORK_F32] / near.operations[WORK_F32], (3 * 8. + 200) / (4 + 4));
    close_model(&o);
}

/* 128 x 2, 4 heads over 1 of 32, 256 inside: codes of 4 bits, a bf16 scale for each 128 columns;
 * the tied vocabulary of 112 is BF16. */
static void test_quantised(void **state)
{
    (void)state;
    struct opened o = open_model("tests/golden/quantised/llama-ct-int4");
    const double layer = 2 * 128 * 128 + 2 * 32 * 128 + 3 * 256 * 128, head = 112 * 128;
    struct work w;
    work_of_pass(o.model, 0, 1, false, &w);
    expect(w.weight_bytes, 2 * (layer / 2 + layer / 128 * 2) + 2 * (head + 128) + 5 * 128 * 4);
    expect(w.operations[WORK_INT8], 2 * 2 * layer);
    expect(w.operations[WORK_BF16], 2 * head + 2 * 4 * 2 * 2 * 32);
    close_model(&o);
}

/* The plain model in 8 bits, with a bf16 scale for each row; the table of ids stays BF16. */
static void test_quantised_at_load(void **state)
{
    (void)state;
    struct opened o = open_model("models/tales");
    struct err e = {.code = ERR_NONE};
    struct compute *c = compute_open(1, "scalar", &e);
    assert_non_null(c);
    assert_true(model_quantize_begin(o.model, MODEL_Q8, c, &e));
    for (size_t done = 0, total = 1; done < total;)
        assert_true(model_quantize_step(o.model, c, &done, &total, &e));
    const double layer = 2 * 256 * 256 + 2 * 128 * 256 + 3 * 640 * 256, head = 4096 * 256;
    const double layer_rows = 2 * 256 + 2 * 128 + 2 * 640 + 256;
    struct work w;
    work_of_pass(o.model, 0, 1, false, &w);
    expect(w.weight_bytes, 5 * (layer + 2 * layer_rows) + head + 2 * 4096 + 2 * 256 + 11 * 256 * 4);
    expect(w.operations[WORK_INT8], 2 * (5 * layer + head));
    expect(w.operations[WORK_BF16], 5 * 8 * 2 * 2 * 32);
    compute_close(c);
    close_model(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_experts),
        cmocka_unit_test(test_window),
        cmocka_unit_test(test_quantised),
        cmocka_unit_test(test_quantised_at_load),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
