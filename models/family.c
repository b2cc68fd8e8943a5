/* The list of families: a line each. */
#include "models/family.h"

#include <string.h>

extern const struct family family_gpt2, family_llama, family_mistral, family_qwen2, family_qwen3;

const struct family *const family_table[] = {
    &family_gpt2,    //
    &family_llama,   //
    &family_mistral, //
    &family_qwen2,   //
    &family_qwen3,   //
    NULL,
};

const struct family *family_find(const char *model_type)
{
    for (size_t i = 0; family_table[i]; i++)
        if (strcmp(family_table[i]->model_type, model_type) == 0)
            return family_table[i];
    return NULL;
}
