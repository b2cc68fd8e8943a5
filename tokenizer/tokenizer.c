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
    if (!type)
        err_set(e, ERR_LOAD, "%s without a \"type\"", kind);
    return type;
}

const char *component_text(const struct json *j, const char *kind, const char *key, struct err *e)
{
    const char *text = json_text(json_get(j, key), NULL);
    if (!text)
        err_set(e, ERR_LOAD, "%s: \"%s\" must be a string", kind, key);
    return text;
}

const char *component_token(const struct json *j)
{
    return json_text(j, json_text(json_get(j, "content"), NULL));
}

bool component_make(struct tokenizer *t, const char *text,
                    bool (*load)(struct tokenizer *t, const struct json *j, struct err *e),
                    struct err *e)
{
    struct json *const j = json_parse(text, strlen(text), e);
    const bool good = j && load(t, j, e);
    json_free(j);
    return good;
}

bool tokenizer_is_class(const struct json *config, const char *name)
{
    const char *const named = json_text(json_get(config, "tokenizer_class"), "");
    const size_t n = strlen(name);
    return strncmp(named, name, n) == 0 && (!named[n] || strcmp(named + n, "Fast") == 0);
}

bool tokenizer_own_regex(struct tokenizer *t, struct regex *r, struct err *e)
{
    struct regex **list =
        grow_array(t->regex, &t->regex_capacity, t->n_regexes + 1, sizeof(struct regex *), 8);
    if (!list) {
        regex_free(r);
        return err_no_memory(e);
    }
    t->regex = list;
    t->regex[t->n_regexes++] = r;
    return true;
}

/* ---- tokenizer.json -------------------------------------------------------------------------- */

/* {"spelling": id, ...}, from where the scan stands. */
static bool scan_vocab(struct tokenizer *t, struct json_scan *s, struct err *e)
{
    struct bytes key;
    double id;
    bool good = json_scan_object(s);
    while (good && json_scan_member(s, &key)) {
        good = (utf8_valid_prefix((const char *)key.data, key.size) == key.size ||
                err_set(e, ERR_LOAD, "a token is not UTF-8")) &&
               json_scan_number(s, &id) && vocab_append(&t->vocab, key, id, e);
    }
    return (good && !s->failed && vocab_index(&t->vocab, e)) || err_prefix(e, "\"vocab\"");
}

static bool load_vocab(struct tokenizer *t, struct bytes text, struct err *e)
{
    struct json_scan s;
    if (!text.data)
        return err_set(e, ERR_LOAD, "there is no \"vocab\"");
    json_scan_begin(&s, (const char *)text.data, text.size, e);
    const bool good = scan_vocab(t, &s, e) && (json_scan_done(&s) || err_prefix(e, "\"vocab\""));
    json_scan_end(&s);
    return good;
}

/* The members of "model" but for the two long ones become an object of their own. No option is
 * spelled with what JSON escapes. */
static bool keep_option(struct text *options, struct bytes key, struct json_scan *s)
{
    bool plain = true;
    for (size_t i = 0; i < key.size; i++)
        plain = plain && key.data[i] >= ' ' && key.data[i] != '"' && key.data[i] != '\\';
    struct bytes value;
    if (!plain)
        return json_scan_skip(s, &value);
    return text_add(options, options->n ? ",\"" : "{\"", 2) &&
           text_add(options, (const char *)key.data, key.size) && text_add(options, "\":", 2) &&
           json_scan_skip(s, &value) && text_add(options, (const char *)value.data, value.size);
}

/* The options so far as a tree; *out NULL where there are none or they are no JSON. */
static bool parse_options(struct text *options, struct json **out, struct err *e)
{
    const size_t n = options->n;
    if (!text_add(options, n ? "}" : "{}", n ? 1 : 2))
        return err_no_memory(e);
    *out = json_parse(options->data, options->n, e);
    options->n = n;
    return *out || err_prefix(e, "model");
}

/* "merges" where it stands in the file: only when all that it depends on stood before. */
static bool scan_merges(struct tokenizer *t, struct json_scan *s, struct text *options,
                        struct model_parts *parts, struct err *e)
{
    struct json *so_far = NULL;
    bool good = parse_options(options, &so_far, e);
    parts->has_merges = good && parts->has_vocab && json_scan_is(s, JSON_ARRAY) &&
                        json_get(so_far, "continuing_subword_prefix") &&
                        strcmp(json_text(json_get(so_far, "type"), "BPE"), "BPE") == 0;
    if (parts->has_merges) {
        const size_t begin = s->at;
        good =
            (bpe_load_options(t, so_far, e) && bpe_scan_merges(t, s, e)) || err_prefix(e, "model");
        parts->merges = (struct bytes){(const unsigned char *)s->text + begin, s->at - begin};
    } else if (good) {
        good = json_scan_skip(s, &parts->merges);
    }
    json_free(so_far);
    return good;
}

/* The scan stands before the model. Its vocabulary and merges are read on the way where they can
 * be; if not, they stay views into the text. */
static bool split_model(struct tokenizer *t, struct json_scan *s, struct model_parts *parts,
                        struct text *options, struct err *e)
{
    struct bytes key;
    bool good = json_scan_object(s);
    while (good && json_scan_member(s, &key)) {
        const bool vocab = bytes_equal(key, "vocab");
        if ((vocab && parts->vocab.data) || (bytes_equal(key, "merges") && parts->merges.data))
            return err_set(e, ERR_LOAD, "model: \"%s\" is there twice", vocab ? "vocab" : "merges");
        if (vocab && json_scan_is(s, JSON_OBJECT)) {
            parts->vocab = (struct bytes){(const unsigned char *)s->text + s->at, 0};
            parts->has_vocab = good = scan_vocab(t, s, e) || err_prefix(e, "model");
            parts->vocab.size =
                (size_t)((const unsigned char *)s->text + s->at - parts->vocab.data);
        } else if (vocab) {
            good = json_scan_skip(s, &parts->vocab);
        } else if (bytes_equal(key, "merges")) {
            good = scan_merges(t, s, options, parts, e);
        } else {
            good = keep_option(options, key, s) || s->failed || err_no_memory(e);
        }
    }
    return good && !s->failed;
}

static const struct {
    const char *name;
    enum model_type type;
    bool (*load)(struct tokenizer *t, const struct model_parts *parts, struct err *e);
} models[] = {
    {"BPE", MODEL_BPE, bpe_load},
    {"Unigram", MODEL_UNIGRAM, unigram_load},
    {"WordPiece", MODEL_WORDPIECE, wordpiece_load},
    {"WordLevel", MODEL_WORDLEVEL, wordpiece_load},
};

/* Files from before 2020 have no type; it shows in what else they have. */
static const char *guess_type(const struct model_parts *parts)
{
    return parts->merges.data                                      ? "BPE"
           : json_get(parts->options, "continuing_subword_prefix") ? "WordPiece"
           : json_get(parts->options, "unk_id")                    ? "Unigram"
                                                                   : "WordLevel";
}

static bool load_model_parts(struct tokenizer *t, const struct model_parts *parts, struct err *e)
{
    const char *type = json_text(json_get(parts->options, "type"), guess_type(parts));
    for (size_t i = 0; i < ARRAY_LEN(models); i++) {
        if (strcmp(type, models[i].name) == 0) {
            t->model = models[i].type;
            /* Unigram's vocabulary is a list of its own. */
            return (t->model == MODEL_UNIGRAM || parts->has_vocab ||
                    load_vocab(t, parts->vocab, e)) &&
                   models[i].load(t, parts, e);
        }
    }
    return err_set(e, ERR_LOAD, "the type \"%.60s\" is not supported", type);
}

/* Everything inside may then take characters to be whole. */
static bool check_utf8(struct bytes file, const char *name, struct err *e)
{
    size_t good = utf8_valid_prefix((const char *)file.data, file.size);
    return good == file.size || err_set(e, ERR_LOAD, "%s: not UTF-8 at byte %zu", name, good);
}

/* Parses one part, hands it to what loads it, and forgets it. */
static bool load_part(struct tokenizer *t, const char *key, struct bytes text,
                      bool (*load)(struct tokenizer *, const struct json *, struct err *),
                      struct err *e)
{
    if (text.data && !check_utf8(text, key, e))
        return false;
    struct json *j = text.data ? json_parse((const char *)text.data, text.size, e) : NULL;
    bool good = (!text.data || j) && load(t, j, e);
    json_free(j);
    return good;
}

/* What stands beside the model, in the order in which it is needed. */
static const struct {
    const char *key;
    bool (*load)(struct tokenizer *t, const struct json *j, struct err *e);
} components[] = {
    {"added_tokens", added_load},
    {"normalizer", normalize_load},
    {"pre_tokenizer", pretokenize_load},
    {"post_processor", post_load},
    {"decoder", decode_load},
};

struct sections {
    struct model_parts model;
    bool has_model;
    struct text options; /* an object that is not yet closed */
    struct bytes component[ARRAY_LEN(components)];
};

static bool split_file(struct tokenizer *t, struct bytes file, struct sections *f, struct err *e)
{
    struct json_scan s;
    struct bytes key;
    json_scan_begin(&s, (const char *)file.data, file.size, e);
    bool good = json_scan_object(&s);
    while (good && json_scan_member(&s, &key)) {
        struct bytes ignored;
        struct bytes *to = &ignored;
        for (size_t i = 0; i < ARRAY_LEN(components); i++)
            to = bytes_equal(key, components[i].key) ? &f->component[i] : to;
        f->has_model = f->has_model || bytes_equal(key, "model");
        good = bytes_equal(key, "model") ? split_model(t, &s, &f->model, &f->options, e)
                                         : json_scan_skip(&s, to);
    }
    good = good && !s.failed && json_scan_done(&s);
    json_scan_end(&s);
    return good;
}

static bool load_sections(struct tokenizer *t, struct sections *f, struct err *e)
{
    if (!f->has_model)
        return err_set(e, ERR_LOAD, "there is no \"model\"");
    if (!check_utf8((struct bytes){(const unsigned char *)f->options.data, f->options.n}, "model",
                    e) ||
        !parse_options(&f->options, &f->model.options, e))
        return false;
    if (!load_model_parts(t, &f->model, e))
        return err_prefix(e, "model");
    for (size_t i = 0; i < ARRAY_LEN(components); i++)
        if (!load_part(t, components[i].key, f->component[i], components[i].load, e))
            return false;
    return true;
}

/* The file is read once, and its merges, most of it, need no look at their UTF-8: each is found in
 * the vocabulary, or refused. Only where something is wrong is it asked whether that was the cause.
 */
static bool load_json(struct tokenizer *t, struct bytes file, struct err *e)
{
    struct sections f = {0};
    const bool good = split_file(t, file, &f, e) && load_sections(t, &f, e);
    json_free(f.model.options);
    text_free(&f.options);
    return good || (check_utf8(file, "tokenizer.json", e) && err_prefix(e, "tokenizer.json"));
}

/* ---- tokens that tokenizer_config.json and special_tokens_map.json name ---------------------- */

/* "bos_token": "<s>" or {"content": "<s>", ...} makes a special token of it. */
static bool add_named(struct tokenizer *t, const struct json *j, bool of_text, struct err *e)
{
    const char *text = component_token(j);
    if (!text || !*text)
        return true;
    const struct added_token token = {
        .content = text,
        .n_content = strlen(text),
        .id = t->vocab.n_ids,
        .lstrip = json_bool(json_get(j, "lstrip"), false),
        .rstrip = json_bool(json_get(j, "rstrip"), false),
        .special = true,
        .of_text = of_text,
    };
    return added_add(t, &token, e);
}

/* "added_tokens_decoder": {"50257": {"content": ..}, ..}. What the vocabulary lacks gets the next
 * id where its own is another's. */
static bool add_decoder_tokens(struct tokenizer *t, const struct json *list, struct err *e)
{
    for (const struct json *c = json_first(list); c; c = json_next(c)) {
        const char *text = json_text(json_get(c, "content"), NULL);
        const char *key = json_key(c) ? json_key(c) : "";
        char *end;
        long id = strtol(key, &end, 10);
        if (!text || end == key || *end || id < 0 || id >= VOCAB_MAX_IDS)
            return err_set(e, ERR_LOAD, "\"added_tokens_decoder\" must map ids to tokens");
        if (vocab_piece(&t->vocab, (int32_t)id).data)
            id = t->vocab.n_ids;
        if (*text && !added_add_json(t, c, text, (int32_t)id, e))
            return false;
    }
    return true;
}

static const char *const roles[] = {"bos_token", "eos_token",  "unk_token", "pad_token",
                                    "sep_token", "mask_token", "cls_token"};

static bool add_configured(struct tokenizer *t, const struct json *config, const struct json *map,
                           struct err *e)
{
    if (!add_decoder_tokens(t, json_get(config, "added_tokens_decoder"), e))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(roles); i++)
        if (!add_named(t, json_get(config, roles[i]), false, e) ||
            !add_named(t, json_get(map, roles[i]), false, e))
            return false;
    return true;
}

/* ---- the same beside tokenizer.json ---------------------------------------------------------- */

/* What is an added token already: by id, added_last; those before `first` are of tokenizer.json. */
struct beside {
    struct tokenizer *t;
    uint32_t *last;
    size_t first;
};

/* Makes a special token of what is named, unless tokenizer.json has it as an added one. Names that
 * the vocabulary lacks stay text: transformers gives them an id that no model would know. */
static bool name_beside(struct beside *b, const struct json *j, struct err *e)
{
    struct added *const a = &b->t->added;
    const char *const text = component_token(j);
    const int32_t id = text ? vocab_find(&b->t->vocab, text, strlen(text)) : -1;
    if (id < 0)
        return true;
    if (b->last[id] > b->first)
        a->token[b->last[id] - 1].special = true;
    if (b->last[id])
        return true;
    if (!add_named(b->t, j, true, e))
        return false;
    b->last[id] = (uint32_t)a->n;
    return true;
}

static bool name_all_beside(struct beside *b, const struct json *config, struct err *e)
{
    static const char *const lists[] = {"additional_special_tokens", "extra_special_tokens"};
    for (size_t i = 0; i < ARRAY_LEN(roles); i++)
        if (!name_beside(b, json_get(config, roles[i]), e))
            return false;
    for (size_t i = 0; i < ARRAY_LEN(lists); i++)
        for (const struct json *c = json_first(json_get(config, lists[i])); c; c = json_next(c))
            if (!name_beside(b, c, e))
                return false;
    return true;
}

/*
 * What transformers adds to tokenizer.json: added_tokens_decoder, whose flags count where both have
 * a token, then special tokens that are named; special_tokens_map.json is asked only where there is
 * no added_tokens_decoder. Source: transformers 4, tokenization_utils_fast.py, __init__ of
 * PreTrainedTokenizerFast, and tokenization_utils_base.py, _from_pretrained.
 */
static bool add_beside(struct tokenizer *t, const struct json *config, const struct json *map,
                       struct err *e)
{
    const struct json *const decoder = json_get(config, "added_tokens_decoder");
    struct beside b = {.t = t, .first = t->added.n};
    if (!add_decoder_tokens(t, decoder, e))
        return err_prefix(e, "tokenizer_config.json");
    b.last = added_last(&t->added, (size_t)t->vocab.n_ids);
    const bool good =
        b.last ? name_all_beside(&b, config, e) && (decoder || name_all_beside(&b, map, e))
               : err_no_memory(e);
    free(b.last);
    return good;
}

/* ---- vocab.json and merges.txt --------------------------------------------------------------- */

/* How these files' words are cut: as GPT-2's, unless the class says otherwise. Source:
 * transformers/convert_slow_tokenizer.py. */
static bool load_cutting(struct tokenizer *t, const struct json *config, struct err *e)
{
    static const char nfc[] = "{\"type\":\"NFC\"}", byte_level[] = "{\"type\":\"ByteLevel\"}";
    static const char plain[] = "{\"type\":\"ByteLevel\",\"add_prefix_space\":false}";
    const bool blank = json_bool(json_get(config, "add_prefix_space"), false);
    if (!component_make(t, byte_level, decode_load, e))
        return false;
    if (tokenizer_is_class(config, "Qwen2Tokenizer"))
        return component_make(t, nfc, normalize_load, e) &&
               pretokenize_load_pattern(t, tiktoken_qwen, e);
    return component_make(t, blank ? byte_level : plain, pretokenize_load, e);
}

/* GPT-2's files: byte-level BPE, and its one special token where no other file names any. */
static bool load_gpt2(struct tokenizer *t, const struct tokenizer_files *f,
                      const struct json *config, const struct json *map, struct err *e)
{
    if (!load_vocab(t, f->vocab_json, e))
        return err_prefix(e, "vocab.json");
    if (!bpe_load_text(t, f->merges_txt, e))
        return err_prefix(e, "merges.txt");
    static const char endoftext[] = "<|endoftext|>";
    struct added_token end = {
        .content = endoftext, .n_content = sizeof endoftext - 1, .special = true};
    end.id = vocab_find(&t->vocab, end.content, end.n_content);
    return (end.id < 0 || added_add(t, &end, e)) && add_configured(t, config, map, e) &&
           load_cutting(t, config, e);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static bool finish(struct tokenizer *t, const struct json *config, const struct json *map,
                   struct err *e)
{
    post_configure(t, config, map);
    size_t n = (size_t)t->vocab.n_ids;
    t->mark = arena_array(&t->arena, n, sizeof *t->mark);
    if (!t->mark)
        return err_no_memory(e);
    for (size_t i = 0; i < t->added.n; i++) {
        const struct added_token *token = &t->added.token[i];
        t->mark[token->id] |= (token->special ? TOKEN_SPECIAL : 0) |
                              (token->special && !token->of_text ? TOKEN_RESERVED : 0) |
                              (token->outside ? TOKEN_OUTSIDE : 0);
    }
    bool good = t->model == MODEL_BPE       ? bpe_load_finish(t, e)
                : t->model == MODEL_UNIGRAM ? unigram_finish(t, e)
                                            : true;
    return good && added_build(t, e);
}

static bool load(struct tokenizer *t, const struct tokenizer_files *f, const struct json *config,
                 const struct json *map, struct err *e)
{
    if (f->tokenizer_json.data)
        return load_json(t, f->tokenizer_json, e) && add_beside(t, config, map, e);
    if (f->vocab_json.data && f->merges_txt.data) {
        return check_utf8(f->vocab_json, "vocab.json", e) &&
               check_utf8(f->merges_txt, "merges.txt", e) && load_gpt2(t, f, config, map, e);
    }
    /* Llama 3 brought a file of tiktoken's under SentencePiece's name. */
    const bool renamed = !f->tekken.data && tiktoken_is(f->tokenizer_model);
    struct bytes tiktoken = renamed && !f->tiktoken.data ? f->tokenizer_model : f->tiktoken;
    if (tiktoken.data) {
        return (tiktoken_load(t, tiktoken, config, e) || err_prefix(e, "tiktoken file")) &&
               add_configured(t, config, map, e);
    }
    if (f->tekken.data)
        return check_utf8(f->tekken, "tekken.json", e) &&
               (tekken_load(t, f->tekken, e) || err_prefix(e, "tekken.json"));
    if (f->tokenizer_model.data) {
        const char *const name = f->model_name ? f->model_name : "tokenizer.model";
        return (spm_load(t, f->tokenizer_model, e) || err_prefix(e, "%s", name)) &&
               add_configured(t, config, map, e);
    }
    return err_set(e, ERR_LOAD,
                   "there is no tokenizer: neither tokenizer.json nor vocab.json with "
                   "merges.txt nor tokenizer.model nor tekken.json nor a .tiktoken file");
}

/* A small file as a tree. *out NULL where it is absent. */
static bool parse(struct bytes file, const char *name, struct json **out, struct err *e)
{
    if (!file.data)
        return true;
    if (!check_utf8(file, name, e))
        return false;
    *out = json_parse((const char *)file.data, file.size, e);
    if (*out && json_type(*out) != JSON_OBJECT)
        return err_set(e, ERR_LOAD, "%s: not an object", name);
    return *out || err_prefix(e, "%s", name);
}

struct tokenizer *tokenizer_load(const struct tokenizer_files *files, struct err *e)
{
    struct tokenizer *t = calloc(1, sizeof *t);
    if (!t) {
        err_no_memory(e);
        return NULL;
    }
    t->bos = t->eos = -1;
    struct json *config = NULL;
    struct json *map = NULL;
    bool good = parse(files->tokenizer_config, "tokenizer_config.json", &config, e) &&
                parse(files->special_tokens_map, "special_tokens_map.json", &map, e) &&
                load(t, files, config, map, e) && finish(t, config, map, e);
    if (!good) {
        tokenizer_free(t);
        t = NULL;
    }
    json_free(config);
    json_free(map);
    return t;
}

void tokenizer_free(struct tokenizer *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->n_regexes; i++)
        regex_free(t->regex[i]);
    free(t->regex);
    bpe_free(&t->bpe);
    unigram_free(&t->unigram);
    wordpiece_free(&t->wordpiece);
    added_free(&t->added);
    trie_free(&t->user_defined);
    vocab_free(&t->vocab);
    arena_free(&t->arena);
    free(t);
}

int32_t tokenizer_n_ids(const struct tokenizer *t)
{
    return t->vocab.n_ids;
}

size_t tokenizer_bytes(const struct tokenizer *t)
{
    const struct vocab *v = &t->vocab;
    const struct bpe *b = &t->bpe;
    const size_t n_nodes = (size_t)t->unigram.trie.n_nodes + t->wordpiece.trie.n_nodes +
                           t->added.raw.trie.n_nodes + t->added.normalized.trie.n_nodes +
                           t->user_defined.n_nodes;
    const size_t vocab = (size_t)v->n_ids * (sizeof *v->piece + sizeof *t->mark) +
                         v->n_slots * sizeof *v->slot + v->n_text;
    const size_t merges = b->n_merges * (sizeof *b->merge + (b->rank ? sizeof *b->rank : 0)) +
                          b->n_slots * sizeof *b->slot +
                          (b->joint ? ((size_t)1 << b->joint_bits) / 8 : 0);
    return sizeof *t + vocab + merges + n_nodes * sizeof(struct trie_node) +
           t->unigram.n * sizeof *t->unigram.score;
}

int32_t tokenizer_eos(const struct tokenizer *t)
{
    return t->eos;
}

struct bytes tokenizer_piece(const struct tokenizer *t, int32_t id)
{
    return vocab_piece(&t->vocab, id);
}

bool tokenizer_is_special(const struct tokenizer *t, int32_t id)
{
    return id >= 0 && id < t->vocab.n_ids && t->mark[id] & TOKEN_SPECIAL;
}
