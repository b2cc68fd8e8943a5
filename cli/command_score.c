/*
 * tgen score: how likely a model finds a text. Rows of logits come in chunks, so that memory does
 * not grow with the text; each row predicts the token behind it.
 */
#include "cli/command.h"

#include "cli/batch_job.h"
#include "cli/batch_merge.h"
#include "cli/json_out.h"
#include "cli/logprob.h"
#include "cli/run.h"
#include "cli/stream.h"
#include "cli/terminal.h"
#include "core/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Logits of one chunk; a row of a large vocabulary takes 1 MB of it. */
static const size_t CHUNK_BYTES = (size_t)32 << 20;

struct scoring {
    struct run run;
    double *logprob; /* [run.ids.n]; the first is no number, since nothing stands before it */
    double total;    /* of the others */
    int n_rows;      /* rows of logits in a chunk */
    int logits_fd;   /* of --logits, else -1 */
};

/* Whether two files are one, and one that has bytes to lose. */
static bool is_same(const struct stat *a, const struct stat *b)
{
    return S_ISREG(a->st_mode) && a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Logits never take the place of the scores, of the text that was read, or of the model. */
static bool check_logits(const struct scoring *s, const char *path, struct err *e)
{
    struct stat logits, text;
    const char *file = s->run.o->file, *holds = NULL;
    if (strcmp(path, "-") == 0)
        return err_set(e, ERR_USAGE, "--logits needs a file: standard output has the scores");
    if (stat(path, &logits) != 0)
        return true;
    if (file && stat(file, &text) == 0 && is_same(&text, &logits))
        holds = file;
    else if (fstat(STDIN_FILENO, &text) == 0 && is_same(&text, &logits))
        holds = "standard input";
    if (holds)
        return err_set(e, ERR_USAGE, "%s holds the text; the logits need a file of their own",
                       holds);
    return !checkpoint_holds(s->run.loaded.checkpoint, path) ||
           err_set(e, ERR_USAGE, "%s is a file of the model; the logits need a file of their own",
                   path);
}

static bool open_scoring(struct scoring *s, const struct options *o, struct err *e)
{
    if (!run_load(&s->run, o, "score", RUN_TOKENIZER_OPTIONAL, e))
        return false;
    const size_t n = s->run.ids.n;
    const struct model_info *const info = model_info(s->run.loaded.model);
    const size_t row = (size_t)info->vocab_size * sizeof(float);
    const size_t most = (size_t)run_pass_rows(&s->run);
    const size_t n_rows = row < CHUNK_BYTES ? CHUNK_BYTES / row : 1;
    s->n_rows = (int)min_size(min_size(n_rows, most), n);
    if (!run_open_session(&s->run, 0, s->n_rows, e))
        return false;
    s->logprob = calloc(n, sizeof *s->logprob);
    if (!s->logprob)
        return err_no_memory(e);
    if (!o->logits)
        return true;
    if (!check_logits(s, o->logits, e))
        return false;
    s->logits_fd = open(o->logits, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    return s->logits_fd >= 0 ||
           err_set(e, ERR_RUNTIME, "cannot write to %s: %s", o->logits, strerror(errno));
}

/* The chunk of n tokens from `begin` on: its rows to --logits, and what they say of the tokens
 * behind them. */
static bool score_chunk(struct scoring *s, size_t begin, int n, struct err *e)
{
    const struct ids *ids = &s->run.ids;
    const size_t n_vocab = (size_t)model_info(s->run.loaded.model)->vocab_size;
    const float *rows = session_score(s->run.session, ids->id + begin, n, e);
    if (!rows)
        return false;
    if (s->logits_fd >= 0 &&
        !stream_write(s->logits_fd, s->run.o->logits, rows, (size_t)n * n_vocab * sizeof *rows, e))
        return false;
    for (size_t i = 0; i < (size_t)n && begin + i + 1 < ids->n; i++) {
        const size_t next = begin + i + 1;
        s->logprob[next] = logprob_of(rows + i * n_vocab, (int)n_vocab, ids->id[next]);
        if (isnan(s->logprob[next]))
            return sample_not_finite(e);
        s->total += s->logprob[next];
    }
    return true;
}

static bool score(struct scoring *s, struct err *e)
{
    struct terminal_progress progress = run_begin_progress(&s->run);
    const double began = clock_seconds();
    const size_t n = s->run.ids.n;
    bool ok = true;
    session_expect(s->run.session, (int)n);
    for (size_t at = 0; ok && at < n; at += (size_t)s->n_rows) {
        terminal_progress(&progress, at, n);
        ok = score_chunk(s, at, (int)min_size(n - at, (size_t)s->n_rows), e);
    }
    terminal_progress_end(&progress);
    s->run.prompt_seconds = clock_seconds() - began;
    if (s->logits_fd >= 0 && close(s->logits_fd) != 0 && ok)
        ok = err_set(e, ERR_RUNTIME, "cannot write to %s: %s", s->run.o->logits, strerror(errno));
    s->logits_fd = -1;
    return ok;
}

/* exp of the mean loss over the tokens that have one; no number for a single token. */
static double perplexity(const struct scoring *s)
{
    return s->run.ids.n > 1 ? exp(-s->total / (double)(s->run.ids.n - 1)) : NAN;
}

static bool write_json(const struct scoring *s, struct decoder *decoder, struct buffer *out,
                       struct err *e)
{
    struct bytes text;
    json_out_open(out, NULL, '{');
    json_out_open(out, "tokens", '[');
    for (size_t i = 0; i < s->run.ids.n; i++) {
        const int32_t id = s->run.ids.id[i];
        json_out_open(out, NULL, '{');
        json_out_unsigned(out, "id", (uint64_t)id);
        if (decoder && !decoder_next(decoder, id, &text, e))
            return false;
        if (decoder)
            json_out_text(out, "text", (const char *)text.data, text.size);
        else
            json_out_null(out, "text");
        json_out_number(out, "logprob", i == 0 ? NAN : s->logprob[i]);
        json_out_close(out, '}');
    }
    json_out_close(out, ']');
    json_out_number(out, "total_logprob", s->total);
    json_out_number(out, "perplexity", perplexity(s));
    json_out_unsigned(out, "n_tokens", s->run.ids.n);
    json_out_close(out, '}');
    buffer_add_string(out, "\n");
    return true;
}

static bool write_table(const struct scoring *s, struct decoder *decoder, struct buffer *out,
                        struct err *e)
{
    struct bytes text;
    buffer_add_string(out, "      id       logprob  text\n");
    for (size_t i = 0; i < s->run.ids.n; i++) {
        const int32_t id = s->run.ids.id[i];
        buffer_addf(out, "%8d", id);
        if (i == 0)
            buffer_addf(out, "%14s", "-");
        else
            buffer_addf(out, "%14.6f", s->logprob[i]);
        if (decoder) {
            if (!decoder_next(decoder, id, &text, e))
                return false;
            buffer_add_string(out, "  ");
            json_out_quoted(out, (const char *)text.data, text.size);
        }
        buffer_add_string(out, "\n");
    }
    buffer_addf(out, "tokens %zu, total %.6f", s->run.ids.n, s->total);
    if (s->run.ids.n > 1)
        buffer_addf(out, ", perplexity %.6f", perplexity(s));
    buffer_add_string(out, "\n");
    return true;
}

static bool print_scores(const struct scoring *s, struct err *e)
{
    struct decoder *decoder = NULL;
    struct buffer out = {0};
    const struct tokenizer *tokenizer = s->run.loaded.tokenizer;
    if (tokenizer && (decoder = decoder_new(tokenizer, true, e)) == NULL)
        return false;
    const bool ok =
        (s->run.o->json ? write_json : write_table)(s, decoder, &out, e) && stream_print(&out, e);
    buffer_free(&out);
    decoder_free(decoder);
    return ok;
}

/* Pairs of prompt and completion, a line of JSON each. */
static bool score_lines(const struct options *o, struct err *e)
{
    if (o->prompt || o->file || o->ids || o->logits)
        return err_set(e, ERR_USAGE,
                       "--jsonl takes lines from a file or standard input, and knows "
                       "no -p, -f, --ids or --logits");
    return o->merge ? batch_merge_run(o, BATCH_SCORE, e) : batch_job_run(o, BATCH_SCORE, e);
}

/* What only has a meaning with --jsonl. */
static bool check_no_job(const struct options *o, struct err *e)
{
    static const enum option_id of_jobs[] = {OPT_OUTPUT, OPT_RESTART,  OPT_ORDERED,  OPT_SHARD,
                                             OPT_MERGE,  OPT_PARALLEL, OPT_KV_MEMORY};
    for (size_t i = 0; i < ARRAY_LEN(of_jobs); i++)
        if (o->given[of_jobs[i]])
            return err_set(e, ERR_USAGE, "--%s needs --jsonl", options_table[of_jobs[i]].name);
    return true;
}

bool command_score(const struct options *o, struct err *e)
{
    if (o->jsonl)
        return score_lines(o, e);
    if (!check_no_job(o, e))
        return false;
    struct scoring s = {.logits_fd = -1};
    const bool ok = open_scoring(&s, o, e) && score(&s, e) && print_scores(&s, e);
    if (ok && o->stats)
        run_print_stats(&s.run);
    if (s.logits_fd >= 0)
        close(s.logits_fd);
    free(s.logprob);
    run_free(&s.run);
    return ok;
}
