#!/bin/sh
# tgen tokenize and tgen detokenize.
. tests/cli/lib.sh

once="Once upon a time"

prints "ids on one line" '0 574 539 259 437
' tokenize "$once"
prints "--no-bos" '574 539 259 437
' tokenize --no-bos "$once"
prints "nothing but BOS" '0
' tokenize ''
prints "nothing at all" '
' tokenize --no-bos ''
prints "--count" '5
' tokenize --count "$once"
prints "--pieces" '<|endoftext|> Once Ġupon Ġa Ġtime
' tokenize --pieces "$once"
prints "--json" '{"ids":[0,574,539,259,437],"pieces":["<|endoftext|>","Once","Ġupon","Ġa","Ġtime"],"offsets":[[0,0],[0,4],[4,9],[9,11],[11,16]],"n_tokens":5}
' tokenize --json "$once"
printf '%s' "$once" >"$tmp/input"
for arguments in '' - "-f $tmp/input"; do
    # shellcheck disable=SC2086 # split on purpose
    input=$tmp/input prints "tokenize $arguments" '0 574 539 259 437
' tokenize $arguments
done
prints "text does not turn special" "$(run tokenize --no-bos '<|endoftext|>'; cat "$tmp/out")
" tokenize --no-bos '<|endoftext|>'
if grep -qx 0 "$tmp/out"; then fail "text does not turn special" "it did"; else ok "text does not turn special"; fi
prints "--special" '0
' tokenize --no-bos --special '<|endoftext|>'

prints "detokenize words" "$once" detokenize 574 539 259 437
prints "detokenize one word" "$once" detokenize "574 539, 259	437"
prints "detokenize hides special tokens" "$once" detokenize 0 574 539 259 437 0
prints "detokenize --special" "<|endoftext|>$once" detokenize --special 0 574 539 259 437
prints "detokenize --json" "{\"text\":\"$once\"}
" detokenize --json 574 539 259 437
printf '0 574\n539\t259\r\n437' >"$tmp/input"
for arguments in '' - "-f $tmp/input" '-f -'; do
    # shellcheck disable=SC2086 # split on purpose
    input=$tmp/input prints "detokenize $arguments" "$once" detokenize $arguments
done
: >"$tmp/input"
input=$tmp/input prints "detokenize nothing" "" detokenize

# A long input comes in many reads, which may cut an id; the text is the same as in one piece.
awk 'BEGIN { for (i = 0; i < 60000; i++) printf "%d%s", 300 + i * 7 % 3000, i % 9 ? " " : "\n" }' >"$tmp/ids"
run detokenize -f "$tmp/ids"
cp "$tmp/out" "$tmp/whole"
dd if="$tmp/ids" bs=1000 2>/dev/null | "$TGEN" detokenize >"$tmp/pieces"
same "detokenize a pipe of many reads" "$tmp/whole" "$tmp/pieces"
if [ "$(wc -c <"$tmp/whole")" -gt 100000 ]; then ok "detokenize a long file"; else fail "detokenize a long file" "$(wc -c <"$tmp/whole")"; fi

# So does a long text; as an argument it is encoded at once.
awk 'BEGIN { srand(1); for (i = 0; i < 9000; i++) printf "%s%s", substr("<|endoftext|> a  b\n\nnaïve it was 12345 ...   end", rand() * 30, 30), i % 9 ? " " : "\n" }' >"$tmp/text"
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do
    head -c 120000 "$tmp/text"
    printf 'x%s' "$i"
done >"$tmp/long"
for option in '' --special --json; do
    # shellcheck disable=SC2086 # split on purpose
    run tokenize $option -p '' -f "$tmp/long" # two sources: read as a whole, with a newline between
    cp "$tmp/out" "$tmp/whole"
    # shellcheck disable=SC2086
    { cat "$tmp/long"; echo; } | "$TGEN" tokenize $option >"$tmp/pieces"
    same "tokenize $option a pipe of many parts" "$tmp/whole" "$tmp/pieces"
done
if [ "$(wc -c <"$tmp/long")" -gt 1800000 ]; then ok "tokenize a long file"; else fail "tokenize a long file" "$(wc -c <"$tmp/long")"; fi

# Round trips; an incomplete character is kept, since ids came for it.
for text in "$once" ' leading  and trailing ' "$(printf 'a\tb\r\n\nc')" 'naïve café 中文 😀' "$(printf '\303')" "$(printf '\377\200x')"; do
    printf '%s' "$text" >"$tmp/expected"
    "$TGEN" tokenize <"$tmp/expected" 2>"$tmp/err" | "$TGEN" detokenize >"$tmp/out"
    same "round trip of $(printf '%s' "$text" | od -A n -t x1 | tr -d ' \n')" "$tmp/expected" "$tmp/out"
done
"$TGEN" --print-ids --temp 0 -n 20 "$once" </dev/null | "$TGEN" detokenize >"$tmp/out"
"$TGEN" --temp 0 -n 20 "$once" </dev/null >"$tmp/expected"
same "generate --print-ids | detokenize" "$tmp/expected" "$tmp/out"

refuses "detokenize no number" 2 '"x" is no token id' detokenize 1 x
refuses "detokenize a fraction" 2 '"1.5" is no token id' detokenize 1.5
refuses "detokenize a huge number" 2 'is no token id' detokenize 99999999999999999999
refuses "detokenize beyond the vocabulary" 2 "the token id 4096 is not in the vocabulary of 4096" detokenize 1 4096
refuses "detokenize from two places" 2 "one place" detokenize -f "$tmp/ids" 1
refuses "detokenize no file" 1 "No such file" detokenize -f "$tmp/none"

# Only the tokenizer's files.
mkdir "$tmp/only"
cp "$tales/tokenizer.json" "$tmp/only"
cp "$tales/tokenizer_config.json" "$tmp/only"
prints "only a tokenizer" '574 539
' tokenize --no-bos -m "$tmp/only" "Once upon"
prints "only a tokenizer, back" 'Once upon' detokenize -m "$tmp/only" 574 539
refuses "generate needs more" 3 "config.json" -m "$tmp/only" hi

# Without tokenizer.json: tiktoken's ranks, Mistral's tekken.json; a SentencePiece model of <unk>, <s>, a, b and "ab".
mkdir "$tmp/ranks" "$tmp/pieces.d"
printf 'YQ== 0\nYg== 1\nYWI= 2\nIA== 3\n' >"$tmp/ranks/some.tiktoken"
printf '{"pat_str":" ?[a-z]+|."}' >"$tmp/ranks/tokenizer_config.json"
prints "only *.tiktoken" '2 3 1 0
' tokenize -m "$tmp/ranks" "ab ba"
mkdir "$tmp/tekken"
printf '{"config": {"pattern": " ?[a-z]+|."}, "vocab": [%s, %s, %s]}' '{"rank": 0, "token_bytes": "YQ=="}' \
    '{"rank": 1, "token_bytes": "Yg=="}' '{"rank": 2, "token_bytes": "YWI="}' >"$tmp/tekken/tekken.json"
prints "only tekken.json" '1 22 21 20
' tokenize -m "$tmp/tekken" "abba"
printf '\n\011\n\005<unk>\030\002\n\007\n\003<s>\030\003\n\010\n\001a\025\000\000\200\277' >"$tmp/pieces.d/model"
printf '\n\010\n\001b\025\000\000\000\300\n\012\n\003\342\226\201\025\000\000\100\300' >>"$tmp/pieces.d/model"
printf '\n\011\n\002ab\025\000\000\000\277\022\002\030\002\032\004\030\000\040\000' >>"$tmp/pieces.d/model"
for file in tokenizer.model spiece.model source.spm; do
    mkdir "$tmp/with.$file"
    cp "$tmp/pieces.d/model" "$tmp/with.$file/$file"
    prints "only $file" '5 4 3 2
' tokenize --no-bos -m "$tmp/with.$file" "ab ba"
    echo junk >"$tmp/with.$file/$file"
    refuses "a bad $file" 3 "$tmp/with.$file: $file: not a SentencePiece model" tokenize -m "$tmp/with.$file" hi
done
mkdir "$tmp/empty"
refuses "an empty directory" 3 "$tmp/empty: no tokenizer: neither tokenizer.json nor vocab.json with merges.txt, tokenizer.model, spiece.model, source.spm, tiktoken.model, *.tiktoken or tekken.json; nor is there a config.json" \
    tokenize -m "$tmp/empty" hi

finish
