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

# Of a long text two threads compute rows of their own, one after the other as one thread does; three share each row.
ids=$(awk 'BEGIN { for (i = 0; i < 300; i++) printf "%s%d", i ? "," : "", (1 + i * 7919) % 4096 }')
for form in stored q8 q4; do
    for threads in 1 2 3; do "$TGEN" score -w $form -t $threads --ids "$ids" --logits "$tmp/logits.$threads" </dev/null >/dev/null; done
    same "300 ids with -w $form on 2 threads" "$tmp/logits.1" "$tmp/logits.2"
    same "300 ids with -w $form on 3 threads" "$tmp/logits.1" "$tmp/logits.3"
done
refuses "another form" 2 'none of stored|q8|q4' -w q5 "Once"

# What is stored in 8 or 4 bits keeps its codes with -w, in an order that suits the processor.
succeeds "quantize -w q8" quantize -w q8 -q -o "$tmp/q8"
for threads in 1 2 3; do
    for form in stored q4; do
        "$TGEN" score -q -m "$tmp/q8" -w $form -t $threads --ids "$ids" --logits "$tmp/logits.$form" </dev/null >/dev/null
    done
    same "300 ids of a directory in 8 bits, with and without -w, $threads threads" "$tmp/logits.stored" "$tmp/logits.q4"
done
for model in llama-awq llama-gptq llama-gptq-desc_act llama-ct-int4_asym llama-ct-int4_gidx; do
    for threads in 1 3; do
        "$TGEN" score -m tests/golden/quantised/$model -w q4 -t $threads --ids 1,2,3,4,5,6,7,8,9 --logits "$tmp/logits.$threads" </dev/null >/dev/null
    done
    same "$model with -w q4 on 3 threads" "$tmp/logits.1" "$tmp/logits.3"
done

# AutoRound's directories differ from GPTQ's and AWQ's in what config.json calls them.
for form in gptq awq; do
    cp -R tests/golden/quantised/llama-$form "$tmp/auto-$form"
    sed "s/\"quant_method\": \"$form\"/\"quant_method\": \"auto-round\", \"packing_format\": \"auto_round:auto_$form\"/" \
        tests/golden/quantised/llama-$form/config.json >"$tmp/auto-$form/config.json"
    has "config.json of auto_round:auto_$form" '"auto-round"' "$tmp/auto-$form/config.json"
    "$TGEN" score -m tests/golden/quantised/llama-$form --ids 1,2,3,4,5 --logits "$tmp/logits.1" </dev/null >/dev/null
    succeeds "auto_round:auto_$form" score -m "$tmp/auto-$form" --ids 1,2,3,4,5 --logits "$tmp/logits.2"
    same "the logits of $form" "$tmp/logits.1" "$tmp/logits.2"
done

# The user may allow little stack; matrices in columns take the most.
little_stack() (
    ulimit -s 256
    exec "$@"
)
for threads in 1 2; do
    run -m tests/golden/quantised/llama-awq -t $threads --ids 1,2,3,4,5,6,7,8,9 --print-ids --temp 0 -n 4
    cp "$tmp/out" "$tmp/much"
    as=little_stack succeeds "a small stack, $threads threads" \
        -m tests/golden/quantised/llama-awq -t $threads --ids 1,2,3,4,5,6,7,8,9 --print-ids --temp 0 -n 4
    same "a small stack, $threads threads, the same ids" "$tmp/much" "$tmp/out"
done
as=little_stack refuses "a small stack, and an error" 2 "unknown option" --no-such-option

# What is stored quantised keeps its codes; where that is not what was asked for, it is said.
int4=tests/golden/quantised/llama-ct-int4
succeeds "a model that is quantised already" -w q4 -m $int4 --ids 1 --print-ids -n 2
run -w q8 -m $int4 --ids 1 --print-ids -n 2
has "a model that is quantised otherwise" '^tgen: note: -w: matrices that are stored in 4 bits already stay so$' "$tmp/err"

finish
