#!/usr/bin/env python3
"""Compares random games of chess with Stockfish: the legal moves of every position, and the FEN after every move of some.

CHESS_TOOL is the program of chess_tool.cc. Without Debian's stockfish the test is skipped (exit code 77).
"""

import os
import pathlib
import shutil
import subprocess
import sys

STOCKFISH = shutil.which("stockfish") or "/usr/games/stockfish"  # Debian's folder is not in every PATH
GAMES = int(os.environ.get("CHESS_GAMES", "200"))


class Stockfish:
    def __init__(self):
        self.process = subprocess.Popen([STOCKFISH], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, commands, last):
        """The lines of the answer, up to one that starts with `last`."""
        self.process.stdin.write(commands + "\n")
        self.process.stdin.flush()
        lines = []
        for line in self.process.stdout:
            lines.append(line.rstrip("\n"))
            if line.startswith(last):
                return lines
        raise EOFError("stockfish ended")

    def legal_moves(self, fen):
        lines = self.ask(f"position fen {fen}\ngo perft 1", "Nodes searched")
        return sorted(line.split(":")[0] for line in lines if line.endswith(": 1") and not line.startswith("Nodes"))

    def fen_after(self, fen, move):
        """Stockfish shows a passed square whenever a pawn stands beside, even if it is pinned."""
        lines = self.ask(f"position fen {fen} moves {move}\nd", "Checkers")
        return next(line for line in lines if line.startswith("Fen: "))[5:]


def random_games():
    requests = "".join(f"{seed} {seed % 4}\n" for seed in range(GAMES))
    output = subprocess.run([os.environ["CHESS_TOOL"]], input=requests, stdout=subprocess.PIPE, text=True, check=True).stdout
    return [[line.split("\t") for line in game.split("\n")] for game in output.rstrip("\n").split("\n\n")]


def differences(stockfish, game, with_fens):
    """The comparisons of a game that fail. A game that is over may still have moves: those are compared too."""
    for i, (fen, _, moves, played) in enumerate(game):
        wanted = stockfish.legal_moves(fen)
        if wanted != sorted(moves.split()):
            yield f"{fen}: Stockfish {wanted}, Quern {sorted(moves.split())}"
        if with_fens and played:
            wanted, found = stockfish.fen_after(fen, played).split(), game[i + 1][0].split()
            if found[3] == "-":
                wanted[3] = "-"
            if wanted != found:
                yield f"{fen} {played}: Stockfish {wanted}, Quern {found}"


def main():
    if not pathlib.Path(STOCKFISH).exists():
        print("chess_oracle: stockfish is not installed")
        return 77
    stockfish, positions, failures = Stockfish(), 0, 0
    games = random_games()
    assert len(games) == GAMES, f"{GAMES} games, {len(games)} results"
    for number, game in enumerate(games):
        positions += len(game)
        for difference in differences(stockfish, game, number % 10 == 0):
            failures += 1
            if failures <= 20:
                print(difference)
    stockfish.process.communicate("quit\n")
    print(f"chess_oracle: {GAMES} games, {positions} positions, {failures} differ")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
