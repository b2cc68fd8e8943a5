#!/bin/sh
# Runs every test and counts: the cmocka programs test by test, the fuzz targets over their corpora, then the scripts of
# tests/kernels and tests/cli. Failures are shown in full; the last line is "N passed, N failed, N skipped"; exit 1 where any failed.
# Run from the root of the tree by `make test`, with BUILD (a tree under build/) and TGEN (the program) in the environment.
#
# A script prints a line "ok NAME", "FAIL NAME: why" or "SKIP NAME: why" for each of its tests, and exits
# with something else than 0 where one failed; lib.sh is what those of tests/cli share.
set -u
BUILD=${BUILD:-build/release}
TGEN=${TGEN:-tgen}
case $TGEN in /*) ;; *) TGEN=$PWD/${TGEN#./} ;; esac
export BUILD TGEN

output=$(mktemp) || exit 1
trap 'rm -f "$output"' EXIT
trap 'exit 130' INT TERM
passed=0
failed=0
skipped=0

# count NAME STATUS OK FAILED SKIPPED: adds up, and shows the output of what failed, without the tests that passed.
# A program that ends badly and names no test that failed, or that names no test at all, is itself one that failed.
count() {
    n_failed=$4
    if [ "$n_failed" -eq 0 ] && { [ "$2" -ne 0 ] || [ $(($3 + $5)) -eq 0 ]; }; then
        n_failed=1
    fi
    passed=$((passed + $3))
    failed=$((failed + n_failed))
    skipped=$((skipped + $5))
    printf '%-40s %4d ok' "$1" "$3"
    [ "$n_failed" -eq 0 ] || printf ', %d FAILED (exit status %d)' "$n_failed" "$2"
    [ "$5" -eq 0 ] || printf ', %d skipped' "$5"
    printf '\n'
    if [ "$n_failed" -ne 0 ]; then
        sed '/^ok /d; s/^/    /' "$output"
    else
        sed -n 's/^\(# \)\{0,1\}\(SKIP .*\)/    \2/p' "$output"
    fi
}

matches() { grep -cE "$1" "$output"; }

# cmocka speaks TAP: "ok 1 - name", "not ok 2 - name", "not ok 3 # SKIP name", and "1..N" first, from which what a crash
# left out is known.
for source in tests/unit/test_*.c tests/kernels/*.c tests/golden/*.c; do
    [ -e "$source" ] || continue
    name=${source%.c}
    CMOCKA_MESSAGE_OUTPUT=TAP "$BUILD/$name" >"$output" 2>&1
    status=$?
    n_ok=$(matches '^ok [0-9]+ - ')
    n_skipped=$(matches '^(not )?ok [0-9]+ # SKIP')
    planned=$(sed -n 's/^1\.\.\([0-9]*\)$/\1/p' "$output" | head -n 1)
    count "$name" $status "$n_ok" $((${planned:-0} > n_ok + n_skipped ? planned - n_ok - n_skipped : 0)) "$n_skipped"
done

for source in tests/fuzz/fuzz_*.c; do
    [ -e "$source" ] || continue
    name=${source%.c}
    "$BUILD/$name" "tests/fuzz/corpus/${name#tests/fuzz/fuzz_}"/* >"$output" 2>&1
    status=$?
    count "$name" $status $((status == 0)) $((status != 0)) 0
done

for script in tests/kernels/*.sh tests/cli/*.sh; do
    [ -e "$script" ] && [ "$script" != tests/cli/lib.sh ] || continue
    sh "$script" >"$output" 2>&1
    status=$?
    count "${script%.sh}" $status "$(matches '^ok ')" "$(matches '^FAIL ')" "$(matches '^SKIP ')"
done

printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
[ "$failed" -eq 0 ]
