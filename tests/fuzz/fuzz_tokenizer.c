/*
 * Any bytes as the files of a tokenizer: refused with a sentence, or a tokenizer that encodes and
 * decodes without a crash. The first byte says which file it is: 'm' tokenizer.model, 't' a
 * tiktoken file, 'k' tekken.json, 'v' vocab.json and behind a NUL merges.txt; else all of it is
 * tokenizer.json.
 */
#include "tokenizer/tokenizer.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char text[] =
    "Hello  w\xC3\xB6rld, 123 <s>[UNK] \xE4\xB8\xAD\xF0\x9F\x98\x80\xFF aaaaaaaaaaaaaaaaaaaa"
    "aaaaaaaaaaaaaaaaaaaa e\xCC\x81 'll\n\n";

static void use(const struct tokenizer *t)
{
    struct err e = {0};
    struct ids ids = {0};
    struct bytes decoded;
    struct token_spans where = {0};
    struct encoder *en = encoder_new(t, &e);
    struct decoder *d = decoder_new(t, true, &e);
    unsigned flags = ENCODE_ADD_SPECIAL | ENCODE_PARSE_SPECIAL;
    if (en && encoder_encode_spans(en, text, sizeof text - 1, flags, &ids, &where, &e)) {
        for (size_t i = 0; i < ids.n; i++) {
            struct token_span s = where.at[i];
            if (ids.id[i] < 0 || ids.id[i] >= tokenizer_n_ids(t) || s.start > s.end ||
                s.end > sizeof text - 1)
                abort();
            if (!decoder_next(d, ids.id[i], &decoded, &e))
                break;
        }
    }
    for (int32_t id = -1; id <= tokenizer_n_ids(t) && id < 1000; id++)
        if (!decoder_next(d, id, &decoded, &e))
            break;
    ids_free(&ids);
    token_spans_free(&where);
    encoder_free(en);
    decoder_free(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char config[] = "{\"pat_str\":\" ?\\\\w+|.\",\"bos_token\":\"<s>\"}";
    struct tokenizer_files files = {
        .tokenizer_config = {(const unsigned char *)config, sizeof config - 1}};
    struct bytes rest = {data + (size > 0), size - (size > 0)};
    const uint8_t *nul = rest.size ? memchr(rest.data, 0, rest.size) : NULL;
    if (size && *data == 'm') {
        files.tokenizer_model = rest;
    } else if (size && *data == 't') {
        files.tiktoken = rest;
    } else if (size && *data == 'k') {
        files.tekken = rest;
    } else if (size && *data == 'v' && nul) {
        files.vocab_json = (struct bytes){rest.data, (size_t)(nul - rest.data)};
        files.merges_txt = (struct bytes){nul + 1, rest.size - files.vocab_json.size - 1};
    } else {
        files.tokenizer_json = (struct bytes){data, size};
    }
    struct err e = {0};
    struct tokenizer *t = tokenizer_load(&files, &e);
    if (t)
        use(t);
    else if (e.code == ERR_NONE || !*e.text)
        abort();
    tokenizer_free(t);
    return 0;
}
