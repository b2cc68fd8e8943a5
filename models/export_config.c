/*
 * Sources: compressed-tensors src/compressed_tensors/quantization/{quant_config,quant_scheme,
 * quant_args}.py for the keys; vllm's compressed_tensors.py for what it can run: int-quantized
 * wants activations in 8 bits for each token, which is also how it is computed here. Targets and
 * the format of each group are such that transformers 4.47 to 5.15 find the same scheme.
 *
 * Members other than those that change are copied as they are written.
 */
#include "models/export_config.h"

#include "core/file.h"
#include "core/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_bytes(FILE *out, struct bytes text)
{
    fwrite(text.data, 1, text.size, out);
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

/* ---- the names ------------------------------------------------------------------------------- */

/* Where versions of other programs differ in what stands around a name, it is a pattern, in
 * Python's syntax: of a multimodal model the text model is moved about. */
static void print_escaped(FILE *out, const char *name, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char c = name[i];
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                           (c >= '0' && c <= '9') || c == '_' || c == '-';
        fprintf(out, plain ? "%c" : c == '.' ? "\\\\." : ".", c);
    }
}

/* The name without `start`, where it begins so. */
static const char *behind(const char *name, const char *start)
{
    const size_t n = strlen(start);
    return strncmp(name, start, n) == 0 ? name + n : name;
}

static void print_pattern(FILE *out, const struct export_lists *x, const struct export_module *m)
{
    const char *name = m->name;
    fprintf(out, "\"re:");
    if (*x->nest && m->is_head) {
        name = strrchr(name, '.') ? strrchr(name, '.') + 1 : name;
        fprintf(out, "(.*\\\\.)?");
    } else if (*x->nest) {
        name = behind(behind(name, x->nest), x->family->prefix);
        fprintf(out, "(.*\\\\.)?");
        const char *const part = behind(x->nest, "model.");
        print_escaped(out, part, strlen(part));
        fprintf(out, "(model\\\\.)?");
    }
    print_escaped(out, name, strlen(name));
    fprintf(out, "$\"");
}

/* The first part of the name of what is not the text model, as "vision_tower"; n its length. */
static const char *component(const struct export_module *m, size_t *n)
{
    const char *const name = behind(m->name, "model.");
    *n = strcspn(name, ".");
    return name;
}

static bool is_text(const struct export_lists *x, const struct export_module *m)
{
    return m->is_head || strncmp(m->name, x->nest, strlen(x->nest)) == 0;
}

/* Whether an earlier module that stays as it is belongs to the same component. */
static bool is_listed(const struct export_lists *x, size_t i)
{
    size_t n, n_other;
    const char *const name = component(&x->modules[i], &n);
    for (size_t j = 0; j < i; j++) {
        const char *const other = component(&x->modules[j], &n_other);
        if (!is_text(x, &x->modules[j]) && n == n_other && memcmp(name, other, n) == 0)
            return true;
    }
    return false;
}

/* Modules that stay as they are; of a multimodal model all else by its parts. */
static void print_ignored(FILE *out, const struct export_lists *x)
{
    const char *between = "";
    for (size_t i = 0; i < x->n; i++) {
        const struct export_module *const m = &x->modules[i];
        size_t n;
        if (m->is_quantised || (!is_text(x, m) && is_listed(x, i)))
            continue;
        fprintf(out, "%s", between);
        between = ", ";
        if (!is_text(x, m)) {
            const char *const name = component(m, &n);
            fprintf(out, "\"re:(.*\\\\.)?");
            print_escaped(out, name, n);
            fprintf(out, "(\\\\..*)?$\"");
        } else if (*x->nest) {
            print_pattern(out, x, m);
        } else {
            json_print_text(out, m->name);
        }
    }
}

/* ---- the groups ------------------------------------------------------------------------------ */

static bool same_scheme(const struct export_module *a, const struct export_module *b)
{
    return a->type == b->type && a->group == b->group;
}

/* The common scheme is said of all nn.Linear. In some programs the head is none, so it is named,
 * too. */
static void print_common_targets(FILE *out, const struct export_lists *x,
                                 const struct export_module *common)
{
    for (size_t i = 0; i < x->n; i++) {
        const struct export_module *const m = &x->modules[i];
        if (!m->is_head || !m->is_quantised || !same_scheme(m, common))
            continue;
        if (*x->nest)
            print_pattern(out, x, m);
        else
            json_print_text(out, m->name);
        fprintf(out, ", ");
    }
    if (x->family->linear_class)
        fprintf(out, "\"%s\", ", x->family->linear_class);
    fprintf(out, "\"Linear\"");
}

/* Written as patterns, which transformers does not take to stand for all experts. */
static void print_own_targets(FILE *out, const struct export_lists *x,
                              const struct export_module *like)
{
    const char *between = "";
    for (size_t i = 0; i < x->n; i++) {
        if (!x->modules[i].is_quantised || !same_scheme(&x->modules[i], like))
            continue;
        fprintf(out, "%s", between);
        print_pattern(out, x, &x->modules[i]);
        between = ", ";
    }
}

static const char *format_name(const struct export_lists *x)
{
    return x->weights == MODEL_Q8 ? "int-quantized" : "pack-quantized";
}

static void print_group(FILE *out, const struct export_lists *x, size_t number,
                        const struct export_module *like, bool common)
{
    const int bits = like->type == QUANT_PACKED4 ? 4 : 8;
    fprintf(out, "%s\n      \"group_%zu\": {\"targets\": [", number ? "," : "", number);
    if (common)
        print_common_targets(out, x, like);
    else
        print_own_targets(out, x, like);
    fprintf(out,
            "],\n        \"format\": \"%s\",\n        \"weights\": {\"num_bits\": %d, "
            "\"type\": \"int\", \"symmetric\": true, ",
            format_name(x), bits);
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

/* The common group is the last: programs that take the first group that fits find the modules named
 * before it in their own. */
static void print_groups(FILE *out, const struct export_lists *x)
{
    const struct export_module *const modules = x->modules;
    const size_t common = most_common(modules, x->n);
    size_t number = 0;
    for (size_t i = 0; i < x->n; i++) {
        bool seen = !modules[i].is_quantised || same_scheme(&modules[i], &modules[common]);
        for (size_t j = 0; j < i && !seen; j++)
            seen = modules[j].is_quantised && same_scheme(&modules[i], &modules[j]);
        if (!seen)
            print_group(out, x, number++, &modules[i], false);
    }
    print_group(out, x, number, &modules[common], true);
}

static void print_quantization(FILE *out, const struct export_lists *x)
{
    fprintf(out,
            "{\n    \"quant_method\": \"compressed-tensors\",\n    \"format\": \"%s\",\n"
            "    \"quantization_status\": \"compressed\",\n    \"config_groups\": {",
            format_name(x));
    print_groups(out, x);
    fprintf(out, "\n    },\n    \"ignore\": [");
    print_ignored(out, x);
    fprintf(out, "],\n    \"kv_cache_scheme\": null\n  }");
}

/* ---- the file -------------------------------------------------------------------------------- */

/* An object without the members that change, and without its end. */
static bool copy_members(FILE *out, struct bytes text, bool untie, bool *first, struct err *e)
{
    struct json_scan s;
    struct bytes key, value;
    json_scan_begin(&s, (const char *)text.data, text.size, e);
    bool ok = json_scan_object(&s);
    fprintf(out, "{");
    while (ok && json_scan_member(&s, &key)) {
        const bool nested = bytes_equal(key, "text_config"),
                   tie = bytes_equal(key, "tie_word_embeddings");
        const bool dropped = bytes_equal(key, "quantization_config") || (untie && tie);
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

char *export_config(struct bytes original, const struct export_lists *lists, size_t *size,
                    struct err *e)
{
    char *text = NULL;
    bool first = true;
    FILE *const out = open_memstream(&text, size);
    if (!out) {
        err_no_memory(e);
        return NULL;
    }
    const bool ok = copy_members(out, original, lists->untie, &first, e);
    fprintf(out, "%s\n  \"quantization_config\": ", first ? "" : ",");
    print_quantization(out, lists);
    fprintf(out, "\n}\n");
    if (!file_close_text(out, &text))
        err_no_memory(e);
    if (ok)
        return text;
    free(text);
    return NULL;
}
