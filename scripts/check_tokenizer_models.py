#!/usr/bin/env python3
"""Checks the tokenizers of published models against Hugging Face `tokenizers` and llama.cpp's golden files.

Run by hand; neither the build nor the tests need it:
    cmake --build --preset release --target tokenizer_tool
    python3 -m venv venv && venv/bin/pip install tokenizers gguf
    venv/bin/python scripts/check_tokenizer_models.py build/release/tests/tokenizer_tool FOLDER_OR_FILE... [--random N]

Each FILE is a GGUF file; of a FOLDER, such as `models` of llama.cpp's source, those called ggml-vocab-NAME.gguf. A file
of a known kind is written as tokenizer.json, in every spelling that the kind has, and for each of them
  - the ids of the golden texts (.inp, .out), if there are any, are those of llama.cpp;
  - the ids of N random texts (100,000 unless told) and of documents are those of `tokenizers`, decoding restores them;
  - the tokenizer that was taken apart and put together again gives the same ids, in `tokenizers` too.
Exits with 1 if anything differs.
"""

import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import gguf
from tokenizers import Tokenizer, normalizers

CONTRACTIONS = r"'s|'t|'re|'ve|'m|'ll|'d"
LLAMA3 = (r"(?i:" + CONTRACTIONS + r")|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace("{1,3}", "")
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
NO_REGEX = {**BYTE_LEVEL, "use_regex": False}
GOLDEN_SEPARATOR = "\n__ggml_vocab_test__\n"


def split_by(pattern):
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    return {"type": "Sequence", "pretokenizers": [split, NO_REGEX]}


DIGITS = {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, BYTE_LEVEL]}
PRE = {"gpt-2": (BYTE_LEVEL, None), "smollm": (DIGITS, None), "starcoder": (DIGITS, None), "refact": (DIGITS, None),
       "llama-bpe": (split_by(LLAMA3), None), "qwen2": (split_by(QWEN2), {"type": "NFC"})}


class Vocabulary:
    def __init__(self, path):
        fields = gguf.GGUFReader(path).fields

        def get(name, otherwise=None):
            field = fields.get("tokenizer.ggml." + name)
            return otherwise if field is None else field.contents()

        self.model, self.pre = get("model"), get("pre")
        self.tokens, self.types = get("tokens"), get("token_type")
        self.merges, self.scores = get("merges"), get("scores")
        self.bos = get("bos_token_id")

    def known(self):
        return self.pre in PRE if self.model == "gpt2" else (self.model == "llama" and self.pre == "default")

    def merges_of_scores(self):
        """As transformers converts SentencePiece models."""
        normal = {token: score for token, kind, score in zip(self.tokens, self.types, self.scores) if kind == 1}
        merges = []
        for token, score in normal.items():
            pairs = [(token[:i], token[i:], score) for i in range(1, len(token))]
            merges += [pair for pair in pairs if pair[0] in normal and pair[1] in normal]
        merges.sort(key=lambda merge: (merge[2], len(merge[0]), len(merge[1])), reverse=True)
        return [merge[:2] for merge in merges]


def document(vocabulary, **parts):
    added = [{"id": i, "content": token, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
              "special": kind != 4}
             for i, (token, kind) in enumerate(zip(vocabulary.tokens, vocabulary.types)) if kind in (2, 3, 4)]
    model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
             "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
             "vocab": {token: i for i, token in enumerate(vocabulary.tokens)}, **parts.pop("model")}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
            "pre_tokenizer": None, "post_processor": None, "decoder": None, **parts, "model": model}


def template(vocabulary):
    token = vocabulary.tokens[vocabulary.bos]
    single = [{"SpecialToken": {"id": token, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    pair = [*single, {"SpecialToken": {"id": token, "type_id": 1}}, {"Sequence": {"id": "B", "type_id": 1}}]
    return {"type": "TemplateProcessing", "single": single, "pair": pair,
            "special_tokens": {token: {"id": token, "ids": [vocabulary.bos], "tokens": [token]}}}


def spellings(name, vocabulary):
    """(name, tokenizer.json) of a vocabulary."""
    if vocabulary.model == "gpt2":
        pre, normalizer = PRE[vocabulary.pre]
        llama3 = vocabulary.pre == "llama-bpe"
        post = {"type": "Sequence", "processors": [BYTE_LEVEL, template(vocabulary)]} if llama3 else BYTE_LEVEL
        model = {"merges": vocabulary.merges, "ignore_merges": llama3}
        yield name, document(vocabulary, normalizer=normalizer, pre_tokenizer=pre, post_processor=post,
                             decoder=BYTE_LEVEL, model=model)
        return
    space, strip = "\u2581", {"type": "Strip", "content": " ", "start": 1, "stop": 0}
    decoders = [{"type": "Replace", "pattern": {"String": space}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}]
    model = {"merges": vocabulary.merges_of_scores(), "byte_fallback": True, "fuse_unk": True, "unk_token": "<unk>"}
    common = {"post_processor": template(vocabulary)}
    stripping = {"type": "Sequence", "decoders": [*decoders, strip]}
    normalizers = [{"type": "Prepend", "prepend": space}, {"type": "Replace", "pattern": {"String": " "}, "content": space}]
    yield name, document(vocabulary, normalizer={"type": "Sequence", "normalizers": normalizers}, decoder=stripping,
                         model=dict(model), **common)
    for scheme in ("first", "always", "never"):
        metaspace = {"type": "Metaspace", "replacement": space, "prepend_scheme": scheme, "split": False}
        decoder = {"type": "Sequence", "decoders": decoders} if scheme == "never" else stripping
        yield f"{name}-{scheme}", document(vocabulary, pre_tokenizer=metaspace, decoder=decoder, model=dict(model), **common)


def random_texts(count, tokens, specials):
    rng = random.Random(1)
    ranges = [(0x20, 0x7F), (0x20, 0x7F), (0, 0x20), (0x80, 0x250), (0x300, 0x370), (0x370, 0x530), (0x900, 0xE80),
              (0x1100, 0x1200), (0x1E00, 0x2070), (0x2580, 0x25A0), (0x3040, 0x3100), (0x4E00, 0x9FFF), (0xAC00, 0xD7A4),
              (0xF900, 0xFB00), (0x1F300, 0x1F700), (0x10000, 0x13000), (0x20000, 0x30000)]
    phrases = ["'s", "'LL", "'\u017f", "  ", "\n", "\r\n", " \n ", "\t", "123", "4567", " 12", "\u00bd", "e\u0301", "!!!", "...\n",
               "\u3000", "\u2028", "don't", " the", "The", "\u1100\u1161\u11a8", "\u0344", "\u212b", "<", "|>", "\u2581", *specials[:6]]
    words = [token for token in tokens if token.isascii()]
    for _ in range(count):
        text = ""
        for _ in range(rng.randrange(1, 12)):
            kind = rng.randrange(4)
            if kind == 0:
                low, high = rng.choice(ranges)
                text += "".join(chr(rng.randrange(low, high)) for _ in range(rng.randrange(1, 6)))
            elif kind == 1:
                text += rng.choice(phrases)
            else:
                text += rng.choice(words).replace("\u0120", " ").replace("\u2581", " ")
        yield text


class Check:
    def __init__(self, tool):
        self.tool, self.failures, self.done = tool, 0, 0

    def run(self, *words, data=b""):
        result = subprocess.run([self.tool, *map(str, words)], input=data, capture_output=True)
        if result.returncode != 0:
            raise RuntimeError(result.stderr.decode(errors="replace").strip())
        return result.stdout.decode()

    def equal(self, what, ours, theirs):
        self.done += 1
        if ours != theirs:
            self.failures += 1
            if self.failures <= 20:
                print(f"DIFFERS {what}: ours {ours!r:.300}, theirs {theirs!r:.300}")

    def lines(self, path, texts):
        """(ids, ids of the document, decoded bytes) of each text."""
        data = "\n".join(text.encode().hex() for text in texts) + "\n"
        for line in self.run("lines", path, data=data.encode()).splitlines():
            ids, of_document, decoded = line.split(";")
            yield [int(i) for i in ids.split()], [int(i) for i in of_document.split()], bytes.fromhex(decoded)


def golden(path):
    texts = pathlib.Path(f"{path}.inp").read_bytes().decode().split(GOLDEN_SEPARATOR)
    ids = [[int(i) for i in line.split()] for line in pathlib.Path(f"{path}.out").read_text().splitlines()]
    return texts[:len(ids)], ids


def restored(name, vocabulary, text):
    """What decoding the ids of `text` gives where it is not the text."""
    if vocabulary.pre == "qwen2":
        return normalizers.NFC().normalize_str(text)
    if vocabulary.model == "llama":
        text = text.replace("\u2581", " ")
        if not name.endswith("-never") and "-" in name.removeprefix("llama-spm"):
            return text.removeprefix(" ")
    return text


def check_file(check, path, folder, count):
    vocabulary = Vocabulary(path)
    name = path.name.removeprefix("ggml-vocab-").removesuffix(".gguf")
    if not vocabulary.known():
        print(f"{name}: model {vocabulary.model}, pre {vocabulary.pre}: not checked")
        return
    for spelling, root in spellings(name, vocabulary):
        before = check.failures
        file = folder / f"{spelling}.json"
        file.write_text(json.dumps(root))
        theirs = Tokenizer.from_file(str(file))
        if pathlib.Path(f"{path}.inp").exists() and spelling == name:
            texts, expected = golden(path)
            for text, ours, ids in zip(texts, check.lines(file, texts), expected, strict=True):
                check.equal(f"{spelling}: golden {text!r:.60}", ours[0], ids)
            print(f"{spelling}: {len(texts)} golden texts")
        specials = [token for token, kind in zip(vocabulary.tokens, vocabulary.types) if kind in (3, 4)]
        texts = ["", " ", "  ", " a", "a ", "\n", *random_texts(count, vocabulary.tokens, specials)]
        prompts = [e.ids for e in theirs.encode_batch(texts, add_special_tokens=False)]
        theirs.encode_special_tokens = True
        documents = [e.ids for e in theirs.encode_batch(texts, add_special_tokens=False)]
        complete = all(c in theirs.get_vocab() for c in ("\u00f1", "\u0100")) or vocabulary.model == "llama"
        again = folder / f"{spelling}-again.json"
        check.run("parts", file, again)
        taken_apart = [e.ids for e in Tokenizer.from_file(str(again)).encode_batch(texts, add_special_tokens=False)]
        for text, ours, prompt, of_document, apart in zip(texts, check.lines(file, texts), prompts, documents, taken_apart,
                                                          strict=True):
            check.equal(f"{spelling}: ids of {text!r:.60}", ours[0], prompt)
            check.equal(f"{spelling}: ids of the document {text!r:.60}", ours[1], of_document)
            check.equal(f"{spelling}: taken apart, ids of {text!r:.60}", apart, prompt)
            if complete:
                check.equal(f"{spelling}: text of {text!r:.60}", ours[2].decode(), restored(spelling, vocabulary, text))
        with_start = theirs.encode("a", add_special_tokens=True).ids
        info = [int(number) for number in check.run("info", file).split()]
        check.equal(f"{spelling}: begin of text", info[1], vocabulary.bos if len(with_start) > 1 and
                    with_start[0] == vocabulary.bos else -1)
        print(f"{spelling}: {len(texts)} texts, {check.failures - before} differences; vocabulary, begin and end {info}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool")
    parser.add_argument("paths", nargs="+", type=pathlib.Path)
    parser.add_argument("--random", type=int, default=100_000)
    options = parser.parse_args()
    check = Check(options.tool)
    with tempfile.TemporaryDirectory() as name:
        for path in options.paths:
            for file in sorted(path.glob("ggml-vocab-*.gguf")) if path.is_dir() else [path]:
                check_file(check, file, pathlib.Path(name), options.random)
    print(f"{check.done} comparisons, {check.failures} differ")
    return 1 if check.failures else 0


if __name__ == "__main__":
    sys.exit(main())
