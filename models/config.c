/*
 * Reading config.json, and the list of keys that no computation depends on: any other key that
 * nobody has read refuses the model. Defaults are the families' own
 * (transformers/models/X/configuration_X.py), never invented. Owns nothing: what a spec points to
 * lies in the model's arena. Keys of rotations are config_rope.c's, quantization_config is
 * quant_config.c's.
 */
#include "models/config.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Keys that leave a forward pass alone: notes of who saved the file and how, training, generation
 * (which has a file of its own), classification heads, caches. transformers/configuration_utils.py
 * and the hub's habits. */
static const char *const inert_keys[] = {
    "_attn_implementation",
    "_attn_implementation_autoset",
    "_attn_implementation_internal",
    "_commit_hash",
    "_experts_implementation",
    "_flash_attn_2_enabled",
    "_name_or_path",
    "_num_labels",
    "add_bos_token",
    "add_eos_token",
    "architectures",
    "attention_dropout",
    "attn_implementation",
    "attn_pdrop",
    "auto_map",
    "bad_words_ids",
    "begin_suppress_tokens",
    "bos_token_id",
    "classifier_dropout",
    "custom_pipelines",
    "decoder_start_token_id",
    "do_sample",
    "dtype",
    "early_stopping",
    "embd_pdrop",
    "embedding_dropout",
    "encoder_no_repeat_ngram_size",
    "eos_token_id",
    "finetuning_task",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "gradient_checkpointing",
    "hidden_dropout",
    "hidden_dropout_prob",
    "id2label",
    "initializer_range",
    "is_composition",
    "is_decoder",
    "keys_to_ignore_at_inference",
    "label2id",
    "language",
    "layerdrop",
    "length_penalty",
    "license",
    "max_length",
    "max_new_tokens",
    "min_length",
    "model_type",
    "n_ctx",
    "name_or_path",
    "neftune_noise_alpha",
    "no_repeat_ngram_size",
    "num_beam_groups",
    "num_beams",
    "num_labels",
    "num_return_sequences",
    "output_attentions",
    "output_hidden_states",
    "output_past",
    "pad_token_id",
    "prefix",
    "pretraining_tp",
    "problem_type",
    "reorder_and_upcast_attn",
    "repetition_penalty",
    "resid_pdrop",
    "return_dict",
    "sep_token_id",
    "summary_activation",
    "summary_first_dropout",
    "summary_proj_to_labels",
    "summary_type",
    "summary_use_proj",
    "suppress_tokens",
    "task_specific_params",
    "temperature",
    "tokenizer_class",
    "tokenizer_model_max_length",
    "tokenizer_padding_side",
    "top_k",
    "top_p",
    "torch_dtype",
    "transformers.js_config",
    "transformers_version",
    "typical_p",
    "unk_token_id",
    "unsloth_fixed",
    "unsloth_version",
    "use_cache",
    "use_flash_attn",
};

/* False for a key that an object, or one within it, holds twice. */
static bool check_twice(const struct json *j, struct err *e)
{
    const char *twice;
    if (!json_find_duplicate(j, &twice, e))
        return false;
    if (twice)
        return err_set(e, ERR_LOAD, "\"%s\" stands there twice", twice);
    for (const struct json *item = json_first(j); item; item = json_next(item))
        if (!check_twice(item, e))
            return false;
    return true;
}

bool config_init(struct config *c, const struct json *file, struct arena *arena, struct err *e)
{
    const struct json *const text = json_get(file, "text_config");
    const struct json *const root = json_type(text) == JSON_OBJECT ? text : file;
    *c = (struct config){.root = root, .outer = file, .arena = arena, .e = e};
    if (json_type(file) != JSON_OBJECT)
        return err_set(e, ERR_LOAD, "an object was expected, not %s",
                       json_type_name(json_type(file)));
    if (!check_twice(file, e))
        return false;
    c->read = arena_array(arena, json_count(root) + 1, sizeof *c->read);
    return c->read ? true : err_no_memory(e);
}

void config_fail(struct config *c, const char *fmt, ...)
{
    if (c->failed)
        return;
    char text[sizeof c->e->text];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    c->failed = true;
    err_set(c->e, ERR_LOAD, "%s", text);
}

const struct json *config_any(struct config *c, const char *key)
{
    size_t i = 0;
    for (const struct json *j = json_first(c->root); j; j = json_next(j), i++) {
        if (strcmp(json_key(j), key) == 0) {
            c->read[i] = true;
            return json_type(j) == JSON_NULL ? NULL : j;
        }
    }
    return json_get(c->defaults, key);
}

int config_size(struct config *c, const char *key, int max)
{
    const bool by_default = c->root != c->outer;
    const bool is_there = by_default || json_type(json_get(c->root, key)) != JSON_NULL;
    const int n = is_there ? config_size_or(c, key, max, 0) : 0;
    if (n == 0)
        config_fail(c, "\"%s\" is missing", key);
    return n ? n : 1;
}

int config_size_or(struct config *c, const char *key, int max, int fallback)
{
    const struct json *const j = config_any(c, key);
    int64_t n;
    if (!j)
        return fallback;
    if (json_integer(j, 1, max, &n))
        return (int)n;
    if (json_type(j) == JSON_NUMBER)
        config_fail(c, "\"%s\" must be a whole number from 1 to %d, not %g", key, max,
                    json_number(j, 0));
    else
        config_fail(c, "\"%s\" must be a number, not %s", key, json_type_name(json_type(j)));
    return fallback ? fallback : 1;
}

int config_count_or(struct config *c, const char *key, int max, int fallback)
{
    const struct json *const j = config_any(c, key);
    int64_t n = fallback;
    if (j && !json_integer(j, 0, max, &n))
        config_fail(c, "\"%s\" must be a whole number from 0 to %d", key, max);
    return (int)n;
}

void config_heads(struct config *c, struct model_spec *spec, const char *heads_key)
{
    const int heads = config_size(c, heads_key, CONFIG_MAX_N_HEADS);
    const int kv_heads = config_size_or(c, "num_key_value_heads", CONFIG_MAX_SIZE, heads);
    const int given_dim = config_size_or(c, "head_dim", CONFIG_MAX_SIZE, 0);
    if (!given_dim && spec->hidden_size % heads)
        config_fail(c, "\"hidden_size\" %d does not divide into %d heads", spec->hidden_size,
                    heads);
    const int head_dim = given_dim ? given_dim : max_int(1, spec->hidden_size / heads);
    if (heads % kv_heads)
        config_fail(c, "%d heads do not divide into groups for %d \"num_key_value_heads\"", heads,
                    kv_heads);
    if ((int64_t)heads * head_dim > CONFIG_MAX_SIZE)
        config_fail(c, "%d heads of %d values are more than the %d that can be", heads, head_dim,
                    CONFIG_MAX_SIZE);
    spec->num_attention_heads = heads;
    spec->num_key_value_heads = kv_heads;
    spec->head_dim = head_dim;
}

static double positive(struct config *c, const struct json *j, const char *key, double fallback)
{
    if (json_type(j) == JSON_NULL)
        return fallback;
    const double x = json_number(j, NAN);
    if (isfinite(x) && x > 0)
        return x;
    if (json_type(j) == JSON_NUMBER)
        config_fail(c, "\"%s\" must be above zero, not %g", key, x);
    else
        config_fail(c, "\"%s\" must be a number, not %s", key, json_type_name(json_type(j)));
    return fallback;
}

double config_positive(struct config *c, const struct json *object, const char *key,
                       double fallback)
{
    return positive(c, json_get(object, key), key, fallback);
}

double config_positive_or(struct config *c, const char *key, double fallback)
{
    return positive(c, config_any(c, key), key, fallback);
}

bool config_bool_or(struct config *c, const char *key, bool fallback)
{
    const struct json *const j = config_any(c, key);
    if (j && json_type(j) != JSON_BOOL)
        config_fail(c, "\"%s\" must be true or false, not %s", key, json_type_name(json_type(j)));
    return json_bool(j, fallback);
}

void config_experts(struct config *c, struct model_spec *spec, const char *experts_key)
{
    static const char *const training[] = {"output_router_logits", "router_aux_loss_coef", NULL};
    config_skip(c, training);
    spec->moe.num_experts = config_size(c, experts_key, CONFIG_MAX_EXPERTS);
    spec->moe.num_experts_per_tok = config_size(c, "num_experts_per_tok", CONFIG_MAX_EXPERTS);
    if (spec->moe.num_experts_per_tok > spec->moe.num_experts)
        config_fail(c, "%d experts cannot be chosen of %d", spec->moe.num_experts_per_tok,
                    spec->moe.num_experts);
    for (int i = 0; !c->failed && i < spec->num_hidden_layers; i++)
        spec->layers[i].moe = true;
}

static const char *text_from(struct config *c, const struct json *j, const char *key,
                             const char *fallback)
{
    if (json_type(j) != JSON_STRING && json_type(j) != JSON_NULL)
        config_fail(c, "\"%s\" must be a text, not %s", key, json_type_name(json_type(j)));
    return json_text(j, fallback);
}

const char *config_text(struct config *c, const struct json *object, const char *key,
                        const char *fallback)
{
    return text_from(c, json_get(object, key), key, fallback);
}

const char *config_text_or(struct config *c, const char *key, const char *fallback)
{
    return text_from(c, config_any(c, key), key, fallback);
}

void config_require_text(struct config *c, const char *key, const char *value)
{
    const char *const text = config_text_or(c, key, value);
    if (strcmp(text, value) != 0)
        config_fail(c, "\"%s\": \"%s\" is not supported", key, text);
}

role_set config_roles(struct config *c, const char *key, role_set roles, bool fallback)
{
    return config_bool_or(c, key, fallback) ? roles : 0;
}

void config_require_bool(struct config *c, const char *key, bool value)
{
    if (config_bool_or(c, key, value) != value)
        config_fail(c, "\"%s\": %s is not supported", key, value ? "false" : "true");
}

void config_require_number(struct config *c, const char *key, double value)
{
    const struct json *const j = config_any(c, key);
    if (j && json_number(j, NAN) != value)
        config_fail(c, "\"%s\": only %g is supported", key, value);
}

enum act config_act_or(struct config *c, const char *key, enum act fallback)
{
    const char *const name = config_text_or(c, key, NULL);
    enum act act = fallback;
    if (name && !act_parse(name, &act))
        config_fail(c, "\"%s\": the activation \"%s\" is not supported", key, name);
    return act;
}

void config_layers(struct config *c, struct model_spec *spec)
{
    if (c->failed)
        return;
    spec->layers = arena_array(c->arena, (size_t)spec->num_hidden_layers, sizeof *spec->layers);
    if (!spec->layers) {
        c->failed = !err_no_memory(c->e);
        return;
    }
    for (int i = 0; i < spec->num_hidden_layers; i++)
        spec->layers[i].attention_scale = (float)(1 / sqrt(spec->head_dim));
}

/* True where layer_types is absent, or lists a known type for every layer. */
static bool check_layer_types(struct config *c, const struct json *types, int n_layers)
{
    if (types && (json_type(types) != JSON_ARRAY || json_count(types) != (size_t)n_layers)) {
        config_fail(c, "\"layer_types\" must be a list of %d types, one a layer", n_layers);
        return false;
    }
    for (const struct json *j = json_first(types); j; j = json_next(j)) {
        const char *const type = json_text(j, "");
        if (strcmp(type, "full_attention") != 0 && strcmp(type, "sliding_attention") != 0) {
            config_fail(c, "\"layer_types\": the type \"%s\" is not supported", type);
            return false;
        }
    }
    return true;
}

bool config_has_layer_types(const struct config *c)
{
    return json_type(json_get(c->root, "layer_types")) == JSON_ARRAY;
}

void config_windows(struct config *c, struct model_spec *spec, int window, int first_layer)
{
    const struct json *const types = config_any(c, "layer_types");
    if (c->failed || !check_layer_types(c, types, spec->num_hidden_layers))
        return;
    const struct json *type = json_first(types);
    for (int i = 0; i < spec->num_hidden_layers; i++) {
        const bool slides =
            types ? strcmp(json_text(type, ""), "sliding_attention") == 0 : i >= first_layer;
        if (slides && types && !window)
            config_fail(c,
                        "layer %d is of type sliding_attention, but \"sliding_window\" is not "
                        "set",
                        i);
        spec->layers[i].window = slides ? window : 0;
        type = type ? json_next(type) : NULL;
    }
}

/* The period of "LLLG": local layers, and a global one behind them. */
static int read_pattern(struct config *c, const char *text)
{
    const size_t n_local = strspn(text, "L");
    if (n_local > 0 && n_local < CONFIG_MAX_LAYERS && strcmp(text + n_local, "G") == 0)
        return (int)n_local + 1;
    config_fail(
        c, "\"sliding_window_pattern\" must be a number or one like \"LLLG\", not \"%.40s\"", text);
    return 1;
}

void config_window_pattern(struct config *c, struct model_spec *spec, int window, int pattern)
{
    const bool given = json_get(c->root, "sliding_window") != NULL; /* null says "none" */
    const struct json *const p = config_any(c, "sliding_window_pattern");
    window = config_size_or(c, "sliding_window", CONFIG_MAX_SIZE, given ? 0 : window);
    /* As transformers 4.53 and later save it, beside layer_types. */
    pattern = config_size_or(c, "_sliding_window_pattern", CONFIG_MAX_LAYERS, pattern);
    if (json_type(p) == JSON_STRING)
        pattern = read_pattern(c, json_text(p, ""));
    else
        pattern = config_size_or(c, "sliding_window_pattern", CONFIG_MAX_LAYERS, pattern);
    config_windows(c, spec, window, 0);
    if (config_has_layer_types(c))
        return;
    for (int i = pattern - 1; !c->failed && i < spec->num_hidden_layers; i += pattern)
        spec->layers[i].window = 0;
}

float config_softcap(struct config *c, const char *key, double fallback)
{
    const bool given = json_get(c->root, key) != NULL;
    return (float)config_positive_or(c, key, given ? 0 : fallback);
}

void config_skip(struct config *c, const char *const *keys)
{
    for (; *keys; keys++)
        config_any(c, *keys);
}

bool config_says_nothing(const struct json *j)
{
    switch (json_type(j)) { /* an absent member is null */
    case JSON_NULL:
        return true;
    case JSON_BOOL:
        return !json_bool(j, false);
    case JSON_NUMBER:
        return json_number(j, 1) == 0;
    case JSON_STRING:
        return !*json_text(j, "");
    case JSON_ARRAY:
    case JSON_OBJECT:
        return json_count(j) == 0;
    }
    return false;
}

static bool is_inert(const char *key)
{
    for (size_t i = 0; i < ARRAY_LEN(inert_keys); i++)
        if (strcmp(inert_keys[i], key) == 0)
            return true;
    return false;
}

void config_check_unread(struct config *c, const char *model_type)
{
    size_t i = 0;
    for (const struct json *j = json_first(c->root); j; j = json_next(j), i++)
        if (!c->read[i] && !is_inert(json_key(j)) && !config_says_nothing(j))
            config_fail(c,
                        "\"%s\" is no key that tgen knows for the model_type \"%s\"; it may change "
                        "what the model computes",
                        json_key(j), model_type);
}
