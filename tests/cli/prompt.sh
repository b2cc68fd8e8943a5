#!/bin/sh
# Where a prompt comes from, and that its bytes arrive as they are. `-n 0 --echo` prints the prompt and nothing else.
. tests/cli/lib.sh

# echoes NAME EXPECTED INPUT ARGS...: with INPUT on a pipe, the prompt is EXPECTED.
echoes() {
    name=$1
    printf %b "$2" >"$tmp/expected"
    printf %b "$3" >"$tmp/input"
    shift 3
    if "$TGEN" -n 0 --echo "$@" <"$tmp/input" >"$tmp/out" 2>"$tmp/err" && [ ! -s "$tmp/err" ]; then
        same "$name" "$tmp/expected" "$tmp/out"
    else
        fail "$name" "$(peek "$tmp/err")"
    fi
}

printf 'from a file\n' >"$tmp/file"

echoes "an argument" 'a b' '' 'a b'
echoes "words join with a space" 'a b  c' '' a 'b ' c
echoes "an empty argument" '' '' ''
echoes "-p" 'a b' '' -p 'a b'
echoes "--prompt=" '-x' '' --prompt=-x
echoes "a pipe" 'from a pipe\n' 'from a pipe\n'
echoes "a pipe and an argument" 'pipe\nargument' 'pipe' argument
echoes "the pipe's newline stays" 'pipe\n\nargument' 'pipe\n' argument
echoes "a pipe and -p" 'pipe\nargument' 'pipe' -p argument
echoes "- asks for stdin" 'pipe' 'pipe' -
echoes "- and an argument" 'pipe\nargument' 'pipe' argument -
echoes "an empty pipe joins nothing" 'argument' '' argument
echoes "-f" 'from a file\n' '' -f "$tmp/file"
echoes "-f and an argument" 'from a file\n\nargument' '' -f "$tmp/file" argument
echoes "-f leaves stdin alone" 'from a file\n' 'pipe' -f "$tmp/file"
echoes "-f, - and an argument" 'from a file\n\npipe\nargument' 'pipe' -f "$tmp/file" - argument
echoes "-f - is stdin" 'pipe' 'pipe' -f -
echoes "no escapes" 'a\\nb%%s' 'a\\nb%%s'
echoes "no escapes in an argument" 'a\\nb%%s' '' 'a\nb%%s'
echoes "white space stays" ' \\t a \\n\\n' "$(printf '%s' ' \\t a \\n\\n')"
echoes "CR LF stays" 'a\r\nb\r\n' 'a\r\nb\r\n'
echoes "UTF-8 stays" 'h\0303\0251 \0360\0237\0230\0200' 'h\0303\0251 \0360\0237\0230\0200'
echoes "a byte order mark stays" '\0357\0273\0277x' '\0357\0273\0277x'
echoes "NUL stays" 'a\0000b' 'a\0000b'
echoes "invalid UTF-8 is no error" 'a\0377\0200z' 'a\0377\0200z'
echoes "overlong UTF-8 is no error" '\0300\0200!' '\0300\0200!'
echoes "text that looks special is text" '<|endoftext|>' '' '<|endoftext|>'

"$TGEN" -n 0 --echo >"$tmp/out" 2>"$tmp/err" <&-
if [ $? -eq 2 ]; then ok "a closed stdin is no prompt"; else fail "a closed stdin is no prompt" "$(peek "$tmp/err")"; fi
"$TGEN" -n 0 --echo argument <&- >"$tmp/out" 2>"$tmp/err"
printf argument >"$tmp/expected"
same "a closed stdin and an argument" "$tmp/expected" "$tmp/out"

refuses "no such file" 1 "cannot read $tmp/none: No such file or directory" -f "$tmp/none"
refuses "a directory as -f" 1 "cannot read $tmp: Is a directory" -f "$tmp"
mkdir "$tmp/dir"
input=$tmp/dir refuses "a directory as stdin" 1 "cannot read standard input: Is a directory"
touch "$tmp/secret"
chmod 000 "$tmp/secret"
forbidden "a file without permission" 1 -f "$tmp/secret"
refuses "-p and an argument" 2 'given twice: with -p and as "b"' -p a b
refuses "two files" 2 "--file is given twice" -f "$tmp/file" -f "$tmp/file"
refuses "--ids twice" 2 "--ids is given twice" --ids 1 --ids 2
refuses "--ids and an argument" 2 "given twice: with --ids" --ids 1 a
refuses "--ids and -f" 2 "given twice: with --ids" --ids 1 -f "$tmp/file"
refuses "--ids and -" 2 "given twice: with --ids" --ids 1 -
refuses "nothing to begin with" 2 "the prompt is empty and there is no token to begin with" --no-bos ''
succeeds "BOS is enough to begin" -n 3 --seed 1 ''
has "BOS alone gives text" .

# With a terminal on stdin and no prompt: a short help. script(1) gives a terminal.
if command -v script >/dev/null; then
    for command in '' score tokenize; do
        script -qec "'$TGEN' $command >'$tmp/out' 2>'$tmp/err'; echo \$? >'$tmp/code'" /dev/null </dev/null >/dev/null
        if [ "$(cat "$tmp/code")" -eq 2 ] && [ ! -s "$tmp/out" ] && grep -q "Once upon a time" "$tmp/err"; then
            ok "a short help: tgen $command"
        else
            fail "a short help: tgen $command" "exit $(cat "$tmp/code"): $(peek "$tmp/err")"
        fi
    done
else
    skip "a short help" "there is no script(1)"
fi

finish
