/*
 * A text that comes in parts: the same ids as at once, in bounded memory.
 *
 * The end of a part is left alone: what may be the beginning of a character, of an added token, of
 * something that normalization composes, or of a word. All before it is encoded as always, and
 * stages report each place up to which the ids are certain (part_stop). The last of them from which
 * encoding can begin anew, without knowledge of what stood before, is where the next part begins;
 * ids behind it are taken back. Which tokenizers allow that at all: can_stop.
 */
#include "tokenizer/internal.h"

#include "tokenizer/unicode.h"

/* How far back from the end of a part a place to stop is looked for. */
enum { ZONE = 1 << 16 };

struct part {
    struct bytes text;          /* the caller's */
    size_t base;                /* of the text's first byte in the whole */
    const struct piece *normal; /* the normalized piece at work, or NULL */
    size_t stop;                /* in the whole text */
    size_t next;                /* before this, no place is looked at */
    size_t n_ids, n_spans;
};

static bool can_stop(const struct tokenizer *t)
{
    return pretokenize_is_open(t) && normalize_may_cut(t, 'a') && !t->added.single_word;
}

/* The caller's character at s[0..n), which may be none. */
static uint32_t char_at(const char *s, size_t n)
{
    size_t size = utf8_size(*s);
    bool whole = size <= n && utf8_valid_prefix(s, size) == size;
    return whole ? utf8_get(s) : 0xDC00u + (unsigned char)*s;
}

/* The bytes of text[0..n) without a character at its end that is not complete. */
static size_t whole_chars(const char *text, size_t n)
{
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        char c = text[n - back];
        if (!utf8_is_continuation(c))
            return utf8_size(c) > back ? n - back : n;
    }
    return n;
}

/* ---- where to stop --------------------------------------------------------------------------- */

static bool space_before(const char *text, size_t at)
{
    size_t i = at;
    while (i > 0 && at - i < 4)
        if (!utf8_is_continuation(text[--i]))
            return unicode_is_space(char_at(text + i, at - i));
    return false;
}

/* Whether the caller's text can be cut at `at`. */
static bool may_stop_raw(const struct encoder *en, size_t at)
{
    const struct part *part = en->part;
    const char *text = (const char *)part->text.data;
    const struct added *added = &en->t->added;
    return at < part->text.size &&
           normalize_may_cut(en->t, char_at(text + at, part->text.size - at)) &&
           !added_covers(&added->raw, text, part->text.size, at) &&
           !(added->lstrip && space_before(text, at));
}

/* Whether the normalized text can be cut before in[at]: the caller's characters are parted there
 * too. */
static bool may_stop_normal(const struct encoder *en, const struct piece *in, size_t at)
{
    const struct added *added = &en->t->added;
    const struct piece *const whole = en->part->normal;
    const size_t offset = whole ? (uintptr_t)in->data - (uintptr_t)whole->data : 0;
    if (whole && offset < whole->n) { /* else a stage has changed it */
        in = whole;
        at += offset;
    }
    return (at == 0 || piece_span(in, at - 1, at).end <= piece_span(in, at, at + 1).start) &&
           pretokenize_may_cut(en->t, in, at) &&
           !added_covers(&added->normalized, in->data, in->n, at) &&
           !(added->lstrip && space_before(in->data, at));
}

static void remember(struct encoder *en, size_t stop)
{
    struct part *part = en->part;
    part->stop = stop;
    part->n_ids = en->out->n;
    part->n_spans = en->where ? en->where->n : 0;
}

void part_stop(struct encoder *en, const struct piece *in, size_t at)
{
    if (at + ZONE < in->n || at >= in->n)
        return;
    struct part *part = en->part;
    const size_t stop = piece_span(in, at, at + 1).start;
    if (stop <= part->stop || stop < part->next)
        return;
    /* Looking for what covers the place takes time with the square of the longest token. */
    part->next = stop + max_size(en->t->added.raw.longest, en->t->added.normalized.longest);
    if (may_stop_normal(en, in, at) && may_stop_raw(en, stop - part->base))
        remember(en, stop);
}

/* ---- the open end ---------------------------------------------------------------------------- */

/* Emits what is certain of in, whose end is open, and sends the open rest to `plain_open`. */
static bool cut_open(struct encoder *en, const struct added_set *set, const struct piece *in,
                     bool (*plain)(struct encoder *en, const struct piece *in),
                     bool (*plain_open)(struct encoder *en, const struct piece *in))
{
    /* Behind `end` tokens may begin that are not there yet, and one more character is looked at. */
    size_t hold = set->longest + 4;
    size_t end = in->n > hold ? in->n - hold : 0;
    while (end > 0 && utf8_is_continuation(in->data[end]))
        end--;
    size_t done = 0;
    struct added_search search = {0};
    struct token_span match;
    const struct added_token *token;
    bool parse_special = en->flags & ENCODE_PARSE_SPECIAL;
    while ((token = added_find(&en->t->added, set, in, parse_special, &search, &match))) {
        if (match.start >= done) /* else it begins within what rstrip took in */
            part_stop(en, in, done);
        if (match.end > end) {
            end = min_size(match.start, end);
            break;
        }
        struct piece before = piece_slice(in, min_size(done, match.start), match.start);
        if ((before.n && !plain(en, &before)) ||
            !encode_emit(en, token->id, in, match.start, match.end))
            return false;
        done = match.end;
    }
    if (!token)
        part_stop(en, in, done);
    while (en->t->added.lstrip && end > done && space_before(in->data, end))
        do {
            end--;
        } while (utf8_is_continuation(in->data[end]));
    struct piece rest = piece_slice(in, done, max_size(end, done));
    return rest.n == 0 || plain_open(en, &rest);
}

static bool normal_open(struct encoder *en, const struct piece *in)
{
    en->part->normal = in;
    const bool good =
        cut_open(en, &en->t->added.normalized, in, pretokenize_run, pretokenize_run_open);
    en->part->normal = NULL;
    return good;
}

/* The last character is only there to be looked at. */
static bool raw_open(struct encoder *en, const struct piece *in)
{
    size_t end = in->n;
    do {
        do {
            end--;
        } while (end > 0 && utf8_is_continuation(in->data[end]));
    } while (end > 0 && !normalize_may_cut(en->t, utf8_get(in->data + end)));
    struct piece certain = piece_slice(in, 0, end);
    struct piece normal;
    return normalize_run(en->t, &en->normalize, &certain, &normal, en->e) &&
           (normal.n == 0 || normal_open(en, &normal));
}

/* ---- the whole ------------------------------------------------------------------------------- */

static bool encode_last(struct encoder *en, const struct piece *in)
{
    const struct around *around = &en->t->around;
    return encode_cut_added(en, &en->t->added.raw, in, encode_raw) &&
           encode_around(en, around->after, around->n_after, in, in->n);
}

static bool encode_open(struct encoder *en, const struct piece *in, struct part *part)
{
    en->part = part;
    remember(en, part->base);
    bool good = cut_open(en, &en->t->added.raw, in, encode_raw, raw_open);
    en->part = NULL;
    en->out->n = part->n_ids;
    if (en->where)
        en->where->n = part->n_spans;
    return good;
}

bool encoder_encode_part(struct encoder *en, const char *text, size_t n, bool last, unsigned flags,
                         struct encode_progress *p, struct ids *out, struct token_spans *where,
                         struct err *e)
{
    if (!last && !can_stop(en->t))
        return true;
    en->out = out;
    en->where = where;
    en->e = e;
    struct piece in = {.data = n ? text : "", .base = p->done, .first = p->done == 0};
    in.n = last ? n : whole_chars(in.data, n);
    struct part part = {{(const unsigned char *)in.data, in.n}, p->done, .stop = p->done};
    const struct around *around = &en->t->around;
    if (!encode_begin(en, &in, flags, where || !last) ||
        (!p->begun && !encode_around(en, around->before, around->n_before, &in, 0)))
        return false;
    p->begun = true;
    if (!(last ? encode_last(en, &in) : encode_open(en, &in, &part)))
        return false;
    p->done = last ? p->done + n : part.stop;
    return true;
}
