#!/bin/sh
# The command line: every option's bad values, the ways to write good ones, commands, help.
. tests/cli/lib.sh

# ---- values --------------------------------------------------------------------------------------------------------

for option in --max-tokens --context --threads --top-k --repeat-last-n --seed; do
    for value in x 1x '' ' 1' 1.5 0x10 99999999999999999999999 nan -- -; do
        refuses "$option $value" 2 "$option: \"$value\" is not a whole number between" "$option=$value" hi
    done
done
for option in --max-tokens --context --threads --top-k --seed; do
    refuses "$option -1" 2 "is not a whole number between" $option -1 hi
done
refuses "--context 0" 2 "between 1 and" --context 0 hi
refuses "--threads 0" 2 "between 1 and" --threads 0 hi
refuses "--repeat-last-n -2" 2 "between -1 and" --repeat-last-n -2 hi
refuses "--seed 2^64" 2 "between 0 and 18446744073709551615" --seed 18446744073709551616 hi

for option in --temp --top-p --min-p --typical-p --repeat-penalty --presence-penalty --frequency-penalty; do
    for value in x 1x '' ' 1' nan inf -inf 1e999 1,5 -- .; do
        refuses "$option $value" 2 "$option: \"$value\" is not a number between" "$option=$value" hi
    done
done
for option in --temp --top-p --min-p --typical-p --repeat-penalty; do
    refuses "$option -0.1" 2 "is not a number between" $option -0.1 hi
done
for option in --top-p --min-p --typical-p; do
    refuses "$option 1.01" 2 "between 0 and 1" $option 1.01 hi
done
refuses "--repeat-penalty 0" 2 "between 0.01 and 100" --repeat-penalty 0 hi

refuses "--precision f64" 2 '--precision: "f64" is none of auto|f32' --precision f64 hi
refuses "--precision au" 2 'is none of' --precision au hi
refuses "--kv q4" 2 '--kv: "q4" is none of f32|f16|q8' --kv q4 hi
refuses "--completions csh" 2 'is none of bash|zsh|fish' --completions csh
refuses "--cpu nonsense" 2 nonsense --cpu nonsense hi
refuses "--cpu and nothing" 2 '--cpu: "" is no level; there are scalar' --cpu '' hi
refuses "--stop with nothing" 2 "--stop: an empty text" --stop '' hi
refuses "-o with nothing" 2 '--output: the name of a file is empty' batch -o '' /dev/null
for ids in x '1 x' -1 1.5 2147483648 99999999999999999999 '1;2' 0x1; do
    refuses "--ids $ids" 2 "is no token id" --ids="$ids"
done
refuses "--ids beyond the vocabulary" 2 "--ids: 4096 is outside the vocabulary of 4096" --ids "1 4096"
refuses "--ids of nothing" 2 "no token to begin with" --ids " "
refuses "--logits -" 2 "--logits needs a file" score --logits - hi
refuses "--logits nowhere" 1 "cannot write to $tmp/no/file" score --logits "$tmp/no/file" hi

for option in --model --prompt --file --ids --max-tokens --context --threads --temp --top-k --top-p --min-p \
    --typical-p --repeat-penalty --repeat-last-n --presence-penalty --frequency-penalty --seed --stop --precision --kv --cpu; do
    refuses "$option without a value" 2 "$option needs a value" hi $option
done
refuses "-n without a value" 2 "--max-tokens needs a value" hi -n
refuses "a part that is too long" 2 "has a part that is too long" bench -p 00000000000000000000000000000000008
refuses "a longer word than the option's" 2 "did you mean --temp?" --temperature 1 hi
for option in --echo --special --no-bos --ignore-eos --stats --json --quiet --print-ids --help --version; do
    refuses "$option=1" 2 "$option takes no value" $option=1 hi
done

# ---- names ---------------------------------------------------------------------------------------------------------

refuses "unknown option" 2 "unknown option --nonsense; see tgen help generate" --nonsense hi
refuses "unknown letter" 2 "unknown option -x" -x hi
refuses "unknown letter in a bundle" 2 "unknown option -x" -qx hi
run -n 1 --temp 0 tokenise hi
has "a command that is mistyped" '^tgen: note: "tokenise" is taken as the beginning of the prompt; the command is tokenize$' "$tmp/err"
run -n 1 --temp 0 scoer hi
has "with two letters swapped" '; the command is score$' "$tmp/err"
run -n 1 --temp 0 once upon
if [ -s "$tmp/err" ]; then fail "no command at all" "$(peek "$tmp/err")"; else ok "no command at all"; fi
succeeds "help help" help help
refuses "near miss" 2 "did you mean --temp?" --tmep 0 hi
refuses "beginning of a name" 2 "did you mean --max-tokens?" --max 5 hi
refuses "another command's option" 2 "--temp is no option of tgen score" score --temp 0 hi
for value in x 0 -1 1.5 1m 5GB 99999999999999999999 16777216T; do
    refuses "--kv-memory $value" 2 "is not a size in bytes" batch --kv-memory="$value" "$tmp/none"
done
for value in x 0/2 3/2 1/ /2 1/0 -1/2 1.5/2 1/2/3 1/1000001; do
    refuses "--shard $value" 2 "is not K/N" batch --shard "$value" "$tmp/none"
done
refuses "another command's letter" 2 "--max-tokens is no option of tgen tokenize" tokenize -n 3 hi
refuses "near miss of another command" 2 "unknown option --tmep" score --tmep 0 hi
refuses "command behind an option" 2 "the command goes first: tgen score" -n 1 score hi
refuses "help for nothing known" 2 'no command "poem"' help poem
refuses "inspect with words" 2 "takes no words" inspect "$tales"

# ---- good values, in all spellings ---------------------------------------------------------------------------------

for spelling in '-n 2' -n2 '--max-tokens 2' --max-tokens=2 '-qn2' '-q -n 2' '-n 9 -n 2'; do
    # shellcheck disable=SC2086 # split on purpose
    prints "spelling $spelling" ", there" --temp 0 $spelling "Once upon a time"
done
prints "option behind the prompt" ", there" "Once upon a time" --temp=0 -n2
prints "value that begins with a dash" ", there" --temp 0 -n2 --presence-penalty -0 "Once upon a time"
prints "-- ends the options" "-n 3" --echo -n 0 -- -n 3
prints "a command's name behind --" "score" --echo -n0 -- score
prints "a command's name behind -p" "score" --echo -n0 -p score
prints "a command's name behind generate" "score" generate --echo -n0 score
prints "a command's name further on" "what score" --echo -n0 what score
prints "the default command by name" ", there" generate --temp 0 -n 2 "Once upon a time"
prints "--cpu scalar" ", there" --cpu scalar --temp 0 -n 2 "Once upon a time"
prints "--threads 3" ", there" -t 3 --temp 0 -n 2 "Once upon a time"
for kv in f32 f16 q8; do
    prints "--kv $kv" ", there" --kv $kv --temp 0 -n 2 "Once upon a time"
done
prints "--precision f32" ", there" --precision f32 --temp 0 -n 2 "Once upon a time"

# ---- help ----------------------------------------------------------------------------------------------------------

succeeds "--version" --version
has "--version says which" '^tgen [0-9]*\.[0-9]*\.[0-9]*$'
succeeds "--help" --help
cp "$tmp/out" "$tmp/help"
if [ "$(awk 'length > 80' "$tmp/help" | wc -l)" -eq 0 ]; then ok "--help is narrow"; else fail "--help is narrow" "over 80"; fi
succeeds "-h" -h
same "-h is --help" "$tmp/help" "$tmp/out"
succeeds "help" help
same "help is --help" "$tmp/help" "$tmp/out"
succeeds "help generate" help generate
same "help generate is --help" "$tmp/help" "$tmp/out"
for option in model prompt file max-tokens context threads temp top-k top-p min-p typical-p repeat-penalty repeat-last-n \
    presence-penalty frequency-penalty seed stop ignore-eos echo special stats json quiet ids print-ids no-bos precision kv \
    cpu draft help version; do
    has "--help names --$option" " --$option" "$tmp/help"
done
for command in generate batch score choose tokenize detokenize inspect bench; do
    has "--help names $command" "^  tgen $command " "$tmp/help"
    succeeds "$command --help" $command --help
    for option in model quiet help version; do
        has "$command takes --$option" " --$option"
    done
    mv "$tmp/out" "$tmp/help_command"
    succeeds "help $command" help $command
    same "help $command is $command --help" "$tmp/help_command" "$tmp/out"
done
has "default of --temp" 'temperature.*(default 0.8)\|^ *(default 0.8)' "$tmp/help"
has "default of --top-k" '(default 40)' "$tmp/help"

finish
