"""Quern: trains small transformers on CPUs, reproducibly, and uses them.

>>> model = quern.load("runs/first")
>>> logits = model.logits(model.encode("Once upon a time"))
"""

from ._quern import (Column, Error, Model, ReplayBuffer, Sample, Saving, SnapshotResult, Step, TextStream, TrainResult,
                     __version__, load, preset, snapshot_info, train)

__all__ = ["Column", "Error", "Model", "ReplayBuffer", "Sample", "Saving", "SnapshotResult", "Step", "TextStream",
           "TrainResult", "__version__", "load", "preset", "snapshot_info", "train"]


def _attach(shared, file):  # what a pickled ReplayBuffer calls in the process that it comes to
    return ReplayBuffer.attach(shared, file)


for _name in __all__:  # so that people are told where to find them
    if _name != "__version__":
        globals()[_name].__module__ = "quern"
del _name
