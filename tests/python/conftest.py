"""Shared by the tests of the Python package: a small run of the program, made once per file."""

import json
import os
import pathlib
import subprocess
import tempfile

import pytest

QUERN = os.environ["QUERN"]

# Hundreds of steps a second. What quern.train() takes as `set`.
SMALL = {"model.layers": 1, "model.heads": 2, "model.width": 32, "model.context": 32, "train.batch": 8,
         "data.stories_bytes": 50_000, "train.validation_batches": 1, "optimizer.warmup": 2}


def program(*arguments):
    """What the program prints; it must end well."""
    done = subprocess.run([QUERN, *map(str, arguments)], capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stderr
    return done.stdout


def program_json(*arguments):
    return json.loads(program(*arguments, "--json"))


def train_by_program(run, *arguments, settings=SMALL):
    flags = [flag for name, value in settings.items() for flag in ("--set", f"{name}={value}")]
    program("train", "--run", run, *flags, *arguments)


def memory_folder():
    """In memory where there is such a place: saving syncs, and a disk takes 10 ms for each."""
    return tempfile.TemporaryDirectory(prefix="quern-test-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)


@pytest.fixture
def folder():
    with memory_folder() as path:
        yield pathlib.Path(path)


@pytest.fixture(scope="module")
def run():
    """The folder of a trained run."""
    with memory_folder() as path:
        train_by_program(pathlib.Path(path) / "run", "--steps", "60")
        yield pathlib.Path(path) / "run"
