/*
 * Directories that are not what they should be: every refusal of model_open, by its code and the
 * words that tell a user what to do. A tiny llama is written into a temporary directory, right at
 * first, then with one thing changed.
 */
#include "tests/check.h"

#include "models/generation_config.h"
#include "models/model.h"
#include "models/session.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { VOCAB = 16, HIDDEN = 8, FFN = 12 };

/* ---- a checkpoint to spoil ------------------------------------------------------------------- */

struct stored {
    const char *name, *dtype;
    int shape[2]; /* the second 0: one dimension */
};

static const struct stored llama_tensors[] = {
    {"model.embed_tokens.weight", "F32", {VOCAB, HIDDEN}},
    {"model.layers.0.input_layernorm.weight", "F32", {HIDDEN, 0}},
    {"model.layers.0.self_attn.q_proj.weight", "F32", {HIDDEN, HIDDEN}},
    {"model.layers.0.self_attn.k_proj.weight", "F32", {HIDDEN / 2, HIDDEN}},
    {"model.layers.0.self_attn.v_proj.weight", "F32", {HIDDEN / 2, HIDDEN}},
    {"model.layers.0.self_attn.o_proj.weight", "F32", {HIDDEN, HIDDEN}},
    {"model.layers.0.post_attention_layernorm.weight", "F32", {HIDDEN, 0}},
    {"model.layers.0.mlp.gate_proj.weight", "F32", {FFN, HIDDEN}},
    {"model.layers.0.mlp.up_proj.weight", "F32", {FFN, HIDDEN}},
    {"model.layers.0.mlp.down_proj.weight", "F32", {HIDDEN, FFN}},
    {"model.norm.weight", "F32", {HIDDEN, 0}},
    {"lm_head.weight", "F32", {VOCAB, HIDDEN}},
};

enum { N_TENSORS = (int)(sizeof llama_tensors / sizeof llama_tensors[0]) };

static const char llama_config[] =
    "\"vocab_size\": 16, \"hidden_size\": 8, \"intermediate_size\": 12, \"num_hidden_layers\": 1, "
    "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"max_position_embeddings\": 32, "
    "\"model_type\": \"llama\"";

static char dir[64];

static void write_file(const char *name, const void *bytes, size_t n)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *const f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static void write_text(const char *name, const char *text)
{
    write_file(name, text, strlen(text));
}

static size_t stored_bytes(const struct stored *t)
{
    const int count = t->shape[0] * (t->shape[1] ? t->shape[1] : 1);
    return (size_t)count * (strcmp(t->dtype, "F32") == 0 ? 4 : 8);
}

/* model.safetensors with the tensors given, every value 0.25 (or NaN). */
static void write_tensors(const struct stored *tensors, int n, float value)
{
    char header[8192] = "{";
    size_t used = 1, offset = 0;
    for (int i = 0; i < n; i++) {
        const struct stored *const t = &tensors[i];
        const size_t bytes = stored_bytes(t);
        char shape[32];
        snprintf(shape, sizeof shape, t->shape[1] ? "%d,%d" : "%d", t->shape[0], t->shape[1]);
        used += (size_t)snprintf(
            header + used, sizeof header - used,
            "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%zu,%zu]}", i ? "," : "",
            t->name, t->dtype, shape, offset, offset + bytes);
        offset += bytes;
    }
    used += (size_t)snprintf(header + used, sizeof header - used, "}");
    assert_true(used < sizeof header);
    unsigned char *const file = malloc(8 + used + offset);
    assert_non_null(file);
    for (int i = 0; i < 8; i++)
        file[i] = (unsigned char)(used >> (8 * i));
    memcpy(file + 8, header, used);
    for (size_t at = 0; at + sizeof value <= offset; at += sizeof value)
        memcpy(file + 8 + used + at, &value, sizeof value);
    write_file("model.safetensors", file, 8 + used + offset);
    free(file);
}

/* The same, with another value in those of the tensors whose names hold `part`. */
static void write_tensors_but(const struct stored *tensors, int n, const char *part, float value)
{
    char path[128];
    size_t behind = 0; /* bytes from a tensor to the end of the file */
    write_tensors(tensors, n, 0.25f);
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    FILE *const f = fopen(path, "r+b");
    assert_non_null(f);
    for (int i = n - 1; i >= 0; i--) {
        behind += stored_bytes(&tensors[i]);
        assert_int_equal(fseek(f, -(long)behind, SEEK_END), 0);
        for (size_t at = 0; strstr(tensors[i].name, part) && at < stored_bytes(&tensors[i]);
             at += sizeof value)
            assert_int_equal(fwrite(&value, sizeof value, 1, f), 1);
    }
    assert_int_equal(fclose(f), 0);
}

/* config.json: the llama above with more members behind (which may not repeat a key). */
static void write_config(const char *more)
{
    char text[2048];
    snprintf(text, sizeof text, "{%s%s%s}", llama_config, *more ? ", " : "", more);
    write_text("config.json", text);
}

/* The same with one piece of text replaced. */
static void write_config_with(const char *piece, const char *other)
{
    char text[2048];
    const char *const at = strstr(llama_config, piece);
    assert_non_null(at);
    snprintf(text, sizeof text, "{%.*s%s%s}", (int)(at - llama_config), llama_config, other,
             at + strlen(piece));
    write_text("config.json", text);
}

static int setup(void **state)
{
    (void)state;
    strcpy(dir, "/tmp/tgen-test-XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    write_config("");
    write_tensors(llama_tensors, N_TENSORS, 0.25f);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    static const char *const names[] = {"config.json", "model.safetensors",
                                        "generation_config.json"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        unlink(path);
    }
    return rmdir(dir);
}

/* ---- what opening it says -------------------------------------------------------------------- */

static void check_opens(void)
{
    struct err e;
    struct checkpoint *const c = checkpoint_open(dir, &e);
    assert_non_null(c);
    struct model *const m = model_open(c, &e);
    if (!m)
        fail_msg("%s", e.text);
    model_close(m);
    checkpoint_close(c);
}

/* Refused with ERR_LOAD and a sentence that holds both words. */
static void check_refused(const char *word, const char *word2)
{
    struct err e = {0};
    struct checkpoint *const c = checkpoint_open(dir, &e);
    assert_non_null(c);
    struct model *const m = model_open(c, &e);
    if (m)
        fail_msg("opened, though it should say %s, %s", word, word2);
    assert_int_equal(e.code, ERR_LOAD);
    if (!strstr(e.text, word) || !strstr(e.text, word2))
        fail_msg("\"%s\" and \"%s\" are not in: %s", word, word2, e.text);
    checkpoint_close(c);
}

static void test_right(void **state)
{
    (void)state;
    check_opens();
}

static void test_config_syntax(void **state)
{
    (void)state;
    char path[128];
    write_text("config.json", "{\"model_type\": ");
    check_refused("config.json", "");
    write_text("config.json", "[]");
    check_refused("config.json", "object");
    write_text("config.json", "");
    check_refused("config.json", "");
    write_text("config.json", "{}");
    check_refused("config.json", "model_type");
    snprintf(path, sizeof path, "%s/config.json", dir);
    unlink(path);
    check_refused("config.json", dir);
    char deep[4096];
    memset(deep, '[', sizeof deep - 1);
    deep[sizeof deep - 1] = '\0';
    write_text("config.json", deep);
    check_refused("config.json", "");
    write_config("\"vocab_size\": 16");
    check_refused("config.json", "vocab_size");
}

static void test_family(void **state)
{
    (void)state;
    write_config_with("\"llama\"", "\"no_such_family\"");
    check_refused("no_such_family", "llama, minicpm, ministral3, mistral");
    write_config_with("\"llama\"", "7");
    check_refused("model_type", "");
    write_config_with(", \"model_type\": \"llama\"", "");
    check_refused("\"model_type\" is missing", "");
    write_config_with("\"model_type\": \"llama\"", "\"architectures\": [\"MiniCPMForCausalLM\"]");
    check_opens();
}

static void test_config_values(void **state)
{
    (void)state;
    static const struct {
        const char *piece, *other, *word;
    } cases[] = {
        {"\"hidden_size\": 8", "\"hidden_size\": \"8\"", "hidden_size"},
        {"\"hidden_size\": 8", "\"hidden_size\": -8", "hidden_size"},
        {"\"hidden_size\": 8", "\"hidden_size\": 0", "hidden_size"},
        {"\"hidden_size\": 8", "\"hidden_size\": 8.5", "hidden_size"},
        {"\"hidden_size\": 8", "\"hidden_size\": 1e300", "hidden_size"},
        {"\"hidden_size\": 8, ", "", "\"hidden_size\" is missing"},
        {"\"num_hidden_layers\": 1", "\"num_hidden_layers\": 1000000000", "num_hidden_layers"},
        {"\"num_attention_heads\": 4", "\"num_attention_heads\": 3", "divide"},
        {"\"num_key_value_heads\": 2", "\"num_key_value_heads\": 3", "divide"},
        {"\"num_key_value_heads\": 2", "\"num_key_value_heads\": [2]", "num_key_value_heads"},
        {"\"max_position_embeddings\": 32", "\"max_position_embeddings\": -1", "max_position"},
        {"\"vocab_size\": 16", "\"vocab_size\": 17", "model.embed_tokens.weight"},
        {"\"vocab_size\": 16", "\"vocab_size\": 15", "[15, 8]"},
        {"\"num_attention_heads\": 4", "\"num_attention_heads\": 8", "even"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        write_config_with(cases[i].piece, cases[i].other);
        check_refused(cases[i].word, "");
    }
}

/* A pattern is local layers and a global one behind them, of which only the length is taken. */
static void test_window_pattern(void **state)
{
    (void)state;
    static const char *const refused[] = {"", "G", "LLL", "LGLG", "GL", "llg"};
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        char more[128];
        snprintf(more, sizeof more,
                 "\"model_type\": \"exaone4\", \"sliding_window_pattern\": \"%s\"", refused[i]);
        write_config_with("\"model_type\": \"llama\"", more);
        check_refused("one like \"LLLG\"", "");
    }
    write_config_with("\"model_type\": \"llama\"",
                      "\"model_type\": \"exaone4\", \"sliding_window_pattern\": \"LLLG\"");
    check_refused("norm.weight", ""); /* the tensors are llama's */
}

static void test_config_extras(void **state)
{
    (void)state;
    static const struct {
        const char *more, *word;
    } refused[] = {
        {"\"residual_multiplier\": 0.22", "residual_multiplier"},
        {"\"attention_bias\": 1", "attention_bias"},
        {"\"attention_bias\": true", "q_proj.bias"},
        {"\"hidden_act\": \"swoosh\"", "swoosh"},
        {"\"rms_norm_eps\": -1", "rms_norm_eps"},
        {"\"rope_theta\": 0", "rope_theta"},
        {"\"rope_scaling\": 3", "rope_scaling"},
        {"\"rope_scaling\": [1]", "rope_scaling"},
        {"\"rope_scaling\": {\"rope_type\": \"linear\"}", "factor"},
        {"\"quantization_config\": {\"quant_method\": \"bitsandbytes\"}", "bitsandbytes"},
        {"\"quantization_config\": {\"quant_method\": \"gptq\", \"bits\": 3}", "3 bits"},
        {"\"quantization_config\": {\"quant_method\": \"gptq\", \"checkpoint_format\": 5}",
         "\"checkpoint_format\" must be a text"},
        {"\"quantization_config\": {\"quant_method\": \"auto-round\", \"packing_format\": "
         "\"auto_round:llm_compressor\"}",
         "auto_round:llm_compressor"},
        {"\"quantization_config\": {\"quant_method\": \"auto-round\", \"data_type\": \"mx_fp\"}",
         "mx_fp"},
        {"\"quantization_config\": {\"quant_method\": \"auto-round\", \"act_bits\": 8}",
         "activations of 8 bits"},
        {"\"rope_scaling\": {\"type\": \"spiral\"}", "spiral"},
        {"\"rope_scaling\": {\"type\": \"linear\", \"factor\": 0}", "factor"},
        {"\"rope_scaling\": {\"type\": \"linear\", \"twist\": 2}", "twist"},
        {"\"rope_scaling\": {\"type\": \"longrope\", \"short_factor\": [1]}", "long_factor"},
        {"\"head_dim\": 1000000", "q_proj"},
        {"\"head_dim\": 10000000", "heads of"},
        {"\"quantization_config\": {\"bits\": 4}", "quantization_config"},
        {"\"eos_token_id\": \"x\"", "eos_token_id"},
        {"\"eos_token_id\": [1, -2]", "eos_token_id"},
    };
    static const char *const accepted[] = {
        "\"residual_multiplier\": null, \"some_flag\": false, \"some_list\": []",
        "\"transformers_version\": \"4.51.3\", \"torch_dtype\": \"bfloat16\", \"use_cache\": true",
        "\"eos_token_id\": [1, 2]",
        "\"rope_scaling\": null, \"head_dim\": null",
        "\"rope_scaling\": {\"rope_type\": \"dynamic\", \"factor\": 2.0}",
    };
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        write_config(refused[i].more);
        check_refused(refused[i].word, "");
    }
    for (size_t i = 0; i < ARRAY_LEN(accepted); i++) {
        write_config(accepted[i]);
        check_opens();
    }
}

static void test_tensors(void **state)
{
    (void)state;
    struct stored tensors[N_TENSORS + 1];
    memcpy(tensors, llama_tensors, sizeof llama_tensors);
    write_tensors(tensors, N_TENSORS - 1, 0);
    check_refused("lm_head.weight", "missing");

    tensors[N_TENSORS] = (struct stored){"model.layers.1.mlp.up_proj.weight", "F32", {FFN, HIDDEN}};
    write_tensors(tensors, N_TENSORS + 1, 0);
    check_refused("model.layers.1.mlp.up_proj.weight", "no use");

    static const char *const types[] = {"F64", "C64"}; /* that no kernel reads */
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        tensors[N_TENSORS] =
            (struct stored){"model.layers.0.self_attn.q_proj.lora_A.weight", types[i], {2, HIDDEN}};
        write_tensors(tensors, N_TENSORS + 1, 0);
        check_refused("q_proj.lora_A.weight", "no use");
    }

    tensors[N_TENSORS] =
        (struct stored){"model.layers.0.self_attn.q_proj.weight_shape", "I64", {2, 0}};
    write_tensors(tensors, N_TENSORS + 1, 0);
    check_refused("q_proj.weight_shape", "no use"); /* no buffer, but a part of a packed matrix */

    tensors[N_TENSORS] =
        (struct stored){"model.layers.0.self_attn.qkv_proj.weight", "F32", {2 * HIDDEN, HIDDEN}};
    write_tensors(tensors, N_TENSORS + 1, 0);
    check_refused("q_proj", "qkv_proj");

    tensors[2].dtype = "F64";
    write_tensors(tensors, N_TENSORS, 0);
    check_refused("q_proj", "F64");

    tensors[2] = (struct stored){"model.layers.0.self_attn.q_proj.weight", "F32", {HIDDEN, 9}};
    write_tensors(tensors, N_TENSORS, 0);
    check_refused("[8, 9]", "[8, 8]");
}

/* Extra tensors that no family reads are no obstacle where they are known, whatever their type. */
static void test_ignored_tensors(void **state)
{
    (void)state;
    struct stored tensors[N_TENSORS + 1];
    memcpy(tensors, llama_tensors, sizeof llama_tensors);
    tensors[N_TENSORS] =
        (struct stored){"model.layers.0.self_attn.rotary_emb.inv_freq", "F32", {1, 0}};
    write_tensors(tensors, N_TENSORS + 1, 0);
    check_opens();
    tensors[N_TENSORS] = (struct stored){"model.embeddings.position_ids", "I64", {1, 0}};
    write_tensors(tensors, N_TENSORS + 1, 0);
    check_opens();
}

static void check_tied(bool tied)
{
    struct err e;
    int n;
    struct checkpoint *const c = checkpoint_open(dir, &e);
    assert_non_null(c);
    struct model *const m = model_open(c, &e);
    if (!m)
        fail_msg("%s", e.text);
    const struct model_fact *fact = model_facts(m, &n);
    while (strcmp(fact->key, "tie_word_embeddings") != 0)
        fact++;
    assert_true((fact->number != 0) == tied);
    model_close(m);
    checkpoint_close(c);
}

static void test_tied(void **state)
{
    (void)state;
    struct stored tensors[N_TENSORS];
    write_config("\"tie_word_embeddings\": true");
    check_tied(true); /* both are there: a copy */
    write_tensors_but(llama_tensors, N_TENSORS, "lm_head", 0.5f);
    check_tied(false); /* and no copy */
    write_tensors(llama_tensors, N_TENSORS - 1, 0);
    check_opens(); /* only the embedding */
    write_tensors(llama_tensors + 1, N_TENSORS - 1, 0);
    check_opens(); /* only lm_head */
    memcpy(tensors, llama_tensors, sizeof llama_tensors);
    for (int i = 0; i < N_TENSORS - 1; i++)
        tensors[i].name += strlen("model.");
    write_tensors(tensors, N_TENSORS, 0);
    check_opens(); /* no prefix */
}

static void test_generation_config(void **state)
{
    (void)state;
    struct err e;
    write_text("generation_config.json", "{\"temperature\": \"hot\"}");
    check_refused("generation_config.json", "temperature");
    write_text("generation_config.json", "{\"top_p\": 1.5}");
    check_refused("generation_config.json", "top_p");
    write_text("generation_config.json",
               "{\"top_k\": 7, \"eos_token_id\": [3, 5], \"temperature\": null, \"num_beams\": 1, "
               "\"bad_words_ids\": [], \"min_length\": null}");
    struct checkpoint *const c = checkpoint_open(dir, &e);
    struct model *const m = model_open(c, &e);
    assert_non_null(m);
    int n;
    const int32_t *const eos = model_eos(m, &n);
    assert_int_equal(n, 2);
    assert_int_equal(eos[1], 5);
    const struct model_defaults *const d = model_defaults(m);
    assert_true(d->has_top_k && d->top_k == 7);
    assert_false(d->has_temperature || d->has_top_p || d->has_do_sample);
    assert_null(d->unfollowed[0]);
    model_close(m);
    checkpoint_close(c);
}

/* A multimodal model's config.json says what ends a text beside the text model's sizes. */
static void test_nested_eos(void **state)
{
    (void)state;
    const char *const text = "{\"bos_token_id\": 4, \"eos_token_id\": 1, \"text_config\": "
                             "{\"bos_token_id\": 2, \"eos_token_id\": [6, 8]}}";
    const char *const nested = strstr(text, "\"text_config");
    char config[200];
    struct arena arena = {0};
    struct generation_config found;
    struct err e;
    struct json *j = json_parse(text, strlen(text), &e);
    assert_true(generation_config_read(NULL, j, &arena, &found, &e));
    assert_true(found.n_eos == 1 && found.eos[0] == 1 && found.bos == 4);
    json_free(j);
    snprintf(config, sizeof config, "{%s", nested);
    j = json_parse(config, strlen(config), &e);
    assert_true(generation_config_read(NULL, j, &arena, &found, &e));
    assert_true(found.n_eos == 2 && found.eos[1] == 8 && found.bos == 2);
    json_free(j);
    arena_free(&arena);
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* The first of the logits behind one token. */
static float first_logit(void)
{
    struct err e;
    struct checkpoint *const checkpoint = checkpoint_open(dir, &e);
    struct model *const m = model_open(checkpoint, &e);
    if (!m)
        fail_msg("%s", e.text);
    struct compute *const c = compute_open(1, NULL, &e);
    const struct session_params params = {.n_context = 4, .n_batch = 4, .n_rows = 1};
    struct session *const s = session_new(m, c, &params, &e);
    assert_non_null(s);
    const float *const logits = session_step(s, 1, &e);
    assert_non_null(logits);
    const float first = logits[0];
    session_free(s);
    compute_close(c);
    model_close(m);
    checkpoint_close(checkpoint);
    return first;
}

/* NaN in the weights runs through to the logits and is nobody's error. */
static void test_nan(void **state)
{
    (void)state;
    write_tensors(llama_tensors, N_TENSORS, NAN);
    assert_true(isnan(first_logit()));
}

/* Clipping makes no number of it. */
static void test_clipped_nan(void **state)
{
    (void)state;
    static const struct stored olmo_tensors[] = {
        {"model.embed_tokens.weight", "F32", {VOCAB, HIDDEN}},
        {"model.layers.0.self_attn.q_proj.weight", "F32", {HIDDEN, HIDDEN}},
        {"model.layers.0.self_attn.k_proj.weight", "F32", {HIDDEN / 2, HIDDEN}},
        {"model.layers.0.self_attn.v_proj.weight", "F32", {HIDDEN / 2, HIDDEN}},
        {"model.layers.0.self_attn.o_proj.weight", "F32", {HIDDEN, HIDDEN}},
        {"model.layers.0.mlp.gate_proj.weight", "F32", {FFN, HIDDEN}},
        {"model.layers.0.mlp.up_proj.weight", "F32", {FFN, HIDDEN}},
        {"model.layers.0.mlp.down_proj.weight", "F32", {HIDDEN, FFN}},
        {"lm_head.weight", "F32", {VOCAB, HIDDEN}},
    };
    write_config_with("\"llama\"", "\"olmo\", \"clip_qkv\": 0.5");
    write_tensors_but(olmo_tensors, ARRAY_LEN(olmo_tensors), "v_proj", 0.5f);
    assert_true(isfinite(first_logit()));
    write_tensors_but(olmo_tensors, ARRAY_LEN(olmo_tensors), "v_proj", NAN);
    assert_true(isnan(first_logit()));
}

#define EXPERT(i)                                                                                  \
    {"model.layers.0.block_sparse_moe.experts." i ".w1.weight", "F32", {FFN, HIDDEN}},             \
        {"model.layers.0.block_sparse_moe.experts." i ".w2.weight", "F32", {HIDDEN, FFN}},         \
    {                                                                                              \
        "model.layers.0.block_sparse_moe.experts." i ".w3.weight", "F32",                          \
        {                                                                                          \
            FFN, HIDDEN                                                                            \
        }                                                                                          \
    }

/* The distance of rivals is relative to the best of them, which may be 0. */
static void test_indifferent_router(void **state)
{
    (void)state;
    static const struct stored phimoe_tensors[] = {
        {"model.embed_tokens.weight", "F32", {VOCAB, HIDDEN}},
        {"model.layers.0.input_layernorm.weight", "F32", {HIDDEN, 0}},
        {"model.layers.0.input_layernorm.bias", "F32", {HIDDEN, 0}},
        {"model.layers.0.self_attn.q_proj.weight", "F32", {HIDDEN, HIDDEN}},
        {"model.layers.0.self_attn.k_proj.weight", "F32", {HIDDEN / 2, HIDDEN}},
        {"model.layers.0.self_attn.v_proj.weight", "F32", {HIDDEN / 2, HIDDEN}},
        {"model.layers.0.self_attn.o_proj.weight", "F32", {HIDDEN, HIDDEN}},
        {"model.layers.0.post_attention_layernorm.weight", "F32", {HIDDEN, 0}},
        {"model.layers.0.post_attention_layernorm.bias", "F32", {HIDDEN, 0}},
        {"model.layers.0.block_sparse_moe.gate.weight", "F32", {3, HIDDEN}},
        EXPERT("0"),
        EXPERT("1"),
        EXPERT("2"),
        {"model.norm.weight", "F32", {HIDDEN, 0}},
        {"model.norm.bias", "F32", {HIDDEN, 0}},
        {"lm_head.weight", "F32", {VOCAB, HIDDEN}},
    };
    write_config_with("\"llama\"",
                      "\"phimoe\", \"num_local_experts\": 3, \"num_experts_per_tok\": 2");
    write_tensors_but(phimoe_tensors, ARRAY_LEN(phimoe_tensors), "gate", 0);
    assert_true(isfinite(first_logit()));
}

/* What session_measure announces, and its refusals. */
static void test_context(void **state)
{
    (void)state;
    struct err e;
    struct checkpoint *const checkpoint = checkpoint_open(dir, &e);
    struct model *const m = model_open(checkpoint, &e);
    struct session_params params = {.n_context = 32, .n_batch = 1, .n_rows = 1};
    struct session_bytes bytes;
    assert_true(session_measure(m, &params, &bytes, &e));
    /* heads, positions of a page, dimensions of a key and of a value, the latter in whole vectors
     */
    assert_int_equal(bytes.kv, 2 * SESSION_PAGE * (2 + 16) * sizeof(uint16_t));
    assert_int_equal(bytes.kv_page, bytes.kv);
    params.kv = SESSION_KV_F32;
    assert_true(session_measure(m, &params, &bytes, &e));
    assert_int_equal(bytes.kv, 2 * SESSION_PAGE * (2 + 16) * sizeof(float));
    params.kv = SESSION_KV_Q8;
    assert_true(session_measure(m, &params, &bytes, &e));
    assert_int_equal(bytes.kv, 2 * SESSION_PAGE * (2 + 16 + 2 * sizeof(float)));
    params.n_sequences = 5;
    assert_true(session_measure(m, &params, &bytes, &e));
    assert_int_equal(bytes.kv, 5 * bytes.kv_page);
    params.n_pages = 3;
    assert_true(session_measure(m, &params, &bytes, &e));
    assert_int_equal(bytes.kv, 3 * bytes.kv_page);
    params.n_context = 33;
    assert_false(session_measure(m, &params, &bytes, &e));
    assert_int_equal(e.code, ERR_CONTEXT);
    assert_non_null(strstr(e.text, "33"));
    assert_non_null(strstr(e.text, "32"));
    model_close(m);
    checkpoint_close(checkpoint);
}

int main(void)
{
#define IN_DIR(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        IN_DIR(test_right),
        IN_DIR(test_config_syntax),
        IN_DIR(test_family),
        IN_DIR(test_config_values),
        IN_DIR(test_window_pattern),
        IN_DIR(test_config_extras),
        IN_DIR(test_tensors),
        IN_DIR(test_ignored_tensors),
        IN_DIR(test_tied),
        IN_DIR(test_generation_config),
        cmocka_unit_test(test_nested_eos),
        IN_DIR(test_nan),
        IN_DIR(test_clipped_nan),
        IN_DIR(test_indifferent_router),
        IN_DIR(test_context),
    };
    return cmocka_run_group_tests_name("model", tests, NULL, NULL);
}
