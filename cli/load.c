/*
 * Each step says what it could not open; the checkpoint lends its files and tensors to the others
 * and is closed last.
 */
#include "cli/load.h"

#include "cli/fault.h"
#include "cli/locate.h"
#include "cli/stream.h"
#include "cli/terminal.h"
#include "core/thread.h"

#include <stdatomic.h>
#include <stdlib.h>

struct load_job {
    struct tokenizer_files files;
    struct tokenizer *tokenizer;
    struct err e;
    bool has_thread;
    pthread_t thread;
    atomic_bool done;
};

bool load_checkpoint(struct loaded *l, const struct options *o, struct err *e)
{
    char *dir = locate_model(o->model, e);
    if (!dir)
        return false;
    l->checkpoint = checkpoint_open(dir, e);
    free(dir);
    fault_watch(l->checkpoint);
    return l->checkpoint != NULL;
}

/* The files that describe a tokenizer, each absent one {NULL, 0}. */
static bool open_files(struct checkpoint *c, struct tokenizer_files *files, struct err *e)
{
    return checkpoint_file(c, "tokenizer.json", &files->tokenizer_json, e) &&
           checkpoint_file(c, "tokenizer_config.json", &files->tokenizer_config, e) &&
           checkpoint_file(c, "special_tokens_map.json", &files->special_tokens_map, e) &&
           checkpoint_file(c, "vocab.json", &files->vocab_json, e) &&
           checkpoint_file(c, "merges.txt", &files->merges_txt, e);
}

/* Other layouts, only looked for where those above are not there: start-up should not pay. */
static bool open_other_files(struct checkpoint *c, struct tokenizer_files *files, struct err *e)
{
    static const char *const models[] = {"tokenizer.model", "tiktoken.model", "spiece.model",
                                         "source.spm"};
    for (size_t i = 0; i < ARRAY_LEN(models) && !files->tokenizer_model.data; i++) {
        files->model_name = models[i];
        if (!checkpoint_file(c, models[i], &files->tokenizer_model, e))
            return false;
    }
    return checkpoint_file(c, "tekken.json", &files->tekken, e) &&
           checkpoint_file_ending(c, ".tiktoken", &files->tiktoken, e);
}

static bool found_usual(const struct tokenizer_files *files)
{
    return files->tokenizer_json.data || (files->vocab_json.data && files->merges_txt.data);
}

/* Where there is no tokenizer, and none is needed, *found is false. */
static bool find_tokenizer(struct loaded *l, bool needed, struct tokenizer_files *files,
                           bool *found, struct err *e)
{
    const char *dir = checkpoint_dir(l->checkpoint);
    *files = (struct tokenizer_files){.tokenizer_json = {.data = NULL}};
    *found = false;
    if (!open_files(l->checkpoint, files, e) ||
        (!found_usual(files) && !open_other_files(l->checkpoint, files, e)))
        return err_prefix(e, "%s", dir);
    *found = found_usual(files) || files->tokenizer_model.data || files->tiktoken.data ||
             files->tekken.data;
    if (*found || !needed)
        return true;
    struct bytes config;
    if (!checkpoint_file(l->checkpoint, "config.json", &config, e))
        return err_prefix(e, "%s", dir);
    err_set(e, ERR_LOAD,
            "no tokenizer: neither tokenizer.json nor vocab.json with merges.txt, "
            "tokenizer.model, spiece.model, source.spm, tiktoken.model, *.tiktoken or "
            "tekken.json%s",
            config.data ? "" : "; nor is there a config.json, as a checkpoint has it");
    return err_prefix(e, "%s", dir);
}

bool load_tokenizer(struct loaded *l, bool needed, struct err *e)
{
    struct tokenizer_files files;
    bool found;
    if (!find_tokenizer(l, needed, &files, &found, e))
        return false;
    l->tokenizer = found ? tokenizer_load(&files, e) : NULL;
    return l->tokenizer != NULL || !found || err_prefix(e, "%s", checkpoint_dir(l->checkpoint));
}

static void *run_job(void *argument)
{
    struct load_job *job = argument;
    job->tokenizer = tokenizer_load(&job->files, &job->e);
    atomic_store(&job->done, true);
    return NULL;
}

bool load_tokenizer_start(struct loaded *l, bool needed, struct err *e)
{
    struct tokenizer_files files;
    bool found;
    if (!find_tokenizer(l, needed, &files, &found, e))
        return false;
    if (!found)
        return true;
    struct load_job *job = calloc(1, sizeof *job);
    if (!job)
        return err_no_memory(e);
    job->files = files;
    job->has_thread = thread_start(&job->thread, run_job, job) == 0;
    if (!job->has_thread)
        run_job(job);
    l->job = job;
    return true;
}

bool load_tokenizer_finish(struct loaded *l, struct err *e)
{
    struct load_job *job = l->job;
    if (!job)
        return true;
    /* A vocabulary takes tens of milliseconds, in which the weights' pages can be made ready. */
    struct checkpoint_place place = {.tensor = 0};
    while (!atomic_load(&job->done) && checkpoint_touch(l->checkpoint, &place)) {
    }
    if (job->has_thread)
        pthread_join(job->thread, NULL);
    l->job = NULL;
    l->tokenizer = job->tokenizer;
    if (!l->tokenizer)
        *e = job->e;
    free(job);
    return l->tokenizer != NULL || err_prefix(e, "%s", checkpoint_dir(l->checkpoint));
}

bool load_stored_model(struct loaded *l, const struct options *o, struct err *e)
{
    l->model = model_open(l->checkpoint, e);
    if (!l->model)
        return false;
    l->compute = compute_open(o->threads, o->cpu, e);
    return l->compute;
}

static bool quantise(struct loaded *l, const struct options *o, struct err *e)
{
    const enum model_weights weights = (enum model_weights)o->weights;
    size_t done = 0, total = 1;
    const unsigned kept = model_bits_kept(l->model, weights);
    if (kept > 0)
        terminal_note(o->quiet, "-w: matrices that are stored in %u bits already stay so", kept);
    if (!model_quantize_measure(l->model, weights, l->compute, &total, e))
        return false;
    if (total == 0)
        return true;
    struct terminal_progress progress = terminal_progress_begin(o->quiet, false, "weights, MiB:");
    if (!model_quantize_begin(l->model, weights, l->compute, e))
        return false;
    bool ok = true;
    while (ok && done < total) {
        ok = model_quantize_step(l->model, l->compute, &done, &total, e);
        terminal_progress(&progress, done >> 20, total >> 20);
        if (ok && stream_interrupted())
            ok = err_interrupted(e);
    }
    terminal_progress_end(&progress);
    return ok;
}

bool load_model(struct loaded *l, const struct options *o, struct err *e)
{
    return load_stored_model(l, o, e) && (o->weights == MODEL_STORED || quantise(l, o, e));
}

/* Unmapping pages takes a third of the time of mapping them, 20 ms for 2.5 GB on one core: it is
 * shared out among workers, before munmap or the end of the process would do it alone. */
static void forget(struct worker *w, void *checkpoint)
{
    checkpoint_forget(checkpoint, (size_t)w->index, (size_t)w->n_workers);
}

void load_tell_defaults(const struct loaded *l, bool quiet)
{
    for (const char *const *key = model_defaults(l->model)->unfollowed; *key; key++)
        terminal_note(quiet, "generation_config.json asks for \"%s\", which changes nothing here",
                      *key);
}

void load_free(struct loaded *l)
{
    struct err unheard;
    load_tokenizer_finish(l, &unheard);
    if (l->compute)
        compute_run(l->compute, forget, l->checkpoint);
    compute_close(l->compute);
    model_close(l->model);
    tokenizer_free(l->tokenizer);
    fault_watch(NULL);
    checkpoint_close(l->checkpoint);
    *l = (struct loaded){.checkpoint = NULL};
}
