"""Shared by the tests of the program: starting it, a small model, folders. QUERN names the program to test."""

import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

QUERN = os.environ["QUERN"]
TIMEOUT = 500  # of one command, in seconds: a sanitizer makes the program many times slower

# Small enough for hundreds of steps a second; the stories are cut to what the steps can see.
SMALL = ("--layers", "1", "--heads", "2", "--width", "32", "--context", "32", "--batch", "8",
         "--set", "data.stories_bytes=50000", "--set", "train.validation_batches=1", "--set", "optimizer.warmup=2")

TEXT = "".join(f"A line of text with the number {i * i}.\n" for i in range(400))


def sanitized():
    """Whether the program has a sanitizer in it, which has memory of its own."""
    return os.environ.get("QUERN_SANITIZED", "") != ""


def environment():
    return {key: value for key, value in os.environ.items() if key != "QUERN_TARGET"}


def quern(*arguments, **options):
    return subprocess.run([QUERN, *map(str, arguments)], capture_output=True, text=True, env=environment(),
                          timeout=TIMEOUT, **options)


def start(*arguments, **options):
    """A process that runs on, with its output in a pipe."""
    return subprocess.Popen([QUERN, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env=environment(), **options)


def temporary_folder():
    # In memory where there is such a place: tests of saving sync hundreds of times, and a disk takes 10 ms for each.
    return tempfile.TemporaryDirectory(prefix="quern-test-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)


def contents(folder):
    """Every file below the folder, by its path in it, with the digest of its bytes."""
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(pathlib.Path(folder).rglob("*")) if path.is_file()}


class ProgramTest(unittest.TestCase):
    """A test with a folder of its own, and with the words for what a command should do."""

    def setUp(self):
        folder = temporary_folder()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def path(self, name):
        return str(self.folder / name)

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    def works(self, *arguments, **options):
        """Runs a command that must end well and say nothing on standard error; returns what it printed."""
        run = quern(*arguments, **options)
        self.assertEqual((run.returncode, run.stderr), (0, ""), (arguments, run.stdout))
        return run.stdout

    def fails(self, *arguments, says, **options):
        """Runs a command that must end with exit code 2 and one line that has all of `says`."""
        run = quern(*arguments, **options)
        self.assertEqual(run.returncode, 2, (arguments, run.stdout, run.stderr))
        self.assertRegex(run.stderr, r"\Aquern: [^\n]+\n\Z", arguments)
        for part in says:
            self.assertIn(part, run.stderr)
        return run

    def train(self, run, *arguments):
        return self.works("train", *SMALL, *arguments, "--run", self.path(run))

    def resume(self, run, *arguments):
        return self.works("train", "--run", self.path(run), "--resume", *arguments)

    def info(self, run):
        return json.loads(self.works("info", "--run", self.path(run), "--json"))

    def hash(self, run):
        return self.info(run)["weights_hash"]

    def set_in_config(self, run, name, value):
        """Changes a line of the run's config.toml, as with an editor."""
        config = self.folder / run / "config.toml"
        text, count = re.subn(rf"(?m)^{name} = .*$", f"{name} = {value}", config.read_text())
        self.assertEqual(count, 1, name)
        config.write_text(text)


def main():
    unittest.main(argv=[sys.argv[0], *(["-v"] if "VERBOSE" in os.environ else []), *sys.argv[1:]])
