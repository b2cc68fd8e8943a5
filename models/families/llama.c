/*
 * LLaMA (Touvron et al. 2023) and everything that kept its shape: Llama 1 to 3, SmolLM, TinyLlama,
 * Yi, Vicuna. Source: transformers/models/llama/{configuration,modeling}_llama.py.
 */
#include "models/family.h"

static void configure(struct config *c, struct model_spec *spec)
{
    static const char *const notes[] = {
        "is_llama_config",      /* nanotron's: SmolLM2 */
        "max_sequence_length",  /* of the first conversions of Llama 1, see below */
        "model_max_length",     /* of a tokenizer, in fine-tunes */
        "perceiver_config",     /* of what sees, in Idefics3 and SmolVLM */
        "pixel_shuffle_factor", /* likewise */
        NULL,
    };
    family_llama_base(c, spec);
    config_skip(c, notes);
    config_require_bool(c, "rope_interleaved", false);
    config_require_text(c, "activation", "swiglu"); /* Falcon 3 */
    if (!config_any(c, "max_position_embeddings"))
        spec->max_position_embeddings = config_size_or(c, "max_sequence_length", CONFIG_MAX_SIZE,
                                                       spec->max_position_embeddings);
    spec->biases = config_roles(c, "attention_bias", ROLES_ATTENTION, false) |
                   config_roles(c, "mlp_bias", ROLES_FFN, false);
}

const struct family family_llama = {
    .model_type = "llama",
    .defaults = FAMILY_JSON({
        "vocab_size" : 32000,
        "hidden_size" : 4096,
        "intermediate_size" : 11008,
        "num_hidden_layers" : 32,
        "num_attention_heads" : 32
    }),
    .configure = configure,
    .prefix = "model.",
    .tensors = family_llama_tensors,
    .ignored = family_llama_ignored,
};
