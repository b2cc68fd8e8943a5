/*
 * A language model: what config.json says, bound to the tensors of its checkpoint. Immutable once
 * it is opened and, where that is asked for, quantised, so any number of sessions may share one.
 * Knows nothing of text or time.
 */
#ifndef MODELS_MODEL_H
#define MODELS_MODEL_H

#include "core/checkpoint.h"
#include "core/compute.h"
#include "core/err.h"

struct model;

/* Reads config.json, configures the family, binds every tensor. The checkpoint is borrowed and must
 * outlive the model: its big matrices are used where they lie. NULL and ERR_LOAD with one sentence,
 * ERR_RUNTIME without memory. */
struct model *model_open(struct checkpoint *checkpoint, struct err *e);
void model_close(struct model *m);

/* How the big matrices are held: as they are stored, or quantised when the model is opened. */
enum model_weights { MODEL_STORED, MODEL_Q8, MODEL_Q4 };

/* The memory that model_quantize_begin takes; 0 where there is nothing to do. Matrices that are
 * stored quantised keep their codes, and go to memory only where the pool's kernels read them
 * faster there. */
bool model_quantize_measure(struct model *m, enum model_weights weights, const struct compute *c,
                            size_t *n_bytes, struct err *e);

/* The bits of codes that matrices keep, because they are stored quantised, though `weights` asks
 * for others; 0 where there are none. */
unsigned model_bits_kept(struct model *m, enum model_weights weights);

/* Quantises, before there is a session: begin takes the memory (ERR_RUNTIME where it is not to be
 * had), each step does a part and says how many of the bytes to be read are done, and the caller
 * steps until *done is *total. The pool must be the same all the time, and its level that of every
 * session. A step fails (ERR_LOAD) where a weight is NaN or infinite; the model is of no use then.
 */
bool model_quantize_begin(struct model *m, enum model_weights weights, const struct compute *c,
                          struct err *e);
bool model_quantize_step(struct model *m, struct compute *c, size_t *done, size_t *total,
                         struct err *e);

struct model_info {
    const char *model_type; /* "llama" */
    int vocab_size;         /* logits per token, and the ids that may go in */
    int max_positions;      /* the longest context that the model was made for */
    size_t n_parameters;    /* tied embeddings counted once */
    size_t weight_bytes;    /* as stored */
};
const struct model_info *model_info(const struct model *m);

/* Tokens of a prompt that go through the layers at once with so many threads. */
int model_pass_rows(const struct model *m, int n_threads);

/* eos_token_id of generation_config.json, else of config.json: one or a list. Borrowed. */
const int32_t *model_eos(const struct model *m, int *n);

enum { MODEL_MAX_UNFOLLOWED = 16 };

/* What generation_config.json says of sampling; a member counts only where its flag is set, because
 * a default that transformers would fill in is nobody's wish. */
struct model_defaults {
    bool has_do_sample, has_temperature, has_top_k, has_top_p, has_min_p, has_typical_p;
    bool has_repetition_penalty;
    bool do_sample; /* false: greedy */
    float temperature, top_p, min_p, typical_p, repetition_penalty;
    int top_k;
    const char *unfollowed[MODEL_MAX_UNFOLLOWED + 1]; /* keys that ask for what nothing here does,
                                                         then NULL */
};
const struct model_defaults *model_defaults(const struct model *m);

/* The resolved card, line by line, as `tgen inspect` prints it: what the config and its defaults
 * come to. */
struct model_fact {
    const char *key; /* "num_hidden_layers" */
    enum { FACT_TEXT, FACT_NUMBER, FACT_BOOL } type;
    const char *text; /* FACT_TEXT */
    double number;    /* FACT_NUMBER, FACT_BOOL */
};
const struct model_fact *model_facts(const struct model *m, int *n);

#endif
