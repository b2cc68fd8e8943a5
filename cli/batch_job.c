/*
 * The loop stands in run_lines: lines go in while the engine has room, it makes a step, and what is
 * finished goes out at once. Everything before it decides what there is to do, and refuses, if
 * that does not take the model, before it is loaded.
 */
#include "cli/batch_job.h"

#include "cli/batch_answer.h"
#include "cli/batch_engine.h"
#include "cli/batch_order.h"
#include "cli/batch_output.h"
#include "cli/batch_progress.h"
#include "cli/batch_resume.h"
#include "cli/batch_source.h"
#include "cli/json_out.h"
#include "cli/stream.h"
#include "cli/terminal.h"
#include "core/clock.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct job {
    const struct options *o;
    enum batch_task task;
    struct batch_input input;
    struct batch_source source;
    char *output_path;
    struct batch_output output;
    struct batch_tools tools;
    struct batch_engine *engine;
    struct batch_order order;
    struct batch_progress progress;
    const char *model_name;
    size_t n_total;  /* lines of this process's part; 0: a pipe, not known yet */
    size_t n_done;   /* of those, the ones whose answers are in the output */
    size_t n_errors; /* and of those, the ones for which they are errors */
    bool begun;      /* a line or the end of the input has come */
    bool at_end;     /* of the input */
    double began;
};

/* ---- before ---------------------------------------------------------------------------------- */

static bool open_input(struct job *j, struct err *e)
{
    const struct options *o = j->o;
    if (o->n_words > 1)
        return err_set(e, ERR_USAGE, "one file of lines at a time, not \"%s\" as well",
                       o->words[1]);
    if (o->n_words == 1 && o->wants_stdin)
        return err_set(e, ERR_USAGE, "lines come from %s or from standard input, not from both",
                       o->words[0]);
    if (o->n_words == 0) {
        batch_input_begin(&j->input, STDIN_FILENO, "standard input");
        return true;
    }
    return batch_input_open(&j->input, o->words[0], e);
}

/* Where the answers of this part go. A pipe or a device has no parts, so all processes share it. */
static char *path_of_part(const char *output, const struct batch_shard *shard, struct err *e)
{
    struct stat about;
    const bool other = stat(output, &about) == 0 && !S_ISREG(about.st_mode);
    return other ? batch_shard_path(output, 1, 1, e)
                 : batch_shard_path(output, shard->k, shard->n, e);
}

/* Processes that found each other in the environment share one standard input, of which each would
 * see some or none, and one standard output. */
static bool open_shard(struct job *j, struct err *e)
{
    struct batch_shard *shard = &j->source.shard;
    if (!batch_shard_find(j->o->shard, shard, e))
        return false;
    if (shard->by[0] && (j->o->n_words == 0 || !j->o->output))
        return err_set(e, ERR_USAGE,
                       "this is process %d of %d: lines must come from a file and answers go to "
                       "one with -o (or say --shard 1/1)",
                       shard->k, shard->n);
    if (j->o->output)
        j->output_path = path_of_part(j->o->output, shard, e);
    return !j->o->output || j->output_path;
}

/* Refuses the input as output, also where only the merged answers of all parts would replace it. */
static bool check_output(const struct job *j, struct err *e)
{
    return batch_input_check_output(&j->input, j->output_path, e) &&
           batch_input_check_output(&j->input, j->o->output, e);
}

/* A user who gives each task lines of its own must hear that it would do only a part of them. */
static void tell_part(const struct job *j)
{
    const struct batch_shard *shard = &j->source.shard;
    const bool both = shard->by[1] != NULL;
    if (shard->by[0])
        terminal_note(j->o->quiet,
                      "part %d of %d, by %s%s%s, into %s; --shard 1/1 answers all lines", shard->k,
                      shard->n, shard->by[0], both ? ", and by " : "", both ? shard->by[1] : "",
                      j->output_path);
}

static bool open_job(struct job *j, struct err *e)
{
    const struct options *o = j->o;
    if (o->restart && !o->output)
        return err_set(e, ERR_USAGE, "--restart needs the file that begins anew: -o FILE");
    j->source =
        (struct batch_source){.o = o, .task = j->task, .input = &j->input, .output = &j->output};
    stream_watch_interrupt();
    stream_watch_termination();
    if (!open_shard(j, e) || !open_input(j, e) || !check_output(j, e) ||
        !batch_output_open(&j->output, j->output_path, e))
        return false;
    tell_part(j);
    const bool empties = o->restart && j->output.regular;
    return (empties ? batch_resume_check(j->output.fd, j->output.name, e)
                    : batch_resume(&j->output, &j->source.answers, e)) &&
           batch_source_survey(&j->source, &j->n_total, e);
}

static bool open_engine(struct job *j, struct err *e)
{
    if (!batch_tools_open(&j->tools, j->o, j->task, e))
        return false;
    const char *dir = checkpoint_dir(j->tools.loaded.checkpoint), *slash = strrchr(dir, '/');
    j->model_name = slash ? slash + 1 : dir;
    j->engine = batch_engine_new(&j->tools, e);
    return j->engine != NULL;
}

/* Refuses to write over the model, whose files are known only once it is there. As in check_output,
 * also where only the merged answers would replace one. */
static bool check_model(const struct job *j, struct err *e)
{
    const struct checkpoint *model = j->tools.loaded.checkpoint;
    const char *path = j->o->output;
    if (!path || (!checkpoint_holds(model, path) && !checkpoint_holds(model, j->output_path)))
        return true;
    return err_set(e, ERR_USAGE, "%s is a file of the model; the answers need a file of their own",
                   path);
}

/* Drops what --restart finds, once the model and the first line are there: a mistake must cost no
 * answers. */
static bool drop_answers(struct job *j, struct err *e)
{
    const bool drops = !j->begun && j->o->restart && j->output.regular;
    j->begun = true;
    return !drops || batch_output_trim(&j->output, 0, e);
}

/* ---- lines ----------------------------------------------------------------------------------- */

static bool put(struct job *j, const struct buffer *answer, struct err *e)
{
    if (isatty(j->output.fd))
        batch_progress_end(&j->progress); /* which would be the beginning of the answer's line */
    const bool ok = batch_output_put(&j->output, answer, e);
    j->n_done += ok;
    return ok;
}

/* Writes the answer of a finished work, or keeps it until its turn comes, and frees the work. An
 * error that the output holds already is not written again. */
static bool answer(struct job *j, struct batch_work *work, struct err *e)
{
    struct buffer text = {0};
    const bool failed = work->line.error.code != ERR_NONE;
    j->n_errors += failed;
    if (!failed || !work->line.error_is_told)
        batch_answer_write(work, j->task, j->model_name, &text);
    bool ok = buffer_ok(&text, e);
    if (ok && !work->slot)
        ok = put(j, &text, e);
    else if (ok)
        batch_order_fill(work->slot, &text);
    batch_work_free(work);
    buffer_free(&text);
    while (ok && batch_order_take(&j->order, &text)) {
        ok = put(j, &text, e);
        buffer_free(&text);
    }
    return ok;
}

static bool answer_finished(struct job *j, struct err *e)
{
    for (struct batch_work *work; (work = batch_engine_finished(j->engine)) != NULL;)
        if (!answer(j, work, e))
            return false;
    return true;
}

static bool begin_line(struct job *j, struct batch_line *line, struct err *e)
{
    struct batch_work *work = batch_work_new(&j->tools, line, e);
    if (!work)
        return false;
    if (j->o->ordered && (work->slot = batch_order_add(&j->order, e)) == NULL) {
        batch_work_free(work);
        return false;
    }
    if (work->line.error.code != ERR_NONE)
        return answer(j, work, e);
    return batch_engine_add(j->engine, work, e) && answer_finished(j, e);
}

/* Fills the engine. Waits for a line only where there is nothing else to do. */
static bool read_lines(struct job *j, struct err *e)
{
    while (!j->at_end && batch_engine_has_room(j->engine)) {
        struct batch_line line;
        const bool idle = batch_engine_is_idle(j->engine);
        const enum batch_input_state state = batch_source_next(&j->source, idle, &line, e);
        if (state == BATCH_INPUT_FAILED)
            return false;
        if (state == BATCH_INPUT_WAIT)
            return true;
        if (!drop_answers(j, e)) {
            if (state == BATCH_INPUT_LINE)
                batch_line_free(&line);
            return false;
        }
        if (state == BATCH_INPUT_END) {
            j->at_end = true;
            j->n_total = max_size(j->n_total, j->source.n_mine);
        } else if (!begin_line(j, &line, e)) {
            return false;
        }
    }
    return true;
}

static void tell_progress(struct job *j)
{
    const struct batch_engine_counts *c = batch_engine_counts(j->engine);
    batch_progress_tell(&j->progress, j->source.n_answered, j->n_done, j->n_total,
                        c->n_prompt + c->n_answer);
}

/* Says that the command goes on from earlier answers, which other options or prompts would leave as
 * they are. */
static void tell_answers(const struct job *j)
{
    const size_t n = j->source.answers.n;
    if (n > 0)
        terminal_note(j->o->quiet, "%zu answer%s there already", n, n == 1 ? " is" : "s are");
}

static bool run_lines(struct job *j, struct err *e)
{
    for (;;) {
        if (!read_lines(j, e))
            return false;
        if (stream_interrupted() || (j->at_end && batch_engine_is_idle(j->engine)))
            return true;
        const bool whole = batch_engine_step(j->engine, e);
        if ((!whole && e->code != ERR_INTERRUPTED) || !answer_finished(j, e))
            return false;
        if (!whole)
            return true;
        tell_progress(j);
    }
}

/* ---- after ----------------------------------------------------------------------------------- */

static double share(size_t part, size_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0;
}

static void print_stats(const struct job *j)
{
    const struct batch_engine_counts *c = batch_engine_counts(j->engine);
    const double seconds = clock_seconds() - j->began;
    struct buffer out = {0};
    json_out_open(&out, NULL, '{');
    json_out_unsigned(&out, "lines", j->n_done);
    json_out_unsigned(&out, "answered_before", j->source.n_answered);
    json_out_unsigned(&out, "errors", j->n_errors + j->source.n_errors);
    json_out_number(&out, "seconds", seconds);
    json_out_unsigned(&out, "prompt_tokens", c->n_prompt);
    json_out_unsigned(&out, "prompt_tokens_shared", c->n_shared);
    json_out_unsigned(&out, "completion_tokens", c->n_answer);
    json_out_number(&out, "tokens_per_second", (double)(c->n_prompt + c->n_answer) / seconds);
    json_out_unsigned(&out, "steps", c->n_steps);
    json_out_number(&out, "rows_per_step", share(c->n_rows, c->n_steps));
    json_out_number(&out, "lines_per_step", share(c->n_lines, c->n_steps));
    json_out_close(&out, '}');
    buffer_add_string(&out, "\n");
    struct err unused;
    if (!out.failed)
        (void)stream_write(STDERR_FILENO, "standard error", out.data, out.n, &unused);
    buffer_free(&out);
}

static const char unanswered[] =
    "%zu of %zu lines could not be answered; their answers have an \"error\"";

/* What the exit code says of a job that came to its end, or was told to end. */
static bool conclude(struct job *j, struct err *e)
{
    const size_t n = j->n_done + j->source.n_answered;
    const size_t n_errors = j->n_errors + j->source.n_errors;
    if (stream_interrupted()) {
        const char *const how = j->o->restart ? "; the command goes on without --restart"
                                              : "; the same command goes on";
        terminal_note(j->o->quiet, "interrupted with %zu line%s answered%s", n, n == 1 ? "" : "s",
                      j->output.regular ? how : "");
        return err_interrupted(e);
    }
    if (j->source.n_mine < j->n_total)
        return err_set(e, ERR_RUNTIME,
                       "%s has lost lines while they were answered: %zu are left of %zu",
                       j->input.name, j->source.n_mine, j->n_total);
    if (!batch_source_check_end(&j->source, e))
        return false;
    if (n_errors == 0)
        return true;
    /* mpirun ends all ranks where one of them fails; for those, --merge has the exit code. */
    if (j->source.shard.by[0]) {
        terminal_note(false, unanswered, n_errors, n);
        return true;
    }
    return err_set(e, ERR_RUNTIME, unanswered, n_errors, n);
}

static void free_job(struct job *j)
{
    batch_engine_free(j->engine);
    batch_tools_close(&j->tools);
    batch_order_free(&j->order);
    batch_source_free(&j->source);
    batch_input_free(&j->input);
    if (j->input.fd > STDIN_FILENO)
        close(j->input.fd);
    batch_output_close(&j->output);
    free(j->output_path);
}

bool batch_job_run(const struct options *o, enum batch_task task, struct err *e)
{
    struct job j = {.o = o, .task = task, .output.fd = -1, .began = clock_seconds()};
    struct err unheard;
    bool ok = open_job(&j, e) && open_engine(&j, e) && check_model(&j, e);
    if (ok) {
        tell_answers(&j);
        batch_progress_begin(&j.progress, o->quiet);
        ok = run_lines(&j, e) || e->code == ERR_INTERRUPTED;
        batch_progress_end(&j.progress);
        if (ok && o->stats)
            print_stats(&j);
        ok = batch_output_sync(&j.output, true, ok ? e : &unheard) && ok && conclude(&j, e);
    }
    if (!ok)
        batch_output_discard(&j.output);
    free_job(&j);
    return ok;
}
