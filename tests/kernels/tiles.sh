#!/bin/sh
# The kernels' checker with AMX in C, with fewer cases, where a machine has what else the rung needs.
#
#     sh tests/kernels/tiles.sh
set -u
BUILD=${BUILD:-build/release}
output=$(mktemp) || exit 1
trap 'rm -f "$output"' EXIT
trap 'exit 130' INT TERM
name="amx in C"
checker=$BUILD/tests/kernels/check_kernels_tiles

failed() {
    printf 'FAIL %s: %s\n' "$name" "$1"
    grep -v '^ok ' "$output" | tail -n 5
    exit 1
}

skip() {
    echo "SKIP $name: $1"
    exit 0
}

[ "$BUILD" = build/release ] || skip "only with the release build"
grep -q avx512_bf16 /proc/cpuinfo && grep -q avx512_*vbmi /proc/cpuinfo || skip "no AVX-512 BF16 here"
make -s -j2 "$checker" >"$output" 2>&1 || failed "does not build"
CMOCKA_MESSAGE_OUTPUT=TAP "$checker" >"$output" 2>&1 || failed "exit status $?"
grep -q '^ok [0-9]* - amx attend_bf16 f16$' "$output" || failed "the level was not checked"
echo "ok $name"
