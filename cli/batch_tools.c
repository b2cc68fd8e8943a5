/* Shared by jobs of lines and tgen choose, which scores its answers as the lines of a job. */
#include "cli/batch_tools.h"

#include "cli/terminal.h"

/* Where answers are ids, the prompts may be: a tokenizer that is not there or cannot be read is
 * noted then, and the lines that need one have an error. */
static bool open_tokenizer(struct batch_tools *tools, struct err *e)
{
    struct loaded *l = &tools->loaded;
    if (!load_tokenizer(l, true, e)) {
        if (!tools->o->print_ids || e->code != ERR_LOAD)
            return false;
        terminal_note(tools->o->quiet, "only ids: %s", e->text);
        *e = (struct err){.code = ERR_NONE};
        return true;
    }
    tools->encoder = encoder_new(l->tokenizer, e);
    return tools->encoder != NULL;
}

bool batch_tools_open(struct batch_tools *tools, const struct options *o, enum batch_task task,
                      struct err *e)
{
    struct loaded *l = &tools->loaded;
    tools->o = o;
    tools->task = task;
    if (!load_checkpoint(l, o, e) || !open_tokenizer(tools, e) || !load_model(l, o, e))
        return false;
    if (task == BATCH_GENERATE)
        load_tell_defaults(l, o->quiet);
    tools->n_context = o->context > 0 ? o->context : model_info(l->model)->max_positions;
    return true;
}

void batch_tools_close(struct batch_tools *tools)
{
    encoder_free(tools->encoder);
    load_free(&tools->loaded);
}
