/*
 * A line ends as `tgen` alone would with the same prompt, parameters and seed: the same ids, the
 * same limit, the same choice between flags and the model's own wishes (settle.c).
 */
#include "cli/batch_work.h"

#include "cli/prompt.h"
#include "cli/settle.h"

#include <stdlib.h>

static bool encode(const struct batch_tools *tools, const struct buffer *text, struct ids *out,
                   struct err *e)
{
    const char *bytes = text->n > 0 ? text->data : "";
    return encoder_encode(tools->encoder, bytes, text->n, prompt_flags(tools->o), out, e);
}

/* The ids of prompt and completion as one text. Tokens that this text shares with the prompt alone
 * are the prompt's; where a token would span both, it counts to the completion. */
static bool encode_both(const struct batch_tools *tools, struct batch_work *w, struct err *e)
{
    struct buffer both = {0};
    struct ids prompt = {.id = NULL};
    buffer_add(&both, w->line.prompt.data, w->line.prompt.n);
    buffer_add(&both, w->line.completion.data, w->line.completion.n);
    const bool ok = buffer_ok(&both, e) && encode(tools, &w->line.prompt, &prompt, e) &&
                    encode(tools, &both, &w->ids, e);
    while (w->n_prompt < prompt.n && w->n_prompt < w->ids.n &&
           prompt.id[w->n_prompt] == w->ids.id[w->n_prompt])
        w->n_prompt++;
    buffer_free(&both);
    ids_free(&prompt);
    return ok;
}

static bool make_ids(const struct batch_tools *tools, struct batch_work *w, struct err *e)
{
    if (tools->task == BATCH_SCORE)
        return encode_both(tools, w, e);
    if (w->line.prompt_ids.n > 0) {
        w->ids = w->line.prompt_ids;
        w->line.prompt_ids = (struct ids){.id = NULL};
    } else if (!encode(tools, &w->line.prompt, &w->ids, e)) {
        return false;
    }
    w->n_prompt = w->ids.n;
    return true;
}

/* Whether a line asks for what only a tokenizer can do. */
static bool needs_tokenizer(const struct batch_line *line)
{
    return line->prompt_ids.n == 0 || line->stop.n > 0 || line->wants_logprobs;
}

/* is_text: the ids are the tokenizer's, so what the model lacks is the directory's fault. */
static void check_ids(const struct batch_tools *tools, struct batch_work *w, bool is_text)
{
    const int n_vocab = model_info(tools->loaded.model)->vocab_size;
    struct err *error = &w->line.error;
    if (w->n_prompt == 0 && tools->task == BATCH_SCORE && w->line.prompt.n > 0)
        err_set(error, ERR_USAGE,
                "the first token spans prompt and completion, and there is none to begin with");
    else if (w->n_prompt == 0)
        err_set(error, ERR_USAGE, "the prompt is empty and there is no token to begin with");
    else if (w->ids.n > (size_t)tools->n_context)
        err_set(error, ERR_CONTEXT, "the prompt has %zu tokens, more than the context of %d",
                w->ids.n, tools->n_context);
    for (size_t i = 0; i < w->ids.n && error->code == ERR_NONE; i++) {
        if (w->ids.id[i] >= n_vocab)
            err_set(error, is_text ? ERR_LOAD : ERR_USAGE,
                    "%s id %d is outside the vocabulary of %d",
                    is_text ? "the tokenizer's" : "the token", (int)w->ids.id[i], n_vocab);
    }
}

/* The seed of a line: its own, else one that follows from the job's and the custom_id; of 53 bits,
 * which every reader of JSON keeps. */
static uint64_t seed_of(const struct batch_tools *tools, const struct batch_line *line)
{
    if (line->asked.given[OPT_SEED])
        return line->asked.sampling.seed;
    return sample_seed(tools->o->sampling.seed, line->custom_id.data, line->custom_id.n) >> 11;
}

static bool begin_reply(const struct batch_tools *tools, struct batch_work *w, struct err *e)
{
    const struct options *asked = &w->line.asked;
    const size_t room = (size_t)tools->n_context - w->ids.n;
    settle_sampling(asked, tools->loaded.model, &w->sampling);
    w->sampling.seed = seed_of(tools, &w->line);
    const struct reply_request request = {
        .o = asked,
        .loaded = &tools->loaded,
        .sampling = &w->sampling,
        .stop = &w->line.stop,
        .prompt = &w->ids,
        .limit = min_size((size_t)asked->max_tokens, room),
        .wants_logprobs = w->line.wants_logprobs,
        .n_likeliest = w->line.n_likeliest,
    };
    return reply_begin(&w->reply, &request, e);
}

struct batch_work *batch_work_new(const struct batch_tools *tools, struct batch_line *line,
                                  struct err *e)
{
    struct batch_work *w = calloc(1, sizeof *w);
    if (!w) {
        err_no_memory(e);
        batch_line_free(line);
        return NULL;
    }
    w->line = *line;
    *line = (struct batch_line){.number = 0};
    if (w->line.error.code != ERR_NONE)
        return w;
    if (!tools->encoder && needs_tokenizer(&w->line)) {
        err_set(&w->line.error, ERR_USAGE,
                "without a tokenizer the prompt must be ids, without stop and logprobs");
        return w;
    }
    const bool is_text = w->line.prompt_ids.n == 0;
    bool ok = make_ids(tools, w, e);
    if (ok)
        check_ids(tools, w, is_text);
    if (ok && tools->task == BATCH_GENERATE && w->line.error.code == ERR_NONE)
        ok = begin_reply(tools, w, e);
    if (ok)
        return w;
    if (e->code == ERR_LOAD) { /* the tokenizer gives up on this text */
        w->line.error = *e;
        *e = (struct err){.code = ERR_NONE};
        return w;
    }
    batch_work_free(w);
    return NULL;
}

void batch_work_free(struct batch_work *work)
{
    if (!work)
        return;
    reply_free(&work->reply);
    ids_free(&work->ids);
    batch_line_free(&work->line);
    free(work);
}

size_t batch_work_most_tokens(const struct batch_work *work)
{
    return work->ids.n + work->reply.request.limit;
}
