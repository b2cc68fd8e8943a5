/*
 * Writes answers, and finds their names again in a file of them. A custom_id is JSON already and
 * goes through json_out as it is.
 */
#include "cli/batch_answer.h"

#include "cli/json_out.h"
#include "core/json.h"

#include <string.h>

static const char *const end_names[] = {
    [REPLY_OPEN] = NULL, [REPLY_LENGTH] = "length", [REPLY_STOP] = "stop"};

/* null with --print-ids. */
static void write_text(const struct batch_work *w, struct buffer *out)
{
    const struct reply *r = &w->reply;
    if (w->line.asked.print_ids)
        json_out_null(out, "text");
    else
        json_out_text(out, "text", r->stream.collected.data, r->stream.collected.n);
}

static void write_ids(const struct batch_work *w, struct buffer *out)
{
    if (w->line.wants_ids || w->line.asked.print_ids)
        json_out_ids(out, "ids", w->reply.ids.id, w->reply.ids.n);
}

/* ---- our own shape --------------------------------------------------------------------------- */

static void write_plain(const struct batch_work *w, struct buffer *out)
{
    const struct reply *r = &w->reply;
    write_text(w, out);
    json_out_string(out, "finish_reason", end_names[r->end]);
    json_out_unsigned(out, "prompt_tokens", w->ids.n);
    json_out_unsigned(out, "completion_tokens", r->ids.n);
    json_out_unsigned(out, "seed", w->sampling.seed);
    write_ids(w, out);
    if (w->line.wants_logprobs)
        reply_write_logprobs(r, out);
}

static void write_score(const struct batch_work *w, struct buffer *out)
{
    json_out_number(out, "logprob", w->logprob);
    json_out_unsigned(out, "prompt_tokens", w->n_prompt);
    json_out_unsigned(out, "completion_tokens", w->ids.n - w->n_prompt);
}

/* ---- OpenAI's -------------------------------------------------------------------------------- */

/* PREFIX-NUMBER, the same each time. */
static void write_request_id(const struct batch_work *w, const char *key, const char *prefix,
                             struct buffer *out)
{
    struct buffer id = {0};
    buffer_addf(&id, "%s-%zu", prefix, w->line.number);
    json_out_string(out, key, id.data);
    out->failed = out->failed || id.failed;
    buffer_free(&id);
}

static void write_usage(const struct batch_work *w, struct buffer *out)
{
    json_out_open(out, "usage", '{');
    json_out_unsigned(out, "prompt_tokens", w->ids.n);
    json_out_unsigned(out, "completion_tokens", w->reply.ids.n);
    json_out_unsigned(out, "total_tokens", w->ids.n + w->reply.ids.n);
    json_out_close(out, '}');
}

static void write_completion(const struct batch_work *w, const char *model, struct buffer *out)
{
    const struct reply *r = &w->reply;
    const bool own = w->line.model.n > 0;
    json_out_open(out, "body", '{');
    write_request_id(w, "id", "cmpl", out);
    json_out_string(out, "object", "text_completion");
    json_out_unsigned(out, "created", 0); /* a time would make no two runs equal */
    json_out_text(out, "model", own ? w->line.model.data : model,
                  own ? w->line.model.n : strlen(model));
    json_out_open(out, "choices", '[');
    json_out_open(out, NULL, '{');
    json_out_unsigned(out, "index", 0);
    write_text(w, out);
    write_ids(w, out);
    reply_write_logprobs(r, out);
    json_out_string(out, "finish_reason", end_names[r->end]);
    json_out_close(out, '}');
    json_out_close(out, ']');
    write_usage(w, out);
    json_out_close(out, '}');
}

static void write_openai(const struct batch_work *w, const char *model, struct buffer *out)
{
    const bool failed = w->line.error.code != ERR_NONE;
    if (failed) {
        json_out_null(out, "response");
        json_out_open(out, "error", '{');
        json_out_string(out, "code",
                        w->line.error.code == ERR_RUNTIME ? "server_error" : "invalid_request");
        json_out_string(out, "message", w->line.error.text);
        json_out_close(out, '}');
        return;
    }
    json_out_open(out, "response", '{');
    json_out_unsigned(out, "status_code", 200);
    write_request_id(w, "request_id", "req", out);
    write_completion(w, model, out);
    json_out_close(out, '}');
    json_out_null(out, "error");
}

/* ---- both ------------------------------------------------------------------------------------ */

void batch_answer_write(const struct batch_work *work, enum batch_task task, const char *model,
                        struct buffer *out)
{
    const bool failed = work->line.error.code != ERR_NONE;
    json_out_open(out, NULL, '{');
    if (work->line.openai)
        write_request_id(work, "id", "batch_req", out);
    json_out_raw(out, "custom_id", work->line.custom_id.data, work->line.custom_id.n);
    if (failed)
        json_out_unsigned(out, "line", work->line.number);
    if (work->line.openai)
        write_openai(work, model, out);
    else if (failed)
        json_out_string(out, "error", work->line.error.text);
    else if (task == BATCH_SCORE)
        write_score(work, out);
    else
        write_plain(work, out);
    json_out_close(out, '}');
    buffer_add_string(out, "\n");
}

void batch_answer_error_name(size_t number, const struct buffer *custom_id, struct buffer *name)
{
    name->n = 0;
    buffer_addf(name, "#%zu:", number);
    buffer_add(name, custom_id->data, custom_id->n);
}

/* The members that only answers have: each kind has one of them, and OpenAI's an "error" as well.
 */
static enum batch_answer_kind kind_by(struct bytes key)
{
    if (bytes_equal(key, "text"))
        return BATCH_ANSWER_TEXT;
    if (bytes_equal(key, "logprob"))
        return BATCH_ANSWER_SCORE;
    if (bytes_equal(key, "response"))
        return BATCH_ANSWER_OPENAI;
    return bytes_equal(key, "error") ? BATCH_ANSWER_ERROR : BATCH_ANSWER_NONE;
}

/* Only errors have a "line". */
enum batch_answer_kind batch_answer_name(const char *text, size_t n, struct buffer *name)
{
    enum batch_answer_kind kind = BATCH_ANSWER_NONE;
    struct err unused;
    struct json_scan s;
    struct bytes key, value;
    struct buffer id = {0};
    double number = 0;
    bool named = false;
    json_scan_begin(&s, text, n, &unused);
    for (bool more = json_scan_object(&s); more && json_scan_member(&s, &key);) {
        const bool is_id = bytes_equal(key, "custom_id");
        const enum batch_answer_kind by = kind_by(key);
        kind = by > kind ? by : kind;
        if (bytes_equal(key, "line"))
            (void)json_scan_number(&s, &number);
        else if (json_scan_skip(&s, &value) && is_id && !named)
            named = batch_line_canonical_id(&id, (const char *)value.data, value.size);
    }
    const bool good = json_scan_done(&s) && named;
    name->failed = name->failed || id.failed || json_scan_ran_out(&s);
    json_scan_end(&s);
    name->n = 0;
    if (good && number > 0 && number < SIZE_MAX)
        batch_answer_error_name((size_t)number, &id, name);
    else if (good)
        buffer_add(name, id.data, id.n);
    buffer_free(&id);
    if (good && kind != BATCH_ANSWER_NONE && number > 0)
        return BATCH_ANSWER_ERROR;
    return good ? kind : BATCH_ANSWER_NONE;
}

/* Whether the two agree as far as both go. */
static bool agrees(const char *text, size_t n, const char *begin)
{
    const size_t n_begin = strlen(begin);
    return memcmp(text, begin, min_size(n, n_begin)) == 0;
}

/* What batch_answer_write puts behind a custom_id, and lines of prompts do not. */
static bool goes_on(const char *text, size_t n)
{
    return agrees(text, n, ",\"text\":") || agrees(text, n, ",\"logprob\":") ||
           agrees(text, n, ",\"line\":") || agrees(text, n, ",\"response\":");
}

static bool is_answer(const char *text, size_t n)
{
    struct buffer name = {0};
    const enum batch_answer_kind kind = batch_answer_name(text, n, &name);
    buffer_free(&name);
    return kind != BATCH_ANSWER_NONE;
}

/* Whether text[0..n), behind which the file ends without a newline, can be what is left of an
 * answer. One that lacks nothing but the newline is, too; other lines of JSON are not, whole or
 * not. A machine that crashed may have left zeros instead of what was written last. */
static bool is_torn(const char *text, size_t n)
{
    struct err unused;
    struct json_scan s;
    struct bytes key, value;
    bool good = true;
    while (n > 0 && text[n - 1] == '\0')
        n--;
    if (!agrees(text, n, "{\"custom_id\":") && !agrees(text, n, "{\"id\":\"batch_req-"))
        return false;
    json_scan_begin(&s, text, n, &unused);
    for (bool more = json_scan_object(&s); more && json_scan_member(&s, &key);) {
        const bool is_id = bytes_equal(key, "custom_id");
        if (json_scan_skip(&s, &value) && is_id)
            good = good && goes_on(text + s.at, n - s.at);
    }
    const bool whole = !s.failed;
    json_scan_end(&s);
    return good && (!whole || is_answer(text, n));
}

enum batch_input_state batch_answer_next(struct batch_input *in, struct bytes *line,
                                         enum batch_answer_kind *kind, struct buffer *name,
                                         struct err *e)
{
    bool whole;
    do {
        const enum batch_input_state state = batch_input_next(in, true, line, &whole, e);
        if (state != BATCH_INPUT_LINE)
            return state;
    } while (in->number > 1 && batch_input_is_blank(*line));
    const char *text = (const char *)line->data;
    if (!whole && is_torn(text, line->size))
        return BATCH_INPUT_END;
    *kind = whole ? batch_answer_name(text, line->size, name) : BATCH_ANSWER_NONE;
    return BATCH_INPUT_LINE;
}

bool batch_answer_fits(enum batch_answer_kind found, const struct batch_line *line,
                       enum batch_task task, struct err *e)
{
    static const char *const names[] = {[BATCH_ANSWER_TEXT] = "a text",
                                        [BATCH_ANSWER_SCORE] = "a log-probability",
                                        [BATCH_ANSWER_OPENAI] = "in OpenAI's shape"};
    const enum batch_answer_kind own = task == BATCH_SCORE ? BATCH_ANSWER_SCORE : BATCH_ANSWER_TEXT;
    const enum batch_answer_kind wanted = line->openai ? BATCH_ANSWER_OPENAI : own;
    return found == wanted || err_set(e, ERR_RUNTIME,
                                      "the answer that is there to line %zu is %s and would be %s "
                                      "in this job; --restart drops what is there",
                                      line->number, names[found], names[wanted]);
}
