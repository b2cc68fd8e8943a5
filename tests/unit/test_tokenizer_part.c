/*
 * Texts that come in parts: whatever the cuts, ids and ranges are those of the whole text. Texts
 * are made of what cuts could break: characters of several bytes, marks that compose, runs of
 * white space, added tokens and beginnings of them. The seed of a failure is printed.
 */
#include "tests/unit/tokenizer_kit.h"

#include "core/file.h"

enum { ROUNDS = 150, MAX_CHARS = 700 };

#define GPT2                                                                                       \
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\\\p{L}+| ?\\\\p{N}+| ?[^\\\\s\\\\p{L}\\\\p{N}]+|\\\\s+(?!\\\\S)|" \
    "\\\\s+"
#define QWEN                                                                                       \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}|"               \
    " ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+"
#define BYTES "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}"
#define SPLIT(pattern)                                                                             \
    "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{\"Regex\":"        \
    "\"" pattern "\"},\"behavior\":\"Isolated\"}," BYTES "]}"

/* Every byte has a token; words are told apart by merges of what is frequent. */
static const char *byte_model(void)
{
    static char json[16384];
    size_t n = (size_t)snprintf(json, sizeof json, "{\"type\":\"BPE\",\"vocab\":{");
    for (unsigned b = 0, moved = 256; b < 256; b++) {
        bool kept = (b > 0x20 && b < 0x7F) || (b > 0xA0 && b != 0xAD);
        char utf8[8] = "";
        kit_put_utf8(utf8, kept ? b : moved++);
        n += (size_t)snprintf(json + n, sizeof json - n, "\"%s%s\":%u,",
                              b == '"' || b == '\\' ? "\\" : "", utf8, b);
    }
    static const char *const merges[][2] = {{"Ġ", "Ġ"},   {"a", "a"}, {"aa", "aa"},
                                            {"ĠĠ", "ĠĠ"}, {"1", "1"}, {"a", "ä"},
                                            {"'", "s"},   {"Ġ", "a"}, {"e", "Ì"}};
    for (size_t i = 0; i < ARRAY_LEN(merges); i++) {
        n += (size_t)snprintf(json + n, sizeof json - n, "%s\"%s%s\":%zu", i ? "," : "",
                              merges[i][0], merges[i][1], 256 + i);
    }
    n += (size_t)snprintf(json + n, sizeof json - n, "},\"merges\":[");
    for (size_t i = 0; i < ARRAY_LEN(merges); i++) {
        n += (size_t)snprintf(json + n, sizeof json - n, "%s\"%s %s\"", i ? "," : "", merges[i][0],
                              merges[i][1]);
    }
    snprintf(json + n, sizeof json - n, "]}");
    return json;
}

static size_t make_text(uint64_t *random, char *out, size_t n_chars)
{
    static const char *const units[] = {"<t><tok><t> the 11",
                                        "<t><tok><t> the",
                                        "<t><tok><t> the 11",
                                        "<tok>",
                                        "<tok",
                                        "<",
                                        "tok>",
                                        "<t><tok>",
                                        "<tok><t>",
                                        "   ",
                                        "\n\n",
                                        " \n ",
                                        "\r\n",
                                        "a",
                                        "aaaa",
                                        " a",
                                        "e\xCC\x81",
                                        "\xCC\x81",
                                        "\xCC\xA3",
                                        "\xC3\xA9",
                                        "'s",
                                        "'",
                                        "11",
                                        "...",
                                        " the",
                                        "\xE4\xB8\xAD",
                                        "\xE3\x80\x80",
                                        "\xC3",
                                        "\x80",
                                        "\xF0\x9F\x98\x80",
                                        "\xF0\x9F",
                                        "\xE1\x84\x80\xE1\x85\xA1",
                                        "<mask>",
                                        "\t",
                                        "\xC2\xA0",
                                        "ok>",
                                        " <t"};
    size_t n = 0;
    while (n_chars--) {
        if (kit_below(random, 8) == 0) {
            n += kit_put_utf8(out + n, kit_random_char(random));
            continue;
        }
        const char *unit = units[kit_below(random, ARRAY_LEN(units))];
        size_t size = strlen(unit);
        memcpy(out + n, unit, size);
        n += size;
    }
    return n;
}

struct result {
    struct ids ids;
    struct token_spans where;
};

/* In parts of at most `most` new bytes; how many bytes were settled before the last part. */
static size_t encode_parts(const struct tokenizer *t, const char *text, size_t n, unsigned flags,
                           uint64_t *random, size_t most, bool spans, struct result *out)
{
    struct err e = {0};
    struct encoder *en = encoder_new(t, &e);
    assert_non_null(en);
    struct encode_progress p = {.done = 0};
    size_t settled = 0;
    for (size_t got = 0; got < n || n == 0;) {
        got += 1 + kit_below(random, most);
        bool last = got >= n;
        got = last ? n : got;
        settled = p.done;
        char *part = malloc(got - p.done + 1); /* of its own, so that ASan sees its ends */
        assert_non_null(part);
        memcpy(part, text + p.done, got - p.done);
        if (!encoder_encode_part(en, part, got - p.done, last, flags, &p, &out->ids,
                                 spans ? &out->where : NULL, &e))
            fail_msg("%s", e.text);
        free(part);
        assert_true(p.done >= settled && p.done <= got);
        if (last)
            break;
    }
    assert_int_equal(p.done, n);
    encoder_free(en);
    return settled;
}

static void expect_same(const struct tokenizer *t, const char *what, uint64_t seed, size_t *settled)
{
    uint64_t random = seed;
    static char text[MAX_CHARS * 8];
    size_t n = make_text(&random, text, kit_below(&random, MAX_CHARS));
    unsigned flags = (seed % 2 ? ENCODE_ADD_SPECIAL : 0) | (seed % 3 ? ENCODE_PARSE_SPECIAL : 0);
    bool spans = seed % 5 == 0;
    struct err e = {0};
    struct result whole = {.ids = {0}};
    struct result parts = {.ids = {0}};
    struct encoder *en = encoder_new(t, &e);
    assert_non_null(en);
    assert_true(encoder_encode_spans(en, text, n, flags, &whole.ids, &whole.where, &e));
    encoder_free(en);
    *settled += encode_parts(t, text, n, flags, &random, seed % 4 ? 200 : 7, spans, &parts);
    for (size_t i = 0; i < whole.ids.n && i < parts.ids.n; i++) {
        if (whole.ids.id[i] != parts.ids.id[i]) {
            fail_msg("%s, seed %d: id %zu is %d at once and %d in parts, near byte %zu", what,
                     (int)seed, i, whole.ids.id[i], parts.ids.id[i], whole.where.at[i].start);
        }
    }
    assert_int_equal(whole.ids.n, parts.ids.n);
    for (size_t i = 0; i < parts.where.n; i++) {
        assert_int_equal(whole.where.at[i].start, parts.where.at[i].start);
        assert_int_equal(whole.where.at[i].end, parts.where.at[i].end);
    }
    ids_free(&whole.ids);
    ids_free(&parts.ids);
    token_spans_free(&whole.where);
    token_spans_free(&parts.where);
}

/* settles: whether much must come before the last part. */
static void expect_all_same(const struct tokenizer *t, const char *what, bool settles)
{
    size_t settled = 0;
    for (uint64_t seed = 1; seed <= ROUNDS; seed++)
        expect_same(t, what, seed, &settled);
    if (settles != (settled > ROUNDS * 100))
        fail_msg("%s: %zu bytes settled before the last parts", what, settled);
}

#define TOKEN(id, text, rest) "{\"id\":" id ",\"content\":\"" text "\"" rest "}"
/* Some within others, for where a search begins matters then. */
#define PLAIN_TOKENS                                                                               \
    "[" TOKEN("300", "<tok>", ",\"special\":true,\"normalized\":false") "," TOKEN(                 \
        "301", "<t>",                                                                              \
        ",\"normalized\":true") "," TOKEN("302", "ok>",                                            \
                                          ",\"normalized\":false") "," TOKEN("303",                \
                                                                             "<t><tok><t> the 11", \
                                                                             ",\"normalized\":"    \
                                                                             "false") "]"
#define STRIP_TOKENS                                                                               \
    "[" TOKEN("300", "<tok>", ",\"rstrip\":true,\"normalized\":false") "," TOKEN(                  \
        "301", "<mask>", ",\"lstrip\":true,\"normalized\":true") "]"
/* Some begin within what others take in behind them. */
#define OVERLAPPING_TOKENS                                                                         \
    "[" TOKEN("300", "<tok>", ",\"rstrip\":true,\"normalized\":false") "," TOKEN(                  \
        "301", "   ",                                                                              \
        ",\"rstrip\":true,\"normalized\":false") "," TOKEN("302", "\\n\\n",                        \
                                                           ",\"lstrip\":true,\"normalized\":"      \
                                                           "false") "]"
/* Some that only normalization makes, and some within others that are passed over. */
#define NORMALIZED_TOKENS                                                                          \
    "[" TOKEN("300", " ", ",\"rstrip\":true") "," TOKEN(                                           \
        "301", " <t", ",\"special\":true") "," TOKEN("302", "tok>",                                \
                                                     "") "," TOKEN("303", "   ",                   \
                                                                   "") "," TOKEN("304", "\\n",     \
                                                                                 "") "]"
#define WORD_TOKENS "[" TOKEN("300", "<tok>", ",\"single_word\":true") "]"

static void parts_are_the_whole(void **state)
{
    (void)state;
    static const struct {
        const char *name, *tokens, *normalizer, *pre_tokenizer;
        bool settles;
    } cases[] = {
        {"gpt2", PLAIN_TOKENS, NULL, "{\"type\":\"ByteLevel\",\"add_prefix_space\":false}", true},
        {"gpt2 as Split", PLAIN_TOKENS, NULL, SPLIT(GPT2), true},
        {"roberta", STRIP_TOKENS, NULL, "{\"type\":\"ByteLevel\",\"add_prefix_space\":true}", true},
        {"overlapping", OVERLAPPING_TOKENS, NULL, SPLIT(GPT2), true},
        {"normalized", NORMALIZED_TOKENS, "{\"type\":\"NFKC\"}", SPLIT(GPT2), true},
        {"no tokens", "[]", NULL, SPLIT(GPT2), true},
        {"qwen", PLAIN_TOKENS, "{\"type\":\"NFC\"}", SPLIT(QWEN), true},
        {"qwen, NFKD", STRIP_TOKENS, "{\"type\":\"NFKD\"}", SPLIT(QWEN), true},
        {"bert", PLAIN_TOKENS, "{\"type\":\"BertNormalizer\",\"lowercase\":true}",
         "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"BertPreTokenizer\"}," BYTES "]}",
         true},
        {"falcon", PLAIN_TOKENS, NULL,
         "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Punctuation\",\"behavior\":"
         "\"Contiguous\"},{\"type\":\"ByteLevel\",\"add_prefix_space\":false},"
         "{\"type\":\"Digits\"}]}",
         true},
        {"merged", PLAIN_TOKENS, NULL,
         "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Punctuation\",\"behavior\":"
         "\"MergedWithPrevious\"}," BYTES "]}",
         true},
        {"a blank", PLAIN_TOKENS, NULL,
         "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{\"String\":"
         "\" \"},\"behavior\":\"MergedWithNext\"}," BYTES "]}",
         true},
        {"words", PLAIN_TOKENS, NULL,
         "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Whitespace\"}," BYTES "]}", true},
        {"lookbehind", PLAIN_TOKENS, NULL, SPLIT("(?<=a)a|\\\\s+"), false},
        {"lines", PLAIN_TOKENS, NULL, SPLIT("^a|\\\\s+"), false},
        {"no words", PLAIN_TOKENS, NULL, BYTES, false},
        {"prefix", PLAIN_TOKENS, "{\"type\":\"Prepend\",\"prepend\":\"a\"}", SPLIT(GPT2), false},
        {"single_word", WORD_TOKENS, NULL, SPLIT(GPT2), false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct tokenizer *t = kit_make(&(struct kit_parts){
            .model = byte_model(),
            .added_tokens = cases[i].tokens,
            .normalizer = cases[i].normalizer,
            .pre_tokenizer = cases[i].pre_tokenizer,
            .config = "{\"bos_token\":\"<tok>\",\"add_bos_token\":true,\"eos_token\":\"a\","
                      "\"add_eos_token\":true}",
        });
        expect_all_same(t, cases[i].name, cases[i].settles);
        tokenizer_free(t);
    }
}

static void real_tokenizers(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool settles;
    } cases[] = {{"gpt2", true},    {"qwen2.5", true}, {"falcon", true},     {"pythia", true},
                 {"roberta", true}, {"llama2", false}, {"phi-3-mini", false}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char path[256];
        snprintf(path, sizeof path, "../shared/tokenizers/%s/tokenizer.json", cases[i].name);
        if (!file_exists(path)) {
            print_message("SKIP %s: not there\n", path);
            continue;
        }
        struct err e = {0};
        struct bytes json;
        assert_true(file_map(path, &json, &e));
        struct tokenizer *t = tokenizer_load(&(struct tokenizer_files){.tokenizer_json = json}, &e);
        file_unmap(json);
        assert_non_null(t);
        expect_all_same(t, cases[i].name, cases[i].settles);
        tokenizer_free(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_the_whole),
        cmocka_unit_test(real_tokenizers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
