/*
 * Added tokens: strings that are cut out of the text before the model sees it, some from the raw
 * text, some ("normalized": true) after normalization. All are searched for at once with a trie,
 * behind a filter on their first two bytes, so text without them costs next to nothing.
 */
#include "tokenizer/internal.h"

#include "tokenizer/unicode.h"

#include <stdlib.h>

/* ---- the sets -------------------------------------------------------------------------------- */

static void mark_pairs(struct added_set *set, struct bytes text)
{
    for (unsigned b = 0; b < 256; b++) {
        if (text.size == 1 || b == text.data[1]) {
            unsigned pair = text.data[0] * 256u + b;
            set->pair[pair / 64] |= (uint64_t)1 << pair % 64;
        }
    }
}

static bool maybe_at(const struct added_set *set, const char *s, size_t n)
{
    if (n < 2)
        return set->trie.root[(unsigned char)s[0]];
    unsigned pair = (unsigned char)s[0] * 256u + (unsigned char)s[1];
    return set->pair[pair / 64] >> pair % 64 & 1;
}

/* ---- searching ------------------------------------------------------------------------------- */

static size_t char_before(const struct piece *in, size_t at)
{
    do {
        at--;
    } while (at > 0 && utf8_is_continuation(in->data[at]));
    return at;
}

static bool stands_alone(const struct piece *in, struct token_span match)
{
    bool before =
        match.start > 0 && unicode_is_word(utf8_get(in->data + char_before(in, match.start)));
    bool behind = match.end < in->n && unicode_is_word(utf8_get(in->data + match.end));
    return !before && !behind;
}

static void widen(const struct added_token *token, const struct piece *in,
                  struct added_search *search, struct token_span *match)
{
    const size_t done = search->done;
    while (token->lstrip && match->start > done) {
        size_t before = char_before(in, match->start);
        if (!unicode_is_space(utf8_get(in->data + before)))
            break;
        match->start = before;
    }
    if (token->lstrip && match->start < done)
        match->start = done;
    if (!token->rstrip)
        return;
    match->end = max_size(match->end, search->blank);
    while (match->end < in->n && unicode_is_space(utf8_get(in->data + match->end)))
        match->end += utf8_size(in->data[match->end]);
    search->blank = match->end;
}

const struct added_token *added_find(const struct added *a, const struct added_set *set,
                                     const struct piece *in, bool parse_special,
                                     struct added_search *search, struct token_span *match)
{
    if (!set->trie.n_nodes)
        return NULL;
    for (size_t i = search->from; i < in->n;) {
        size_t size = 0;
        int32_t found = maybe_at(set, in->data + i, in->n - i)
                            ? trie_longest(&set->trie, in->data + i, in->n - i, &size)
                            : -1;
        if (found < 0) {
            i++;
            continue;
        }
        const struct added_token *token = &a->token[found];
        *match = (struct token_span){i, i + size};
        /* What is passed over stays text as a whole, as in huggingface/tokenizers. */
        i += size;
        if ((token->special && !parse_special) || (token->single_word && !stands_alone(in, *match)))
            continue;
        search->from = i;
        widen(token, in, search, match);
        if (match->start < match->end) {
            search->done = match->end;
            return token;
        }
    }
    return NULL;
}

bool added_covers(const struct added_set *set, const char *text, size_t n, size_t at)
{
    for (size_t i = at > set->longest ? at - set->longest : 0; i < at; i++) {
        size_t size = 0;
        if (maybe_at(set, text + i, n - i) &&
            trie_longest(&set->trie, text + i, n - i, &size) >= 0 && size > at - i)
            return true;
    }
    return false;
}

/* ---- loading --------------------------------------------------------------------------------- */

bool added_add(struct tokenizer *t, const struct added_token *token, struct err *e)
{
    struct added *a = &t->added;
    int32_t id = vocab_find(&t->vocab, token->content, token->n_content);
    const bool outside = id < 0;
    if (outside) {
        id = token->id;
        struct bytes content = {(const unsigned char *)token->content, token->n_content};
        if (!vocab_add(&t->vocab, content, id, e))
            return err_prefix(e, "added token");
    }
    struct added_token *list = grow_array(a->token, &a->capacity, a->n + 1, sizeof *list, 8);
    if (!list)
        return err_no_memory(e);
    a->token = list;
    struct added_token *new = &a->token[a->n];
    *new = *token;
    new->id = id;
    new->content = NULL; /* its id knows the spelling */
    new->outside = outside;
    a->lstrip = a->lstrip || token->lstrip;
    a->single_word = a->single_word || token->single_word;
    a->n++;
    return true;
}

bool added_add_json(struct tokenizer *t, const struct json *j, const char *content, int32_t id,
                    struct err *e)
{
    const bool special = json_bool(json_get(j, "special"), false);
    const struct added_token token = {
        .content = content,
        .n_content = strlen(content),
        .id = id,
        .single_word = json_bool(json_get(j, "single_word"), false),
        .lstrip = json_bool(json_get(j, "lstrip"), false),
        .rstrip = json_bool(json_get(j, "rstrip"), false),
        .normalized = json_bool(json_get(j, "normalized"), !special),
        .special = special,
    };
    return added_add(t, &token, e);
}

bool added_load(struct tokenizer *t, const struct json *list, struct err *e)
{
    if (json_type(list) != JSON_ARRAY && json_type(list) != JSON_NULL) {
        return err_set(e, ERR_LOAD, "\"added_tokens\" must be an array, not %s",
                       json_type_name(json_type(list)));
    }
    for (const struct json *c = json_first(list); c; c = json_next(c)) {
        const char *content = component_text(c, "added token", "content", e);
        if (!content)
            return false;
        int64_t id;
        if (!json_integer(json_get(c, "id"), 0, VOCAB_MAX_IDS - 1, &id)) {
            return err_set(e, ERR_LOAD, "added token \"%.60s\": \"id\" must be within 0 .. %d",
                           content, VOCAB_MAX_IDS - 1);
        }
        if (*content && !added_add_json(t, c, content, (int32_t)id, e))
            return false;
    }
    return true;
}

/* What the token looks like in the text that it is searched in: a copy in the arena. */
static bool spell(struct tokenizer *t, struct normalize_scratch *s, const struct added_token *token,
                  struct bytes *out, struct err *e)
{
    const struct bytes spelling = vocab_piece(&t->vocab, token->id);
    struct piece content = {.data = (const char *)spelling.data, .n = spelling.size, .first = true};
    if (token->normalized && !token->as_it_is && !normalize_run(t, s, &content, &content, e))
        return false;
    char *copy = arena_text(&t->arena, content.data, content.n);
    *out = (struct bytes){(const unsigned char *)copy, content.n};
    return copy || err_no_memory(e);
}

uint32_t *added_last(struct added *a, size_t n_ids)
{
    uint32_t *last = calloc(n_ids + 1, sizeof *last);
    for (size_t i = 0; last && i < a->n; i++) {
        struct added_token *const token = &a->token[i];
        if (last[token->id])
            token->special |= a->token[last[token->id] - 1].special;
        last[token->id] = (uint32_t)i + 1;
    }
    return last;
}

static bool build_set(struct tokenizer *t, bool normalized, const uint32_t *last,
                      struct trie_entry *entry, struct normalize_scratch *s, struct err *e)
{
    const struct added *a = &t->added;
    struct added_set *set = normalized ? &t->added.normalized : &t->added.raw;
    size_t n = 0;
    for (size_t i = 0; i < a->n; i++) {
        if (a->token[i].normalized != normalized || last[a->token[i].id] != i + 1)
            continue;
        struct bytes text;
        if (!spell(t, s, &a->token[i], &text, e))
            return false;
        if (text.size) {
            mark_pairs(set, text);
            set->longest = max_size(set->longest, text.size);
            entry[n++] = (struct trie_entry){text, (int32_t)i};
        }
    }
    return trie_build(&set->trie, entry, n, e);
}

bool added_build(struct tokenizer *t, struct err *e)
{
    struct normalize_scratch scratch = {.room = text_room(t->vocab.n_text),
                                        .regex = regex_scratch_new()};
    struct trie_entry *entry = malloc((t->added.n + 1) * sizeof *entry);
    uint32_t *last = added_last(&t->added, (size_t)t->vocab.n_ids);
    bool good = scratch.regex && entry && last;
    good = good ? build_set(t, false, last, entry, &scratch, e) &&
                      build_set(t, true, last, entry, &scratch, e)
                : err_no_memory(e);
    free(last);
    free(entry);
    text_free(&scratch.text[0]);
    text_free(&scratch.text[1]);
    regex_scratch_free(scratch.regex);
    return good;
}

void added_free(struct added *a)
{
    free(a->token);
    trie_free(&a->raw.trie);
    trie_free(&a->normalized.trie);
    *a = (struct added){0};
}
