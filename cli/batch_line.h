/*
 * One line of a job's input -> what it asks for. A line is a command line of its own: its keys are
 * options, with their ranges and on top of those that tgen was started with. Nothing is ignored: an
 * unknown key, a value of the wrong type or out of range spoils the line, with a sentence that goes
 * into its answer.
 *
 *     {"prompt": "...", "custom_id": "a", "max_tokens": 20, "temperature": 0, "stop": ["\n"]}
 *     {"custom_id": "a", "method": "POST", "url": "/v1/completions", "body": {"prompt": "..."}}
 *     {"prompt": "...", "completion": "..."}                                    (to be scored)
 */
#ifndef CLI_BATCH_LINE_H
#define CLI_BATCH_LINE_H

#include "cli/buffer.h"
#include "cli/options.h"
#include "tokenizer/tokenizer.h"

enum batch_task { BATCH_GENERATE, BATCH_SCORE };

enum { BATCH_MOST_LOGPROBS = 20 };

struct batch_line {
    size_t number;           /* in the input, the first is 1 */
    struct buffer custom_id; /* its JSON: a string with the escapes of json_out, a number as it
                              * stood there; the line's number where the line has none */
    bool nameless; /* no custom_id could be read, though it may have one; the number stands in */
    bool openai;   /* to be answered in the shape of OpenAI's batches */
    struct buffer model; /* OpenAI: what the body calls the model; empty where it does not */
    bool has_prompt, has_completion;
    struct buffer prompt;     /* text ... */
    struct ids prompt_ids;    /* ... or, where there are any, ids, exactly these */
    struct buffer completion; /* BATCH_SCORE */
    struct options asked;     /* the command line's, changed by this line's keys */
    struct buffer stops;      /* this line's stop strings, each with a NUL behind it */
    const char **own_stops;   /* where each begins in `stops` */
    struct option_list stop;  /* own_stops, or those of the command line */
    bool wants_ids;           /* the answer has the ids of its tokens */
    bool wants_logprobs;      /* and how likely each was, */
    int n_likeliest;          /* with so many of the likeliest beside it */
    struct err error;         /* ERR_NONE, or what is wrong with the line */
    bool error_is_told;       /* an earlier run has answered the line with an error */
};

/* Reads text[0..n) as the line of that number; with `plain` the text itself is the prompt. `o` is
 * borrowed for as long as the line lives. A bad line is no failure: line->error says what is wrong,
 * and as much as could be read is there. False only without memory; batch_line_free in any case. */
bool batch_line_parse(struct batch_line *line, const char *text, size_t n, size_t number,
                      const struct options *o, enum batch_task task, bool plain, struct err *e);
void batch_line_free(struct batch_line *line);

/* Appends the canonical JSON of a custom_id, value[0..n) being a JSON value. False where it is
 * neither string, number nor boolean. */
bool batch_line_canonical_id(struct buffer *out, const char *value, size_t n);

#endif
