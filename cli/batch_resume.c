/*
 * Reads an output file once, from its beginning. Only a line with a newline behind it was put there
 * whole; a torn last one is cut off, because its answer will be computed again, and so are blank
 * lines at the end. Removes nothing else: a file with other lines than answers is refused. Owns
 * nothing: the file is batch_output.c's, the names go to the caller's index.
 */
#include "cli/batch_resume.h"

#include "cli/batch_answer.h"

static bool refuse(const struct batch_input *in, const char *what, struct err *e)
{
    return err_set(e, ERR_RUNTIME, "line %zu of %s %s; remove it, or --restart drops all",
                   in->number, in->name, what);
}

/* A file that does not even begin with an answer is somebody's, and not for --restart to empty. */
static bool refuse_line(const struct batch_input *in, struct err *e)
{
    return in->number > 1
               ? refuse(in, "is no answer", e)
               : err_set(e, ERR_RUNTIME,
                         "line 1 of %s is no answer; answers need a file of their own", in->name);
}

static bool add_answer(const struct batch_input *in, enum batch_answer_kind kind,
                       const struct buffer *name, struct batch_index *answers, struct err *e)
{
    if (!buffer_ok(name, e))
        return false;
    if (kind == BATCH_ANSWER_NONE)
        return refuse_line(in, e);
    if (batch_index_find(answers, name->data, name->n))
        return refuse(in, "answers what was answered already", e);
    return batch_index_add(answers, name->data, name->n,
                           kind == BATCH_ANSWER_ERROR ? BATCH_ANSWER_NONE : kind, e);
}

bool batch_resume(struct batch_output *out, struct batch_index *answers, struct err *e)
{
    struct batch_input in;
    struct buffer name = {0};
    struct bytes text;
    enum batch_answer_kind kind;
    enum batch_input_state state;
    uint64_t size = 0;
    bool ok = true;
    if (!out->regular)
        return true;
    batch_input_begin(&in, out->fd, out->name);
    while (ok && (state = batch_answer_next(&in, &text, &kind, &name, e)) == BATCH_INPUT_LINE) {
        ok = add_answer(&in, kind, &name, answers, e);
        size = in.offset;
    }
    ok = ok && state == BATCH_INPUT_END && batch_output_trim(out, size, e);
    buffer_free(&name);
    batch_input_free(&in);
    return ok;
}

bool batch_resume_check(int fd, const char *name, struct err *e)
{
    struct batch_input in;
    struct buffer first = {0};
    struct bytes text;
    enum batch_answer_kind kind;
    batch_input_begin(&in, fd, name);
    const enum batch_input_state state = batch_answer_next(&in, &text, &kind, &first, e);
    bool ok = state != BATCH_INPUT_FAILED && buffer_ok(&first, e);
    if (ok && state == BATCH_INPUT_LINE && kind == BATCH_ANSWER_NONE)
        ok = refuse_line(&in, e);
    buffer_free(&first);
    batch_input_free(&in);
    return ok;
}
