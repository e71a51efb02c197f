"""From text to a model that writes: train, resume, info, eval, generate and tokenize as a user types them."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import time

import program
from program import QUERN, SMALL

TEXT = "".join(f"The cat number {i} sat on the mat {i * i}, and the dog sat on the log.\n" for i in range(300))


class Train(program.ProgramTest):
    def test_info_describes_the_run(self):
        printed = self.train("run", "--steps", "5")
        self.assertIn("step 5/5", printed)
        self.assertIn("done: 5 steps", printed)
        self.assertNotIn("dashboard", printed)
        info = self.info("run")
        self.assertEqual((info["step"], info["steps"], info["tokens"]), (5, 5, 5 * 8 * 32))
        self.assertEqual(info["model"], {"layers": 1, "heads": 2, "width": 32, "context": 32, "dropout": 0.0, "variants": ""})
        self.assertGreater(info["parameters"], 10000)
        self.assertGreater(info["val_loss"], 1)
        self.assertRegex(info["weights_hash"], r"\A[0-9a-f]{64}\Z")
        self.assertEqual(sorted(path.name for path in (self.folder / "run").iterdir()),
                         ["checkpoints", "config.toml", "metrics.jsonl", "panels.json", "tokenizer.json"])
        self.assertIn(info["weights_hash"], self.works("info", "--run", self.path("run")))

    def test_the_loss_falls(self):
        self.train("run", "--steps", "200", "--set", "log.interval=1")
        lines = [json.loads(line) for line in (self.folder / "run/metrics.jsonl").read_text().splitlines()]
        losses = [line["loss"] for line in lines if "loss" in line]
        self.assertEqual(len(losses), 200)
        self.assertLess(losses[-1], losses[0] - 1)

    def test_the_weights_depend_on_the_seed(self):
        for run, seed in (("a", 1), ("b", 1), ("c", 2)):
            self.train(run, "--steps", "3", "--seed", seed)
        self.assertEqual(self.hash("a"), self.hash("b"))
        self.assertNotEqual(self.hash("a"), self.hash("c"))

    def test_accumulation_is_bit_identical(self):
        for run, rounds, batch in (("a", 4, 4), ("b", 1, 16), ("c", 16, 1), ("d", 1, 8)):
            self.train(run, "--steps", "5", "--accumulation", rounds, "--batch", batch, "--dropout", "0.1")
        self.assertEqual(self.hash("a"), self.hash("b"))
        self.assertEqual(self.hash("a"), self.hash("c"))
        self.assertNotEqual(self.hash("a"), self.hash("d"))

    def test_resume_of_a_finished_run_changes_nothing(self):
        self.train("run", "--steps", "4")
        before = program.contents(self.folder / "run")
        self.assertEqual(self.resume("run"), f"finished: 4 of 4 steps, in {self.path('run')}; extend it with --steps N\n")
        self.assertEqual(program.contents(self.folder / "run"), before)

    def test_resume_with_more_steps(self):
        settings = ("--set", "optimizer.schedule=constant")
        self.train("whole", *settings, "--steps", "9")
        self.train("cut", *settings, "--steps", "4")
        self.set_in_config("cut", "steps", 9)
        self.assertIn("resuming at step 5", self.resume("cut"))
        self.assertEqual(self.hash("cut"), self.hash("whole"))

    def test_resume_works_from_another_folder(self):
        self.write("a.txt", TEXT)
        self.works("train", *SMALL, "a.txt", "--steps", "2", "--run", "run", cwd=self.folder)
        self.assertIn("done: 3 steps", self.resume("run", "--steps", "3"))

    def test_printed_config_round_trips(self):
        for preset in ("tiny", "small", "gpt2", "minute", "ten-minutes"):
            printed = self.works("train", "--preset", preset, "--print-config")
            file = self.write("config.toml", printed)
            self.assertEqual(self.works("train", "--config", file, "--print-config"), printed)
        changed = self.works("train", *SMALL, "--seed", "7", self.write("a \"b\".txt", TEXT), "--print-config")
        file = self.write("config.toml", changed)
        self.assertEqual(self.works("train", "--config", file, "--print-config"), changed)

    def test_the_run_contains_the_printed_config(self):
        printed = self.works("train", *SMALL, "--steps", "1", "--print-config")
        file = self.write("config.toml", printed)
        self.works("train", "--config", file, "--run", self.path("run"))
        recorded = printed.replace("lanes = 0", "lanes = 1")  # enough for one process
        self.assertEqual((self.folder / "run/config.toml").read_text(), recorded)

    def test_data_arguments_may_be_anywhere(self):
        text = self.write("a.txt", TEXT)
        first = self.works("train", text, "--set", "train.seed=3", "--steps", "7", "--print-config")
        self.assertIn(f'paths = ["{text}"]', first)
        self.assertEqual(self.works("train", "--set", "train.seed=3", text, "--steps", "7", "--print-config"), first)
        self.assertEqual(self.works("train", "--steps", "7", "--set", "train.seed=3", text, "--print-config"), first)

    def test_later_settings_win(self):
        file = self.write("config.toml", "[train]\nsteps = 11\nbatch = 12\nseed = 13\n")
        printed = self.works("train", "--config", file, "--set", "train.batch=21", "--set", "train.batch=22", "--seed",
                             "32", "--seed", "33", "--set", "train.seed=23", "--print-config")
        for line in ("steps = 11", "batch = 22", "seed = 33"):
            self.assertRegex(printed, rf"(?m)^{line}$")


class Sources(program.ProgramTest):
    """The same text, however it is given, is the same run."""

    def test_file_folder_and_json_lines(self):
        self.train("file", self.write("text.txt", TEXT), "--steps", "3")
        self.write("folder/a.txt", TEXT)
        self.write("folder/ignored.png", "no text")
        self.train("folder_run", self.path("folder"), "--steps", "3")
        self.train("lines", self.write("text.jsonl", json.dumps({"text": TEXT}) + "\n"), "--steps", "3")
        self.assertEqual(self.hash("file"), self.hash("folder_run"))
        self.assertEqual(self.hash("file"), self.hash("lines"))

    def test_shards_that_tokenize_wrote(self):
        text = self.write("text.txt", TEXT)
        for kind in ("byte", "char", "bpe"):
            self.train(f"text-{kind}", text, "--steps", "3", "--tokenizer", kind, "--set", "data.vocabulary=300")
            out = self.path(f"tokens-{kind}")
            self.assertIn(f"written to {out}",
                          self.works("tokenize", text, "--kind", kind, "--vocabulary", "300", "--out", out))
            self.train(f"shards-{kind}", out, "--steps", "3")
            self.assertEqual(self.hash(f"shards-{kind}"), self.hash(f"text-{kind}"))
            self.assertTrue(self.works("generate", "--run", self.path(f"shards-{kind}"), "--tokens", "5"))

    def test_raw_shards_with_a_vocabulary(self):
        tokens = self.write("raw.bin", b"".join(bytes([i % 7, 0]) for i in range(2000)))
        self.train("run", tokens, "--steps", "3", "--set", "model.vocabulary=7")
        self.assertIn("loss", self.works("eval", "--run", self.path("run")))

    def test_tokenize_with_the_tokenizer_of_a_run(self):
        self.train("run", self.write("text.txt", TEXT), "--steps", "1")
        printed = self.works("tokenize", "--tokenizer", self.path("run"), "--text", "The cat")
        self.assertIn("7 tokens, 7 bytes", printed)
        self.assertIn("'T'", printed)


class Use(program.ProgramTest):
    def setUp(self):
        super().setUp()
        self.train("run", self.write("text.txt", TEXT), "--steps", "30", "--tokenizer", "byte")

    def test_eval_of_the_held_out_text(self):
        result = json.loads(self.works("eval", "--run", self.path("run"), "--json"))
        self.assertEqual(result["step"], 30)
        self.assertAlmostEqual(result["bits_per_byte"], result["loss"] / 0.6931471805599453, places=6)
        self.assertAlmostEqual(result["loss"], self.info("run")["val_loss"], delta=0.2)
        self.assertIn("perplexity", self.works("eval", "--run", self.path("run")))

    def test_eval_of_other_text(self):
        def loss(text):
            other = self.write("other.txt", text)
            return json.loads(self.works("eval", "--run", self.path("run"), other, "--json"))["loss"]

        self.assertLess(loss(TEXT[:5000]), loss("QZXJ~|" * 1000))

    def test_text_is_tokenized_while_training(self):
        book = self.write("book.txt", TEXT * 3)
        hashes = set()
        for threads in ("1", "2", "4", "8"):
            run = f"stream-{threads}"
            printed = self.train(run, book, "--steps", "5", "--set", "data.sampling=stream", "--threads", threads)
            self.assertRegex(printed, r"(?m)^\d+ parameters; about \d+ training tokens, \d+ held out")
            hashes.add(self.hash(run))
        self.assertEqual(len(hashes), 1)
        self.assertGreater(json.loads(self.works("eval", "--run", self.path("stream-1"), "--json"))["tokens"], 3000)
        self.assertTrue(self.works("generate", "--run", self.path("stream-1"), "--tokens", "5"))
        self.write("book.txt", TEXT * 4)
        self.fails("train", "--run", self.path("stream-1"), "--resume", "--steps", "6",
                   says=["book.txt", "changed since", "bytes"])
        self.works("tokenize", book, "--out", self.path("shards"))
        self.fails("train", self.path("shards"), "--run", self.path("refused"), "--set", "data.sampling=stream",
                   says=["shards", "expected text, found token shards"])

    def test_generate_gives_the_same_text_for_the_same_seed(self):
        def text(*arguments):
            return self.works("generate", "--run", self.path("run"), "--prompt", "The", "--tokens", "60", *arguments)

        self.assertTrue(text("--seed", "5").startswith("The"))
        self.assertEqual(text("--seed", "5"), text("--seed", "5"))
        for threads in ("1", "2", "8"):
            self.assertEqual(text("--seed", "5", "--threads", threads), text("--seed", "5"))
        self.assertNotEqual(text("--seed", "5"), text("--seed", "6"))
        self.assertEqual(text("--temperature", "0", "--seed", "5"), text("--temperature", "0", "--seed", "6"))


class Output(program.ProgramTest):
    def test_plain_lines_without_a_terminal(self):
        printed = self.train("run", "--steps", "20", "--set", "log.interval=5")
        self.assertNotRegex(printed, r"[\r\x1b]")
        self.assertEqual(re.findall(r"(?m)^step (\d+)/20  loss ", printed), ["1", "5", "10", "15", "20"])
        self.assertRegex(printed, r"(?m)^step 20/20  validation \d\.\d+$")
        self.assertRegex(printed, r"(?m)^step 20/20  loss \d+\.\d+ .*\d tokens/s  MFU \d+ %  limit: \w+  0m00s left$")

    def test_one_line_updated_in_place_on_a_terminal(self):
        printed = self.on_terminal("train", *SMALL, "--steps", "400", "--set", "train.validation_interval=50", "--run",
                                   self.path("run"))
        writings = re.findall(r"\r\x1b\[Kstep (\d+)/400  loss [^\r\n]*left", printed)
        self.assertEqual(writings[-1], "400")
        self.assertEqual(printed.count("\nstep "), 0, "every step line is written over the one before")
        self.assertIn("validation", printed)
        self.assertRegex(printed, r"left\r?\nmemory: peak [^\n]*, planned [^\n]*\ndone: 400 steps")

    def on_terminal(self, *arguments):
        ours, theirs = pty.openpty()
        process = subprocess.Popen([QUERN, *map(str, arguments)], stdout=theirs, stderr=theirs,
                                   env=program.environment())
        os.close(theirs)
        printed = b""
        while select.select([ours], [], [], program.TIMEOUT)[0]:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            printed += piece
        os.close(ours)
        self.assertEqual(process.wait(program.TIMEOUT), 0, printed)
        return printed.decode()


class Interrupt(program.ProgramTest):
    STEPS = ("--steps", "3000", "--set", "log.interval=1", "--set", "checkpoint.interval=100000", "--set",
             "train.validation_interval=100000")

    def wait_for_line(self, process, pattern):
        for line in process.stdout:
            if re.search(pattern, line):
                return
        self.fail(f"no line with {pattern}: {process.stderr.read()}")

    def test_control_c_saves_and_resume_is_bit_identical(self):
        self.train("whole", *self.STEPS)
        for name in ("SIGINT", "SIGTERM"):
            process = program.start("train", *SMALL, *self.STEPS, "--run", self.path(name))
            self.wait_for_line(process, r"^step 20/")
            process.send_signal(getattr(signal, name))
            printed, errors = process.communicate(timeout=program.TIMEOUT)
            self.assertEqual((process.returncode, errors), (0, ""))
            stopped = re.search(r"(?m)^stopped after step (\d+) and saved; resume with `quern train --run (\S+) --res",
                                printed)
            self.assertTrue(stopped, printed[-300:])
            self.assertEqual(self.info(name)["step"], int(stopped[1]))
            self.assertEqual(stopped[2], self.path(name))
            self.assertIn(f"resuming at step {int(stopped[1]) + 1}", self.resume(name))
            self.assertEqual(self.hash(name), self.hash("whole"))

    def test_a_second_control_c_stops_immediately(self):
        # One step of this model is many seconds of work, so the first request is still being met when the second comes.
        process = program.start("train", "--layers", "12", "--heads", "4", "--width", "256", "--context", "256",
                                "--batch", "512", "--steps", "2", "--run", self.path("run"))
        self.wait_for_line(process, "parameters")
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        self.assertIsNone(process.poll(), "the first one waits for the end of the step")
        process.send_signal(signal.SIGINT)
        begin = time.monotonic()
        process.communicate(timeout=program.TIMEOUT)
        self.assertEqual(process.returncode, 130)
        self.assertLess(time.monotonic() - begin, 2)
        self.assertFalse((self.folder / "run/checkpoints").exists())


if __name__ == "__main__":
    program.main()
