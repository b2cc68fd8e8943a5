/*
 * Every component of tokenizer.json on its own: what it does to a text, and what is refused. The
 * expected values are those of huggingface/tokenizers' own tests where it has some.
 */
#include "tests/unit/tokenizer_kit.h"

/* ---- pre-tokenizers -------------------------------------------------------------------------- */

/* Every word is one unknown token, so the ranges of the ids show where words begin and end. */
#define WORDS "{\"type\":\"WordLevel\",\"vocab\":{\"?\":0},\"unk_token\":\"?\"}"

struct split_case {
    const char *pre_tokenizer, *text, *want; /* want: the words, "|" between */
};

static void expect_split(const struct split_case *c)
{
    struct tokenizer *t =
        kit_make(&(struct kit_parts){.model = WORDS, .pre_tokenizer = c->pre_tokenizer});
    struct err e = {0};
    struct encoder *en = encoder_new(t, &e);
    struct ids ids = {0};
    struct token_spans where = {0};
    assert_true(encoder_encode_spans(en, c->text, strlen(c->text), 0, &ids, &where, &e));
    assert_int_equal(ids.n, where.n);
    char got[1024] = "";
    size_t n = 0;
    for (size_t i = 0; i < where.n; i++) {
        struct token_span s = where.at[i];
        assert_true(s.start <= s.end && s.end <= strlen(c->text));
        n += (size_t)snprintf(got + n, sizeof got - n, "%s%.*s", i ? "|" : "",
                              (int)(s.end - s.start), c->text + s.start);
    }
    if (strcmp(got, c->want) != 0)
        fail_msg("%s\n  \"%s\" is split into %s, not %s", c->pre_tokenizer, c->text, got, c->want);
    ids_free(&ids);
    token_spans_free(&where);
    encoder_free(en);
    tokenizer_free(t);
}

#define SPLIT(pattern, behavior, invert)                                                           \
    "{\"type\":\"Split\",\"pattern\":" pattern ",\"behavior\":\"" behavior "\",\"invert\":" invert \
    "}"
#define WORD_OR_SIGNS "{\"Regex\":\"\\\\w+|[^\\\\w\\\\s]+\"}"
#define DASH          "{\"String\":\"-\"}"

static void pre_tokenizers(void **state)
{
    (void)state;
    static const struct split_case cases[] = {
        {NULL, "one word, whatever", "one word, whatever"},
        {SPLIT(WORD_OR_SIGNS, "Removed", "true"), "How are you doing?", "How|are|you|doing|?"},
        {SPLIT(WORD_OR_SIGNS, "Isolated", "true"), "How are you?", "How| |are| |you|?"},
        {SPLIT(WORD_OR_SIGNS, "MergedWithPrevious", "true"), "How are you doing?",
         "How |are |you |doing|?"},
        {SPLIT(WORD_OR_SIGNS, "MergedWithNext", "true"), "How are you doing?",
         "How| are| you| doing|?"},
        {SPLIT(WORD_OR_SIGNS, "Contiguous", "true"), "How are you doing?",
         "How| |are| |you| |doing?"},
        {SPLIT(DASH, "Removed", "false"), "the-final--countdown-", "the|final|countdown"},
        {SPLIT(DASH, "Isolated", "false"), "the-final--countdown", "the|-|final|-|-|countdown"},
        {SPLIT(DASH, "MergedWithPrevious", "false"), "the-final--countdown",
         "the-|final-|-|countdown"},
        {SPLIT(DASH, "MergedWithNext", "false"), "the-final--countdown-",
         "the|-final|-|-countdown|-"},
        {SPLIT(DASH, "Contiguous", "false"), "the-final--countdown", "the|-|final|--|countdown"},
        {SPLIT("{\"Regex\":\"(?=[A-Z])\"}", "Isolated", "false"), "camelCaseWord",
         "camel|Case|Word"},
        {"{\"type\":\"Whitespace\"}", "Hey man! \xC3\xA9t\xC3\xA9_1\n",
         "Hey|man|!|\xC3\xA9t\xC3\xA9_1"},
        {"{\"type\":\"WhitespaceSplit\"}", " Hey,\xC2\xA0man,  Good?", "Hey,|man,|Good?"},
        {"{\"type\":\"CharDelimiterSplit\",\"delimiter\":\"\xE2\x96\x81\"}",
         "a\xE2\x96\x81\xE2\x96\x81"
         "b",
         "a|b"},
        {"{\"type\":\"Punctuation\"}", "Hey friend!   How?!?", "Hey friend|!|   How|?|!|?"},
        {"{\"type\":\"Punctuation\",\"behavior\":\"Contiguous\"}", "a?!\xE3\x80\x82$b",
         "a|?!\xE3\x80\x82$|b"},
        /* As in Unicode 8.0: U+166D was punctuation then, U+061D was nothing yet. */
        {"{\"type\":\"Punctuation\"}", "x\xE1\x99\xADx\xD8\x9Dx", "x|\xE1\x99\xAD|x\xD8\x9Dx"},
        {"{\"type\":\"Digits\",\"individual_digits\":false}", "Hey 123\xC2\xBD friend!",
         "Hey |123\xC2\xBD| friend!"},
        {"{\"type\":\"Digits\",\"individual_digits\":true}", "Hey 12 friend!", "Hey |1|2| friend!"},
        {"{\"type\":\"BertPreTokenizer\"}", "Hey friend!     How are you?!?",
         "Hey|friend|!|How|are|you|?|!|?"},
        {"{\"type\":\"UnicodeScripts\"}", "Apples are \xE3\x82\x8A\xE3\x82\x93 \xE6\x9E\x97. Yes",
         "Apples are |\xE3\x82\x8A\xE3\x82\x93 \xE6\x9E\x97|. |Yes"},
        {"{\"type\":\"FixedLength\",\"length\":3}", "Hello \xF0\x9F\x91\x8B world",
         "Hel|lo |\xF0\x9F\x91\x8B w|orl|d"},
        {"{\"type\":\"Metaspace\",\"replacement\":\"\xE2\x96\x81\"}", "Hey  friend",
         "Hey| | friend"},
        {"{\"type\":\"Metaspace\",\"replacement\":\"_\",\"split\":false}", "Hey friend",
         "Hey friend"},
        {"{\"type\":\"ByteLevel\",\"add_prefix_space\":false}", "Hello  it's 12\n\nok",
         "Hello| | it|'s| 12|\n|\n|ok"},
        {"{\"type\":\"ByteLevel\",\"use_regex\":false}", "Hello it's", "Hello it's"},
        {"{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"WhitespaceSplit\"},"
         "{\"type\":\"Digits\",\"individual_digits\":true}]}",
         "a1 22", "a|1|2|2"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        expect_split(&cases[i]);
}

/* The patterns of well-known tokenizers, on texts that tell them apart. */
static void patterns(void **state)
{
    (void)state;
#define REGEX(r) SPLIT("{\"Regex\":\"" r "\"}", "Isolated", "false")
#define CL100K                                                                                     \
    REGEX("(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}{1,3}| ?"  \
          "[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+")
#define CL100K_TIKTOKEN                                                                            \
    REGEX("'(?i:[sdmt]|ll|ve|re)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?+\\\\p{L}++|\\\\p{N}{1,3}| ?"       \
          "[^\\\\s\\\\p{L}\\\\p{N}]++[\\\\r\\\\n]*+|\\\\s++$|\\\\s*[\\\\r\\\\n]|\\\\s+(?!\\\\S)|"  \
          "\\\\s")
#define O200K                                                                                      \
    REGEX("[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?[\\\\p{Lu}\\\\p{Lt}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]*[\\\\p{"   \
          "Ll}\\\\p{Lm}"                                                                           \
          "\\\\p{Lo}\\\\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?[\\\\p{" \
          "Lu}\\\\p{Lt}"                                                                           \
          "\\\\p{Lm}\\\\p{Lo}\\\\p{M}]+[\\\\p{Ll}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]*(?i:'s|'t|'re|'ve|'"  \
          "m|'ll|'d)?|"                                                                            \
          "\\\\p{N}{1,3}| "                                                                        \
          "?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n/]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+")
#define DEEPSEEK                                                                                   \
    "{\"type\":\"Sequence\",\"pretokenizers\":[" REGEX("\\\\p{N}{1,3}") "," REGEX(                 \
        "[\xE4\xB8\x80-"                                                                           \
        "\xE9\xBE\xA5"                                                                             \
        "\xE3\x81\x80-"                                                                            \
        "\xE3\x82\x9F"                                                                             \
        "\xE3\x82\xA0-"                                                                            \
        "\xE3\x83\xBF]"                                                                            \
        "+") "," REGEX("[!\\\"#$%&'()*+,\\\\-./"                                                   \
                       ":;<=>?@\\\\[\\\\\\\\\\\\]^_`{|}~][A-Za-z]+|[^\\\\r\\\\n\\\\p{L}\\\\p{P}"   \
                       "\\\\p{S}]?[\\\\p{L}\\\\p{M}]+| "                                           \
                       "?[\\\\p{P}\\\\p{S}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|"    \
                       "\\\\s+") "]}"
#define STARCODER                                                                                  \
    "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Digits\",\"individual_digits\":true},"  \
    "{\"type\":\"ByteLevel\",\"add_prefix_space\":false}]}"
    static const struct split_case cases[] = {
        {CL100K, "I'LL pay $1234.50!\n\n  OK\xC2\xA0then  ",
         "I|'LL| pay| $|123|4|.|50|!\n\n| | OK|\xC2\xA0then|  "},
        {CL100K_TIKTOKEN, "I'LL pay 1234!\n\n  OK  ", "I|'LL| pay| |123|4|!\n\n| | OK|  "},
        {O200K, "HTTPServer's URLs/\n x", "HTTPServer's| URLs|/\n| x"},
        {O200K, "don't CamelCase 123", "don't| Camel|Case| |123"},
        {DEEPSEEK, "a1234 \xE4\xB8\xAD\xE6\x96\x87x .net",
         "a|123|4| |\xE4\xB8\xAD\xE6\x96\x87|x| .|net"},
        {STARCODER, "x = 42", "x| =| |4|2"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        expect_split(&cases[i]);
}

/* Ruby's meaning where it differs from Perl's. */
static void patterns_as_ruby(void **state)
{
    (void)state;
    static const struct split_case cases[] = {
        {REGEX("\\\\p{N}{1,2}+"), "12345 6", "12345| |6"},
        {REGEX("\\\\h+"), "xyzBEEFq", "xyz|BEEF|q"},
        {REGEX("x{,2}y"), "xxxy", "x|xxy"},
        {REGEX("(?m:a.b)"), "a\nb", "a\nb"},
        {REGEX("^b"), "a\nb", "a\n|b"},
        {REGEX("[\\\\p{L}&&[^\\\\p{Han}]]+"),
         "ab\xE4\xB8\xAD"
         "c",
         "ab|\xE4\xB8\xAD|c"},
        {REGEX("\\\\u4E2D"), "a\xE4\xB8\xAD", "a|\xE4\xB8\xAD"},
        {REGEX("\\\\w+"), "n\xCC\x83o\xE2\x80\xBFx-", "n\xCC\x83o\xE2\x80\xBFx|-"},
        {REGEX("\\\\s+"),
         "a\xE1\xA0\x8E\xC2\xA0"
         "b",
         "a\xE1\xA0\x8E|\xC2\xA0|b"},
        {REGEX("\\\\bo"), "o\xCC\x81o o", "o|\xCC\x81o |o"},
        {REGEX("\\\\w+"), "a\xC2\xBD +\xC2\xB2", "a\xC2\xBD| +|\xC2\xB2"},
        {REGEX("[^\\\\w]+"), "a\xC2\xBD +\xC2\xB2", "a|\xC2\xBD +\xC2\xB2"},
        /* U+3002 is of the script Common; Han is among its Script_Extensions. */
        {REGEX("\\\\p{Han}+"), "\xE4\xB8\xAD\xE6\x96\x87\xE3\x80\x82",
         "\xE4\xB8\xAD\xE6\x96\x87|\xE3\x80\x82"},
        {REGEX("[\\\\p{^Han}]+"), "\xE4\xB8\xAD\xE3\x80\x82x", "\xE4\xB8\xAD|\xE3\x80\x82x"},
        {REGEX("\\\\P{Han}+"), "\xE4\xB8\xAD\xE3\x80\x82x", "\xE4\xB8\xAD|\xE3\x80\x82x"},
        {REGEX("[[:^upper:]]+"), "AbcD", "A|bc|D"},
        {REGEX("[[:punct:]]"), "a\xE2\x82\xAC+b", "a|\xE2\x82\xAC|+|b"},
        {REGEX("[a[bc]d]+"), "xabcdx[a]", "x|abcd|x[|a|]"},
        {REGEX("[[a][b[c-e]]-]+"), "xab-ex", "x|ab-e|x"},
        /* BLOOM's. */
        {REGEX(" ?[^(\\\\s|[.,!?\xE2\x80\xA6])]+"), "Hi (you|me), ok! \xE2\x80\xA6)",
         "Hi| (|you|||me|),| ok|! \xE2\x80\xA6)"},
        {REGEX("[[:upper:][:digit:]]+"),
         "a\xE2\x85\xA7"
         "7b",
         "a|\xE2\x85\xA7"
         "7|b"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        expect_split(&cases[i]);
}

/* ---- normalizers ----------------------------------------------------------------------------- */

/* A vocabulary of bytes alone, whose decoder gives the normalized text back. */
static char byte_model[16384];

static const char *bytes_only(void)
{
    size_t n =
        (size_t)snprintf(byte_model, sizeof byte_model,
                         "{\"type\":\"BPE\",\"byte_fallback\":true,\"merges\":[],\"vocab\":{");
    for (int i = 0; i < 256; i++) {
        n += (size_t)snprintf(byte_model + n, sizeof byte_model - n, "%s\"<0x%02X>\":%d",
                              i ? "," : "", i, i);
    }
    snprintf(byte_model + n, sizeof byte_model - n, "}}");
    return byte_model;
}

#define FROM_BYTES                                                                                 \
    "{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"}]}"

static void expect_normal(const char *normalizer, const char *text, const char *want)
{
    struct tokenizer *t = kit_make(&(struct kit_parts){
        .model = bytes_only(), .normalizer = normalizer, .decoder = FROM_BYTES});
    struct ids ids = kit_encode(t, text, strlen(text), 0);
    size_t n;
    char *got = kit_decode(t, &ids, &n);
    if (strcmp(got, want) != 0)
        fail_msg("%s\n  \"%s\" becomes \"%s\", not \"%s\"", normalizer, text, got, want);
    free(got);
    ids_free(&ids);
    tokenizer_free(t);
}

static void normalizers(void **state)
{
    (void)state;
    static const struct {
        const char *normalizer, *text, *want;
    } cases[] = {
        {NULL, " as it is\xEF\xAC\x81 ", " as it is\xEF\xAC\x81 "},
        {"{\"type\":\"NFC\"}",
         "ae\xCC\x81\xCC\xA3"
         "b",
         "a\xE1\xBA\xB9\xCC\x81"
         "b"},
        {"{\"type\":\"NFD\"}", "\xC3\xA9\xEA\xB0\x81",
         "e\xCC\x81\xE1\x84\x80\xE1\x85\xA1\xE1\x86\xA8"},
        {"{\"type\":\"NFKC\"}", "\xEF\xAC\x81\xE2\x91\xA0\xEF\xBC\xA1", "fi1A"},
        {"{\"type\":\"NFKD\"}", "\xEF\xAC\x81\xC3\xA9", "fie\xCC\x81"},
        {"{\"type\":\"Lowercase\"}", "\xC3\x84\xC4\xB0 SS", "\xC3\xA4i\xCC\x87 ss"},
        {"{\"type\":\"Strip\",\"strip_left\":true,\"strip_right\":true}", " \xC2\xA0x y\n", "x y"},
        {"{\"type\":\"Strip\",\"strip_left\":false,\"strip_right\":true}", " x ", " x"},
        {"{\"type\":\"StripAccents\"}", "e\xCC\x81\xE0\xA4\xBF", "e"},
        {"{\"type\":\"Prepend\",\"prepend\":\"\xE2\x96\x81\"}", "x", "\xE2\x96\x81x"},
        {"{\"type\":\"Prepend\",\"prepend\":\"_\"}", "", ""},
        {"{\"type\":\"Append\",\"append\":\"_\"}", "x", "x_"},
        {"{\"type\":\"Replace\",\"pattern\":{\"String\":\"aa\"},\"content\":\"b\"}", "aaaaa",
         "bba"},
        {"{\"type\":\"Replace\",\"pattern\":{\"Regex\":\" {2,}\"},\"content\":\" \"}", "a  b   c d",
         "a b c d"},
        {"{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"x*\"},\"content\":\"-\"}", "axb",
         "-a--b-"},
        {"{\"type\":\"ByteLevel\"}", "a \xC3\xA9", "a\xC4\xA0\xC3\x83\xC2\xA9"},
        {"{\"type\":\"BertNormalizer\",\"clean_text\":true,\"handle_chinese_chars\":true,"
         "\"strip_accents\":null,\"lowercase\":true}",
         "H\xC3\xA9\tllo\x01 \xE4\xB8\xAD!", "he llo  \xE4\xB8\xAD !"},
        {"{\"type\":\"BertNormalizer\",\"clean_text\":false,\"handle_chinese_chars\":false,"
         "\"strip_accents\":false,\"lowercase\":false}",
         "H\xC3\xA9\t", "H\xC3\xA9\t"},
        /* As in Unicode 8.0 and 9.0: what has no meaning yet stays. */
        {"{\"type\":\"BertNormalizer\",\"clean_text\":true,\"handle_chinese_chars\":false,"
         "\"strip_accents\":true,\"lowercase\":false}",
         "a\xCD\xB8\xC2\xAD\xE0\xA2\x90\xDF\xBD\xCC\x81", "a\xCD\xB8\xE0\xA2\x90\xDF\xBD"},
        {"{\"type\":\"StripAccents\"}", "\xDF\xBDx\xCC\x81", "\xDF\xBDx"},
        {"{\"type\":\"NFKC\"}", "\xE3\x8B\xBF\xE3\x8B\xBE", "\xE3\x8B\xBF\xE3\x83\xB2"},
        {"{\"type\":\"Nmt\"}",
         "a\x01\tb\xE2\x80\x8B"
         "c\xEF\xBB\xBF",
         "a b c "},
        {"{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFD\"},{\"type\":\"StripAccents\"},"
         "{\"type\":\"Lowercase\"}]}",
         "\xC3\x89T\xC3\x89", "ete"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        expect_normal(cases[i].normalizer, cases[i].text, cases[i].want);
}

/* A trie made by hand, in which "a" becomes "xy". A unit of Darts-clone has its label in the low
 * byte, the offset to its children in bits 10 and up, and bit 8 set where one of them is a value.
 */
static void precompiled(void **state)
{
    (void)state;
    enum { CHILDREN = 256, VALUE = 300 };
    static const char text[] = "xy";
    uint32_t units[512] = {0};
    uint32_t place = CHILDREN ^ 'a';
    units[0] = (uint32_t)CHILDREN << 10;
    units[place] = (place ^ VALUE) << 10 | 1u << 8 | 'a';
    units[VALUE] = 1u << 31 | 0; /* at byte 0 of the replacements */
    unsigned char blob[4 + sizeof units + sizeof text];
    uint32_t size = sizeof units;
    for (size_t i = 0; i < 4; i++)
        blob[i] = (unsigned char)(size >> 8 * i);
    for (size_t i = 0; i < ARRAY_LEN(units); i++)
        for (size_t k = 0; k < 4; k++)
            blob[4 + i * 4 + k] = (unsigned char)(units[i] >> 8 * k);
    memcpy(blob + 4 + sizeof units, text, sizeof text);
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char json[4096] = "{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"";
    size_t n = strlen(json);
    for (size_t i = 0; i < sizeof blob; i += 3) {
        uint32_t three = 0;
        for (size_t k = 0; k < 3; k++)
            three = three << 8 | (i + k < sizeof blob ? blob[i + k] : 0);
        for (size_t k = 0; k < 4; k++)
            json[n++] = digits[three >> (18 - 6 * k) & 63];
    }
    snprintf(json + n, sizeof json - n, "\"}");
    expect_normal(json, "banana", "bxynxynxy");
    expect_normal(json, "plain", "plxyin");
    /* The first character's rule serves the whole grapheme, as in huggingface/tokenizers. */
    expect_normal(json, "a\xCC\x81!", "xy!");
}

/* ---- decoders -------------------------------------------------------------------------------- */

/* Decodes the words of `tokens`, which are separated by blanks ("_" stands for one). */
static void expect_decoded(const char *decoder, const char *tokens, const char *want)
{
    char model[4096] = "{\"type\":\"WordLevel\",\"unk_token\":\"?\",\"vocab\":{\"?\":0";
    size_t n = strlen(model);
    struct ids ids = {0};
    struct err e = {0};
    char seen[64][64];
    int n_seen = 0;
    for (const char *word = tokens; *word;) {
        size_t size = strcspn(word, " ");
        char text[64];
        snprintf(text, sizeof text, "%.*s", (int)size, word);
        for (char *c = text; *c; c++)
            *c = *c == '_' ? ' ' : *c;
        int id = 0;
        while (id < n_seen && strcmp(seen[id], text) != 0)
            id++;
        if (id == n_seen) {
            memcpy(seen[n_seen++], text, sizeof text);
            n += (size_t)snprintf(model + n, sizeof model - n, ",\"%s\":%d", text, id + 1);
        }
        assert_true(ids_push(&ids, id + 1, &e));
        word += size + strspn(word + size, " ");
    }
    snprintf(model + n, sizeof model - n, "}}");
    struct tokenizer *t = kit_make(&(struct kit_parts){.model = model, .decoder = decoder});
    size_t n_got;
    char *got = kit_decode(t, &ids, &n_got);
    if (n_got != strlen(want) || memcmp(got, want, n_got) != 0)
        fail_msg("%s\n  \"%s\" decodes to \"%s\", not \"%s\"", decoder, tokens, got, want);
    free(got);
    ids_free(&ids);
    tokenizer_free(t);
}

#define STRIP(content, start, stop)                                                                \
    "{\"type\":\"Strip\",\"content\":\"" content "\",\"start\":" start ",\"stop\":" stop "}"
#define FUSED(step) "{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Fuse\"}," step "]}"
#define M           "\xE2\x96\x81"

static void decoders(void **state)
{
    (void)state;
    static const struct {
        const char *decoder, *tokens, *want;
    } cases[] = {
        {NULL, "Hey friend", "Hey friend"},
        {"{\"type\":\"Fuse\"}", "Hey friend", "Heyfriend"},
        {"{\"type\":\"ByteLevel\"}", "H \xC4\xA0\xC3\x83 \xC2\xA9", "H \xC3\xA9"},
        {"{\"type\":\"ByteLevel\"}", "\xC4\xA0x _\xE4\xB8\xAD", " x \xE4\xB8\xAD"},
        {"{\"type\":\"ByteFallback\"}", "a <0xE5> <0x8f> <0xAB> <0xG1>", "a\xE5\x8F\xAB<0xG1>"},
        {"{\"type\":\"ByteFallback\"}", "<0xFF> a",
         "\xFF"
         "a"},
        {"{\"type\":\"Metaspace\",\"replacement\":\"" M "\"}", M M "Hey " M "friend!",
         "Hey friend!"},
        {"{\"type\":\"Metaspace\",\"replacement\":\"" M "\",\"prepend_scheme\":\"never\"}",
         M "Hey " M "friend!", " Hey friend!"},
        {STRIP("H", "1", "0"), "Hey _friend! HHH", "ey friend!HH"},
        {STRIP("y", "0", "1"), "Hey _friend!", "He friend!"},
        {FUSED(STRIP(" ", "2", "0")), "_ _a _b", "a b"},
        {FUSED(STRIP("x", "0", "2")), "ax xx b xxx", "axxxbx"},
        {"{\"type\":\"Replace\",\"pattern\":{\"String\":\"" M "\"},\"content\":\" \"}",
         M "a" M " b", " a b"},
        {"{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"[0-9]+\"},\"content\":\"#\"}", "a12 3",
         "a##"},
        {"{\"type\":\"BPEDecoder\",\"suffix\":\"</w>\"}", "he llo</w> you</w>", "hello you"},
        {"{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":false}",
         "##uelo Ara ##\xC3\xBAj ##o No ##guera", "##uelo Ara\xC3\xBAjo Noguera"},
        {"{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true}", "I do n't know . 's",
         "I don't know.'s"},
        {"{\"type\":\"CTC\",\"pad_token\":\"<pad>\",\"word_delimiter_token\":\"|\",\"cleanup\":"
         "true}",
         "<pad> <pad> h e e l l <pad> l o o o <pad> | <pad> w o", "hello wo"},
        {"{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{\"String\":\"" M
         "\"},\"content\":\" \"},{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"}," STRIP(" ", "1",
                                                                                         "0") "]}",
         M "Hey " M "you <0x21>", "Hey you!"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        expect_decoded(cases[i].decoder, cases[i].tokens, cases[i].want);
}

static void decoder_forgets(void **state)
{
    (void)state;
    struct tokenizer *t = kit_make(&(struct kit_parts){
        .model =
            "{\"type\":\"WordLevel\",\"vocab\":{\"a\":0,\"b\":1,\"?\":2},\"unk_token\":\"?\"}"});
    struct err e = {0};
    struct decoder *d = decoder_new(t, false, &e);
    static const struct {
        int32_t id;
        size_t size;
    } tokens[] = {{0, 1}, {1, 2} /* a blank before it */, {77, 0}, {-1, 0}};
    struct bytes text;
    for (size_t i = 0; i < ARRAY_LEN(tokens); i++) {
        assert_true(decoder_next(d, tokens[i].id, &text, &e));
        assert_int_equal(text.size, tokens[i].size);
    }
    decoder_reset(d);
    assert_true(decoder_next(d, 1, &text, &e));
    assert_int_equal(text.size, 1);
    decoder_free(d);
    tokenizer_free(t);
}

/* ---- added tokens and what is put around ----------------------------------------------------- */

#define LETTERS                                                                                    \
    "{\"type\":\"BPE\",\"unk_token\":\"?\",\"vocab\":{\"?\":0,\"a\":1,\"b\":2,\" \":3,\"ab\":4},"  \
    "\"merges\":[\"a b\"]}"
#define ADDED(id, content, flags)                                                                  \
    "{\"id\":" #id ",\"content\":\"" content "\"," flags "\"normalized\":false}"

static void added_tokens(void **state)
{
    (void)state;
    struct tokenizer *t = kit_make(&(struct kit_parts){
        .model = LETTERS,
        .normalizer = "{\"type\":\"Lowercase\"}",
        .added_tokens =
            "[" ADDED(5, "<s>", "\"special\":true,") "," ADDED(6, "<s><s>", "") "," ADDED(
                7, "<l>",
                "\"lstrip\":true,") "," ADDED(8, "<r>",
                                              "\"rstrip\":true,") "," ADDED(9, "aba",
                                                                            "\"single_word\":"
                                                                            "true,") ","
                                                                                     "{\"id\":"
                                                                                     "10,"
                                                                                     "\"content"
                                                                                     "\":"
                                                                                     "\"BB\","
                                                                                     "\"normali"
                                                                                     "zed\":"
                                                                                     "true}]",
    });
    static const struct {
        const char *text, *want;
        unsigned flags;
    } cases[] = {
        {"ab", "4", 0},
        {"<s>a", "0 0 0 1", 0}, /* a user's text never becomes special */
        {"<s>a", "5 1", ENCODE_PARSE_SPECIAL},
        {"<s><s>a", "6 1", 0}, /* the longest */
        {"a  <l>  b", "1 7 3 3 2", 0},
        {"a  <r>  b", "1 3 3 8 2", 0},
        {"<l> <l>", "7 7", 0},
        {"a aba b", "1 3 9 3 2", 0},
        {"xaba", "0 4 1", 0},
        {"<r>  <l>", "8 7", 0},
        {"ABAb", "4 4", 0},    /* searched for before the text is lower case */
        {"aBBa", "1 10 1", 0}, /* searched for behind */
        {"abba", "1 10 1", 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        kit_expect_ids(t, cases[i].text, cases[i].flags, cases[i].want);
    assert_true(tokenizer_is_special(t, 5));
    assert_false(tokenizer_is_special(t, 6));
    assert_int_equal(tokenizer_n_ids(t), 11);
    assert_memory_equal(tokenizer_piece(t, 7).data, "<l>", 3);
    assert_null(tokenizer_piece(t, 11).data);
    tokenizer_free(t);
}

/* What tokenizer_config.json adds to the tokens of tokenizer.json: entries of added_tokens_decoder,
 * whose flags count, and special tokens that are named. */
static void added_tokens_of_config(void **state)
{
    (void)state;
#define DECODER(entries) "\"added_tokens_decoder\":{" entries "}"
    static const struct {
        const char *config, *text, *want;
        unsigned special; /* ids that are, besides 6: bits */
        unsigned flags;
    } cases[] = {
        {NULL, "<x><s>a", "5 0 0 0 1", 0, 0},
        {"{}", "<new>", "0 0 0 0 0", 0, 0},
        {"{" DECODER("\"5\":{\"content\":\"<x>\",\"rstrip\":true}") "}", "<x>  a", "5 1", 0, 0},
        {"{" DECODER("\"2\":{\"content\":\"b\",\"lstrip\":true}") "}", "a  b", "1 2", 0, 0},
        {"{" DECODER("\"7\":{\"content\":\"<new>\"}") "}", "<new>a", "7 1", 0, 0},
        {"{" DECODER("\"8\":{\"content\":\"<n>\"},\"7\":{\"content\":\"<m>\"}") "}", "<m><n>",
         "7 8", 0, 0},
        /* the id 1 is another's */
        {"{" DECODER("\"1\":{\"content\":\"<new>\"}") "}", "<new>", "7", 0, 0},
        /* special once, special for ever; and what is named is */
        {"{" DECODER("\"6\":{\"content\":\"<s>\",\"special\":false}") "}", "<s>", "0 0 0", 0, 0},
        {"{" DECODER("\"5\":{\"content\":\"<x>\"}") ",\"eos_token\":\"<x>\"}", "<x>", "0 0 0",
         1u << 5, 0},
        {"{" DECODER("\"5\":{\"content\":\"<x>\"}") ",\"eos_token\":\"<x>\"}", "<x>", "5", 1u << 5,
         ENCODE_PARSE_SPECIAL},
        {"{\"eos_token\":\"<x>\"}", "<x>", "5", 0, 0}, /* tokenizer.json knows better */
        /* names of what the vocabulary alone has: text becomes them as before */
        {"{\"eos_token\":\"b\"}", "ab b", "4 3 2", 1u << 2, 0},
        {"{\"eos_token\":\"b\"}", "ab", "1 2", 1u << 2, ENCODE_PARSE_SPECIAL},
        {"{\"pad_token\":{\"content\":\"b\",\"rstrip\":true}}", "b a", "2 1", 1u << 2,
         ENCODE_PARSE_SPECIAL},
        {"{\"bos_token\":{\"content\":\"b\",\"rstrip\":true},\"eos_token\":\"b\"}", "b a", "2 1",
         1u << 2, ENCODE_PARSE_SPECIAL},
        {"{\"additional_special_tokens\":[\"ab\",\"b\",\"ab\"]}", "abb", "4 2", 1u << 2 | 1u << 4,
         ENCODE_PARSE_SPECIAL},
        {"{\"extra_special_tokens\":{\"image_token\":{\"content\":\"b\",\"lstrip\":true}}}", "a b",
         "1 2", 1u << 2, ENCODE_PARSE_SPECIAL},
        {"{\"pad_token\":\"<new>\"}", "<new>", "0 0 0 0 0", 0, ENCODE_PARSE_SPECIAL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct tokenizer *t = kit_make(&(struct kit_parts){
            .model = LETTERS,
            .added_tokens = "[" ADDED(5, "<x>", "") "," ADDED(6, "<s>", "\"special\":true,") "]",
            .config = cases[i].config,
        });
        kit_expect_ids(t, cases[i].text, cases[i].flags, cases[i].want);
        for (int32_t id = 0; id < tokenizer_n_ids(t); id++)
            assert_int_equal(tokenizer_is_special(t, id), id == 6 || (cases[i].special >> id & 1));
        tokenizer_free(t);
    }
}

/* Unigram and WordPiece make nothing special of text, but for a word that is only named so. */
static void named_words(void **state)
{
    (void)state;
    static const char *const models[] = {
        "{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"?\",0],[\"a\",-1],[\"!\",-1],[\"b\",-1]]"
        "}",
        "{\"type\":\"WordPiece\",\"unk_token\":\"?\",\"continuing_subword_prefix\":\"\","
        "\"max_input_chars_per_word\":100,\"vocab\":{\"?\":0,\"a\":1,\"!\":2,\"b\":3}}",
    };
    for (size_t i = 0; i < ARRAY_LEN(models); i++) {
        struct tokenizer *t =
            kit_make(&(struct kit_parts){.model = models[i], .config = "{\"pad_token\":\"!\"}"});
        kit_expect_ids(t, "a!b", 0, "1 2 3");
        kit_expect_ids(t, "a!b", ENCODE_PARSE_SPECIAL, "1 2 3");
        assert_true(tokenizer_is_special(t, 2));
        tokenizer_free(t);
    }
}

/* special_tokens_map.json is asked where there is no added_tokens_decoder. */
static void special_tokens_map(void **state)
{
    (void)state;
    static const char *const configs[] = {"{}", "{\"added_tokens_decoder\":{}}"};
    for (size_t i = 0; i < ARRAY_LEN(configs); i++) {
        struct err e = {0};
        struct tokenizer *t = tokenizer_load(
            &(struct tokenizer_files){
                .tokenizer_json = kit_bytes("{\"model\":" LETTERS "}"),
                .tokenizer_config = kit_bytes(configs[i]),
                .special_tokens_map = kit_bytes("{\"pad_token\":\"b\"}"),
            },
            &e);
        assert_non_null(t);
        kit_expect_ids(t, "ab", ENCODE_PARSE_SPECIAL, i ? "4" : "1 2");
        tokenizer_free(t);
    }
}

/* The search for tokens goes on within what rstrip took in, as in huggingface/tokenizers. */
static void added_tokens_overlap(void **state)
{
    (void)state;
    struct tokenizer *t = kit_make(&(struct kit_parts){
        .model = LETTERS,
        .added_tokens = "[" ADDED(5, "<r>", "\"rstrip\":true,") "," ADDED(6, "  ", "") "," ADDED(
            7, "\\t\\t", "\"lstrip\":true,") "]",
    });
    kit_expect_ids(t, "<r>  b", 0, "5 6 2");
    kit_expect_ids(t, "<r>   b", 0, "5 6 3 2"); /* the last blank is text again */
    kit_expect_ids(t, "<r>\t\tb", 0, "5 2");    /* nothing is left of the second */
    kit_expect_ids(t, "<r>  \t\tb", 0, "5 6 7 2");
    tokenizer_free(t);
}

/* No word becomes an added token that the model's own vocabulary lacks. */
static void added_tokens_are_no_words(void **state)
{
    (void)state;
#define VOCAB "\"vocab\":{\"?\":0,\"x\":1,\"f\":2}"
    static const char *const models[] = {
        "{\"type\":\"WordLevel\",\"unk_token\":\"?\"," VOCAB "}",
        "{\"type\":\"WordPiece\",\"unk_token\":\"?\"," VOCAB "}",
        "{\"type\":\"BPE\",\"unk_token\":\"?\",\"fuse_unk\":true,\"ignore_merges\":true,"
        "\"merges\":[]," VOCAB "}"};
    for (size_t i = 0; i < ARRAY_LEN(models); i++) {
        struct tokenizer *t = kit_make(&(struct kit_parts){
            .model = models[i],
            .added_tokens =
                "[" ADDED(3, "oo", "") "," ADDED(4, "\xC3\xA9", "\"single_word\":true,") "]",
            .pre_tokenizer = SPLIT("{\"String\":\"x\"}", "Isolated", "false")});
        kit_expect_ids(t, "oo\xC3\xA9", 0, "3 0"); /* a word character stands before it */
        kit_expect_ids(t, "x\xC3\xA9", 0, "1 0");
        kit_expect_ids(t, "oo \xC3\xA9", 0, "3 0 4");
        tokenizer_free(t);
    }
}

#define TEMPLATE(single)                                                                           \
    "{\"type\":\"TemplateProcessing\",\"single\":[" single "],\"pair\":[],\"special_tokens\":"     \
    "{\"<s>\":{\"id\":\"<s>\",\"ids\":[5],\"tokens\":[\"<s>\"]}}}"
#define BOS "{\"SpecialToken\":{\"id\":\"<s>\",\"type_id\":0}}"
#define A   "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}"

static void post_processors(void **state)
{
    (void)state;
    static const struct {
        const char *post_processor, *config, *want;
    } cases[] = {
        {NULL, NULL, "1"},
        {TEMPLATE(BOS "," A), NULL, "5 1"},
        {TEMPLATE(A "," BOS), NULL, "1 5"},
        {"{\"type\":\"ByteLevel\",\"trim_offsets\":false}", NULL, "1"},
        {"{\"type\":\"RobertaProcessing\",\"sep\":[\"</s>\",6],\"cls\":[\"<s>\",5]}", NULL,
         "5 1 6"},
        {"{\"type\":\"BertProcessing\",\"sep\":[\"</s>\",6],\"cls\":[\"<s>\",5]}", NULL, "5 1 6"},
        {"{\"type\":\"Sequence\",\"processors\":[{\"type\":\"ByteLevel\"}," TEMPLATE(BOS
                                                                                     "," A) "]}",
         NULL, "5 1"},
        /* Without a post-processor that adds, tokenizer_config.json decides. */
        {NULL, "{\"add_bos_token\":true,\"bos_token\":\"<s>\"}", "5 1"},
        {NULL,
         "{\"add_bos_token\":true,\"bos_token\":{\"content\":\"<s>\"},\"add_eos_token\":true,"
         "\"eos_token\":\"</s>\"}",
         "5 1 6"},
        {NULL, "{\"add_bos_token\":true,\"bos_token\":\"<none>\"}", "1"},
        {TEMPLATE(BOS "," A), "{\"add_bos_token\":false,\"bos_token\":\"<s>\"}", "5 1"},
        /* Llama's fast tokenizer writes its own template. */
        {TEMPLATE(BOS "," A),
         "{\"add_bos_token\":false,\"bos_token\":\"<s>\",\"tokenizer_class\":\"LlamaTokenizer\"}",
         "1"},
        {NULL, "{\"bos_token\":\"<s>\",\"tokenizer_class\":\"LlamaTokenizerFast\"}", "5 1"},
        /* What transformers 5 has saved has the template that it means. */
        {NULL,
         "{\"backend\":\"tokenizers\",\"bos_token\":\"<s>\",\"tokenizer_class\":"
         "\"LlamaTokenizer\"}",
         "1"},
        {TEMPLATE(BOS "," A),
         "{\"backend\":\"tokenizers\",\"bos_token\":\"<s>\",\"tokenizer_class\":"
         "\"LlamaTokenizer\"}",
         "5 1"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct tokenizer *t = kit_make(&(struct kit_parts){
            .model = LETTERS,
            .added_tokens = "[" ADDED(5, "<s>", "\"special\":true,") "," ADDED(
                6, "</s>", "\"special\":true,") "]",
            .post_processor = cases[i].post_processor,
            .config = cases[i].config,
        });
        kit_expect_ids(t, "a", ENCODE_ADD_SPECIAL, cases[i].want);
        kit_expect_ids(t, "a", 0, "1");
        tokenizer_free(t);
    }
}

/* ---- models ---------------------------------------------------------------------------------- */

static void bpe_options(void **state)
{
    (void)state;
    static const struct {
        const char *model, *text, *want;
    } cases[] = {
        /* The lowest rank first, and of equal ones the leftmost. */
        {"{\"vocab\":{\"a\":0,\"b\":1,\"c\":2,\"bc\":3,\"ab\":4,\"aa\":5},"
         "\"merges\":[\"b c\",\"a b\",\"a a\"]}",
         "abcab", "0 3 4"},
        {"{\"vocab\":{\"a\":0,\"aa\":1},\"merges\":[\"a a\"]}", "aaaaa", "1 1 0"},
        {"{\"vocab\":{\"a\":0,\"aa\":1},\"merges\":[[\"a\",\"a\"]]}", "aaa", "1 0"},
        /* Unknown characters: dropped, one each, or fused. */
        {"{\"vocab\":{\"a\":0},\"merges\":[]}", "xaxx", "0"},
        {"{\"vocab\":{\"a\":0,\"?\":1},\"merges\":[],\"unk_token\":\"?\"}", "xaxx", "1 0 1 1"},
        {"{\"vocab\":{\"a\":0,\"?\":1},\"merges\":[],\"unk_token\":\"?\",\"fuse_unk\":true}",
         "xaxx", "1 0 1"},
        {"{\"vocab\":{\"a\":0,\"?\":1,\"<0x78>\":2},\"merges\":[],\"unk_token\":\"?\","
         "\"byte_fallback\":true}",
         "xay", "2 0 1"},
        {"{\"vocab\":{\"a\":0,\"?\":1,\"<0x78>\":2},\"merges\":[],\"unk_token\":\"?\","
         "\"byte_fallback\":true}",
         "yxa", "2 1 0"}, /* the unknown token waits for what is not spelled in bytes */
        {"{\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[\"a b\"]}", "axb", "2"},
        {"{\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"abb\":3},\"merges\":[\"a "
         "b\"],\"ignore_merges\":true}",
         "abb", "3"},
        {"{\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"abb\":3},\"merges\":[\"a b\"]}", "abb", "2 1"},
        {"{\"vocab\":{\"a\":0,\"##b\":1,\"ab\":2,\"##c\":3},\"merges\":[\"a ##b\"],"
         "\"continuing_subword_prefix\":\"##\"}",
         "abc", "2 3"},
        {"{\"vocab\":{\"a\":0,\"b</w>\":1,\"ab</w>\":2,\"b\":3},\"merges\":[\"a b</w>\"],"
         "\"end_of_word_suffix\":\"</w>\"}",
         "bab", "3 2"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct tokenizer *t = kit_make(&(struct kit_parts){.model = cases[i].model});
        kit_expect_ids(t, cases[i].text, 0, cases[i].want);
        tokenizer_free(t);
    }
}

static void unigram(void **state)
{
    (void)state;
    /* The example of huggingface/tokenizers' documentation. */
    struct tokenizer *t = kit_make(&(struct kit_parts){
        .model = "{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"<unk>\",0],[\"a\",0],[\"b\",0],"
                 "[\"c\",0],[\"d\",0],[\"cd\",1],[\"ab\",2],[\"abc\",5],[\"abcd\",10]]}"});
    kit_expect_ids(t, "abcdacdxx", 0, "8 1 5 0");
    kit_expect_ids(t, "", 0, "");
    tokenizer_free(t);
    t = kit_make(&(struct kit_parts){
        .model =
            "{\"type\":\"Unigram\",\"unk_id\":0,\"byte_fallback\":true,\"vocab\":[[\"<unk>\",0],"
            "[\"a\",-1],[\"<0x78>\",0],[\"<0xC3>\",0]]}"});
    kit_expect_ids(t, "axxa\xC3\xA9", 0, "1 2 2 1 0");
    kit_expect_ids(t, "<0x78>", 0, "0"); /* the name of a byte is text, and has no piece */
    tokenizer_free(t);
}

static void wordpiece(void **state)
{
    (void)state;
    struct tokenizer *t = kit_make(&(struct kit_parts){
        .model =
            "{\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\",\"continuing_subword_prefix\":\"##\","
            "\"max_input_chars_per_word\":10,\"vocab\":{\"[UNK]\":0,\"un\":1,\"##aff\":2,"
            "\"##able\":3,\"##a\":4,\"[SEP]\":5}}",
        .pre_tokenizer = "{\"type\":\"WhitespaceSplit\"}",
        .added_tokens = "[" ADDED(5, "[SEP]", "\"special\":true,") "]"});
    kit_expect_ids(t, "unaffable una unx ununununun", 0, "1 2 3 1 4 0 0");
    kit_expect_ids(t, "[SEP]", 0, "0");
    kit_expect_ids(t, "[SEP]", ENCODE_PARSE_SPECIAL, "5");
    tokenizer_free(t);
}

/* Where the n tokens of the text come from. */
static void expect_spans(struct tokenizer *t, const char *text, const struct token_span *want,
                         size_t n)
{
    struct err e = {0};
    struct ids ids = {0};
    struct token_spans where = {0};
    struct encoder *en = encoder_new(t, &e);
    assert_true(encoder_encode_spans(en, text, strlen(text), 0, &ids, &where, &e));
    assert_int_equal(where.n, n);
    assert_memory_equal(where.at, want, n * sizeof *want);
    ids_free(&ids);
    token_spans_free(&where);
    encoder_free(en);
}

static void spans(void **state)
{
    (void)state;
    struct tokenizer *t = kit_make(&(struct kit_parts){
        .model = "{\"type\":\"BPE\",\"vocab\":{\"" M "\":0,\"a\":1,\"" M "a\":2,\"e\":3},"
                 "\"merges\":[\"" M " a\"]}",
        .normalizer =
            "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"StripAccents\"},{\"type\":"
            "\"Prepend\",\"prepend\":\"" M "\"},{\"type\":\"Replace\",\"pattern\":{\"String\":"
            "\" \"},\"content\":\"" M "\"}]}"});
    static const char text[] = "a ae\xCC\x81"
                               "a";
    static const struct token_span want[] = {{0, 1}, {1, 3}, {3, 4}, {6, 7}};
    expect_spans(t, text, want, ARRAY_LEN(want));
    tokenizer_free(t);
}

/* What is written behind a word and spelled in bytes came from nothing. */
static void spans_of_affixes(void **state)
{
    (void)state;
    struct tokenizer *t = kit_make(&(struct kit_parts){
        .model = "{\"type\":\"BPE\",\"vocab\":{\"?\":0,\"<0x78>\":1,\"<0x21>\":2},\"merges\":[],"
                 "\"byte_fallback\":true,\"end_of_word_suffix\":\"!!\"}"});
    static const struct token_span want[] = {{0, 1}, {1, 2}, {2, 2}, {2, 2}};
    expect_spans(t, "xx", want, ARRAY_LEN(want));
    tokenizer_free(t);
}

/* ---- bad input ------------------------------------------------------------------------------- */

static void expect_refused(const struct kit_parts *parts, const char *why)
{
    struct err e = {0};
    struct tokenizer *t = kit_try(parts, &e);
    if (t) {
        tokenizer_free(t);
        fail_msg("loads, but should be refused: %s", why);
    }
    assert_int_equal(e.code, ERR_LOAD);
    if (!strstr(e.text, why))
        fail_msg("\"%s\" does not say \"%s\"", e.text, why);
}

static void bad_models(void **state)
{
    (void)state;
    static const struct {
        const char *model, *why;
    } cases[] = {
        {NULL, "no \"model\""},
        {"3", "no object"},
        {"{\"type\":\"Magic\",\"vocab\":{}}", "Magic"},
        {"{\"type\":\"BPE\",\"merges\":[]}", "no \"vocab\""},
        {"{\"type\":\"BPE\",\"vocab\":{}}", "merges"},
        {"{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a b\"]}", "merge 0 names \"b\""},
        {"{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a a\"]}", "merge 0 names \"aa\""},
        {"{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a\"]}", "blank between"},
        {"{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[[\"a\"]]}", "merge 0"},
        {"{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[7]}", "merge 0"},
        {"{\"type\":\"BPE\",\"vocab\":{\"a\":-1},\"merges\":[]}", "whole number"},
        {"{\"type\":\"BPE\",\"vocab\":{\"a\":0.5},\"merges\":[]}", "whole number"},
        {"{\"type\":\"BPE\",\"vocab\":{\"a\":4000000000},\"merges\":[]}", "whole number"},
        {"{\"type\":\"BPE\",\"vocab\":{\"a\":\"x\"},\"merges\":[]}", "number"},
        {"{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":0},\"merges\":[]}", "two tokens"},
        {"{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"a\":1},\"merges\":[]}", "two ids"},
        {"{\"type\":\"BPE\",\"vocab\":{},\"merges\":[],\"dropout\":0.1}", "dropout"},
        {"{\"type\":\"Unigram\",\"unk_id\":3,\"vocab\":[[\"a\",0]]}", "unk_id"},
        {"{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"a\"]]}", "entry 0"},
        {"{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"a\",0],[\"\xE4\",0]]}",
         "not UTF-8 at byte"},
        {"{\"type\":\"WordPiece\",\"unk_token\":\"x\",\"vocab\":{\"a\":0}}", "unk_token"},
        {"{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a", "JSON"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        expect_refused(&(struct kit_parts){.model = cases[i].model}, cases[i].why);
}

static void bad_components(void **state)
{
    (void)state;
#define FOUR(s) s s s s
    static const struct {
        struct kit_parts parts;
        const char *why;
    } cases[] = {
        {{.normalizer = "{\"type\":\"Shout\"}"}, "normalizer \"Shout\""},
        {{.normalizer = "{}"}, "without a \"type\""},
        {{.normalizer = "{\"type\":\"Sequence\"}"}, "normalizers"},
        {{.normalizer = "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"(\"},\"content\":\"\"}"},
         "refused by pcre2"},
        {{.normalizer = "{\"type\":\"Replace\",\"pattern\":7,\"content\":\"\"}"}, "pattern"},
        {{.normalizer = "{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"AAAB\"}"},
         "charsmap"},
        {{.normalizer = "{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"????\"}"}, "base64"},
        {{.pre_tokenizer = "{\"type\":\"Chop\"}"}, "pre_tokenizer \"Chop\""},
        {{.pre_tokenizer = SPLIT(DASH, "Sideways", "false")}, "Sideways"},
        {{.pre_tokenizer = SPLIT("{\"Regex\":\"[a[^b]]\"}", "Isolated", "false")}, "class within"},
        {{.pre_tokenizer = SPLIT("{\"Regex\":\"[a[]b]]\"}", "Isolated", "false")}, "empty class"},
        {{.pre_tokenizer = SPLIT("{\"Regex\":\"[a-[b]]\"}", "Isolated", "false")}, "behind a dash"},
        {{.pre_tokenizer = SPLIT("{\"Regex\":\"[[a]-b]\"}", "Isolated", "false")}, "before a dash"},
        {{.pre_tokenizer = SPLIT("{\"Regex\":\"[a[-h]]\"}", "Isolated", "false")}, "behind a dash"},
        {{.pre_tokenizer = SPLIT("{\"Regex\":\"[[a-]h]\"}", "Isolated", "false")}, "before a dash"},
        {{.pre_tokenizer = SPLIT("{\"Regex\":\"[a[b&&[c]]]\"}", "Isolated", "false")},
         "an intersection"},
        {{.pre_tokenizer = SPLIT("{\"Regex\":\"\\\\C\"}", "Isolated", "false")}, "has \\C"},
        {{.pre_tokenizer = SPLIT("{\"Regex\":\"[\\\\Q\\\\E]\"}", "Isolated", "false")},
         "not supported"},
        {{.pre_tokenizer =
              SPLIT("{\"Regex\":\"" FOUR(FOUR("[a&&")) "[a&&[a]]" FOUR(FOUR("]")) "\"}", "Isolated",
                    "false")},
         "classes nested too deep"},
        {{.pre_tokenizer = "{\"type\":\"Metaspace\",\"replacement\":\"ab\"}"}, "one character"},
        {{.pre_tokenizer =
              "{\"type\":\"Metaspace\",\"replacement\":\"_\",\"prepend_scheme\":\"x\"}"},
         "prepend_scheme"},
        {{.pre_tokenizer = "{\"type\":\"FixedLength\",\"length\":0}"}, "length"},
        {{.post_processor = "{\"type\":\"Wrap\"}"}, "post_processor \"Wrap\""},
        {{.post_processor = TEMPLATE("")}, "$A once"},
        {{.post_processor = TEMPLATE(A "," A)}, "$A once"},
        {{.post_processor = TEMPLATE(A "," BOS)}, "id 5 is not in the vocabulary"},
        {{.decoder = "{\"type\":\"Sing\"}"}, "decoder \"Sing\""},
        {{.decoder = FUSED("{\"type\":\"WordPiece\"}")}, "behind Fuse"},
        {{.added_tokens = "7"}, "added_tokens"},
        {{.added_tokens = "[{\"id\":-5,\"content\":\"x\"}]"}, "id"},
        {{.added_tokens = "[{\"id\":1}]"}, "content"},
        {{.added_tokens = "[{\"id\":0,\"content\":\"x\"}]"}, "two tokens"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct kit_parts parts = cases[i].parts;
        parts.model = "{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]}";
        expect_refused(&parts, cases[i].why);
    }
}

static void bad_files(void **state)
{
    (void)state;
    static const struct {
        struct tokenizer_files files;
        const char *why;
    } cases[] = {
#define FILE_OF(s) {(const unsigned char *)(s), sizeof(s) - 1}
        {{.tokenizer_json = {NULL, 0}}, "there is no tokenizer"},
        {{.tokenizer_json = FILE_OF("")}, "tokenizer.json"},
        {{.tokenizer_json = FILE_OF("{\"model\": \xFF}")}, "not UTF-8 at byte 10"},
        {{.tokenizer_json = FILE_OF("{} x")}, "more text"},
        {{.vocab_json = FILE_OF("{\"a\":0}")}, "there is no tokenizer"},
        {{.vocab_json = FILE_OF("{\"a\":0}"), .merges_txt = FILE_OF("a b\n")},
         "merges.txt: merge 0"},
        {{.vocab_json = FILE_OF("[]"), .merges_txt = FILE_OF("")}, "vocab.json"},
        {{.tokenizer_model = FILE_OF("\x0A\xFF\xFF")}, "SentencePiece"},
        {{.tokenizer_model = FILE_OF("\x0A\x03\x0A\x01"
                                     "a")},
         "unknown one"},
        {{.tokenizer_model = FILE_OF("\x0A\x09\x0A\x05<unk>\x18\x02"
                                     "\x0A\x08\x0A\x01"
                                     "a\x15\x00\x00\xC0\x7F" /* NaN */
                                     "\x12\x02\x18\x02")},
         "piece 1 has no score"},
        {{.tiktoken = FILE_OF("YQ== 0\n")}, "pat_str"},
        {{.tiktoken = FILE_OF("YQ==\n"), .tokenizer_config = FILE_OF("{\"pat_str\":\"a\"}")},
         "line 1"},
        {{.tekken = FILE_OF("{\"special_tokens\":{}}")}, "\"special_tokens\" must be an array"},
        {{.tekken = FILE_OF("{}")}, "tekken.json: config: \"pattern\" must be a string"},
        {{.tekken = FILE_OF("{\"config\":{\"pattern\":\".\"}}")}, "no \"vocab\""},
        {{.tekken = FILE_OF("{\"config\":{\"pattern\":\".\",\"default_num_special_tokens\":9},"
                            "\"vocab\":[]}")},
         "room for 20 special tokens"},
        {{.tekken = FILE_OF("{\"config\":{\"pattern\":\".\"},\"vocab\":[{\"rank\":1,"
                            "\"token_bytes\":\"YQ==\"}]}")},
         "token 0 must have"},
        {{.tekken = FILE_OF("{\"config\":{\"pattern\":\".\"},\"vocab\":[{\"rank\":0,"
                            "\"token_bytes\":\"*\"}]}")},
         "token 0 must have"},
        {{.tekken = FILE_OF("{\"config\":{\"pattern\":\".\"},\"vocab\":[],\"special_tokens\":"
                            "[{\"rank\":1,\"token_str\":\"<s>\"}]}")},
         "special token 0"},
        {{.tokenizer_json = FILE_OF("{}"), .tokenizer_config = FILE_OF("{")},
         "tokenizer_config.json"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err e = {0};
        struct tokenizer *t = tokenizer_load(&cases[i].files, &e);
        assert_null(t);
        assert_int_equal(e.code, ERR_LOAD);
        if (!strstr(e.text, cases[i].why))
            fail_msg("\"%s\" does not say \"%s\"", e.text, cases[i].why);
    }
}

/* ---- older files ----------------------------------------------------------------------------- */

static void old_files(void **state)
{
    (void)state;
    struct tokenizer_files files = {
        .vocab_json = kit_bytes("{\"a\":0,\"b\":1,\"ab\":2,\"\\u0120\":3,\"<|endoftext|>\":4}"),
        .merges_txt = kit_bytes("#version: 0.2\na b\r\n"),
    };
    struct err e = {0};
    struct tokenizer *t = tokenizer_load(&files, &e);
    assert_non_null(t);
    kit_expect_ids(t, "ab ba", 0, "2 3 1 0");
    assert_true(tokenizer_is_special(t, 4));
    tokenizer_free(t);
    files = (struct tokenizer_files){
        .tiktoken = kit_bytes("YQ== 0\nYg== 1\nYWI= 2\nIA== 3\n4w== 4\n"),
        .tokenizer_config = kit_bytes("{\"pat_str\":\" ?[a-z]+|.\",\"eos_token\":\"<e>\"}"),
    };
    t = tokenizer_load(&files, &e);
    assert_non_null(t);
    kit_expect_ids(t, "ab ba\xE3", 0, "2 3 1 0 4");
    assert_int_equal(tokenizer_eos(t), 5);
    tokenizer_free(t);
    /* Pieces <unk>, <s>, a (-1), b (-2), U+2581 (-3), "ab" (-0.5); BPE; nothing added, no prefix.
     */
    static const unsigned char model[] = "\x0A\x09\x0A\x05<unk>\x18\x02"
                                         "\x0A\x07\x0A\x03<s>\x18\x03"
                                         "\x0A\x08\x0A\x01"
                                         "a\x15\x00\x00\x80\xBF"
                                         "\x0A\x08\x0A\x01"
                                         "b\x15\x00\x00\x00\xC0"
                                         "\x0A\x0A\x0A\x03\xE2\x96\x81\x15\x00\x00\x40\xC0"
                                         "\x0A\x09\x0A\x02"
                                         "ab\x15\x00\x00\x00\xBF"
                                         "\x12\x02\x18\x02"
                                         "\x1A\x04\x18\x00\x20\x00";
    files = (struct tokenizer_files){.tokenizer_model = {model, sizeof model - 1}};
    t = tokenizer_load(&files, &e);
    if (!t)
        fail_msg("%s", e.text);
    kit_expect_ids(t, "ab  b", 0, "5 4 4 3");
    kit_expect_ids(t, "b", ENCODE_ADD_SPECIAL, "1 3");
    tokenizer_free(t);
}

/* Ids begin with the special tokens, of which text means one even where a token is spelled so; what
 * lies behind default_vocab_size is padding. */
static void tekken(void **state)
{
    (void)state;
#define TOKEN(rank, code) "{\"rank\":" rank ",\"token_bytes\":\"" code "\",\"token_str\":null}"
#define RANKED                                                                                     \
    "\"vocab\":[" TOKEN("0", "YQ==") "," TOKEN("1", "Yg==") "," TOKEN("2", "IA==") "," TOKEN(      \
        "3", "YWI=") "," TOKEN("4", "PHM+") "," TOKEN("5", "YmE=") "]"
    const struct tokenizer_files listed = {
        .tekken = kit_bytes("{" RANKED ",\"special_tokens\":[{\"rank\":0,\"token_str\":\"<unk>\"},"
                            "{\"rank\":1,\"token_str\":\"<s>\",\"is_control\":true}],\"config\":"
                            "{\"pattern\":\" ?[a-z]+|[^a-z]+\",\"default_num_special_tokens\":4,"
                            "\"default_vocab_size\":9},\"image\":{\"max_image_size\":[1]}}")};
    const struct tokenizer_files first = {
        .tekken = kit_bytes(
            "{\"special_tokens\":null,\"config\":{\"pattern\":\" ?[a-z]+|.\"}," RANKED "}")};
    struct err e = {0};
    struct tokenizer *t = tokenizer_load(&listed, &e);
    if (!t)
        fail_msg("%s", e.text);
    kit_expect_ids(t, "ab ba", 0, "7 6 5 4");
    kit_expect_ids(t, "a<SPECIAL_3><s>", ENCODE_ADD_SPECIAL | ENCODE_PARSE_SPECIAL, "1 4 3 1");
    assert_true(tokenizer_is_special(t, 3));
    assert_int_equal(tokenizer_n_ids(t), 8);
    assert_int_equal(tokenizer_eos(t), -1);
    tokenizer_free(t);
    t = tokenizer_load(&first, &e);
    if (!t)
        fail_msg("%s", e.text);
    kit_expect_ids(t, "[INST]ba", ENCODE_ADD_SPECIAL | ENCODE_PARSE_SPECIAL, "1 3 25");
    assert_int_equal(tokenizer_eos(t), 2);
    tokenizer_free(t);
}

/* Qwen's two files are cut and normalized in Qwen's way. */
static void qwen_files(void **state)
{
    (void)state;
    static const char *const configs[] = {"{}", "{\"tokenizer_class\":\"Qwen2Tokenizer\"}",
                                          "{\"tokenizer_class\":\"Qwen2TokenizerFast\"}"};
    for (size_t i = 0; i < ARRAY_LEN(configs); i++) {
        struct err e = {0};
        struct tokenizer *t = tokenizer_load(
            &(struct tokenizer_files){
                .vocab_json = kit_bytes("{\"'\":0,\"M\":1,\"'M\":2,\"e\":3,\"\xC3\x83\":4,"
                                        "\"\xC2\xA9\":5,\"\xC3\x8C\":6,\"\xC4\xA3\":7}"),
                .merges_txt = kit_bytes("' M\n"),
                .tokenizer_config = kit_bytes(configs[i])},
            &e);
        if (!t)
            fail_msg("%s", e.text);
        kit_expect_ids(t, "'Me\xCC\x81", 0, i ? "2 4 5" : "0 1 3 6 7");
        tokenizer_free(t);
    }
}

/* Kimi's pattern, which its module stands for, parts what is Han from other letters. */
static void tiktoken_modules(void **state)
{
    (void)state;
#define CONFIG(auto_map) "{\"tokenizer_class\":\"TikTokenTokenizer\"" auto_map "}"
#define AUTO(name)       ",\"auto_map\":{\"AutoTokenizer\":" name "}"
    static const struct {
        const char *config, *want;
    } cases[] = {
        {CONFIG(""), "6"},
        {CONFIG(AUTO("[\"tokenization_other.TikTokenTokenizer\",null]")), "6"},
        {CONFIG(AUTO("[\"tokenization_kimi.TikTokenTokenizer\",null]")), "0 5"},
        {CONFIG(AUTO("\"moonshotai/Kimi-K2-Base--tokenization_kimi.TikTokenTokenizer\"")), "0 5"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err e = {0};
        struct tokenizer *t = tokenizer_load(
            &(struct tokenizer_files){
                .tokenizer_model =
                    kit_bytes("aA== 0\n5A== 1\nuA== 2\nrQ== 3\n5Lg= 4\n5Lit 5\naOS4rQ== 6\n"),
                .tokenizer_config = kit_bytes(cases[i].config)},
            &e);
        assert_non_null(t);
        kit_expect_ids(t, "h\xE4\xB8\xAD", 0, cases[i].want);
        tokenizer_free(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pre_tokenizers),
        cmocka_unit_test(patterns),
        cmocka_unit_test(normalizers),
        cmocka_unit_test(precompiled),
        cmocka_unit_test(decoders),
        cmocka_unit_test(decoder_forgets),
        cmocka_unit_test(added_tokens),
        cmocka_unit_test(added_tokens_of_config),
        cmocka_unit_test(named_words),
        cmocka_unit_test(special_tokens_map),
        cmocka_unit_test(added_tokens_overlap),
        cmocka_unit_test(added_tokens_are_no_words),
        cmocka_unit_test(post_processors),
        cmocka_unit_test(bpe_options),
        cmocka_unit_test(unigram),
        cmocka_unit_test(wordpiece),
        cmocka_unit_test(spans),
        cmocka_unit_test(spans_of_affixes),
        cmocka_unit_test(bad_models),
        cmocka_unit_test(bad_components),
        cmocka_unit_test(bad_files),
        cmocka_unit_test(old_files),
        cmocka_unit_test(tiktoken_modules),
        cmocka_unit_test(tekken),
        cmocka_unit_test(qwen_files),
        cmocka_unit_test(patterns_as_ruby),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
