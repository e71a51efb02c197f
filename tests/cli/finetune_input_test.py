"""What cannot be fine-tuned: exit code 2, one line with the place, and nothing written."""

import json
import os
import pathlib
import re
import shutil
import signal
import time

import program
from program import TEXT

LETTERS = "".join(map(chr, range(32, 127)))
GOOD = '{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]}\n'


def record(*messages, **more):
    return json.dumps({"messages": [{"role": role, "content": content} for role, content in messages], **more}) + "\n"


def catches(process, number):
    """Whether it has a handler for this signal."""
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(r"(?m)^SigCgt:\s*(\w+)$", status)[1], 16) >> (number - 1) & 1


class Finetune(program.ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.base_folder = program.temporary_folder()
        cls.addClassCleanup(cls.base_folder.cleanup)
        text = os.path.join(cls.base_folder.name, "text.txt")
        with open(text, "w", encoding="utf-8") as file:
            file.write(LETTERS + TEXT)
        cls.base = os.path.join(cls.base_folder.name, "base")
        done = program.quern("train", *program.SMALL, text, "--context", "160", "--steps", "1", "--run", cls.base)
        assert done.returncode == 0, done.stderr

    def refuses(self, data, *arguments, says, base=None):
        """Nothing appears beside what was there."""
        before = program.contents(self.folder), sorted(os.listdir(self.folder))
        given = ("--base", base or self.base) if base != "" else ()
        template = () if "--chat-template" in arguments else ("--chat-template", "chatml")
        found = self.fails("finetune", *given, *([data] if data else []), *template, *arguments, "--run",
                           self.path("run"), says=says)
        self.assertEqual((program.contents(self.folder), sorted(os.listdir(self.folder))), before)
        self.assertFalse((self.folder / "run").exists())
        self.assertEqual(found.stdout, "")

    def data(self, text):
        return self.write("chats.jsonl", text)

    def test_records(self):
        self.refuses(self.data(GOOD + '{"messages": [}\n'), says=["chats.jsonl", "chats.jsonl:2:15"])
        self.refuses(self.data(GOOD + '{"messages": []\n'), says=["chats.jsonl:2:16"])
        self.refuses(self.data(GOOD + record(("robot", "Hi"), ("assistant", "Hello"))),
                     says=["chats.jsonl", "2", "role", "robot"])
        self.refuses(self.data(GOOD + record()), says=["chats.jsonl", "2", "messages"])
        self.refuses(self.data(GOOD + record(("user", "Hi"))), says=["chats.jsonl", "2", "assistant"])
        self.refuses(self.data(GOOD + '{"messages": [{"role": "assistant"}]}\n'), says=["chats.jsonl", "2", "content"])
        self.refuses(self.data(GOOD + '{"messages": 5}\n'), says=["chats.jsonl", "2", "messages"])
        self.refuses(self.data(GOOD + '{"prompt": "a", "completion": "b"}\n'), says=["chats.jsonl", "2"])
        self.refuses(self.data(GOOD + "[1, 2]\n"), says=["chats.jsonl", "2"])
        self.refuses(self.data('{"body": "a"}\n'), says=["chats.jsonl", "1"])
        self.refuses(self.data(GOOD.encode() + b'{"text": "\xff"}\n'), says=["chats.jsonl"])

    def test_nothing_to_train_on(self):
        self.refuses(self.data(""), says=["chats.jsonl", "found"])
        self.refuses(self.data("\n\n"), says=["chats.jsonl", "found"])
        self.refuses(self.data(record(("user", "Hi"), ("assistant", "Hello"), train=False) * 3),
                     says=["chats.jsonl", "expected tokens to train on"])
        self.refuses(self.data(record(("user", "Hi" * 200), ("assistant", "Hello")) * 3),
                     says=["chats.jsonl", "within a context of 160"])
        self.refuses(self.path("none.jsonl"), says=["none.jsonl"])
        (self.folder / "empty").mkdir()
        self.refuses(self.path("empty"), says=["empty"])
        for text in ("", record(("user", "Hi"), ("assistant", "Hello"), train=False),
                     record(("user", "Hi" * 200), ("assistant", "Hello"))):  # the run said nothing and did not validate
            self.write("folder/train.jsonl", GOOD * 3)
            self.write("folder/valid.jsonl", text)
            self.refuses(self.path("folder"), says=["valid.jsonl"])
        self.refuses(None, says=["expected DATA"])

    def test_base(self):
        data = self.data(GOOD)
        self.refuses(data, base="", says=["--base"])
        self.refuses(data, base=self.path("none"), says=["none", "expected"])
        self.refuses(data, base=data, says=["chats.jsonl", "expected"])
        (self.folder / "folder").mkdir()
        self.refuses(data, base=self.path("folder"), says=["folder", "expected"])
        self.write("hf/config.json", "{}")
        self.refuses(data, base=self.path("hf"), says=["config.json"])
        self.write("bad.gguf", b"GGUF" + bytes(100))
        self.refuses(data, base=self.path("bad.gguf"), says=["bad.gguf"])
        self.refuses(data, base=self.base + "@7", says=["7"])

    def test_settings(self):
        data = self.data(GOOD)
        self.refuses(data, "--targets", '["q_proj"]', says=["lora.targets", "c_attn", "q_proj"])
        self.refuses(data, "--targets", "[]", says=["lora.targets"])
        self.refuses(data, "--rank", "100000", says=["rank", "100000"])
        self.refuses(data, "--rank", "-1", says=["rank"])
        self.refuses(data, "--alpha", "0", says=["alpha"])
        self.refuses(data, "--set", "lora.dropout=1", says=["lora.dropout"])
        self.refuses(data, "--set", 'train.freeze=["wte"]', says=["train.freeze"])
        self.refuses(data, "--context", "161", says=["context", "160", "161"])
        self.refuses(data, "--set", "model.width=64", says=["model.width"])
        self.refuses(data, "--epochs", "x", says=["data.epochs"])
        self.refuses(data, "--set", "data.sampling=stream", says=["data.sampling"])
        self.refuses(data, "--set", "data.broadcast=true", says=["data.broadcast"])
        self.refuses(data, "--set", "data.encoding=windows-1252", says=["data.encoding", "utf-8"])

    def test_templates(self):
        data = self.data(GOOD)
        for name, text, says in (("construct", "{% for m in messages %}\n{% frobnicate m %}{% endfor %}", ["frobnicate"]),
                                 ("open", "{% for m in messages %}{{ m.content }}", ["template", "end"]),
                                 ("filter", "{{ messages | frobnicate }}", ["frobnicate"]),
                                 ("raises", "{{ raise_exception('only in pairs') }}", ["only in pairs"]),
                                 ("silent", "", ["chats.jsonl"])):
            self.refuses(data, "--chat-template", self.write(name + ".jinja", text), says=says)
        self.refuses(data, "--chat-template", self.path("none.jinja"), says=["none.jinja"])
        # Messages and no template.
        self.refuses_without_template(data)

    def refuses_without_template(self, data):
        self.fails("finetune", "--base", self.base, data, "--run", self.path("run"), says=["--chat-template"])
        self.assertFalse((self.folder / "run").exists())

    def test_the_same_settings_work(self):
        """So that what was refused was refused for its reason."""
        out = self.works("finetune", "--base", self.base, self.data(GOOD * 12), "--chat-template", "chatml", "--run",
                         self.path("run"))
        self.assertIn("chats.jsonl: messages\n", out)
        self.assertIn(" of them trained\n", out)
        self.assertEqual(self.info("run")["step"], 2)

    def test_full_has_no_rank(self):
        self.refuses(self.data(GOOD), "--full", "--rank", "4", says=["lora.rank", "with full", "found 4"])

    def test_what_is_cut_is_counted(self):
        """Of 14 sequences one is longer than the context, with its answer beyond the end."""
        data = self.data(GOOD * 13 + record(("user", "Hi" * 200), ("assistant", "Hello")))
        run = self.works("finetune", "--base", self.base, data, "--chat-template", "chatml", "--set",
                         "data.validation_fraction=0", "--run", self.path("cut"))
        self.assertIn("1 of 14 sequences are longer than the context of 160: 0 cut, and 1 dropped", str(run))

    def test_what_is_cut_of_held_out_conversations_is_counted(self):
        self.write("folder/train.jsonl", GOOD * 13)
        self.write("folder/valid.jsonl", GOOD + record(("user", "Hi"), ("assistant", "Hello" * 200)))
        found = program.quern("finetune", "--base", self.base, self.path("folder"), "--chat-template", "chatml", "--run",
                              self.path("cut"))
        self.assertEqual(found.returncode, 0, found.stderr)
        self.assertIn("1 of 2 held-out sequences are longer than the context of 160: 1 cut, and 0 dropped",
                      found.stdout + found.stderr)

    def export(self, seed):
        """A Hugging Face folder, and the command that starts from it; returns the hash of its weights."""
        self.train(f"tiny-{seed}", "--steps", "1", "--set", "model.family=llama", "--tokenizer", "byte", "--seed", seed)
        self.works("export", "--run", self.path(f"tiny-{seed}"), "--to", "hf", "--force", self.path("hf"))
        command = ("finetune", "--base", self.path("hf"), self.data('{"text": "Hello there."}\n' * 20), "--context", "32",
                   "--steps", "1")
        return self.hash(f"tiny-{seed}"), command

    def test_a_base_that_changed_since_its_import(self):
        """A second command used the import of the first, and trained on the weights of before."""
        _, command = self.export(1)
        self.works(*command, "--run", self.path("run"))
        shutil.rmtree(self.path("run"))
        self.works(*command, "--run", self.path("run"))  # uses the import
        shutil.rmtree(self.path("run"))
        new, command = self.export(2)
        self.fails(*command, "--run", self.path("run"), says=["run-base: was imported from", "has changed since"])
        self.assertFalse((self.folder / "run").exists())
        shutil.rmtree(self.path("run-base"))
        self.works(*command, "--run", self.path("run"))
        self.assertEqual(self.info("run-base")["weights_hash"], new)

    def test_stopped_before_the_first_step(self):
        """It says that nothing was written, but the import was left behind."""
        _, command = self.export(1)
        self.data('{"text": "Hello there."}\n' * 100_000)
        process = program.start(*command, "--run", self.path("run"))
        while not catches(process, signal.SIGINT):  # after the import, before the data are read
            self.assertIsNone(process.poll())
            time.sleep(0.001)
        self.assertTrue((self.folder / "run-base").exists())
        process.send_signal(signal.SIGINT)
        printed, errors = process.communicate(timeout=program.TIMEOUT)
        self.assertEqual((process.returncode, errors), (130, ""))
        self.assertIn("nothing was written", printed)
        self.assertEqual(sorted(os.listdir(self.folder)), ["chats.jsonl", "hf", "tiny-1"])

    def test_two_at_once_import_the_same_base(self):
        """The one that failed removed what the other had imported, so that often both failed."""
        weights, command = self.export(1)
        for i in range(6):
            both = [program.start(*command, "--run", self.path(f"run-{i}")) for _ in range(2)]
            errors = [process.communicate(timeout=program.TIMEOUT)[1] for process in both]
            self.assertEqual(sorted(process.returncode for process in both), [0, 2], errors)
            self.assertEqual(self.info(f"run-{i}-base")["weights_hash"], weights)

    def test_a_run_that_exists(self):
        data = self.data(GOOD)
        self.works("finetune", "--base", self.base, data, "--chat-template", "chatml", "--run", self.path("tuned"))
        before = program.contents(self.folder / "tuned")
        self.fails("finetune", "--base", self.base, data, "--chat-template", "chatml", "--run", self.path("tuned"),
                   says=["holds a run already"])
        other = self.write("other.jsonl", GOOD * 5)
        for arguments, says in ((("--base", self.base), ["omit --base"]), (("--rank", "3"), ["lora.rank"]),
                                ((other,), ["other.jsonl", "quern finetune --base " + self.path("tuned")]),
                                (("--targets", '["c_fc"]'), ["lora.targets"])):
            self.fails("finetune", "--run", self.path("tuned"), "--resume", *arguments, says=says)
        self.assertEqual(program.contents(self.folder / "tuned"), before)


if __name__ == "__main__":
    program.main()
