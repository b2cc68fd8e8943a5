/*
 * Hunyuan dense (Tencent 2025): llama whose queries and keys are normalised after they have
 * rotated. Source:
 * transformers/models/hunyuan_v1_dense/{configuration,modular}_hunyuan_v1_dense.py.
 */
#include "models/family.h"

static void configure(struct config *c, struct model_spec *spec)
{
    static const char *const notes[] = {"cla_share_factor", "class_num",
                                        "dense_list",       "eod_token_id",
                                        "im_end_id",        "im_newline_id",
                                        "im_start_id",      "mask_init_id",
                                        "org_vocab_size",   "pad_id",
                                        "pool_type",        "text_end_id",
                                        "text_start_id",    NULL};
    family_llama_base(c, spec);
    config_skip(c, notes);
    config_require_text(c, "norm_type", "rms");
    config_require_bool(c, "use_rotary_pos_emb", true);
    config_require_bool(c, "use_cla", false);
    config_require_number(c, "attention_head_dim", spec->head_dim);
    spec->biases = config_roles(c, "attention_bias", ROLES_ATTENTION, false);
    config_require_bool(c, "use_qk_norm", true);
    spec->qk_norm = QK_NORM_HEAD;
    spec->qk_norm_after_rope = true;
}

const struct family family_hunyuan_v1_dense = {
    .model_type = "hunyuan_v1_dense",
    .defaults = FAMILY_JSON({"rms_norm_eps" : 1e-5}),
    .configure = configure,
    .prefix = "model.",
    .tensors = family_llama_tensors,
    .ignored = family_llama_ignored,
};
