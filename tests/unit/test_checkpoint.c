/*
 * Directories: what is found in them, and what is said of those that are not as they should be.
 * Each test gets an empty directory and fills it.
 */
#include "tests/check.h"

#include "core/checkpoint.h"
#include "core/file.h"
#include "core/file_write.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- a directory to fill --------------------------------------------------------------------- */

static char dir[] = "/tmp/tgen-checkpoint-XXXXXX";

static int make_dir(void **state)
{
    (void)state;
    strcpy(dir + sizeof dir - 7, "XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    (void)state;
    DIR *d = opendir(dir);
    for (struct dirent *entry; d && (entry = readdir(d));) {
        unlinkat(dirfd(d), entry->d_name, 0);
        unlinkat(dirfd(d), entry->d_name, AT_REMOVEDIR);
    }
    closedir(d);
    return rmdir(dir);
}

static const char *path_of(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static void write_bytes(const char *name, const void *data, size_t n)
{
    FILE *f = fopen(path_of(name), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static void write_text(const char *name, const char *text)
{
    write_bytes(name, text, strlen(text));
}

/* A safetensors file of one U8 tensor [2] for every letter of `names`. */
static void write_tensors(const char *name, const char *names)
{
    char file[1024] = {0};
    char *header = file + 8;
    size_t n = strlen(names);
    size_t length = (size_t)sprintf(header, "{");
    for (size_t i = 0; i < n; i++) {
        length += (size_t)sprintf(header + length,
                                  "%s\"%c\":{\"dtype\":\"U8\",\"shape\":[2],"
                                  "\"data_offsets\":[%zu,%zu]}",
                                  i ? "," : "", names[i], 2 * i, 2 * i + 2);
    }
    length += (size_t)sprintf(header + length, "}");
    for (int i = 0; i < 8; i++)
        file[i] = (char)(length >> (8 * i));
    for (size_t i = 0; i < n; i++)
        memset(header + length + 2 * i, names[i], 2);
    write_bytes(name, file, 8 + length + 2 * n);
}

static struct checkpoint *open_dir(void)
{
    struct err e;
    struct checkpoint *c = checkpoint_open(dir, &e);
    if (!c)
        fail_msg("%s", e.text);
    return c;
}

static void load_must_fail(const char *part)
{
    struct checkpoint *c = open_dir();
    struct err e = {0};
    assert_false(checkpoint_load_tensors(c, &e));
    check_sentence(&e, ERR_LOAD, part);
    assert_null(strstr(e.text, dir)); /* who calls puts it in front */
    assert_null(checkpoint_tensor(c, "a"));
    assert_int_equal(checkpoint_n_tensors(c), 0);
    checkpoint_close(c);
}

static struct checkpoint *load(void)
{
    struct checkpoint *c = open_dir();
    struct err e;
    if (!checkpoint_load_tensors(c, &e))
        fail_msg("%s", e.text);
    return c;
}

/* ---- the directory and its small files ------------------------------------------------------- */

static void directories_that_are_none(void **state)
{
    (void)state;
    struct err e;
    write_text("file", "x");
    assert_null(checkpoint_open(path_of("file"), &e));
    check_sentence(&e, ERR_LOAD, "file: not a directory");
    assert_null(checkpoint_open(path_of("nowhere"), &e));
    check_sentence(&e, ERR_LOAD, "nowhere: no such directory");
    assert_null(checkpoint_open("", &e));
    checkpoint_close(NULL);
}

static void small_files(void **state)
{
    (void)state;
    write_text("config.json", "{}");
    write_text("empty", "");
    struct checkpoint *c = open_dir();
    assert_string_equal(checkpoint_dir(c), dir);
    struct err e;
    struct bytes first, again, other;
    assert_true(checkpoint_file(c, "config.json", &first, &e));
    assert_int_equal(first.size, 2);
    assert_memory_equal(first.data, "{}", 2);
    assert_true(checkpoint_file(c, "config.json", &again, &e));
    assert_ptr_equal(first.data, again.data);
    assert_true(checkpoint_file(c, "empty", &other, &e));
    assert_non_null(other.data);
    assert_int_equal(other.size, 0);
    assert_true(checkpoint_file(c, "absent", &other, &e));
    assert_null(other.data);
    checkpoint_close(c);
}

static void files_by_their_ending(void **state)
{
    (void)state;
    write_text("b.ending", "second");
    write_text("a.ending", "first");
    write_text("0.ending.not", "");
    write_text(".ending", "no name");
    struct checkpoint *c = open_dir();
    struct err e;
    struct bytes bytes;
    assert_true(checkpoint_file_ending(c, ".ending", &bytes, &e));
    assert_int_equal(bytes.size, 5);
    assert_memory_equal(bytes.data, "first", 5);
    assert_true(checkpoint_file_ending(c, ".other", &bytes, &e));
    assert_null(bytes.data);
    checkpoint_close(c);
}

static void files_that_cannot_be_read(void **state)
{
    (void)state;
    assert_int_equal(mkdir(path_of("folder"), 0777), 0);
    assert_int_equal(symlink("nothing", path_of("dangling")), 0);
    assert_int_equal(symlink("loop", path_of("loop")), 0);
    assert_int_equal(mkfifo(path_of("pipe"), 0600), 0);
    struct checkpoint *c = open_dir();
    struct err e;
    struct bytes bytes;
    assert_false(checkpoint_file(c, "folder", &bytes, &e));
    check_sentence(&e, ERR_LOAD, "folder: a directory where a file is expected");
    assert_false(checkpoint_file(c, "dangling", &bytes, &e));
    check_sentence(&e, ERR_LOAD, "dangling: a symbolic link to a file that is not there");
    assert_false(checkpoint_file(c, "loop", &bytes, &e));
    check_sentence(&e, ERR_LOAD, "loop: ");
    assert_false(checkpoint_file(c, "pipe", &bytes, &e));
    check_sentence(&e, ERR_LOAD, "pipe: not a regular file");
    checkpoint_close(c);
}

static void files_without_permission(void **state)
{
    (void)state;
    write_tensors("model.safetensors", "a");
    assert_int_equal(chmod(path_of("model.safetensors"), 0), 0);
    if (access(path_of("model.safetensors"), R_OK) == 0)
        skip(); /* root may read everything */
    load_must_fail("model.safetensors: Permission denied");
    assert_int_equal(chmod(dir, 0), 0);
    struct err e;
    struct checkpoint *c = checkpoint_open(dir, &e);
    assert_int_equal(chmod(dir, 0700), 0);
    assert_null(c);
    check_sentence(&e, ERR_LOAD, "Permission denied");
}

/* ---- one file -------------------------------------------------------------------------------- */

/* Each tensor once, and then no more. */
static void touches_tensor_by_tensor(void **state)
{
    (void)state;
    write_tensors("model.safetensors", "bca");
    struct checkpoint *c = open_dir();
    struct checkpoint_place place = {.tensor = 0};
    struct err e;
    assert_false(checkpoint_touch(c, &place)); /* nothing is loaded yet */
    assert_true(checkpoint_load_tensors(c, &e));
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(place.tensor, i);
        assert_true(checkpoint_touch(c, &place));
    }
    assert_false(checkpoint_touch(c, &place));
    checkpoint_close(c);
}

/* What is forgotten comes back when it is read: the file has not changed. */
static void forgets_in_shares(void **state)
{
    (void)state;
    write_tensors("model.safetensors", "bca");
    struct checkpoint *c = open_dir();
    struct err e;
    assert_true(checkpoint_load_tensors(c, &e));
    for (size_t i = 0; i < 3; i++)
        checkpoint_forget(c, i, 3);
    assert_memory_equal(checkpoint_tensor(c, "a")->data, "aa", 2);
    assert_memory_equal(checkpoint_tensor(c, "b")->data, "bb", 2);
    checkpoint_close(c);
}

static void a_single_file(void **state)
{
    (void)state;
    write_tensors("model.safetensors", "bca");
    struct checkpoint *c = open_dir();
    struct err e;
    assert_null(checkpoint_tensor(c, "a"));
    assert_true(checkpoint_load_tensors(c, &e));
    assert_true(checkpoint_load_tensors(c, &e));
    assert_int_equal(checkpoint_n_tensors(c), 3);
    static const char *const in_order[] = {"b", "c", "a"};
    for (size_t i = 0; i < 3; i++) {
        const struct tensor *t = checkpoint_tensor_at(c, i);
        assert_string_equal(t->name, in_order[i]);
        assert_ptr_equal(t, checkpoint_tensor(c, in_order[i]));
        const char content[2] = {in_order[i][0], in_order[i][0]};
        assert_memory_equal(t->data, content, 2);
    }
    assert_null(checkpoint_tensor(c, "d"));
    assert_null(checkpoint_tensor(c, ""));
    checkpoint_close(c);
}

static void a_single_file_wins_over_an_index(void **state)
{
    (void)state;
    write_tensors("model.safetensors", "a");
    write_text("model.safetensors.index.json", "broken");
    struct checkpoint *c = load();
    assert_int_equal(checkpoint_n_tensors(c), 1);
    checkpoint_close(c);
}

static void broken_single_files(void **state)
{
    (void)state;
    write_text("model.safetensors", "");
    load_must_fail("model.safetensors: not a safetensors file: 0 bytes");
    write_text("model.safetensors", "\x02\0\0\0\0\0\0\0{");
    load_must_fail("model.safetensors: not a safetensors file: 1 bytes");
    unlink(path_of("model.safetensors"));
    assert_int_equal(mkdir(path_of("model.safetensors"), 0777), 0);
    load_must_fail("model.safetensors: a directory where a file is expected");
}

/* Opening reads headers only, so the size of a checkpoint does not matter. */
static void a_file_beyond_4_gib(void **state)
{
    (void)state;
    if (sizeof(size_t) < 8)
        skip(); /* no room for so much */
    static const char header[] =
        "{\"big\":{\"dtype\":\"U8\",\"shape\":[6000000000],\"data_offsets\":[0,6000000000]},"
        "\"last\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[6000000000,6000000001]}}";
    char file[8 + sizeof header - 1] = {sizeof header - 1};
    memcpy(file + 8, header, sizeof header - 1);
    write_bytes("model.safetensors", file, sizeof file);
    if (truncate(path_of("model.safetensors"), (off_t)sizeof file + 6000000001) != 0)
        skip(); /* the file system knows no holes, or no files of that size */
    struct checkpoint *c = load();
    const struct tensor *last = checkpoint_tensor(c, "last");
    const struct tensor *big = checkpoint_tensor(c, "big");
    assert_true(big->n_bytes == 6000000000);
    assert_true((const char *)last->data - (const char *)big->data == 6000000000);
    assert_int_equal(*(const char *)last->data, 0);
    checkpoint_close(c);
}

/* ---- shards ---------------------------------------------------------------------------------- */

#define INDEX(map) "{\"metadata\":{\"total_size\":6},\"weight_map\":" map "}"

static void shards(void **state)
{
    (void)state;
    write_tensors("one.safetensors", "ab");
    write_tensors("two.safetensors", "c");
    write_text("model.safetensors.index.json",
               INDEX("{\"c\":\"two.safetensors\",\"b\":\"one.safetensors\","
                     "\"a\":\"one.safetensors\"}"));
    struct checkpoint *c = load();
    assert_int_equal(checkpoint_n_tensors(c), 3);
    assert_string_equal(checkpoint_tensor_at(c, 0)->name, "a");
    assert_string_equal(checkpoint_tensor_at(c, 2)->name, "c");
    assert_memory_equal(checkpoint_tensor(c, "c")->data, "cc", 2);
    assert_memory_equal(checkpoint_tensor(c, "b")->data, "bb", 2);
    checkpoint_close(c);
}

struct broken_index {
    const char *rule;
    const char *index;
    const char *part;
};

#define A "\"a\":\"one.safetensors\","
#define B "\"b\":\"one.safetensors\","
#define C "\"c\":\"two.safetensors\""

static const struct broken_index broken[] = {
    {"index is no JSON", "{", "index.json: not JSON"},
    {"index is empty", "", "index.json: not JSON"},
    {"no weight_map", "{\"metadata\":{}}", "index.json: no weight_map"},
    {"weight_map is a list", INDEX("[\"one.safetensors\"]"), "index.json: no weight_map"},
    {"weight_map is empty", INDEX("{}"), "index.json: no weight_map"},
    {"file name is a number", INDEX("{\"a\":1}"), "tensor \"a\" is no plain name"},
    {"file name leads down", INDEX("{\"a\":\"x/one.safetensors\"}"), "\"a\" is no plain name"},
    {"file name leads up", INDEX("{\"a\":\"../one.safetensors\"}"), "\"a\" is no plain name"},
    {"file name is the parent", INDEX("{\"a\":\"..\"}"), "\"a\" is no plain name"},
    {"file name is the folder", INDEX("{\"a\":\".\"}"), "\"a\" is no plain name"},
    {"file name is absolute", INDEX("{\"a\":\"/etc/passwd\"}"), "\"a\" is no plain name"},
    {"file name is empty", INDEX("{\"a\":\"\"}"), "\"a\" is no plain name"},
    {"shard is not there", INDEX("{" A B C ",\"d\":\"lost.safetensors\"}"),
     "names the file lost.safetensors, which is not there"},
    {"shard is no safetensors", INDEX("{\"d\":\"junk.safetensors\"}"),
     "junk.safetensors: not a safetensors file"},
    {"tensor twice in the index", INDEX("{" A B C ",\"a\":\"two.safetensors\"}"),
     "tensor \"a\" is there twice"},
    {"tensor not in the index", INDEX("{" A C "}"),
     "one.safetensors holds tensor \"b\", which the index does not name"},
    {"tensor not in its shard", INDEX("{" A B C ",\"d\":\"two.safetensors\"}"),
     "tensor \"d\" is missing from two.safetensors"},
    {"tensor in another shard", INDEX("{" A "\"b\":\"two.safetensors\"," C "}"),
     "tensor \"b\" lies in one.safetensors, where the index says two.safetensors"},
    {"tensor in two shards", INDEX("{" A B "\"e\":\"three.safetensors\"}"),
     "tensor \"a\" lies in three.safetensors, where the index says one.safetensors"},
};

static void refuses_index(void **state)
{
    const struct broken_index *b = *state;
    write_tensors("one.safetensors", "ab");
    write_tensors("two.safetensors", "c");
    write_tensors("three.safetensors", "ae");
    write_text("junk.safetensors", "junk");
    write_text("model.safetensors.index.json", b->index);
    load_must_fail(b->part);
}

/* ---- neither --------------------------------------------------------------------------------- */

static void no_tensor_files(void **state)
{
    (void)state;
    load_must_fail("neither model.safetensors nor model.safetensors.index.json is there");
    write_text("pytorch_model.bin.index.json", "{}");
    load_must_fail("there is pytorch_model.bin.index.json but no model.safetensors, and only "
                   "safetensors are read");
    write_text("pytorch_model.bin", "x");
    load_must_fail("there is pytorch_model.bin but no model.safetensors");
}

/* ---- the real thing -------------------------------------------------------------------------- */

static void the_bundled_model(void **state)
{
    (void)state;
    struct err e;
    struct checkpoint *c = checkpoint_open("models/tales///", &e);
    assert_non_null(c);
    assert_string_equal(checkpoint_dir(c), "models/tales");
    assert_true(checkpoint_load_tensors(c, &e));
    const struct tensor *t = checkpoint_tensor(c, "model.norm.weight");
    assert_non_null(t);
    assert_int_equal(t->n_dims, 1);
    assert_int_equal(t->n_bytes, (size_t)t->shape[0] * dtype_size(t->dtype));
    checkpoint_close(c);
}

/* What a handler of signals asks. */
static void the_file_at_an_address(void **state)
{
    (void)state;
    struct err e = {0};
    struct bytes config, other;
    write_text("config.json", "{}");
    write_text("other", "1234");
    struct checkpoint *c = checkpoint_open(dir, &e);
    assert_non_null(c);
    assert_null(checkpoint_file_at(c, "nothing is mapped yet"));
    assert_true(checkpoint_file(c, "config.json", &config, &e));
    assert_true(checkpoint_file(c, "other", &other, &e));
    assert_string_equal(checkpoint_file_at(c, config.data), "config.json");
    assert_string_equal(checkpoint_file_at(c, config.data + 1), "config.json");
    assert_string_equal(checkpoint_file_at(c, other.data + 3), "other");
    assert_null(checkpoint_file_at(c, config.data + 2));
    assert_null(checkpoint_file_at(c, other.data - 1));
    assert_null(checkpoint_file_at(c, NULL));
    checkpoint_close(c);
}

/* The system does not raise a signal then. */
static void a_copy_of_a_file_cut_short(void **state)
{
    (void)state;
    struct err e = {0};
    struct bytes source;
    struct file_write copy;
    write_text("source", "1234");
    assert_true(file_map(path_of("source"), &source, &e));
    write_text("source", "");
    assert_true(file_write_open(&copy, dir, "copy", source.size, &e));
    assert_false(file_write_at(&copy, 0, source.data, source.size, &e));
    check_sentence(&e, ERR_RUNTIME, "/copy: its source was cut short");
    file_write_abandon(&copy);
    file_unmap(source);
}

#define WITH_DIR(test) cmocka_unit_test_setup_teardown(test, make_dir, remove_dir)

int main(void)
{
    enum { N_OTHERS = 11 };
    struct CMUnitTest tests[N_OTHERS + ARRAY_LEN(broken)] = {
        WITH_DIR(directories_that_are_none),
        WITH_DIR(small_files),
        WITH_DIR(files_by_their_ending),
        WITH_DIR(files_that_cannot_be_read),
        WITH_DIR(files_without_permission),
        WITH_DIR(a_single_file),
        WITH_DIR(touches_tensor_by_tensor),
        WITH_DIR(forgets_in_shares),
        WITH_DIR(a_single_file_wins_over_an_index),
        WITH_DIR(broken_single_files),
        WITH_DIR(a_file_beyond_4_gib),
        WITH_DIR(shards),
        WITH_DIR(no_tensor_files),
        WITH_DIR(the_file_at_an_address),
        WITH_DIR(a_copy_of_a_file_cut_short),
        cmocka_unit_test(the_bundled_model),
    };
    for (size_t i = 0; i < ARRAY_LEN(broken); i++) {
        tests[N_OTHERS + i] = (struct CMUnitTest){
            .name = broken[i].rule,
            .test_func = refuses_index,
            .setup_func = make_dir,
            .teardown_func = remove_dir,
            .initial_state = (void *)(uintptr_t)&broken[i],
        };
    }
    return cmocka_run_group_tests_name("checkpoint", tests, NULL, NULL);
}
