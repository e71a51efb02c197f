"""Everyday commands: generating text, bringing a tokenizer, evaluating shards, and what people type by mistake.

Each test is one thing that a user wants, with the command as it is typed and what it must print.
"""

import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
import program  # noqa: E402

TEXT = "".join(f"Once upon a time there were {i} mills at the river.\n" for i in range(600))


class Daily(program.ProgramTest):
    @classmethod
    def setUpClass(cls):
        folder = program.temporary_folder()
        cls.addClassCleanup(folder.cleanup)
        cls.home = pathlib.Path(folder.name)
        (cls.home / "book.txt").write_text(TEXT)
        for command in (("train", "book.txt", *program.SMALL, "--steps", "20", "--run", "runs/first"),
                        ("tokenize", "book.txt", "--vocab-size", "300", "--out", "tokens/book"),
                        ("train", "book.txt", *program.SMALL, "--steps", "20", "--tokenizer", "tokens/book/tokenizer.json",
                         "--set", "checkpoint.interval=10", "--run", "runs/book")):
            run = program.quern(*command, cwd=cls.home)
            assert run.returncode == 0, run

    def says(self, command, **options):
        """What a command prints, typed in the folder with the runs."""
        return self.works(*command.split(), cwd=self.home, **options)

    def refuses(self, command, *says, **options):
        """The one line that a command prints; nothing on standard output."""
        run = self.fails(*command.split(), says=says, cwd=self.home, **options)
        self.assertEqual(run.stdout, "")

    # Generation.

    def test_01_the_run_is_the_first_argument(self):
        self.assertTrue(self.says("generate runs/first --prompt Once").startswith("Once"))
        self.assertEqual(self.says("generate runs/first --prompt Once"), self.says("generate --run runs/first --prompt Once"))

    def test_02_five_samples(self):
        five = self.says("generate runs/first --prompt Once --tokens 30 --samples 5")
        self.assertEqual(five.count("\nOnce") + five.startswith("Once"), 5)
        self.assertIn("--- sample 5 of 5 ---\n", five)
        first = self.says("generate runs/first --prompt Once --tokens 30")
        self.assertTrue(five.startswith(f"--- sample 1 of 5 ---\n{first}--- sample 2 of 5 ---\n"))
        self.assertTrue(five.startswith(self.says("generate runs/first --prompt Once --tokens 30 --samples 2")
                                        .replace("of 2", "of 5")))

    def test_03_prompt_from_a_file_or_a_pipe(self):
        (self.home / "start.txt").write_text("Once upon\n")
        text = self.works("generate", "runs/first", "--prompt", "Once upon", cwd=self.home)
        self.assertEqual(self.says("generate runs/first --prompt-file start.txt"), text)
        self.assertEqual(self.says("generate runs/first --prompt -", input="Once upon\n"), text)

    def test_04_an_empty_prompt_starts_a_document(self):
        self.assertTrue(self.works("generate", "runs/book", "--prompt", "", cwd=self.home))

    def test_05_json(self):
        lines = self.says("generate runs/book --prompt Once --tokens 20 --samples 2 --seed 7 --json").splitlines()
        samples = [json.loads(line) for line in lines]
        self.assertEqual([(s["sample"], s["prompt"], s["seed"]) for s in samples], [(1, "Once", 7), (2, "Once", 7)])
        for sample in samples:
            self.assertIn(sample["finish"], ("length", "end"))
            self.assertEqual(sample["tokens"] == 20, sample["finish"] == "length")
            self.assertGreater(sample["tokens_per_s"], 0)

    def test_06_characters_that_the_vocabulary_lacks(self):
        self.refuses("generate runs/first --prompt Zoë", 'found "Z" (U+005A), "ë" (U+00EB); leave them out')
        self.assertTrue(self.says("generate runs/book --prompt Zoë").startswith("Zoë"))

    def test_07_nothing_is_printed_before_an_error(self):
        self.refuses("generate runs/first --prompt Once --temperature -1", "temperature: expected 0 or more, found -1")
        self.refuses("generate runs/first --prompt-file none.txt", "none.txt", "No such file")
        self.refuses("generate runs/none", "runs/none: expected a run with a config.toml, found none")
        self.refuses("generate", "expected a run, as in `quern generate runs/first`")

    def test_08_an_earlier_checkpoint(self):
        step = "runs/book/checkpoints/step-00000010"
        self.assertEqual(json.loads(self.says(f"info {step} --json"))["step"], 10)
        self.assertTrue(self.says(f"generate {step} --prompt Once"))
        self.assertNotEqual(self.says(f"eval {step}"), self.says("eval runs/book"))

    # Aliases, numbers and suggestions.

    def test_09_flags_that_people_type(self):
        ours = self.says("train --print-config --rate 3e-3 --batch 8")
        self.assertEqual(self.says("train --print-config --lr 3e-3 --batch-size 8"), ours)
        self.assertEqual(self.says("train --print-config --learning_rate .003 --batch_size 8"), ours)
        self.assertEqual(self.says("generate runs/first --max-new-tokens 9 --temp 0.5"),
                         self.says("generate runs/first --tokens 9 --temperature 0.5"))

    def test_10_whole_numbers(self):
        self.assertIn("\nsteps = 1000\n", self.says("train --print-config --steps 1e3"))
        self.assertIn("\nsteps = 10000\n", self.says("train --print-config --set train.steps=10_000"))
        self.refuses("train --steps 1.5e0", "expected a whole number from 0 to 1000000000, found '1.5e0'")
        self.refuses("train --steps 10k", "found '10k'; write 10e3")

    def test_11_unknown_flags(self):
        self.refuses("train --stpes 5", "unknown flag '--stpes'; did you mean --steps?")
        self.refuses("train --n_layer 5", "did you mean --layers?")
        self.refuses("train --weight-decay 0", "did you mean --set optimizer.weight_decay=VALUE?")
        self.refuses("train --device cuda", "Quern runs on CPUs")
        self.refuses("train -o runs/x", "did you mean --run?")
        self.refuses("generate runs/first --num_return_sequences 3", "did you mean --samples?")

    def test_12_unknown_commands(self):
        self.refuses("trian", "unknown command 'trian'; did you mean train?")
        self.refuses("sample runs/first", "did you mean generate?")
        self.refuses("bench kernel", "did you mean kernels?")

    def test_13_unknown_settings_and_values(self):
        self.refuses("train --set lr=1e-3", "found 'lr'; did you mean optimizer.rate?")
        self.refuses("train --set epochs=3", "did you mean train.steps? one epoch takes")
        (self.home / "my.toml").write_text("[model]\nn_embd = 64\n")
        self.refuses("train --config my.toml", "my.toml:2:1", "did you mean model.width?")
        self.refuses("train --precision float32", "expected fp32, bf16 or fp16, found 'float32'; did you mean fp32?")
        self.refuses("train --preset smal", "did you mean small?")

    # Tokenizers and shards.

    def test_14_tokenize_does_not_overwrite(self):
        before = program.contents(self.home / "tokens/book")
        self.refuses("tokenize book.txt --out tokens/book", "holds tokens.bin already; add --force to replace it")
        self.assertEqual(program.contents(self.home / "tokens/book"), before)
        self.says("tokenize book.txt --vocab-size 300 --out tokens/book --force")
        self.assertEqual(program.contents(self.home / "tokens/book"), before)

    def test_15_a_tokenizer_of_ones_own(self):
        self.assertEqual((self.home / "runs/book/tokenizer.json").read_bytes(),
                         (self.home / "tokens/book/tokenizer.json").read_bytes())
        self.assertIn(f'tokenizer = "{self.home}/tokens/book/tokenizer.json"', (self.home / "runs/book/config.toml").read_text())
        self.refuses("train book.txt --tokenizer none.json --run runs/x", "found no file", "none.json")

    def test_16_evaluate_on_shards(self):
        shards = json.loads(self.says("eval runs/book tokens/book --json"))
        self.assertEqual(shards, json.loads(self.says("eval runs/book book.txt --json")))
        (self.home / "val.bin").write_bytes((self.home / "tokens/book/tokens.bin").read_bytes()[1024:])
        self.assertIn("(the shards do not say whether the run's tokenizer made them)", self.says("eval runs/book val.bin"))
        self.refuses("eval runs/first tokens/book", "tokens.bin: expected tokens of", "found those of another tokenizer")
        self.refuses("eval runs/first val.bin", "val.bin: token 0: expected an id below the vocabulary of")

    # Python.

    def test_17_python(self):
        try:
            import quern
        except ImportError:
            self.skipTest("PYTHONPATH does not name the package")
        os.chdir(self.home)
        texts = quern.load("runs/first").generate("Once", tokens=30, samples=5)
        self.assertEqual(len(set(texts)), 5)
        self.assertEqual("Once" + texts[0] + "\n", self.says("generate runs/first --prompt Once --tokens 30"))
        settings = {"model.layers": 1, "model.heads": 2, "model.width": 32, "model.context": 32, "train.batch": 8}
        result = quern.train("book.txt", out="runs/python", tokenizer="tokens/book/tokenizer.json", steps=2, set=settings)
        self.assertEqual(quern.load(result.path).vocabulary, 300)
        for options, says in (({"set": {"lr": 1e-3}}, "did you mean optimizer.rate?"),
                              ({"set": {"train.precision": "half"}}, "did you mean fp16?"),
                              ({"steps": 1e3}, "expected a whole number from 0 to 1000000000, found 1000.0; write 1000")):
            with self.assertRaisesRegex(quern.Error, says.replace("?", r"\?")):
                quern.train("book.txt", out="runs/bad", **options)


if __name__ == "__main__":
    program.main()
