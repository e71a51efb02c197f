"""quern runs: which runs there are, and the state of each."""

import json
import os
import shutil
import signal
import subprocess
import time

import program

LISTING = 5  # seconds for 200 runs
SETTINGS = ("--set", "log.interval=2", "--set", "train.validation_interval=4", "--set", "checkpoint.interval=4")


class Runs(program.ProgramTest):
    def runs(self, folder="."):
        found = json.loads(self.works("runs", self.path(folder), "--json"))
        self.assertEqual(found["folder"], self.path(folder))
        return {os.path.relpath(run["run"], self.folder): run for run in found["runs"]}

    def state(self, run):
        return self.runs()[run]["state"]

    def start(self, run, *arguments):
        """A run in the background, after its first line of metrics."""
        process = program.start("train", *program.SMALL, *SETTINGS, "--steps", "1000000", *arguments,
                                "--run", self.path(run))
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        metrics, until = self.folder / run / "metrics.jsonl", time.monotonic() + program.TIMEOUT
        while not (metrics.exists() and metrics.stat().st_size > 0):
            self.assertLess(time.monotonic(), until)
            time.sleep(0.01)
        return process

    def test_a_finished_run(self):
        self.train("run", *SETTINGS, "--steps", "9")
        run, info = self.runs()["run"], self.info("run")
        self.assertEqual((run["state"], run["step"], run["steps"], run["problem"]), ("finished", 9, 9, None))
        self.assertEqual((run["best_loss"], run["best_step"]), (info["best_val_loss"], info["best_step"]))
        self.assertEqual(run["bytes"], sum(path.stat().st_size for path in (self.folder / "run").rglob("*") if path.is_file()))
        self.assertLess(abs(run["changed"] - time.time()), 60)
        lines = self.works("runs", self.path(".")).splitlines()
        self.assertEqual(lines[0].split(), ["run", "state", "step", "loss", "best", "changed", "size"])
        self.assertRegex(lines[1], rf"run +finished +9/9 +{run['loss']:.4f} +{run['best_loss']:.4f} at {run['best_step']}"
                                   r" +\d+ s ago +[\d.]+ KiB$")
        self.assertEqual(self.works("runs", self.path("run")).splitlines()[1].split()[1:3], ["finished", "9/9"])

    def test_running_stopped_failed_and_resumed(self):
        process = self.start("run")
        self.assertEqual(self.state("run"), "running")
        self.assertTrue((self.folder / "run/run.lock").exists())
        process.send_signal(signal.SIGINT)
        process.wait(program.TIMEOUT)
        self.assertEqual(self.state("run"), "stopped")
        process = program.start("train", "--run", self.path("run"), "--resume")
        self.addCleanup(process.communicate)
        until = time.monotonic() + program.TIMEOUT
        while self.state("run") != "running":
            self.assertLess(time.monotonic(), until)
        process.kill()
        process.wait(program.TIMEOUT)
        self.assertEqual(self.state("run"), "failed")
        self.assertGreater(self.runs()["run"]["step"], 0)

    def test_listing_takes_no_lock(self):
        """A lock for a moment would make a run that starts just then fail."""
        calls = self.folder / "calls"
        self.start("run")
        done = subprocess.run(["strace", "-f", "-e", "trace=flock,fcntl", "-o", calls, program.QUERN, "runs", self.path(".")],
                              capture_output=True, text=True) if shutil.which("strace") else None
        if done is not None and done.returncode == 0:
            self.assertNotRegex(calls.read_text(), "flock|SETLK")
        lock = (self.folder / "run/run.lock").stat()
        for _ in range(20):
            self.assertEqual(self.state("run"), "running")
        self.assertEqual((self.folder / "run/run.lock").stat().st_mtime_ns, lock.st_mtime_ns)
        # A run that starts and ends all the time while the list is made: none may be refused its lock.
        lister = subprocess.Popen(["sh", "-c", 'while "$0" runs "$1" > /dev/null; do :; done', program.QUERN, self.path(".")])
        self.addCleanup(lister.wait)
        self.addCleanup(lister.kill)
        self.train("often", *SETTINGS, "--steps", "2")
        for _ in range(30):
            self.resume("often")
        self.assertIsNone(lister.poll())

    def test_a_lock_of_another_machine_counts_for_an_hour(self):
        self.train("run", *SETTINGS, "--steps", "5")
        self.set_in_config("run", "steps", 9)
        self.write("run/run.lock", "quern run lock: pid 1 on elsewhere since 2020-01-01 00:00:00 UTC\n")
        self.assertEqual(self.state("run"), "running")
        for path in (self.folder / "run").iterdir():
            os.utime(path, (time.time() - 4000, time.time() - 4000))
        self.assertEqual(self.state("run"), "failed")

    def test_stopped_by_an_incident(self):
        self.train("run", *SETTINGS, "--steps", "6")
        self.set_in_config("run", "steps", 9)
        self.assertEqual(self.state("run"), "stopped")
        with (self.folder / "run/metrics.jsonl").open("a") as file:
            file.write('{"step":6,"incident":{"step":7,"number":1,"text":"the loss is nan","action":"stop","folder":"x"}}\n')
        self.assertEqual(self.state("run"), "failed")
        with (self.folder / "run/metrics.jsonl").open("a") as file:
            file.write('{"step":8,"loss":2.5}\n')
        self.assertEqual(self.state("run"), "stopped")

    def test_order_and_places(self):
        for age, name in enumerate(("b", "deep/er/a", "c")):
            self.train(name, *SETTINGS, "--steps", "3")
            for path in (self.folder / name).iterdir():
                os.utime(path, (time.time() - 100 * age, time.time() - 100 * age))
        self.write("notes/config.toml", "[other]\nprogram = 1\n")
        self.write("text.txt", "not a run")
        (self.folder / "link").symlink_to(self.folder / "deep")
        self.assertEqual(list(self.runs()), ["b", "deep/er/a", "c"])
        self.assertEqual(list(self.runs("deep")), ["deep/er/a"])

    def test_the_default_directory(self):
        self.fails("runs", cwd=self.folder, says=["runs: expected a directory with runs, found none; `quern runs DIR`"])
        self.train("runs/first", *SETTINGS, "--steps", "3")
        self.assertIn("runs/first  finished", self.works("runs", cwd=self.folder))

    def test_directories_without_runs(self):
        (self.folder / "empty").mkdir()
        self.assertEqual(self.works("runs", self.path("empty")), f"no runs in {self.path('empty')}\n")
        self.assertEqual(json.loads(self.works("runs", self.path("empty"), "--json"))["runs"], [])
        self.fails("runs", self.write("file", "x"), says=["expected a directory with runs, found a file"])

    def test_damaged_runs_have_a_line_each(self):
        for name in ("good", "config", "metrics", "state", "old", "binary", "folder"):
            self.train(name, *SETTINGS, "--steps", "9")
        self.write("config/config.toml", "[train]\nsteps = \"many\"\n")
        self.write("binary/config.toml", bytes(range(256)) * 100)
        with (self.folder / "metrics/metrics.jsonl").open("ab") as file:
            file.write(b'\xff\x00{"step":\n[[[[[[\n{"step":1e400}\n' + b"x" * 300_000)
        for checkpoint in (self.folder / "state/checkpoints").iterdir():
            (checkpoint / "state.json").write_text("{")
        (self.folder / "old/checkpoints/step-00000009/state.json").write_text("{")
        (self.folder / "folder/metrics.jsonl").unlink()
        (self.folder / "folder/metrics.jsonl").mkdir()
        found = self.runs()
        states = {name: run["state"] for name, run in found.items()}
        self.assertEqual(states, {"good": "finished", "config": "damaged", "metrics": "finished", "state": "damaged",
                                  "old": "finished", "binary": "damaged", "folder": "damaged"})
        self.assertIn("config.toml:2:", found["config"]["problem"])
        self.assertIn("expected a file, found a folder", found["folder"]["problem"])
        text = self.works("runs", self.path("."))
        self.assertEqual(len(text.splitlines()), 8)
        self.assertNotRegex(text, "[\x00-\x09\x0b-\x1f\x7f-\x9f]")

    def test_a_directory_that_cannot_be_read(self):
        self.train("good", *SETTINGS, "--steps", "3")
        (self.folder / "secret").mkdir(mode=0)
        (self.folder / "good/config.toml").chmod(0)
        self.folder.chmod(0o755)
        nobody = {"user": 65534} if os.geteuid() == 0 else {}  # root can read everything
        lines = self.works("runs", self.path("."), **nobody).splitlines()[1:]
        self.assertEqual([line.split()[1] for line in lines], ["damaged", "damaged"])
        self.assertIn("config.toml: cannot open: Permission denied", lines[0])
        self.assertTrue(lines[1].endswith("  cannot be read: Permission denied"), lines)

    def test_a_run_whose_files_vanish(self):
        """Checkpoints are replaced while the list is made."""
        process = self.start("run", "--set", "checkpoint.interval=2")
        for _ in range(100):
            run = self.runs()["run"]
            self.assertEqual(run["state"], "running", run)
        self.assertIsNone(process.poll())

    def test_hundreds_of_long_runs_are_listed_fast(self):
        self.train("run0", *SETTINGS, "--steps", "6")
        line = '{"step":%d,"loss":2.5,"rate":0.001,"gradient_norm":1.0,"tokens_per_s":1000.0,"elapsed":1.0}\n'
        metrics = self.folder / "run0/metrics.jsonl"
        metrics.write_text("".join(line % step for step in range(1, 40_001)))
        self.set_in_config("run0", "steps", 50_000)
        self.assertGreater(metrics.stat().st_size, 3_000_000)
        for number in range(1, 200):  # hard links: the same inodes, read as often
            shutil.copytree(self.folder / "run0", self.folder / f"run{number}", copy_function=os.link)
        begin = time.monotonic()
        found = self.runs()
        took = time.monotonic() - begin
        self.assertEqual({(run["step"], run["loss"]) for run in found.values()}, {(40_000, 2.5)})
        self.assertEqual(len(found), 200)
        if not program.sanitized():
            self.assertLess(took, LISTING)


if __name__ == "__main__":
    program.main()
