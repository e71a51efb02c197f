from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__version__: str

class Error(ValueError): ...

class TextStream(Iterator[str]):
    def __iter__(self) -> TextStream: ...
    def __next__(self) -> str: ...

class Model:
    @property
    def path(self) -> Path: ...
    @property
    def config(self) -> dict[str, dict[str, Any]]: ...
    @property
    def step(self) -> int: ...
    @property
    def parameters(self) -> int: ...
    @property
    def context(self) -> int: ...
    @property
    def vocabulary(self) -> int: ...
    @property
    def weights_hash(self) -> str: ...
    def encode(self, text: str | bytes) -> NDArray[np.int32]: ...
    def decode(self, ids: ArrayLike) -> str: ...
    def logits(self, tokens: ArrayLike, *, threads: int | None = None) -> NDArray[np.float32]: ...
    def loss(self, tokens: ArrayLike, *, threads: int | None = None) -> float: ...
    def evaluate(self, *paths: str | PathLike[str], threads: int | None = None) -> dict[str, Any]: ...
    def generate(
        self,
        prompt: str | bytes = "\n",
        *,
        tokens: int = 256,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        seed: int = 0,
        threads: int | None = None,
    ) -> str: ...
    def stream(
        self,
        prompt: str | bytes = "\n",
        *,
        tokens: int = 256,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        seed: int = 0,
        threads: int | None = None,
    ) -> TextStream: ...

def load(run: str | PathLike[str]) -> Model: ...
