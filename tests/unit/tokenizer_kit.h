/*
 * What the tokenizer's tests share: making a tokenizer from parts of a tokenizer.json, running it,
 * and random text. Functions are static: each test is one program of one file.
 */
#ifndef TESTS_UNIT_TOKENIZER_KIT_H
#define TESTS_UNIT_TOKENIZER_KIT_H

#include "tests/check.h"

#include "tokenizer/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIT __attribute__((unused)) static

KIT struct bytes kit_bytes(const char *text)
{
    return (struct bytes){(const unsigned char *)text, strlen(text)};
}

/* tokenizer.json from its parts; NULL: left out. */
struct kit_parts {
    const char *model, *added_tokens, *normalizer, *pre_tokenizer, *post_processor, *decoder;
    const char *config; /* tokenizer_config.json */
};

KIT struct tokenizer *kit_try(const struct kit_parts *p, struct err *e)
{
    const char *const names[] = {"model",         "added_tokens",   "normalizer",
                                 "pre_tokenizer", "post_processor", "decoder"};
    const char *const parts[] = {p->model,         p->added_tokens,   p->normalizer,
                                 p->pre_tokenizer, p->post_processor, p->decoder};
    size_t size = 16;
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        size += parts[i] ? strlen(parts[i]) + 32 : 0;
    char *json = malloc(size);
    assert_non_null(json);
    size_t n = 0;
    json[n++] = '{';
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        if (parts[i]) {
            n += (size_t)snprintf(json + n, size - n, "%s\"%s\": %s", n > 1 ? ",\n" : "", names[i],
                                  parts[i]);
        }
    }
    snprintf(json + n, size - n, "}");
    struct tokenizer_files files = {.tokenizer_json = kit_bytes(json)};
    if (p->config)
        files.tokenizer_config = kit_bytes(p->config);
    struct tokenizer *t = tokenizer_load(&files, e);
    free(json);
    return t;
}

KIT struct tokenizer *kit_make(const struct kit_parts *p)
{
    struct err e = {0};
    struct tokenizer *t = kit_try(p, &e);
    if (!t)
        fail_msg("%s", e.text);
    return t;
}

KIT struct ids kit_encode(const struct tokenizer *t, const char *text, size_t n, unsigned flags)
{
    struct err e = {0};
    struct ids ids = {0};
    struct encoder *en = encoder_new(t, &e);
    assert_non_null(en);
    if (!encoder_encode(en, text, n, flags, &ids, &e))
        fail_msg("%s", e.text);
    encoder_free(en);
    return ids;
}

/* The whole text of the ids, terminated; the caller frees. */
KIT char *kit_decode(const struct tokenizer *t, const struct ids *ids, size_t *n)
{
    struct err e = {0};
    struct decoder *d = decoder_new(t, true, &e);
    assert_non_null(d);
    size_t capacity = 1;
    char *text = malloc(capacity);
    *n = 0;
    for (size_t i = 0; i < ids->n; i++) {
        struct bytes b;
        assert_true(decoder_next(d, ids->id[i], &b, &e));
        if (*n + b.size + 1 > capacity) {
            capacity = (*n + b.size + 1) * 2;
            text = realloc(text, capacity);
        }
        assert_non_null(text);
        memcpy(text + *n, b.data, b.size);
        *n += b.size;
    }
    text[*n] = '\0';
    decoder_free(d);
    return text;
}

/* Fails unless the text's ids are those of `want`, "1 2 3". */
KIT void kit_expect_ids(const struct tokenizer *t, const char *text, unsigned flags,
                        const char *want)
{
    struct ids ids = kit_encode(t, text, strlen(text), flags);
    char got[4096] = "";
    size_t n = 0;
    for (size_t i = 0; i < ids.n; i++) {
        n += (size_t)snprintf(got + n, sizeof got - n, "%s%d", i ? " " : "", ids.id[i]);
        assert_true(n < sizeof got);
    }
    ids_free(&ids);
    if (strcmp(got, want) != 0)
        fail_msg("\"%s\" gives %s, not %s", text, got, want);
}

/* xorshift64*, Vigna 2016. */
KIT uint64_t kit_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545F4914F6CDD1Du;
}

KIT size_t kit_below(uint64_t *state, size_t n)
{
    return (size_t)((kit_random(state) >> 33) % n);
}

KIT size_t kit_put_utf8(char *out, uint32_t c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3F));
    out[0] = (char)(lead[n] | c);
    return n;
}

/* A character of any plane, but often one of the few that tokenizers treat in their own way. */
KIT uint32_t kit_random_char(uint64_t *state)
{
    static const uint32_t special[] = {
        ' ',    ' ',    '\n',   '\r',   '\t',   '\'',   's',     'a',    'A',    'z',    '0',
        '9',    '.',    '!',    0xA0,   0x85,   0xE9,   0x301,   0x323,  0x200D, 0x3000, 0x4E2D,
        0xAC00, 0x1100, 0x0661, 0x2028, 0xFEFF, 0xFFFD, 0x1F600, 0x180E, '<',    '>'};
    for (;;) {
        uint32_t c = 0;
        switch (kit_below(state, 4)) {
        case 0:
            c = special[kit_below(state, ARRAY_LEN(special))];
            break;
        case 1:
            c = (uint32_t)kit_below(state, 0x80);
            break;
        case 2:
            c = (uint32_t)kit_below(state, 0x3000);
            break;
        default:
            c = (uint32_t)kit_below(state, 0x110000);
        }
        if (c < 0xD800 || c > 0xDFFF)
            return c;
    }
}

/* n characters of UTF-8 into out, which has room for 4 * n bytes. Returns the bytes. */
KIT size_t kit_random_text(uint64_t *state, char *out, size_t n)
{
    size_t size = 0;
    while (n--)
        size += kit_put_utf8(out + size, kit_random_char(state));
    return size;
}

#endif
