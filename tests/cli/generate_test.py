"""Generating text as a user types it: where the run and the prompt come from, samples, JSON, errors without output."""

import json
import os
import pty
import shutil
import signal
import subprocess
import time
import unittest.mock

import program


class Generate(program.ProgramTest):
    @classmethod
    def setUpClass(cls):
        folder = program.temporary_folder()
        cls.addClassCleanup(folder.cleanup)
        cls.run_folder = f"{folder.name}/run"
        run = program.quern("train", *program.SMALL, "--steps", "4", "--set", "checkpoint.interval=2", "--run",
                            cls.run_folder)
        assert run.returncode == 0, run

    def text(self, *arguments, **options):
        return self.works("generate", self.run_folder, "--tokens", "30", *arguments, **options)

    def says_nothing_but(self, *arguments, says, **options):
        run = self.fails("generate", self.run_folder, *arguments, says=says, **options)
        self.assertEqual(run.stdout, "")

    def test_run_is_the_first_argument_or_a_flag(self):
        text = self.text("--prompt", "Once")
        self.assertEqual(self.works("generate", "--run", self.run_folder, "--tokens", "30", "--prompt", "Once"), text)
        self.fails("generate", says=["expected a run, as in `quern generate runs/first`"])
        self.fails("generate", "a", "--run", "b", says=["expected one run, found 'a' and --run 'b'"])
        self.assertEqual(self.works("info", self.run_folder), self.works("info", "--run", self.run_folder))
        self.assertEqual(self.works("eval", self.run_folder), self.works("eval", "--run", self.run_folder))
        text = self.write("a.txt", "a cat. " * 20)
        self.assertEqual(self.works("eval", self.run_folder, text), self.works("eval", "--run", self.run_folder, text))

    def test_checkpoints(self):
        last, first = (f"{self.run_folder}/checkpoints/step-0000000{step}" for step in (4, 2))
        self.assertEqual(self.works("generate", last), self.works("generate", self.run_folder))
        self.assertNotEqual(self.works("generate", first + "/"), self.works("generate", self.run_folder))
        self.assertEqual(self.works("generate", first), self.works("generate", f"{self.run_folder}@2"))
        self.fails("generate", f"{self.run_folder}@3", says=["one of the saved steps 2, 4, found '3'"])
        self.assertEqual(json.loads(self.works("info", first, "--json"))["step"], 2)
        self.assertIn("step           2\n", self.works("eval", first))
        self.fails("generate", f"{self.run_folder}/checkpoints/step-00000009", says=["expected a run"])

    def test_samples_do_not_depend_on_their_number(self):
        three = self.text("--prompt", "Once", "--samples", "3", "--seed", "5")
        self.assertEqual(three.count("--- sample "), 3)
        parts = three.split("--- sample ")[1:]
        self.assertEqual([part.split(" ---\n")[0] for part in parts], ["1 of 3", "2 of 3", "3 of 3"])
        texts = [part.split(" ---\n")[1] for part in parts]
        self.assertEqual(texts[0], self.text("--prompt", "Once", "--seed", "5"))
        self.assertEqual(len(set(texts)), 3)
        two = self.text("--prompt", "Once", "--samples", "2", "--seed", "5")
        self.assertEqual([part.split(" ---\n")[1] for part in two.split("--- sample ")[1:]], texts[:2])

    def test_json(self):
        lines = self.text("--prompt", "Once", "--samples", "2", "--seed", "5", "--json").splitlines()
        samples = [json.loads(line) for line in lines]
        self.assertEqual("Once" + samples[0]["text"] + "\n", self.text("--prompt", "Once", "--seed", "5"))
        for i, sample in enumerate(samples):
            self.assertEqual({key: sample[key] for key in ("sample", "prompt", "prompt_tokens", "tokens", "finish", "seed")},
                             {"sample": i + 1, "prompt": "Once", "prompt_tokens": 4, "tokens": 30, "finish": "length",
                              "seed": 5})
            self.assertGreater(sample["tokens_per_s"], 0)

    def sample(self, *arguments):
        return json.loads(self.text("--prompt", "Once", "--json", *arguments))

    def test_stop_strings(self):
        """The text ends before the first one; the tokens that it took are counted."""
        whole = self.sample()["text"]
        for stop in (whole[12:15], whole[0], whole[20:]):
            found = self.sample("--stop", "not in the text", "--stop", stop)
            self.assertEqual(found["text"], whole[:whole.find(stop)])
            self.assertEqual((found["finish"], found["tokens"]), ("stop", whole.find(stop) + len(stop)))
        self.assertEqual(self.text("--prompt", "Once", "--stop", whole[12:15]),
                         "Once" + whole[:whole.find(whole[12:15])] + "\n")
        # A text that ends within a stop string is printed completely.
        self.assertEqual(self.sample("--stop", whole[-3:] + "!?")["text"], whole)
        # Neither a list nor a flag.
        self.assertEqual(self.sample(f"--stop=[{whole[3]},{whole[5]}]")["text"], whole)
        self.assertEqual(self.sample("--stop=--tokens")["text"], whole)

    def test_min_p_and_repeat_penalty(self):
        greedy = self.sample("--temperature", "0")["text"]
        self.assertEqual(self.sample("--min-p", "1")["text"], greedy)
        self.assertEqual(self.sample("--min-p", "0")["text"], self.sample()["text"])
        self.assertEqual(self.sample("--repeat-penalty", "1")["text"], self.sample()["text"])
        self.assertNotEqual(self.sample("--temperature", "0", "--repeat-penalty", "1.5")["text"], greedy)
        whole, long, short = (self.sample("--temperature", "0", "--repeat-penalty", "1.5", "--repeat-window", n)["text"]
                              for n in ("0", "1048576", "1"))
        self.assertEqual(whole, long)
        self.assertNotEqual(whole, short)
        self.assertEqual(self.sample("--min-p", "0.1", "--repeat-penalty", "1.1", "--threads", "1"),
                         self.sample("--min-p", "0.1", "--repeat-penalty", "1.1", "--threads", "2")
                         | {"tokens_per_s": unittest.mock.ANY})

    def test_end_tokens_of_generation_config(self):
        shutil.copytree(self.run_folder, self.path("run"))
        vocabulary = json.loads((self.folder / "run/tokenizer.json").read_text())["model"]["vocab"]
        whole = self.sample()["text"]
        generate = ("generate", self.path("run"), "--tokens", "30", "--prompt", "Once", "--json")
        for end in (whole[10], whole[0]):
            for ids in (vocabulary[end], [vocabulary[end]], [vocabulary["O"], vocabulary[end]]):
                self.write("run/generation_config.json", json.dumps({"eos_token_id": ids, "top_p": 0.9}))
                found = json.loads(self.works(*generate))
                self.assertEqual(found["text"], whole[:min(whole.find(c) % 99 for c in end + "O"[isinstance(ids, int):])])
                self.assertEqual(found["finish"], "end")
                self.assertEqual(json.loads(self.works(*generate, "--ignore-end"))["text"], whole)
        for nothing in ("{}", '{"eos_token_id": null}', '{"eos_token_id": []}'):
            self.write("run/generation_config.json", nothing)
            self.assertEqual(json.loads(self.works(*generate))["text"], whole)

    def test_bad_generation_configs_are_named(self):
        shutil.copytree(self.run_folder, self.path("run"))
        for content, says in (("{", "expected JSON"), ("[1]", "expected an object"), ("[" * 100000, "expected JSON"),
                              ('{"eos_token_id": "x"}', "eos_token_id: expected a token id or a list of token ids"),
                              ('{"eos_token_id": -1}', "a token id or a list"),
                              ('{"eos_token_id": [1, 2.5]}', "a token id or a list"),
                              ('{"eos_token_id": [1, [2]]}', "a token id or a list"),
                              ('{"eos_token_id": 99999999999}', "a token id or a list"),
                              (json.dumps({"eos_token_id": [1] * 257}), "at most 256 token ids"),
                              (" " * (1 << 20) + "{}", "1048576")):
            self.write("run/generation_config.json", content)
            run = self.fails("generate", self.path("run"), says=["generation_config.json", says])
            self.assertEqual(run.stdout, "")
        self.write("run/generation_config.json", '{"eos_token_id": [1, 5000]}')
        run = program.quern("generate", self.path("run"), "--tokens", "1")
        self.assertEqual(run.returncode, 0, run)
        self.assertRegex(run.stderr, r"\A[^\n]*generation_config.json: eos_token_id: ignored 5000[^\n]*\n\Z")

    def test_a_long_prompt_shows_progress_on_a_terminal_only(self):
        """After a second, of which the program is mostly stopped, so that no machine is too fast."""
        self.train("run", "--steps", "0", "--layers", "4", "--width", "128", "--context", "4096", "--batch", "1",
                   "--set", "data.stories_bytes=200000")
        prompt = self.write("prompt.txt", "Once upon " * 400)
        generate = ("generate", self.path("run"), "--prompt-file", prompt, "--tokens", "5", "--threads", "1")
        printed = self.works(*generate)
        leader, follower = pty.openpty()
        process = subprocess.Popen([program.QUERN, *generate], stdout=subprocess.PIPE, stderr=follower)
        os.close(follower)
        while process.poll() is None:
            process.send_signal(signal.SIGSTOP)
            time.sleep(0.3)
            process.send_signal(signal.SIGCONT)
            time.sleep(0.03)
        self.assertEqual((process.returncode, process.stdout.read().decode()), (0, printed))
        process.stdout.close()
        status = os.read(leader, 100000).decode()
        os.close(leader)
        self.assertRegex(status, r"\A(\r\x1b\[Kreading the prompt: \d+ of 4000 tokens \.\.\.)+\r\x1b\[K\Z")

    def test_prompt_from_a_file_and_from_standard_input(self):
        text = self.text("--prompt", "Once")
        for content in ("Once", "Once\n", "Once\r\n", b"\xef\xbb\xbfOnce\n"):
            file = self.write("prompt.txt", content)
            self.assertEqual(self.text("--prompt-file", file), text)
        for flag in ("--prompt", "--prompt-file"):
            self.assertEqual(self.text(flag, "-", input="Once\n"), text)
        self.assertEqual(self.text("--prompt", "-", input="Once\n\n"), self.text("--prompt", "Once\n"))
        self.assertEqual(self.text(input="Not asked for"), self.text())
        self.says_nothing_but("--prompt-file", self.path("none.txt"), says=["none.txt", "No such file"])
        self.says_nothing_but("--prompt-file", file, "--prompt", "a", says=["found --prompt and --prompt-file"])

    def test_an_empty_prompt_starts_a_document(self):
        """Nothing precedes the text; a model of characters starts as after a line break."""
        self.assertEqual("\n" + self.text("--prompt", ""), self.text())
        self.assertEqual(self.text("--prompt", "-", input=""), self.text("--prompt", ""))

    def test_unknown_characters_are_named(self):
        self.says_nothing_but("--prompt", "Once \u00e9t\u00e9, 5 \u20ac", says=[
            "byte 5", "found \"\u00e9\" (U+00E9), \"5\" (U+0035), \"\u20ac\" (U+20AC); leave them out, or use the byte or bpe"])
        self.says_nothing_but("--prompt", "1234567", says=['"5" (U+0035) and others;'])

    def test_nothing_is_printed_before_an_error(self):
        """The prompt was printed before the options were checked."""
        for arguments, says in ((("--temperature", "-1"), "temperature: expected 0 or more"),
                                (("--top-p", "0"), "top_p: expected more than 0"),
                                (("--min-p", "1.1"), "min_p: expected 0 to 1, found 1.1"),
                                (("--min-p", "-0.1"), "min_p: expected 0 to 1"),
                                (("--min-p", "nan"), "min_p: expected 0 to 1"),
                                (("--repeat-penalty", "0"), "repeat_penalty: expected more than 0"),
                                (("--repeat-penalty", "inf"), "repeat_penalty: expected more than 0"),
                                (("--repeat-window", "7"), "together with a repeat_penalty other than 1, found 7"),
                                (("--repeat-penalty", "2", "--repeat-window", "1e9"),
                                 "--repeat-window: expected a whole number from 0 to 1048576"),
                                (("--stop", ""), "stop: expected at least one character"),
                                (("--stop", "a" * 1025), "stop: expected at most 1024 bytes, found 1025"),
                                (("--stop", "a") * 65, "stop: expected at most 64 strings, found 65"),
                                (("--samples", "0"), "--samples: expected a whole number from 1 to 1000000"),
                                (("--tokens", "5000000000"), "max_tokens: expected at most 4294967295")):
            self.says_nothing_but("--prompt", "Once", *arguments, says=[says])


if __name__ == "__main__":
    program.main()
