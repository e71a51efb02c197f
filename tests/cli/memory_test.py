"""Precision, recompute and the memory limit: what is planned is what is used, and the result depends on precision alone."""

import json
import re

import program

# Large enough that what is planned is most of the process.
WIDE = ("--layers", "6", "--heads", "4", "--width", "256", "--context", "128", "--batch", "8", "--threads", "2",
        "--set", "data.stories_bytes=50000", "--set", "train.validation_batches=1")
UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def amount(text):
    number, unit = text.split()
    return float(number) * UNITS[unit]


class Plan(program.ProgramTest):

    def total(self, *arguments):
        return json.loads(self.works("plan", *arguments, "--json"))["bytes"]["total"]

    def taken(self, output):
        """Peak and plan, from the last line but one."""
        peak, planned = re.search(r"memory: peak (.*), planned (.*)", output).groups()
        return amount(peak), amount(planned)

    def test_the_plan_is_within_five_per_cent(self):
        for i, flags in enumerate((("--precision", "fp32"), ("--precision", "bf16", "--recompute", "sqrt"),
                                   ("--precision", "fp16", "--recompute", "every-layer"))):
            peak, planned = self.taken(self.works("train", *WIDE, *flags, "--steps", "2", "--run", self.path(f"run{i}")))
            if not program.sanitized():
                self.assertLess(abs(peak / planned - 1), 0.05, f"{flags}: {peak} of {planned}")
            self.assertLess(abs(self.total(*WIDE, *flags) / planned - 1), 0.05)
        # Resuming needs no more than starting.
        peak, planned = self.taken(self.resume("run0", "--steps", "4"))
        if not program.sanitized():
            self.assertLess(peak, 1.05 * planned)

    def test_has_a_row_for_every_purpose(self):
        text = self.works("plan", "--preset", "gpt2")
        for row in ("weights", "packed weights", "gradient", "moments", "activations", "working buffers", "logits", "total"):
            self.assertRegex(text, rf"(?m)^  {row} +\d")

    def test_a_limit_is_met_or_the_smallest_is_named(self):
        free = self.total(*WIDE)
        limit = int(free * 0.75)
        self.assertLessEqual(self.total(*WIDE, "--memory", limit), limit)
        self.assertIn("slower than without the limit", self.works("plan", *WIDE, "--memory", limit))
        refused = self.fails("plan", *WIDE, "--memory", "20M", says=["train.memory: expected at least", "found 20M"])
        least = int(re.search(r"at least (\d+)M", refused.stderr).group(1))
        self.works("plan", *WIDE, "--memory", f"{least + 1}M")
        self.fails("train", *WIDE, "--memory", "20M", "--run", self.path("run"), says=["train.memory: expected at least"])
        self.assertFalse((self.folder / "run").exists())


class Result(program.ProgramTest):

    def hash_of(self, name, *flags):
        self.train(name, "--layers", "5", "--dropout", "0.1", "--steps", "5", *flags)
        return self.hash(name)

    def test_depends_on_precision_and_not_on_recompute_or_threads(self):
        hashes = set()
        for precision in ("fp32", "bf16", "fp16"):
            same = {self.hash_of(f"{precision}-{recompute}-{threads}", "--precision", precision, "--recompute", recompute,
                                 "--threads", threads)
                    for recompute, threads in (("none", 1), ("sqrt", 4), ("every-layer", 1), ("interval=3", 4))}
            self.assertEqual(len(same), 1, precision)
            hashes |= same
        self.assertEqual(len(hashes), 3)

    def test_resume_may_recompute_and_records_another_precision(self):
        self.hash_of("run", "--precision", "bf16")
        self.set_in_config("run", "steps", 7)
        self.set_in_config("run", "precision", '"fp16"')
        self.fails("train", "--run", self.path("run"), "--resume", says=["train.precision: expected bf16", "found fp16"])
        self.set_in_config("run", "precision", '"bf16"')
        self.works("train", "--run", self.path("run"), "--resume", "--recompute", "every-layer", "--memory", "1G")
        self.assertEqual(self.info("run")["step"], 7)
        output = self.resume("run", "--steps", "9", "--precision", "fp32")
        self.assertIn('train.precision "bf16" -> "fp32"', output)

    def test_a_trained_model_is_used_in_its_precision(self):
        self.hash_of("run", "--precision", "bf16", "--set", "train.validation_batches=0")
        loss = json.loads(self.works("eval", "--run", self.path("run"), "--json"))["loss"]
        self.assertAlmostEqual(loss, self.info("run")["val_loss"], places=12)
        self.works("generate", "--run", self.path("run"), "--tokens", "20")


class BadInput(program.ProgramTest):

    def test_one_line_names_flag_expected_and_found(self):
        for flags, says in ((("--precision", "fp8"), ["--precision", "fp32, bf16 or fp16", "fp8"]),
                            (("--recompute", "some"), ["--recompute", "interval=K", "some"]),
                            (("--recompute", "interval=0"), ["--recompute", "interval=K", "interval=0"]),
                            (("--recompute", "interval=5"), ["train.recompute", "model.layers, which is 4", "found 5"]),
                            (("--memory", "lots"), ["--memory", "512M", "lots"]),
                            (("--memory", "-5M"), ["512M", "-5M"])):
            self.fails("plan", *flags, says=says)
            self.fails("train", *flags, "--run", self.path("run"), says=says)


if __name__ == "__main__":
    program.main()
