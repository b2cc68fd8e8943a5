/*
 * Sentences: composed once, cut without harm, and never able to steer a terminal.
 */
#include "tests/check.h"

static void a_sentence_and_its_prefix(void **state)
{
    (void)state;
    struct err e;
    assert_false(err_set(&e, ERR_LOAD, "%d heads, expected %d", 3, 4));
    check_sentence(&e, ERR_LOAD, "3 heads, expected 4");
    assert_false(err_prefix(&e, "%s/config.json", "tales"));
    assert_string_equal(e.text, "tales/config.json: 3 heads, expected 4");
    assert_false(err_no_memory(&e));
    check_sentence(&e, ERR_RUNTIME, "out of memory");
    assert_false(err_interrupted(&e));
    assert_int_equal(e.code, ERR_INTERRUPTED);
    assert_string_equal(e.text, "");
}

static void control_characters_are_defused(void **state)
{
    (void)state;
    struct err e;
    err_set(&e, ERR_LOAD, "a%sb", "\x1b[2J\n\x7f\xc2\x9b");
    assert_string_equal(e.text, "a?[2J????b");
    err_set(&e, ERR_LOAD, "x");
    err_prefix(&e, "\x1b]0;");
    assert_string_equal(e.text, "?]0;: x");
    err_set(&e, ERR_LOAD, "%s", "Ġ é 日 \xf0\x9f\x98\x80");
    assert_string_equal(e.text, "Ġ é 日 \xf0\x9f\x98\x80");
}

static void what_is_no_utf8_is_replaced(void **state)
{
    (void)state;
    struct err e;
    err_set(&e, ERR_LOAD, "\"%.1s\" and \"%.2s\" are cut", "é", "日");
    assert_string_equal(e.text, "\"?\" and \"??\" are cut");
    err_set(&e, ERR_LOAD, "%s", "\xff\xed\xa0\x80\xc0\xaf.\xc3");
    assert_string_equal(e.text, "??????.?");
    err_prefix(&e, "-\xc3");
    assert_string_equal(e.text, "-?: ??????.?");
}

/* Fills a sentence so that `character` begins `room` bytes before the end of the buffer. */
static void fill(struct err *e, size_t room, const char *character)
{
    err_set(e, ERR_LOAD, "%*s%s%s", (int)(sizeof e->text - 1 - room), "", character, "tail");
}

static void a_cut_leaves_no_half_character(void **state)
{
    (void)state;
    static const char *const characters[] = {"é", "日", "\xf0\x9f\x98\x80"};
    for (size_t i = 0; i < ARRAY_LEN(characters); i++) {
        size_t size = strlen(characters[i]);
        for (size_t room = 1; room <= size; room++) {
            struct err e;
            fill(&e, room, characters[i]);
            size_t expected = sizeof e.text - 1 - (room < size ? room : 0);
            assert_int_equal(strlen(e.text), expected);
        }
    }
}

static void a_long_prefix_is_cut(void **state)
{
    (void)state;
    char long_name[2 * sizeof(((struct err *)0)->text)];
    memset(long_name, 'n', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    struct err e;
    err_set(&e, ERR_LOAD, "%s", long_name);
    assert_int_equal(strlen(e.text), sizeof e.text - 1);
    err_prefix(&e, "%s", "p");
    assert_int_equal(strncmp(e.text, "p: nnn", 6), 0);
    assert_int_equal(strlen(e.text), sizeof e.text - 1);
    err_prefix(&e, "%s", long_name);
    assert_int_equal(strlen(e.text), sizeof e.text - 1);
    err_set(&e, ERR_LOAD, "the cause");
    err_prefix(&e, "%s/config.json", long_name);
    assert_int_equal(strncmp(e.text, "...nnn", 6), 0);
    assert_non_null(strstr(e.text, "nnn/config.json: the cause"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sentence_and_its_prefix),
        cmocka_unit_test(control_characters_are_defused),
        cmocka_unit_test(what_is_no_utf8_is_replaced),
        cmocka_unit_test(a_cut_leaves_no_half_character),
        cmocka_unit_test(a_long_prefix_is_cut),
    };
    return cmocka_run_group_tests_name("err", tests, NULL, NULL);
}
