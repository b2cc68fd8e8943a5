/*
 * SantaCoder and StarCoder (BigCode 2023): gpt2 with ordinary matrices and one key and value head
 * for all queries. Source: transformers/models/gpt_bigcode/{configuration,modeling}_gpt_bigcode.py.
 */
#include "models/family.h"

static const struct tensor_entry tensors[] = {
    {ROLE_EMBEDDING, "wte"},
    {ROLE_POSITIONS, "wpe"},
    {ROLE_ATTENTION_NORM, "h.{}.ln_1"},
    {ROLE_QUERY, "h.{}.attn.c_attn"},
    {ROLE_KEY, "h.{}.attn.c_attn"},
    {ROLE_VALUE, "h.{}.attn.c_attn"},
    {ROLE_ATTENTION_OUT, "h.{}.attn.c_proj"},
    {ROLE_FFN_NORM, "h.{}.ln_2"},
    {ROLE_UP, "h.{}.mlp.c_fc"},
    {ROLE_DOWN, "h.{}.mlp.c_proj"},
    {ROLE_FINAL_NORM, "ln_f"},
    {ROLE_HEAD, "lm_head"},
    {0},
};

static void configure(struct config *c, struct model_spec *spec)
{
    static const char *const notes[] = {"attention_softmax_in_fp32",
                                        "scale_attention_softmax_in_fp32",
                                        "inference_runner",
                                        "validate_runner_input",
                                        "pre_allocate_kv_cache",
                                        "max_sequence_length",
                                        "max_batch_size",
                                        "pad_key_length",
                                        NULL};
    family_gpt2_base(c, spec);
    config_skip(c, notes);
    config_require_bool(c, "scale_attn_weights", true);
    spec->hidden_act = config_act_or(c, "activation_function", ACT_GELU_TANH);
    const bool multi_query = config_bool_or(c, "multi_query", true);
    spec->num_key_value_heads = multi_query ? 1 : spec->num_attention_heads;
    if (!multi_query)
        spec->qkv_groups = spec->num_attention_heads; /* each head has its q, k and v together */
}

const struct family family_gpt_bigcode = {
    .model_type = "gpt_bigcode",
    .configure = configure,
    .prefix = "transformer.",
    .tensors = tensors,
    .ignored = family_gpt2_ignored,
};
