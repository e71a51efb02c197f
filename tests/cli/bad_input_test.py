"""Data and settings that cannot be used: exit code 2, one line with file, place, expected and found; no run is made."""

import json
import struct

import program
from program import SMALL, TEXT


class Data(program.ProgramTest):
    """What cannot be trained on is refused before a folder is made."""

    def refuses(self, *arguments, says):
        self.fails("train", *SMALL, *arguments, "--steps", "3", "--run", self.path("run"), says=says)
        self.assertFalse((self.folder / "run").exists())

    def test_missing(self):
        self.refuses(self.path("none.txt"), says=["none.txt: expected a file or folder, found nothing"])
        self.refuses(self.path("none.bin"), says=["none.bin: expected a file or folder, found nothing"])

    def test_empty(self):
        self.refuses(self.write("empty.txt", ""), says=["empty.txt: expected text, found"])
        for text in ("\n\n", '{"text": ""}\n'):
            for tokenizer in ("byte", "char", "bpe"):
                file = self.write("none.jsonl", text)
                self.refuses(file, "--tokenizer", tokenizer, says=["none.jsonl: expected text, found only empty"])
        self.refuses(self.write("empty.bin", ""), "--set", "model.vocabulary=7", says=["empty.bin: the file is empty"])
        self.write("folder/a.png", "x")
        self.refuses(self.path("folder"), says=["folder: expected", "found"])

    def test_shorter_than_a_block(self):
        text = self.write("short.txt", "A short text.")
        self.refuses(text, says=["short.txt: training text: expected at least 33 tokens", "found 11"])
        # Enough to learn from, but too little is held out.
        text = self.write("short.txt", TEXT[:200])
        self.refuses(text, says=["short.txt: held-out text: expected at least 33 tokens", "found 20"])
        self.train("all", text, "--steps", "1", "--set", "data.validation_fraction=0")

    def test_nesting_is_limited(self):
        """To print what was found instead must not overflow the stack."""
        deep = "[" * 200_000 + "]" * 200_000
        config = self.write("deep.toml", f"[train]\nsteps = {deep}\n")
        self.refuses("--config", config, says=["deep.toml"])
        self.write("shards/a.bin", struct.pack("<100H", *range(100)))
        self.write("shards/tokenizer.json", '{"model":{"type":' + deep + "}}")
        self.refuses(self.path("shards"), says=["tokenizer.json: expected JSON that is nested at most 64 deep"])
        line = '{"text":"A line of text, and then some more of it. ","more":' + deep + "}\n"
        self.train("run", self.write("deep.jsonl", line * 9), "--steps", "1", "--tokenizer", "byte")

    def test_messages_hold_no_escape_codes(self):
        for name in ("a\x1b[31m.txt", "a\u009b31m.txt", "a\u202etxt.exe"):
            error = self.fails("train", *SMALL, self.path(name), "--steps", "3", "--run", self.path("run"),
                               says=["expected a file or folder, found nothing"]).stderr
            self.assertNotRegex(error, "[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]")
            self.assertIn(".txt" if name.endswith(".txt") else "txt.exe", error)

    def test_vocabulary_smaller_than_the_tokenizers(self):
        self.refuses("--set", "model.vocabulary=20", says=["model.vocabulary: expected at least 53", "found 20"])
        self.refuses("--tokenizer", "bpe", "--set", "model.vocabulary=300",
                     says=["model.vocabulary: expected 0 or at least data.vocabulary, which is 8192, found 300"])

    def test_token_beyond_the_vocabulary(self):
        tokens = list(range(7)) * 300
        tokens[1000] = 9
        raw = self.write("raw.bin", struct.pack("<2100H", *tokens))
        self.refuses(raw, "--set", "model.vocabulary=8", says=["raw.bin", "token 1000", "vocabulary of 8", "found 9"])
        self.refuses(raw, says=["raw.bin", "model.vocabulary"])

    def test_damaged_shard(self):
        self.works("tokenize", self.write("text.txt", TEXT), "--kind", "char", "--out", self.path("tokens"))
        shard = self.folder / "tokens/tokens.bin"
        whole = shard.read_bytes()
        for damaged in (whole[:-1], whole[:-100], whole[:1024], whole[:1000], whole[:5], whole[:4] + b"\7" + whole[5:],
                        whole[:8] + b"\xff\xff\xff\x7f" + whole[12:], whole + b"\0\0"):
            shard.write_bytes(damaged)
            self.refuses(self.path("tokens"), says=["tokens.bin", "expected", "found"])

    def test_damaged_tokenizer_beside_a_shard(self):
        self.works("tokenize", self.write("text.txt", TEXT), "--kind", "bpe", "--vocabulary", "300", "--out",
                   self.path("tokens"))
        tokenizer = self.folder / "tokens/tokenizer.json"
        whole = tokenizer.read_bytes()
        for damaged in (b"", b"{}", whole[:-10], whole.replace(b"merges", b"verges"), b"[" * 100000):
            tokenizer.write_bytes(damaged)
            self.refuses(self.path("tokens"), says=["tokenizer.json", "expected"])

    def test_bad_json_lines(self):
        good = json.dumps({"text": TEXT})
        for line in ("{", '{"no": 1}', '{"text": 5}', "7"):
            self.refuses(self.write("a.jsonl", f"{good}\n{line}\n"), says=["a.jsonl:2"])

    def test_text_for_another_tokenizer(self):
        self.train("run", self.write("a.txt", TEXT), "--steps", "1")
        for begin, place in (("", "other.txt: [tokenizer] text: byte 2:"),
                             (TEXT * 100, "other.txt: after byte 1")):
            other = self.write("other.txt", begin + "A \u00e4" + TEXT)
            self.fails("eval", "--run", self.path("run"), other, says=[place, "28 characters", "U+00E4"])
        self.fails("eval", "--run", self.path("run"), self.write("b.txt", TEXT[:9]),
                   says=["b.txt: text: expected at least 33 tokens", "found 9"])

    def test_invalid_utf8_is_refused_for_every_tokenizer(self):
        """The byte and bpe tokenizers took it, and the char tokenizer advised to use them: a model of half characters."""
        file = self.write("a.txt", TEXT.encode() + b"\xff\xfe")
        for tokenizer in ("char", "byte", "bpe"):
            self.refuses(file, "--tokenizer", tokenizer, says=["a.txt: byte", "UTF-8", "iconv -f"])
        self.train("bytes", file, "--steps", "1", "--tokenizer", "byte", "--set", "data.encoding=bytes")


class Config(program.ProgramTest):
    def refuses(self, *arguments, says):
        self.fails("train", *SMALL, *arguments, "--run", self.path("run"), says=says)
        self.assertFalse((self.folder / "run").exists())

    def test_flags(self):
        whole = "expected a whole number from 0 to 1000000000, found "
        for value in ("x", "1.5", "-1", "", "1.5e0", "99999999999999999999999"):
            self.refuses("--steps", value, says=[f"--steps '{value}': train.steps: {whole}"])
            self.refuses("--set", f"train.steps={value}", says=[f"--set 'train.steps={value}': train.steps: {whole}"])
        self.refuses("--rate", "fast", says=["optimizer.rate: expected a number from 0 to 10, found 'fast'"])
        self.refuses("--tokenizer", "word", says=["data.tokenizer: expected byte, char, bpe, or a path such as ./tokenizer.json, found 'word'"])
        self.refuses("--set", "train.stepz=3", says=["did you mean train.steps?"])
        self.refuses("--set", "nothing", says=["expected table.name=value"])
        self.refuses("--preset", "huge", says=["preset: expected tiny, small, gpt2, minute, ten-minutes, llama-tiny or llama-small, found 'huge'"])
        self.refuses("--heads", "3", says=["model.width: expected a multiple of model.heads, which is 3, found 32"])

    def test_files(self):
        self.refuses("--config", self.path("none.toml"), says=["none.toml", "No such file"])
        for text, says in (("steps", "bad.toml:1:"), ("[train\n", "bad.toml:1:"), ("\0\xff", "bad.toml"),
                           ("[train]\nsteps = \"x\"\n", "bad.toml:2:9: train.steps: expected a whole number"),
                           ("[tarin]\n", "did you mean [train]?")):
            self.refuses("--config", self.write("bad.toml", text), says=[says])

    def test_run_and_resume(self):
        self.fails("train", says=["expected --run DIR"])
        for command in (("train", "--resume"), ("train", "--resume", "--steps", "4"), ("eval",), ("generate",), ("info",)):
            self.fails(*command, "--run", self.path("none"),
                       says=["none: expected a run with a config.toml, found none"])

    def test_a_file_in_place_of_a_folder_is_refused(self):
        file = self.write("file", "years of work")
        for command in (("train", "--resume"), ("train", *program.SMALL), ("eval",), ("generate",), ("info",), ("report",)):
            self.fails(*command, "--run", file, says=["file: expected the folder of a run, found a file"])
        self.assertEqual((self.folder / "file").read_text(), "years of work")


if __name__ == "__main__":
    program.main()
