/* Shared by jobs of lines and tgen choose, which scores its answers as the lines of a job. */
#include "cli/batch_tools.h"

bool batch_tools_open(struct batch_tools *tools, const struct options *o, enum batch_task task,
                      struct err *e)
{
    struct loaded *l = &tools->loaded;
    tools->o = o;
    tools->task = task;
    if (!load_checkpoint(l, o, e) || !load_tokenizer(l, true, e) || !load_model(l, o, e))
        return false;
    if (task == BATCH_GENERATE)
        load_tell_defaults(l, o->quiet);
    tools->n_context = o->context > 0 ? o->context : model_info(l->model)->max_positions;
    tools->encoder = encoder_new(l->tokenizer, e);
    return tools->encoder != NULL;
}

void batch_tools_close(struct batch_tools *tools)
{
    encoder_free(tools->encoder);
    load_free(&tools->loaded);
}
