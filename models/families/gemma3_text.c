/*
 * Gemma 3 (Google 2025), the text model: gemma2 without caps, with normalised queries and keys, and
 * five windowed layers, which rotate by a base of their own, to one that sees everything. Source:
 * transformers/models/gemma3/{configuration,modular}_gemma3.py.
 */
#include "models/family.h"

/* ropes[0] for the layers that see everything, ropes[1] for those with a window. */
static void read_ropes(struct config *c, struct model_spec *spec)
{
    const double local = config_positive_or(c, "rope_local_base_freq", 10000);
    spec->ropes[0] = config_rope(c, spec, (struct rope_defaults){.theta = 1e6, .partial = 1});
    spec->ropes[1] = config_rope_sliding(c, spec, local);
}

static void configure(struct config *c, struct model_spec *spec)
{
    family_gemma2_base(c, spec);
    config_require_bool(c, "use_bidirectional_attention", false);
    spec->qk_norm = QK_NORM_HEAD;
    spec->attn_logit_softcapping = config_softcap(c, "attn_logit_softcapping", 0);
    spec->final_logit_softcapping = config_softcap(c, "final_logit_softcapping", 0);
    config_window_pattern(c, spec, 4096, 6);
    read_ropes(c, spec);
    for (int i = 0; !c->failed && i < spec->num_hidden_layers; i++)
        spec->layers[i].rope = spec->layers[i].window ? 1 : 0;
}

const struct family family_gemma3_text = {
    .model_type = "gemma3_text",
    .defaults = FAMILY_JSON({
        "vocab_size" : 262208,
        "hidden_size" : 2304,
        "intermediate_size" : 9216,
        "num_hidden_layers" : 26,
        "num_attention_heads" : 8,
        "num_key_value_heads" : 4,
        "head_dim" : 256,
        "max_position_embeddings" : 131072
    }),
    .configure = configure,
    .prefix = "model.",
    .tensors = family_gemma2_tensors,
};
