"""Quern: trains small transformers on CPUs, reproducibly, and uses them.

>>> model = quern.load("runs/first")
>>> logits = model.logits(model.encode("Once upon a time"))
"""

from ._quern import Error, Model, Step, TextStream, TrainResult, __version__, load, preset, train

__all__ = ["Error", "Model", "Step", "TextStream", "TrainResult", "__version__", "load", "preset", "train"]

for _name in __all__:  # so that people are told where to find them
    if _name != "__version__":
        globals()[_name].__module__ = "quern"
del _name
