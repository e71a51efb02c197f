"""quern report: a run in a table, its loss curve, and CSV; also for runs that are damaged, empty or resumed."""

import csv
import fcntl
import io
import json
import os
import pty
import struct
import subprocess
import termios

import program

SETTINGS = ("--set", "log.interval=2", "--set", "train.validation_interval=4")


class Report(program.ProgramTest):
    def report(self, run, *arguments):
        return self.works("report", "--run", self.path(run), *arguments)

    def metrics(self, run):
        return self.folder / run / "metrics.jsonl"

    def test_the_numbers_match_the_run(self):
        self.train("run", *SETTINGS, "--steps", "9")
        lines = [json.loads(line) for line in self.metrics("run").read_text().splitlines()]
        steps = [line for line in lines if "loss" in line]
        validations = [(line["validation_loss"], line["step"]) for line in lines if "validation_loss" in line]
        found = json.loads(self.report("run", "--json"))
        info = self.info("run")
        self.assertEqual((found["step"], found["steps"], found["tokens"]), (9, 9, info["tokens"]))
        self.assertEqual(found["model"]["parameters"], info["parameters"])
        self.assertEqual(found["loss"], {"step": 9, "loss": steps[-1]["loss"]})
        self.assertEqual((found["best_validation"]["loss"], found["best_validation"]["step"]), min(validations))
        self.assertEqual(found["best_validation"]["loss"], info["best_val_loss"])
        self.assertEqual(found["seconds"], steps[-1]["elapsed"])
        self.assertEqual(found["memory"]["peak"], max(line["memory"]["peak"] for line in steps))
        self.assertEqual((found["skipped"], found["warnings"]), (0, []))
        text = self.report("run")
        for part in (f"{info['parameters']} parameters", "steps        9 of 9, 2304 tokens", "tokens/s", "planned",
                     f"best {min(validations)[0]:.4f}", "warnings     none", "* training", "o validation", "step 2"):
            self.assertIn(part, text)
        self.assertNotIn("\033", text)
        self.assertLessEqual(max(map(len, text.splitlines())), 80)

    def test_a_hostile_log_harms_neither_the_program_nor_the_terminal(self):
        self.train("run", *SETTINGS, "--steps", "9")
        deep = "[" * 200_000 + "]" * 200_000
        with self.metrics("run").open("a") as file:
            file.write('{"step":9,"warning":"\\u001b]0;title\\u0007 \\u009b2J \\u202e"}\n')
            file.write('{"step":9,"incident":{"step":9,"text":"\\u009b31m","action":"\\u001b[31m","folder":"\\u0000"}}\n')
            file.write('{"step":9,"loss":' + deep + '}\n{"step":9,"memory":' + deep + '}\n' + deep + "\n")
        for arguments in ((), ("--csv",), ("--json",)):
            run = program.quern("report", "--run", self.path("run"), *arguments)
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertNotRegex(run.stdout + run.stderr, "[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]")
        self.assertIn("\\x1b]0;title", self.report("run"))

    def test_csv(self):
        self.train("run", *SETTINGS, "--steps", "9")
        rows = list(csv.DictReader(io.StringIO(self.report("run", "--csv"))))
        self.assertEqual([row["step"] for row in rows], ["2", "4", "6", "8", "9"])
        lines = [json.loads(line) for line in self.metrics("run").read_text().splitlines()]
        for row in rows:
            for line in (line for line in lines if line["step"] == int(row["step"])):
                self.assertEqual({"loss", "rate", "gradient_norm", "validation_loss"} & line.keys() - row.keys(), set())
                for name in line.keys() & row.keys():
                    self.assertEqual(float(row[name]), line[name])
                for name, value in line.get("memory", {}).items():
                    self.assertEqual(int(row["memory_" + name]), value)
        self.assertEqual(rows[0]["validation_loss"], "")

    def test_a_terminal_decides_the_width(self):
        self.train("run", *SETTINGS, "--steps", "9")
        widths = []
        for columns in (60, 120):
            ours, theirs = pty.openpty()
            fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
            process = subprocess.Popen([program.QUERN, "report", "--run", self.path("run")], stdout=theirs,
                                       env=program.environment() | {"NO_COLOR": "1"})
            os.close(theirs)
            text = b""
            try:
                while part := os.read(ours, 65536):
                    text += part
            except OSError:  # how a terminal ends
                pass
            os.close(ours)
            self.assertEqual(process.wait(program.TIMEOUT), 0)
            widths.append(next(len(line) for line in text.decode().splitlines() if "+---" in line))
        self.assertEqual(widths, [60, 120])

    def test_a_run_without_logged_steps(self):
        self.train("run", "--steps", "0")
        for remove in (False, True):
            if remove:
                self.metrics("run").unlink()
            self.assertIn("nothing logged yet", self.report("run"))
            self.assertIsNone(json.loads(self.report("run", "--json"))["loss"])
            self.assertEqual(len(self.report("run", "--csv").splitlines()), 1)

    def test_damaged_lines_are_named(self):
        self.train("run", *SETTINGS, "--steps", "8")
        lines = self.metrics("run").read_text().splitlines()
        at = next(i for i, line in enumerate(lines) if "validation_loss" in line)
        lines[at] = lines[at][:20]
        self.metrics("run").write_text("\n".join(lines) + '\n{"step":')
        says = f"metrics.jsonl:{len(lines) + 1}: expected a JSON object, found '{{\"step\":'"
        text = self.report("run")
        self.assertIn(f"metrics.jsonl:{at + 1}: expected a JSON object, found", text)
        self.assertIn(says, text)
        self.assertEqual(len(json.loads(self.report("run", "--json"))["warnings"]), 2)
        run = program.quern("report", "--run", self.path("run"), "--csv")
        self.assertEqual(run.returncode, 0)
        self.assertIn(says, run.stderr)  # and not among the numbers
        self.assertEqual(len(run.stdout.splitlines()), 1 + 4)

    def test_repeated_steps_and_losses_that_are_not_finite(self):
        self.train("run", *SETTINGS, "--steps", "8")
        with self.metrics("run").open("a") as file:
            for step, loss in ((4, "null"), (6, "1e30"), (8, "7.5")):
                file.write(f'{{"step":{step},"loss":{loss}}}\n')
        found = json.loads(self.report("run", "--json"))
        self.assertEqual(found["loss"], {"step": 8, "loss": 7.5})
        text = self.report("run")
        self.assertIn("x not finite (1)", text)
        self.assertEqual(len(self.report("run", "--csv").splitlines()), 1 + 4)

    def test_a_warning_of_training_is_in_the_report(self):
        self.train("run", *SETTINGS, "--steps", "8", "--set", "checkpoint.interval=4")
        model = self.folder / "run/checkpoints/step-00000008/model.safetensors"
        model.write_bytes(model.read_bytes()[:-1])
        self.resume("run")
        (warning,) = json.loads(self.report("run", "--json"))["warnings"]
        self.assertIn("step 4: ", warning)
        self.assertIn("step-00000008", warning)

    def compare(self, *arguments):
        return self.works("report", *(self.path(a) if a in ("a", "b", "c") else a for a in arguments))

    def test_several_runs_are_compared(self):
        self.train("a", *SETTINGS, "--steps", "9")
        self.train("b", *SETTINGS, "--steps", "6", "--rate", "0.001")
        text = self.compare("a", "b")
        self.assertEqual(text, self.works("report", "--run", self.path("a"), "--run", self.path("b")))
        self.assertEqual(text, self.works("report", self.path("a"), "--run", self.path("b")))
        self.assertTrue(text.startswith(f"A  {self.path('a')}\nB  {self.path('b')}\n\n"), text)
        settings = [line.split() for line in text.splitlines()[4:6]]
        self.assertEqual(settings, [["train.steps", "9", "6"], ["optimizer.rate", "0.002", "0.001"]])
        best = [json.loads(self.report(run, "--json"))["best_validation"] for run in "ab"]
        self.assertRegex(text, rf"best validation +{best[0]['loss']:.4f} at {best[0]['step']} +"
                               rf"{best[1]['loss']:.4f} at {best[1]['step']}\n")
        for part in ("steps            9 of 9", "6 of 6", "tokens/s", "peak memory", "MiB", "A, B, ... training"):
            self.assertIn(part, text)
        plot = [line[10:] for line in text.splitlines() if line[9:10] == "|"]
        for mark in "ABab":  # without colour
            self.assertTrue(any(mark in line for line in plot), (mark, text))
        self.assertNotIn("\033", text)
        self.assertLessEqual(max(len(line) for line in text.splitlines()[3:]), 80)

    def test_several_runs_as_json_and_csv(self):
        for name, seed in (("a", 1), ("b", 2), ("c", 3)):
            self.train(name, *SETTINGS, "--steps", "4", "--seed", seed)
        found = json.loads(self.compare("a", "b", "c", "--json"))
        self.assertEqual(found["differences"], {"train.seed": ["1", "2", "3"]})
        self.assertEqual(found["runs"], [json.loads(self.report(run, "--json")) for run in "abc"])
        rows = list(csv.DictReader(io.StringIO(self.compare("a", "b", "c", "--csv"))))
        self.assertEqual([(row.pop("run"), row["step"]) for row in rows],
                         [(self.path(run), step) for run in "abc" for step in ("2", "4")])
        self.assertEqual(rows[:2], list(csv.DictReader(io.StringIO(self.report("a", "--csv")))))

    def test_a_comparison_with_an_empty_or_missing_run(self):
        self.train("a", *SETTINGS, "--steps", "4")
        self.train("b", "--steps", "0")
        self.assertIn("0 of 0", self.compare("a", "b"))
        self.assertIn("the settings are equal", self.compare("b", "b"))
        self.assertIn("no loss was logged", self.compare("b", "b"))
        self.fails("report", self.path("a"), self.path("none"), says=["none: expected a run with a config.toml"])
        self.fails("report", *[self.path("a")] * 27, says=["expected at most 26 runs in a table, found 27; use --json"])
        self.assertEqual(len(json.loads(self.works("report", *[self.path("a")] * 27, "--json"))["runs"]), 27)

    def test_bad_input_is_refused(self):
        self.fails("report", says=["report: expected --run DIR"])
        self.fails("report", "--run", self.path("none"), says=["none: expected a run with a config.toml, found none"])
        self.train("run", "--steps", "1")
        self.fails("report", "--run", self.path("run"), "--json", "--csv", says=["--json or --csv, found both"])
        self.metrics("run").unlink()
        self.metrics("run").mkdir()
        self.fails("report", "--run", self.path("run"), says=["metrics.jsonl: expected a file, found a folder"])


if __name__ == "__main__":
    program.main()
