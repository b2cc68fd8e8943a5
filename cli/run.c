/*
 * The order is one of manners: options that contradict each other are found before anything is
 * opened, and what is wrong with the prompt before memory for it is taken.
 */
#include "cli/run.h"

#include "cli/help.h"
#include "cli/prompt.h"
#include "cli/stream.h"
#include "cli/terminal.h"
#include "core/clock.h"

#include <math.h>
#include <string.h>
#include <sys/resource.h>

static bool read_prompt(struct run *r, const char *command, struct err *e)
{
    const struct options *o = r->o;
    if (!o->ids) {
        bool given;
        return prompt_read(o, &r->prompt, &given, e) && (given || help_no_prompt(command, e));
    }
    if (o->n_words > 0 || o->prompt || o->file || o->wants_stdin)
        return err_set(e, ERR_USAGE, "the prompt is given twice: with --ids and as text");
    return prompt_parse_ids("--ids", o->ids, strlen(o->ids), &r->ids, e);
}

/* Goes on without a tokenizer that cannot be loaded, where nothing needs one. */
static bool do_without(const struct run *r, bool needed, struct err *e)
{
    const struct err why = *e;
    if (!r->o->ids || why.code != ERR_LOAD)
        return false;
    if (needed)
        return err_set(e, why.code, "%s (--print-ids needs none)", why.text);
    terminal_note(r->o->quiet, "no text: %s", why.text);
    *e = (struct err){.code = ERR_NONE};
    return true;
}

/* The model opens while the tokenizer loads. Where both are refused, the sentence is the
 * tokenizer's. */
static bool open_both(struct run *r, enum run_tokenizer tokenizer, struct err *e)
{
    const bool needed = !r->o->ids || tokenizer == RUN_TOKENIZER_NEEDED;
    struct err refused = {.code = ERR_NONE};
    if (!needed && tokenizer == RUN_TOKENIZER_UNUSED)
        return load_model(&r->loaded, r->o, e);
    if (!load_tokenizer_start(&r->loaded, needed, e) && !do_without(r, needed, e))
        return false;
    const bool good = load_model(&r->loaded, r->o, &refused);
    if (!load_tokenizer_finish(&r->loaded, e) && !do_without(r, needed, e))
        return false;
    if (!good)
        *e = refused;
    return good;
}

static bool make_ids(struct run *r, struct err *e)
{
    const struct options *o = r->o;
    if (!o->ids && !prompt_encode(o, r->loaded.tokenizer, &r->prompt, &r->ids, NULL, e))
        return false;
    if (r->ids.n == 0)
        return err_set(e, ERR_USAGE, "the prompt is empty and %s",
                       o->no_bos || o->ids ? "there is no token to begin with"
                                           : "this tokenizer adds no token to begin with");
    const int n_vocab = model_info(r->loaded.model)->vocab_size;
    for (size_t i = 0; i < r->ids.n; i++) {
        const int32_t id = r->ids.id[i];
        if (id < n_vocab)
            continue;
        if (o->ids)
            return err_set(e, ERR_USAGE, "--ids: %d is outside the vocabulary of %d", id, n_vocab);
        return err_set(e, ERR_LOAD,
                       "%s: the tokenizer gives the id %d, the model takes only 0 to %d",
                       checkpoint_dir(r->loaded.checkpoint), id, n_vocab - 1);
    }
    return true;
}

bool run_load(struct run *r, const struct options *o, const char *command,
              enum run_tokenizer tokenizer, struct err *e)
{
    r->o = o;
    if (!read_prompt(r, command, e))
        return false;
    r->began = clock_seconds();
    return load_checkpoint(&r->loaded, o, e) && open_both(r, tokenizer, e) && make_ids(r, e);
}

int run_pass_rows(const struct run *r)
{
    return model_pass_rows(r->loaded.model, compute_n_threads(r->loaded.compute));
}

bool run_open_session(struct run *r, size_t n_more, int n_rows, struct err *e)
{
    const struct model_info *const info = model_info(r->loaded.model);
    const int most = info->max_positions;
    size_t needed;
    if (!checked_add(r->ids.n, n_more, &needed) || needed > (size_t)most)
        needed = (size_t)most;
    r->n_context = r->o->context > 0 ? r->o->context : (int)needed;
    if (r->ids.n > (size_t)r->n_context)
        return err_set(e, ERR_CONTEXT, "the prompt has %zu tokens, more than the context of %d",
                       r->ids.n, r->n_context);
    const struct session_params params = {
        .n_context = r->n_context,
        .n_batch = max_int(n_rows, min_int(run_pass_rows(r), (int)r->ids.n)),
        .n_rows = n_rows,
        .n_threads = compute_n_threads(r->loaded.compute),
        .precision = (enum precision)r->o->precision,
        .kv = (enum session_kv)r->o->kv,
        .stop = stream_interrupt(),
    };
    r->session = session_new(r->loaded.model, r->loaded.compute, &params, e);
    r->load_seconds = clock_seconds() - r->began;
    return r->session != NULL;
}

struct terminal_progress run_begin_progress(const struct run *r)
{
    /* A parameter and a token are a multiplication and an addition, of which a core of today does
     * some 10^10 a second. */
    const double work = (double)model_info(r->loaded.model)->n_parameters * (double)r->ids.n;
    return terminal_progress_begin(r->o->quiet, work > 2e9 * compute_n_threads(r->loaded.compute),
                                   "prompt");
}

double run_rate(size_t n, double seconds)
{
    return seconds > 0 ? (double)n / seconds : NAN;
}

size_t run_n_read(const struct run *r)
{
    return min_size(r->ids.n, (size_t)session_position(r->session));
}

static void print_speed(const char *label, size_t n, double seconds)
{
    terminal_stat(label, "%zu tokens in %.1f ms, %.1f tokens/s", n, seconds * 1e3,
                  run_rate(n, seconds));
}

void run_print_stats(const struct run *r)
{
    char size[32];
    struct rusage usage;
    const int n_threads = compute_n_threads(r->loaded.compute);
    terminal_stat("load", "%.1f ms, %s, %d thread%s", r->load_seconds * 1e3,
                  checkpoint_dir(r->loaded.checkpoint), n_threads, n_threads == 1 ? "" : "s");
    print_speed("prompt", run_n_read(r), r->prompt_seconds);
    if (r->n_steps > 0)
        print_speed("decode", r->n_steps, r->decode_seconds);
    if (getrusage(RUSAGE_SELF, &usage) == 0) /* ru_maxrss: KiB on Linux */
        terminal_stat("memory", "%s at most",
                      terminal_bytes((size_t)usage.ru_maxrss * 1024, size, sizeof size));
}

void run_free(struct run *r)
{
    session_free(r->session);
    ids_free(&r->ids);
    buffer_free(&r->prompt);
    load_free(&r->loaded);
}
