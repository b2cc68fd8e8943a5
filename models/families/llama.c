/*
 * LLaMA (Touvron et al. 2023) and everything that kept its shape: Llama 1 to 3, SmolLM, TinyLlama,
 * Yi, Vicuna. Source: transformers/models/llama/{configuration,modeling}_llama.py.
 */
#include "models/family.h"

const struct tensor_entry family_llama_tensors[] = {
    {ROLE_EMBEDDING, "embed_tokens", LAYOUT_OUT_IN},
    {ROLE_ATTENTION_NORM, "layers.{}.input_layernorm", LAYOUT_OUT_IN},
    {ROLE_QUERY, "layers.{}.self_attn.q_proj", LAYOUT_OUT_IN},
    {ROLE_KEY, "layers.{}.self_attn.k_proj", LAYOUT_OUT_IN},
    {ROLE_VALUE, "layers.{}.self_attn.v_proj", LAYOUT_OUT_IN},
    {ROLE_QUERY_NORM, "layers.{}.self_attn.q_norm", LAYOUT_OUT_IN},
    {ROLE_KEY_NORM, "layers.{}.self_attn.k_norm", LAYOUT_OUT_IN},
    {ROLE_ATTENTION_OUT, "layers.{}.self_attn.o_proj", LAYOUT_OUT_IN},
    {ROLE_FFN_NORM, "layers.{}.post_attention_layernorm", LAYOUT_OUT_IN},
    {ROLE_GATE, "layers.{}.mlp.gate_proj", LAYOUT_OUT_IN},
    {ROLE_UP, "layers.{}.mlp.up_proj", LAYOUT_OUT_IN},
    {ROLE_DOWN, "layers.{}.mlp.down_proj", LAYOUT_OUT_IN},
    {ROLE_FINAL_NORM, "norm", LAYOUT_OUT_IN},
    {ROLE_HEAD, "lm_head", LAYOUT_OUT_IN},
    {0},
};

const char *const family_llama_ignored[] = {
    "layers.{}.self_attn.rotary_emb.inv_freq", /* a buffer of transformers before 4.32 */
    NULL,
};

void family_llama_base(struct config *c, struct model_spec *spec)
{
    spec->vocab_size = config_size(c, "vocab_size", CONFIG_MAX_SIZE);
    spec->hidden_size = config_size(c, "hidden_size", CONFIG_MAX_SIZE);
    spec->num_hidden_layers = config_size(c, "num_hidden_layers", CONFIG_MAX_LAYERS);
    spec->max_position_embeddings =
        config_size_or(c, "max_position_embeddings", CONFIG_MAX_SIZE, 2048);
    spec->tie_word_embeddings = config_bool_or(c, "tie_word_embeddings", false);
    spec->norm_eps = (float)config_positive_or(c, "rms_norm_eps", 1e-6);
    config_heads(c, spec, "num_attention_heads");
    spec->ropes[0] = config_rope(c, spec, (struct rope_defaults){.theta = 10000, .partial = 1});
    spec->hidden_act = config_act_or(c, "hidden_act", ACT_SILU);
    spec->intermediate_size = config_size(c, "intermediate_size", CONFIG_MAX_SIZE);
    config_layers(c, spec);
}

static void configure(struct config *c, struct model_spec *spec)
{
    family_llama_base(c, spec);
    spec->biases = config_roles(c, "attention_bias", ROLES_ATTENTION, false) |
                   config_roles(c, "mlp_bias", ROLES_FFN, false);
}

const struct family family_llama = {
    .model_type = "llama",
    .configure = configure,
    .prefix = "model.",
    .tensors = family_llama_tensors,
    .ignored = family_llama_ignored,
};
