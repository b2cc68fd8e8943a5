#!/bin/sh
# -w: weights that are quantised while they are loaded.
. tests/cli/lib.sh

succeeds "stored weights" --temp 0 -n 8 "Once upon a time"
cp "$tmp/out" "$tmp/stored"
for form in q8 q4; do
    for threads in 1 3; do
        succeeds "-w $form on $threads threads" -w $form -t $threads --temp 0 -n 8 "Once upon a time"
        if cmp -s "$tmp/out" "$tmp/stored"; then ok "-w $form tells the story"; else fail "-w $form tells the story" "$(peek "$tmp/out")"; fi
    done
    succeeds "score -w $form" score -w $form "Once upon a time"
done
refuses "another form" 2 'none of stored|q8|q4' -w q5 "Once"
succeeds "a model that is quantised already" -w q4 -m tests/golden/quantised/llama-ct-int4 --ids 1 --print-ids -n 2

finish
