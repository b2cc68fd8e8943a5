/*
 * Real tokenizers against reference tokenizations: every case of ../shared/tokenizers and of the
 * checkpoints in ../shared, ids and, where a case has it, the decoded text. Not in the tree, so
 * a folder that is absent is skipped.
 */
#include "tests/check.h"

#include "core/file.h"
#include "core/json.h"
#include "tokenizer/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHARED "../shared/"

static struct bytes map(const char *dir, const char *name)
{
    struct bytes bytes = {0};
    struct err e;
    char *path = file_join(dir, name);
    if (file_exists(path))
        assert_true(file_map(path, &bytes, &e));
    free(path);
    return bytes;
}

static struct tokenizer *load(const char *dir)
{
    struct tokenizer_files f = {
        .tokenizer_json = map(dir, "tokenizer.json"),
        .tokenizer_config = map(dir, "tokenizer_config.json"),
        .special_tokens_map = map(dir, "special_tokens_map.json"),
        .vocab_json = map(dir, "vocab.json"),
        .merges_txt = map(dir, "merges.txt"),
    };
    struct err e = {0};
    struct tokenizer *t = tokenizer_load(&f, &e);
    if (!t)
        fail_msg("%s: %s", dir, e.text);
    struct bytes *all[] = {&f.tokenizer_json, &f.tokenizer_config, &f.special_tokens_map,
                           &f.vocab_json, &f.merges_txt};
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        file_unmap(*all[i]);
    return t;
}

static void print_ids(const char *what, const struct ids *ids)
{
    fprintf(stderr, "  %s:", what);
    for (size_t i = 0; i < ids->n; i++)
        fprintf(stderr, " %d", ids->id[i]);
    fprintf(stderr, "\n");
}

static bool same_ids(const struct ids *got, const struct ids *want, const char *text)
{
    size_t size = got->n * sizeof *got->id;
    bool same = got->n == want->n && (size == 0 || memcmp(got->id, want->id, size) == 0);
    if (!same) {
        fprintf(stderr, "ids differ for \"%.200s\"\n", text);
        print_ids("got ", got);
        print_ids("want", want);
    }
    return same;
}

/* transformers' clean_up_tokenization, which some references were made with. tgen leaves it out: it
 * would break the way back from text to ids to text. */
static void clean_up(char *text)
{
    static const char *const rules[][2] = {
        {" .", "."},     {" ?", "?"},   {" !", "!"},   {" ,", ","},     {" ' ", "'"},
        {" n't", "n't"}, {" 'm", "'m"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
    };
    for (size_t r = 0; r < ARRAY_LEN(rules); r++) {
        char *hit = text;
        while ((hit = strstr(hit, rules[r][0]))) {
            size_t n_from = strlen(rules[r][0]);
            size_t n_to = strlen(rules[r][1]);
            memcpy(hit, rules[r][1], n_to);
            memmove(hit + n_to, hit + n_from, strlen(hit + n_from) + 1);
            hit += n_to;
        }
    }
}

static bool same_text(struct decoder *d, const struct ids *ids, const char *want, size_t n_want)
{
    char got[8192] = "";
    size_t n = 0;
    decoder_reset(d);
    for (size_t i = 0; i < ids->n; i++) {
        struct bytes b;
        struct err e = {0};
        assert_true(decoder_next(d, ids->id[i], &b, &e));
        assert_true(n + b.size < sizeof got);
        memcpy(got + n, b.data, b.size);
        n += b.size;
    }
    got[n] = '\0';
    if (n == n_want && memcmp(got, want, n) == 0)
        return true;
    fprintf(stderr, "decoded \"%s\", reference \"%.*s\"\n", got, (int)n_want, want);
    clean_up(got);
    return strlen(got) == n_want && memcmp(got, want, n_want) == 0;
}

/* A line of cases.jsonl; texts may hold NUL. */
struct test_case {
    char text[8192], decoded[8192];
    size_t n_text, n_decoded;
    bool has_decoded;
    struct ids ids;
};

static size_t read_string(struct json_scan *s, char out[8192])
{
    struct bytes b;
    assert_true(json_scan_string(s, &b) && b.size < 8192);
    memcpy(out, b.data, b.size);
    out[b.size] = '\0';
    return b.size;
}

static void read_ids(struct json_scan *s, struct ids *ids)
{
    struct err e;
    double id;
    for (assert_true(json_scan_array(s)); json_scan_element(s);)
        assert_true(json_scan_number(s, &id) && ids_push(ids, (int32_t)id, &e));
}

static void read_case(const char *line, size_t n, struct test_case *c)
{
    struct err e;
    struct json_scan s;
    struct bytes key;
    struct bytes ignored;
    c->ids.n = 0;
    c->has_decoded = false;
    json_scan_begin(&s, line, n, &e);
    for (json_scan_object(&s); json_scan_member(&s, &key);) {
        if (key.size == 4 && memcmp(key.data, "text", 4) == 0) {
            c->n_text = read_string(&s, c->text);
        } else if (key.size == 7 && memcmp(key.data, "decoded", 7) == 0) {
            c->n_decoded = read_string(&s, c->decoded);
            c->has_decoded = true;
        } else if (key.size == 3 && memcmp(key.data, "ids", 3) == 0) {
            read_ids(&s, &c->ids);
        } else {
            json_scan_skip(&s, &ignored);
        }
    }
    assert_true(json_scan_done(&s));
    json_scan_end(&s);
}

static bool run_case(struct encoder *en, struct decoder *d, const struct test_case *c)
{
    struct err e;
    struct ids ids = {0};
    assert_true(encoder_encode(en, c->text, c->n_text, 0, &ids, &e));
    bool good = same_ids(&ids, &c->ids, c->text) &&
                (!c->has_decoded || same_text(d, &ids, c->decoded, c->n_decoded));
    ids_free(&ids);
    return good;
}

static void run_dir(const char *name)
{
    char dir[256];
    snprintf(dir, sizeof dir, SHARED "tokenizers/%s", name);
    if (!file_is_directory(dir)) {
        print_message("SKIP %s: not there\n", dir);
        return;
    }
    struct err e = {0};
    struct tokenizer *t = load(dir);
    struct encoder *en = encoder_new(t, &e);
    struct decoder *d = decoder_new(t, true, &e);
    assert_non_null(en);
    assert_non_null(d);
    struct bytes cases = map(dir, "cases.jsonl");
    size_t n_bad = 0;
    size_t n_all = 0;
    static struct test_case c;
    const char *end = (const char *)cases.data + cases.size;
    for (const char *line = (const char *)cases.data; line < end; n_all++) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        size_t n = newline ? (size_t)(newline - line) : (size_t)(end - line);
        read_case(line, n, &c);
        n_bad += !run_case(en, d, &c);
        line += n + 1;
    }
    ids_free(&c.ids);
    file_unmap(cases);
    decoder_free(d);
    encoder_free(en);
    tokenizer_free(t);
    if (n_bad)
        fail_msg("%s: %zu of %zu cases differ", name, n_bad, n_all);
}

#define DIR_TEST(function, name)                                                                   \
    static void function(void **state)                                                             \
    {                                                                                              \
        (void)state;                                                                               \
        run_dir(name);                                                                             \
    }

DIR_TEST(gpt2, "gpt2")
DIR_TEST(gpt2_vocab_merges, "gpt2-vocab-merges")
DIR_TEST(qwen, "qwen2.5")
DIR_TEST(llama2, "llama2")
DIR_TEST(phi3, "phi-3-mini")
DIR_TEST(falcon, "falcon")
DIR_TEST(pythia, "pythia")
DIR_TEST(roberta, "roberta")

static struct ids list_of(const struct json *list)
{
    struct err e;
    struct ids ids = {0};
    for (const struct json *c = json_first(list); c; c = json_next(c))
        assert_true(ids_push(&ids, (int32_t)json_number(c, -1), &e));
    return ids;
}

/* The bundled model's prompts: BOS as the post-processor wants it. */
static void tales(void **state)
{
    (void)state;
    struct bytes file = map("models/tales", "expected.json");
    struct err e = {0};
    struct json *j = json_parse((const char *)file.data, file.size, &e);
    assert_non_null(j);
    struct tokenizer *t = load("models/tales");
    struct encoder *en = encoder_new(t, &e);
    for (const struct json *c = json_first(j); c; c = json_next(c)) {
        const char *prompt = json_text(json_get(c, "prompt"), "");
        struct ids ids = {0};
        struct ids want = list_of(json_get(c, "prompt_ids"));
        assert_true(encoder_encode(en, prompt, strlen(prompt), ENCODE_ADD_SPECIAL, &ids, &e));
        assert_true(same_ids(&ids, &want, prompt));
        ids_free(&ids);
        ids_free(&want);
    }
    encoder_free(en);
    tokenizer_free(t);
    json_free(j);
    file_unmap(file);
}

/* Greedy text of a real model: its ids decode to the text, and the text encodes to its ids. */
static void stories260k(void **state)
{
    (void)state;
    const char *dir = SHARED "checkpoints/stories260K";
    if (!file_is_directory(dir)) {
        print_message("SKIP %s: not there\n", dir);
        return;
    }
    struct bytes file = map(dir, "expected_greedy.json");
    struct err e = {0};
    struct json *j = json_parse((const char *)file.data, file.size, &e);
    assert_non_null(j);
    struct tokenizer *t = load(dir);
    struct decoder *d = decoder_new(t, false, &e);
    struct ids ids = list_of(json_get(j, "greedy_ids"));
    const char *text = json_text(json_get(j, "text"), NULL);
    assert_non_null(text);
    assert_true(same_text(d, &ids, text, strlen(text)));
    ids_free(&ids);
    decoder_free(d);
    tokenizer_free(t);
    json_free(j);
    file_unmap(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpt2),   cmocka_unit_test(gpt2_vocab_merges),
        cmocka_unit_test(qwen),   cmocka_unit_test(llama2),
        cmocka_unit_test(phi3),   cmocka_unit_test(falcon),
        cmocka_unit_test(pythia), cmocka_unit_test(roberta),
        cmocka_unit_test(tales),  cmocka_unit_test(stories260k),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
