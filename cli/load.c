/*
 * Each step says what it could not open; the checkpoint lends its files and tensors to the others
 * and is closed last.
 */
#include "cli/load.h"

#include <stdlib.h>

#include "cli/locate.h"

bool load_checkpoint(struct loaded *l, const struct options *o, struct err *e)
{
    char *dir = locate_model(o->model, e);
    if (dir == NULL)
        return false;
    l->checkpoint = checkpoint_open(dir, e);
    free(dir);
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
    static const char *const models[] = {"tokenizer.model", "spiece.model", "source.spm"};
    for (size_t i = 0; i < ARRAY_LEN(models) && files->tokenizer_model.data == NULL; i++) {
        if (!checkpoint_file(c, models[i], &files->tokenizer_model, e))
            return false;
    }
    return checkpoint_file_ending(c, ".tiktoken", &files->tiktoken, e);
}

static bool found_usual(const struct tokenizer_files *files)
{
    return files->tokenizer_json.data != NULL ||
           (files->vocab_json.data != NULL && files->merges_txt.data != NULL);
}

bool load_tokenizer(struct loaded *l, bool needed, struct err *e)
{
    struct tokenizer_files files = {.tokenizer_json = {.data = NULL}};
    const char *dir = checkpoint_dir(l->checkpoint);
    if (!open_files(l->checkpoint, &files, e) ||
        (!found_usual(&files) && !open_other_files(l->checkpoint, &files, e)))
        return err_prefix(e, "%s", dir);
    const bool found =
        found_usual(&files) || files.tokenizer_model.data != NULL || files.tiktoken.data != NULL;
    if (!found && !needed)
        return true;
    if (!found)
        return err_set(e, ERR_LOAD,
                       "%s: no tokenizer: neither tokenizer.json nor vocab.json with merges.txt, "
                       "tokenizer.model or *.tiktoken",
                       dir);
    l->tokenizer = tokenizer_load(&files, e);
    return l->tokenizer != NULL || err_prefix(e, "%s", dir);
}

bool load_model(struct loaded *l, const struct options *o, struct err *e)
{
    l->model = model_open(l->checkpoint, e);
    if (l->model == NULL)
        return false;
    l->compute = compute_open(o->threads, o->cpu, e);
    return l->compute != NULL;
}

void load_free(struct loaded *l)
{
    compute_close(l->compute);
    model_close(l->model);
    tokenizer_free(l->tokenizer);
    checkpoint_close(l->checkpoint);
    *l = (struct loaded){.checkpoint = NULL};
}
