/*
 * tgen choose: which of some answers a model finds likeliest behind a prompt, so that a shell can
 * ask it. The answers are scored as a job of lines: the prompt is computed once.
 */
#include "cli/command.h"

#include "cli/batch_engine.h"
#include "cli/json_out.h"
#include "cli/prompt.h"
#include "cli/stream.h"

#include <assert.h>
#include <stdlib.h>
#include <unistd.h>

enum choose_by { BY_TOTAL, BY_TOKEN, BY_BYTE };

static const char *const by_names[] = {"total", "token", "byte"};

struct choice {
    struct options o; /* the command line's, and as many lines at once as there are answers */
    struct buffer prompt;
    struct batch_tools tools;
    struct batch_engine *engine;
    struct batch_work **answers; /* [o.n_words] scored */
};

static bool read_prompt(struct choice *c, struct err *e)
{
    const struct options *o = &c->o;
    if (o->prompt && o->prompt_file)
        return err_set(e, ERR_USAGE, "the prompt is given twice: with -p and with --prompt-file");
    if (o->prompt) {
        buffer_add_string(&c->prompt, o->prompt);
        return buffer_ok(&c->prompt, e);
    }
    if (!o->prompt_file && isatty(STDIN_FILENO))
        return err_set(e, ERR_USAGE,
                       "choose needs a prompt: -p TEXT, --prompt-file FILE or "
                       "standard input");
    return prompt_read_file(o->prompt_file, &c->prompt, e);
}

static bool open_choice(struct choice *c, struct err *e)
{
    struct options *o = &c->o;
    if (o->wants_stdin)
        return err_set(e, ERR_USAGE, "an answer \"-\" stands behind \"--\"");
    if (o->n_words < 2)
        return err_set(e, ERR_USAGE, "choose needs at least two answers to choose from");
    for (size_t i = 0; i < o->n_words; i++)
        if (o->words[i][0] == '\0')
            return err_set(e, ERR_USAGE, "an empty answer has no likelihood");
    o->parallel = (int)min_size(o->n_words, (size_t)o->parallel);
    if (!read_prompt(c, e) || !batch_tools_open(&c->tools, o, BATCH_SCORE, e))
        return false;
    c->engine = batch_engine_new(&c->tools, e);
    return c->engine != NULL;
}

/* The i-th answer as the line of a job. */
static bool make_answer(struct choice *c, size_t i, struct err *e)
{
    struct batch_line line = {.number = i, .asked = c->o, .has_prompt = true};
    buffer_add(&line.prompt, c->prompt.data, c->prompt.n);
    buffer_add_string(&line.completion, c->o.words[i]);
    if (!buffer_ok(&line.prompt, e) || !buffer_ok(&line.completion, e)) {
        batch_line_free(&line);
        return false;
    }
    struct batch_work *work = c->answers[i] = batch_work_new(&c->tools, &line, e);
    if (!work)
        return false;
    if (work->line.error.code == ERR_NONE && work->n_prompt == work->ids.n)
        err_set(&work->line.error, ERR_USAGE,
                "the answer \"%.100s\" adds no token to the prompt, and so has no likelihood",
                c->o.words[i]);
    *e = work->line.error;
    return e->code == ERR_NONE;
}

/* A token may span the end of the prompt and the beginning of an answer, which is then scored with
 * that end of the prompt. So are all the others then: what is compared is equally long. */
static bool make_answers(struct choice *c, struct err *e)
{
    size_t least = SIZE_MAX;
    for (size_t i = 0; i < c->o.n_words; i++) {
        if (!make_answer(c, i, e))
            return false;
        least = min_size(least, c->answers[i]->n_prompt);
    }
    for (size_t i = 0; i < c->o.n_words; i++)
        c->answers[i]->n_prompt = least;
    return true;
}

/* Hands the i-th answer to the engine, which has it until it is scored. */
static bool add_answer(struct choice *c, size_t i, struct err *e)
{
    struct batch_work *work = c->answers[i];
    c->answers[i] = NULL;
    return batch_engine_add(c->engine, work, e);
}

static bool score_answers(struct choice *c, struct err *e)
{
    stream_watch_interrupt();
    for (size_t i = 0; i < c->o.n_words || !batch_engine_is_idle(c->engine);) {
        for (; i < c->o.n_words && batch_engine_has_room(c->engine); i++)
            if (!add_answer(c, i, e))
                return false;
        if (!batch_engine_step(c->engine, e))
            return false;
        for (struct batch_work *w; (w = batch_engine_finished(c->engine)) != NULL;) {
            c->answers[w->line.number] = w;
            if (w->line.error.code != ERR_NONE) {
                *e = w->line.error;
                return false;
            }
        }
        if (stream_interrupted())
            return err_interrupted(e);
    }
    return true;
}

static double worth(const struct choice *c, size_t i, enum choose_by by)
{
    const struct batch_work *w = c->answers[i];
    assert(w); /* the engine is idle only when it has given all of them back */
    const size_t n_tokens = w->ids.n - w->n_prompt;
    if (by == BY_TOKEN)
        return n_tokens > 0 ? w->logprob / (double)n_tokens : 0;
    return by == BY_BYTE ? w->logprob / (double)w->line.completion.n : w->logprob;
}

/* Of equals the first. */
static size_t find_best(const struct choice *c)
{
    size_t best = 0;
    for (size_t i = 1; i < c->o.n_words; i++) {
        const enum choose_by by = (enum choose_by)c->o.by;
        if (worth(c, i, by) > worth(c, best, by))
            best = i;
    }
    return best;
}

static void write_json(const struct choice *c, struct buffer *out)
{
    json_out_open(out, NULL, '{');
    json_out_string(out, "choice", c->o.words[find_best(c)]);
    json_out_string(out, "by", by_names[c->o.by]);
    json_out_open(out, "answers", '[');
    for (size_t i = 0; i < c->o.n_words; i++) {
        const struct batch_work *w = c->answers[i];
        json_out_open(out, NULL, '{');
        json_out_string(out, "text", c->o.words[i]);
        json_out_number(out, "logprob", w->logprob);
        json_out_unsigned(out, "tokens", w->ids.n - w->n_prompt);
        json_out_number(out, "logprob_per_token", worth(c, i, BY_TOKEN));
        json_out_number(out, "logprob_per_byte", worth(c, i, BY_BYTE));
        json_out_close(out, '}');
    }
    json_out_close(out, ']');
    json_out_close(out, '}');
}

static bool print_choice(const struct choice *c, struct err *e)
{
    struct buffer out = {0};
    if (c->o.json)
        write_json(c, &out);
    else
        buffer_add_string(&out, c->o.words[find_best(c)]);
    buffer_add_string(&out, "\n");
    const bool ok = stream_print(&out, e);
    buffer_free(&out);
    return ok;
}

bool command_choose(const struct options *o, struct err *e)
{
    struct choice c = {.o = *o};
    c.answers = calloc(o->n_words + 1, sizeof(struct batch_work *));
    if (!c.answers)
        return err_no_memory(e);
    const bool ok =
        open_choice(&c, e) && make_answers(&c, e) && score_answers(&c, e) && print_choice(&c, e);
    for (size_t i = 0; i < o->n_words; i++)
        batch_work_free(c.answers[i]);
    free((void *)c.answers);
    batch_engine_free(c.engine);
    batch_tools_close(&c.tools);
    buffer_free(&c.prompt);
    return ok;
}
