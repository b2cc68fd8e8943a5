/*
 * Writes a checkpoint directory with random weights, for measuring speed: config.json,
 * model.safetensors, and a tokenizer.json whose tokens are the 256 bytes, so that every command of
 * tgen runs on it. The same arguments and seed give the same bytes.
 *
 *     make_model [--dims PRESET] -o DIR [--dtype bf16|f16|f32|f8] [--seed N]
 *                [--family llama|qwen2|gpt2|gpt_oss] [--hidden N] [--layers N] [--heads N]
 *                [--kv-heads N] [--head-dim N] [--ffn N] [--vocab N] [--positions N] [--untied]
 *
 * Numbers given by hand replace those of the preset. Weights are normal with the standard deviation
 * of 0.02 that models are initialised with, norms are 1: logits stay small and finite. f8 is for
 * the matrices of a layer, as in Qwen3-*-FP8, beside BF16; the experts of gpt_oss are in MXFP4.
 */
#include "tests/random.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum family { LLAMA, QWEN2, GPT2, GPT_OSS };
enum dtype { BF16, F16, F32, F8, U8 };
enum { F8_BLOCK = 128, F4_BLOCK = 32, EXPERTS = 32 };

static const char *const family_names[] = {"llama", "qwen2", "gpt2", "gpt_oss", NULL};
static const char *const dtype_names[] = {"bf16", "f16", "f32", "f8", NULL};

struct dims {
    const char *name;
    int family;
    int hidden, layers, heads, kv_heads, head_dim, ffn, vocab, positions;
    bool untied;
    double rope_theta, norm_eps;
    double rope_factor; /* of rope_scaling, llama3's or (gpt_oss) yarn's; 0: none */
};

static const struct dims presets[] = {
    {"llama-15m", LLAMA, 288, 6, 6, 6, 48, 768, 32000, 8192, false, 10000, 1e-5, 0},
    {"gpt2-124m", GPT2, 768, 12, 12, 12, 64, 3072, 50257, 1024, false, 0, 1e-5, 0},
    {"qwen2.5-0.5b", QWEN2, 896, 24, 14, 2, 64, 4864, 151936, 32768, false, 1e6, 1e-6, 0},
    {"llama-3.2-1b", LLAMA, 2048, 16, 32, 8, 64, 8192, 128256, 131072, false, 5e5, 1e-5, 32},
    {"gpt-oss-20b", GPT_OSS, 2880, 24, 64, 8, 64, 2880, 201088, 131072, true, 150000, 1e-5, 32},
};
enum { N_PRESETS = sizeof presets / sizeof *presets };

static void fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("make_model: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

/* ---- files ----------------------------------------------------------------------------------- */

static FILE *create(const char *dir, const char *name)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s", dir, name) >= (int)sizeof path)
        fail("%s: the name is too long", dir);
    FILE *f = fopen(path, "wb");
    if (!f)
        fail("%s: %s", path, strerror(errno));
    return f;
}

static void finish(FILE *f, const char *name)
{
    const bool failed = ferror(f);
    if (fclose(f) != 0 || failed)
        fail("%s cannot be written: %s", name, strerror(errno));
}

static void write_classic_keys(FILE *f, const struct dims *d)
{
    fprintf(f, "  \"n_embd\": %d,\n  \"n_layer\": %d,\n  \"n_head\": %d,\n  \"n_inner\": %d,\n",
            d->hidden, d->layers, d->heads, d->ffn);
    fprintf(f, "  \"n_positions\": %d,\n  \"layer_norm_epsilon\": %g,\n", d->positions,
            d->norm_eps);
    fprintf(f, "  \"activation_function\": \"gelu_new\",\n");
}

static void write_rope_scaling(FILE *f, const struct dims *d)
{
    const bool yarn = d->family == GPT_OSS;
    fprintf(f, "  \"rope_scaling\": {\"rope_type\": \"%s\", \"factor\": %.1f,\n",
            yarn ? "yarn" : "llama3", d->rope_factor);
    if (yarn)
        fputs("    \"beta_fast\": 32.0, \"beta_slow\": 1.0, \"truncate\": false,\n", f);
    else
        fputs("    \"low_freq_factor\": 1.0, \"high_freq_factor\": 4.0,\n", f);
    fprintf(f, "    \"original_max_position_embeddings\": %d},\n", yarn ? 4096 : 8192);
}

static void write_llama_keys(FILE *f, const struct dims *d)
{
    fprintf(f, "  \"hidden_size\": %d,\n  \"num_hidden_layers\": %d,\n", d->hidden, d->layers);
    fprintf(f, "  \"num_attention_heads\": %d,\n  \"num_key_value_heads\": %d,\n", d->heads,
            d->kv_heads);
    fprintf(f, "  \"head_dim\": %d,\n  \"intermediate_size\": %d,\n", d->head_dim, d->ffn);
    fprintf(f, "  \"max_position_embeddings\": %d,\n  \"rms_norm_eps\": %g,\n", d->positions,
            d->norm_eps);
    fprintf(f, "  \"hidden_act\": \"silu\",\n  \"rope_theta\": %.1f,\n", d->rope_theta);
    if (d->rope_factor > 0)
        write_rope_scaling(f, d);
}

/* No layer_types: a window in every other layer is what the family has without them. */
static void write_gpt_oss_keys(FILE *f)
{
    fprintf(f, "  \"num_local_experts\": %d,\n  \"num_experts_per_tok\": 4,\n", EXPERTS);
    fputs("  \"attention_bias\": true,\n  \"sliding_window\": 128,\n", f);
    fputs("  \"swiglu_limit\": 7.0,\n  \"quantization_config\": {\"quant_method\": \"mxfp4\",\n"
          "    \"modules_to_not_convert\": [\"model.layers.*.self_attn\",\n"
          "    \"model.layers.*.mlp.router\", \"model.embed_tokens\", \"lm_head\"]},\n",
          f);
}

static void write_config(const char *dir, const struct dims *d, enum dtype dtype)
{
    static const char *const torch_names[] = {"bfloat16", "float16", "float32", "bfloat16"};
    FILE *f = create(dir, "config.json");
    fprintf(f, "{\n  \"model_type\": \"%s\",\n", family_names[d->family]);
    if (d->family == GPT2)
        write_classic_keys(f, d);
    else
        write_llama_keys(f, d);
    if (d->family == GPT_OSS)
        write_gpt_oss_keys(f);
    if (dtype == F8)
        fprintf(f,
                "  \"quantization_config\": {\"quant_method\": \"fp8\", \"fmt\": \"e4m3\",\n"
                "    \"weight_block_size\": [%d, %d], \"activation_scheme\": \"dynamic\"},\n",
                F8_BLOCK, F8_BLOCK);
    fprintf(f, "  \"tie_word_embeddings\": %s,\n", d->untied ? "false" : "true");
    fprintf(f, "  \"vocab_size\": %d,\n  \"torch_dtype\": \"%s\"\n}\n", d->vocab,
            torch_names[dtype]);
    finish(f, "config.json");
}

/* GPT-2's alphabet: a byte that is printable in Latin-1 stands for itself, the others in turn for
 * the characters from U+0100 on. */
static void write_tokenizer(const char *dir, int vocab)
{
    FILE *f = create(dir, "tokenizer.json");
    fputs("{\"version\": \"1.0\", \"added_tokens\": [], \"normalizer\": null,\n"
          "\"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false,"
          " \"trim_offsets\": true, \"use_regex\": true},\n"
          "\"post_processor\": null,\n"
          "\"decoder\": {\"type\": \"ByteLevel\", \"add_prefix_space\": true,"
          " \"trim_offsets\": true, \"use_regex\": true},\n"
          "\"model\": {\"type\": \"BPE\", \"merges\": [], \"vocab\": {",
          f);
    int other = 0x100;
    for (int byte = 0; byte < 256 && byte < vocab; byte++) {
        const bool itself = (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte != 0xad);
        fprintf(f, "%s\"\\u%04x\": %d", byte ? ", " : "", itself ? byte : other++, byte);
    }
    fputs("}}}\n", f);
    finish(f, "tokenizer.json");
}

/* ---- tensors --------------------------------------------------------------------------------- */

enum { TABLE = 1 << 16, BUFFER_VALUES = 1 << 16 };

/* What a tensor's values are drawn from: 65536 of its dtype, each as likely as the others. */
struct source {
    enum dtype dtype;
    unsigned char table[4 * TABLE];
};

/* The list of tensors is walked twice: once for the header, once for the data. */
struct writer {
    FILE *f;
    bool data;      /* the second time */
    uint64_t begin; /* where the next tensor begins */
    struct source weights, ones;
    struct source f8, f8_scales, f4, f4_scales;
    const struct source *matrices; /* of a layer: weights or f8 */
    unsigned char buffer[4 * BUFFER_VALUES];
    const char *layers; /* in front of the names of a layer's tensors */
};

static size_t dtype_size(enum dtype dtype)
{
    static const size_t sizes[] = {2, 2, 4, 1, 1};
    return sizes[dtype];
}

/* The bits of a float -> those of a smaller form; what is below its normal numbers becomes 0. */
static uint32_t narrow(uint32_t bits, int n_exponent, int n_mantissa)
{
    const int shift = 23 - n_mantissa;
    const uint32_t sign = bits >> 31 << (n_exponent + n_mantissa), size = bits & 0x7fffffff;
    const uint32_t bias = (128U - (1U << (n_exponent - 1))) << 23; /* a float's, less the form's */
    return size < bias + (1U << 23) ? sign : sign | ((size - bias + (1U << (shift - 1))) >> shift);
}

/* Values here are far below the largest of any dtype, and few are below its normal numbers. */
static void put_value(unsigned char *out, enum dtype dtype, float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (dtype == BF16)
        bits = (bits + 0x8000) >> 16;
    else if (dtype == F16)
        bits = narrow(bits, 5, 10);
    else if (dtype == F8)
        bits = narrow(bits, 4, 3);
    for (size_t i = 0; i < dtype_size(dtype); i++)
        out[i] = (unsigned char)(bits >> 8 * i);
}

/* Where the normal distribution reaches p: Newton's method from the middle outwards. */
static void fill_normal(struct source *source, double deviation)
{
    const double sqrt_2_pi = 2.5066282746310002;
    const size_t size = dtype_size(source->dtype);
    double x = 0;
    for (int i = TABLE / 2; i < TABLE; i++) {
        const double p = (i + 0.5) / TABLE;
        for (int step = 0; step < 8; step++)
            x += (p - 0.5 * erfc(-x / sqrt(2))) * sqrt_2_pi * exp(0.5 * x * x);
        put_value(source->table + (size_t)i * size, source->dtype, (float)(deviation * x));
        put_value(source->table + (size_t)(TABLE - 1 - i) * size, source->dtype,
                  (float)(-deviation * x));
    }
}

/* Codes times scales deviate by about 0.02 too: those of F8 by 1.28, with scales from 1/128 to
 * 3/128; those of MXFP4, where any byte is two of E2M1, by 2.9, with 2^-8 or 2^-7 (bias 127). */
static void fill_sources(struct writer *w)
{
    fill_normal(&w->weights, 0.02);
    fill_normal(&w->f8, 1.28);
    for (int i = 0; i < TABLE; i++) {
        put_value(w->ones.table + (size_t)i * dtype_size(w->ones.dtype), w->ones.dtype, 1);
        put_value(w->f8_scales.table + (size_t)i * 4, F32, (1 + 2 * (float)i / TABLE) / 128);
        w->f4.table[i] = (unsigned char)i;
        w->f4_scales.table[i] = (unsigned char)(119 + i % 2);
    }
}

/* Ones cost no random numbers. */
static void fill_buffer(struct writer *w, const struct source *source, size_t n)
{
    const size_t size = dtype_size(source->dtype);
    for (size_t i = 0; i < n; i += 4) {
        const uint64_t random = source == &w->ones ? 0 : random_bits();
        for (size_t k = 0; k < 4; k++)
            memcpy(w->buffer + (i + k) * size, source->table + (random >> 16 * k & 0xffff) * size,
                   size);
    }
}

static void write_entry(struct writer *w, const char *name, enum dtype dtype, const int *shape,
                        uint64_t n_bytes)
{
    static const char *const names[] = {"BF16", "F16", "F32", "F8_E4M3", "U8"};
    fprintf(w->f, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[", w->begin ? "," : "", name,
            names[dtype]);
    for (const int *size = shape; *size; size++)
        fprintf(w->f, "%s%d", size > shape ? "," : "", *size);
    fprintf(w->f, "],\"data_offsets\":[%ju,%ju]}", (uintmax_t)w->begin,
            (uintmax_t)(w->begin + n_bytes));
}

/* shape ends with 0. */
static void write_tensor(struct writer *w, const char *name, const struct source *source,
                         const int *shape)
{
    const size_t size = dtype_size(source->dtype);
    uint64_t n = 1;
    for (int i = 0; shape[i]; i++)
        n *= (uint64_t)shape[i];
    if (!w->data)
        write_entry(w, name, source->dtype, shape, n * size);
    w->begin += n * size;
    for (uint64_t done = 0; w->data && done < n; done += BUFFER_VALUES) {
        const size_t n_now = n - done < BUFFER_VALUES ? (size_t)(n - done) : BUFFER_VALUES;
        fill_buffer(w, source, n_now);
        if (fwrite(w->buffer, size, n_now, w->f) != n_now)
            fail("the weights cannot be written: %s", strerror(errno));
    }
}

/* A tensor of weights, or of ones; n_columns 0: a vector. */
static void tensor(struct writer *w, const char *name, int n_rows, int n_columns, bool ones)
{
    write_tensor(w, name, ones ? &w->ones : &w->weights, (const int[]){n_rows, n_columns, 0});
}

static void write_layer_tensor(struct writer *w, int layer, const char *stem, const char *ending,
                               const struct source *source, const int *shape)
{
    char name[128];
    snprintf(name, sizeof name, "%s.%d.%s%s", w->layers, layer, stem, ending);
    write_tensor(w, name, source, shape);
}

static void layer_tensor(struct writer *w, int layer, const char *stem, int n_rows, int n_columns,
                         bool ones)
{
    write_layer_tensor(w, layer, stem, "", ones ? &w->ones : &w->weights,
                       (const int[]){n_rows, n_columns, 0});
}

/* [n_out, n_in]; F8 has a scale for every block. */
static void layer_matrix(struct writer *w, int layer, const char *stem, int n_out, int n_in)
{
    const int scales[] = {(n_out + F8_BLOCK - 1) / F8_BLOCK, (n_in + F8_BLOCK - 1) / F8_BLOCK, 0};
    write_layer_tensor(w, layer, stem, "", w->matrices, (const int[]){n_out, n_in, 0});
    if (w->matrices == &w->f8)
        write_layer_tensor(w, layer, stem, "_scale_inv", &w->f8_scales, scales);
}

/* Matrices [n_out, n_in] of MXFP4: blocks of 32 values in 16 bytes, a scale for each. */
static void layer_experts(struct writer *w, int layer, const char *stem, int n_out, int n_in)
{
    const int n = n_in / F4_BLOCK;
    write_layer_tensor(w, layer, stem, "_blocks", &w->f4,
                       (const int[]){EXPERTS, n_out, n, F4_BLOCK / 2, 0});
    write_layer_tensor(w, layer, stem, "_scales", &w->f4_scales,
                       (const int[]){EXPERTS, n_out, n, 0});
    write_layer_tensor(w, layer, stem, "_bias", &w->weights, (const int[]){EXPERTS, n_out, 0});
}

static void gpt2_layer(struct writer *w, const struct dims *d, int i)
{
    const int h = d->hidden;
    layer_tensor(w, i, "ln_1.weight", h, 0, true);
    layer_tensor(w, i, "ln_1.bias", h, 0, false);
    layer_tensor(w, i, "attn.c_attn.weight", h, 3 * h, false);
    layer_tensor(w, i, "attn.c_attn.bias", 3 * h, 0, false);
    layer_tensor(w, i, "attn.c_proj.weight", h, h, false);
    layer_tensor(w, i, "attn.c_proj.bias", h, 0, false);
    layer_tensor(w, i, "ln_2.weight", h, 0, true);
    layer_tensor(w, i, "ln_2.bias", h, 0, false);
    layer_tensor(w, i, "mlp.c_fc.weight", h, d->ffn, false);
    layer_tensor(w, i, "mlp.c_fc.bias", d->ffn, 0, false);
    layer_tensor(w, i, "mlp.c_proj.weight", d->ffn, h, false);
    layer_tensor(w, i, "mlp.c_proj.bias", h, 0, false);
}

static void gpt2_tensors(struct writer *w, const struct dims *d)
{
    tensor(w, "transformer.wte.weight", d->vocab, d->hidden, false);
    tensor(w, "transformer.wpe.weight", d->positions, d->hidden, false);
    for (int i = 0; i < d->layers; i++)
        gpt2_layer(w, d, i);
    tensor(w, "transformer.ln_f.weight", d->hidden, 0, true);
    tensor(w, "transformer.ln_f.bias", d->hidden, 0, false);
}

static void llama_ffn(struct writer *w, const struct dims *d, int i)
{
    const int h = d->hidden;
    if (d->family == GPT_OSS) {
        layer_tensor(w, i, "mlp.router.weight", EXPERTS, h, false);
        layer_tensor(w, i, "mlp.router.bias", EXPERTS, 0, false);
        layer_experts(w, i, "mlp.experts.gate_up_proj", 2 * d->ffn, h);
        layer_experts(w, i, "mlp.experts.down_proj", h, d->ffn);
        return;
    }
    layer_matrix(w, i, "mlp.gate_proj.weight", d->ffn, h);
    layer_matrix(w, i, "mlp.up_proj.weight", d->ffn, h);
    layer_matrix(w, i, "mlp.down_proj.weight", h, d->ffn);
}

static void llama_layer(struct writer *w, const struct dims *d, int i)
{
    const int h = d->hidden, q = d->heads * d->head_dim, kv = d->kv_heads * d->head_dim;
    layer_tensor(w, i, "input_layernorm.weight", h, 0, true);
    layer_matrix(w, i, "self_attn.q_proj.weight", q, h);
    layer_matrix(w, i, "self_attn.k_proj.weight", kv, h);
    layer_matrix(w, i, "self_attn.v_proj.weight", kv, h);
    if (d->family != LLAMA) {
        layer_tensor(w, i, "self_attn.q_proj.bias", q, 0, false);
        layer_tensor(w, i, "self_attn.k_proj.bias", kv, 0, false);
        layer_tensor(w, i, "self_attn.v_proj.bias", kv, 0, false);
    }
    layer_matrix(w, i, "self_attn.o_proj.weight", h, q);
    if (d->family == GPT_OSS) {
        layer_tensor(w, i, "self_attn.o_proj.bias", h, 0, false);
        layer_tensor(w, i, "self_attn.sinks", d->heads, 0, false);
    }
    layer_tensor(w, i, "post_attention_layernorm.weight", h, 0, true);
    llama_ffn(w, d, i);
}

static void llama_tensors(struct writer *w, const struct dims *d)
{
    tensor(w, "model.embed_tokens.weight", d->vocab, d->hidden, false);
    for (int i = 0; i < d->layers; i++)
        llama_layer(w, d, i);
    tensor(w, "model.norm.weight", d->hidden, 0, true);
}

static void write_tensors(struct writer *w, const struct dims *d)
{
    w->begin = 0;
    w->layers = d->family == GPT2 ? "transformer.h" : "model.layers";
    if (d->family == GPT2)
        gpt2_tensors(w, d);
    else
        llama_tensors(w, d);
    if (d->untied)
        tensor(w, "lm_head.weight", d->vocab, d->hidden, false);
}

static void write_weights(const char *dir, const struct dims *d, enum dtype dtype, uint64_t seed)
{
    static struct writer w;
    char *header;
    size_t n_header;
    random_state = seed;
    w.weights.dtype = w.ones.dtype = dtype == F8 ? BF16 : dtype;
    w.f8.dtype = F8;
    w.f8_scales.dtype = F32;
    w.f4.dtype = w.f4_scales.dtype = U8;
    w.matrices = dtype == F8 ? &w.f8 : &w.weights;
    w.f = open_memstream(&header, &n_header);
    if (!w.f)
        fail("%s", strerror(errno));
    fputc('{', w.f);
    write_tensors(&w, d);
    fputc('}', w.f);
    finish(w.f, "the header");

    const size_t padded = (n_header + 7) / 8 * 8;
    w.f = create(dir, "model.safetensors");
    w.data = true;
    for (size_t i = 0; i < 8; i++)
        fputc((int)(padded >> 8 * i & 0xff), w.f);
    fprintf(w.f, "%-*s", (int)padded, header);
    free(header);
    fill_sources(&w);
    write_tensors(&w, d);
    finish(w.f, "model.safetensors");
}

/* ---- arguments ------------------------------------------------------------------------------- */

static const char usage[] =
    "usage: make_model [--dims PRESET] -o DIR [--dtype bf16|f16|f32|f8] [--seed N]\n"
    "                  [--family llama|qwen2|gpt2|gpt_oss] [--hidden N] [--layers N]\n"
    "                  [--heads N] [--kv-heads N] [--head-dim N] [--ffn N] [--vocab N]\n"
    "                  [--positions N] [--untied]\n"
    "presets:";

static void bad_usage(void)
{
    fputs(usage, stderr);
    for (size_t i = 0; i < N_PRESETS; i++)
        fprintf(stderr, " %s", presets[i].name);
    fputc('\n', stderr);
    exit(2);
}

static int find_word(const char *const *words, const char *word)
{
    for (int i = 0; words[i]; i++)
        if (strcmp(words[i], word) == 0)
            return i;
    bad_usage();
    return 0;
}

static int size_argument(const char *text)
{
    char *end;
    const long n = strtol(text, &end, 10);
    if (!*text || *end || n < 1 || n > 1 << 24)
        bad_usage();
    return (int)n;
}

static void take_preset(struct dims *d, const char *name)
{
    for (size_t i = 0; i < N_PRESETS; i++)
        if (strcmp(presets[i].name, name) == 0) {
            *d = presets[i];
            return;
        }
    bad_usage();
}

enum { DIMS = 256, DTYPE, SEED, FAMILY, UNTIED, SIZES };

static const struct option options[] = {
    {"dims", 1, NULL, DIMS},           {"dtype", 1, NULL, DTYPE},
    {"seed", 1, NULL, SEED},           {"family", 1, NULL, FAMILY},
    {"untied", 0, NULL, UNTIED},       {"hidden", 1, NULL, SIZES},
    {"layers", 1, NULL, SIZES + 1},    {"heads", 1, NULL, SIZES + 2},
    {"kv-heads", 1, NULL, SIZES + 3},  {"head-dim", 1, NULL, SIZES + 4},
    {"ffn", 1, NULL, SIZES + 5},       {"vocab", 1, NULL, SIZES + 6},
    {"positions", 1, NULL, SIZES + 7}, {0},
};

/* What hand-made dims leave open follows from the rest. */
static void complete(struct dims *d, const int *sizes)
{
    int *const fields[] = {&d->hidden,   &d->layers, &d->heads, &d->kv_heads,
                           &d->head_dim, &d->ffn,    &d->vocab, &d->positions};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (sizes[i])
            *fields[i] = sizes[i];
    if (sizes[0] || sizes[2]) {
        if (!sizes[4] && d->heads)
            d->head_dim = d->hidden / d->heads;
        if (!sizes[3])
            d->kv_heads = d->heads;
    }
    if (!d->positions)
        d->positions = 8192;
    if (!d->norm_eps)
        d->norm_eps = 1e-5;
    if (!d->rope_theta)
        d->rope_theta = 10000;
    if (!d->rope_factor && d->family == GPT_OSS)
        d->rope_factor = 32;
    if (!d->hidden || !d->layers || !d->heads || !d->ffn || !d->vocab)
        fail("--dims, or --hidden, --layers, --heads, --ffn and --vocab must be given");
    if (d->heads % d->kv_heads || !d->head_dim ||
        (d->family == GPT2 && (d->kv_heads != d->heads || d->head_dim * d->heads != d->hidden)))
        fail("the numbers of heads do not go with each other and the hidden size");
    if (d->family == GPT_OSS && (d->hidden % F4_BLOCK || d->ffn % F4_BLOCK))
        fail("MXFP4 needs --hidden and --ffn in blocks of %d", F4_BLOCK);
}

int main(int argc, char **argv)
{
    struct dims d = {.name = NULL};
    int sizes[8] = {0}, dtype = BF16, family = -1;
    bool untied = false;
    uint64_t seed = 1;
    const char *dir = NULL;
    for (int c; (c = getopt_long(argc, argv, "o:", options, NULL)) != -1;)
        if (c == 'o')
            dir = optarg;
        else if (c == DIMS)
            take_preset(&d, optarg);
        else if (c == DTYPE)
            dtype = find_word(dtype_names, optarg);
        else if (c == FAMILY)
            family = find_word(family_names, optarg);
        else if (c == SEED)
            seed = strtoull(optarg, NULL, 10);
        else if (c == UNTIED)
            untied = true;
        else if (c >= SIZES)
            sizes[c - SIZES] = size_argument(optarg);
        else
            bad_usage();
    if (!dir || optind < argc)
        bad_usage();
    d.family = family >= 0 ? family : d.family;
    d.untied = d.untied || untied;
    if (dtype == F8 && d.family != LLAMA && d.family != QWEN2) {
        fputs("make_model: --dtype f8 is for the families llama and qwen2\n", stderr);
        exit(2);
    }
    complete(&d, sizes);
    if (mkdir(dir, 0777) != 0 && errno != EEXIST)
        fail("%s: %s", dir, strerror(errno));
    write_config(dir, &d, (enum dtype)dtype);
    write_tokenizer(dir, d.vocab);
    write_weights(dir, &d, (enum dtype)dtype, seed);
    return 0;
}
