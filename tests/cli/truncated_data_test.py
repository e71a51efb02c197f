"""Files that another program truncates while they are mapped: one line instead of SIGBUS, and the run is intact."""

import os
import signal
import time

import program
from program import SMALL


class TruncatedData(program.ProgramTest):
    def setUp(self):
        super().setUp()
        self.write("text.txt", "".join(f"{i * i} is the square of {i}.\n" for i in range(20_000)))
        self.works("tokenize", self.path("text.txt"), "--vocabulary", "300", "--out", self.path("tokens"))
        self.shard = self.path("tokens/tokens.bin")
        self.settings = ("train", self.path("tokens"), *SMALL, "--steps", "3000", "--set", "checkpoint.interval=20",
                         "--set", "optimizer.schedule=constant", "--set", "train.validation_interval=20")

    def begin(self, run):
        process = program.start(*self.settings, "--run", self.path(run))
        self.addCleanup(process.kill)
        end = time.monotonic() + 60
        while not (self.folder / run / "checkpoints/step-00000020").exists():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.005)
        return process

    def test_token_shards(self):
        with open(self.shard, "rb") as file:
            tokens = file.read()
        for left in (0, 4096, len(tokens) // 2, len(tokens) - 1001):
            run = f"run-{left}"
            process = self.begin(run)
            os.truncate(self.shard, left)
            _, errors = process.communicate(timeout=program.TIMEOUT)
            self.assertEqual(process.returncode, 2, errors)
            self.assertRegex(errors, r"\Aquern: [^\n]*tokens\.bin: was truncated while in use: expected \d+ bytes, found "
                             rf"{left}\n\Z")
            with open(self.shard, "wb") as file:
                file.write(tokens)
            step = self.info(run)["step"]
            self.set_in_config(run, "steps", step + 10)
            self.resume(run)
            self.works(*self.settings, "--steps", step + 10, "--run", self.path("whole"))
            self.assertEqual(self.hash(run), self.hash("whole"), left)
            os.rename(self.path("whole"), self.path(f"whole-{left}"))

    def test_a_replaced_shard_is_read_to_the_end(self):
        """As `quern tokenize` does: a new file under the old name leaves the old one to those who have it mapped."""
        process = self.begin("run")
        os.rename(self.write("tokens/new", b"short"), self.shard)
        time.sleep(0.1)
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGTERM)
        self.assertEqual((process.communicate(timeout=program.TIMEOUT)[1], process.returncode), ("", 0))


if __name__ == "__main__":
    program.main()
