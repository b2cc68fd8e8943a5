/*
 * The load pipeline: config.json -> family -> spec -> tensors bound -> card. Every step can refuse,
 * with one sentence. Owns the arena with all that the model is, but not the weights: matrices are
 * views into the checkpoint. Quantising is quantize.c's business, running session.c's.
 */
#include "models/model.h"

#include "models/card.h"
#include "models/internal.h"
#include "models/parts.h"
#include "models/quantize.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The small JSON files of the directory, alive while the model is opened. */
struct sources {
    struct json *config;     /* config.json */
    struct json *generation; /* generation_config.json, NULL where absent */
};

static bool read_json(struct checkpoint *checkpoint, const char *name, struct json **out,
                      struct err *e)
{
    struct bytes bytes;
    *out = NULL;
    if (!checkpoint_file(checkpoint, name, &bytes, e))
        return false;
    if (!bytes.data)
        return true;
    *out = json_parse((const char *)bytes.data, bytes.size, e);
    return *out || err_prefix(e, "%s", name);
}

static bool read_sources(struct checkpoint *checkpoint, struct sources *s, struct err *e)
{
    if (!read_json(checkpoint, "config.json", &s->config, e))
        return false;
    if (!s->config)
        return err_set(e, ERR_LOAD, "there is no config.json");
    return read_json(checkpoint, "generation_config.json", &s->generation, e);
}

static bool unknown_family(const char *model_type, struct err *e)
{
    char known[sizeof e->text - 128] = "";
    for (size_t i = 0; family_table[i]; i++) {
        const size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "",
                 family_table[i]->model_type);
    }
    return err_set(e, ERR_LOAD, "the model_type \"%.64s\" is not supported; there are %s",
                   model_type, known);
}

static const struct family *find_family(const struct json *config, struct err *e)
{
    const char *const name = json_text(json_get(config, "model_type"), NULL);
    const char *const class = json_text(json_first(json_get(config, "architectures")), "");
    const struct family *const family = name ? family_find(name) : family_find_class(class);
    if (!family && name)
        unknown_family(name, e);
    else if (!family)
        err_set(e, ERR_LOAD, "\"model_type\" is missing");
    return family;
}

static bool configure(struct model *m, const struct json *root, struct err *e)
{
    struct config c;
    if (!config_init(&c, root, &m->arena, e))
        return false;
    m->is_nested = c.root != root; /* a multimodal file, whose own model_type is another */
    m->family = find_family(c.root, e);
    if (!m->family || !family_configure(m->family, &c, &m->spec))
        return false;
    const struct json *quant = config_any(&c, "quantization_config");
    if (!quant)
        quant = json_get(root, "quantization_config"); /* multimodal: beside the text model's */
    quant_config_read(&c, quant, &m->quant);
    config_check_unread(&c, m->family->model_type);
    return !c.failed;
}

/* The longest context: what the config says, or what a scaling of the positions stretches it to.
 * Only a table of learned positions really ends there. */
static int max_positions(const struct model_spec *spec)
{
    const struct rope *const rope = &spec->ropes[0];
    const int given = spec->max_position_embeddings;
    double stretched = given;
    if (spec->positions != POSITIONS_ROPE)
        return given;
    if (rope->type == ROPE_YARN || rope->type == ROPE_DYNAMIC)
        stretched = rope->factor * rope->original_max_position_embeddings;
    return stretched > given ? (int)fmin(stretched, CONFIG_MAX_SIZE) : given;
}

static bool describe(struct model *m, const struct bind_totals *totals, struct err *e)
{
    m->info = (struct model_info){
        .model_type = m->family->model_type,
        .vocab_size = m->spec.vocab_size,
        .max_positions = max_positions(&m->spec),
        .n_parameters = totals->n_parameters,
        .weight_bytes = totals->n_bytes,
    };
    m->facts = card_write(m->family, &m->spec, totals, &m->arena, &m->n_facts);
    return m->facts ? true : err_no_memory(e);
}

/* Where a multimodal checkpoint keeps its text model: transformers 4 and 5 differ, and so do
 * Idefics3 and SmolVLM. */
static const char *find_nest(const struct model *m, const struct checkpoint *checkpoint)
{
    static const char *const nests[] = {"language_model.", "model.language_model.",
                                        "model.text_model."};
    const size_t n = checkpoint_n_tensors(checkpoint);
    for (size_t k = 0; m->is_nested && k < ARRAY_LEN(nests); k++)
        for (size_t i = 0; i < n; i++)
            if (strncmp(checkpoint_tensor_at(checkpoint, i)->name, nests[k], strlen(nests[k])) == 0)
                return nests[k];
    return "";
}

static bool bind(struct model *m, const struct checkpoint *checkpoint, struct bind_totals *totals,
                 struct err *e)
{
    m->nest = find_nest(m, checkpoint);
    return bind_weights(m->family, m->nest, &m->spec, &m->quant, checkpoint, &m->arena, &m->weights,
                        totals, e);
}

static bool load(struct model *m, struct checkpoint *checkpoint, const struct sources *s,
                 struct err *e)
{
    struct bind_totals totals = {0};
    return (configure(m, s->config, e) || err_prefix(e, "config.json")) &&
           generation_config_read(s->generation, s->config, &m->arena, &m->generation, e) &&
           checkpoint_load_tensors(checkpoint, e) && bind(m, checkpoint, &totals, e) &&
           describe(m, &totals, e);
}

struct model *model_open(struct checkpoint *checkpoint, struct err *e)
{
    struct sources sources = {0};
    struct model *m = calloc(1, sizeof *m);
    if (!m) {
        err_no_memory(e);
        return NULL;
    }
    m->checkpoint = checkpoint;
    if (!read_sources(checkpoint, &sources, e) || !load(m, checkpoint, &sources, e)) {
        err_prefix(e, "%s", checkpoint_dir(checkpoint));
        model_close(m);
        m = NULL;
    }
    json_free(sources.config);
    json_free(sources.generation);
    return m;
}

void model_close(struct model *m)
{
    if (!m)
        return;
    quantize_free(m->quantizing);
    arena_free(&m->arena);
    free(m);
}

int model_pass_rows(const struct model *m, int n_threads)
{
    return parts_rows_of(&m->spec, &m->weights, n_threads).pass;
}

const struct model_info *model_info(const struct model *m)
{
    return &m->info;
}

const int32_t *model_eos(const struct model *m, int *n)
{
    *n = m->generation.n_eos;
    return m->generation.eos;
}

const struct model_defaults *model_defaults(const struct model *m)
{
    return &m->generation.defaults;
}

const struct model_fact *model_facts(const struct model *m, int *n)
{
    *n = m->n_facts;
    return m->facts;
}
