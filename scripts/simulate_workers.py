#!/usr/bin/env python3
"""Simulates how the training engine scales to many threads, from measured kernel times.

A step is simulated as the engine runs it (docs/parallel.md): micro-batches from a queue, W threads, every operation of
forward and backward, weight gradients added piece by piece in the order of the micro-batches, then join and update by
segments. With fewer micro-batches than threads, teams share micro-batches. The same arguments give the same figures.

    scripts/simulate_workers.py                                     time breakdown of each case
    scripts/simulate_workers.py --summary --svg docs/images/scaling.svg     table and plot of docs/parallel.md
    scripts/simulate_workers.py --preset small --threads 1,2 --batches preset --json
    scripts/simulate_workers.py --compare tiny.json small.json      with `quern bench train --preset NAME --json`
    scripts/simulate_workers.py --divisor 1 --batches 4             finer pieces of the weight gradients
    scripts/simulate_workers.py --rates kernels.json                from `quern bench kernels --threads 1 --json`
    scripts/simulate_workers.py --store kernels.json --rates docs/data/kernel_rates.json    store those rates
"""

import argparse
import dataclasses
import json
import pathlib
import sys

from scaling import plot
from scaling.model import PRESETS, Rates
from scaling.steps import Options, simulate

ROOT = pathlib.Path(__file__).resolve().parent.parent
HELP = {
    "divisor": "workers / divisor pieces for each 4 C x C floats of a matrix (nn/gradient.cc)",
    "segment_floats": "floats per segment, the smallest piece (nn/parameter_table.h)",
    "gap_us": "time from the end of a step to the start of the next, when no thread has work",
    "submit_us": "time to push one task and wake its worker",
    "pass_us": "time until a spinning thread sees a ticket",
    "spin_us": "time after which a waiting thread sleeps",
    "wake_us": "time until a sleeping thread runs",
    "meet_us": "time of a team barrier",
    "meet_member_us": "additional time of a team barrier per member",
    "socket_gbs": "memory bandwidth of all cores together",
    "l2_mib": "L2 of a core",
    "l3_mib": "L3 of all cores together: a model that fits is not limited by memory",
    "piece_gbs": "rate at which a piece rereads the packed right operand when that exceeds L2",
    "jitter": "max deviation of a micro-batch's speed, as a fraction",
    "steps": "number of steps to simulate",
}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rates", default=ROOT / "docs/data/kernel_rates.json", help="measured rates")
    parser.add_argument("--preset", action="append", choices=PRESETS, help="may be repeated; default: all")
    parser.add_argument("--threads", default="1,2,4,8,16,32,64,128", help="comma-separated")
    parser.add_argument("--batches", default="preset,4,16",
                        help="comma-separated: 'preset', or micro-batches per thread")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    parser.add_argument("--summary", action="store_true", help="one table: speed-up and fraction of time spent working")
    parser.add_argument("--compare", nargs="+", type=pathlib.Path, metavar="FILE",
                        help="outputs of `quern bench train --json`: measured and simulated in one table")
    parser.add_argument("--svg", type=pathlib.Path, help="write a plot of the speed-up")
    parser.add_argument("--store", type=pathlib.Path, help="store the rates of this benchmark output in --rates")
    for field in dataclasses.fields(Options):
        parser.add_argument("--" + field.name.replace("_", "-"), type=field.type, default=field.default,
                            help=f"{HELP[field.name]}; default {field.default:g}")
    return parser.parse_args()


def with_batch(model, batches, threads):
    """The preset's own batch, or this many micro-batches per thread."""
    if batches == "preset":
        return model
    sequences = dataclasses.replace(model, batch=1 << 20).sequences
    return dataclasses.replace(model, batch=sequences * int(batches) * threads)


def batch_name(batches):
    return "the preset's batch" if batches == "preset" else f"{batches} micro-batches per thread"


def all_cases(args, options, rates):
    return [{"preset": preset, "batches": batches,
             "results": [simulate(with_batch(PRESETS[preset], batches, threads), rates, threads, options)
                         for threads in map(int, args.threads.split(","))]}
            for preset in args.preset or PRESETS for batches in args.batches.split(",")]


def print_tables(cases):
    for case in cases:
        print(f"\n{case['preset']}, {batch_name(case['batches'])}\n")
        print("| threads | micro-batches | step ms | speed-up | busy | turns | team | no work | memory | update |")
        print("|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
        for r in case["results"]:
            shares = (r.utilisation, r.ticket_wait, r.team_wait, r.queue_wait, r.bandwidth, r.update)
            print(f"| {r.threads} | {r.micro_batches} | {r.step_ms:.4g} | {r.speedup:.2f} | "
                  + " | ".join(f"{share:.3f}" for share in shares) + " |")


def print_summary(cases):
    threads = [result.threads for result in cases[0]["results"]]
    print("| threads | " + " | ".join(map(str, threads)) + " |\n|---|" + "---:|" * len(threads))
    for case in cases:
        cells = (f"{r.speedup:.1f} ({100 * r.utilisation:.0f} %)" for r in case["results"])
        print(f"| {case['preset']}, {batch_name(case['batches'])} | " + " | ".join(cells) + " |")


def print_comparison(paths, options, rates):
    print("| preset, threads | | tokens/s | speed-up | busy | turns | team | no work |\n|---|---|" + "---:|" * 6)
    for path in paths:
        data = json.loads(path.read_text())
        name, threads = data["preset"], data["threads"]
        speedup = next((result["ratio"] for result in data["results"] if result["reference"] == "one thread"), 1.0)
        r = simulate(PRESETS[name], rates, threads, options)
        for label, row in (
                ("measured", (data["tokens_per_s"], speedup, data["utilisation"], data["ticket_wait"],
                              data["team_wait"], data["queue_wait"])),
                ("simulated", (r.tokens_per_s, r.speedup, r.utilisation, r.ticket_wait, r.team_wait, r.queue_wait))):
            shares = " | ".join(f"{value:.3f}" for value in row[2:])
            print(f"| {name}, {threads} | {label} | {row[0]:.0f} | {row[1]:.2f} | {shares} |")


def as_json(cases, options, rates):
    cases = [{**case, "results": [dataclasses.asdict(result) for result in case["results"]]} for case in cases]
    return json.dumps({"machine": rates.machine, "options": dataclasses.asdict(options), "cases": cases}, indent=2)


def write_plot(path, args, cases):
    names = [batch_name(batches) for batches in args.batches.split(",")]
    panels = [(preset, [[(r.threads, r.speedup) for r in case["results"]]
                        for case in cases if case["preset"] == preset]) for preset in args.preset or PRESETS]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(plot.svg("Simulated speed-up of training", panels, names))


def store(source, path):
    """Stores one value per name, without peers and bars. The existing `own` values are preserved."""
    data = json.loads(source.read_text())
    values = {}
    for result in data["results"]:
        values.setdefault(result["name"], {"name": result["name"], "value": float(f"{result['value']:.4g}"),
                                           "unit": result["unit"]})
    own = json.loads(path.read_text()).get("own", {}) if path.exists() else {}
    lines = ",\n".join("    " + json.dumps(value) for value in values.values())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'{{\n  "command": "quern bench kernels --threads 1 --json",\n'
                    f'  "machine": {json.dumps(data["machine"])},\n  "own": {json.dumps(own)},\n'
                    f'  "results": [\n{lines}\n  ]\n}}\n')


def main():
    args = arguments()
    if args.store:
        return store(args.store, pathlib.Path(args.rates))
    options = Options(**{field.name: getattr(args, field.name) for field in dataclasses.fields(Options)})
    rates = Rates(args.rates)
    if args.compare:
        return print_comparison(args.compare, options, rates)
    cases = all_cases(args, options, rates)
    if args.json:
        print(as_json(cases, options, rates))
    else:
        (print_summary if args.summary else print_tables)(cases)
    if args.svg:
        write_plot(args.svg, args, cases)


if __name__ == "__main__":
    sys.exit(main())
