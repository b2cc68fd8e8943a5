# tokenizer.model beside SentencePiece's own programs: models of both kinds, trained on this repository's text with rules of
# normalization, symbols and blanks of every sort, give the same ids for lines that are made to be difficult, and the same
# text for ids.
. tests/cli/lib.sh

if ! command -v spm_train >/dev/null; then
    skip sentencepiece "no spm_train (Debian package sentencepiece)"
    finish
fi

cat >"$tmp/lines" <<'LINES'
Once upon a time, there was a little girl.
  two blanks before,  two  within   and behind  
	a tab	and a no-break blank, an　ideographic one, a​ zero width one
▁ the mark▁▁itself ▁
▁▁▁▁ the ▁▁ of
ends with marks ▁▁ ▁
ﬁne ① Ａ ㍿ ｶﾞ ﾊﾟ İ ß Ǆ ﷺ ¨ x ½
the thing bathe the x the▁x of label abel xyz XYZ <sep> THE 1234 12 123
the    thing     of      blanks       xyz
カ゛カ ｶﾞ ガ カ
中文 漢字かな交じり文 한국어 각 кириллица العربية ไทย हिन्दी
🙂 👨‍👩‍👧 é é n̄ 󠄀 ﻿
<s> </s> <unk> <0x41> <mask> [CLS]
￿ 𝐀𝐁 ⑳⓪ ％ ～ … ‘’ “” ‐‑‒–—
		
x
LINES
cat README.md cli/*.c tokenizer/README.md "$tmp/lines" "$tmp/lines" >"$tmp/corpus"
symbols='<sep>,xyz,ﬁ,Ａ,①,the,ing,▁of,123,カ,カ゛,the▁x,abel,▁▁,▁▁▁▁,  '

# compare NAME TRAINING...: a model so trained, and both programs with every line.
compare() {
    name="sentencepiece: $1"
    shift
    rm -rf "$tmp/m"
    mkdir "$tmp/m"
    if ! spm_train --minloglevel=2 --input="$tmp/corpus" --model_prefix="$tmp/m/tokenizer" --vocab_size=1000 \
        --hard_vocab_limit=false --num_threads=2 --max_sentence_length=20000 "$@" >"$tmp/train" 2>&1; then
        fail "$name" "training: $(peek "$tmp/train")"
        return
    fi
    spm_encode --model="$tmp/m/tokenizer.model" --output_format=id <"$tmp/lines" >"$tmp/want"
    spm_decode --model="$tmp/m/tokenizer.model" --input_format=id <"$tmp/want" >"$tmp/want_text"
    while IFS= read -r line; do
        "$TGEN" tokenize -m "$tmp/m" --no-bos -p "$line" </dev/null | tr '\n' ' ' | sed 's/ *$//'
        echo
    done <"$tmp/lines" >"$tmp/got" 2>&1
    case " $* " in
    *unigram*) sed -i 's/ 2$//' "$tmp/got" ;; # the end of the text, which T5's tokenizer adds
    esac
    # An unknown piece has a text of its own there, and bytes that are no UTF-8 become U+FFFD.
    while IFS= read -r ids <&3 && IFS= read -r text <&4; do
        case " $ids " in
        *" 0 "* | "  ") printf "%s\n" "$text" ;;
        *) "$TGEN" detokenize -m "$tmp/m" "$ids" && echo ;;
        esac
    done 3<"$tmp/want" 4<"$tmp/want_text" >"$tmp/got_text" 2>&1
    if ! cmp -s "$tmp/want" "$tmp/got"; then
        fail "$name" "$(diff "$tmp/want" "$tmp/got" | head -c 300 | tr '\n' '|')"
    elif ! cmp -s "$tmp/want_text" "$tmp/got_text"; then
        fail "$name" "$(diff "$tmp/want_text" "$tmp/got_text" | head -c 300 | tr '\n' '|')"
    else
        ok "$name"
    fi
}

compare "Unigram" --model_type=unigram
compare "Unigram, symbols" --model_type=unigram --user_defined_symbols="$symbols"
compare "Unigram, blanks and bytes as they are" --model_type=unigram --user_defined_symbols="$symbols" --byte_fallback \
    --normalization_rule_name=identity --remove_extra_whitespaces=false
compare "Unigram, folded, blanks behind words" --model_type=unigram --normalization_rule_name=nmt_nfkc_cf \
    --treat_whitespace_as_suffix
compare "BPE" --model_type=bpe
compare "BPE, symbols, blanks behind words" --model_type=bpe --user_defined_symbols="$symbols" --treat_whitespace_as_suffix
compare "BPE, folded, symbols, no prefix" --model_type=bpe --normalization_rule_name=nfkc_cf --add_dummy_prefix=false \
    --user_defined_symbols="$symbols" --control_symbols='<mask>'
compare "BPE, blanks and bytes as they are" --model_type=bpe --user_defined_symbols="$symbols" --byte_fallback \
    --normalization_rule_name=identity --remove_extra_whitespaces=false --split_digits --allow_whitespace_only_pieces
finish
