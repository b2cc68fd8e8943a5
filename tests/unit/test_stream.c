/*
 * The stream to stdout: whole characters, stop strings, errors. A pipe stands for stdout, so that
 * what has left can be looked at after every piece that went in.
 */
#include "tests/check.h"

#include "cli/buffer.c"
#include "cli/stream.c"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>

/* ---- UTF-8 ----------------------------------------------------------------------------------- */

/* UTF-8 by the arithmetic of RFC 3629, written without a look at core/utf8.c. */
static size_t spell(uint32_t c, char out[4])
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    const size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3F));
    out[0] = (char)((0xF00 >> n & 0xFF) | c);
    return n;
}

static void every_character_is_whole(void **state)
{
    (void)state;
    for (uint32_t c = 0; c <= 0x10FFFF; c++) {
        char bytes[4];
        const size_t n = spell(c, bytes);
        size_t size;
        if (c >= 0xD800 && c <= 0xDFFF) { /* surrogates are no characters */
            assert_int_equal(utf8_next(bytes, n, &size), UTF8_INVALID);
            continue;
        }
        assert_int_equal(utf8_next(bytes, n, &size), UTF8_WHOLE);
        assert_int_equal(size, n);
        assert_int_equal(utf8_whole(bytes, n), n);
        for (size_t part = 1; part < n; part++) {
            assert_int_equal(utf8_next(bytes, part, &size), UTF8_CUT);
            assert_int_equal(size, part);
            assert_int_equal(utf8_whole(bytes, part), 0);
        }
    }
}

/* Sizes: "U+FFFD Substitution of Maximal Subparts" in chapter 3 of the Unicode Standard. */
static void what_is_no_utf8(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
    } cases[] = {
        {"\x80", 1},         {"\xBF", 1},     {"\xC0\xAF", 1},     {"\xC1\xBF", 1},
        {"\xE0\x80\x80", 1}, {"\xED\xA0", 1}, {"\xF0\x80\x80", 1}, {"\xF4\x90\x80", 1},
        {"\xF5\x80", 1},     {"\xFF", 1},     {"\xE1\x80!", 2},    {"\xF1\x80\x80!", 3},
        {"\xC3(", 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        size_t size;
        const size_t n = strlen(cases[i].bytes);
        assert_int_equal(utf8_next(cases[i].bytes, n, &size), UTF8_INVALID);
        assert_int_equal(size, cases[i].size);
        assert_int_equal(utf8_whole(cases[i].bytes, n), n);
    }
}

static void controls(void **state)
{
    (void)state;
    for (uint32_t c = 0; c < 0x300; c++) {
        char bytes[5] = "", expected[4];
        assert_int_equal(utf8_put(bytes, c), spell(c, expected));
        assert_memory_equal(bytes, expected, spell(c, expected));
        assert_int_equal(utf8_is_control(bytes), c < 0x20 || (c >= 0x7f && c < 0xa0));
    }
}

/* ---- the stream ------------------------------------------------------------------------------ */

struct bench {
    struct stream stream;
    int read_end;
    char out[4096]; /* what has left so far */
    size_t n;
};

static void open_bench(struct bench *b, const char *const *stops, size_t n_stops)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    *b = (struct bench){.stream = {.fd = ends[1], .stops = stops, .n_stops = n_stops},
                        .read_end = ends[0]};
}

static void close_bench(struct bench *b)
{
    close(b->stream.fd);
    close(b->read_end);
    stream_free(&b->stream);
}

/* Takes what has left up to now. */
static void look(struct bench *b)
{
    const ssize_t got = read(b->read_end, b->out + b->n, sizeof b->out - b->n);
    b->n += got > 0 ? (size_t)got : 0;
}

static void put(struct bench *b, const char *data, size_t n)
{
    struct err e;
    if (!stream_put(&b->stream, data, n, &e))
        fail_msg("%s", e.text);
    look(b);
}

static void end(struct bench *b, bool keep_cut)
{
    struct err e;
    if (!stream_end(&b->stream, keep_cut, &e))
        fail_msg("%s", e.text);
    look(b);
}

static void assert_out(const struct bench *b, const char *expected)
{
    if (b->n != strlen(expected) || memcmp(b->out, expected, b->n) != 0)
        fail_msg("\"%.*s\" has left, not \"%s\"", (int)b->n, b->out, expected);
}

static const char mixed[] = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80z\xED\x9F\xBF\xEF\xBB\xBF!";

static void no_character_is_split(void **state)
{
    (void)state;
    const size_t n = sizeof mixed - 1;
    for (size_t piece = 1; piece <= n; piece++) {
        struct bench b;
        open_bench(&b, NULL, 0);
        for (size_t at = 0; at < n; at += piece) {
            const size_t size = n - at < piece ? n - at : piece;
            put(&b, mixed + at, size);
            /* All that is whole has left, and nothing else. */
            assert_int_equal(b.n, utf8_whole(mixed, at + size));
        }
        end(&b, false);
        assert_out(&b, mixed);
        close_bench(&b);
    }
}

static void what_is_no_utf8_passes(void **state)
{
    (void)state;
    struct bench b;
    open_bench(&b, NULL, 0);
    put(&b, "\xFF\xC3", 2);
    assert_out(&b, "\xFF");
    put(&b, "(\x80", 2);
    assert_out(&b, "\xFF\xC3(\x80");
    put(&b, "\0.", 2);
    assert_int_equal(b.n, 6);
    end(&b, false);
    assert_int_equal(b.n, 6);
    close_bench(&b);
}

static void a_cut_end_is_dropped_or_kept(void **state)
{
    (void)state;
    struct bench b;
    for (int keep = 0; keep <= 1; keep++) {
        open_bench(&b, NULL, 0);
        put(&b, "x\xF0\x9F\x98", 4);
        assert_out(&b, "x");
        end(&b, keep);
        assert_out(&b, keep ? "x\xF0\x9F\x98" : "x");
        close_bench(&b);
    }
}

static void stop_strings(void **state)
{
    (void)state;
    static const struct {
        const char *stops[2], *text, *expected;
        bool stopped;
    } cases[] = {
        {{"\n"}, "one\ntwo", "one", true},
        {{"END"}, "the E, the EN, the END.", "the E, the EN, the ", true},
        {{"END"}, "the EN", "the EN", false},
        {{"aab"}, "aaaab", "aa", true},
        {{"abcX", "b"}, "abcX", "a", true}, /* "b" is complete first */
        {{"abcd", "c"}, "abcd", "ab", true},
        {{"ab", "abc"}, "xabc", "x", true},
        {{"stop"}, "stop", "", true},
        {{"\xE2\x82\xAC"}, "5 \xE2\x82\xAC now", "5 ", true},
        {{"\xE2\x82\xAC"}, "5 \xE2\x82\xAD now", "5 \xE2\x82\xAD now", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const size_t n = strlen(cases[i].text), n_stops = cases[i].stops[1] ? 2 : 1;
        for (size_t piece = 1; piece <= n; piece++) {
            struct bench b;
            open_bench(&b, cases[i].stops, n_stops);
            for (size_t at = 0; at < n; at += piece) {
                put(&b, cases[i].text + at, n - at < piece ? n - at : piece);
                assert_true(b.n <= strlen(cases[i].expected));
            }
            end(&b, false);
            assert_out(&b, cases[i].expected);
            assert_int_equal(b.stream.stopped, cases[i].stopped);
            close_bench(&b);
        }
    }
}

static void only_what_may_stop_waits(void **state)
{
    (void)state;
    static const char *const stops[] = {"</s>"};
    struct bench b;
    open_bench(&b, stops, 1);
    put(&b, "a <", 3);
    assert_out(&b, "a ");
    put(&b, "b", 1);
    assert_out(&b, "a <b");
    put(&b, "</s", 3);
    assert_out(&b, "a <b");
    put(&b, "</s", 3);
    assert_out(&b, "a <b</s");
    put(&b, ">more", 5);
    assert_true(b.stream.stopped);
    put(&b, "more", 4);
    end(&b, true);
    assert_out(&b, "a <b</s");
    close_bench(&b);
}

static void an_echo_does_not_stop(void **state)
{
    (void)state;
    static const char *const stops[] = {"."};
    struct bench b;
    struct err e;
    open_bench(&b, stops, 1);
    assert_true(stream_echo(&b.stream, "One. Two\xC3", 9, &e));
    look(&b);
    assert_out(&b, "One. Two");
    put(&b, "\xA9 x.y", 5);
    end(&b, false);
    assert_out(&b, "One. Two\xC3\xA9 x");
    close_bench(&b);
}

static void collecting_writes_nothing(void **state)
{
    (void)state;
    struct stream s = {.fd = STREAM_COLLECT};
    struct err e;
    assert_true(stream_put(&s, "ab\xC3", 3, &e) && stream_put(&s, "\xA9", 1, &e));
    assert_true(stream_end(&s, false, &e));
    assert_string_equal(s.collected.data, "ab\xC3\xA9");
    stream_free(&s);
}

static void errors_are_noticed(void **state)
{
    (void)state;
    struct err e;
    struct stream full = {.fd = open("/dev/full", O_WRONLY)};
    assert_false(stream_put(&full, "x", 1, &e));
    check_sentence(&e, ERR_RUNTIME, "cannot write to standard output: No space left on device");
    close(full.fd);
    stream_free(&full);

    struct stream closed = {.fd = 9999};
    assert_false(stream_put(&closed, "x", 1, &e));
    check_sentence(&e, ERR_RUNTIME, "Bad file descriptor");
    stream_free(&closed);
}

/* A reader that sleeps makes a non-blocking pipe refuse; nothing may be lost or doubled. */
static void a_full_pipe_is_waited_for(void **state)
{
    (void)state;
    enum { SIZE = 1 << 20 };
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
    char *data = malloc(SIZE);
    assert_non_null(data);
    for (size_t i = 0; i < SIZE; i++)
        data[i] = (char)(i * 7 % 128);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct err e;
        close(ends[0]);
        _exit(stream_write(ends[1], "the pipe", data, SIZE, &e) ? 0 : 1);
    }
    close(ends[1]);
    usleep(20000);
    char chunk[4096];
    size_t n = 0;
    for (ssize_t got; (got = read(ends[0], chunk, sizeof chunk)) > 0; n += (size_t)got)
        assert_memory_equal(chunk, data + n, (size_t)got);
    assert_int_equal(n, SIZE);
    close(ends[0]);
    free(data);
}

/* The same the other way: a writer that sleeps makes a non-blocking pipe empty, which is no end. */
static void an_empty_pipe_is_waited_for(void **state)
{
    (void)state;
    struct err e;
    struct buffer text = {0};
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        usleep(20000);
        const bool half = write(ends[1], "Once ", 5) == 5;
        usleep(20000);
        _exit(half && write(ends[1], "upon", 4) == 4 ? 0 : 1);
    }
    close(ends[1]);
    if (!buffer_read(&text, ends[0], "the pipe", &e))
        fail_msg("%s", e.text);
    assert_string_equal(text.data, "Once upon");
    buffer_free(&text);
    close(ends[0]);
}

/* The first signal ends no write that somebody takes, nor do others that come at once; a later one
 * is left to the system. */
static void after_an_interrupt(void **state)
{
    (void)state;
    struct err e = {.code = ERR_NONE};
    char block[3 * PIPE_BUF] = {0};
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    signal(SIGINT, SIG_DFL); /* shells let what runs in the background ignore it */
    stream_watch_interrupt();
    for (int i = 0; i < 3; i++)
        raise(SIGINT);
    assert_true(stream_interrupted());
    for (int i = 0; i < 4; i++)
        assert_true(stream_write(fds[1], "pipe", block, sizeof block, &e));
    while (stream_write(fds[1], "pipe", block, sizeof block, &e)) {
    }
    assert_int_equal(e.code, ERR_INTERRUPTED);
    assert_string_equal(e.text, "");
    int status;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        usleep((TOGETHER_MS + 100) * 1000);
        raise(SIGINT);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
    interrupted = 0;
    close(fds[0]);
    close(fds[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_character_is_whole),
        cmocka_unit_test(what_is_no_utf8),
        cmocka_unit_test(controls),
        cmocka_unit_test(no_character_is_split),
        cmocka_unit_test(what_is_no_utf8_passes),
        cmocka_unit_test(a_cut_end_is_dropped_or_kept),
        cmocka_unit_test(stop_strings),
        cmocka_unit_test(only_what_may_stop_waits),
        cmocka_unit_test(an_echo_does_not_stop),
        cmocka_unit_test(collecting_writes_nothing),
        cmocka_unit_test(errors_are_noticed),
        cmocka_unit_test(a_full_pipe_is_waited_for),
        cmocka_unit_test(an_empty_pipe_is_waited_for),
        cmocka_unit_test(after_an_interrupt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
