/*
 * Properties through a two-stage table; normal forms after UAX #15 and chapter 3.12 of the Unicode
 * Standard (Hangul is computed, as there).
 */
#include "tokenizer/unicode.h"

#include <stdlib.h>

struct unicode_record {
    uint8_t category, combining, script, grapheme;
    uint16_t flags;
};

struct unicode_decomposition {
    uint32_t c;
    uint16_t canonical, n_canonical, compatible, n_compatible;
};

struct unicode_composition {
    uint32_t first, second, both;
};

struct unicode_lower {
    uint32_t c, lower[2];
};

#include "tokenizer/unicode_tables.inc"

/* The most characters that one becomes: U+FDFA in NFKD. */
enum { MAX_EXPANSION = 18 };

/* As in unicode.py. */
enum {
    WHITE_SPACE = 1,
    ALPHABETIC = 2,
    PICTOGRAPHIC = 4,
    NFC_STABLE = 8,
    NFKC_STABLE = 16,
    PUNCTUATION = 32,
    OTHER = 64,
    NONSPACING = 128,
    MARK = 256
};

/* The Unicode Standard 3.12, Hangul syllables. */
enum {
    S_BASE = 0xAC00,
    L_BASE = 0x1100,
    V_BASE = 0x1161,
    T_BASE = 0x11A7,
    L_COUNT = 19,
    V_COUNT = 21,
    T_COUNT = 28,
    S_COUNT = L_COUNT * V_COUNT * T_COUNT
};

static const struct unicode_record *record(uint32_t c)
{
    size_t block = c <= 0x10FFFF ? unicode_first[c / UNICODE_BLOCK] : 0;
    return &unicode_records[unicode_second[block * UNICODE_BLOCK + c % UNICODE_BLOCK]];
}

enum unicode_category unicode_category(uint32_t c)
{
    return (enum unicode_category)record(c)->category;
}

bool unicode_is_space(uint32_t c)
{
    return record(c)->flags & WHITE_SPACE;
}

bool unicode_is_punctuation(uint32_t c)
{
    if (c < 0x80) {
        return c > ' ' && c < 0x7F && !((c | 0x20) >= 'a' && (c | 0x20) <= 'z') &&
               !(c >= '0' && c <= '9');
    }
    return record(c)->flags & PUNCTUATION;
}

bool unicode_is_other(uint32_t c)
{
    return record(c)->flags & OTHER;
}

bool unicode_is_nonspacing(uint32_t c)
{
    return record(c)->flags & NONSPACING;
}

bool unicode_is_number(uint32_t c)
{
    enum unicode_category category = unicode_category(c);
    return category >= UNICODE_ND && category <= UNICODE_NO;
}

bool unicode_is_mark(uint32_t c)
{
    return record(c)->flags & MARK;
}

bool unicode_is_word(uint32_t c)
{
    const struct unicode_record *r = record(c);
    const bool mark = r->category >= UNICODE_MN && r->category <= UNICODE_ME;
    return (r->flags & ALPHABETIC) || mark || r->category == UNICODE_ND ||
           r->category == UNICODE_PC || c == 0x200C || c == 0x200D; /* Join_Control */
}

int unicode_script(uint32_t c)
{
    return record(c)->script;
}

/* Grapheme_Cluster_Break, in the order of unicode.py. */
enum {
    GCB_OTHER,
    GCB_CR,
    GCB_LF,
    GCB_CONTROL,
    GCB_EXTEND,
    GCB_ZWJ,
    GCB_FLAG, /* Regional_Indicator */
    GCB_PREPEND,
    GCB_SPACING_MARK,
    GCB_L,
    GCB_V,
    GCB_T,
    GCB_LV,
    GCB_LVT
};

/* Rules GB3 to GB9b between two characters; the others need more of what stands before. */
static bool joins(int a, int b)
{
    if (a == GCB_CR && b == GCB_LF)
        return true; /* GB3 */
    if ((a >= GCB_CR && a <= GCB_CONTROL) || (b >= GCB_CR && b <= GCB_CONTROL))
        return false; /* GB4, GB5 */
    switch (a) {
    case GCB_L: /* GB6 */
        if (b == GCB_L || b == GCB_V || b == GCB_LV || b == GCB_LVT)
            return true;
        break;
    case GCB_LV:
    case GCB_V: /* GB7 */
        if (b == GCB_V || b == GCB_T)
            return true;
        break;
    case GCB_LVT:
    case GCB_T: /* GB8 */
        if (b == GCB_T)
            return true;
        break;
    case GCB_PREPEND: /* GB9b */
        return true;
    default:
        break;
    }
    return b == GCB_EXTEND || b == GCB_ZWJ || b == GCB_SPACING_MARK; /* GB9, GB9a */
}

bool unicode_grapheme_begins(struct unicode_grapheme *g, uint32_t c)
{
    const struct unicode_record *r = record(c);
    bool pictograph = r->flags & PICTOGRAPHIC;
    bool joined = joins(g->before, r->grapheme) || (g->emoji && g->joiner && pictograph) ||
                  (g->odd_flags && r->grapheme == GCB_FLAG); /* GB11, GB12 and 13 */
    bool begins = !g->started || !joined;
    *g = (struct unicode_grapheme){
        .before = r->grapheme,
        .started = true,
        .emoji = pictograph ||
                 (g->emoji && !g->joiner && (r->grapheme == GCB_EXTEND || r->grapheme == GCB_ZWJ)),
        .joiner = r->grapheme == GCB_ZWJ,
        .odd_flags = r->grapheme == GCB_FLAG && !(g->odd_flags && joined),
    };
    return begins;
}

static int compare_lower(const void *key, const void *entry)
{
    uint32_t c = *(const uint32_t *)key;
    uint32_t d = ((const struct unicode_lower *)entry)->c;
    return (c > d) - (c < d);
}

size_t unicode_lower(uint32_t c, uint32_t out[2])
{
    const struct unicode_lower *l = bsearch(&c, unicode_lowers, ARRAY_LEN(unicode_lowers),
                                            sizeof *unicode_lowers, compare_lower);
    out[0] = l ? l->lower[0] : c;
    out[1] = l ? l->lower[1] : 0;
    return out[1] ? 2 : 1;
}

static bool is_compatible(enum unicode_form form)
{
    return form == UNICODE_NFKC || form == UNICODE_NFKD;
}

static bool is_composed(enum unicode_form form)
{
    return form == UNICODE_NFC || form == UNICODE_NFKC;
}

bool unicode_is_boundary(uint32_t c, enum unicode_form form)
{
    return record(c)->flags & (is_compatible(form) ? NFKC_STABLE : NFC_STABLE);
}

static int compare_decomposition(const void *key, const void *entry)
{
    uint32_t c = *(const uint32_t *)key;
    uint32_t d = ((const struct unicode_decomposition *)entry)->c;
    return (c > d) - (c < d);
}

static const struct unicode_decomposition *decomposition(uint32_t c)
{
    if (c < 0xA0)
        return NULL;
    return bsearch(&c, unicode_decompositions, ARRAY_LEN(unicode_decompositions),
                   sizeof *unicode_decompositions, compare_decomposition);
}

static bool is_hangul_syllable(uint32_t c)
{
    return c >= S_BASE && c < S_BASE + S_COUNT;
}

bool unicode_is_stable(uint32_t c, enum unicode_form form)
{
    if (!unicode_is_boundary(c, form))
        return false;
    if (is_composed(form))
        return true;
    if (is_hangul_syllable(c))
        return false;
    const struct unicode_decomposition *d = decomposition(c);
    return !d || (is_compatible(form) ? d->n_compatible : d->n_canonical) == 0;
}

static size_t decompose_hangul(uint32_t c, uint32_t *out)
{
    uint32_t s = c - S_BASE;
    uint32_t trailing = s % T_COUNT;
    out[0] = L_BASE + s / (V_COUNT * T_COUNT);
    out[1] = V_BASE + s % (V_COUNT * T_COUNT) / T_COUNT;
    out[2] = T_BASE + trailing;
    return trailing ? 3 : 2;
}

static size_t decompose(uint32_t c, bool compatibly, uint32_t *out)
{
    if (is_hangul_syllable(c))
        return decompose_hangul(c, out);
    const struct unicode_decomposition *d = decomposition(c);
    size_t n = d ? (compatibly ? d->n_compatible : d->n_canonical) : 0;
    if (!n) {
        out[0] = c;
        return 1;
    }
    const uint32_t *to = &unicode_pool[compatibly ? d->compatible : d->canonical];
    for (size_t i = 0; i < n; i++)
        out[i] = to[i];
    return n;
}

/* Stable counting sort of c[0..n), all marks, by combining class; `work` has room for n. */
static void sort_marks(uint32_t *c, size_t n, uint32_t *work)
{
    size_t begin[257] = {0};
    for (size_t i = 0; i < n; i++)
        begin[record(c[i])->combining + 1]++;
    for (size_t k = 1; k < ARRAY_LEN(begin); k++)
        begin[k] += begin[k - 1];
    for (size_t i = 0; i < n; i++)
        work[begin[record(c[i])->combining]++] = c[i];
    for (size_t i = 0; i < n; i++)
        c[i] = work[i];
}

/* The canonical ordering algorithm (D109). */
static void order_marks(uint32_t *c, size_t n, uint32_t *work)
{
    size_t start = 0; /* of the run of marks that i is in */
    bool sorted = true;
    for (size_t i = 0; i <= n; i++) {
        uint8_t here = i < n ? record(c[i])->combining : 0;
        if (here == 0) {
            if (!sorted)
                sort_marks(c + start, i - start, work);
            start = i + 1;
            sorted = true;
        } else if (i > start && record(c[i - 1])->combining > here) {
            sorted = false;
        }
    }
}

static int compare_composition(const void *key, const void *entry)
{
    const struct unicode_composition *k = key;
    const struct unicode_composition *d = entry;
    if (k->first != d->first)
        return k->first < d->first ? -1 : 1;
    return (k->second > d->second) - (k->second < d->second);
}

/* The character that two make, 0 where they make none. */
static uint32_t composed(uint32_t a, uint32_t b)
{
    if (a >= L_BASE && a < L_BASE + L_COUNT && b >= V_BASE && b < V_BASE + V_COUNT)
        return S_BASE + ((a - L_BASE) * V_COUNT + (b - V_BASE)) * T_COUNT;
    if (is_hangul_syllable(a) && (a - S_BASE) % T_COUNT == 0 && b > T_BASE && b < T_BASE + T_COUNT)
        return a + (b - T_BASE);
    struct unicode_composition key = {a, b, 0};
    const struct unicode_composition *found =
        bsearch(&key, unicode_compositions, ARRAY_LEN(unicode_compositions),
                sizeof *unicode_compositions, compare_composition);
    return found ? found->both : 0;
}

/* In place; a mark composes with the last starter unless one of its class or a higher stands
 * between (definition D117). */
static size_t compose(uint32_t *c, size_t n)
{
    size_t out = 0;
    size_t starter = SIZE_MAX;
    int last = 0; /* combining class of what stands before; 0: the starter itself */
    for (size_t i = 0; i < n; i++) {
        int combining = record(c[i])->combining;
        bool adjacent = starter != SIZE_MAX && out == starter + 1;
        bool blocked = !adjacent && last >= combining;
        uint32_t both = starter != SIZE_MAX && !blocked ? composed(c[starter], c[i]) : 0;
        if (both) {
            c[starter] = both;
            continue;
        }
        if (combining == 0)
            starter = out;
        last = combining;
        c[out++] = c[i];
    }
    return out;
}

size_t unicode_decomposed_count(const uint32_t *in, size_t n, enum unicode_form form)
{
    uint32_t each[MAX_EXPANSION];
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += decompose(in[i], is_compatible(form), each);
    return count;
}

size_t unicode_normalize(const uint32_t *in, size_t n, enum unicode_form form, uint32_t *out)
{
    size_t n_out = 0;
    for (size_t i = 0; i < n; i++)
        n_out += decompose(in[i], is_compatible(form), out + n_out);
    order_marks(out, n_out, out + n_out);
    return is_composed(form) ? compose(out, n_out) : n_out;
}
