/*
 * The container, rule by rule. Every broken file is one line: a header, the size of the buffer
 * behind it, and the part of the sentence that tells this refusal from the others.
 */
#include "tests/check.h"

#include "core/safetensors.h"

#include <stdio.h>
#include <stdlib.h>

/* A file of exactly its size in memory of its own, so that a sanitizer sees a step beyond it. */
static struct bytes make_file(uint64_t length, const char *header, size_t n_header, size_t n_buffer)
{
    size_t size = 8 + n_header + n_buffer;
    unsigned char *data = malloc(size);
    assert_non_null(data);
    for (int i = 0; i < 8; i++)
        data[i] = (unsigned char)(length >> (8 * i));
    memcpy(data + 8, header, n_header);
    for (size_t i = 0; i < n_buffer; i++)
        data[8 + n_header + i] = (unsigned char)i;
    return (struct bytes){data, size};
}

static void free_file(struct bytes file)
{
    free((void *)(uintptr_t)file.data);
}

static bool parse(struct bytes file, struct arena *arena, struct tensor **tensors, size_t *n,
                  struct err *e)
{
    *tensors = NULL;
    *n = 0;
    *e = (struct err){.code = ERR_NONE};
    return safetensors_parse(file, arena, tensors, n, e);
}

/* ---- broken headers -------------------------------------------------------------------------- */

struct broken {
    const char *rule;
    const char *header;
    size_t n_buffer;
    const char *part;
};

#define T(name, dtype, shape, offsets)                                                             \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static const struct broken broken[] = {
    {"no leading brace", " {}", 0, "the header does not begin with '{'"},
    {"an array", "[]", 0, "the header does not begin with '{'"},
    {"no header", "", 0, "the header does not begin with '{'"},
    {"cut JSON", "{\"a\":", 0, "header: not JSON"},
    {"text behind the object", "{} {}", 0, "header: not JSON: more text"},
    {"the same name twice", "{" T("a", "U8", "[1]", "[0,1]") "," T("a", "U8", "[1]", "[1,2]") "}",
     2, "tensor \"a\" is there twice"},
    {"metadata twice", "{\"__metadata__\":{},\"__metadata__\":{}}", 0, "is there twice"},
    {"metadata is no object", "{\"__metadata__\":[]}", 0, "__metadata__ is an array"},
    {"metadata of a number", "{\"__metadata__\":{\"v\":1}}", 0, "\"v\" is a number"},
    {"tensor is no object", "{\"a\":7}", 0, "tensor \"a\" is a number, expected an object"},
    {"dtype twice",
     "{\"a\":{\"dtype\":\"U8\",\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1,
     "tensor \"a\" has \"dtype\" twice"},
    {"no dtype", "{\"a\":{\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "tensor \"a\" has no dtype"},
    {"dtype of a number", "{\"a\":{\"dtype\":1,\"shape\":[1],\"data_offsets\":[0,1]}}", 1,
     "tensor \"a\" has no dtype"},
    {"unknown dtype", "{" T("a", "F4", "[2]", "[0,1]") "}", 1, "dtype F4 is not supported"},
    {"dtype in lower case", "{" T("a", "f32", "[1]", "[0,4]") "}", 4, "dtype f32 is not supported"},
    {"no shape", "{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,1]}}", 1, "\"a\" has no shape"},
    {"shape of a string", "{" T("a", "U8", "\"1\"", "[0,1]") "}", 1, "\"a\" has no shape"},
    {"negative dimension", "{" T("a", "U8", "[2,-1]", "[0,2]") "}", 2, "dimension 1 of its shape"},
    {"fractional dimension", "{" T("a", "U8", "[1.5]", "[0,1]") "}", 1, "dimension 0 of its shape"},
    {"huge dimension", "{" T("a", "U8", "[1e300]", "[0,1]") "}", 1, "dimension 0 of its shape"},
    {"infinite dimension", "{" T("a", "U8", "[1e999]", "[0,1]") "}", 1, "dimension 0 of its shape"},
    {"inexact dimension", "{" T("a", "U8", "[9007199254740993]", "[0,1]") "}", 1,
     "dimension 0 of its shape is no whole number below 2^53"},
    {"dimension of a string", "{" T("a", "U8", "[\"1\"]", "[0,1]") "}", 1,
     "dimension 0 of its shape"},
    {"product overflows", "{" T("a", "U8", "[4294967296,4294967296]", "[0,0]") "}", 0,
     "the product of its shape overflows"},
    {"bytes overflow", "{" T("a", "F64", "[2147483648,2147483648]", "[0,0]") "}", 0,
     "the product of its shape overflows"},
    {"product wraps to what is there",
     "{" T("a", "F32", "[4611686018427387,4294967296,1099511627776]", "[0,0]") "}", 0,
     "the product of its shape overflows"},
    {"nine dimensions", "{" T("a", "U8", "[1,1,1,1,1,1,1,1,1]", "[0,1]") "}", 1,
     "more than 8 dimensions"},
    {"no offsets", "{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1, "are not two whole numbers"},
    {"one offset", "{" T("a", "U8", "[1]", "[0]") "}", 1, "are not two whole numbers"},
    {"three offsets", "{" T("a", "U8", "[1]", "[0,1,2]") "}", 1, "are not two whole numbers"},
    {"offsets in an object", "{" T("a", "U8", "[1]", "{\"b\":0,\"e\":1}") "}", 1,
     "are not two whole numbers"},
    {"negative offset", "{" T("a", "U8", "[2]", "[-1,1]") "}", 1, "are not two whole numbers"},
    {"fractional offset", "{" T("a", "U8", "[1]", "[0,1.5]") "}", 2, "are not two whole numbers"},
    {"offsets reversed", "{" T("a", "U8", "[1]", "[1,0]") "}", 1, "are reversed: 1 > 0"},
    {"end outside", "{" T("a", "U8", "[5]", "[0,5]") "}", 4, "ends at byte 5 of a buffer of 4"},
    {"both outside", "{" T("a", "U8", "[1]", "[90071992547409,90071992547410]") "}", 4,
     "of a buffer of 4"},
    {"range larger than the shape", "{" T("a", "F32", "[2, 3]", "[0,28]") "}", 28,
     "F32 [2, 3] takes 24 bytes, data_offsets give it 28"},
    {"range smaller than the shape", "{" T("a", "BF16", "[3]", "[0,4]") "}", 4,
     "BF16 [3] takes 6 bytes, data_offsets give it 4"},
    {"scalar of no bytes", "{" T("a", "F32", "[]", "[0,0]") "}", 0, "F32 [] takes 4 bytes"},
    {"overlap", "{" T("a", "U8", "[4]", "[0,4]") "," T("b", "U8", "[4]", "[3,7]") "}", 7,
     "tensors \"a\" and \"b\" overlap at byte 3"},
    {"the same range twice", "{" T("a", "U8", "[4]", "[0,4]") "," T("b", "U8", "[4]", "[0,4]") "}",
     4, "\"a\" and \"b\" overlap"},
    {"one inside another", "{" T("a", "U8", "[6]", "[0,6]") "," T("b", "U8", "[2]", "[2,4]") "}", 6,
     "\"a\" and \"b\" overlap"},
    {"an empty one inside another",
     "{" T("a", "U8", "[6]", "[0,6]") "," T("b", "U8", "[0]", "[2,2]") "}", 6,
     "\"a\" and \"b\" overlap"},
    {"hole in front", "{" T("a", "U8", "[1]", "[1,2]") "}", 2,
     "tensor \"a\" leaves a hole before it: bytes 0 to 1"},
    {"hole between", "{" T("a", "U8", "[1]", "[0,1]") "," T("b", "U8", "[1]", "[3,4]") "}", 4,
     "tensor \"b\" leaves a hole before it: bytes 1 to 3"},
    {"hole at the end", "{" T("a", "U8", "[1]", "[0,1]") "}", 2,
     "tensors cover 1 bytes of a buffer of 2"},
    {"bytes and no tensor", "{}", 3, "tensors cover 0 bytes of a buffer of 3"},
};

static void refuses(void **state)
{
    const struct broken *b = *state;
    struct arena arena = {0};
    struct tensor *tensors;
    size_t n;
    struct err e;
    struct bytes file = make_file(strlen(b->header), b->header, strlen(b->header), b->n_buffer);
    assert_false(parse(file, &arena, &tensors, &n, &e));
    check_sentence(&e, ERR_LOAD, b->part);
    free_file(file);
    arena_free(&arena);
}

/* ---- broken lengths -------------------------------------------------------------------------- */

static void refuses_lengths(void **state)
{
    (void)state;
    static const struct {
        uint64_t length;
        const char *part;
    } cases[] = {
        {3, "cut short: the header takes 3 bytes, and 2 are there"},
        {100000000, "cut short: the header takes 100000000 bytes, and 2 are there"},
        {100000001, "a header of 100000001 bytes, where the format allows 100000000"},
        {UINT64_MAX, "a header of 18446744073709551615 bytes"},
        {UINT64_MAX - 7, "a header of"}, /* 8 + length wraps to 0 */
    };
    struct arena arena = {0};
    struct tensor *tensors;
    size_t n;
    struct err e;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct bytes file = make_file(cases[i].length, "{}", 2, 0);
        assert_false(parse(file, &arena, &tensors, &n, &e));
        check_sentence(&e, ERR_LOAD, cases[i].part);
        free_file(file);
    }
    struct bytes file = make_file(2, "{}", 2, 0);
    for (size_t size = 0; size < 8; size++) {
        assert_false(parse((struct bytes){file.data, size}, &arena, &tensors, &n, &e));
        check_sentence(&e, ERR_LOAD, "where the header's length alone takes 8");
    }
    free_file(file);
    arena_free(&arena);
}

static void refuses_padding_of_nul(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct tensor *tensors;
    size_t n;
    struct err e;
    struct bytes file = make_file(8, "{}\0\0\0\0\0\0", 8, 0);
    assert_false(parse(file, &arena, &tensors, &n, &e));
    check_sentence(&e, ERR_LOAD, "header: not JSON that can be read: a NUL character at byte 2");
    free_file(file);
    arena_free(&arena);
}

/* ---- good files ------------------------------------------------------------------------------ */

static void reads_tensors_by_offset(void **state)
{
    (void)state;
    /* clang-format off */
    static const char header[] =
        "{\"__metadata__\":{\"format\":\"pt\"},"
        T("last", "I64", "[1]", "[14,22]") ","
        T("first", "BF16", "[2,3]", "[0,12]") ","
        T("scalar", "U16", "[]", "[12,14]") ","
        T("empty", "F32", "[4,0]", "[12,12]") "}    ";
    /* clang-format on */
    struct arena arena = {0};
    struct tensor *t;
    size_t n;
    struct err e;
    struct bytes file = make_file(sizeof header - 1, header, sizeof header - 1, 22);
    if (!parse(file, &arena, &t, &n, &e))
        fail_msg("%s", e.text);
    static const struct {
        const char *name;
        enum dtype dtype;
        int n_dims;
        int64_t count;
        size_t begin, n_bytes;
    } expected[] = {
        {"first", DTYPE_BF16, 2, 6, 0, 12},
        {"empty", DTYPE_F32, 2, 0, 12, 0},
        {"scalar", DTYPE_U16, 0, 1, 12, 2},
        {"last", DTYPE_I64, 1, 1, 14, 8},
    };
    assert_int_equal(n, ARRAY_LEN(expected));
    const unsigned char *buffer = file.data + file.size - 22;
    for (size_t i = 0; i < n; i++) {
        assert_string_equal(t[i].name, expected[i].name);
        assert_int_equal(t[i].dtype, expected[i].dtype);
        assert_int_equal(t[i].n_dims, expected[i].n_dims);
        assert_int_equal(tensor_count(&t[i]), expected[i].count);
        assert_ptr_equal(t[i].data, buffer + expected[i].begin);
        assert_int_equal(t[i].n_bytes, expected[i].n_bytes);
    }
    assert_int_equal(t[0].shape[0], 2);
    assert_int_equal(t[0].shape[1], 3);
    free_file(file);
    arena_free(&arena);
}

static void reads_a_file_without_tensors(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct tensor *tensors;
    size_t n;
    struct err e;
    struct bytes file = make_file(2, "{}", 2, 0);
    assert_true(parse(file, &arena, &tensors, &n, &e));
    assert_int_equal(n, 0);
    free_file(file);
    arena_free(&arena);
}

/* A header of a very large model must not cost quadratic time: seconds, if it did. */
static void reads_many_tensors(void **state)
{
    (void)state;
    enum { N = 50000 };
    char *header = malloc(N * 96);
    assert_non_null(header);
    char *end = header;
    for (int i = 0; i < N; i++) {
        int at = (i * 17) % N; /* offsets in no order; 17 and N have no common divisor */
        end +=
            sprintf(end, "%c\"layer.%d\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[%d,%d]}",
                    i ? ',' : '{', at, at, at + 1);
    }
    *end++ = '}';
    size_t n_header = (size_t)(end - header);
    struct bytes file = make_file(n_header, header, n_header, N);
    struct arena arena = {0};
    struct tensor *tensors;
    size_t n;
    struct err e;
    if (!parse(file, &arena, &tensors, &n, &e))
        fail_msg("%s", e.text);
    assert_int_equal(n, N);
    assert_string_equal(tensors[0].name, "layer.0");
    assert_string_equal(tensors[N - 1].name, "layer.49999");
    free(header);
    free_file(file);
    arena_free(&arena);
}

/* ---- dtypes and shapes ----------------------------------------------------------------------- */

static void every_dtype_has_a_name_and_a_size(void **state)
{
    (void)state;
    for (int i = 0; i < DTYPE_COUNT; i++) {
        enum dtype dtype;
        assert_non_null(dtype_name((enum dtype)i));
        assert_true(dtype_parse(dtype_name((enum dtype)i), &dtype));
        assert_int_equal(dtype, i);
        size_t size = dtype_size((enum dtype)i);
        assert_true(size == 1 || size == 2 || size == 4 || size == 8);
    }
    assert_int_equal(dtype_size(DTYPE_BF16), 2);
    assert_int_equal(dtype_size(DTYPE_C64), 8);
    enum dtype dtype;
    assert_false(dtype_parse("", &dtype));
    assert_false(dtype_parse("F8", &dtype));
}

static void shapes_as_text(void **state)
{
    (void)state;
    static const int64_t shape[] = {4096, 256, 0};
    char text[32];
    assert_string_equal(tensor_shape_text(shape, 3, text, sizeof text), "[4096, 256, 0]");
    assert_string_equal(tensor_shape_text(shape, 1, text, sizeof text), "[4096]");
    assert_string_equal(tensor_shape_text(shape, 0, text, sizeof text), "[]");
    assert_string_equal(tensor_shape_text(shape, 3, text, 9), "[4096, 2");
    assert_string_equal(tensor_shape_text(shape, 3, text, 15), "[4096, 256, 0]");
    assert_string_equal(tensor_shape_text(shape, 3, text, 14), "[4096, 256, 0");
}

int main(void)
{
    enum { N_OTHERS = 7 };
    struct CMUnitTest tests[N_OTHERS + ARRAY_LEN(broken)] = {
        cmocka_unit_test(refuses_lengths),
        cmocka_unit_test(refuses_padding_of_nul),
        cmocka_unit_test(reads_tensors_by_offset),
        cmocka_unit_test(reads_a_file_without_tensors),
        cmocka_unit_test(reads_many_tensors),
        cmocka_unit_test(every_dtype_has_a_name_and_a_size),
        cmocka_unit_test(shapes_as_text),
    };
    for (size_t i = 0; i < ARRAY_LEN(broken); i++) {
        tests[N_OTHERS + i] = (struct CMUnitTest){
            .name = broken[i].rule,
            .test_func = refuses,
            .initial_state = (void *)(uintptr_t)&broken[i],
        };
    }
    return cmocka_run_group_tests_name("safetensors", tests, NULL, NULL);
}
