#!/usr/bin/env python3
"""Compares random games of chess with python-chess: legal moves, FEN and result of every position.

Run by hand; neither the build nor the tests need python-chess:
    python3 -m venv venv && venv/bin/pip install chess==1.11.2
    cmake --build build/release --target chess_tool
    venv/bin/python scripts/check_chess.py build/release/tests/chess_tool --games 10000
"""

import argparse
import collections
import subprocess
import sys

try:
    import chess
except ImportError as error:
    sys.exit(f"check_chess: {error}; pip install chess==1.11.2")

MAX_MOVES = 512  # of src/games/chess_position.h


def expected_end(board: chess.Board):
    """The result of Quern's rules, and why."""
    if board.is_checkmate():
        return "lost", "checkmate"
    reasons = (("stalemate", board.is_stalemate), ("material", board.is_insufficient_material),
               ("fifty moves", lambda: board.halfmove_clock >= 100), ("repetition", lambda: board.is_repetition(3)),
               ("512 moves", lambda: len(board.move_stack) >= MAX_MOVES))
    return next((("drawn", reason) for reason, holds in reasons if holds()), ("-", None))


def compare(seed, lines, counts):
    board = chess.Board()
    for line in lines:
        fen, result, moves, played = line.split("\t")
        wanted_result, reason = expected_end(board)
        wanted = (board.fen(), wanted_result, sorted(move.uci() for move in board.legal_moves))
        found = (fen, result, sorted(moves.split()))
        if found != wanted:
            sys.exit(f"check_chess: game {seed}, move {len(board.move_stack)}:\n  python-chess {wanted}\n  Quern        {found}")
        counts["positions"] += 1
        if played:
            move = chess.Move.from_uci(played)
            counts["castlings"] += board.is_castling(move)
            counts["en passant"] += board.is_en_passant(move)
            counts["promotions"] += move.promotion is not None
            board.push(move)
        else:
            counts["ended by " + reason] += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool", help="the program of tests/games/chess_tool.cc")
    parser.add_argument("--games", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0, help="of the first game; the others follow")
    options = parser.parse_args()
    counts = collections.Counter()
    with subprocess.Popen([options.tool], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as tool:
        for seed in range(options.seed, options.seed + options.games):
            tool.stdin.write(f"{seed} {seed % 4}\n")
            tool.stdin.flush()
            compare(seed, iter(lambda: tool.stdout.readline().rstrip("\n"), ""), counts)
        tool.stdin.close()
    for name, count in sorted(counts.items()):
        print(f"{name}: {count:,}")
    print(f"check_chess: {options.games:,} games agree")


if __name__ == "__main__":
    main()
