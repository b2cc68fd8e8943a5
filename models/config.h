/*
 * config.json as configure functions read it: typed, range-checked, with defaults, and with a
 * record of which keys were read, so that a key that changes the computation cannot be dropped in
 * silence.
 *
 * The first failure sticks: it is kept as the one sentence, later calls return their fallback, and
 * the caller asks once at the end. So a configure function is a list of assignments.
 */
#ifndef MODELS_CONFIG_H
#define MODELS_CONFIG_H

#include "core/arena.h"
#include "core/err.h"
#include "core/json.h"
#include "models/spec.h"

/* Limits that no model comes near; they keep products far from overflow: of two sizes in 64 bits,
 * of heads and rows of a pass in an int. */
enum {
    CONFIG_MAX_SIZE = 1 << 24,
    CONFIG_MAX_N_HEADS = 1 << 16,
    CONFIG_MAX_HEAD = 1 << 12,
    CONFIG_MAX_LAYERS = 4096,
    CONFIG_MAX_EXPERTS = 4096
};

struct config {
    const struct json *root;
    const struct json *outer; /* the whole file, where root is the text_config of a multimodal one;
                                 else root */
    const struct json *defaults; /* an object of what absent keys mean; may be NULL */
    struct arena *arena;         /* of the model: what the spec points to */
    bool *read;                  /* per member of root */
    struct err *e;
    bool failed;
};

/* Of a whole config.json, which must be an object and outlive the config: root is its text_config
 * where it has one. No object in it may hold a key twice. *read is taken from the arena. */
bool config_init(struct config *c, const struct json *file, struct arena *arena, struct err *e);

/* Records a failure, unless there is one already. */
void config_fail(struct config *c, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* The member, marked as read, or its default; NULL where it is null, or absent without one. */
const struct json *config_any(struct config *c, const char *key);

/* A whole number in [1, max]; its absence is a failure, but for a default in a text_config, from
 * which transformers leaves out what is as the class has it. */
int config_size(struct config *c, const char *key, int max);

/* The same, or the fallback where the key is absent or null. */
int config_size_or(struct config *c, const char *key, int max, int fallback);

/* A finite number above zero: the member `key` of some object, which may be NULL, or of the root.
 */
double config_positive(struct config *c, const struct json *object, const char *key,
                       double fallback);
double config_positive_or(struct config *c, const char *key, double fallback);
bool config_bool_or(struct config *c, const char *key, bool fallback);

/* A whole number in [0, max]. */
int config_count_or(struct config *c, const char *key, int max, int fallback);

/* num_attention_heads from heads_key, num_key_value_heads (else as many) and head_dim (else what
 * hidden_size leaves for a head); checks that they divide. Needs spec->hidden_size. */
void config_heads(struct config *c, struct model_spec *spec, const char *heads_key);

/* An activation function by name. */
enum act config_act_or(struct config *c, const char *key, enum act fallback);

/* `roles` where the key is true, else none: which tensors have a bias. */
role_set config_roles(struct config *c, const char *key, role_set roles, bool fallback);

/* num_experts from experts_key and num_experts_per_tok; every layer gets them, which some families
 * then take back. */
void config_experts(struct config *c, struct model_spec *spec, const char *experts_key);

/* A text: the member `key` of some object, which may be NULL, or of the root. */
const char *config_text(struct config *c, const struct json *object, const char *key,
                        const char *fallback);
const char *config_text_or(struct config *c, const char *key, const char *fallback);

/* Fails unless the key is absent or that text. */
void config_require_text(struct config *c, const char *key, const char *value);

/* Fails unless the key is absent, null or `value`: for a switch of which one setting alone is
 * supported. */
void config_require_bool(struct config *c, const char *key, bool value);
void config_require_number(struct config *c, const char *key, double value);

/* What a family takes for granted where the config says nothing. */
struct rope_defaults {
    double theta;   /* of rope_theta (gpt_neox: rotary_emb_base) */
    double partial; /* of partial_rotary_factor (gpt_neox: rotary_pct): the part of a head that
                       rotates */
};

/* The rope of rope_parameters, or of rope_theta with rope_scaling, for spec->head_dim. */
struct rope config_rope(struct config *c, const struct model_spec *spec,
                        struct rope_defaults defaults);

/* Fails where neither rope_parameters nor rope_scaling is there: for a class that scales positions
 * by itself then, in a way of its own. */
void config_require_rope(struct config *c);

/* The rope of layers with a window: that of rope_parameters' sliding_attention, else one that
 * nothing scales. theta counts where that object names none: rope_theta is that of spec->ropes[0].
 */
struct rope config_rope_sliding(struct config *c, const struct model_spec *spec, double theta);

/* Takes spec->layers, each with scale 1 / sqrt(head_dim) and no window; not after a failure. */
void config_layers(struct config *c, struct model_spec *spec);

/* Whether layer_types says what each layer is; behind config_windows. */
bool config_has_layer_types(const struct config *c);

/* Gives the window to the layers that layer_types calls sliding_attention; without layer_types to
 * those from first_layer on. */
void config_windows(struct config *c, struct model_spec *spec, int window, int first_layer);

/* Gives a window to the layers that layer_types calls sliding_attention; without layer_types to all
 * but every sliding_window_pattern-th. window and pattern are the defaults where the keys are
 * absent (0: no window). */
void config_window_pattern(struct config *c, struct model_spec *spec, int window, int pattern);

/* A cap above zero; 0 where the key is null, the fallback where it is absent. */
float config_softcap(struct config *c, const char *key, double fallback);

/* Marks keys as read that this family's originals do not use either; the list ends with NULL. */
void config_skip(struct config *c, const char *const *keys);

/* null, false, 0, "", [] and {}. */
bool config_says_nothing(const struct json *j);

/* Fails for the first key that nobody read, unless it is known to leave the computation alone or
 * its value says nothing. */
void config_check_unread(struct config *c, const char *model_type);

#endif
