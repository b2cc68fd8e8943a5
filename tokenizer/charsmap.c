/*
 * SentencePiece's rules of normalization: how they lie in a file, and the two ways to apply them,
 * huggingface/tokenizers' ("Precompiled" of tokenizer.json) and its own.
 */
#include "tokenizer/internal.h"

#include "tokenizer/unicode.h"

/* ---- the rules ------------------------------------------------------------------------------- */

/* Unit i, 0 (which leads nowhere) behind the end. Its parts: s-yata/darts-clone, darts.h. */
static uint32_t unit_at(const struct charsmap *m, size_t i)
{
    if (i >= m->n_units)
        return 0;
    const unsigned char *u = m->unit + i * 4;
    return (uint32_t)u[0] | (uint32_t)u[1] << 8 | (uint32_t)u[2] << 16 | (uint32_t)u[3] << 24;
}

static size_t unit_offset(uint32_t unit)
{
    return (size_t)(unit >> 10) << ((unit & 1u << 9) >> 6);
}

/* The replacement at a place, NULL where there is none, or where the place is within a character,
 * which would break what all other steps rely on. */
static const char *charsmap_text(const struct charsmap *m, size_t place, size_t *size)
{
    const char *text = place < m->n_text ? m->text + place : NULL;
    *size = text ? strnlen(text, m->n_text - place) : 0;
    return text && utf8_valid_prefix(text, *size) == *size ? text : NULL;
}

/* The replacement for the longest, or the shortest, beginning of s[0..n) that has one, of *used
 * bytes; NULL where none has. */
static const char *charsmap_find(const struct charsmap *m, const char *s, size_t n, bool shortest,
                                 size_t *used, size_t *size)
{
    size_t found = SIZE_MAX;
    size_t at = unit_offset(unit_at(m, 0));
    n = min_size(n, LONGEST_SOUGHT); /* units may lead in a circle */
    for (size_t i = 0; i < n && s[i]; i++) {
        unsigned char byte = (unsigned char)s[i];
        at ^= byte;
        uint32_t unit = unit_at(m, at);
        if ((unit & (1u << 31 | 0xFF)) != byte)
            break;
        at ^= unit_offset(unit);
        if (unit >> 8 & 1) {
            found = unit_at(m, at) & 0x7FFFFFFF;
            *used = i + 1;
            if (shortest)
                break;
        }
    }
    return charsmap_text(m, found, size);
}

/* u32 size of the trie in bytes, the trie, the replacements. */
bool charsmap_read(struct charsmap *m, struct bytes blob, struct err *e)
{
    *m = (struct charsmap){.unit = blob.data, .n_units = 1};
    size_t size = blob.size < 4 ? SIZE_MAX : unit_at(m, 0);
    if (blob.size < 4 || size % 4 || size > blob.size - 4) {
        return err_set(e, ERR_LOAD, "normalizer Precompiled: the charsmap of %zu bytes is cut off",
                       blob.size);
    }
    *m = (struct charsmap){.unit = blob.data + 4,
                           .n_units = size / 4,
                           .text = (const char *)blob.data + 4 + size,
                           .n_text = blob.size - 4 - size};
    for (size_t i = 0; i < m->n_text;) {
        const size_t n = strnlen(m->text + i, m->n_text - i);
        if (n > LONGEST_SOUGHT) {
            return err_set(
                e, ERR_LOAD,
                "normalizer Precompiled: a replacement has %zu bytes, more than the %d that can be",
                n, LONGEST_SOUGHT);
        }
        i += n + 1;
    }
    return true;
}

/* ---- as huggingface/tokenizers applies them -------------------------------------------------- */

/* Replaces in[start..end) by its rule where there is one. */
static bool map_part(struct text *out, const struct piece *in, size_t start, size_t end,
                     const struct charsmap *m, bool *found)
{
    size_t size = 0;
    size_t used;
    const char *to = charsmap_find(m, in->data + start, end - start, true, &used, &size);
    *found = to;
    return !to || text_put(out, to, size, in, start, end);
}

/* One grapheme: by its own rule where it is short, else character by character. As in
 * huggingface/tokenizers, whose authors do not know either why; the models were trained so. */
static bool map_grapheme(struct text *out, const struct piece *in, size_t start, size_t end,
                         const struct charsmap *m)
{
    bool found = false;
    if (end - start < 6 && !map_part(out, in, start, end, m, &found))
        return false;
    for (size_t i = start; !found && i < end;) {
        size_t next = i + utf8_size(in->data[i]);
        bool one;
        if (!map_part(out, in, i, next, m, &one) || (!one && !text_copy(out, in, i, next)))
            return false;
        i = next;
    }
    return true;
}

bool charsmap_run(struct text *out, const struct piece *in, const struct charsmap *m)
{
    struct unicode_grapheme state = {0};
    size_t start = 0;
    for (size_t i = 0; i < in->n; i += utf8_size(in->data[i])) {
        if (unicode_grapheme_begins(&state, utf8_get(in->data + i)) && i > start) {
            if (!map_grapheme(out, in, start, i, m))
                return false;
            start = i;
        }
    }
    return start == in->n || map_grapheme(out, in, start, in->n, m);
}

/* ---- as SentencePiece does ------------------------------------------------------------------- */

/* What SentencePiece makes of the first *used bytes of s[0..n); s itself where they stay as they
 * are, as user-defined symbols do. A rule that ends within a character does not count. */
static const char *spm_prefix(const struct tokenizer *t, const struct charsmap *m, const char *s,
                              size_t n, size_t *used, size_t *size)
{
    if (trie_longest(&t->user_defined, s, n, size) >= 0) {
        *used = *size;
        return s;
    }
    const char *to = charsmap_find(m, s, n, false, used, size);
    if (to && (*used == n || !utf8_is_continuation(s[*used])))
        return to;
    *used = *size = utf8_size(*s);
    return s;
}

/* Where the text begins: behind all that becomes a single blank each. */
static size_t spm_begin(const struct tokenizer *t, const struct charsmap *m, const struct piece *in)
{
    size_t used = 0;
    size_t i = 0;
    for (; i < in->n; i += used) {
        size_t size;
        const char *to = spm_prefix(t, m, in->data + i, in->n - i, &used, &size);
        if (size != 1 || *to != ' ')
            break;
    }
    return i;
}

/* in[i..) by its rules. With few_blanks, a replacement loses the blanks that it begins with if a
 * blank stands before it. */
static bool spm_apply(struct text *out, const struct piece *in, size_t i, const struct tokenizer *t,
                      const struct charsmap *m, bool few_blanks)
{
    bool blank = few_blanks;
    size_t used = 0;
    for (; i < in->n; i += used) {
        size_t size;
        const char *from = in->data + i;
        const char *to = spm_prefix(t, m, from, in->n - i, &used, &size);
        size_t skip = 0;
        while (blank && skip < size && to[skip] == ' ')
            skip++;
        if (to == from ? !text_copy(out, in, i + skip, i + used)
                       : !text_put(out, to + skip, size - skip, in, i, i + used))
            return false;
        if (skip < size)
            blank = few_blanks && to[size - 1] == ' ';
    }
    return true;
}

static bool drop_end(struct text *t, const char *end, size_t n)
{
    bool ends = t->n >= n && memcmp(t->data + t->n - n, end, n) == 0;
    t->n -= ends ? n : 0;
    return ends;
}

/* Normalizer::Normalize of google/sentencepiece, src/normalizer.cc, except that blanks are not
 * escaped yet: so marks (U+2581) at the end of the text are dropped like blanks. */
bool spm_normalize(struct text *out, const struct piece *in, const struct tokenizer *t,
                   const struct spm_rules *rules)
{
    const bool few_blanks = rules->remove_extra_whitespaces;
    size_t begin = few_blanks ? spm_begin(t, &rules->charsmap, in) : 0;
    if (begin == in->n)
        return true;
    bool dummy = rules->add_dummy_prefix;
    bool suffix = rules->treat_whitespace_as_suffix;
    if ((dummy && !suffix && !text_put(out, " ", 1, in, 0, 0)) ||
        !spm_apply(out, in, begin, t, &rules->charsmap, few_blanks))
        return false;
    while (few_blanks &&
           (drop_end(out, " ", 1) ||
            (rules->escape_whitespaces && drop_end(out, spm_blank, sizeof spm_blank - 1)))) {
    }
    return !dummy || !suffix || text_put(out, " ", 1, in, in->n, in->n);
}
