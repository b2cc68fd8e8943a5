/*
 * tgen quantize: a new checkpoint directory with weights in 8 or 4 bits; with 4, after a
 * calibration on texts that the model writes itself. Runs both step by step, for the progress line
 * and Ctrl-C. How a directory comes about is models/export.c's business, how to calibrate
 * models/calibrate.c's.
 */
#include "cli/command.h"

#include "cli/json_out.h"
#include "cli/load.h"
#include "cli/stream.h"
#include "cli/terminal.h"
#include "models/calibrate.h"
#include "models/export.h"

static bool check_options(const struct options *o, struct err *e)
{
    if (o->n_words > 0 || o->wants_stdin)
        return err_set(e, ERR_USAGE, "tgen quantize takes no words; the model goes behind -m");
    if (o->weights == MODEL_STORED)
        return err_set(e, ERR_USAGE, "tgen quantize needs -w q8 or -w q4");
    if (!o->output)
        return err_set(e, ERR_USAGE, "tgen quantize needs -o DIR, the directory to make");
    return true;
}

/* Lets the model write the texts that say which errors matter. NULL with an error. */
static struct calibrate *calibrate(const struct options *o, const struct loaded *l, struct err *e)
{
    size_t done = 0, total = 1;
    struct terminal_progress progress = terminal_progress_begin(o->quiet, false, "calibration:");
    struct calibrate *x = calibrate_begin(l->model, l->compute, stream_interrupt(), e);
    while (x && done < total) {
        if (calibrate_step(x, &done, &total, e)) {
            terminal_progress(&progress, done, total);
        } else {
            calibrate_free(x);
            x = NULL;
        }
    }
    terminal_progress_end(&progress);
    return x;
}

static bool work(const struct options *o, struct exporter *x, struct compute *c, struct err *e)
{
    size_t done = 0, total = 1;
    bool ok = true;
    struct terminal_progress progress = terminal_progress_begin(o->quiet, false, "weights, MiB:");
    while (ok && done < total) {
        ok = export_step(x, c, &done, &total, e);
        terminal_progress(&progress, done >> 20, total >> 20);
        if (ok && stream_interrupted())
            ok = err_interrupted(e);
    }
    terminal_progress_end(&progress);
    return ok && export_finish(x, e);
}

static bool print_result(const struct options *o, const struct export_result *r, struct err *e)
{
    struct buffer out = {0};
    const double bits = (double)r->n_bits / (double)r->n_weights;
    if (o->json) {
        json_out_open(&out, NULL, '{');
        json_out_string(&out, "output", o->output);
        json_out_unsigned(&out, "n_matrices", r->n_matrices);
        json_out_unsigned(&out, "n_weights", r->n_weights);
        json_out_number(&out, "bits_per_weight", bits);
        json_out_unsigned(&out, "n_matrices_as_stored", r->n_others);
        json_out_close(&out, '}');
        buffer_add_string(&out, "\n");
    } else {
        buffer_addf(&out, "%s: %zu matrices, %.4g bits a weight\n", o->output, r->n_matrices, bits);
    }
    const bool ok = stream_print(&out, e);
    buffer_free(&out);
    if (!ok && e->code == ERR_INTERRUPTED)
        return err_set(e, ERR_INTERRUPTED, "%s is complete", o->output);
    return ok || err_prefix(e, "%s is complete", o->output);
}

static void tell_others(const struct options *o, const struct export_result *r)
{
    char size[32];
    if (r->n_others > 0)
        terminal_note(o->quiet,
                      "%zu tensors (%s) stay as they are stored, because other programs could not "
                      "read them quantised; -w quantises them while loading",
                      r->n_others, terminal_bytes(r->other_bytes, size, sizeof size));
}

bool command_quantize(const struct options *o, struct err *e)
{
    struct loaded l = {.checkpoint = NULL};
    struct exporter *x = NULL;
    struct calibrate *texts = NULL;
    bool ok = check_options(o, e) && load_checkpoint(&l, o, e) && load_stored_model(&l, o, e);
    stream_watch_interrupt(); /* from here on there may be something to take away */
    stream_watch_termination();
    if (ok)
        x = export_begin(l.model, (enum model_weights)o->weights, o->output, e);
    ok = x != NULL;
    if (ok && o->weights == MODEL_Q4) {
        texts = calibrate(o, &l, e);
        ok = texts != NULL;
        if (!ok && e->code != ERR_INTERRUPTED)
            export_check(x, l.compute, e); /* which knows the cause where it is a matrix */
    }
    if (texts)
        export_calibrate(x, calibrate_finish(texts));
    ok = ok && work(o, x, l.compute, e);
    if (!ok && e->code == ERR_INTERRUPTED)
        err_set(e, ERR_INTERRUPTED, "interrupted"); /* for logs: hours of work may be gone */
    ok = ok && print_result(o, export_result(x), e);
    if (ok)
        tell_others(o, export_result(x));
    export_free(x);
    calibrate_free(texts);
    load_free(&l);
    return ok;
}
