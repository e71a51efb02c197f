#!/usr/bin/env python3
"""Prints src/data/unicode_ranges.h: which code points are letters, numbers, or may change under NFC.

The NFC of `tokenizers` is that of Unicode 9, older than its classes, so it is asked instead of the tables: to it, marks
that are newer are characters like any other.

Run by hand, when Hugging Face `tokenizers` moves to another version of Unicode (scripts/check_tokenizer_hf.py tells):
    python3 -m venv venv && venv/bin/pip install unicodedata2==16.0.0 tokenizers==0.23.3
    venv/bin/python scripts/make_unicode_classes.py > src/data/unicode_ranges.h
"""

import itertools
import sys

import unicodedata2 as unicode
from tokenizers import normalizers

nfc = normalizers.NFC().normalize_str

HEAD = """#pragma once

#include <cstdint>

namespace quern::data::unicode {

// The code points first ... last.
struct Range {
  uint32_t first;
  uint32_t last;
};

// clang-format off"""
TAIL = """// clang-format on

}  // namespace quern::data::unicode"""
HANGUL_VOWELS = range(0x1161, 0x1176)
HANGUL_FINALS = range(0x11A8, 0x11C3)


def seconds_of_compositions():
    """Characters that can combine with the one before them."""
    seconds = {*HANGUL_VOWELS, *HANGUL_FINALS}
    for c in range(sys.maxunicode + 1):
        parts = unicode.decomposition(chr(c)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            pair = [int(part, 16) for part in parts]
            if nfc("".join(map(chr, pair))) == chr(c):
                seconds.add(pair[1])
    return seconds


def is_mark(c):
    """Whether it moves to its place among other combining marks. None has a class above that of U+0345."""
    return c == 0x345 or (unicode.combining(chr(c)) != 0 and nfc("a\u0345" + chr(c)) != "a\u0345" + chr(c))


def ranges(numbers):
    for _, group in itertools.groupby(enumerate(sorted(numbers)), lambda pair: pair[1] - pair[0]):
        group = [number for _, number in group]
        yield group[0], group[-1]


def show(name, numbers):
    print(f"inline constexpr Range {name}[] = {{")
    line = "   "
    for first, last in ranges(numbers):
        text = f" {{0x{first:X}, 0x{last:X}}},"
        if len(line) + len(text) > 120:
            print(line)
            line = "   "
        line += text
    print(line)
    print("};")


def main():
    points = [c for c in range(sys.maxunicode + 1) if not 0xD800 <= c <= 0xDFFF]
    seconds = seconds_of_compositions()
    print(f"// Unicode {unicode.unidata_version}; kUnstable: Unicode 9. Written by scripts/make_unicode_classes.py; not edited by hand.")
    print(HEAD)
    show("kLetters", [c for c in points if unicode.category(chr(c))[0] == "L"])
    show("kNumbers", [c for c in points if unicode.category(chr(c))[0] == "N"])
    show("kUnstable", [c for c in points if c in seconds or is_mark(c) or nfc(chr(c)) != chr(c)])
    print(TAIL)


if __name__ == "__main__":
    main()
