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

bool load_tokenizer(struct loaded *l, bool needed, struct err *e)
{
    struct tokenizer_files files = {.tokenizer_json = {.data = NULL}};
    const char *dir = checkpoint_dir(l->checkpoint);
    if (!open_files(l->checkpoint, &files, e))
        return err_prefix(e, "%s", dir);
    const bool found = files.tokenizer_json.data != NULL ||
                       (files.vocab_json.data != NULL && files.merges_txt.data != NULL);
    if (!found && !needed)
        return true;
    if (!found)
        return err_set(e, ERR_LOAD,
                       "%s: no tokenizer: neither tokenizer.json nor vocab.json with merges.txt",
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
