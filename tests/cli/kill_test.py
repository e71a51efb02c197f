"""The promise about interruption: killed at any instant and resumed equals never killed.

Runs that save after every second step, so that much of their time is saving, are killed with SIGKILL and resumed
until they end: 20 times after a random time, 10 times when a certain file of a checkpoint has appeared; 6 times with
text that is tokenised while training, 6 times with a shuffled mixture of compressed text, 20 times with Muon and every
setting of the model that differs from GPT-2. Each must end with the
weights of an uninterrupted run, every step logged once, and no leftover files.
"""

import gzip
import json
import os
import random
import signal
import subprocess
import time

import program
from program import QUERN, SMALL

RANDOM_KILLS = 20
AIMED_KILLS = 10
MUON_KILLS = 20
QWEN_KILLS = 10
STREAM_KILLS = 6
# Of a checkpoint, in the order in which they appear; the first stands for the folder itself.
FILES = ("", "model.safetensors", "optimizer.safetensors", "config.json", "tokenizer.json", "tokenizer_config.json",
         "state.json")
STEPS = 300
SETTINGS = (*SMALL, "--steps", STEPS, "--dropout", "0.1", "--set", "checkpoint.interval=2", "--set", "log.interval=1",
            "--set", "train.validation_interval=50")
MODERN = [word for setting in ("norm=rmsnorm", "positions=rotary", "activation=relu2", "qk_norm=true",
                               "zero_projections=true", "tied_output=false", "logit_cap=15")
          for word in ("--set", "model." + setting)]


class Kill(program.ProgramTest):
    command = "train"
    settings = SETTINGS
    steps = STEPS

    def setUp(self):
        super().setUp()
        self.random = random.Random(1)
        self.to_start = self.time_of("empty", *self.settings, "--steps", "0")
        self.duration = self.time_of("whole", *self.settings)
        self.expected = self.hash("whole")
        self.during_save = 0
        self.before_start = 0

    def time_of(self, run, *arguments):
        begin = time.monotonic()
        self.works(self.command, *arguments, "--run", self.path(run))
        return time.monotonic() - begin

    def a_while(self):
        """From nothing to a quarter of the training, so that a run takes several kills before it ends."""
        return self.random.uniform(0, self.to_start + max(0, self.duration - self.to_start) / 4)

    def begin(self, run):
        """Resumes the run, or starts it when it was killed before there was one."""
        known = (self.folder / run / "config.toml").exists()
        arguments = ("--resume",) if known else self.settings
        return subprocess.Popen([QUERN, self.command, *map(str, arguments), "--run", self.path(run)],
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=program.environment())

    def side_directory(self, run):
        """The checkpoint that is being written, if one is."""
        try:
            with os.scandir(self.folder / run / "checkpoints") as entries:
                return next((entry.path for entry in entries if entry.name.startswith(".tmp-quern-step-")), None)
        except FileNotFoundError:
            return None

    def wait_for_file(self, run, process, name):
        """Until a checkpoint that is being written has this file, or the process ended."""
        while process.poll() is None:
            side = self.side_directory(run)
            if side and os.path.exists(os.path.join(side, name)):
                return
            time.sleep(5e-5)  # saving takes about a millisecond; a loop without a rest would take the core from it

    def kill(self, run, process):
        process.send_signal(signal.SIGKILL)
        error = process.stderr.read().decode()
        process.stderr.close()
        code = process.wait()
        self.assertIn(code, (0, -signal.SIGKILL), error)
        if code == 0:
            return False
        self.during_save += self.side_directory(run) is not None
        self.before_start += not (self.folder / run / "config.toml").exists()
        return True

    def survive(self, name, kills, wait):
        """Has `kills` kills happen, in as many runs one after the other as that takes; checks each at its end."""
        runs = done = 0
        while done < kills:
            runs += 1
            run = f"{name}-{runs}"
            killed = True
            while killed and done < kills:
                process = self.begin(run)
                wait(run, process)
                killed = self.kill(run, process)
                done += killed
            self.check(run)
        return runs

    def check(self, run):
        process = self.begin(run)  # the last kill may have come before there was a run to resume
        error = process.communicate(timeout=program.TIMEOUT)[1]
        self.assertEqual((process.returncode, error), (0, b""))
        self.assertEqual(self.hash(run), self.expected)
        self.assertEqual(self.info(run)["step"], self.steps)
        entries = [json.loads(line) for line in (self.folder / run / "metrics.jsonl").read_text().splitlines()]
        self.assertEqual([entry["step"] for entry in entries if "loss" in entry], list(range(1, self.steps + 1)))
        whole = [json.loads(line) for line in (self.folder / "whole/metrics.jsonl").read_text().splitlines()]
        for name in ("loss", "validation_loss", "sample"):  # each once, whatever was repeated
            self.assertEqual([entry[name] for entry in entries if name in entry],
                             [entry[name] for entry in whole if name in entry])
        self.assertEqual(self.names(run), self.names("whole"))
        self.assertEqual(self.names(run + "/checkpoints"), self.names("whole/checkpoints"))

    def names(self, folder):
        return sorted(os.listdir(self.folder / folder))

    def after_a_time(self, _run, process):
        try:
            process.wait(self.a_while())
        except subprocess.TimeoutExpired:
            pass


class KillAnyTime(Kill):
    def test_killed_runs_end_bit_identically(self):
        def at_a_file(run, process):
            try:
                process.wait(self.a_while())
            except subprocess.TimeoutExpired:
                self.wait_for_file(run, process, self.random.choice(FILES))

        runs = self.survive("random", RANDOM_KILLS, self.after_a_time)
        hit = self.during_save
        runs += self.survive("aimed", AIMED_KILLS, at_a_file)
        print(f"{RANDOM_KILLS + AIMED_KILLS} kills in {runs} runs of {self.duration:.2f} s: {self.during_save} during "
              f"a save ({hit} of the {RANDOM_KILLS} at random), {self.before_start} before there was a config.toml")
        self.assertGreaterEqual(self.during_save, 3)


class KillMuon(Kill):
    """Another optimizer, with other states, and another model."""

    settings = (*SETTINGS, "--set", "optimizer.kind=muon", "--set", "optimizer.schedule=wsd", *MODERN)

    def test_killed_runs_end_bit_identically(self):
        self.train("one", *self.settings, "--threads", "1")
        self.assertEqual(self.hash("one"), self.expected)
        runs = self.survive("muon", MUON_KILLS, self.after_a_time)
        print(f"{MUON_KILLS} kills in {runs} runs of {self.duration:.2f} s, {self.before_start} before there was a "
              "config.toml")


class KillQwen(Kill):
    """A Qwen3: grouped heads with norms of their own, in bf16 with recomputed activations."""

    settings = (*SETTINGS, "--set", "model.family=qwen3", "--set", "model.kv_heads=1", "--set", "train.precision=bf16",
                "--set", "train.recompute=every-layer")

    def test_killed_runs_end_bit_identically(self):
        self.train("one", *self.settings, "--threads", "1", "--set", "train.recompute=none")
        self.assertEqual(self.hash("one"), self.expected)
        runs = self.survive("qwen", QWEN_KILLS, self.after_a_time)
        print(f"{QWEN_KILLS} kills in {runs} runs of {self.duration:.2f} s, {self.before_start} before there was a "
              "config.toml")


class KillStream(Kill):
    """Text that is tokenised while training: the place in it is part of a checkpoint."""

    settings = (*SETTINGS, "--set", "data.sampling=stream", "--set", "data.stories_bytes=20000")

    def test_killed_streaming_runs_end_bit_identically(self):
        runs = self.survive("stream", STREAM_KILLS, self.after_a_time)
        print(f"{STREAM_KILLS} kills in {runs} runs of {self.duration:.2f} s, {self.before_start} before there was a "
              "config.toml")


class KillMixture(Kill):
    """A mixture of compressed streams, shuffled: every source's place is part of a checkpoint."""

    @property
    def settings(self):
        if not (self.folder / "a.txt.gz").exists():
            text = [" ".join(str(n * n % 9973) for n in range(k, 60_000, 3)) for k in (1, 2)]
            self.write("a.txt.gz", gzip.compress(text[0].encode()))
            lines = "".join(json.dumps({"body": text[1][i:i + 900]}) + "\n" for i in range(0, len(text[1]), 900))
            self.write("b.jsonl.gz", gzip.compress(lines[:40_000].encode()) + gzip.compress(lines[40_000:].encode()))
        sources = f'["{self.path("a.txt.gz")} 3", "{self.path("b.jsonl.gz")} 1"]'
        return (*SETTINGS, "--tokenizer", "byte", "--set", "data.sampling=stream", "--set", "data.shuffle=100", "--set",
                "data.field=body", "--set", f"data.sources={sources}")

    def test_killed_mixtures_end_bit_identically(self):
        self.train("one", *self.settings, "--threads", "1")
        self.assertEqual(self.hash("one"), self.expected)
        runs = self.survive("mixture", STREAM_KILLS, self.after_a_time)
        print(f"{STREAM_KILLS} kills in {runs} runs of {self.duration:.2f} s, {self.before_start} before there was a "
              "config.toml")


if __name__ == "__main__":
    program.main()
