#!/bin/sh
# What goes where: write errors, closed pipes, Ctrl-C, terminals, colour.
. tests/cli/lib.sh

once="Once upon a time"

# ---- a stdout that takes nothing -----------------------------------------------------------------------------------

# fails_to_write NAME ARGS...: with /dev/full as stdout, exit 1 and a sentence.
fails_to_write() {
    name=$1
    shift
    "$TGEN" "$@" </dev/null >/dev/full 2>"$tmp/err"
    code=$?
    if [ $code -eq 1 ] && grep -qx "tgen: cannot write to standard output: No space left on device" "$tmp/err"; then
        ok "/dev/full: $name"
    else
        fail "/dev/full: $name" "exit $code: $(peek "$tmp/err")"
    fi
}
fails_to_write generate "$once"
fails_to_write "generate --json" --json "$once"
fails_to_write "generate --print-ids" --print-ids "$once"
fails_to_write "generate --echo" --echo -n 0 "$once"
fails_to_write score score "$once"
fails_to_write tokenize tokenize "$once"
fails_to_write detokenize detokenize 574
fails_to_write inspect inspect
fails_to_write --help --help
fails_to_write --version --version
fails_to_write --completions --completions bash

# too_large NAME FILE ARGS...: a limit on the size of files is like a full disk, and no reason to be killed.
too_large() {
    name=$1 file=$2
    shift 2
    (
        cd "$tmp" && ulimit -f 1 # blocks of 512 bytes
        exec "$TGEN" "$@" </dev/null >"$tmp/out" 2>"$tmp/err"
    )
    code=$?
    if [ $code -eq 1 ] && grep -qx "tgen: cannot write to $file: File too large" "$tmp/err"; then
        ok "a limit: $name"
    else
        fail "a limit: $name" "exit $code: $(peek "$tmp/err")"
    fi
    rm -f "$tmp/out"
}
too_large generate "standard output" --ignore-eos -n 400 "$once"
too_large tokenize "standard output" tokenize "$(seq -s ' ' 600)"
too_large "score --logits" logits score --logits logits "$once"
too_large quantize ".*/model.safetensors" quantize -w q8 -o dir
if ls -d "$tmp"/dir* >/dev/null 2>&1; then fail "a limit leaves no directory" "$(ls -d "$tmp"/dir*)"; else ok "a limit leaves no directory"; fi

"$TGEN" -n 3 "$once" </dev/null >&- 2>"$tmp/err"
code=$?
if [ $code -eq 1 ] && grep -q "cannot write to standard output: Bad file descriptor" "$tmp/err"; then
    ok "a closed stdout"
else
    fail "a closed stdout" "exit $code: $(peek "$tmp/err")"
fi
"$TGEN" -m "$tmp/none" "$once" </dev/null 2>&-
code=$?
if [ $code -eq 3 ]; then ok "a closed stderr"; else fail "a closed stderr" "exit $code"; fi

# ---- a reader that goes away ---------------------------------------------------------------------------------------

copy_model "$tmp/long"
sed 's/"max_position_embeddings": 512/"max_position_embeddings": 30000/' "$tales/config.json" >"$tmp/long/config.json"

{
    "$TGEN" -m "$tmp/long" --ignore-eos -n 20000 "$once" </dev/null 2>"$tmp/err"
    echo $? >"$tmp/code"
} | head -c 10 >"$tmp/out"
if [ "$(wc -c <"$tmp/out")" -eq 10 ] && [ ! -s "$tmp/err" ] && [ "$(cat "$tmp/code")" -eq 141 ]; then
    ok "a closed pipe ends it quietly"
else
    fail "a closed pipe ends it quietly" "exit $(cat "$tmp/code"): $(peek "$tmp/err")"
fi

# ---- Ctrl-C --------------------------------------------------------------------------------------------------------

# interrupted SECONDS ARGS...: SIGINT after that time, in the midst of a text of many thousand tokens, and another one at
# once: timeout signals the process and then its group.
interrupted() {
    seconds=$1
    shift
    timeout --preserve-status --signal=INT "$seconds" "$TGEN" -m "$tmp/long" --ignore-eos -n 20000 "$@" "$once" \
        </dev/null >"$tmp/out" 2>"$tmp/err"
    code=$?
}
if command -v timeout >/dev/null; then
    interrupted 1 --stats
    if [ $code -eq 130 ] && [ -s "$tmp/out" ]; then ok "SIGINT ends with 130"; else fail "SIGINT ends with 130" "exit $code: $(peek "$tmp/err")"; fi
    has "SIGINT still tells --stats" "^decode" "$tmp/err"
    if grep -q '^tgen: ' "$tmp/err"; then fail "SIGINT says nothing" "$(peek "$tmp/err")"; else ok "SIGINT says nothing"; fi
    if iconv -f utf-8 -t utf-8 "$tmp/out" >/dev/null 2>&1; then ok "SIGINT ends after a whole character"; else fail "SIGINT ends after a whole character" "$(tail -c 20 "$tmp/out")"; fi
    interrupted 1 --json
    has "SIGINT and --json" '"finish_reason":"interrupted"'
    if [ $code -eq 130 ]; then ok "SIGINT and --json end with 130"; else fail "SIGINT and --json end with 130" "exit $code"; fi
    (ulimit -s 256 && interrupted 1 && exit $code) # on a thread that is not the first
    code=$?
    if [ $code -eq 130 ] && [ -s "$tmp/out" ]; then ok "SIGINT with a small stack"; else fail "SIGINT with a small stack" "exit $code: $(peek "$tmp/err")"; fi
    (
        ulimit -s 256
        sleep 3 | timeout --foreground --preserve-status --signal=INT 1 "$TGEN" batch -q
    ) >"$tmp/out" 2>"$tmp/err"
    code=$?
    if [ $code -eq 130 ]; then ok "SIGINT while it waits, with a small stack"; else fail "SIGINT while it waits, with a small stack" "exit $code: $(peek "$tmp/err")"; fi
else
    skip "SIGINT" "there is no timeout(1)"
fi

# ---- weights that go away ------------------------------------------------------------------------------------------

# started COMMAND...: runs it in the background, and returns when it has begun to answer.
started() {
    : >"$tmp/out"
    "$@" </dev/null >"$tmp/out" 2>"$tmp/err" &
    program=$!
    while kill -0 $program 2>/dev/null && [ ! -s "$tmp/out" ]; do sleep 0.02; done
}
cp "$tales/model.safetensors" "$tmp/weights"
ln -sf "$tmp/weights" "$tmp/long/model.safetensors"
started "$TGEN" -m "$tmp/long" --ignore-eos -n 20000 "$once"
: >"$tmp/weights"
wait $program
code=$?
if [ $code -eq 1 ] && grep -qx "tgen: $tmp/long: model.safetensors: was cut short while in use, or its disk fails" "$tmp/err"; then
    ok "weights that are cut short"
else
    fail "weights that are cut short" "exit $code: $(peek "$tmp/err")"
fi
cp "$tales/model.safetensors" "$tmp/weights"
started "$TGEN" -m "$tmp/long" --ignore-eos -n 20000 "$once"
kill -s BUS $program
wait $program 2>/dev/null
code=$?
if [ $code -eq 135 ] && [ ! -s "$tmp/err" ]; then ok "SIGBUS for another reason"; else fail "SIGBUS for another reason" "exit $code: $(peek "$tmp/err")"; fi

# ---- Ctrl-C with nobody reading ------------------------------------------------------------------------------------

# stdout is a pipe that nobody empties.
if env --default-signal=INT true 2>/dev/null; then
    mkfifo "$tmp/pipe"
    awk 'BEGIN { for (i = 0; i < 20000; i++) printf "the " }' >"$tmp/echoed"
    sleep 10 <>"$tmp/pipe" &
    sleeper=$!
    env --default-signal=INT "$TGEN" -m "$tmp/long" --echo -f "$tmp/echoed" >"$tmp/pipe" 2>"$tmp/err" &
    program=$!
    sleep 1
    kill -INT $program
    (sleep 5 && kill -KILL $program) 2>/dev/null &
    wait $program
    code=$?
    if [ $code -eq 130 ] && [ ! -s "$tmp/err" ]; then ok "SIGINT with nobody reading"; else fail "SIGINT with nobody reading" "exit $code: $(peek "$tmp/err")"; fi
    kill $sleeper 2>/dev/null
else
    skip "SIGINT with nobody reading" "this env(1) cannot reset signals"
fi

# ---- terminals -----------------------------------------------------------------------------------------------------

# on_terminal COMMAND: what it shows on a terminal, carriage returns taken out.
on_terminal() {
    script -qec "$1" /dev/null </dev/null | tr -d '\r' >"$tmp/out"
}
if command -v script >/dev/null; then
    on_terminal "'$TGEN' --temp 0 -n 2 '$once' </dev/null"
    printf ', there\n' >"$tmp/expected"
    same "a terminal gets a final newline" "$tmp/expected" "$tmp/out"
    printf 'a line\n' >"$tmp/line"
    on_terminal "'$TGEN' --echo -n 0 -f '$tmp/line' </dev/null"
    same "but not a second one" "$tmp/line" "$tmp/out"
    on_terminal "'$TGEN' -n 0 '$once' </dev/null"
    if [ -s "$tmp/out" ]; then fail "nor behind nothing" "$(peek "$tmp/out")"; else ok "nor behind nothing"; fi
    on_terminal "'$TGEN' -m '$tmp/none' hi </dev/null"
    has "an error is coloured on a terminal" "^$(printf '\033\\[1;31m')tgen:$(printf '\033\\[0m') cannot"
    on_terminal "NO_COLOR=1 '$TGEN' -m '$tmp/none' hi </dev/null"
    has "but not with NO_COLOR" '^tgen: cannot'
    on_terminal "TERM=dumb '$TGEN' -m '$tmp/none' hi </dev/null"
    has "nor on a dumb terminal" '^tgen: cannot'
    on_terminal "'$TGEN' tokenize --pieces '$once' </dev/null"
    has "pieces are coloured alternately" "<|endoftext|> $(printf '\033\\[36m')Once$(printf '\033\\[0m') "
    awk 'BEGIN { for (i = 0; i < 270; i++) printf "the " }' >"$tmp/slow"
    on_terminal "'$TGEN' --cpu scalar -t 1 -n 0 -f '$tmp/slow' </dev/null"
    has "a slow prompt shows how far it is" "prompt 256/27[0-9]"
else
    skip "terminals" "there is no script(1)"
fi
run -m "$tmp/none" hi
has "no colour off a terminal" '^tgen: cannot' "$tmp/err"

# Names out of the file system cannot steer the terminal.
escape=$tmp/$(printf '\033[31mred')
copy_model "$escape"
run --stats -n 1 -m "$escape" hi
has "nor do statistics" "^load .*/?\[31mred, " "$tmp/err"
refuses "an escape in a name" 3 "cannot open $tmp/?[31mred?: No such file" -m "$tmp/$(printf '\033[31mred\007')" hi
bad=$(printf 'a\302\233b\303c')
: >"$escape/$bad"
run inspect -m "$escape"
has "nor a file beside the model" '^  a??b?c  *0 bytes$'
has "nor its directory" '/?\[31mred$'
refuses "half a character of an option" 2 "unknown option -?; see" "-$(printf '\303\251')"
refuses "half a character behind a cut" 2 '56789?" is no token id' detokenize "1234567890123456789$(printf '\303\251')"

finish
