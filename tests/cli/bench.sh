#!/bin/sh
# tgen bench: what it prints, never how fast it was.
. tests/cli/lib.sh

number='[0-9][0-9.e+]*'

# result NAME WEIGHTS THREADS DEPTH: the pattern of a member of "results".
result() {
    printf '{"test":"%s","weights":"%s","threads":%s,"depth":%s,' "$1" "$2" "$3" "$4"
    printf '"tokens_per_second":%s,"min":%s,"max":%s,"fraction_of_limit":%s}' "$number" "$number" "$number" "$number"
}

succeeds "--json" bench --json -p 3 -n 2 -r 2 -t 1,2 --cpu scalar
machine="{\"machine\":{\"cpu\":\"[^\"]*\",\"level\":\"scalar\",\"threads\":2,\"read_gb_per_s\":$number,\"f32_gflops\":$number"
results=
for threads in 1 2; do
    for test in pp3 tg2; do
        results="$results${results:+,}$(result $test stored $threads 0)"
    done
done
has "--json is what the manual says" "^$machine,\"bf16_gflops\":null,\"int8_gops\":null},\"results\":\\[$results\\]}\$"

succeeds "--csv" bench --csv -p 4 -n 0 -r 3 -t 1 --depth 0,5 --kv q8
has "a line of names" '^test,weights,threads,depth,tokens_per_second,min,max,fraction_of_limit$'
for depth in 0 5; do
    has "a line of values at $depth" "^pp4,stored,1,$depth,$number,$number,$number,$number\$"
done
if [ "$(wc -l <"$tmp/out")" -eq 3 ]; then ok "no test of no tokens"; else fail "no test of no tokens" "$(peek "$tmp/out")"; fi
if awk -F, 'NR > 1 && !($6 <= $5 && $5 <= $7 && $8 > 0) { exit 1 }' "$tmp/out"; then
    ok "the median lies between"
else
    fail "the median lies between" "$(peek "$tmp/out")"
fi

succeeds "a table" bench -p 0 -n 3 -r 3 -t 1 --depth 500
has "it names the limits" '^limits: reads [0-9.]* GB/s, f32 [0-9.]* GFLOP/s'
has "it has the test" '^tg3  *stored  *1  *500  *[0-9.]*  *[0-9.]*  *[0-9.]*  *[0-9.]* %$'

succeeds "weights in three forms" bench --csv -p 2 -n 0 -r 1 -t 1 -w stored,q8,q4
if [ "$(cut -d, -f1,2 "$tmp/out" | tail -n +2 | tr '\n' ' ')" = "pp2,stored pp2,q8 pp2,q4 " ]; then
    ok "they come in the order that was asked for"
else
    fail "they come in the order that was asked for" "$(peek "$tmp/out")"
fi

# Ctrl-C amid many tests; slow machines get more time.
if env --default-signal=INT true 2>/dev/null; then
    many=$(seq -s, 16)
    for seconds in 2 8 32; do
        env --default-signal=INT "$TGEN" bench --csv -p 0 -n "$many" --depth "$many" -r 1 -t 1 </dev/null >"$tmp/out" 2>"$tmp/err" &
        sleep "$seconds"
        kill -INT $! 2>/dev/null
        wait $!
        code=$?
        n_tests=$(grep -c '^tg' "$tmp/out")
        [ "$n_tests" -gt 0 ] && break
    done
    if [ $code -eq 130 ] && [ "$n_tests" -gt 0 ] && [ "$n_tests" -lt 256 ] && [ ! -s "$tmp/err" ]; then
        ok "Ctrl-C leaves what was measured"
    else
        fail "Ctrl-C leaves what was measured" "exit $code, $n_tests tests, $(peek "$tmp/err")"
    fi
else
    skip "Ctrl-C" "this env(1) cannot reset signals"
fi

refuses "a prompt beyond the model" 4 "a context of 513 tokens" bench -p 513 -n 0
refuses "one of many beyond the model" 4 "a context of 520 tokens" bench -p 8 --depth 0,512
refuses "nothing to measure" 2 "there is nothing to measure" bench -p 0 -n 0,0
refuses "two formats" 2 "exclude each other" bench --json --csv
refuses "words" 2 "bench takes no words" bench "$tales"
refuses "a dash" 2 "bench takes no words" bench -
refuses "a level that is none" 2 "is no level" bench -p 1 -n 0 --cpu sse9
for value in '' , 1, ,1 1,,2 1,x -1 1.5 99999999999; do
    refuses "-p $value" 2 "--n-prompt: " bench "-p$value" --n-prompt="$value"
done
refuses "-t 0" 2 '--threads: "0" is not a whole number between 1 and' bench -t 0
refuses "-t 1,0" 2 '--threads: "0" is not a whole number' bench -t 1,0
for value in '' , q8, q5 'q8 q4' stored:q8; do
    refuses "-w $value" 2 "--weights: " bench --weights="$value"
done
refuses "-r 0" 2 "--repetitions: " bench -r 0
refuses "more numbers than there may be" 2 "has more than 16 parts" bench -p 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17
refuses "another command's option" 2 "--temp is no option of tgen bench" bench --temp 0
refuses "its option elsewhere" 2 "--n-gen is no option of tgen generate" --n-gen 5 hi

finish
