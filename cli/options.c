/*
 * Reads arguments the way getopt_long does: "--name value", "--name=value", "-n5", "-n 5", bundled
 * flags, options after the words, "--" ends them. Not getopt_long itself, because its sentences and
 * its abbreviations (which break when an option is added) are not ours.
 */
#include "cli/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool options_init(struct options *o, int argc, struct err *e)
{
    *o = (struct options){
        .max_tokens = 256,
        .parallel = 64,
        .kv = SESSION_KV_AUTO,
        .draft = GENERATOR_DRAFT_AUTO,
        .sampling = sample_defaults,
        .bench_weights = {.value = {MODEL_STORED}, .n = 1},
        .bench_threads = {.value = {0}, .n = 1},
        .n_prompt = {.value = {512}, .n = 1},
        .n_gen = {.value = {128}, .n = 1},
        .depth = {.value = {0}, .n = 1},
        .repetitions = 5,
    };
    const size_t n = argc > 0 ? (size_t)argc : 1;
    o->words = calloc(n, sizeof *o->words);
    o->stop.item = calloc(n, sizeof *o->stop.item);
    return (o->words && o->stop.item) || err_no_memory(e);
}

void options_free(struct options *o)
{
    free(o->words);
    free(o->stop.item);
}

/* ---- values ---------------------------------------------------------------------------------- */

/* A number begins with a digit, a sign or a point: strtod and its kin would also take white space,
 * "nan", "inf" and, through a sign, wrap what has none. */
static bool looks_like_number(const char *text)
{
    const char *digits = text + (text[0] == '-' || text[0] == '+');
    return digits[0] == '.' || (digits[0] >= '0' && digits[0] <= '9');
}

static bool parse_whole(const struct option_spec *spec, const char *text, int *out, struct err *e)
{
    char *end;
    errno = 0;
    const long long value = strtoll(text, &end, 10);
    if (!looks_like_number(text) || *end != '\0' || errno != 0 || (double)value < spec->min ||
        (double)value > spec->max)
        return err_set(e, ERR_USAGE, "--%s: \"%s\" is not a whole number between %.0f and %.0f",
                       spec->name, text, spec->min, spec->max);
    *out = (int)value;
    return true;
}

static bool parse_real(const struct option_spec *spec, const char *text, float *out, struct err *e)
{
    char *end;
    const double value = strtod(text, &end);
    if (!looks_like_number(text) || *end != '\0' || !(value >= spec->min && value <= spec->max))
        return err_set(e, ERR_USAGE, "--%s: \"%s\" is not a number between %g and %g", spec->name,
                       text, spec->min, spec->max);
    *out = (float)value;
    return true;
}

static bool parse_seed(const struct option_spec *spec, const char *text, uint64_t *out,
                       struct err *e)
{
    char *end;
    errno = 0;
    const unsigned long long value = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0)
        return err_set(e, ERR_USAGE, "--%s: \"%s\" is not a whole number between 0 and %llu",
                       spec->name, text, (unsigned long long)UINT64_MAX);
    *out = value;
    return true;
}

static bool parse_size(const struct option_spec *spec, const char *text, size_t *out, struct err *e)
{
    static const char units[] = "KMGT";
    char *end;
    errno = 0;
    const unsigned long long value = strtoull(text, &end, 10);
    const char *unit = *end != '\0' ? strchr(units, *end) : NULL;
    size_t size = (size_t)value;
    bool good = text[0] >= '0' && text[0] <= '9' && errno == 0 && value > 0 && size == value &&
                (*end == '\0' || (unit && end[1] == '\0'));
    for (const char *u = units; good && unit && u <= unit; u++)
        good = checked_mul(size, 1024, &size);
    if (!good)
        return err_set(e, ERR_USAGE, "--%s: \"%s\" is not a size in bytes, such as 500M or 4G",
                       spec->name, text);
    *out = size;
    return true;
}

const char *options_words(const struct option_spec *spec)
{
    if (spec->kind == OPTION_WHOLE_OR)
        return strchr(spec->metavar, '|') + 1;
    const bool is_choice = spec->kind == OPTION_CHOICE || spec->kind == OPTION_CHOICES;
    return is_choice ? spec->metavar : NULL;
}

/* Which of the words between '|' the text is; -1: none of them. */
static int find_word(const char *words, const char *text)
{
    const size_t length = strlen(text);
    for (int i = 0; words; i++) {
        const size_t n = strcspn(words, "|");
        if (n == length && memcmp(words, text, n) == 0)
            return i;
        words = words[n] == '|' ? words + n + 1 : NULL;
    }
    return -1;
}

static bool parse_choice(const struct option_spec *spec, const char *text, int *out, struct err *e)
{
    const int word = find_word(options_words(spec), text);
    if (word < 0)
        return err_set(e, ERR_USAGE, "--%s: \"%s\" is none of %s", spec->name, text, spec->metavar);
    *out = (int)spec->min + word;
    return true;
}

/* Numbers or words with commas between them. */
static bool parse_several(const struct option_spec *spec, const char *text,
                          struct option_numbers *out, struct err *e)
{
    char one[32];
    out->n = 0;
    for (const char *at = text;; at++) {
        const size_t n = strcspn(at, ",");
        if (out->n == OPTION_MOST_NUMBERS)
            return err_set(e, ERR_USAGE, "--%s: \"%s\" has more than %d parts", spec->name, text,
                           OPTION_MOST_NUMBERS);
        if (n >= sizeof one)
            return err_set(e, ERR_USAGE, "--%s: \"%s\" has a part that is too long", spec->name,
                           text);
        int *value = &out->value[out->n++];
        snprintf(one, sizeof one, "%.*s", (int)n, at);
        if (spec->kind == OPTION_CHOICES ? !parse_choice(spec, one, value, e)
                                         : !parse_whole(spec, one, value, e))
            return false;
        at += n;
        if (*at == '\0')
            return true;
    }
}

static bool parse_whole_or(const struct option_spec *spec, const char *text, int *out,
                           struct err *e)
{
    const int word = find_word(options_words(spec), text);
    if (word < 0 && !parse_whole(spec, text, out, e))
        return err_set(e, ERR_USAGE,
                       "--%s: \"%s\" is neither a whole number between %.0f and %.0f nor one of %s",
                       spec->name, text, spec->min, spec->max, options_words(spec));
    if (word >= 0)
        *out = word - 1;
    return true;
}

/* Of most options the last one counts, but a part of the prompt must not get lost. */
static bool is_prompt(enum option_id id)
{
    return id == OPT_PROMPT || id == OPT_FILE || id == OPT_PROMPT_FILE || id == OPT_IDS;
}

/* Puts the value (NULL for a flag) where the table says. */
static bool store(struct options *o, enum option_id id, const char *text, struct err *e)
{
    const struct option_spec *spec = &options_table[id];
    void *place = (char *)o + spec->offset;
    if (is_prompt(id) && o->given[id])
        return err_set(e, ERR_USAGE, "--%s is given twice", spec->name);
    o->given[id] = true;
    switch (spec->kind) {
    case OPTION_FLAG:
        *(bool *)place = true;
        return true;
    case OPTION_WHOLE:
        return parse_whole(spec, text, place, e);
    case OPTION_REAL:
        return parse_real(spec, text, place, e);
    case OPTION_SEED:
        return parse_seed(spec, text, place, e);
    case OPTION_SIZE:
        return parse_size(spec, text, place, e);
    case OPTION_CHOICE:
        return parse_choice(spec, text, place, e);
    case OPTION_NUMBERS:
    case OPTION_CHOICES:
        return parse_several(spec, text, place, e);
    case OPTION_WHOLE_OR:
        return parse_whole_or(spec, text, place, e);
    case OPTION_TEXT:
    case OPTION_PATH:
    case OPTION_MODEL:
        if (spec->kind == OPTION_PATH && text[0] == '\0')
            return err_set(e, ERR_USAGE, "--%s: the name of a file is empty", spec->name);
        *(const char **)place = text;
        return true;
    case OPTION_LIST: {
        struct option_list *list = place;
        if (text[0] == '\0')
            return err_set(e, ERR_USAGE, "--%s: an empty text occurs everywhere", spec->name);
        list->item[list->n++] = text;
        return true;
    }
    }
    return false;
}

void options_default(const struct option_spec *spec, const struct options *defaults, char *out,
                     size_t size)
{
    const void *place = (const char *)defaults + spec->offset;
    out[0] = '\0';
    if (spec->fallback)
        snprintf(out, size, "%s", spec->fallback);
    else if (spec->kind == OPTION_WHOLE)
        snprintf(out, size, "%d", *(const int *)place);
    else if (spec->kind == OPTION_NUMBERS)
        snprintf(out, size, "%d", ((const struct option_numbers *)place)->value[0]);
    else if (spec->kind == OPTION_REAL)
        snprintf(out, size, "%g", (double)*(const float *)place);
    else if (spec->kind == OPTION_CHOICE || spec->kind == OPTION_CHOICES)
        snprintf(out, size, "%.*s", (int)strcspn(spec->metavar, "|"), spec->metavar);
}

/* ---- arguments ------------------------------------------------------------------------------- */

/* A walk over argv. */
struct reader {
    struct options *o;
    char **argv;
    int argc, at;
    unsigned command;
    const char *command_name;
};

size_t options_distance(const char *a, size_t n_a, const char *b)
{
    enum { LONGEST = 24 };
    size_t rows[3][LONGEST + 1]; /* of the letters of a; only the last three are looked at */
    const size_t n_b = strlen(b);
    if (n_a > LONGEST || n_b > LONGEST)
        return LONGEST;
    for (size_t i = 0; i <= n_a; i++) {
        size_t *const row = rows[i % 3], *const above = rows[(i + 2) % 3];
        row[0] = i;
        for (size_t j = 1; j <= n_b; j++) {
            if (i == 0) {
                row[j] = j;
                continue;
            }
            const size_t change = above[j - 1] + (a[i - 1] != b[j - 1]);
            row[j] = min_size(change, min_size(row[j - 1], above[j]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = min_size(row[j], rows[(i + 1) % 3][j - 2] + 1);
        }
    }
    return rows[n_a % 3][n_b];
}

/* The sentence for an option that is unknown, with the one that may have been meant. */
static bool fail_unknown(const struct reader *r, const char *name, size_t n, struct err *e)
{
    const char *nearest = NULL;
    size_t least = 3; /* two slips are a typing error, three are another word */
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option_spec *spec = &options_table[i];
        if (!(spec->commands & r->command) || !spec->group)
            continue;
        const size_t n_own = strlen(spec->name), n_common = min_size(n, n_own);
        const bool begins = n_common >= 2 && strncmp(name, spec->name, n_common) == 0;
        const size_t far = begins ? 0 : options_distance(name, n, spec->name);
        if (far < least && far < n) {
            least = far;
            nearest = spec->name;
        }
    }
    if (!nearest)
        return err_set(e, ERR_USAGE, "unknown option --%.*s; see tgen help %s", (int)n, name,
                       r->command_name);
    return err_set(e, ERR_USAGE, "unknown option --%.*s; did you mean --%s?", (int)n, name,
                   nearest);
}

/* Remembers that the option stood there; `value` is what is glued to it, or NULL. */
static bool take(struct reader *r, enum option_id id, const char *value, struct err *e)
{
    const struct option_spec *spec = &options_table[id];
    if (!(spec->commands & r->command))
        return err_set(e, ERR_USAGE, "--%s is no option of tgen %s", spec->name, r->command_name);
    if (spec->kind == OPTION_FLAG && value)
        return err_set(e, ERR_USAGE, "--%s takes no value", spec->name);
    if (spec->kind != OPTION_FLAG && !value) {
        if (r->at == r->argc)
            return err_set(e, ERR_USAGE, "--%s needs a value: %s", spec->name, spec->metavar);
        value = r->argv[r->at++];
    }
    return store(r->o, id, value, e);
}

/* The option of that name, or where n is 0 of that letter; the command's own rather than another's.
 * OPTION_COUNT where there is none. */
static enum option_id find(const struct reader *r, const char *name, size_t n)
{
    enum option_id found = OPTION_COUNT;
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option_spec *spec = &options_table[i];
        const bool same = n > 0 ? strlen(spec->name) == n && memcmp(spec->name, name, n) == 0
                                : spec->letter == *name;
        if (same && spec->commands & r->command)
            return (enum option_id)i;
        if (same && found == OPTION_COUNT)
            found = (enum option_id)i;
    }
    return found;
}

/* "name" or "name=value", behind the two dashes. */
static bool take_long(struct reader *r, const char *argument, struct err *e)
{
    const size_t n = strcspn(argument, "=");
    const enum option_id id = n > 0 ? find(r, argument, n) : OPTION_COUNT;
    if (id == OPTION_COUNT)
        return fail_unknown(r, argument, n, e);
    return take(r, id, argument[n] == '=' ? argument + n + 1 : NULL, e);
}

/* "q", "n5" or "qn5", behind the dash. */
static bool take_short(struct reader *r, const char *letters, struct err *e)
{
    while (*letters != '\0') {
        const enum option_id id = find(r, letters, 0);
        if (id == OPTION_COUNT)
            return err_set(e, ERR_USAGE, "unknown option -%c; see tgen help %s", *letters,
                           r->command_name);
        letters++;
        const bool glued = options_table[id].kind != OPTION_FLAG && *letters != '\0';
        if (!take(r, id, glued ? letters : NULL, e))
            return false;
        if (glued)
            break;
    }
    return true;
}

bool options_parse(struct options *o, int argc, char **argv, int first, unsigned command,
                   const char *name, struct err *e)
{
    struct reader r = {
        .o = o, .argv = argv, .argc = argc, .at = first, .command = command, .command_name = name};
    bool options_end = false;
    while (r.at < argc && !o->help && !o->version) {
        const char *argument = argv[r.at++];
        bool ok = true;
        if (options_end || argument[0] != '-') {
            o->words[o->n_words++] = argument;
            o->n_plain_words += !options_end;
        } else if (argument[1] == '\0')
            o->wants_stdin = true;
        else if (strcmp(argument, "--") == 0)
            options_end = true;
        else if (argument[1] == '-')
            ok = take_long(&r, argument + 2, e);
        else
            ok = take_short(&r, argument + 1, e);
        if (!ok)
            return false;
    }
    if (o->output && strcmp(o->output, "-") == 0)
        o->output = NULL; /* standard output, as without the option */
    return true;
}
