#!/bin/sh
# The manual cannot lie: its options are those of the program, its defaults too, and its examples do what they show.
. tests/cli/lib.sh

manual=cli/tgen.1

# ---- options -------------------------------------------------------------------------------------------------------

for command in generate batch score choose tokenize detokenize inspect quantize bench; do
    "$TGEN" help $command
done | sed -n 's/^  \(-.,\|   \) --\([a-z-]*\).*/\2/p' | sort -u >"$tmp/program"
# An item is the line behind .TP; options that a text merely mentions stand elsewhere.
sed -n '/^\.SH OPTIONS/,/^\.SH EXIT/p' "$manual" | awk 'item { print; item = 0 } /^\.TP/ { item = 1 }' |
    sed 's/\\-/-/g' | sed -n 's/.*--\([a-z-]*\).*/\1/p' | sort -u >"$tmp/manual"
same "the manual's options are the program's" "$tmp/program" "$tmp/manual"
for option in $(cat "$tmp/program"); do
    letter=$("$TGEN" --help | sed -n "s/^  -\(.\), --$option .*/\1/p")
    [ -z "$letter" ] || has "-$letter is --$option in the manual" "\\\\-$letter \", \" \\\\-\\\\-$(echo "$option" | sed 's/-/\\\\-/g')" "$manual"
done
for default in $("$TGEN" --help | tr -d '\n' | grep -o -e '--[a-z-]* [A-Z]  *[^(]*(default [0-9.]*)' | sed 's/ .*default /=/; s/)//'); do
    option=$(echo "${default%%=*}" | sed 's/-/\\\\-/g')
    value=${default#*=}
    if sed -n "/^\.B.*$option /,/^\.TP/p" "$manual" | grep -q "Default: $value\.$"; then
        ok "the manual's default of $default"
    else
        fail "the manual's default of $default" "$(sed -n "/^\.B.*$option /,/^\.TP/p" "$manual" | grep Default)"
    fi
done

# ---- JSON ----------------------------------------------------------------------------------------------------------

# names_keys COMMAND ARGS...: what its --json prints has no key that the manual does not name.
sed -n '/^\.SH JSON/,/^\.SH EXIT/p' "$manual" | tr -c 'a-z0-9_' '\n' | sort -u >"$tmp/named"
names_keys() {
    succeeds "$1 --json" "$@" --json
    tr '{,' '\n\n' <"$tmp/out" | sed -n 's/^"\([a-z0-9_]*\)":.*/\1/p' | sort -u >"$tmp/keys"
    unnamed=$(comm -23 "$tmp/keys" "$tmp/named" | tr '\n' ' ')
    if [ -s "$tmp/keys" ] && [ -z "$unnamed" ]; then ok "the manual's keys of $1"; else fail "the manual's keys of $1" "not there: $unnamed"; fi
}
names_keys generate -n 4 "Once upon a time"
names_keys score "Once upon a time"
names_keys choose -p "Once upon a" " time" " dog"
names_keys tokenize hi
names_keys detokenize 574
names_keys quantize -q -w q8 -o "$tmp/quantised"
names_keys bench -p 8 -n 2 -r 1

for code in 0 1 2 3 4 130; do
    if sed -n '/^\.SH EXIT/,/^\.SH ENV/p' "$manual" | grep -qx $code; then ok "exit $code"; else fail "exit $code" "not in the manual"; fi
done

# ---- examples ------------------------------------------------------------------------------------------------------

# Between .EX and .EE: "$ COMMAND", and behind it what it prints, where the manual shows that.
mkdir "$tmp/bin"
printf '#!/bin/sh\nexec "%s" "$@"\n' "$TGEN" >"$tmp/bin/tgen"
chmod +x "$tmp/bin/tgen"
sed -n '/^\.EX/,/^\.EE/p' "$manual" | sed 's/\\-/-/g; s/\\e/\\/g' | grep -v '^\.EX' >"$tmp/examples"
try() {
    [ -n "$command" ] || return
    (PATH=$tmp/bin:$PATH && cd "$tmp" && sh -c "$command") </dev/null >"$tmp/out" 2>"$tmp/err"
    code=$?
    [ -z "$(tail -c 1 "$tmp/out")" ] || echo >>"$tmp/out" # a terminal would have ended the line
    if [ $code -ne 0 ] || [ -s "$tmp/err" ] || [ ! -s "$tmp/out" ]; then
        fail "example: $command" "exit $code: $(peek "$tmp/err")"
    elif [ -s "$tmp/shown" ]; then
        same "example: $command" "$tmp/shown" "$tmp/out"
    else
        ok "example: $command"
    fi
}
command=
n_examples=0
while IFS= read -r line; do
    case $line in
    '$ '* | .EE)
        try
        command=${line#"$ "}
        [ "$line" != .EE ] || command=
        [ -z "$command" ] || n_examples=$((n_examples + 1))
        : >"$tmp/shown"
        ;;
    *) printf '%s\n' "$line" >>"$tmp/shown" ;;
    esac
done <"$tmp/examples"
if [ $n_examples -ge 8 ]; then ok "$n_examples examples"; else fail "examples" "only $n_examples"; fi

if command -v man >/dev/null && command -v groff >/dev/null; then
    LC_ALL=C.UTF-8 MANROFFSEQ='' man --warnings -E UTF-8 -l -Tutf8 -Z "$manual" 2>"$tmp/err" >/dev/null
    if [ -s "$tmp/err" ]; then fail "man reads it" "$(peek "$tmp/err")"; else ok "man reads it"; fi
else
    skip "man reads it" "there is no man(1)"
fi

finish
