"""Quern: train small transformers on CPUs, reproducibly, and run them.

>>> model = quern.load("runs/first")
>>> logits = model.logits(model.encode("Once upon a time"))
"""

import numpy as _numpy

from . import _calls, _quern
from ._quern import (Column, Error, Model, NStepSample, ReplayBuffer, ReplayWriter, Sample, Saving, SequenceSample,
                     SnapshotResult, Step, TextStream, TrainResult, __version__, finetune, import_model, load,
                     preset, snapshot_info, train)

__all__ = ["Column", "Error", "Model", "NStepSample", "ReplayBuffer", "ReplayWriter", "Sample", "Saving",
           "SequenceSample", "SnapshotResult", "Step", "TextStream", "TrainResult", "__version__", "finetune", "import_model",
           "load", "preset", "snapshot_info", "train"]

if _numpy.__version__.startswith("2.") and not _quern._numpy_2:
    raise ImportError(f"quern was built with pybind11 before 2.12, which cannot use NumPy {_numpy.__version__}: install "
                      "'numpy<2', or build quern with a newer pybind11 (pip install . does)")


def _attach(shared, file):  # called when a pickled ReplayBuffer is unpickled, in the receiving process
    return ReplayBuffer.attach(shared, file)


globals().update(_calls.present({name: globals()[name] for name in __all__}))
