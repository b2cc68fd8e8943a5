#!/bin/sh
# How a model is found: a directory, the Hugging Face cache, $TGEN_MODEL, the bundled one, an installed one.
. tests/cli/lib.sh

# finds NAME DIR ARGS...: the card is that of DIR.
finds() {
    name=$1 dir=$2
    shift 2
    run inspect "$@"
    if [ "$code" -eq 0 ] && [ "$(head -n 1 "$tmp/out")" = "$dir" ]; then
        ok "$name"
    else
        fail "$name" "exit $code: $(head -n 1 "$tmp/out") $(peek "$tmp/err")"
    fi
}

finds "-m DIR" models/tales -m models/tales
finds "-mDIR" models/tales -mmodels/tales
finds "--model=DIR/" models/tales --model=models/tales/
TGEN_MODEL=models/tales finds "TGEN_MODEL" models/tales

# ---- the cache -----------------------------------------------------------------------------------------------------

commit=0123456789abcdef0123456789abcdef01234567
# cache DIR REPOSITORY: a snapshot of that name, as huggingface_hub lays it out.
cache() {
    mkdir -p "$1/models--$2/refs" "$1/models--$2/snapshots"
    printf %s "$commit" >"$1/models--$2/refs/main"
    ln -s "$tales" "$1/models--$2/snapshots/$commit"
}
cache "$tmp/hub" org--tales
cache "$tmp/hub" gpt2
cache "$tmp/hf/hub" org--tales
cache "$tmp/xdg/huggingface/hub" org--tales
cache "$HOME/.cache/huggingface/hub" org--tales
cache "$HOME/hf/hub" org--tales
snapshot=models--org--tales/snapshots/$commit

finds "org/name in ~/.cache" "$HOME/.cache/huggingface/hub/$snapshot" -m org/tales
export XDG_CACHE_HOME="$tmp/xdg"
finds "XDG_CACHE_HOME comes first" "$tmp/xdg/huggingface/hub/$snapshot" -m org/tales
export HF_HOME="$tmp/hf"
finds "HF_HOME comes before" "$tmp/hf/hub/$snapshot" -m org/tales
HUGGINGFACE_HUB_CACHE="$tmp/hub" finds "HUGGINGFACE_HUB_CACHE comes before" "$tmp/hub/$snapshot" -m org/tales
export HF_HUB_CACHE="$tmp/hub"
finds "HF_HUB_CACHE comes before" "$tmp/hub/$snapshot" -m org/tales
# shellcheck disable=SC2088 # they are meant to stay
HF_HUB_CACHE='' HF_HOME="~/hf" finds "a ~ in HF_HOME" "$HOME/hf/hub/$snapshot" -m org/tales
# shellcheck disable=SC2088
HF_HUB_CACHE="~/.cache/huggingface/hub" finds "a ~ of its own" "$HOME/.cache/huggingface/hub/$snapshot" -m org/tales
finds "a name without org" "$tmp/hub/models--gpt2/snapshots/$commit" -m gpt2
TGEN_MODEL=org/tales finds "TGEN_MODEL=org/name" "$tmp/hub/$snapshot"
printf '%s\n' "$commit" >"$tmp/hub/models--org--tales/refs/main"
finds "a newline in refs/main" "$tmp/hub/$snapshot" -m org/tales
mkdir -p "$tmp/here/org"
ln -s "$tales" "$tmp/here/org/tales"
cd "$tmp/here" || exit 1
finds "a directory of that name wins" org/tales -m org/tales
ln -s loop loop
refuses "a link to itself" 3 "cannot open loop: Too many levels of symbolic links" -m loop hi
cd "$root" || exit 1

refuses "not in the cache" 3 "org/none is neither a directory here nor in the Hugging Face cache $tmp/hub; run: hf download org/none" \
    -m org/none hi
refuses "an address" 3 "https://huggingface.co/org/none is an address" -m https://huggingface.co/org/none hi
TGEN_MODEL=org/none refuses "TGEN_MODEL is named" 3 "\$TGEN_MODEL: org/none is neither" hi
mkdir -p "$tmp/hub/models--org--part/blobs"
refuses "a download that did not finish" 3 "has no snapshot of its main branch; run: hf download org/part" -m org/part hi
cache "$tmp/hub" org--gone
rm "$tmp/hub/models--org--gone/snapshots/$commit"
refuses "a snapshot that is gone" 3 "run: hf download org/gone" -m org/gone hi
cache "$tmp/hub" org--evil
for ref in ../../../etc .. . '' 'a/b' '-/..'; do
    printf %s "$ref" >"$tmp/hub/models--org--evil/refs/main"
    refuses "refs/main of \"$ref\"" 3 "run: hf download org/evil" -m org/evil hi
done
rm "$tmp/hub/models--org--evil/refs/main"
mkfifo "$tmp/hub/models--org--evil/refs/main"
as="timeout 5" refuses "refs/main is a pipe" 3 "models--org--evil/refs/main: not a regular file" -m org/evil hi
for name in ./none /none/at/all a/b/c ../x/y 'or g/name' org/ /name .org/name org/.name; do
    refuses "-m \"$name\" is no name of a model" 3 "cannot open $name: No such file or directory" -m "$name" hi
done
refuses "-m with nothing" 3 "cannot open" -m '' hi
refuses "-m FILE" 3 "models/tales/config.json is a file; a model is the directory" -m models/tales/config.json hi
printf GGUF >"$tmp/x.gguf"
refuses "-m FILE.gguf" 3 "that holds its files, safetensors and not GGUF" -m "$tmp/x.gguf" hi
mkdir "$tmp/secret"
chmod 000 "$tmp/secret"
forbidden "a directory without permission" 3 -m "$tmp/secret" hi

# ---- beside the program --------------------------------------------------------------------------------------------

unset TGEN_MODEL
mkdir -p "$tmp/build/models" "$tmp/usr/bin" "$tmp/usr/share/tgen/models" "$tmp/bin" "$tmp/alone"
ln -s "$tales" "$tmp/build/models/tales"
ln -s "$tales" "$tmp/usr/share/tgen/models/tales"
cp "$TGEN" "$tmp/build/tgen"
cp "$TGEN" "$tmp/usr/bin/tgen"
cp "$TGEN" "$tmp/alone/tgen"
ln -s "$tmp/build/tgen" "$tmp/bin/tgen"
cd / || exit 1
tested=$TGEN
TGEN=$tmp/build/tgen finds "models/tales beside the program" "$tales"
TGEN=$tmp/usr/bin/tgen finds "../share/tgen of the program" "$tales"
TGEN=$tmp/bin/tgen finds "through a link to the program" "$tales"
TGEN=$tmp/alone/tgen refuses "no bundled model" 3 "name a model with -m" hi
TGEN_MODEL='' TGEN=$tmp/build/tgen finds "an empty TGEN_MODEL" "$tales"
TGEN=$tested
cd "$root" || exit 1

finish
