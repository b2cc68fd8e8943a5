/*
 * One table and a few switches over the roles: what kind a role is, where it is kept, its shape,
 * and whether a spec has it. A new role has a line in each where it differs from the rest. Knows
 * neither names nor tensors: those are the families' and bind.c's.
 */
#include "models/roles.h"

static const struct role_place {
    enum role_kind kind;
    size_t offset; /* in struct weights, struct layer_weights or struct expert */
} places[ROLE_COUNT] = {
    [ROLE_EMBEDDING] = {ROLE_MATRIX, offsetof(struct weights, embedding)},
    [ROLE_PROJECT_IN] = {ROLE_MATRIX, offsetof(struct weights, project_in)},
    [ROLE_POSITIONS] = {ROLE_MATRIX, offsetof(struct weights, positions)},
    [ROLE_TOKEN_TYPES] = {ROLE_MATRIX, offsetof(struct weights, token_types)},
    [ROLE_EMBEDDING_NORM] = {ROLE_NORM, offsetof(struct weights, embedding_norm)},
    [ROLE_FINAL_NORM] = {ROLE_NORM, offsetof(struct weights, final_norm)},
    [ROLE_HEAD_DENSE] = {ROLE_MATRIX, offsetof(struct weights, head_dense)},
    [ROLE_HEAD_NORM] = {ROLE_NORM, offsetof(struct weights, head_norm)},
    [ROLE_PROJECT_OUT] = {ROLE_MATRIX, offsetof(struct weights, project_out)},
    [ROLE_HEAD] = {ROLE_MATRIX, offsetof(struct weights, head)},

    [ROLE_ATTENTION_NORM] = {ROLE_NORM, offsetof(struct layer_weights, attention_norm)},
    [ROLE_ATTENTION_POST_NORM] = {ROLE_NORM, offsetof(struct layer_weights, attention_post_norm)},
    [ROLE_QUERY] = {ROLE_MATRIX, offsetof(struct layer_weights, query)},
    [ROLE_KEY] = {ROLE_MATRIX, offsetof(struct layer_weights, key)},
    [ROLE_VALUE] = {ROLE_MATRIX, offsetof(struct layer_weights, value)},
    [ROLE_QUERY_NORM] = {ROLE_NORM, offsetof(struct layer_weights, query_norm)},
    [ROLE_KEY_NORM] = {ROLE_NORM, offsetof(struct layer_weights, key_norm)},
    [ROLE_ATTENTION_OUT] = {ROLE_MATRIX, offsetof(struct layer_weights, attention_out)},
    [ROLE_FFN_NORM] = {ROLE_NORM, offsetof(struct layer_weights, ffn_norm)},
    [ROLE_FFN_POST_NORM] = {ROLE_NORM, offsetof(struct layer_weights, ffn_post_norm)},
    [ROLE_GATE] = {ROLE_MATRIX, offsetof(struct layer_weights, gate)},
    [ROLE_UP] = {ROLE_MATRIX, offsetof(struct layer_weights, up)},
    [ROLE_DOWN] = {ROLE_MATRIX, offsetof(struct layer_weights, down)},
    [ROLE_XIELU_P] = {ROLE_VECTOR, offsetof(struct layer_weights, xielu_p)},
    [ROLE_XIELU_N] = {ROLE_VECTOR, offsetof(struct layer_weights, xielu_n)},
    [ROLE_SINKS] = {ROLE_VECTOR, offsetof(struct layer_weights, sinks)},

    [ROLE_QUERY_A] = {ROLE_MATRIX, offsetof(struct layer_weights, query_a)},
    [ROLE_QUERY_A_NORM] = {ROLE_NORM, offsetof(struct layer_weights, query_a_norm)},
    [ROLE_QUERY_B] = {ROLE_MATRIX, offsetof(struct layer_weights, query_b)},
    [ROLE_KV_A] = {ROLE_MATRIX, offsetof(struct layer_weights, kv_a)},
    [ROLE_KV_A_NORM] = {ROLE_NORM, offsetof(struct layer_weights, kv_a_norm)},
    [ROLE_KV_B] = {ROLE_MATRIX, offsetof(struct layer_weights, kv_b)},

    [ROLE_ROUTER] = {ROLE_MATRIX, offsetof(struct layer_weights, router)},
    [ROLE_ROUTER_CORRECTION] = {ROLE_VECTOR, offsetof(struct layer_weights, router_correction)},
    [ROLE_SHARED_GATE] = {ROLE_MATRIX, offsetof(struct layer_weights, shared.gate)},
    [ROLE_SHARED_UP] = {ROLE_MATRIX, offsetof(struct layer_weights, shared.up)},
    [ROLE_SHARED_DOWN] = {ROLE_MATRIX, offsetof(struct layer_weights, shared.down)},
    [ROLE_SHARED_EXPERT_GATE] = {ROLE_MATRIX, offsetof(struct layer_weights, shared_expert_gate)},

    [ROLE_EXPERT_GATE] = {ROLE_MATRIX, offsetof(struct expert, gate)},
    [ROLE_EXPERT_UP] = {ROLE_MATRIX, offsetof(struct expert, up)},
    [ROLE_EXPERT_GATE_UP] = {ROLE_MATRIX, offsetof(struct expert, gate_up)},
    [ROLE_EXPERT_DOWN] = {ROLE_MATRIX, offsetof(struct expert, down)},
};

enum role_kind roles_kind(enum role role)
{
    return places[role].kind;
}

bool roles_per_layer(enum role role)
{
    return role >= ROLE_ATTENTION_NORM;
}

bool roles_per_expert(enum role role)
{
    return role >= ROLE_EXPERT_GATE;
}

void *roles_target(struct weights *weights, enum role role, int layer, int expert)
{
    char *base = (char *)weights;
    if (roles_per_expert(role))
        base = (char *)&weights->layers[layer].experts[expert];
    else if (roles_per_layer(role))
        base = (char *)&weights->layers[layer];
    return base + places[role].offset;
}

static bool model_wants(const struct model_spec *spec, enum role role)
{
    switch (role) {
    case ROLE_PROJECT_IN:
    case ROLE_PROJECT_OUT:
        return spec->embedding_size != spec->hidden_size;
    case ROLE_POSITIONS:
        return spec->positions == POSITIONS_LEARNED;
    case ROLE_TOKEN_TYPES:
        return spec->type_vocab_size > 0;
    case ROLE_EMBEDDING_NORM:
        return spec->embedding_norm;
    case ROLE_FINAL_NORM:
        return !spec->no_final_norm;
    case ROLE_HEAD_DENSE:
    case ROLE_HEAD_NORM:
        return spec->head_transform;
    default:
        return true;
    }
}

static bool attention_wants(const struct model_spec *spec, enum role role)
{
    const bool latent = spec->mla.kv_lora_rank > 0;
    switch (role) {
    case ROLE_QUERY:
    case ROLE_KEY:
    case ROLE_VALUE:
        return !latent;
    case ROLE_QUERY_NORM:
    case ROLE_KEY_NORM:
        return spec->qk_norm != QK_NORM_NONE;
    case ROLE_SINKS:
        return spec->sinks;
    case ROLE_QUERY_A:
    case ROLE_QUERY_A_NORM:
        return latent && spec->mla.q_lora_rank > 0;
    case ROLE_QUERY_B:
    case ROLE_KV_A:
    case ROLE_KV_A_NORM:
    case ROLE_KV_B:
        return latent;
    default:
        return true;
    }
}

static bool ffn_wants(const struct model_spec *spec, enum role role, bool moe)
{
    switch (role) {
    case ROLE_GATE:
        return !moe && spec->ffn == FFN_GATED;
    case ROLE_UP:
    case ROLE_DOWN:
        return !moe;
    case ROLE_XIELU_P:
    case ROLE_XIELU_N:
        return spec->hidden_act == ACT_XIELU;
    case ROLE_ROUTER:
    case ROLE_EXPERT_DOWN:
        return moe;
    case ROLE_ROUTER_CORRECTION:
        return moe && spec->moe.correction;
    case ROLE_SHARED_GATE:
    case ROLE_SHARED_UP:
    case ROLE_SHARED_DOWN:
        return moe && spec->moe.shared_intermediate_size > 0;
    case ROLE_SHARED_EXPERT_GATE:
        return moe && spec->moe.shared_expert_gate;
    case ROLE_EXPERT_GATE:
    case ROLE_EXPERT_UP:
        return moe && !spec->moe.gate_up_interleaved;
    case ROLE_EXPERT_GATE_UP:
        return moe && spec->moe.gate_up_interleaved;
    default:
        return true;
    }
}

static bool norm_wanted(const struct model_spec *spec, enum role role)
{
    const bool before = spec->norm_place != NORM_AFTER;
    const bool after = spec->norm_place == NORM_AFTER || spec->norm_place == NORM_BOTH;
    switch (role) {
    case ROLE_ATTENTION_NORM:
        return before;
    case ROLE_FFN_NORM:
        return before && spec->residual != RESIDUAL_PARALLEL_SHARED;
    case ROLE_ATTENTION_POST_NORM:
    case ROLE_FFN_POST_NORM:
        return after;
    default:
        return true;
    }
}

bool roles_wanted(const struct model_spec *spec, enum role role, int layer)
{
    if (!roles_per_layer(role))
        return model_wants(spec, role);
    return norm_wanted(spec, role) && attention_wants(spec, role) &&
           ffn_wants(spec, role, spec->layers[layer].moe);
}

bool roles_has_bias(const struct model_spec *spec, enum role role)
{
    return (spec->biases & ROLE_BIT(role)) != 0;
}

float roles_scale(const struct model_spec *spec, enum role role)
{
    switch (role) {
    case ROLE_ATTENTION_OUT:
    case ROLE_DOWN:
        return spec->residual_multiplier;
    case ROLE_HEAD:
        return spec->logit_scale;
    default:
        return 1;
    }
}

/* The norms of something else than the residual stream. */
static void small_norm_shape(const struct model_spec *spec, enum role role, int *n_out, int *n_in)
{
    const bool is_key = role == ROLE_KEY_NORM;
    const int n_heads = is_key ? spec->num_key_value_heads : spec->num_attention_heads;
    if (role == ROLE_QUERY_A_NORM) {
        *n_in = spec->mla.q_lora_rank;
    } else if (role == ROLE_KV_A_NORM) {
        *n_in = spec->mla.kv_lora_rank;
    } else if (role == ROLE_QUERY_NORM || is_key) {
        *n_in = spec->qk_norm == QK_NORM_FULL ? n_heads * spec->head_dim : spec->head_dim;
        *n_out = spec->qk_norm == QK_NORM_OWN_HEAD ? n_heads : 1;
    }
}

void roles_shape(const struct model_spec *spec, enum role role, int *n_out, int *n_in)
{
    const struct mla_spec *const mla = &spec->mla;
    const struct moe_spec *const moe = &spec->moe;
    const int hidden = spec->hidden_size;
    const int heads = spec->num_attention_heads;
    const int queries = heads * spec->head_dim;
    const int keys = spec->num_key_value_heads * spec->head_dim;
    const int shapes[ROLE_COUNT][2] = {
        [ROLE_EMBEDDING] = {spec->vocab_size, spec->embedding_size},
        [ROLE_PROJECT_IN] = {hidden, spec->embedding_size},
        [ROLE_POSITIONS] = {spec->max_position_embeddings + spec->position_offset, hidden},
        [ROLE_TOKEN_TYPES] = {spec->type_vocab_size, hidden},
        [ROLE_HEAD_DENSE] = {hidden, hidden},
        [ROLE_PROJECT_OUT] = {spec->embedding_size, hidden},
        [ROLE_HEAD] = {spec->vocab_size, spec->embedding_size},
        [ROLE_QUERY] = {queries, hidden},
        [ROLE_KEY] = {keys, hidden},
        [ROLE_VALUE] = {keys, hidden},
        [ROLE_ATTENTION_OUT] = {hidden, mla->kv_lora_rank ? heads * mla->v_head_dim : queries},
        [ROLE_GATE] = {spec->intermediate_size, hidden},
        [ROLE_UP] = {spec->intermediate_size, hidden},
        [ROLE_DOWN] = {hidden, spec->intermediate_size},
        [ROLE_XIELU_P] = {1, 1},
        [ROLE_XIELU_N] = {1, 1},
        [ROLE_SINKS] = {1, heads},
        [ROLE_QUERY_A] = {mla->q_lora_rank, hidden},
        [ROLE_QUERY_B] = {queries, mla->q_lora_rank ? mla->q_lora_rank : hidden},
        [ROLE_KV_A] = {mla->kv_lora_rank + mla->qk_rope_head_dim, hidden},
        [ROLE_KV_B] = {heads * (mla->qk_nope_head_dim + mla->v_head_dim), mla->kv_lora_rank},
        [ROLE_ROUTER] = {moe->num_experts, hidden},
        [ROLE_ROUTER_CORRECTION] = {1, moe->num_experts},
        [ROLE_SHARED_GATE] = {moe->shared_intermediate_size, hidden},
        [ROLE_SHARED_UP] = {moe->shared_intermediate_size, hidden},
        [ROLE_SHARED_DOWN] = {hidden, moe->shared_intermediate_size},
        [ROLE_SHARED_EXPERT_GATE] = {1, hidden},
        [ROLE_EXPERT_GATE] = {moe->moe_intermediate_size, hidden},
        [ROLE_EXPERT_UP] = {moe->moe_intermediate_size, hidden},
        [ROLE_EXPERT_GATE_UP] = {2 * moe->moe_intermediate_size, hidden},
        [ROLE_EXPERT_DOWN] = {hidden, moe->moe_intermediate_size},
    };
    *n_out = shapes[role][0];
    *n_in = shapes[role][1];
    if (roles_kind(role) == ROLE_NORM) {
        *n_out = 1;
        *n_in = hidden;
        small_norm_shape(spec, role, n_out, n_in);
    }
}
