"""The second day of a run: extend it, change it, move its text, start another from it. As a user types it."""

import json
import math
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))

import program  # noqa: E402
from program import SMALL, TEXT  # noqa: E402

try:
    import quern
except ImportError:  # the package is not built
    quern = None


class ExtendARun(program.ProgramTest):
    """A run of 6 steps on a text of the user's own."""

    def setUp(self):
        super().setUp()
        self.text = self.write("book.txt", TEXT)
        self.train("run", self.text, "--steps", "6")

    def test_a_finished_run_says_so(self):
        before = program.contents(self.folder)
        self.assertEqual(self.resume("run"), f"finished: 6 of 6 steps, in {self.path('run')}; extend it with --steps N\n")
        self.assertEqual(program.contents(self.folder), before)

    def test_more_steps(self):
        printed = self.resume("run", "--steps", "9")
        self.assertIn("resuming at step 7", printed)
        self.assertIn("from step 7: train.steps 6 -> 9", printed)
        self.assertIn("done: 9 steps", printed)
        self.assertEqual(self.info("run")["step"], 9)

    def test_the_same_command_again_changes_nothing_more(self):
        self.resume("run", "--steps", "9")
        config = (self.folder / "run/config.toml").read_text()
        self.assertIn("finished: 9 of 9 steps", self.resume("run", "--steps", "9"))
        self.assertEqual((self.folder / "run/config.toml").read_text(), config)

    def test_another_rate_schedule_batch_and_log(self):
        self.resume("run", "--steps", "12", "--rate", "1e-4", "--batch", "4", "--accumulation", "3", "--dropout", "0.1",
                    "--set", "optimizer.schedule=constant", "--set", "optimizer.weight_decay=0", "--set",
                    "train.validation_interval=2", "--set", "checkpoint.interval=3", "--set", "log.interval=1",
                    "--precision", "bf16")
        lines = [json.loads(line) for line in (self.folder / "run/metrics.jsonl").read_text().splitlines()]
        rates = {line["step"]: line["rate"] for line in lines if "rate" in line}
        self.assertEqual([rates[step] for step in range(7, 13)], [1e-4] * 6)
        self.assertIn("from step 7: model.dropout 0.0 -> 0.1", self.works("report", "--run", self.path("run")))
        self.assertIn("from step 7: model.dropout 0.0 -> 0.1", self.works("info", "--run", self.path("run")))

    def test_same_history_same_bits(self):
        self.resume("run", "--steps", "9", "--rate", "5e-4")
        self.resume("run", "--steps", "12", "--batch", "3")
        self.works("train", "--config", self.path("run/config.toml"), "--run", self.path("replayed"))
        self.assertEqual(self.hash("replayed"), self.hash("run"))

    def test_settings_in_a_file(self):
        self.resume("run", "--config", self.write("longer.toml", "[train]\nsteps = 8\n"))
        self.assertEqual(self.info("run")["steps"], 8)
        self.fails("train", "--run", self.path("run"), "--resume", "--config",
                   self.write("wider.toml", "[model]\nwidth = 64\n"), says=["model.width: expected 32"])

    def test_fewer_steps_than_done(self):
        self.fails("train", "--run", self.path("run"), "--resume", "--steps", "3",
                   says=["train.steps: expected at least 6, the steps that the run has done, found 3"])

    def test_a_text_that_moved(self):
        (self.folder / "book.txt").rename(self.folder / "library.txt")
        self.fails("train", "--run", self.path("run"), "--resume", "--steps", "8",
                   says=["book.txt: expected a file or folder, found nothing"])
        self.resume("run", self.path("library.txt"), "--steps", "8")
        self.assertIn("library.txt", self.works("info", "--run", self.path("run")))
        self.assertIn("done: 9 steps", self.resume("run", "--steps", "9"))

    def test_another_text(self):
        other = self.write("other.txt", TEXT[::-1])
        self.fails("train", other, "--run", self.path("run"), "--resume", "--steps", "8",
                   says=["other.txt: expected the text of the run, in another place, found other text",
                         f"quern train --from {self.path('run')} {other} --run NEW"])

    def test_what_cannot_change_says_why_and_what_to_do(self):
        for arguments, why, instead in (
                (("--width", "64"), "the weights belong to that model", "start a new run"),
                (("--layers", "2"), "the weights belong to that model", "start a new run"),
                (("--context", "16"), "the weights belong to that model", "start a new run"),
                (("--tokenizer", "bpe"), "the weights belong to the run's tokens", "start a new run"),
                (("--seed", "2"), "it decides the order of the data and all random numbers", "quern train --from"),
                (("--set", "data.sampling=epoch"), "it decides the data of the run", "quern train --from")):
            self.fails("train", "--run", self.path("run"), "--resume", *arguments,
                       says=["as the run was started with", why, instead])
        self.fails("train", "--run", self.path("run"), "--resume", "--preset", "small", says=["omit --preset"])


class StartFromAnotherRun(program.ProgramTest):
    def setUp(self):
        super().setUp()
        self.text = self.write("book.txt", TEXT)
        self.train("first", self.text, "--steps", "6", "--set", "checkpoint.interval=3", "--set", "checkpoint.keep=9")

    def start(self, source, *arguments):
        return self.works("train", "--from", self.path(source), *arguments, "--run", self.path("second"))

    def test_other_data_and_schedule(self):
        self.start("first", self.write("other.txt", TEXT[::-1]), "--steps", "4", "--rate", "1e-4")
        info = self.info("second")
        self.assertEqual((info["step"], info["init"]["weights_hash"]), (4, self.hash("first")))
        self.assertIn("started from " + self.path("first/checkpoints/step-00000006"),
                      self.works("info", "--run", self.path("second")))

    def test_the_best_a_step_or_a_checkpoint(self):
        for source, step in (("first@best", 6), ("first@3", 3), ("first/checkpoints/step-00000003", 3)):
            with self.subTest(source):
                printed = self.works("train", "--from", self.path(source), "--steps", "1", "--print-config")
                self.assertIn(f'from = "{self.path(source)}"', printed)
                run = self.path(source.replace("/", "-") + "-next")
                self.works("train", "--from", self.path(source), "--steps", "1", "--run", run)
                self.assertIn(f"step-{step:08}\"", pathlib.Path(run, "config.toml").read_text())
        self.fails("train", "--from", self.path("first@5"), "--run", self.path("no"),
                   says=["first: checkpoint: expected newest, best,", "one of the saved steps 3, 6, found '5'"])

    def test_the_source_may_be_deleted(self):
        self.start("first", "--steps", "4")
        (self.folder / "first").rename(self.folder / "gone")
        self.assertIn("done: 6 steps", self.resume("second", "--steps", "6"))

    def test_another_model(self):
        self.fails("train", "--from", self.path("first"), "--width", "64", "--run", self.path("no"),
                   says=["model.width: expected 32, as in", "whose weights the run starts from, found 64"])

    def test_text_that_the_tokenizer_does_not_know(self):
        self.fails("train", "--from", self.path("first"), self.write("greek.txt", TEXT + "\u03b1"), "--run",
                   self.path("no"), says=["greek.txt", "characters of the vocabulary", "U+03B1"])

    def test_mistakes(self):
        self.fails("train", "--from", self.path("nothing"), "--run", self.path("no"),
                   says=["nothing': expected a run to start from, RUN@best, RUN@STEP or RUN/checkpoints"])
        self.fails("train", "--from", self.path("first"), "--run", self.path("first"), "--resume",
                   says=["--from starts a new run, --resume continues one"])
        self.fails("train", "--from", self.path("first"), "--preset", "small", "--run", self.path("no"),
                   says=["omit --preset"])
        self.assertFalse((self.folder / "no").exists())


class LowRate(program.ProgramTest):
    def test_a_rate_below_the_min_rate_of_the_preset(self):
        for preset in ("tiny", "small", "gpt2"):
            self.assertIn("min_rate = 1e-06\n", self.works("train", "--preset", preset, "--rate", "1e-5", "--print-config"))
        self.fails("train", "--rate", "1e-4", "--set", "optimizer.min_rate=2e-4", "--print-config",
                   says=["optimizer.min_rate: expected at most optimizer.rate", "--set optimizer.min_rate=1e-05"])


@unittest.skipIf(quern is None, "the Python package is not built")
class Python(program.ProgramTest):
    settings = {"model.layers": 1, "model.width": 32, "model.heads": 2, "model.context": 32, "data.stories_bytes": 50000}

    def test_extend_and_start_from(self):
        first = quern.train(out=self.path("run"), steps=3, set=self.settings)
        again = quern.train(out=self.path("run"), resume=True)
        self.assertEqual((again.step, again.loss, again.finished), (3, first.loss, True))
        longer = quern.train(out=self.path("run"), resume=True, steps=5, set={"optimizer.rate": 1e-4})
        self.assertEqual(longer.step, 5)
        other = quern.train(out=self.path("other"), init_from=self.path("run"), steps=2)
        self.assertEqual(quern.load(other.path).config["init"]["weights_hash"], longer.weights_hash)
        self.assertFalse(math.isnan(other.loss))
        with self.assertRaisesRegex(quern.Error, "train.steps: expected at least 5, the steps that the run has done"):
            quern.train(out=self.path("run"), resume=True, steps=4)


if __name__ == "__main__":
    program.main()
