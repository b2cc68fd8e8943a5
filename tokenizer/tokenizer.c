/*
 * The files of a directory -> the stages of a tokenizer, in order; nothing here knows a model by
 * name. Each component loads itself from its part of tokenizer.json and refuses what it does not
 * know.
 */
#include "tokenizer/internal.h"

#include <stdlib.h>

const char *component_type(const struct json *j, const char *kind, struct err *e)
{
    const char *type = json_text(json_get(j, "type"), NULL);
    if (!type) {
        err_set(e, ERR_LOAD, "%s without a \"type\"", kind);
    }
    return type;
}

const char *component_text(const struct json *j, const char *kind, const char *key, struct err *e)
{
    const char *text = json_text(json_get(j, key), NULL);
    if (!text) {
        err_set(e, ERR_LOAD, "%s: \"%s\" must be a string", kind, key);
    }
    return text;
}

bool tokenizer_own_regex(struct tokenizer *t, struct regex *r, struct err *e)
{
    if (t->n_regexes == t->regex_capacity) {
        size_t capacity = t->regex_capacity ? t->regex_capacity * 2 : 8;
        struct regex **list = realloc(t->regex, capacity * sizeof(struct regex *));
        if (!list) {
            regex_free(r);
            return err_no_memory(e);
        }
        t->regex = list;
        t->regex_capacity = capacity;
    }
    t->regex[t->n_regexes++] = r;
    return true;
}

/* NULL and no error where the file is absent. */
static struct json *parse(struct bytes file, const char *name, struct err *e)
{
    if (!file.data) {
        return NULL;
    }
    size_t good = utf8_valid_prefix((const char *)file.data, file.size);
    struct json *j = NULL;
    if (good < file.size) {
        err_set(e, ERR_LOAD, "not UTF-8 at byte %zu", good);
    } else {
        j = json_parse((const char *)file.data, file.size, e);
    }
    if (!j) {
        err_prefix(e, "%s", name);
    }
    return j;
}

static bool load_vocab(struct tokenizer *t, const struct json *vocab, struct err *e)
{
    if (!vocab || json_type(vocab) != JSON_OBJECT) {
        return err_set(e, ERR_LOAD, "the model has no object \"vocab\"");
    }
    for (const struct json *c = json_first(vocab); c; c = json_next(c)) {
        int64_t id;
        const char *text = json_key(c);
        if (!json_integer(c, 0, INT32_MAX, &id)) {
            return err_set(e, ERR_LOAD, "token \"%.60s\" has no whole number as its id", text);
        }
        if (!vocab_add(&t->vocab, text, strlen(text), id, e)) {
            return false;
        }
    }
    return true;
}

static bool load_model(struct tokenizer *t, const struct json *model, struct err *e)
{
    if (!model || json_type(model) != JSON_OBJECT) {
        return err_set(e, ERR_LOAD, "there is no object \"model\"");
    }
    /* Files from before 2020 have no type; those with merges are BPE. */
    const char *type =
        json_text(json_get(model, "type"), json_get(model, "merges") ? "BPE" : "without a type");
    if (strcmp(type, "BPE") != 0) {
        return err_set(e, ERR_LOAD, "the model \"%.60s\" is not supported", type);
    }
    t->model = MODEL_BPE;
    return load_vocab(t, json_get(model, "vocab"), e) && bpe_load(t, model, e);
}

static bool load_json(struct tokenizer *t, const struct json *root, struct err *e)
{
    return load_model(t, json_get(root, "model"), e) &&
           added_load(t, json_get(root, "added_tokens"), e) &&
           normalize_load(t, json_get(root, "normalizer"), e) &&
           pretokenize_load(t, json_get(root, "pre_tokenizer"), e) &&
           post_load(t, json_get(root, "post_processor"), e) &&
           decode_load(t, json_get(root, "decoder"), e);
}

/* ---- vocab.json and merges.txt --------------------------------------------------------------- */

/* "bos_token": "<s>" or {"content": "<s>", ...} makes a special token of what the vocabulary has.
 */
static bool add_named(struct tokenizer *t, const struct json *j, struct err *e)
{
    const char *text = json_text(j, json_text(json_get(j, "content"), NULL));
    if (!text || !*text) {
        return true;
    }
    size_t n = strlen(text);
    int32_t id = vocab_find(&t->vocab, text, n);
    struct added_token token = {
        .content = text,
        .n_content = n,
        .id = id < 0 ? t->vocab.n_ids : id,
        .lstrip = json_bool(json_get(j, "lstrip"), false),
        .rstrip = json_bool(json_get(j, "rstrip"), false),
        .special = true,
    };
    return added_add(t, &token, e);
}

/* "added_tokens_decoder": {"50257": {"content": ..}, ..}. */
static bool add_decoder_tokens(struct tokenizer *t, const struct json *list, struct err *e)
{
    for (const struct json *c = json_first(list); c; c = json_next(c)) {
        const char *text = json_text(json_get(c, "content"), NULL);
        char *end;
        long id = json_key(c) ? strtol(json_key(c), &end, 10) : -1;
        if (!text || !*text || id < 0 || id >= VOCAB_MAX_IDS) {
            return err_set(e, ERR_LOAD, "\"added_tokens_decoder\" must map ids to tokens");
        }
        struct added_token token = {
            .content = text,
            .n_content = strlen(text),
            .id = (int32_t)id,
            .single_word = json_bool(json_get(c, "single_word"), false),
            .lstrip = json_bool(json_get(c, "lstrip"), false),
            .rstrip = json_bool(json_get(c, "rstrip"), false),
            .normalized = json_bool(json_get(c, "normalized"), true),
            .special = json_bool(json_get(c, "special"), false),
        };
        if (!added_add(t, &token, e)) {
            return false;
        }
    }
    return true;
}

static bool add_configured(struct tokenizer *t, const struct json *config, const struct json *map,
                           struct err *e)
{
    static const char *const names[] = {"bos_token", "eos_token",  "unk_token", "pad_token",
                                        "sep_token", "mask_token", "cls_token"};
    if (!add_decoder_tokens(t, json_get(config, "added_tokens_decoder"), e)) {
        return false;
    }
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (!add_named(t, json_get(config, names[i]), e) ||
            !add_named(t, json_get(map, names[i]), e)) {
            return false;
        }
    }
    return true;
}

/* GPT-2's files: byte-level BPE, and its one special token where no other file names any. */
static bool load_gpt2(struct tokenizer *t, const struct json *vocab, struct bytes merges,
                      const struct json *config, const struct json *map, struct err *e)
{
    if (!load_vocab(t, vocab, e)) {
        return err_prefix(e, "vocab.json");
    }
    if (!bpe_load_files(t, merges, e)) {
        return err_prefix(e, "merges.txt");
    }
    static const char endoftext[] = "<|endoftext|>";
    struct added_token end = {
        .content = endoftext, .n_content = sizeof endoftext - 1, .special = true};
    end.id = vocab_find(&t->vocab, end.content, end.n_content);
    if ((end.id >= 0 && !added_add(t, &end, e)) || !add_configured(t, config, map, e)) {
        return false;
    }
    bool prefix_space = json_bool(json_get(config, "add_prefix_space"), false);
    const char *text = prefix_space ? "{\"type\":\"ByteLevel\",\"add_prefix_space\":true}"
                                    : "{\"type\":\"ByteLevel\",\"add_prefix_space\":false}";
    struct json *byte_level = json_parse(text, strlen(text), e);
    bool good = byte_level && pretokenize_load(t, byte_level, e) && decode_load(t, byte_level, e);
    json_free(byte_level);
    return good;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static bool finish(struct tokenizer *t, const struct json *config, const struct json *map,
                   struct err *e)
{
    post_configure(t, config, map);
    size_t n = (size_t)t->vocab.n_ids;
    t->special = arena_array(&t->arena, n, sizeof *t->special);
    if (!t->special) {
        return err_no_memory(e);
    }
    for (size_t i = 0; i < t->added.n; i++) {
        t->special[t->added.token[i].id] = t->added.token[i].special;
    }
    return bpe_finish(t, e) && added_build(t, e);
}

/* The parsed files, all of which go away when the tokenizer is made. */
struct parsed {
    struct json *tokenizer, *vocab, *config, *map;
};

static bool parse_all(const struct tokenizer_files *f, struct parsed *p, struct err *e)
{
    p->tokenizer = parse(f->tokenizer_json, "tokenizer.json", e);
    p->config = parse(f->tokenizer_config, "tokenizer_config.json", e);
    p->map = parse(f->special_tokens_map, "special_tokens_map.json", e);
    bool old = !f->tokenizer_json.data;
    p->vocab = old ? parse(f->vocab_json, "vocab.json", e) : NULL;
    return (!f->tokenizer_json.data || p->tokenizer) && (!f->tokenizer_config.data || p->config) &&
           (!f->special_tokens_map.data || p->map) && (!old || !f->vocab_json.data || p->vocab);
}

static bool load(struct tokenizer *t, const struct tokenizer_files *f, const struct parsed *p,
                 struct err *e)
{
    if (p->tokenizer) {
        return load_json(t, p->tokenizer, e) || err_prefix(e, "tokenizer.json");
    }
    if (!p->vocab || !f->merges_txt.data) {
        return err_set(e, ERR_LOAD,
                       "there is no tokenizer: neither tokenizer.json nor vocab.json + merges.txt");
    }
    size_t good = utf8_valid_prefix((const char *)f->merges_txt.data, f->merges_txt.size);
    if (good < f->merges_txt.size) {
        return err_set(e, ERR_LOAD, "merges.txt: not UTF-8 at byte %zu", good);
    }
    return load_gpt2(t, p->vocab, f->merges_txt, p->config, p->map, e);
}

struct tokenizer *tokenizer_load(const struct tokenizer_files *files, struct err *e)
{
    struct tokenizer *t = calloc(1, sizeof *t);
    if (!t) {
        err_no_memory(e);
        return NULL;
    }
    t->bos = t->eos = -1;
    struct parsed p = {0};
    if (!parse_all(files, &p, e) || !load(t, files, &p, e) || !finish(t, p.config, p.map, e)) {
        tokenizer_free(t);
        t = NULL;
    }
    json_free(p.tokenizer);
    json_free(p.vocab);
    json_free(p.config);
    json_free(p.map);
    return t;
}

void tokenizer_free(struct tokenizer *t)
{
    if (!t) {
        return;
    }
    for (size_t i = 0; i < t->n_regexes; i++) {
        regex_free(t->regex[i]);
    }
    free(t->regex);
    bpe_free(&t->bpe);
    added_free(&t->added);
    vocab_free(&t->vocab);
    arena_free(&t->arena);
    free(t);
}

int32_t tokenizer_n_ids(const struct tokenizer *t)
{
    return t->vocab.n_ids;
}

int32_t tokenizer_bos(const struct tokenizer *t)
{
    return t->bos;
}

int32_t tokenizer_eos(const struct tokenizer *t)
{
    return t->eos;
}

struct bytes tokenizer_piece(const struct tokenizer *t, int32_t id)
{
    return id >= 0 && id < t->vocab.n_ids ? t->vocab.piece[id] : (struct bytes){0};
}

bool tokenizer_is_special(const struct tokenizer *t, int32_t id)
{
    return id >= 0 && id < t->vocab.n_ids && t->special[id];
}
