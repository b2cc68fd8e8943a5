/*
 * The files of tiktoken: one line a token, its bytes in base64 and its rank, which is its id.
 * Tokens are kept in byte-level spelling, so that all else is that of a byte-level BPE. How words
 * are cut is in no such file: the pattern is "pat_str" or "pattern" of tokenizer_config.json, or
 * known from its tokenizer_class and the module that "auto_map" takes it from.
 */
#include "tokenizer/internal.h"

#include <stdlib.h>

#define MOONSHOT                                                                                   \
    "[\\p{Han}]+|"                                                                                 \
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]*"                     \
    "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"                    \
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]+"                     \
    "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"                    \
    "\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

/* Qwen/Qwen-7B, tokenization_qwen.py, PAT_STR */
const char tiktoken_qwen[] = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}|"
                             " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

static const struct {
    const char *tokenizer_class, *module, *pattern; /* NULL: of any module */
} known[] = {
    /* moonshotai/Kimi-K2-Base, tokenization_kimi.py, and Moonlight-16B-A3B, pat_str */
    {"TikTokenTokenizer", "tokenization_kimi", MOONSHOT},
    {"TikTokenTokenizer", "tokenization_moonshot", MOONSHOT},
    {"QWenTokenizer", NULL, tiktoken_qwen},
    /* openai/tiktoken, openai_public.py, cl100k_base, which is also transformers' default */
    {"TikTokenTokenizer", NULL,
     "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|"
     "\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|"
     "\\s+(?!\\S)|\\s+"},
};

/* "auto_map": {"AutoTokenizer": ["MODULE.CLASS", null]}, or that text alone; it may begin with
 * "REPOSITORY--". */
static bool is_of_module(const struct json *config, const char *module)
{
    const struct json *from = json_get(json_get(config, "auto_map"), "AutoTokenizer");
    const char *name = json_text(from, json_text(json_first(from), ""));
    const char *const behind = strstr(name, "--");
    name = behind ? behind + 2 : name;
    const size_t n = strlen(module);
    return strncmp(name, module, n) == 0 && name[n] == '.';
}

static const char *find_pattern(const struct json *config)
{
    const char *name = json_text(json_get(config, "tokenizer_class"), "");
    const char *pattern =
        json_text(json_get(config, "pat_str"), json_text(json_get(config, "pattern"), NULL));
    for (size_t i = 0; !pattern && i < ARRAY_LEN(known); i++)
        if (strcmp(name, known[i].tokenizer_class) == 0 &&
            (!known[i].module || is_of_module(config, known[i].module)))
            pattern = known[i].pattern;
    return pattern;
}

bool tiktoken_is(struct bytes file)
{
    size_t n = 0;
    while (n < file.size && n < 400 && file.data[n] != ' ') {
        if (base64_digit((char)file.data[n]) < 0 && file.data[n] != '=')
            return false;
        n++;
    }
    return n > 0 && n + 1 < file.size && file.data[n] == ' ' && file.data[n + 1] >= '0' &&
           file.data[n + 1] <= '9';
}

size_t tiktoken_spell(char *out, const char *code, size_t n)
{
    unsigned char bytes[TIKTOKEN_MAX_CODE];
    const size_t n_bytes = n <= sizeof bytes ? base64_decode(code, n, bytes) : SIZE_MAX;
    size_t size = 0;
    for (size_t i = 0; n_bytes != SIZE_MAX && i < n_bytes; i++)
        size += utf8_put(out + size, byte_level_char(bytes[i]));
    return size;
}

static bool add_line(struct tokenizer *t, const char *line, size_t n, struct err *e)
{
    const char *blank = memchr(line, ' ', n);
    size_t n_code = blank ? (size_t)(blank - line) : n;
    char spelled[2 * TIKTOKEN_MAX_CODE];
    const size_t size = tiktoken_spell(spelled, line, n_code);
    double rank = 0;
    size_t at = n_code + 1;
    for (; at < n && line[at] >= '0' && line[at] <= '9'; at++)
        rank = rank * 10 + (line[at] - '0');
    if (size == 0 || at != n || at == n_code + 1) {
        return err_set(e, ERR_LOAD, "line %d is not a token in base64 and a rank",
                       (int)t->vocab.n + 1);
    }
    return vocab_add(&t->vocab, (struct bytes){(const unsigned char *)spelled, size}, rank, e);
}

static bool load_tokens(struct tokenizer *t, struct bytes file, struct err *e)
{
    const char *end = (const char *)file.data + file.size;
    for (const char *line = (const char *)file.data; line < end;) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        size_t n = newline ? (size_t)(newline - line) : (size_t)(end - line);
        size_t n_text = n && line[n - 1] == '\r' ? n - 1 : n;
        if (n_text && !add_line(t, line, n_text, e))
            return false;
        line += newline ? n + 1 : n;
    }
    return true;
}

/* Of the tokens from `first` on. */
static bool load_merges(struct tokenizer *t, int32_t first, struct err *e)
{
    struct bpe_ranked *ranked = malloc((t->vocab.n + 1) * sizeof *ranked);
    if (!ranked)
        return err_no_memory(e);
    size_t n = 0;
    for (int32_t id = first; id < t->vocab.n_ids; id++)
        if (vocab_piece(&t->vocab, id).data)
            ranked[n++] = (struct bpe_ranked){.id = id, .score = -(double)id};
    bool good = bpe_load_ranked(t, ranked, n, e);
    free(ranked);
    return good;
}

bool tiktoken_finish(struct tokenizer *t, const char *pattern, int32_t first, struct err *e)
{
    t->model = MODEL_BPE;
    t->bpe.unk = -1;
    t->bpe.ignore_merges = true;
    return load_merges(t, first, e) && pretokenize_load_pattern(t, pattern, e) &&
           component_make(t, "{\"type\":\"ByteLevel\"}", decode_load, e);
}

bool tiktoken_load(struct tokenizer *t, struct bytes file, const struct json *config, struct err *e)
{
    const char *pattern = find_pattern(config);
    if (!pattern) {
        return err_set(
            e, ERR_LOAD,
            "how it cuts words is in no file: tokenizer_config.json needs a \"pat_str\", "
            "or a tokenizer_class that is known");
    }
    return load_tokens(t, file, e) && tiktoken_finish(t, pattern, 0, e);
}
