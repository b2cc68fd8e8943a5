#!/bin/sh
# Matrices large enough to be dealt out among threads that wait for each other, as threads do that have no CPU of their own:
# every log-probability of three texts, two of which end early, is what one thread computes.
. tests/cli/lib.sh

make_model=${BUILD:-build/release}/tests/bench/make_model
if [ ! -x "$make_model" ]; then
    skip "large matrices" "$make_model has not been built"
    finish
fi

for n in 10 20 60; do
    echo "{\"prompt\":[1,2,3],\"max_tokens\":$n,\"logprobs\":1,\"ignore_eos\":true}"
done >"$tmp/lines"

for family in llama gpt2 gpt_oss; do
    dims="--hidden 768 --heads 12 --ffn 6144"
    [ $family = gpt_oss ] && dims="--hidden 512 --heads 8 --ffn 2048" # of each of 32 experts
    # shellcheck disable=SC2086  # several words
    "$make_model" --family $family $dims --layers 2 --vocab 6000 -o "$tmp/$family" >"$tmp/made"
    for weights in stored q8 q4; do
        for threads in 1 2 3; do
            input=$tmp/lines run batch -m "$tmp/$family" -w $weights -t $threads --seed 5
            if [ "$code" -ne 0 ]; then
                fail "$family in $weights on $threads threads" "exit $code: $(peek "$tmp/err")"
            elif [ $threads -eq 1 ]; then
                mv "$tmp/out" "$tmp/alone"
            elif cmp -s "$tmp/alone" "$tmp/out"; then
                ok "$family in $weights on $threads threads"
            else
                fail "$family in $weights on $threads threads" "other numbers than on one"
            fi
        done
    done
done

finish
