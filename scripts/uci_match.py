#!/usr/bin/env python3
"""Plays games of chess between two engines that speak UCI, and checks every move: of quern uci, or of any others.

    scripts/uci_match.py "build/release/quern uci runs/chess" /usr/games/stockfish --games 20 \\
        --first-go "nodes 100" --second-go "depth 1" --second-option "Skill Level=0"

The engines take turns at White. The referee is a Stockfish of its own, which lists the legal moves of every position; a
third occurrence of a position, fifty moves without a capture or pawn move, too few pieces to mate and --max-moves are
draws. Prints the result for the first engine. Exits with 1 if an engine made an illegal move, ended, or did not answer.
Debian's stockfish is the only thing needed besides Python.
"""

import argparse
import collections
import queue
import random
import shlex
import shutil
import subprocess
import sys
import threading

STOCKFISH = shutil.which("stockfish") or "/usr/games/stockfish"  # Debian's folder is not in every PATH


class Failure(Exception):
    """An engine broke the rules: of chess, or of UCI."""


class Engine:
    """A process that speaks UCI, and the thread that reads what it says."""

    def __init__(self, command, go="", options=(), timeout=60.0):
        self.command, self.go, self.timeout = command, go, timeout
        self.process = subprocess.Popen(shlex.split(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.lines = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()
        self.name = next((line[8:] for line in self.ask("uci", "uciok") if line.startswith("id name ")), command)
        for option in options:
            name, _, value = option.partition("=")
            self.say(f"setoption name {name} value {value}")
        self.ask("isready", "readyok")

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def say(self, line):
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except OSError as error:
            raise Failure(f"{self.command}: lost the connection: {error}") from error

    def ask(self, line, last):
        """The lines of the answer, up to one that starts with `last`."""
        self.say(line)
        answer = []
        while not answer or not answer[-1].startswith(last):
            try:
                found = self.lines.get(timeout=self.timeout)
            except queue.Empty:
                raise Failure(f"{self.command}: no {last} within {self.timeout:g} s after {line[:80]!r}") from None
            if found is None:
                raise Failure(f"{self.command}: ended after {line[:80]!r}")
            answer.append(found)
        return answer

    def move(self, position):
        self.say(position)
        return self.ask(f"go {self.go}", "bestmove")[-1].split()[1]

    def close(self):
        try:
            self.say("quit")
            self.process.stdin.close()
            return self.process.wait(timeout=self.timeout)
        except (Failure, OSError, subprocess.TimeoutExpired):
            self.process.kill()
            return self.process.wait()


class Referee:
    """The rules, as Stockfish knows them."""

    def __init__(self):
        self.engine = Engine(STOCKFISH)

    def legal(self, position):
        self.engine.say(position)
        lines = self.engine.ask("go perft 1", "Nodes searched")
        return sorted(line.split(":")[0] for line in lines if line.endswith(": 1") and not line.startswith("Nodes"))

    def board(self, position):
        """The FEN, and whether the player to move is in check."""
        self.engine.say(position)
        lines = self.engine.ask("d", "Checkers:")
        return next(line[5:] for line in lines if line.startswith("Fen: ")), lines[-1] != "Checkers: " and lines[-1] != "Checkers:"


def too_few_pieces(fen):
    pieces = fen.split()[0].lower()
    minor = sum(pieces.count(piece) for piece in "bn")
    return minor <= 1 and not any(piece in pieces for piece in "pqr")


class Game:
    def __init__(self, players, referee, moves=()):
        self.players, self.referee, self.moves = players, referee, list(moves)
        self.seen = collections.Counter()

    def position(self):
        return "position startpos" + (" moves " + " ".join(self.moves) if self.moves else "")

    def end(self, legal, max_moves):
        """How the game has ended: (points of White, reason), or None."""
        fen, check = self.referee.board(self.position())
        key = " ".join(fen.split()[:4])
        self.seen[key] += 1
        if not legal:
            return (0 if len(self.moves) % 2 == 0 else 1, "checkmate") if check else (0.5, "stalemate")
        draws = (("repetition", self.seen[key] >= 3), ("fifty moves", int(fen.split()[4]) >= 100),
                 ("material", too_few_pieces(fen)), (f"{max_moves} moves", len(self.moves) >= max_moves))
        return next(((0.5, reason) for reason, holds in draws if holds), None)

    def play(self, max_moves):
        for player in self.players:
            player.say("ucinewgame")
            player.ask("isready", "readyok")
        while True:
            legal = self.referee.legal(self.position())
            if ended := self.end(legal, max_moves):
                return ended
            player = self.players[len(self.moves) % 2]
            move = player.move(self.position())
            if move not in legal:
                raise Failure(f"{player.command}: illegal move {move} after {self.position()!r}; legal are {' '.join(legal)}")
            self.moves.append(move)


def opening(referee, count, words):
    moves = []
    while len(moves) < count:
        legal = referee.legal("position startpos" + (" moves " + " ".join(moves) if moves else ""))
        if not legal:
            moves = []
            continue
        moves.append(words.choice(legal))
    return moves


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("first", help="command of an engine, with its arguments, in quotes")
    parser.add_argument("second", nargs="?", default=STOCKFISH, help="the same (default: Stockfish)")
    parser.add_argument("--games", type=int, default=20)
    for name in ("first", "second"):
        parser.add_argument(f"--{name}-go", default="nodes 100", help="what follows `go` (default: nodes 100)")
        parser.add_argument(f"--{name}-option", action="append", default=[], metavar="NAME=VALUE", help="of setoption")
    parser.add_argument("--opening-moves", type=int, default=4, help="random moves before each pair of games (default: 4)")
    parser.add_argument("--max-moves", type=int, default=400, help="of both players, then a draw (default: 400)")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds to wait for an answer")
    parser.add_argument("--seed", type=int, default=1, help="of the openings")
    options = parser.parse_args()
    if not shutil.which(STOCKFISH):
        sys.exit("uci_match: expected Debian's package stockfish, the referee")
    words, wins, draws, losses, played, engines = random.Random(options.seed), 0, 0, 0, 0, []
    try:
        referee = Referee()
        for command, go, settings in ((options.first, options.first_go, options.first_option),
                                      (options.second, options.second_go, options.second_option)):
            engines.append(Engine(command, go, settings, options.timeout))
        start = []
        for number in range(options.games):
            if number % 2 == 0:
                start = opening(referee, options.opening_moves, words)
            white, black = engines if number % 2 == 0 else engines[::-1]
            game = Game((white, black), referee, start)
            points, reason = game.play(options.max_moves)
            mine = points if number % 2 == 0 else 1 - points
            wins, draws, losses, played = wins + (mine == 1), draws + (mine == 0.5), losses + (mine == 0), played + len(game.moves)
            print(f"game {number + 1}: {white.name} - {black.name}: {points:g} - {1 - points:g} ({reason}, {len(game.moves)} moves)",
                  flush=True)
        codes = [engine.close() for engine in [*engines, referee.engine]]
        if any(codes[:2]):
            raise Failure(f"expected exit codes 0 after quit, found {codes[:2]}")
    except Failure as failure:
        print(f"uci_match: {failure}", file=sys.stderr)
        return 1
    print(f"{engines[0].name} against {engines[1].name}: {wins} won, {draws} drawn, {losses} lost; {played} moves, all legal")
    return 0


if __name__ == "__main__":
    sys.exit(main())
