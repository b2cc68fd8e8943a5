/*
 * "normalizer" of tokenizer.json: a list of steps, each text -> text. A Sequence is flattened and
 * BertNormalizer is spelled out in smaller steps. A step that finds nothing to do says so, and then
 * nothing is copied: that is what NFC does with most text.
 */
#include "tokenizer/internal.h"

#include "tokenizer/unicode.h"

#include <stdlib.h>

enum step {
    STEP_FORM,
    STEP_LOWERCASE,
    STEP_STRIP,
    STEP_DROP_MARKS,      /* StripAccents */
    STEP_DROP_NONSPACING, /* of BertNormalizer: Mn alone */
    STEP_PREPEND,
    STEP_APPEND,
    STEP_REPLACE,
    STEP_PRECOMPILED,
    STEP_SENTENCEPIECE,
    STEP_BYTE_LEVEL,
    STEP_BERT_CLEAN,
    STEP_BERT_CHINESE,
    STEP_NMT
};

struct normalizer {
    enum step step;
    struct charsmap charsmap;
    enum unicode_form form;
    bool left, right; /* strip */
    const char *content;
    size_t n_content;
    struct pattern pattern;
    struct spm_rules spm;
};

/* ---- running --------------------------------------------------------------------------------- */

static size_t chars_of(const struct piece *in, size_t start, size_t end, uint32_t *out)
{
    size_t n = 0;
    for (size_t i = start; i < end; i += utf8_size(in->data[i]))
        out[n++] = utf8_get(in->data + i);
    return n;
}

static bool normalize_part(struct text *out, const struct piece *in, size_t start, size_t end,
                           enum unicode_form form)
{
    uint32_t few[16];
    uint32_t *chars = end - start <= ARRAY_LEN(few) ? few : malloc((end - start) * sizeof *chars);
    if (!chars)
        return false;
    size_t n = chars_of(in, start, end, chars);
    size_t room = unicode_decomposed_count(chars, n, form) * 2;
    uint32_t few_out[64];
    uint32_t *done = room <= ARRAY_LEN(few_out) ? few_out : malloc(room * sizeof *done);
    bool good = done;
    if (good) {
        size_t n_done = unicode_normalize(chars, n, form, done);
        for (size_t i = 0; good && i < n_done; i++) {
            char utf8[4];
            good = text_put(out, utf8, utf8_put(utf8, done[i]), in, start, end);
        }
    }
    if (chars != few)
        free(chars);
    if (done != few_out)
        free(done);
    return good;
}

/* The first character at or behind *at that the form may change; *part: where the run that must be
 * normalized with it begins. False where there is none. */
static bool find_unstable(const struct piece *in, enum unicode_form form, size_t *at, size_t *part)
{
    *part = *at;
    for (size_t i = *at; i < in->n; i += utf8_size(in->data[i])) {
        if ((unsigned char)in->data[i] < 0x80) {
            *part = i;
            continue;
        }
        uint32_t c = utf8_get(in->data + i);
        if (unicode_is_boundary(c, form))
            *part = i;
        if (!unicode_is_stable(c, form)) {
            *at = i;
            return true;
        }
    }
    return false;
}

static bool run_form(struct text *out, const struct piece *in, enum unicode_form form,
                     bool *changed)
{
    size_t done = 0;
    size_t at = 0;
    size_t part;
    while (find_unstable(in, form, &at, &part)) {
        size_t end = at + utf8_size(in->data[at]);
        while (end < in->n && !unicode_is_boundary(utf8_get(in->data + end), form))
            end += utf8_size(in->data[end]);
        if (!text_copy(out, in, done, part) || !normalize_part(out, in, part, end, form))
            return false;
        done = at = end;
        *changed = true;
    }
    return !*changed || text_copy(out, in, done, in->n);
}

static bool run_strip(struct text *out, const struct piece *in, const struct normalizer *z)
{
    size_t start = 0;
    size_t end = in->n;
    while (z->left && start < end && unicode_is_space(utf8_get(in->data + start)))
        start += utf8_size(in->data[start]);
    while (z->right && end > start) {
        size_t last = end - 1;
        while (last > start && utf8_is_continuation(in->data[last]))
            last--;
        if (!unicode_is_space(utf8_get(in->data + last)))
            break;
        end = last;
    }
    return text_copy(out, in, start, end);
}

static bool run_replace(struct text *out, struct normalize_scratch *s, const struct piece *in,
                        const struct normalizer *z, struct err *e)
{
    size_t done = 0;
    size_t from = 0;
    struct token_span match;
    enum regex_result found;
    while ((found = pattern_find(&z->pattern, s->regex, in->data, in->n, from, false, &match, e)) ==
           REGEX_MATCH) {
        bool empty = match.start == match.end;
        if (!text_copy(out, in, done, match.start) ||
            !text_put(out, z->content, z->n_content, in, match.start, match.end))
            return text_end(out, false, in->n, &s->room, e);
        done = from = match.end;
        if (empty) {
            if (from == in->n)
                break;
            from += utf8_size(in->data[from]);
        }
    }
    return found != REGEX_ERROR &&
           text_end(out, text_copy(out, in, done, in->n), in->n, &s->room, e);
}

/* The CJK blocks that BERT's tokenization.py lists in _is_chinese_char; U+2B920 is as in
 * huggingface/tokenizers. */
static bool is_chinese(uint32_t c)
{
    static const struct {
        uint32_t first, last;
    } blocks[] = {{0x4E00, 0x9FFF},   {0x3400, 0x4DBF},   {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F},
                  {0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF}, {0xF900, 0xFAFF},   {0x2F800, 0x2FA1F}};
    for (size_t i = 0; i < ARRAY_LEN(blocks); i++)
        if (c >= blocks[i].first && c <= blocks[i].last)
            return true;
    return false;
}

/* BERT drops NUL, U+FFFD and control characters and makes all white space a blank. */
static size_t bert_clean(uint32_t c, uint32_t *out)
{
    const bool known = c == '\t' || c == '\n' || c == '\r';
    if (c == 0 || c == 0xFFFD || (unicode_is_other(c) && !known))
        return 0;
    out[0] = known || unicode_is_space(c) ? ' ' : c;
    return 1;
}

/* The nmt rules of SentencePiece (data/, builder.cc), as huggingface/tokenizers has them. */
static size_t nmt(uint32_t c, uint32_t *out)
{
    if ((c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F ||
        c == 0x9F)
        return 0;
    bool blank = c == 9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 ||
                 (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
                 c == 0xFEFF || c == 0xFFFD;
    out[0] = blank ? ' ' : c;
    return 1;
}

/* What one character becomes: how many are in out[3]. */
static size_t map_char(enum step step, uint32_t c, uint32_t *out)
{
    switch (step) {
    case STEP_LOWERCASE:
        return unicode_lower(c, out);
    case STEP_BERT_CLEAN:
        return bert_clean(c, out);
    case STEP_NMT:
        return nmt(c, out);
    case STEP_BERT_CHINESE:
        if (is_chinese(c)) {
            out[0] = out[2] = ' ';
            out[1] = c;
            return 3;
        }
        break;
    case STEP_DROP_MARKS:
        if (unicode_is_mark(c))
            return 0;
        break;
    case STEP_DROP_NONSPACING:
        if (unicode_is_nonspacing(c))
            return 0;
        break;
    default:
        break;
    }
    out[0] = c;
    return 1;
}

static bool run_map(struct text *out, const struct piece *in, enum step step)
{
    for (size_t i = 0; i < in->n;) {
        size_t size = utf8_size(in->data[i]);
        uint32_t to[3];
        size_t n = map_char(step, utf8_get(in->data + i), to);
        for (size_t k = 0; k < n; k++) {
            char utf8[4];
            if (!text_put(out, utf8, utf8_put(utf8, to[k]), in, i, i + size))
                return false;
        }
        i += size;
    }
    return true;
}

/* *changed: `out` holds the result; else it is `in`. */
static bool run_step(const struct tokenizer *t, const struct normalizer *z,
                     struct normalize_scratch *s, const struct piece *in, struct text *out,
                     bool *changed, struct err *e)
{
    *changed = z->step != STEP_FORM;
    bool good = true;
    switch (z->step) {
    case STEP_FORM:
        good = run_form(out, in, z->form, changed);
        break;
    case STEP_STRIP:
        good = run_strip(out, in, z);
        break;
    case STEP_PREPEND:
        good = in->n == 0 ||
               (text_put(out, z->content, z->n_content, in, 0, 0) && text_copy(out, in, 0, in->n));
        break;
    case STEP_APPEND:
        good = in->n == 0 || (text_copy(out, in, 0, in->n) &&
                              text_put(out, z->content, z->n_content, in, in->n, in->n));
        break;
    case STEP_REPLACE:
        return run_replace(out, s, in, z, e);
    case STEP_PRECOMPILED:
        good = charsmap_run(out, in, &z->charsmap);
        break;
    case STEP_SENTENCEPIECE:
        good = spm_normalize(out, in, t, &z->spm);
        break;
    case STEP_BYTE_LEVEL:
        good = text_spell(out, in);
        break;
    default:
        good = run_map(out, in, z->step);
    }
    return text_end(out, good, in->n, &s->room, e);
}

bool normalize_run(const struct tokenizer *t, struct normalize_scratch *s, const struct piece *in,
                   struct piece *out, struct err *e)
{
    *out = *in;
    int next = 0;
    for (size_t i = 0; i < t->n_normalizers; i++) {
        struct text *to = &s->text[next];
        bool changed;
        text_begin(to, out->n, s->room);
        if (!run_step(t, &t->normalizer[i], s, out, to, &changed, e))
            return false;
        if (changed) {
            *out = text_piece(to, out);
            next = !next;
        }
    }
    return true;
}

bool normalize_may_cut(const struct tokenizer *t, uint32_t c)
{
    for (size_t i = 0; i < t->n_normalizers; i++) {
        const struct normalizer *z = &t->normalizer[i];
        /* Graphic ASCII is left in place by all steps, so that it parts what a form composes; a
         * form that comes first sees other boundaries as they are. */
        bool plain = (c >= 0x20 && c < 0x7F) || c == '\n';
        switch (z->step) {
        case STEP_FORM:
            if (!plain && (i > 0 || !unicode_is_boundary(c, z->form)))
                return false;
            break;
        case STEP_LOWERCASE:
        case STEP_DROP_MARKS:
        case STEP_DROP_NONSPACING:
        case STEP_BYTE_LEVEL:
        case STEP_BERT_CLEAN:
        case STEP_BERT_CHINESE:
        case STEP_NMT:
            break; /* character by character */
        default:
            return false;
        }
    }
    return true;
}

/* ---- loading --------------------------------------------------------------------------------- */

/* BertNormalizer makes up to 5 steps; nothing else makes more than one. */
enum { MAX_STEPS = 64 };

struct loading {
    struct tokenizer *t;
    struct normalizer step[MAX_STEPS];
    size_t n;
    struct err *e;
};

static bool add_step(struct loading *l, struct normalizer step)
{
    if (l->n == MAX_STEPS)
        return err_set(l->e, ERR_LOAD, "normalizer: more than %d steps", MAX_STEPS);
    l->step[l->n++] = step;
    return true;
}

static bool load_content(struct loading *l, struct normalizer *z, const struct json *j,
                         const char *key)
{
    const char *content = component_text(j, "normalizer", key, l->e);
    if (!content)
        return false;
    z->n_content = strlen(content);
    z->content = arena_text(&l->t->arena, content, z->n_content);
    return z->content ? add_step(l, *z) : err_no_memory(l->e);
}

static bool load_replace(struct loading *l, const struct json *j)
{
    struct normalizer z = {.step = STEP_REPLACE};
    return pattern_load(&z.pattern, json_get(j, "pattern"), l->t, "normalizer Replace", l->e) &&
           load_content(l, &z, j, "content");
}

static bool load_prepend(struct loading *l, const struct json *j)
{
    return load_content(l, &(struct normalizer){.step = STEP_PREPEND}, j, "prepend");
}

static bool load_append(struct loading *l, const struct json *j)
{
    return load_content(l, &(struct normalizer){.step = STEP_APPEND}, j, "append");
}

static bool load_strip(struct loading *l, const struct json *j)
{
    return add_step(l, (struct normalizer){.step = STEP_STRIP,
                                           .left = json_bool(json_get(j, "strip_left"), true),
                                           .right = json_bool(json_get(j, "strip_right"), true)});
}

static bool load_bert(struct loading *l, const struct json *j)
{
    bool lowercase = json_bool(json_get(j, "lowercase"), true);
    bool good = true;
    if (json_bool(json_get(j, "clean_text"), true))
        good = add_step(l, (struct normalizer){.step = STEP_BERT_CLEAN});
    if (good && json_bool(json_get(j, "handle_chinese_chars"), true))
        good = add_step(l, (struct normalizer){.step = STEP_BERT_CHINESE});
    /* strip_accents null: as lowercase. */
    if (good && json_bool(json_get(j, "strip_accents"), lowercase)) {
        good = add_step(l, (struct normalizer){.step = STEP_FORM, .form = UNICODE_NFD}) &&
               add_step(l, (struct normalizer){.step = STEP_DROP_NONSPACING});
    }
    if (good && lowercase)
        good = add_step(l, (struct normalizer){.step = STEP_LOWERCASE});
    return good;
}

static bool load_precompiled(struct loading *l, const struct json *j)
{
    const char *text = component_text(j, "normalizer", "precompiled_charsmap", l->e);
    if (!text)
        return false;
    unsigned char *blob = arena_alloc(&l->t->arena, strlen(text));
    if (!blob)
        return err_no_memory(l->e);
    size_t n = base64_decode(text, strlen(text), blob);
    if (n == SIZE_MAX)
        return err_set(l->e, ERR_LOAD, "normalizer Precompiled: the charsmap is no base64");
    struct normalizer z = {.step = STEP_PRECOMPILED};
    return n == 0 /* the name of no rules at all */ ||
           (charsmap_read(&z.charsmap, (struct bytes){blob, n}, l->e) && add_step(l, z));
}

static bool load_steps(struct loading *l, const struct json *j);

static bool load_sequence(struct loading *l, const struct json *j)
{
    const struct json *list = json_get(j, "normalizers");
    if (json_type(list) != JSON_ARRAY)
        return err_set(l->e, ERR_LOAD, "normalizer Sequence has no list of \"normalizers\"");
    for (const struct json *c = json_first(list); c; c = json_next(c))
        if (!load_steps(l, c))
            return false;
    return true;
}

/* Components without parameters. */
static const struct {
    const char *type;
    struct normalizer step;
} simple[] = {
    {"NFC", {.step = STEP_FORM, .form = UNICODE_NFC}},
    {"NFD", {.step = STEP_FORM, .form = UNICODE_NFD}},
    {"NFKC", {.step = STEP_FORM, .form = UNICODE_NFKC}},
    {"NFKD", {.step = STEP_FORM, .form = UNICODE_NFKD}},
    {"Lowercase", {.step = STEP_LOWERCASE}},
    {"StripAccents", {.step = STEP_DROP_MARKS}},
    {"ByteLevel", {.step = STEP_BYTE_LEVEL}},
    {"Nmt", {.step = STEP_NMT}},
};

/* All others. */
static const struct {
    const char *type;
    bool (*load)(struct loading *l, const struct json *j);
} types[] = {
    {"Sequence", load_sequence},   {"Replace", load_replace}, {"Prepend", load_prepend},
    {"Append", load_append},       {"Strip", load_strip},     {"Precompiled", load_precompiled},
    {"BertNormalizer", load_bert},
};

static bool load_steps(struct loading *l, const struct json *j)
{
    const char *type = component_type(j, "normalizer", l->e);
    if (!type)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(simple); i++)
        if (strcmp(type, simple[i].type) == 0)
            return add_step(l, simple[i].step);
    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if (strcmp(type, types[i].type) == 0)
            return types[i].load(l, j);
    return err_set(l->e, ERR_LOAD, "normalizer \"%.60s\" is not supported", type);
}

static bool keep_steps(struct loading *l)
{
    struct tokenizer *t = l->t;
    t->normalizer = arena_array(&t->arena, l->n, sizeof *t->normalizer);
    if (!t->normalizer)
        return err_no_memory(l->e);
    for (size_t i = 0; i < l->n; i++)
        t->normalizer[i] = l->step[i];
    t->n_normalizers = l->n;
    return true;
}

bool normalize_load(struct tokenizer *t, const struct json *j, struct err *e)
{
    if (json_type(j) == JSON_NULL)
        return true;
    struct loading l = {.t = t, .e = e};
    return load_steps(&l, j) && keep_steps(&l);
}

bool normalize_load_spm(struct tokenizer *t, const struct spm_rules *rules, struct err *e)
{
    struct loading l = {.t = t, .e = e};
    return add_step(&l, (struct normalizer){.step = STEP_SENTENCEPIECE, .spm = *rules}) &&
           (!rules->escape_whitespaces ||
            add_step(&l, (struct normalizer){.step = STEP_REPLACE,
                                             .pattern = {.literal = " ", .n_literal = 1},
                                             .content = spm_blank,
                                             .n_content = sizeof spm_blank - 1})) &&
           keep_steps(&l);
}
