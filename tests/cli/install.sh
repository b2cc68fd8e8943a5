#!/bin/sh
# make install and make uninstall, into a directory of their own.
. tests/cli/lib.sh

unset TGEN_MODEL MAKEFLAGS MAKELEVEL MFLAGS
# The program is taken as it is: -o keeps make from building another one for it.
made() {
    make -s -o "$TGEN" TGEN="$TGEN" DESTDIR="$tmp/root" PREFIX=/usr "$1" >"$tmp/log" 2>&1
}
if made install; then ok "make install"; else fail "make install" "$(peek "$tmp/log")"; fi
for file in bin/tgen share/man/man1/tgen.1 share/tgen/models/tales/model.safetensors share/tgen/models/tales/README.md \
    share/bash-completion/completions/tgen share/zsh/site-functions/_tgen share/fish/vendor_completions.d/tgen.fish; do
    if [ -s "$tmp/root/usr/$file" ]; then ok "$file is there"; else fail "$file is there" "it is not"; fi
done
cd / || exit 1
TGEN=$tmp/root/usr/bin/tgen prints "the installed program finds its model" ", there" --temp 0 -n 2 "Once upon a time"
cd "$root" || exit 1
if made uninstall; then ok "make uninstall"; else fail "make uninstall" "$(peek "$tmp/log")"; fi
left=$(find "$tmp/root" -type f)
if [ -z "$left" ]; then ok "nothing is left"; else fail "nothing is left" "$left"; fi

finish
