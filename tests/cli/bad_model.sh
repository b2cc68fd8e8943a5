#!/bin/sh
# Checkpoints that are spoilt, one by one: each gets a sentence that names what is wrong, exit 3, and no answer. The unit
# tests know more ways; here is what a user meets at the shell.
. tests/cli/lib.sh

# weights HEADER BYTES: model.safetensors of the copy, with BYTES zeros behind the header.
weights() {
    rm -f "$tmp/m/model.safetensors"
    {
        le64 ${#1}
        printf %s "$1"
        head -c "$2" /dev/zero
    } >"$tmp/m/model.safetensors"
}

copy_model "$tmp/m"

# ---- model.safetensors ---------------------------------------------------------------------------------------------

rm "$tmp/m/model.safetensors"
refuses "no weights" 3 "$tmp/m" -m "$tmp/m" hi
: >"$tmp/m/model.safetensors"
refuses "empty weights" 3 "tgen: $tmp/m: model.safetensors: not a safetensors file: 0 bytes" -m "$tmp/m" hi
head -c 4 "$tales/model.safetensors" >"$tmp/m/model.safetensors"
refuses "weights of 4 bytes" 3 model.safetensors -m "$tmp/m" hi
head -c 1000 "$tales/model.safetensors" >"$tmp/m/model.safetensors"
refuses "weights cut in the header" 3 model.safetensors -m "$tmp/m" hi
head -c 8000000 "$tales/model.safetensors" >"$tmp/m/model.safetensors"
refuses "weights cut in the data" 3 model.safetensors -m "$tmp/m" hi
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 17\n' >"$tmp/m/model.safetensors"
refuses "a pointer in the place of weights" 3 "$tmp/m: model.safetensors: not the file itself but a Git LFS pointer" -m "$tmp/m" hi
{ le64 1000 && printf '{}'; } >"$tmp/m/model.safetensors"
refuses "header beyond the file" 3 1000 -m "$tmp/m" hi
{ le64 100000001 && printf '{}'; } >"$tmp/m/model.safetensors"
refuses "header over 100,000,000" 3 100000001 -m "$tmp/m" hi
{ printf '\377\377\377\377\377\377\377\377' && printf '{}'; } >"$tmp/m/model.safetensors"
refuses "header of 2^64-1" 3 18446744073709551615 -m "$tmp/m" hi
weights '[1]' 0
refuses "header that is no object" 3 model.safetensors -m "$tmp/m" hi
weights '{"a":' 0
refuses "header that is no JSON" 3 model.safetensors -m "$tmp/m" hi
weights '{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}' 12
refuses "offsets that overlap" 3 '"b"' -m "$tmp/m" hi
weights '{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[12,20]}}' 20
refuses "offsets that leave a hole" 3 '"b"' -m "$tmp/m" hi
weights '{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}' 12
refuses "bytes that no tensor covers" 3 model.safetensors -m "$tmp/m" hi
weights '{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}' 8
refuses "shape and offsets disagree" 3 '"a"' -m "$tmp/m" hi
weights '{"a":{"dtype":"F32","shape":[4294967296,4294967296,4],"data_offsets":[0,8]}}' 8
refuses "a shape that overflows" 3 '"a"' -m "$tmp/m" hi
weights '{"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}}' 8
refuses "a negative shape" 3 '"a"' -m "$tmp/m" hi
weights '{"a":{"dtype":"F33","shape":[2],"data_offsets":[0,8]}}' 8
refuses "an unknown dtype" 3 F33 -m "$tmp/m" hi
weights '{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}' 8
refuses "a tensor that is there twice" 3 '"a"' -m "$tmp/m" hi
weights '{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}' 8
refuses "a tensor that is missing" 3 embed_tokens.weight -m "$tmp/m" hi
deep=$(awk 'BEGIN { for (i = 0; i < 100000; i++) printf "[" }')
weights "{\"a\":$deep" 0
refuses "a deeply nested header" 3 model.safetensors -m "$tmp/m" hi
cp "$tales/model.safetensors" "$tmp/m"
chmod 000 "$tmp/m/model.safetensors"
forbidden "weights without permission" 3 -m "$tmp/m" hi
rm -f "$tmp/m/model.safetensors"
printf '{"weight_map":{"a":"../../../etc/passwd"}}' >"$tmp/m/model.safetensors.index.json"
refuses "an index that walks about" 3 model.safetensors.index.json -m "$tmp/m" hi
printf '{"weight_map":{"a":"model-00001-of-00002.safetensors"}}' >"$tmp/m/model.safetensors.index.json"
refuses "a shard that is missing" 3 model-00001-of-00002.safetensors -m "$tmp/m" hi
rm "$tmp/m/model.safetensors.index.json"
ln -s "$tales/model.safetensors" "$tmp/m"

# ---- config.json ---------------------------------------------------------------------------------------------------

# config NAME SENTENCE KEY VALUE: the member has that value instead.
config() {
    sed "s|\"$3\": [^,]*|\"$3\": $4|" "$tales/config.json" >"$tmp/m/config.json"
    refuses "$1" 3 "$2" -m "$tmp/m" hi
}
config "an unknown model_type" "there are " model_type '"elephant"'
has "the known ones are listed" 'gpt2.*llama\|llama.*gpt2' "$tmp/err"
for key in hidden_size num_hidden_layers num_attention_heads num_key_value_heads intermediate_size vocab_size \
    max_position_embeddings; do
    for value in -1 0 1000000000000 1.5 '"8"' null '[8]' true; do
        case $key$value in
        num_key_value_headsnull | max_position_embeddingsnull) continue ;; # these have a default
        esac
        config "$key $value" "$key" "$key" "$value"
    done
done
config "a billion layers" num_hidden_layers num_hidden_layers 1000000000
config "a billion heads" "" num_attention_heads 1000000000
config "heads that do not divide" num_key_value_heads num_key_value_heads 3
config "more layers than tensors" model.layers.5 num_hidden_layers 6
config "fewer layers than tensors" model.layers.4 num_hidden_layers 4
config "a vocabulary larger than the embedding" "[4096, 256]" vocab_size 5000
has "the expected shape is named" '\[5000, 256\]' "$tmp/err"
config "a vocabulary smaller than the embedding" "[4096, 256]" vocab_size 4000
config "rms_norm_eps of the wrong type" rms_norm_eps rms_norm_eps '"small"'
config "rope_theta of the wrong type" rope_theta rope_theta '[1]'
config "an unknown activation" wibble hidden_act '"wibble"'
config "an unknown rope" wobble rope_scaling '{"rope_type":"wobble","factor":2}'
for text in '' '{' '[]' '"x"' 'null' '{"model_type": "llama"' '{} {}' "{\"a\":$deep"; do
    printf %s "$text" >"$tmp/m/config.json"
    refuses "config.json: $(printf %s "$text" | head -c 30)" 3 config.json -m "$tmp/m" hi
done
rm "$tmp/m/config.json"
refuses "no config.json" 3 config.json -m "$tmp/m" hi
mkdir "$tmp/m/config.json"
refuses "config.json is a directory" 3 "tgen: $tmp/m: config.json: a directory where a file is expected" -m "$tmp/m" hi
rmdir "$tmp/m/config.json"
cp "$tales/config.json" "$tmp/m"

# ---- generation_config.json ----------------------------------------------------------------------------------------

for text in '{' '[]' '{"temperature": "hot"}' '{"top_k": -2}' '{"top_k": 1, "top_k": 2}' '{"top_p": 2}' '{"do_sample": "x"}' '{"do_sample": 1}' '{"eos_token_id": "x"}' '{"eos_token_id": [1, "x"]}'; do
    printf %s "$text" >"$tmp/m/generation_config.json"
    refuses "generation_config.json: $text" 3 generation_config.json -m "$tmp/m" hi
done
cp "$tales/generation_config.json" "$tmp/m"

# ---- tokenizer.json ------------------------------------------------------------------------------------------------

for text in '' '{' '[]' '{}' '{"model": {"type": "Telepathy"}}' '{"model": 7}' "{\"model\":$deep"; do
    printf %s "$text" >"$tmp/m/tokenizer.json"
    refuses "tokenizer.json: $(printf %s "$text" | head -c 40)" 3 "$tmp/m" -m "$tmp/m" hi
done
head -c 60000 "$tales/tokenizer.json" >"$tmp/m/tokenizer.json"
refuses "half a tokenizer.json" 3 "$tmp/m" -m "$tmp/m" hi
refuses "tokenize says so too" 3 "$tmp/m" tokenize -m "$tmp/m" hi
refuses "detokenize says so too" 3 "$tmp/m" detokenize -m "$tmp/m" 1
prints "--ids --print-ids does not read it" '12
' -m "$tmp/m" --temp 0 -n 1 --print-ids --ids "0 574 539 259 437"
cp "$tales/tokenizer.json" "$tmp/m"

for file in tokenizer_config.json special_tokens_map.json; do
    for text in '' '{' '[]' '"x"'; do
        printf %s "$text" >"$tmp/m/$file"
        refuses "$file: $text" 3 "tgen: $tmp/m: $file" -m "$tmp/m" hi
    done
    rm "$tmp/m/$file"
done

# A tokenizer that knows more ids than the model.
for miniature in tests/golden/llama tests/golden/*/llama ../shared/golden/llama; do
    [ -f "$miniature/model.safetensors" ] && break
done
if [ -f "$miniature/model.safetensors" ]; then
    mkdir "$tmp/small"
    cp "$miniature/config.json" "$miniature/model.safetensors" "$tales/tokenizer.json" "$tmp/small"
    refuses "ids beyond the model's vocabulary" 3 "the model takes only 0 to 127" -m "$tmp/small" "Once upon a time"
    refuses "to choose, too" 3 "is outside the vocabulary of 128" choose -m "$tmp/small" -p "Once upon a time" " there" " was"
    run -m "$tmp/small" --temp 0 --ignore-eos --print-ids -n 3 --ids 5
    if [ "$(wc -l <"$tmp/out")" -eq 3 ]; then ok "ids within it"; else fail "ids within it" "$(peek "$tmp/err")"; fi
else
    skip "ids beyond the model's vocabulary" "there is no miniature"
fi

# ---- numbers that are none -----------------------------------------------------------------------------------------

# No load can see these: the first weight of a tensor is a NaN.
# spoil TENSOR
spoil() {
    rm -f "$tmp/m/model.safetensors"
    cp "$tales/model.safetensors" "$tmp/m"
    n_header=$(od -An -t u8 -N 8 "$tmp/m/model.safetensors")
    at=$(head -c "$n_header" "$tmp/m/model.safetensors" | grep -ao "\"$1\"[^[]*[^]]*][^[]*\[[0-9]*" | sed 's/.*\[//')
    printf '\300\177' | dd of="$tmp/m/model.safetensors" bs=1 seek=$((8 + n_header + at)) conv=notrunc 2>/dev/null
}
spoil model.layers.2.mlp.down_proj.weight
no_numbers="the model computes numbers that are not finite"
for sampling in "--temp 0" "--temp 1" "--temp 1 --top-k 0" "--repeat-penalty 1.1"; do
    # shellcheck disable=SC2086 # words of the command line
    refuses "no text of NaNs: $sampling" 1 "$no_numbers" -m "$tmp/m" $sampling -n 3 hi
done
refuses "no score of NaNs" 1 "$no_numbers" score -m "$tmp/m" hi there
refuses "no choice among NaNs" 1 "$no_numbers" choose -m "$tmp/m" -p hi " there" " here"
for form in q8 q4; do
    refuses "no weights of NaNs: $form" 3 "m: model.layers.2.mlp.down_proj.weight holds NaN or infinity" -m "$tmp/m" -w $form hi
    refuses "no directory of NaNs: $form" 3 "m: model.layers.2.mlp.down_proj.weight holds NaN or infinity" quantize -m "$tmp/m" -w $form -o "$tmp/spoilt"
    if ls -d "$tmp"/spoilt* >/dev/null 2>&1; then fail "nothing is left of it" "$(ls -d "$tmp"/spoilt*)"; else ok "nothing is left of it"; fi
done
run bench -m "$tmp/m" -w stored,q8 -p 4 -n 0 -r 1 -t 1 --csv
if [ $code -eq 3 ]; then ok "a bench whose second test fails"; else fail "a bench whose second test fails" "exit $code"; fi
has "prints the first" '^pp4,stored,1,0,'
printf '{"prompt":"hi","completion":" there, here and elsewhere"}\n{"prompt":"ho","completion":" ho"}\n' >"$tmp/pairs"
run score --jsonl -m "$tmp/m" "$tmp/pairs"
if [ $code -eq 1 ] && [ "$(grep -c "\"error\":\"$no_numbers\"" "$tmp/out")" -eq 2 ]; then
    ok "a job that scores NaNs"
else
    fail "a job that scores NaNs" "exit $code: $(peek "$tmp/out")"
fi
spoil model.embed_tokens.weight # that of id 0
printf '{"prompt":[5,0],"max_tokens":3}\n{"prompt":[5,6],"max_tokens":3}\n' >"$tmp/prompts"
run batch --ordered -m "$tmp/m" "$tmp/prompts"
if [ $code -eq 1 ] && grep -q '^tgen: 1 of 2 lines' "$tmp/err" && head -n 1 "$tmp/out" | grep -q "\"error\":\"$no_numbers\"" &&
    tail -n 1 "$tmp/out" | grep -q '"completion_tokens":3'; then
    ok "the other lines of a job have answers"
else
    fail "the other lines of a job have answers" "exit $code: $(peek "$tmp/out")"
fi
printf '{"custom_id":"a","method":"POST","url":"/v1/completions","body":{"prompt":[5,0],"max_tokens":3}}\n' >"$tmp/prompts"
run batch -m "$tmp/m" "$tmp/prompts"
has "OpenAI: the line is not to blame" "\"response\":null,\"error\":{\"code\":\"server_error\",\"message\":\"$no_numbers\"}"
spoil model.norm.weight
refuses "nothing to calibrate by" 1 "$no_numbers" quantize -m "$tmp/m" -w q4 -o "$tmp/spoilt"
rm "$tmp/m/model.safetensors"
ln -s "$tales/model.safetensors" "$tmp/m"

# ---- a decoder that gives up ---------------------------------------------------------------------------------------

# An expression that needs more steps than there may be for any token with a "u".
copy_model "$tmp/slow"
rm "$tmp/slow/tokenizer.json"
jq -c '.decoder = {type: "Replace", pattern: {Regex: "(?:.?){200}Z|u"}, content: "u"}' "$tales/tokenizer.json" >"$tmp/slow/tokenizer.json" 2>/dev/null
if [ -s "$tmp/slow/tokenizer.json" ]; then
    refuses "a text of a decoder that gives up" 3 "a regular expression of the tokenizer gives up" -m "$tmp/slow" -n 3 --temp 0 "Once upon"
    printf '{"prompt":"Once upon","max_tokens":1}\n{"prompt":[],"max_tokens":1}\n' >"$tmp/prompts"
    run batch -q --ordered -m "$tmp/slow" "$tmp/prompts"
    has "a line of one" '^{"custom_id":1,"line":1,"error":"a regular expression of the tokenizer gives up: '
    if [ "$(wc -l <"$tmp/out")" -eq 2 ]; then ok "the job goes on"; else fail "the job goes on" "exit $code: $(peek "$tmp/err")"; fi
else
    skip "a decoder that gives up" "there is no jq"
fi

# ---- what a config asks of its family ------------------------------------------------------------------------------

# neox EDIT: a copy of a GPT-NeoX whose config.json sed has edited.
neox() {
    mkdir -p "$tmp/neox"
    ln -sf "$root/tests/golden/gpt_neox-parallel/model.safetensors" "$tmp/neox"
    sed "$1" tests/golden/gpt_neox-parallel/config.json >"$tmp/neox/config.json"
}
neox 's/"hidden_act": "gelu"/"hidden_act": "xielu"/'
refuses "an activation whose weights the family lacks" 3 'no model of the type "gpt_neox"' -m "$tmp/neox" --print-ids --ids 1
run --json --temp 0 -n 4 --ids "1 2" -m tests/golden/gpt_neox-parallel
sed 's/.*"ids":\([^]]*\).*/\1/' "$tmp/out" >"$tmp/ids"
for n in 1 2; do
    neox "s/\"hidden_act\"/\"num_key_value_heads\": $n, &/"
    run --json --temp 0 -n 4 --ids "1 2" -m "$tmp/neox"
    has "a key that the family does not know changes nothing: $n" "\"ids\":$(sed 's/\[/\\[/' "$tmp/ids")"
done

prints "the copy itself is sound" ", there" -m "$tmp/m" --temp 0 -n 2 "Once upon a time"

finish
