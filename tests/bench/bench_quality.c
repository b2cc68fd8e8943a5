/*
 * What quantised weights cost: how far the logits of the golden miniatures move, and the perplexity
 * of a text, with the divergence from what the stored model guesses. Only the weights differ:
 * activations and sums stay in f32.
 *
 *     bench_quality golden DIR...      checkpoints with an expected.json, as tests/golden has them
 *     bench_quality text MODEL FILE [DIR...]   the texts of FILE stand between lines
 *         <|endoftext|>; DIRs are other forms of MODEL, as tgen quantize writes them
 */
#include "core/file.h"
#include "core/json.h"
#include "models/session.h"
#include "tokenizer/tokenizer.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_FORMS = 3, MAX_IDS = 512, MAX_DIRS = 1024, MAX_OTHERS = 13 };

static const char *const forms[N_FORMS] = {"stored", "q8", "q4"};

static void must(bool ok, const struct err *e)
{
    if (ok)
        return;
    fprintf(stderr, "bench_quality: %s\n", e->text);
    exit(1);
}

struct opened {
    struct checkpoint *checkpoint;
    struct model *model;
    struct session *session;
    size_t n_vocab;
};

static struct opened open_model(const char *dir, struct compute *c, enum model_weights weights)
{
    struct err e;
    struct opened o = {.checkpoint = checkpoint_open(dir, &e)};
    must(o.checkpoint, &e);
    o.model = model_open(o.checkpoint, &e);
    must(o.model, &e);
    size_t done = 0, total = 0;
    must(model_quantize_measure(o.model, weights, c, &total, &e), &e);
    if (total)
        must(model_quantize_begin(o.model, weights, c, &e), &e);
    while (done < total)
        must(model_quantize_step(o.model, c, &done, &total, &e), &e);
    const int most = model_info(o.model)->max_positions;
    const int n = most < MAX_IDS ? most : MAX_IDS;
    const struct session_params params = {
        .n_context = n, .n_batch = n, .n_rows = n, .precision = PRECISION_F32};
    o.session = session_new(o.model, c, &params, &e);
    must(o.session, &e);
    o.n_vocab = (size_t)model_info(o.model)->vocab_size;
    return o;
}

static void close_model(struct opened *o)
{
    session_free(o->session);
    model_close(o->model);
    checkpoint_close(o->checkpoint);
}

static const float *score(struct opened *o, const int32_t *ids, int n)
{
    struct err e;
    session_rewind(o->session, 0);
    session_expect(o->session, n);
    const float *const logits = session_score(o->session, ids, n, &e);
    must(logits, &e);
    return logits;
}

/* ---- golden miniatures ----------------------------------------------------------------------- */

struct distance {
    double squares, reference_squares, worst, largest;
};

static struct bytes map(const char *dir, const char *name)
{
    struct err e;
    struct bytes bytes;
    char *const path = file_join(dir, name);
    must(file_map(path, &bytes, &e), &e);
    free(path);
    return bytes;
}

/* Of one sequence of expected.json. */
static void measure(struct opened *o, const char *dir, const struct json *sequence,
                    struct distance *d)
{
    int32_t ids[MAX_IDS];
    int n = 0;
    for (const struct json *j = json_first(json_get(sequence, "ids")); j && n < MAX_IDS;
         j = json_next(j))
        ids[n++] = (int32_t)json_number(j, 0);
    const struct bytes file = map(dir, json_text(json_get(sequence, "logits_f32_file"), ""));
    const float *const logits = score(o, ids, n);
    for (size_t i = 0; i < (size_t)n * o->n_vocab && 4 * i < file.size; i++) {
        float reference;
        memcpy(&reference, file.data + 4 * i, sizeof reference);
        const double off = fabs((double)logits[i] - (double)reference);
        d->squares += off * off;
        d->reference_squares += (double)reference * (double)reference;
        d->worst = fmax(d->worst, off);
        d->largest = fmax(d->largest, fabs((double)reference));
    }
    file_unmap(file);
}

static int compare_double(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Relative rms and worst of every directory; medians and maxima of all below. */
static void run_golden(struct compute *c, char **dirs, int n)
{
    static double rms[N_FORMS][MAX_DIRS], worst[N_FORMS][MAX_DIRS];
    struct err e;
    int used = 0;
    printf("%-44s %10s %10s %10s   rms / rms, and worst / largest\n", "", forms[0], forms[1],
           forms[2]);
    for (int i = 0; i < n && used < MAX_DIRS; i++) {
        const struct bytes bytes = map(dirs[i], "expected.json");
        struct json *const expected = json_parse((const char *)bytes.data, bytes.size, &e);
        const char *const kind = json_text(json_get(expected, "kind"), "causal-lm");
        printf("%-44s", dirs[i]);
        for (int form = 0; form < N_FORMS && strcmp(kind, "causal-lm") == 0; form++) {
            struct opened o = open_model(dirs[i], c, (enum model_weights)form);
            struct distance d = {0};
            for (const struct json *s = json_first(json_get(expected, "sequences")); s;
                 s = json_next(s))
                measure(&o, dirs[i], s, &d);
            rms[form][used] = sqrt(d.squares / d.reference_squares);
            worst[form][used] = d.worst / d.largest;
            printf(" %.2g %.2g ", rms[form][used], worst[form][used]);
            close_model(&o);
        }
        printf("\n");
        used += strcmp(kind, "causal-lm") == 0;
        json_free(expected);
        file_unmap(bytes);
    }
    for (int form = 0; form < N_FORMS && used; form++) {
        qsort(rms[form], (size_t)used, sizeof **rms, compare_double);
        qsort(worst[form], (size_t)used, sizeof **worst, compare_double);
        printf("%-6s rms: median %.2g, largest %.2g; worst: median %.2g, largest %.2g\n",
               forms[form], rms[form][used / 2], rms[form][used - 1], worst[form][used / 2],
               worst[form][used - 1]);
    }
}

/* ---- a text ---------------------------------------------------------------------------------- */

/* Sums over all tokens that a model had to guess. */
struct losses {
    double loss; /* -ln of what it gave the right one */
    double
        divergence; /* Kullback and Leibler 1951, of its guesses from those of the stored model */
    size_t n;
};

/* ln of the sum of exp(row). */
static double log_sum(const float *row, size_t n)
{
    double highest = -INFINITY, sum = 0;
    for (size_t v = 0; v < n; v++)
        highest = fmax(highest, (double)row[v]);
    for (size_t v = 0; v < n; v++)
        sum += exp((double)row[v] - highest);
    return highest + log(sum);
}

/* One row of logits, and those of the stored model, before the token id. */
static void add_loss(struct losses *l, const float *row, const float *stored, size_t n, int32_t id)
{
    const double total = log_sum(row, n), stored_total = log_sum(stored, n);
    l->loss += total - (double)row[id];
    for (size_t v = 0; v < n; v++) {
        const double p = (double)stored[v] - stored_total;
        l->divergence += exp(p) * (p - ((double)row[v] - total));
    }
    l->n++;
}

/* The ids of each text, one list behind the other; a text begins where *starts says. */
static void encode(const char *dir, const char *path, struct ids *all, struct ids *starts)
{
    static const char mark[] = "<|endoftext|>\n";
    struct err e;
    struct bytes text;
    struct tokenizer_files files = {.tokenizer_json = map(dir, "tokenizer.json")};
    struct tokenizer *const tokenizer = tokenizer_load(&files, &e);
    must(tokenizer, &e);
    struct encoder *const encoder = encoder_new(tokenizer, &e);
    must(encoder && file_map(path, &text, &e), &e);
    const char *at = (const char *)text.data, *const end = at + text.size;
    while (at < end) {
        const char *const found = memmem(at, (size_t)(end - at), mark, sizeof mark - 1);
        size_t n = (size_t)((found ? found : end) - at);
        while (n && at[n - 1] == '\n')
            n--;
        must(ids_push(starts, (int32_t)all->n, &e) &&
                 encoder_encode(encoder, at, n, ENCODE_ADD_SPECIAL, all, &e),
             &e);
        at = found ? found + sizeof mark - 1 : end;
    }
    must(ids_push(starts, (int32_t)all->n, &e), &e);
    encoder_free(encoder);
    tokenizer_free(tokenizer);
    file_unmap(files.tokenizer_json);
    file_unmap(text);
}

/* The forms of dir, then the other directories, all of the same vocabulary. */
static void run_text(struct compute *c, const char *dir, const char *path, char **others,
                     int n_others)
{
    struct ids all = {0}, starts = {0};
    struct opened models[N_FORMS + MAX_OTHERS];
    struct losses losses[N_FORMS + MAX_OTHERS] = {{0}};
    const int n_models = N_FORMS + n_others;
    encode(dir, path, &all, &starts);
    for (int m = 0; m < n_models; m++)
        models[m] = m < N_FORMS ? open_model(dir, c, (enum model_weights)m)
                                : open_model(others[m - N_FORMS], c, MODEL_STORED);
    const size_t n_vocab = models[0].n_vocab;
    for (size_t i = 0; i + 1 < starts.n; i++) {
        const int32_t *const ids = all.id + starts.id[i];
        const int n = starts.id[i + 1] - starts.id[i], fitting = n < MAX_IDS ? n : MAX_IDS;
        const float *const stored = score(&models[0], ids, fitting);
        for (int m = 0; m < n_models; m++) {
            const float *const row = m ? score(&models[m], ids, fitting) : stored;
            for (size_t k = 1; k < (size_t)fitting; k++)
                add_loss(&losses[m], row + (k - 1) * n_vocab, stored + (k - 1) * n_vocab, n_vocab,
                         ids[k]);
        }
    }
    for (int m = 0; m < n_models; m++) {
        const double n = (double)losses[m].n;
        printf("%-6s perplexity %.4f, divergence %.4f over %.0f tokens\n",
               m < N_FORMS ? forms[m] : others[m - N_FORMS], exp(losses[m].loss / n),
               losses[m].divergence / n, n);
        close_model(&models[m]);
    }
    ids_free(&all);
    ids_free(&starts);
}

int main(int argc, char **argv)
{
    struct err e;
    struct compute *const c = compute_open(0, NULL, &e);
    must(c, &e);
    if (argc >= 3 && strcmp(argv[1], "golden") == 0)
        run_golden(c, argv + 2, argc - 2);
    else if (argc >= 4 && argc - 4 <= MAX_OTHERS && strcmp(argv[1], "text") == 0)
        run_text(c, argv[2], argv[3], argv + 4, argc - 4);
    else
        fprintf(stderr, "usage: bench_quality golden DIR... | text MODEL FILE [DIR...]\n");
    compute_close(c);
    return 0;
}
