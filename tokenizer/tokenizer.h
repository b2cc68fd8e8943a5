/*
 * Text <-> token ids, as the files of a Hugging Face directory describe it. The only header of this
 * folder that others include. Never opens a file: bytes come in, ids and bytes go out.
 *
 *   tokenizer   immutable once loaded: any number of threads may use one
 *   encoder     one thread's working memory for text -> ids
 *   decoder     one stream's state for ids -> text: rules for blanks and bytes span tokens
 */
#ifndef TOKENIZER_TOKENIZER_H
#define TOKENIZER_TOKENIZER_H

#include "core/base.h"
#include "core/err.h"

struct tokenizer;
struct encoder;
struct decoder;

/* The files of the directory; {NULL, 0} where one is absent. They need not outlive the call.
 * The first of these that is there serves: tokenizer_json; vocab_json with merges_txt; tiktoken;
 * tekken; tokenizer_model, which may be of tiktoken's form, too. */
struct tokenizer_files {
    struct bytes tokenizer_json;
    struct bytes tokenizer_config;   /* tokenizer_config.json */
    struct bytes special_tokens_map; /* special_tokens_map.json */
    struct bytes vocab_json;
    struct bytes merges_txt;
    struct bytes tokenizer_model; /* of SentencePiece: tokenizer.model, spiece.model, source.spm */
    const char *model_name;       /* of that file, for sentences; NULL: tokenizer.model */
    struct bytes tiktoken;        /* *.tiktoken */
    struct bytes tekken;          /* tekken.json */
};

/* NULL and ERR_LOAD: a malformed file, or a component that is not supported, by name; ERR_RUNTIME
 * without memory. */
struct tokenizer *tokenizer_load(const struct tokenizer_files *files, struct err *e);
void tokenizer_free(struct tokenizer *t);

/* One more than the largest id. */
int32_t tokenizer_n_ids(const struct tokenizer *t);

/* The memory that the tables take, all but some KiB of what the tokenizer has. */
size_t tokenizer_bytes(const struct tokenizer *t);

/* The id of eos_token where the files name it, else -1. */
int32_t tokenizer_eos(const struct tokenizer *t);

/* The vocabulary's own spelling of an id ("Ġthe", "<0x0A>"), not terminated; {NULL, 0} for an id
 * that has none. */
struct bytes tokenizer_piece(const struct tokenizer *t, int32_t id);

/* True for added tokens with "special": true, which decoding leaves out unless asked. */
bool tokenizer_is_special(const struct tokenizer *t, int32_t id);

/* A growable list of ids; start with all zero, give back with ids_free. */
struct ids {
    int32_t *id;
    size_t n, capacity;
};
bool ids_push(struct ids *list, int32_t id, struct err *e);
void ids_free(struct ids *list);

/* Where each id came from: bytes start .. end of the text that was encoded. Special tokens that
 * were added lie at the text's ends, with start == end. */
struct token_span {
    size_t start, end;
};
struct token_spans {
    struct token_span *at;
    size_t n, capacity;
};
void token_spans_free(struct token_spans *list);

/* What encoding may do besides: add the special tokens of the post-processor (BOS, and EOS where
 * the files want it); recognise special tokens that are spelled out in the text (without it, text
 * from a user never becomes one). */
enum { ENCODE_ADD_SPECIAL = 1, ENCODE_PARSE_SPECIAL = 2 };

struct encoder *encoder_new(const struct tokenizer *t, struct err *e);
void encoder_free(struct encoder *en);

/* Appends the ids of text[0..n) to *out. Bytes that are no UTF-8 are encoded as bytes where the
 * vocabulary can. */
bool encoder_encode(struct encoder *en, const char *text, size_t n, unsigned flags, struct ids *out,
                    struct err *e);

/* The same, and appends to *where (unless NULL) the range that each id came from. Ranges may
 * overlap, where several tokens share a character, and bytes that normalization dropped lie in
 * none. Slower than without: for display. */
bool encoder_encode_spans(struct encoder *en, const char *text, size_t n, unsigned flags,
                          struct ids *out, struct token_spans *where, struct err *e);

/* How far a text that comes in parts has got; all zero at its beginning. */
struct encode_progress {
    size_t done; /* bytes whose ids have come */
    bool begun;
};

/* Encodes a part of a longer text: text[0..n) is what follows the first p->done bytes. Appends the
 * ids that no text behind it can change, and adds to p->done the bytes that they stand for; the
 * caller drops these and comes again with what is left and more behind it. With `last` all of it is
 * encoded. All ids together are those of the whole text encoded at once; ranges count from the
 * beginning of the whole text.
 *
 * Where the files of a tokenizer do not cut a text into words (Llama 2), or cut it in a way that
 * looks back or changes text across words, nothing is settled before the last part. */
bool encoder_encode_part(struct encoder *en, const char *text, size_t n, bool last, unsigned flags,
                         struct encode_progress *p, struct ids *out, struct token_spans *where,
                         struct err *e);

/* show_special: special tokens are spelled out rather than left out. */
struct decoder *decoder_new(const struct tokenizer *t, bool show_special, struct err *e);
void decoder_free(struct decoder *d);

/* *text: the bytes that one more id adds to the text; valid until the next call. A character may
 * arrive in several pieces. An id outside the vocabulary adds nothing. ERR_LOAD where a regular
 * expression of the decoder takes too long for the token, ERR_RUNTIME without memory. */
bool decoder_next(struct decoder *d, int32_t id, struct bytes *text, struct err *e);

/* Forgets all, to begin a new text. */
void decoder_reset(struct decoder *d);

#endif
