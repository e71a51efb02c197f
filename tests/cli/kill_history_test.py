"""The promise about interruption for runs whose settings change: same history, same bits.

Runs are extended twice and changed twice more while they train, at steps that chance decides: killed with SIGKILL at 20
moments in total, 8 of them as soon as config.toml has recorded a change, and resumed with or without the same flags
again. Each must end with the weights of an uninterrupted run that is given its history (`--config run/config.toml`), with
every step logged once.
"""

import json
import os
import random
import subprocess
import time

import kill_test
import program
from program import SMALL

RANDOM_KILLS = 12
AIMED_KILLS = 8
# What a person changes from time to time.
CHANGES = (("--rate", "5e-4", "--batch", "5"),
           ("--steps", "150", "--dropout", "0.2", "--accumulation", "2"),
           ("--set", "optimizer.schedule=linear", "--set", "checkpoint.interval=3"),
           ("--steps", "220", "--batch", "3", "--rate", "1e-4", "--set", "optimizer.min_rate=1e-5"))
STEPS = 220


class KillHistory(kill_test.Kill):
    settings = (*SMALL, "--steps", "80", "--dropout", "0.1", "--set", "checkpoint.interval=2", "--set", "log.interval=1",
                "--set", "train.validation_interval=50")

    def setUp(self):
        program.ProgramTest.setUp(self)
        self.random = random.Random(1)
        self.during_save = self.before_start = self.at_a_change = 0
        self.to_start = self.time_of("empty", *self.settings, "--steps", "0")
        self.duration = self.time_of("whole", *self.settings)

    def config(self, run):
        try:
            return (self.folder / run / "config.toml").read_text()
        except FileNotFoundError:
            return ""

    def has(self, run, change):
        """Whether the newest settings are those of the change."""
        settings = self.works("train", "--config", self.path(run + "/config.toml"), "--print-config")
        with_change = self.works("train", "--config", self.path(run + "/config.toml"), *change, "--print-config")
        return settings == with_change

    def begin_with(self, run, change):
        if not self.config(run):
            return self.begin(run)
        return subprocess.Popen([program.QUERN, "train", "--run", self.path(run), "--resume", *change],
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=program.environment())

    def wait_for_change(self, run, process, before):
        while process.poll() is None and self.config(run) == before:
            time.sleep(5e-5)
        time.sleep(self.random.choice((0, 0, 0.001, 0.01)))

    def one_kill(self, run, change):
        """Begins the run with this change, kills it, and says whether it was killed before it ended."""
        before = self.config(run)
        again = bool(before) and self.has(run, change) and self.random.random() < 0.5
        process = self.begin_with(run, () if again else change)
        aimed = self.aimed < AIMED_KILLS and bool(before) and not self.has(run, change)
        if aimed:
            self.wait_for_change(run, process, before)
        else:
            self.after_a_time(run, process)
        killed = self.kill(run, process)
        self.aimed += killed and aimed
        self.random_kills += killed and not aimed
        return killed

    def test_changed_runs_end_with_the_weights_of_their_history(self):
        self.aimed = self.random_kills = self.changes = runs = 0
        while self.aimed < AIMED_KILLS or self.random_kills < RANDOM_KILLS:
            runs += 1
            run = f"run-{runs}"
            while not self.config(run):
                self.one_kill(run, ())
            for change in CHANGES:
                for _ in range(self.random.randrange(1, 4)):
                    if not self.one_kill(run, change):
                        break
                if not self.has(run, change) or self.random.random() < 0.5:  # to the end that it has for now
                    self.assertEqual(self.finish(run, change), 0)
            self.assertEqual(self.finish(run, CHANGES[-1]), 0)
            self.check(run)
        self.assertGreaterEqual(self.changes, 4)
        print(f"{self.changes} changes, {self.random_kills + self.aimed} kills in {runs} runs, {self.aimed} when a change was recorded, "
              f"{self.during_save} during a save")

    def finish(self, run, change):
        process = self.begin_with(run, change)
        error = process.communicate(timeout=program.TIMEOUT)[1]
        self.assertEqual(error, b"")
        return process.returncode

    def check(self, run):
        history = self.info(run)["changes"]  # fewer than CHANGES if several came before the same step
        self.changes += len(history)
        self.works("train", "--config", self.path(run + "/config.toml"), "--run", self.path(run + "-replayed"))
        self.assertEqual(self.hash(run), self.hash(run + "-replayed"), history)
        self.assertEqual(self.info(run)["step"], STEPS)
        self.assertEqual(self.config(run), self.config(run + "-replayed"))
        self.assertEqual(self.losses(run), self.losses(run + "-replayed"))
        self.assertEqual([step for step, _ in self.losses(run)], list(range(1, STEPS + 1)))
        self.assertEqual(sorted(os.listdir(self.folder / run)), sorted(os.listdir(self.folder / (run + "-replayed"))))
        self.assertEqual(self.checkpoints(run)[-2:], self.checkpoints(run + "-replayed")[-2:])

    def losses(self, run):
        lines = (self.folder / run / "metrics.jsonl").read_text().splitlines()
        return [(entry["step"], entry["loss"]) for entry in map(json.loads, lines) if "loss" in entry]

    def checkpoints(self, run):
        return sorted(os.listdir(self.folder / run / "checkpoints"))


class KillHistoryEpoch(KillHistory):
    settings = (*KillHistory.settings, "--set", "data.sampling=epoch", "--set", "data.stories_bytes=20000")


class KillHistoryStream(KillHistory):
    settings = (*KillHistory.settings, "--set", "data.sampling=stream", "--set", "data.stories_bytes=20000")


if __name__ == "__main__":
    program.main()
