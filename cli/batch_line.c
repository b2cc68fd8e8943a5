/*
 * A table says of each key where it may stand and what reads its value. Of keys that are options,
 * options_table knows kind, range and place. Strings may hold any character, NUL included, which is
 * why the tree of cJSON is of no use here.
 */
#include "cli/batch_line.h"

#include "cli/json_out.h"
#include "core/json.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where a key may stand. */
enum {
    AT_TOP = 1,    /* of a plain line */
    IN_BODY = 2,   /* of OpenAI's */
    IN_SCORED = 4, /* of a line to be scored */
    ENVELOPE = 8   /* beside OpenAI's body */
};

struct value;

struct key {
    const char *name;
    bool (*read)(const struct value *v);
    unsigned where;
    enum option_id option; /* of read_option */
    const char *idle;      /* of read_idle: the only value that it takes; NULL: any */
};

/* A value on its way into a line: its key and its text. */
struct value {
    struct batch_line *line;
    const struct key *key;
    const char *text;
    size_t n;
};

/* Notes what is wrong with the line, the first time. Returns false. */
PRINTF_LIKE(2, 3)
static bool spoil(const struct value *v, const char *fmt, ...)
{
    struct err *const e = &v->line->error;
    char what[sizeof e->text];
    va_list args;
    if (e->code != ERR_NONE)
        return false;
    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    return err_set(e, ERR_USAGE, "\"%s\" %s", v->key->name, what);
}

/* The same, where a scan ended with *why. Returns false. */
static bool spoil_by(const struct value *v, const struct err *why)
{
    if (why->code != ERR_RUNTIME)
        return spoil(v, "is %s", why->text); /* bytes are counted from the value's first */
    v->line->error = *why;
    return false;
}

static bool is(const struct value *v, enum json_type type)
{
    struct err unused;
    struct json_scan s;
    json_scan_begin(&s, v->text, v->n, &unused);
    return json_scan_is(&s, type);
}

/* ---- values ---------------------------------------------------------------------------------- */

/* Appends the string that the value is to *out. */
static bool read_string(const struct value *v, struct buffer *out)
{
    struct json_scan s;
    struct bytes text;
    struct err why = {.code = ERR_NONE};
    if (!is(v, JSON_STRING))
        return spoil(v, "must be a string");
    json_scan_begin(&s, v->text, v->n, &why);
    bool good = json_scan_string(&s, &text);
    if (good)
        buffer_add(out, (const char *)text.data, text.size);
    good = good && buffer_ok(out, &why);
    if (!good)
        spoil_by(v, &why);
    json_scan_end(&s);
    return good;
}

static bool read_number(const struct value *v, double *out)
{
    struct json_scan s;
    struct err unused;
    json_scan_begin(&s, v->text, v->n, &unused);
    return json_scan_number(&s, out);
}

static bool read_bool(const struct value *v, bool *out)
{
    if (!is(v, JSON_BOOL))
        return spoil(v, "must be true or false");
    *out = v->text[0] == 't';
    return true;
}

static bool read_whole(const struct value *v, double min, double max, int *out)
{
    double number;
    if (!read_number(v, &number) || !(number >= min && number <= max) || floor(number) != number)
        return spoil(v, "must be a whole number between %.0f and %.0f", min, max);
    *out = (int)number;
    return true;
}

static bool read_real(const struct value *v, double min, double max, float *out)
{
    double number;
    if (!read_number(v, &number) || !(number >= min && number <= max))
        return spoil(v, "must be a number between %g and %g", min, max);
    *out = (float)number;
    return true;
}

/* A seed has 64 bits, of which a double would keep 53: a larger one must be digits alone. */
static bool read_seed(const struct value *v, uint64_t *out)
{
    static const double most = 9007199254740992; /* 2^53 */
    char digits[24], *end = digits;
    double number;
    if (v->n < sizeof digits) {
        memcpy(digits, v->text, v->n);
        digits[v->n] = '\0';
        errno = 0;
        *out = strtoull(digits, &end, 10);
    }
    if (end != digits && *end == '\0' && errno == 0 && digits[0] != '-')
        return true;
    if (!read_number(v, &number) || !(number >= 0 && number <= most) || floor(number) != number)
        return spoil(v, "must be a whole number between 0 and 2^64 - 1");
    *out = (uint64_t)number;
    return true;
}

static bool read_option(const struct value *v)
{
    const enum option_id id = v->key->option;
    const struct option_spec *spec = &options_table[id];
    void *place = (char *)&v->line->asked + spec->offset;
    v->line->asked.given[id] = true;
    switch (spec->kind) {
    case OPTION_FLAG:
        return read_bool(v, place);
    case OPTION_WHOLE:
        return read_whole(v, spec->min, spec->max, place);
    case OPTION_REAL:
        return read_real(v, spec->min, spec->max, place);
    case OPTION_SEED:
        return read_seed(v, place);
    default:
        return false;
    }
}

/* A list of token ids; whether the vocabulary has them is for others to see. */
static bool read_ids(const struct value *v, struct ids *out)
{
    struct json_scan s;
    struct err why = {.code = ERR_NONE};
    json_scan_begin(&s, v->text, v->n, &why);
    bool good = true;
    for (bool more = json_scan_array(&s); more && good && json_scan_element(&s);) {
        double number;
        good = json_scan_number(&s, &number) && number >= 0 && number <= INT32_MAX &&
               floor(number) == number && ids_push(out, (int32_t)number, &why);
    }
    good = good && !s.failed;
    json_scan_end(&s);
    if (why.code == ERR_RUNTIME)
        return spoil_by(v, &why);
    if (!good || out->n == 0)
        return spoil(v, "must be a string, or a list of at least one token id");
    return true;
}

/* ---- keys with a meaning of their own -------------------------------------------------------- */

static bool read_prompt(const struct value *v)
{
    v->line->has_prompt = true;
    if (is(v, JSON_ARRAY))
        return read_ids(v, &v->line->prompt_ids);
    return is(v, JSON_STRING) ? read_string(v, &v->line->prompt)
                              : spoil(v, "must be a string or a list of token ids");
}

static bool read_completion(const struct value *v)
{
    v->line->has_completion = true;
    return read_string(v, &v->line->completion);
}

static bool read_custom_id(const struct value *v)
{
    v->line->custom_id.n = 0;
    v->line->nameless = !batch_line_canonical_id(&v->line->custom_id, v->text, v->n);
    return !v->line->nameless || spoil(v, "must be a string, a number or a boolean");
}

/* One more stop string behind the others. */
static bool add_stop(const struct value *v)
{
    struct buffer *stops = &v->line->stops;
    const size_t before = stops->n;
    if (!read_string(v, stops))
        return false;
    if (stops->n == before || memchr(stops->data + before, '\0', stops->n - before))
        return spoil(v, "has an empty string, or one with a NUL");
    buffer_add(stops, "", 1);
    v->line->stop.n++;
    return true;
}

/* Replaces what --stop said; the pointers into `stops` are made when that has its final place. */
static bool read_stop(const struct value *v)
{
    v->line->stop.n = 0;
    v->line->asked.given[OPT_STOP] = true;
    if (is(v, JSON_STRING))
        return add_stop(v);
    if (!is(v, JSON_ARRAY))
        return spoil(v, "must be a string or a list of strings");
    struct json_scan s;
    struct bytes text;
    bool good = true;
    json_scan_begin(&s, v->text, v->n, &v->line->error);
    for (bool more = json_scan_array(&s); more && good && json_scan_element(&s);) {
        good = json_scan_skip(&s, &text);
        if (good)
            good = add_stop(&(struct value){v->line, v->key, (const char *)text.data, text.size});
    }
    json_scan_end(&s);
    return good && !s.failed;
}

static bool read_wants_ids(const struct value *v)
{
    return read_bool(v, &v->line->wants_ids);
}

/* true, or how many of the likeliest tokens to tell beside each. */
static bool read_logprobs(const struct value *v)
{
    if (is(v, JSON_BOOL))
        return read_bool(v, &v->line->wants_logprobs);
    v->line->wants_logprobs = true;
    return read_whole(v, 0, BATCH_MOST_LOGPROBS, &v->line->n_likeliest);
}

static bool read_model(const struct value *v)
{
    return read_string(v, &v->line->model);
}

/* Whether a value is what `text` says, in whatever spelling: a whole number, {}, or a word. */
static bool says(const struct value *v, const char *text)
{
    struct json_scan s;
    struct err unused;
    struct bytes key;
    double number;
    if (is(v, JSON_NUMBER))
        return read_number(v, &number) && text[0] == '1' && number == 1;
    if (!is(v, JSON_OBJECT))
        return strlen(text) == v->n && memcmp(text, v->text, v->n) == 0;
    json_scan_begin(&s, v->text, v->n, &unused);
    const bool has_member = json_scan_object(&s) && json_scan_member(&s, &key);
    const bool good = !has_member && json_scan_done(&s);
    json_scan_end(&s);
    return good && text[0] == '{';
}

/* A key of OpenAI's that is accepted where it asks for what happens anyway. */
static bool read_idle(const struct value *v)
{
    return !v->key->idle || says(v, v->key->idle) ||
           spoil(v, "asks for what tgen batch does not do");
}

static bool read_method(const struct value *v)
{
    v->line->openai = true;
    return (v->n == 6 && memcmp(v->text, "\"POST\"", 6) == 0) || spoil(v, "must be \"POST\"");
}

static bool read_url(const struct value *v)
{
    struct buffer url = {0};
    v->line->openai = true;
    bool good = read_string(v, &url);
    if (good && (url.n != 15 || memcmp(url.data, "/v1/completions", 15) != 0))
        good = spoil(v, "must be \"/v1/completions\"");
    buffer_free(&url);
    return good;
}

static bool read_body(const struct value *v);

static const struct key keys[] = {
    {"max_tokens", read_option, AT_TOP | IN_BODY, OPT_MAX_TOKENS},
    {"temperature", read_option, AT_TOP | IN_BODY, OPT_TEMP},
    {"top_k", read_option, AT_TOP | IN_BODY, OPT_TOP_K},
    {"top_p", read_option, AT_TOP | IN_BODY, OPT_TOP_P},
    {"min_p", read_option, AT_TOP | IN_BODY, OPT_MIN_P},
    {"typical_p", read_option, AT_TOP | IN_BODY, OPT_TYPICAL_P},
    {"repeat_penalty", read_option, AT_TOP | IN_BODY, OPT_REPEAT_PENALTY},
    {"repeat_last_n", read_option, AT_TOP | IN_BODY, OPT_REPEAT_LAST_N},
    {"presence_penalty", read_option, AT_TOP | IN_BODY, OPT_PRESENCE_PENALTY},
    {"frequency_penalty", read_option, AT_TOP | IN_BODY, OPT_FREQUENCY_PENALTY},
    {"seed", read_option, AT_TOP | IN_BODY, OPT_SEED},
    {"ignore_eos", read_option, AT_TOP | IN_BODY, OPT_IGNORE_EOS},
    {"prompt", read_prompt, AT_TOP | IN_BODY | IN_SCORED},
    {"completion", read_completion, IN_SCORED},
    {"custom_id", read_custom_id, AT_TOP | ENVELOPE | IN_SCORED},
    {"stop", read_stop, AT_TOP | IN_BODY},
    {"logprobs", read_logprobs, AT_TOP | IN_BODY},
    {"ids", read_wants_ids, AT_TOP | IN_BODY},
    {"method", read_method, AT_TOP | ENVELOPE},
    {"url", read_url, AT_TOP | ENVELOPE},
    {"body", read_body, AT_TOP | ENVELOPE},
    {"model", read_model, IN_BODY},
    {"n", read_idle, IN_BODY, .idle = "1"},
    {"best_of", read_idle, IN_BODY, .idle = "1"},
    {"echo", read_idle, IN_BODY, .idle = "false"},
    {"stream", read_idle, IN_BODY, .idle = "false"},
    {"logit_bias", read_idle, IN_BODY, .idle = "{}"},
    {"suffix", read_idle, IN_BODY, .idle = "\"\""},
    {"user", read_idle, IN_BODY},
};

/* The key of that name, where it may stand there; else NULL. */
static const struct key *find_key(struct bytes name, unsigned where)
{
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if ((keys[i].where & where) && bytes_equal(name, keys[i].name))
            return &keys[i];
    return NULL;
}

/* Each key may stand there once. A null is a value that is not there. */
static void read_member(struct batch_line *line, struct bytes name, struct bytes value,
                        unsigned where, bool seen[])
{
    const struct key *key = find_key(name, where);
    const struct value v = {line, key, (const char *)value.data, value.size};
    const bool there = !is(&v, JSON_NULL);
    if (!key) {
        if (there && line->error.code == ERR_NONE)
            err_set(&line->error, ERR_USAGE, "unknown key \"%.*s\"", (int)min_size(name.size, 100),
                    (const char *)name.data);
        return;
    }
    if (seen[key - keys])
        spoil(&v, "stands there twice");
    else if (there)
        (void)key->read(&v);
    seen[key - keys] = true;
}

/* The members of an object. Goes on behind what is wrong, so that a custom_id at the end is known
 * all the same. */
static void read_members(struct batch_line *line, const char *text, size_t n, unsigned where)
{
    struct err why = {.code = ERR_NONE};
    struct json_scan s;
    struct bytes name, value;
    bool seen[ARRAY_LEN(keys)] = {false};
    json_scan_begin(&s, text, n, &why);
    for (bool more = json_scan_object(&s); more && json_scan_member(&s, &name);)
        if (json_scan_skip(&s, &value))
            read_member(line, name, value, where, seen);
    if (!json_scan_done(&s)) {
        line->error = why;
        line->nameless |= where != IN_BODY && line->custom_id.n == 0;
    }
    json_scan_end(&s);
    for (size_t i = 0; i < ARRAY_LEN(keys) && where == AT_TOP && line->openai; i++)
        if (seen[i] && !(keys[i].where & ENVELOPE))
            spoil(&(struct value){line, &keys[i]}, "belongs in the body");
}

static bool read_body(const struct value *v)
{
    v->line->openai = true;
    if (!is(v, JSON_OBJECT))
        return spoil(v, "must be an object");
    read_members(v->line, v->text, v->n, IN_BODY);
    return true;
}

/* ---- the line -------------------------------------------------------------------------------- */

bool batch_line_canonical_id(struct buffer *out, const char *value, size_t n)
{
    struct err unused;
    struct json_scan s;
    struct bytes text;
    double number;
    bool good = false;
    json_scan_begin(&s, value, n, &unused);
    if (json_scan_is(&s, JSON_STRING)) {
        good = json_scan_string(&s, &text);
        if (good)
            json_out_quoted(out, (const char *)text.data, text.size);
    } else {
        good = json_scan_is(&s, JSON_BOOL) || json_scan_number(&s, &number);
        if (good)
            buffer_add(out, value, n);
    }
    out->failed = out->failed || json_scan_ran_out(&s);
    json_scan_end(&s);
    return good;
}

/* Checks what concerns several keys. */
static void check_whole(struct batch_line *line, enum batch_task task)
{
    if (line->error.code != ERR_NONE)
        return;
    if (!line->has_prompt)
        err_set(&line->error, ERR_USAGE, "there is no \"prompt\"");
    else if (task == BATCH_SCORE && !line->has_completion)
        err_set(&line->error, ERR_USAGE, "there is no \"completion\"");
    else if (line->has_completion && line->prompt_ids.n > 0)
        err_set(&line->error, ERR_USAGE, "\"prompt\" must be a string where there is a completion");
}

static bool point_at_stops(struct batch_line *line, struct err *e)
{
    if (line->stops.n == 0)
        return true;
    line->own_stops = calloc(line->stop.n + 1, sizeof *line->own_stops);
    if (!line->own_stops)
        return err_no_memory(e);
    const char *at = line->stops.data;
    for (size_t i = 0; i < line->stop.n; i++, at += strlen(at) + 1)
        line->own_stops[i] = at;
    line->stop.item = line->own_stops;
    return true;
}

bool batch_line_parse(struct batch_line *line, const char *text, size_t n, size_t number,
                      const struct options *o, enum batch_task task, bool plain, struct err *e)
{
    *line = (struct batch_line){.number = number, .asked = *o, .stop = o->stop};
    line->asked.given[OPT_SEED] = false; /* each line has one of its own */
    if (plain) {
        line->has_prompt = true;
        buffer_add(&line->prompt, text, n);
    } else if (!is(&(struct value){.text = text, .n = n}, JSON_OBJECT)) {
        line->nameless = true;
        err_set(&line->error, ERR_USAGE, "not a JSON object%s",
                task == BATCH_SCORE ? "" : " (--text takes plain lines)");
    } else {
        read_members(line, text, n, task == BATCH_SCORE ? IN_SCORED : AT_TOP);
        check_whole(line, task);
    }
    if (line->error.code == ERR_RUNTIME) /* which is not the line's fault */
        return err_no_memory(e);
    if (line->custom_id.n == 0)
        buffer_addf(&line->custom_id, "%zu", number);
    return buffer_ok(&line->prompt, e) && buffer_ok(&line->custom_id, e) &&
           buffer_ok(&line->completion, e) && buffer_ok(&line->stops, e) &&
           buffer_ok(&line->model, e) && point_at_stops(line, e);
}

void batch_line_free(struct batch_line *line)
{
    free(line->own_stops);
    buffer_free(&line->custom_id);
    buffer_free(&line->model);
    buffer_free(&line->prompt);
    buffer_free(&line->completion);
    buffer_free(&line->stops);
    ids_free(&line->prompt_ids);
    *line = (struct batch_line){.number = 0};
}
