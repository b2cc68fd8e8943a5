/*
 * The line that answers a line. It depends on what was asked, the seed, the model and nothing else:
 * no times, no random ids, so that jobs can be compared byte for byte.
 *
 *     {"custom_id":7,"text":"...","finish_reason":"stop","prompt_tokens":5,"completion_tokens":9,
 *      "seed":1}
 *     {"custom_id":"a","logprob":-3.5,"prompt_tokens":4,"completion_tokens":2}     (scored)
 *     {"custom_id":"b","line":3,"error":"..."}
 *     {"id":...,"custom_id":...,"response":{"status_code":200,...},"error":null}   (OpenAI's shape)
 */
#ifndef CLI_BATCH_ANSWER_H
#define CLI_BATCH_ANSWER_H

#include "cli/batch_input.h"
#include "cli/batch_work.h"

/* Appends the answer with its newline: work->line.error, or else what came of it. `model` is what
 * OpenAI's shape calls the model where the line does not. */
void batch_answer_write(const struct batch_work *work, enum batch_task task, const char *model,
                        struct buffer *out);

enum batch_answer_kind {
    BATCH_ANSWER_NONE,
    BATCH_ANSWER_ERROR, /* of any job */
    BATCH_ANSWER_TEXT,
    BATCH_ANSWER_SCORE,
    BATCH_ANSWER_OPENAI
};

/* The name by which an answer finds its line: the custom_id as batch_line has it, or "#7:" and that
 * for the error of line 7. Replaces *name. NONE for text that is no answer: an answer has a result
 * beside its custom_id, which lines of prompts lack. */
enum batch_answer_kind batch_answer_name(const char *text, size_t n, struct buffer *name);

/* The next line of a file that should hold answers alone, as batch_input_next has it, and which
 * answer it is: NONE where it is none. Blank lines behind the first are passed over, and what is
 * left of an answer at the end of the file counts as the end. */
enum batch_input_state batch_answer_next(struct batch_input *in, struct bytes *line,
                                         enum batch_answer_kind *kind, struct buffer *name,
                                         struct err *e);

/* Whether `found` is the kind of answer that a good line gets in this job; else ERR_RUNTIME. */
bool batch_answer_fits(enum batch_answer_kind found, const struct batch_line *line,
                       enum batch_task task, struct err *e);

/* How many bytes of a custom_id's n a sentence shows. */
static inline int batch_answer_shown(size_t n)
{
    return (int)min_size(n, 100);
}

/* The name of a line's error, "#7:" and the custom_id. */
void batch_answer_error_name(size_t number, const struct buffer *custom_id, struct buffer *name);

#endif
