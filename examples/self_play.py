#!/usr/bin/env python3
"""Actors and a learner on one replay buffer: tic-tac-toe, learned from self-play in half a minute.

    PYTHONPATH=build/release/python /usr/bin/python3 examples/self_play.py

Three actor processes play against themselves and add every position with the result of its game. One learner samples
positions, newer ones more often, and fits a small network that predicts the winner. The actors read its weights from a
second, small buffer, so everything that processes share is a ReplayBuffer: no server, no queue, no lock. With the rate
limit, each position is sampled eight times on average; the side that is ahead waits.
"""

import argparse
import multiprocessing
import os
import time

import numpy as np

import quern

LINES = np.array([[0, 1, 2], [3, 4, 5], [6, 7, 8], [0, 3, 6], [1, 4, 7], [2, 5, 8], [0, 4, 8], [2, 4, 6]])
HIDDEN, ACTORS, BATCH = 64, 3, 128
POSITIONS = {"planes": quern.Column("float32", (2, 9), encoding="bits"), "result": "float32"}
WEIGHTS = {"hidden": ("float32", (18, HIDDEN)), "bias": ("float32", (HIDDEN,)), "out": ("float32", (HIDDEN,))}


def winner(board):
    """1 or -1 if that player has a line, otherwise 0."""
    sums = board[LINES].sum(axis=1)
    return 1 if 3 in sums else -1 if -3 in sums else 0


def planes_of(board, player):
    """The stones of the player to move, and of the opponent."""
    return np.stack([board == player, board == -player]).astype(np.float32)


def value_of(weights, planes):
    """The expected result for the player to move, from -1 (lost) to 1 (won). planes: (B, 2, 9)."""
    hidden = np.maximum(planes.reshape(len(planes), 18) @ weights["hidden"] + weights["bias"], 0)
    return np.tanh(hidden @ weights["out"]), hidden


def choose(weights, board, player, random, chance):
    """The move with the lowest expected result for the opponent; with probability `chance`, a random move."""
    moves = np.flatnonzero(board == 0)
    if weights is None or random.random() < chance:
        return random.choice(moves)
    after = np.repeat(board[None], len(moves), axis=0)
    after[np.arange(len(moves)), moves] = player
    expected = [1.0 if winner(position) == player else -value_of(weights, planes_of(position, -player)[None])[0][0]
                for position in after]
    return moves[int(np.argmax(expected))]


def play(weights, random):
    """The positions of one game, and the final result for the player to move in each."""
    board, player, positions, players = np.zeros(9, np.int8), 1, [], []
    while winner(board) == 0 and (board == 0).any():
        positions.append(planes_of(board, player))
        players.append(player)
        board[choose(weights, board, player, random, chance=0.2)] = player
        player = -player
    positions.append(planes_of(board, player))
    players.append(player)
    return np.stack(positions), np.array(players, np.float32) * winner(board)


def actor(positions, published, seed, stop):
    random = np.random.default_rng(seed)
    while not stop.is_set():
        # The newest complete weights; the short half-life makes older ones rare (1 in 1000).
        weights = published.sample(1, rule="recent", half_life=0.1) if len(published) else None
        weights = weights and {name: weights[name][0] for name in WEIGHTS}
        planes, results = play(weights, random)
        try:
            positions.add_batch(planes=planes, result=results, timeout=0.5)
        except TimeoutError:
            pass  # the learner is behind, or has finished


def learn(weights, moments, batch, rate):
    """One step of gradient descent with momentum on the squared error; returns the error before the step."""
    value, hidden = value_of(weights, batch["planes"])
    error = value - batch["result"]
    slope = (2 / len(value)) * error * (1 - value**2)
    back = slope[:, None] * weights["out"] * (hidden > 0)
    gradient = {"out": hidden.T @ slope, "bias": back.sum(axis=0), "hidden": batch["planes"].reshape(-1, 18).T @ back}
    for name, step in gradient.items():
        moments[name] = 0.9 * moments[name] + step
        weights[name] -= rate * moments[name]
    return float((error**2).mean())


def against_chance(weights, games=400):
    """Fractions of games won, drawn and lost against random moves; moves first in half of them."""
    random, outcomes = np.random.default_rng(99), []
    for game in range(games):
        board, player, ours = np.zeros(9, np.int8), 1, 1 if game % 2 == 0 else -1
        while winner(board) == 0 and (board == 0).any():
            board[choose(weights if player == ours else None, board, player, random, chance=0)] = player
            player = -player
        outcomes.append(winner(board) * ours)
    return [np.mean(np.array(outcomes) == outcome) for outcome in (1, 0, -1)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=25, help="training time (default 25)")
    seconds = parser.parse_args().seconds
    name = f"self-play-{os.getpid()}"
    positions = quern.ReplayBuffer(POSITIONS, 20_000, shared=name, samples_per_insert=8, min_size=500, slack=4 * BATCH)
    published = quern.ReplayBuffer(WEIGHTS, 4, shared=f"{name}-weights")
    random = np.random.default_rng(0)
    weights = {n: (random.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32) for n, (_, shape) in WEIGHTS.items()}
    moments = {n: np.zeros_like(array) for n, array in weights.items()}
    stop = multiprocessing.Event()
    actors = [multiprocessing.Process(target=actor, args=(positions, published, seed, stop)) for seed in range(ACTORS)]
    try:
        print(f"untrained, against random moves: won {against_chance(weights)[0]:.0%}")
        for process in actors:
            process.start()
        batch, start, shown, step, errors = None, time.monotonic(), 0.0, 0, []
        while (elapsed := time.monotonic() - start) < seconds:
            batch = positions.sample(BATCH, out=batch, rule="recent", half_life=5000)
            errors.append(learn(weights, moments, batch, rate=0.02))
            step += 1
            if step % 20 == 0:
                published.add(weights)
            if elapsed - shown >= 2.5:
                shown = elapsed
                print(f"{elapsed:4.0f} s  step {step:6d}  error {np.mean(errors[-500:]):.3f}  {positions.total_added} positions, "
                      f"{step * BATCH / positions.total_added:.1f} samples per position", flush=True)
        won, drawn, lost = against_chance(weights)
        print(f"trained, against random moves: won {won:.0%}, drawn {drawn:.0%}, lost {lost:.0%}")
    finally:
        stop.set()
        for process in actors:
            process.join()
        quern.ReplayBuffer.remove(shared=name)
        quern.ReplayBuffer.remove(shared=f"{name}-weights")


if __name__ == "__main__":
    main()
