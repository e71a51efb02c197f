"""The examples run as their first lines say, and do what they say."""

import pathlib
import re
import subprocess
import sys

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"


def test_self_play_learns_and_leaves_nothing_behind():
    before = set(pathlib.Path("/dev/shm").glob("quern-self-play-*"))
    done = subprocess.run([sys.executable, "-B", EXAMPLES / "self_play.py", "--seconds", "5"], capture_output=True,
                          text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    untrained = int(re.search(r"untrained, against chance: won (\d+)%", done.stdout).group(1))
    won, drawn, lost = map(int, re.search(r"\ntrained, against chance: won (\d+)%, drawn (\d+)%, lost (\d+)%", done.stdout).groups())
    assert won + drawn > untrained and lost < 30, done.stdout
    assert re.search(r"step +\d+ +error 0\.\d+ +\d+ positions, [78]\.\d samples of each", done.stdout), done.stdout
    assert set(pathlib.Path("/dev/shm").glob("quern-self-play-*")) == before
