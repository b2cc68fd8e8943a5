/*
 * Keys of config.json as released checkpoints have them: all are known, the values that matter
 * arrive, and what a class of transformers fills in is filled in. The texts are the makers' files
 * but for keys that are inert in every family; the miniatures of tests/golden hold fewer.
 */
#include "tests/check.h"

#include "models/family.h"

struct found {
    struct arena arena;
    struct err e;
    struct model_spec spec;
    bool good;
};

static void read_config(const char *text, struct found *f)
{
    struct config c;
    *f = (struct found){.good = false};
    struct json *const root = json_parse(text, strlen(text), &f->e);
    if (!root)
        fail_msg("%s: %s", f->e.text, text);
    f->good = config_init(&c, root, &f->arena, &f->e);
    if (!f->good) {
        json_free(root);
        return;
    }
    const struct family *const family = family_find(json_text(json_get(c.root, "model_type"), ""));
    assert_non_null(family);
    if (family_configure(family, &c, &f->spec))
        config_check_unread(&c, family->model_type);
    f->good = !c.failed;
    json_free(root);
}

static const char *const released[] = {
    /* SmolLM2-135M */
    FAMILY_JSON({
        "model_type" : "llama",
        "architectures" : ["LlamaForCausalLM"],
        "attention_bias" : false,
        "hidden_act" : "silu",
        "hidden_size" : 576,
        "intermediate_size" : 1536,
        "is_llama_config" : true,
        "max_position_embeddings" : 8192,
        "mlp_bias" : false,
        "num_attention_heads" : 9,
        "num_hidden_layers" : 30,
        "num_key_value_heads" : 3,
        "pretraining_tp" : 1,
        "rms_norm_eps" : 1e-05,
        "rope_interleaved" : false,
        "rope_scaling" : null,
        "rope_theta" : 100000,
        "tie_word_embeddings" : true,
        "vocab_size" : 49152
    }),
    /* Falcon3-1B */
    FAMILY_JSON({
        "model_type" : "llama",
        "activation" : "swiglu",
        "head_dim" : 256,
        "hidden_act" : "silu",
        "hidden_size" : 2048,
        "intermediate_size" : 8192,
        "max_position_embeddings" : 4096,
        "num_attention_heads" : 8,
        "num_hidden_layers" : 18,
        "num_key_value_heads" : 4,
        "rms_norm_eps" : 1e-06,
        "rope_theta" : 1000042,
        "vocab_size" : 131072
    }),
    /* distilgpt2, and what gpt2-medium has besides */
    FAMILY_JSON({
        "model_type" : "gpt2",
        "_num_labels" : 1,
        "activation_function" : "gelu_new",
        "attn_pdrop" : 0.1,
        "bos_token_id" : 50256,
        "embd_pdrop" : 0.1,
        "id2label" : {"0" : "LABEL_0"},
        "label2id" : {"LABEL_0" : 0},
        "layer_norm_epsilon" : 1e-05,
        "n_ctx" : 1024,
        "n_embd" : 768,
        "n_head" : 12,
        "n_layer" : 6,
        "n_positions" : 1024,
        "n_special" : 0,
        "predict_special_tokens" : true,
        "resid_pdrop" : 0.1,
        "summary_first_dropout" : 0.1,
        "summary_proj_to_labels" : true,
        "summary_type" : "cls_index",
        "task_specific_params" : {"text-generation" : {"do_sample" : true, "max_length" : 50}},
        "vocab_size" : 50257
    }),
    /* Phi-4-mini, without its lists of factors */
    FAMILY_JSON({
        "model_type" : "phi3",
        "attention_bias" : false,
        "embd_pdrop" : 0.0,
        "full_attn_mod" : 1,
        "hidden_act" : "silu",
        "hidden_size" : 3072,
        "intermediate_size" : 8192,
        "interpolate_factor" : 1,
        "lm_head_bias" : false,
        "max_position_embeddings" : 131072,
        "mlp_bias" : false,
        "num_attention_heads" : 24,
        "num_hidden_layers" : 32,
        "num_key_value_heads" : 8,
        "original_max_position_embeddings" : 4096,
        "partial_rotary_factor" : 0.75,
        "rms_norm_eps" : 1e-05,
        "rope_theta" : 10000.0,
        "sliding_window" : 262144,
        "tie_word_embeddings" : true,
        "vocab_size" : 200064
    }),
    /* Gemma 2 9B */
    FAMILY_JSON({
        "model_type" : "gemma2",
        "attention_bias" : false,
        "attn_logit_softcapping" : 50.0,
        "cache_implementation" : "hybrid",
        "final_logit_softcapping" : 30.0,
        "head_dim" : 256,
        "hidden_act" : "gelu_pytorch_tanh",
        "hidden_activation" : "gelu_pytorch_tanh",
        "hidden_size" : 3584,
        "intermediate_size" : 14336,
        "max_position_embeddings" : 8192,
        "num_attention_heads" : 16,
        "num_hidden_layers" : 42,
        "num_key_value_heads" : 8,
        "query_pre_attn_scalar" : 256,
        "rms_norm_eps" : 1e-06,
        "rope_theta" : 10000.0,
        "sliding_window" : 4096,
        "sliding_window_size" : 4096,
        "vocab_size" : 256000
    }),
    /* Qwen3-Coder-30B-A3B */
    FAMILY_JSON({
        "model_type" : "qwen3_moe",
        "attention_bias" : false,
        "decoder_sparse_step" : 1,
        "head_dim" : 128,
        "hidden_act" : "silu",
        "hidden_size" : 2048,
        "intermediate_size" : 5472,
        "max_position_embeddings" : 262144,
        "max_window_layers" : 28,
        "mlp_only_layers" : [],
        "moe_intermediate_size" : 768,
        "norm_topk_prob" : true,
        "num_attention_heads" : 32,
        "num_experts" : 128,
        "num_experts_per_tok" : 8,
        "num_hidden_layers" : 48,
        "num_key_value_heads" : 4,
        "output_router_logits" : false,
        "qkv_bias" : false,
        "rms_norm_eps" : 1e-06,
        "rope_scaling" : null,
        "rope_theta" : 10000000,
        "router_aux_loss_coef" : 0.0,
        "shared_expert_intermediate_size" : 0,
        "sliding_window" : null,
        "use_qk_norm" : true,
        "use_sliding_window" : false,
        "vocab_size" : 151936
    }),
    /* Qwen2.5-7B-Instruct-1M */
    FAMILY_JSON({
        "model_type" : "qwen2",
        "dual_chunk_attention_config" : {
            "chunk_size" : 262144,
            "local_size" : 8192,
            "original_max_position_embeddings" : 262144
        },
        "hidden_act" : "silu",
        "hidden_size" : 3584,
        "intermediate_size" : 18944,
        "max_position_embeddings" : 1010000,
        "max_window_layers" : 28,
        "num_attention_heads" : 28,
        "num_hidden_layers" : 28,
        "num_key_value_heads" : 4,
        "rms_norm_eps" : 1e-05,
        "rope_theta" : 10000000.0,
        "sliding_window" : 32768,
        "use_sliding_window" : false,
        "vocab_size" : 152064
    }),
    /* Qwen2-0.5B, with what its modelling file asks nobody */
    FAMILY_JSON({
        "model_type" : "qwen2",
        "attention_bias" : true,
        "hidden_act" : "silu",
        "hidden_size" : 896,
        "intermediate_size" : 4864,
        "max_position_embeddings" : 131072,
        "max_window_layers" : 24,
        "num_attention_heads" : 14,
        "num_hidden_layers" : 24,
        "num_key_value_heads" : 2,
        "rms_norm_eps" : 1e-06,
        "rope_theta" : 1000000.0,
        "sliding_window" : 131072,
        "tie_word_embeddings" : true,
        "use_sliding_window" : false,
        "vocab_size" : 151936
    }),
    /* MPT-7B */
    FAMILY_JSON({
        "model_type" : "mpt",
        "attn_config" : {
            "alibi" : true,
            "alibi_bias_max" : 8,
            "attn_impl" : "torch",
            "attn_pdrop" : 0,
            "attn_type" : "multihead_attention",
            "attn_uses_sequence_id" : false,
            "clip_qkv" : null,
            "prefix_lm" : false,
            "qk_ln" : false,
            "softmax_scale" : null
        },
        "d_model" : 4096,
        "emb_pdrop" : 0,
        "embedding_fraction" : 1.0,
        "expansion_ratio" : 4,
        "init_config" : {"name" : "kaiming_normal_"},
        "init_device" : "cpu",
        "layer_norm_epsilon" : 1e-05,
        "learned_pos_emb" : true,
        "logit_scale" : null,
        "max_seq_len" : 2048,
        "n_heads" : 32,
        "n_layers" : 32,
        "no_bias" : true,
        "norm_type" : "low_precision_layernorm",
        "resid_pdrop" : 0,
        "tokenizer_name" : "EleutherAI/gpt-neox-20b",
        "use_cache" : false,
        "verbose" : 0,
        "vocab_size" : 50432
    }),
    /* Falcon RW 1B, saved again */
    FAMILY_JSON({
        "model_type" : "falcon",
        "alibi" : true,
        "apply_residual_connection_post_layernorm" : false,
        "bias" : true,
        "ffn_hidden_size" : 8192,
        "hidden_size" : 2048,
        "layer_norm_epsilon" : 1e-05,
        "max_position_embeddings" : 2048,
        "multi_query" : false,
        "new_decoder_architecture" : false,
        "num_attention_heads" : 32,
        "num_hidden_layers" : 24,
        "num_kv_heads" : 32,
        "parallel_attn" : false,
        "rope_scaling" : null,
        "rope_theta" : 10000.0,
        "vocab_size" : 50304
    }),
    /* OPT-13B and Galactica's key */
    FAMILY_JSON({
        "model_type" : "opt",
        "_remove_final_layer_norm" : false,
        "activation_function" : "relu",
        "do_layer_norm_before" : true,
        "dropout" : 0.1,
        "ffn_dim" : 20480,
        "hidden_size" : 5120,
        "init_std" : 0.02,
        "layerdrop" : 0.0,
        "learned_embeddings" : true,
        "max_position_embeddings" : 2048,
        "num_attention_heads" : 40,
        "num_hidden_layers" : 40,
        "output_projection" : true,
        "prefix" : "</s>",
        "vocab_size" : 50272,
        "word_embed_proj_dim" : 5120
    }),
    /* Hunyuan-MT-7B */
    FAMILY_JSON({
        "model_type" : "hunyuan_v1_dense",
        "add_classification_head" : false,
        "attention_bias" : false,
        "attention_head_dim" : 128,
        "cla_share_factor" : 2,
        "class_num" : 0,
        "dense_list" : [ 4096, 0 ],
        "eod_token_id" : 127967,
        "head_dim" : 128,
        "hidden_act" : "silu",
        "hidden_size" : 4096,
        "im_end_id" : 6,
        "im_newline_id" : 12,
        "im_start_id" : 5,
        "intermediate_size" : 14336,
        "mask_init_id" : 13,
        "max_position_embeddings" : 32768,
        "mlp_bias" : false,
        "norm_type" : "rms",
        "num_attention_heads" : 32,
        "num_hidden_layers" : 32,
        "num_key_value_heads" : 8,
        "org_vocab_size" : 128256,
        "pad_id" : 127961,
        "pool_type" : "last",
        "rms_norm_eps" : 1e-05,
        "rope_scaling" : {
            "alpha" : 1000.0,
            "beta_fast" : 32,
            "beta_slow" : 1,
            "factor" : 1.0,
            "mscale" : 1.0,
            "mscale_all_dim" : 0.0,
            "type" : "dynamic"
        },
        "rope_theta" : 10000.0,
        "text_end_id" : 8,
        "text_start_id" : 7,
        "tie_word_embeddings" : true,
        "use_cla" : false,
        "use_qk_norm" : true,
        "use_rotary_pos_emb" : true,
        "vocab_size" : 128256
    }),
    /* StarCoder2-7B */
    FAMILY_JSON({
        "model_type" : "starcoder2",
        "activation_function" : "gelu_pytorch_tanh",
        "attention_softmax_in_fp32" : true,
        "hidden_act" : "gelu_pytorch_tanh",
        "hidden_size" : 4608,
        "intermediate_size" : 18432,
        "layer_norm_epsilon" : 1e-05,
        "max_position_embeddings" : 16384,
        "mlp_type" : "default",
        "norm_epsilon" : 1e-05,
        "norm_type" : "layer_norm",
        "num_attention_heads" : 36,
        "num_hidden_layers" : 32,
        "num_key_value_heads" : 4,
        "rope_theta" : 1000000,
        "scale_attention_softmax_in_fp32" : true,
        "scale_attn_weights" : true,
        "sliding_window" : 4096,
        "use_bias" : true,
        "vocab_size" : 49152
    }),
    /* SmolVLM2-500M, and what SmolVLM-256M has besides */
    FAMILY_JSON({
        "model_type" : "smolvlm",
        "scale_factor" : 4,
        "text_config" : {
            "model_type" : "llama",
            "head_dim" : 64,
            "hidden_size" : 960,
            "intermediate_size" : 2560,
            "is_llama_config" : true,
            "max_position_embeddings" : 8192,
            "neftune_noise_alpha" : 0.0,
            "num_attention_heads" : 15,
            "num_hidden_layers" : 32,
            "num_key_value_heads" : 5,
            "perceiver_config" : {"resampler_depth" : 6},
            "pixel_shuffle_factor" : 4,
            "qk_layer_norms" : false,
            "rms_norm_eps" : 1e-05,
            "rope_interleaved" : false,
            "rope_theta" : 100000,
            "transformers.js_config" : {"kv_cache_dtype" : {"fp16" : "float16"}},
            "use_resampler" : false,
            "vocab_size" : 49280
        },
        "tie_word_embeddings" : false
    }),
    /* DeepSeek-R1-0528-Qwen3-8B */
    FAMILY_JSON({
        "model_type" : "qwen3",
        "attention_bias" : false,
        "head_dim" : 128,
        "hidden_act" : "silu",
        "hidden_size" : 4096,
        "intermediate_size" : 12288,
        "max_position_embeddings" : 131072,
        "max_window_layers" : 36,
        "num_attention_heads" : 32,
        "num_hidden_layers" : 36,
        "num_key_value_heads" : 8,
        "rms_norm_eps" : 1e-06,
        "rope_scaling" : {
            "attn_factor" : 0.8782488562869419,
            "factor" : 4.0,
            "original_max_position_embeddings" : 32768,
            "rope_type" : "yarn"
        },
        "rope_theta" : 1000000,
        "sliding_window" : null,
        "tie_word_embeddings" : false,
        "use_sliding_window" : false,
        "vocab_size" : 151936
    }),
    /* Polyglot-Ko 1.3B */
    FAMILY_JSON({
        "model_type" : "gpt_neox",
        "hidden_act" : "gelu",
        "hidden_size" : 2048,
        "intermediate_size" : 8192,
        "layer_norm_eps" : 1e-05,
        "max_position_embeddings" : 2048,
        "num_attention_heads" : 16,
        "num_hidden_layers" : 24,
        "num_steps" : "global_step320000",
        "rotary_emb_base" : 10000,
        "rotary_pct" : 0.5,
        "use_parallel_residual" : true,
        "vocab_size" : 30080
    }),
};

static void test_released(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(released); i++) {
        struct found f;
        read_config(released[i], &f);
        if (!f.good)
            fail_msg("%s: %s", f.e.text, released[i]);
        arena_free(&f.arena);
    }
}

#define SIZES                                                                                      \
    "\"vocab_size\": 8, \"hidden_size\": 64, \"num_hidden_layers\": 6, \"num_attention_heads\": "  \
    "8,"                                                                                           \
    "\"intermediate_size\": 8, "

/* Values that say something else than what is computed. */
static void test_refused(void **state)
{
    (void)state;
#define LLAMA                                                                                      \
    "{\"model_type\": \"llama\", \"vocab_size\": 8, \"hidden_size\": 8, \"num_hidden_layers\": 1," \
    "\"num_attention_heads\": 2, \"intermediate_size\": 8, "
    static const char *const texts[][2] = {
        {LLAMA "\"rope_interleaved\": true}", "rope_interleaved"},
        {LLAMA "\"activation\": \"gelu\"}", "activation"},
        {LLAMA "\"no_such_key\": 1}", "no_such_key"},
        {LLAMA "\"rope_scaling\": {\"type\": \"linear\", \"factor\": 2, \"factor\": 3}}",
         "\"factor\" stands there twice"},
        {"{\"model_type\": \"mpt\", \"d_model\": 8, \"n_heads\": 2, \"n_layers\": 1, "
         "\"vocab_size\": 8, \"attn_config\": {\"rope\": true}}",
         "\"rope\" is not supported"},
        {"{\"model_type\": \"mpt\", \"d_model\": 8, \"n_heads\": 2, \"n_layers\": 1, "
         "\"vocab_size\": 8, \"attn_config\": {\"attn_type\": \"multiquery_attention\"}}",
         "all heads"},
        {"{\"text_config\": " LLAMA "\"rms_norm_eps\": 1e-5}, \"text_config\": " LLAMA
         "\"rms_norm_eps\": 1e-6}}",
         "\"text_config\" stands there twice"},
        {LLAMA "\"activation\": 5}", "activation"},
        {LLAMA "\"rope_scaling\": [1]}", "\"rope_scaling\" must be an object, not an array"},
        {"{\"model_type\": \"gemma3_text\", " SIZES "\"rope_parameters\": "
         "{\"full_attention\": {}, \"sliding_attention\": [1]}}",
         "\"rope_parameters\" must be an object"},
        {"{\"model_type\": \"gemma3_text\", " SIZES "\"rope_parameters\": "
         "{\"full_attention\": [1]}}",
         "\"rope_parameters\" must be an object"},
        {"{\"model_type\": \"roberta\", " SIZES "\"is_decoder\": true, \"hidden_act\": \"relu\"}",
         "\"hidden_act\" other than \"gelu\""},
        {"{\"model_type\": \"gemma\", " SIZES "\"hidden_act\": \"silu\"}",
         "\"hidden_act\": \"silu\""},
        {"{\"model_type\": \"deepseek_v3\", " SIZES "\"n_routed_experts\": 4, "
         "\"num_experts_per_tok\": 3, \"moe_intermediate_size\": 8, \"n_group\": 2, "
         "\"topk_group\": 1, \"kv_lora_rank\": 8, \"qk_nope_head_dim\": 8, "
         "\"qk_rope_head_dim\": 8, \"v_head_dim\": 8}",
         "do not fit 4 experts"},
        {"{\"model_type\": \"granitemoe\", " SIZES "\"num_local_experts\": 4, "
         "\"num_experts_per_tok\": 2, \"position_embedding_type\": \"nope\"}",
         "\"position_embedding_type\": \"nope\""},
        {"{\"model_type\": \"llama\", \"vocab_size\": 8}", "\"hidden_size\" is missing"},
        {"{\"model_type\": \"apertus\", \"vocab_size\": 8, \"hidden_size\": 8, "
         "\"num_hidden_layers\": 1, \"num_attention_heads\": 2, \"intermediate_size\": 8}",
         "\"rope_parameters\" is missing"},
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct found f;
        read_config(texts[i][0], &f);
        if (f.good || !strstr(f.e.text, texts[i][1]))
            fail_msg("%s: %s", texts[i][0], f.good ? "taken" : f.e.text);
        arena_free(&f.arena);
    }
}

/* The official files of Gemma 3 4B, whose text_config says only what differs from Gemma3TextConfig,
 * and of LLaVA 1.5 7B. */
static void test_sparse(void **state)
{
    (void)state;
    struct found f;
    read_config(FAMILY_JSON({
                    "model_type" : "gemma3",
                    "text_config" : {
                        "hidden_size" : 2560,
                        "intermediate_size" : 10240,
                        "model_type" : "gemma3_text",
                        "num_hidden_layers" : 34,
                        "rope_scaling" : {"factor" : 8.0, "rope_type" : "linear"},
                        "sliding_window" : 1024
                    }
                }),
                &f);
    assert_true(f.good);
    assert_int_equal(f.spec.vocab_size, 262208);
    assert_int_equal(f.spec.num_attention_heads, 8);
    assert_int_equal(f.spec.num_key_value_heads, 4);
    assert_int_equal(f.spec.head_dim, 256);
    assert_int_equal(f.spec.max_position_embeddings, 131072);
    assert_true(f.spec.tie_word_embeddings);
    assert_true(f.spec.layers[4].window == 1024 && f.spec.layers[5].window == 0);
    assert_true(f.spec.ropes[0].theta == 1e6 && f.spec.ropes[0].factor == 8);
    assert_true(f.spec.ropes[1].theta == 1e4 && f.spec.ropes[1].type == ROPE_DEFAULT);
    arena_free(&f.arena);

    read_config(FAMILY_JSON({
                    "model_type" : "llava",
                    "text_config" : {
                        "max_position_embeddings" : 4096,
                        "model_type" : "llama",
                        "rms_norm_eps" : 1e-05,
                        "vocab_size" : 32064
                    }
                }),
                &f);
    assert_true(f.good);
    assert_int_equal(f.spec.hidden_size, 4096);
    assert_int_equal(f.spec.intermediate_size, 11008);
    assert_int_equal(f.spec.num_hidden_layers, 32);
    assert_int_equal(f.spec.num_key_value_heads, 32);
    arena_free(&f.arena);
}

/* Gemma 3 with an object of positions for each kind of layer: the one with windows has a base of
 * its own, and rope_theta is not it. */
static void test_local_base(void **state)
{
    (void)state;
    struct found f;
    read_config("{\"model_type\": \"gemma3_text\", " SIZES "\"rope_theta\": 1000000, "
                "\"_sliding_window_pattern\": 3, \"rope_parameters\": {\"full_attention\": "
                "{\"rope_type\": \"linear\", \"factor\": 8}, \"sliding_attention\": "
                "{\"rope_type\": \"default\"}}}",
                &f);
    assert_true(f.good);
    assert_true(f.spec.ropes[0].theta == 1e6 && f.spec.ropes[1].theta == 1e4);
    assert_true(f.spec.layers[1].window == 4096 && f.spec.layers[2].window == 0);
    arena_free(&f.arena);
}

/* gpt-oss as transformers 5 saves it, and with another gain, which nothing here has. */
static void test_swiglu_alpha(void **state)
{
    (void)state;
    struct found f;
#define GPT_OSS                                                                                    \
    "{\"model_type\": \"gpt_oss\", " SIZES "\"num_local_experts\": 4, "                            \
    "\"num_experts_per_tok\": 2, \"rope_parameters\": {\"rope_type\": \"default\"}, "
    read_config(GPT_OSS "\"swiglu_alpha\": 1.702, \"swiglu_limit\": 7.0}", &f);
    assert_true(f.good && f.spec.ropes[0].theta == 150000);
    arena_free(&f.arena);
    read_config(GPT_OSS "\"swiglu_alpha\": 1.5}", &f);
    assert_false(f.good);
    assert_non_null(strstr(f.e.text, "swiglu_alpha"));
    arena_free(&f.arena);
}

/* Files as transformers 4.57 and 5 save them, which hold keys that the makers' files do not. */
static void test_saved(void **state)
{
    (void)state;
    struct found f;
#define QWEN_MOE                                                                                   \
    SIZES "\"num_experts_per_tok\": 2, \"moe_intermediate_size\": 8, "                             \
          "\"shared_expert_intermediate_size\": 8, \"max_window_layers\": 1, "
    read_config("{\"model_type\": \"qwen2_moe\", " QWEN_MOE
                "\"num_experts\": 4, \"use_sliding_window\": false, \"sliding_window\": 0}",
                &f);
    assert_true(f.good && f.spec.layers[2].window == 0);
    arena_free(&f.arena);
    read_config("{\"model_type\": \"qwen3_moe\", " SIZES
                "\"num_experts_per_tok\": 2, \"moe_intermediate_size\": 8, "
                "\"num_local_experts\": 4, \"max_window_layers\": 1, "
                "\"use_sliding_window\": true, \"sliding_window\": 8}",
                &f);
    assert_true(f.good && f.spec.moe.num_experts == 4);
    assert_true(f.spec.layers[0].window == 8 && f.spec.layers[2].window == 8);
    arena_free(&f.arena);
    read_config("{\"model_type\": \"granitemoe\", " SIZES
                "\"num_local_experts\": 4, \"num_experts_per_tok\": 2, "
                "\"position_embedding_type\": \"rope\"}",
                &f);
    assert_true(f.good);
    arena_free(&f.arena);
    read_config("{\"model_type\": \"olmo3\", " SIZES
                "\"rope_parameters\": {\"full_attention\": {\"rope_type\": \"linear\", "
                "\"factor\": 4.0, \"rope_theta\": 1000000}, \"rope_theta\": null, "
                "\"rope_type\": \"default\", "
                "\"sliding_attention\": {\"rope_type\": \"default\", \"rope_theta\": 500000}}}",
                &f);
    assert_true(f.good);
    assert_true(f.spec.ropes[0].theta == 1e6 && f.spec.ropes[0].type == ROPE_LINEAR);
    assert_true(f.spec.ropes[1].theta == 5e5 && f.spec.ropes[1].type == ROPE_DEFAULT);
    arena_free(&f.arena);
}

/* Which layers have windows, as each class of transformers 5 says. */
static void test_windows(void **state)
{
    (void)state;
#define GPT_NEO                                                                                    \
    "{\"model_type\": \"gpt_neo\", \"vocab_size\": 8, \"hidden_size\": 64, \"num_layers\": 6, "    \
    "\"num_heads\": 8, \"window_size\": 4"
#define OF(type) "{" SIZES "\"model_type\": \"" type "\", \"sliding_window\": 4, "
#define GLOBAL_4 "[[\"global\"], 4], "
#define FULL     "\"full_attention\""
    static const struct {
        const char *config, *windows; /* x: one of 4; "" for what is refused */
    } cases[] = {
        {GPT_NEO "}", "-x-x-x"},
        {GPT_NEO ", \"attention_types\": [[[\"global\", \"local\"], 3]]}", "-x-x-x"},
        {GPT_NEO ", \"attention_types\": [" GLOBAL_4 "[[\"local\", \"global\"], 1]]}", "----x-"},
        {GPT_NEO ", \"attention_types\": [" GLOBAL_4 "[[\"local\"], 1]]}", ""},
        {GPT_NEO ", \"attention_types\": [" GLOBAL_4 "[[\"local\"], 9]]}", ""},
        {GPT_NEO ", \"attention_types\": [" GLOBAL_4 "[[\"local\"]]]}", ""},
        {GPT_NEO ", \"attention_types\": [" GLOBAL_4 "[[], 1000]]}", ""},
        {GPT_NEO ", \"attention_layers\": [\"local\"]}", ""},
        {OF("smollm3") "\"use_sliding_window\": true}", "---x--"},
        {OF("smollm3") "\"use_sliding_window\": true, \"layer_types\": [" FULL ", " FULL
                       ", \"sliding_attention\", " FULL ", " FULL ", " FULL "]}",
         "--x---"},
        {OF("qwen2_moe") "\"use_sliding_window\": true, \"max_window_layers\": 3, "
                         "\"num_experts\": 4, \"num_experts_per_tok\": 2, "
                         "\"moe_intermediate_size\": 8, \"shared_expert_intermediate_size\": 8}",
         "x-x---"},
        {OF("ministral") "\"layer_types\": [" FULL ", \"sliding_attention\", " FULL ", " FULL
                         ", " FULL ", " FULL "]}",
         "-x----"},
        {OF("exaone4") "\"sliding_window_pattern\": \"LLLG\"}", "xxx-xx"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct found f;
        char windows[8] = "";
        read_config(cases[i].config, &f);
        for (int layer = 0; f.good && layer < 6; layer++)
            windows[layer] = f.spec.layers[layer].window == 4 ? 'x' : '-';
        if (strcmp(windows, cases[i].windows) != 0)
            fail_msg("\"%s\": %s (%s)", windows, cases[i].config, f.e.text);
        arena_free(&f.arena);
    }
}

/* Gemma's factor, in the precision of the weights: numpy's float16 and its bits for bfloat16. */
static void test_embedding_scale(void **state)
{
    (void)state;
    static const struct {
        const char *type;
        float scale; /* of sqrt(3072) = 55.42562 */
    } cases[] = {{"float32", 55.42562584220407f}, {"float16", 55.4375f}, {"bfloat16", 55.5f}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct found f;
        char text[256];
        snprintf(text, sizeof text,
                 "{\"model_type\": \"gemma\", \"vocab_size\": 8, \"hidden_size\": 3072, "
                 "\"num_hidden_layers\": 1, \"num_attention_heads\": 16, "
                 "\"intermediate_size\": 8, \"torch_dtype\": \"%s\"}",
                 cases[i].type);
        read_config(text, &f);
        assert_true(f.good && f.spec.embedding_scale == cases[i].scale);
        arena_free(&f.arena);
    }
}

/* What stretches positions in the layers that see everything leaves those with a window alone. */
static void test_local_factor(void **state)
{
    (void)state;
    static const char *const families[] = {"gemma3_text", "olmo3"};
    for (size_t i = 0; i < ARRAY_LEN(families); i++) {
        char text[400];
        struct found f;
        snprintf(text, sizeof text,
                 "{\"model_type\": \"%s\", " SIZES "\"rope_scaling\": {\"rope_type\": \"yarn\", "
                 "\"factor\": 4, \"attention_factor\": 1.5}}",
                 families[i]);
        read_config(text, &f);
        assert_true(f.good && f.spec.ropes[0].attention_factor == 1.5);
        assert_true(f.spec.ropes[1].attention_factor == 1);
        arena_free(&f.arena);
    }
}

/* The activations that openai-gpt has a key of its own for. */
static void test_afn(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum act act;
    } cases[] = {{"", ACT_GELU_TANH},
                 {"\"afn\": \"gelu\", ", ACT_GELU_TANH},
                 {"\"afn\": \"relu\", ", ACT_RELU},
                 {"\"afn\": \"swish\", ", ACT_SILU}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[200];
        struct found f;
        snprintf(text, sizeof text,
                 "{\"model_type\": \"openai-gpt\", %s\"vocab_size\": 8, \"n_embd\": 8, "
                 "\"n_layer\": 1, \"n_head\": 2, \"n_positions\": 8}",
                 cases[i].text);
        read_config(text, &f);
        assert_true(f.good && f.spec.hidden_act == cases[i].act);
        arena_free(&f.arena);
    }
}

/* What the classes fill in: transformers/models/X/configuration_X.py. */
static void test_class_defaults(void **state)
{
    (void)state;
    struct found f;
    read_config("{\"model_type\": \"arcee\", " SIZES "\"rope_theta\": 10000}", &f);
    assert_true(f.good && f.spec.hidden_act == ACT_RELU2 && f.spec.norm_eps == 1e-5f);
    arena_free(&f.arena);
    read_config("{\"model_type\": \"mixtral\", " SIZES "\"num_local_experts\": 8, "
                "\"num_experts_per_tok\": 2}",
                &f);
    assert_true(f.good && f.spec.ropes[0].theta == 1e6 && f.spec.num_key_value_heads == 8);
    arena_free(&f.arena);
    static const char *const glm[] = {"glm", "glm4"};
    for (size_t i = 0; i < ARRAY_LEN(glm); i++) {
        char text[200];
        snprintf(text, sizeof text, "{\"model_type\": \"%s\", " SIZES "\"rope_theta\": 10000}",
                 glm[i]);
        read_config(text, &f);
        assert_true(f.good && f.spec.num_key_value_heads == 2 && f.spec.head_dim == 128);
        assert_true(f.spec.biases & ROLE_BIT(ROLE_QUERY));
        arena_free(&f.arena);
    }
    read_config("{\"model_type\": \"starcoder2\", " SIZES "\"rope_theta\": 10000}", &f);
    assert_true(f.good && f.spec.num_key_value_heads == 2);
    arena_free(&f.arena);
    read_config("{\"model_type\": \"exaone4\", " SIZES "\"sliding_window\": null}", &f);
    assert_true(f.good && f.spec.layers[0].window == 0);
    arena_free(&f.arena);
    read_config("{\"model_type\": \"exaone4\", " SIZES "\"rope_theta\": 10000}", &f);
    assert_true(f.good && f.spec.layers[0].window == 4096 && f.spec.layers[3].window == 0);
    arena_free(&f.arena);
    read_config("{\"model_type\": \"cohere\", " SIZES "\"max_position_embeddings\": 8192, "
                "\"model_max_length\": 131072}",
                &f);
    assert_true(f.good && f.spec.max_position_embeddings == 131072);
    arena_free(&f.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_released),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_sparse),
        cmocka_unit_test(test_local_base),
        cmocka_unit_test(test_class_defaults),
        cmocka_unit_test(test_swiglu_alpha),
        cmocka_unit_test(test_saved),
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_embedding_scale),
        cmocka_unit_test(test_local_factor),
        cmocka_unit_test(test_afn),
    };
    return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}
