"""Quern: train small transformers on CPUs, reproducibly, and run them.

>>> model = quern.load("runs/first")
>>> logits = model.logits(model.encode("Once upon a time"))
"""

from . import _calls
from ._quern import (Column, Error, Model, ReplayBuffer, Sample, Saving, SnapshotResult, Step, TextStream, TrainResult,
                     __version__, load, preset, snapshot_info, train)

__all__ = ["Column", "Error", "Model", "ReplayBuffer", "Sample", "Saving", "SnapshotResult", "Step", "TextStream",
           "TrainResult", "__version__", "load", "preset", "snapshot_info", "train"]


def _attach(shared, file):  # called when a pickled ReplayBuffer is unpickled, in the receiving process
    return ReplayBuffer.attach(shared, file)


globals().update(_calls.present({name: globals()[name] for name in __all__}))
