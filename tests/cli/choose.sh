#!/bin/sh
# tgen score --jsonl and tgen choose: completions behind their prompts, against what tgen score says of the whole text.
. tests/cli/lib.sh

# behind PROMPT COMPLETION: the sum that tgen score gives the tokens behind those of the prompt.
behind() {
    n=$("$TGEN" tokenize --count "$1" </dev/null)
    "$TGEN" score --json "$1$2" </dev/null | tr '{' '\n' | sed -n 's/.*"logprob":\(-[0-9.e-]*\)}.*/\1/p' |
        tail -n +"$n" | awk '{ s += $1 } END { printf "%.9f", s }'
}
# close_to NAME A B
close_to() {
    if awk -v a="$2" -v b="$3" 'BEGIN { d = a - b; exit !(a != "" && d < 1e-6 && d > -1e-6) }'; then ok "$1"; else fail "$1" "$2 is not $3"; fi
}

cat >"$tmp/pairs" <<'END'
{"custom_id":"a","prompt":"Once upon a time","completion":", there was a king"}
{"custom_id":"b","prompt":"Once upon a time","completion":" dog"}
{"prompt":"The old king had a long, long way to go and","completion":" he was very tired. He sat down and said: \"I am tired\"."}
{"custom_id":4.0,"prompt":"Lily","completion":""}
END
succeeds "--jsonl" score --jsonl --ordered "$tmp/pairs"
cp "$tmp/out" "$tmp/expected"
n=1
for pair in 'Once upon a time|, there was a king' 'Once upon a time| dog' \
    'The old king had a long, long way to go and| he was very tired. He sat down and said: "I am tired".'; do
    sed -n ${n}p "$tmp/expected" >"$tmp/out"
    close_to "the sum of line $n" "$(field logprob)" "$(behind "${pair%%|*}" "${pair#*|}")"
    n=$((n + 1))
done
cp "$tmp/expected" "$tmp/out"
has "a line of score" '^{"custom_id":"a","logprob":-[0-9.]*,"prompt_tokens":5,"completion_tokens":5}$'
has "an empty completion" '^{"custom_id":4.0,"logprob":0,"prompt_tokens":2,"completion_tokens":0}$'
for options in "--parallel 1" "-t 1" "-t 3 --parallel 2"; do
    # shellcheck disable=SC2086 # split on purpose
    succeeds "--jsonl $options" score --jsonl --ordered $options "$tmp/pairs"
    same "--jsonl $options is the same" "$tmp/expected" "$tmp/out"
done

# Many, long and short, with a resume in between.
awk 'BEGIN { for (i = 1; i <= 60; i++) {
    text = "Once"; for (w = 0; w < i * 5 % 90; w++) text = text " there was a king and"
    end = ""; for (w = 0; w <= i % 30; w++) end = end " and a dog"
    printf "{\"prompt\":\"%s\",\"completion\":\"%s\"}\n", substr(text, 1, 1200), end } }' >"$tmp/many"
succeeds "many" score --jsonl --ordered "$tmp/many"
cp "$tmp/out" "$tmp/expected"
head -n 20 "$tmp/expected" >"$tmp/answers"
succeeds "many, one at a time, going on" score -q --jsonl --ordered --parallel 1 -o "$tmp/answers" "$tmp/many"
same "is the same" "$tmp/expected" "$tmp/answers"
for k in 1 2; do run score --jsonl --shard $k/2 "$tmp/many" -o "$tmp/parts.jsonl"; done
succeeds "--merge" score --jsonl --merge "$tmp/many" -o "$tmp/parts.jsonl"
same "parts are the same" "$tmp/expected" "$tmp/parts.jsonl"

printf '{"prompt":"x"}\n{"prompt":"x","completion":"y","top_k":1}\n{"prompt":"A","completion":" b"}\n{"prompt":[1,2],"completion":""}\n' >"$tmp/bad"
run score --jsonl --ordered "$tmp/bad"
has "no completion" '^{"custom_id":1,"line":1,"error":"there is no \\"completion\\""}$'
has "a key of batch" '^{"custom_id":2,"line":2,"error":"unknown key \\"top_k\\""}$'
has "a prompt of ids" '^{"custom_id":4,"line":4,"error":"\\"prompt\\" must be a string where there is a completion"}$'
has "the others are scored" '^{"custom_id":3,"logprob":-'
refuses "-o without --jsonl" 2 "--output needs --jsonl" score -o "$tmp/x" hi
refuses "--jsonl with --ids" 2 "--jsonl takes lines" score --jsonl --ids "1 2"

# ---- choose --------------------------------------------------------------------------------------------------------

prompt="Lily was very happy. She had a big"
prints "choose" " smile
" choose -p "$prompt" " dog" " smile" " tax"
refuses "a token over both and none before" 2 "the first token spans" choose --no-bos -p O nce nly
refuses "an answer that is lost otherwise" 2 'stands behind "--"' choose -p "$prompt" - +
prints "behind --" "-
" choose -p "1 2 3 4 5 -----------------------" -- - " smile"
printf '%s' "$prompt" >"$tmp/prompt"
prints "--prompt-file" " smile
" choose --prompt-file "$tmp/prompt" " dog" " smile" " tax"
input="$tmp/prompt" prints "standard input" " smile
" choose " dog" " smile" " tax"
input="$tmp/prompt" prints "--prompt-file -" " smile
" choose --prompt-file - " dog" " smile"
prints "of equals the first" " smile
" choose -p "$prompt" " smile" " smile"
succeeds "--json" choose --json -p "$prompt" " smile" " dog"
has "--json tells all" '^{"choice":" smile","by":"total","answers":\[{"text":" smile","logprob":-1\.[0-9]*,"tokens":1,"logprob_per_token":-1\.[0-9]*,"logprob_per_byte":-0\.2[89][0-9]*},{"text":" dog","logprob":-4\.'
# By the whole a short answer wins, by the mean a long one whose beginning makes the rest plain.
long=" a time, there was a little girl named Lily. She found a red book under the cold bridge."
prints "--by total" " an
" choose --by total -p "Once upon" " an" "$long"
prints "--by token" "$long
" choose --by token -p "Once upon" " an" "$long"
prints "--by byte" "$long
" choose --by byte -p "Once upon" " an" "$long"
# Behind a blank, some answers join it in one token and others do not: all are scored from there.
run choose --json -p "She had a big " zebra 7 dragon
joined=$(sed 's/"logprob":/\n&/g' "$tmp/out" | sed -n 's/^"logprob":\(-[0-9.]*\).*/\1/p' | tr '\n' ' ')
for answer in zebra 7 dragon; do
    n=$("$TGEN" tokenize --count "She had a big" </dev/null)
    close_to "$answer, joined to a blank" "${joined%% *}" \
        "$("$TGEN" score --json "She had a big $answer" </dev/null | tr '{' '\n' | sed -n 's/.*"logprob":\(-[0-9.e-]*\)}.*/\1/p' | tail -n +"$n" | awk '{ s += $1 } END { printf "%.9f", s }')"
    joined=${joined#* }
done
refuses "one answer" 2 "at least two answers" choose -p x " a"
refuses "an empty answer" 2 "an empty answer" choose -p x " a" ""
refuses "two prompts" 2 "given twice" choose -p x --prompt-file "$tmp/prompt" " a" " b"
refuses "no such file" 1 "cannot read $tmp/none" choose --prompt-file "$tmp/none" " a" " b"
refuses "a prompt that is too long" 4 "more than the context of 3" choose -c 3 -p "$prompt" " a" " b"

finish
