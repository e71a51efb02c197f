"""scripts/uci_match.py: two short games of quern uci against Stockfish, and what it says of engines that break the rules."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

QUERN = os.environ["QUERN"]
MATCH = pathlib.Path(__file__).parents[2] / "scripts" / "uci_match.py"
CHESS = ("chess", "--steps", "1", "--batch", "4", "--set", "selfplay.generation_steps=1", "--set", "selfplay.generation_games=1",
         "--set", "selfplay.simulations=1", "--set", "selfplay.cheap_simulations=1", "--set", "optimizer.warmup=0", "--set",
         "model.layers=1", "--set", "model.width=32", "--set", "selfplay.rating_interval=0")

# Speaks UCI well enough to make one move, or none.
BROKEN = """import sys
for line in sys.stdin:
    word = line.split()[0]
    if word == "uci":
        print("id name Broken\\nuciok", flush=True)
    elif word == "isready":
        print("readyok", flush=True)
    elif word == "go":
        if {ends}:
            break
        print("bestmove e2e5", flush=True)
"""


def match(*arguments):
    return subprocess.run([sys.executable, "-B", MATCH, *arguments], capture_output=True, text=True, timeout=200, check=False)


def main():
    if not (shutil.which("stockfish") or pathlib.Path("/usr/games/stockfish").exists()):
        print("uci_match: stockfish is not installed")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        run = f"{folder}/run"
        subprocess.run([QUERN, "selfplay", *CHESS, "--run", run], check=True, capture_output=True)
        games = match(f"{QUERN} uci {run}", "--games", "2", "--first-go", "nodes 3", "--second-go", "depth 1", "--second-option",
                      "Skill Level=0", "--max-moves", "60")
        assert games.returncode == 0 and games.stderr == "", games
        lines = games.stdout.splitlines()
        assert len(lines) == 3 and lines[2].endswith("moves, all legal"), games
        for ends, expected in ((False, "illegal move e2e5 after 'position startpos'"), (True, "ended after 'go nodes 100'")):
            script = pathlib.Path(folder) / "broken.py"
            script.write_text(BROKEN.format(ends=ends))
            broken = match(f"{sys.executable} {script}", "--games", "2", "--opening-moves", "0")
            assert broken.returncode == 1 and expected in broken.stderr, broken
    return 0


if __name__ == "__main__":
    sys.exit(main())
