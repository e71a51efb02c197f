"""Signals that come twice, at any moment: while data is prepared, a checkpoint is saved or validation runs.

SIGTERM and SIGHUP save however often they come; a second Ctrl-C ends the program at once, and leaves what a kill
leaves. Either way the run resumes to the weights of one that was never interrupted, in 16 bits too.
"""

import random
import signal
import time

import program
from program import SMALL

# Saves and validates after every step, so that most of the time goes into that. Takes longer than the signals wait.
STEPS = 80
BUSY = ("--steps", str(STEPS), "--set", "checkpoint.interval=1", "--set", "train.validation_interval=1", "--set",
        "optimizer.schedule=constant", "--set", "train.validation_batches=5", "--set", "data.tokenizer=bpe", "--set",
        "data.vocabulary=300")


class SignalsTwice(program.ProgramTest):
    def interrupt(self, signals, pause, *arguments):
        """Starts the program, sends the signals; the exit code."""
        process = program.start("train", *arguments)
        for number in signals:
            time.sleep(pause)
            if process.poll() is None:
                process.send_signal(number)
        _, errors = process.communicate(timeout=program.TIMEOUT)
        self.assertEqual(errors, "")
        # Stopped and saved; nothing to save yet, or at once; before the handlers were there.
        self.assertIn(process.returncode, (0, 130, -signals[0]))
        return process.returncode

    def check(self, precision, rounds, seed):
        settings = (*SMALL, *BUSY, "--precision", precision)
        self.works("train", *settings, "--run", self.path("expected"))
        expected = self.hash("expected")
        random_numbers = random.Random(seed)
        codes, ended_early = [], 0
        for i in range(rounds):
            run = f"run-{i}"
            for _ in range(3):
                signals = random_numbers.choice(((signal.SIGTERM, signal.SIGTERM), (signal.SIGINT, signal.SIGINT),
                                                 (signal.SIGINT, signal.SIGTERM), (signal.SIGHUP, signal.SIGINT)))
                started = (self.folder / run / "config.toml").exists()
                arguments = ("--resume",) if started else settings
                codes.append(self.interrupt(signals, random_numbers.uniform(0, 0.25), *arguments, "--run", self.path(run)))
                ended_early += not (self.folder / run / f"checkpoints/step-{STEPS:08}").exists()
            if (self.folder / run / "config.toml").exists():
                self.resume(run)
            else:
                self.works("train", *settings, "--run", self.path(run))
            self.assertEqual(self.hash(run), expected, codes)
        self.assertGreater(ended_early, 0, "every run had finished before it was interrupted")

    def test_fp32(self):
        self.check("fp32", 2, 1)

    def test_fp16(self):
        self.check("fp16", 4, 2)

    def test_bf16(self):
        self.check("bf16", 2, 3)


if __name__ == "__main__":
    program.main()
