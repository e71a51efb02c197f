"""Quern: train small transformers on CPUs, reproducibly, and run them.

>>> model = quern.load("runs/first")
>>> logits = model.logits(model.encode("Once upon a time"))
"""

import numpy as _numpy

from . import _calls, _quern
from ._games import Game
from ._quern import (BoardModel, BuiltinGame, Column, Error, Generation, Model, NStepSample, Position, ReplayBuffer,
                     ReplayWriter, Sample, Saving, SequenceSample, SnapshotResult, Step, TextStream, TrainResult,
                     __version__, finetune, game, import_model, load, load_board, preset, selfplay, snapshot_info,
                     train, train_board)

__all__ = ["BoardModel", "BuiltinGame", "Column", "Error", "Game", "Generation", "Model", "NStepSample", "Position",
           "ReplayBuffer", "ReplayWriter", "Sample", "Saving", "SequenceSample", "SnapshotResult", "Step",
           "TextStream", "TrainResult", "__version__", "finetune", "game", "import_model", "load", "load_board",
           "preset", "selfplay", "snapshot_info", "train", "train_board"]

if _numpy.__version__.startswith("2.") and not _quern._numpy_2:
    raise ImportError(f"quern was built with pybind11 before 2.12, which cannot use NumPy {_numpy.__version__}: install "
                      "'numpy<2', or build quern with a newer pybind11 (pip install . does)")


def _attach(shared, file):  # called when a pickled ReplayBuffer is unpickled, in the receiving process
    return ReplayBuffer.attach(shared, file)


def _unpickled_board(path, settings, weights, step, rules):  # called when a pickled BoardModel is unpickled
    return _quern._unpickled_board(path, settings, weights, step, rules)


globals().update(_calls.present({name: globals()[name] for name in __all__ if name != "Game"}))
Game.__module__ = "quern"
