#!/usr/bin/env python3
"""Time to quality: how long training takes to reach given losses on held-out text.

    scripts/bench_quality.py book.txt --preset minute --seeds 1 2 3
    scripts/bench_quality.py book.txt --preset minute ten-minutes --loss 1.88 1.6 --svg curve.svg
    scripts/bench_quality.py --curves nanogpt.jsonl quern.jsonl --svg curve.svg

Trains the presets on a text, whose last tenth is held out, and prints when each run first had a loss below each limit
on all of that text. Time is that of the training steps alone: evaluations, saving and reading the text do not count.
The held-out text is used for nothing but these figures: a run ends at the step that its preset says, and the final loss
is that of its last step, not the lowest.

--out keeps the curves as JSON Lines. --curves adds curves from such files to the table and to the picture, for example
those of benchmarks/peers/nanogpt_quality.py, which trains nanoGPT's recipes with PyTorch.
"""

import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from quality.curves import Point, read, summarize, write  # noqa: E402
from quality.plot import svg  # noqa: E402


def train(options, preset, seed):
    """The points of a run's metrics.jsonl at which it was evaluated."""
    with tempfile.TemporaryDirectory() as folder:
        run = pathlib.Path(folder) / "run"
        command = [options.quern, "train", options.text, "--run", str(run), "--preset", preset, "--seed", str(seed),
                   "--set", "train.validation_batches=0", "--set", f"train.validation_interval={options.interval}",
                   "--set", "log.interval=1", "--set", "checkpoint.interval=0"]
        for setting in options.set:
            command += ["--set", setting]
        subprocess.run(command, check=True, stdout=sys.stderr)
        info = json.loads(subprocess.run([options.quern, "info", str(run), "--json"], check=True,
                                         capture_output=True, text=True).stdout)
        tokens_per_step = info["tokens"] / info["step"]
        points, seconds = [], {}
        for line in (run / "metrics.jsonl").read_text().splitlines():
            entry = json.loads(line)
            if "elapsed" in entry:
                seconds[entry["step"]] = entry["elapsed"]
            if "validation_loss" in entry:
                step = entry["step"]
                points.append(Point(options.label or preset, seed, step, int(step * tokens_per_step),
                                    seconds.get(step, 0.0), entry["validation_loss"]))
        return points


def duration(seconds):
    if math.isnan(seconds):
        return "-"
    return f"{seconds:.1f} s" if seconds < 100 else f"{seconds / 60:.1f} min"


def print_table(rows, losses):
    header = ["", "seeds", "tokens/s", *(f"to {loss:g}" for loss in losses), "training", "final loss", "lowest, highest"]
    table = [header]
    for row in rows:
        table.append([row.name, str(row.seeds), f"{row.tokens_per_second:,.0f}",
                      *(duration(row.seconds_to[loss]) for loss in losses), duration(row.seconds),
                      f"{row.final:.4f}", f"{row.lowest:.4f}, {row.highest:.4f}"])
    widths = [max(len(line[i]) for line in table) for i in range(len(header))]
    for line in table:
        print("  ".join(cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(line, widths))))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", nargs="?", help="text to train on; its last tenth is held out")
    parser.add_argument("--preset", nargs="+", default=["minute"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1])
    parser.add_argument("--loss", nargs="+", type=float, default=[1.88, 1.60, 1.50])
    parser.add_argument("--interval", type=int, default=50, help="steps between evaluations")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of every run")
    parser.add_argument("--label", help="name of the curves, instead of the preset's")
    parser.add_argument("--quern", metavar="PATH", default="build/release/quern")
    parser.add_argument("--curves", nargs="+", default=[], metavar="FILE", help="curves to add")
    parser.add_argument("--out", metavar="FILE", help="write the curves of these runs as JSON Lines")
    parser.add_argument("--svg", metavar="FILE", help="write a picture of all curves")
    options = parser.parse_args()
    if options.text is None and not options.curves:
        parser.error("expected a text to train on, or --curves")
    points = [point for path in options.curves for point in read(path)]
    fresh = []
    if options.text is not None:
        for seed in options.seeds:  # seeds outside, so that other load on the machine affects all presets alike
            for preset in options.preset:
                fresh += train(options, preset, seed)
    if options.out:
        write(options.out, fresh)
    points += fresh
    print_table(summarize(points, options.loss), options.loss)
    if options.svg:
        pathlib.Path(options.svg).write_text(svg(points, options.loss))


if __name__ == "__main__":
    main()
