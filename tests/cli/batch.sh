#!/bin/sh
# tgen batch: lines, answers, errors, that nothing but a line decides its answer, resuming, refusals.
. tests/cli/lib.sh

# essence FILE: what the text and its end are, of each line of JSON, without the rest.
essence() {
    sed 's/.*\("text":.*"finish_reason":"[a-z]*"\).*/\1/' "$1"
}

# errs NAME CODE PATTERN: the last run ended with CODE and one line of stderr that matches.
errs() {
    if [ "$code" -ne "$2" ]; then
        fail "$1" "exit $code, not $2: $(peek "$tmp/err")"
    elif ! grep -q -e "$3" "$tmp/err" || [ "$(wc -l <"$tmp/err")" -ne 1 ]; then
        fail "$1" "no \"$3\" in: $(peek "$tmp/err")"
    else
        ok "$1"
    fi
}

# ---- lines that are good -------------------------------------------------------------------------------------------

cat >"$tmp/good" <<'END'
{"prompt":"Once upon a time","max_tokens":8,"temperature":0}
{"prompt": "The old king", "custom_id": "k\u00e9\n", "max_tokens": 10, "ids": true}

{"custom_id":1.50,"prompt":[0,574,539],"max_tokens":3,"logprobs":2,"top_p":null,"unheard_of":null}
{"custom_id":true,"prompt":"A dog","stop":["zzz","."],"seed":18446744073709551615,"max_tokens":60}
{"prompt":"A dog","stop":"garden","max_tokens":0}
{"custom_id":"o","method":"POST","url":"/v1/completions","body":{"model":"m","prompt":"A cat","max_tokens":5,"temperature":0,"logprobs":1,"n":1,"user":"u","stream_options":null}}
{"custom_id":"a\u0000b","prompt":"nul: \u0000","max_tokens":2}
{"custom_id":"hot","prompt":"Once upon a time","max_tokens":1,"temperature":100,"min_p":0,"top_p":1,"top_k":0,"seed":5,"logprobs":1}
END
succeeds "lines" batch --ordered "$tmp/good"
cp "$tmp/out" "$tmp/expected"
if [ "$(wc -l <"$tmp/out")" -eq 8 ]; then ok "a line for each"; else fail "a line for each" "$(peek "$tmp/out")"; fi
has "the golden text" '^{"custom_id":1,"text":", there was a little girl named Lily","finish_reason":"length","prompt_tokens":5,"completion_tokens":8,"seed":[0-9]*}$'
has "a string as custom_id, and ids" '^{"custom_id":"ké\\n",.*"completion_tokens":10,.*"ids":\[[0-9]*\(,[0-9]*\)\{9\}\]}$'
has "a number stays as it was, with logprobs" '^{"custom_id":1.50,.*"logprobs":{"tokens":\[" a"," time",","\],"token_logprobs":\[-0.001[67].*"text_offset":\[0,2,7\]}}$'
has "a boolean, a large seed, a stop string" '^{"custom_id":true,.*"finish_reason":"stop",.*"seed":18446744073709551615}$'
has "no tokens" '^{"custom_id":6,"text":"","finish_reason":"length","prompt_tokens":3,"completion_tokens":0,'
has "OpenAI's shape" '^{"id":"batch_req-7","custom_id":"o","response":{"status_code":200,"request_id":"req-7","body":{"id":"cmpl-7","object":"text_completion","created":0,"model":"m","choices":\[{"index":0,"text":" and a dog were walking","logprobs":{.*},"finish_reason":"length"}\],"usage":{"prompt_tokens":3,"completion_tokens":5,"total_tokens":8}}},"error":null}$'
has "the token that was drawn, beside the likeliest" '^{"custom_id":"hot",.*"token_logprobs":\(\[-[0-9.]*\)\],"top_logprobs":\[{",":-0.2[0-9]*,"[^"]*":-1[0-9.]*}\]'
has "NUL in a prompt and in a custom_id" '^{"custom_id":"a\\u0000b",'
if command -v jq >/dev/null; then
    if jq -e . "$tmp/out" >/dev/null; then ok "jq reads it"; else fail "jq reads it" "$(peek "$tmp/out")"; fi
    printf '{"prompt":"A","max_tokens":200,"ignore_eos":true,"temperature":100,"min_p":0,"top_p":1,"top_k":0,"seed":1,"logprobs":0}\n' >"$tmp/noise"
    run batch "$tmp/noise"
    if grep -q '�.*"tokens"' "$tmp/out" && jq -e '.text as $text | .logprobs as $l | [range(200) | $text[$l.text_offset[.]:][:$l.tokens[.] | length] == $l.tokens[.]] | all' "$tmp/out" >/dev/null; then
        ok "offsets count what is no UTF-8"
    else
        fail "offsets count what is no UTF-8" "$(peek "$tmp/out")"
    fi
else
    skip "jq reads it" "there is no jq"
fi

input="$tmp/good" succeeds "standard input" batch --ordered
same "standard input gives the same" "$tmp/expected" "$tmp/out"
# shellcheck disable=SC2002 # a pipe is the point
cat "$tmp/good" | "$TGEN" batch --ordered >"$tmp/out" 2>"$tmp/err"
same "a pipe gives the same" "$tmp/expected" "$tmp/out"
for threads in 1 3; do
    succeeds "-t $threads" batch -t $threads --ordered "$tmp/good"
    same "-t $threads gives the same" "$tmp/expected" "$tmp/out"
done
succeeds "-o -" batch -o - --ordered "$tmp/good"
same "-o - is standard output" "$tmp/expected" "$tmp/out"
succeeds "any order" batch "$tmp/good"
sort "$tmp/out" >"$tmp/sorted_out"
sort "$tmp/expected" >"$tmp/sorted"
same "any order gives the same lines" "$tmp/sorted" "$tmp/sorted_out"

# Ids in place of text; where there is no tokenizer, of ids alone.
cat >"$tmp/ids" <<'END'
{"custom_id":"ids","prompt":[1,2,3],"max_tokens":5,"seed":3}
{"custom_id":"o","method":"POST","url":"/v1/completions","body":{"prompt":[1,2,3],"max_tokens":5,"seed":3}}
{"custom_id":"text","prompt":"A dog","max_tokens":5,"temperature":0}
{"custom_id":"stop","prompt":[1,2,3],"max_tokens":5,"stop":"x"}
{"custom_id":"logprobs","prompt":[1,2,3],"max_tokens":5,"logprobs":1}
END
succeeds "--print-ids" batch --ordered --print-ids "$tmp/ids"
has "ids for a text" '^{"custom_id":"text","text":null,"finish_reason":"length",.*"ids":\[[0-9,]*\]}$'
prints "as generate prints them" "$(sed -n 's/^{"custom_id":"text".*\[\(.*\)\]}$/\1/p' "$tmp/out" | tr , '\n')
" --temp 0 -n 5 --print-ids "A dog"
ids=$("$TGEN" --seed 3 -n 5 -m tests/golden/ctrl --ids "1 2 3" --print-ids | paste -sd, -)
run batch --ordered --print-ids -m tests/golden/ctrl "$tmp/ids"
if [ $code -eq 1 ]; then ok "without a tokenizer"; else fail "without a tokenizer" "exit $code: $(peek "$tmp/err")"; fi
has "that is noted" '^tgen: note: only ids: tests/golden/ctrl: no tokenizer' "$tmp/err"
has "ids for ids" "^{\"custom_id\":\"ids\",\"text\":null,.*\"ids\":\[$ids\]}\$"
has "and in OpenAI's shape" "\"custom_id\":\"o\",.*\"text\":null,\"ids\":\[$ids\],\"logprobs\":null"
for name in text stop logprobs; do
    has "not for $name" "^{\"custom_id\":\"$name\",\"line\":[345],\"error\":\"without a tokenizer the prompt must be ids"
done
refuses "without --print-ids" 3 "tests/golden/ctrl: no tokenizer" batch -m tests/golden/ctrl "$tmp/ids"

# The options are the defaults of lines.
printf '{"prompt":"Once upon a time"}\n{"prompt":"The old king","custom_id":"2","temperature":1.5,"max_tokens":3}\n' >"$tmp/two"
succeeds "options" batch --ordered --temp 0 -n 2 --stop Lily "$tmp/two"
has "options hold for lines" '^{"custom_id":1,"text":", there","finish_reason":"length"'
has "which change them" '"completion_tokens":3'
printf 'Once upon a time\n\n{"prompt":"x"}' >"$tmp/text"
succeeds "--text" batch --text --ordered --temp 0 -n 2 "$tmp/text"
if [ "$(wc -l <"$tmp/out")" -eq 3 ]; then ok "--text: each line counts"; else fail "--text: each line counts" "$(peek "$tmp/out")"; fi
has "--text: a prompt" '^{"custom_id":1,"text":", there",'
has "--text: an empty one" '^{"custom_id":2,.*"prompt_tokens":1,'
printf '' >"$tmp/empty"
succeeds "no lines" batch "$tmp/empty"
if [ -s "$tmp/out" ]; then fail "no lines, no answers" "$(peek "$tmp/out")"; else ok "no lines, no answers"; fi
printf '\357\273\277{"prompt":"A","max_tokens":1}\r\n' >"$tmp/windows"
succeeds "a byte order mark and CRLF" batch "$tmp/windows"
printf '{"prompt":"A","max_tokens":1}\n\357\273\277{"prompt":"A","max_tokens":1}\n' >"$tmp/windows"
succeeds "a byte order mark in the midst of lines" batch "$tmp/windows"
printf '\357\273\277\r\n' >"$tmp/windows"
succeeds "nothing but a byte order mark" batch "$tmp/windows"

# ---- the same as tgen alone ----------------------------------------------------------------------------------------

for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
    printf '{"custom_id":"id %d","prompt":"Once there was a %d","max_tokens":%d,"temperature":1.1,"top_k":%d,"top_p":0.9,"min_p":0.01,"repeat_penalty":1.2}\n' \
        $i $i $((3 * i)) $((5 * i))
done >"$tmp/many"
succeeds "many" batch --ordered --seed 5 "$tmp/many"
cp "$tmp/out" "$tmp/together"
: >"$tmp/alone"
i=0
while IFS= read -r line; do
    i=$((i + 1))
    seed=$(printf '%s' "$line" | sed 's/.*"seed":\([0-9]*\).*/\1/')
    run --json --seed "$seed" -n $((3 * i)) --temp 1.1 --top-k $((5 * i)) --top-p 0.9 --min-p 0.01 --repeat-penalty 1.2 \
        "Once there was a $i"
    cat "$tmp/out" >>"$tmp/alone"
done <"$tmp/together"
essence "$tmp/alone" >"$tmp/alone_essence"
essence "$tmp/together" >"$tmp/together_essence"
same "each is what tgen alone answers" "$tmp/alone_essence" "$tmp/together_essence"
: >"$tmp/single"
while IFS= read -r line; do
    printf '%s\n' "$line" | "$TGEN" batch --seed 5 >>"$tmp/single"
done <"$tmp/many"
same "and what a job of one line answers" "$tmp/together" "$tmp/single"
sort -r "$tmp/many" >"$tmp/reversed"
run batch --seed 5 "$tmp/reversed"
sort "$tmp/out" >"$tmp/sorted_out"
sort "$tmp/together" >"$tmp/sorted"
same "in whatever order they come" "$tmp/sorted" "$tmp/sorted_out"
run batch --ordered --seed 6 "$tmp/many"
essence "$tmp/out" >"$tmp/other_essence"
if cmp -s "$tmp/other_essence" "$tmp/together_essence"; then fail "another seed" "the same texts"; else ok "another seed"; fi

# ---- lines that are bad --------------------------------------------------------------------------------------------

# bad NAME MESSAGE LINE: gets an answer with that error, and the good lines around it are answered.
bad() {
    printf '{"prompt":"A","max_tokens":1,"custom_id":"before"}\n%s\n{"prompt":"A","max_tokens":1,"custom_id":"after"}\n' "$3" >"$tmp/bad"
    run batch --ordered "$tmp/bad"
    if [ $code -ne 1 ] || ! grep -qx 'tgen: 1 of 3 lines could not be answered; their answers have an "error"' "$tmp/err"; then
        fail "$1" "exit $code: $(peek "$tmp/err")"
    elif [ "$(wc -l <"$tmp/out")" -ne 3 ] || ! sed -n 2p "$tmp/out" | grep -qF -e "$2"; then
        fail "$1" "$(peek "$tmp/out")"
    else
        ok "$1"
    fi
}
bad "not JSON" '{"custom_id":2,"line":2,"error":"not a JSON object (--text takes plain lines)"}' 'hello'
bad "JSON, but no object" '{"custom_id":2,"line":2,"error":"not a JSON object (--text takes plain lines)"}' '["hello"]'
bad "cut short" '{"custom_id":2,"line":2,"error":"not JSON: no end of a string' '{"prompt":"x'
bad "half a character" '"\"prompt\" is not JSON: half a surrogate pair at byte 7 of 8"' '{"prompt":"\ud83d"}'
bad "a control character" 'a control character at byte' "$(printf '{"prompt":"a\tb"}')"
bad "more behind it" 'more text' '{"prompt":"x"} {}'
bad "an unknown key" '{"custom_id":"b","line":2,"error":"unknown key \"promt\""}' '{"promt":"x","custom_id":"b"}'
bad "a key twice" '\"prompt\" stands there twice' '{"prompt":"x","prompt":"y"}'
bad "no prompt" 'there is no \"prompt\"' '{"custom_id":"x"}'
bad "a prompt of the wrong kind" '\"prompt\" must be a string or a list of token ids' '{"prompt":5}'
bad "ids of the wrong kind" '\"prompt\" must be a string, or a list of at least one token id' '{"prompt":[1,"2"]}'
bad "no ids" 'at least one token id' '{"prompt":[]}'
bad "an id outside the vocabulary" 'the token id 4096 is outside the vocabulary of 4096' '{"prompt":[1,4096]}'
bad "a custom_id of the wrong kind" '\"custom_id\" must be a string, a number or a boolean' '{"prompt":"x","custom_id":[1]}'
bad "the same custom_id" '{"custom_id":"before","line":2,"error":"line 1 has the same custom_id"}' '{"prompt":"x","custom_id":"b\u0065fore"}'
bad "a number out of range" '\"top_p\" must be a number between 0 and 1' '{"prompt":"x","top_p":1.5}'
bad "a number that is none" '\"temperature\" must be a number between' '{"prompt":"x","temperature":"1"}'
bad "no whole number" '\"max_tokens\" must be a whole number between' '{"prompt":"x","max_tokens":1.5}'
bad "a seed out of range" '\"seed\" must be a whole number between' '{"prompt":"x","seed":18446744073709551616}'
bad "a seed that a double would round" '\"seed\" must be a whole number between' '{"prompt":"x","seed":1.8446744073709551615e19}'
bad "half a seed" '\"seed\" must be a whole number between' '{"prompt":"x","seed":0.5}'
bad "a negative seed" '\"seed\" must be' '{"prompt":"x","seed":-1}'
bad "an empty stop string" '\"stop\" has an empty string' '{"prompt":"x","stop":["a",""]}'
bad "a stop of the wrong kind" '\"stop\" must be a string or a list of strings' '{"prompt":"x","stop":1}'
bad "too many logprobs" '\"logprobs\" must be a whole number between 0 and 20' '{"prompt":"x","logprobs":21}'
bad "ids that are no boolean" '\"ids\" must be true or false' '{"prompt":"x","ids":1}'
bad "a completion" 'unknown key \"completion\"' '{"prompt":"x","completion":"y"}'
bad "OpenAI: another url" '"custom_id":"o","line":2,"response":null,"error":{"code":"invalid_request","message":"\"url\" must be' '{"custom_id":"o","method":"POST","url":"/v1/chat/completions","body":{"prompt":"x"}}'
bad "OpenAI: two answers" '\"n\" asks for what tgen batch does not do' '{"custom_id":"o","method":"POST","url":"/v1/completions","body":{"prompt":"x","n":2}}'
bad "OpenAI: a bias" '\"logit_bias\" asks for what' '{"custom_id":"o","method":"POST","url":"/v1/completions","body":{"prompt":"x","logit_bias":{"5":1}}}'
bad "OpenAI: a bias of another type" '\"logit_bias\" asks for what' '{"custom_id":"o","method":"POST","url":"/v1/completions","body":{"prompt":"x","logit_bias":1}}'
bad "OpenAI: a count of another type" '\"n\" asks for what' '{"custom_id":"o","method":"POST","url":"/v1/completions","body":{"prompt":"x","n":{}}}'
bad "OpenAI: beside the body" '\"top_p\" belongs in the body' '{"custom_id":"o","method":"POST","url":"/v1/completions","body":{"prompt":"x"},"top_p":1}'
bad "OpenAI: unknown in the body" 'unknown key \"custom_id\"' '{"method":"POST","url":"/v1/completions","body":{"prompt":"x","custom_id":1}}'
awk 'BEGIN { printf "{\"prompt\":\""; for (i = 0; i < 600; i++) printf "the "; print "\"}" }' >"$tmp/long"
bad "a prompt that is too long" 'tokens, more than the context of 512' "$(cat "$tmp/long")"

printf '{"custom_id":"%s","prompt":"A","max_tokens":1,"seed":%s}\n' a 1.0 b 1e0 c 9007199254740992.0 d 10e-1 >"$tmp/seeds"
succeeds "whole seeds" batch --ordered "$tmp/seeds"
has "1.0 is a seed" '"a".*"seed":1}$'
has "1e0 is, too" '"b".*"seed":1}$'
has "and 2^53" '"c".*"seed":9007199254740992}$'
printf '%s\n' '{"method":"POST","url":"/v1/completions","body":{"prompt":"A","max_tokens":1,"n":1.0,"best_of":10e-1,"echo":false,"logit_bias":{ },"suffix":"","user":"u"}}' >"$tmp/idle"
succeeds "OpenAI: what happens anyway, in any spelling" batch "$tmp/idle"

# ---- the command line ----------------------------------------------------------------------------------------------

refuses "no such file" 1 "cannot read $tmp/none: No such file" batch "$tmp/none"
refuses "a file without a name" 2 "the name of a file is empty" batch ""
refuses "a file without a name, to score" 2 "the name of a file is empty" score --jsonl ""
refuses "two files" 2 "one file of lines at a time" batch "$tmp/good" "$tmp/two"
refuses "a file and standard input" 2 "not from both" batch "$tmp/good" -
refuses "--restart without a file" 2 "--restart needs the file" batch --restart "$tmp/good"
refuses "no such model" 3 "cannot open" batch -m "$tmp/none" "$tmp/good"
refuses "-c too large" 4 "the model's maximum is 512" batch -c 513 "$tmp/good"
refuses "a directory for answers" 1 "cannot write to $tmp" batch -o "$tmp" "$tmp/good"
refuses "a directory of lines" 1 "cannot read $tmp" batch "$tmp"

# ---- going on where it ended ---------------------------------------------------------------------------------------

cp "$tmp/together" "$tmp/expected"
succeeds "-o" batch --ordered --seed 5 -o "$tmp/answers" "$tmp/many"
same "-o writes the answers" "$tmp/expected" "$tmp/answers"
if [ -s "$tmp/out" ]; then fail "-o leaves stdout alone" "$(peek "$tmp/out")"; else ok "-o leaves stdout alone"; fi
run batch --ordered --seed 5 -o "$tmp/answers" "$tmp/many"
errs "-o again" 0 '^tgen: note: 12 answers are there already$'
same "-o again adds nothing" "$tmp/expected" "$tmp/answers"
succeeds "-o again, -q" batch -q --ordered --seed 5 -o "$tmp/answers" "$tmp/many"
size=$(wc -c <"$tmp/expected")
for left in 0 1 17 $((size / 3)) $((size / 2)) $((size - 1)); do
    head -c "$left" "$tmp/expected" >"$tmp/answers"
    succeeds "torn after $left bytes" batch -q --ordered --seed 5 -o "$tmp/answers" "$tmp/many"
    same "torn after $left bytes, and whole again" "$tmp/expected" "$tmp/answers"
done
sed -n '2p;5p;9p' "$tmp/expected" >"$tmp/answers"
succeeds "some answers" batch -q --seed 5 -o "$tmp/answers" "$tmp/many"
sort "$tmp/answers" >"$tmp/sorted_out"
same "the others come behind them" "$tmp/sorted" "$tmp/sorted_out"
head -n 4 "$tmp/expected" >"$tmp/answers"
# shellcheck disable=SC2002
cat "$tmp/many" | "$TGEN" batch --ordered --seed 5 -o "$tmp/answers" 2>"$tmp/err"
same "from a pipe too" "$tmp/expected" "$tmp/answers"
succeeds "--restart" batch --ordered --seed 6 --restart -o "$tmp/answers" "$tmp/many"
if cmp -s "$tmp/expected" "$tmp/answers"; then fail "--restart begins anew" "the same"; else ok "--restart begins anew"; fi

cp "$tmp/good" "$tmp/mixed"
printf 'bad\n{"custom_id":"o","prompt":"again"}\n' >>"$tmp/mixed"
run batch -o "$tmp/mixed_answers" "$tmp/mixed"
errs "a job with bad lines" 1 '^tgen: 2 of 10 lines could not'
cp "$tmp/mixed_answers" "$tmp/expected"
run batch -q -o "$tmp/mixed_answers" "$tmp/mixed"
errs "again" 1 '^tgen: 2 of 10 lines could not'
same "bad lines are answered once" "$tmp/expected" "$tmp/mixed_answers"
sed '1d;4d' "$tmp/expected" >"$tmp/mixed_answers"
run batch -o "$tmp/mixed_answers" "$tmp/mixed"
sort "$tmp/expected" >"$tmp/sorted"
sort "$tmp/mixed_answers" >"$tmp/sorted_out"
same "and those that were missing" "$tmp/sorted" "$tmp/sorted_out"

# The number that stands for a custom_id that could not be read is nobody's name.
id='"prompt":"A","max_tokens":1}'
printf '%s\n' '{"custom_id":"a",'"$id" bad '{"custom_id":2,'"$id" '{"custom_id":5,'"$id" '{"custom_id":[1],'"$id" "{$id" '{"custom_id":6,'"$id" >"$tmp/nameless"
run batch --ordered -o "$tmp/nameless_answers" "$tmp/nameless"
errs "lines without a readable custom_id" 1 '^tgen: 3 of 7 lines could not'
has "a given custom_id wins over a number" '^{"custom_id":2,"text"' "$tmp/nameless_answers"
has "and before it" '^{"custom_id":5,"text"' "$tmp/nameless_answers"
has "the line of that number" '^{"custom_id":5,"line":5,"error":".*must be a string' "$tmp/nameless_answers"
has "a line without custom_id is its number" '^{"custom_id":6,"line":7,"error":"line 6 has the same custom_id"' "$tmp/nameless_answers"
cp "$tmp/nameless_answers" "$tmp/expected"
run batch -q --ordered -o "$tmp/nameless_answers" "$tmp/nameless"
errs "and again" 1 '^tgen: 3 of 7 lines could not'
same "nothing is answered twice" "$tmp/expected" "$tmp/nameless_answers"
run batch --merge -o "$tmp/nameless_answers" "$tmp/nameless"
same "nor lost in merging" "$tmp/expected" "$tmp/nameless_answers"

# One bad line is repaired, one makes room for a good one, one stays as it is; then that is repaired too.
a='{"prompt":"A","max_tokens":1,"custom_id":"a"}' c='{"prompt":"A","max_tokens":1,"custom_id":"c"}'
printf '%s\n{"promt":"A","custom_id":"b"}\nbad\n{"prompt":[4096],"custom_id":"d"}\n' "$a" >"$tmp/broken"
printf '%s\n{"prompt":"A","custom_id":"b","max_tokens":1}\n%s\n{"prompt":[4096],"custom_id":"d"}\n' "$a" "$c" >"$tmp/repaired"
run batch --ordered -o "$tmp/broken_answers" "$tmp/broken"
cp "$tmp/broken_answers" "$tmp/expected"
run batch --ordered "$tmp/repaired"
sed -n 2,3p "$tmp/out" >>"$tmp/expected"
for time in "repaired lines" "repaired lines, again"; do
    run batch -q --ordered -o "$tmp/broken_answers" "$tmp/repaired"
    errs "$time" 1 '^tgen: 1 of 4 lines could not'
    same "$time: answered behind their errors, once" "$tmp/expected" "$tmp/broken_answers"
done
sed 's/4096/574/' "$tmp/repaired" >"$tmp/broken"
succeeds "all lines repaired" batch -q -n 1 -o "$tmp/broken_answers" "$tmp/broken"
if [ "$(wc -l <"$tmp/broken_answers")" -eq 7 ]; then ok "each has an answer"; else fail "each has an answer" "$(peek "$tmp/broken_answers")"; fi

cp "$tmp/together" "$tmp/answers"
cp "$tmp/answers" "$tmp/expected"
refuses "answers of another job" 1 "12 of the answers that are there match no line of $tmp/two, the first to \"id 1\"; --restart drops them all" batch -o "$tmp/answers" "$tmp/two"
printf '%s\n' '{"custom_id":"k\u00e9\n","text":""}' >"$tmp/strange"
# shellcheck disable=SC2002 # a pipe is the point
cat "$tmp/two" | "$TGEN" batch -q -n 1 -o "$tmp/strange" 2>"$tmp/err"
code=$?
errs "from a pipe, at its end" 1 '1 of the answers that are there match no line of standard input, the first to "ké\\n"; --restart'
own="line 1 of $tmp/text is no answer; answers need a file of their own"
refuses "a file that is no output" 1 "$own" batch -o "$tmp/text" "$tmp/two"
cp "$tmp/text" "$tmp/expected_text"
refuses "a file that is no output, --restart" 1 "$own" batch --restart -o "$tmp/text" "$tmp/two"
same "it is still there" "$tmp/expected_text" "$tmp/text"
printf '{"custom_id":1,"text":""}\nno answer\n' >"$tmp/spoilt"
refuses "a line that is none" 1 "line 2 of $tmp/spoilt is no answer; remove it, or --restart drops all" batch -o "$tmp/spoilt" "$tmp/two"
run batch -q -n 1 -o "$tmp/spaced" "$tmp/two"
awk '{ print; print NR % 2 ? "" : " \r" }' "$tmp/spaced" >"$tmp/blanks"
succeeds "blank lines among answers" batch -q -n 1 -o "$tmp/blanks" "$tmp/two"
if [ "$(grep -c . "$tmp/blanks")" -eq "$(grep -c . "$tmp/spaced")" ]; then ok "no line is answered again"; else fail "no line is answered again" "$(peek "$tmp/blanks")"; fi
succeeds "which --restart drops" batch -q -n 1 --restart -o "$tmp/spoilt" "$tmp/two"

# Answers of another kind stay, whichever kind it is; what else a line asks for makes no kind of its own.
printf '{"custom_id":"a","prompt":"A","completion":" dog"}\n' >"$tmp/as_score"
printf '{"custom_id":"a","prompt":"A","max_tokens":1}\n' >"$tmp/as_text"
printf '{"custom_id":"a","method":"POST","url":"/v1/completions","body":{"prompt":"A","max_tokens":1}}\n' >"$tmp/as_openai"
run score --jsonl -o "$tmp/score_answers" "$tmp/as_score"
run batch -o "$tmp/text_answers" "$tmp/as_text"
run batch -o "$tmp/openai_answers" "$tmp/as_openai"
cat "$tmp/score_answers" "$tmp/text_answers" "$tmp/openai_answers" >"$tmp/expected_kinds"
other="; --restart drops what is there"
refuses "a score for a text" 1 "the answer that is there to line 1 is a log-probability and would be a text in this job$other" batch -o "$tmp/score_answers" "$tmp/as_text"
refuses "a score for OpenAI's" 1 "is a log-probability and would be in OpenAI's shape" batch -o "$tmp/score_answers" "$tmp/as_openai"
refuses "a text for OpenAI's" 1 "is a text and would be in OpenAI's shape" batch -o "$tmp/text_answers" "$tmp/as_openai"
refuses "OpenAI's for a text" 1 "is in OpenAI's shape and would be a text" batch -o "$tmp/openai_answers" "$tmp/as_text"
refuses "a text for a score" 1 "is a text and would be a log-probability" score --jsonl -o "$tmp/text_answers" "$tmp/as_score"
printf '{"custom_id":"a","prompt":"A","max_tokens":1,"logprobs":2,"ids":true}\n' >"$tmp/as_more"
run batch -o "$tmp/text_answers" "$tmp/as_more"
errs "a text for one with more to it" 0 '^tgen: note: 1 answer is there already$'
cat "$tmp/score_answers" "$tmp/text_answers" "$tmp/openai_answers" >"$tmp/kinds"
same "they stay" "$tmp/expected_kinds" "$tmp/kinds"
succeeds "answers of another kind, dropped" batch --restart -o "$tmp/score_answers" "$tmp/as_text"

printf 'a note, and no newline' >"$tmp/note"
cp "$tmp/note" "$tmp/expected_note"
refuses "a note of one line" 1 "line 1 of $tmp/note is no answer" batch -o "$tmp/note" "$tmp/two"
same "it is still there" "$tmp/expected_note" "$tmp/note"
# Without a newline, only what can be left of an answer is a torn one.
# foreign NAME FORMAT: a file of that text, which printf makes, is refused and stays.
foreign() {
    # shellcheck disable=SC2059 # a format
    printf "$2" >"$tmp/foreign"
    cp "$tmp/foreign" "$tmp/expected_foreign"
    for restart in "" --restart; do
        # shellcheck disable=SC2086 # an option or none
        refuses "$1 $restart" 1 "line 1 of $tmp/foreign is no answer; answers" batch $restart -o "$tmp/foreign" "$tmp/two"
    done
    same "$1 stays" "$tmp/expected_foreign" "$tmp/foreign"
}
foreign "a line of prompts without a newline" '{"custom_id":"a","prompt":"My only copy","max_tokens":3}'
foreign "a torn line of prompts" '{"custom_id":"a","prom'
foreign "a torn line of OpenAI's" '{"custom_id":"a","method":"POST","url":"/v1/comp'
foreign "a custom_id and nothing else" '{"custom_id":"a"}'
foreign "a line and no error" '{"custom_id":"a","line":3}'
foreign "an answer and more" '{"custom_id":"a","text":""} {"custom_id":'
foreign "zeros before something" '\0\0\0binary important'
foreign "zeros before an answer" '\0\0{"custom_id":1,"text":""}'
for left in '\0\0\0' '{"cust' '{"id":"batch_req-1","custom' '{"custom_id":"a' '{"custom_id":1' '{"custom_id":1,"te\0\0' '{"custom_id":"a","line":2,"er' \
    '{"id":"batch_req-1","custom_id":"a","response":{"sta' '{"custom_id":1,"text":""}' '{"custom_id":1,"text":""}\0' '{"custom_id":1,"logprob":-1'; do
    # shellcheck disable=SC2059 # a format
    printf "$left" >"$tmp/torn"
    what=$(tr '\0' 0 <"$tmp/torn")
    succeeds "torn: $what" batch -q -n 1 -o "$tmp/torn" "$tmp/two"
    if [ "$(wc -l <"$tmp/torn")" -eq 2 ]; then ok "dropped: $what"; else fail "dropped: $what" "$(peek "$tmp/torn")"; fi
    # shellcheck disable=SC2059 # a format
    printf "$left" >"$tmp/torn"
    succeeds "torn, --restart: $what" batch -q -n 1 --restart -o "$tmp/torn" "$tmp/two"
done
printf '{"custom_id":1,"prompt":"A dog"}\n{"custom_id":"2","prompt":"A cat"}\n' >"$tmp/other_lines"
refuses "other lines are no answers" 1 "line 1 of $tmp/other_lines is no answer" batch -o "$tmp/other_lines" "$tmp/two"
for why in "-m $tmp/none" "-c 513" "--cpu none" "--kv-memory 1"; do
    # shellcheck disable=SC2086 # words
    run batch --restart $why -o "$tmp/answers" "$tmp/many"
    same "--restart $why drops no answers" "$tmp/expected" "$tmp/answers"
done

run batch --restart -o "$tmp/answers" "$tmp"
same "--restart with lines that cannot be read drops no answers" "$tmp/expected" "$tmp/answers"

# A job that cannot begin leaves no file that was not there before.
ln -s nothing "$tmp/to_nothing"
for why in "-m $tmp/none" "-c 513" "--cpu none" "--kv-memory 1"; do
    # shellcheck disable=SC2086 # words
    run batch $why -o "$tmp/left" "$tmp/many"
    if [ $code -gt 0 ] && [ ! -e "$tmp/left" ]; then ok "$why leaves no file"; else fail "$why leaves no file" "exit $code: $(ls -l "$tmp/left")"; fi
done
run batch -o "$tmp/left" "$tmp"
if [ $code -eq 1 ] && [ ! -e "$tmp/left" ]; then ok "a directory as input leaves no file"; else fail "a directory as input leaves no file" "exit $code"; fi
run batch -m "$tmp/none" -o "$tmp/to_nothing" "$tmp/many"
if [ -L "$tmp/to_nothing" ]; then ok "a link stays"; else fail "a link stays" "it is gone"; fi
: >"$tmp/left"
run batch -m "$tmp/none" -o "$tmp/left" "$tmp/many"
if [ -e "$tmp/left" ]; then ok "an empty file stays"; else fail "an empty file stays" "it is gone"; fi

# Lines are never overwritten by their answers.
cp "$tmp/two" "$tmp/lines"
ln -s lines "$tmp/link"
ln "$tmp/lines" "$tmp/lines.1-of-2"
own="holds the lines; the answers need a file of their own"
refuses "-o with the lines" 2 "$tmp/lines $own" batch --restart -o "$tmp/lines" "$tmp/lines"
refuses "-o with a link to the lines" 2 "$own" batch --restart -o "$tmp/link" "$tmp/lines"
refuses "-o with the lines, by parts" 2 "$own" batch --restart --shard 1/2 -o "$tmp/lines" "$tmp/lines"
refuses "--merge into the lines" 2 "$own" batch --merge -o "$tmp/lines" "$tmp/lines"
input="$tmp/lines" refuses "-o with standard input" 2 "standard input $own" batch --restart -o "$tmp/lines"
mv "$tmp/lines.1-of-2" "$tmp/part.1-of-2"
refuses "a part with the lines" 2 "$own" batch --restart --shard 1/2 -o "$tmp/part" "$tmp/lines"
"$TGEN" batch "$tmp/lines" >>"$tmp/lines" 2>"$tmp/err"
code=$?
errs "standard output with the lines" 2 "$own"
same "the lines are still there" "$tmp/two" "$tmp/lines"
mkdir "$tmp/own"
cp "$tales"/* "$tmp/own"
for file in model.safetensors tokenizer.json; do
    refuses "-o with $file" 1 "$tmp/own/$file is no answer; answers need a file of their own" \
        batch -m "$tmp/own" --restart -o "$tmp/own/$file" "$tmp/two"
    refuses "-o with $file, by parts" 2 "$tmp/own/$file is a file of the model; the answers need a file of their own" \
        batch -m "$tmp/own" --restart --shard 1/2 -o "$tmp/own/$file" "$tmp/two"
    same "$file is still there" "$tales/$file" "$tmp/own/$file"
done
sed -n '1p;1p' "$tmp/together" >"$tmp/doubled"
refuses "a doubled answer" 1 "line 2 of $tmp/doubled answers what was answered already" batch -o "$tmp/doubled" "$tmp/many"
same "refusing changes nothing" "$tmp/expected" "$tmp/answers"

# Answers go to what has no name of its own: a pipe, nothing, a file that was removed while it is open.
"$TGEN" batch -q --ordered -o /dev/stdout "$tmp/good" </dev/null 2>"$tmp/err" | cat >"$tmp/piped"
"$TGEN" batch -q --ordered "$tmp/good" </dev/null >"$tmp/plain"
same "-o /dev/stdout is the pipe that it is" "$tmp/plain" "$tmp/piped"
if [ -s "$tmp/err" ]; then fail "and says nothing" "$(peek "$tmp/err")"; else ok "and says nothing"; fi
succeeds "-o /dev/null" batch -q -o /dev/null "$tmp/good"
exec 3>"$tmp/nameless" 4<"$tmp/nameless"
rm "$tmp/nameless"
succeeds "-o of a file without a name" batch -q --ordered -o /dev/fd/3 "$tmp/good"
cat <&4 >"$tmp/piped"
exec 3>&- 4<&-
same "whose answers are there" "$tmp/plain" "$tmp/piped"

if command -v flock >/dev/null; then
    : >"$tmp/locked"
    flock "$tmp/locked" sh -c '"$1" batch -o "$2" "$3" 2>"$4"; echo $? >"$4.code"' sh "$TGEN" "$tmp/locked" "$tmp/two" "$tmp/err"
    code=$(cat "$tmp/err.code")
    errs "two writers" 1 "^tgen: $tmp/locked is being written by another process$"
else
    skip "two writers" "there is no flock(1)"
fi

# ---- streams -------------------------------------------------------------------------------------------------------

# Answers come while the input is still open.
mkfifo "$tmp/in" "$tmp/back"
"$TGEN" batch <"$tmp/in" >"$tmp/back" 2>"$tmp/err" &
program=$!
exec 3>"$tmp/in" 4<"$tmp/back"
for i in 1 2; do
    printf '{"prompt":"A","max_tokens":1,"custom_id":"first %d"}\n' $i >&3
    IFS= read -r answer <&4
    case $answer in
    *'"first '$i'"'*) ok "answer $i before the input ends" ;;
    *) fail "answer $i before the input ends" "$answer" ;;
    esac
done
exec 3>&- 4<&-
wait $program

# The file of answers loses its name, or has another size, while the job waits for lines.
mkdir "$tmp/elsewhere"
for how in "rm -f" "mv -t $tmp/elsewhere" "truncate -s +1" "truncate -s 1"; do
    case $how in truncate*) what="changed by somebody else" ;; *) what="removed, moved or replaced" ;; esac
    "$TGEN" batch -q -n 1 -o "$tmp/gone" <"$tmp/in" 2>"$tmp/err" &
    program=$!
    exec 3>"$tmp/in"
    printf '{"prompt":"A"}\n' >&3
    i=0
    while [ ! -s "$tmp/gone" ] && [ $i -lt 100 ]; do
        sleep 0.1
        i=$((i + 1))
    done
    $how "$tmp/gone"
    exec 3>&-
    wait $program
    code=$?
    errs "answers lost their file: $how" 1 "^tgen: $tmp/gone was $what while answers went there$"
    rm -f "$tmp/gone"
done

# A job that ends without an answer takes away the empty file that it made, but none that took its place.
for there in "" precious; do
    "$TGEN" batch -q -n 1 -o "$tmp/gone" <"$tmp/in" 2>"$tmp/err" &
    program=$!
    exec 3>"$tmp/in"
    i=0
    while [ ! -e "$tmp/gone" ] && [ $i -lt 100 ]; do
        sleep 0.1
        i=$((i + 1))
    done
    if [ "$there" ]; then
        rm "$tmp/gone"
        echo "$there" >"$tmp/gone"
    fi
    kill -TERM $program
    exec 3>&-
    wait $program
    left=$(cat "$tmp/gone" 2>/dev/null)
    if [ "$left" = "$there" ]; then ok "after a job without answers: $there"; else fail "after a job without answers: $there" "$left"; fi
    rm -f "$tmp/gone"
done

# The file of lines is cut short while they are answered, of which few are read ahead.
awk 'BEGIN { id = sprintf("%8000s", ""); for (i = 10; i < 90; i++) print "{\"custom_id\":\"" i id "\",\"prompt\":\"A\"}" }' >"$tmp/long"
"$TGEN" batch -q -n 40 --ignore-eos --parallel 1 -o "$tmp/of_long" "$tmp/long" 2>"$tmp/err" &
program=$!
i=0
while [ ! -s "$tmp/of_long" ] && [ $i -lt 500 ]; do
    sleep 0.02
    i=$((i + 1))
done
kill -STOP $program
truncate -s $(($(wc -c <"$tmp/long") / 80 * 60)) "$tmp/long"
kill -CONT $program
wait $program
code=$?
errs "lines that are gone" 1 "^tgen: $tmp/long has lost lines while they were answered: 60 are left of 80$"
if [ "$(wc -l <"$tmp/of_long")" -eq 60 ]; then ok "the others are answered"; else fail "the others are answered" "$(wc -l <"$tmp/of_long")"; fi

"$TGEN" batch --ordered "$tmp/good" >/dev/full 2>"$tmp/err"
code=$?
errs "a full disk" 1 "^tgen: cannot write to standard output: No space left on device$"
{
    "$TGEN" batch --ordered --parallel 1 --text -n 400 --ignore-eos "$tales/README.md" 2>"$tmp/err"
    echo $? >"$tmp/code"
} | head -c 10 >"$tmp/out"
if [ "$(cat "$tmp/code")" -eq 141 ] && [ ! -s "$tmp/err" ]; then
    ok "a closed pipe ends it quietly"
else
    fail "a closed pipe ends it quietly" "exit $(cat "$tmp/code"): $(peek "$tmp/err")"
fi

# Lines that are finished at once are not all kept: the first answers are out before the last are in.
awk 'BEGIN { for (i = 0; i < 30000; i++) print "{\"prompt\":\"A\",\"max_tokens\":0}" }' >"$tmp/at_once"
# little OPTION...: with 400 MB of address space, which a sanitizer alone exceeds.
little() {
    (
        # shellcheck disable=SC3045 # not POSIX, and everywhere
        ulimit -v 400000
        "$TGEN" "$@" >"$tmp/out" 2>"$tmp/err"
    )
}
if ! little --version; then
    skip "30,000 lines of no tokens" "tgen does not start in 400 MB"
elif little batch -q -t 1 "$tmp/at_once" && [ "$(wc -l <"$tmp/out")" -eq 30000 ]; then
    ok "30,000 lines of no tokens"
else
    fail "30,000 lines of no tokens" "$(peek "$tmp/err")"
fi

run batch -q --stats "$tmp/many"
has "--stats" '^{"lines":12,"answered_before":0,"errors":0,"seconds":[0-9.e-]*,"prompt_tokens":[0-9]*,' "$tmp/err"
if command -v script >/dev/null; then
    i=0
    while [ $i -lt 40 ]; do
        printf '{"prompt":"A","max_tokens":50,"ignore_eos":true}\n'
        i=$((i + 1))
    done >"$tmp/slow"
    script -qec "'$TGEN' batch -t 1 --parallel 4 --cpu scalar -o '$tmp/slow_answers' '$tmp/slow'" /dev/null </dev/null | tr -d '\r' >"$tmp/out"
    has "progress on a terminal" "[0-9]*/40 lines, [0-9.]* tokens/s, 0:[0-9][0-9] left"
    script -qec "'$TGEN' batch -q -t 1 --parallel 4 --cpu scalar --restart -o '$tmp/slow_answers' '$tmp/slow'" /dev/null </dev/null >"$tmp/out"
    if [ -s "$tmp/out" ]; then fail "-q" "$(peek "$tmp/out")"; else ok "-q"; fi
else
    skip "progress on a terminal" "there is no script(1)"
fi

finish
