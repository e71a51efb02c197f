"""Documents and vocabularies from end to end: where texts end, token tables with more rows than tokens, and which files
are taken. QUERN names the program to test."""

import json
import signal
import struct
import subprocess
import time

import program
from program import QUERN, TEXT

BPE = ("--tokenizer", "bpe", "--set", "data.vocabulary=300")


def json_lines(*documents):
    return "".join(json.dumps({"text": document}) + "\n" for document in documents)


class TokenTable(program.ProgramTest):
    """model.vocabulary asks for more rows than the tokenizer has tokens, as the preset gpt2 does for a small text."""

    def setUp(self):
        super().setUp()
        self.train("run", self.write("text.txt", TEXT), *BPE, "--steps", "3", "--set", "model.vocabulary=2000")

    def test_generate_never_produces_a_padding_row(self):
        # The program failed at the first such row: "expected an id from 0 to 299, found 1234".
        for options in ((), ("--temperature", "0"), ("--temperature", "50"), ("--top-k", "1500"), ("--top-p", "0.99")):
            for end in ((), ("--ignore-end",)):
                self.works("generate", "--run", self.path("run"), "--tokens", "100", "--seed", "1", *end, *options)

    def test_eval_and_resume(self):
        first = json.loads(self.works("eval", "--run", self.path("run"), "--json"))
        self.assertGreater(first["bits_per_byte"], 0)
        other = json.loads(self.works("eval", "--run", self.path("run"), self.path("text.txt"), "--json"))
        self.assertGreater(other["tokens"], first["tokens"])
        before = self.hash("run")
        self.resume("run")
        self.assertEqual(self.hash("run"), before)

    def test_exports_contain_the_table_size_and_the_end_of_text(self):
        config = json.loads((self.folder / "run/checkpoints/step-00000003/config.json").read_text())
        self.assertEqual(config["vocab_size"], 2000)
        tokenizer = json.loads((self.folder / "run/tokenizer.json").read_text())
        self.assertEqual(len(tokenizer["model"]["vocab"]), 300)
        self.assertEqual([(token["id"], token["content"], token["special"]) for token in tokenizer["added_tokens"]],
                         [(299, "<|endoftext|>", True)])
        self.assertEqual(config["eos_token_id"], 299)


class Documents(program.ProgramTest):
    def test_generation_stops_at_the_end_of_a_document(self):
        lines = self.write("lines.jsonl", json_lines(*["ab ab.", "ab."] * 400))
        self.train("run", lines, *BPE, "--steps", "150", "--set", "optimizer.rate=0.01")
        for seed in ("1", "2", "3"):
            text = ("generate", "--run", self.path("run"), "--prompt", "ab", "--tokens", "100", "--seed", seed)
            ended = self.works(*text)
            self.assertLess(len(ended), 60, ended)
            self.assertNotIn("endoftext", ended)
            longer = self.works(*text, "--ignore-end")
            self.assertIn("<|endoftext|>", longer)
            self.assertTrue(longer.startswith(ended.removesuffix("\n") + "<|endoftext|>"), (ended, longer))

    def test_json_lines_and_a_folder_give_the_same_run(self):
        documents = [TEXT[:3000], TEXT[3000:7000], TEXT[7000:]]
        for i, document in enumerate(documents):
            self.write(f"folder/{i}.txt", document)
        self.train("lines", self.write("lines.jsonl", json_lines(*documents)), *BPE, "--steps", "2")
        self.train("folder_run", self.path("folder"), *BPE, "--steps", "2")
        self.train("together", self.write("text.txt", TEXT), *BPE, "--steps", "2")
        self.assertEqual(self.hash("lines"), self.hash("folder_run"))
        self.assertNotEqual(self.hash("lines"), self.hash("together"))

    def test_the_char_tokenizer_warns_about_documents(self):
        lines = self.write("lines.jsonl", json_lines(TEXT, TEXT))
        printed = self.train("run", lines, "--steps", "1")
        self.assertEqual(printed.count("documents are not separated"), 1, printed)
        self.assertNotIn("not separated", self.resume("run"))
        self.assertNotIn("not separated", self.train("one", self.write("text.txt", TEXT), "--steps", "1"))

    def test_a_vocabulary_without_a_line_feed_has_a_default_prompt(self):
        self.train("run", self.write("text.txt", "abc " * 500), "--steps", "1")
        self.assertTrue(self.works("generate", "--run", self.path("run"), "--tokens", "5").startswith(" "))
        self.train("letters", self.write("letters.txt", "abc" * 500), "--steps", "1")
        self.assertTrue(self.works("generate", "--run", self.path("letters"), "--tokens", "5").startswith("a"))

    def test_text_next_to_a_bin_file_is_not_ignored(self):
        self.write("data/book.txt", TEXT)
        self.write("data/weights.bin", b"\x01\x00" * 5000)
        for command in (("train", "--run", self.path("run")), ("tokenize",)):
            self.fails(*command, self.path("data"), says=["data: expected text or token shards, found both"])
        self.fails("train", self.path("data/book.txt"), self.path("data/weights.bin"), "--run", self.path("run"),
                   says=["book.txt is text", "weights.bin is tokens"])


class Pair(program.ProgramTest):
    """tokens.bin and tokenizer.json belong together, whenever the command that writes them is killed."""

    def tokenize(self, name, letters):
        text = self.write(f"{name}.txt", "".join(f"{letters} {i * i} " for i in range(2000)))
        return ["tokenize", text, "--vocabulary", "300", "--out", self.path("out"), "--force"]

    def train_on_them(self):
        return program.quern("train", *program.SMALL, self.path("out"), "--steps", "1", "--run",
                             self.path(f"run-{time.monotonic_ns()}"))

    def test_tokens_with_another_tokenizer_are_refused(self):
        self.works(*self.tokenize("one", "abab"))
        self.assertEqual(self.train_on_them().returncode, 0)
        tokens = (self.folder / "out/tokens.bin").read_bytes()
        self.works(*self.tokenize("other", "xyxy"))
        self.assertEqual(self.train_on_them().returncode, 0)
        (self.folder / "out/tokens.bin").write_bytes(tokens)
        mixed = self.train_on_them()
        self.assertEqual(mixed.returncode, 2)
        self.assertIn("tokens.bin: expected tokens of", mixed.stderr)
        self.assertIn("found those of another tokenizer", mixed.stderr)

    def test_a_kill_leaves_no_mismatched_pair(self):
        commands = [self.tokenize("one", "abab"), self.tokenize("other", "xyxy")]
        texts = {(self.folder / f"{name}.txt").read_text() for name in ("one", "other")}
        self.works(*commands[0])
        self.assertIn(self.decoded(), texts)
        for i in range(12):
            before = (self.folder / "out/tokenizer.json").stat().st_mtime_ns
            process = subprocess.Popen([QUERN, *commands[(i + 1) % 2]], stdout=subprocess.DEVNULL)
            while process.poll() is None and (self.folder / "out/tokenizer.json").stat().st_mtime_ns == before:
                pass
            process.send_signal(signal.SIGKILL)
            process.wait()
            found = self.train_on_them()
            if found.returncode == 0:
                self.assertIn(self.decoded(), texts)
            else:
                self.assertIn("found those of another tokenizer", found.stderr)

    def decoded(self):
        """The text that the pair stands for."""
        vocabulary = json.loads((self.folder / "out/tokenizer.json").read_text())["model"]["vocab"]
        token = {number: text for text, number in vocabulary.items()}
        data = (self.folder / "out/tokens.bin").read_bytes()[1024:]
        text = "".join(token[number] for number in struct.unpack(f"<{len(data) // 2}H", data))
        return text.replace("\u0120", " ").removesuffix("<|endoftext|>")


if __name__ == "__main__":
    program.main()
