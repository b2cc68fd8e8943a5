# What the scripts of this folder share; each begins with `. tests/cli/lib.sh` at the root of the repository, with the
# program in $TGEN. A script prints "ok NAME", "FAIL NAME: why" or "SKIP NAME: why" a line each, and ends with `finish`,
# whose status is not 0 where anything failed. Scratch files go to $tmp, which is removed.

: "${TGEN:?the program to test}"
case $TGEN in
/*) ;;
*) TGEN=$PWD/$TGEN ;;
esac
root=$PWD
tales=$root/models/tales
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM
n_failed=0

# Nothing of the machine may leak in; a build in another directory finds the bundled model by name.
unset TGEN_CPU HF_HUB_CACHE HUGGINGFACE_HUB_CACHE HF_HOME XDG_CACHE_HOME NO_COLOR
export TGEN_MODEL="$tales" HOME="$tmp/home" TERM=xterm LC_ALL=C

ok() {
    echo "ok $1"
}

fail() {
    echo "FAIL $1: $2"
    n_failed=$((n_failed + 1))
}

skip() {
    echo "SKIP $1: $2"
}

finish() {
    [ "$n_failed" -eq 0 ]
    exit
}

# run ARGS...: the program without input; leaves $tmp/out, $tmp/err and $code.
run() {
    ${as-} "$TGEN" "$@" <"${input:-/dev/null}" >"$tmp/out" 2>"$tmp/err"
    code=$?
}

# The beginning of a file, on one line, for a FAIL.
peek() {
    head -c 300 "$1" | tr '\n' '|'
}

# refuses NAME CODE SENTENCE ARGS...: ends with CODE, one "tgen: ..." that holds SENTENCE, and no answer.
refuses() {
    name=$1 want=$2 sentence=$3
    shift 3
    run "$@"
    if [ "$code" -ne "$want" ]; then
        fail "$name" "exit $code, not $want: $(peek "$tmp/err")"
    elif [ -s "$tmp/out" ]; then
        fail "$name" "stdout has: $(peek "$tmp/out")"
    elif [ "$(wc -l <"$tmp/err")" -ne 1 ] || ! grep -q '^tgen: ' "$tmp/err"; then
        fail "$name" "not one sentence: $(peek "$tmp/err")"
    elif ! grep -qF -e "$sentence" "$tmp/err"; then
        fail "$name" "\"$sentence\" is not in: $(peek "$tmp/err")"
    else
        ok "$name"
    fi
}

# forbidden NAME CODE ARGS...: the same, of something whose mode is 000. Root, who may read everything, gives that up first.
forbidden() {
    name=$1 want=$2
    shift 2
    if [ "$(id -u)" -ne 0 ]; then
        refuses "$name" "$want" "Permission denied" "$@"
    elif setpriv --bounding-set=-all true 2>/dev/null; then
        as="setpriv --bounding-set=-all" refuses "$name" "$want" "Permission denied" "$@"
    else
        skip "$name" "root may read everything"
    fi
}

# succeeds NAME ARGS...: ends with 0 and says nothing on stderr; leaves $tmp/out.
succeeds() {
    name=$1
    shift
    run "$@"
    if [ "$code" -ne 0 ]; then
        fail "$name" "exit $code: $(peek "$tmp/err")"
    elif [ -s "$tmp/err" ]; then
        fail "$name" "stderr has: $(peek "$tmp/err")"
    else
        ok "$name"
    fi
}

# prints NAME TEXT ARGS...: succeeds, and the answer is exactly TEXT.
prints() {
    name=$1
    printf %s "$2" >"$tmp/expected"
    shift 2
    run "$@"
    if [ "$code" -ne 0 ]; then
        fail "$name" "exit $code: $(peek "$tmp/err")"
    elif ! cmp -s "$tmp/expected" "$tmp/out"; then
        fail "$name" "stdout has: $(peek "$tmp/out")"
    else
        ok "$name"
    fi
}

# same NAME FILE FILE
same() {
    if cmp -s "$2" "$3"; then
        ok "$1"
    else
        fail "$1" "$(peek "$2") is not $(peek "$3")"
    fi
}

# has NAME PATTERN [FILE]: a line of the answer (or FILE) matches.
has() {
    if grep -q -e "$2" "${3:-$tmp/out}"; then
        ok "$1"
    else
        fail "$1" "no \"$2\" in: $(peek "${3:-$tmp/out}")"
    fi
}

# field NAME: the value of a member of the JSON object in $tmp/out that is a number or a plain string.
field() {
    sed -n "s/.*\"$1\":\"*\([^\",}]*\).*/\1/p" "$tmp/out"
}

# copy_model DIR: the bundled model under another name, its weights shared.
copy_model() {
    mkdir -p "$1"
    for file in "$tales"/*; do
        case $file in
        *.safetensors) ln -s "$file" "$1" ;;
        *) cp "$file" "$1" ;;
        esac
    done
}

# le64 N: eight bytes, little-endian.
le64() {
    n=$1 i=0
    while [ $i -lt 8 ]; do
        # shellcheck disable=SC2059 # the format is the byte
        printf "\\$(printf %03o $((n % 256)))"
        n=$((n / 256)) i=$((i + 1))
    done
}
