/*
 * Regular expressions of tokenizer.json, which are written for Oniguruma (Ruby syntax), run by
 * pcre2 with UTF and UCP and its just-in-time compiler where it has one. What differs between the
 * two is rewritten by translate() or refused:
 *
 *   \s  \S          White_Space; pcre2's takes U+180E in as well
 *   \w  \W          Alphabetic, marks, decimal digits, connectors, and outside of a class
 *                   the numbers of Latin-1; pcre2's knows no marks
 *   [[:punct:]]     symbols as well; letters are Alphabetic, Uppercase, Lowercase
 *   \b  \B          at the edges of such words
 *   \h  \H  \v      hexadecimal digit, U+000B; pcre2: horizontal and vertical white space
 *   \p{Han}         the property Script; pcre2's, from 10.40 on, is Script_Extensions
 *   \uHHHH          \x{HHHH}
 *   ^  $            at every line, hence PCRE2_MULTILINE
 *   (?m:  (?im)     the dot matches newlines: pcre2's s
 *   x{1,3}+  x{,3}  Ruby: repeated, not possessive; none to three
 *   [a-z&&[^b]]     intersection, through a lookbehind
 *   [a[bc]]         union, [abc]
 *   \C \M \Q \E     control and meta characters and letters there, a byte and quotes here: refused
 *
 * How long a match takes must not be the file's to say. Mostly a word is short: a match is first
 * looked for in a few bytes, with a limit for what pcre2 counts of its work, and holds if nothing
 * at their end was looked at. Else it is looked for in all of the text by a copy of the expression
 * that counts each item it tries and each byte it goes forth or back, and a text has a number of
 * these steps that grows with its size. What takes more is an error, never a wait.
 */
#include "tokenizer/internal.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    /* Expressions of models need 1 to 30 steps a byte for the worst texts. One that looks on to the
     * end of each run of digits needs as many as the run is long, so it takes runs of some 20,000.
     * A step takes 0.1 to 10 ns. */
    STEPS = 100000000,
    STEPS_PER_BYTE = 4000,
    QUICK_BYTES = 128, /* in which a match is looked for first, and its limit in pcre2's steps */
    QUICK_LIMIT = 64,
    /* To come back to: a word that is matched a character at a time takes 100 bytes for each. */
    STACK_MAX = 256 << 20,
    STACK_MIN = 1 << 20, /* where the process may not have as many addresses */
    MAX_PATTERN = 65536, /* pcre2 compiles none to more bytes than that */
    MAX_GROUPS = 250,
    MAX_CLASSES = 16
};

struct regex {
    pcre2_code *code;
    char *text; /* as pcre2 takes it */
    bool jit;
    bool looks_behind;
    bool caret; /* has ^, which asks pcre2 whether the text ends there, but is no partial match */
};

/* A regex that counts. */
struct counted {
    const struct regex *of;
    pcre2_code *code;
    bool jit;
};

struct regex_scratch {
    pcre2_match_data *match;
    pcre2_match_context *quick, *counting;
    pcre2_jit_stack *stack;  /* of counting, NULL before it is first needed */
    struct counted *counted; /* those that have been needed */
    size_t n_counted, counted_capacity;
    size_t steps, left; /* that the text has, and has left */
    size_t last;        /* where the last step was */
};

/* ---- Oniguruma -> pcre2 ---------------------------------------------------------------------- */

struct translation {
    const char *in;
    char *out;
    size_t n, capacity;
    size_t atom;              /* where the last thing that a quantifier can follow begins */
    size_t group[MAX_GROUPS]; /* where open groups begin */
    size_t n_groups;
    size_t n_classes; /* open ones, each within the one before */
    bool no_memory;
    bool looks_behind;   /* beyond what pcre2 counts */
    bool caret;          /* has ^ */
    const char *refused; /* why */
};

static void put(struct translation *t, const char *s, size_t n)
{
    char *out = grow_array(t->out, &t->capacity, t->n + n + 1, 1, 256);
    if (!out) {
        t->no_memory = true;
        return;
    }
    t->out = out;
    memcpy(t->out + t->n, s, n);
    t->n += n;
    t->out[t->n] = '\0';
}

static void put_text(struct translation *t, const char *s)
{
    put(t, s, strlen(s));
}

/* Puts s before what stands from `at` on. */
static void put_before(struct translation *t, size_t at, const char *s)
{
    size_t n = strlen(s);
    size_t moved = t->n - at;
    put_text(t, s);
    if (!t->no_memory) {
        memmove(t->out + at + n, t->out + at, moved);
        memcpy(t->out + at, s, n);
    }
}

#define WORD      "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}"
#define LONE_WORD WORD "\\xB2\\xB3\\xB9\\xBC-\\xBE"
/* White_Space, which has not changed since Unicode 6.3. */
#define SPACE_SET                                                                                  \
    "\\x09-\\x0D\\x20\\x85\\xA0\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}\\x{205F}"   \
    "\\x{3000}"

struct escape {
    char letter;
    const char *outside, *inside; /* of a class; NULL: refused there */
};

static const struct escape escapes[] = {
    {'s', "[" SPACE_SET "]", SPACE_SET},
    {'S', "[^" SPACE_SET "]", NULL},
    {'w', "[" LONE_WORD "]", WORD},
    {'W', "[^" LONE_WORD "]", NULL},
    {'h', "[0-9a-fA-F]", "0-9a-fA-F"},
    {'H', "[^0-9a-fA-F]", NULL},
    {'v', "\\x0B", "\\x0B"},
    {'b', "(?:(?<=[" LONE_WORD "])(?![" LONE_WORD "])|(?<![" LONE_WORD "])(?=[" LONE_WORD "]))",
     "\\b"},
    {'B', "(?:(?<=[" LONE_WORD "])(?=[" LONE_WORD "])|(?<![" LONE_WORD "])(?![" LONE_WORD "]))",
     NULL},
};

/* Whether pcre2 has a script of that name, and can be asked for it by the property Script. */
static bool is_script(const char *name, size_t n)
{
    char pattern[64];
    int error;
    PCRE2_SIZE at;
    const int size = snprintf(pattern, sizeof pattern, "\\p{sc:%.*s}", (int)n, name);
    if (size >= (int)sizeof pattern)
        return false;
    pcre2_code *code =
        pcre2_compile((PCRE2_SPTR)pattern, (PCRE2_SIZE)size, PCRE2_UTF, &error, &at, NULL);
    const bool found = code;
    pcre2_code_free(code);
    return found;
}

/* At the brace of \p{..} or \x{..}. */
static void translate_braces(struct translation *t, bool is_property)
{
    const char *end = strchr(t->in, '}');
    const size_t size = end ? (size_t)(end - t->in) + 1 : strlen(t->in);
    const size_t before = t->in[1] == '^' ? 2 : 1; /* of the name */
    if (end && is_property && size > before && is_script(t->in + before, size - before - 1)) {
        put(t, t->in, before);
        put_text(t, "sc:");
        put(t, t->in + before, size - before);
    } else {
        put(t, t->in, size);
    }
    t->in += size;
}

/* At a backslash. */
static void translate_escape(struct translation *t, bool inside)
{
    char letter = t->in[1];
    t->looks_behind = t->looks_behind || (!inside && letter && strchr("AGK", letter));
    if (letter && strchr("CEMQ", letter)) {
        t->refused = "\\C, \\E, \\M or \\Q";
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(escapes); i++) {
        if (letter == escapes[i].letter) {
            const char *text = inside ? escapes[i].inside : escapes[i].outside;
            if (text)
                put_text(t, text);
            else
                t->refused = "a negated class within a class";
            t->in += 2;
            return;
        }
    }
    if (letter == 'u' && strspn(t->in + 2, "0123456789abcdefABCDEF") >= 4) {
        put_text(t, "\\x{");
        put(t, t->in + 2, 4);
        put_text(t, "}");
        t->in += 6;
        return;
    }
    /* \p{..}, \x{..}, \d, \r, an escaped sign: the same in both. */
    size_t n = letter ? 1 + utf8_size(letter) : 1;
    n = min_size(n, strlen(t->in));
    put(t, t->in, n);
    t->in += n;
    if ((letter == 'p' || letter == 'P' || letter == 'x') && *t->in == '{')
        translate_braces(t, letter != 'x');
}

/* At [: within a class. */
static void translate_named_class(struct translation *t)
{
    static const struct {
        const char *name, *set;
    } classes[] = {{"alnum", "\\p{Alphabetic}\\p{Nd}"},
                   {"alpha", "\\p{Alphabetic}"},
                   {"lower", "\\p{Lowercase}"},
                   {"punct", "\\p{P}\\p{S}"},
                   {"space", SPACE_SET},
                   {"upper", "\\p{Uppercase}"},
                   {"word", WORD}};
    const bool negated = t->in[2] == '^';
    const char *name = t->in + 2 + negated;
    const char *end = strstr(name, ":]");
    const size_t n = end ? (size_t)(end - name) : 0;
    for (size_t i = 0; i < ARRAY_LEN(classes); i++) {
        if (strlen(classes[i].name) == n && memcmp(classes[i].name, name, n) == 0) {
            const char *const set = classes[i].set;
            if (negated && strchr(set + 1, '\\'))
                t->refused = "a negated class within a class";
            put_text(t, negated ? "\\P" : "");
            put_text(t, negated ? set + 2 : set);
            t->in = end + 2;
            return;
        }
    }
    const size_t size = end ? (size_t)(end - t->in) + 2 : 1;
    put(t, t->in, size);
    t->in += size;
}

static void translate_class(struct translation *t);

/* [X&&[Y]], with [X written since `start`: (?:[X](?<=[Y])). */
static void translate_intersection(struct translation *t, size_t start, bool negated)
{
    t->in += 2;
    if (t->n_classes == MAX_CLASSES) {
        t->refused = "classes nested too deep";
        return;
    }
    if (*t->in == '[' && !negated) {
        put_text(t, "](?<=");
        t->n_classes++;
        translate_class(t);
        t->n_classes--;
        put_text(t, "))");
        put_before(t, start, "(?:");
        if (*t->in == ']') {
            t->in++;
            return;
        }
    }
    if (!t->refused)
        t->refused = "an intersection of classes other than [..&&[..]]";
}

/* At a bracket within a class that opens another: its members are the outer one's as well. Beside a
 * dash, which might make a range with one of them, it is refused. */
static void enter_class(struct translation *t)
{
    if (t->in[1] == '^')
        t->refused = "a negated class within a class";
    else if (t->in[1] == ']')
        t->refused = "an empty class within a class";
    else if (t->in[1] == '-' || t->out[t->n - 1] == '-')
        t->refused = "a class within a class behind a dash";
    t->in++;
}

static void leave_class(struct translation *t)
{
    t->in++;
    const bool inner = t->out[t->n - 1] == '-', outer = t->in[0] == '-' && t->in[1] != ']';
    if (outer || (inner && t->in[0] != ']'))
        t->refused = "a class within a class before a dash";
}

/* At an opening bracket. */
static void translate_class(struct translation *t)
{
    size_t depth = 0; /* of classes within this one */
    size_t start = t->n;
    put_text(t, "[");
    t->in++;
    bool negated = *t->in == '^';
    if (negated) {
        put_text(t, "^");
        t->in++;
    }
    bool empty = true; /* the innermost class, so far */
    while (*t->in && !t->refused && !t->no_memory) {
        if (*t->in == ']' && !empty && depth == 0) {
            put_text(t, "]");
            t->in++;
            return;
        }
        if (t->in[0] == '&' && t->in[1] == '&') {
            translate_intersection(t, start, negated || depth > 0);
            return;
        }
        empty = *t->in == '[' && t->in[1] != ':';
        if (empty) {
            enter_class(t);
            depth++;
        } else if (*t->in == ']' && depth > 0) {
            leave_class(t);
            depth--;
        } else if (*t->in == '\\') {
            translate_escape(t, true);
        } else if (*t->in == '[') {
            translate_named_class(t);
        } else {
            put(t, t->in++, 1);
        }
    }
}

/* (?imx-imx: with Ruby's m, which is pcre2's s. */
static void translate_group(struct translation *t)
{
    if (t->n_groups == MAX_GROUPS) {
        t->refused = "groups nested too deep";
        return;
    }
    t->group[t->n_groups++] = t->n;
    put(t, t->in++, 1);
    if (t->in[0] != '?')
        return;
    size_t n = 1 + strspn(t->in + 1, "imx-");
    if (t->in[n] != ':' && t->in[n] != ')')
        return;
    for (size_t i = 0; i < n; i++) {
        char c = t->in[i] == 'm' ? 's' : t->in[i];
        put(t, &c, 1);
    }
    t->in += n;
}

/* {n,m}: *n bytes; false where the brace is no quantifier. */
static bool is_interval(const char *s, size_t *n)
{
    size_t a = strspn(s + 1, "0123456789");
    size_t comma = s[1 + a] == ',';
    size_t b = comma ? strspn(s + 2 + a, "0123456789") : 0;
    *n = 1 + a + comma + b + 1;
    return (a || b) && s[*n - 1] == '}';
}

/* At a brace. */
static void translate_interval(struct translation *t)
{
    size_t n;
    if (!is_interval(t->in, &n)) {
        t->atom = t->n;
        put_text(t, "\\{");
        t->in++;
        return;
    }
    if (t->in[1] == ',') {
        put_text(t, "{0");
        put(t, t->in + 1, n - 1);
    } else {
        put(t, t->in, n);
    }
    t->in += n;
    if (*t->in == '+') {
        put_text(t, ")");
        put_before(t, t->atom, "(?:");
    }
}

static void translate_one(struct translation *t)
{
    switch (*t->in) {
    case '\\':
        t->atom = t->n;
        translate_escape(t, false);
        return;
    case '[':
        t->atom = t->n;
        translate_class(t);
        return;
    case '(':
        translate_group(t);
        return;
    case ')':
        if (t->n_groups)
            t->atom = t->group[--t->n_groups];
        put(t, t->in++, 1);
        return;
    case '{':
        translate_interval(t);
        return;
    case '*':
    case '+':
    case '?':
        put(t, t->in++, 1);
        return;
    default:
        t->caret = t->caret || *t->in == '^';
        t->atom = t->n;
        size_t n = min_size(utf8_size(*t->in), strlen(t->in));
        put(t, t->in, n);
        t->in += n;
    }
}

/* malloc'ed, NULL and a sentence where the pattern cannot be had in pcre2. */
static char *translate(const char *pattern, struct regex *r, struct err *e)
{
    struct translation t = {.in = pattern};
    put_text(&t, "");
    while (*t.in && !t.refused && !t.no_memory)
        translate_one(&t);
    r->looks_behind = t.looks_behind || t.caret;
    r->caret = t.caret;
    if (t.no_memory) {
        err_no_memory(e);
    } else if (t.refused) {
        err_set(e, ERR_LOAD, "the regular expression \"%.100s\" has %s, which is not supported",
                pattern, t.refused);
    } else {
        return t.out;
    }
    free(t.out);
    return NULL;
}

/* ---- compile --------------------------------------------------------------------------------- */

/* `options` beside those that all have. *jit: whether there is machine code. */
static pcre2_code *compile(const char *text, uint32_t options, bool *jit, struct err *e)
{
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    if (!context) {
        err_no_memory(e);
        return NULL;
    }
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    options |= PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C;
    int code = 0;
    PCRE2_SIZE at = 0;
    pcre2_code *compiled =
        pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED, options, &code, &at, context);
    if (compiled) {
        *jit = pcre2_jit_compile(compiled, PCRE2_JIT_COMPLETE | PCRE2_JIT_PARTIAL_HARD) == 0;
    } else if (code == PCRE2_ERROR_HEAP_FAILED) {
        err_no_memory(e);
    } else {
        char why[128] = "";
        pcre2_get_error_message(code, (PCRE2_UCHAR *)why, sizeof why);
        err_set(e, ERR_LOAD, "refused by pcre2: %s", why);
    }
    pcre2_compile_context_free(context);
    return compiled;
}

struct regex *regex_compile(const char *pattern, struct err *e)
{
    if (strlen(pattern) > MAX_PATTERN) {
        err_set(e, ERR_LOAD, "the regular expression \"%.100s\" has more than %d bytes", pattern,
                MAX_PATTERN);
        return NULL;
    }
    struct regex *r = calloc(1, sizeof *r);
    if (!r) {
        err_no_memory(e);
        return NULL;
    }
    r->text = translate(pattern, r, e);
    r->code = r->text ? compile(r->text, 0, &r->jit, e) : NULL;
    if (!r->code) {
        if (r->text)
            err_prefix(e, "the regular expression \"%.100s\"", pattern);
        regex_free(r);
        return NULL;
    }
    uint32_t behind = 1;
    pcre2_pattern_info(r->code, PCRE2_INFO_MAXLOOKBEHIND, &behind);
    r->looks_behind = r->looks_behind || behind > 0;
    return r;
}

void regex_free(struct regex *r)
{
    if (r) {
        pcre2_code_free(r->code);
        free(r->text);
        free(r);
    }
}

bool regex_looks_behind(const struct regex *r)
{
    return r->looks_behind;
}

/* ---- one thread's memory --------------------------------------------------------------------- */

/* Called by pcre2 before each item of the expression that it tries. */
static int count_step(pcre2_callout_block *item, void *scratch)
{
    struct regex_scratch *s = scratch;
    const size_t at = item->current_position;
    const size_t steps = 1 + (at > s->last ? at - s->last : s->last - at);
    s->last = at;
    if (steps > s->left)
        return PCRE2_ERROR_MATCHLIMIT;
    s->left -= steps;
    return 0;
}

struct regex_scratch *regex_scratch_new(void)
{
    struct regex_scratch *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->match = pcre2_match_data_create(1, NULL); /* the whole match, no groups */
    s->quick = pcre2_match_context_create(NULL);
    s->counting = pcre2_match_context_create(NULL);
    if (!s->match || !s->quick || !s->counting) {
        regex_scratch_free(s);
        return NULL;
    }
    pcre2_set_match_limit(s->quick, QUICK_LIMIT);
    pcre2_set_match_limit(s->counting, UINT32_MAX);
    pcre2_set_heap_limit(s->counting, STACK_MAX >> 10);
    pcre2_set_callout(s->counting, count_step, s);
    regex_scratch_begin(s, 0);
    return s;
}

void regex_scratch_free(struct regex_scratch *s)
{
    if (s) {
        pcre2_match_data_free(s->match);
        pcre2_match_context_free(s->quick);
        pcre2_match_context_free(s->counting);
        pcre2_jit_stack_free(s->stack);
        for (size_t i = 0; i < s->n_counted; i++)
            pcre2_code_free(s->counted[i].code);
        free(s->counted);
        free(s);
    }
}

void regex_scratch_begin(struct regex_scratch *s, size_t n)
{
    s->left = s->steps =
        STEPS + (n < SIZE_MAX / 2 / STEPS_PER_BYTE ? n * STEPS_PER_BYTE : SIZE_MAX / 2);
}

/* The regex as one that counts. Few are needed, and a tokenizer does not change: so each thread
 * compiles its own. NULL: no memory, or too large so. */
static const struct counted *counted(struct regex_scratch *s, const struct regex *r, struct err *e)
{
    for (size_t i = 0; i < s->n_counted; i++)
        if (s->counted[i].of == r)
            return &s->counted[i];
    for (size_t most = STACK_MAX; !s->stack && most >= STACK_MIN; most /= 2) /* of addresses */
        s->stack = pcre2_jit_stack_create(32 << 10, most, NULL);
    if (!s->stack) {
        err_no_memory(e);
        return NULL;
    }
    pcre2_jit_stack_assign(s->counting, NULL, s->stack);
    struct counted *list =
        grow_array(s->counted, &s->counted_capacity, s->n_counted + 1, sizeof *list, 4);
    if (!list) {
        err_no_memory(e);
        return NULL;
    }
    s->counted = list;
    struct counted *new = &list[s->n_counted];
    *new = (struct counted){.of = r};
    new->code = compile(r->text, PCRE2_AUTO_CALLOUT, &new->jit, e);
    if (!new->code) {
        err_prefix(e, "a regular expression of the tokenizer");
        return NULL;
    }
    s->n_counted++;
    return new;
}

/* ---- match ----------------------------------------------------------------------------------- */

/* `open`: gives a match up as soon as the end of the text is looked at. The text is well formed but
 * for surrogates, which the unchecked matcher takes like any other character (category Cs). */
static int run(const pcre2_code *code, bool jit, struct regex_scratch *s,
               pcre2_match_context *context, const char *text, size_t n, size_t from, bool open)
{
    PCRE2_SPTR subject = (PCRE2_SPTR)text;
    const uint32_t options = open ? PCRE2_PARTIAL_HARD : 0;
    return jit ? pcre2_jit_match(code, subject, n, from, options, s->match, context)
               : pcre2_match(code, subject, n, from, options | PCRE2_NO_UTF_CHECK, s->match,
                             context);
}

static bool is_over(int rc)
{
    return rc >= 0 || rc == PCRE2_ERROR_NOMATCH || rc == PCRE2_ERROR_PARTIAL;
}

/* Looks at the next few bytes alone. False: the text behind them, or more steps, may change what
 * was found; an empty match at their end is no match yet. */
static bool run_quick(const struct regex *r, struct regex_scratch *s, const char *text, size_t n,
                      size_t from, bool open, int *rc)
{
    size_t end = n - from > QUICK_BYTES ? from + QUICK_BYTES : n;
    if (r->caret && end < n)
        return false;
    while (end < n && utf8_is_continuation(text[end]))
        end--;
    *rc = run(r->code, r->jit, s, s->quick, text, end, from, open || end < n);
    return end == n ? is_over(*rc) : *rc >= 0 && pcre2_get_ovector_pointer(s->match)[0] < end;
}

static bool gives_up(const struct regex_scratch *s, int rc, struct err *e)
{
    if (rc == PCRE2_ERROR_MATCHLIMIT) {
        return err_set(e, ERR_LOAD,
                       "a regular expression of the tokenizer gives up: it takes more than %zu "
                       "million steps",
                       s->steps / 1000000);
    }
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT || rc == PCRE2_ERROR_HEAPLIMIT) {
        return err_set(e, ERR_LOAD,
                       "a regular expression of the tokenizer gives up: it takes more memory for "
                       "one word than the %d MiB or less that it may have",
                       STACK_MAX >> 20);
    }
    if (rc == PCRE2_ERROR_NOMEMORY)
        return err_no_memory(e);
    char why[128] = "";
    pcre2_get_error_message(rc, (PCRE2_UCHAR *)why, sizeof why);
    return err_set(e, ERR_LOAD, "a regular expression of the tokenizer gives up: %s", why);
}

static enum regex_result find(const struct regex *r, struct regex_scratch *s, const char *text,
                              size_t n, size_t from, bool open, struct token_span *match,
                              struct err *e)
{
    int rc;
    if (!run_quick(r, s, text, n, from, open, &rc)) {
        const struct counted *c = counted(s, r, e);
        if (!c)
            return REGEX_ERROR;
        s->last = from;
        rc = run(c->code, c->jit, s, s->counting, text, n, from, open);
    }
    if (!is_over(rc)) {
        gives_up(s, rc, e);
        return REGEX_ERROR;
    }
    if (rc < 0)
        return REGEX_NONE;
    const PCRE2_SIZE *at = pcre2_get_ovector_pointer(s->match);
    *match = (struct token_span){at[0], at[1]};
    if (at[0] >= from && at[1] >= at[0])
        return REGEX_MATCH;
    err_set(e, ERR_LOAD, "a regular expression of the tokenizer matches backwards (\\K)");
    return REGEX_ERROR;
}

/* ---- patterns -------------------------------------------------------------------------------- */

bool pattern_load(struct pattern *p, const struct json *j, struct tokenizer *t, const char *where,
                  struct err *e)
{
    const char *literal = json_text(json_get(j, "String"), NULL);
    const char *regex = json_text(json_get(j, "Regex"), NULL);
    if (literal) {
        p->n_literal = strlen(literal);
        p->literal = arena_text(&t->arena, literal, p->n_literal);
        return p->literal || err_no_memory(e);
    }
    if (!regex) {
        return err_set(e, ERR_LOAD, "%s: \"pattern\" must be {\"String\": ..} or {\"Regex\": ..}",
                       where);
    }
    p->regex = regex_compile(regex, e);
    if (!p->regex)
        return err_prefix(e, "%s", where);
    return tokenizer_own_regex(t, p->regex, e);
}

enum regex_result pattern_find(const struct pattern *p, struct regex_scratch *s, const char *text,
                               size_t n, size_t from, bool open, struct token_span *match,
                               struct err *e)
{
    if (p->regex)
        return find(p->regex, s, text, n, from, open, match, e);
    const char *hit = p->n_literal ? memmem(text + from, n - from, p->literal, p->n_literal) : NULL;
    if (!hit)
        return REGEX_NONE;
    *match = (struct token_span){(size_t)(hit - text), (size_t)(hit - text) + p->n_literal};
    return REGEX_MATCH;
}
