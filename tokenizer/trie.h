/*
 * Many strings searched for at once: added tokens, the pieces of Unigram, what a user defined.
 */
#ifndef TOKENIZER_TRIE_H
#define TOKENIZER_TRIE_H

#include "core/base.h"
#include "core/err.h"

/* The most bytes of what is looked for at each place of a text: tokens, rules, what is written
 * around pieces. Those of models have some 100. */
enum { LONGEST_SOUGHT = 1024 };

struct trie_node {
    uint32_t child; /* the first of n_children that lie side by side */
    int32_t value;  /* of the string that ends here, -1: none does */
    uint16_t n_children;
    unsigned char byte;
};

struct trie {
    struct trie_node *node; /* 0 is the root, and as somebody's child: none */
    uint32_t n_nodes;
    uint32_t root[256]; /* its children */
};

struct trie_entry {
    struct bytes text;
    int32_t value; /* not negative; of two equal strings the larger one counts */
};

/* Sorts the entries; what they point to need not outlive the call. ERR_LOAD where one is longer
 * than LONGEST_SOUGHT. */
bool trie_build(struct trie *t, struct trie_entry *entry, size_t n, struct err *e);

/* The node one byte below another, 0 where there is none. Begin at node 0. */
uint32_t trie_step(const struct trie *t, uint32_t at, unsigned char byte);

/* The value of the longest string that s[0..n) begins with, and its size; -1 where none is. */
int32_t trie_longest(const struct trie *t, const char *s, size_t n, size_t *size);
void trie_free(struct trie *t);

#endif
