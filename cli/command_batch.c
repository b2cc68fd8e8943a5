/*
 * tgen batch: lines of prompts in, a line of answer for each out. Only chooses: batch_job.c runs a
 * job, batch_merge.c joins the parts of one (--merge).
 */
#include "cli/command.h"

#include "cli/batch_job.h"
#include "cli/batch_merge.h"

bool command_batch(const struct options *o, struct err *e)
{
    return o->merge ? batch_merge_run(o, BATCH_GENERATE, e) : batch_job_run(o, BATCH_GENERATE, e);
}
