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
    if cmp -s "$tmp/loaded" "$tmp/written"; then ok "the same logits with $form"; else fail "the same logits with $form" "they differ"; fi
done
succeeds "--json" quantize --json -w q4 -o "$tmp/json"
has "--json has the bits" '"bits_per_weight":4.25[,}]'
if cmp -s "$tmp/q4/tokenizer.json" "$tales/tokenizer.json"; then ok "other files are copied"; else fail "other files are copied" "$(ls "$tmp/q4")"; fi
succeeds "shards" quantize -m tests/golden/llama-bf16_shards -w q4 -o "$tmp/shards"
succeeds "shards open" -m "$tmp/shards" --ids 1 --print-ids -n 2
mkdir "$tmp/empty"
succeeds "an empty directory is filled" quantize -w q8 -o "$tmp/empty"

refuses "a directory that is there" 1 'not empty' quantize -w q4 -o "$tmp/q4"
touch "$tmp/file"
refuses "a file that is there" 1 "$tmp/file" quantize -w q4 -o "$tmp/file"
refuses "a place that is not there" 1 'No such file' quantize -w q4 -o "$tmp/no/where"
refuses "no form" 2 '-w q8 or -w q4' quantize -o "$tmp/x"
refuses "the form as stored" 2 '-w q8 or -w q4' quantize -w stored -o "$tmp/x"
refuses "no directory" 2 '-o DIR' quantize -w q4
refuses "words" 2 'takes no words' quantize -w q4 -o "$tmp/x" word
refuses "quantised already" 3 'stored quantised already' quantize -m "$tmp/q4" -w q8 -o "$tmp/x"
refuses "GPT-2's matrices" 3 'is stored [in, out]' quantize -m tests/golden/gpt2-hub -w q4 -o "$tmp/x"
copy_model "$tmp/m"
chmod 000 "$tmp/m/tokenizer_config.json"
forbidden "a file that cannot be read" 3 quantize -m "$tmp/m" -w q4 -o "$tmp/x"
nothing_left "nothing is left of failures"

# A disk that is full: one of 2 MiB, where mounting is allowed.
mkdir "$tmp/disk"
if mount -t tmpfs -o size=2m none "$tmp/disk" 2>/dev/null; then
    refuses "a full disk" 1 'No space left' quantize -w q4 -o "$tmp/disk/x"
    if [ -z "$(ls "$tmp/disk")" ]; then ok "nothing is left on it"; else fail "nothing is left on it" "$(ls "$tmp/disk")"; fi
    umount "$tmp/disk"
else
    skip "a full disk" "mounting is not allowed"
fi
finish
