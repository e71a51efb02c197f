#!/usr/bin/env python3
"""Plays Connect Four by tree search with a network in PyTorch, and with Quern, and prints evaluations per second.

Run by hand; neither the build nor the tests need PyTorch:
    python3 -m venv venv && venv/bin/pip install torch==2.13.0 numpy
    venv/bin/python benchmarks/peers/pytorch_selfplay.py --threads 2

The network is that of `quern selfplay connect4`: a transformer over the squares with random weights, so only its shape
matters. Both sides play 256 games at once and evaluate one position of each in a batch: PUCT with 100 simulations per
move. The peer's search and rules are plain Python, as in most programs of this kind, and it has no learner; Quern's
figure is that of `quern bench selfplay`, whole loop with the learner. `network` is the network alone, with batches of 256
positions. Rounds are interleaved and the best of each is reported.
"""

import argparse
import json
import math
import pathlib
import random
import subprocess
import sys
import time

try:
    import numpy as np
    import torch
    import torch.nn.functional as F
except ImportError:
    sys.exit("pytorch_selfplay: PyTorch is not installed; pip install torch==2.13.0 numpy")

PROGRAM = pathlib.Path(__file__).resolve().parents[2] / "build/release/quern"
LAYERS, HEADS, WIDTH, SQUARES, PLANES, ACTIONS = 4, 2, 64, 42, 3, 7
GAMES, SIMULATIONS, C_PUCT = 256, 100, 1.5


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm_1, self.norm_2 = torch.nn.RMSNorm(WIDTH), torch.nn.RMSNorm(WIDTH)
        self.qkv, self.out = torch.nn.Linear(WIDTH, 3 * WIDTH), torch.nn.Linear(WIDTH, WIDTH)
        self.up, self.down = torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        q, k, v = (part.view(*x.shape[:2], HEADS, -1).transpose(1, 2) for part in self.qkv(self.norm_1(x)).chunk(3, -1))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(x.shape))
        return x + self.down(F.relu(self.up(self.norm_2(x))).square())


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.planes = torch.nn.Linear(PLANES, WIDTH, bias=False)
        self.squares = torch.nn.Parameter(torch.randn(SQUARES, WIDTH) * 0.02)
        self.blocks = torch.nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm = torch.nn.RMSNorm(WIDTH)
        self.policy = torch.nn.Linear(WIDTH, 1, bias=False)
        self.hidden, self.outcome = torch.nn.Linear(WIDTH, WIDTH), torch.nn.Linear(WIDTH, 3)

    def forward(self, planes):  # (batch, planes, squares)
        x = self.norm(self.blocks(self.planes(planes.transpose(1, 2)) + self.squares))
        value = self.outcome(F.relu(self.hidden(x.mean(1))).square())
        return self.policy(x)[:, :ACTIONS, 0], value.softmax(-1)


class Board:
    """Bitboards with 7 bits a column, of the player to move and of all stones."""

    def __init__(self, own=0, everything=0):
        self.own, self.everything = own, everything

    def legal(self):
        return [column for column in range(7) if not self.everything >> (7 * column + 5) & 1]

    def after(self, column):
        stones = self.everything | self.everything + (1 << 7 * column)
        return Board(self.own ^ self.everything, stones)

    def lost(self):
        other = self.own ^ self.everything
        for step in (1, 6, 7, 8):
            pairs = other & other >> step
            if pairs & pairs >> 2 * step:
                return True
        return False

    def over(self):
        return self.lost() or not self.legal()

    def planes(self):
        out = np.zeros((PLANES, 6, 7), np.float32)
        other = self.own ^ self.everything
        for column in range(7):
            for row in range(6):
                bit = 7 * column + row
                out[0, 5 - row, column] = self.own >> bit & 1
                out[1, 5 - row, column] = other >> bit & 1
        out[2] = bin(self.everything).count("1") % 2
        return out.reshape(PLANES, SQUARES)


class Node:
    def __init__(self, board):
        self.board, self.priors, self.visits, self.children = board, {}, 0, {}
        self.sums, self.counts = {}, {}

    def select(self):
        root = math.sqrt(max(1, self.visits))
        return max(self.priors, key=lambda a: (self.sums[a] / self.counts[a] if self.counts[a] else 0.0) +
                   C_PUCT * self.priors[a] * root / (1 + self.counts[a]))


class Game:
    """A search that hands out one leaf at a time; a random move by visits when it is done."""

    def __init__(self):
        self.restart()

    def restart(self, board=None):
        self.root = Node(board or Board())
        self.left = SIMULATIONS + 1

    def leaf(self):
        while True:
            if self.left == 0:
                counts = self.root.counts
                move = random.choices(list(counts), [count + 1e-9 for count in counts.values()])[0]
                board = self.root.board.after(move)
                self.restart(None if board.over() else board)
            self.left -= 1
            node, self.path = self.root, []
            while node.priors:
                action = node.select()
                self.path.append((node, action))
                if action not in node.children:
                    node.children[action] = Node(node.board.after(action))
                node = node.children[action]
            if not node.board.over():
                self.waiting = node
                return node.board
            self.back_up(-1.0 if node.board.lost() else 0.0)

    def take(self, logits, value):
        legal = self.waiting.board.legal()
        weights = [math.exp(logits[action]) for action in legal]
        total = sum(weights)
        for action, weight in zip(legal, weights):
            self.waiting.priors[action], self.waiting.sums[action], self.waiting.counts[action] = weight / total, 0.0, 0
        self.back_up(value)

    def back_up(self, value):
        for node, action in reversed(self.path):
            value = -value
            node.visits += 1
            node.sums[action] += value
            node.counts[action] += 1


@torch.inference_mode()
def peer_loop(network, games, seconds):
    start, done = time.perf_counter(), 0
    while (taken := time.perf_counter() - start) < seconds:
        boards = [game.leaf() for game in games]
        logits, outcomes = network(torch.from_numpy(np.stack([board.planes() for board in boards])))
        logits, values = logits.tolist(), (outcomes[:, 0] - outcomes[:, 2]).tolist()
        for game, logit, value in zip(games, logits, values):
            game.take(logit, value)
        done += len(games)
    return done / taken


@torch.inference_mode()
def network_speed(network, seconds):
    planes, done = torch.rand(GAMES, PLANES, SQUARES), 0
    network(planes)
    start = time.perf_counter()
    while (taken := time.perf_counter() - start) < seconds:
        network(planes)
        done += GAMES
    return done / taken


def quern(threads):
    run = subprocess.run([PROGRAM, "bench", "selfplay", "--threads", str(threads), "--json", "--filter", "loop"], check=False,
                         capture_output=True, text=True)
    result = json.loads(run.stdout)["results"][0]
    return result["value"], result["reference_value"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=10, help="of each of the peer's measurements")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    random.seed(1)
    eager, games = Network().eval(), [Game() for _ in range(GAMES)]
    compiled = torch.compile(eager)
    best = {}
    for _ in range(options.rounds):
        loop, alone = quern(options.threads)
        for name, value in (("quern", loop), ("quern network", alone),
                            ("PyTorch eager network", network_speed(eager, options.seconds)),
                            ("PyTorch compiled network", network_speed(compiled, options.seconds)),
                            ("PyTorch", peer_loop(eager, games, options.seconds))):
            best[name] = max(best.get(name, 0), value)
    for name, value in best.items():
        print(f"{name:26}{value:10.0f} evaluations/s")
    peer = max(best["PyTorch eager network"], best["PyTorch compiled network"])
    print(f"loop {best['quern'] / best['PyTorch']:.1f} times, network {best['quern network'] / peer:.2f} times")


if __name__ == "__main__":
    main()
