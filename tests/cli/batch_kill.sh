#!/bin/sh
# tgen batch is ended again and again: killed at random moments, interrupted, on a disk that is full. What is in the end
# in its output is what one undisturbed process writes, whatever happened on the way.
. tests/cli/lib.sh

KILLS=${KILLS:-200}

awk 'BEGIN { for (i = 1; i <= 40; i++)
    printf "{\"custom_id\":\"n%d\",\"prompt\":\"Once there was a %d\",\"max_tokens\":%d}\n", i, i, 1 + i % 4 }' >"$tmp/lines"
succeeds "undisturbed" batch -t 1 --ordered -o "$tmp/expected" "$tmp/lines"
sort "$tmp/expected" >"$tmp/sorted"

# How long an undisturbed process takes, in milliseconds: kills are spread over half of that.
begin=$(date +%s%N)
run batch -t 1 --parallel 2 --ordered "$tmp/lines"
took=$((($(date +%s%N) - begin) / 1000000))

# killed SIGNAL FILE: starts a job and ends it after a random time; whether it was ended is in $hit. Where a sanitizer looks
# for leaks at the end, kill -9 would hit that too, and it complains.
killed() {
    ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0 \
        "$TGEN" batch -q -t 1 --parallel 2 -o "$2" "$tmp/lines" </dev/null >/dev/null 2>>"$tmp/err" &
    program=$!
    random=$(od -An -N2 -tu2 /dev/urandom)
    sleep "$(awk -v r="$random" -v t="$took" 'BEGIN { printf "%.4f", r / 65536 * t / 2000 }')"
    kill -s "$1" $program 2>/dev/null
    wait $program 2>/dev/null
    hit=$?
}

# whole NAME FILE: but for its last line, which may be torn, it holds undisturbed answers, none twice.
whole() {
    [ -z "$(sed '$d' "$2" | sort | uniq -d)" ] || fail "$1" "a doubled answer"
    [ -z "$(sed '$d' "$2" | sort | comm -23 - "$tmp/sorted")" ] || fail "$1" "an answer that is not one of the expected"
}

# ---- kill -9 -------------------------------------------------------------------------------------------------------

: >"$tmp/err"
n_kills=0
n_jobs=0
n_midst=0 # kills of a process that had written something

# enough: kills, and some of them in the midst; chance may want more of them.
enough() {
    [ $n_kills -ge "$KILLS" ] && { [ $n_midst -ge $((KILLS / 4)) ] || [ $n_kills -ge $((4 * KILLS)) ]; }
}
while ! enough && [ $n_jobs -lt $((4 * KILLS)) ]; do
    rm -f "$tmp/answers"
    hit=137
    while [ $hit -eq 137 ] && ! enough; do
        before=$(wc -c 2>/dev/null <"$tmp/answers" || echo 0)
        killed KILL "$tmp/answers"
        if [ $hit -eq 137 ]; then
            n_kills=$((n_kills + 1))
            [ "$(wc -c 2>/dev/null <"$tmp/answers" || echo 0)" -eq "$before" ] || n_midst=$((n_midst + 1))
        fi
        [ ! -e "$tmp/answers" ] || whole "kill $n_kills" "$tmp/answers"
    done
    n_jobs=$((n_jobs + 1))
    "$TGEN" batch -q -t 1 -o "$tmp/answers" "$tmp/lines" </dev/null 2>>"$tmp/err"
    sort "$tmp/answers" | cmp -s - "$tmp/sorted" || fail "job $n_jobs" "not the undisturbed answers after $n_kills kills"
done
if [ $n_kills -ge "$KILLS" ] && [ ! -s "$tmp/err" ] && [ $n_failed -eq 0 ]; then
    ok "$n_kills kills, $n_jobs jobs, each as if undisturbed"
    if [ $n_midst -ge $((KILLS / 4)) ]; then ok "$n_midst of them in the midst"; else fail "kills in the midst" "only $n_midst"; fi
else
    fail "$n_kills kills" "$n_jobs jobs: $(peek "$tmp/err")"
fi

# ---- SIGTERM and SIGINT --------------------------------------------------------------------------------------------

if env --default-signal=INT true 2>/dev/null; then
    for signal in TERM INT; do
        rm -f "$tmp/answers"
        env --default-signal=INT "$TGEN" batch -t 1 --cpu scalar -o "$tmp/answers" "$tmp/lines" </dev/null 2>"$tmp/err" &
        program=$!
        while kill -0 $program 2>/dev/null && [ ! -s "$tmp/answers" ]; do sleep 0.02; done
        kill -s $signal $program
        wait $program
        code=$?
        if [ $code -eq 130 ] && grep -q '^tgen: note: interrupted with [0-9]* lines\{0,1\} answered; the same command goes on$' "$tmp/err"; then
            ok "SIG$signal ends it with 130"
        else
            fail "SIG$signal ends it with 130" "exit $code: $(peek "$tmp/err")"
        fi
        if [ "$(tail -c 1 "$tmp/answers" | od -An -c | tr -d ' ')" = '\n' ]; then ok "SIG$signal leaves whole lines"; else fail "SIG$signal leaves whole lines" "torn"; fi
        run batch --cpu scalar -t 1 -o "$tmp/answers" "$tmp/lines"
        run batch --cpu scalar -t 1 --ordered "$tmp/lines"
        sort "$tmp/out" >"$tmp/scalar"
        sort "$tmp/answers" >"$tmp/sorted_out"
        same "SIG$signal, and the same in the end" "$tmp/scalar" "$tmp/sorted_out"
    done

    # While a named pipe that nobody has opened at its other end is being opened.
    mkfifo "$tmp/fifo"
    for way in "$tmp/fifo" "-o $tmp/fifo $tmp/lines"; do
        name="SIGTERM with nobody at the other end of a pipe for $([ "$way" = "$tmp/fifo" ] && echo lines || echo answers)"
        # shellcheck disable=SC2086 # words
        "$TGEN" batch $way </dev/null >"$tmp/out" 2>"$tmp/err" &
        program=$!
        sleep 1
        kill -s TERM $program
        wait $program
        code=$?
        if [ $code -eq 130 ] && [ ! -s "$tmp/err" ]; then
            ok "$name"
        else
            fail "$name" "exit $code: $(peek "$tmp/err")"
        fi
    done

    # While nobody empties the pipe that the answers go to: more than it holds, all of them errors.
    awk 'BEGIN { for (i = 0; i < 3000; i++) print "{\"promt\":0}" }' >"$tmp/bad"
    sleep 10 <>"$tmp/fifo" &
    sleeper=$!
    "$TGEN" batch "$tmp/bad" </dev/null >"$tmp/fifo" 2>"$tmp/err" &
    program=$!
    sleep 1
    kill -s TERM $program
    (sleep 5 && kill -s KILL $program) 2>/dev/null &
    wait $program
    code=$?
    cat "$tmp/fifo" >"$tmp/out" &
    sleep 0.2
    kill $sleeper
    wait $! 2>/dev/null
    n=$(wc -l <"$tmp/out")
    if [ $code -eq 130 ] && grep -qx "tgen: note: interrupted with $n lines\{0,1\} answered" "$tmp/err" && [ "$(tail -c 1 "$tmp/out" | od -An -c | tr -d ' ')" = '\n' ]; then
        ok "SIGTERM with nobody reading the answers"
    else
        fail "SIGTERM with nobody reading the answers" "exit $code, $n lines: $(peek "$tmp/err")"
    fi

    # In the midst of a pass, which takes the definition's kernels a second: a line's answer, then a signal, then no other.
    awk 'BEGIN {
        for (l = 0; l < 3; l++) {
            ids = 300 + l
            for (i = 1; i < (l ? 250 : 1); i++) ids = ids "," (300 + (l * 251 + i * 7) % 997)
            printf "{\"prompt\":[%s],\"max_tokens\":1,\"temperature\":0}\n", ids
        }
    }' >"$tmp/long"
    rm -f "$tmp/answers"
    env --default-signal=INT "$TGEN" batch -q -t 1 --parallel 1 --cpu scalar -o "$tmp/answers" "$tmp/long" </dev/null 2>"$tmp/err" &
    program=$!
    while kill -0 $program 2>/dev/null && [ ! -s "$tmp/answers" ]; do sleep 0.02; done
    kill -s TERM $program
    wait $program
    code=$?
    if [ $code -eq 130 ] && [ "$(wc -l <"$tmp/answers")" -eq 1 ]; then
        ok "SIGTERM ends a pass between two layers"
    else
        fail "SIGTERM ends a pass between two layers" "exit $code, $(wc -l <"$tmp/answers") answers"
    fi
    run batch -q -t 1 --cpu scalar -o "$tmp/answers" "$tmp/long"
    if [ "$(wc -l <"$tmp/answers")" -eq 3 ]; then ok "and the job goes on"; else fail "and the job goes on" "$(peek "$tmp/answers")"; fi
else
    skip "SIGTERM and SIGINT" "this env(1) cannot reset signals"
fi

# ---- weights that go away ------------------------------------------------------------------------------------------

# Somebody cuts the file short: the answers that are there stay, and the job goes on once the file is whole again.
mkdir "$tmp/model"
cp "$tales"/* "$tmp/model"
for threads in 1 2; do
    rm -f "$tmp/answers"
    "$TGEN" batch -q -m "$tmp/model" -t $threads --parallel 1 --cpu scalar -o "$tmp/answers" "$tmp/lines" </dev/null 2>"$tmp/err" &
    program=$!
    while kill -0 $program 2>/dev/null && [ ! -s "$tmp/answers" ]; do sleep 0.02; done
    : >"$tmp/model/model.safetensors"
    wait $program
    code=$?
    printf 'tgen: %s: model.safetensors: was cut short while in use, or its disk fails\n' "$tmp/model" >"$tmp/sentence"
    if [ $code -eq 1 ] && cmp -s "$tmp/err" "$tmp/sentence"; then
        ok "weights are cut short, $threads threads"
    else
        fail "weights are cut short, $threads threads" "exit $code: $(peek "$tmp/err")"
    fi
    whole "weights are cut short, $threads threads" "$tmp/answers"
    cat "$tales/model.safetensors" >"$tmp/model/model.safetensors"
    run batch -q -m "$tmp/model" --cpu scalar -t 1 -o "$tmp/answers" "$tmp/lines"
    run batch --cpu scalar -t 1 --ordered "$tmp/lines"
    sort "$tmp/out" >"$tmp/scalar"
    sort "$tmp/answers" >"$tmp/sorted_out"
    same "weights are whole again, and the same in the end" "$tmp/scalar" "$tmp/sorted_out"
done

# ---- a full disk ---------------------------------------------------------------------------------------------------

# A limit on the size of files stops a write in the midst of a line, as a full disk does.
rm -f "$tmp/answers"
size=$(wc -c <"$tmp/expected")
n_full=0
for limit in 1 2 3 4 5 6 7 8 9 10 11 12; do
    (
        ulimit -f $limit # blocks of 512 bytes
        exec "$TGEN" batch -q -t 1 --ordered -o "$tmp/answers" "$tmp/lines" </dev/null 2>"$tmp/err"
    )
    code=$?
    [ $((limit * 512)) -lt "$size" ] || continue
    n_full=$((n_full + 1))
    if [ $code -ne 1 ] || ! grep -qx "tgen: cannot write to $tmp/answers: File too large" "$tmp/err"; then
        fail "$limit blocks" "exit $code: $(peek "$tmp/err")"
    elif ! head -c "$(wc -c <"$tmp/answers")" "$tmp/expected" | cmp -s - "$tmp/answers" ||
        [ "$(tail -c 1 "$tmp/answers" | od -An -c | tr -d ' ')" != '\n' ]; then
        fail "$limit blocks" "the file does not end with a whole line"
    fi
done
if [ $n_full -ge 8 ]; then ok "$n_full times no room"; else fail "no room" "only $n_full times"; fi
succeeds "room again" batch -q -t 1 --ordered -o "$tmp/answers" "$tmp/lines"
same "and the same in the end" "$tmp/expected" "$tmp/answers"

finish
