"""quern selfplay: one result for any threads and interruptions; actor processes that may be killed; bad input."""

import json
import os
import pathlib
import random
import re
import signal
import subprocess
import time

import kill_test
import program

SMALL = ("--steps", "24", "--batch", "16", "--set", "optimizer.warmup=2", "--games", "12", "--simulations", "12", "--set",
         "selfplay.cheap_simulations=4", "--set", "selfplay.generation_steps=4", "--set", "selfplay.rows=100", "--set",
         "selfplay.rating_interval=2", "--set", "selfplay.rating_games=4", "--set", "checkpoint.interval=4", "--set",
         "model.layers=1", "--set", "model.width=16", "--set", "log.interval=1")


class Selfplay(program.ProgramTest):
    def selfplay(self, run, *arguments, game="tictactoe"):
        return self.works("selfplay", game, *SMALL, *arguments, "--run", self.path(run))

    def metrics(self, run):
        return [json.loads(line) for line in (self.folder / run / "metrics.jsonl").read_text().splitlines()]

    def test_one_result_for_any_number_of_threads(self):
        hashes = set()
        for threads in (1, 2, 5):
            self.selfplay(f"t{threads}", "--threads", threads)
            hashes.add(self.hash(f"t{threads}"))
        self.assertEqual(len(hashes), 1)
        self.selfplay("other", "--seed", "7")
        self.assertNotIn(self.hash("other"), hashes)

    def test_every_game_trains(self):
        for game in ("tictactoe", "connect4", "chess"):
            arguments = ("--steps", "4", "--games", "2", "--set", "selfplay.simulations=3", "--set", "model.heads=1")
            printed = self.selfplay(game, *arguments, game=game)
            self.assertIn("done: 4 steps", printed)
            played = [entry["selfplay"] for entry in self.metrics(game) if "selfplay" in entry]
            self.assertEqual(played[-1]["games"], 2, game)
            self.assertEqual(self.info(game)["game"], game)

    def test_what_is_printed_and_logged(self):
        printed = self.selfplay("run")
        for part in ("tictactoe: 12 simulations", "games/s", "evaluations/s", "buffer 100", "rating"):
            self.assertIn(part, printed)
        entries = self.metrics("run")
        self.assertEqual([entry["step"] for entry in entries if "loss" in entry], list(range(1, 25)))
        self.assertEqual([entry["step"] for entry in entries if "selfplay" in entry], list(range(4, 25, 4)))
        self.assertEqual([entry["step"] for entry in entries if "rating" in entry], [8, 16, 24])
        self.assertIn("24 of 24", self.works("report", "--run", self.path("run")))

    def test_the_plan_counts_buffer_and_games(self):
        printed = self.selfplay("run", "--set", "selfplay.games_at_once=256", "--set", "selfplay.rows=50000")
        peak, planned = map(float, re.search(r"memory: peak ([\d.]+) MiB, planned ([\d.]+) MiB", printed).groups())
        games = float(re.search(r"replay buffer, games +([\d.]+) MiB", printed).group(1))
        self.assertGreater(games, 20)
        self.assertLess(peak, 1.1 * planned)

    def test_resume_and_extend(self):
        self.selfplay("long", "--steps", "32", "--set", "optimizer.schedule=constant")
        self.selfplay("run", "--set", "optimizer.schedule=constant")
        self.assertIn("finished: 24 of 24", self.works("selfplay", "--run", self.path("run"), "--resume"))
        self.works("selfplay", "--run", self.path("run"), "--resume", "--steps", "32")
        self.assertEqual(self.hash("run"), self.hash("long"))

    def test_control_c_saves_and_resume_is_bit_identical(self):
        steps = ("--steps", "2000", "--set", "selfplay.rating_interval=0", "--set", "optimizer.schedule=constant")
        process = program.start("selfplay", "tictactoe", *SMALL, *steps, "--run", self.path("run"))
        while "step 40/" not in process.stdout.readline():
            self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        output, error = process.communicate(timeout=program.TIMEOUT)
        self.assertEqual((process.returncode, error), (0, ""))
        self.assertIn("resume with `quern selfplay --run", output)
        done = self.info("run")["step"]
        end = done + 10
        self.works("selfplay", "--run", self.path("run"), "--resume", "--steps", end)
        self.selfplay("whole", "--steps", end, "--set", "selfplay.rating_interval=0", "--set",
                      "optimizer.schedule=constant")
        self.assertEqual(self.hash("run"), self.hash("whole"))

    def test_a_default_warmup_yields_to_few_steps(self):
        settings = self.works("selfplay", "tictactoe", "--steps", "10", "--print-config")
        self.assertIn("\nwarmup = 6\n", settings)  # all before the cooldown
        self.fails("selfplay", "tictactoe", "--run", self.path("run"), "--steps", "10", "--set", "optimizer.warmup=7",
                   says=["optimizer.warmup", "at most 6 of 10 steps"])

    def test_bad_input_is_one_line_and_nothing_is_written(self):
        run = ("--run", self.path("run"))
        self.fails("selfplay", says=["expected GAME"])
        self.fails("selfplay", "tictactoe", says=["expected --run DIR"])
        self.fails("selfplay", "gomoku", *run, says=["expected tictactoe, connect4 or chess, found 'gomoku'"])
        self.fails("selfplay", "conect4", *run, says=["did you mean connect4"])
        self.fails("selfplay", "chess", *run, "--processes", "2", says=["selfplay.processes", "synchronous"])
        self.fails("selfplay", "chess", *run, "--set", "model.context=63", says=["model.context", "64"])
        self.fails("selfplay", "chess", *run, "--set", "model.dropout=0.1", says=["model.dropout", "self-play"])
        self.fails("selfplay", "chess", *run, "--simulations", "0", says=["selfplay.simulations"])
        self.fails("selfplay", *run, "--resume", says=["run"])
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_run_of_self_play_is_not_one_of_text(self):
        self.selfplay("run")
        run = self.path("run")
        for command in (("generate", run), ("eval", run), ("export", run, "--out", self.path("out")),
                        ("train", "--from", run, "--run", self.path("new")),
                        ("finetune", "--base", run, self.write("a.jsonl", "{}"), "--run", self.path("new")),
                        ("train", "--run", run, "--resume")):
            self.fails(*command, says=["self-play" if command[0] != "train" or "--from" in command else "quern selfplay"])
        self.train("text", "--steps", "2")
        self.fails("selfplay", "--run", self.path("text"), "--resume", says=["quern selfplay", "text"])
        self.fails("selfplay", "--run", run, "--resume", "--set", "selfplay.lag=0", says=["selfplay.lag", "new run"])
        self.fails("selfplay", "chess", "--run", run, says=["holds a run already"])


class Kill(kill_test.Kill):
    """Killed at any instant and resumed, with another number of threads each time."""

    command = "selfplay"
    steps = 120
    settings = ("tictactoe", *SMALL, "--steps", "120", "--set", "checkpoint.interval=1")

    def begin(self, run):
        known = (self.folder / run / "config.toml").exists()
        arguments = ("--resume",) if known else self.settings
        return subprocess.Popen([program.QUERN, "selfplay", *arguments, "--run", self.path(run), "--threads",
                                 str(self.random.choice((1, 2, 5)))], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                env=program.environment())

    def test_killed_runs_end_bit_identically(self):
        runs = self.survive("random", 20, self.after_a_time)
        print(f"20 kills in {runs} runs of {self.duration:.2f} s: {self.during_save} during a save")


class Processes(program.ProgramTest):
    """Actors as processes."""

    def start(self, *arguments):
        return program.start("selfplay", *arguments)

    def actors(self, learner):
        """The process ids of its children."""
        return [int(pid) for pid in pathlib.Path(f"/proc/{learner.pid}/task").glob("*/children")
                for pid in pid.read_text().split()]

    def shared(self):
        return {name for name in os.listdir("/dev/shm") if name.startswith("quern-selfplay-")}

    def await_true(self, condition, process):
        deadline = time.monotonic() + 60
        while not condition():
            self.assertIsNone(process.poll())
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)

    def test_killed_actors_are_replaced_and_learning_continues(self):
        before = self.shared()
        steps = 3000
        process = self.start("tictactoe", *SMALL, "--asynchronous", "--processes", "2", "--steps", steps, "--set",
                             "selfplay.rating_interval=0", "--set", "checkpoint.interval=500", "--run", self.path("run"))
        choose = random.Random(3)
        kills = 0
        while process.poll() is None and kills < 12:
            time.sleep(choose.uniform(0.05, 0.2))
            for pid in self.actors(process)[:choose.choice((1, 2))]:
                try:
                    os.kill(pid, signal.SIGKILL)
                    kills += 1
                except ProcessLookupError:
                    pass
        output, error = process.communicate(timeout=program.TIMEOUT)
        self.assertEqual((process.returncode, error), (0, ""), output[-2000:])
        self.assertIn(f"done: {steps} steps", output)
        self.assertGreaterEqual(kills, 4)
        self.assertIn("ended by signal 9; another one was started", output)
        self.assertEqual(self.shared(), before)
        self.assertFalse((self.folder / "run/actors").exists())
        # Every row of the buffer is one that a game gave: policies and outcomes sum to 1, planes are 0 or 1.
        entries = [json.loads(line) for line in (self.folder / "run/metrics.jsonl").read_text().splitlines()]
        losses = [entry["loss"] for entry in entries if "loss" in entry]
        self.assertTrue(all(0 < loss < 5 for loss in losses))

    def test_actors_end_with_a_learner_that_was_killed(self):
        before = self.shared()
        run = ("--run", self.path("run"))
        process = self.start("tictactoe", *SMALL, "--asynchronous", "--processes", "2", "--steps", "1000000", *run)
        saved = self.folder / "run/checkpoints"  # the first ones are soon removed again
        self.await_true(lambda: any(path.name >= "step-00000008" for path in saved.glob("step-*")), process)
        actors = self.actors(process)
        self.assertEqual(len(actors), 2)
        process.kill()
        process.communicate()
        deadline = time.monotonic() + 30
        while any(os.path.exists(f"/proc/{pid}") for pid in actors):
            self.assertLess(time.monotonic(), deadline, "actors go on without a learner")
            time.sleep(0.02)
        step = self.info("run")["step"]
        process = self.start(*run, "--resume")
        self.await_true(lambda: self.info("run")["step"] > step + 8, process)
        process.send_signal(signal.SIGINT)
        output, error = process.communicate(timeout=program.TIMEOUT)
        self.assertEqual((process.returncode, error), (0, ""), output[-2000:])
        self.assertEqual(self.shared(), before)

    def test_actors_that_cannot_play_end_the_run(self):
        process = self.start("tictactoe", *SMALL, "--asynchronous", "--processes", "1", "--steps", "1000000", "--run",
                             self.path("run"))
        self.await_true(lambda: (self.folder / "run/actors/config.toml").exists(), process)
        (self.folder / "run/actors/config.toml").write_text("nonsense = [")
        while process.poll() is None:
            for pid in self.actors(process):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            time.sleep(0.01)
        error = process.communicate(timeout=program.TIMEOUT)[1]
        self.assertEqual(process.returncode, 2, error)
        self.assertIn("expected actor processes that play", error)


if __name__ == "__main__":
    program.main()
