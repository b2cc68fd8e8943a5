/*
 * Frequencies and angles are double: far positions lose no digits, and they are computed once per
 * position, not per head. Only the rotation itself is f32. Owns nothing: cosines and sines are the
 * caller's, longrope's factors the model's. What config.json means by a type is
 * models/config_rope.c's business.
 */
#include "core/rope.h"

#include "core/kernels/kernels.h"

#include <limits.h>
#include <math.h>
#include <string.h>

static const double PI = 3.14159265358979323846;

static const char *const type_names[] = {
    [ROPE_DEFAULT] = "default", [ROPE_LINEAR] = "linear", [ROPE_DYNAMIC] = "dynamic",
    [ROPE_LLAMA3] = "llama3",   [ROPE_YARN] = "yarn",     [ROPE_LONGROPE] = "longrope",
};

bool rope_type_parse(const char *name, enum rope_type *out)
{
    for (size_t i = 0; i < ARRAY_LEN(type_names); i++) {
        if (strcmp(type_names[i], name) == 0) {
            *out = (enum rope_type)i;
            return true;
        }
    }
    if (strcmp(name, "su") != 0) /* Phi-3's name for it before there was a common one */
        return false;
    *out = ROPE_LONGROPE;
    return true;
}

const char *rope_type_name(enum rope_type type)
{
    return type_names[type];
}

double rope_default_attention_factor(const struct rope *r)
{
    if (r->factor <= 1)
        return 1;
    if (r->type == ROPE_YARN)
        return 0.1 * log(r->factor) + 1; /* Peng et al. 2023, eq. 22 */
    if (r->type == ROPE_LONGROPE)
        return sqrt(1 + log(r->factor) / log(r->original_max_position_embeddings));
    return 1;
}

bool rope_depends_on_length(const struct rope *r)
{
    return r->type == ROPE_DYNAMIC || r->type == ROPE_LONGROPE;
}

int rope_same_until(const struct rope *r, int length)
{
    if (!rope_depends_on_length(r))
        return INT_MAX;
    if (length <= r->original_max_position_embeddings)
        return r->original_max_position_embeddings;
    return r->type == ROPE_LONGROPE ? INT_MAX : length;
}

/* The base that stretches the longest wave to the length, as transformers' dynamic NTK does. */
static double dynamic_theta(const struct rope *r, int length)
{
    const double original = r->original_max_position_embeddings;
    if (length <= original)
        return r->theta;
    const double stretch = r->factor * length / original - (r->factor - 1);
    return r->theta * pow(stretch, r->n_dims / (r->n_dims - 2.0));
}

static double llama3_frequency(const struct rope *r, double frequency)
{
    const double turns = r->original_max_position_embeddings * frequency / (2 * PI);
    if (turns < r->low_freq_factor)
        return frequency / r->factor;
    if (turns > r->high_freq_factor)
        return frequency;
    const double smooth = (turns - r->low_freq_factor) / (r->high_freq_factor - r->low_freq_factor);
    return (1 - smooth) * frequency / r->factor + smooth * frequency;
}

/* The (fractional) dimension whose wave turns n_turns times within the original length. */
static double yarn_dimension(const struct rope *r, double n_turns)
{
    return r->n_dims * log(r->original_max_position_embeddings / (n_turns * 2 * PI)) /
           (2 * log(r->theta));
}

static double yarn_frequency(const struct rope *r, int i, double frequency)
{
    double low = yarn_dimension(r, r->beta_fast);
    double high = yarn_dimension(r, r->beta_slow);
    if (r->truncate) {
        low = floor(low);
        high = ceil(high);
    }
    low = fmax(low, 0);
    high = fmin(high, r->n_dims - 1);
    if (low == high)
        high += 0.001; /* as the original does, against dividing by zero */
    const double ramp = fmin(fmax((i - low) / (high - low), 0), 1);
    return frequency / r->factor * ramp + frequency * (1 - ramp);
}

void rope_frequencies(const struct rope *r, int length, double *inv_freq)
{
    const double theta = r->type == ROPE_DYNAMIC ? dynamic_theta(r, length) : r->theta;
    const double *const stretch =
        length > r->original_max_position_embeddings ? r->long_factor : r->short_factor;
    for (int i = 0; i < r->n_dims / 2; i++) {
        const double frequency = pow(theta, -2.0 * i / r->n_dims);
        switch (r->type) {
        case ROPE_DEFAULT:
        case ROPE_DYNAMIC:
            inv_freq[i] = frequency;
            break;
        case ROPE_LINEAR:
            inv_freq[i] = frequency / r->factor;
            break;
        case ROPE_LLAMA3:
            inv_freq[i] = llama3_frequency(r, frequency);
            break;
        case ROPE_YARN:
            inv_freq[i] = yarn_frequency(r, i, frequency);
            break;
        case ROPE_LONGROPE:
            inv_freq[i] = frequency / stretch[i];
            break;
        }
    }
}

double rope_attention_factor(const struct rope *r, int length)
{
    const bool is_long = length > r->original_max_position_embeddings;
    return is_long && r->long_attention_factor > 0 ? r->long_attention_factor : r->attention_factor;
}

void rope_angles(const struct rope *r, const double *inv_freq, double factor, int position,
                 float *cos_out, float *sin_out)
{
    for (int i = 0; i < r->n_dims / 2; i++) {
        const double angle = position * inv_freq[i];
        cos_out[i] = (float)(cos(angle) * factor);
        sin_out[i] = (float)(sin(angle) * factor);
    }
}

static void rotate_interleaved(float *x, const float *cos_in, const float *sin_in, size_t n_pairs)
{
    for (size_t i = 0; i < n_pairs; i++) {
        const float a = x[2 * i], b = x[2 * i + 1];
        x[2 * i] = a * cos_in[i] - b * sin_in[i];
        x[2 * i + 1] = b * cos_in[i] + a * sin_in[i];
    }
}

void rope_rotate(const struct rope *r, const struct kernels *kernels, float *head,
                 const float *cos_in, const float *sin_in)
{
    if (r->interleaved)
        rotate_interleaved(head, cos_in, sin_in, (size_t)r->n_dims / 2);
    else
        kernels->rope_half(head, cos_in, sin_in, (size_t)r->n_dims);
}
