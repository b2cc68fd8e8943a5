/*
 * How fast a tokenizer loads and encodes, and that no text makes it slow.
 *
 *     bench_tokenizer DIR [TEXT]     DIR: tokenizer files; TEXT: English or source, 1 MB or more is
 *                                    repeated to 10 MB
 *
 * Prints milliseconds to load (the best of 5, files warm), the growth of memory, MB/s of the text,
 * and for one MB each of texts that break naive tokenizers, MB/s and the ratio to the text's time.
 */
#include "core/clock.h"
#include "core/file.h"
#include "tokenizer/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static struct bytes map(const char *dir, const char *name)
{
    struct bytes bytes = {0};
    struct err e;
    char *path = file_join(dir, name);
    if (path && file_exists(path) && !file_map(path, &bytes, &e)) {
        fprintf(stderr, "%s\n", e.text);
        exit(1);
    }
    free(path);
    return bytes;
}

static struct bytes map_text(const char *path)
{
    struct bytes bytes = {0};
    struct err e;
    if (!file_map(path, &bytes, &e) || !bytes.size) {
        fprintf(stderr, "%s\n", bytes.data ? "the text is empty" : e.text);
        exit(1);
    }
    return bytes;
}

static struct tokenizer *load(const char *dir)
{
    static struct tokenizer_files files;
    if (!files.tokenizer_json.data && !files.vocab_json.data) {
        files = (struct tokenizer_files){
            .tokenizer_json = map(dir, "tokenizer.json"),
            .tokenizer_config = map(dir, "tokenizer_config.json"),
            .special_tokens_map = map(dir, "special_tokens_map.json"),
            .vocab_json = map(dir, "vocab.json"),
            .merges_txt = map(dir, "merges.txt"),
        };
    }
    struct err e;
    struct tokenizer *t = tokenizer_load(&files, &e);
    if (!t) {
        fprintf(stderr, "%s: %s\n", dir, e.text);
        exit(3);
    }
    return t;
}

static long peak_kib(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

/* Seconds to encode, the best of three. */
static double seconds(const struct tokenizer *t, const char *text, size_t n, size_t *n_ids)
{
    double best = 1e9;
    struct err e;
    for (int i = 0; i < 3; i++) {
        struct encoder *en = encoder_new(t, &e);
        struct ids ids = {0};
        double begin = clock_seconds();
        if (!en || !encoder_encode(en, text, n, 0, &ids, &e)) {
            fprintf(stderr, "%s\n", e.text);
            exit(1);
        }
        double took = clock_seconds() - begin;
        best = took < best ? took : best;
        *n_ids = ids.n;
        ids_free(&ids);
        encoder_free(en);
    }
    return best;
}

static char *repeat(const char *unit, size_t n_unit, size_t n)
{
    char *text = malloc(n + 1);
    for (size_t i = 0; text && i < n; i++)
        text[i] = unit[i % n_unit];
    return text;
}

static void bench_hard(const struct tokenizer *t, double english_per_byte)
{
    static const struct {
        const char *name, *unit;
    } cases[] = {
        {"one letter", "a"},
        {"spaces", " "},
        {"newlines", "\n"},
        {"digits", "7"},
        {"one emoji", "\xF0\x9F\x98\x80"},
        {"one ideograph", "\xE4\xB8\xAD"},
        {"letters", "qzjxkvbwpfygmcuhoutdnrsaeilkjhgfdsapoiuytrewqmnbvcxz"},
        {"punctuation", "!?.;:-()[]{}#$%&*/\\@^_~|<>"},
        {"mixed scripts", "word \xD0\xBC\xD0\xB8\xD1\x80 \xE4\xB8\xAD\xE6\x96\x87 \xD8\xB3\xD9\x84"
                          "\xD8\xA7\xD9\x85 \xE0\xA4\xA8\xE0\xA4\xAE \xF0\x9F\x98\x80\xC3\xA9 "},
        {"combining marks", "\xCC\x81\xCC\xA3"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        size_t n_unit = strlen(cases[i].unit);
        size_t n = 1000000 / n_unit * n_unit;
        char *text = repeat(cases[i].unit, n_unit, n);
        size_t n_ids;
        double took = seconds(t, text, n, &n_ids);
        printf("  %-16s %8.1f MB/s  %5.2f x  %zu ids\n", cases[i].name, (double)n / took / 1e6,
               took / (english_per_byte * (double)n), n_ids);
        free(text);
    }
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: bench_tokenizer DIR [TEXT]\n");
        return 2;
    }
    long before = peak_kib();
    double best = 1e9;
    struct tokenizer *t = NULL;
    for (int i = 0; i < 5; i++) {
        tokenizer_free(t);
        double begin = clock_seconds();
        t = load(argv[1]);
        best = clock_seconds() - begin < best ? clock_seconds() - begin : best;
    }
    printf("%s\n  loads in %.1f ms, %ld KiB\n", argv[1], best * 1e3, peak_kib() - before);
    if (argc > 2) {
        struct bytes file = map_text(argv[2]);
        size_t n = 10000000;
        char *text = repeat((const char *)file.data, file.size, n);
        size_t n_ids;
        double took = seconds(t, text, n, &n_ids);
        printf("  %-16s %8.1f MB/s           %zu ids\n", "the text", (double)n / took / 1e6, n_ids);
        bench_hard(t, took / (double)n);
        free(text);
        file_unmap(file);
    }
    tokenizer_free(t);
    return 0;
}
