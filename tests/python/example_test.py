"""The examples run as their first lines say, and do what they say."""

import pathlib
import re
import subprocess
import sys

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"


def output_of(name, *arguments):
    """What the example prints, and its process id."""
    with subprocess.Popen([sys.executable, "-B", EXAMPLES / name, *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as process:
        output, errors = process.communicate(timeout=240)
    assert process.returncode == 0, errors
    assert "Traceback" not in errors
    return output, process.pid


def results(output, player):
    """The percentages won, drawn and lost by a player."""
    return list(map(int, re.search(player + r", against random moves: won (\d+)%, drawn (\d+)%, lost (\d+)%", output).groups()))


def test_self_play_learns_a_game_in_python():
    output, _ = output_of("self_play.py", "--steps", "100")
    assert re.search(r" s  step +60 +300 games, \d\.\d moves each, \d+% won by who began", output), output
    assert results(output, "with a search")[0] > 75 > results(output, "random moves")[0], output


def test_own_actors_learn_and_leave_nothing_behind():
    output, process = output_of("own_actors.py", "--steps", "400")
    assert re.search(r"step +400 +loss \d\.\d+ +\d+ positions, [678]\.\d samples of each", output), output
    untrained, trained = results(output, "untrained"), results(output, "\ntrained")
    assert trained[0] > untrained[0] and trained[2] < untrained[2], output
    assert not list(pathlib.Path("/dev/shm").glob(f"quern-own-actors-{process}*"))  # others may run it too
