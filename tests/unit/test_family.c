/*
 * The rules that keep families data: every field of the spec is set by some family and obeyed by
 * the forward pass, every family has a miniature in tests/golden and a row in the README, and the
 * table is in order. Reads the sources, from the root of the tree.
 */
#include "tests/check.h"

#include "core/file.h"
#include "core/json.h"
#include "models/family.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

/* A whole file, terminated, in malloc'ed memory. */
static char *read_text(const char *path)
{
    struct err e;
    struct bytes bytes;
    if (!file_map(path, &bytes, &e))
        fail_msg("%s", e.text);
    char *const text = malloc(bytes.size + 1);
    assert_non_null(text);
    memcpy(text, bytes.data, bytes.size);
    text[bytes.size] = '\0';
    file_unmap(bytes);
    return text;
}

/* Puts folder/name behind `all`, in malloc'ed memory. */
static char *append_source(char *all, const char *folder, const char *name)
{
    const size_t used = all ? strlen(all) : 0;
    char *const path = file_join(folder, name), *const text = read_text(path);
    all = realloc(all, used + strlen(text) + 1);
    assert_non_null(all);
    memcpy(all + used, text, strlen(text) + 1);
    free(text);
    free(path);
    return all;
}

/* What sets fields: the families, and what they call. */
static char *read_setters(void)
{
    struct dirent **entries;
    const int n = scandir("models/families", &entries, NULL, alphasort);
    char *all = NULL;
    assert_true(n > 0);
    for (int i = 0; i < n; i++) {
        const size_t n_name = strlen(entries[i]->d_name);
        if (n_name > 2 && strcmp(entries[i]->d_name + n_name - 2, ".c") == 0)
            all = append_source(all, "models/families", entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    all = append_source(all, "models", "family_base.c");
    return append_source(all, "models", "config.c");
}

/* What obeys fields: the forward pass, and what readies weights, passes and caches for it. */
static char *read_obeyers(void)
{
    static const char *const names[] = {"forward.c", "block.c",   "attention.c", "mla.c",
                                        "ffn.c",     "moe.c",     "pass.c",      "parts.c",
                                        "bind.c",    "session.c", "model.c",     "roles.c"};
    char *all = NULL;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        all = append_source(all, "models", names[i]);
    return all;
}

/* The next place in `text` that has the field behind -> or a dot: what follows it there; or NULL.
 */
static const char *next_use(const char *text, const char *field)
{
    const size_t n = strlen(field);
    for (const char *at = strstr(text, field); at; at = strstr(at + 1, field)) {
        const bool member = at > text && (at[-1] == '.' || at[-1] == '>');
        if (member && !isalnum((unsigned char)at[n]) && at[n] != '_')
            return at + n;
    }
    return NULL;
}

/* "=", or an operator with it, behind blanks; but not "==". */
static bool is_assignment(const char *text)
{
    text += strspn(text, " \n");
    text += *text == '|';
    return text[0] == '=' && text[1] != '=';
}

/* True where a value is assigned to the field, or to an element or a member of it. */
static bool is_set(const char *text, const char *field)
{
    for (const char *at = next_use(text, field); at; at = next_use(at, field)) {
        const char *const end = *at == '[' ? strchr(at, ']') + 1 : at;
        if (is_assignment(end) || *end == '.')
            return true;
    }
    return false;
}

/* True where the field's value is asked for. */
static bool is_read(const char *text, const char *field)
{
    for (const char *at = next_use(text, field); at; at = next_use(at, field))
        if (!is_assignment(at))
            return true;
    return false;
}

/* The name that a line "    type name; ..." or "    type name[...]; ..." declares; false for any
 * other line. */
static bool declared_field(const char *line, char *field, size_t size)
{
    const size_t n = strcspn(line, ";[\n");
    size_t begin = n;
    if (strncmp(line, "    ", 4) != 0 || !islower((unsigned char)line[4]) || line[n] == '\n' ||
        memchr(line, '*', n) == line + 4 || memchr(line, '/', n))
        return false;
    while (begin > 0 && (isalnum((unsigned char)line[begin - 1]) || line[begin - 1] == '_'))
        begin--;
    snprintf(field, size, "%.*s", (int)(n - begin), line + begin);
    return n > begin;
}

static void test_fields(void **state)
{
    (void)state;
    char *const spec = read_text("models/spec.h");
    char *const setters = read_setters(), *const obeyers = read_obeyers();
    int n_fields = 0;
    for (const char *line = spec; line; line = strchr(line, '\n')) {
        char field[64];
        line += *line == '\n';
        if (!declared_field(line, field, sizeof field))
            continue;
        n_fields++;
        const bool is_struct = strncmp(line, "    struct ", 11) == 0; /* has fields of its own */
        if (is_struct ? !next_use(setters, field) : !is_set(setters, field))
            fail_msg("no family sets \"%s\"", field);
        if (!is_read(obeyers, field))
            fail_msg("nothing obeys \"%s\"", field);
    }
    assert_true(n_fields > 60); /* or the lines were not understood */
    free(obeyers);
    free(setters);
    free(spec);
}

static void test_table(void **state)
{
    (void)state;
    for (size_t i = 0; family_table[i]; i++) {
        assert_ptr_equal(family_find(family_table[i]->model_type), family_table[i]);
        assert_int_equal(family_table[i]->tensors[0].role, ROLE_EMBEDDING); /* tied heads need it */
    }
    assert_null(family_find("no such family"));
}

/* A row "| a, b | ... |" of the README's table names the family. */
static void test_readme(void **state)
{
    (void)state;
    char *const readme = read_text("README.md");
    for (size_t i = 0; family_table[i]; i++) {
        const char *const name = family_table[i]->model_type;
        bool found = false;
        for (const char *row = strstr(readme, "\n| "); row && !found;
             row = strstr(row + 1, "\n| ")) {
            const char *const end = strchr(row + 3, '|');
            for (const char *at = strstr(row, name); at && at < end; at = strstr(at + 1, name)) {
                const char last = at[strlen(name)];
                found = found || (at[-1] == ' ' && (last == ' ' || last == ','));
            }
        }
        if (!found)
            fail_msg("README.md has no row for %s", name);
    }
    free(readme);
}

/* tests/golden/X/config.json says which family X is of. */
static void count_golden(const char *folder, int *counts)
{
    struct dirent **entries;
    const int n = scandir(folder, &entries, NULL, NULL);
    for (int i = 0; i < n; i++) {
        struct err e;
        struct bytes bytes;
        char *const dir = file_join(folder, entries[i]->d_name);
        char *const path = file_join(dir, "config.json");
        if (file_exists(path) && file_map(path, &bytes, &e)) {
            struct json *const config = json_parse((const char *)bytes.data, bytes.size, &e);
            const struct json *const text = json_get(config, "text_config");
            const char *const type = json_text(json_get(text ? text : config, "model_type"), "");
            for (size_t f = 0; family_table[f]; f++)
                counts[f] += family_find(type) == family_table[f];
            json_free(config);
            file_unmap(bytes);
        }
        free(path);
        free(dir);
        free(entries[i]);
    }
    if (n >= 0)
        free(entries);
}

static void test_golden_covers(void **state)
{
    (void)state;
    int counts[256] = {0};
    count_golden("tests/golden", counts);
    count_golden("tests/golden/quantised", counts);
    for (size_t i = 0; family_table[i]; i++)
        if (counts[i] == 0)
            fail_msg("tests/golden has no miniature of %s", family_table[i]->model_type);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_readme),
        cmocka_unit_test(test_golden_covers),
    };
    return cmocka_run_group_tests_name("family", tests, NULL, NULL);
}
