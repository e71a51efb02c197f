"""Curves of held-out loss over training time, as JSON Lines, and what they say."""

import dataclasses
import json
import math


@dataclasses.dataclass(frozen=True)
class Point:
    name: str  # of the recipe
    seed: int
    step: int
    tokens: int
    seconds: float  # of training steps alone
    loss: float     # on all held-out text


@dataclasses.dataclass(frozen=True)
class Summary:
    """A recipe over all its seeds. Times are means; nan if not every seed got there."""
    name: str
    seeds: int
    tokens_per_second: float
    seconds: float
    seconds_to: dict  # by loss
    final: float      # mean of the last losses
    lowest: float     # of the last losses
    highest: float


def read(path):
    with open(path) as file:
        return [Point(**json.loads(line)) for line in file if line.strip()]


def write(path, points):
    with open(path, "w") as file:
        for point in points:
            file.write(json.dumps(dataclasses.asdict(point)) + "\n")


def curves(points):
    """{(name, seed): points by step}, in order of appearance."""
    found = {}
    for point in points:
        found.setdefault((point.name, point.seed), []).append(point)
    return {key: sorted(curve, key=lambda point: point.step) for key, curve in found.items()}


def seconds_to(curve, loss):
    """When the curve first was at or below `loss`: the time of that evaluation, not interpolated; nan for never."""
    return next((point.seconds for point in curve if point.loss <= loss), math.nan)


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def summarize(points, losses):
    grouped = {}
    for (name, _), curve in curves(points).items():
        grouped.setdefault(name, []).append(curve)
    rows = []
    for name, runs in grouped.items():
        last = [run[-1] for run in runs]
        rows.append(Summary(name=name, seeds=len(runs),
                            tokens_per_second=sum(p.tokens for p in last) / max(1e-9, sum(p.seconds for p in last)),
                            seconds=mean(p.seconds for p in last),
                            seconds_to={loss: mean(seconds_to(run, loss) for run in runs) for loss in losses},
                            final=mean(p.loss for p in last), lowest=min(p.loss for p in last),
                            highest=max(p.loss for p in last)))
    return rows
