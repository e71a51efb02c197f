#!/usr/bin/env python3
"""Benchmarks the replay buffer from Python against NumPy copies of the same rows in the same run, and against cpprb if
it is installed.

    PYTHONPATH=build/release/python /usr/bin/python3 benchmarks/replay_python.py [--json]

A row is 7,808 + 4,672 + 1 floats, 49,924 bytes; the buffer has 100,000 rows (5 GB, and 5 GB more for the reference;
--capacity reduces both). Rounds are interleaved and the best of each is reported. Every result is checked. Exits with 1
when a bar is missed or an answer is wrong. For cpprb: `pip install cpprb`, in an environment that has this package too.
"""

import argparse
import importlib.metadata
import json
import multiprocessing
import os
import sys
import threading
import time
import uuid

import numpy as np

import quern

SHAPES = {"planes": (7808,), "policy": (4672,), "value": ()}
COLUMNS = {name: ("float32", shape) for name, shape in SHAPES.items()}
ROW_BYTES = sum(4 * int(np.prod(shape)) for shape in SHAPES.values())
BATCH = 256


def make_batch(rows=BATCH, seed=0):
    random = np.random.default_rng(seed)
    return {name: random.random((rows, *shape), dtype=np.float32) for name, shape in SHAPES.items()}


class Report:
    def __init__(self, as_json):
        self.as_json, self.results = as_json, []
        if not as_json:
            print(f"{'name':<42}{'ours':>9} unit  {'compared with':<28}{'theirs':>9}  ratio    bar")

    def add(self, name, ours, reference, its, bar=None, unit="GB/s"):
        result = {"name": f"replay_python/{name}", "value": ours, "unit": unit, "reference": reference,
                  "reference_value": its, "ratio": ours / its, "bar": bar, "pass": bar is None or ours / its >= bar}
        self.results.append(result)
        if not self.as_json:
            judged = "-" if bar is None else f"{bar:.2f} {'ok' if result['pass'] else 'BELOW'}"
            print(f"{result['name']:<42}{ours:9.2f} {unit}  {reference:<28}{its:9.2f}  {ours / its:5.2f}   {judged}",
                  flush=True)

    def finish(self):
        if self.as_json:
            machine = {"threads": len(os.sched_getaffinity(0)), "numpy": np.__version__, "python": sys.version.split()[0]}
            print(json.dumps({"machine": machine, "results": self.results}, indent=2))
        return 0 if all(result["pass"] for result in self.results) else 1


def best(kinds, rounds):
    """The shortest time of each in seconds, over interleaved rounds."""
    seconds = [float("inf")] * len(kinds)
    for _ in range(rounds):
        for i, kind in enumerate(kinds):
            start = time.perf_counter()
            kind()
            seconds[i] = min(seconds[i], time.perf_counter() - start)
    return seconds


def expect(condition, what):
    if not condition:
        sys.exit(f"replay_python: wrong answer: {what}")


class NumpyRing:
    """What one would write without a library: one array per column, and the next position to write."""

    def __init__(self, capacity):
        self.capacity, self.at = capacity, 0
        self.columns = {name: np.zeros((capacity, *shape), np.float32) for name, shape in SHAPES.items()}
        for column in self.columns.values():
            column.fill(1)  # touches the memory, as the buffer does

    def add_batch(self, batch):
        for name, rows in batch.items():
            np.copyto(self.columns[name][self.at:self.at + BATCH], rows)
        self.at = (self.at + BATCH) % (self.capacity - BATCH)

    def sample(self, indices, out):
        for name, column in self.columns.items():
            np.take(column, indices, axis=0, out=out[name], mode="clip")  # "raise" copies twice


def bench_one_thread(report, buffer, ring, batch, rounds):
    batches = 100
    ours, numpys = best([lambda: [buffer.add_batch(**batch) for _ in range(batches)],
                         lambda: [ring.add_batch(batch) for _ in range(batches)]], rounds)
    size = batches * BATCH * ROW_BYTES / 1e9
    report.add("add_batch", size / ours, "numpy.copyto", size / numpys, 0.8)

    one = {name: rows[0] for name, rows in batch.items()}
    ours, = best([lambda: [buffer.add(**one) for _ in range(5000)]], rounds)
    report.add("add", 5000 * ROW_BYTES / 1e9 / ours, "numpy.copyto", size / numpys)

    out = buffer.sample(BATCH)
    numpy_out = {name: np.empty((BATCH, *shape), np.float32) for name, shape in SHAPES.items()}
    random = np.random.default_rng(1)
    indices = [random.integers(0, len(buffer), BATCH) for _ in range(batches)]
    ours, numpys = best([lambda: [buffer.sample(BATCH, out=out) for _ in range(batches)],
                         lambda: [ring.sample(index, numpy_out) for index in indices]], rounds)
    report.add("sample", size / ours, "numpy.take", size / numpys)
    buffer.sample(BATCH, out=out)
    for name in SHAPES:
        row = buffer.get(int(out.ids[7]))[name]
        expect(np.array_equal(row, out[name][7]), f"column {name} of a sample")


def threads_at_once(works):
    """GB/s of these functions run concurrently; each returns its number of rows."""
    counts = []
    start = time.perf_counter()
    threads = [threading.Thread(target=lambda work=work: counts.append(work())) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) * ROW_BYTES / 1e9 / (time.perf_counter() - start)


def bench_threads(report, buffer, batch, rounds):
    batches = 40

    def write():
        for _ in range(batches):
            buffer.add_batch(**batch)
        return batches * BATCH

    def read():
        out = buffer.sample(BATCH)
        for _ in range(batches):
            buffer.sample(BATCH, out=out)
        return batches * BATCH

    kinds = {"one writer": [write], "one reader": [read], "4_writers": [write] * 4, "4_readers": [read] * 4,
             "2_writers_2_readers": [write, write, read, read]}
    speeds = dict.fromkeys(kinds, 0.0)
    for _ in range(rounds):
        for name, works in kinds.items():
            speeds[name] = max(speeds[name], threads_at_once(works))
    report.add("threads/4_writers", speeds["4_writers"], "one thread", speeds["one writer"], 1.0)
    report.add("threads/4_readers", speeds["4_readers"], "one thread", speeds["one reader"], 1.0)
    report.add("threads/2_writers_2_readers", speeds["2_writers_2_readers"], "one thread, the slower kind",
               min(speeds["one writer"], speeds["one reader"]), 1.0)


def work_of_process(name, kind, batches, ready, go, done):
    """Adds or samples on request; a request of None ends the process."""
    buffer = quern.ReplayBuffer.attach(shared=name)
    batch = make_batch(seed=os.getpid())
    buffer.add_batch(**batch)
    out = buffer.sample(BATCH)
    ready.put(None)
    while go.get() is not None:
        for _ in range(batches):
            if kind == "add":
                buffer.add_batch(**batch)
            else:
                buffer.sample(BATCH, out=out)
        done.put(batches * BATCH)


def bench_processes(report, capacity, rounds):
    context = multiprocessing.get_context("spawn")
    name, batches = f"bench-{uuid.uuid4().hex}", 40
    buffer = quern.ReplayBuffer(COLUMNS, capacity, shared=name)
    try:
        speeds = {}
        for kind, count in (("add", 4), ("sample", 4)):
            ready, done = context.Queue(), context.Queue()
            # One queue each, so that a fast process does not take the request of another.
            gos = [context.Queue() for _ in range(count)]
            processes = [context.Process(target=work_of_process, args=(name, kind, batches, ready, go, done)) for go in gos]
            for process in processes:
                process.start()
            for _ in processes:
                ready.get()
            for _ in range(rounds):
                for many in (1, count):
                    start = time.perf_counter()
                    for go in gos[:many]:
                        go.put(True)
                    rows = sum(done.get() for _ in range(many))
                    speed = rows * ROW_BYTES / 1e9 / (time.perf_counter() - start)
                    speeds[kind, many] = max(speeds.get((kind, many), 0.0), speed)
            for go in gos:
                go.put(None)
            for process in processes:
                process.join()
        expect(buffer.total_added >= 4 * BATCH, "rows of the processes")
        report.add("processes/4_writers", speeds["add", 4], "one process", speeds["add", 1],
                   1.5 if len(os.sched_getaffinity(0)) > 1 else 1.0)
        report.add("processes/4_readers", speeds["sample", 4], "one process", speeds["sample", 1], 1.0)
    finally:
        quern.ReplayBuffer.remove(shared=name)


def bench_cpprb(report, buffer, capacity, batch, rounds):
    try:
        import cpprb
    except ImportError:
        print("cpprb is not installed: skipping the comparison", file=sys.stderr)
        return
    theirs = cpprb.ReplayBuffer(capacity, {name: {"shape": shape or 1} for name, shape in SHAPES.items()})
    batches = 100
    while theirs.get_stored_size() < capacity - BATCH:  # touches its memory too
        theirs.add(**batch)
    ours, its = best([lambda: [buffer.add_batch(**batch) for _ in range(batches)],
                      lambda: [theirs.add(**batch) for _ in range(batches)]], rounds)
    size = batches * BATCH * ROW_BYTES / 1e9
    report.add("add_batch", size / ours, "cpprb " + importlib.metadata.version("cpprb"), size / its)
    out = buffer.sample(BATCH)
    ours, its = best([lambda: [buffer.sample(BATCH, out=out) for _ in range(batches)],
                      lambda: [theirs.sample(BATCH) for _ in range(batches)]], rounds)
    report.add("sample", size / ours, "cpprb " + importlib.metadata.version("cpprb"), size / its)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--capacity", type=int, default=100_000, help="capacity in rows (default 100,000)")
    parser.add_argument("--rounds", type=int, default=5, help="number of rounds; the best of each kind is reported")
    arguments = parser.parse_args()
    if arguments.capacity < 2 * BATCH or arguments.rounds < 1:
        parser.error(f"expected --capacity from {2 * BATCH} and --rounds from 1")
    report, batch = Report(arguments.json), make_batch()
    buffer = quern.ReplayBuffer(COLUMNS, arguments.capacity, seed=1)
    while len(buffer) < arguments.capacity:
        buffer.add_batch(**batch)
    ring = NumpyRing(arguments.capacity)
    bench_one_thread(report, buffer, ring, batch, arguments.rounds)
    del ring
    bench_threads(report, buffer, batch, arguments.rounds)
    bench_cpprb(report, buffer, arguments.capacity, batch, arguments.rounds)
    del buffer
    bench_processes(report, min(arguments.capacity, 20_000), arguments.rounds)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
