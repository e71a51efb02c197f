"""Training with a tokenizer.json of one's own, and evaluating on token shards."""

import json
import os
import struct

import program
from program import SMALL, TEXT


class TokenizerFile(program.ProgramTest):
    def setUp(self):
        super().setUp()
        self.text = self.write("text.txt", TEXT)
        self.works("tokenize", self.text, "--vocabulary", "300", "--out", self.path("tokens"))

    def learned(self):
        """The run that learns the same tokenizer itself."""
        self.train("learned", self.text, "--steps", "6", "--tokenizer", "bpe", "--set", "data.vocabulary=300")
        return self.hash("learned")

    def test_the_run_is_that_with_the_learned_tokenizer(self):
        expected = self.learned()
        for name, value in (("file", "tokens/tokenizer.json"), ("folder", "tokens"), ("run", "learned")):
            self.train(name, self.text, "--steps", "6", "--tokenizer", self.path(value))
            self.assertEqual(self.hash(name), expected, name)
            self.assertIn(f'\ntokenizer = "{self.path(value)}"\n', (self.folder / name / "config.toml").read_text())
            self.assertEqual((self.folder / name / "tokenizer.json").read_bytes(),
                             (self.folder / "tokens/tokenizer.json").read_bytes())

    def test_resuming_uses_the_copy_of_the_run(self):
        expected = self.learned()
        self.train("run", self.text, "--steps", "6", "--tokenizer", self.path("tokens/tokenizer.json"),
                   "--set", "checkpoint.interval=3", "--set", "checkpoint.keep=9")
        os.rename(self.folder / "run/checkpoints/step-00000006", self.folder / "six")
        os.remove(self.folder / "tokens/tokenizer.json")
        self.resume("run")
        self.assertEqual(self.hash("run"), expected)
        self.works("eval", self.path("run"))

    def test_streams_shards_and_settings(self):
        for name, *arguments in (("stream", self.text, "--set", "data.sampling=stream"), ("shards", self.path("tokens/tokens.bin"))):
            self.train(name, *arguments, "--steps", "2", "--set", f"data.tokenizer={self.path('tokens')}")
        self.write("my.toml", f'[data]\ntokenizer = "{self.path("tokens/tokenizer.json")}"\n')
        self.train("config", self.text, "--steps", "2", "--config", self.path("my.toml"))
        self.assertIn("vocabulary 300", self.works("plan", "--tokenizer", self.path("tokens")))

    def test_a_relative_path(self):
        run = program.quern("train", *SMALL, "text.txt", "--steps", "2", "--tokenizer", "tokens/tokenizer.json",
                            "--run", "run", cwd=self.folder)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertIn(f'\ntokenizer = "{self.path("tokens/tokenizer.json")}"\n', (self.folder / "run/config.toml").read_text())

    def test_bad_files(self):
        self.train("chars", self.write("abc.txt", "abc " * 200), "--steps", "1")
        for tokenizer, says in ((self.path("none.json"), "found no file"), (self.path("none/"), "found no file"),
                                (self.text, "text.txt: expected JSON"), ("tokens", "or a path such as ./tokenizer.json, found 'tokens'"),
                                (self.path("chars"), 'found "A" (U+0041), "l" (U+006C)')):
            self.fails("train", *SMALL, self.text, "--tokenizer", tokenizer, "--run", self.path("run"), says=[says])
            self.assertFalse((self.folder / "run").exists())
        self.fails("train", *SMALL, self.path("tokens"), "--tokenizer", self.path("chars"), "--run", self.path("run"),
                   says=["tokens.bin: expected tokens of", "found those of another tokenizer"])
        self.fails("train", *SMALL, self.text, "--tokenizer", self.path("tokens"), "--set", "model.vocabulary=200",
                   "--run", self.path("run"), says=["model.vocabulary: expected at least 300, the tokenizer's, found 200"])


class Shards(program.ProgramTest):
    """The shards hold the tokens of the text, so the loss is that of the text."""

    def setUp(self):
        super().setUp()
        self.text = self.write("text.txt", TEXT)
        self.works("tokenize", self.text, "--vocabulary", "300", "--out", self.path("tokens"))
        self.train("run", self.text, "--steps", "3", "--tokenizer", self.path("tokens"))
        self.raw = self.write("raw/val.bin", (self.folder / "tokens/tokens.bin").read_bytes()[1024:])

    def eval(self, *arguments):
        return json.loads(self.works("eval", *arguments, "--json"))

    def test_llm_c_and_nanogpt(self):
        expected = self.eval(self.path("run"), self.text)
        self.assertEqual(self.eval(self.path("run"), self.path("tokens")), expected)
        self.assertEqual(self.eval("--run", self.path("run"), self.path("tokens/tokens.bin")), expected)
        raw = self.eval(self.path("run"), self.raw)
        self.assertEqual(raw.pop("bits_per_byte_note"), "the shards do not say whether the run's tokenizer made them")
        self.assertEqual(raw, expected)
        self.assertIn("(the shards do not say", self.works("eval", self.path("run"), self.raw))
        (self.folder / "raw/tokenizer.json").write_bytes((self.folder / "tokens/tokenizer.json").read_bytes())
        self.assertEqual(self.eval(self.path("run"), self.raw), expected)

    def test_a_run_without_a_tokenizer(self):
        self.train("shards", self.raw, "--steps", "3", "--set", "model.vocabulary=300")
        self.assertIn("bits per byte  unknown: the run has no tokenizer.json\n", self.works("eval", self.path("shards"), self.raw))
        self.assertIsNone(self.eval(self.path("shards"))["bits_per_byte"])
        self.fails("eval", self.path("shards"), self.text, says=["expected a tokenizer.json, found none"])

    def test_bad_shards(self):
        self.works("tokenize", self.text, "--vocabulary", "290", "--out", self.path("other"))
        self.fails("eval", self.path("run"), self.path("other"),
                   says=["tokens.bin: expected tokens of", "quern tokenize TEXT --tokenizer"])
        self.write("raw/tokenizer.json", (self.folder / "other/tokenizer.json").read_bytes())
        self.fails("eval", self.path("run"), self.raw, says=["val.bin", "of another one next to it"])
        large = self.write("large.bin", struct.pack("<100H", *range(250, 350)))
        self.fails("eval", self.path("run"), large, says=["large.bin: token 50: expected an id below the vocabulary of 300, found 300"])
        self.fails("eval", self.path("run"), self.path("none.bin"), says=["none.bin"])
        self.fails("eval", self.path("run"), self.write("short.bin", b"\1\0" * 9), says=["expected at least 33 tokens", "found 9"])
        self.fails("eval", self.path("run"), self.path("tokens"), self.text, says=["expected text or token shards, found both"])


if __name__ == "__main__":
    program.main()
