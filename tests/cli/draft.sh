#!/bin/sh
# --draft: the text of plain decoding byte for byte, in fewer passes where it repeats itself.
. tests/cli/lib.sh

# A tale, again, and its beginning; a sentence eight times; and a text that repeats nothing.
tale="The king had a red ball. One day, the ball rolled into the river. The king was sad. A big frog saw the ball."
printf '%s %s The king had a red' "$tale" "$tale" >"$tmp/tale"
for i in 1 2 3 4 5 6 7 8; do printf 'The cat sat on the mat and ate a big red apple. '; done >"$tmp/cats"
printf 'Once upon a time' >"$tmp/once"

# ---- the same text ---------------------------------------------------------------------------------------------------

# as_plain PROMPT ARGS...: --print-ids, for every number of guesses and some numbers of threads.
as_plain() {
    prompt=$1
    shift
    run --draft off --print-ids -f "$tmp/$prompt" -n 120 "$@"
    cp "$tmp/out" "$tmp/plain"
    if [ $code -ne 0 ] || [ ! -s "$tmp/out" ]; then fail "$prompt $*" "exit $code: $(peek "$tmp/err")"; fi
    for case in "1 -t 1" "2 -t 2" "3 -t 3" "4 -t 1" "7 -t 2" "12 -t 1" "16 -t 3" "auto -t 1" "auto -t 2"; do
        # shellcheck disable=SC2086 # split on purpose
        run --draft $case --print-ids -f "$tmp/$prompt" -n 120 "$@"
        cmp -s "$tmp/plain" "$tmp/out" || {
            fail "$prompt $* --draft $case" "another text"
            return
        }
    done
    ok "$prompt $*"
}
for prompt in tale cats once; do
    as_plain $prompt --temp 0
    as_plain $prompt --temp 0 --ignore-eos --repeat-penalty 1.1
    as_plain $prompt --seed 1
    as_plain $prompt --seed 2 --temp 1.5 --top-k 0 --ignore-eos
    as_plain $prompt --seed 3 --temp 0.3 --frequency-penalty 0.2 --repeat-last-n 20
done

# Every number of guesses, at every end that a text can have.
for guesses in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do
    for end in "-n 33 --ignore-eos" "--stop ball" "--stop .\"" "-c 130" "--echo -n 50 --special"; do
        # shellcheck disable=SC2086 # split on purpose
        run --draft off --temp 0 -f "$tmp/cats" $end
        [ -s "$tmp/out" ] || fail "a text to compare with --draft $guesses $end" "$(peek "$tmp/err")"
        mv "$tmp/out" "$tmp/plain"
        # shellcheck disable=SC2086
        run --draft $guesses --temp 0 -f "$tmp/cats" $end
        cmp -s "$tmp/plain" "$tmp/out" || fail "--draft $guesses $end" "$(peek "$tmp/out")"
    done
done
[ $n_failed -ne 0 ] || ok "the same text at every end"

run --draft off --json --seed 4 -n 80 -f "$tmp/cats"
sed 's/,"draft".*//' "$tmp/out" >"$tmp/plain"
run --draft 5 --json --seed 4 -n 80 -f "$tmp/cats"
sed 's/,"draft".*//' "$tmp/out" >"$tmp/json"
same "--json" "$tmp/plain" "$tmp/json"

# ---- fewer passes ----------------------------------------------------------------------------------------------------

# The greedy text goes round in a loop in the end.
run --json --temp 0 --ignore-eos -n 300 --draft off -f "$tmp/once"
if [ "$(field passes)" = 299 ] && [ "$(field drafted)" = 0 ]; then ok "a pass for each token but the first"; else fail "a pass for each token but the first" "$(peek "$tmp/out")"; fi
run --json --temp 0 --ignore-eos -n 300 --draft 8 -f "$tmp/once"
if [ "$(field passes)" -lt 250 ] && [ "$(field accepted)" -eq $((299 - $(field passes))) ]; then
    ok "fewer with --draft 8"
else
    fail "fewer with --draft 8" "$(tail -c 200 "$tmp/out")"
fi
# How many by default is a matter of speed, and that of what else the machine does.
run --json --temp 0 --ignore-eos -n 300 -f "$tmp/once"
if [ "$(field drafted)" -gt 0 ]; then ok "guesses by default"; else fail "guesses by default" "$(tail -c 200 "$tmp/out")"; fi
run --stats --temp 0 --ignore-eos -n 100 --draft 4 -f "$tmp/cats"
has "--stats tells of them" '^draft  *[0-9]* of [0-9]* guesses right, [0-9]* passes$' "$tmp/err"
run --stats --temp 0 -n 20 --draft off -f "$tmp/cats"
if grep -q ^draft "$tmp/err"; then fail "--stats without" "$(peek "$tmp/err")"; else ok "--stats without"; fi

# ---- values ----------------------------------------------------------------------------------------------------------

for value in x 17 -1 1.5 '' OFF aut; do
    refuses "--draft $value" 2 "--draft: \"$value\" is neither a whole number between 0 and 16 nor one of auto|off" "--draft=$value" hi
done
refuses "--draft without a value" 2 "--draft needs a value: N|auto|off" hi --draft
refuses "score drafts nothing" 2 "--draft is no option of tgen score" score --draft 3 hi

finish
