#!/usr/bin/env python3
"""Each header of include/quern compiles alone, as a program that links the library would compile it: without warnings,
and without including internal headers or those of other libraries."""

import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMPILER = os.environ.get("CXX", "g++")
WARNINGS = ["-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror"]
OTHERS = ("/fmt/", "/nlohmann/", "/hwy/", "/CLI/", "/toml++/", "/utf8proc", "/lz4", "/zlib")


def compile_text(text, *flags):
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "alone.cc")
        source.write_text(text)
        command = [COMPILER, "-fsyntax-only", "-I", ROOT / "include", *flags, source]
        return subprocess.run(command, capture_output=True, text=True)


class PublicHeaders(unittest.TestCase):
    def test_each_task_has_one_header(self):
        names = {path.stem for path in (ROOT / "include" / "quern").glob("*.h")}
        self.assertLessEqual({"error", "finetune", "generate", "model", "profile", "replay", "tokenizer", "train"}, names)

    def test_compile_alone_and_include_nothing_else(self):
        for header in sorted((ROOT / "include" / "quern").glob("*.h")):
            with self.subTest(header=header.name):
                include = f"#include <quern/{header.name}>\n"
                result = compile_text(include * 2, "-std=c++20", "-H", *WARNINGS)
                self.assertEqual(result.returncode, 0, result.stderr)
                included = [line.split()[-1] for line in result.stderr.splitlines() if line.startswith(".")]
                self.assertIn(str(header), included)
                for path in included:
                    self.assertNotIn(f"{ROOT}/src/", path)
                    self.assertFalse(any(other in path for other in OTHERS), path)

    def test_older_standard_gets_one_clear_message(self):
        result = compile_text("#include <quern/train.h>\n", "-std=c++17")
        self.assertNotEqual(result.returncode, 0)
        first = next(line for line in result.stderr.splitlines() if "error:" in line)
        self.assertIn("Quern's headers need C++20: compile with -std=c++20", first)


if __name__ == "__main__":
    unittest.main()
