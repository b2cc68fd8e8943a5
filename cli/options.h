/*
 * The command line: one table that says all there is to know of each option. Parsing, --help, the
 * completions and the check of the man page read it; nothing else lists options.
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include "core/err.h"
#include "core/sample.h"
#include "models/generator.h"

/* Commands as bits, so that an option can name all those that take it. */
enum {
    FOR_GENERATE = 1,
    FOR_SCORE = 2,
    FOR_TOKENIZE = 4,
    FOR_DETOKENIZE = 8,
    FOR_INSPECT = 16,
    FOR_BATCH = 32,
    FOR_BENCH = 64,
    FOR_CHOOSE = 128,
    FOR_QUANTIZE = 256,
    FOR_ALL = FOR_GENERATE | FOR_SCORE | FOR_TOKENIZE | FOR_DETOKENIZE | FOR_INSPECT | FOR_BATCH |
              FOR_BENCH | FOR_CHOOSE | FOR_QUANTIZE
};

/* In the order of the table, which is that of --help and of the man page. */
enum option_id {
    OPT_MODEL,
    OPT_THREADS,
    OPT_BENCH_THREADS,
    OPT_CPU,
    OPT_PRECISION,
    OPT_WEIGHTS,
    OPT_QUANTIZE_WEIGHTS,
    OPT_BENCH_WEIGHTS,
    OPT_KV,
    OPT_CONTEXT,
    OPT_DRAFT,
    OPT_PROMPT,
    OPT_FILE,
    OPT_PROMPT_FILE,
    OPT_IDS,
    OPT_NO_BOS,
    OPT_SPECIAL,
    OPT_MAX_TOKENS,
    OPT_STOP,
    OPT_IGNORE_EOS,
    OPT_TEMP,
    OPT_TOP_K,
    OPT_TOP_P,
    OPT_MIN_P,
    OPT_TYPICAL_P,
    OPT_REPEAT_PENALTY,
    OPT_REPEAT_LAST_N,
    OPT_PRESENCE_PENALTY,
    OPT_FREQUENCY_PENALTY,
    OPT_SEED,
    OPT_JSONL,
    OPT_OUTPUT,
    OPT_QUANTIZE_OUTPUT,
    OPT_RESTART,
    OPT_ORDERED,
    OPT_TEXT,
    OPT_SHARD,
    OPT_MERGE,
    OPT_PARALLEL,
    OPT_KV_MEMORY,
    OPT_N_PROMPT,
    OPT_N_GEN,
    OPT_DEPTH,
    OPT_REPETITIONS,
    OPT_BY,
    OPT_ECHO,
    OPT_PRINT_IDS,
    OPT_PIECES,
    OPT_COUNT,
    OPT_LOGITS,
    OPT_JSON,
    OPT_CSV,
    OPT_STATS,
    OPT_QUIET,
    OPT_HELP,
    OPT_VERSION,
    OPT_COMPLETIONS,
    OPTION_COUNT
};

enum option_kind {
    OPTION_FLAG,    /* bool */
    OPTION_WHOLE,   /* int */
    OPTION_REAL,    /* float */
    OPTION_SEED,    /* uint64_t */
    OPTION_SIZE,    /* size_t, bytes: 1000, 500M, 4G; in powers of 1024 */
    OPTION_TEXT,    /* const char * */
    OPTION_PATH,    /* const char *, a file */
    OPTION_MODEL,   /* const char *, a directory or org/name */
    OPTION_LIST,    /* struct option_list, one entry each time */
    OPTION_NUMBERS, /* struct option_numbers: "1,2,4" */
    OPTION_CHOICE,  /* int: min for the first word of metavar, one more for each behind a '|' */
    OPTION_CHOICES, /* struct option_numbers of such: "stored,q4" */
    OPTION_WHOLE_OR /* int: a number, or -1 for the word behind the first '|', one more for each */
};

/* Commands may have options of the same name and letter that differ in kind. */
struct option_spec {
    const char *name; /* without the dashes */
    char letter;      /* 0: none */
    enum option_kind kind;
    unsigned commands;    /* FOR_... */
    const char *metavar;  /* what --help calls the value; NULL for a flag */
    double min, max;      /* of numbers; and min of OPTION_CHOICE */
    size_t offset;        /* of the value in struct options */
    const char *group;    /* the heading in --help; NULL: not listed there */
    const char *fallback; /* the default in words where the value itself would not tell */
    const char *help;
};

extern const struct option_spec options_table[OPTION_COUNT];

/* The words that the value may be, separated by '|'; NULL where it is no word of a list. */
const char *options_words(const struct option_spec *spec);

struct option_list {
    const char **item; /* [n] */
    size_t n;
};

enum { OPTION_MOST_NUMBERS = 16 };

struct option_numbers {
    int value[OPTION_MOST_NUMBERS]; /* [n] */
    int n;
};

/* What the command line says. All text is borrowed from argv. */
struct options {
    bool given[OPTION_COUNT]; /* said, and not merely the default */
    const char *model, *prompt, *file, *ids, *logits, *cpu, *output, *shard;
    int threads, context; /* 0: not said */
    int precision;        /* enum precision */
    int kv;               /* enum session_kv */
    int weights;          /* enum model_weights */
    int draft;            /* guesses in a pass, or GENERATOR_DRAFT_AUTO */
    int max_tokens;
    struct option_list stop;
    struct sample_params sampling;
    struct option_numbers bench_threads, bench_weights, n_prompt, n_gen, depth;
    int repetitions;
    bool csv;
    bool no_bos, special, ignore_eos, echo, print_ids, pieces, count, json, stats, quiet;
    bool restart, ordered, text, merge, jsonl;
    const char *prompt_file;
    int by;           /* enum choose_by */
    int parallel;     /* lines at once */
    size_t kv_memory; /* 0: not said */
    bool help, version;
    int completions;
    const char **words; /* [n_words] arguments that are no options, nor "-" */
    size_t n_words;
    size_t n_plain_words; /* those before a "--" */
    bool wants_stdin;     /* "-" */
};

/* How many letters have to change, or to swap with the next, to make the name b of a's n_a bytes
 * (Damerau-Levenshtein, optimal string alignment); many where one of them is longer than names are.
 */
size_t options_distance(const char *a, size_t n_a, const char *b);

/* The defaults, with room for what argc arguments can hold. */
bool options_init(struct options *o, int argc, struct err *e);
void options_free(struct options *o);

/* Reads argv[first..argc) for `command` (one FOR_ bit, called `name`). Ends early at --help and
 * --version. ERR_USAGE with one sentence. */
bool options_parse(struct options *o, int argc, char **argv, int first, unsigned command,
                   const char *name, struct err *e);

/* The default as --help shows it into out[0..size): empty for one that is off. */
void options_default(const struct option_spec *spec, const struct options *defaults, char *out,
                     size_t size);

#endif
