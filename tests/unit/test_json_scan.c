/*
 * The reader without a tree: what it gives, that it agrees with the tree, and what it refuses.
 */
#include "tests/check.h"

#include "core/json.h"

#include <stdlib.h>
#include <string.h>

static void begin(struct json_scan *s, const char *text, struct err *e)
{
    json_scan_begin(s, text, strlen(text), e);
}

static bool is_string(struct json_scan *s, const char *want, size_t n)
{
    struct bytes b;
    return json_scan_string(s, &b) && b.size == n && memcmp(b.data, want, n) == 0;
}

static void members(void **state)
{
    (void)state;
    struct err e = {0};
    struct json_scan s;
    struct bytes key;
    struct bytes value;
    double number = 0;
    begin(&s, " {\"a\" : -12.5e1 , \"b\":[ 7,\"x\" ,{}], \"c\":null}\n", &e);
    assert_true(json_scan_object(&s));
    assert_true(json_scan_member(&s, &key));
    assert_memory_equal(key.data, "a", 1);
    assert_true(json_scan_number(&s, &number));
    assert_true(number == -125);
    assert_true(json_scan_member(&s, &key));
    assert_true(json_scan_is(&s, JSON_ARRAY));
    assert_true(json_scan_array(&s));
    assert_true(json_scan_element(&s));
    assert_true(json_scan_number(&s, &number));
    assert_true(number == 7);
    assert_true(json_scan_element(&s));
    assert_true(is_string(&s, "x", 1));
    assert_true(json_scan_element(&s));
    assert_true(json_scan_object(&s));
    assert_false(json_scan_member(&s, &key));
    assert_false(json_scan_element(&s));
    assert_true(json_scan_member(&s, &key));
    assert_true(json_scan_skip(&s, &value));
    assert_int_equal(value.size, 4);
    assert_memory_equal(value.data, "null", 4);
    assert_false(json_scan_member(&s, &key));
    assert_true(json_scan_done(&s));
    json_scan_end(&s);
}

static void strings(void **state)
{
    (void)state;
    static const struct {
        const char *json, *want;
        size_t n;
    } cases[] = {
        {"\"\"", "", 0},
        {"\"plain \xC4\xA0\"", "plain \xC4\xA0", 8},
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t", 8},
        {"\"a\\u0000b\"", "a\0b", 3},
        {"\"\\u0120\\u20AC\\uD83D\\uDE00\"", "\xC4\xA0\xE2\x82\xAC\xF0\x9F\x98\x80", 9},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err e = {0};
        struct json_scan s;
        begin(&s, cases[i].json, &e);
        assert_true(is_string(&s, cases[i].want, cases[i].n));
        assert_true(json_scan_done(&s));
        json_scan_end(&s);
    }
}

/* Skips any value; true where the whole text is one. */
static bool skips(const char *text, struct err *e)
{
    struct json_scan s;
    struct bytes value;
    begin(&s, text, e);
    bool good = json_scan_skip(&s, &value) && json_scan_done(&s);
    json_scan_end(&s);
    return good;
}

static void refusals(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",  " ",  "{",  "[1",  "\"a", "\"\\",     "tru",       "01",  "1.",
        "-", "1e", "+1", "1 2", "]",   "\"\x01\"", "[\"a\n\"]", "nul",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err e = {0};
        if (skips(bad[i], &e))
            fail_msg("taken for JSON: %s", bad[i]);
        assert_int_equal(e.code, ERR_LOAD);
    }
    static const char *const bad_strings[] = {"\"\\x\"",     "\"\\u12\"",          "\"\\uDC00\"",
                                              "\"\\uD800\"", "\"\\uD800\\u0041\"", "\"\\u\""};
    for (size_t i = 0; i < ARRAY_LEN(bad_strings); i++) {
        struct err e = {0};
        struct json_scan s;
        struct bytes b;
        begin(&s, bad_strings[i], &e);
        assert_false(json_scan_string(&s, &b));
        assert_int_equal(e.code, ERR_LOAD);
        json_scan_end(&s);
    }
}

static void nesting(void **state)
{
    (void)state;
    enum { DEEP = 100000 };
    char *text = malloc(DEEP + 1);
    assert_non_null(text);
    memset(text, '[', DEEP);
    text[DEEP] = '\0';
    struct err e = {0};
    assert_false(skips(text, &e));
    assert_non_null(strstr(e.text, "nesting"));
    free(text);
}

/* A comma too many or too few is seen wherever items are asked for. */
static void commas(void **state)
{
    (void)state;
    static const char *const bad[] = {"[1,]", "[,1]", "[1 1]", "[1,,1]", "[1}"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err e = {0};
        struct json_scan s;
        double number;
        begin(&s, bad[i], &e);
        bool good = json_scan_array(&s);
        while (good && json_scan_element(&s))
            good = json_scan_number(&s, &number);
        if (good && json_scan_done(&s))
            fail_msg("taken for JSON: %s", bad[i]);
        json_scan_end(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members), cmocka_unit_test(strings), cmocka_unit_test(refusals),
        cmocka_unit_test(nesting), cmocka_unit_test(commas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
