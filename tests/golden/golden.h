/* What the tests of this shelf share: a model, reading ids and files, the greedy choice. */
#ifndef TESTS_GOLDEN_GOLDEN_H
#define TESTS_GOLDEN_GOLDEN_H

#include "tests/check.h"

#include "core/file.h"
#include "core/json.h"
#include "models/model.h"

#include <stdlib.h>

enum { GOLDEN_MAX_IDS = 512 };

static inline struct model *golden_open_model(const char *dir, struct checkpoint **checkpoint)
{
    struct err e;
    *checkpoint = checkpoint_open(dir, &e);
    struct model *const model = *checkpoint ? model_open(*checkpoint, &e) : NULL;
    if (!model)
        fail_msg("%s", e.text);
    return model;
}

struct golden_ids {
    int32_t id[GOLDEN_MAX_IDS];
    int n;
};

static inline struct golden_ids golden_read_ids(const struct json *list)
{
    struct golden_ids ids = {.n = 0};
    for (const struct json *j = json_first(list); j; j = json_next(j)) {
        assert_true(ids.n < GOLDEN_MAX_IDS);
        ids.id[ids.n++] = (int32_t)json_number(j, -1);
    }
    assert_true(ids.n > 0);
    return ids;
}

static inline struct bytes golden_map(const char *dir, const char *name)
{
    struct err e;
    struct bytes bytes;
    char *const path = file_join(dir, name);
    if (!file_map(path, &bytes, &e))
        fail_msg("%s: %s", path, e.text);
    free(path);
    return bytes;
}

static inline struct json *golden_read_json(const char *dir, const char *name)
{
    struct err e;
    const struct bytes bytes = golden_map(dir, name);
    struct json *const root = json_parse((const char *)bytes.data, bytes.size, &e);
    assert_non_null(root);
    file_unmap(bytes);
    return root;
}

/* The smallest id among those with the largest logit. */
static inline int32_t golden_largest(const float *logits, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (logits[i] > logits[best])
            best = i;
    return (int32_t)best;
}

#endif
