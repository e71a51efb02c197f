"""quern data show: which tokens of a conversation are trained."""

import json
import os
import pty
import subprocess

from program import QUERN, ProgramTest, environment, main

TALK = {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello, Zoë"}]}
OTHER = {"messages": [{"role": "user", "content": "A\x1b[31m"}, {"role": "assistant", "content": "B", "train": False},
                      {"role": "user", "content": "C"}, {"role": "assistant", "content": "D"}]}
SHOWN = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n⟦Hello, Zoë<|im_end|>⟧\n"


def lines(*records):
    return "".join(json.dumps(record) + "\n" for record in records)


class DataShow(ProgramTest):
    def setUp(self):
        super().setUp()
        self.file = self.write("chats.jsonl", lines(TALK, OTHER))

    def show(self, *arguments):
        return self.works("data", "show", *arguments)

    def model(self, template, **config):
        """A folder with a tokenizer of bytes and special tokens."""
        text = self.write("text.txt", "a b c d " * 100)
        self.works("tokenize", text, "--vocabulary", "270", "--out", self.path("model"))
        self.write("model/tokenizer_config.json", json.dumps({"eos_token": "<|endoftext|>", **config}))
        if template:
            self.write("model/chat_template.jinja", template)
        return self.path("model")

    def test_marks_what_is_trained(self):
        shown = self.show(self.file)
        self.assertTrue(shown.startswith(SHOWN), shown)
        self.assertRegex(shown, r"(?m)^row +1 \(.*chats.jsonl:1\)$")
        self.assertRegex(shown, r"(?m)^kind +messages$")
        self.assertRegex(shown, r"(?m)^tokens +\d+, 12 trained$")

    def test_another_row(self):
        shown = self.show(self.file, "--row", "2")
        self.assertIn("assistant\nB<|im_end|>\n", shown)
        self.assertIn("⟦D<|im_end|>⟧\n", shown)
        self.assertIn("A\\x1b[31m", shown)  # nothing in a file controls the terminal

    def test_json(self):
        found = json.loads(self.show(self.file, "--json"))
        self.assertEqual(list(found), ["kind", "row", "sequences"])
        self.assertEqual((found["kind"], found["row"], len(found["sequences"])), ("messages", 1, 1))
        sequence = found["sequences"][0]
        self.assertEqual(sequence["text"], SHOWN.replace("⟦", "").replace("⟧", "").rstrip("\n"))
        self.assertEqual(len(sequence["ids"]), len(sequence["trained"]))
        self.assertEqual(sum(sequence["trained"]), 12)

    def test_highlights_on_a_terminal(self):
        for variable, expected in (({}, b"\x1b[7mHello"), ({"NO_COLOR": "1"}, "⟦Hello".encode())):
            leader, follower = pty.openpty()
            process = subprocess.Popen([QUERN, "data", "show", self.file], stdout=follower,
                                       env={**environment(), **variable})
            os.close(follower)
            self.assertEqual(process.wait(timeout=60), 0)
            self.assertIn(expected, os.read(leader, 65536))
            os.close(leader)

    def test_prompts_and_text(self):
        pairs = self.write("pairs.jsonl", lines({"prompt": "2 + 2 =", "completion": " 4"}))
        self.assertIn("assistant\n⟦ 4<|im_end|>⟧\n", self.show(pairs))
        text = self.write("text.jsonl", lines({"text": "Once"}))
        self.assertIn("⟦Once<|endoftext|>⟧\n", self.show(text))
        self.assertRegex(self.show(text), r"(?m)^kind +text$")

    def test_the_template_of_a_model(self):
        model = self.model("{% for m in messages %}{{ m.role[0] + ':' + m.content + eos_token }}{% endfor %}"
                           "{% if add_generation_prompt %}{{ 'a:' }}{% endif %}")
        for flag in ("--run", "--base"):
            self.assertIn("u:Hi<|endoftext|>a:⟦Hello, Zoë<|endoftext|>⟧\n", self.show(self.file, flag, model))
        self.assertTrue(self.show(self.file, "--run", model, "--chat-template", "chatml").startswith("<|im_start|>"))

    def test_a_template_in_a_file(self):
        template = self.write("my.jinja", "{% for m in messages %}{{ '[' + m.role + ']' + m.content }}{% endfor %}"
                                          "{% if add_generation_prompt %}[assistant]{% endif %}")
        self.assertIn("[user]Hi[assistant]⟦Hello, Zoë⟧\n", self.show(self.file, "--chat-template", template))

    def test_nothing_trained(self):
        file = self.write("none.jsonl", lines({**TALK, "train": False}))
        self.assertRegex(self.show(file), r"(?m)^tokens +0, 0 trained$")
        self.assertEqual(json.loads(self.show(file, "--json"))["sequences"], [])

    def test_bad_usage(self):
        self.fails("data", says=["expected show FILE"])
        self.fails("data", "show", says=["expected a file"])
        self.fails("data", "show", self.file, "--row", "3", says=["--row: expected 1 to 2, found 3"])
        self.fails("data", "show", self.file, "--row", "0", says=["--row"])
        self.fails("data", "show", self.path("none.jsonl"), says=["none.jsonl"])
        self.fails("data", "show", self.file, "--run", "a", "--base", "b", says=["expected one model"])
        self.fails("data", "show", self.file, "--run", self.path("nowhere"), says=["nowhere"])
        self.fails("data", "show", self.file, "--chat-template", "nothere", says=["nothere"])

    def test_bad_files(self):
        broken = self.write("broken.jsonl", lines(TALK) + '{"messages": [}\n')
        self.fails("data", "show", broken, "--row", "2", says=["broken.jsonl:2:15: expected a JSON object"])
        template = self.write("bad.jinja", "{% for %}")
        self.fails("data", "show", self.file, "--chat-template", template, says=["bad.jinja:1"])
        model = self.model("")
        self.fails("data", "show", self.file, "--run", model, says=["chats.jsonl:1", "--chat-template chatml"])


if __name__ == "__main__":
    main()
