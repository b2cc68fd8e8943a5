/*
 * Any bytes as JSON: no crash, and a tree that holds together where there is one.
 */
#include "core/json.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Visits every node, depth first; what a node says of itself must agree. */
static void visit(const struct json *j)
{
    size_t n = 0;
    for (const struct json *c = json_first(j); c; c = json_next(c), n++) {
        const char *key = json_key(c);
        if ((key != NULL) != (json_type(j) == JSON_OBJECT) || (key && !json_get(j, key)))
            abort();
        visit(c);
    }
    int64_t whole;
    bool is_whole = json_integer(j, INT64_MIN, INT64_MAX, &whole);
    if (n != json_count(j) || (is_whole && json_number(j, 0.5) != (double)whole) ||
        (json_type(j) == JSON_STRING) != (json_text(j, NULL) != NULL))
        abort();
    const char *twice;
    struct err e;
    if (json_find_duplicate(j, &twice, &e) && twice && !json_get(j, twice))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err e = {0};
    struct json *root = json_parse((const char *)data, size, &e);
    if (root)
        visit(root);
    else if (e.code == ERR_NONE || !*e.text || strlen(e.text) >= sizeof e.text)
        abort();
    json_free(root);
    return 0;
}
