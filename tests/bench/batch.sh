#!/bin/sh
# How fast jobs are: tests/bench/batch.sh MODEL [LINES [OPTION...]]. Three jobs of random token ids, none of which ends early:
#
#   decode   32 lines, 128 tokens each, 64 drawn: tokens/s of drawing alone, the time of the prompts being taken off
#   whole    LINES (1000) lines of 20 to 400 tokens, 64 drawn: seconds, and those that the same tokens would need at the
#            speed of a prompt of 512 in `tgen bench`
#   shared   100 lines that begin with the same 400 tokens: how many of these were computed, and seconds
#
# Nothing is asserted. On a machine that others use, compare runs that take turns, and ratios only.
set -eu
model=$1
lines=${2:-1000}
[ $# -lt 2 ] || shift
shift
tgen=${TGEN:-./tgen}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# job N LEAST MOST SHARED DRAWN: N lines with LEAST to MOST ids of their own behind SHARED ids in common.
job() {
    awk -v n="$1" -v least="$2" -v most="$3" -v shared="$4" -v drawn="$5" 'BEGIN {
        srand(1)
        for (i = 0; i < shared; i++) common = common (1 + i * 7919 % 250) ","
        for (l = 0; l < n; l++) {
            own = least + int(rand() * (most - least + 1))
            ids = 1 + int(rand() * 250)
            for (i = 1; i < own; i++) ids = ids "," (1 + int(rand() * 250))
            printf "{\"prompt\":[%s%s],\"max_tokens\":%d,\"ignore_eos\":true,\"temperature\":0}\n", common, ids, drawn
        }
    }'
}

# of NAME: a member of the statistics of the last run.
of() { sed -n "s/.*\"$1\":\([0-9.e+-]*\).*/\1/p" "$tmp/stats"; }
run() { "$tgen" batch -m "$model" --stats "$@" >"$tmp/answers" 2>"$tmp/stats" </dev/null; }

job 32 128 128 0 64 >"$tmp/decode"
job 32 128 128 0 1 >"$tmp/prompts"
run "$@" "$tmp/prompts"
prompts=$(of seconds)
run "$@" "$tmp/decode"
awk -v a="$(of seconds)" -v b="$prompts" 'BEGIN { printf "decode  %.1f tokens/s, 32 lines at once; prompts %.1f tokens/s\n", 32 * 63 / (a - b), 32 * 128 / b }'

job "$lines" 20 400 0 64 >"$tmp/whole"
run "$@" "$tmp/whole"
seconds=$(of seconds)
tokens=$(($(of prompt_tokens) + $(of completion_tokens)))
speed=$("$tgen" bench -m "$model" -p 512 -n 0 --csv "$@" 2>/dev/null | awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "tokens_per_second") c = i } NR == 2 { print $c }')
awk -v s="$seconds" -v t="$tokens" -v p="${speed:-0}" -v l="$lines" 'BEGIN {
    printf "whole   %d lines, %d tokens, %.1f s, %.1f tokens/s", l, t, s, t / s
    if (p > 0) printf "; at %.1f tokens/s of a prompt: %.1f s, ratio %.2f", p, t / p, s * p / t
    printf "\n" }'

job 100 10 10 400 16 >"$tmp/shared"
run "$@" "$tmp/shared"
awk -v p="$(of prompt_tokens)" -v n="$(of prompt_tokens_shared)" -v s="$(of seconds)" 'BEGIN {
    printf "shared  100 lines with 400 of 410 tokens in common: %d computed, %.1f s\n", p - n, s }'
