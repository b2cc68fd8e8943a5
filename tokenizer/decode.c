/*
 * Ids -> text: "decoder" of tokenizer.json as a chain of steps, each of which takes one token's
 * text and gives the bytes that it adds. So the text comes out token by token, and the same whether
 * it is asked for at once or piece by piece.
 *
 * Where huggingface/tokenizers would write U+FFFD for bytes that make no UTF-8 (ByteLevel,
 * ByteFallback), the bytes themselves come out: a character may be spread over tokens, and what was
 * encoded comes back whatever it was.
 *
 * A step behind Fuse or ByteLevel sees one text, not tokens ("fused"). Steps that would then mean
 * something that cannot be had in a stream are refused.
 */
#include "tokenizer/internal.h"

#include <stdlib.h>

enum decode_type {
    DECODE_BYTE_LEVEL,
    DECODE_BYTE_FALLBACK,
    DECODE_METASPACE,
    DECODE_STRIP,
    DECODE_REPLACE,
    DECODE_BPE,
    DECODE_WORDPIECE,
    DECODE_CTC,
    DECODE_SPM, /* the blanks that a text of SentencePiece begins with */
    DECODE_JOIN /* no decoder at all: blanks between the tokens */
};

struct decode_step {
    enum decode_type type;
    bool fused;
    bool prepends, cleanup;
    struct pattern pattern;
    const char *content, *delimiter; /* character, suffix, prefix or pad token; CTC's delimiter */
    size_t n_content, n_delimiter;
    size_t start, stop; /* Strip; SentencePiece: blanks that go */
};

struct step_state {
    bool started;         /* a token has come */
    size_t stripped;      /* Strip, SentencePiece: taken off the beginning so far */
    size_t held;          /* Strip, BPEDecoder: characters or blanks that go if nothing follows */
    struct text previous; /* CTC */
};

struct decoder {
    const struct tokenizer *t;
    bool show_special;
    struct step_state *state; /* [n_decode_steps] */
    struct text text[2];
    struct regex_scratch *regex;
};

/* ---- running --------------------------------------------------------------------------------- */

static bool append_times(struct text *out, const char *s, size_t n, size_t times)
{
    for (size_t i = 0; i < times; i++)
        if (!text_add(out, s, n))
            return false;
    return true;
}

static bool starts_with(const struct piece *in, size_t at, const char *s, size_t n)
{
    return in->n - at >= n && memcmp(in->data + at, s, n) == 0;
}

/* A token with a character that stands for no byte (an added token) is taken as it is. */
static bool run_byte_level(struct text *out, const struct piece *in)
{
    for (size_t i = 0; i < in->n; i += utf8_size(in->data[i])) {
        int byte = byte_level_byte(utf8_get(in->data + i));
        if (byte < 0) {
            text_clear(out);
            return text_add(out, in->data, in->n);
        }
        char c = (char)byte;
        if (!text_add(out, &c, 1))
            return false;
    }
    return true;
}

static bool run_byte_fallback(struct text *out, const struct piece *in)
{
    bool shape = in->n == 6 && memcmp(in->data, "<0x", 3) == 0 && in->data[5] == '>';
    int high = shape ? hex_digit(in->data[3]) : -1;
    int low = shape ? hex_digit(in->data[4]) : -1;
    if (high < 0 || low < 0)
        return text_add(out, in->data, in->n);
    char byte = (char)(high * 16 + low);
    return text_add(out, &byte, 1);
}

static bool run_metaspace(const struct decode_step *d, const struct step_state *s, struct text *out,
                          const struct piece *in)
{
    for (size_t i = 0; i < in->n;) {
        if (!starts_with(in, i, d->content, d->n_content)) {
            if (!text_add(out, in->data + i, 1))
                return false;
            i++;
            continue;
        }
        if ((s->started || !d->prepends) && !text_add(out, " ", 1))
            return false;
        i += d->n_content;
    }
    return true;
}

/* Characters at the beginning go; those at the end are held back until more comes, which at the end
 * of all is never. Token by token both ends are known. */
static bool run_strip(const struct decode_step *d, struct step_state *s, struct text *out,
                      const struct piece *in)
{
    size_t n = d->n_content;
    size_t begin = 0;
    if (!d->fused)
        *s = (struct step_state){.started = s->started};
    while (s->stripped < d->start && starts_with(in, begin, d->content, n)) {
        begin += n;
        s->stripped++;
    }
    if (begin < in->n)
        s->stripped = d->start;
    size_t end = in->n;
    size_t held = 0;
    while (held < d->stop && end - begin >= n && memcmp(in->data + end - n, d->content, n) == 0) {
        end -= n;
        held++;
    }
    if (!d->fused)
        return text_add(out, in->data + begin, end - begin);
    /* All of it may be held back, and then the oldest of what is too much is let go. */
    size_t before = s->held;
    s->held = begin == end ? before + held : held;
    size_t release = begin == end ? (s->held > d->stop ? s->held - d->stop : 0) : before;
    s->held -= begin == end ? release : 0;
    return append_times(out, d->content, n, release) &&
           text_add(out, in->data + begin, end - begin);
}

static bool run_replace(struct decoder *dec, const struct decode_step *d, struct text *out,
                        const struct piece *in, struct err *e)
{
    size_t done = 0;
    size_t from = 0;
    struct token_span m;
    enum regex_result found = REGEX_MATCH;
    while (from <= in->n && (found = pattern_find(&d->pattern, dec->regex, in->data, in->n, from,
                                                  false, &m, e)) == REGEX_MATCH) {
        if (!text_add(out, in->data + done, m.start - done) ||
            !text_add(out, d->content, d->n_content))
            return err_no_memory(e);
        done = from = m.end;
        if (m.start == m.end)
            from += from < in->n ? utf8_size(in->data[from]) : 1;
    }
    if (found == REGEX_ERROR)
        return false;
    return text_add(out, in->data + done, in->n - done) || err_no_memory(e);
}

/* The suffix is a blank, but for the last token's; so a blank at a token's end waits for the next
 * one. */
static bool run_bpe(const struct decode_step *d, struct step_state *s, struct text *out,
                    const struct piece *in)
{
    if (!append_times(out, " ", 1, s->held))
        return false;
    s->held = 0;
    size_t done = 0;
    const char *hit;
    while (d->n_content &&
           (hit = memmem(in->data + done, in->n - done, d->content, d->n_content))) {
        size_t at = (size_t)(hit - in->data);
        bool last = at + d->n_content == in->n;
        if (!text_add(out, in->data + done, at - done) || (!last && !text_add(out, " ", 1)))
            return false;
        s->held = last;
        done = at + d->n_content;
    }
    return text_add(out, in->data + done, in->n - done);
}

/* English spacing put right in place, in the order of huggingface/tokenizers' wordpiece.rs. */
static void clean_up(struct text *t)
{
    static const char *const rules[][2] = {
        {" .", "."},   {" ?", "?"},     {" !", "!"},     {" ,", ","},
        {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},   {" do not", " don't"},
        {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
    };
    for (size_t r = 0; r < ARRAY_LEN(rules); r++) {
        size_t n_from = strlen(rules[r][0]);
        size_t n_to = strlen(rules[r][1]); /* never longer */
        size_t to = 0;
        for (size_t at = 0; at < t->n;) {
            bool hit = t->n - at >= n_from && memcmp(t->data + at, rules[r][0], n_from) == 0;
            if (hit) {
                memcpy(t->data + to, rules[r][1], n_to);
                to += n_to;
                at += n_from;
            } else {
                t->data[to++] = t->data[at++];
            }
        }
        t->n = to;
    }
}

static bool run_wordpiece(const struct decode_step *d, const struct step_state *s, struct text *out,
                          const struct piece *in)
{
    bool continues = starts_with(in, 0, d->content, d->n_content);
    size_t skip = s->started && continues ? d->n_content : 0;
    bool good = (!s->started || continues || text_add(out, " ", 1)) &&
                text_add(out, in->data + skip, in->n - skip);
    if (good && d->cleanup)
        clean_up(out);
    return good;
}

static bool run_ctc(const struct decode_step *d, struct step_state *s, struct text *out,
                    const struct piece *in)
{
    bool repeated = s->started && s->previous.n == in->n &&
                    (in->n == 0 || memcmp(s->previous.data, in->data, in->n) == 0);
    text_clear(&s->previous);
    if (!text_add(&s->previous, in->data, in->n) || repeated)
        return repeated;
    struct text kept = {0};
    bool good = true;
    for (size_t i = 0; good && i < in->n;)
        if (d->n_content && starts_with(in, i, d->content, d->n_content))
            i += d->n_content;
        else
            good = text_add(&kept, in->data + i++, 1);
    if (d->cleanup)
        clean_up(&kept);
    const struct piece all = text_piece(&kept, in);
    const bool delimited = d->cleanup && d->n_delimiter;
    for (size_t i = 0; good && i < all.n;) {
        bool hit = delimited && starts_with(&all, i, d->delimiter, d->n_delimiter);
        good = text_add(out, hit ? " " : all.data + i, 1);
        i += hit ? d->n_delimiter : 1;
    }
    text_free(&kept);
    return good;
}

/* Drops one blank of each token, as long as nothing else has come (google/sentencepiece,
 * src/sentencepiece_processor.cc, Decode). */
static bool run_spm(const struct decode_step *d, struct step_state *s, struct text *out,
                    const struct piece *in)
{
    const bool drops = s->stripped < d->start && starts_with(in, 0, d->content, d->n_content);
    const size_t begin = drops ? d->n_content : 0;
    s->stripped = begin < in->n ? d->start : s->stripped + drops;
    return text_add(out, in->data + begin, in->n - begin);
}

/* Of all but Replace; false: no memory. */
static bool run_simple(const struct decode_step *d, struct step_state *s, struct text *out,
                       const struct piece *in)
{
    switch (d->type) {
    case DECODE_BYTE_LEVEL:
        return run_byte_level(out, in);
    case DECODE_BYTE_FALLBACK:
        return run_byte_fallback(out, in);
    case DECODE_METASPACE:
        return run_metaspace(d, s, out, in);
    case DECODE_STRIP:
        return run_strip(d, s, out, in);
    case DECODE_BPE:
        return run_bpe(d, s, out, in);
    case DECODE_WORDPIECE:
        return run_wordpiece(d, s, out, in);
    case DECODE_CTC:
        return run_ctc(d, s, out, in);
    case DECODE_SPM:
        return run_spm(d, s, out, in);
    default:
        return (!s->started || text_add(out, " ", 1)) && text_add(out, in->data, in->n);
    }
}

static bool run_step(struct decoder *dec, size_t i, struct text *out, const struct piece *in,
                     struct err *e)
{
    const struct decode_step *d = &dec->t->decode_step[i];
    if (d->type == DECODE_REPLACE)
        return run_replace(dec, d, out, in, e);
    return run_simple(d, &dec->state[i], out, in) || err_no_memory(e);
}

bool decoder_next(struct decoder *d, int32_t id, struct bytes *text, struct err *e)
{
    struct bytes spelled = tokenizer_piece(d->t, id);
    *text = (struct bytes){(const unsigned char *)"", 0};
    if (!spelled.data || (!d->show_special && tokenizer_is_special(d->t, id)))
        return true;
    struct piece in = {.data = (const char *)spelled.data, .n = spelled.size};
    regex_scratch_begin(d->regex, spelled.size);
    for (size_t i = 0; i < d->t->n_decode_steps; i++) {
        struct text *out = &d->text[i % 2];
        text_clear(out);
        if (!run_step(d, i, out, &in, e))
            return false;
        d->state[i].started = true;
        in = text_piece(out, &in);
    }
    *text = (struct bytes){(const unsigned char *)in.data, in.n};
    return true;
}

struct decoder *decoder_new(const struct tokenizer *t, bool show_special, struct err *e)
{
    struct decoder *d = calloc(1, sizeof *d);
    if (!d) {
        err_no_memory(e);
        return NULL;
    }
    d->t = t;
    d->show_special = show_special;
    d->state = calloc(t->n_decode_steps + 1, sizeof *d->state);
    d->regex = regex_scratch_new();
    if (!d->state || !d->regex) {
        decoder_free(d);
        err_no_memory(e);
        return NULL;
    }
    return d;
}

void decoder_free(struct decoder *d)
{
    if (!d)
        return;
    for (size_t i = 0; d->state && i < d->t->n_decode_steps; i++)
        text_free(&d->state[i].previous);
    free(d->state);
    text_free(&d->text[0]);
    text_free(&d->text[1]);
    regex_scratch_free(d->regex);
    free(d);
}

void decoder_reset(struct decoder *d)
{
    for (size_t i = 0; i < d->t->n_decode_steps; i++) {
        struct text previous = d->state[i].previous;
        text_clear(&previous);
        d->state[i] = (struct step_state){.previous = previous};
    }
}

/* ---- loading --------------------------------------------------------------------------------- */

enum { MAX_STEPS = 64, GROWTH_MAX = 4096 };

struct loading {
    struct tokenizer *t;
    struct decode_step step[MAX_STEPS];
    size_t n;
    bool fused;    /* what has come so far is one text */
    bool bytes;    /* ... and no longer made of characters */
    double growth; /* what Replace may make of a byte */
    struct err *e;
};

static bool add_step(struct loading *l, struct decode_step step)
{
    if (l->n == MAX_STEPS)
        return err_set(l->e, ERR_LOAD, "decoder: more than %d steps", MAX_STEPS);
    step.fused = l->fused;
    l->step[l->n++] = step;
    return true;
}

static bool keep_text(struct loading *l, const char *text, const char **out, size_t *n)
{
    *n = strlen(text);
    *out = arena_text(&l->t->arena, text, *n);
    return *out || err_no_memory(l->e);
}

static bool keep_content(struct loading *l, struct decode_step *d, const struct json *j,
                         const char *key)
{
    const char *text = component_text(j, "decoder", key, l->e);
    return text && keep_text(l, text, &d->content, &d->n_content);
}

static bool load_byte_level(struct loading *l, const struct json *j)
{
    (void)j;
    bool good = add_step(l, (struct decode_step){.type = DECODE_BYTE_LEVEL});
    l->fused = l->bytes = true;
    return good;
}

static bool load_byte_fallback(struct loading *l, const struct json *j)
{
    (void)j;
    l->bytes = true;
    return add_step(l, (struct decode_step){.type = DECODE_BYTE_FALLBACK});
}

static bool load_fuse(struct loading *l, const struct json *j)
{
    (void)j;
    l->fused = true;
    return true;
}

static bool load_metaspace(struct loading *l, const struct json *j)
{
    const char *scheme = json_text(json_get(j, "prepend_scheme"), "always");
    struct decode_step d = {
        .type = DECODE_METASPACE,
        .prepends =
            strcmp(scheme, "never") != 0 && json_bool(json_get(j, "add_prefix_space"), true),
    };
    if (!keep_content(l, &d, j, "replacement"))
        return false;
    if (d.n_content == 0)
        return err_set(l->e, ERR_LOAD, "decoder Metaspace: \"replacement\" is empty");
    return add_step(l, d);
}

static bool load_strip(struct loading *l, const struct json *j)
{
    struct decode_step d = {.type = DECODE_STRIP};
    int64_t start;
    int64_t stop;
    if (!json_integer(json_get(j, "start"), 0, INT32_MAX, &start) ||
        !json_integer(json_get(j, "stop"), 0, INT32_MAX, &stop))
        return err_set(l->e, ERR_LOAD, "decoder Strip: \"start\" and \"stop\" must be counts");
    d.start = (size_t)start;
    d.stop = (size_t)stop;
    if (!keep_content(l, &d, j, "content"))
        return false;
    if (d.n_content == 0 || utf8_size(*d.content) != d.n_content)
        return err_set(l->e, ERR_LOAD, "decoder Strip: \"content\" must be one character");
    return add_step(l, d);
}

static bool load_replace(struct loading *l, const struct json *j)
{
    struct decode_step d = {.type = DECODE_REPLACE};
    if (!pattern_load(&d.pattern, json_get(j, "pattern"), l->t, "decoder Replace", l->e) ||
        !keep_content(l, &d, j, "content"))
        return false;
    /* An expression may match between any two characters. */
    const double times = d.pattern.regex
                             ? 1 + (double)d.n_content
                             : (double)d.n_content / (double)max_size(d.pattern.n_literal, 1);
    l->growth *= times > 1 ? times : 1;
    if (l->growth > GROWTH_MAX) {
        return err_set(l->e, ERR_LOAD,
                       "decoder Replace: tokens would be more than %d times as long", GROWTH_MAX);
    }
    bool one_char = d.pattern.literal && d.pattern.n_literal == utf8_size(*d.pattern.literal);
    if ((l->fused && !one_char) || (l->bytes && d.pattern.regex)) {
        return err_set(l->e, ERR_LOAD,
                       "decoder Replace of more than one character behind %s is not supported",
                       l->fused ? "Fuse or ByteLevel" : "ByteFallback");
    }
    return add_step(l, d);
}

static bool load_bpe(struct loading *l, const struct json *j)
{
    struct decode_step d = {.type = DECODE_BPE};
    return keep_text(l, json_text(json_get(j, "suffix"), "</w>"), &d.content, &d.n_content) &&
           add_step(l, d);
}

static bool load_wordpiece(struct loading *l, const struct json *j)
{
    struct decode_step d = {.type = DECODE_WORDPIECE,
                            .cleanup = json_bool(json_get(j, "cleanup"), true)};
    return keep_text(l, json_text(json_get(j, "prefix"), "##"), &d.content, &d.n_content) &&
           add_step(l, d);
}

static bool load_ctc(struct loading *l, const struct json *j)
{
    struct decode_step d = {.type = DECODE_CTC, .cleanup = json_bool(json_get(j, "cleanup"), true)};
    return keep_text(l, json_text(json_get(j, "pad_token"), "<pad>"), &d.content, &d.n_content) &&
           keep_text(l, json_text(json_get(j, "word_delimiter_token"), "|"), &d.delimiter,
                     &d.n_delimiter) &&
           add_step(l, d);
}

static bool load_steps(struct loading *l, const struct json *j);

static bool load_sequence(struct loading *l, const struct json *j)
{
    const struct json *list = json_get(j, "decoders");
    if (json_type(list) != JSON_ARRAY)
        return err_set(l->e, ERR_LOAD, "decoder Sequence has no list of \"decoders\"");
    for (const struct json *c = json_first(list); c; c = json_next(c))
        if (!load_steps(l, c))
            return false;
    return true;
}

static const struct {
    const char *type;
    bool (*load)(struct loading *l, const struct json *j);
    bool any; /* may stand behind Fuse or ByteLevel */
} types[] = {
    {"Sequence", load_sequence, true},
    {"ByteLevel", load_byte_level, false},
    {"ByteFallback", load_byte_fallback, false},
    {"Fuse", load_fuse, true},
    {"Metaspace", load_metaspace, false},
    {"Strip", load_strip, true},
    {"Replace", load_replace, true},
    {"BPEDecoder", load_bpe, false},
    {"WordPiece", load_wordpiece, false},
    {"CTC", load_ctc, false},
};

static bool load_steps(struct loading *l, const struct json *j)
{
    const char *type = component_type(j, "decoder", l->e);
    if (!type)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        if (strcmp(type, types[i].type) != 0)
            continue;
        if (l->fused && !types[i].any) {
            return err_set(l->e, ERR_LOAD,
                           "decoder \"%s\" behind Fuse or ByteLevel is not supported", type);
        }
        return types[i].load(l, j);
    }
    return err_set(l->e, ERR_LOAD, "decoder \"%.60s\" is not supported", type);
}

static bool keep_steps(struct loading *l)
{
    struct tokenizer *t = l->t;
    t->decode_step = arena_array(&t->arena, l->n, sizeof *t->decode_step);
    if (!t->decode_step)
        return err_no_memory(l->e);
    memcpy(t->decode_step, l->step, l->n * sizeof *t->decode_step);
    t->n_decode_steps = l->n;
    return true;
}

bool decode_load_spm(struct tokenizer *t, size_t n_blanks, struct err *e)
{
    struct loading l = {.t = t, .e = e};
    const size_t n = sizeof spm_blank - 1;
    return add_step(&l, (struct decode_step){.type = DECODE_SPM,
                                             .content = spm_blank,
                                             .n_content = n,
                                             .start = n_blanks}) &&
           add_step(&l, (struct decode_step){.type = DECODE_REPLACE,
                                             .pattern = {.literal = spm_blank, .n_literal = n},
                                             .content = " ",
                                             .n_content = 1}) &&
           add_step(&l, (struct decode_step){.type = DECODE_BYTE_FALLBACK}) && keep_steps(&l);
}

bool decode_load(struct tokenizer *t, const struct json *j, struct err *e)
{
    struct loading l = {.t = t, .growth = 1, .e = e};
    bool none = json_type(j) == JSON_NULL;
    return (none ? add_step(&l, (struct decode_step){.type = DECODE_JOIN}) : load_steps(&l, j)) &&
           keep_steps(&l);
}
