/*
 * Any bytes as a text, for small tokenizers of each kind: ids within the vocabulary, ranges within
 * the text, the same ids with a fresh encoder and a used one, and where the vocabulary has all
 * bytes, the text itself when they are decoded.
 */
#include "tokenizer/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NORMALIZERS                                                                                \
    "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFKC\"},{\"type\":"        \
    "\"Replace\",\"pattern\":{\"Regex\":\"a+\"},\"content\":\"b\"},{\"type\":\"Strip\"},{"         \
    "\"type\":"                                                                                    \
    "\"BertNormalizer\"},{\"type\":\"NFD\"},{\"type\":\"Nmt\"},{\"type\":\"Prepend\",\"prepend\":" \
    "\"_\"}]},"
#define PRE_TOKENIZERS                                                                             \
    "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"UnicodeScripts\"},"   \
    "{\"type\":\"Metaspace\",\"replacement\":\"_\"},{\"type\":\"Punctuation\",\"behavior\":"       \
    "\"MergedWithNext\"},{\"type\":\"Digits\"},{\"type\":\"Split\",\"pattern\":{\"Regex\":\"x*\"}" \
    ","                                                                                            \
    "\"behavior\":\"MergedWithPrevious\",\"invert\":true},{\"type\":\"FixedLength\",\"length\":7}" \
    "]},"
#define ADDED                                                                                      \
    "\"added_tokens\":[{\"id\":9,\"content\":\"<s>\",\"special\":true,\"lstrip\":true,\"rstrip\":" \
    "true,"                                                                                        \
    "\"normalized\":false},{\"id\":8,\"content\":\"aa\",\"single_word\":true}],"
#define BYTE_LEVEL                                                                                 \
    "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},\"decoder\":{\"type\":" \
    "\"ByteLevel\"},"

/* A byte-level vocabulary with all bytes and a few merges. */
static const char *byte_level_json(void)
{
    static char json[16384];
    size_t n = (size_t)snprintf(json, sizeof json,
                                "{" BYTE_LEVEL "\"model\":{\"type\":\"BPE\",\"merges\":"
                                "[\"a a\",\"aa aa\",\"\\u0120 a\",\"\\u00f0 \\u0141\"],\"vocab\":{"
                                "\"aa\":256,\"aaaa\":257,\"\\u0120a\":258,\"\\u00f0\\u0141\":259");
    int other = 0;
    for (int b = 0; b < 256; b++) {
        bool itself = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
        int c = itself ? b : 256 + other++;
        n += (size_t)snprintf(json + n, sizeof json - n, ",\"\\u%04x\":%d", (unsigned)c, b);
    }
    snprintf(json + n, sizeof json - n, "}}}");
    return json;
}

static struct tokenizer *load(const char *json)
{
    struct err e = {0};
    struct tokenizer *t = tokenizer_load(
        &(struct tokenizer_files){.tokenizer_json = {(const unsigned char *)json, strlen(json)}},
        &e);
    if (!t) {
        fprintf(stderr, "%s\n", e.text);
        abort();
    }
    return t;
}

struct target {
    struct tokenizer *t;
    struct encoder *used;
    struct decoder *d;
    bool comes_back;
};

static void check_way_back(struct decoder *d, const struct ids *ids, const uint8_t *data,
                           size_t size)
{
    size_t at = 0;
    decoder_reset(d);
    for (size_t i = 0; i < ids->n; i++) {
        struct bytes b;
        struct err e = {0};
        if (!decoder_next(d, ids->id[i], &b, &e) || b.size > size - at ||
            memcmp(b.data, data + at, b.size) != 0)
            abort();
        at += b.size;
    }
    if (at != size)
        abort();
}

static void check(struct target *target, const uint8_t *data, size_t size, unsigned flags)
{
    struct err e = {0};
    struct ids ids = {0};
    struct ids again = {0};
    struct bytes decoded;
    struct token_spans where = {0};
    const char *text = (const char *)data;
    if (!encoder_encode_spans(target->used, text, size, flags, &ids, &where, &e) ||
        !encoder_encode(target->used, text, size, flags, &again, &e) || ids.n != again.n ||
        (ids.n && memcmp(ids.id, again.id, ids.n * sizeof *ids.id) != 0))
        abort();
    for (size_t i = 0; i < ids.n; i++)
        if (ids.id[i] < 0 || ids.id[i] >= tokenizer_n_ids(target->t) ||
            where.at[i].start > where.at[i].end || where.at[i].end > size ||
            !decoder_next(target->d, ids.id[i], &decoded, &e))
            abort();
    if (target->comes_back)
        check_way_back(target->d, &ids, data, size);
    ids_free(&ids);
    ids_free(&again);
    token_spans_free(&where);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct target targets[4];
    if (!targets[0].t) {
        const char *const files[] = {
            byte_level_json(),
            "{" NORMALIZERS PRE_TOKENIZERS ADDED "\"model\":{\"type\":\"BPE\",\"unk_token\":\"?\","
            "\"fuse_unk\":true,\"vocab\":{\"?\":0,\"a\":1,"
            "\"b\":2,\"_\":3,\"_b\":4},\"merges\":[\"_ b\"]}}",
            "{" ADDED
            "\"decoder\":{\"type\":\"Metaspace\",\"replacement\":\"_\"},\"model\":{\"type\":"
            "\"Unigram\",\"unk_id\":0,\"vocab\":[[\"?\",0],[\"a\",-1],[\"b\",-2],[\"ab\",-1.5],[\"_"
            "\",-3]]}}",
            "{\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},\"decoder\":{\"type\":"
            "\"WordPiece\"},"
            "\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"?\",\"vocab\":{\"?\":0,\"a\":1,\"##"
            "a\":2,"
            "\"##ab\":3}}}",
        };
        for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
            struct err e = {0};
            targets[i].t = load(files[i]);
            targets[i].used = encoder_new(targets[i].t, &e);
            targets[i].d = decoder_new(targets[i].t, true, &e);
            targets[i].comes_back = i == 0;
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
        check(&targets[i], data, size, 0);
        check(&targets[i], data, size, ENCODE_PARSE_SPECIAL | ENCODE_ADD_SPECIAL);
    }
    return 0;
}
