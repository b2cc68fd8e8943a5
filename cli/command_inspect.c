/*
 * tgen inspect: the card of a model, its tensors and files, and the memory that it would take to
 * run it; as a table, or with --json for programs. Runs nothing and computes no number itself:
 * facts come from models/card.c, sizes from whoever would take the memory.
 */
#include "cli/command.h"

#include "cli/json_out.h"
#include "cli/load.h"
#include "cli/stream.h"
#include "cli/terminal.h"
#include "core/utf8.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct dtype_total {
    size_t n_tensors, n_bytes;
};

struct card {
    const char *dir;
    const struct model_fact *facts; /* [n_facts] */
    int n_facts;
    struct dtype_total dtypes[DTYPE_COUNT];
    size_t n_tensors;
    struct dirent **entries; /* [n_entries], by name */
    int n_entries;
    int n_context;
    struct session_bytes memory; /* for n_context */
    size_t tokenizer_bytes;      /* 0 without one */
    enum model_weights weights;
    size_t quantised;   /* bytes of the weights in that form, besides the mapped files */
    size_t draft_bytes; /* of generate's guesses, for n_context */
};

/* Numbers of a config come from decimals of few digits, some of them through a float. */
static void number_text(double number, char out[32])
{
    const bool whole = fabs(number) < 0x1p53 && number == rint(number);
    snprintf(out, 32, whole ? "%.0f" : "%.7g", number);
}

/* The size of a file of the directory, links followed; false for what is no file. */
static bool file_size(const char *dir, const char *name, size_t *size)
{
    struct buffer path = {0};
    struct stat st;
    buffer_addf(&path, "%s/%s", dir, name);
    const bool ok = !path.failed && stat(path.data, &st) == 0 && S_ISREG(st.st_mode);
    buffer_free(&path);
    if (ok)
        *size = (size_t)st.st_size;
    return ok;
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static bool collect(const struct options *o, const struct loaded *l, struct card *card,
                    struct err *e)
{
    card->dir = checkpoint_dir(l->checkpoint);
    card->facts = model_facts(l->model, &card->n_facts);
    card->n_tensors = checkpoint_n_tensors(l->checkpoint);
    for (size_t i = 0; i < card->n_tensors; i++) {
        const struct tensor *t = checkpoint_tensor_at(l->checkpoint, i);
        card->dtypes[t->dtype].n_tensors++;
        card->dtypes[t->dtype].n_bytes += t->n_bytes;
    }
    const int n_entries = scandir(card->dir, &card->entries, is_visible, alphasort);
    if (n_entries < 0)
        return err_set(e, ERR_RUNTIME, "%s: %s", card->dir, strerror(errno));
    card->n_entries = n_entries;
    card->tokenizer_bytes = l->tokenizer ? tokenizer_bytes(l->tokenizer) : 0;
    card->n_context = o->context > 0 ? o->context : model_info(l->model)->max_positions;
    const struct session_params params = {
        .n_context = card->n_context,
        .n_batch =
            min_int(card->n_context, model_pass_rows(l->model, compute_n_threads(l->compute))),
        .n_rows = generator_n_rows(GENERATOR_DRAFT_AUTO),
        .n_threads = compute_n_threads(l->compute),
        .kv = (enum session_kv)o->kv,
    };
    const struct generator_params guessing = {.n_vocab = model_info(l->model)->vocab_size,
                                              .n_context = card->n_context,
                                              .draft = GENERATOR_DRAFT_AUTO};
    card->weights = (enum model_weights)o->weights;
    if (!session_measure(l->model, &params, &card->memory, e)) /* also what refuses a context */
        return false;
    card->draft_bytes = generator_bytes(&guessing);
    return model_quantize_measure(l->model, card->weights, l->compute, &card->quantised, e);
}

/* ---- for people ------------------------------------------------------------------------------ */

static void add_row(struct buffer *t, const char *key, const char *value)
{
    buffer_addf(t, "%-34s%s\n", key, value);
}

static void add_bytes_row(struct buffer *t, const char *key, size_t n)
{
    char value[32];
    add_row(t, key, terminal_bytes(n, value, sizeof value));
}

static void add_facts(struct buffer *t, const struct card *card)
{
    for (int i = 0; i < card->n_facts; i++) {
        const struct model_fact *fact = &card->facts[i];
        char number[32];
        number_text(fact->number, number);
        if (fact->type == FACT_TEXT)
            add_row(t, fact->key, fact->text);
        else if (fact->type == FACT_BOOL)
            add_row(t, fact->key, fact->number != 0 ? "true" : "false");
        else
            add_row(t, fact->key, number);
    }
}

/* A name out of the directory without what could steer a terminal. */
static void add_file_row(struct buffer *t, const char *name, size_t size)
{
    char label[256 + 2];
    snprintf(label, sizeof label, "  %s", name);
    utf8_clean(label, sizeof label);
    add_bytes_row(t, label, size);
}

static void write_table(const struct card *card, struct buffer *t)
{
    char dir[PATH_MAX];
    snprintf(dir, sizeof dir, "%s", card->dir);
    utf8_clean(dir, sizeof dir);
    buffer_addf(t, "%s\n\n", dir);
    add_facts(t, card);
    buffer_addf(t, "\n%zu tensors\n", card->n_tensors);
    for (size_t i = 0; i < DTYPE_COUNT; i++) {
        char label[32], value[32], size[32];
        if (card->dtypes[i].n_tensors == 0)
            continue;
        snprintf(label, sizeof label, "  %s", dtype_name((enum dtype)i));
        snprintf(value, sizeof value, "%zu, %s", card->dtypes[i].n_tensors,
                 terminal_bytes(card->dtypes[i].n_bytes, size, sizeof size));
        add_row(t, label, value);
    }
    buffer_add_string(t, "\nfiles\n");
    for (int i = 0; i < card->n_entries; i++) {
        size_t size;
        if (file_size(card->dir, card->entries[i]->d_name, &size))
            add_file_row(t, card->entries[i]->d_name, size);
    }
    buffer_addf(t, "\nmemory for a context of %d tokens, besides the mapped files\n",
                card->n_context);
    if (card->weights != MODEL_STORED)
        add_bytes_row(t, "  weights that -w makes", card->quantised);
    add_bytes_row(t, "  KV cache", card->memory.kv);
    add_bytes_row(t, "  scratch", card->memory.scratch);
    add_bytes_row(t, "  logits", card->memory.logits);
    if (card->tokenizer_bytes > 0)
        add_bytes_row(t, "  tokenizer", card->tokenizer_bytes);
    add_bytes_row(t, "  drafts", card->draft_bytes);
}

/* ---- for programs ---------------------------------------------------------------------------- */

static void write_json_facts(const struct card *card, struct buffer *t)
{
    for (int i = 0; i < card->n_facts; i++) {
        const struct model_fact *fact = &card->facts[i];
        char number[32];
        number_text(fact->number, number);
        if (fact->type == FACT_TEXT)
            json_out_string(t, fact->key, fact->text);
        else if (fact->type == FACT_BOOL)
            json_out_bool(t, fact->key, fact->number != 0);
        else
            json_out_number(t, fact->key, strtod(number, NULL));
    }
}

static void write_json_totals(const struct card *card, struct buffer *t)
{
    json_out_unsigned(t, "n_tensors", card->n_tensors);
    json_out_open(t, "dtypes", '[');
    for (size_t i = 0; i < DTYPE_COUNT; i++) {
        if (card->dtypes[i].n_tensors == 0)
            continue;
        json_out_open(t, NULL, '{');
        json_out_string(t, "dtype", dtype_name((enum dtype)i));
        json_out_unsigned(t, "n_tensors", card->dtypes[i].n_tensors);
        json_out_unsigned(t, "bytes", card->dtypes[i].n_bytes);
        json_out_close(t, '}');
    }
    json_out_close(t, ']');
    json_out_open(t, "files", '[');
    for (int i = 0; i < card->n_entries; i++) {
        size_t size;
        if (!file_size(card->dir, card->entries[i]->d_name, &size))
            continue;
        json_out_open(t, NULL, '{');
        json_out_string(t, "name", card->entries[i]->d_name);
        json_out_unsigned(t, "bytes", size);
        json_out_close(t, '}');
    }
    json_out_close(t, ']');
}

static void write_json(const struct card *card, struct buffer *t)
{
    json_out_open(t, NULL, '{');
    json_out_string(t, "model", card->dir);
    write_json_facts(card, t);
    write_json_totals(card, t);
    json_out_open(t, "memory", '{');
    json_out_unsigned(t, "context", (uint64_t)card->n_context);
    if (card->weights != MODEL_STORED)
        json_out_unsigned(t, "weight_bytes", card->quantised);
    json_out_unsigned(t, "kv_bytes", card->memory.kv);
    json_out_unsigned(t, "scratch_bytes", card->memory.scratch);
    json_out_unsigned(t, "logits_bytes", card->memory.logits);
    json_out_unsigned(t, "tokenizer_bytes", card->tokenizer_bytes);
    json_out_unsigned(t, "draft_bytes", card->draft_bytes);
    json_out_close(t, '}');
    json_out_close(t, '}');
    buffer_add_string(t, "\n");
}

/* A tokenizer that is missing or refused leaves a model that can still be inspected. */
static bool open_tokenizer(const struct options *o, struct loaded *l, struct err *e)
{
    if (load_tokenizer(l, false, e))
        return true;
    if (e->code != ERR_LOAD)
        return false;
    terminal_note(o->quiet, "no tokenizer: %s", e->text);
    *e = (struct err){.code = ERR_NONE};
    return true;
}

bool command_inspect(const struct options *o, struct err *e)
{
    if (o->n_words > 0 || o->wants_stdin)
        return err_set(e, ERR_USAGE, "tgen inspect takes no words; the model goes behind -m");
    struct loaded l = {.checkpoint = NULL};
    struct card card = {.n_entries = 0};
    struct buffer out = {0};
    bool ok = load_checkpoint(&l, o, e) && load_stored_model(&l, o, e) &&
              open_tokenizer(o, &l, e) && collect(o, &l, &card, e);
    if (ok) {
        if (o->json)
            write_json(&card, &out);
        else
            write_table(&card, &out);
        ok = stream_print(&out, e);
    }
    buffer_free(&out);
    for (int i = 0; i < card.n_entries; i++)
        free(card.entries[i]);
    free(card.entries);
    load_free(&l);
    return ok;
}
