"""Data as people have it: encodings, compressed files, JSON Lines, folders, mixtures. QUERN names the program."""

import gzip
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
import program  # noqa: E402
from program import SMALL, TEXT  # noqa: E402

WORDS = "".join(f"The caf\u00e9 has {i * i} na\u00efve guests.\n" for i in range(600))
STREAM = ("--tokenizer", "byte", "--set", "data.sampling=stream")


class Data(program.ProgramTest):
    def trained(self, *arguments):
        """Trains three steps; returns what was printed and the hash of the weights."""
        run = f"run-{len(os.listdir(self.folder))}"
        printed = self.train(run, *arguments, "--steps", "3")
        return printed, self.hash(run)

    def refused(self, *arguments, says):
        run = self.fails("train", *SMALL, *arguments, "--steps", "3", "--run", self.path("refused"), says=says)
        self.assertFalse((self.folder / "refused").exists())
        return run


class Encodings(Data):
    def setUp(self):
        super().setUp()
        self.expected = self.trained(self.write("plain.txt", WORDS))[1]

    def test_byte_order_mark(self):
        printed, found = self.trained(self.write("mark.txt", b"\xef\xbb\xbf" + WORDS.encode()))
        self.assertIn("mark.txt: removed the byte order mark\n", printed)
        self.assertEqual(found, self.expected)

    def test_utf16(self):
        for name, coded in (("little", b"\xff\xfe" + WORDS.encode("utf-16-le")),
                            ("big", b"\xfe\xff" + WORDS.encode("utf-16-be"))):
            printed, found = self.trained(self.write(f"{name}.txt", coded))
            self.assertIn(f"{name}.txt: converted from UTF-16 ({name} endian) to UTF-8\n", printed)
            self.assertEqual(found, self.expected)
        unmarked = self.write("unmarked.txt", WORDS.encode("utf-16-le"))
        self.refused(unmarked, says=["found byte 0x00, as in UTF-16", "data.encoding=utf-16", "iconv -f UTF-16LE"])
        self.assertEqual(self.trained(unmarked, "--set", "data.encoding=utf-16")[1], self.expected)

    def test_latin_1(self):
        file = self.write("latin.txt", WORDS.encode("latin-1"))
        for tokenizer in ("char", "byte", "bpe"):
            self.refused(file, "--tokenizer", tokenizer,
                         says=["latin.txt: byte 7: expected UTF-8, found byte 0xe9", "set data.encoding=latin-1",
                               f"`iconv -f LATIN1 -t UTF-8 {file} > NEW`"])
        printed, found = self.trained(file, "--set", "data.encoding=latin-1")
        self.assertIn("latin.txt: converted from Latin-1 to UTF-8\n", printed)
        self.assertEqual(found, self.expected)
        self.refused(self.path("plain.txt"), "--set", "data.encoding=latin-1", says=["found UTF-8", "utf-8"])

    @unittest.skipUnless(shutil.which("iconv"), "needs iconv")
    def test_the_advice_works(self):
        file = self.write("windows.txt", (WORDS + "\u201cquoted\u201d").encode("cp1252"))
        error = self.refused(file, says=["data.encoding=windows-1252"]).stderr
        command = error.split("`")[1].replace("NEW", self.path("new.txt"))
        subprocess.run(command, shell=True, check=True)
        by_hand = self.trained(self.path("new.txt"))[1]
        self.assertEqual(self.trained(file, "--set", "data.encoding=windows-1252")[1], by_hand)

    def test_binary_files(self):
        zeros = self.write("zeros.txt", b"\0" * 100_000)
        self.refused(zeros, says=["zeros.txt: byte 0: expected text, found byte 0x00: the file is binary"])
        self.trained(zeros, "--tokenizer", "byte", "--set", "data.encoding=bytes")
        self.refused(zeros, "--set", "data.encoding=ebcdic", says=["data.encoding", "utf-8, utf-16, latin-1"])

    def test_windows_line_ends(self):
        printed, found = self.trained(self.write("crlf.txt", WORDS.replace("\n", "\r\n")))
        self.assertIn("crlf.txt: replaced CR LF by LF\n", printed)
        self.assertEqual(found, self.expected)


class Compressed(Data):
    def setUp(self):
        super().setUp()
        self.text = self.write("book.txt", WORDS * 20)
        self.packed = self.write("book.txt.gz", gzip.compress((WORDS * 20).encode()))

    def test_same_weights_as_the_text(self):
        for sampling in ("random", "epoch"):
            settings = ("--set", f"data.sampling={sampling}")
            self.assertEqual(self.trained(self.packed, *settings)[1], self.trained(self.text, *settings)[1])

    def test_json_lines(self):
        lines = "".join(json.dumps({"text": WORDS[i:i + 500]}) + "\n" for i in range(0, len(WORDS), 500))
        plain, packed = self.write("a.jsonl", lines), self.write("b.jsonl.gz", gzip.compress(lines.encode()))
        self.assertEqual(self.trained(packed)[1], self.trained(plain)[1])

    @unittest.skipUnless(shutil.which("zstd"), "needs zstd")
    def test_zstd(self):
        subprocess.run(["zstd", "-q", self.text], check=True)
        self.assertEqual(self.trained(self.path("book.txt.zst"))[1], self.trained(self.text)[1])
        self.assertEqual(self.trained(self.path("book.txt.zst"), *STREAM)[1], self.trained(self.packed, *STREAM)[1])

    @unittest.skipUnless(shutil.which("zstd"), "needs zstd")
    def test_the_first_step_of_a_large_file_does_not_wait_for_the_rest(self):
        """100 MB here; 1 GB takes as long."""
        with subprocess.Popen(["zstd", "-q", "-1", "-o", self.path("large.txt.zst")], stdin=subprocess.PIPE) as zstd:
            for i in range(100):
                zstd.stdin.write(f"{i} ".encode() + (WORDS * 50).encode()[:1_000_000])
        begin = time.monotonic()
        self.trained(self.path("large.txt.zst"), *STREAM)
        self.assertLess(time.monotonic() - begin, 100 if program.sanitized() else 2)

    def test_damaged_files(self):
        packed = (self.folder / "book.txt.gz").read_bytes()
        half = self.write("half.txt.gz", packed[:len(packed) // 2])
        self.refused(half, says=[f"half.txt.gz: byte {len(packed) // 2}: expected more gzip data", "truncated"])
        self.refused(self.write("not.txt.gz", TEXT), says=["not.txt.gz: byte 2: expected gzip data, found damage"])
        self.refused(self.write("not.txt.zst", TEXT), says=["not.txt.zst: byte", "expected zstd data, found damage"])

    def test_resume(self):
        settings = (self.packed, *STREAM, "--set", "data.shuffle=64", "--set", "checkpoint.interval=5")
        self.train("whole", *settings, "--steps", "20")
        process = program.start("train", *SMALL, *settings, "--steps", "20", "--run", self.path("killed"))
        while process.poll() is None and not (self.folder / "killed/checkpoints/step-00000005").exists():
            time.sleep(0.001)
        process.kill()
        process.communicate()
        self.resume("killed")
        self.assertEqual(self.hash("killed"), self.hash("whole"))


class JsonFields(Data):
    def test_another_field(self):
        records = [{"id": i, "body": WORDS[i:i + 900], "meta": {"note": "x"}} for i in range(0, len(WORDS), 900)]
        file = self.write("a.jsonl", "".join(json.dumps(record) + "\n" for record in records))
        self.refused(file, says=["a.jsonl:1: expected a JSON object with a string field \"text\"",
                                 "'id' (a number), 'body' (a string), 'meta' (an object); choose one with data.field"])
        nested = self.write("b.jsonl", "".join(json.dumps({"doc": {"body": r["body"]}}) + "\n" for r in records))
        self.assertEqual(self.trained(file, "--set", "data.field=body")[1],
                         self.trained(nested, "--set", "data.field=doc.body")[1])


class Folders(Data):
    def test_says_what_was_read_and_skipped(self):
        for name in ("b.txt", "a/c.md", "d.txt", ".hidden.txt", "1.png", "2.png", "x.pdf"):
            self.write(f"texts/{name}", TEXT)
        self.write("texts/empty.txt", "")
        printed, _ = self.trained(self.path("texts"))
        self.assertIn("texts: read 3 files: .txt (2), .md (1)\n", printed)
        self.assertIn("texts: skipped 5 files: .png (2), .pdf (1): not text by name; hidden (1); empty (1)\n", printed)
        os.mkdir(self.path("pictures"))
        self.write("pictures/1.png", "x")
        self.refused(self.path("pictures"), says=["pictures: expected files that end in .txt", "only .png (1)"])


class Mixtures(Data):
    def test_sources_with_weights(self):
        books, code = self.write("books/a.txt", WORDS * 20), self.write("code.txt", TEXT * 20)
        sources = f'data.sources=["{self.path("books")} 3", "{code} 1"]'
        for sampling in ("random", "epoch", "stream"):
            settings = ("--tokenizer", "byte", "--set", sources, "--set", f"data.sampling={sampling}")
            one, two = self.trained(*settings, "--threads", "1")[1], self.trained(*settings, "--threads", "2")[1]
            self.assertEqual(one, two)
            self.assertNotEqual(one, self.trained(books, *settings[:2], *settings[4:])[1])
        self.refused(books, "--set", sources, says=["data.sources: expected none together with data.paths"])
        self.refused("--set", 'data.sources=["books"]', says=["expected a path, a space and a weight", "books/ 3"])

    def test_shuffle(self):
        file = self.write("a.txt", WORDS * 20)
        ordered, shuffled = self.trained(file, *STREAM)[1], self.trained(file, *STREAM, "--set", "data.shuffle=500")[1]
        self.assertNotEqual(ordered, shuffled)
        self.refused(file, "--set", "data.shuffle=500", says=["data.shuffle: expected 0 without data.sampling=stream"])


if __name__ == "__main__":
    program.main()
