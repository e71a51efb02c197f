#!/usr/bin/env python3
"""Actors of your own and a learner of Quern's, on one replay buffer: tic-tac-toe in half a minute.

    PYTHONPATH=build/release/python /usr/bin/python3 examples/own_actors.py

Three actor processes play games by an algorithm that Quern does not know, with the newest network, and add positions to
a buffer in shared memory. quern.train_board() trains the network on samples of it, and hands new weights to the actors.
With the rate limit, each position is sampled eight times on average; the side that is ahead waits.
"""

import argparse
import multiprocessing
import os
import pathlib
import tempfile

import numpy as np

import quern

ACTORS = 3
COLUMNS = {"planes": quern.Column("float32", (2, 3, 3), encoding="bits"), "policy": ("float32", (9,)),
           "outcome": ("float32", (3,))}


def scores(game, network, states):
    """The expected result of each position for the player to move, from -1 to 1."""
    _, outcomes = network.evaluate(np.stack([game.planes(state) for state in states]))
    ends = [game.result(state) for state in states]
    return np.array([found if end is None else end for end, found in zip(ends, outcomes[:, 0] - outcomes[:, 2])])


def choices(game, network, state):
    """The probability of each action, -1 if it is not legal: by what the network expects after it."""
    legal = game.legal(state)
    weights = np.exp(4 * -scores(game, network, [game.play(state, action) for action in legal]))
    policy = np.full(game.actions, -1, np.float32)
    policy[legal] = weights / weights.sum()
    return policy


def play(game, network, random):
    """A game, as the rows of its positions."""
    state, planes, policies, result = game.start(), [], [], None
    while result is None:
        planes.append(game.planes(state))
        policies.append(choices(game, network, state))
        chances = np.maximum(policies[-1], 0).astype(float)
        state = game.play(state, int(random.choice(game.actions, p=chances / chances.sum())))
        result = game.result(state)
    won, drawn = np.float32([1, 0, 0]), np.float32([0, 1, 0])
    last = drawn if result == 0 else won if result < 0 else won[::-1]  # `result` is for who did not make the last move
    outcomes = [last if (len(planes) - i) % 2 == 1 else last[::-1] for i in range(len(planes))]
    return {"planes": np.stack(planes), "policy": np.stack(policies), "outcome": np.stack(outcomes)}


def actor(buffer, weights, seed, stop):
    game, random, network = quern.game("tictactoe"), np.random.default_rng(seed), weights.get()
    while not stop.is_set():
        while not weights.empty():
            network = weights.get()
        try:
            buffer.add_batch(play(game, network, random), timeout=0.5)
        except TimeoutError:
            pass  # the learner is behind, or has finished


def against_chance(network, games=200):
    """Shares of games won, drawn and lost against random moves; begins every other game."""
    game, random, results = quern.game("tictactoe"), np.random.default_rng(99), []
    for number in range(games):
        state, turn = game.start(), number % 2
        while (result := game.result(state)) is None:
            action = np.argmax(choices(game, network, state)) if turn == 0 else random.choice(game.legal(state))
            state, turn = game.play(state, action), 1 - turn
        results.append(result if turn == 0 else -result)
    return "won {:.0%}, drawn {:.0%}, lost {:.0%}".format(*(np.mean(np.array(results) == r) for r in (1, 0, -1)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1000, help="steps of training (default 1000)")
    steps = parser.parse_args().steps
    name = f"own-actors-{os.getpid()}"
    buffer = quern.ReplayBuffer(COLUMNS, 5_000, shared=name, samples_per_insert=8, min_size=200, slack=512)
    weights = [multiprocessing.Queue() for _ in range(ACTORS)]
    stop = multiprocessing.Event()
    actors = [multiprocessing.Process(target=actor, args=(buffer, queue, seed, stop)) for seed, queue in enumerate(weights)]
    untrained = []

    def publish(network):
        if not untrained:
            untrained.append(network)
        for queue in weights:
            queue.put(network)

    def show(step):
        if step.step % 200 == 0:
            print(f"step {step.step:5d}  loss {step.loss:.3f}  {buffer.total_added} positions, "
                  f"{buffer.stats()['sampled'] / buffer.total_added:.1f} samples of each", flush=True)

    try:
        for process in actors:
            process.start()
        with tempfile.TemporaryDirectory() as folder:
            run = pathlib.Path(folder) / "run"
            symmetries = quern.game("tictactoe").symmetries
            quern.train_board(buffer, out=run, steps=steps, symmetries=symmetries, publish=publish, on_step=show)
            print("untrained, against random moves:", against_chance(untrained[0]))
            print("trained, against random moves:", against_chance(quern.load_board(run)))
    finally:
        stop.set()
        for queue in weights:
            queue.cancel_join_thread()
        for process in actors:
            process.join()
        quern.ReplayBuffer.remove(shared=name)


if __name__ == "__main__":
    main()
