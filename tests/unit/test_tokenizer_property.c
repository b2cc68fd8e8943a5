/*
 * Random merges, pieces and texts: the models against their plain definitions, and the way from
 * text to ids and back. The seed of a failure is printed.
 */
#include "tests/unit/tokenizer_kit.h"

#include "core/file.h"

enum { ROUNDS = 60, MAX_TOKENS = 48, MAX_WORD = 300 };

/* ---- BPE against its definition -------------------------------------------------------------- */

static const char *const alphabet[] = {
    "a", "b", "c", "\xC3\xA9", "\xE4\xB8\xAD", "\xF0\x9F\x98\x80"};

struct small_bpe {
    char token[MAX_TOKENS][64];
    int n_tokens;
    int left[MAX_TOKENS], right[MAX_TOKENS], made[MAX_TOKENS]; /* merges by rank */
    int n_merges;
};

static int find_token(const struct small_bpe *b, const char *text)
{
    for (int i = 0; i < b->n_tokens; i++)
        if (strcmp(b->token[i], text) == 0)
            return i;
    return -1;
}

/* Merges of random tokens, ranked at random: not in the order in which a trainer finds them. */
static void make_bpe(struct small_bpe *b, uint64_t *random)
{
    memset(b, 0, sizeof *b);
    for (size_t i = 0; i < ARRAY_LEN(alphabet); i++)
        snprintf(b->token[b->n_tokens++], sizeof b->token[0], "%s", alphabet[i]);
    while (b->n_tokens < MAX_TOKENS) {
        int left = (int)kit_below(random, (size_t)b->n_tokens);
        int right = (int)kit_below(random, (size_t)b->n_tokens);
        char text[64];
        int size = snprintf(text, sizeof text, "%s%s", b->token[left], b->token[right]);
        if (size >= (int)sizeof text || find_token(b, text) >= 0)
            continue;
        int at = (int)kit_below(random, (size_t)b->n_merges + 1);
        for (int i = b->n_merges; i > at; i--) {
            b->left[i] = b->left[i - 1];
            b->right[i] = b->right[i - 1];
            b->made[i] = b->made[i - 1];
        }
        b->left[at] = left;
        b->right[at] = right;
        b->made[at] = b->n_tokens;
        b->n_merges++;
        memcpy(b->token[b->n_tokens++], text, sizeof text);
    }
}

static struct tokenizer *load_bpe(const struct small_bpe *b)
{
    static char json[65536];
    size_t n = (size_t)snprintf(json, sizeof json, "{\"type\":\"BPE\",\"vocab\":{");
    for (int i = 0; i < b->n_tokens; i++) {
        n += (size_t)snprintf(json + n, sizeof json - n, "%s\"%s\":%d", i ? "," : "", b->token[i],
                              i);
    }
    n += (size_t)snprintf(json + n, sizeof json - n, "},\"merges\":[");
    for (int i = 0; i < b->n_merges; i++) {
        n += (size_t)snprintf(json + n, sizeof json - n, "%s\"%s %s\"", i ? "," : "",
                              b->token[b->left[i]], b->token[b->right[i]]);
    }
    snprintf(json + n, sizeof json - n, "]}");
    return kit_make(&(struct kit_parts){.model = json});
}

/* The definition: the pair of the lowest rank, leftmost first, until there is none. */
static size_t merge_plainly(const struct small_bpe *b, int *id, size_t n)
{
    for (;;) {
        size_t best = n;
        int rank = b->n_merges;
        for (size_t i = 0; i + 1 < n; i++) {
            for (int r = 0; r < rank; r++) {
                if (b->left[r] == id[i] && b->right[r] == id[i + 1]) {
                    rank = r;
                    best = i;
                }
            }
        }
        if (best == n)
            return n;
        id[best] = b->made[rank];
        memmove(id + best + 1, id + best + 2, (n - best - 2) * sizeof *id);
        n--;
    }
}

static void bpe_is_its_definition(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        uint64_t random = seed;
        static struct small_bpe b;
        make_bpe(&b, &random);
        struct tokenizer *t = load_bpe(&b);
        for (int round = 0; round < 20; round++) {
            char text[MAX_WORD * 4] = "";
            int want[MAX_WORD];
            size_t n = 0;
            size_t size = 0;
            size_t length = kit_below(&random, round % 2 ? MAX_WORD : 12);
            size_t variety = 1 + kit_below(&random, ARRAY_LEN(alphabet));
            while (n < length) {
                want[n] = (int)kit_below(&random, variety);
                size += (size_t)snprintf(text + size, sizeof text - size, "%s", alphabet[want[n]]);
                n++;
            }
            n = merge_plainly(&b, want, n);
            struct ids got = kit_encode(t, text, size, 0);
            if (got.n != n || (n && memcmp(got.id, want, n * sizeof *want) != 0))
                fail_msg("seed %d: \"%s\" has other ids than by the definition", (int)seed, text);
            ids_free(&got);
        }
        tokenizer_free(t);
    }
}

/* ---- Unigram against its definition ---------------------------------------------------------- */

/* Scores are whole 64ths: sums are exact, whatever the order. */
static struct tokenizer *load_unigram(const struct small_bpe *b, double *score, uint64_t *random)
{
    static char json[65536];
    size_t n = (size_t)snprintf(json, sizeof json,
                                "{\"type\":\"Unigram\",\"unk_id\":%d,\"vocab\":[", MAX_TOKENS);
    for (int i = 0; i < b->n_tokens; i++) {
        score[i] = -(double)kit_below(random, 4096) / 64;
        n += (size_t)snprintf(json + n, sizeof json - n, "[\"%s\",%.8f],", b->token[i], score[i]);
    }
    snprintf(json + n, sizeof json - n, "[\"<unk>\",0]]}");
    return kit_make(&(struct kit_parts){.model = json});
}

/* The best sum of scores that text[at..size) can have, from its end to its beginning. */
static double best_score(const struct small_bpe *b, const double *score, const char *text,
                         size_t size)
{
    static double best[MAX_WORD * 4 + 1];
    best[size] = 0;
    for (size_t i = size; i-- > 0;) {
        best[i] = -1e9; /* no way, as within a character */
        for (int k = 0; k < b->n_tokens; k++) {
            size_t n = strlen(b->token[k]);
            if (strncmp(text + i, b->token[k], n) == 0 && score[k] + best[i + n] > best[i])
                best[i] = score[k] + best[i + n];
        }
    }
    return best[0];
}

static void unigram_is_its_definition(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        uint64_t random = seed;
        static struct small_bpe b; /* for its tokens */
        double score[MAX_TOKENS];
        make_bpe(&b, &random);
        struct tokenizer *t = load_unigram(&b, score, &random);
        char text[MAX_WORD * 4] = "";
        size_t size = 0;
        for (size_t left = kit_below(&random, MAX_WORD); left > 0; left--) {
            size += (size_t)snprintf(text + size, sizeof text - size, "%s",
                                     alphabet[kit_below(&random, ARRAY_LEN(alphabet))]);
        }
        struct ids got = kit_encode(t, text, size, 0);
        double sum = 0;
        size_t at = 0;
        for (size_t i = 0; i < got.n; i++) {
            assert_int_not_equal(got.id[i], MAX_TOKENS);
            size_t n = strlen(b.token[got.id[i]]);
            assert_memory_equal(text + at, b.token[got.id[i]], n);
            sum += score[got.id[i]];
            at += n;
        }
        assert_int_equal(at, size);
        double best = best_score(&b, score, text, size);
        if (sum < best || sum > best)
            fail_msg("seed %d: \"%s\" scores %g, the best is %g", (int)seed, text, sum, best);
        ids_free(&got);
        tokenizer_free(t);
    }
}

/* ---- there and back -------------------------------------------------------------------------- */

static struct tokenizer *load_tales(void)
{
    struct err e = {0};
    struct bytes json;
    assert_true(file_map("models/tales/tokenizer.json", &json, &e));
    struct tokenizer *t = tokenizer_load(&(struct tokenizer_files){.tokenizer_json = json}, &e);
    file_unmap(json);
    if (!t)
        fail_msg("%s", e.text);
    return t;
}

static void expect_way_back(const struct tokenizer *t, const char *text, size_t n, uint64_t seed)
{
    struct ids ids = kit_encode(t, text, n, 0);
    size_t n_back;
    char *back = kit_decode(t, &ids, &n_back);
    if (n_back != n || memcmp(back, text, n) != 0)
        fail_msg("seed %d: a text of %zu bytes comes back as %zu others", (int)seed, n, n_back);
    free(back);
    ids_free(&ids);
}

/* Every other text is no text at all but bytes. */
static size_t random_input(uint64_t *random, char *out, size_t n_chars, uint64_t seed)
{
    if (seed % 2)
        return kit_random_text(random, out, n_chars);
    for (size_t i = 0; i < n_chars; i++)
        out[i] = (char)kit_below(random, 256);
    return n_chars;
}

static void byte_level_comes_back(void **state)
{
    (void)state;
    struct tokenizer *t = load_tales();
    for (uint64_t seed = 1; seed <= 400; seed++) {
        uint64_t random = seed;
        char text[4 * 200];
        expect_way_back(t, text, random_input(&random, text, kit_below(&random, 200), seed), seed);
    }
    tokenizer_free(t);
}

/* As Llama 2's: a blank is U+2581 inside, so that character alone cannot come back. */
static void byte_fallback_comes_back(void **state)
{
    (void)state;
    static char model[16384];
    size_t n =
        (size_t)snprintf(model, sizeof model,
                         "{\"type\":\"BPE\",\"byte_fallback\":true,\"fuse_unk\":true,\"merges\":"
                         "[\"\xE2\x96\x81 a\",\"a s\"],\"vocab\":{\"\xE2\x96\x81\":256,\"a\":257,"
                         "\"s\":258,\"\xE2\x96\x81"
                         "a\":259,\"as\":260");
    for (int i = 0; i < 256; i++)
        n += (size_t)snprintf(model + n, sizeof model - n, ",\"<0x%02X>\":%d", i, i);
    snprintf(model + n, sizeof model - n, "}}");
    struct tokenizer *t = kit_make(&(struct kit_parts){
        .model = model,
        .normalizer =
            "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":"
            "\"\xE2\x96\x81\"},"
            "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"\xE2\x96\x81\"}]}",
        .decoder =
            "{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{\"String\":"
            "\"\xE2\x96\x81\"},\"content\":\" \"},{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"},"
            "{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}]}"});
    for (uint64_t seed = 1; seed <= 400; seed++) {
        uint64_t random = seed;
        char text[4 * 200];
        size_t size = random_input(&random, text, kit_below(&random, 200), seed);
        if (!memmem(text, size, "\xE2\x96\x81", 3))
            expect_way_back(t, text, size, seed);
    }
    tokenizer_free(t);
}

/* Asking for ranges, and what an encoder has seen before, change no id; ranges of a byte-level
 * tokenizer lie side by side and cover all. */
static void spans_cover(void **state)
{
    (void)state;
    struct tokenizer *t = load_tales();
    struct err e = {0};
    struct encoder *en = encoder_new(t, &e);
    for (uint64_t seed = 1; seed <= 200; seed++) {
        uint64_t random = seed;
        char text[4 * 200];
        size_t n = random_input(&random, text, kit_below(&random, 200), seed);
        struct ids fresh = kit_encode(t, text, n, 0);
        struct ids used = {0};
        struct ids spanned = {0};
        struct token_spans where = {0};
        assert_true(encoder_encode(en, text, n, 0, &used, &e));
        assert_true(encoder_encode_spans(en, text, n, 0, &spanned, &where, &e));
        assert_int_equal(fresh.n, used.n);
        assert_int_equal(fresh.n, spanned.n);
        assert_int_equal(fresh.n, where.n);
        size_t at = 0;
        for (size_t i = 0; i < fresh.n; i++) {
            assert_int_equal(fresh.id[i], used.id[i]);
            assert_int_equal(fresh.id[i], spanned.id[i]);
            assert_int_equal(where.at[i].start, at);
            at = where.at[i].end;
        }
        assert_int_equal(at, n);
        ids_free(&fresh);
        ids_free(&used);
        ids_free(&spanned);
        token_spans_free(&where);
    }
    encoder_free(en);
    tokenizer_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bpe_is_its_definition), cmocka_unit_test(unigram_is_its_definition),
        cmocka_unit_test(byte_level_comes_back), cmocka_unit_test(byte_fallback_comes_back),
        cmocka_unit_test(spans_cover),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
