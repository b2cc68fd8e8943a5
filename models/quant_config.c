/*
 * Sources: compressed-tensors src/compressed_tensors/quantization/quant_args.py and compressors/;
 * transformers quantizers and integrations/{finegrained_fp8,mxfp4,awq}.py; AutoGPTQ and GPTQModel
 * for GPTQ; auto-round's export_to_autoround and vLLM's quantization/inc.py for AutoRound.
 */
#include "models/quant_config.h"

#include <string.h>

static const struct quant_suffixes plain_suffixes = {
    .codes = ".weight",
    .scales = {".weight_scale", ".weight_scale_inv"},
    .zeros = ".weight_zero_point",
    .g_idx = ".weight_g_idx",
};

static const struct quant_suffixes packed_suffixes = {
    .codes = ".weight_packed",
    .scales = {".weight_scale"},
    .zeros = ".weight_zero_point",
    .g_idx = ".weight_g_idx",
    .shape = ".weight_shape",
};

static const struct quant_suffixes gptq_suffixes = {
    .codes = ".qweight",
    .scales = {".scales"},
    .zeros = ".qzeros",
    .g_idx = ".g_idx",
};

static const struct quant_suffixes mxfp4_suffixes = {.codes = "_blocks", .scales = {"_scales"}};

/* A whole number of an object, within [min, max]; the fallback where it is absent or null. */
static int read_int(struct config *c, const struct json *object, const char *key, int min, int max,
                    int fallback)
{
    const struct json *const j = json_get(object, key);
    int64_t n = fallback;
    if (json_type(j) != JSON_NULL && !json_integer(j, min, max, &n))
        config_fail(c, "quantization_config: \"%s\" must be a whole number from %d to %d", key, min,
                    max);
    return (int)n;
}

/* [rows, columns] that share a scale. */
static void read_block(struct config *c, const struct json *block, struct quant_format *format)
{
    int64_t out, in;
    if (json_type(block) == JSON_NULL)
        return;
    if (json_count(block) != 2 || !json_integer(json_first(block), 1, CONFIG_MAX_SIZE, &out) ||
        !json_integer(json_next(json_first(block)), 1, CONFIG_MAX_SIZE, &in)) {
        config_fail(c, "quantization_config: a block must be two whole numbers");
        return;
    }
    format->block_out = (int)out;
    format->block_in = (int)in;
}

static void read_group(struct config *c, const struct json *object, struct quant_format *format)
{
    const int size = read_int(c, object, "group_size", -1, CONFIG_MAX_SIZE, -1);
    format->block_out = 1;
    format->block_in = max_int(size, 0); /* -1: the whole row */
}

static void read_fp8(struct config *c, const struct json *j, struct quant_config *q)
{
    const char *const fmt = config_text(c, j, "fmt", "e4m3");
    if (strcmp(fmt, "e4m3") != 0)
        config_fail(c, "quantization_config: the fp8 form \"%s\" is not supported", fmt);
    q->format.type = QUANT_F8;
    q->suffixes = plain_suffixes;
    read_block(c, json_get(j, "weight_block_size"), &q->format);
}

static void read_gptq(struct config *c, const struct json *j, struct quant_config *q, bool awq)
{
    const int bits = read_int(c, j, "bits", 1, 32, 4);
    const char *const version = config_text(c, j, "version", "gemm");
    const char *const form = config_text(c, j, "checkpoint_format", "gptq");
    if (bits != 4)
        config_fail(c, "quantization_config: %d bits are not supported by this method, 4 are",
                    bits);
    if (awq && strcmp(version, "gemm") != 0 && strcmp(version, "GEMM") != 0)
        config_fail(c, "quantization_config: the AWQ version \"%s\" is not supported", version);
    if (!awq && strcmp(form, "gptq") != 0 && strcmp(form, "gptq_v2") != 0)
        config_fail(c, "quantization_config: the checkpoint_format \"%s\" is not supported", form);
    q->format.type = awq ? QUANT_AWQ : QUANT_GPTQ;
    q->format.zeros_less_one = !awq && strcmp(form, "gptq") == 0;
    q->format.needs_g_idx = !awq && json_bool(json_get(j, "desc_act"), false);
    q->suffixes = gptq_suffixes;
    if (awq)
        q->suffixes.g_idx = NULL;
    read_group(c, j, &q->format);
}

/* AutoRound stores its codes in GPTQ's form or in AWQ's. Layers that extra_config leaves as they
 * were have plain weights, and other differences show in the shapes of tensors. */
static void read_auto_round(struct config *c, const struct json *j, struct quant_config *q)
{
    const char *const packing = config_text(c, j, "packing_format", "auto_round:auto_gptq");
    const char *const type = config_text(c, j, "data_type", "int");
    const int act_bits = read_int(c, j, "act_bits", 1, 32, 16);
    const bool awq = strcmp(packing, "auto_round:auto_awq") == 0;
    if (strcmp(type, "int") != 0 || act_bits < 16)
        config_fail(c,
                    "quantization_config: weights of data_type \"%s\" and activations of %d bits "
                    "are not supported by this method",
                    type, act_bits);
    if (!awq && strcmp(packing, "auto_round:auto_gptq") != 0)
        config_fail(c, "quantization_config: the packing_format \"%s\" is not supported", packing);
    read_gptq(c, j, q, awq);
}

static void read_strategy(struct config *c, const struct json *weights, struct quant_format *format)
{
    const char *const strategy = config_text(c, weights, "strategy", "tensor");
    if (strcmp(strategy, "channel") == 0)
        format->block_out = 1;
    else if (strcmp(strategy, "group") == 0)
        read_group(c, weights, format);
    else if (strcmp(strategy, "block") == 0)
        read_block(c, json_get(weights, "block_structure"), format);
    else if (strcmp(strategy, "tensor") != 0)
        config_fail(c, "quantization_config: the strategy \"%s\" is not supported", strategy);
}

/* Whether columns were sorted, group by group: "weight" and "static" put them back. */
static bool is_by_group(const struct json *actorder)
{
    const char *const order = json_text(actorder, "");
    return strcmp(order, "group") == 0 || strcmp(order, "dynamic") == 0 ||
           json_bool(actorder, false);
}

/* What a group of layers says of its weights. */
static void read_weights(struct config *c, const struct json *weights, const char *format,
                         struct quant_config *q)
{
    const char *const type = config_text(c, weights, "type", "int");
    const int bits = read_int(c, weights, "num_bits", 1, 32, 8);
    const bool is_float = strcmp(type, "float") == 0,
               packed = strcmp(format, "pack-quantized") == 0;
    const bool plain = strcmp(format, "int-quantized") == 0 ||
                       strcmp(format, "float-quantized") == 0 ||
                       strcmp(format, "naive-quantized") == 0;
    if (!packed && !plain)
        config_fail(c, "quantization_config: the format \"%s\" is not supported", format);
    else if (packed ? is_float || (bits != 4 && bits != 8) : bits != 8)
        config_fail(c,
                    "quantization_config: %d bits of type \"%s\" are not supported in the format "
                    "\"%s\"",
                    bits, type, format);
    q->format = (struct quant_format){.type = is_float ? QUANT_F8 : QUANT_INT8};
    if (packed)
        q->format.type = bits == 4 ? QUANT_PACKED4 : QUANT_PACKED8;
    q->format.needs_zeros = !is_float && !json_bool(json_get(weights, "symmetric"), true);
    q->format.needs_g_idx = is_by_group(json_get(weights, "actorder"));
    q->suffixes = packed ? packed_suffixes : plain_suffixes;
    read_strategy(c, weights, &q->format);
}

/* Several groups of layers may differ only in what the shapes of their tensors tell. */
static void read_compressed(struct config *c, const struct json *j, struct quant_config *q)
{
    const struct json *const groups = json_get(j, "config_groups");
    const char *const format = config_text(c, j, "format", "?");
    const size_t n = json_count(groups);
    q->varies = n > 1;
    if (n == 0 || (q->varies && strcmp(format, "pack-quantized") != 0))
        config_fail(c,
                    "quantization_config: %zu \"config_groups\" are not supported in the format "
                    "\"%s\"",
                    n, format);
    for (const struct json *group = json_first(groups); group; group = json_next(group)) {
        read_weights(c, json_get(group, "weights"), format, q);
        if (q->varies && q->format.block_out != 1)
            config_fail(c,
                        "quantization_config: several \"config_groups\" are supported only where "
                        "rows or groups have scales");
    }
}

struct quant_format quant_config_of_matrix(const struct quant_config *q,
                                           const struct quant_parts *parts, int n_in)
{
    struct quant_format format = q->format;
    if (q->varies) /* what the last group needs, others may not */
        format.needs_zeros = format.needs_g_idx = false;
    if (!q->varies || parts->codes->n_dims < 1 || parts->scales->n_dims < 1)
        return format;
    const int64_t words = parts->codes->shape[parts->codes->n_dims - 1];
    const int64_t groups = parts->scales->shape[parts->scales->n_dims - 1];
    format.type = words == ((int64_t)n_in + 7) / 8 ? QUANT_PACKED4 : QUANT_PACKED8;
    format.block_in = groups > 1 ? (int)(n_in / groups) : 0;
    return format;
}

void quant_config_read(struct config *c, const struct json *j, struct quant_config *q)
{
    if (config_says_nothing(j))
        return;
    const char *const method = config_text(c, j, "quant_method", "?");
    q->is_set = true;
    if (strcmp(method, "fp8") == 0) {
        read_fp8(c, j, q);
    } else if (strcmp(method, "gptq") == 0 || strcmp(method, "awq") == 0) {
        read_gptq(c, j, q, strcmp(method, "awq") == 0);
    } else if (strcmp(method, "auto-round") == 0) {
        read_auto_round(c, j, q);
    } else if (strcmp(method, "compressed-tensors") == 0) {
        read_compressed(c, j, q);
    } else if (strcmp(method, "mxfp4") == 0) {
        q->format.type = QUANT_MXFP4;
        q->suffixes = mxfp4_suffixes;
    } else {
        config_fail(c, "quantization_config: the quant_method \"%s\" is not supported", method);
    }
}

bool quant_config_ignores(const char *name)
{
    static const char *const endings[] = {
        ".input_scale",       ".output_scale", ".activation_scale", ".input_zero_point",
        ".k_scale",           ".v_scale",      ".kv_scale",         ".q_scale",
        ".output_zero_point", ".k_zero_point", ".v_zero_point",     ".q_zero_point"};
    for (size_t i = 0; i < ARRAY_LEN(endings); i++)
        if (text_ends_in(name, endings[i]))
            return true;
    return false;
}
