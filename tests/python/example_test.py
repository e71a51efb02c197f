"""The examples run as their first lines say, and do what they say."""

import pathlib
import re
import subprocess
import sys

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"


def test_self_play_learns_and_leaves_nothing_behind():
    with subprocess.Popen([sys.executable, "-B", EXAMPLES / "self_play.py", "--seconds", "5"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as process:
        output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert "Traceback" not in errors
    untrained = int(re.search(r"untrained, against random moves: won (\d+)%", output).group(1))
    won, drawn, lost = map(int, re.search(r"\ntrained, against random moves: won (\d+)%, drawn (\d+)%, lost (\d+)%", output).groups())
    assert won + drawn > untrained and lost < 30, output
    assert re.search(r"step +\d+ +error 0\.\d+ +\d+ positions, [78]\.\d samples per position", output), output
    assert not list(pathlib.Path("/dev/shm").glob(f"quern-self-play-{process.pid}*"))  # others may run it too
