/*
 * An answer is known by its custom_id, so that lines may be added or reordered between two runs. A
 * second line of the same custom_id would make that ambiguous: it is answered with an error, and
 * errors are known by the numbers of their lines as well. The error of a line that is repaired,
 * moved or gone stays in the output and stands for nothing.
 */
#include "cli/batch_source.h"

#include "cli/batch_answer.h"
#include "cli/stream.h"

#include <string.h>
#include <unistd.h>

/* Editors of Windows begin a file with a byte order mark; files may have been joined. */
static struct bytes without_mark(struct bytes text)
{
    const bool marked = text.size >= 3 && memcmp(text.data, "\xEF\xBB\xBF", 3) == 0;
    return marked ? (struct bytes){text.data + 3, text.size - 3} : text;
}

/* Records the custom_id; a second line with the same one becomes an error. A nameless line is not
 * recorded, since its stand-in number may be another line's real custom_id; its error is found by
 * line number instead. */
static bool check_unique(struct batch_source *s, struct batch_line *line, struct err *e)
{
    const struct buffer *id = &line->custom_id;
    if (line->nameless)
        return true;
    const struct batch_index_entry *first = batch_index_find(&s->lines, id->data, id->n);
    if (!first)
        return batch_index_add(&s->lines, id->data, id->n, line->number, e);
    err_set(&line->error, ERR_USAGE, "line %zu has the same custom_id", (size_t)first->value);
    return true;
}

/* Whether the line's error is among the answers. */
static bool is_told(const struct batch_source *s, const struct batch_line *line, struct err *e,
                    bool *failed)
{
    struct buffer name = {0};
    batch_answer_error_name(line->number, &line->custom_id, &name);
    *failed = !buffer_ok(&name, e);
    const bool told = !*failed && batch_index_find(&s->answers, name.data, name.n);
    buffer_free(&name);
    return told;
}

/* Whether the line has an answer already, which is then ticked off. An error does not count for a
 * good line, which may have been repaired, or may have been too long for a context that has grown.
 */
static bool is_answered(struct batch_source *s, struct batch_line *line, struct err *e,
                        bool *failed)
{
    line->error_is_told = is_told(s, line, e, failed);
    if (line->error.code != ERR_NONE) {
        s->n_errors += line->error_is_told;
        return line->error_is_told;
    }
    struct batch_index_entry *own =
        batch_index_find(&s->answers, line->custom_id.data, line->custom_id.n);
    if (!own)
        return false;
    const enum batch_answer_kind kind = (enum batch_answer_kind)own->value;
    *failed |= kind != BATCH_ANSWER_NONE && !batch_answer_fits(kind, line, s->task, e);
    own->value = BATCH_ANSWER_NONE;
    return true;
}

enum batch_input_state batch_source_next(struct batch_source *s, bool wait, struct batch_line *line,
                                         struct err *e)
{
    for (;;) {
        struct bytes text;
        bool whole, failed = false;
        if (stream_interrupted())
            return BATCH_INPUT_WAIT;
        const enum batch_input_state state = batch_input_next(s->input, wait, &text, &whole, e);
        if (state != BATCH_INPUT_LINE)
            return state;
        const size_t number = s->input->number;
        if (!s->o->text)
            text = without_mark(text);
        if (!s->o->text && batch_input_is_blank(text))
            continue;
        if (!batch_line_parse(line, (const char *)text.data, text.size, number, s->o, s->task,
                              s->o->text, e) ||
            !check_unique(s, line, e)) {
            batch_line_free(line);
            return BATCH_INPUT_FAILED;
        }
        if (batch_shard_owns(&s->shard, s->n_lines++)) {
            s->n_mine++;
            if (!is_answered(s, line, e, &failed) && !failed)
                return BATCH_INPUT_LINE;
            s->n_answered++;
        }
        batch_line_free(line);
        if (failed)
            return BATCH_INPUT_FAILED;
    }
}

/* The custom_id of the first answer in the file that no line has come for. */
static bool find_strange(const struct batch_source *s, struct buffer *id, struct err *e)
{
    struct batch_input in;
    struct bytes text;
    const struct batch_index_entry *entry = NULL;
    enum batch_input_state state = BATCH_INPUT_LINE;
    bool whole, found = false;
    (void)lseek(s->output->fd, 0, SEEK_SET); /* what is written goes to the end all the same */
    batch_input_begin(&in, s->output->fd, s->output->name);
    while (!found && (state = batch_input_next(&in, true, &text, &whole, e)) == BATCH_INPUT_LINE) {
        (void)batch_answer_name((const char *)text.data, text.size, id);
        entry = batch_index_find(&s->answers, id->data, id->n);
        found = entry && entry->value != BATCH_ANSWER_NONE;
    }
    batch_input_free(&in);
    return found || (state == BATCH_INPUT_END &&
                     err_set(e, ERR_RUNTIME, "cannot read %s a second time", s->output->name));
}

static bool refuse_strange(const struct batch_source *s, size_t n_strange, struct err *e)
{
    struct buffer id = {0}, part = {0};
    if (s->shard.n > 1)
        buffer_addf(&part, " that is part %d of %d's", s->shard.k, s->shard.n);
    if (find_strange(s, &id, e) && buffer_ok(&id, e) && buffer_ok(&part, e))
        err_set(e, ERR_RUNTIME,
                "%zu of the answers that are there match no line of %s%s, the first to %.*s%s; "
                "--restart drops them all",
                n_strange, s->input->name, part.n > 0 ? part.data : "", batch_answer_shown(id.n),
                id.data, part.n > 0 ? ", which may be another part's" : "");
    buffer_free(&id);
    buffer_free(&part);
    return false;
}

bool batch_source_check_end(const struct batch_source *s, struct err *e)
{
    size_t n_strange = 0;
    for (size_t i = 0; i < s->answers.capacity; i++) {
        const struct batch_index_entry *entry = &s->answers.entries[i];
        n_strange += entry->hash[1] != 0 && entry->value != BATCH_ANSWER_NONE;
    }
    return n_strange == 0 || refuse_strange(s, n_strange, e);
}

bool batch_source_survey(struct batch_source *s, size_t *n_mine, struct err *e)
{
    struct batch_line line;
    enum batch_input_state state;
    if (s->input->start < 0)
        return true;
    while ((state = batch_source_next(s, true, &line, e)) == BATCH_INPUT_LINE)
        batch_line_free(&line);
    if (state == BATCH_INPUT_WAIT)
        return err_interrupted(e);
    if (state == BATCH_INPUT_FAILED || !batch_source_check_end(s, e))
        return false;
    *n_mine = s->n_mine;
    s->n_lines = s->n_mine = s->n_answered = s->n_errors = 0;
    batch_index_free(&s->lines);
    return batch_input_rewind(s->input, e);
}

void batch_source_free(struct batch_source *s)
{
    batch_index_free(&s->lines);
    batch_index_free(&s->answers);
}
