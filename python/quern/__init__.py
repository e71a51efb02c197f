"""Quern: train small transformers on CPUs, reproducibly, and run them.

>>> model = quern.load("runs/first")
>>> logits = model.logits(model.encode("Once upon a time"))
"""

from ._quern import (Column, Error, Model, NStepSample, ReplayBuffer, ReplayWriter, Sample, Saving, SequenceSample,
                     SnapshotResult, Step, TextStream, TrainResult, __version__, load, preset, snapshot_info, train)

__all__ = ["Column", "Error", "Model", "NStepSample", "ReplayBuffer", "ReplayWriter", "Sample", "Saving",
           "SequenceSample", "SnapshotResult", "Step", "TextStream", "TrainResult", "__version__", "load", "preset",
           "snapshot_info", "train"]


def _attach(shared, file):  # called when a pickled ReplayBuffer is unpickled, in the receiving process
    return ReplayBuffer.attach(shared, file)


for _name in __all__:  # so that repr() and help() show the public module
    if _name != "__version__":
        globals()[_name].__module__ = "quern"
del _name
