#!/bin/sh
# tgen generate: golden texts, what ends an answer, which sampling counts, ids and JSON.
. tests/cli/lib.sh

once="Once upon a time"

# ---- golden texts --------------------------------------------------------------------------------------------------

succeeds "greedy" --temp 0 "$once"
same "the greedy text" tests/cli/golden/tales_greedy.txt "$tmp/out"
succeeds "--seed 1 with f32" --cpu scalar --seed 1 "$once" # some levels round activations to bf16
same "the text of --seed 1" tests/cli/golden/tales_seed1.txt "$tmp/out"
succeeds "--seed 1" --seed 1 "$once"
cp "$tmp/out" "$tmp/seed1"
for threads in 1 2 3; do
    succeeds "-t $threads" -t $threads --seed 1 "$once"
    same "the same text on $threads threads" "$tmp/seed1" "$tmp/out"
done
run --seed 2 "$once"
if cmp -s "$tmp/seed1" "$tmp/out"; then fail "another seed" "the same text"; else ok "another seed"; fi
run --json -n 1 "$once"
seed=$(field seed)
run --json -n 1 "$once"
if [ "$seed" != "$(field seed)" ]; then ok "a random seed"; else fail "a random seed" "$seed twice"; fi
run --json --seed 18446744073709551615 -n 1 "$once"
if [ "$(field seed)" = 18446744073709551615 ]; then ok "the seed is told"; else fail "the seed is told" "$(field seed)"; fi

# A text whose random seed was told can be had again.
run --json -n 20 "$once"
seed=$(field seed) ids=$(sed 's/.*"ids":\[\([^]]*\).*/\1/' "$tmp/out")
run --json -n 20 --seed "$seed" "$once"
if [ "$ids" = "$(sed 's/.*"ids":\[\([^]]*\).*/\1/' "$tmp/out")" ]; then ok "a told seed"; else fail "a told seed" "$seed"; fi

# ---- what ends an answer -------------------------------------------------------------------------------------------

prints "-n 0 reads the prompt only" "" -n 0 "$once"
prints "-n 4" ", there was a" --temp 0 -n 4 "$once"
prints "--stop" ", there was a little" --temp 0 --stop ' girl' "$once"
prints "--stop in the middle of a token" ", there was a li" --temp 0 --stop 'ttle' "$once"
prints "--stop across tokens" ", there was" --temp 0 --stop ' a little girl' "$once"
prints "the --stop that is complete first" ", there was" --temp 0 --stop 'girl' --stop ' a' "$once"
prints "what only looks like --stop is printed" ", there was a" --temp 0 -n 4 --stop ' a lion' "$once"
prints "--stop does not see the prompt" "$once, there was" --temp 0 -n 3 --echo --stop upon "$once"
prints "--echo" "$once, there" --temp 0 -n 2 --echo "$once"

# reason NAME EXPECTED ARGS...
reason() {
    name=$1 want=$2
    shift 2
    run --json --temp 0 "$@"
    if [ "$(field finish_reason)" = "$want" ]; then ok "$name"; else fail "$name" "$(peek "$tmp/out")"; fi
}
reason "finish_reason length" length -n 5 "$once"
reason "finish_reason length at -n 0" length -n 0 "$once"
reason "finish_reason stop at a string" stop -n 50 --stop girl "$once"
reason "finish_reason length at the end of the context" length -c 8 "$once"
run --temp 0 --print-ids -c 8 "$once"
if [ "$(wc -l <"$tmp/out")" -eq 3 ]; then ok "prompt and answer share -c"; else fail "prompt and answer share -c" "$(peek "$tmp/out")"; fi
run --temp 0 --print-ids -n 600 --ignore-eos "$once"
if [ "$(wc -l <"$tmp/out")" -eq 507 ]; then ok "-n beyond the model's context"; else fail "-n beyond the model's context" "$(wc -l <"$tmp/out")"; fi
run -c 5 "$once"
has "a full context is noted" "tgen: note: the prompt fills the context of 5 tokens" "$tmp/err"

refuses "a prompt longer than -c" 4 "the prompt has 5 tokens, more than the context of 4" -c 4 "$once"
awk 'BEGIN { for (i = 0; i < 600; i++) printf "the " }' >"$tmp/long"
refuses "a prompt longer than the model's context" 4 ", more than the context of 512" -f "$tmp/long"
refuses "-c beyond the model" 4 "512" -c 513 "$once"

# ---- ending by id --------------------------------------------------------------------------------------------------

# With token 12 (",") as eos, the greedy text of the prompt ends at once.
copy_model "$tmp/eos"
# sets NAME JSON: generation_config.json of the copy.
sets() {
    printf '%s\n' "$2" >"$tmp/eos/generation_config.json"
}
sets eos '{"eos_token_id": 12}'
prints "eos is not printed" "" -m "$tmp/eos" --temp 0 -n 4 "$once"
prints "--special prints it" "," -m "$tmp/eos" --temp 0 -n 4 --special "$once"
prints "--ignore-eos" ", there was a" -m "$tmp/eos" --temp 0 -n 4 --ignore-eos "$once"
reason "finish_reason stop at eos" stop -m "$tmp/eos" -n 4 "$once"
# A stop string that is a special token, which is no text, ends it as well.
sets another '{"eos_token_id": 4095}'
for special in "" --special; do
    # shellcheck disable=SC2086 # an option or none
    reason "a special token as stop string $special" stop -m "$tmp/eos" --temp 0 -n 400 $special --stop '<|endoftext|>' "$once"
done
if grep -q endoftext "$tmp/out"; then fail "it is not printed" "$(peek "$tmp/out")"; else ok "it is not printed"; fi
reason "--ignore-eos leaves it" stop -m "$tmp/eos" --temp 0 -n 400 --ignore-eos --stop '<|endoftext|>' "$once"
sets list '{"eos_token_id": [7, 415, 9]}'
prints "eos may be a list" "," -m "$tmp/eos" --temp 0 -n 4 "$once"

# ---- which sampling counts: flag > generation_config.json > default --------------------------------------------------

greedy=", there was a"
sets greedy '{"temperature": 0}'
prints "the file's temperature" "$greedy" -m "$tmp/eos" --seed 3 -n 4 "$once"
sets top_k '{"top_k": 1}'
prints "the file's top_k" "$greedy" -m "$tmp/eos" --seed 3 -n 4 "$once"
sets top_p '{"top_p": 0.000001}'
prints "the file's top_p" "$greedy" -m "$tmp/eos" --seed 3 -n 4 "$once"
sets min_p '{"min_p": 1}'
prints "the file's min_p" "$greedy" -m "$tmp/eos" --seed 3 -n 4 "$once"
sets top_k '{"top_k": -1, "temperature": 0}'
prints "a top_k of -1 is all" "$greedy" -m "$tmp/eos" --seed 3 -n 4 "$once"
sets do_sample '{"do_sample": false, "temperature": 5}'
prints "do_sample false is greedy" "$greedy" -m "$tmp/eos" --seed 3 -n 4 "$once"
run -m "$tmp/eos" --seed 3 -n 40 --top-k 0 "$once"
head -c 13 "$tmp/out" >"$tmp/start"
printf %s "$greedy" >"$tmp/expected"
if cmp -s "$tmp/start" "$tmp/expected"; then fail "a flag asks for sampling" "greedy"; else ok "a flag asks for sampling"; fi
sets hot '{"temperature": 50, "top_k": 0, "top_p": 1, "min_p": 0}'
prints "a flag wins" "$greedy" -m "$tmp/eos" --temp 0 -n 4 "$once"
prints "one flag wins over one member" "$greedy" -m "$tmp/eos" --top-k 1 -n 4 "$once"
for flag in "--top-k 1" "--top-p 0" "--min-p 1" "--temp 0.0001"; do
    # shellcheck disable=SC2086 # split on purpose
    prints "$flag leaves the likeliest" "$greedy" --seed 3 -n 4 $flag "$once"
done
succeeds "--typical-p 0 leaves one" --seed 3 -n 4 --typical-p 0 "$once"
sets none '{}'
run -m "$tmp/eos" --seed 1 --json -n 30 "$once"
sed 's/.*"ids"\(.*\),"finish.*/\1/' "$tmp/out" >"$tmp/default"
run -m "$tmp/eos" --seed 1 --json -n 30 --temp 0.8 --top-k 40 --top-p 0.95 --min-p 0.05 "$once"
sed 's/.*"ids"\(.*\),"finish.*/\1/' "$tmp/out" >"$tmp/told"
same "the defaults are those of --help" "$tmp/told" "$tmp/default"

# The file's repetition_penalty looks back to the beginning, a flag's 64 tokens.
sets penalty '{"temperature": 0, "repetition_penalty": 1.1}'
run -m "$tmp/eos" -n 150 "$once"
cp "$tmp/out" "$tmp/of_file"
run --temp 0 --repeat-penalty 1.1 --repeat-last-n -1 -n 150 "$once"
same "the file's repetition_penalty looks back to the beginning" "$tmp/out" "$tmp/of_file"
run --temp 0 --repeat-penalty 1.1 -n 150 "$once"
cp "$tmp/out" "$tmp/of_flag"
if cmp -s "$tmp/of_file" "$tmp/of_flag"; then fail "a flag's looks back 64" "to the beginning"; else ok "a flag's looks back 64"; fi
run -m "$tmp/eos" --repeat-last-n 64 -n 150 "$once"
same "--repeat-last-n goes with the file's" "$tmp/of_flag" "$tmp/out"
sets ngrams '{"no_repeat_ngram_size": 3, "num_beams": 4}'
run -m "$tmp/eos" -n 1 "$once"
has "what is not followed is noted" '^tgen: note: generation_config.json asks for "no_repeat_ngram_size", which changes nothing here$' "$tmp/err"
has "and each other key" '^tgen: note: generation_config.json asks for "num_beams", which changes nothing here$' "$tmp/err"

# The greedy text says "a red ball" twice; with penalties the second one goes.
run --temp 0 -n 40 "$once"
cp "$tmp/out" "$tmp/plain"
for penalty in --repeat-penalty=1.5 --presence-penalty=3 --frequency-penalty=3; do
    run --temp 0 -n 40 $penalty "$once"
    if cmp -s "$tmp/out" "$tmp/plain"; then fail "$penalty" "changes nothing"; else ok "$penalty"; fi
    run --temp 0 -n 40 --repeat-last-n 0 $penalty "$once"
    same "$penalty over no token" "$tmp/plain" "$tmp/out"
done

# ---- ids and JSON --------------------------------------------------------------------------------------------------

prints "--print-ids" '12
415
' --temp 0 --print-ids -n 2 "$once"
prints "--print-ids --echo" '0
574
539
259
437
12
' --temp 0 --print-ids --echo -n 1 "$once"
prints "--ids" ", there" --temp 0 --ids "0 574 539 259 437" -n 2
prints "--ids with commas and newlines" ", there" --temp 0 --ids "0,574, 539
259	437" -n 2
prints "--ids --echo" "$once, there" --temp 0 --echo --ids "0 574 539 259 437" -n 2
prints "--ids adds no BOS" "$once" -n 0 --echo --ids "574 539 259 437" --special
prints "--print-ids ends at --stop" '12
415
293
' --temp 0 --print-ids --stop ' was' "$once"
prints "--no-bos" "574
539
259
437
" --no-bos --print-ids --echo -n 0 "$once"
prints "--special reads special tokens" '0
0
574
' --special --print-ids --echo -n 0 "<|endoftext|>Once"

run --temp 0 --json -n 2 "$once"
for part in '"prompt_tokens":5,' '"ids":\[12,415\]' '"text":", there"' '"finish_reason":"length"' '"seed":[0-9]' '"load_ms":[0-9]'; do
    has "--json has $part" "$part"
done
if [ "$(wc -l <"$tmp/out")" -eq 1 ]; then ok "--json is one line"; else fail "--json is one line" "$(peek "$tmp/out")"; fi
run --temp 0 --json --echo -n 2 "$once"
has "--json --echo" "\"text\":\"$once, there\""
run --temp 0 --json -n 0 -p '"\ é'
has "--json with nothing generated" '"ids":\[\],"text":""'
run --temp 0 --json --echo -n 0 -p "$(printf '"\\\n\t\001\377')"
has "--json is valid whatever the text" '"text":"\\"\\\\\\n\\t\\u0001'"$(printf '\357\277\275')"'"'
if command -v jq >/dev/null; then
    if jq -e .text "$tmp/out" >/dev/null; then ok "jq reads it"; else fail "jq reads it" "$(peek "$tmp/out")"; fi
else
    skip "jq reads it" "there is no jq"
fi

# A directory without a tokenizer.
copy_model "$tmp/bare"
rm "$tmp/bare/tokenizer.json"
prints "--ids --print-ids without a tokenizer" '12
415
' -m "$tmp/bare" --temp 0 -n 2 --print-ids --ids "0 574 539 259 437"
refuses "text without a tokenizer" 3 "no tokenizer" -m "$tmp/bare" "$once"
refuses "--ids without a tokenizer needs --print-ids" 3 "--print-ids needs none" -m "$tmp/bare" --ids 1
refuses "--stop without a tokenizer" 3 "no tokenizer" -m "$tmp/bare" --ids 1 --print-ids --stop x
succeeds "--json without a tokenizer" -m "$tmp/bare" --temp 0 -n 2 --json --ids "0 574 539 259 437"
has "--json without a tokenizer has no text" '"ids":\[12,415\],"text":null'
echo '{' >"$tmp/bare/tokenizer.json"
run -m "$tmp/bare" --temp 0 -n 2 --json --ids "0 574 539 259 437"
has "--json with a spoilt tokenizer has no text" '"ids":\[12,415\],"text":null'
has "--json with a spoilt tokenizer says so" '^tgen: note: no text: ' "$tmp/err"

# ---- --stats and -q ------------------------------------------------------------------------------------------------

run --stats --seed 5 -n 3 "$once"
for part in '^load  *[0-9.]* ms' '^prompt  *5 tokens in .* tokens/s$' '^decode  *2 tokens in .* tokens/s$' '^memory  *[0-9.]* MiB' '^seed  *5$'; do
    has "--stats has $part" "$part" "$tmp/err"
done
run -q -c 5 --stats --seed 5 "$once"
has "-q leaves --stats" '^seed  *5$' "$tmp/err"
if grep -q note "$tmp/err"; then fail "-q beside --stats" "$(peek "$tmp/err")"; else ok "-q beside --stats"; fi
succeeds "-q silences notes" -q -c 5 "$once"
succeeds "nothing on stderr by default" -n 3 "$once"

finish
