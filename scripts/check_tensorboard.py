#!/usr/bin/env python3
"""Checks that TensorBoard's own reader sees the same values as metrics.jsonl, also after a run is killed and resumed.

Run by hand; neither the build nor the tests need it:
    python3 -m venv venv && venv/bin/pip install tensorboard
    venv/bin/python scripts/check_tensorboard.py build/release/quern

Trains a small model twice; the second run is killed, its last record is truncated, and it is resumed. Takes about 10 s;
exits with 1 if anything differs.
"""

import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import time

import tensorboard
from tensorboard.backend.event_processing import event_accumulator, plugin_event_accumulator

SETTINGS = ["--layers", "2", "--heads", "2", "--width", "32", "--context", "32", "--batch", "8", "--steps", "3000",
            "--set", "data.stories_bytes=50000", "--set", "train.validation_batches=1", "--set",
            "log.tensorboard=true", "--set", "log.interval=5", "--set", "log.histogram_interval=500", "--set",
            "checkpoint.interval=400"]
NAMES = {"loss": "loss/train", "rate": "optimizer/rate", "gradient_norm": "optimizer/gradient_norm",
         "tokens_per_s": "speed/tokens_per_s", "validation_loss": "loss/validation"}


class Check:
    def __init__(self):
        self.done = self.failures = 0

    def equal(self, what, ours, theirs):
        self.done += 1
        if ours != theirs:
            self.failures += 1
            print(f"DIFFERS {what}: ours {ours!r:.200}, TensorBoard's {theirs!r:.200}")


def as_float(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def logged(run):
    """{tag: [(step, value)]} of metrics.jsonl."""
    found = {}
    for line in map(json.loads, (run / "metrics.jsonl").read_text().splitlines()):
        values = {tag: line[field] for field, tag in NAMES.items() if field in line}
        values |= {f"memory/{name}": size / 2**20 for name, size in line.get("memory", {}).items()}
        for tensor, health in line.get("health", {}).items():
            values |= {f"gradient_norm/{tensor}": health["norm"], f"update_ratio/{tensor}": health["update_ratio"]}
        for tag, value in values.items():
            found.setdefault(tag, []).append((line["step"], as_float(value)))
    return found


def check_run(check, name, run, weights):
    reader = event_accumulator.EventAccumulator(str(run / "tensorboard"), size_guidance={"scalars": 0, "histograms": 0})
    reader.Reload()
    expected = logged(run)
    tags = reader.Tags()
    check.equal(f"{name}: scalar tags", sorted(expected), sorted(tags["scalars"]))
    for tag, points in expected.items():
        check.equal(f"{name}: {tag}", points, [(event.step, event.value) for event in reader.Scalars(tag)])
    check.equal(f"{name}: histogram tags", sorted("weights/" + tensor for tensor in weights), sorted(tags["histograms"]))
    for tag in tags["histograms"]:
        events = reader.Histograms(tag)
        check.equal(f"{name}: steps of {tag}", [500, 1000, 1500, 2000, 2500, 3000], [event.step for event in events])
        histogram = events[-1].histogram_value
        values = weights[tag.removeprefix("weights/")]
        check.equal(f"{name}: {tag}", (min(values), max(values), len(values), len(values)),
                    (histogram.min, histogram.max, histogram.num, sum(histogram.bucket)))
    # The reader of the web page, which converts scalars and histograms to tensors.
    pages = plugin_event_accumulator.EventAccumulator(str(run / "tensorboard"), size_guidance={}, tensor_size_guidance={
        "scalars": 0, "histograms": 0})
    pages.Reload()
    check.equal(f"{name}: scalars of the page", sorted(expected), sorted(pages.PluginTagToContent("scalars")))
    check.equal(f"{name}: histograms of the page", len(weights), len(pages.PluginTagToContent("histograms")))
    for tag, points in expected.items():
        found = [(event.step, event.tensor_proto.float_val[0]) for event in pages.Tensors(tag)]
        check.equal(f"{name}: {tag} of the page", points, found)


def weights_of(run):
    data = sorted((run / "checkpoints").iterdir())[-1].joinpath("model.safetensors").read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    body = data[8 + size:]
    return {name: struct.unpack(f"<{(end - begin) // 4}f", body[begin:end])
            for name, info in header.items() for begin, end in [info["data_offsets"]]}


def kill_and_resume(quern, run):
    process = subprocess.Popen([quern, "train", *SETTINGS, "--run", str(run)], stdout=subprocess.DEVNULL)
    # Kill it between two checkpoints, so that steps are repeated.
    metrics = run / "metrics.jsonl"
    while process.poll() is None and not (metrics.exists() and '"step":1100,' in metrics.read_text()):
        time.sleep(0.01)
    process.kill()
    process.wait()
    (file,) = (run / "tensorboard").iterdir()
    file.write_bytes(file.read_bytes()[:-7])
    subprocess.run([quern, "train", "--run", str(run), "--resume"], check=True, stdout=subprocess.DEVNULL)
    return len(list((run / "tensorboard").iterdir()))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    quern, check = sys.argv[1], Check()
    with tempfile.TemporaryDirectory() as name:
        whole, cut = pathlib.Path(name, "whole"), pathlib.Path(name, "cut")
        subprocess.run([quern, "train", *SETTINGS, "--run", str(whole)], check=True, stdout=subprocess.DEVNULL)
        check_run(check, "whole", whole, weights_of(whole))
        check.equal("files of the killed run", 2, kill_and_resume(quern, cut))
        check_run(check, "killed", cut, weights_of(cut))
    print(f"tensorboard {tensorboard.__version__}: {check.done} comparisons, {check.failures} differ")
    return 1 if check.failures else 0


if __name__ == "__main__":
    sys.exit(main())
