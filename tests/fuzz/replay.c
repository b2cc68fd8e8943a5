/*
 * Feeds the files named on the command line to a fuzz target, one after another, so that whatever a
 * fuzzer once found is tried again by every build. Stands in for libFuzzer's own main.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The file in memory of exactly its size, so that a sanitizer sees a step beyond its end. */
static uint8_t *read_file(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END) != 0)
        return NULL;
    long end = ftell(f);
    rewind(f);
    uint8_t *data = malloc(end > 0 ? (size_t)end : 1);
    *size = data ? fread(data, 1, (size_t)end, f) : 0;
    fclose(f);
    return data;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        size_t size;
        uint8_t *data = read_file(argv[i], &size);
        if (!data) {
            perror(argv[i]);
            return EXIT_FAILURE;
        }
        printf("%s\n", argv[i]); /* the last line before a crash names its input */
        fflush(stdout);
        LLVMFuzzerTestOneInput(data, size);
        free(data);
    }
    return EXIT_SUCCESS;
}
