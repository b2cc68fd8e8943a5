/*
 * Added tokens: strings that are cut out of the text before the model sees it, some from the raw
 * text, some ("normalized": true) after normalization. All are searched for at once with a trie,
 * behind a filter on their first two bytes, so text without them costs next to nothing.
 */
#include "tokenizer/internal.h"

#include <stdlib.h>

#include "tokenizer/unicode.h"

/* ---- the trie -------------------------------------------------------------------------------- */

static uint32_t new_node(struct added_set *set, unsigned char byte)
{
    if (set->n_nodes == set->capacity) {
        uint32_t capacity = set->capacity ? set->capacity * 2 : 64;
        struct trie_node *node =
            capacity > set->capacity ? realloc(set->node, capacity * sizeof *node) : NULL;
        if (!node) {
            return 0;
        }
        set->node = node;
        set->capacity = capacity;
    }
    if (set->n_nodes == 0) {
        set->node[set->n_nodes++] = (struct trie_node){.token = -1}; /* 0 means none */
    }
    set->node[set->n_nodes] = (struct trie_node){.token = -1, .byte = byte};
    return set->n_nodes++;
}

static uint32_t child_of(const struct added_set *set, uint32_t node, unsigned char byte)
{
    uint32_t child = set->node[node].child;
    while (child && set->node[child].byte != byte) {
        child = set->node[child].sibling;
    }
    return child;
}

static void mark_pairs(struct added_set *set, unsigned char a, const char *rest, size_t n)
{
    for (unsigned b = 0; b < 256; b++) {
        if (n == 0 || b == (unsigned char)*rest) {
            unsigned pair = a * 256u + b;
            set->pair[pair / 64] |= (uint64_t)1 << pair % 64;
        }
    }
}

static bool insert(struct added_set *set, const char *text, size_t n, int32_t token)
{
    if (n == 0) {
        return true;
    }
    unsigned char first = (unsigned char)text[0];
    mark_pairs(set, first, text + 1, n - 1);
    if (!set->root[first] && !(set->root[first] = new_node(set, first))) {
        return false;
    }
    uint32_t at = set->root[first];
    for (size_t i = 1; i < n; i++) {
        uint32_t child = child_of(set, at, (unsigned char)text[i]);
        if (!child) {
            child = new_node(set, (unsigned char)text[i]);
            if (!child) {
                return false;
            }
            set->node[child].sibling = set->node[at].child;
            set->node[at].child = child;
        }
        at = child;
    }
    set->node[at].token = token;
    return true;
}

/* The longest string of the set at s[0..n): its token and size, -1 where there is none. */
static int32_t longest_at(const struct added_set *set, const char *s, size_t n, size_t *size)
{
    int32_t token = -1;
    uint32_t at = set->root[(unsigned char)s[0]];
    for (size_t i = 1; at; i++) {
        if (set->node[at].token >= 0) {
            token = set->node[at].token;
            *size = i;
        }
        at = i < n ? child_of(set, at, (unsigned char)s[i]) : 0;
    }
    return token;
}

static bool maybe_at(const struct added_set *set, const char *s, size_t n)
{
    if (n < 2) {
        return set->root[(unsigned char)s[0]];
    }
    unsigned pair = (unsigned char)s[0] * 256u + (unsigned char)s[1];
    return set->pair[pair / 64] >> pair % 64 & 1;
}

/* ---- searching ------------------------------------------------------------------------------- */

static size_t char_before(const struct piece *in, size_t at)
{
    do {
        at--;
    } while (at > 0 && ((unsigned char)in->data[at] & 0xC0) == 0x80);
    return at;
}

static bool stands_alone(const struct piece *in, struct token_span match)
{
    bool before =
        match.start > 0 && unicode_is_word(utf8_get(in->data + char_before(in, match.start)));
    bool behind = match.end < in->n && unicode_is_word(utf8_get(in->data + match.end));
    return !before && !behind;
}

static void widen(const struct added_token *token, const struct piece *in, size_t taken,
                  struct token_span *match)
{
    while (token->lstrip && match->start > taken) {
        size_t before = char_before(in, match->start);
        if (!unicode_is_space(utf8_get(in->data + before))) {
            break;
        }
        match->start = before;
    }
    while (token->rstrip && match->end < in->n &&
           unicode_is_space(utf8_get(in->data + match->end))) {
        match->end += utf8_size(in->data[match->end]);
    }
}

const struct added_token *added_find(const struct added *a, const struct added_set *set,
                                     const struct piece *in, size_t taken, bool parse_special,
                                     struct token_span *match)
{
    if (!set->n_nodes) {
        return NULL;
    }
    for (size_t i = taken; i < in->n;) {
        size_t size = 0;
        int32_t found = maybe_at(set, in->data + i, in->n - i)
                            ? longest_at(set, in->data + i, in->n - i, &size)
                            : -1;
        if (found < 0) {
            i++;
            continue;
        }
        const struct added_token *token = &a->token[found];
        *match = (struct token_span){i, i + size};
        /* What is passed over stays text as a whole, as in huggingface/tokenizers. */
        i += size;
        if ((token->special && !parse_special) ||
            (token->single_word && !stands_alone(in, *match))) {
            continue;
        }
        widen(token, in, taken, match);
        return token;
    }
    return NULL;
}

/* ---- loading --------------------------------------------------------------------------------- */

bool added_add(struct tokenizer *t, const struct added_token *token, struct err *e)
{
    struct added *a = &t->added;
    int32_t id = vocab_find(&t->vocab, token->content, token->n_content);
    if (id < 0) {
        id = token->id;
        struct bytes content = {(const unsigned char *)token->content, token->n_content};
        if (!vocab_add(&t->vocab, content, id, e)) {
            return err_prefix(e, "added token");
        }
    }
    /* Doubling: n is a power of two exactly when the array is full. */
    if ((a->n & (a->n - 1)) == 0) {
        size_t capacity = a->n ? a->n * 2 : 1;
        struct added_token *list = realloc(a->token, capacity * sizeof *list);
        if (!list) {
            return err_no_memory(e);
        }
        a->token = list;
    }
    struct added_token *new = &a->token[a->n];
    *new = *token;
    new->id = id;
    new->content = (const char *)t->vocab.piece[id].data;
    a->n++;
    return true;
}

bool added_load(struct tokenizer *t, const struct json *list, struct err *e)
{
    if (list && json_type(list) != JSON_ARRAY && json_type(list) != JSON_NULL) {
        return err_set(e, ERR_LOAD, "\"added_tokens\" must be an array, not %s",
                       json_type_name(json_type(list)));
    }
    for (const struct json *c = json_first(list); c; c = json_next(c)) {
        const char *content = component_text(c, "added token", "content", e);
        if (!content) {
            return false;
        }
        int64_t id;
        if (!json_integer(json_get(c, "id"), 0, VOCAB_MAX_IDS - 1, &id)) {
            return err_set(e, ERR_LOAD, "added token \"%.60s\": \"id\" must be within 0 .. %d",
                           content, VOCAB_MAX_IDS - 1);
        }
        struct added_token token = {
            .content = content,
            .n_content = strlen(content),
            .id = (int32_t)id,
            .single_word = json_bool(json_get(c, "single_word"), false),
            .lstrip = json_bool(json_get(c, "lstrip"), false),
            .rstrip = json_bool(json_get(c, "rstrip"), false),
            .normalized = json_bool(json_get(c, "normalized"), true),
            .special = json_bool(json_get(c, "special"), false),
        };
        if (token.n_content && !added_add(t, &token, e)) {
            return false;
        }
    }
    return true;
}

bool added_build(struct tokenizer *t, struct err *e)
{
    struct added *a = &t->added;
    struct normalize_scratch scratch = {.regex = regex_scratch_new()};
    bool good = scratch.regex || err_no_memory(e);
    for (size_t i = 0; good && i < a->n; i++) {
        const struct added_token *token = &a->token[i];
        struct piece content = {.data = token->content, .n = token->n_content, .first = true};
        struct text escaped = {0};
        if (utf8_valid_prefix(content.data, content.n) < content.n) {
            good = text_escape(&escaped, &content) || err_no_memory(e);
            content = text_piece(&escaped, &content);
        }
        if (good && token->normalized) {
            good = normalize_run(t, &scratch, &content, &content, e);
        }
        struct added_set *set = token->normalized ? &a->normalized : &a->raw;
        good = good && (insert(set, content.data, content.n, (int32_t)i) || err_no_memory(e));
        text_free(&escaped);
    }
    text_free(&scratch.text[0]);
    text_free(&scratch.text[1]);
    regex_scratch_free(scratch.regex);
    return good;
}

void added_free(struct added *a)
{
    free(a->token);
    free(a->raw.node);
    free(a->normalized.node);
    *a = (struct added){0};
}
