/*
 * GPT-J (Wang and Komatsuzaki 2021): attention and feed-forward in parallel from one norm, pairs of
 * neighbours rotate, the head has a bias. Source:
 * transformers/models/gptj/{configuration,modeling}_gptj.py.
 */
#include "models/family.h"

void family_gptj_base(struct config *c, struct model_spec *spec)
{
    static const char *const notes[] = {"rotary", NULL};
    family_gpt2_base(c, spec);
    config_skip(c, notes);
    config_require_bool(c, "scale_attn_weights", true);
    spec->positions = POSITIONS_ROPE;
    spec->residual = RESIDUAL_PARALLEL_SHARED;
    spec->biases = ROLES_FFN | ROLES_NORM | ROLE_BIT(ROLE_HEAD);
    spec->tie_word_embeddings = config_bool_or(c, "tie_word_embeddings", false);
    spec->ropes[0] = (struct rope){
        .interleaved = true,
        .n_dims = config_size_or(c, "rotary_dim", spec->head_dim, 64),
        .theta = 10000,
        .factor = 1,
        .attention_factor = 1,
    };
    if (spec->ropes[0].n_dims % 2 || spec->ropes[0].n_dims > spec->head_dim)
        config_fail(c, "\"rotary_dim\" must be even and within a head of %d", spec->head_dim);
}

static const struct tensor_entry tensors[] = {
    {ROLE_EMBEDDING, "wte"},
    {ROLE_ATTENTION_NORM, "h.{}.ln_1"},
    {ROLE_QUERY, "h.{}.attn.q_proj"},
    {ROLE_KEY, "h.{}.attn.k_proj"},
    {ROLE_VALUE, "h.{}.attn.v_proj"},
    {ROLE_ATTENTION_OUT, "h.{}.attn.out_proj"},
    {ROLE_UP, "h.{}.mlp.fc_in"},
    {ROLE_DOWN, "h.{}.mlp.fc_out"},
    {ROLE_FINAL_NORM, "ln_f"},
    {ROLE_HEAD, "lm_head"},
    {0},
};

const struct family family_gptj = {
    .model_type = "gptj",
    .configure = family_gptj_base,
    .prefix = "transformer.",
    .tensors = tensors,
    .ignored = family_gpt2_ignored,
};
