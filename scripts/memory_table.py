#!/usr/bin/env python3
"""Measures peak memory and speed for every precision and recompute strategy, and prints the tables of docs/memory.md.

    python3 scripts/memory_table.py [--quern build/release/quern] [--rounds 3]

Each row is a separate process (`quern bench train`), since the peak is per process. Speed is relative to fp32 without
recomputation, from interleaved rounds of the same process.
"""

import argparse
import json
import os
import subprocess
import sys

MODELS = [
    ("small: 6 layers, width 384, T 256, batch 8", ["--preset", "small"]),
    ("deep: 24 layers, width 384, T 512, batch 4",
     ["--preset", "small", "--context", "512", "--batch", "4", "--set", "model.layers=24"]),
]
EXAMPLE = ("4 layers, width 128, T 512, batch 16", ["--preset", "tiny", "--context", "512", "--batch", "16"])
PRECISIONS = ["fp32", "bf16", "fp16"]
STRATEGIES = ["none", "sqrt", "every-layer"]


def measure(args, model, precision, strategy):
    """The output of `quern bench train --json`."""
    command = [args.quern, "bench", "train", *model, "--precision", precision, "--recompute", strategy, "--steps", "1",
               "--rounds", str(args.rounds), "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    if not done.stdout.startswith("{"):
        sys.exit(f"memory_table: {' '.join(command)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def print_table(args, title, model):
    print(f"\n{title}\n")
    print("| precision | recompute | peak | planned | activations of a worker | against fp32, none | speed |")
    print("|---|---|---|---|---|---|---|")
    whole = None
    for precision in PRECISIONS:
        for strategy in STRATEGIES:
            found = measure(args, model, precision, strategy)
            whole = whole or found["activation_bytes"]
            speed = next(r["ratio"] for r in found["results"] if r["reference"] == "fp32, none")
            mib = {key: found[key] / 2**20 for key in ("peak_rss_bytes", "planned_bytes", "activation_bytes")}
            print(f"| {precision} | {strategy} | {mib['peak_rss_bytes']:.0f} MiB | {mib['planned_bytes']:.0f} MiB "
                  f"| {mib['activation_bytes']:.1f} MiB | {found['activation_bytes'] / whole - 1:+.0%} | {speed:.2f} |",
                  flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quern", default=os.path.join(os.path.dirname(__file__), "../build/release/quern"))
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    for title, model in MODELS:
        print_table(args, title, model)
    title, model = EXAMPLE
    print(f"\n{title}")
    for precision, strategy in (("fp32", "none"), ("bf16", "sqrt")):
        found = measure(args, model, precision, strategy)
        print(f"- {precision}, {strategy}: {found['peak_rss_bytes'] / 2**20:.0f} MiB")


if __name__ == "__main__":
    main()
