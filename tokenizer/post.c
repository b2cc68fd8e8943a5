/*
 * What is put around a text: "post_processor" of tokenizer.json (for one text; pairs are not ours),
 * and what tokenizer_config.json says of BOS and EOS.
 */
#include "tokenizer/internal.h"

static bool add(const struct tokenizer *t, int32_t *list, size_t *n, int64_t id, struct err *e)
{
    if (id < 0 || id >= t->vocab.n_ids) {
        return err_set(e, ERR_LOAD, "post_processor: id %lld is not in the vocabulary of %d",
                       (long long)id, t->vocab.n_ids);
    }
    if (*n == AROUND_MAX) {
        return err_set(e, ERR_LOAD, "post_processor: more than %d tokens around a text",
                       AROUND_MAX);
    }
    list[(*n)++] = (int32_t)id;
    return true;
}

/* The ids of one entry of "special_tokens". */
static bool add_special(const struct tokenizer *t, const struct json *specials, const char *name,
                        int32_t *list, size_t *n, struct err *e)
{
    const struct json *ids = json_get(json_get(specials, name), "ids");
    if (!json_first(ids)) {
        return err_set(e, ERR_LOAD, "post_processor TemplateProcessing: no ids for \"%.60s\"",
                       name);
    }
    for (const struct json *c = json_first(ids); c; c = json_next(c)) {
        int64_t id;
        if (!json_integer(c, 0, INT32_MAX, &id))
            return err_set(e, ERR_LOAD, "post_processor: an id of \"%.60s\" is no id", name);
        if (!add(t, list, n, id, e))
            return false;
    }
    return true;
}

static bool load_template(const struct tokenizer *t, const struct json *j, struct around *a,
                          struct err *e)
{
    const struct json *single = json_get(j, "single");
    if (json_type(single) != JSON_ARRAY)
        return err_set(e, ERR_LOAD, "post_processor TemplateProcessing has no list \"single\"");
    bool behind = false;
    for (const struct json *c = json_first(single); c; c = json_next(c)) {
        const struct json *special = json_get(c, "SpecialToken");
        if (!special) {
            const char *id = json_text(json_get(json_get(c, "Sequence"), "id"), "");
            if (strcmp(id, "A") != 0 || behind) {
                return err_set(e, ERR_LOAD,
                               "post_processor TemplateProcessing: \"single\" must have $A once");
            }
            behind = true;
            continue;
        }
        const char *name = component_text(special, "post_processor", "id", e);
        if (!name ||
            !add_special(t, json_get(j, "special_tokens"), name, behind ? a->after : a->before,
                         behind ? &a->n_after : &a->n_before, e))
            return false;
    }
    return behind ||
           err_set(e, ERR_LOAD, "post_processor TemplateProcessing: \"single\" must have $A once");
}

/* ["[CLS]", 101] */
static bool add_pair(const struct tokenizer *t, const struct json *pair, int32_t *list, size_t *n,
                     struct err *e)
{
    const struct json *name = json_first(pair);
    int64_t id;
    if (!name || !json_integer(json_next(name), 0, INT32_MAX, &id))
        return err_set(e, ERR_LOAD, "post_processor: \"cls\" and \"sep\" must be [token, id]");
    return add(t, list, n, id, e);
}

static bool load_one(const struct tokenizer *t, const struct json *j, struct around *a,
                     struct err *e);

/* Each processor of the list puts its ids around what the ones before it made. */
static bool load_sequence(const struct tokenizer *t, const struct json *j, struct around *a,
                          struct err *e)
{
    const struct json *list = json_get(j, "processors");
    if (json_type(list) != JSON_ARRAY)
        return err_set(e, ERR_LOAD, "post_processor Sequence has no list of \"processors\"");
    for (const struct json *c = json_first(list); c; c = json_next(c)) {
        struct around outer = {0};
        if (!load_one(t, c, &outer, e))
            return false;
        for (size_t i = 0; i < a->n_before; i++)
            if (!add(t, outer.before, &outer.n_before, a->before[i], e))
                return false;
        for (size_t i = 0; i < outer.n_after; i++)
            if (!add(t, a->after, &a->n_after, outer.after[i], e))
                return false;
        memcpy(a->before, outer.before, sizeof a->before);
        a->n_before = outer.n_before;
    }
    return true;
}

static bool load_one(const struct tokenizer *t, const struct json *j, struct around *a,
                     struct err *e)
{
    const char *type = component_type(j, "post_processor", e);
    if (!type)
        return false;
    if (strcmp(type, "ByteLevel") == 0)
        return true; /* changes offsets alone */
    if (strcmp(type, "TemplateProcessing") == 0)
        return load_template(t, j, a, e);
    if (strcmp(type, "RobertaProcessing") == 0 || strcmp(type, "BertProcessing") == 0) {
        return add_pair(t, json_get(j, "cls"), a->before, &a->n_before, e) &&
               add_pair(t, json_get(j, "sep"), a->after, &a->n_after, e);
    }
    if (strcmp(type, "Sequence") == 0)
        return load_sequence(t, j, a, e);
    return err_set(e, ERR_LOAD, "post_processor \"%.60s\" is not supported", type);
}

bool post_load(struct tokenizer *t, const struct json *post_processor, struct err *e)
{
    if (json_type(post_processor) == JSON_NULL)
        return true;
    return load_one(t, post_processor, &t->around, e);
}

/* The id of what the files call bos_token or eos_token. */
static int32_t named_token(const struct tokenizer *t, const struct json *config,
                           const struct json *map, const char *key, int32_t fallback)
{
    const struct json *both[] = {json_get(config, key), json_get(map, key)};
    for (size_t i = 0; i < ARRAY_LEN(both); i++) {
        const char *text = component_token(both[i]);
        if (text)
            return vocab_find(&t->vocab, text, strlen(text));
    }
    return fallback;
}

/* The fast tokenizers of these families write their own template, whatever tokenizer.json has:
 * transformers 4, LlamaTokenizerFast.update_post_processor, with add_bos_token true and
 * add_eos_token false where tokenizer_config.json is silent. What version 5 has saved, it reads as
 * it is. */
static bool writes_own_template(const struct json *config)
{
    static const char *const families[] = {"LlamaTokenizer", "CodeLlamaTokenizer", "GemmaTokenizer",
                                           "CohereTokenizer"};
    bool is_one = false;
    for (size_t i = 0; i < ARRAY_LEN(families); i++)
        is_one = is_one || tokenizer_is_class(config, families[i]);
    return is_one && strcmp(json_text(json_get(config, "backend"), ""), "tokenizers") != 0;
}

void post_configure(struct tokenizer *t, const struct json *config, const struct json *map)
{
    struct around *a = &t->around;
    t->bos = named_token(t, config, map, "bos_token", t->bos);
    t->eos = named_token(t, config, map, "eos_token", t->eos);
    bool own = writes_own_template(config) && t->bos >= 0;
    bool bos = json_bool(json_get(config, "add_bos_token"), own || t->adds_bos) && t->bos >= 0;
    bool eos = json_bool(json_get(config, "add_eos_token"), t->adds_eos) && t->eos >= 0;
    /* Every other class keeps what the post-processor adds; where that is nothing, the two flags
     * are the only word on it. */
    if (!own && a->n_before + a->n_after > 0)
        return;
    *a = (struct around){.before = {t->bos}, .n_before = bos, .after = {t->eos}, .n_after = eos};
}
