#!/bin/sh
# The kernels' checker on other machines: built with a cross compiler, run by qemu's emulation of single programs. Each
# processor must have the levels named and, of those that its architecture knows, no other.
#
#     sh tests/kernels/cross.sh      needs Debian's gcc-aarch64-linux-gnu, gcc-riscv64-linux-gnu and qemu-user
set -u
BUILD=${BUILD:-build/release}
unset MAKEFLAGS MAKELEVEL MFLAGS
output=$(mktemp) || exit 1
trap 'rm -f "$output"' EXIT
trap 'exit 130' INT TERM
n_failed=0

failed() {
    printf 'FAIL %s: %s\n' "$1" "$2"
    grep -v '^ok ' "$output" | tail -n 5
    n_failed=$((n_failed + 1))
}

# machine TRIPLE: builds its checker, with fewer cases since emulation is slow.
machine() {
    triple=$1
    qemu=qemu-${triple%%-*}
    root=$BUILD/cross/$triple
    if [ "$BUILD" != build/release ]; then
        why="only with the release build"
    elif ! command -v "$triple-gcc" >/dev/null; then
        why="there is no $triple-gcc"
    elif ! command -v "$qemu" >/dev/null; then
        why="there is no $qemu"
    elif make -s CROSS="$triple-" B="$root" CPPFLAGS=-DCASES=60 check_kernels >"$output" 2>&1; then
        why=
    else
        failed "$triple" "does not build"
        why="it does not build"
    fi
}

# runs CPU LEVELS: on qemu's processor of that name.
runs() {
    name="$qemu -cpu $1"
    if [ -n "$why" ]; then
        echo "SKIP $name: $why"
        return
    fi
    "$qemu" -cpu "$1" -L "/usr/$triple" "$root/tests/kernels/check_kernels" >"$output" 2>&1
    status=$?
    levels=$(sed -n 's/^ok [0-9]* - \([a-z0-9]*\) linear_rows f32$/\1/p' "$output" | paste -sd ' ' -)
    if [ $status -ne 0 ]; then
        failed "$name" "exit status $status"
    elif [ "$levels" != "$2" ]; then
        failed "$name" "the levels are $levels"
    else
        echo "ok $name: $2"
    fi
}

machine aarch64-linux-gnu
runs cortex-a72 "scalar neon"
runs neoverse-n1 "scalar neon neondot"
runs max "scalar neon neondot neoni8mm neonbf16"
machine riscv64-linux-gnu
runs rv64 "scalar"
[ $n_failed -eq 0 ]
