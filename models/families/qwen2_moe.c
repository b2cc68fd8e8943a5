/*
 * Qwen1.5-MoE and Qwen2-57B-A14B (Yang et al. 2024): qwen2 with experts, and one more behind a gate
 * that every token takes. Source:
 * transformers/models/qwen2_moe/{configuration,modeling}_qwen2_moe.py.
 */
#include "models/family.h"

/* Which layers have experts: every decoder_sparse_step-th but those of mlp_only_layers. */
static void choose_layers(struct config *c, struct model_spec *spec)
{
    const int step = config_size_or(c, "decoder_sparse_step", CONFIG_MAX_LAYERS, 1);
    const struct json *const dense = config_any(c, "mlp_only_layers");
    for (int i = 0; !c->failed && i < spec->num_hidden_layers; i++)
        spec->layers[i].moe = (i + 1) % step == 0;
    for (const struct json *j = json_first(dense); !c->failed && j; j = json_next(j)) {
        int64_t i;
        if (json_integer(j, 0, spec->num_hidden_layers - 1, &i))
            spec->layers[i].moe = false;
        else
            config_fail(c, "\"mlp_only_layers\" must hold numbers of layers");
    }
}

void family_qwen_moe_base(struct config *c, struct model_spec *spec)
{
    family_llama_base(c, spec);
    config_experts(c, spec, "num_experts");
    spec->moe.moe_intermediate_size = config_size(c, "moe_intermediate_size", CONFIG_MAX_SIZE);
    spec->moe.norm_topk_prob = config_bool_or(c, "norm_topk_prob", false);
    choose_layers(c, spec);
    family_qwen_windows(c, spec);
}

const struct tensor_entry family_qwen_moe_tensors[] = {
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
    {ROLE_ROUTER, "layers.{}.mlp.gate", LAYOUT_OUT_IN},
    {ROLE_EXPERT_GATE, "layers.{}.mlp.experts.{}.gate_proj", LAYOUT_OUT_IN},
    {ROLE_EXPERT_UP, "layers.{}.mlp.experts.{}.up_proj", LAYOUT_OUT_IN},
    {ROLE_EXPERT_DOWN, "layers.{}.mlp.experts.{}.down_proj", LAYOUT_OUT_IN},
    {ROLE_SHARED_GATE, "layers.{}.mlp.shared_expert.gate_proj", LAYOUT_OUT_IN},
    {ROLE_SHARED_UP, "layers.{}.mlp.shared_expert.up_proj", LAYOUT_OUT_IN},
    {ROLE_SHARED_DOWN, "layers.{}.mlp.shared_expert.down_proj", LAYOUT_OUT_IN},
    {ROLE_SHARED_SWITCH, "layers.{}.mlp.shared_expert_gate", LAYOUT_OUT_IN},
    {ROLE_FINAL_NORM, "norm", LAYOUT_OUT_IN},
    {ROLE_HEAD, "lm_head", LAYOUT_OUT_IN},
    {0},
};

static void configure(struct config *c, struct model_spec *spec)
{
    family_qwen_moe_base(c, spec);
    spec->biases = config_roles(c, "qkv_bias", ROLES_QKV, true);
    spec->moe.shared_intermediate_size =
        config_size(c, "shared_expert_intermediate_size", CONFIG_MAX_SIZE);
    spec->moe.shared_switch = true;
}

const struct family family_qwen2_moe = {
    .model_type = "qwen2_moe",
    .configure = configure,
    .prefix = "model.",
    .tensors = family_qwen_moe_tensors,
    .ignored = NULL,
};
