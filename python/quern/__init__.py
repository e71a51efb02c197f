"""Quern: trains small transformers on CPUs, reproducibly, and uses them.

>>> model = quern.load("runs/first")
>>> logits = model.logits(model.encode("Once upon a time"))
"""

from ._quern import Error, Model, TextStream, __version__, load

__all__ = ["Error", "Model", "TextStream", "__version__", "load"]

for _name in __all__:  # so that people are told where to find them
    if _name != "__version__":
        globals()[_name].__module__ = "quern"
del _name
