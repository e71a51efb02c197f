"""Integers on the command line are used exactly or refused."""

import unittest

from program import ProgramTest


class WholeNumbers(ProgramTest):
    def test_numbers_out_of_range_are_refused(self):
        """-1 was 2^64 - 1, and so was whatever does not fit 64 bits; bases came from zeros and an x."""
        most = {"--seed": 2**64 - 1, "--tokens": 2**64 - 1, "--top-k": 2**63 - 1, "--threads": 64}
        for flag, last in most.items():
            for value in ("-1", str(last + 1), str(2**70), "0x10", "1.5", "15e-1", " 5", "+5", "5 ", "many"):
                with self.subTest(flag=flag, value=value):
                    least = 1 if flag == "--threads" else 0
                    self.fails("generate", "--run", "none", f"{flag}={value}",
                               says=[flag, f"expected a whole number from {least} to {last}, found '{value}'"])
        self.fails("tokenize", "--vocabulary=-18446744073709551316", "--text", "a", says=["--vocabulary", "from 257 to 65536"])
        self.fails("bench", "train", "--steps=-1", says=["--steps", "found '-1'"])

    def test_train_options_are_parsed_like_others(self):
        """--seed 0x10 was 16 and 010 an error, the other way round than in `generate`; 1.0 was "found 1"."""
        for value in ("0x10", "1__000", "1.5", "15e-1", "+5", " 5", "0b1"):
            self.fails("train", "--print-config", "--seed", value,
                       says=["train.seed: expected a whole number from 0 to 18446744073709551615", f"found '{value}'"])
        for value in ("010", "10", "00018446744073709551615"):
            printed = self.works("train", "--print-config", "--seed", value)
            expected = str(int(value)) if int(value) < 2**63 else f'"{int(value)}"'
            self.assertIn(f"\nseed = {expected}\n", printed)
        self.write("real.toml", "[train]\nsteps = 1.5\n")
        self.fails("train", "--print-config", "--config", self.path("real.toml"), says=["train.steps", "found 1.5"])
        for value in ("0", "65", "x", "1.5", "-1"):
            self.fails("train", "--print-config", f"--threads={value}",
                       says=["--threads", f"expected a whole number from 1 to 64, found '{value}'"])

    def test_exponents_and_underscores(self):
        """People type 1e3 and 10_000. The value is exact: no float is involved."""
        for value, number in (("1e3", 1000), ("2.5e3", 2500), ("10_000", 10000), ("1.0", 1), ("1E+2", 100)):
            for arguments in (("--steps", value), ("--set", f"train.steps={value}")):
                self.assertIn(f"\nsteps = {number}\n", self.works("train", "--print-config", *arguments))
        seed = self.works("train", "--print-config", "--seed", "9.007199254740993e15")
        self.assertIn("\nseed = 9007199254740993\n", seed)
        self.write("whole.toml", "[train]\nsteps = 1e3\nbatch = 2.0\n")
        printed = self.works("train", "--print-config", "--config", self.path("whole.toml"))
        self.assertIn("\nsteps = 1000\n", printed)
        self.assertIn("\nbatch = 2\n", printed)
        self.fails("generate", "none", "--tokens", "1e3", says=["none: expected a run"])

    def test_suffixes_are_refused(self):
        """--memory counts in 1024s, so 10k could be two numbers."""
        self.fails("train", "--steps", "10k", says=["found '10k'; write 10e3"])
        self.fails("generate", "none", "--tokens", "2.5M", says=["found '2.5M'; write 2.5e6"])

    def test_real_numbers_as_people_type_them(self):
        for value in (".001", "1e-3", "0.001", "1.e-3"):
            self.assertIn("\nrate = 0.001\n", self.works("train", "--print-config", "--set", "optimizer.min_rate=0",
                                                         "--rate", value))
        for value in ("nan", "inf", "1e999", ".", "e3"):
            self.fails("train", "--print-config", "--rate", value, says=["optimizer.rate: expected a number"])

    def test_leading_zeros_are_ignored(self):
        """010 was 8."""
        self.train("run", "--steps", "2")
        text = lambda seed: self.works("generate", "--run", self.path("run"), "--prompt", "Once", "--seed", seed)
        self.assertEqual(text("010"), text("10"))
        self.assertNotEqual(text("010"), text("8"))


if __name__ == "__main__":
    unittest.main()
