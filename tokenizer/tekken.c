/*
 * tekken.json, as Mistral's own tools read it: tokens as tiktoken has them, behind the special
 * ones, and the pattern that cuts words. Source: mistralai/mistral-common,
 * tokens/tokenizers/tekken.py.
 */
#include "tokenizer/internal.h"

#include <stdio.h>

/* Of files that do not list their special tokens. */
static const char *const first_special[] = {
    "<unk>",
    "<s>",
    "</s>",
    "[INST]",
    "[/INST]",
    "[AVAILABLE_TOOLS]",
    "[/AVAILABLE_TOOLS]",
    "[TOOL_RESULTS]",
    "[/TOOL_RESULTS]",
    "[TOOL_CALLS]",
    "[IMG]",
    "<pad>",
    "[IMG_BREAK]",
    "[IMG_END]",
    "[PREFIX]",
    "[MIDDLE]",
    "[SUFFIX]",
    "[SYSTEM_PROMPT]",
    "[/SYSTEM_PROMPT]",
    "[TOOL_CONTENT]",
};

/* The members that count. */
struct tekken {
    struct json *config, *special; /* owned */
    struct bytes vocab;
    int n_special, n_ids; /* ids begin with the special tokens */
};

static bool split_file(struct bytes file, struct tekken *k, struct err *e)
{
    struct json_scan s;
    struct bytes key, value;
    json_scan_begin(&s, (const char *)file.data, file.size, e);
    bool good = true;
    for (bool more = json_scan_object(&s); more && good && json_scan_member(&s, &key);) {
        struct json **const tree = bytes_equal(key, "config")           ? &k->config
                                   : bytes_equal(key, "special_tokens") ? &k->special
                                                                        : NULL;
        const bool is_vocab = bytes_equal(key, "vocab");
        good = json_scan_skip(&s, &value);
        if (good && is_vocab)
            k->vocab = value;
        if (good && tree && !*tree)
            good = (*tree = json_parse((const char *)value.data, value.size, e)) != NULL;
    }
    good = good && json_scan_done(&s);
    json_scan_end(&s);
    return good;
}

static bool read_config(struct tekken *k, struct err *e)
{
    if (json_type(k->special) == JSON_NULL) {
        json_free(k->special);
        k->special = NULL;
    }
    if (k->special && json_type(k->special) != JSON_ARRAY)
        return err_set(e, ERR_LOAD, "\"special_tokens\" must be an array, not %s",
                       json_type_name(json_type(k->special)));
    const int listed = k->special ? (int)min_size(json_count(k->special), VOCAB_MAX_IDS)
                                  : (int)ARRAY_LEN(first_special);
    const struct json *const n_special = json_get(k->config, "default_num_special_tokens");
    const struct json *const n_ids = json_get(k->config, "default_vocab_size");
    int64_t special = listed, ids = VOCAB_MAX_IDS;
    if ((n_special && !json_integer(n_special, listed, VOCAB_MAX_IDS, &special)) ||
        (n_ids && !json_integer(n_ids, special, VOCAB_MAX_IDS, &ids)))
        return err_set(e, ERR_LOAD,
                       "\"default_num_special_tokens\" and \"default_vocab_size\" must leave room "
                       "for %d special tokens",
                       listed);
    k->n_special = (int)special;
    k->n_ids = (int)ids;
    return true;
}

static bool add_special(struct tokenizer *t, const char *content, int32_t id, struct err *e)
{
    const struct added_token token = {
        .content = content, .n_content = strlen(content), .id = id, .special = true};
    if (vocab_find(&t->vocab, token.content, token.n_content) >= 0)
        return err_set(e, ERR_LOAD, "the special token \"%.60s\" is there twice", content);
    return added_add(t, &token, e);
}

/* Those that are listed, by their rank; ids that no entry has get a name of their own. */
static bool add_all_special(struct tokenizer *t, const struct tekken *k, struct err *e)
{
    int id = 0;
    for (const struct json *j = json_first(k->special); j; j = json_next(j), id++) {
        const char *const content = component_text(j, "special token", "token_str", e);
        if (!content)
            return false;
        if (json_number(json_get(j, "rank"), -1) != id || !*content)
            return err_set(e, ERR_LOAD, "special token %d must have a name and \"rank\": %d", id,
                           id);
        if (!add_special(t, content, id, e))
            return false;
    }
    for (; id < k->n_special; id++) {
        char name[32];
        snprintf(name, sizeof name, "<SPECIAL_%d>", id);
        const bool known = !k->special && id < (int)ARRAY_LEN(first_special);
        if (!add_special(t, known ? first_special[id] : name, id, e))
            return false;
    }
    t->bos = vocab_find(&t->vocab, "<s>", 3);
    t->eos = vocab_find(&t->vocab, "</s>", 4);
    t->adds_bos = true;
    return true;
}

/* {"rank": 0, "token_bytes": "AA==", ...} */
static bool read_token(struct json_scan *s, double *rank, char *spelled, size_t *size)
{
    struct bytes key, value;
    *rank = -1;
    *size = 0;
    for (bool more = json_scan_object(s); more && json_scan_member(s, &key);) {
        const bool is_rank = bytes_equal(key, "rank"), is_code = bytes_equal(key, "token_bytes");
        if (is_rank)
            (void)json_scan_number(s, rank);
        else if (is_code && json_scan_string(s, &value))
            *size = tiktoken_spell(spelled, (const char *)value.data, value.size);
        else
            (void)json_scan_skip(s, &value);
    }
    return !s->failed && *size > 0;
}

/* What is spelled as a special token is left out: text means that one. */
static bool add_token(struct tokenizer *t, const struct tekken *k, struct bytes spelled, int id,
                      struct err *e)
{
    const int32_t known = vocab_find(&t->vocab, (const char *)spelled.data, spelled.size);
    return (known >= 0 && known < k->n_special) || vocab_add(&t->vocab, spelled, id, e);
}

static bool add_tokens(struct tokenizer *t, const struct tekken *k, struct err *e)
{
    struct json_scan s;
    char spelled[2 * TIKTOKEN_MAX_CODE];
    json_scan_begin(&s, (const char *)k->vocab.data, k->vocab.size, e);
    bool good = json_scan_array(&s);
    for (int id = k->n_special; good && id < k->n_ids && json_scan_element(&s); id++) {
        double rank;
        size_t size;
        good = read_token(&s, &rank, spelled, &size) && rank == id - k->n_special;
        if (good)
            good = add_token(t, k, (struct bytes){(const unsigned char *)spelled, size}, id, e);
        else if (!json_scan_ran_out(&s))
            err_set(e, ERR_LOAD, "token %d must have \"token_bytes\" in base64 and \"rank\": %d",
                    id - k->n_special, id - k->n_special);
    }
    good = good && !s.failed;
    json_scan_end(&s);
    return good;
}

bool tekken_load(struct tokenizer *t, struct bytes file, struct err *e)
{
    struct tekken k = {.config = NULL};
    bool good = split_file(file, &k, e) && read_config(&k, e);
    const char *const pattern = good ? component_text(k.config, "config", "pattern", e) : NULL;
    if (pattern && !k.vocab.data)
        err_set(e, ERR_LOAD, "there is no \"vocab\"");
    good = pattern && k.vocab.data && add_all_special(t, &k, e) && add_tokens(t, &k, e) &&
           tiktoken_finish(t, pattern, k.n_special, e);
    json_free(k.config);
    json_free(k.special);
    return good;
}
