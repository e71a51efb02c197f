#!/usr/bin/env python3
"""Trains nanoGPT's recipes for Tiny Shakespeare with PyTorch on the CPU, for scripts/bench_quality.py.

Run by hand; neither the build nor the tests need PyTorch or nanoGPT:
    python3 -m venv venv && venv/bin/pip install torch==2.13.0
    git clone https://github.com/karpathy/nanoGPT
    venv/bin/python benchmarks/peers/nanogpt_quality.py cpu --nanogpt nanoGPT --text tinyshakespeare.txt --out cpu.jsonl
    venv/bin/python benchmarks/peers/nanogpt_quality.py gpu --nanogpt nanoGPT --text tinyshakespeare.txt --out gpu.jsonl \\
        --seconds 3600

The recipe `cpu` is the one of nanoGPT's README for a CPU, `gpu` its config/train_shakespeare_char.py in fp32. The model
and the optimizer are nanoGPT's own code. Characters are tokens, the last tenth of the text is held out, and the loss is
that of all held-out text, in windows of the context length, as `quern eval` computes it. Time is that of the training
steps alone.

--time N only times N steps, eager and compiled, and prints the medians. --seconds-per-step S writes the curve with that
time per step: the losses of a run do not depend on its speed, so a curve can be computed on a busy machine and its time
measured on an idle one.
"""

import argparse
import contextlib
import json
import math
import statistics
import sys
import time

try:
    import torch
except ImportError:
    sys.exit("nanogpt_quality: PyTorch is not installed; pip install torch==2.13.0")

RECIPES = {
    "cpu": dict(layers=4, heads=4, width=128, context=64, batch=12, dropout=0.0, steps=2000, interval=100),
    "gpu": dict(layers=6, heads=6, width=384, context=256, batch=64, dropout=0.2, steps=5000, interval=50),
}
RATE, MIN_RATE, WARMUP, BETAS, DECAY, CLIP = 1e-3, 1e-4, 100, (0.9, 0.99), 0.1, 1.0


def read(path):
    """Token ids of the training and of the held-out text, and the number of characters."""
    with open(path, newline="") as file:
        text = file.read()
    characters = sorted(set(text))
    number = {character: i for i, character in enumerate(characters)}
    ids = torch.tensor([number[character] for character in text])
    cut = int(len(text) * 0.9)
    return ids[:cut], ids[cut:], len(characters)


def rate(step, steps):
    if step < WARMUP:
        return RATE * (step + 1) / (WARMUP + 1)
    done = (step - WARMUP) / (steps - WARMUP)
    return MIN_RATE + 0.5 * (1 + math.cos(math.pi * done)) * (RATE - MIN_RATE)


class Training:
    def __init__(self, recipe, options):
        from model import GPT, GPTConfig  # nanoGPT's

        self.recipe = recipe
        self.train, self.held_out, vocabulary = read(options.text)
        torch.manual_seed(options.seed)
        with contextlib.redirect_stdout(sys.stderr):
            self.model = GPT(GPTConfig(n_layer=recipe["layers"], n_head=recipe["heads"], n_embd=recipe["width"],
                                       block_size=recipe["context"], bias=False, vocab_size=vocabulary,
                                       dropout=recipe["dropout"]))
            self.optimizer = self.model.configure_optimizers(DECAY, RATE, BETAS, "cpu")

    def step(self, number, network):
        context = self.recipe["context"]
        for group in self.optimizer.param_groups:
            group["lr"] = rate(number, self.recipe["steps"])
        starts = torch.randint(len(self.train) - context, (self.recipe["batch"],)).tolist()
        inputs = torch.stack([self.train[i:i + context] for i in starts])
        targets = torch.stack([self.train[i + 1:i + 1 + context] for i in starts])
        network(inputs, targets)[1].backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), CLIP)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    @torch.no_grad()
    def loss(self):
        """Mean over all held-out targets; the last window is shorter."""
        self.model.eval()
        context, total = self.recipe["context"], 0.0
        count = len(self.held_out) - 1
        windows = count // context
        inputs = self.held_out[:windows * context].view(windows, context).split(4096 // context)
        targets = self.held_out[1:windows * context + 1].view(windows, context).split(4096 // context)
        for x, y in zip(inputs, targets):
            total += self.model(x, y)[1].item() * y.numel()
        if count % context:
            x, y = self.held_out[windows * context:-1], self.held_out[windows * context + 1:]
            total += self.model(x[None], y[None])[1].item() * len(y)
        self.model.train()
        return total / count


def seconds_per_step(training, network, count):
    for number in range(2):  # compiles
        training.step(number, network)
    times = []
    for number in range(count):
        start = time.perf_counter()
        training.step(2 + number, network)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def run(training, options):
    recipe, seconds = training.recipe, 0.0
    network = torch.compile(training.model) if options.compile else training.model
    name = options.name or f"nanoGPT {options.recipe}"
    with open(options.out, "w") as out:
        for number in range(recipe["steps"] + 1):
            done = number == recipe["steps"] or seconds >= options.seconds
            if number % recipe["interval"] == 0 or done:
                point = dict(name=name, seed=options.seed, step=number,
                             tokens=number * recipe["batch"] * recipe["context"], seconds=round(seconds, 3),
                             loss=round(training.loss(), 5))
                print(json.dumps(point), file=out, flush=True)
                print(f"step {number}, {seconds:.0f} s: loss {point['loss']:.4f}", file=sys.stderr, flush=True)
            if done:
                return
            start = time.perf_counter()
            training.step(number, network)
            seconds += options.seconds_per_step or time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipe", choices=RECIPES)
    parser.add_argument("--nanogpt", required=True, metavar="DIR", help="a checkout of nanoGPT")
    parser.add_argument("--text", required=True, metavar="FILE")
    parser.add_argument("--out", metavar="FILE", help="curve to write, as JSON Lines")
    parser.add_argument("--name", help="name of the curve (default: nanoGPT and the recipe)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1337)
    parser.add_argument("--compile", action="store_true", help="use torch.compile")
    parser.add_argument("--seconds", type=float, default=math.inf, help="end after this much training time")
    parser.add_argument("--seconds-per-step", type=float, default=0.0, metavar="S")
    parser.add_argument("--time", type=int, metavar="N", help="only time N steps")
    options = parser.parse_args()
    sys.path.insert(0, options.nanogpt)
    torch.set_num_threads(options.threads)
    training = Training(RECIPES[options.recipe], options)
    if options.time:
        eager = seconds_per_step(training, training.model, options.time)
        compiled = seconds_per_step(training, torch.compile(training.model), options.time)
        print(json.dumps({"recipe": options.recipe, "threads": options.threads, "torch": torch.__version__,
                          "eager_seconds": eager, "compiled_seconds": compiled}))
    elif options.out:
        run(training, options)
    else:
        parser.error("expected --out FILE or --time N")


if __name__ == "__main__":
    main()
