/*
 * Normal forms and graphemes against the Unicode Consortium's own test files, where Debian's
 * unicode-data is installed; a few cases of each are in the tests of the normalizers.
 */
#include "tests/check.h"

#include "tokenizer/unicode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNICODE_DATA "/usr/share/unicode/"

enum { MAX_CHARS = 64, N_CHARS = 0x110000 };

struct chars {
    uint32_t c[MAX_CHARS];
    size_t n;
};

/* Hexadecimal numbers up to ';' or the end. */
static const char *read_chars(const char *text, struct chars *out)
{
    out->n = 0;
    for (;;) {
        char *end;
        unsigned long c = strtoul(text, &end, 16);
        if (end == text)
            break;
        assert_true(out->n < MAX_CHARS);
        out->c[out->n++] = (uint32_t)c;
        text = end;
    }
    return *text == ';' ? text + 1 : text;
}

static void expect_form(const struct chars *in, enum unicode_form form, const struct chars *want,
                        const char *line)
{
    uint32_t out[MAX_CHARS * 36];
    assert_true(unicode_decomposed_count(in->c, in->n, form) * 2 <= ARRAY_LEN(out));
    size_t n = unicode_normalize(in->c, in->n, form, out);
    if (n != want->n || memcmp(out, want->c, n * sizeof *out) != 0)
        fail_msg("form %d differs: %s", (int)form, line);
    /* What is stable is left alone, so it must be right to do so. */
    bool stable = true;
    for (size_t i = 0; i < in->n; i++)
        stable = stable && unicode_is_stable(in->c[i], form);
    if (stable && (n != in->n || memcmp(out, in->c, n * sizeof *out) != 0))
        fail_msg("called stable in form %d: %s", (int)form, line);
}

/* Marks the characters newer than Unicode 9.0, whose normal forms are not known on purpose. */
static void find_new(unsigned char *is_new)
{
    FILE *f = fopen(UNICODE_DATA "DerivedAge.txt", "r");
    char line[2048];
    while (f && fgets(line, sizeof line, f)) {
        unsigned long first, last;
        int n = sscanf(line, "%lx..%lx", &first, &last);
        const char *version = strchr(line, ';');
        if (*line == '#' || n < 1 || !version || strtod(version + 1, NULL) <= 9)
            continue;
        for (unsigned long c = first; c <= (n == 2 ? last : first) && c < N_CHARS; c++)
            is_new[c] = 1;
    }
    if (f)
        fclose(f);
}

/* The columns: source; NFC; NFD; NFKC; NFKD. */
static void normal_forms(void **state)
{
    (void)state;
    FILE *f = popen("bzcat " UNICODE_DATA "NormalizationTest.txt.bz2 2>/dev/null", "r");
    assert_non_null(f);
    char line[2048];
    size_t n_lines = 0;
    static unsigned char is_new[N_CHARS];
    find_new(is_new);
    while (fgets(line, sizeof line, f)) {
        if (strchr("#@\n", *line))
            continue;
        struct chars column[5];
        const char *at = line;
        for (size_t i = 0; i < ARRAY_LEN(column); i++)
            at = read_chars(at, &column[i]);
        bool skips = false;
        for (size_t i = 0; i < column[0].n; i++)
            skips = skips || is_new[column[0].c[i]];
        if (skips)
            continue;
        for (size_t i = 0; i < ARRAY_LEN(column); i++) {
            bool compatible = i >= 3;
            expect_form(&column[i], UNICODE_NFC, &column[compatible ? 3 : 1], line);
            expect_form(&column[i], UNICODE_NFD, &column[compatible ? 4 : 2], line);
            expect_form(&column[i], UNICODE_NFKC, &column[3], line);
            expect_form(&column[i], UNICODE_NFKD, &column[4], line);
        }
        n_lines++;
    }
    pclose(f);
    if (n_lines == 0) {
        print_message("SKIP " UNICODE_DATA "NormalizationTest.txt.bz2: not there, or no bzcat\n");
        skip();
    }
    assert_true(n_lines > 18000);
}

/* "<division> 0020 <times> 0308 <division>": where graphemes begin. */
static void graphemes(void **state)
{
    (void)state;
    FILE *f = fopen(UNICODE_DATA "auxiliary/GraphemeBreakTest.txt", "r");
    if (!f) {
        print_message("SKIP " UNICODE_DATA "auxiliary/GraphemeBreakTest.txt: not there\n");
        skip();
        return;
    }
    char line[2048];
    size_t n_lines = 0;
    while (fgets(line, sizeof line, f)) {
        struct unicode_grapheme g = {0};
        bool begins = false;
        if (*line == '#')
            continue;
        for (char *word = strtok(line, " \t\n"); word && *word != '#'; word = strtok(NULL, " \t\n"))
            if (strcmp(word, "\xC3\xB7") == 0)
                begins = true;
            else if (strcmp(word, "\xC3\x97") == 0)
                begins = false;
            else if (unicode_grapheme_begins(&g, (uint32_t)strtoul(word, NULL, 16)) != begins)
                fail_msg("line %zu of the grapheme tests, at %s", n_lines, word);
        n_lines++;
    }
    fclose(f);
    assert_true(n_lines > 500);
}

static void properties(void **state)
{
    (void)state;
    assert_int_equal(unicode_category('a'), UNICODE_LL);
    assert_int_equal(unicode_category(0x378), UNICODE_CN);
    assert_int_equal(unicode_category(0xE000), UNICODE_CO);
    assert_int_equal(unicode_category(0x9FFF), UNICODE_LO);
    assert_int_equal(unicode_category(0x10FFFF), UNICODE_CN);
    assert_int_equal(unicode_category(0x110000), unicode_category(0));
    assert_true(unicode_is_space(0x3000) && unicode_is_space(0x85) && !unicode_is_space(0x180E));
    assert_true(unicode_is_punctuation('$') && unicode_is_punctuation(0x3002));
    assert_false(unicode_is_punctuation('a') || unicode_is_punctuation(0x20AC));
    assert_true(unicode_is_number(0xBD) && unicode_is_number(0x2160) && !unicode_is_number('x'));
    assert_true(unicode_is_word(0x301) && unicode_is_word('_') && unicode_is_word(0x200D));
    assert_false(unicode_is_word('-'));
    assert_int_equal(unicode_script(0x41), unicode_script(0xE9));
    assert_int_not_equal(unicode_script(0x41), unicode_script(0x3B1));
    uint32_t lower[2];
    assert_int_equal(unicode_lower(0x130, lower), 2);
    assert_int_equal(lower[0], 'i');
    assert_int_equal(unicode_lower(0x3A3, lower), 1); /* without context: never a final sigma */
    assert_int_equal(lower[0], 0x3C3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(normal_forms),
        cmocka_unit_test(graphemes),
        cmocka_unit_test(properties),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
