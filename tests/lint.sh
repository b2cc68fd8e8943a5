#!/bin/sh
# The rules of the house that a compiler does not check: who may include whom, that headers compile alone, that no family is
# asked for outside its folder; then clang-format and clang-tidy. (tests/unit/test_family.c holds the rest.)
# Run from the root of the tree: make lint. Needs clang-format and clang-tidy.
set -u
n_bad=0

bad() {
    printf '%s\n' "$*" >&2
    n_bad=$((n_bad + 1))
}

sources() { git ls-files --cached --others --exclude-standard -- "$@" | grep -E '\.(c|h|inc)$'; }

# ---- includes: folder by folder, what a quoted include may name ----

allowed_includes() {
    case $1 in
    cli/*) echo '^(cli/.*|models/(model|session|generator|work|calibrate|export)\.h|tokenizer/tokenizer\.h|core/(base|clock|err|utf8|json|sample|checkpoint|compute|file|file_write|machine|memory|thread)\.h)$' ;;
    tokenizer/*) echo '^(tokenizer/.*|core/(base|err|utf8|arena|json)\.h)$' ;;
    models/families/*) echo '^(models/(family|config|spec|weights)\.h|core/json\.h)$' ;;
    models/*) echo '^(models/.*|core/.*)$' ;;
    core/kernels/*) echo '^core/kernels/.*$' ;;
    core/*) echo '^core/.*$' ;;
    *) echo '.*' ;;
    esac
}

for file in $(sources cli tokenizer models core); do
    rule=$(allowed_includes "$file")
    for name in $(sed -n 's/^#include "\([^"]*\)".*/\1/p' "$file"); do
        printf '%s\n' "$name" | grep -qE "$rule" || bad "$file: may not include \"$name\""
    done
done
for file in $(grep -lE '#include <(cjson/)?cJSON\.h>' $(sources cli tokenizer models core)); do
    [ "$file" = core/json.c ] || bad "$file: only core/json.c may use cJSON"
done
for file in $(grep -l '#include <pcre2\.h>' $(sources cli tokenizer models core)); do
    case $file in tokenizer/*) ;; *) bad "$file: only the tokenizer may use pcre2" ;; esac
done

# Own header, then the project's, then the system's; kernels are put together as their .inc files need it.
for file in $(sources cli tokenizer models core tests | grep '\.c$' | grep -v /kernels/); do
    awk '/^#include </ { seen = 1 } /^#include ".*\.h"/ && seen { n = 1 } END { exit n }' "$file" ||
        bad "$file: an include of the project stands behind the system's"
done

# ---- headers compile alone ----

for file in $(sources cli tokenizer models core | grep '\.h$'); do
    case $file in
    *_neon*) cc=aarch64-linux-gnu-gcc && command -v $cc >/dev/null || continue ;;
    *_avx2*) cc="cc -mavx2 -mfma -mf16c" ;;
    *_avx512*) cc="cc -mavx512f" ;;
    *) cc=cc ;;
    esac
    $cc -std=c11 -D_GNU_SOURCE -I. -Wall -Wextra -fsyntax-only -x c "$file" || bad "$file: does not compile alone"
done

# ---- families are data ----

for file in $(sources cli models core | grep -vE '^models/famil(ies/|y\.c)'); do
    grep -nE '(if|switch) *\(.*(model_type|family *[!=]=)' "$file" | grep -vE 'family_find|json_type|!m->family' |
        grep -q . && bad "$file: asks for a family by name"
done
# ---- format, and what a second compiler sees ----

sources '*.c' '*.h' '*.inc' | xargs clang-format --dry-run -Werror || bad "clang-format: run make format"
awk 'length > 100 { printf "%s:%d: longer than 100 columns\n", FILENAME, FNR; n = 1 } END { exit n }' \
    $(sources '*.c' '*.h' '*.inc') || bad "lines are too long"

# Each rung of the kernel ladder is checked with its own flags; those of ARM where its libc's headers are.
tidy_flags="-std=c11 -D_GNU_SOURCE -I. -DTGEN_VERSION=\"\" $(pkg-config --cflags libcjson libpcre2-8)"
for file in $(sources cli tokenizer models core | grep '\.c$'); do
    case $file in
    *_neon*.c)
        [ -d /usr/aarch64-linux-gnu/include ] || continue
        flags='--target=aarch64-linux-gnu -I/usr/aarch64-linux-gnu/include'
        case $file in
        *dot.c) flags="$flags -march=armv8.2-a+dotprod" ;;
        *i8mm.c) flags="$flags -march=armv8.2-a+dotprod+i8mm" ;;
        *bf16.c) flags="$flags -march=armv8.2-a+dotprod+i8mm+bf16" ;;
        esac
        ;;
    *_avx2.c | *_avxvnni.c) flags='-mavx2 -mfma -mf16c -mavxvnni' ;;
    *_avx512*.c | *_amx*.c)
        flags='-mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 -mfma -mf16c'
        case $file in *_amx*.c) flags="$flags -mavx512bf16 -mamx-tile -mamx-bf16 -mamx-int8" ;; esac
        case $file in *vnni.c | *bf16.c | *_amx*.c) flags="$flags -mavx512vnni" ;; esac
        case $file in *bf16.c) flags="$flags -mavx512bf16" ;; esac
        ;;
    *) flags= ;;
    esac
    clang-tidy --quiet "$file" -- $tidy_flags $flags 2>/dev/null || bad "$file: clang-tidy"
done

[ $n_bad -eq 0 ] && echo "lint: clean"
[ $n_bad -eq 0 ]
