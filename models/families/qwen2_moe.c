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
    /* transformers 5 saves qwen3_moe's number under the other name */
    config_experts(c, spec,
                   json_get(c->root, "num_local_experts") ? "num_local_experts" : "num_experts");
    spec->moe.moe_intermediate_size = config_size(c, "moe_intermediate_size", CONFIG_MAX_SIZE);
    spec->moe.norm_topk_prob = config_bool_or(c, "norm_topk_prob", false);
    choose_layers(c, spec);
}

/* Without layer_types, every other layer of the first max_window_layers slides, unlike qwen2. */
static void choose_windows(struct config *c, struct model_spec *spec)
{
    const int n = config_count_or(c, "max_window_layers", CONFIG_MAX_LAYERS, 28);
    const int window = family_qwen_window(c);
    config_windows(c, spec, window, 0);
    for (int i = 0; !c->failed && !config_has_layer_types(c) && i < spec->num_hidden_layers; i++)
        spec->layers[i].window = i % 2 == 0 && i < n ? window : 0;
}

static void configure(struct config *c, struct model_spec *spec)
{
    family_qwen_moe_base(c, spec);
    choose_windows(c, spec);
    spec->biases = config_roles(c, "qkv_bias", ROLES_QKV, true);
    spec->moe.shared_intermediate_size =
        config_size(c, "shared_expert_intermediate_size", CONFIG_MAX_SIZE);
    spec->moe.shared_expert_gate = true;
}

const struct family family_qwen2_moe = {
    .model_type = "qwen2_moe",
    .configure = configure,
    .prefix = "model.",
    .tensors = family_llama_tensors,
    .ignored = family_llama_ignored,
};
