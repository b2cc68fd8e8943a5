/*
 * The list of commands, which main, --help and the completions read; a new one is a line here and a
 * file of its own. Holds names and words of help; what a command does is its own file's business.
 */
#include "cli/command.h"

#include <string.h>

const struct command command_list[] = {
    {"generate", FOR_GENERATE, "[prompt]", "continues a prompt (the default)", command_generate},
    {"batch", FOR_BATCH, "[file]", "answers a file of prompts, many at a time", command_batch},
    {"score", FOR_SCORE, "[text]", "log-probabilities of a text, and its perplexity",
     command_score},
    {"choose", FOR_CHOOSE, "answer...", "the likeliest of some answers to a prompt",
     command_choose},
    {"tokenize", FOR_TOKENIZE, "[text]", "text to token ids", command_tokenize},
    {"detokenize", FOR_DETOKENIZE, "[ids]", "token ids to text", command_detokenize},
    {"inspect", FOR_INSPECT, "", "what a model is made of, and the memory it takes",
     command_inspect},
    {"quantize", FOR_QUANTIZE, "", "a new directory with weights in 8 or 4 bits", command_quantize},
    {"bench", FOR_BENCH, "", "how fast a model runs, and how fast it could", command_bench},
    {NULL, 0, NULL, NULL, NULL},
};

const struct command *command_find(const char *name)
{
    for (const struct command *c = command_list; c->name; c++)
        if (strcmp(c->name, name) == 0)
            return c;
    return NULL;
}
