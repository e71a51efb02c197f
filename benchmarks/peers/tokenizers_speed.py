#!/usr/bin/env python3
"""Compares the speed of Quern's tokenizers with that of Hugging Face `tokenizers`, one thread each, on the same text.

Run by hand; neither the build nor the tests need it:
    cmake --build --preset release --target tokenizer_tool
    python3 -m venv venv && venv/bin/pip install tokenizers
    venv/bin/python benchmarks/peers/tokenizers_speed.py build/release/tests/tokenizer_tool TEXT TOKENIZER.json...

`tokenizers` encodes the text in one call and in lines (encode_batch_fast), and the faster one counts. Both encode
twice, and the second time, with filled caches, counts. Their time is that of the processor and ours that of the clock,
so other load on the machine can only make Quern look slower. The ids are compared as well. Exits with 1 if they differ.
"""

import os

os.environ["TOKENIZERS_PARALLELISM"] = "false"

import pathlib
import re
import subprocess
import sys
import time

import tokenizers


def best(run, times=2):
    seconds = []
    for _ in range(times):
        start = time.process_time()
        result = run()
        seconds.append(time.process_time() - start)
    return min(seconds), result


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    tool, text_file, *files = sys.argv[1:]
    data = pathlib.Path(text_file).read_bytes()
    text = data.decode()
    lines = text.splitlines(keepends=True)
    differ = False
    print(f"{text_file}, {len(data) / 1e6:.1f} MB; MB/s on one thread; tokenizers {tokenizers.__version__}")
    for file in files:
        peer = tokenizers.Tokenizer.from_file(file)
        whole, encoding = best(lambda: peer.encode(text, add_special_tokens=False))
        by_lines, _ = best(lambda: peer.encode_batch_fast(lines, add_special_tokens=False))
        run = subprocess.run([tool, "encode", file], input=data, capture_output=True, check=True)
        ours = float(re.search(r"encode warm: .* ([0-9.]+) MB/s", run.stderr.decode()).group(1))
        same = [int(number) for number in run.stdout.split()] == encoding.ids
        differ |= not same
        theirs = len(data) / min(whole, by_lines) / 1e6
        print(f"{pathlib.Path(file).name:24} quern {ours:7.1f}   tokenizers {theirs:7.1f} (whole {len(data) / whole / 1e6:.1f}, "
              f"lines {len(data) / by_lines / 1e6:.1f})   {ours / theirs:5.1f} times{'' if same else '   IDS DIFFER'}")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
