/*
 * Hunyuan dense (Tencent 2025): llama whose queries and keys are normalised after they have
 * rotated. Source:
 * transformers/models/hunyuan_v1_dense/{configuration,modular}_hunyuan_v1_dense.py.
 */
#include "models/family.h"

static void configure(struct config *c, struct model_spec *spec)
{
    static const char *const notes[] = {"eod_token_id", NULL};
    family_llama_base(c, spec);
    config_skip(c, notes);
    spec->biases = config_roles(c, "attention_bias", ROLES_ATTENTION, false);
    config_require_bool(c, "use_qk_norm", true);
    spec->qk_norm = QK_NORM_HEAD;
    spec->qk_norm_after_rope = true;
}

const struct family family_hunyuan_v1_dense = {
    .model_type = "hunyuan_v1_dense",
    .configure = configure,
    .prefix = "model.",
    .tensors = family_llama_tensors,
    .ignored = family_llama_ignored,
};
