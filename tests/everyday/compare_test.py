"""Comparing runs on an ordinary day: the commands as typed, and what they say."""

import json
import os
import pathlib
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))

import program


class Compare(program.ProgramTest):
    """Every command is typed in the directory that has runs/."""

    def setUp(self):
        super().setUp()
        for run, steps, rate in (("first", 20, 0.002), ("slow", 20, 0.0005), ("short", 10, 0.002)):
            self.train(f"runs/{run}", "--steps", steps, "--rate", rate, "--set", "log.interval=2",
                       "--set", "train.validation_interval=5")

    def types(self, line, **options):
        return self.works(*line.split(), cwd=self.folder, **options)

    def test_one_run_as_ever(self):
        self.assertIn("steps        20 of 20", self.types("report --run runs/first"))
        self.assertEqual(self.types("report runs/first"), self.types("report --run runs/first"))

    def test_two_runs_in_a_table_and_a_plot(self):
        text = self.types("report --run runs/first --run runs/slow")
        self.assertTrue(text.startswith("A  runs/first\nB  runs/slow\n"))
        self.assertIn("optimizer.rate   0.002         0.0005\n", text)
        self.assertNotIn("model.layers", text)  # equal in both
        for row in ("steps ", "loss ", "best validation ", "time ", "tokens/s ", "peak memory "):
            self.assertIn("\n" + row, text)
        plot = "".join(line[10:] for line in text.splitlines() if line[9:10] == "|")
        self.assertTrue({"A", "B", "a", "b"} <= set(plot), text)

    def test_three_runs_by_name_alone(self):
        text = self.types("report runs/first runs/slow runs/short")
        self.assertIn("C  runs/short\n", text)
        self.assertRegex(text, r"\ntrain\.steps +20 +20 +10\n")

    def test_for_a_script_and_for_a_spreadsheet(self):
        found = json.loads(self.types("report runs/first runs/slow --json"))
        self.assertEqual(found["differences"], {"optimizer.rate": ["0.002", "0.0005"]})
        self.assertEqual([run["run"] for run in found["runs"]], ["runs/first", "runs/slow"])
        lines = self.types("report runs/first runs/slow --csv").splitlines()
        self.assertTrue(lines[0].startswith("run,step,loss,validation_loss,"))
        self.assertTrue(lines[-1].startswith('"runs/slow",20,'))

    def test_a_run_that_is_not_there(self):
        self.fails("report", "runs/first", "runs/frist", cwd=self.folder,
                   says=["runs/frist: expected a run with a config.toml, found none"])

    def test_what_is_there(self):
        lines = self.types("runs").splitlines()
        self.assertEqual(len(lines), 4)
        self.assertRegex(lines[0], r"^run +state +step +loss +best +changed +size$")
        self.assertRegex("\n".join(lines), r"\nruns/first +finished +20/20 +\d\.\d{4} +\d\.\d{4} at \d+ +\d+ s ago +\d+ KiB")

    def test_a_run_in_progress_and_one_that_was_killed(self):
        process = program.start("train", *program.SMALL, "--steps", "1000000", "--run", self.path("runs/long"))
        self.addCleanup(process.communicate)
        until = time.monotonic() + 60
        while not (self.folder / "runs/long/metrics.jsonl").exists() and time.monotonic() < until:
            time.sleep(0.01)
        self.assertRegex(self.types("runs"), r"runs/long +running ")
        process.send_signal(signal.SIGKILL)
        process.wait(60)
        self.assertRegex(self.types("runs"), r"runs/long +failed ")

    def test_a_directory_of_ones_own_and_an_empty_one(self):
        os.rename(self.folder / "runs", self.folder / "experiments")
        self.fails("runs", cwd=self.folder, says=["runs: expected a directory with runs, found none; `quern runs DIR`"])
        self.assertEqual(len(json.loads(self.types("runs experiments --json"))["runs"]), 3)
        (self.folder / "new").mkdir()
        self.assertEqual(self.types("runs new"), "no runs in new\n")

    def test_a_damaged_run_is_a_line_in_the_list(self):
        (self.folder / "runs/slow/config.toml").write_text("steps = \n")
        (line,) = [line for line in self.types("runs").splitlines() if "runs/slow" in line]
        self.assertRegex(line, r"^runs/slow +damaged .*config.toml:1:")


if __name__ == "__main__":
    program.main()
