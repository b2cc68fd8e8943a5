#!/bin/sh
# tgen score: log-probabilities, perplexity, logits.
. tests/cli/lib.sh

once="Once upon a time"

succeeds "a table" score "$once"
has "an id, no log-probability for the first" '^ *0  *-  "<|endoftext|>"$'
has "a log-probability" '^ *539  *-0\.[0-9]*  " upon"$'
has "the perplexity" '^tokens 5, total -[0-9.]*, perplexity 1\.[0-9]*$'

succeeds "--json" score --json "$once"
has "the first is null" '^{"tokens":\[{"id":0,"text":"<|endoftext|>","logprob":null},{"id":574,"text":"Once","logprob":-0\.'
has "the totals" '],"total_logprob":-[0-9.]*,"perplexity":1\.[0-9]*,"n_tokens":5}$'
total=$(field total_logprob)
if awk -v t="$total" -v p="$(field perplexity)" 'BEGIN { d = exp(-t / 4) - p; exit !(d < 1e-6 && d > -1e-6) }'; then
    ok "perplexity is exp of the mean loss"
else
    fail "perplexity is exp of the mean loss" "$(peek "$tmp/out")"
fi

succeeds "one token" score --json --ids 0
has "one token has no perplexity" '"total_logprob":0,"perplexity":null,"n_tokens":1}'
refuses "no token" 2 "no token to begin with" score --no-bos ''

# Chunks of 256 tokens and all at once: the sum over a long text does not depend on where it is cut, since each of its
# tokens has the same past. 300 tokens take two chunks; the first 200 of them one.
awk 'BEGIN { printf "0"; for (i = 1; i < 300; i++) printf " %d", 300 + i * 7 % 900 }' >"$tmp/ids"
run score --json --ids "$(cat "$tmp/ids")"
tr '{' '\n' <"$tmp/out" | sed -n '3,202p' >"$tmp/long"
run score --json --ids "$(cut -d' ' -f1-201 "$tmp/ids")"
tr '{' '\n' <"$tmp/out" | sed -n '3,202p' | sed 's/}\].*/},/' >"$tmp/short"
if [ "$(wc -l <"$tmp/long")" -ne 200 ]; then fail "200 tokens to compare" "$(wc -l <"$tmp/long")"; fi
same "chunks" "$tmp/short" "$tmp/long"

# More threads than the feed-forward has columns, 40.
exaone=$root/tests/golden/exaone4
as="timeout 60" succeeds "few columns" score -t 1 --json -m "$exaone" --ids "1 2 3"
cp "$tmp/out" "$tmp/expected"
as="timeout 60" succeeds "more threads than columns" score -t 72 --json -m "$exaone" --ids "1 2 3"
same "more threads than columns score the same" "$tmp/expected" "$tmp/out"

# ---- --logits ------------------------------------------------------------------------------------------------------

succeeds "--logits" score --precision f32 --logits "$tmp/logits" "$once"
if [ "$(wc -c <"$tmp/logits")" -eq $((5 * 4096 * 4)) ]; then
    ok "a row for each token"
else
    fail "a row for each token" "$(wc -c <"$tmp/logits") bytes"
fi
# The first logit of row 0 that expected.json tells: id 574, 12.8111.
logit=$(od -A n -t f4 -j $((574 * 4)) -N 4 "$tmp/logits")
if awk -v x="$logit" 'BEGIN { exit !(x > 12.810 && x < 12.812) }'; then ok "the logits"; else fail "the logits" "$logit"; fi
for threads in 1 3; do
    succeeds "--logits -t $threads" score -t $threads --precision f32 --logits "$tmp/logits_t" "$once"
    same "the same logits on $threads threads" "$tmp/logits" "$tmp/logits_t"
done
refuses "--logits on a full disk" 1 "cannot write to /dev/full: No space left on device" score --logits /dev/full "$once"
mkdir "$tmp/own"
cp "$tales"/* "$tmp/own"
ln -s model.safetensors "$tmp/own/link"
printf '%s' "$once" >"$tmp/text"
own="need a file of their own"
refuses "--logits with the text" 2 "$tmp/text holds the text; the logits $own" score --logits "$tmp/text" -f "$tmp/text"
input="$tmp/text" refuses "--logits with standard input" 2 "standard input holds the text; the logits $own" score --logits "$tmp/text"
refuses "--logits with the weights" 2 "is a file of the model; the logits $own" score -m "$tmp/own" --logits "$tmp/own/link" "$once"
if [ "$(cat "$tmp/text")" = "$once" ]; then ok "the text is still there"; else fail "the text is still there" "$(peek "$tmp/text")"; fi
same "the weights are still there" "$tales/model.safetensors" "$tmp/own/model.safetensors"

# ---- the rest ------------------------------------------------------------------------------------------------------

refuses "a text longer than -c" 4 "the prompt has 5 tokens, more than the context of 4" score -c 4 "$once"
printf '%s' "$once" >"$tmp/file"
run score --json "$once"
cp "$tmp/out" "$tmp/expected"
succeeds "-f" score --json -f "$tmp/file"
same "-f scores the same" "$tmp/expected" "$tmp/out"
run score --stats "$once"
has "--stats" '^prompt  *5 tokens' "$tmp/err"
copy_model "$tmp/bare"
rm "$tmp/bare/tokenizer.json"
run score -m "$tmp/bare" --json --ids "0 574"
has "no tokenizer, no text" '{"id":574,"text":null,"logprob":-0\.'

finish
