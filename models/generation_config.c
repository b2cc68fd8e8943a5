/*
 * Reads generation_config.json into plain values: ids that begin and end a text, with config.json
 * as the second source, and the sampling that the file states explicitly (each with a has_ flag,
 * because transformers' implied defaults are nobody's wish). Refuses sampling values and end ids of
 * the wrong type or range. Does not decide what wins against the command line: that is
 * cli/settle.c.
 */
#include "models/generation_config.h"

#include <math.h>

static bool is_set(const struct json *j)
{
    return json_type(j) != JSON_NULL;
}

/* A number within [min, max]; *has tells whether the file has one. */
static bool read_number(const struct json *file, const char *key, double min, double max, bool *has,
                        float *out, struct err *e)
{
    const struct json *const j = json_get(file, key);
    *has = is_set(j);
    if (!*has)
        return true;
    const double x = json_number(j, NAN);
    if (!(x >= min && x <= max))
        return err_set(e, ERR_LOAD, "generation_config.json: \"%s\" must be a number from %g to %g",
                       key, min, max);
    *out = (float)x;
    return true;
}

/* The keys of the file that change what transformers draws and not what tgen does. `nothing` is the
 * value that asks for nothing, as null, false and an empty list do. */
static void find_unfollowed(const struct json *file, const char **unfollowed)
{
    static const struct {
        const char *key;
        double nothing;
    } keys[] = {
        {"no_repeat_ngram_size", 0},
        {"bad_words_ids", 0},
        {"suppress_tokens", 0},
        {"begin_suppress_tokens", 0},
        {"sequence_bias", 0},
        {"min_length", 0},
        {"min_new_tokens", 0},
        {"stop_strings", 0},
        {"forced_eos_token_id", -1},
        {"exponential_decay_length_penalty", 0},
        {"num_beams", 1},
        {"penalty_alpha", 0},
        {"guidance_scale", 1},
        {"epsilon_cutoff", 0},
        {"eta_cutoff", 0},
        {"top_h", 0},
    };
    _Static_assert(ARRAY_LEN(keys) <= MODEL_MAX_UNFOLLOWED, "all may be there");
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        const struct json *const j = json_get(file, keys[i].key);
        const enum json_type type = json_type(j);
        if (type == JSON_STRING || json_count(j) > 0 || json_bool(j, false) ||
            json_number(j, keys[i].nothing) != keys[i].nothing)
            *unfollowed++ = keys[i].key;
    }
}

static bool read_sampling(const struct json *file, struct model_defaults *d, struct err *e)
{
    const struct json *const do_sample = json_get(file, "do_sample");
    d->has_do_sample = is_set(do_sample);
    if (d->has_do_sample && json_type(do_sample) != JSON_BOOL)
        return err_set(e, ERR_LOAD, "generation_config.json: \"do_sample\" must be true or false");
    d->do_sample = json_bool(do_sample, true);
    find_unfollowed(file, d->unfollowed);

    const struct json *const top_k = json_get(file, "top_k");
    int64_t k = 0;
    d->has_top_k = is_set(top_k);
    if (d->has_top_k && !json_integer(top_k, -1, INT32_MAX, &k))
        return err_set(e, ERR_LOAD,
                       "generation_config.json: \"top_k\" must be a whole number, -1 or above");
    d->top_k = k > 0 ? (int)k : 0; /* vLLM writes -1 for all */
    return read_number(file, "temperature", 0, 1e6, &d->has_temperature, &d->temperature, e) &&
           read_number(file, "top_p", 0, 1, &d->has_top_p, &d->top_p, e) &&
           read_number(file, "min_p", 0, 1, &d->has_min_p, &d->min_p, e) &&
           read_number(file, "typical_p", 0, 1, &d->has_typical_p, &d->typical_p, e) &&
           read_number(file, "repetition_penalty", 1e-6, 1e6, &d->has_repetition_penalty,
                       &d->repetition_penalty, e);
}

/* One id or a list of them. */
static bool read_eos(const struct json *j, const char *file, struct arena *arena,
                     struct generation_config *out, struct err *e)
{
    const bool is_list = json_type(j) == JSON_ARRAY;
    const size_t n = is_list ? json_count(j) : 1;
    out->eos = arena_array(arena, n + 1, sizeof *out->eos);
    if (!out->eos)
        return err_no_memory(e);
    const struct json *item = is_list ? json_first(j) : j;
    for (size_t i = 0; i < n; i++) {
        int64_t id;
        if (!json_integer(item, -1, INT32_MAX, &id)) /* -1: of no token */
            return err_set(e, ERR_LOAD, "%s: \"eos_token_id\" must be a token id or a list of them",
                           file);
        out->eos[out->n_eos++] = (int32_t)id;
        if (is_list)
            item = json_next(item);
    }
    return true;
}

/* A key of config.json; of a multimodal one, of its text model where it has none itself, as
 * transformers' GenerationConfig.from_model_config has it. */
static const struct json *config_get(const struct json *config, const char *key)
{
    const struct json *const own = json_get(config, key);
    return is_set(own) ? own : json_get(json_get(config, "text_config"), key);
}

bool generation_config_read(const struct json *generation, const struct json *config,
                            struct arena *arena, struct generation_config *out, struct err *e)
{
    *out = (struct generation_config){.bos = -1};
    if (generation && json_type(generation) != JSON_OBJECT)
        return err_set(e, ERR_LOAD, "generation_config.json: an object was expected, not %s",
                       json_type_name(json_type(generation)));
    const char *twice;
    if (!json_find_duplicate(generation, &twice, e))
        return false;
    if (twice)
        return err_set(e, ERR_LOAD, "generation_config.json: \"%s\" stands there twice", twice);
    if (generation && !read_sampling(generation, &out->defaults, e))
        return false;
    int64_t bos;
    if (json_integer(json_get(generation, "bos_token_id"), 0, INT32_MAX, &bos) ||
        json_integer(config_get(config, "bos_token_id"), 0, INT32_MAX, &bos))
        out->bos = (int32_t)bos;
    const struct json *eos = json_get(generation, "eos_token_id");
    if (is_set(eos))
        return read_eos(eos, "generation_config.json", arena, out, e);
    eos = config_get(config, "eos_token_id");
    return !is_set(eos) || read_eos(eos, "config.json", arena, out, e);
}
