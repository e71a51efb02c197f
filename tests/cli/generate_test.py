"""Generating text as a user types it: where the run and the prompt come from, samples, JSON, errors without output."""

import json

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
                                (("--samples", "0"), "--samples: expected a whole number from 1 to 1000000"),
                                (("--tokens", "5000000000"), "max_tokens: expected at most 4294967295")):
            self.says_nothing_but("--prompt", "Once", *arguments, says=[says])


if __name__ == "__main__":
    program.main()
