"""The progress line of quern.train(): when it is shown, and what it leaves on the screen."""

import io
import os
import pty
import re
import signal
import subprocess
import sys
import time
import types

import pytest

import quern
from conftest import SMALL
from quern import _progress

START = f"import quern, sys, threading\nSMALL = {SMALL!r}\n"


def in_terminal(code, folder, interrupt_after=None):
    """Runs Python code in a terminal of its own; returns the exit code and everything it wrote."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([sys.executable, "-B", "-c", START + code], cwd=folder, stdout=theirs, stderr=theirs)
    os.close(theirs)
    text, started = b"", None
    try:
        while part := os.read(ours, 65536):
            text += part
            if interrupt_after and started is None and interrupt_after in text:
                started = time.monotonic()
                process.send_signal(signal.SIGINT)
    except OSError:  # how a terminal ends
        pass
    os.close(ours)
    return process.wait(60), text.decode()


def screen(text):
    """The lines that a person sees: a carriage return goes back to the beginning of the line."""
    lines = []
    for line in text.replace("\r\n", "\n").split("\n"):
        seen = ""
        for part in line.split("\r"):
            seen = part + seen[len(part):]
        lines.append(seen.rstrip())
    return lines


LAST = r"run \[#{20}\] 40/40  loss \d\.\d{3}  validation \d\.\d{3}  [\d,]+ tokens/s  took 0m\d\ds"


def test_a_terminal_has_one_line_that_stays(folder):
    code, text = in_terminal("quern.train(out='run', set=SMALL, steps=40)\nprint('next')", folder)
    seen = screen(text)
    assert code == 0 and len(seen) == 3, text
    assert re.fullmatch(LAST, seen[0]) and seen[1:] == ["next", ""]
    assert "\033" not in text  # blanks, not escape codes: a notebook does not know them all


def test_what_on_step_prints_is_not_mixed_with_it(folder):
    code, text = in_terminal("quern.train(out='run', set=SMALL, steps=40,"
                             " on_step=lambda s: print('at', s.step) if s.step % 10 == 0 else None)", folder)
    seen = screen(text)
    assert code == 0 and seen[:4] == ["at 10", "at 20", "at 30", "at 40"]
    assert re.fullmatch(LAST, seen[4]) and seen[5:] == [""]
    assert re.search(r"run \[#+-+\] 17/40", text)  # every step draws it again


def test_false_shows_nothing(folder):
    assert in_terminal("quern.train(out='run', set=SMALL, steps=40, progress=False)", folder) == (0, "")


def test_an_interrupt_leaves_whole_lines(folder):
    code, text = in_terminal("quern.train(out='run', set=SMALL, steps=10**6)", folder, interrupt_after=b"validation")
    seen = screen(text)
    assert code == -signal.SIGINT
    assert re.match(r"run \[-{20}\] \d+/1000000  loss .* took 0m\d\ds$", seen[0])
    assert seen[1] == "Traceback (most recent call last):" and seen[-2:] == ["KeyboardInterrupt", ""]
    assert quern.load(folder / "run").step > 0


def test_an_interrupt_while_the_line_is_written_leaves_nothing_of_it(monkeypatch):
    """The end of "left" stayed behind "took 0m00s" if Ctrl-C came before the length of the line was noted."""
    class Interrupted(io.StringIO):
        def flush(self):
            if "left" in self.getvalue() and "took" not in self.getvalue() and self.getvalue()[-1] != "\r":
                raise KeyboardInterrupt

    monkeypatch.setattr(sys, "stderr", Interrupted())
    bar = _progress._Bar(_progress._Screen(), "run", True)
    step = types.SimpleNamespace(step=1, steps=9, loss=2.0, validation_loss=None, tokens=10, seconds=0.1)
    with pytest.raises(KeyboardInterrupt):
        bar.show_step(step)
    bar.close()
    seen = screen(sys.stderr.getvalue())[0]
    assert seen.endswith("took 0m00s") and "left" not in seen


def test_several_threads_share_the_line(folder):
    code, text = in_terminal("threads = [threading.Thread(target=quern.train, kwargs=dict(out=f'run{i}', set=SMALL,"
                             " steps=150 * (i + 1), threads=1)) for i in range(3)]\n"
                             "for t in threads: t.start()\nfor t in threads: t.join()", folder)
    seen = screen(text)
    assert code == 0 and len(seen) == 4, seen
    assert sorted(line.split()[0] for line in seen[:3]) == ["run0", "run1", "run2"]
    assert all(re.search(r"\[#{20}\] (\d+)/\1 .* took", line) for line in seen[:3])
    assert re.search(r"run\d \d+/\d+  loss \d\.\d+[^\r|]*  \|  run\d ", text)


def test_an_error_before_the_first_step_leaves_nothing(folder):
    code, text = in_terminal("quern.train('nowhere.txt', out='run', set=SMALL)", folder)
    assert code == 1 and screen(text)[0] == "Traceback (most recent call last):"


@pytest.mark.parametrize("progress, lines", [(None, 0), (False, 0), (True, 2)])
def test_a_pipe_has_lines_only_if_asked(folder, progress, lines):
    done = subprocess.run([sys.executable, "-B", "-c",
                           START + f"quern.train(out='run', set=SMALL, steps=40, progress={progress})"],
                          cwd=folder, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (0, "", lines)
    assert "\r" not in done.stderr
    if lines:
        assert re.fullmatch(LAST, done.stderr.splitlines()[-1])


def test_a_notebook_is_recognised_without_importing_ipython(folder, monkeypatch):
    shell = type("ZMQInteractiveShell", (), {})()
    for known, shown in ((shell, True), (type("TerminalInteractiveShell", (), {})(), False), (None, False)):
        module = types.ModuleType("IPython")
        module.get_ipython = lambda known=known: known
        monkeypatch.setitem(sys.modules, "IPython", module)
        monkeypatch.setattr(sys, "stderr", io.StringIO())
        quern.train(out=folder / f"run-{type(known).__name__}", set=SMALL, steps=3)
        assert ("\r" in sys.stderr.getvalue()) == shown
    monkeypatch.delitem(sys.modules, "IPython")
    quern.train(out=folder / "without", set=SMALL, steps=3)
    assert "IPython" not in sys.modules and "tqdm" not in sys.modules


@pytest.mark.parametrize("stream", [None, "closed"])
def test_a_stream_that_cannot_be_written_ends_nothing(folder, monkeypatch, stream):
    if stream == "closed":
        stream = io.StringIO()
        stream.close()
    monkeypatch.setattr(sys, "stderr", stream)
    assert quern.train(out=folder / "run", set=SMALL, steps=3, progress=True).finished
