/*
 * rope_theta, rope_scaling and rope_parameters of config.json -> struct rope: the keys of every
 * type, their defaults (transformers/modeling_rope_utils.py), and a refusal of keys that are none.
 */
#include "models/config.h"

#include <math.h>
#include <string.h>

/* original_max_position_embeddings beside the type, or (phi3) at the top of the config, which
 * counts more. */
static int original_length(struct config *c, const struct json *scaling, int fallback)
{
    const char *const key = "original_max_position_embeddings";
    const struct json *const top = config_any(c, key);
    const struct json *j = json_get(scaling, key);
    int64_t n = fallback;
    if (top)
        j = top;
    if (json_type(j) != JSON_NULL && !json_integer(j, 1, CONFIG_MAX_SIZE, &n))
        config_fail(c, "rope: \"%s\" must be a whole number above zero", key);
    return (int)n;
}

/* short_factor or long_factor: n positive numbers. */
static const double *rope_factors(struct config *c, const struct json *scaling, const char *key,
                                  int n)
{
    const struct json *const list = json_get(scaling, key);
    if (json_type(list) != JSON_ARRAY || json_count(list) != (size_t)n) {
        config_fail(c, "rope: \"%s\" must be a list of %d numbers", key, n);
        return NULL;
    }
    double *const factors = arena_array(c->arena, (size_t)n, sizeof *factors);
    if (!factors) {
        c->failed = !err_no_memory(c->e);
        return NULL;
    }
    double *f = factors;
    for (const struct json *j = json_first(list); j; j = json_next(j))
        *f++ = json_number(j, 0);
    for (int i = 0; i < n; i++)
        if (!(factors[i] > 0 && isfinite(factors[i])))
            config_fail(c, "rope: \"%s\" must hold numbers above zero", key);
    return factors;
}

/* A number above zero, or 0 where there is none, as 0 itself says too. */
static double rope_optional(struct config *c, const struct json *scaling, const char *key)
{
    return config_says_nothing(json_get(scaling, key)) ? 0 : config_positive(c, scaling, key, 0);
}

/* yarn's scaling of the scores, where DeepSeek's two keys say it: transformers, get_mscale. */
static double attention_factor(struct config *c, const struct json *scaling, const struct rope *r)
{
    const double mscale = rope_optional(c, scaling, "mscale");
    const double mscale_all_dim = rope_optional(c, scaling, "mscale_all_dim");
    if (r->type != ROPE_YARN && r->type != ROPE_LONGROPE)
        return 1;
    double fallback = rope_default_attention_factor(r);
    if (r->type == ROPE_YARN && mscale > 0 && mscale_all_dim > 0 && r->factor > 1)
        fallback =
            (0.1 * mscale * log(r->factor) + 1) / (0.1 * mscale_all_dim * log(r->factor) + 1);
    fallback = config_positive(c, scaling, "short_mscale", fallback);
    return config_positive(c, scaling, "attention_factor", fallback);
}

static const char *const rope_keys[] = {
    "type",
    "rope_type",
    "rope_theta",
    "factor",
    "original_max_position_embeddings",
    "beta_fast",
    "beta_slow",
    "truncate",
    "low_freq_factor",
    "high_freq_factor",
    "alpha",
    "short_mscale",
    "long_mscale",
    "llama_4_scaling_beta",
    "max_position_embeddings",
    "partial_rotary_factor",
    "mscale",
    "short_factor",
    "long_factor",
    "attention_factor",
    "mscale_all_dim",
    "finetuned",   /* a note of the first yarn models */
    "attn_factor", /* DeepSeek-R1-0528-Qwen3-8B; transformers does not read it, vLLM does */
};

static void rope_check_keys(struct config *c, const struct json *scaling)
{
    for (const struct json *j = json_first(scaling); j; j = json_next(j)) {
        bool known = config_says_nothing(j);
        for (size_t i = 0; i < ARRAY_LEN(rope_keys); i++)
            known = known || strcmp(rope_keys[i], json_key(j)) == 0;
        if (!known)
            config_fail(c, "rope: \"%s\" is no key that tgen knows", json_key(j));
    }
}

static enum rope_type rope_type(struct config *c, const struct json *scaling)
{
    const struct json *j = json_get(scaling, "rope_type");
    if (!j)
        j = json_get(scaling, "type");
    enum rope_type type = ROPE_DEFAULT;
    if (json_type(j) != JSON_NULL && !rope_type_parse(json_text(j, ""), &type))
        config_fail(c, "rope: the type \"%s\" is not supported", json_text(j, "?"));
    return type;
}

/* How many values of a head rotate. */
static int rotating_dims(struct config *c, const struct model_spec *spec,
                         const struct json *scaling, double fallback)
{
    double partial = config_positive_or(c, "rotary_pct", fallback);
    partial = config_positive_or(c, "partial_rotary_factor", partial);
    partial = config_positive(c, scaling, "partial_rotary_factor", partial);
    const int n_dims = partial <= 1 ? (int)(spec->head_dim * partial) : spec->head_dim + 1;
    if (n_dims > spec->head_dim)
        config_fail(c, "rope: the part of a head that rotates must be at most 1, not %g", partial);
    else if (n_dims % 2)
        config_fail(c, "heads of %d values cannot rotate: the number must be even", n_dims);
    return n_dims;
}

static double rope_theta(struct config *c, const struct json *scaling, double fallback)
{
    double theta = config_positive_or(c, "rotary_emb_base", fallback);
    theta = config_positive_or(c, "rope_theta", theta);
    return config_positive(c, scaling, "rope_theta", theta);
}

/* Hunyuan's "dynamic" with alpha: a theta that does not depend on the length
 * (transformers/models/hunyuan_v1_dense). */
static void apply_alpha(struct config *c, const struct json *scaling, struct rope *r)
{
    const double alpha = config_positive(c, scaling, "alpha", 0);
    if (r->type != ROPE_DYNAMIC || alpha == 0)
        return;
    r->type = ROPE_DEFAULT;
    r->theta *= pow(alpha, r->n_dims / (r->n_dims - 2.0));
}

static void read_longrope(struct config *c, const struct model_spec *spec,
                          const struct json *scaling, struct rope *r)
{
    r->short_factor = rope_factors(c, scaling, "short_factor", r->n_dims / 2);
    r->long_factor = rope_factors(c, scaling, "long_factor", r->n_dims / 2);
    const double stretch =
        (double)spec->max_position_embeddings / r->original_max_position_embeddings;
    r->factor = config_positive(c, scaling, "factor", stretch);
    r->long_attention_factor = config_positive(c, scaling, "long_mscale", 0); /* phimoe */
}

/* From an object that is at hand, which may be NULL. */
static struct rope rope_from(struct config *c, const struct model_spec *spec,
                             const struct json *scaling, struct rope_defaults defaults)
{
    if (json_type(scaling) != JSON_NULL && json_type(scaling) != JSON_OBJECT) {
        const bool old = scaling == json_get(c->root, "rope_scaling");
        config_fail(c, "\"%s\" must be an object, not %s", old ? "rope_scaling" : "rope_parameters",
                    json_type_name(json_type(scaling)));
        scaling = NULL;
    }
    rope_check_keys(c, scaling);
    struct rope r = {
        .type = rope_type(c, scaling),
        .n_dims = rotating_dims(c, spec, scaling, defaults.partial),
        .theta = rope_theta(c, scaling, defaults.theta),
        .factor = config_positive(c, scaling, "factor", 1),
        .original_max_position_embeddings =
            original_length(c, scaling, spec->max_position_embeddings),
        .low_freq_factor = config_positive(c, scaling, "low_freq_factor", 1),
        .high_freq_factor = config_positive(c, scaling, "high_freq_factor", 4),
        .beta_fast = config_positive(c, scaling, "beta_fast", 32),
        .beta_slow = config_positive(c, scaling, "beta_slow", 1),
        .truncate = json_bool(json_get(scaling, "truncate"), true),
    };
    const bool needs_factor = r.type != ROPE_DEFAULT && r.type != ROPE_LONGROPE;
    if (needs_factor && json_type(json_get(scaling, "factor")) == JSON_NULL)
        config_fail(c, "rope: the type \"%s\" needs a \"factor\"", rope_type_name(r.type));
    if (r.type == ROPE_DYNAMIC) /* transformers asks no other key */
        r.original_max_position_embeddings = spec->max_position_embeddings;
    if (r.type == ROPE_LLAMA3 && r.high_freq_factor <= r.low_freq_factor)
        config_fail(c, "rope: \"high_freq_factor\" must be above \"low_freq_factor\"");
    if (r.type == ROPE_LONGROPE)
        read_longrope(c, spec, scaling, &r);
    apply_alpha(c, scaling, &r);
    r.attention_factor = attention_factor(c, scaling, &r);
    return r;
}

struct rope config_rope(struct config *c, const struct model_spec *spec,
                        struct rope_defaults defaults)
{
    const struct json *const old = config_any(c, "rope_scaling");
    const struct json *const new = config_any(c, "rope_parameters");
    const struct json *scaling = new ? new : old;
    if (json_get(scaling, "full_attention")) /* one for each type of layer */
        scaling = json_get(scaling, "full_attention");
    return rope_from(c, spec, scaling, defaults);
}

struct rope config_rope_sliding(struct config *c, const struct model_spec *spec, double theta)
{
    const struct json *const sliding =
        json_get(config_any(c, "rope_parameters"), "sliding_attention");
    struct rope r = spec->ropes[0];
    r.type = ROPE_DEFAULT;
    r.attention_factor = 1;
    if (sliding)
        r = rope_from(c, spec, sliding, (struct rope_defaults){.theta = theta, .partial = 1});
    r.theta = config_positive(c, sliding, "rope_theta", theta);
    return r;
}

void config_require_rope(struct config *c)
{
    if (!json_get(c->root, "rope_parameters") && !json_get(c->root, "rope_scaling"))
        config_fail(c, "\"rope_parameters\" is missing");
}
