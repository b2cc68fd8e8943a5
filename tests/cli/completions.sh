#!/bin/sh
# The completions that tgen makes of its own tables: each shell that is here parses them, and bash uses them.
. tests/cli/lib.sh

for shell in bash zsh fish; do
    succeeds "--completions $shell" --completions $shell
    has "$shell knows --max-tokens" max-tokens
    has "$shell knows detokenize" detokenize
    cp "$tmp/out" "$tmp/$shell"
    if ! command -v $shell >/dev/null; then
        skip "$shell parses them" "there is no $shell"
    elif $shell -n "$tmp/$shell" 2>"$tmp/err"; then
        ok "$shell parses them"
    else
        fail "$shell parses them" "$(peek "$tmp/err")"
    fi
done

# completes NAME EXPECTED WORDS...: what bash offers for the last of the words, sorted.
completes() {
    name=$1 want=$2
    shift 2
    offered=$(bash -c '. "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _tgen; printf "%s\n" "${COMPREPLY[@]}"' \
        "$tmp/bash" "$@" | sort | tr '\n' ' ')
    if [ "$offered" = "$want" ]; then ok "$name"; else fail "$name" "$offered"; fi
}
if command -v bash >/dev/null; then
    completes "a command" "tokenize " tgen tok
    completes "an option" "--temp " tgen --te
    completes "an option of a command" "--logits " tgen score --l
    completes "no option of another" " " tgen score --te
    completes "no command behind another" " " tgen score tok
    completes "a command for help" "inspect " tgen help ins
    completes "a choice" "auto f32 " tgen --precision ''
    completes "a word beside numbers" "auto off " tgen --draft ''
    completes "a directory" "models " tgen -m mod
    completes "a file" "Makefile " tgen -f Makef
    mkdir "$tmp/two words"
    completes "a name with a blank" "$tmp/two words " tgen -m "$tmp/tw"
    completes "a value behind =" "q4 q8 " tgen --weights = q
    completes "all values behind =" "q4 q8 stored " tgen --weights =
    completes "no word for a number" " " tgen -n ''
fi

finish
