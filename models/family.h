/*
 * A family: the model_type it answers to, how its config.json becomes a spec, and what its tensors
 * are called. The table in family.c has one line for each; the files are in families/.
 */
#ifndef MODELS_FAMILY_H
#define MODELS_FAMILY_H

#include "models/config.h"
#include "models/spec.h"
#include "models/weights.h"

struct family {
    const char *model_type; /* as in config.json */
    const char *defaults;   /* values of config.json's keys that the original's class fills in where
                               they are absent, and configure does not; as JSON, may be NULL */
    const char *const
        *aliases; /* other values of it that mean the same; ends with NULL, may be NULL */

    const char *class; /* the one of "architectures" by which its first files, which have no
                          model_type, are known; may be NULL */

    /* Fills in the spec. Failures stick to the config (models/config.h), so there is nothing to
     * return. */
    void (*configure)(struct config *c, struct model_spec *spec);

    const char *prefix; /* in front of every stem but the head's; files without it bind too */
    const struct tensor_entry *tensors; /* ends with a NULL stem */
    const char *linear_class;           /* of its layers where that is not nn.Linear; NULL: it is */
    const char *const *ignored; /* full names without the prefix, {} for a number: buffers that
                                   old saves hold and nothing reads. Ends with NULL; may be NULL */
};

/* {"key": value, ...} as a string, for `defaults`. */
#define FAMILY_JSON(...) #__VA_ARGS__

/* NULL where no family has that model_type, or that class. */
const struct family *family_find(const char *model_type);
const struct family *family_find_class(const char *class);

/* config.json -> *spec, with the family's defaults for absent keys. False after a failure, which
 * c->e tells; who read which key stays in c. */
bool family_configure(const struct family *family, struct config *c, struct model_spec *spec);

/* The stem of a role that every family has: ROLE_EMBEDDING, ROLE_HEAD. */
const char *family_stem(const struct family *family, enum role role);

/* All of them, ended by NULL. */
extern const struct family *const family_table[];

/* ---- what several families share (family_base.c) --------------------------------------------- */

/* The names of llama-like families; what a spec does not ask for is not looked for. */
extern const struct tensor_entry family_llama_tensors[];
extern const char *const family_llama_ignored[];

/* The keys that llama-like configs share: sizes, heads, rope, norm, activation, bias-free layers
 * that see everything. A family of that kind calls it first and then changes what differs. */
void family_llama_base(struct config *c, struct model_spec *spec);

/* What classic decoders call their keys. */
struct classic_keys {
    const char *hidden_size, *num_hidden_layers, *num_attention_heads;
    const char *intermediate_size; /* NULL, or an absent key: 4 * hidden_size */
    const char *max_positions;
    int default_max_positions;
    const char *norm_eps;   /* NULL: always 1e-5 */
    const char *hidden_act; /* NULL: always the default */
    enum act default_hidden_act;
};

/* The frame of a classic decoder: learned positions, LayerNorms, biases, a plain feed-forward, a
 * tied head. */
void family_classic_base(struct config *c, struct model_spec *spec,
                         const struct classic_keys *keys);

/* ---- what one member of a line of models shares with the next, in the file of the first ------ */

void family_bert_base(struct config *c, struct model_spec *spec);
void family_cohere_base(struct config *c, struct model_spec *spec);
void family_deepseek_base(struct config *c, struct model_spec *spec);
void family_deepseek_experts(struct config *c, struct model_spec *spec);
void family_gemma_base(struct config *c, struct model_spec *spec);
void family_gemma2_base(struct config *c, struct model_spec *spec);
extern const struct tensor_entry family_gemma2_tensors[];
void family_glm_base(struct config *c, struct model_spec *spec);
void family_gpt2_base(struct config *c, struct model_spec *spec);
extern const char *const family_gpt2_ignored[];
void family_gptj_base(struct config *c, struct model_spec *spec);
void family_granite_base(struct config *c, struct model_spec *spec);
void family_olmo2_base(struct config *c, struct model_spec *spec);
extern const struct tensor_entry family_olmo2_tensors[];
void family_qwen_moe_base(struct config *c, struct model_spec *spec);

/* The window of use_sliding_window and sliding_window; 0: none. */
int family_qwen_window(struct config *c);

/* The same in the layers from max_window_layers on, as qwen2 and qwen3 have it. */
void family_qwen_windows(struct config *c, struct model_spec *spec);

#endif
