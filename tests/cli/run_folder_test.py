"""A run touches what is its own and nothing else, and one process at a time trains in its folder.

Everything named .tmp-* in the folder of a run was removed, a folder with somebody's thesis among it; a folder with other
things in it was accepted, and its tokenizer.json overwritten. Two processes trained in one folder: both ended well,
with half of the metrics each, after removing each other's checkpoints.
"""

import os
import re
import signal
import subprocess
import time

import program
from program import QUERN, SMALL

LONG = (*SMALL, "--steps", "100000", "--set", "log.interval=1", "--set", "checkpoint.interval=1000000", "--set",
        "train.validation_interval=1000000", "--set", "optimizer.schedule=constant")


class Ownership(program.ProgramTest):
    def test_a_folder_with_other_files_is_refused(self):
        for name in ("tokenizer.json", "metrics.jsonl", "thesis.txt", ".tmp-precious/thesis.txt", "run.lock", ".hidden",
                     "checkpoints/notes.txt", "data/tokenizer.json"):
            run = "run-" + name.replace("/", "-")
            self.write(f"{run}/{name}", "years of work")
            before = program.contents(self.folder / run)
            self.fails("train", *SMALL, "--steps", "2", "--run", self.path(run),
                       says=[run, f"expected a new or empty folder, found '{name.split('/')[0]}'", "choose another"])
            self.assertEqual(program.contents(self.folder / run), before)

    def test_an_empty_lock_file_does_not_make_a_run(self):
        self.write("run/run.lock", "")
        self.write("run/tokenizer.json", "years of work")
        self.fails("train", *SMALL, "--steps", "2", "--run", self.path("run"),
                   says=["expected a new or empty folder, found 'tokenizer.json'"])
        os.remove(self.path("run/tokenizer.json"))
        self.train("run", "--steps", "2")

    def test_tokenize_replaces_only_what_it_wrote(self):
        self.write("book.txt", "Once upon a time there was a mill.\n" * 40)
        self.train("run", "--steps", "2")
        self.write("json/tokenizer.json", "years of work")
        self.write("bin/tokens.bin", "years of work")
        for folder, says in (("run", "holds a run"), ("json", "without tokenizer.json"), ("bin", "without tokens.bin")):
            before = program.contents(self.folder / folder)
            self.fails("tokenize", self.path("book.txt"), "--vocabulary", "260", "--out", self.path(folder),
                       says=[folder, says, "choose another folder"])
            self.assertEqual(program.contents(self.folder / folder), before)
        again = ("tokenize", self.path("book.txt"), "--vocabulary", "260", "--out", self.path("tokens"))
        self.works(*again)
        before = program.contents(self.folder / "tokens")
        self.fails(*again, says=["tokens: holds tokens.bin already; add --force to replace it, or choose another --out"])
        self.assertEqual(program.contents(self.folder / "tokens"), before)
        self.works("tokenize", self.path("book.txt"), "--vocabulary", "270", "--out", self.path("tokens"), "--force")
        self.assertNotEqual(program.contents(self.folder / "tokens"), before)

    def test_metrics_that_are_not_a_file_are_refused(self):
        """Opening a pipe to read waited for a writer without end."""
        self.train("run", "--steps", "2")
        os.remove(self.path("run/metrics.jsonl"))
        os.mkfifo(self.path("run/metrics.jsonl"))
        self.set_in_config("run", "steps", 4)
        self.fails("train", "--resume", "--run", self.path("run"), says=["metrics.jsonl", "expected a regular file"])

    def test_resume_refuses_a_folder_that_no_run_started(self):
        """An empty config.toml was taken for a run with the defaults, and emptied somebody's metrics.jsonl."""
        self.write("run/config.toml", "")
        self.write("run/metrics.jsonl", "years of work\n")
        before = program.contents(self.folder / "run")
        resume = ("train", "--resume", "--run", self.path("run"))
        self.fails(*resume, says=["expected a run with a checkpoint or with train.seed in its config.toml"])
        self.assertEqual(program.contents(self.folder / "run"), before)
        self.write("run/config.toml", self.works("train", *SMALL, "--steps", "2", "--print-config"))
        before = program.contents(self.folder / "run")
        self.fails(*resume, says=["metrics.jsonl:1: expected a line of this run", "move the file away"])
        self.assertEqual(program.contents(self.folder / "run"), before)
        os.remove(self.path("run/metrics.jsonl"))
        self.resume("run")

    def test_an_empty_folder_is_accepted(self):
        (self.folder / "run").mkdir()
        self.train("run", "--steps", "2")

    def test_resume_leaves_other_files_alone(self):
        self.train("run", "--steps", "9", "--set", "checkpoint.interval=3", "--set", "checkpoint.keep=1", "--set",
                   "checkpoint.keep_best=false", "--set", "optimizer.schedule=constant")
        for name in (".tmp-precious/thesis.txt", ".tmp-config.toml-1-1", "notes.txt", "checkpoints/.tmp-thesis/1.txt",
                     "checkpoints/.tmp-step-00000012-1-1/model.safetensors", "checkpoints/step-00000009/notes.txt",
                     "checkpoints/step-00000001/notes.txt", "incidents/.tmp-thesis/1.txt"):
            self.write("run/" + name, "years of work")
        before = program.contents(self.folder / "run")
        self.set_in_config("run", "steps", 30)
        self.resume("run")
        after = program.contents(self.folder / "run")
        for name in before:
            if name not in ("config.toml", "metrics.jsonl"):
                self.assertEqual(after.get(name), before[name], name)

    def test_a_start_that_was_killed_can_be_repeated(self):
        self.train("expected", "--steps", "3")
        arguments = ("train", *SMALL, "--steps", "3", "--run", self.path("run"))
        for i in range(40):
            process = program.start(*arguments)
            end = time.monotonic() + i * 0.01
            while process.poll() is None and time.monotonic() < end and not (self.folder / "run").exists():
                time.sleep(0.0001)
            time.sleep(i % 8 * 0.0002)
            process.send_signal(signal.SIGKILL)
            process.communicate()
            if (self.folder / "run/config.toml").exists():
                self.resume("run")
            else:
                self.works(*arguments)
            self.assertEqual(self.hash("run"), self.hash("expected"))
            self.assertEqual(sorted(os.listdir(self.folder / "run")), sorted(os.listdir(self.folder / "expected")))
            subprocess.run(["rm", "-r", self.path("run")], check=True)


class OneWriter(program.ProgramTest):
    def begin(self, run):
        process = program.start("train", *LONG, "--run", self.path(run))
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.kill)
        metrics = self.folder / run / "metrics.jsonl"
        while not metrics.exists() or not metrics.read_bytes():
            self.assertIsNone(process.poll())
            time.sleep(0.005)
        return process

    def end(self, process):
        process.send_signal(signal.SIGTERM)
        process.stdout.read()
        self.assertEqual((process.wait(program.TIMEOUT), process.stderr.read()), (0, ""))

    def test_a_second_process_is_refused_and_names_the_first(self):
        process = self.begin("run")
        who = f"another process trains in this folder (pid {process.pid} on "
        resume = ("train", "--run", self.path("run"), "--resume")
        error = self.fails(*resume, says=["[run]", self.path("run"), who, "wait until it ends"]).stderr
        self.assertRegex(error, r" on \S+ since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\)")
        self.fails("train", *LONG, "--run", self.path("run"), says=["holds a run already"])
        self.end(process)
        self.set_in_config("run", "steps", 1)
        self.works(*resume)

    def test_readers_are_not_blocked(self):
        process = self.begin("run")
        self.works("report", "--run", self.path("run"))
        self.end(process)
        self.set_in_config("run", "keep", 3)
        process = program.start("train", "--run", self.path("run"), "--resume")
        self.addCleanup(process.kill)
        end = time.monotonic() + 60
        while not (self.folder / "run/run.lock").exists():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.005)
        self.works("info", "--run", self.path("run"))
        self.works("generate", "--run", self.path("run"), "--tokens", "3")
        self.works("eval", "--run", self.path("run"))
        self.works("report", "--run", self.path("run"), "--json")
        process.send_signal(signal.SIGTERM)
        self.assertEqual((process.communicate(timeout=program.TIMEOUT)[1], process.returncode), ("", 0))

    def test_the_lock_dies_with_its_process(self):
        for _ in range(3):
            process = self.begin("run")
            process.kill()
            process.wait()
            self.assertTrue((self.folder / "run/run.lock").exists())
            self.set_in_config("run", "steps", 5)
            self.resume("run")
            self.assertFalse((self.folder / "run/run.lock").exists())
            subprocess.run(["rm", "-r", self.path("run")], check=True)

    def test_one_of_many_concurrent_resumes_trains(self):
        self.train("run", *LONG[len(SMALL):], "--steps", "1")
        self.set_in_config("run", "steps", 1000000)
        many = [program.start("train", "--run", self.path("run"), "--resume") for _ in range(4)]
        end = time.monotonic() + 60
        while sum(process.poll() is None for process in many) > 1 and time.monotonic() < end:
            time.sleep(0.01)
        for process in many:
            process.send_signal(signal.SIGTERM)
        ends = [(process.communicate(timeout=program.TIMEOUT)[1], process.returncode) for process in many]
        self.assertEqual(sorted(code for _, code in ends), [0, 2, 2, 2], ends)

    def test_one_of_many_concurrent_starts_trains(self):
        for i in range(5):
            run = f"run-{i}"
            many = [program.start("train", *SMALL, "--steps", "200", "--run", self.path(run)) for _ in range(4)]
            ends = [(process.communicate(timeout=program.TIMEOUT)[1], process.returncode) for process in many]
            self.assertEqual(sorted(code for _, code in ends), [0, 2, 2, 2], ends)
            for error, code in ends:
                if code == 2:
                    self.assertRegex(error, r"another process trains|holds a run already|expected a new or empty")
            self.assertEqual(self.info(run)["step"], 200)
            steps = re.findall(r'"loss":', (self.folder / run / "metrics.jsonl").read_text())
            self.assertEqual(len(steps), 20)


if __name__ == "__main__":
    program.main()
