/*
 * The list of families, a line each, looking one up by the model_type of config.json, and having it
 * read that file. Knows nothing of what a family is: that is in families/, and in family_base.c
 * where several share it.
 */
#include "models/family.h"

#include <string.h>

#define FAMILIES(X)                                                                                \
    X(apertus)                                                                                     \
    X(arcee)                                                                                       \
    X(bert)                                                                                        \
    X(biogpt)                                                                                      \
    X(bloom)                                                                                       \
    X(codegen)                                                                                     \
    X(cohere)                                                                                      \
    X(cohere2)                                                                                     \
    X(ctrl)                                                                                        \
    X(deepseek_v2)                                                                                 \
    X(deepseek_v3)                                                                                 \
    X(ernie4_5)                                                                                    \
    X(exaone4)                                                                                     \
    X(falcon)                                                                                      \
    X(gemma)                                                                                       \
    X(gemma2)                                                                                      \
    X(gemma3_text)                                                                                 \
    X(glm)                                                                                         \
    X(glm4)                                                                                        \
    X(glm4_moe)                                                                                    \
    X(gpt2)                                                                                        \
    X(gpt_bigcode)                                                                                 \
    X(gpt_neo)                                                                                     \
    X(gpt_neox)                                                                                    \
    X(gpt_oss)                                                                                     \
    X(gptj)                                                                                        \
    X(granite)                                                                                     \
    X(granitemoe)                                                                                  \
    X(hunyuan_v1_dense)                                                                            \
    X(llama)                                                                                       \
    X(minicpm)                                                                                     \
    X(ministral3)                                                                                  \
    X(mistral)                                                                                     \
    X(mixtral)                                                                                     \
    X(mpt)                                                                                         \
    X(nemotron)                                                                                    \
    X(olmo)                                                                                        \
    X(olmo2)                                                                                       \
    X(olmo3)                                                                                       \
    X(olmoe)                                                                                       \
    X(openai_gpt)                                                                                  \
    X(opt)                                                                                         \
    X(phi)                                                                                         \
    X(phi3)                                                                                        \
    X(phimoe)                                                                                      \
    X(qwen2)                                                                                       \
    X(qwen2_moe)                                                                                   \
    X(qwen3)                                                                                       \
    X(qwen3_moe)                                                                                   \
    X(roberta)                                                                                     \
    X(seed_oss)                                                                                    \
    X(smollm3)                                                                                     \
    X(stablelm)                                                                                    \
    X(starcoder2)                                                                                  \
    X(xglm)

#define DECLARE(name) extern const struct family family_##name;
FAMILIES(DECLARE)

#define ENTRY(name) &family_##name,
const struct family *const family_table[] = {FAMILIES(ENTRY) NULL};

static bool answers_to(const struct family *family, const char *model_type)
{
    if (strcmp(family->model_type, model_type) == 0)
        return true;
    for (const char *const *alias = family->aliases; alias && *alias; alias++)
        if (strcmp(*alias, model_type) == 0)
            return true;
    return false;
}

const struct family *family_find(const char *model_type)
{
    for (size_t i = 0; family_table[i]; i++)
        if (answers_to(family_table[i], model_type))
            return family_table[i];
    return NULL;
}

const struct family *family_find_class(const char *class)
{
    for (size_t i = 0; family_table[i]; i++)
        if (family_table[i]->class && strcmp(family_table[i]->class, class) == 0)
            return family_table[i];
    return NULL;
}

const char *family_stem(const struct family *family, enum role role)
{
    const struct tensor_entry *entry = family->tensors;
    while (entry->role != role)
        entry++;
    return entry->stem;
}

bool family_configure(const struct family *family, struct config *c, struct model_spec *spec)
{
    const char *const text = family->defaults;
    struct json *const defaults = text ? json_parse(text, strlen(text), c->e) : NULL;
    if (text && !defaults)
        return false;
    *spec = (struct model_spec){.embedding_scale = 1,
                                .residual_multiplier = 1,
                                .logit_scale = 1,
                                .alibi_scale = 1,
                                .alibi_bias_max = 8,
                                .qkv_groups = 1,
                                .moe.routed_scaling_factor = 1};
    c->defaults = defaults;
    family->configure(c, spec);
    c->defaults = NULL;
    json_free(defaults);
    if (!spec->embedding_size)
        spec->embedding_size = spec->hidden_size;
    return !c->failed;
}
