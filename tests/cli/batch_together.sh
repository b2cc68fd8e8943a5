#!/bin/sh
# tgen batch has many lines at work at once: beginnings in common computed once, memory that is short, layers with windows,
# long prompts among short ones. None of it may be seen in an answer.
. tests/cli/lib.sh

# A hundred lines: short and long prompts, some with one of two beginnings in common by turns, short and long answers.
awk 'BEGIN {
    for (w = 0; w < 26; w++) shared = shared sprintf("The %d. king had %d dogs. ", w, w * 7 % 11)
    for (i = 1; i <= 100; i++) {
        text = i % 3 == 0 ? (i % 2 ? "So. " : "") shared sprintf("Then %d", i) : i % 7 == 0 ? substr(shared, 1, 40 * i % 600) : sprintf("Once there was a %d", i)
        printf "{\"custom_id\":\"n%d\",\"prompt\":\"%s\",\"max_tokens\":%d,\"temperature\":%s%s}\n", i, text, 1 + i * 7 % 40, i % 2 ? "0" : "1", i % 5 ? "" : ",\"logprobs\":1"
    }
}' >"$tmp/lines"

succeeds "one after another" batch -q --parallel 1 --ordered "$tmp/lines"
cp "$tmp/out" "$tmp/expected"

# agrees NAME OPTIONS...: the same answers.
agrees() {
    name=$1
    shift
    run batch --ordered --stats "$@" "$tmp/lines"
    if [ $code -ne 0 ]; then
        fail "$name" "exit $code: $(peek "$tmp/err")"
    else
        same "$name" "$tmp/expected" "$tmp/out"
    fi
}
stat_of() { sed -n "s/.*\"$1\":\([0-9.e-]*\).*/\1/p" "$tmp/err"; }
at_least() {
    if awk -v a="$2" -v b="$3" 'BEGIN { exit !(a >= b) }'; then ok "$1"; else fail "$1" "$2, not $3"; fi
}
agrees "as many at once as it likes"
at_least "beginnings are shared" "$(stat_of prompt_tokens_shared)" 9000
at_least "steps are few" 300 "$(stat_of steps)"
at_least "lines go together" "$(stat_of lines_per_step)" 10
for n in 2 7 32 200; do agrees "$n at once" --parallel $n; done
agrees "3 threads" -t 3
agrees "one thread" -t 1 --parallel 16
sort -r "$tmp/lines" >"$tmp/lines_back"
run batch "$tmp/lines_back"
sort "$tmp/out" >"$tmp/sorted_out"
sort "$tmp/expected" >"$tmp/sorted"
same "another order" "$tmp/sorted" "$tmp/sorted_out"

# Memory for a few lines, and just for the longest.
agrees "little memory" --kv-memory 2M
agrees "less memory" --kv-memory 1M
at_least "fewer lines at once" 20 "$(stat_of lines_per_step)"
run batch --kv-memory 300K --ordered "$tmp/lines"
if [ $code -eq 1 ] && grep -q '"custom_id":"n3","line":3,"error":"prompt and answer of up to [0-9]* tokens exceed --kv-memory' "$tmp/out"; then
    ok "a line for which memory never suffices"
else
    fail "a line for which memory never suffices" "exit $code: $(peek "$tmp/err")"
fi
grep -v '"error"' "$tmp/out" >"$tmp/some"
if [ "$(wc -l <"$tmp/some")" -gt 40 ] && [ -z "$(sort "$tmp/some" | comm -23 - "$tmp/sorted")" ]; then
    ok "the others are answered as ever"
else
    fail "the others are answered as ever" "$(wc -l <"$tmp/some") lines"
fi
refuses "no memory at all" 2 "--kv-memory must be " batch --kv-memory 1 "$tmp/lines"
least=$(sed 's/.* must be \([0-9]*\) bytes.*/\1/' "$tmp/err")
refuses "one byte less" 2 "--kv-memory must be $least bytes at least" batch --kv-memory $((least - 1)) "$tmp/lines"
printf '{"prompt":"A","max_tokens":1}\n' >"$tmp/short"
succeeds "just enough" batch --kv-memory "$least" "$tmp/short"

# More than there is: 1024 lines want a gigabyte of pages.
if (ulimit -v 300000 && "$TGEN" --version) >/dev/null 2>&1; then
    (ulimit -v 300000 && "$TGEN" batch -t 1 --parallel 1024 --kv-memory 2G "$tmp/short" </dev/null 2>"$tmp/err" >"$tmp/out")
    code=$?
    if [ $code -eq 1 ] && grep -q '^tgen: [0-9]* MiB for the KV cache .* --kv-memory sets less$' "$tmp/err"; then
        ok "memory that is not to be had"
    else
        fail "memory that is not to be had" "exit $code: $(peek "$tmp/err")"
    fi
else
    skip "memory that is not to be had" "this program takes more at once"
fi

# Layers with windows, whose past is gone where another line would begin alike.
for window in 24 100; do
    copy_model "$tmp/window$window"
    sed "s/\"model_type\": \"llama\"/\"model_type\": \"mistral\", \"sliding_window\": $window/" "$tales/config.json" >"$tmp/window$window/config.json"
    succeeds "a window of $window" batch -q -m "$tmp/window$window" --parallel 1 --ordered "$tmp/lines"
    if cmp -s "$tmp/out" "$tmp/expected"; then fail "a window of $window matters" "it does not"; else ok "a window of $window matters"; fi
    cp "$tmp/out" "$tmp/expected_window"
    for n in 5 32; do
        succeeds "a window of $window, $n at once" batch -q -m "$tmp/window$window" --parallel $n --ordered "$tmp/lines"
        same "a window of $window, the same $n at once" "$tmp/expected_window" "$tmp/out"
    done
    # Every slot has its windows. Where there is no memory for those of 64 lines, fewer go at once, unless they are asked for.
    refuses "windows of 64" 2 "where --parallel is 64" batch -m "$tmp/window$window" --kv-memory 4M --parallel 64 "$tmp/lines"
    succeeds "fewer than 64" batch -q -m "$tmp/window$window" --kv-memory 4M --ordered "$tmp/lines"
    same "fewer than 64, the same" "$tmp/expected_window" "$tmp/out"
done

# A long prompt does not hold up those behind it, nor they it: all are under way before the first has its answer.
awk 'BEGIN {
    for (i = 1; i <= 40; i++) {
        text = ""
        for (w = 0; w < (i % 4 == 1 ? 150 : 2); w++) text = text sprintf("%d ", (w * 31 + i * 17) % 97)
        printf "{\"prompt\":\"%s\",\"max_tokens\":4,\"ignore_eos\":true}\n", text
    }
}' >"$tmp/mixed"
run batch --parallel 8 "$tmp/mixed"
sed 's/{"custom_id":\([0-9]*\),.*/\1/' "$tmp/out" >"$tmp/sequence"
if awk '{ if ($1 - NR > 16 || NR - $1 > 16) exit 1 }' "$tmp/sequence" && [ "$(wc -l <"$tmp/sequence")" -eq 40 ]; then
    ok "long and short prompts, none left behind"
else
    fail "long and short prompts" "$(peek "$tmp/sequence")"
fi

finish
