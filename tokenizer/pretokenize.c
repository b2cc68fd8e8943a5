/*
 * "pre_tokenizer" of tokenizer.json: a list of stages that split a piece of text, and some of which
 * change it. Pieces go through depth first: each piece that a stage cuts off runs through all
 * stages behind it and the model before the next is cut, so a text of any length needs no list of
 * its words. A Sequence is flattened, and so is BertPreTokenizer.
 */
#include "tokenizer/internal.h"

#include "tokenizer/unicode.h"

enum behavior { REMOVED, ISOLATED, MERGED_WITH_PREVIOUS, MERGED_WITH_NEXT, CONTIGUOUS };

enum stage {
    STAGE_BYTE_LEVEL, /* optional blank in front, split by GPT-2's pattern, spell bytes */
    STAGE_SPLIT,      /* by a pattern */
    STAGE_METASPACE,
    STAGE_CLASS, /* by a property of single characters: Digits, Punctuation, ... */
    STAGE_WORDS, /* Whitespace: runs of word characters and of other signs */
    STAGE_SCRIPTS,
    STAGE_FIXED
};

enum prepend { PREPEND_ALWAYS, PREPEND_FIRST, PREPEND_NEVER };

struct pretokenizer {
    enum stage stage;
    enum behavior behavior;
    bool invert;
    bool split;        /* by pattern; ByteLevel: use_regex, Metaspace: split */
    bool prefix_space; /* ByteLevel */
    bool spell;        /* ByteLevel: there are stages behind that see the spelling of bytes */
    enum prepend prepend;
    struct pattern pattern;
    bool (*is)(uint32_t c, uint32_t delimiter); /* STAGE_CLASS */
    uint32_t delimiter;
    size_t length; /* FixedLength, in characters */
};

/* ---- cutting --------------------------------------------------------------------------------- */

static bool run_from(struct encoder *en, size_t stage, const struct piece *in);

/* One stage at work on one piece: what it finds comes in as ranges without gaps, matches and what
 * lies between, and goes out as the behavior wants it. */
struct cutter {
    struct encoder *en;
    const struct pretokenizer *p;
    size_t next; /* stage */
    const struct piece *in;
    struct token_span held; /* waits for its neighbour */
    bool holds, held_match;
    bool open; /* more may follow: nothing is sent that this could change */
};

static bool send(struct cutter *c, struct token_span range)
{
    if (range.start == range.end)
        return true;
    struct piece part = piece_slice(c->in, range.start, range.end);
    return run_from(c->en, c->next, &part);
}

static bool flush(struct cutter *c)
{
    bool good = !c->holds || send(c, c->held);
    c->holds = false;
    return good;
}

static bool hold(struct cutter *c, struct token_span range, bool match)
{
    if (!flush(c))
        return false;
    c->held = range;
    c->held_match = match;
    c->holds = true;
    return true;
}

/* huggingface/tokenizers, NormalizedString::split: which of two neighbours become one. */
static bool joins(const struct cutter *c, bool match)
{
    if (!c->holds)
        return false;
    switch (c->p->behavior) {
    case CONTIGUOUS:
        return match == c->held_match;
    case MERGED_WITH_PREVIOUS:
        return match && !c->held_match;
    case MERGED_WITH_NEXT:
        return !match && c->held_match;
    default:
        return false;
    }
}

static bool cut_by_behavior(struct cutter *c, size_t start, size_t end, bool match)
{
    match = match != c->p->invert;
    struct token_span range = {start, end};
    switch (c->p->behavior) {
    case REMOVED:
        return match || send(c, range);
    case ISOLATED:
        return send(c, range);
    default:
        break;
    }
    if (joins(c, match)) {
        c->held.end = end;
        c->held_match = match;
        return true;
    }
    return hold(c, range, match);
}

static bool cut(struct cutter *c, size_t start, size_t end, bool match)
{
    if (!cut_by_behavior(c, start, end, match))
        return false;
    if (c->open)
        part_stop(c->en, c->in, c->holds ? c->held.start : end);
    return true;
}

/* What is left behind the last match. */
static bool cut_rest(struct cutter *c, size_t done)
{
    return c->open || ((done == c->in->n || cut(c, done, c->in->n, false)) && flush(c));
}

static enum regex_result find_next(const struct cutter *c, size_t from, struct token_span *m)
{
    return pattern_find(&c->p->pattern, c->en->regex, c->in->data, c->in->n, from, c->open, m,
                        c->en->e);
}

static bool split_by_pattern(struct cutter *c)
{
    const struct piece *in = c->in;
    size_t done = 0;
    size_t from = 0;
    bool any = false;
    struct token_span m;
    enum regex_result found;
    while (from <= in->n && (found = find_next(c, from, &m)) == REGEX_MATCH) {
        bool empty = m.start == m.end;
        /* Oniguruma's iterator: no empty match right behind a match. */
        if (!(empty && any && m.start == done)) {
            if ((m.start > done && !cut(c, done, m.start, false)) || !cut(c, m.start, m.end, true))
                return false;
            done = m.end;
            any = true;
        }
        from = m.end;
        if (empty)
            from += from < in->n ? utf8_size(in->data[from]) : 1;
    }
    if (from <= in->n && found == REGEX_ERROR)
        return false;
    return cut_rest(c, done);
}

static bool split_by_class(struct cutter *c)
{
    const struct piece *in = c->in;
    size_t done = 0;
    for (size_t i = 0; i < in->n;) {
        size_t end = i + utf8_size(in->data[i]);
        if (c->p->is(utf8_get(in->data + i), c->p->delimiter)) {
            if ((i > done && !cut(c, done, i, false)) || !cut(c, i, end, true))
                return false;
            done = end;
        }
        i = end;
    }
    return cut_rest(c, done);
}

/* Of \w+|[^\w\s]+ : 0 white space, 1 word, 2 other. */
static int word_class(uint32_t c)
{
    return unicode_is_word(c) ? 1 : unicode_is_space(c) ? 0 : 2;
}

static bool split_words(struct cutter *c)
{
    const struct piece *in = c->in;
    size_t start = 0;
    int run = 0;
    for (size_t i = 0; i < in->n; i += utf8_size(in->data[i])) {
        int here = word_class(utf8_get(in->data + i));
        if (here != run) {
            if (run && !send(c, (struct token_span){start, i}))
                return false;
            start = i;
            run = here;
            if (c->open)
                part_stop(c->en, in, i);
        }
    }
    return c->open || !run || send(c, (struct token_span){start, in->n});
}

enum { SCRIPT_ANY = -1 };

/* As SentencePiece groups scripts for Unigram: Japanese is one, blanks belong to any. */
static int script_group(uint32_t c, int han)
{
    int script = unicode_script(c);
    if (c == ' ' || script == UNICODE_SCRIPT_UNKNOWN)
        return SCRIPT_ANY;
    bool kana = c == 0x30FC || script == unicode_script(0x3042) || script == unicode_script(0x30A2);
    return kana ? han : script;
}

static bool split_scripts(struct cutter *c)
{
    const struct piece *in = c->in;
    int han = unicode_script(0x4E00);
    int last = SCRIPT_ANY;
    size_t start = 0;
    for (size_t i = 0; i < in->n; i += utf8_size(in->data[i])) {
        int here = script_group(utf8_get(in->data + i), han);
        if (here == SCRIPT_ANY)
            continue;
        if (here != last) {
            /* What stands before the first script is dropped, as in huggingface/tokenizers. */
            if (last != SCRIPT_ANY && !send(c, (struct token_span){start, i}))
                return false;
            start = i;
            last = here;
        }
    }
    return last == SCRIPT_ANY || send(c, (struct token_span){start, in->n});
}

static bool split_fixed(struct cutter *c)
{
    const struct piece *in = c->in;
    size_t start = 0;
    size_t count = 0;
    for (size_t i = 0; i < in->n; i += utf8_size(in->data[i])) {
        if (count == c->p->length) {
            if (!send(c, (struct token_span){start, i}))
                return false;
            start = i;
            count = 0;
        }
        count++;
    }
    return send(c, (struct token_span){start, in->n});
}

/* ---- stages that change text ----------------------------------------------------------------- */

/* Behind the split of ByteLevel: every word is spelled in byte-level characters, unless it goes
 * straight to a model that takes bytes (bpe.raw). */
static bool run_spelled(struct encoder *en, size_t stage, const struct piece *in)
{
    const struct pretokenizer *p = &en->t->pretokenizer[stage];
    struct cutter c = {.en = en, .p = p, .next = stage + 1, .in = in};
    if (!p->spell && !en->escapes)
        return send(&c, (struct token_span){0, in->n});
    struct text *out = &en->spelled[stage];
    size_t *const room = &en->normalize.room;
    text_begin(out, in->n, *room);
    if (!text_end(out, p->spell ? text_spell(out, in) : text_unescape(out, in), in->n, room, en->e))
        return false;
    struct piece spelled = text_piece(out, in);
    c.in = &spelled;
    return send(&c, (struct token_span){0, spelled.n});
}

static bool run_byte_level(struct encoder *en, size_t stage, const struct piece *in)
{
    const struct pretokenizer *p = &en->t->pretokenizer[stage];
    struct piece prefixed;
    if (p->prefix_space && in->data[0] != ' ') {
        struct text *out = &en->stage[stage];
        text_begin(out, in->n, en->normalize.room);
        const bool good = text_put(out, " ", 1, in, 0, 0) && text_copy(out, in, 0, in->n);
        if (!text_end(out, good, in->n, &en->normalize.room, en->e))
            return false;
        prefixed = text_piece(out, in);
        in = &prefixed;
    }
    if (!p->split)
        return run_spelled(en, stage, in);
    const struct cutter c = {.en = en, .p = p, .in = in, .open = en->open && stage == 0};
    size_t from = 0;
    struct token_span m;
    enum regex_result found = REGEX_NONE;
    while (from < in->n && (found = find_next(&c, from, &m)) == REGEX_MATCH) {
        struct piece gap = piece_slice(in, from, m.start);
        struct piece word = piece_slice(in, m.start, m.end);
        if ((gap.n && !run_spelled(en, stage, &gap)) || !run_spelled(en, stage, &word))
            return false;
        from = m.end;
        if (c.open)
            part_stop(en, in, from);
    }
    if (found == REGEX_ERROR)
        return false;
    if (c.open)
        return true;
    struct piece rest = piece_slice(in, from, in->n);
    return rest.n == 0 || run_spelled(en, stage, &rest);
}

static bool is_delimiter(uint32_t c, uint32_t delimiter)
{
    return c == delimiter;
}

static bool write_metaspace(struct text *out, const struct pretokenizer *p, const struct piece *in)
{
    char mark[4];
    size_t n_mark = utf8_put(mark, p->delimiter);
    bool has_mark = in->data[0] == ' ' || (in->n >= n_mark && memcmp(in->data, mark, n_mark) == 0);
    bool wanted = p->prepend == PREPEND_ALWAYS || (p->prepend == PREPEND_FIRST && in->first);
    if (wanted && !has_mark && !text_put(out, mark, n_mark, in, 0, 0))
        return false;
    size_t done = 0;
    const char *blank;
    while ((blank = memchr(in->data + done, ' ', in->n - done))) {
        size_t at = (size_t)(blank - in->data);
        if (!text_copy(out, in, done, at) || !text_put(out, mark, n_mark, in, at, at + 1))
            return false;
        done = at + 1;
    }
    return text_copy(out, in, done, in->n);
}

static bool run_metaspace(struct encoder *en, size_t stage, const struct piece *in)
{
    const struct pretokenizer *p = &en->t->pretokenizer[stage];
    struct text *out = &en->stage[stage];
    text_begin(out, in->n, en->normalize.room);
    if (!text_end(out, write_metaspace(out, p, in), in->n, &en->normalize.room, en->e))
        return false;
    struct piece marked = text_piece(out, in);
    struct cutter c = {.en = en, .p = p, .next = stage + 1, .in = &marked};
    return p->split ? split_by_class(&c) : send(&c, (struct token_span){0, marked.n});
}

static bool run_from(struct encoder *en, size_t stage, const struct piece *in)
{
    if (stage == en->t->n_pretokenizers)
        return encode_word(en, in);
    const struct pretokenizer *p = &en->t->pretokenizer[stage];
    struct cutter c = {
        .en = en, .p = p, .next = stage + 1, .in = in, .open = en->open && stage == 0};
    switch (p->stage) {
    case STAGE_BYTE_LEVEL:
        return run_byte_level(en, stage, in);
    case STAGE_METASPACE:
        return run_metaspace(en, stage, in);
    case STAGE_CLASS:
        return split_by_class(&c);
    case STAGE_WORDS:
        return split_words(&c);
    case STAGE_SCRIPTS:
        return split_scripts(&c);
    case STAGE_FIXED:
        return split_fixed(&c);
    default:
        return split_by_pattern(&c);
    }
}

bool pretokenize_run(struct encoder *en, const struct piece *in)
{
    return in->n == 0 || run_from(en, 0, in);
}

bool pretokenize_run_open(struct encoder *en, const struct piece *in)
{
    en->open = true;
    bool good = pretokenize_run(en, in);
    en->open = false;
    return good;
}

bool pretokenize_is_open(const struct tokenizer *t)
{
    if (t->n_pretokenizers == 0)
        return false;
    const struct pretokenizer *p = &t->pretokenizer[0];
    switch (p->stage) {
    case STAGE_BYTE_LEVEL:
        return p->split;
    case STAGE_SPLIT:
        /* Empty matches would have to be remembered where neighbours join. */
        return p->pattern.literal || (!regex_looks_behind(p->pattern.regex) &&
                                      (p->behavior == ISOLATED || p->behavior == REMOVED));
    case STAGE_CLASS:
    case STAGE_WORDS:
        return true;
    default:
        return false;
    }
}

bool pretokenize_may_cut(const struct tokenizer *t, const struct piece *in, size_t at)
{
    /* A part that begins with a blank gets no other in front. */
    return !t->pretokenizer[0].prefix_space || in->data[at] == ' ';
}

/* ---- loading --------------------------------------------------------------------------------- */

enum { MAX_STAGES = 64 };

struct loading {
    struct tokenizer *t;
    struct pretokenizer stage[MAX_STAGES];
    size_t n;
    struct err *e;
};

static bool add_stage(struct loading *l, struct pretokenizer stage)
{
    if (l->n == MAX_STAGES)
        return err_set(l->e, ERR_LOAD, "pre_tokenizer: more than %d stages", MAX_STAGES);
    l->stage[l->n++] = stage;
    return true;
}

static bool is_space(uint32_t c, uint32_t unused)
{
    (void)unused;
    return unicode_is_space(c);
}

static bool is_punctuation(uint32_t c, uint32_t unused)
{
    (void)unused;
    return unicode_is_punctuation(c);
}

static bool is_number(uint32_t c, uint32_t unused)
{
    (void)unused;
    return unicode_is_number(c);
}

static bool load_behavior(struct loading *l, const struct json *j, enum behavior *out)
{
    static const char *const names[] = {"Removed", "Isolated", "MergedWithPrevious",
                                        "MergedWithNext", "Contiguous"};
    const char *name = component_text(j, "pre_tokenizer", "behavior", l->e);
    for (size_t i = 0; name && i < ARRAY_LEN(names); i++) {
        if (strcmp(name, names[i]) == 0) {
            *out = (enum behavior)i;
            return true;
        }
    }
    return name &&
           err_set(l->e, ERR_LOAD, "pre_tokenizer: the behavior \"%.40s\" is not supported", name);
}

/* openai/gpt-2, encoder.py; the pattern is part of ByteLevel's definition. */
static const char gpt2_pattern[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

static bool load_byte_level(struct loading *l, const struct json *j)
{
    struct pretokenizer p = {
        .stage = STAGE_BYTE_LEVEL,
        .prefix_space = json_bool(json_get(j, "add_prefix_space"), true),
        .split = json_bool(json_get(j, "use_regex"), true),
    };
    if (p.split) {
        p.pattern.regex = regex_compile(gpt2_pattern, l->e);
        if (!p.pattern.regex || !tokenizer_own_regex(l->t, p.pattern.regex, l->e))
            return false;
    }
    return add_stage(l, p);
}

static bool load_split(struct loading *l, const struct json *j)
{
    struct pretokenizer p = {.stage = STAGE_SPLIT,
                             .invert = json_bool(json_get(j, "invert"), false)};
    return pattern_load(&p.pattern, json_get(j, "pattern"), l->t, "pre_tokenizer Split", l->e) &&
           load_behavior(l, j, &p.behavior) && add_stage(l, p);
}

/* A member that is one character. */
static bool load_char(struct loading *l, const struct json *j, const char *key, uint32_t *out)
{
    const char *text = component_text(j, "pre_tokenizer", key, l->e);
    if (!text)
        return false;
    size_t n = strlen(text);
    if (n == 0 || utf8_valid_prefix(text, n) < n || utf8_size(*text) != n) {
        return err_set(l->e, ERR_LOAD, "pre_tokenizer: \"%s\" must be one character, not \"%.40s\"",
                       key, text);
    }
    *out = utf8_get(text);
    return true;
}

static bool load_metaspace(struct loading *l, const struct json *j)
{
    struct pretokenizer p = {.stage = STAGE_METASPACE,
                             .behavior = MERGED_WITH_NEXT,
                             .is = is_delimiter,
                             .split = json_bool(json_get(j, "split"), true)};
    const char *scheme = json_text(json_get(j, "prepend_scheme"), "always");
    p.prepend = strcmp(scheme, "always") == 0  ? PREPEND_ALWAYS
                : strcmp(scheme, "first") == 0 ? PREPEND_FIRST
                                               : PREPEND_NEVER;
    if (p.prepend == PREPEND_NEVER && strcmp(scheme, "never") != 0) {
        return err_set(l->e, ERR_LOAD,
                       "pre_tokenizer Metaspace: the prepend_scheme \"%.40s\" is not supported",
                       scheme);
    }
    if (!json_bool(json_get(j, "add_prefix_space"), true))
        p.prepend = PREPEND_NEVER; /* files from before prepend_scheme */
    return load_char(l, j, "replacement", &p.delimiter) && add_stage(l, p);
}

static bool load_fixed(struct loading *l, const struct json *j)
{
    int64_t length = 5;
    const struct json *given = json_get(j, "length");
    if (given && !json_integer(given, 1, INT32_MAX, &length))
        return err_set(l->e, ERR_LOAD, "pre_tokenizer FixedLength: \"length\" must be 1 or more");
    return add_stage(l, (struct pretokenizer){.stage = STAGE_FIXED, .length = (size_t)length});
}

static bool load_class(struct loading *l, bool (*is)(uint32_t, uint32_t), enum behavior behavior)
{
    return add_stage(l,
                     (struct pretokenizer){.stage = STAGE_CLASS, .is = is, .behavior = behavior});
}

static bool load_punctuation(struct loading *l, const struct json *j)
{
    enum behavior behavior = ISOLATED;
    return (!json_get(j, "behavior") || load_behavior(l, j, &behavior)) &&
           load_class(l, is_punctuation, behavior);
}

static bool load_digits(struct loading *l, const struct json *j)
{
    bool individual = json_bool(json_get(j, "individual_digits"), false);
    return load_class(l, is_number, individual ? ISOLATED : CONTIGUOUS);
}

static bool load_delimiter(struct loading *l, const struct json *j)
{
    struct pretokenizer p = {.stage = STAGE_CLASS, .is = is_delimiter, .behavior = REMOVED};
    return load_char(l, j, "delimiter", &p.delimiter) && add_stage(l, p);
}

static bool load_bert(struct loading *l, const struct json *j)
{
    (void)j;
    return load_class(l, is_space, REMOVED) && load_class(l, is_punctuation, ISOLATED);
}

static bool load_whitespace_split(struct loading *l, const struct json *j)
{
    (void)j;
    return load_class(l, is_space, REMOVED);
}

static bool load_whitespace(struct loading *l, const struct json *j)
{
    (void)j;
    return add_stage(l, (struct pretokenizer){.stage = STAGE_WORDS});
}

static bool load_scripts(struct loading *l, const struct json *j)
{
    (void)j;
    return add_stage(l, (struct pretokenizer){.stage = STAGE_SCRIPTS});
}

static bool load_stages(struct loading *l, const struct json *j);

static bool load_sequence(struct loading *l, const struct json *j)
{
    const struct json *list = json_get(j, "pretokenizers");
    if (json_type(list) != JSON_ARRAY)
        return err_set(l->e, ERR_LOAD, "pre_tokenizer Sequence has no list of \"pretokenizers\"");
    for (const struct json *c = json_first(list); c; c = json_next(c))
        if (!load_stages(l, c))
            return false;
    return true;
}

static const struct {
    const char *type;
    bool (*load)(struct loading *l, const struct json *j);
} types[] = {
    {"Sequence", load_sequence},
    {"ByteLevel", load_byte_level},
    {"Split", load_split},
    {"Metaspace", load_metaspace},
    {"Digits", load_digits},
    {"Punctuation", load_punctuation},
    {"Whitespace", load_whitespace},
    {"WhitespaceSplit", load_whitespace_split},
    {"CharDelimiterSplit", load_delimiter},
    {"BertPreTokenizer", load_bert},
    {"UnicodeScripts", load_scripts},
    {"FixedLength", load_fixed},
};

static bool load_stages(struct loading *l, const struct json *j)
{
    const char *type = component_type(j, "pre_tokenizer", l->e);
    for (size_t i = 0; type && i < ARRAY_LEN(types); i++)
        if (strcmp(type, types[i].type) == 0)
            return types[i].load(l, j);
    return type && err_set(l->e, ERR_LOAD, "pre_tokenizer \"%.60s\" is not supported", type);
}

static bool keep_stages(struct loading *l)
{
    struct tokenizer *t = l->t;
    t->pretokenizer = arena_array(&t->arena, l->n, sizeof *t->pretokenizer);
    if (!t->pretokenizer)
        return err_no_memory(l->e);
    for (size_t i = 0; i < l->n; i++) {
        t->pretokenizer[i] = l->stage[i];
        t->pretokenizer[i].spell = true;
    }
    t->n_pretokenizers = l->n;
    /* Behind the last stage, a model that looks bytes up as bytes saves spelling them. */
    if (l->n && l->stage[l->n - 1].stage == STAGE_BYTE_LEVEL && t->model == MODEL_BPE &&
        !*t->bpe.prefix && !*t->bpe.suffix) {
        t->bpe.raw = true;
        t->pretokenizer[l->n - 1].spell = false;
    }
    return true;
}

bool pretokenize_load(struct tokenizer *t, const struct json *j, struct err *e)
{
    if (json_type(j) == JSON_NULL)
        return true;
    struct loading l = {.t = t, .e = e};
    return load_stages(&l, j) && keep_stages(&l);
}

bool pretokenize_load_pattern(struct tokenizer *t, const char *pattern, struct err *e)
{
    struct loading l = {.t = t, .e = e};
    struct pretokenizer split = {.stage = STAGE_SPLIT, .behavior = ISOLATED};
    split.pattern.regex = regex_compile(pattern, e);
    return split.pattern.regex && tokenizer_own_regex(t, split.pattern.regex, e) &&
           add_stage(&l, split) &&
           add_stage(&l, (struct pretokenizer){.stage = STAGE_BYTE_LEVEL}) && keep_stages(&l);
}
