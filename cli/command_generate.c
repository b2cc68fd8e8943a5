/*
 * tgen generate, the default: a prompt goes in, tokens are drawn one at a time, and their text goes
 * out as it comes. The loop is `answer`; all around it is what the options ask for.
 */
#include "cli/command.h"

#include "cli/json_out.h"
#include "cli/run.h"
#include "cli/settle.h"
#include "cli/stream.h"
#include "cli/terminal.h"
#include "core/clock.h"

#include <stdio.h>
#include <sys/random.h>

enum finish { FINISH_LENGTH, FINISH_STOP, FINISH_INTERRUPTED };

static const char *const finish_names[] = {"length", "stop", "interrupted"};

struct generation {
    struct run run;
    struct sample_params sampling; /* as settled between flags, model and defaults */
    struct sampler *sampler;
    struct generator *generator;
    struct decoder *decoder; /* NULL without a tokenizer */
    struct stream stream;    /* the text: to stdout, or collected for --json and --print-ids */
    struct ids answer;
    int limit; /* tokens of the answer at most */
    enum finish finish;
};

/* ---- before ---------------------------------------------------------------------------------- */

static enum run_tokenizer needs_tokenizer(const struct options *o)
{
    if (o->stop.n > 0 || (!o->print_ids && !o->json))
        return RUN_TOKENIZER_NEEDED;
    return o->json ? RUN_TOKENIZER_OPTIONAL : RUN_TOKENIZER_UNUSED;
}

/* A random seed of 32 bits: short to type again, and exact in every reader of JSON. */
static bool settle_seed(struct generation *g, struct err *e)
{
    if (g->run.o->given[OPT_SEED])
        return true;
    uint32_t seed;
    if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed)
        return err_set(e, ERR_RUNTIME, "no random seed is to be had; give one with --seed");
    g->sampling.seed = seed;
    return true;
}

/* Opens what draws tokens, and what runs the model for it. */
static bool open_generator(struct generation *g, struct err *e)
{
    struct run *r = &g->run;
    const int n_vocab = model_info(r->loaded.model)->vocab_size;
    const struct generator_params params = {
        .n_vocab = n_vocab, .n_context = r->n_context, .draft = r->o->draft};
    g->sampler = sampler_new(&g->sampling, n_vocab, r->n_context, e);
    if (!g->sampler)
        return false;
    g->generator = generator_new(r->session, g->sampler, &params, e);
    return g->generator != NULL;
}

static bool prepare(struct generation *g, const struct options *o, struct err *e)
{
    struct run *r = &g->run;
    if (!run_load(r, o, "generate", needs_tokenizer(o), e) ||
        !run_open_session(r, (size_t)o->max_tokens, generator_n_rows(o->draft), e))
        return false;
    load_tell_defaults(&r->loaded, o->quiet);
    settle_sampling(o, r->loaded.model, &g->sampling);
    if (!settle_seed(g, e) || !open_generator(g, e))
        return false;
    const int room = r->n_context - (int)r->ids.n;
    g->limit = min_int(o->max_tokens, room);
    if (room == 0 && o->max_tokens > 0)
        terminal_note(o->quiet, "the prompt fills the context of %d tokens", r->n_context);
    g->stream.stops = o->stop.item;
    g->stream.n_stops = o->stop.n;
    g->stream.fd = o->json || o->print_ids ? STREAM_COLLECT : STREAM_STDOUT;
    if (!r->loaded.tokenizer)
        return true;
    g->decoder = decoder_new(r->loaded.tokenizer, o->special, e);
    return g->decoder != NULL;
}

/* ---- the prompt ------------------------------------------------------------------------------ */

static bool print_id(const struct generation *g, int32_t id, struct err *e)
{
    const struct options *o = g->run.o;
    if (!o->print_ids || o->json)
        return true;
    char line[16];
    const int n = snprintf(line, sizeof line, "%d\n", id);
    return stream_write(STREAM_STDOUT, "standard output", line, (size_t)n, e);
}

/* The decoder's rules for leading spaces reach back into the prompt. --echo prints it: its bytes,
 * or with --ids their text. */
static bool tell_prompt(struct generation *g, struct err *e)
{
    const struct options *o = g->run.o;
    if (o->echo && !o->ids && !stream_echo(&g->stream, g->run.prompt.data, g->run.prompt.n, e))
        return false;
    for (size_t i = 0; i < g->run.ids.n; i++) {
        const int32_t id = g->run.ids.id[i];
        if (o->echo && !print_id(g, id, e))
            return false;
        if (!g->decoder)
            continue;
        struct bytes text;
        if (!decoder_next(g->decoder, id, &text, e))
            return false;
        if (o->echo && o->ids && !stream_echo(&g->stream, (const char *)text.data, text.size, e))
            return false;
    }
    return true;
}

/* A pass that Ctrl-C has stopped is no failure. */
static bool only_interrupted(struct generation *g, const struct err *e)
{
    if (e->code != ERR_INTERRUPTED)
        return false;
    g->finish = FINISH_INTERRUPTED;
    return true;
}

/* The prompt through the model, a batch at a time, unless Ctrl-C ends it. */
static bool read_prompt(struct generation *g, struct err *e)
{
    struct run *r = &g->run;
    struct terminal_progress progress = run_begin_progress(r);
    const double began = clock_seconds();
    const size_t most = (size_t)run_pass_rows(r);
    bool ok = true;
    session_expect(r->session, (int)r->ids.n);
    for (size_t at = 0, n; ok && at < r->ids.n && g->finish != FINISH_INTERRUPTED; at += n) {
        n = min_size(r->ids.n - at, most);
        terminal_progress(&progress, at, r->ids.n);
        ok = generator_prompt(g->generator, r->ids.id + at, (int)n, e);
        if (stream_interrupted())
            g->finish = FINISH_INTERRUPTED;
    }
    terminal_progress_end(&progress);
    r->prompt_seconds = clock_seconds() - began;
    return ok || only_interrupted(g, e);
}

/* ---- the answer ------------------------------------------------------------------------------ */

static bool put_token(struct generation *g, int32_t id, struct err *e)
{
    if (!ids_push(&g->answer, id, e) || !print_id(g, id, e))
        return false;
    if (!g->decoder)
        return true;
    struct bytes text;
    return decoder_next(g->decoder, id, &text, e) &&
           stream_put(&g->stream, (const char *)text.data, text.size, e);
}

/* Draws, prints and goes on until something ends it. */
static bool answer(struct generation *g, struct err *e)
{
    for (int n = 0; n < g->limit; n++) {
        int32_t id;
        if (!generator_next(g->generator, g->limit - n, &id, e))
            return only_interrupted(g, e);
        g->run.n_steps = (size_t)n; /* the first token came from the prompt's pass */
        const bool last = settle_ends_text(g->run.o, &g->run.o->stop, &g->run.loaded, id);
        if ((!last || g->run.o->special) && !put_token(g, id, e))
            return false;
        if (last || g->stream.stopped) {
            g->finish = FINISH_STOP;
            return true;
        }
        if (stream_interrupted()) {
            g->finish = FINISH_INTERRUPTED;
            return true;
        }
    }
    g->finish = FINISH_LENGTH;
    return true;
}

static bool generate(struct generation *g, struct err *e)
{
    stream_watch_interrupt();
    if (!tell_prompt(g, e) || !read_prompt(g, e))
        return false;
    const double began = clock_seconds();
    if (g->finish != FINISH_INTERRUPTED && !answer(g, e))
        return false;
    g->run.decode_seconds = clock_seconds() - began;
    return stream_end(&g->stream, false, e);
}

/* ---- after ----------------------------------------------------------------------------------- */

static void write_timings(const struct run *r, struct buffer *out)
{
    json_out_open(out, "timings", '{');
    json_out_number(out, "load_ms", r->load_seconds * 1e3);
    json_out_number(out, "prompt_ms", r->prompt_seconds * 1e3);
    json_out_number(out, "decode_ms", r->decode_seconds * 1e3);
    json_out_number(out, "prompt_tokens_per_second", run_rate(run_n_read(r), r->prompt_seconds));
    json_out_number(out, "decode_tokens_per_second", run_rate(r->n_steps, r->decode_seconds));
    json_out_close(out, '}');
}

static void write_draft(const struct generator *generator, struct buffer *out)
{
    const struct generator_counts counts = generator_counts(generator);
    json_out_open(out, "draft", '{');
    json_out_unsigned(out, "passes", counts.n_passes);
    json_out_unsigned(out, "drafted", counts.n_drafted);
    json_out_unsigned(out, "accepted", counts.n_accepted);
    json_out_close(out, '}');
}

static bool print_json(const struct generation *g, struct err *e)
{
    struct buffer out = {0};
    json_out_open(&out, NULL, '{');
    json_out_string(&out, "model", checkpoint_dir(g->run.loaded.checkpoint));
    json_out_unsigned(&out, "prompt_tokens", g->run.ids.n);
    json_out_ids(&out, "ids", g->answer.id, g->answer.n);
    if (g->decoder)
        json_out_text(&out, "text", g->stream.collected.data, g->stream.collected.n);
    else
        json_out_null(&out, "text");
    json_out_string(&out, "finish_reason", finish_names[g->finish]);
    json_out_unsigned(&out, "seed", g->sampling.seed);
    write_draft(g->generator, &out);
    write_timings(&g->run, &out);
    json_out_close(&out, '}');
    buffer_add_string(&out, "\n");
    const bool ok = stream_print(&out, e);
    buffer_free(&out);
    return ok;
}

static void print_stats(const struct generation *g)
{
    const struct generator_counts counts = generator_counts(g->generator);
    run_print_stats(&g->run);
    if (counts.n_drafted > 0)
        terminal_stat("draft", "%zu of %zu guesses right, %zu passes", counts.n_accepted,
                      counts.n_drafted, counts.n_passes);
    terminal_stat("seed", "%llu", (unsigned long long)g->sampling.seed);
}

bool command_generate(const struct options *o, struct err *e)
{
    struct generation g = {.finish = FINISH_LENGTH};
    bool ok = prepare(&g, o, e) && generate(&g, e) && (!o->json || print_json(&g, e));
    if (ok && o->stats)
        print_stats(&g);
    if (ok && g.finish == FINISH_INTERRUPTED)
        ok = err_interrupted(e);
    generator_free(g.generator);
    sampler_free(g.sampler);
    decoder_free(g.decoder);
    stream_free(&g.stream);
    ids_free(&g.answer);
    run_free(&g.run);
    return ok;
}
