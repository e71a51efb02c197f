#!/usr/bin/env python3
"""Simulates how the training engine scales to many threads and ranks, from measured kernel times.

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

With --ranks, a step of several ranks with a network between them (docs/clusters.md, scaling/ranks.py): step time,
efficiency against one rank, and the share of the step that communication adds to it.

    scripts/simulate_workers.py --ranks 1,2,4,8,16,64,256,1024      weak scaling: the same tokens for every rank
    scripts/simulate_workers.py --ranks 1,2,4,8 --tokens-per-step 65536     strong scaling: the same step
    scripts/simulate_workers.py --ranks 2 --preset small --gbits 1 --alpha-us 200 --threads 1 --tokens-per-step 2048 \\
        --measured 1.04             what is computed from one rank's measured step of 1.04 s, the network from the model
"""

import argparse
import dataclasses
import json
import pathlib
import sys

from scaling import plot
from scaling.model import MODELS, PRESETS, RANK_PRESETS, Rates
from scaling.ranks import OVERLAPS, Network, Setting, measured_scale, simulate_ranks, step_of_one_rank
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
    parser.add_argument("--preset", action="append", choices=MODELS,
                        help="may be repeated; default: tiny, small, gpt2, and with --ranks small, gpt2, 1.1b")
    parser.add_argument("--threads", help="comma-separated, default 1,2,4,8,16,32,64,128; with --ranks the number of a "
                        "rank, default 16")
    parser.add_argument("--batches", default="preset,4,16",
                        help="comma-separated: 'preset', or micro-batches per thread")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    parser.add_argument("--summary", action="store_true", help="one table: speed-up and fraction of time at work, or "
                        "with --ranks efficiency and exposed communication")
    parser.add_argument("--compare", nargs="+", type=pathlib.Path, metavar="FILE",
                        help="outputs of `quern bench train --json`: measured and simulated in one table")
    parser.add_argument("--svg", type=pathlib.Path, help="write a plot of the speed-up")
    parser.add_argument("--store", type=pathlib.Path, help="store the rates of this benchmark output in --rates")
    add_rank_arguments(parser.add_argument_group("several ranks"))
    for field in dataclasses.fields(Options):
        parser.add_argument("--" + field.name.replace("_", "-"), type=field.type, default=field.default,
                            help=f"{HELP[field.name]}; default {field.default:g}")
    args = parser.parse_args()
    args.preset = args.preset or list(RANK_PRESETS if args.ranks else PRESETS)
    args.threads = args.threads or ("16" if args.ranks else "1,2,4,8,16,32,64,128")
    return args


def add_rank_arguments(group):
    add = group.add_argument
    add("--ranks", help="comma-separated: simulate ranks, not threads")
    add("--gbits", default="1,10,100", help="comma-separated: what a rank's link sends, and receives at the same time, "
        "in Gbit/s; default 1,10,100")
    add("--alpha-us", type=float, default=30.0, help="latency of a message; default 30, as TCP has")
    add("--copy-gbs", type=float, default=0.9, help="what one core can send and receive at the same time; default 0.9, "
        "measured with TCP; 4 in the memory of one machine; 'inf' for a network card that does it alone")
    add("--message-us", type=float, default=1.0, help="time of a core to send or to receive a message; default 1")
    add("--poll-us", type=float, default=300.0, help="mean time until a rank sees that something has arrived; default "
        "300, half of the longest pause (dist/communicator.cc)")
    add("--watch", type=float, default=0.08, help="share of a core that a rank's thread takes while messages are on "
        "their way; default 0.08, measured with TCP")
    add("--tokens-per-rank", type=int, default=16384, help="weak scaling; default 16384")
    add("--tokens-per-step", type=int, help="strong scaling instead: the tokens of all ranks together")
    add("--lanes", type=int, default=0, help="default: the next power of two of the ranks, as in a new run")
    add("--cores", type=float, help="that a rank has; default: as many as threads. Fewer slow it down")
    add("--overlap", choices=OVERLAPS, default="both", help="of gradients with the backward pass, and of weights with "
        "the update; default both")
    add("--measured", type=float, help="seconds of a step of one rank: scales all that is computed")


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
             "results": [simulate(with_batch(MODELS[preset], batches, threads), rates, threads, options)
                         for threads in map(int, args.threads.split(","))]}
            for preset in args.preset for batches in args.batches.split(",")]


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
                        for case in cases if case["preset"] == preset]) for preset in args.preset]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(plot.svg("Simulated speed-up of training", panels, names))


def rank_cases(args, options, rates):
    """For every model and network, a row for each number of ranks that have a sequence each."""
    threads = int(args.threads)
    setting = Setting(1, threads, args.cores or threads, args.lanes, args.overlap)
    cases = []
    for preset in args.preset:
        model = MODELS[preset]
        strong = args.tokens_per_step is not None
        batch = max(1, (args.tokens_per_step if strong else args.tokens_per_rank) // model.context)
        one = dataclasses.replace(model, batch=batch)
        here = dataclasses.replace(setting, scale=measured_scale(one, rates, options, setting, args.measured))
        alone = step_of_one_rank(one, rates, options, here)
        for gbits in map(float, args.gbits.split(",")):
            network = Network(gbits * 1e9 / 8, args.alpha_us * 1e-6, args.copy_gbs * 1e9, args.message_us * 1e-6,
                              args.poll_us * 1e-6, args.watch)
            rows = [simulate_ranks(one if strong else dataclasses.replace(model, batch=batch * ranks), rates, options,
                                   dataclasses.replace(here, ranks=ranks), network, alone)
                    for ranks in map(int, args.ranks.split(",")) if not strong or ranks <= batch]
            cases.append({"preset": preset, "gbits": gbits, "rows": rows})
    return cases


def print_rank_tables(args, cases):
    gbits = [f"{float(g):g} Gbit/s" for g in args.gbits.split(",")]
    for preset in args.preset:
        tables = [case["rows"] for case in cases if case["preset"] == preset]
        print(f"\n{preset}: step, efficiency, exposed communication\n")
        print("| ranks | tokens per step | MB sent | " + " | | | ".join(gbits) + " | | |")
        print("|---:|---:|---:|" + "---:|---:|---:|" * len(gbits))
        for rows in zip(*tables):
            cells = (f"{_seconds(row.step)} | {row.efficiency:.2f} | {100 * row.exposed:.0f} %" for row in rows)
            print(f"| {rows[0].ranks} | {rows[0].tokens} | {rows[0].sent / 1e6:.0f} | " + " | ".join(cells) + " |")


def print_rank_summary(cases):
    """Efficiency, and in brackets the share of exposed communication."""
    ranks = [row.ranks for row in max((case["rows"] for case in cases), key=len)]
    print("| ranks | " + " | ".join(map(str, ranks)) + " |\n|---|" + "---:|" * len(ranks))
    for case in cases:
        cells = [f"{row.efficiency:.2f} ({100 * row.exposed:.0f} %)" for row in case["rows"]]
        cells += [""] * (len(ranks) - len(cells))
        print(f"| {case['preset']}, {case['gbits']:g} Gbit/s | " + " | ".join(cells) + " |")


def _seconds(seconds):
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"


def ranks_as_json(cases, options, rates):
    cases = [{**case, "rows": [dataclasses.asdict(row) for row in case["rows"]]} for case in cases]
    return json.dumps({"machine": rates.machine, "options": dataclasses.asdict(options), "cases": cases}, indent=2)


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
    if args.ranks:
        cases = rank_cases(args, options, rates)
        if args.json:
            return print(ranks_as_json(cases, options, rates))
        return print_rank_summary(cases) if args.summary else print_rank_tables(args, cases)
    cases = all_cases(args, options, rates)
    if args.json:
        print(as_json(cases, options, rates))
    else:
        (print_summary if args.summary else print_tables)(cases)
    if args.svg:
        write_plot(args.svg, args, cases)


if __name__ == "__main__":
    sys.exit(main())
