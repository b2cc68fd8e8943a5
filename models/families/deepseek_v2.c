/*
 * DeepSeek-V2 (DeepSeek-AI 2024): latent attention, many small experts beside shared ones.
 * Source: deepseek-ai/DeepSeek-V2, modeling_deepseek.py (which squares yarn's mscale into the
 * scores, as transformers 4 does not and 5 does);
 * transformers/models/deepseek_v2/{configuration,modular}_deepseek_v2.py.
 */
#include "models/family.h"

#include <math.h>
#include <string.h>

/* Yarn's factor for the scores: DeepSeek's own, squared because it stands for query and key. */
static double yarn_mscale(struct config *c)
{
    const struct json *scaling = config_any(c, "rope_parameters");
    if (!scaling)
        scaling = config_any(c, "rope_scaling");
    const double all_dim = config_positive(c, scaling, "mscale_all_dim", 0);
    const double factor = config_positive(c, scaling, "factor", 1);
    return all_dim > 0 && factor > 1 ? 0.1 * all_dim * log(factor) + 1 : 1;
}

static void read_latents(struct config *c, struct model_spec *spec)
{
    struct mla_spec *const mla = &spec->mla;
    mla->latent_norm_eps = 1e-6f;
    mla->kv_lora_rank = config_size(c, "kv_lora_rank", CONFIG_MAX_SIZE);
    mla->q_lora_rank = config_size_or(c, "q_lora_rank", CONFIG_MAX_SIZE, 0);
    mla->qk_nope_head_dim = config_size(c, "qk_nope_head_dim", CONFIG_MAX_HEAD);
    mla->qk_rope_head_dim = config_size(c, "qk_rope_head_dim", CONFIG_MAX_HEAD);
    mla->v_head_dim = config_size(c, "v_head_dim", CONFIG_MAX_HEAD);
    if (spec->num_attention_heads > CONFIG_MAX_HEAD)
        config_fail(c, "%d heads are more than can be", spec->num_attention_heads);
    spec->head_dim = mla->qk_rope_head_dim; /* what rotates */
    spec->ropes[0] = config_rope(c, spec, (struct rope_defaults){.theta = 10000, .partial = 1});
    spec->ropes[0].interleaved = config_bool_or(c, "rope_interleave", true);
    spec->head_dim += mla->qk_nope_head_dim;
    config_require_number(c, "qk_head_dim", spec->head_dim);
    const double mscale = yarn_mscale(c);
    for (int i = 0; !c->failed && i < spec->num_hidden_layers; i++)
        spec->layers[i].attention_scale = (float)(mscale * mscale / sqrt(spec->head_dim));
}

static void read_experts(struct config *c, struct model_spec *spec)
{
    struct moe_spec *const moe = &spec->moe;
    config_experts(c, spec, "n_routed_experts");
    moe->moe_intermediate_size = config_size(c, "moe_intermediate_size", CONFIG_MAX_SIZE);
    moe->norm_topk_prob = config_bool_or(c, "norm_topk_prob", false);
    moe->routed_scaling_factor = (float)config_positive_or(c, "routed_scaling_factor", 1);
    const int n_shared = config_count_or(c, "n_shared_experts", 1024, 0);
    moe->shared_intermediate_size = n_shared * min_int(moe->moe_intermediate_size, 1 << 20);
    moe->n_group = config_count_or(c, "n_group", MOE_MAX_GROUPS, 0);
    moe->topk_group = config_count_or(c, "topk_group", MOE_MAX_GROUPS, 0);
    if (moe->n_group &&
        (moe->num_experts % moe->n_group || moe->topk_group > moe->n_group || moe->topk_group < 1 ||
         moe->num_experts_per_tok > moe->topk_group * (moe->num_experts / moe->n_group)))
        config_fail(c, "\"n_group\" %d and \"topk_group\" %d do not fit %d experts", moe->n_group,
                    moe->topk_group, moe->num_experts);
    const int first = config_count_or(c, "first_k_dense_replace", CONFIG_MAX_LAYERS, 0);
    const int step = config_size_or(c, "moe_layer_freq", CONFIG_MAX_LAYERS, 1);
    for (int i = 0; !c->failed && i < spec->num_hidden_layers; i++)
        spec->layers[i].moe = i >= first && i % step == 0;
}

void family_deepseek_experts(struct config *c, struct model_spec *spec)
{
    read_experts(c, spec);
    spec->num_nextn_predict_layers =
        config_count_or(c, "num_nextn_predict_layers", CONFIG_MAX_LAYERS, 0);
}

void family_deepseek_base(struct config *c, struct model_spec *spec)
{
    family_llama_base(c, spec);
    config_require_bool(c, "attention_bias", false);
    read_latents(c, spec);
    family_deepseek_experts(c, spec);
}

static void configure(struct config *c, struct model_spec *spec)
{
    static const char *const notes[] = {"aux_loss_alpha", "ep_size", "seq_aux", NULL};
    family_deepseek_base(c, spec);
    config_skip(c, notes);
    config_require_text(c, "scoring_func", "softmax");
    const char *const method = config_text_or(c, "topk_method", "greedy");
    if (strcmp(method, "greedy") == 0)
        spec->moe.n_group = 0;
    else if (strcmp(method, "group_limited_greedy") != 0)
        config_fail(c, "\"topk_method\": \"%s\" is not supported", method);
    if (spec->moe.norm_topk_prob)
        spec->moe.routed_scaling_factor = 1; /* the original does the one or the other */
}

const struct family family_deepseek_v2 = {
    .model_type = "deepseek_v2",
    .configure = configure,
    .prefix = "model.",
    .tensors = family_llama_tensors,
    .ignored = family_llama_ignored,
};
