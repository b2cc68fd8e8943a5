/*
 * Sources: compressed-tensors src/compressed_tensors/quantization/{quant_config,quant_scheme,
 * quant_args}.py for the keys; vllm's compressed_tensors.py for what it can run: int-quantized
 * wants activations in 8 bits for each token, which is also how it is computed here.
 *
 * Members other than those that change are copied as they are written.
 */
#include "models/export_config.h"

#include "core/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_bytes(FILE *out, struct bytes text)
{
    fwrite(text.data, 1, text.size, out);
}

static bool is_key(struct bytes key, const char *name)
{
    return key.size == strlen(name) && memcmp(key.data, name, key.size) == 0;
}

static void print_key(FILE *out, struct bytes key, bool *first)
{
    fprintf(out, "%s\n  \"", *first ? "" : ",");
    for (size_t i = 0; i < key.size; i++) {
        const bool escaped = key.data[i] == '"' || key.data[i] == '\\' || key.data[i] < 0x20;
        fprintf(out, escaped ? "\\u%04x" : "%c", key.data[i]);
    }
    fprintf(out, "\": ");
    *first = false;
}

/* ---- the groups ---- */

static bool same_scheme(const struct export_module *a, const struct export_module *b)
{
    return a->type == b->type && a->group == b->group;
}

static void print_names(FILE *out, const struct export_module *modules, size_t n,
                        const struct export_module *like, bool first)
{
    for (size_t i = 0; i < n; i++) {
        const bool listed = like ? modules[i].is_quantised && same_scheme(&modules[i], like)
                                 : !modules[i].is_quantised;
        if (!listed)
            continue;
        fprintf(out, first ? "" : ", ");
        json_print_text(out, modules[i].name);
        first = false;
    }
}

/* The scheme of a group. The one that most modules have is that of all nn.Linear; a head is none in
 * every program, so it is named. */
static void print_group(FILE *out, const struct export_module *modules, size_t n, size_t number,
                        const struct export_module *like, bool all)
{
    const int bits = like->type == QUANT_PACKED4 ? 4 : 8;
    fprintf(out, "%s\n      \"group_%zu\": {\"targets\": [", number ? "," : "", number);
    if (all)
        fprintf(out, "\"Linear\"");
    for (size_t i = 0; all && i < n; i++)
        if (modules[i].is_head && modules[i].is_quantised && same_scheme(&modules[i], like)) {
            fprintf(out, ", ");
            json_print_text(out, modules[i].name);
        }
    if (!all)
        print_names(out, modules, n, like, true);
    fprintf(out,
            "],\n        \"weights\": {\"num_bits\": %d, \"type\": \"int\", \"symmetric\": true, ",
            bits);
    if (like->group)
        fprintf(out, "\"strategy\": \"group\", \"group_size\": %zu, ", like->group);
    else
        fprintf(out, "\"strategy\": \"channel\", \"group_size\": null, ");
    fprintf(out, "\"dynamic\": false},\n        \"input_activations\": ");
    if (like->type == QUANT_INT8)
        fprintf(out, "{\"num_bits\": 8, \"type\": \"int\", \"symmetric\": true, \"strategy\": "
                     "\"token\", \"dynamic\": true}");
    else
        fprintf(out, "null");
    fprintf(out, ", \"output_activations\": null}");
}

/* The module whose scheme most modules have. */
static size_t most_common(const struct export_module *modules, size_t n)
{
    size_t best = n, best_count = 0;
    for (size_t i = 0; i < n; i++) {
        size_t count = 0;
        for (size_t j = 0; modules[i].is_quantised && j < n; j++)
            count += modules[j].is_quantised && same_scheme(&modules[i], &modules[j]);
        if (count > best_count) {
            best = i;
            best_count = count;
        }
        if (2 * best_count >= n)
            break; /* which keeps this short where experts come by the thousands */
    }
    return best;
}

static void print_groups(FILE *out, const struct export_module *modules, size_t n)
{
    const size_t common = most_common(modules, n);
    size_t number = 1;
    print_group(out, modules, n, 0, &modules[common], true);
    for (size_t i = 0; i < n; i++) {
        bool seen = !modules[i].is_quantised || same_scheme(&modules[i], &modules[common]);
        for (size_t j = 0; j < i && !seen; j++)
            seen = modules[j].is_quantised && same_scheme(&modules[i], &modules[j]);
        if (!seen)
            print_group(out, modules, n, number++, &modules[i], false);
    }
}

static void print_quantization(FILE *out, const struct export_module *modules, size_t n,
                               enum model_weights weights)
{
    fprintf(out,
            "{\n    \"quant_method\": \"compressed-tensors\",\n    \"format\": \"%s\",\n"
            "    \"quantization_status\": \"compressed\",\n    \"config_groups\": {",
            weights == MODEL_Q8 ? "int-quantized" : "pack-quantized");
    print_groups(out, modules, n);
    fprintf(out, "\n    },\n    \"ignore\": [");
    print_names(out, modules, n, NULL, true);
    fprintf(out, "],\n    \"kv_cache_scheme\": null\n  }");
}

/* ---- the file ---- */

/* An object without the members that change, and without its end. */
static bool copy_members(FILE *out, struct bytes text, bool untie, bool *first, struct err *e)
{
    struct json_scan s;
    struct bytes key, value;
    json_scan_begin(&s, (const char *)text.data, text.size, e);
    bool ok = json_scan_object(&s);
    fprintf(out, "{");
    while (ok && json_scan_member(&s, &key)) {
        const bool nested = is_key(key, "text_config"), tie = is_key(key, "tie_word_embeddings");
        const bool dropped = is_key(key, "quantization_config") || (untie && tie);
        bool first_nested = true;
        if (!dropped)
            print_key(out, key, first); /* before the next call spends it */
        ok = json_scan_skip(&s, &value);
        if (!ok || dropped)
            continue;
        if (nested && untie && value.data[0] == '{') {
            ok = copy_members(out, value, untie, &first_nested, e);
            fprintf(out, "}");
        } else {
            print_bytes(out, value);
        }
    }
    if (untie)
        fprintf(out, "%s\n  \"tie_word_embeddings\": false", *first ? "" : ",");
    *first = *first && !untie;
    ok = ok && json_scan_done(&s);
    json_scan_end(&s);
    return ok;
}

bool export_config(struct bytes original, const struct export_module *modules, size_t n_modules,
                   enum model_weights weights, bool untie, struct bytes *text, struct err *e)
{
    char *data = NULL;
    bool first = true;
    FILE *const out = open_memstream(&data, &text->size);
    if (!out)
        return err_no_memory(e);
    const bool ok = copy_members(out, original, untie, &first, e);
    fprintf(out, "%s\n  \"quantization_config\": ", first ? "" : ",");
    print_quantization(out, modules, n_modules, weights);
    fprintf(out, "\n}\n");
    const bool failed = ferror(out) != 0;
    if (fclose(out) != 0 || failed || !ok) {
        free(data);
        return ok ? err_no_memory(e) : false;
    }
    text->data = (unsigned char *)data;
    return true;
}
