/*
 * Many byte strings searched for at once. Built in one go from the sorted strings, level by level,
 * so that a node's children lie side by side in order of their bytes.
 */
#include "tokenizer/trie.h"

#include <stdlib.h>

static int compare_entries(const void *a, const void *b)
{
    const struct trie_entry *x = a;
    const struct trie_entry *y = b;
    size_t n = min_size(x->text.size, y->text.size);
    int order = n ? memcmp(x->text.data, y->text.data, n) : 0;
    if (order)
        return order;
    if (x->text.size != y->text.size)
        return x->text.size < y->text.size ? -1 : 1;
    return (x->value > y->value) - (x->value < y->value);
}

/* The entries below a node, while it waits for its children. */
struct range {
    size_t begin, end, depth;
};

struct building {
    struct trie *trie;
    struct range *range; /* parallel to trie->node */
    size_t capacity;     /* of both */
};

static bool add_node(struct building *b, unsigned char byte, struct range range)
{
    struct trie *t = b->trie;
    const size_t n = (size_t)t->n_nodes + 1;
    size_t capacity = b->capacity;
    struct trie_node *node =
        n < UINT32_MAX ? grow_array(t->node, &capacity, n, sizeof *node, 256) : NULL;
    t->node = node ? node : t->node;
    struct range *ranges = node ? grow_array(b->range, &b->capacity, n, sizeof *ranges, 256) : NULL;
    if (!ranges)
        return false;
    b->range = ranges;
    t->node[t->n_nodes] = (struct trie_node){.value = -1, .byte = byte};
    b->range[t->n_nodes++] = range;
    return true;
}

/* Takes the strings that end at the node, the last one's value, and gives the others children. */
static bool add_children(struct building *b, const struct trie_entry *entry, uint32_t at)
{
    struct range r = b->range[at];
    size_t i = r.begin;
    for (; i < r.end && entry[i].text.size == r.depth; i++)
        b->trie->node[at].value = entry[i].value;
    b->trie->node[at].child = b->trie->n_nodes;
    while (i < r.end) {
        size_t begin = i;
        unsigned char byte = entry[i].text.data[r.depth];
        while (i < r.end && entry[i].text.data[r.depth] == byte)
            i++;
        if (!add_node(b, byte, (struct range){begin, i, r.depth + 1}))
            return false;
        b->trie->node[at].n_children++;
    }
    return true;
}

bool trie_build(struct trie *t, struct trie_entry *entry, size_t n, struct err *e)
{
    *t = (struct trie){0};
    for (size_t i = 0; i < n; i++) {
        const struct bytes text = entry[i].text;
        if (text.size > LONGEST_SOUGHT) {
            return err_set(e, ERR_LOAD,
                           "the token \"%.60s...\" has %zu bytes, more than the %d that can be",
                           (const char *)text.data, text.size, LONGEST_SOUGHT);
        }
    }
    if (n == 0)
        return true;
    qsort(entry, n, sizeof *entry, compare_entries);
    struct building b = {.trie = t};
    bool good = add_node(&b, 0, (struct range){0, n, 0});
    for (uint32_t at = 0; good && at < t->n_nodes; at++)
        good = add_children(&b, entry, at);
    free(b.range);
    for (uint32_t i = 0; good && i < t->node[0].n_children; i++) {
        uint32_t child = t->node[0].child + i;
        t->root[t->node[child].byte] = child;
    }
    return good || err_no_memory(e);
}

uint32_t trie_step(const struct trie *t, uint32_t at, unsigned char byte)
{
    if (at == 0)
        return t->root[byte];
    uint32_t low = t->node[at].child;
    uint32_t high = low + t->node[at].n_children;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (t->node[middle].byte == byte)
            return middle;
        if (t->node[middle].byte < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return 0;
}

int32_t trie_longest(const struct trie *t, const char *s, size_t n, size_t *size)
{
    int32_t value = -1;
    uint32_t at = 0;
    for (size_t i = 0; i < n && (at = trie_step(t, at, (unsigned char)s[i])); i++) {
        if (t->node[at].value >= 0) {
            value = t->node[at].value;
            *size = i + 1;
        }
    }
    return value;
}

void trie_free(struct trie *t)
{
    free(t->node);
    *t = (struct trie){0};
}
