"""Talking with a model: one question from a pipe, and a conversation in a terminal with its commands and Ctrl-C."""

import json
import os
import pty
import select
import shutil
import signal
import subprocess
import time

import program

# Few characters, so that a small context has room for a conversation. Turns end with a text, as the model has bytes.
TEMPLATE = ("{% for m in messages %}{{ m.role[0] + ':' + m.content + '|end|' }}{% endfor %}"
            "{% if add_generation_prompt %}a:{% endif %}")


class Terminal:
    """The program with a terminal of its own."""

    def __init__(self, *arguments):
        self.leader, follower = pty.openpty()
        self.process = subprocess.Popen([program.QUERN, *map(str, arguments)], stdin=follower, stdout=follower,
                                        stderr=follower, env=program.environment(), start_new_session=True)
        os.close(follower)
        self.text = ""

    def read_until(self, end, seconds=100):
        """What appears up to and including `end`, with line breaks as in a file."""
        limit = time.monotonic() + seconds
        while end not in self.text:
            ready, _, _ = select.select([self.leader], [], [], limit - time.monotonic())
            assert ready, f"expected {end!r}, found {self.text!r}"
            self.text += os.read(self.leader, 4096).decode(errors="replace").replace("\r\n", "\n")
        at = self.text.index(end) + len(end)
        found, self.text = self.text[:at], self.text[at:]
        return found

    def type(self, line):
        os.write(self.leader, line.encode())

    def ask(self, line):
        """Types a line at the prompt; what is printed until the next prompt, without the echo of the line."""
        self.type(line + "\n")
        self.read_until(line + "\n")
        return self.read_until("\n> ").removesuffix("\n> ")

    def end(self):
        code = self.process.wait(timeout=program.TIMEOUT)
        os.close(self.leader)
        return code


class Chat(program.ProgramTest):
    @classmethod
    def setUpClass(cls):
        folder = program.temporary_folder()
        cls.addClassCleanup(folder.cleanup)
        cls.run_folder = f"{folder.name}/run"
        cls.template = f"{folder.name}/template.jinja"
        with open(cls.template, "w", encoding="utf-8") as file:
            file.write(TEMPLATE)
        run = program.quern("train", *program.SMALL, "--context", "160", "--tokenizer", "byte", "--steps", "3", "--set",
                            "model.vocabulary=256", "--run", cls.run_folder)
        assert run.returncode == 0, run

    def chat(self, *arguments):
        return ("chat", self.run_folder, "--chat-template", self.template, "--tokens", "20", *arguments)

    def answer(self, *arguments, **options):
        return self.works(*self.chat(*arguments), **options)

    def terminal(self, *arguments):
        terminal = Terminal(*self.chat(*arguments))
        self.addCleanup(lambda: terminal.process.poll() is None and terminal.process.kill())
        self.assertEqual(terminal.read_until("> "), "> ")
        return terminal

    def test_a_pipe_gets_one_answer(self):
        answer = self.answer(input="What is the tide?\n")
        self.assertTrue(answer.endswith("\n") and len(answer) > 5, answer)
        self.assertEqual(self.answer("--prompt", "What is the tide?"), answer)
        self.assertEqual(self.answer("--prompt", "-", input="What is the tide?"), answer)
        self.assertEqual(self.answer("--prompt", "What is the tide?", "--threads", "2"), answer)
        self.assertNotEqual(self.answer("--prompt", "What is the tide?", "--seed", "4"), answer)
        self.assertNotEqual(self.answer("--prompt", "What is the tide?", "--system", "x"), answer)
        greedy = self.answer("--prompt", "What is the tide?", "--temperature", "0")
        self.assertEqual(self.answer("--prompt", "What is the tide?", "--top-k", "1"), greedy)
        self.assertEqual(self.answer("--prompt", "What is the tide?", "--min-p", "1"), greedy)
        self.assertTrue(self.works("chat", self.run_folder, "--chat-template", "chatml", "--prompt", "Hello", "--tokens", "9"))

    def test_an_answer_is_what_generate_continues_the_prompt_with(self):
        prompt = "s:Be kind|end|u:Hello|end|a:"
        text = self.works("generate", self.run_folder, "--prompt", prompt, "--tokens", "20", "--stop", "|end|")
        self.assertEqual(self.answer("--prompt", "Hello", "--system", "Be kind"), text.removeprefix(prompt))

    def test_the_template_of_the_run(self):
        shutil.copytree(self.run_folder, self.path("run"))
        arguments = ("chat", self.path("run"), "--tokens", "20", "--prompt", "Hello")
        self.fails(*arguments, says=["expected a chat template, found none; choose one with --chat-template chatml"])
        shutil.copy(self.template, self.path("run/chat_template.jinja"))
        self.assertEqual(self.works(*arguments), self.answer("--prompt", "Hello"))

    def test_bad_usage(self):
        self.fails("chat", says=["expected a run, as in `quern chat runs/first`"])
        for arguments, says in ((("--prompt", ""), "expected a message in --prompt or on standard input"),
                                (("--prompt", "a", "--top-p", "0"), "top_p: expected more than 0"),
                                (("--prompt", "a", "--tokens", "x"), "--tokens"),
                                (("--prompt", "x" * 500), "expected fewer than 160 tokens"),
                                (("--promt", "x"), "did you mean --prompt?"),
                                (("--system-prompt", "x"), "did you mean --system?")):
            run = self.fails(*self.chat(*arguments), says=[says])
            self.assertEqual(run.stdout, "")
        self.fails(*self.chat(), says=["on standard input, found an empty one"], stdin=subprocess.DEVNULL)
        self.fails("chat", self.run_folder, "--chat-template", "none.jinja", "--prompt", "a", says=["none.jinja"])
        bad = self.write("bad.jinja", "{% for %}")
        self.fails("chat", self.run_folder, "--chat-template", bad, "--prompt", "a", says=["[template]", "bad.jinja"])
        refusing = self.write("no.jinja", "{{ raise_exception('no system role') }}")
        self.fails("chat", self.run_folder, "--chat-template", refusing, "--prompt", "a", says=["no system role"])
        shutil.copytree(self.run_folder, self.path("run"))
        os.remove(self.path("run/tokenizer.json"))
        self.fails("chat", self.path("run"), "--prompt", "a", says=["tokenizer"])

    def test_a_conversation(self):
        terminal = self.terminal()
        first = terminal.ask("Hello")
        self.assertIn("(ended after 20 tokens; --tokens N allows more)", first)
        second = terminal.ask("And then?")
        self.assertEqual(terminal.ask("/undo"), "(removed the last question and its answer)")
        self.assertNotEqual(terminal.ask("And then?"), second)  # another answer to the same question
        self.assertEqual(terminal.ask("/reset"), "(a new conversation)")
        self.assertEqual([terminal.ask("Hello"), terminal.ask("And then?")], [first, second])
        terminal.type("\x04")
        self.assertEqual(terminal.end(), 0)

    def test_commands(self):
        terminal = self.terminal("--system", "Be kind")
        for command in ("/help", "/reset", "/save FILE", "/system TEXT", "/undo", "/quit"):
            self.assertIn(f"  {command} ", terminal.ask("/help"))
        self.assertIn("/undo: expected a conversation", terminal.ask("/undo"))
        self.assertIn("/save: expected a conversation", terminal.ask(f"/save {self.path('a.jsonl')}"))
        self.assertEqual(terminal.ask("/sav x"), "quern: unknown command '/sav'; did you mean /save?")
        self.assertIn("/help lists the commands", terminal.ask("/frobnicate"))
        terminal.ask("Hello")
        self.assertIn("expected the name of a new file", terminal.ask("/save"))
        self.assertEqual(terminal.ask(f"/save {self.path('a.jsonl')}"), f"(saved to {self.path('a.jsonl')})")
        saved = (self.folder / "a.jsonl").read_text()
        self.assertIn("quern: ", terminal.ask(f"/save {self.path('a.jsonl')}"))
        self.assertEqual((self.folder / "a.jsonl").read_text(), saved)
        self.assertEqual(terminal.ask("/system Be brief"), "(the system message is set)")
        terminal.ask("/usr/bin is a folder")
        terminal.ask(f"/save {self.path('b.jsonl')}")
        terminal.type("/quit\n")
        self.assertEqual(terminal.end(), 0)
        messages = json.loads(saved)["messages"]
        self.assertEqual([message["role"] for message in messages], ["system", "user", "assistant"])
        self.assertEqual((messages[0]["content"], messages[1]["content"]), ("Be kind", "Hello"))
        messages = json.loads((self.folder / "b.jsonl").read_text())["messages"]
        self.assertEqual([message["content"] for message in messages[:2]], ["Be brief", "Hello"])
        self.assertEqual(messages[3]["content"], "/usr/bin is a folder")

    def test_the_oldest_messages_are_dropped_and_that_is_said_once(self):
        terminal = self.terminal("--system", "Be kind")
        printed = [terminal.ask(f"A question, number {i}") for i in range(6)]
        self.assertEqual(sum("no longer sees the oldest" in text for text in printed), 1)
        self.assertIn("expected fewer than 160 tokens", terminal.ask("x" * 400))
        terminal.ask(f"/save {self.path('all.jsonl')}")
        terminal.type("\x04")
        self.assertEqual(terminal.end(), 0)
        self.assertEqual(len(json.loads((self.folder / "all.jsonl").read_text())["messages"]), 13)

    def test_ctrl_c_stops_an_answer_and_then_the_program(self):
        self.works("train", *program.SMALL, "--steps", "0", "--layers", "4", "--width", "128", "--context", "4096", "--batch",
                   "1", "--set", "data.stories_bytes=200000", "--tokenizer", "byte", "--run", self.path("long"))
        terminal = Terminal("chat", self.path("long"), "--chat-template", self.template, "--tokens", "4000")
        terminal.read_until("> ")
        terminal.type("Hello\n")
        terminal.read_until("Hello\n")
        select.select([terminal.leader], [], [], 100)
        terminal.process.send_signal(signal.SIGINT)
        self.assertNotIn("(ended after 4000 tokens", terminal.read_until("\n> "))
        self.assertEqual(terminal.ask("/undo"), "(removed the last question and its answer)")
        terminal.process.send_signal(signal.SIGINT)
        self.assertEqual(terminal.end(), 130)


if __name__ == "__main__":
    program.main()
