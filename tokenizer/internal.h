/*
 * What the files of this folder know of each other; nobody outside includes it.
 *
 * The way of a text:  caller's bytes -> added tokens cut out -> normalize -> added tokens again
 * -> pretokenize, stage by stage, depth first -> model -> ids. Every step hands on a struct piece;
 * steps that change text write into a struct text of the encoder's.
 *
 * Inside, text is always well-formed UTF-8 with one liberty: a byte b that is no UTF-8 travels as
 * the surrogate U+DC00 + b (Python calls that surrogateescape, PEP 383) and becomes b again where
 * bytes become ids. So no step needs a thought for broken input.
 */
#ifndef TOKENIZER_INTERNAL_H
#define TOKENIZER_INTERNAL_H

#include <string.h>

#include "core/arena.h"
#include "core/json.h"
#include "core/utf8.h"
#include "tokenizer/text.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/trie.h"
#include "tokenizer/vocab.h"

/* ---- regex.c: the only user of pcre2 --------------------------------------------------------- */

struct regex;
struct regex_scratch; /* one thread's match data */

/* `pattern` is in the syntax of Oniguruma, as tokenizer.json has it. */
struct regex *regex_compile(const char *pattern, struct err *e);
void regex_free(struct regex *r);

struct regex_scratch *regex_scratch_new(void);
void regex_scratch_free(struct regex_scratch *s);

/* Before a text of n bytes: what matches in it may take, all together, grows with n. New scratch is
 * as before a text of none. */
void regex_scratch_begin(struct regex_scratch *s, size_t n);

enum regex_result { REGEX_NONE, REGEX_MATCH, REGEX_ERROR };

/* Whether a match can depend on what stands before it. */
bool regex_looks_behind(const struct regex *r);

/* What Split and Replace look for: {"String": ...} or {"Regex": ...}. */
struct pattern {
    const char *literal; /* in the tokenizer's arena; NULL: regex */
    size_t n_literal;
    struct regex *regex;
};

/* where: "normalizer Replace", for sentences. */
bool pattern_load(struct pattern *p, const struct json *j, struct tokenizer *t, const char *where,
                  struct err *e);

/* The first match at or behind `from`. open: in text that goes on behind n, and REGEX_NONE too
 * where that could change the match of a regex. ERR_LOAD where it takes too many steps. */
enum regex_result pattern_find(const struct pattern *p, struct regex_scratch *s, const char *text,
                               size_t n, size_t from, bool open, struct token_span *match,
                               struct err *e);

/* ---- charsmap.c ------------------------------------------------------------------------------ */

/* SentencePiece's rules: a double-array trie (Darts-clone) from UTF-8 to places in a list of
 * NUL-terminated replacements. */
struct charsmap {
    const unsigned char *unit; /* [n_units], 32 bits each, little-endian, not aligned */
    size_t n_units;
    const char *text;
    size_t n_text;
};

/* normalizer_spec and trainer_spec of a SentencePiece model. */
struct spm_rules {
    struct charsmap charsmap;
    bool add_dummy_prefix, remove_extra_whitespaces, escape_whitespaces, treat_whitespace_as_suffix;
};

/* Finds the parts of a charsmap as it lies in files, which must stay there. ERR_LOAD. */
bool charsmap_read(struct charsmap *m, struct bytes blob, struct err *e);

/* Grapheme by grapheme, as huggingface/tokenizers does. False: no memory. */
bool charsmap_run(struct text *out, const struct piece *in, const struct charsmap *m);

/* As SentencePiece does, up to the escaping of blanks. False: no memory. */
bool spm_normalize(struct text *out, const struct piece *in, const struct tokenizer *t,
                   const struct spm_rules *rules);

static const char spm_blank[] = "\xE2\x96\x81"; /* U+2581, how it writes a blank */

/* ---- normalize.c ----------------------------------------------------------------------------- */

struct normalizer; /* one step */

bool normalize_load(struct tokenizer *t, const struct json *j, struct err *e);

/* The rules of a SentencePiece model instead. */
bool normalize_load_spm(struct tokenizer *t, const struct spm_rules *rules, struct err *e);

struct normalize_scratch {
    struct text text[2]; /* steps write from one into the other */
    size_t room;         /* what rules, those of the pre-tokenizer too, may still add */
    struct regex_scratch *regex;
};

/* *out: `in` after all steps, in the scratch's memory or in `in` itself where nothing changed. */
bool normalize_run(const struct tokenizer *t, struct normalize_scratch *s, const struct piece *in,
                   struct piece *out, struct err *e);

/* Whether a text can be cut before the character and both parts be normalized by themselves. */
bool normalize_may_cut(const struct tokenizer *t, uint32_t c);

/* ---- added.c: tokens that are found in the text before anything else ------------------------- */

struct added_token {
    const char *content; /* of the caller while it is added; later the vocabulary knows */
    size_t n_content;
    int32_t id;
    bool single_word, lstrip, rstrip, normalized, special;
    bool outside; /* added_add: the model's own vocabulary lacks it */
    bool of_text; /* special, but no added token of tokenizer.json: the model may make it of text */
    bool as_it_is; /* searched for in normalized text, but not normalized itself */
};

/* All the strings that are searched for at once, leftmost and longest first. */
struct added_set {
    struct trie trie;          /* values are indices into added.token */
    uint64_t pair[65536 / 64]; /* bit a * 256 + b: some string begins with bytes a b, or is a */
    size_t longest;
};

struct added {
    struct added_token *token;
    size_t n, capacity;
    bool lstrip, single_word; /* some token has it */
    struct added_set raw, normalized;
};

bool added_load(struct tokenizer *t, const struct json *list, struct err *e);
bool added_add(struct tokenizer *t, const struct added_token *token, struct err *e);

/* With the flags of an entry of "added_tokens" or "added_tokens_decoder". */
bool added_add_json(struct tokenizer *t, const struct json *j, const char *content, int32_t id,
                    struct err *e);

/* By id, of n_ids: the index + 1 of the last token that has it, whose flags count, but that what
 * was special once stays so, as in huggingface/tokenizers; 0: none has. The caller frees it; NULL
 * without memory. */
uint32_t *added_last(struct added *a, size_t n_ids);

/* Builds the sets, when normalizers and tokens are known. */
bool added_build(struct tokenizer *t, struct err *e);
void added_free(struct added *a);

/* How far a search has got; all zero at its beginning. As in huggingface/tokenizers, it goes on
 * behind the string that was found, whatever rstrip took in behind it: a token may be found within
 * that, unless lstrip leaves nothing of it, and what that token does not take in is text again. */
struct added_search {
    size_t from;  /* behind the last string */
    size_t done;  /* the end of its range */
    size_t blank; /* up to where rstrip has looked: blanks alone from `from` on, where it is less */
};

/* The next token in the piece; *match: its range with what lstrip and rstrip take in, which begins
 * before the last one's end where both overlap. NULL where there is none. */
const struct added_token *added_find(const struct added *a, const struct added_set *set,
                                     const struct piece *in, bool parse_special,
                                     struct added_search *search, struct token_span *match);

/* Whether a string of the set begins before text[at] and ends behind. */
bool added_covers(const struct added_set *set, const char *text, size_t n, size_t at);

/* ---- pretokenize.c --------------------------------------------------------------------------- */

struct pretokenizer; /* one stage */

bool pretokenize_load(struct tokenizer *t, const struct json *j, struct err *e);

/* Split by a regular expression, then bytes: what tiktoken does. */
bool pretokenize_load_pattern(struct tokenizer *t, const char *pattern, struct err *e);

/* Sends a piece through all stages; what comes out goes to the model. */
bool pretokenize_run(struct encoder *en, const struct piece *in);

/* Whether the first stage can run on text whose rest is still to come; and whether it then can
 * begin anew at in[at], where it has cut. */
bool pretokenize_is_open(const struct tokenizer *t);
bool pretokenize_may_cut(const struct tokenizer *t, const struct piece *in, size_t at);

/* pretokenize_run for the beginning of a piece: sends on what no text behind it could change, and
 * tells part_stop where it could be left off. */
bool pretokenize_run_open(struct encoder *en, const struct piece *in);

/* ---- part.c: text that comes in parts -------------------------------------------------------- */

/* All that stands before in[at] has become ids. Remembers the place if encoding can begin there
 * anew. */
void part_stop(struct encoder *en, const struct piece *in, size_t at);

/* ---- the models ------------------------------------------------------------------------------ */

enum model_type { MODEL_BPE, MODEL_UNIGRAM, MODEL_WORDPIECE, MODEL_WORDLEVEL };

struct bpe_merge {
    int32_t left, right, id;
};

struct bpe {
    struct bpe_merge *merge; /* [n_merges] in the order of the list */
    uint32_t *rank;          /* [n_merges]; NULL: a merge's rank is its place in the list */
    size_t n_merges;
    uint32_t n_ranks; /* one more than the largest */
    uint32_t *slot;   /* open addressing: 0 free, else the pair's hash, its lowest
                         merge_bits replaced by the merge's place in the list + 1 */
    size_t n_slots;   /* a power of two */
    unsigned merge_bits;
    int32_t unk;                /* -1: none */
    int32_t ascii[128];         /* ids of one-byte characters */
    int32_t byte_level[256];    /* ids of the characters that byte-level writes for a byte */
    int32_t byte_fallback[256]; /* ids of <0x00> to <0xFF> */
    bool fuse_unk, has_byte_fallback, ignore_merges;
    bool raw;                    /* words come as bytes, not yet spelled in byte-level characters */
    const char *prefix, *suffix; /* continuing_subword_prefix, end_of_word_suffix; "" for none */
    uint64_t *joint;             /* [2 ^ joint_bits / 64], see bpe.c; NULL: words are never cut */
    unsigned joint_bits;
};

struct bpe_scratch;

/* "model" of tokenizer.json: its two long members as text, the others as a tree. What could be read
 * on the way through the file is there already: each pass over a list of 280,000 costs its time. */
struct model_parts {
    struct json *options;
    struct bytes vocab, merges;
    bool has_vocab, has_merges; /* in the tokenizer */
};

/* A pair's hash: its low bits say where in bpe.slot the search begins, those from merge_bits up
 * tell pairs apart there. */
static inline uint32_t bpe_hash(int32_t left, int32_t right)
{
    uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    return (uint32_t)((key * 0x9E3779B97F4A7C15u) >> 32);
}

/* The bit of bpe.joint that tells whether some merge joins a symbol that ends in one character to
 * one that begins with the other. Hashed: a false "yes" costs a cut, never an id. */
static inline size_t bpe_joint_bit(const struct bpe *b, uint32_t left, uint32_t right)
{
    return (((uint64_t)left << 32 | right) * 0x9E3779B97F4A7C15u) >> (64 - b->joint_bits);
}

/* bpe_load.c. "merges" from where the scan stands, when vocabulary and options are there. */
bool bpe_load_options(struct tokenizer *t, const struct json *options, struct err *e);
bool bpe_scan_merges(struct tokenizer *t, struct json_scan *s, struct err *e);

/* From "model" of tokenizer.json, or from the lines of merges.txt. */
bool bpe_load(struct tokenizer *t, const struct model_parts *parts, struct err *e);
bool bpe_load_text(struct tokenizer *t, struct bytes merges, struct err *e);

/* For files that rank tokens and list no merges: every way to make a token of two makes a merge,
 * and merges rank as their tokens' scores do. The list is sorted, the highest score first. */
struct bpe_ranked {
    int32_t id;
    double score;
};
bool bpe_load_ranked(struct tokenizer *t, const struct bpe_ranked *ranked, size_t n, struct err *e);

/* Loads what depends on the form in which words come; after the pre-tokenizer is known. */
bool bpe_load_finish(struct tokenizer *t, struct err *e);

/* The symbol of a character, with what the model writes around it; -1 where there is none. */
int32_t bpe_find_char(const struct tokenizer *t, const char *c, size_t n);
void bpe_free(struct bpe *b);
struct bpe_scratch *bpe_scratch_new(struct err *e);
void bpe_scratch_free(struct bpe_scratch *s);
bool bpe_encode(struct encoder *en, const struct piece *word);

struct unigram {
    struct trie trie; /* values are ids */
    double *score;    /* [n], by id; NaN: never found in text */
    size_t n, capacity;
    double min_score;
    bool single; /* sums are floats */
    int32_t unk;
    bool has_byte_fallback;
    int32_t byte_fallback[256];
};

struct unigram_scratch;

bool unigram_load(struct tokenizer *t, const struct model_parts *parts, struct err *e);

/* Adds a piece with the next id. */
bool unigram_add(struct tokenizer *t, struct bytes spelling, double score, struct err *e);

/* When it is known which ids are special. */
bool unigram_finish(struct tokenizer *t, struct err *e);
void unigram_free(struct unigram *u);
struct unigram_scratch *unigram_scratch_new(struct err *e);
void unigram_scratch_free(struct unigram_scratch *s);
bool unigram_encode(struct encoder *en, const struct piece *word);

struct wordpiece {
    struct trie trie; /* values are ids */
    uint32_t inner;   /* the node that all pieces but a word's first begin behind, 0: the root */
    bool has_inner;   /* there is such a node */
    int32_t unk;
    size_t max_chars; /* longer words are unknown */
};

/* WordPiece, and WordLevel. */
bool wordpiece_load(struct tokenizer *t, const struct model_parts *parts, struct err *e);
void wordpiece_free(struct wordpiece *w);
bool wordpiece_encode(struct encoder *en, const struct piece *word);

/* The model WordLevel. */
bool wordpiece_encode_whole(struct encoder *en, const struct piece *word);

/* ---- decode.c -------------------------------------------------------------------------------- */

struct decode_step;

bool decode_load(struct tokenizer *t, const struct json *j, struct err *e);

/* SentencePiece's instead, which drops the blanks that a text begins with: one of each token,
 * n_blanks at the most. */
bool decode_load_spm(struct tokenizer *t, size_t n_blanks, struct err *e);

/* ---- post.c ---------------------------------------------------------------------------------- */

enum { AROUND_MAX = 64 };

struct around {
    int32_t before[AROUND_MAX], after[AROUND_MAX];
    size_t n_before, n_after;
};

bool post_load(struct tokenizer *t, const struct json *post_processor, struct err *e);

/* tokenizer_config.json and special_tokens_map.json: bos, eos, and whether they are added. */
void post_configure(struct tokenizer *t, const struct json *config, const struct json *map);

/* ---- tokenizer.c and encode.c ---------------------------------------------------------------- */

/* A special token; an added one that the model's own vocabulary lacks; a special one that text may
 * not become unless it may name it. */
enum { TOKEN_SPECIAL = 1, TOKEN_OUTSIDE = 2, TOKEN_RESERVED = 4 };

struct tokenizer {
    struct arena arena;
    struct vocab vocab;
    struct added added;
    unsigned char *mark; /* [vocab.n_ids], of TOKEN_* */

    struct trie user_defined;      /* SentencePiece's symbols that no rule of its changes */
    struct normalizer *normalizer; /* [n_normalizers], in order */
    size_t n_normalizers;
    struct pretokenizer *pretokenizer; /* [n_pretokenizers], in order */
    size_t n_pretokenizers;
    struct decode_step *decode_step; /* [n_decode_steps], in order */
    size_t n_decode_steps;

    enum model_type model;
    struct bpe bpe;
    struct unigram unigram;
    struct wordpiece wordpiece;

    struct around around;    /* ids that are put around a text */
    int32_t bos, eos;        /* -1: none */
    bool adds_bos, adds_eos; /* where tokenizer_config.json does not say */

    struct regex **regex; /* owned, for tokenizer_free */
    size_t n_regexes, regex_capacity;
};

struct encoder {
    const struct tokenizer *t;
    unsigned flags;
    struct ids *out;
    struct token_spans *where; /* NULL: nobody asks */
    struct err *e;
    struct text escaped;
    bool escapes;         /* the text has some */
    struct text *stage;   /* [n_pretokenizers]: what a stage that changes text writes */
    struct text *spelled; /* [n_pretokenizers]: a word in byte-level characters */
    struct text word;     /* the model's */
    bool open;            /* the first stage runs on the beginning of a piece */
    struct part *part;    /* NULL: the whole text is there */
    struct normalize_scratch normalize;
    struct bpe_scratch *bpe;         /* NULL for other models */
    struct unigram_scratch *unigram; /* likewise */
    struct regex_scratch *regex;
};

/* Whether a word that is spelled like the token becomes it: not where it is an added token that the
 * model does not know, and where it is a special one only if the text may name it. */
static inline bool encode_may_become(const struct encoder *en, int32_t id)
{
    const unsigned reserved = en->flags & ENCODE_PARSE_SPECIAL ? 0 : TOKEN_RESERVED;
    return !(en->t->mark[id] & (TOKEN_OUTSIDE | reserved));
}

/* Appends one id that stands for in[start..end). */
bool encode_emit(struct encoder *en, int32_t id, const struct piece *in, size_t start, size_t end);

/* Appends ids without saying where they came from: nobody asks. */
bool encode_emit_all(struct encoder *en, const int32_t *id, size_t n);

/* Sends what lies between the set's tokens to `plain` and emits the tokens. */
bool encode_cut_added(struct encoder *en, const struct added_set *set, const struct piece *in,
                      bool (*plain)(struct encoder *en, const struct piece *in));

/* What lies between the tokens of the raw text. */
bool encode_raw(struct encoder *en, const struct piece *in);

/* The ids before a text or behind it. */
bool encode_around(struct encoder *en, const int32_t *id, size_t n, const struct piece *in,
                   size_t at);

/* Readies the encoder for a text; *in: the text, well formed. */
bool encode_begin(struct encoder *en, struct piece *in, unsigned flags, bool tracks);

/* The model's work on one pre-token. */
bool encode_word(struct encoder *en, const struct piece *word);

/* Loads a component that no file describes, from its text in tokenizer.json's form. */
bool component_make(struct tokenizer *t, const char *text,
                    bool (*load)(struct tokenizer *t, const struct json *j, struct err *e),
                    struct err *e);

/* Whether tokenizer_config.json names that class, or the same with "Fast" behind it. */
bool tokenizer_is_class(const struct json *config, const char *name);

/* Takes ownership of r for the tokenizer's life; frees it where there is no memory. */
bool tokenizer_own_regex(struct tokenizer *t, struct regex *r, struct err *e);

/* ---- other files: spm.c, tiktoken.c, tekken.c ------------------------------------------------ */

bool spm_load(struct tokenizer *t, struct bytes file, struct err *e);

/* Base64 of bytes -> the bytes in byte-level characters; out: 2 * TIKTOKEN_MAX_CODE bytes. 0 where
 * it is no base64 of a byte at least, or longer than TIKTOKEN_MAX_CODE. */
enum { TIKTOKEN_MAX_CODE = 2048 };
size_t tiktoken_spell(char *out, const char *code, size_t n);

/* How Qwen's tokenizers cut words. */
extern const char tiktoken_qwen[];

/* What follows when the vocabulary is there; words are made of tokens from `first` on, which rank
 * as their ids do. */
bool tiktoken_finish(struct tokenizer *t, const char *pattern, int32_t first, struct err *e);

/* tekken.json. */
bool tekken_load(struct tokenizer *t, struct bytes file, struct err *e);

/* Whether a file looks like one of tiktoken's. */
bool tiktoken_is(struct bytes file);
bool tiktoken_load(struct tokenizer *t, struct bytes file, const struct json *config,
                   struct err *e);

/* ---- components, for sentences --------------------------------------------------------------- */

/* "type" of a component; NULL and a sentence where it is missing. kind: "normalizer", ... */
const char *component_type(const struct json *j, const char *kind, struct err *e);

/* A member that must be a string; NULL and a sentence. */
const char *component_text(const struct json *j, const char *kind, const char *key, struct err *e);

/* The text of a token that a file names, "<s>" or {"content": "<s>", ...}; NULL where it does not.
 */
const char *component_token(const struct json *j);

#endif
