/*
 * What wins: a flag, else the model's own files, else the default; and which ids end a text. Pure
 * functions of options, model and tokenizer; opens, keeps and prints nothing. Reading options is
 * options.c's business, reading the model's wishes models/generation_config.c's.
 */
#include "cli/settle.h"

void settle_sampling(const struct options *o, const struct model *m, struct sample_params *out)
{
    const struct model_defaults *d = model_defaults(m);
    const bool asked = o->given[OPT_TEMP] || o->given[OPT_TOP_K] || o->given[OPT_TOP_P] ||
                       o->given[OPT_MIN_P] || o->given[OPT_TYPICAL_P];
    *out = o->sampling;
    if (d->has_temperature && !o->given[OPT_TEMP])
        out->temperature = d->temperature;
    if (d->has_top_k && !o->given[OPT_TOP_K])
        out->top_k = d->top_k;
    if (d->has_top_p && !o->given[OPT_TOP_P])
        out->top_p = d->top_p;
    if (d->has_min_p && !o->given[OPT_MIN_P])
        out->min_p = d->min_p;
    if (d->has_typical_p && !o->given[OPT_TYPICAL_P])
        out->typical_p = d->typical_p;
    if (d->has_repetition_penalty && !o->given[OPT_REPEAT_PENALTY]) {
        out->repetition_penalty = d->repetition_penalty;
        out->repeat_last_n = o->given[OPT_REPEAT_LAST_N] ? out->repeat_last_n : -1;
    }
    if (d->has_do_sample && !d->do_sample && !asked)
        out->temperature = 0;
}

static bool is_stop(const struct option_list *stop, const struct tokenizer *t, int32_t id)
{
    if (stop->n == 0 || !tokenizer_is_special(t, id))
        return false;
    const struct bytes spelling = tokenizer_piece(t, id);
    for (size_t i = 0; i < stop->n; i++)
        if (bytes_equal(spelling, stop->item[i]))
            return true;
    return false;
}

bool settle_ends_text(const struct options *o, const struct option_list *stop,
                      const struct loaded *l, int32_t id)
{
    int n;
    const int32_t *eos = model_eos(l->model, &n);
    if (is_stop(stop, l->tokenizer, id))
        return true;
    if (o->ignore_eos)
        return false;
    if (n == 0 && l->tokenizer)
        return id == tokenizer_eos(l->tokenizer);
    for (int i = 0; i < n; i++)
        if (eos[i] == id)
            return true;
    return false;
}
