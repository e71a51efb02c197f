"""Ranks change nothing but the time: `mpirun -n N quern train` gives the run of one process, and any number resumes it.

Skipped, with the reason, where there is no MPI.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import time
import unittest

import program
from program import QUERN, SMALL

STEPS = 120
KILLS = 20
SETTINGS = (*SMALL, "--steps", STEPS, "--dropout", "0.1", "--set", "train.lanes=8", "--threads", "1",
            "--set", "checkpoint.interval=5", "--set", "log.interval=1", "--set", "train.validation_interval=40")


def missing():
    if program.sanitized():
        return "MPI libraries fail under sanitizers"
    if shutil.which("mpirun") is None:
        return "mpirun is not installed"
    if not os.path.exists(os.path.join(os.path.dirname(QUERN), "quern-mpi.so")):
        return "the program was built without MPI"
    return None


def environment():
    """Open MPI refuses to run as root, and to start more ranks than there are cores, unless it is told to."""
    return {**program.environment(), "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_btl_vader_single_copy_mechanism": "none"}


def command(ranks, *arguments):
    return ["mpirun", "-n", str(ranks), QUERN, *map(str, arguments)]


def mpirun(ranks, *arguments):
    return subprocess.run(command(ranks, *arguments), capture_output=True, text=True, env=environment(),
                          timeout=program.TIMEOUT)


def processes_with(text):
    """Processes whose command line contains the text."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if words and words[0] == QUERN.encode() and any(text.encode() in word for word in words):
            found.append(int(entry))
    return found


@unittest.skipIf(missing(), missing())
class Ranks(program.ProgramTest):
    def runs(self, ranks, *arguments):
        run = mpirun(ranks, "train", *arguments)
        self.assertEqual(run.returncode, 0, (ranks, arguments, run.stdout, run.stderr))
        return run.stdout

    def refused(self, ranks, *arguments, says):
        """Exit code 2, and one line of ours from one of the ranks."""
        run = mpirun(ranks, "train", *arguments)
        self.assertEqual(run.returncode, 2, (run.stdout, run.stderr))
        lines = [line for line in run.stderr.splitlines() if line.startswith("quern: ")]
        self.assertEqual(len(lines), 1, run.stderr)
        self.assertIn(says, lines[0])
        self.assertEqual(processes_with(str(self.folder)), [])

    def same(self, run, expected, steps=STEPS):
        """Byte by byte: weights, moments and state of the last checkpoint."""
        newest = f"checkpoints/step-{steps:08}"
        self.assertEqual(program.contents(self.folder / run / newest), program.contents(self.folder / expected / newest))

    def test_any_number_of_ranks_gives_one_result(self):
        for name, extra in (("fp32", ()), ("bf16", ("--set", "train.precision=bf16", "--set", "train.recompute=sqrt"))):
            self.train("whole-" + name, *SETTINGS, *extra)
            for ranks, threads in ((2, 1), (3, 2), (4, 1)):
                run = f"{name}-{ranks}-{threads}"
                said = self.runs(ranks, *SETTINGS, *extra, "--threads", threads, "--run", self.path(run))
                self.assertEqual(said.count(f"step {STEPS}/{STEPS}  loss"), 1, said)  # only one of them speaks
                self.same(run, "whole-" + name)

    def test_a_run_of_several_ranks_has_enough_lanes(self):
        self.runs(3, *SMALL, "--steps", 4, "--run", self.path("three"))
        self.assertIn("lanes = 4", (self.folder / "three/config.toml").read_text())
        self.train("alone", "--steps", 4, "--set", "train.lanes=4")
        self.assertEqual(self.hash("three"), self.hash("alone"))

    def test_bad_input_is_one_line(self):
        run = ("--run", self.path("run"))
        self.refused(4, *SMALL, "--steps", 4, "--set", "train.lanes=2", *run,
                     says="train.lanes: expected at least one for each of 4 ranks, found 2")
        self.refused(4, *SMALL, "--steps", 4, "--batch", 3, *run,
                     says="train.lanes: expected at most the sequences of a step")
        self.refused(2, *SMALL, "--steps", 4, "--set", "train.lanes=1", *run,
                     says="train.lanes: expected at least one for each of 2 ranks, found 1")
        self.refused(2, *SMALL, "--steps", 4, says="expected --run DIR")
        self.refused(2, *SMALL, "--steps", 4, self.path("absent.txt"), *run, says="absent.txt")
        self.assertFalse((self.folder / "run").exists())
        self.train("run", "--steps", 4, "--set", "train.lanes=2")
        self.refused(3, "--run", self.path("run"), "--resume", "--steps", 9,
                     says="train.lanes: expected at least one for each of 3 ranks, found 2")
        self.refused(2, *SMALL, "--steps", 4, *run, says="holds a run already")

    def test_a_rank_needs_the_planned_memory(self):
        """Of a model with 12.7M parameters, whose moments are divided among the ranks."""
        settings = (*SMALL, "--layers", 4, "--width", 512, "--steps", 4, "--threads", 1, "--set", "train.lanes=4",
                    "--set", "log.interval=1")
        moments = {}
        for ranks in (2, 4):
            run = f"ranks-{ranks}"
            self.runs(ranks, *settings, "--run", self.path(run))
            lines = map(json.loads, (self.folder / run / "metrics.jsonl").read_text().splitlines())
            memory = [line["memory"] for line in lines if "memory" in line][-1]
            self.assertLess(memory["peak"], memory["planned"])
            moments[ranks] = memory["moments"]
        self.assertAlmostEqual(moments[2] / moments[4], 2, delta=0.05)

    def test_only_rank_0_needs_the_text_with_broadcast(self):
        """The other ranks see an empty directory in its place; a run cannot be there."""
        if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0:
            self.skipTest("private mounts are not allowed here")
        text = self.folder / "text"
        text.mkdir()
        (text / "book.txt").write_text("".join(f"Page {i} is about {i * i % 97}.\n" for i in range(2000)))
        script = self.folder / "rank.sh"
        script.write_text("#!/bin/sh\n"
                          "[ $OMPI_COMM_WORLD_RANK = 0 ] && exec \"$@\"\n"
                          f"exec unshare --mount sh -c 'mount -t tmpfs none {text} && exec \"$@\"' sh \"$@\"\n")
        script.chmod(0o755)
        run = subprocess.run(["mpirun", "-n", "2", script, QUERN, "train", *SMALL, "--steps", "4", "--run", text / "run"],
                             capture_output=True, text=True, env=environment(), timeout=program.TIMEOUT)
        self.assertEqual(run.returncode, 2, run)
        self.assertIn("in a directory that all ranks share", run.stderr)
        self.assertEqual(run.stderr.count("quern: "), 1, run.stderr)
        settings = (*SMALL, "--steps", 20, "--set", "train.lanes=4", text / "book.txt")
        for sampling in ("random", "stream"):
            chosen = (*settings, "--set", f"data.sampling={sampling}")
            self.train("whole-" + sampling, *chosen)
            for broadcast in ("false", "true"):
                run = f"{sampling}-{broadcast}"
                said = subprocess.run(["mpirun", "-n", "3", script, QUERN, "train", *map(str, chosen), "--run",
                                       self.path(run), "--set", f"data.broadcast={broadcast}"],
                                      capture_output=True, text=True, env=environment(), timeout=program.TIMEOUT)
                if broadcast == "false":
                    self.assertEqual(said.returncode, 2, said)
                    self.assertIn("rank 1: [data]", said.stderr)
                else:
                    self.assertEqual(said.returncode, 0, said)
                    self.same(run, "whole-" + sampling, 20)

    def on_rank_0(self, first):
        """A script that runs a shell command on rank 0 only, before the program."""
        script = self.folder / "rank-0.sh"
        script.write_text(f"#!/bin/sh\n[ $OMPI_COMM_WORLD_RANK = 0 ] && {first}\nexec \"$@\"\n")
        script.chmod(0o755)
        return script

    def job(self, *command):
        said = subprocess.run(["mpirun", *map(str, command)], capture_output=True, text=True, env=environment(),
                              timeout=60)
        lines = [line for line in said.stderr.splitlines() if line.startswith("quern: ")]
        self.assertEqual((said.returncode, len(lines)), (2, 1), (command, said))
        self.assertEqual(processes_with(str(self.folder)), [])
        return lines[0]

    def test_a_full_disk_is_one_line(self):
        """Of rank 0: the file of metrics, weights or moments cannot grow beyond 512 N bytes."""
        for limit, name, settings in ((150, "metrics.jsonl", ("--set", "checkpoint.interval=0", "--steps", 3000)),
                                      (60, "model.safetensors", ("--set", "checkpoint.interval=5", "--steps", 9)),
                                      (150, "optimizer.safetensors", ("--set", "checkpoint.interval=5", "--steps", 9))):
            script = self.on_rank_0(f"trap '' XFSZ && ulimit -f {limit}")
            line = self.job("-n", 3, script, QUERN, "train", *SMALL, "--set", "train.lanes=4", "--set", "log.interval=1",
                            *settings, "--run", self.path(name))
            self.assertIn(name, line)

    def test_ranks_must_agree_before_they_begin(self):
        """On the command, and on instructions whose results differ."""
        settings = (*SMALL, "--steps", 4, "--set", "train.lanes=4")
        self.train("old", *settings)
        line = self.job("-n", 1, QUERN, "train", *settings, "--run", self.path("new"), ":",
                        "-n", 1, QUERN, "train", "--resume", "--run", self.path("old"))
        self.assertIn("command: expected the same on every rank, found 'train without --resume'", line)
        line = self.job("-n", 2, self.on_rank_0("export QUERN_TARGET=scalar"), QUERN, "train", *settings,
                        "--run", self.path("new"))
        self.assertIn("CPU: expected the same on every rank, found 'scalar, without fused multiply-add'", line)
        self.refused(3, "--run", self.path("old"), "--resume", "--steps", 2, says="train.steps: expected at least 4")
        self.refused(3, "--run", self.path("old"), "--resume", "--steps", 9, "--memory", "1M", says="memory")

    def test_other_programs_are_refused(self):
        """Rank 1 is a copy of the program with a byte more."""
        other = self.folder / "quern"
        shutil.copy(QUERN, other)
        shutil.copy(os.path.join(os.path.dirname(QUERN), "quern-mpi.so"), self.folder)
        with open(other, "ab") as file:
            file.write(b"\0")
        arguments = list(map(str, ("train", *SMALL, "--steps", 4, "--run", self.path("run"))))
        said = subprocess.run(["mpirun", "-n", "1", QUERN, *arguments, ":", "-n", "1", other, *arguments],
                              capture_output=True, text=True, env=environment(), timeout=program.TIMEOUT)
        self.assertEqual(said.returncode, 2, said)
        self.assertIn("quern: [dist] program: expected the same on every rank, found 'quern ", said.stderr)
        self.assertEqual(said.stderr.count("quern: "), 1, said.stderr)

    def test_signals_save_the_run(self):
        """SIGUSR1, SIGTERM and Ctrl-C to mpirun: it passes them on, and the run can be resumed by another number of ranks."""
        self.train("whole", *SETTINGS)
        time_to_save = {"OMPI_MCA_odls_base_sigkill_timeout": "5"}  # after SIGTERM; a second without it
        for number, which in enumerate((signal.SIGUSR1, signal.SIGTERM, signal.SIGINT)):
            run = f"run-{number}"
            arguments = ("train", *SETTINGS, "--set", "checkpoint.interval=0", "--run", self.path(run))
            with subprocess.Popen(command(2, *arguments), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                  env={**environment(), **time_to_save}) as job:
                for line in job.stdout:
                    if line.startswith("step 5/"):
                        job.send_signal(which)
                        break
                rest = job.stdout.read()
            self.assertEqual(processes_with(str(self.folder)), [])
            if f"step {STEPS}/{STEPS}" not in rest:  # it may have been faster than the signal
                self.assertIn("and saved; resume with", rest)
            self.runs(3, "--run", self.path(run), "--resume", "--set", "checkpoint.interval=5")
            self.assertEqual(self.hash(run), self.hash("whole"))

    def test_killed_jobs_end_bit_identically(self):
        """One rank, or all of the job, killed at a random moment; resumed by another number of ranks each time."""
        steps = 400
        settings = (*SETTINGS, "--steps", steps)
        self.train("whole", *settings)
        to_start = self.time_of(*SETTINGS, "--steps", 0, "--run", self.path("empty"))
        to_train = max(0.2, self.time_of(*settings, "--run", self.path("timed")) - to_start)
        dice = random.Random(1)
        kills = runs = 0
        during_training = 0
        while kills < KILLS:
            runs += 1
            run = f"run-{runs}"
            ended, ranks_before = False, 0
            while not ended:
                count = dice.choice([n for n in (2, 3, 4) if n != ranks_before])
                ranks_before = count
                known = (self.folder / run / "config.toml").exists()
                arguments = ("--resume",) if known else settings
                job = subprocess.Popen(command(count, "train", *arguments, "--run", self.path(run)),
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment(),
                                       start_new_session=True)
                try:
                    # More ranks take longer to start. Once there have been enough kills, the run may end.
                    job.wait(program.TIMEOUT if kills >= KILLS else
                             dice.uniform(0.5, 2) * to_start + dice.uniform(0, 0.5) * to_train)
                except subprocess.TimeoutExpired:
                    ranks = processes_with(self.path(run))
                    if ranks and dice.random() < 0.7:
                        os.kill(dice.choice(ranks), signal.SIGKILL)
                    else:
                        job.kill()
                ended = job.wait(timeout=60) == 0
                self.no_orphans()
                if not ended:
                    kills += 1
                    during_training += (self.folder / run / "config.toml").exists()
            self.same(run, "whole", steps)
            self.assertEqual([name for name in os.listdir(self.folder / run / "checkpoints") if name.startswith(".")], [])
        self.assertGreater(during_training, KILLS / 4)

    def time_of(self, *arguments):
        begin = time.monotonic()
        self.runs(2, *arguments)
        return time.monotonic() - begin

    def no_orphans(self):
        """The ranks of a job that has ended are gone within seconds."""
        deadline = time.monotonic() + 10
        while processes_with(str(self.folder)):
            self.assertLess(time.monotonic(), deadline, "a rank has survived its job")
            time.sleep(0.05)


if __name__ == "__main__":
    program.main()
