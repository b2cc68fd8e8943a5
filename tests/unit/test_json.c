/*
 * JSON: what is read, what is refused with which sentence, and what odd input comes to.
 */
#include "tests/check.h"

#include "core/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

/* Parses a copy of exactly n bytes, so that a sanitizer sees a step beyond them. */
static struct json *parse_bytes(const char *text, size_t n, struct err *e)
{
    char *copy = malloc(n ? n : 1);
    assert_non_null(copy);
    memcpy(copy, text, n);
    struct json *j = json_parse(copy, n, e);
    free(copy);
    return j;
}

static struct json *parse(const char *text)
{
    struct err e;
    struct json *j = parse_bytes(text, strlen(text), &e);
    if (!j)
        fail_msg("%s: %s", text, e.text);
    return j;
}

/* ---- what is read ---------------------------------------------------------------------------- */

static void every_type(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum json_type type;
        const char *name;
    } cases[] = {
        {"null", JSON_NULL, "null"},
        {"true", JSON_BOOL, "a boolean"},
        {"false", JSON_BOOL, "a boolean"},
        {"-1.5e3", JSON_NUMBER, "a number"},
        {"\"x\"", JSON_STRING, "a string"},
        {"[1, [2]]", JSON_ARRAY, "an array"},
        {" {} \r\n\t", JSON_OBJECT, "an object"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct json *j = parse(cases[i].text);
        assert_int_equal(json_type(j), cases[i].type);
        assert_string_equal(json_type_name(json_type(j)), cases[i].name);
        json_free(j);
    }
}

static void values_and_fallbacks(void **state)
{
    (void)state;
    struct json *j = parse("{\"s\": \"text\", \"n\": 2.5, \"t\": true, \"f\": false}");
    const struct json *s = json_get(j, "s"), *n = json_get(j, "n");
    assert_string_equal(json_text(s, "-"), "text");
    assert_string_equal(json_text(n, "-"), "-");
    assert_null(json_text(NULL, NULL));
    assert_true(json_number(n, 0.0) == 2.5);
    assert_true(json_number(s, 7.0) == 7.0);
    assert_true(json_number(NULL, 7.0) == 7.0);
    assert_true(json_bool(json_get(j, "t"), false));
    assert_false(json_bool(json_get(j, "f"), true));
    assert_true(json_bool(s, true));
    assert_false(json_bool(NULL, false));
    json_free(j);
    json_free(NULL);
}

static void members_by_exact_name(void **state)
{
    (void)state;
    struct json *j = parse("{\"Key\": 1, \"key\": 2, \"\": 3, \"list\": [4]}");
    assert_true(json_number(json_get(j, "key"), 0) == 2);
    assert_true(json_number(json_get(j, "Key"), 0) == 1);
    assert_true(json_number(json_get(j, ""), 0) == 3);
    assert_null(json_get(j, "KEY"));
    assert_null(json_get(NULL, "key"));
    assert_null(json_get(json_get(j, "list"), "key"));
    assert_null(json_get(json_get(j, "key"), "key"));
    json_free(j);
}

static void children_in_order(void **state)
{
    (void)state;
    struct json *j = parse("{\"b\": [10, 11, 12], \"a\": {}, \"c\": \"x\"}");
    char keys[8] = "";
    for (const struct json *c = json_first(j); c; c = json_next(c))
        strcat(keys, json_key(c));
    assert_string_equal(keys, "bac");
    assert_int_equal(json_count(j), 3);
    double expected = 10;
    for (const struct json *c = json_first(json_get(j, "b")); c; c = json_next(c)) {
        assert_null(json_key(c));
        assert_true(json_number(c, 0) == expected++);
    }
    assert_true(expected == 13);
    assert_null(json_first(json_get(j, "a")));
    assert_null(json_first(json_get(j, "c")));
    assert_null(json_first(NULL));
    assert_int_equal(json_count(NULL), 0);
    json_free(j);
}

static void strings_as_utf8(void **state)
{
    (void)state;
    struct json *j = parse("[\"\\u0120\\ud83d\\ude00\\n\\/\\\\u0000\", \"\xff\xfe\"]");
    const struct json *first = json_first(j);
    assert_string_equal(json_text(first, ""), "\xc4\xa0\xf0\x9f\x98\x80\n/\\u0000");
    assert_string_equal(json_text(json_next(first), ""), "\xff\xfe"); /* no UTF-8, kept as it is */
    json_free(j);
}

static void whole_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t min, max;
        bool ok;
        int64_t value;
    } cases[] = {
        {"0", 0, 10, true, 0},
        {"-0", 0, 10, true, 0},
        {"10", 0, 10, true, 10},
        {"11", 0, 10, false, 0},
        {"-1", 0, 10, false, 0},
        {"1e2", 0, 100, true, 100},
        {"2.0", 0, 10, true, 2},
        {"2.5", 0, 10, false, 0},
        {"9007199254740991", 0, INT64_MAX, true, 9007199254740991},
        {"9007199254740992", 0, INT64_MAX, false, 0}, /* 2^53 + 1 reads as the same double */
        {"-9007199254740991", INT64_MIN, 0, true, -9007199254740991},
        {"1e999", INT64_MIN, INT64_MAX, false, 0},
        {"-1e999", INT64_MIN, INT64_MAX, false, 0},
        {"1e300", INT64_MIN, INT64_MAX, false, 0},
        {"\"1\"", 0, 10, false, 0},
        {"true", 0, 10, false, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct json *j = parse(cases[i].text);
        int64_t value = -77;
        if (json_integer(j, cases[i].min, cases[i].max, &value) != cases[i].ok ||
            value != (cases[i].ok ? cases[i].value : -77))
            fail_msg("%s gave %lld", cases[i].text, (long long)value);
        json_free(j);
    }
    int64_t value;
    assert_false(json_integer(NULL, INT64_MIN, INT64_MAX, &value));
}

static void odd_numbers(void **state)
{
    (void)state;
    struct json *j = parse("[1e999, -1e999]");
    assert_true(json_number(json_first(j), 0) == (double)INFINITY);
    assert_true(json_number(json_next(json_first(j)), 0) == -(double)INFINITY);
    json_free(j);
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void refusals(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t n; /* 0: up to the terminator */
        const char *part;
    } cases[] = {
        {"", 0, "nothing but white space"},
        {" \n\t", 0, "nothing but white space"},
        {"{} x", 0, "more text behind the value, at byte 3"},
        {"{}{}", 0, "more text behind the value, at byte 2"},
        {"{}\0", 3, "a NUL character at byte 2"},
        {"[\"a\0b\"]", 7, "a NUL character at byte 3"},
        {"[\"a\\u0000b\"]", 0, "a NUL character at byte 3"},
        {"[\"\\\\\\u0000\"]", 0, "a NUL character at byte 4"},
        {"{\"a\": tru}", 0, "see byte 6 of 10"},
        {"[1, 2", 0, "see byte"},
        {"[1, 2,]", 0, "see byte"},
        {"{\"a\" 1}", 0, "see byte"},
        {"{1: 2}", 0, "see byte"},
        {"\"open", 0, "see byte"},
        {"\"\\x\"", 0, "see byte"},
        {"\"\\u12\"", 0, "see byte"},
        {"\"\\ud800\"", 0, "see byte"},
        {"\"\\udc00\"", 0, "see byte"},
        {"nan", 0, "see byte 0 of 3"},
        {"-", 0, "see byte 0 of 1"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err e = {0};
        size_t n = cases[i].n ? cases[i].n : strlen(cases[i].text);
        assert_null(parse_bytes(cases[i].text, n, &e));
        check_sentence(&e, ERR_LOAD, cases[i].part);
    }
}

static void text_need_not_be_terminated(void **state)
{
    (void)state;
    struct err e;
    static const char text[] = "[12, 34]56";
    struct json *j = parse_bytes(text, 8, &e);
    assert_non_null(j);
    json_free(j);
    for (size_t n = 0; n < 8; n++)
        assert_null(parse_bytes(text, n, &e));
    /* A number that ends with the range must not be read on. */
    j = parse_bytes("1234", 2, &e);
    assert_true(json_number(j, 0) == 12);
    json_free(j);
}

static void nesting_is_limited(void **state)
{
    (void)state;
    enum { DEEP = 200000 };
    char *text = malloc(DEEP);
    assert_non_null(text);
    struct err e;
    memset(text, '[', DEEP);
    assert_null(json_parse(text, DEEP, &e));
    check_sentence(&e, ERR_LOAD, "nested deeper than 1000");
    memset(text + 900, ']', 900);
    struct json *j = json_parse(text, 1800, &e);
    assert_non_null(j);
    json_free(j);
    free(text);
}

/* Of values, not of bytes: a long string takes no more than its text. */
static void values_are_limited(void **state)
{
    (void)state;
    enum { MANY = 1 << 22, N = 2 * MANY + 3 };
    char *text = malloc(N);
    assert_non_null(text);
    struct err e;
    static const char *const values[] = {"0,", "[[", "{ "};
    for (size_t v = 0; v < ARRAY_LEN(values); v++) {
        text[0] = '[';
        for (size_t i = 1; i < N; i++)
            text[i] = values[v][(i - 1) % 2];
        assert_null(json_parse(text, N, &e));
        check_sentence(&e, ERR_LOAD, "JSON of more than 4194304 values");
    }
    memset(text, 'x', N);
    text[0] = text[N - 1] = '"';
    struct json *j = json_parse(text, N, &e);
    assert_non_null(j);
    json_free(j);
    free(text);
}

/* ---- duplicate keys -------------------------------------------------------------------------- */

/* An object of n members, where the one at `at` has the name of the one at `same`. */
static struct json *object_with(size_t n, size_t same, size_t at)
{
    char *text = malloc(n * 24 + 3);
    assert_non_null(text);
    char *end = text;
    for (size_t i = 0; i < n; i++)
        end += sprintf(end, "%c\"key.%zu\":%zu", i ? ',' : '{', i == at ? same : i, i);
    *end++ = '}';
    struct err e;
    struct json *j = json_parse(text, (size_t)(end - text), &e);
    free(text);
    assert_non_null(j);
    return j;
}

static const char *duplicate_of(const struct json *j)
{
    const char *key;
    struct err e;
    assert_true(json_find_duplicate(j, &key, &e));
    return key;
}

static void duplicates_among_few_and_many(void **state)
{
    (void)state;
    static const size_t sizes[] = {2, 3, 16, 17, 18, 100, 60000};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        size_t n = sizes[i];
        struct json *j = object_with(n, n, n);
        assert_null(duplicate_of(j));
        json_free(j);
        j = object_with(n, 0, n - 1);
        assert_string_equal(duplicate_of(j), "key.0");
        json_free(j);
        j = object_with(n, n / 2, n / 2 - 1);
        char expected[32];
        sprintf(expected, "key.%zu", n / 2);
        assert_string_equal(duplicate_of(j), expected);
        json_free(j);
    }
}

static void the_earliest_duplicate_is_named(void **state)
{
    (void)state;
    char text[400] = "{";
    for (int i = 0; i < 20; i++)
        sprintf(text + strlen(text), "\"%d\":0,", i);
    strcat(text, "\"9\":0,\"3\":0,\"9\":0}");
    struct json *many = parse(text);
    assert_string_equal(duplicate_of(many), "9");
    json_free(many);
    struct json *few = parse("{\"a\":0,\"b\":0,\"b\":0,\"a\":0}");
    assert_string_equal(duplicate_of(few), "b");
    json_free(few);
}

static void only_objects_have_duplicates(void **state)
{
    (void)state;
    struct json *j = parse("[1, 1]");
    assert_null(duplicate_of(j));
    assert_null(duplicate_of(NULL));
    json_free(j);
}

/* ---- memory ------------------------------------------------------------------------------------
 */

/* A tree takes far more than its text, and here more than there is. */
static void no_memory_is_no_bad_text(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* they take more than any limit */
#endif
    enum { N = (4 << 20) + 1, LEFT = 64 << 20 };
    char *text = malloc(N);
    unsigned long pages = 0;
    struct rlimit before;
    struct err e;
    FILE *about = fopen("/proc/self/statm", "r");
    if (!about || fscanf(about, "%lu", &pages) != 1 || getrlimit(RLIMIT_AS, &before) != 0)
        skip();
    fclose(about);
    assert_non_null(text);
    for (size_t i = 0; i < N; i++)
        text[i] = i == 0 ? '[' : i == N - 1 ? ']' : ",0"[i % 2];
    const struct rlimit little = {.rlim_cur = pages * (rlim_t)sysconf(_SC_PAGESIZE) + LEFT,
                                  .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_AS, &little), 0);
    struct json *j = json_parse(text, N, &e);
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_null(j);
    check_sentence(&e, ERR_RUNTIME, "out of memory");
    j = json_parse(text, N, &e);
    assert_non_null(j);
    json_free(j);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type),
        cmocka_unit_test(values_and_fallbacks),
        cmocka_unit_test(members_by_exact_name),
        cmocka_unit_test(children_in_order),
        cmocka_unit_test(strings_as_utf8),
        cmocka_unit_test(whole_numbers),
        cmocka_unit_test(odd_numbers),
        cmocka_unit_test(refusals),
        cmocka_unit_test(text_need_not_be_terminated),
        cmocka_unit_test(nesting_is_limited),
        cmocka_unit_test(values_are_limited),
        cmocka_unit_test(duplicates_among_few_and_many),
        cmocka_unit_test(the_earliest_duplicate_is_named),
        cmocka_unit_test(only_objects_have_duplicates),
        cmocka_unit_test(no_memory_is_no_bad_text),
    };
    return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
