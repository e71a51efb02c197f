"""`python -m quern` is the program `quern`."""

import os
import signal
import subprocess
import sys

PROGRAM = os.environ["QUERN"]


def module(*arguments, **options):
    return subprocess.run([sys.executable, "-m", "quern", *arguments], capture_output=True, text=True, **options)


def test_output_equals_that_of_the_program():
    expected = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True)
    found = module("--version")
    assert (found.returncode, found.stdout, found.stderr) == (0, expected.stdout, "")


def test_errors_are_one_line_with_the_exit_code_of_the_program():
    found = module("generate", "--run", "nowhere")
    assert found.returncode == 2
    assert found.stderr.startswith("quern: ") and found.stderr.count("\n") == 1


def test_signals_reach_the_program(tmp_path):
    run = tmp_path / "run"
    command = [sys.executable, "-m", "quern", "train", "--run", run, "--steps", "1000000", "--set", "model.layers=1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            if line.startswith("step"):
                break
        process.send_signal(signal.SIGINT)
        output, error = process.communicate(timeout=60)
    assert process.returncode == 0 and error == ""
    assert "saved" in output
