#!/bin/sh
# tgen inspect: the card of the bundled model, for people and for programs.
. tests/cli/lib.sh

succeeds "a table" inspect
for line in "^$tales\$" '^model_type  *llama$' '^parameters  *4492032$' '^vocab_size  *4096$' '^norm_eps  *1e-05$' \
    '^  BF16  *47, 8.6 MiB$' '^  model.safetensors  *8.6 MiB$' '^memory for a context of 512 tokens' \
    '^  KV cache  *[0-9.]* MiB$' '^  tokenizer  *[0-9.]* KiB$'; do
    has "the table has $line" "$line"
done
succeeds "--json" inspect --json
for part in '"model_type":"llama"' '"parameters":4492032' '"tie_word_embeddings":true' '"norm_eps":1e-05' \
    '"dtypes":\[{"dtype":"BF16","n_tensors":47,"bytes":8984064}\]' '{"name":"model.safetensors","bytes":8989544}' \
    '"memory":{"context":512,"kv_bytes":[0-9]*,"scratch_bytes":[0-9]*,"logits_bytes":278528,"tokenizer_bytes":[1-9][0-9]*,"draft_bytes":[1-9][0-9]*}}$'; do
    has "--json has $part" "$part"
done
whole=$(field kv_bytes)
succeeds "-c" inspect --json -c 128
if [ $(($(field kv_bytes) * 4)) -eq "$whole" ]; then ok "memory grows with -c"; else fail "memory grows with -c" "$(field kv_bytes) of $whole"; fi
succeeds "-w" inspect --json -w q4
if [ "$(field weight_bytes)" -gt 0 ]; then ok "-w announces memory"; else fail "-w announces memory" "$(peek "$tmp/out")"; fi
# However its matrices are stored, a model of these dims has as many parameters.
for form in llama-ct-int4_asym llama-ct-int8_packed llama-gptq-desc_act llama-awq; do
    run inspect -m tests/golden/quantised/$form
    has "parameters of $form" '^parameters  *76096$'
done
refuses "-c beyond the model" 4 512 inspect -c 513
refuses "-c beyond all" 4 512 inspect -c 2147483647
refuses "a directory without a model" 3 "$tmp" inspect -m "$tmp"

finish
