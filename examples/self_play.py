#!/usr/bin/env python3
"""A board game of your own, learned by self-play in less than a minute.

    PYTHONPATH=build/release/python /usr/bin/python3 examples/self_play.py

Connect Three is Connect Four on a board of 4 x 4, where three stones in a line win. Its rules are the class below; Quern
plays it against itself with two threads, trains a network on the games, and then plays it against random moves.
"""

import argparse
import pathlib
import random
import tempfile

import numpy as np

import quern

SIDE = 4
LINES = [[row * SIDE + column + i * step for i in range(3)]
         for step, rows, columns in ((1, range(4), range(2)), (SIDE, range(2), range(4)),
                                     (SIDE + 1, range(2), range(2)), (SIDE - 1, range(2), range(2, 4)))
         for row in rows for column in columns]


class ConnectThree(quern.Game):
    """A state has 16 numbers, row by row from the top: 1 for a stone of the player to move, -1 for the opponent's."""

    name, shape, actions, max_moves = "connect-three", (2, SIDE, SIDE), SIDE, SIDE * SIDE
    symmetries = [([row * SIDE + SIDE - 1 - column for row in range(SIDE) for column in range(SIDE)],  # left and right
                   [SIDE - 1 - column for column in range(SIDE)])]

    def start(self):
        return (0,) * SIDE * SIDE

    def legal(self, state):
        return [column for column in range(SIDE) if state[column] == 0]

    def play(self, state, column):
        after = [-stone for stone in state]  # the opponent is the next to move
        after[max(square for square in range(column, SIDE * SIDE, SIDE) if state[square] == 0)] = -1
        return tuple(after)

    def result(self, state):
        if any(state[a] == state[b] == state[c] == -1 for a, b, c in LINES):
            return -1  # the opponent has just completed a line
        return None if 0 in state else 0

    def planes(self, state):
        board = np.array(state).reshape(SIDE, SIDE)
        return np.stack([board == 1, board == -1]).astype(np.float32)


def against_chance(choose, games=200):
    """Shares of games that choose(state) wins, draws and loses against random moves; it begins every other one."""
    game, chance, counts = ConnectThree(), random.Random(7), {1: 0, 0: 0, -1: 0}
    for number in range(games):
        state, turn = game.start(), number % 2
        while (result := game.result(state)) is None:
            state = game.play(state, choose(state) if turn == 0 else chance.choice(game.legal(state)))
            turn = 1 - turn
        counts[result if turn == 0 else -result] += 1
    return "won {:.0%}, drawn {:.0%}, lost {:.0%}".format(*(counts[result] / games for result in (1, 0, -1)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=300, help="steps of training (default 300)")
    parser.add_argument("--run", type=pathlib.Path, help="folder for the run; by default a temporary one")
    arguments = parser.parse_args()
    game, chance = ConnectThree(), random.Random(1)

    def show(generation):
        if generation.generation % 3 == 2:
            print(f"{generation.seconds:4.0f} s  step {generation.step:4d}  {generation.games:5d} games, "
                  f"{generation.game_length:.1f} moves each, {generation.first_wins:.0%} won by who began", flush=True)

    with tempfile.TemporaryDirectory() as folder:
        run = arguments.run or pathlib.Path(folder) / "run"
        quern.selfplay(game, out=run, steps=arguments.steps, threads=2, on_generation=show, progress=False)
        board = quern.load_board(run, game=game)
        print("random moves, against random moves:", against_chance(lambda state: chance.choice(game.legal(state))))
        print("the network, against random moves:", against_chance(lambda state: board.best_move(state, simulations=0)))
        print("with a search, against random moves:", against_chance(lambda state: board.best_move(state, simulations=50)))


if __name__ == "__main__":
    main()
