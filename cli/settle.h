/*
 * What holds where the command line, the model's own files and the defaults differ. The same for a
 * single answer and for each line of a job.
 */
#ifndef CLI_SETTLE_H
#define CLI_SETTLE_H

#include "cli/load.h"
#include "cli/options.h"

/* A flag wins over what generation_config.json says, and that over the default. A model that says
 * "do_sample": false is greedy until a flag asks for sampling. Its repetition_penalty looks back to
 * the beginning, as transformers has it, unless --repeat-last-n says how far. */
void settle_sampling(const struct options *o, const struct model *m, struct sample_params *out);

/* Whether the id ends a text: the model's own eos_token_id, one or a list, or the tokenizer's where
 * the model names none; or a special token, which is not shown, that is one of the stop strings. */
bool settle_ends_text(const struct options *o, const struct option_list *stop,
                      const struct loaded *l, int32_t id);

#endif
