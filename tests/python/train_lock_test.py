"""One writer a run, whichever way it trains; and what ends a Python program saves the run."""

import os
import signal
import subprocess
import sys

import pytest

import quern
from conftest import QUERN, SMALL


def train(out, steps=12, **options):
    return quern.train(out=out, set={**SMALL, **options.pop("set", {})}, steps=steps, **options)


def test_a_second_run_in_the_folder_is_refused(folder):
    says = "this process trains in this folder already; wait until it ends or choose another folder"
    seen = []

    def callback(step):
        if step.step == 3:
            with pytest.raises(quern.Error, match=says):  # in this process
                quern.train(out=folder / "run", resume=True)
            other = subprocess.run([QUERN, "train", "--run", folder / "run", "--resume"], capture_output=True, text=True)
            seen.append((other.returncode, other.stderr))

    train(folder / "run", on_step=callback)
    [(code, errors)] = seen
    assert code == 2 and f"(pid {os.getpid()} on " in errors
    assert not (folder / "run/run.lock").exists()


def test_a_folder_with_other_files_is_refused(folder):
    (folder / "run").mkdir()
    (folder / "run/tokenizer.json").write_text("precious")
    with pytest.raises(quern.Error, match="expected a new or empty folder, found 'tokenizer.json'"):
        train(folder / "run")
    assert [path.read_text() for path in (folder / "run").iterdir()] == ["precious"]


SCRIPT = """
import os, signal, sys, time
import quern
sys.path.insert(0, {tests!r})
from conftest import SMALL
{body}
quern.train(out={out!r}, set=SMALL, steps=1_000_000, on_step=on_step)
"""


def run_script(folder, body, **options):
    script = SCRIPT.format(tests=os.path.dirname(__file__), body=body, out=str(folder / "run"))
    return subprocess.run([sys.executable, "-B", "-c", script], timeout=200, text=True, **options)


def test_a_forked_child_does_not_keep_the_lock_of_a_killed_parent(folder):
    body = """
def on_step(step):
    if step.step != 3: return
    ready, tell = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(tell, b"x")
        time.sleep(100)
        os._exit(0)
    os.read(ready, 1)
    print(child, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""
    read, write = os.pipe()
    ended = run_script(folder, body, stdout=write, stderr=subprocess.DEVNULL)
    child = int(os.read(read, 100))
    try:
        assert ended.returncode == -signal.SIGKILL
        assert quern.train(out=folder / "run", resume=True, on_step=lambda step: False).step > 0
    finally:
        os.kill(child, signal.SIGKILL)
        os.close(read)
        os.close(write)


def test_an_exception_in_a_signal_handler_saves(folder):
    body = """
signal.signal(signal.SIGTERM, signal.default_int_handler)
def on_step(step):
    if step.step == 5: os.kill(os.getpid(), signal.SIGTERM)
"""
    assert "KeyboardInterrupt" in run_script(folder, body, stderr=subprocess.PIPE).stderr
    assert quern.load(folder / "run").step in (5, 6)


def test_a_closed_pipe_saves(folder):
    body = """
def on_step(step): print(step, flush=True)
"""
    read, write = os.pipe()
    os.close(read)
    assert "BrokenPipeError" in run_script(folder, body, stdout=write, stderr=subprocess.PIPE).stderr
    os.close(write)
    assert quern.load(folder / "run").step == 1
