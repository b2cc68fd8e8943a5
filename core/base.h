/*
 * Words that every file may use: fixed-width types, the size of a cache line, overflow-checked
 * sizes, a byte range, a digit's value, an array that grows, a hash. Owns nothing and knows nothing
 * of models.
 */
#ifndef CORE_BASE_H
#define CORE_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "weights and codes are used as they lie in files, lowest byte first");

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

enum { CACHE_LINE = 64 /* bytes */ };

#if defined(__GNUC__)
#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define PRINTF_LIKE(fmt, args)
#endif

/* Borrowed bytes; no terminator is promised. `data` is NULL where a file is absent. */
struct bytes {
    const unsigned char *data;
    size_t size;
};

static inline bool bytes_equal(struct bytes a, const char *text)
{
    const size_t n = strlen(text);
    return a.size == n && memcmp(a.data, text, n) == 0;
}

/* The value of a hexadecimal digit; -1: it is none. */
static inline int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

/* Whether the text ends so, behind something else. */
static inline bool text_ends_in(const char *text, const char *ending)
{
    const size_t n = strlen(text), n_ending = strlen(ending);
    return n > n_ending && memcmp(text + n - n_ending, ending, n_ending) == 0;
}

/* a * b and a + b into *out; false on overflow. For every size that a file or a user decides. */
static inline bool checked_mul(size_t a, size_t b, size_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

static inline bool checked_add(size_t a, size_t b, size_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

/*
 * Room for n > 0 items in an array from malloc, or in none yet (NULL and 0): returns it, moved and
 * twice as long where *capacity was less. NULL where there is no memory or the size overflows; the
 * array and *capacity are as before then. `first` is the capacity to begin with.
 */
static inline void *grow_array(void *array, size_t *capacity, size_t n, size_t item_size,
                               size_t first)
{
    size_t grown = *capacity > 0 ? *capacity : first, size;
    if (n <= *capacity)
        return array;
    while (grown < n)
        if (!checked_mul(grown, 2, &grown))
            return NULL;
    void *moved = checked_mul(grown, item_size, &size) ? realloc(array, size) : NULL;
    if (moved)
        *capacity = grown;
    return moved;
}

/* The hash FNV-1a (Fowler, Noll and Vo) of data[0..n). Seeds of batch lines are derived from it. */
static inline uint64_t fnv1a(const char *data, size_t n)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ (unsigned char)data[i]) * UINT64_C(1099511628211);
    return hash;
}

/* n rounded up to a multiple of a power of two; the caller knows that it fits. */
static inline size_t round_up(size_t n, size_t multiple)
{
    return (n + multiple - 1) & ~(multiple - 1);
}

static inline size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline size_t max_size(size_t a, size_t b)
{
    return a > b ? a : b;
}

static inline int min_int(int a, int b)
{
    return a < b ? a : b;
}

static inline int max_int(int a, int b)
{
    return a > b ? a : b;
}

#endif
