"""Output that cannot be written, and signals: neither costs a run.

Ctrl-C behind `| tee log` reaches tee as well, and the next line that quern wrote killed it (SIGPIPE) before it had
saved, once in ten times; `| head -3` and a closed terminal (SIGHUP) did so always. With standard output closed, its
number went to metrics.jsonl, and the progress lines went there.
"""

import json
import os
import pty
import re
import signal
import subprocess
import time

import program
from program import QUERN, SMALL

# Without a checkpoint before the end: what is saved was saved because of the signal.
LONG = (*SMALL, "--steps", "100000", "--set", "log.interval=1", "--set", "checkpoint.interval=1000000", "--set",
        "train.validation_interval=1000000", "--set", "optimizer.schedule=constant")
TRIES = 5 if program.sanitized() else 30


class OutputTest(program.ProgramTest):
    def command(self, run, *arguments):
        return [QUERN, "train", *map(str, arguments), "--run", self.path(run)]

    def wait_for_steps(self, run, count=5):
        """Until metrics.jsonl has so many lines."""
        path = self.folder / run / "metrics.jsonl"
        end = time.monotonic() + program.TIMEOUT
        while not path.exists() or path.read_bytes().count(b"\n") < count:
            self.assertLess(time.monotonic(), end, "the run does not get on")
            time.sleep(0.005)

    def check_saved(self, run):
        """The run was saved where it stopped, and every line of metrics.jsonl is one of metrics."""
        entries = [json.loads(line) for line in (self.folder / run / "metrics.jsonl").read_text().splitlines()]
        steps = [entry["step"] for entry in entries if "loss" in entry]
        self.assertEqual(steps, list(range(1, len(steps) + 1)))
        self.assertEqual(self.info(run)["step"], steps[-1])
        self.assertFalse((self.folder / run / "run.lock").exists())
        return steps[-1]


class Interrupted(OutputTest):
    def test_control_c_behind_tee(self):
        for i in range(TRIES):
            run = f"tee-{i}"
            reader, writer = os.pipe()
            tee = subprocess.Popen(["tee", self.path("log")], stdin=reader, stdout=subprocess.DEVNULL,
                                   process_group=0)
            process = subprocess.Popen(self.command(run, *LONG), stdout=writer, stderr=subprocess.PIPE, text=True,
                                       process_group=tee.pid, env=program.environment())
            os.close(reader)
            os.close(writer)
            self.wait_for_steps(run)
            os.killpg(tee.pid, signal.SIGINT)  # as the terminal does
            errors = process.communicate(timeout=program.TIMEOUT)[1]
            tee.wait()
            self.assertEqual(process.returncode, 0, errors)
            step = self.check_saved(run)
            if errors:  # tee was gone before the last line was written
                self.assertRegex(errors, rf"\Aquern: [^\n]*\(Broken pipe\); stopped after step {step} and saved[^\n]*\n\Z")

    def test_every_termination_signal_saves(self):
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            process = program.start("train", *LONG, "--run", self.path(name), start_new_session=True)
            self.wait_for_steps(name)
            process.send_signal(getattr(signal, name))
            printed, errors = process.communicate(timeout=program.TIMEOUT)
            self.assertEqual((process.returncode, errors), (0, ""), name)
            self.assertIn(f"stopped after step {self.check_saved(name)} and saved", printed)

    def test_signals_that_come_twice_save(self):
        # A shell and the kernel both send SIGHUP; a wrapper passes on the SIGINT that the terminal has sent as well.
        for name in ("SIGHUP", "SIGTERM", "SIGINT"):
            for i in range(5):
                run = f"{name}-{i}"
                process = program.start("train", *LONG, "--run", self.path(run))
                self.wait_for_steps(run)
                for _ in range(2):
                    process.send_signal(getattr(signal, name))
                    time.sleep(0.002)  # else the two are one
                errors = process.communicate(timeout=program.TIMEOUT)[1]
                self.assertEqual((process.returncode, errors), (0, ""), name)
                self.check_saved(run)

    def test_a_signal_during_saving_or_validation_waits_for_its_end(self):
        busy = (*SMALL, "--steps", "100000", "--set", "log.interval=1", "--set", "checkpoint.interval=2", "--set",
                "train.validation_interval=2", "--set", "optimizer.schedule=constant")
        for i in range(TRIES):
            name = ("SIGINT", "SIGTERM", "SIGHUP")[i % 3]
            process = program.start("train", *busy, "--run", self.path(f"run-{i}"))
            self.wait_for_steps(f"run-{i}", 5 + i)
            process.send_signal(getattr(signal, name))
            errors = process.communicate(timeout=program.TIMEOUT)[1]
            self.assertEqual((process.returncode, errors), (0, ""), name)
            self.check_saved(f"run-{i}")

    def test_a_signal_during_preparation_leaves_nothing(self):
        text = self.write("text.txt", "A line of text of which there are many.\n" * 2_000_000)
        settings = (text, *LONG, "--set", "data.tokenizer=char")
        for resume in (False, True):
            before = program.contents(self.folder)
            child, terminal = pty.fork()
            if child == 0:
                arguments = ("--resume", "--steps", "5") if resume else settings
                os.execve(QUERN, self.command("run", *arguments), program.environment())
            printed = b""
            while b"%" not in printed:
                printed += os.read(terminal, 1000)
            os.kill(child, signal.SIGTERM)
            try:
                while piece := os.read(terminal, 1000):
                    printed += piece
            except OSError:  # the other end is closed
                pass
            os.close(terminal)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 130, printed)
            self.assertIn(b"stopped while the data was being prepared; nothing was written", printed)
            self.assertEqual(program.contents(self.folder), before)
            self.assertEqual((self.folder / "run").exists(), resume)
            if not resume:
                self.works("train", *settings, "--steps", "1", "--run", self.path("run"))

    def test_nohup_ignores_a_closed_terminal(self):
        process = program.start("train", *LONG, "--run", self.path("run"),
                                preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        self.wait_for_steps("run")
        process.send_signal(signal.SIGHUP)
        before = len((self.folder / "run/metrics.jsonl").read_text().splitlines())
        self.wait_for_steps("run", before + 20)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=program.TIMEOUT)
        self.assertEqual(process.returncode, 0)
        self.assertGreater(self.check_saved("run"), before)

    def test_a_blocked_reader_does_not_block_the_run(self):
        """As a pager, a stopped `tee` or Ctrl-S: the run waited for it, and no signal made it save."""
        reader, writer = os.pipe()
        process = subprocess.Popen(self.command("run", *LONG), stdout=writer, stderr=subprocess.PIPE, text=True,
                                   env=program.environment())
        os.close(writer)
        self.wait_for_steps("run", 3000)  # 64 KiB fill the pipe after some 800 lines
        process.send_signal(signal.SIGTERM)
        errors = process.communicate(timeout=program.TIMEOUT)[1]
        os.close(reader)
        self.assertEqual(process.returncode, 0, errors)
        self.assertIn("and saved", errors)
        self.check_saved("run")

    def test_a_closed_terminal_saves(self):
        for i in range(5):
            run = f"run-{i}"
            child, terminal = pty.fork()  # a session of its own, with this terminal
            if child == 0:
                os.execve(QUERN, self.command(run, *LONG), program.environment())
            self.wait_for_steps(run)
            os.read(terminal, 100)
            os.close(terminal)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            self.check_saved(run)


class Unwritable(OutputTest):
    SHORT = (*SMALL, "--steps", "40", "--set", "log.interval=1", "--dropout", "0.1")

    def setUp(self):
        super().setUp()
        self.train("expected", *self.SHORT[len(SMALL):])

    def check_finished(self, run, process, reason):
        errors = process.communicate(timeout=program.TIMEOUT)[1]
        self.assertEqual(process.returncode, 0, errors)
        self.assertRegex(errors, rf"\Aquern: [^\n]*\({reason}\); done: 40 steps, in {re.escape(self.path(run))}\n\Z")
        self.assertEqual(self.check_saved(run), 40)
        self.assertEqual(self.hash(run), self.hash("expected"))

    def start(self, run, out, **options):
        return subprocess.Popen(self.command(run, *self.SHORT), stdout=out, stderr=subprocess.PIPE, text=True,
                                env=program.environment(), **options)

    def test_behind_head(self):
        head = subprocess.Popen(["head", "-3"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        process = self.start("run", head.stdin)
        head.stdin.close()
        self.assertEqual(head.stdout.read().count(b"\n"), 3)
        head.stdout.close()
        head.wait()
        self.check_finished("run", process, "Broken pipe")

    def test_on_a_full_disk(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            self.check_finished("run", self.start("run", full), "No space left on device")

    def test_closed(self):
        for streams in ((1,), (0, 1), (0,), (0, 1, 2), (2,)):
            run = "run-" + "".join(map(str, streams))
            process = self.start(run, subprocess.PIPE, preexec_fn=lambda: [os.close(s) for s in streams])
            if 1 in streams and 2 not in streams:
                self.check_finished(run, process, "Bad file descriptor")
            else:
                process.communicate(timeout=program.TIMEOUT)
                self.assertEqual(process.returncode, 0)
                self.assertEqual(self.check_saved(run), 40)
            self.assertEqual(self.hash(run), self.hash("expected"))

    def test_an_unwritable_warning_does_not_end_the_run(self):
        self.train("run", *self.SHORT[len(SMALL):], "--set", "checkpoint.interval=20")
        (self.folder / "run/checkpoints/step-00000040/model.safetensors").write_bytes(b"damaged")
        with open("/dev/full", "w", encoding="utf-8") as full:
            for command in (["info"], ["eval"], ["generate", "--tokens", "3"], ["train", "--resume"]):
                run = subprocess.run([QUERN, *command, "--run", self.path("run")], stdout=subprocess.DEVNULL,
                                     stderr=full, env=program.environment(), timeout=program.TIMEOUT)
                self.assertEqual(run.returncode, 0, command)
        self.assertEqual(self.hash("run"), self.hash("expected"))


class OtherCommands(OutputTest):
    def test_generate_ends_quietly_without_a_reader(self):
        self.train("run", "--steps", "2")
        for ignored in (signal.SIG_DFL, signal.SIG_IGN):
            process = program.start("generate", "--run", self.path("run"), "--tokens", "1000000",
                                    preexec_fn=lambda: signal.signal(signal.SIGPIPE, ignored))
            process.stdout.read(3)
            process.stdout.close()
            process.wait(program.TIMEOUT)
            self.assertEqual((process.returncode, process.stderr.read()), (-signal.SIGPIPE, ""))
            process.stderr.close()

    def test_lost_results_are_an_error(self):
        self.train("run", "--steps", "2")
        for command in (["generate", "--run", self.path("run"), "--tokens", "20"], ["--help"], ["--version"],
                        ["report", "--run", self.path("run")], ["train", "--print-config"]):
            with open("/dev/full", "w", encoding="utf-8") as full:
                run = subprocess.run([QUERN, *command], stdout=full, stderr=subprocess.PIPE, text=True,
                                     env=program.environment(), timeout=program.TIMEOUT)
            self.assertEqual(run.returncode, 2, command)
            self.assertRegex(run.stderr, r"\Aquern: [^\n]+\n\Z", command)


if __name__ == "__main__":
    program.main()
