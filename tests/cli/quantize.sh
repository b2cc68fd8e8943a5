#!/bin/sh
# tgen quantize: a new directory, whole or not at all.
. tests/cli/lib.sh

# nothing_left NAME: no directory that was begun lies about.
nothing_left() {
    if ls -d "$tmp"/*.tmp >/dev/null 2>&1; then fail "$1" "$(ls -d "$tmp"/*.tmp)"; else ok "$1"; fi
}

for form in q8 q4; do
    succeeds "quantize -w $form" quantize -w $form -o "$tmp/$form/"
    has "it says how many matrices" '36 matrices'
    succeeds "-w $form" score -w $form --logits "$tmp/loaded" "There was a king"
    succeeds "the directory of $form" score -m "$tmp/$form" --logits "$tmp/written" "There was a king"
    if [ $form = q4 ]; then
        if cmp -s "$tmp/loaded" "$tmp/written"; then fail "q4 is calibrated" "the logits are those of -w q4"; else ok "q4 is calibrated"; fi
    elif cmp -s "$tmp/loaded" "$tmp/written"; then
        ok "the same logits with $form"
    else
        fail "the same logits with $form" "they differ"
    fi
done

# How far the logits of a text are from those of the stored weights, in squares.
for form in stored q4; do "$TGEN" score -w $form --logits "$tmp/$form.logits" "Once upon a time there was a king." </dev/null >/dev/null; done
"$TGEN" score -m "$tmp/q4" --logits "$tmp/written" "Once upon a time there was a king." </dev/null >/dev/null
for file in stored.logits q4.logits written; do od -An -v -tf4 -w4 "$tmp/$file" >"$tmp/$file.text"; done
ratio=$(paste "$tmp/stored.logits.text" "$tmp/q4.logits.text" "$tmp/written.text" | awk '{ a += ($2 - $1) ^ 2; b += ($3 - $1) ^ 2 } END { print b / a }')
if awk "BEGIN { exit !($ratio > 0 && $ratio < 0.8) }"; then ok "calibrating pays"; else fail "calibrating pays" "$ratio"; fi
succeeds "--json" quantize --json -w q4 -o "$tmp/json"
has "--json has the bits" '"bits_per_weight":4.25[,}]'
if cmp -s "$tmp/q4/tokenizer.json" "$tales/tokenizer.json"; then ok "other files are copied"; else fail "other files are copied" "$(ls "$tmp/q4")"; fi
succeeds "shards" quantize -m tests/golden/llama-bf16_shards -w q4 -o "$tmp/shards"
succeeds "shards open" -m "$tmp/shards" --ids 1 --print-ids -n 2
# other NAME MODEL: MODEL as a directory of q8, $made, which answers as -w q8 does.
other() {
    made=$tmp/$1
    rm -f "$tmp/loaded" "$tmp/written"
    succeeds "$1" quantize -m "$2" -w q8 -o "$made"
    "$TGEN" score -m "$2" -w q8 --ids 5,6,7,8 --logits "$tmp/loaded" </dev/null >/dev/null
    "$TGEN" score -m "$made" --ids 5,6,7,8 --logits "$tmp/written" </dev/null >/dev/null
    if cmp -s "$tmp/loaded" "$tmp/written"; then ok "$1: the same logits"; else fail "$1: the same logits" "they differ"; fi
}

# names NAME TEXT: whether config.json or the header of the tensors of $made holds TEXT.
names() {
    if { cat "$made/config.json"; head -q -c 30000 "$made"/*.safetensors; } | grep -aqF -e "$2"; then ok "$1"; else fail "$1" "no $2"; fi
}

# A tensor without bytes stands last, when all bytes are written.
copy_model "$tmp/last"
rm "$tmp/last/model.safetensors"
n_header=$(od -An -t u8 -N 8 "$tales/model.safetensors")
end=$(($(wc -c <"$tales/model.safetensors") - 8 - n_header))
header="$(head -c $((8 + n_header)) "$tales/model.safetensors" | tail -c "$n_header" | sed 's/} *$//')"
header="$header,\"model.layers.4.self_attn.rotary_emb.inv_freq\":{\"dtype\":\"F32\",\"shape\":[0,7],\"data_offsets\":[$end,$end]}}"
{
    le64 ${#header}
    printf %s "$header"
    tail -c "$end" "$tales/model.safetensors"
} >"$tmp/last/model.safetensors"
other "an empty tensor at the end" "$tmp/last"
names "which is there" 'inv_freq":{"dtype":"F32","shape":[0,7]'

# What transformers, compressed-tensors and vLLM look for beyond llama.
other "falcon" tests/golden/falcon-40b
names "its class of layers" '"FalconLinear", "Linear"]'
n_formats=$(grep -c '"format": "int-quantized"' "$made/config.json")
if [ "$n_formats" = 2 ]; then ok "the format in the group, too"; else fail "the format in the group, too" "$n_formats"; fi
other "a file without the prefix" tests/golden/bloom-hub
names "which is there once there is a head" '"transformer.h.0.mlp.dense_4h_to_h.weight_scale"'
names "but before the head" '"lm_head.weight_scale"'
other "F16" tests/golden/llama-f16
names "F16 has scales of F16" 'q_proj.weight_scale":{"dtype":"F16"'
other "a text model within another" tests/golden/gemma3-conditional
names "which is known by patterns" '"re:(.*\\.)?language_model\\.(model\\.)?embed_tokens$"'
names "and its head, too" '["re:(.*\\.)?lm_head$", "Linear"]'

# With a matrix of the part that sees, in a file of its own, and an index of both.
cp -r tests/golden/gemma3-conditional "$tmp/seeing"
mv "$tmp/seeing/model.safetensors" "$tmp/seeing/text.safetensors"
header='{"vision_tower.encoder.layers.0.fc1.weight":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}}'
{ printf "\\$(printf %o ${#header})\\0\\0\\0\\0\\0\\0\\0%s" "$header"; head -c 16 /dev/zero; } >"$tmp/seeing/vision.safetensors"
{
    printf '{"weight_map":{"vision_tower.encoder.layers.0.fc1.weight":"vision.safetensors"'
    head -c 30000 "$tmp/seeing/text.safetensors" | grep -ao '"[a-z_]*\.[a-z_.0-9]*"' | sed 's/.*/,&:"text.safetensors"/'
    printf '}}'
} >"$tmp/seeing/model.safetensors.index.json"
other "one that sees" "$tmp/seeing"
names "whose other parts are named as a whole" ', "re:(.*\\.)?vision_tower(\\..*)?$"'

cp -r tests/golden/gemma3-conditional "$tmp/newer"
LC_ALL=C sed -i 's/language_model\.model\./model.language_model./g' "$tmp/newer/model.safetensors" # as long as before
other "the same as transformers 5 has it" "$tmp/newer"
names "where the head stands outside" '"lm_head.weight_scale"'
cp -r tests/golden/gemma3-conditional "$tmp/text_model"
LC_ALL=C sed -i 's/"language_model\.model\.\([^"]*\)"/"model.text_model.\1"    /g' "$tmp/text_model/model.safetensors"
other "the same as Idefics3 has it" "$tmp/text_model"
names "which is known by its own name" '"re:(.*\\.)?text_model\\.(model\\.)?embed_tokens$"'
succeeds "bert" quantize --quiet -m tests/golden/bert-lm -w q4 -o "$tmp/bert"
made=$tmp/bert
names "whose head stays tied" '"cls.predictions.decoder"]'
mkdir "$tmp/empty"
succeeds "an empty directory is filled" quantize -w q8 -o "$tmp/empty"

refuses "a directory that is there" 1 'not empty' quantize -w q4 -o "$tmp/q4"
touch "$tmp/file"
refuses "a file that is there" 1 "$tmp/file" quantize -w q4 -o "$tmp/file"
mkdir "$tmp/here"
cd "$tmp/here" || exit 1
for here in . "$tmp/here/."; do
    refuses "the working directory as $here" 1 "the place of $here: " quantize -w q4 -o $here
    if [ -z "$(ls -A)" ]; then ok "which stays empty"; else fail "which stays empty" "$(ls -A)"; fi
done
cd "$root" || exit 1
ln -s nowhere "$tmp/link"
refuses "a link to nothing" 1 "$tmp/link is there already, a symbolic link" quantize -w q4 -o "$tmp/link/"
refuses "a place that is not there" 1 'No such file' quantize -w q4 -o "$tmp/no/where"
refuses "no form" 2 '-w q8 or -w q4' quantize -o "$tmp/x"
refuses "the form as stored" 2 '"stored" is none of q8|q4' quantize -w stored -o "$tmp/x"
refuses "no directory" 2 '-o DIR' quantize -w q4
refuses "words" 2 'takes no words' quantize -w q4 -o "$tmp/x" word

# A file that is only copied at the end is looked at in the beginning; root may read all.
cp -r "$tales" "$tmp/unreadable"
: >"$tmp/unreadable/notes.txt"
chmod 0 "$tmp/unreadable/notes.txt"
if [ -r "$tmp/unreadable/notes.txt" ]; then
    skip "a file that cannot be read" "root can"
else
    refuses "a file that cannot be read" 3 "notes.txt: Permission denied" quantize -m "$tmp/unreadable" -w q4 -o "$tmp/x"
fi
refuses "quantised already" 3 'stored quantised already' quantize -m "$tmp/q4" -w q8 -o "$tmp/x"
refuses "GPT-2's matrices" 3 'is stored [in, out]' quantize -m tests/golden/gpt2-hub -w q4 -o "$tmp/x"
copy_model "$tmp/m"
chmod 000 "$tmp/m/tokenizer_config.json"
forbidden "a file that cannot be read" 3 quantize -m "$tmp/m" -w q4 -o "$tmp/x"
nothing_left "nothing is left of failures"

# Ctrl-C, SIGTERM or SIGHUP, twice, in the midst of calibrating and of writing: neither a directory nor a part of one is left.
if env --default-signal=INT,HUP true 2>/dev/null; then
    for form in q4 q8; do
        for how in "INT 0" "INT 0.05" "INT 0.2" "TERM 0.05" "HUP 0"; do
            signal=${how% *} delay=${how#* }
            env --default-signal=INT,HUP "$TGEN" quantize -t 1 --cpu scalar -w $form -o "$tmp/stopped" </dev/null >"$tmp/out" 2>"$tmp/err" &
            pid=$!
            until ls -d "$tmp"/stopped* >/dev/null 2>&1 || ! kill -0 $pid 2>/dev/null; do sleep 0.01; done
            sleep $delay
            kill -s "$signal" $pid 2>/dev/null && sleep 0.01 && kill -s "$signal" $pid 2>/dev/null
            wait $pid
            code=$?
            if [ $code -eq 0 ]; then
                succeeds "what was whole before SIG$signal opens ($form)" -m "$tmp/stopped" -n 1 "Once"
            elif [ $code -eq 130 ] && [ ! -e "$tmp/stopped" ] && [ ! -s "$tmp/out" ] && grep -qx "tgen: interrupted" "$tmp/err"; then
                ok "SIG$signal leaves no directory ($form, after $delay s)"
            else
                fail "SIG$signal leaves no directory ($form, after $delay s)" "exit $code: $(ls -d "$tmp"/stopped*) $(peek "$tmp/err")"
            fi
            rm -rf "$tmp/stopped"
            nothing_left "SIG$signal leaves nothing ($form, after $delay s)"
        done
    done
else
    skip "Ctrl-C" "this env(1) cannot reset signals"
fi

if [ -c /dev/full ]; then
    "$TGEN" quantize -w q8 -o "$tmp/whole" </dev/null >/dev/full 2>"$tmp/err"
    code=$?
    if [ $code -eq 1 ]; then ok "a summary that cannot be printed"; else fail "a summary that cannot be printed" "exit $code"; fi
    has "it is said that all is there" "^tgen: $tmp/whole is complete: cannot write" "$tmp/err"
    succeeds "and it is" -m "$tmp/whole" -n 1 "Once"
    rm -r "$tmp/whole"
else
    skip "a summary that cannot be printed" "there is no /dev/full"
fi

# A disk that is full: one of 2 MiB, where mounting is allowed.
mkdir "$tmp/disk"
if mount -t tmpfs -o size=2m none "$tmp/disk" 2>/dev/null; then
    refuses "where a disk is mounted" 1 "the place of $tmp/disk: " quantize -w q4 -o "$tmp/disk"
    refuses "a full disk" 1 'No space left' quantize -w q4 -o "$tmp/disk/x"
    if [ -z "$(ls "$tmp/disk")" ]; then ok "nothing is left on it"; else fail "nothing is left on it" "$(ls "$tmp/disk")"; fi
    umount "$tmp/disk"
else
    skip "a full disk" "mounting is not allowed"
fi
finish
