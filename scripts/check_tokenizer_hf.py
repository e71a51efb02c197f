#!/usr/bin/env python3
"""Checks that Hugging Face `tokenizers` reads Quern's tokenizer.json and gives the same ids, and vice versa.

Run by hand; neither the build nor the tests need it:
    cmake --build --preset release --target tokenizer_tool
    python3 -m venv venv && venv/bin/pip install tokenizers
    venv/bin/python scripts/check_tokenizer_hf.py build/release/tests/tokenizer_tool TEXT

TEXT is an English text to train on, about a megabyte. Takes a few minutes. Exits with 1 if anything differs.
"""

import itertools
import pathlib
import subprocess
import sys
import tempfile
import time
import unicodedata

import tokenizers
from tokenizers import AddedToken, ByteLevelBPETokenizer, Tokenizer, decoders, models, pre_tokenizers, trainers

VOCABULARY = 8192
HARD = [
    "", " ", "  ", "\n", "\n\n", " \n ", "\t\ttabs\t and spaces  ", "trailing   ", "   leading", "a  b   c    d",
    "I'll, you're; he's don't we've I'd I'm 'tis O'Neill's ''s 'S 'LL", "'s't're've'm'll'd", "' s", "\u2019s",
    "3.14159 1,000,000 2nd x86_64 \u00bd \u00b2 \u0664\u0665 \u2167", "http://a.b/c?d=e&f#g", "!!!??? ... --- ***", "a_b-c",
    "na\u00efve caf\u00e9 \u00dcber stra\u00dfe", "e\u0301 combining", "\u0412\u0441\u0435 \u0441\u0447\u0430\u0441\u0442\u043b\u0438\u0432\u044b\u0435",
    "\u4e2d\u6587\u6ca1\u6709\u7a7a\u683c\u3002\u65e5\u672c\u8a9e\u3068", "\u0645\u0631\u062d\u0628\u0627 \u05e9\u05dc\u05d5\u05dd", "\u0939\u093f\u0928\u094d\u0926\u0940",
    "\U0001f600 \U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1eb\U0001f1f7 \u2764\ufe0f", "\u00a0nbsp\u3000wide\u2003em\u200bzero\u180emongolian",
    "a\r\nb\rc\n\rd", "\u2028line\u2029paragraph\u0085next", "nul\x00\x01\x1f\x7f\x80\x9f", "\ufeffbom \ufffd \U0010ffff \ue000",
    "x" * 1000, " " * 1000 + "x", "ab" * 5000, "\u00e9" * 999, "the end<|endoftext|>start <|endoftext|><|endoftext|> <|endoftext|",
]


class Check:
    def __init__(self, tool):
        self.tool = tool
        self.failures = 0
        self.done = 0

    def run(self, *words, data=b""):
        result = subprocess.run([self.tool, *map(str, words)], input=data, capture_output=True)
        if result.returncode != 0:
            raise RuntimeError(result.stderr.decode(errors="replace").strip())
        return result.stdout

    def numbers(self, *words, data):
        return [int(line) for line in self.run(*words, data=data).split()]

    def equal(self, what, ours, theirs):
        self.done += 1
        if ours != theirs:
            self.failures += 1
            print(f"DIFFERS {what}: ours {ours!r:.200}, theirs {theirs!r:.200}")

    def same_ids(self, path, texts):
        theirs = Tokenizer.from_file(str(path))
        for text in texts:
            data = text.encode()
            ids = theirs.encode(text).ids
            self.equal(f"{path.name} ids of {text!r:.60}", self.numbers("encode", path, data=data), ids)
            decoded = self.run("decode", path, data="\n".join(map(str, ids)).encode())
            self.equal(f"{path.name} text of {text!r:.60}", decoded, data)
            self.equal(f"{path.name} their text of {text!r:.60}", theirs.decode(ids, skip_special_tokens=False), text)
            theirs.encode_special_tokens = True  # as ordinary text, as in documents
            document = theirs.encode(text).ids
            self.equal(f"{path.name} ids of the document {text!r:.60}", self.numbers("document", path, data=data), document)
            theirs.encode_special_tokens = False


def check_ours(check, folder, text):
    corpus = text + "".join(HARD)
    for kind in ("byte", "char", "bpe"):
        path = folder / f"{kind}.json"
        check.run("train", kind, VOCABULARY, path, data=corpus.encode())
        check.same_ids(path, [*HARD, corpus])
        theirs = Tokenizer.from_file(str(path))
        special = {number: token.content for number, token in theirs.get_added_tokens_decoder().items() if token.special}
        last = theirs.get_vocab_size() - 1
        check.equal(f"{kind} special tokens", {last: "<|endoftext|>"} if kind == "bpe" else {}, special)
    theirs = Tokenizer.from_file(str(folder / "char.json"))
    try:
        check.equal("unknown character", "an error", theirs.encode("\u0f3a").ids)
    except Exception:
        check.equal("unknown character", "an error", "an error")


def check_trainer(check, folder, text):
    """Both trainers learn the same merges, in the same order."""
    theirs = Tokenizer(models.BPE())
    theirs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    theirs.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY - 1, min_frequency=1, initial_alphabet=alphabet, show_progress=False)
    theirs.train_from_iterator([text], trainer)
    theirs.add_special_tokens(["<|endoftext|>"])
    ours = folder / "trained.json"
    check.run("train", "bpe", VOCABULARY, ours, data=text.encode())
    check.equal("trained vocabulary", Tokenizer.from_file(str(ours)).get_vocab(), theirs.get_vocab())
    theirs.save(str(folder / "theirs.json"))
    check.same_ids(folder / "theirs.json", [*HARD, text])


def check_theirs(check, folder, text):
    """Files written by other tools: special tokens first, tokens added later, old-style files."""
    bpe = ByteLevelBPETokenizer()
    bpe.train_from_iterator([text], vocab_size=2000, special_tokens=["<s>", "<|endoftext|>"], show_progress=False)
    bpe.add_tokens([AddedToken("Romeo and Juliet", normalized=False), "Romeo"])
    bpe.save(str(folder / "special.json"))
    check.same_ids(folder / "special.json", [*HARD, "<s>Romeo and Juliet, Romeo and</s>Romeo<s", text])


def check_pieces(check):
    """Every code point next to letters, digits, spaces and itself."""
    splitter = pre_tokenizers.ByteLevel(add_prefix_space=False)
    unlike = []
    for first in range(0, 0x110000, 4096):
        points = [c for c in range(first, min(first + 4096, 0x110000)) if not 0xD800 <= c <= 0xDFFF]
        for c, pattern in itertools.product(points, ["a{0}b", " {0}1", "{0}{0} !{0}a"]):
            text = pattern.format(chr(c))
            unlike.append((c, text))
    # One call per tokenizer: pieces never cross "\n!" and are compared by their ends.
    joined = "".join(text + "\n!" for _, text in unlike)
    theirs = [len(piece[0]) for piece in splitter.pre_tokenize_str(joined)]
    ours = check.numbers("split", data=joined.encode())
    check.done += 1
    if ours != theirs:
        ends = [set(itertools.accumulate(lengths)) for lengths in (ours, theirs)]
        at, bad = 0, set()
        for c, text in unlike:
            length = len((text + "\n!").encode())
            if any((at + i in ends[0]) != (at + i in ends[1]) for i in range(1, length + 1)):
                bad.add(c)
            at += length
        # Unicode tables of different versions differ only on code points that the older one does not have.
        old = [c for c in sorted(bad) if unicodedata.ucd_3_2_0.category(chr(c)) != "Cn"]
        check.equal("pieces of characters of Unicode 3.2", old, [])
        print(f"pieces: {len(bad)} code points of newer Unicode versions differ:",
              " ".join(f"{a:04X}-{b:04X}" for a, b in ranges(sorted(bad))))


def ranges(numbers):
    for _, group in itertools.groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        group = [number for _, number in group]
        yield group[0], group[-1]


def report_speed(check, folder, text):
    theirs = Tokenizer.from_file(str(folder / "bpe.json"))
    start = time.perf_counter()
    theirs.encode(text * 5)
    print(f"speed: theirs {len(text.encode()) * 5 / (time.perf_counter() - start) / 1e6:.1f} MB/s; ours:")
    subprocess.run([check.tool, "encode", folder / "bpe.json"], input=(text * 5).encode(), stdout=subprocess.DEVNULL)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    check = Check(sys.argv[1])
    text = pathlib.Path(sys.argv[2]).read_text()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        check_ours(check, folder, text)
        check_trainer(check, folder, text)
        check_theirs(check, folder, text)
        check_pieces(check)
        report_speed(check, folder, text)
    print(f"tokenizers {tokenizers.__version__}: {check.done} comparisons, {check.failures} differ")
    return 1 if check.failures else 0


if __name__ == "__main__":
    sys.exit(main())
