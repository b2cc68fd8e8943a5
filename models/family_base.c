/*
 * What many families have in common: the keys and names of llama and its kin, and the frame of the
 * classic decoders with LayerNorms and biases. A family calls one of the two and then says what
 * differs.
 */
#include "models/family.h"

/* Where families differ in a name, each has its line: the one whose tensor is there counts. */
const struct tensor_entry family_llama_tensors[] = {
    {ROLE_EMBEDDING, "embed_tokens"},
    {ROLE_ATTENTION_NORM, "layers.{}.input_layernorm"},
    {ROLE_ATTENTION_NORM, "layers.{}.attention_layernorm"}, /* apertus */

    {ROLE_QUERY, "layers.{}.self_attn.q_proj"},
    {ROLE_KEY, "layers.{}.self_attn.k_proj"},
    {ROLE_VALUE, "layers.{}.self_attn.v_proj"},
    {ROLE_QUERY, "layers.{}.self_attn.qkv_proj"}, /* phi3 */
    {ROLE_KEY, "layers.{}.self_attn.qkv_proj"},
    {ROLE_VALUE, "layers.{}.self_attn.qkv_proj"},
    {ROLE_QUERY_NORM, "layers.{}.self_attn.q_norm"},
    {ROLE_KEY_NORM, "layers.{}.self_attn.k_norm"},
    {ROLE_QUERY_NORM, "layers.{}.self_attn.query_layernorm"}, /* hunyuan */
    {ROLE_KEY_NORM, "layers.{}.self_attn.key_layernorm"},
    {ROLE_QUERY_NORM, "layers.{}.self_attn.q_layernorm.norms.{}"}, /* stablelm */
    {ROLE_KEY_NORM, "layers.{}.self_attn.k_layernorm.norms.{}"},
    {ROLE_QUERY_A, "layers.{}.self_attn.q_a_proj"}, /* deepseek */
    {ROLE_QUERY_A_NORM, "layers.{}.self_attn.q_a_layernorm"},
    {ROLE_QUERY_B, "layers.{}.self_attn.q_b_proj"},
    {ROLE_QUERY_B, "layers.{}.self_attn.q_proj"},
    {ROLE_KV_A, "layers.{}.self_attn.kv_a_proj_with_mqa"},
    {ROLE_KV_A_NORM, "layers.{}.self_attn.kv_a_layernorm"},
    {ROLE_KV_B, "layers.{}.self_attn.kv_b_proj"},
    {ROLE_ATTENTION_OUT, "layers.{}.self_attn.o_proj"},
    {ROLE_ATTENTION_POST_NORM, "layers.{}.post_self_attn_layernorm"}, /* glm4 */

    {ROLE_FFN_NORM, "layers.{}.post_attention_layernorm"},
    {ROLE_FFN_NORM, "layers.{}.feedforward_layernorm"}, /* apertus */
    {ROLE_GATE, "layers.{}.mlp.gate_proj"},
    {ROLE_UP, "layers.{}.mlp.up_proj"},
    {ROLE_GATE, "layers.{}.mlp.gate_up_proj"}, /* phi3, glm */
    {ROLE_UP, "layers.{}.mlp.gate_up_proj"},
    {ROLE_UP, "layers.{}.mlp.c_fc"}, /* starcoder2 */
    {ROLE_DOWN, "layers.{}.mlp.down_proj"},
    {ROLE_DOWN, "layers.{}.mlp.c_proj"},
    {ROLE_XIELU_P, "layers.{}.mlp.act_fn.alpha_p", LAYOUT_BARE},
    {ROLE_XIELU_N, "layers.{}.mlp.act_fn.alpha_n", LAYOUT_BARE},
    {ROLE_FFN_POST_NORM, "layers.{}.post_mlp_layernorm"}, /* glm4 */

    {ROLE_ROUTER, "layers.{}.mlp.gate"},
    {ROLE_ROUTER, "layers.{}.block_sparse_moe.gate"},         /* mixtral */
    {ROLE_ROUTER, "layers.{}.block_sparse_moe.router.layer"}, /* granitemoe */
    {ROLE_ROUTER_CORRECTION, "layers.{}.mlp.gate.e_score_correction_bias", LAYOUT_BARE},
    {ROLE_EXPERT_GATE, "layers.{}.mlp.experts.{}.gate_proj"},
    {ROLE_EXPERT_UP, "layers.{}.mlp.experts.{}.up_proj"},
    {ROLE_EXPERT_DOWN, "layers.{}.mlp.experts.{}.down_proj"},
    {ROLE_EXPERT_GATE, "layers.{}.block_sparse_moe.experts.{}.w1"},
    {ROLE_EXPERT_UP, "layers.{}.block_sparse_moe.experts.{}.w3"},
    {ROLE_EXPERT_DOWN, "layers.{}.block_sparse_moe.experts.{}.w2"},
    {ROLE_EXPERT_GATE, "layers.{}.block_sparse_moe.input_linear"},
    {ROLE_EXPERT_UP, "layers.{}.block_sparse_moe.input_linear"},
    {ROLE_EXPERT_DOWN, "layers.{}.block_sparse_moe.output_linear"},
    {ROLE_EXPERT_GATE, "layers.{}.mlp.experts.gate_up_proj", LAYOUT_BARE}, /* transformers 5 */
    {ROLE_EXPERT_UP, "layers.{}.mlp.experts.gate_up_proj", LAYOUT_BARE},
    {ROLE_EXPERT_DOWN, "layers.{}.mlp.experts.down_proj", LAYOUT_BARE},
    {ROLE_SHARED_GATE, "layers.{}.mlp.shared_experts.gate_proj"},
    {ROLE_SHARED_UP, "layers.{}.mlp.shared_experts.up_proj"},
    {ROLE_SHARED_DOWN, "layers.{}.mlp.shared_experts.down_proj"},
    {ROLE_SHARED_GATE, "layers.{}.mlp.shared_expert.gate_proj"}, /* qwen2_moe */
    {ROLE_SHARED_UP, "layers.{}.mlp.shared_expert.up_proj"},
    {ROLE_SHARED_DOWN, "layers.{}.mlp.shared_expert.down_proj"},
    {ROLE_SHARED_EXPERT_GATE, "layers.{}.mlp.shared_expert_gate"},

    {ROLE_FINAL_NORM, "norm"},
    {ROLE_HEAD, "lm_head"},
    {0},
};

const char *const family_llama_ignored[] = {
    "layers.{}.self_attn.rotary_emb.inv_freq", /* a buffer of transformers before 4.32 */
    "rotary_emb.inv_freq",
    "layers.{}.mlp.act_fn.beta", /* constants of apertus, saved as buffers */
    "layers.{}.mlp.act_fn.eps",
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

void family_classic_base(struct config *c, struct model_spec *spec, const struct classic_keys *keys)
{
    spec->vocab_size = config_size(c, "vocab_size", CONFIG_MAX_SIZE);
    spec->hidden_size = config_size(c, keys->hidden_size, CONFIG_MAX_SIZE);
    spec->num_hidden_layers = config_size(c, keys->num_hidden_layers, CONFIG_MAX_LAYERS);
    spec->max_position_embeddings =
        config_size_or(c, keys->max_positions, CONFIG_MAX_SIZE, keys->default_max_positions);
    spec->tie_word_embeddings = config_bool_or(c, "tie_word_embeddings", true);
    spec->positions = POSITIONS_LEARNED;
    spec->norm = NORM_LAYER;
    spec->norm_eps = 1e-5f;
    if (keys->norm_eps)
        spec->norm_eps = (float)config_positive_or(c, keys->norm_eps, 1e-5);
    spec->biases = ROLES_ATTENTION | ROLES_FFN | ROLES_NORM;
    spec->ffn = FFN_PLAIN;
    spec->hidden_act = keys->hidden_act
                           ? config_act_or(c, keys->hidden_act, keys->default_hidden_act)
                           : keys->default_hidden_act;
    const int wide = 4 * min_int(spec->hidden_size, CONFIG_MAX_SIZE / 4);
    spec->intermediate_size =
        keys->intermediate_size ? config_size_or(c, keys->intermediate_size, CONFIG_MAX_SIZE, wide)
                                : wide;
    config_heads(c, spec, keys->num_attention_heads);
    config_layers(c, spec);
}
