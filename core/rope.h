/*
 * Rotary position embeddings (Su et al. 2021): the frequencies, with every scaling that Hugging
 * Face configs name, and the angles of a position. Formulas: transformers/modeling_rope_utils.py.
 * Owns nothing.
 */
#ifndef CORE_ROPE_H
#define CORE_ROPE_H

#include "core/base.h"

struct kernels;

enum rope_type {
    ROPE_DEFAULT,
    ROPE_LINEAR,  /* positions divided by factor */
    ROPE_DYNAMIC, /* NTK: theta grows with the length beyond the original one */
    ROPE_LLAMA3,  /* low frequencies divided by factor, high ones kept, a ramp between */
    ROPE_YARN,    /* Peng et al. 2023 */
    ROPE_LONGROPE /* Ding et al. 2024: a factor per frequency, one list for short and one for long
                     texts */
};

struct rope {
    enum rope_type type;
    bool interleaved; /* pairs are (2i, 2i + 1), as in GPT-J, not (i, i + n_dims / 2) */
    int n_dims;       /* values of a head that rotate, even; the rest passes */
    double theta;
    double factor;
    int original_max_position_embeddings; /* the length before scaling */
    double attention_factor;              /* multiplies cos and sin */
    double long_attention_factor;         /* the same beyond the original length; 0: no other */
    double low_freq_factor;               /* llama3 */
    double high_freq_factor;
    double beta_fast; /* yarn */
    double beta_slow;
    bool truncate;              /* yarn: whole dimensions bound the ramp */
    const double *short_factor; /* longrope, [n_dims / 2] each */
    const double *long_factor;
};

/* "default", "linear", ...; false where there is none of that name ("su" is longrope). */
bool rope_type_parse(const char *name, enum rope_type *out);
const char *rope_type_name(enum rope_type type);

/* yarn's and longrope's attention_factor where the config does not give one. */
double rope_default_attention_factor(const struct rope *r);

/* True where the frequencies change with the length of the text. */
bool rope_depends_on_length(const struct rope *r);

/* The longest text that rotates like one of `length` tokens. */
int rope_same_until(const struct rope *r, int length);

/* inv_freq[n_dims / 2] for a text of `length` tokens. */
void rope_frequencies(const struct rope *r, int length, double *inv_freq);

/* What multiplies cos and sin in a text of `length` tokens. */
double rope_attention_factor(const struct rope *r, int length);

/* cos and sin [n_dims / 2] of position * inv_freq, times factor. */
void rope_angles(const struct rope *r, const double *inv_freq, double factor, int position,
                 float *cos_out, float *sin_out);

/* Rotates the first n_dims values of a head in place. */
void rope_rotate(const struct rope *r, const struct kernels *kernels, float *head,
                 const float *cos_in, const float *sin_in);

#endif
