#!/bin/sh
# How fast jobs are: tests/bench/batch.sh MODEL [LINES [OPTION...]]. Three jobs of random token ids, none of which ends early:
#
#   decode   32 lines, 128 tokens each, 64 drawn: tokens/s of drawing alone, the time of the prompts being taken off (medians
#            of five turns, for a difference of two single times says little)
#   whole    LINES (1000) lines of 20 to 400 tokens, 64 drawn: seconds, and those that the same arithmetic would need at the
#            speed of a prompt of 512 in `tgen bench`; a token that gets logits takes more of it than one that is read
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

# median NAME: of the numbers in a file, one to a line.
median() { sort -n "$tmp/$1" | awk '{ x[NR] = $1 } END { print x[int((NR + 1) / 2)] }'; }

job 32 128 128 0 64 >"$tmp/decode"
job 32 128 128 0 1 >"$tmp/prompts"
run "$@" "$tmp/prompts" # brings the model into the page cache
for turn in 1 2 3 4 5; do
    for what in prompts decode; do
        run "$@" "$tmp/$what"
        of seconds >>"$tmp/$what.seconds"
    done
done
awk -v a="$(median decode.seconds)" -v b="$(median prompts.seconds)" 'BEGIN { printf "decode  %.1f tokens/s, 32 lines at once; prompts %.1f tokens/s\n", 32 * 63 / (a - b), 32 * 128 / b }'

# Operations of the lines of a job, each of whose answers has $1 tokens, as models/work.h counts them: where logits are
# asked for, all of the last layer and the head, else keys and values of that layer. Not for models with experts, windows,
# latent attention or an embedding of another width.
"$tgen" inspect -m "$model" --json >"$tmp/shape"
shape() { sed -n "s/.*\"$1\":\"*\([a-z0-9]*\).*/\1/p" "$tmp/shape"; }
operations() {
    awk -F '[][]' -v drawn="$1" -v hidden="$(shape hidden_size)" -v layers="$(shape num_hidden_layers)" \
        -v heads="$(shape num_attention_heads)" -v kv_heads="$(shape num_key_value_heads)" -v dim="$(shape head_dim)" \
        -v inside="$(shape intermediate_size)" -v ffn="$(shape ffn)" -v vocab="$(shape vocab_size)" '
    BEGIN {
        memory = 2 * hidden * kv_heads * dim
        layer = 2 * hidden * heads * dim + memory + (ffn == "gated" ? 3 : 2) * hidden * inside
    }
    {
        read = split($2, ids, ",")
        tokens = read + drawn - 1
        sum += 2 * (tokens * ((layers - 1) * layer + memory) + drawn * (layer - memory + vocab * hidden))
        pairs = (layers - 1) * tokens * (tokens + 1) / 2 + tokens * (tokens + 1) / 2 - (read - 1) * read / 2
        sum += 4 * pairs * heads * dim
    }
    END { printf "%.0f\n", sum }'
}

job "$lines" 20 400 0 64 >"$tmp/whole"
run "$@" "$tmp/whole"
seconds=$(of seconds)
tokens=$(($(of prompt_tokens) + $(of completion_tokens)))
speed=$("$tgen" bench -m "$model" -p 512 -n 0 --csv "$@" 2>/dev/null | awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "tokens_per_second") c = i } NR == 2 { print $c }')
awk -v s="$seconds" -v t="$tokens" -v p="${speed:-0}" -v l="$lines" -v all="$(operations 64 <"$tmp/whole")" \
    -v prompt="$(job 1 512 512 0 1 | operations 1)" 'BEGIN {
    printf "whole   %d lines, %d tokens, %.1f s, %.1f tokens/s", l, t, s, t / s
    needed = p > 0 ? all / prompt * 512 / p : 0
    if (p > 0) printf "; at the speed of a prompt, %.1f tokens/s: %.1f s, ratio %.2f", p, needed, s / needed
    printf "\n" }'

job 100 10 10 400 16 >"$tmp/shared"
run "$@" "$tmp/shared"
awk -v p="$(of prompt_tokens)" -v n="$(of prompt_tokens_shared)" -v s="$(of seconds)" 'BEGIN {
    printf "shared  100 lines with 400 of 410 tokens in common: %d computed, %.1f s\n", p - n, s }'
