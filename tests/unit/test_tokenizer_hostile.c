/*
 * A tokenizer.json made to take time or memory without end: refused with a sentence, or harmless;
 * and texts that are merely long, which are not taken for such.
 */
#include "tests/unit/tokenizer_kit.h"

#define WORDS "{\"type\":\"WordLevel\",\"vocab\":{\"?\":0},\"unk_token\":\"?\"}"
#define SPLIT(pattern)                                                                             \
    "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"" pattern "\"},\"behavior\":\"Isolated\"}"

/* `unit` n times, malloc'ed. */
static char *repeated(const char *unit, size_t n)
{
    const size_t size = strlen(unit);
    char *text = malloc(n * size + 1);
    assert_non_null(text);
    for (size_t i = 0; i < n; i++)
        memcpy(text + i * size, unit, size);
    text[n * size] = '\0';
    return text;
}

/* What encoding `unit` n times says, "" where it works; *n_ids: how many there are. */
static void encode_repeated(const struct kit_parts *parts, const char *unit, size_t n,
                            struct err *e, size_t *n_ids)
{
    struct tokenizer *t = kit_make(parts);
    char *text = repeated(unit, n);
    struct ids ids = {0};
    *e = (struct err){0};
    struct encoder *en = encoder_new(t, e);
    assert_non_null(en);
    if (!encoder_encode(en, text, n * strlen(unit), 0, &ids, e))
        assert_int_not_equal(e->code, ERR_NONE);
    *n_ids = ids.n;
    ids_free(&ids);
    encoder_free(en);
    free(text);
    tokenizer_free(t);
}

static void expect_stopped(const struct kit_parts *parts, const char *unit, size_t n,
                           const char *why)
{
    struct err e;
    size_t n_ids;
    encode_repeated(parts, unit, n, &e, &n_ids);
    if (e.code != ERR_LOAD || !strstr(e.text, why))
        fail_msg("\"%s\" (%d) does not say \"%s\"", e.text, (int)e.code, why);
}

static void expect_ids(const struct kit_parts *parts, const char *unit, size_t n, size_t want)
{
    struct err e;
    size_t n_ids;
    encode_repeated(parts, unit, n, &e, &n_ids);
    if (e.code != ERR_NONE)
        fail_msg("%zu times \"%s\": %s", n, unit, e.text);
    assert_int_equal(n_ids, want);
}

/* Of those that need steps with a power of the text's size, each by a way of its own. */
static void runaway_regexes(void **state)
{
    (void)state;
    static const char *const cases[] = {
        SPLIT("a*a*b|a"),           SPLIT("a*+b|a"),
        SPLIT("(a+)+[bc]"),         SPLIT("(?:a|aa)+c|a"),
        SPLIT("(a*)\\\\1\\\\1b|a"), SPLIT("(?=a*b)a|a"),
        SPLIT("(a(?1)?a|a)*b|a"),
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        expect_stopped(&(struct kit_parts){.model = WORDS, .pre_tokenizer = cases[i]}, "a", 30000,
                       "gives up: it takes more than 220 million steps");
    }
    expect_stopped(&(struct kit_parts){.model = WORDS,
                                       .normalizer = "{\"type\":\"Replace\",\"pattern\":{\"Regex\":"
                                                     "\"a*a*b|a\"},\"content\":\"a\"}"},
                   "a", 30000, "gives up");
}

/* How many times a decoder with a Replace that needs the cube of a token's size in steps spells a
 * token of n letters, `times` at most; e says why it stopped. */
static int spelled_times(size_t n, int times, struct err *e)
{
    char *text = repeated("a", n), *model = NULL;
    size_t size;
    FILE *out = open_memstream(&model, &size);
    fprintf(out, "{\"type\":\"WordLevel\",\"vocab\":{\"?\":0,\"%s\":1},\"unk_token\":\"?\"}", text);
    fclose(out);
    struct tokenizer *t =
        kit_make(&(struct kit_parts){.model = model,
                                     .decoder = "{\"type\":\"Replace\",\"pattern\":{\"Regex\":"
                                                "\"a*a*b|a\"},\"content\":\"a\"}"});
    struct decoder *d = decoder_new(t, true, e);
    assert_non_null(d);
    struct bytes spelled;
    int done = 0;
    while (done < times && decoder_next(d, 1, &spelled, e)) {
        assert_int_equal(spelled.size, n);
        done++;
    }
    decoder_free(d);
    tokenizer_free(t);
    free(model);
    free(text);
    return done;
}

/* Each token may take its steps, however many came before; what takes more is an error, and not a
 * text that the decoder has not touched. */
static void runaway_decoders(void **state)
{
    (void)state;
    struct err e = {0};
    assert_int_equal(spelled_times(300, 40, &e), 40);
    assert_int_equal(spelled_times(2000, 1, &e), 0);
    assert_int_equal(e.code, ERR_LOAD);
    assert_non_null(strstr(e.text, "gives up: it takes more than 10"));
}

#define GPT4                                                                                       \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}{1,3}|"          \
    " ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+"
#define LETTER(not ) "((?=[\\\\p{L}])([^" not "]))"
#define TEKKEN                                                                                     \
    "[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?" LETTER("a-z") "*" LETTER(                                     \
        "A-Z") "+|"                                                                                \
               "[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?" LETTER("a-z") "+" LETTER(                          \
                   "A-Z") "*|"                                                                     \
                          "\\\\p{N}| "                                                             \
                          "?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n/"                                 \
                          "]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+"

static void long_words(void **state)
{
    (void)state;
    enum { MANY = 1 << 20 };
    static const struct {
        const char *unit;
        size_t gpt4,
            tekken; /* words; the last blank stays with the text, as there is none behind */
    } cases[] = {
        {"a", 1, 1},
        {"A", 1, 1},
        {" ", 1, 1},
        {"\n", 1, 1},
        {"=", 1, 1},
        {"\xE4\xB8\xAD", 1, 1},
        {"\xF0\x9F\x98\x80", 1, 1},
        {"aB", 1, MANY + 1},
        {"1", (MANY + 2) / 3, MANY},
        {"b\xCC\x81", MANY + 1, MANY + 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct kit_parts parts = {.model = WORDS, .pre_tokenizer = SPLIT(GPT4)};
        expect_ids(&parts, cases[i].unit, MANY, cases[i].gpt4);
        parts.pre_tokenizer = SPLIT(TEKKEN);
        expect_ids(&parts, cases[i].unit, MANY, cases[i].tekken);
    }
}

/* A match that ends where the first look ends must see what stands behind. */
static void words_of_all_lengths(void **state)
{
    (void)state;
    for (size_t n = 110; n < 140; n++) {
        struct kit_parts parts = {.model = WORDS, .pre_tokenizer = SPLIT("^ab|a+|\\\\s+(?!b)")};
        char *text = repeated("a", n + 4);
        memcpy(text + n, "  b", 4);
        expect_ids(&parts, text, 1, 3);
        memcpy(text + n, "\nab", 4);
        expect_ids(&parts, text, 1, 3);
        free(text);
    }
}

static void regexes_too_long(void **state)
{
    (void)state;
    char *text = repeated("a?", 40000), json[100000];
    snprintf(json, sizeof json, SPLIT("%s"), text);
    struct err e = {0};
    assert_null(kit_try(&(struct kit_parts){.model = WORDS, .pre_tokenizer = json}, &e));
    assert_int_equal(e.code, ERR_LOAD);
    assert_non_null(strstr(e.text, "more than 65536 bytes"));
    free(text);
}

/* ---- text that grows ------------------------------------------------------------------------- */

#define REPLACE(from, to) "{\"type\":\"Replace\",\"pattern\":" from ",\"content\":\"" to "\"}"
#define LIST(key, steps)  "{\"type\":\"Sequence\",\"" key "\":[" steps "]}"
#define SIXTEEN(s)                                                                                 \
    s "," s "," s "," s "," s "," s "," s "," s "," s "," s "," s "," s "," s "," s "," s "," s
#define DOUBLE REPLACE("{\"String\":\"a\"}", "aa")
#define SPELL  "{\"type\":\"ByteLevel\",\"add_prefix_space\":false}"

static void growing_text(void **state)
{
    (void)state;
    char *kilobyte = repeated("b", 1000), put[2000], empty[2000];
    snprintf(put, sizeof put, "{\"type\":\"Prepend\",\"prepend\":\"%s\"}", kilobyte);
    snprintf(empty, sizeof empty, REPLACE("{\"Regex\":\"x*\"}", "%s"), kilobyte);
    const struct kit_parts cases[] = {
        {.normalizer = LIST("normalizers", SIXTEEN(DOUBLE) "," SIXTEEN(DOUBLE))},
        {.normalizer = LIST("normalizers", SIXTEEN("{\"type\":\"ByteLevel\"}"))},
        {.normalizer = empty},
        {.normalizer = put,
         .added_tokens = "[{\"id\":1,\"content\":\"\u00e9\",\"normalized\":false}]"},
        {.pre_tokenizer = LIST("pretokenizers", SIXTEEN(SPELL) "," SIXTEEN(SPELL))},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct kit_parts parts = cases[i];
        parts.model = WORDS;
        expect_stopped(&parts, "a\xC3\xA9", 3000, "grow without end");
    }
    free(kilobyte);
}

static void growing_tokens(void **state)
{
    (void)state;
    static const struct kit_parts cases[] = {
        {.decoder = LIST("decoders", SIXTEEN(DOUBLE)), .model = WORDS},
        {.normalizer = LIST("normalizers", SIXTEEN(DOUBLE) "," SIXTEEN(DOUBLE)),
         .added_tokens = "[{\"id\":1,\"content\":\"a\"}]",
         .model = WORDS},
    };
    static const char *const why[] = {"4096 times as long", "grow without end"};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err e = {0};
        assert_null(kit_try(&cases[i], &e));
        assert_int_equal(e.code, ERR_LOAD);
        assert_non_null(strstr(e.text, why[i]));
    }
}

/* What grows most in earnest: one character to 18, each byte of it spelled by two. */
static void text_that_may_grow(void **state)
{
    (void)state;
    expect_ids(&(struct kit_parts){.model = WORDS,
                                   .normalizer = LIST("normalizers", "{\"type\":\"NFKD\"}"),
                                   .pre_tokenizer = SPELL},
               "\xEF\xB7\xBA", 1 << 20, (3 << 20) + 1);
}

/* ---- long pieces ----------------------------------------------------------------------------- */

#define PIECES(first, inner, more)                                                                 \
    "{\"type\":\"WordPiece\",\"unk_token\":\"?\",\"max_input_chars_per_word\":2000000000,"         \
    "\"vocab\":{\"?\":0,\"" first "\":1,\"" inner "\":2" more "}}"

static void long_wordpiece(void **state)
{
    (void)state;
    expect_ids(&(struct kit_parts){.model = PIECES("a", "##a", "")}, "a", 1 << 20, 1 << 20);
    expect_ids(&(struct kit_parts){.model = PIECES("a", "##b", "")}, "ab", 1, 2);
    expect_ids(&(struct kit_parts){.model = PIECES("a", "#a", "")}, "a", 1 << 20, 1);
    expect_ids(&(struct kit_parts){.model = PIECES("b", "##a", "")}, "a", 1 << 20, 1);
}

/* What is looked for at each place of a text takes time with its own length as well. */
static void long_pieces(void **state)
{
    (void)state;
    enum { LONG = 1026 };
    char *a = repeated("a", LONG), *code = repeated("eHh4", LONG), json[5][8000];
    snprintf(json[0], sizeof json[0], PIECES("a", "##a", ",\"%s\":3"), a);
    snprintf(json[1], sizeof json[1],
             "{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"?\",0],[\"%s\",-1]]}", a);
    snprintf(json[2], sizeof json[2], "[{\"id\":1,\"content\":\"%s\"}]", a);
    snprintf(json[3], sizeof json[3],
             "{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[],"
             "\"end_of_word_suffix\":\"%s\"}",
             a);
    snprintf(json[4], sizeof json[4],
             "{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"BAAAAAAAAAB4%s\"}", code);
    const struct kit_parts cases[] = {{.model = json[0]},
                                      {.model = json[1]},
                                      {.model = WORDS, .added_tokens = json[2]},
                                      {.model = json[3]},
                                      {.model = WORDS, .normalizer = json[4]}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err e = {0};
        assert_null(kit_try(&cases[i], &e));
        assert_int_equal(e.code, ERR_LOAD);
        if (!strstr(e.text, "1024"))
            fail_msg("%s", e.text);
    }
    free(a);
    free(code);
}

/* ---- hashes ---------------------------------------------------------------------------------- */

static void expect_clash(char *model, const char *why)
{
    struct err e = {0};
    assert_null(kit_try(&(struct kit_parts){.model = model}, &e));
    assert_int_equal(e.code, ERR_LOAD);
    if (!strstr(e.text, why))
        fail_msg("\"%s\" does not say \"%s\"", e.text, why);
    free(model);
}

/* All pairs of 120 left and 120 right tokens with ids of which the hash of a pair makes nothing. */
static void merges_that_clash(void **state)
{
    (void)state;
    enum { SIDE = 120, SLOTS = 1 << 15 };
    const uint64_t factor = 0x9E3779B97F4A7C15u;
    char *json = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&json, &size);
    fprintf(out, "{\"type\":\"BPE\",\"vocab\":{\"?\":0");
    uint32_t n_left = 0, n_right = 0, last = 0;
    for (uint32_t id = 1; n_left < SIDE || n_right < SIDE; id++)
        if (n_left < SIDE && (id * factor) % SLOTS == 0)
            fprintf(out, ",\"x%u\":%u", n_left++, last = id);
        else if (n_right < SIDE && (id * factor >> 32) % SLOTS == 0)
            fprintf(out, ",\"y%u\":%u", n_right++, last = id);
    for (uint32_t i = 0; i < SIDE * SIDE; i++)
        fprintf(out, ",\"x%uy%u\":%u", i / SIDE, i % SIDE, last + 1 + i);
    fprintf(out, "},\"merges\":[\"x0 y0\"");
    for (uint32_t i = 1; i < SIDE * SIDE; i++)
        fprintf(out, ",\"x%u y%u\"", i / SIDE, i % SIDE);
    fprintf(out, "]}");
    fclose(out);
    expect_clash(json, "merges have the same hash");
}

/* Tokens of a length of which the hash makes bytes of ASCII: as the second eight, these make
 * nothing of the first. */
static void tokens_that_clash(void **state)
{
    (void)state;
    const uint64_t factor = 0xE7037ED1A0B428DBu;
    uint64_t n = 17;
    while ((n * factor) & 0x8080808080808080u)
        n++;
    char *json = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&json, &size);
    fprintf(out, "{\"type\":\"WordLevel\",\"unk_token\":\"?\",\"vocab\":{\"?\":0");
    for (int i = 1; i < 5000; i++) {
        fprintf(out, ",\"%08d", i);
        for (int byte = 0; byte < 8; byte++)
            fprintf(out, "\\u%04x", (unsigned)(n * factor >> 8 * byte & 0xFF));
        fprintf(out, "%0*d\":%d", (int)n - 16, 0, i);
    }
    fprintf(out, "}}");
    fclose(out);
    expect_clash(json, "tokens have the same hash");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runaway_regexes),      cmocka_unit_test(long_words),
        cmocka_unit_test(words_of_all_lengths), cmocka_unit_test(regexes_too_long),
        cmocka_unit_test(growing_text),         cmocka_unit_test(growing_tokens),
        cmocka_unit_test(text_that_may_grow),   cmocka_unit_test(long_wordpiece),
        cmocka_unit_test(long_pieces),          cmocka_unit_test(merges_that_clash),
        cmocka_unit_test(tokens_that_clash),    cmocka_unit_test(runaway_decoders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
