/*
 * CodeGen (Nijkamp et al. 2022): gptj with queries, values and keys fused in four groups, in this
 * order, as the original was cut over four processors. Source:
 * transformers/models/codegen/{configuration,modeling}_codegen.py.
 */
#include "models/family.h"

static const struct tensor_entry tensors[] = {
    {ROLE_EMBEDDING, "wte"},
    {ROLE_ATTENTION_NORM, "h.{}.ln_1"},
    {ROLE_QUERY, "h.{}.attn.qkv_proj"},
    {ROLE_VALUE, "h.{}.attn.qkv_proj"},
    {ROLE_KEY, "h.{}.attn.qkv_proj"},
    {ROLE_ATTENTION_OUT, "h.{}.attn.out_proj"},
    {ROLE_UP, "h.{}.mlp.fc_in"},
    {ROLE_DOWN, "h.{}.mlp.fc_out"},
    {ROLE_FINAL_NORM, "ln_f"},
    {ROLE_HEAD, "lm_head"},
    {0},
};

static const char *const ignored[] = {
    "h.{}.attn.causal_mask",
    "h.{}.attn.bias",
    "h.{}.attn.masked_bias",
    NULL,
};

static void configure(struct config *c, struct model_spec *spec)
{
    family_gptj_base(c, spec);
    spec->num_key_value_heads = spec->num_attention_heads;
    spec->qkv_groups = 4;
    if (spec->num_attention_heads % 4)
        config_fail(c, "\"n_head\" must be a multiple of 4, not %d", spec->num_attention_heads);
}

const struct family family_codegen = {
    .model_type = "codegen",
    .configure = configure,
    .prefix = "transformer.",
    .tensors = tensors,
    .ignored = ignored,
};
