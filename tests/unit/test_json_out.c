/*
 * The writer of JSON: whatever goes in, what comes out is JSON, and says the same. The reader in
 * core/json.c, which is another author's, judges.
 */
#include "tests/check.h"

#include "cli/buffer.c"
#include "cli/json_out.c"
#include "core/json.h"

static struct json *read_back(const struct buffer *t)
{
    struct err e;
    struct json *j = json_parse(t->data, t->n, &e);
    if (!j)
        fail_msg("%s: %s", t->data, e.text);
    return j;
}

static void assert_written(struct buffer *t, const char *expected)
{
    assert_false(t->failed);
    assert_string_equal(t->data, expected);
    buffer_free(t);
}

static void structure(void **state)
{
    (void)state;
    struct buffer t = {0};
    json_out_open(&t, NULL, '{');
    json_out_open(&t, "empty", '[');
    json_out_close(&t, ']');
    json_out_open(&t, "list", '[');
    json_out_unsigned(&t, NULL, 1);
    json_out_text(&t, NULL, "[", 1); /* an opening bracket at the end of a value is no bracket */
    json_out_null(&t, NULL);
    json_out_open(&t, NULL, '{');
    json_out_bool(&t, "yes", true);
    json_out_bool(&t, "no", false);
    json_out_close(&t, '}');
    json_out_close(&t, ']');
    json_out_ids(&t, "ids", (const int32_t[]){7, 0, INT32_MAX}, 3);
    json_out_ids(&t, "no_ids", NULL, 0);
    json_out_unsigned(&t, "seed", UINT64_MAX);
    json_out_string(&t, "none", NULL);
    json_out_close(&t, '}');
    assert_written(
        &t, "{\"empty\":[],\"list\":[1,\"[\",null,{\"yes\":true,\"no\":false}],"
            "\"ids\":[7,0,2147483647],\"no_ids\":[],\"seed\":18446744073709551615,\"none\":null}");
}

/* A key is found where it is one, not where another one ends like it or a value stands between. */
static void members_are_found(void **state)
{
    (void)state;
    static const char *const keys[] = {"\"The", "a,", ":-1,b", "{\"x\\", "", "n\0", "n\0\0"};
    static const char *const others[] = {"The", "a", ":-1,", "x\\", "b", ",", "\\", "n"};
    static const size_t sizes[] = {4, 2, 5, 4, 0, 2, 3};
    struct buffer t = {0};
    json_out_open(&t, NULL, '{');
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        assert_false(json_out_has(&t, 1, keys[i], sizes[i]));
        json_out_name(&t, keys[i], sizes[i]);
        json_out_number(&t, NULL, i > 0 ? -1 : -INFINITY);
        assert_true(json_out_has(&t, 1, keys[i], sizes[i]));
    }
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        assert_false(json_out_has(&t, 1, others[i], strlen(others[i])));
    buffer_free(&t);
}

static void text_is_escaped(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t n;
        const char *expected;
    } cases[] = {
        {"", 0, "\"\""},
        {"a\"b\\c/", 6, "\"a\\\"b\\\\c/\""},
        {"\n\t\r\b\x1F\x7F", 6, "\"\\n\\t\\u000d\\u0008\\u001f\x7F\""},
        {"\0x", 2, "\"\\u0000x\""},
        {"\xC3\xA9\xF0\x9F\x98\x80", 6, "\"\xC3\xA9\xF0\x9F\x98\x80\""},
        {"a\xFFz", 3, "\"a\xEF\xBF\xBDz\""},
        {"\xE2\x82", 2, "\"\xEF\xBF\xBD\""}, /* cut: one for all of it */
        {"\xF0\x80\x80", 3, "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\""}, /* no beginning: each */
        {"\xE1\x80!", 3, "\"\xEF\xBF\xBD!\""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buffer t = {0};
        json_out_text(&t, NULL, cases[i].text, cases[i].n);
        assert_written(&t, cases[i].expected);
    }
}

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u; /* Knuth, MMIX */
    return *state ^ *state >> 29;
}

static void any_bytes_make_json(void **state)
{
    (void)state;
    uint64_t seed = 42;
    for (int round = 0; round < 2000; round++) {
        char bytes[64];
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (char)(1 + next_random(&seed) % 255); /* the reader refuses \\u0000 */
        struct buffer t = {0};
        json_out_open(&t, NULL, '{');
        json_out_text(&t, "bytes", bytes, sizeof bytes);
        json_out_close(&t, '}');
        json_free(read_back(&t));
        buffer_free(&t);
    }
}

static void assert_same_number(double value)
{
    struct buffer t = {0};
    json_out_number(&t, NULL, value);
    const double back = strtod(t.data, NULL);
    if (memcmp(&back, &value, sizeof value) != 0)
        fail_msg("%a was written as %s", value, t.data);
    struct json *j = read_back(&t);
    assert_int_equal(json_type(j), JSON_NUMBER);
    json_free(j);
    buffer_free(&t);
}

static void numbers_read_back(void **state)
{
    (void)state;
    static const double values[] = {0.0,
                                    -0.0,
                                    1,
                                    -1.5,
                                    0.1,
                                    1e-5,
                                    1e300,
                                    5e-324,
                                    1.0 / 3.0,
                                    2e16,
                                    123456,
                                    1e15 + 0.3,
                                    -12.345678901234567};
    for (size_t i = 0; i < ARRAY_LEN(values); i++)
        assert_same_number(values[i]);
    uint64_t seed = 7;
    for (int i = 0; i < 20000; i++) {
        const uint64_t bits = next_random(&seed);
        double value;
        memcpy(&value, &bits, sizeof value);
        if (isfinite(value))
            assert_same_number(value);
    }
}

static void numbers_are_short(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *expected;
    } cases[] = {
        {0.1, "0.1"},  {4096, "4096"},     {1e-5, "1e-05"},    {1.0 / 3, "0.3333333333333333"},
        {NAN, "null"}, {INFINITY, "null"}, {-INFINITY, "null"}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buffer t = {0};
        json_out_number(&t, NULL, cases[i].value);
        assert_written(&t, cases[i].expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(structure),         cmocka_unit_test(members_are_found),
        cmocka_unit_test(text_is_escaped),   cmocka_unit_test(any_bytes_make_json),
        cmocka_unit_test(numbers_read_back), cmocka_unit_test(numbers_are_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
