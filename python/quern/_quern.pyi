from collections.abc import Callable, ItemsView, Iterator, KeysView, Mapping, Sequence, ValuesView
from os import PathLike
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

__version__: str

class Error(ValueError): ...

class TextStream(Iterator[str]):
    def __iter__(self) -> TextStream: ...
    def __next__(self) -> str: ...
    @property
    def finish(self) -> str | None: ...

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
    def max_context(self) -> int: ...
    @property
    def vocabulary(self) -> int: ...
    @property
    def weights_hash(self) -> str: ...
    def encode(self, text: str | bytes) -> NDArray[np.int32]: ...
    def decode(self, ids: ArrayLike) -> str: ...
    def logits(self, tokens: ArrayLike, *, threads: int | None = None) -> NDArray[np.float32]: ...
    def loss(self, tokens: ArrayLike, *, threads: int | None = None) -> float: ...
    def evaluate(self, *paths: str | PathLike[str], threads: int | None = None) -> dict[str, Any]: ...
    def state_dict(self) -> dict[str, NDArray[np.float32]]: ...
    def export(self, path: str | PathLike[str], *, to: Literal["hf", "gguf", "peft", "gguf-lora"] = "hf",
               dtype: Literal["f32", "f16", "bf16", "q8_0"] = "f32", merge: bool = False,
               force: bool = False) -> Path: ...
    @overload
    def generate(
        self,
        prompt: str | bytes | None = None,
        *,
        tokens: int = 256,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        min_p: float = 0.0,
        repeat_penalty: float = 1.0,
        repeat_window: int = 64,
        stop: list[str] | tuple[str, ...] | None = None,
        seed: int = 0,
        ignore_end: bool = False,
        threads: int | None = None,
        samples: None = None,
    ) -> str: ...
    @overload
    def generate(
        self,
        prompt: str | bytes | None = None,
        *,
        tokens: int = 256,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        min_p: float = 0.0,
        repeat_penalty: float = 1.0,
        repeat_window: int = 64,
        stop: list[str] | tuple[str, ...] | None = None,
        seed: int = 0,
        ignore_end: bool = False,
        threads: int | None = None,
        samples: int,
    ) -> list[str]: ...
    def stream(
        self,
        prompt: str | bytes | None = None,
        *,
        tokens: int = 256,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        min_p: float = 0.0,
        repeat_penalty: float = 1.0,
        repeat_window: int = 64,
        stop: list[str] | tuple[str, ...] | None = None,
        seed: int = 0,
        ignore_end: bool = False,
        threads: int | None = None,
    ) -> TextStream: ...
    def chat(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        chat_template: str | PathLike[str] | None = None,
        tokens: int = 256,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        min_p: float = 0.0,
        repeat_penalty: float = 1.0,
        repeat_window: int = 64,
        seed: int = 0,
        threads: int | None = None,
    ) -> str: ...

def import_model(source: str | PathLike[str], run: str | PathLike[str], *, base: str | PathLike[str] | None = None,
                 context: int | None = None) -> Model: ...
def load(run: str | PathLike[str], *, checkpoint: int | str | PathLike[str] | None = None) -> Model: ...
def preset(name: str) -> dict[str, dict[str, Any]]: ...

class Step:
    @property
    def step(self) -> int: ...
    @property
    def steps(self) -> int: ...
    @property
    def loss(self) -> float: ...
    @property
    def validation_loss(self) -> float | None: ...
    @property
    def learning_rate(self) -> float: ...
    @property
    def gradient_norm(self) -> float: ...
    @property
    def skipped(self) -> bool: ...
    @property
    def tokens(self) -> int: ...
    @property
    def seconds(self) -> float: ...
    @property
    def tokens_per_s(self) -> float: ...

class TrainResult:
    @property
    def path(self) -> Path: ...
    @property
    def step(self) -> int: ...
    @property
    def finished(self) -> bool: ...
    @property
    def loss(self) -> float: ...
    @property
    def validation_loss(self) -> float | None: ...
    @property
    def weights_hash(self) -> str: ...

def train(
    data: str | PathLike[str] | Sequence[str | PathLike[str]] | None = None,
    *,
    out: str | PathLike[str],
    preset: str | None = None,
    config: dict[str, Any] | str | PathLike[str] | None = None,
    set: dict[str, Any] | None = None,
    tokenizer: str | PathLike[str] | None = None,
    steps: int | None = None,
    threads: int | None = None,
    resume: bool = False,
    init_from: str | PathLike[str] | None = None,
    on_step: Callable[[Step], object] | None = None,
    progress: bool | None = None,
) -> TrainResult: ...
def finetune(
    base: str | PathLike[str] | None = None,
    data: str | PathLike[str] | Sequence[str | PathLike[str]] | None = None,
    *,
    out: str | PathLike[str],
    chat_template: str | PathLike[str] | None = None,
    full: bool = False,
    rank: int | None = None,
    alpha: float | None = None,
    dropout: float | None = None,
    targets: str | Sequence[str] | None = None,
    epochs: int | None = None,
    steps: int | None = None,
    rate: float | None = None,
    batch: int | None = None,
    context: int | None = None,
    seed: int | None = None,
    threads: int | None = None,
    config: dict[str, Any] | str | PathLike[str] | None = None,
    set: dict[str, Any] | None = None,
    resume: bool = False,
    on_step: Callable[[Step], object] | None = None,
    progress: bool | None = None,
) -> TrainResult: ...

class Column:
    def __init__(
        self,
        dtype: DTypeLike = "float32",
        shape: int | Sequence[int] = (),
        encoding: Literal["raw", "bits", "sparse"] = "raw",
        max_nonzero: int = 0,
    ) -> None: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def encoding(self) -> str: ...
    @property
    def max_nonzero(self) -> int: ...
    @property
    def stored_bytes(self) -> int: ...

class Sample:
    def __getitem__(self, name: str) -> Any: ...  # an array, or a dict of arrays
    def __iter__(self) -> Iterator[str]: ...
    def __contains__(self, name: object) -> bool: ...
    def __len__(self) -> int: ...
    def keys(self) -> KeysView[str]: ...
    def values(self) -> ValuesView[NDArray[Any]]: ...
    def items(self) -> ItemsView[str, NDArray[Any]]: ...
    @property
    def arrays(self) -> dict[str, NDArray[Any]]: ...
    @property
    def nested(self) -> dict[str, Any]: ...
    @property
    def ids(self) -> NDArray[np.uint64]: ...
    @property
    def ages(self) -> NDArray[np.uint64]: ...
    @property
    def weights(self) -> NDArray[np.float32]: ...
    @property
    def mask(self) -> NDArray[np.bool_] | None: ...

class SequenceSample:
    def __getitem__(self, name: str) -> Any: ...  # an array, or a dict of arrays
    def __iter__(self) -> Iterator[str]: ...
    def __contains__(self, name: object) -> bool: ...
    def __len__(self) -> int: ...
    def keys(self) -> KeysView[str]: ...
    def values(self) -> ValuesView[NDArray[Any]]: ...
    def items(self) -> ItemsView[str, NDArray[Any]]: ...
    @property
    def arrays(self) -> dict[str, NDArray[Any]]: ...
    @property
    def nested(self) -> dict[str, Any]: ...
    @property
    def ids(self) -> NDArray[np.uint64]: ...
    @property
    def ages(self) -> NDArray[np.uint64]: ...
    @property
    def weights(self) -> NDArray[np.float32]: ...
    @property
    def mask(self) -> NDArray[np.bool_]: ...
    @property
    def lengths(self) -> NDArray[np.uint64]: ...

class NStepSample:
    def __getitem__(self, name: str) -> Any: ...  # an array, or a dict of arrays
    def __iter__(self) -> Iterator[str]: ...
    def __contains__(self, name: object) -> bool: ...
    def __len__(self) -> int: ...
    def keys(self) -> KeysView[str]: ...
    def values(self) -> ValuesView[NDArray[Any]]: ...
    def items(self) -> ItemsView[str, NDArray[Any]]: ...
    @property
    def arrays(self) -> dict[str, NDArray[Any]]: ...
    @property
    def nested(self) -> dict[str, Any]: ...
    @property
    def ids(self) -> NDArray[np.uint64]: ...
    @property
    def ages(self) -> NDArray[np.uint64]: ...
    @property
    def weights(self) -> NDArray[np.float32]: ...
    @property
    def next(self) -> dict[str, NDArray[Any]]: ...
    @property
    def returns(self) -> NDArray[np.float32]: ...
    @property
    def discounts(self) -> NDArray[np.float32]: ...
    @property
    def steps(self) -> NDArray[np.uint64]: ...
    @property
    def next_ids(self) -> NDArray[np.uint64]: ...

class ReplayWriter:
    def add(
        self,
        columns: dict[str, Any] | None = None,
        *,
        priority: float | None = None,
        timeout: float | None = None,
        cast: bool | None = None,
        **kwargs: Any,
    ) -> int | None: ...
    def add_batch(
        self,
        columns: dict[str, Any] | None = None,
        *,
        priorities: ArrayLike | None = None,
        timeout: float | None = None,
        cast: bool | None = None,
        **kwargs: Any,
    ) -> int | None: ...
    def reset(self) -> None: ...
    @property
    def streams(self) -> int: ...

class SnapshotResult:
    @property
    def rows(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def skipped(self) -> int: ...

class Saving:
    def done(self) -> bool: ...
    def result(self) -> SnapshotResult: ...

class ReplayBuffer:
    def __init__(
        self,
        columns: Mapping[str, Any],  # dtype, (dtype, shape), Column, or a dict of these
        capacity: int,
        *,
        prioritised: bool | None = None,
        alpha: float = 0.6,
        shared: str | None = None,
        file: str | PathLike[str] | None = None,
        terminal: str | None = None,
        truncated: str | None = None,
        samples_per_insert: float = 0.0,
        min_size: int = 1,
        slack: float = 0.0,
        prefault: bool = True,
        seed: int | None = None,
        cast: bool = False,
        prioritized: bool | None = None,
    ) -> None: ...
    @staticmethod
    def open_or_create(
        columns: Mapping[str, Any],  # dtype, (dtype, shape), Column, or a dict of these
        capacity: int,
        *,
        prioritised: bool | None = None,
        alpha: float = 0.6,
        shared: str | None = None,
        file: str | PathLike[str] | None = None,
        terminal: str | None = None,
        truncated: str | None = None,
        samples_per_insert: float = 0.0,
        min_size: int = 1,
        slack: float = 0.0,
        prefault: bool = True,
        seed: int | None = None,
        cast: bool = False,
        prioritized: bool | None = None,
    ) -> ReplayBuffer: ...
    @staticmethod
    def attach(
        shared: str | None = None,
        file: str | PathLike[str] | None = None,
        patience: float = 0.0,
        seed: int | None = None,
    ) -> ReplayBuffer: ...
    @staticmethod
    def remove(shared: str | None = None, file: str | PathLike[str] | None = None) -> bool: ...
    @staticmethod
    def from_snapshot(
        path: str | PathLike[str],
        capacity: int | None = None,
        shared: str | None = None,
        file: str | PathLike[str] | None = None,
        seed: int | None = None,
    ) -> ReplayBuffer: ...
    def add(
        self,
        columns: dict[str, Any] | None = None,
        *,
        priority: float | None = None,
        timeout: float | None = None,
        cast: bool | None = None,
        **kwargs: Any,
    ) -> int | None: ...
    def add_batch(
        self,
        columns: dict[str, Any] | None = None,
        *,
        priorities: ArrayLike | None = None,
        timeout: float | None = None,
        cast: bool | None = None,
        **kwargs: Any,
    ) -> int | None: ...
    def writer(self, streams: int = 1) -> ReplayWriter: ...
    def get(self, id: Any, *, out: Sample | dict[str, Any] | None = None) -> Any: ...  # dict, None or Sample
    def sample(
        self,
        n: int,
        *,
        out: Sample | dict[str, Any] | None = None,
        rule: Literal["uniform", "without_replacement", "prioritised", "prioritized", "recent"] | None = None,
        half_life: float = 0.0,
        beta: float = 0.4,
        timeout: float | None = None,
    ) -> Sample: ...
    def sample_sequences(
        self,
        batch: int,
        length: int,
        *,
        pad: bool = False,
        columns: Sequence[str] | None = None,
        out: SequenceSample | dict[str, Any] | None = None,
        rule: Literal["uniform", "without_replacement", "prioritised", "prioritized", "recent"] | None = None,
        half_life: float = 0.0,
        beta: float = 0.4,
        timeout: float | None = None,
    ) -> SequenceSample: ...
    def sample_n_step(
        self,
        batch: int,
        n: int,
        gamma: float,
        *,
        next: Sequence[str] | None = None,
        last: Sequence[str] | None = None,
        reward: str = "reward",
        columns: Sequence[str] | None = None,
        out: NStepSample | None = None,
        rule: Literal["uniform", "without_replacement", "prioritised", "prioritized", "recent"] | None = None,
        half_life: float = 0.0,
        beta: float = 0.4,
        timeout: float | None = None,
    ) -> NStepSample: ...
    def clear(self) -> None: ...
    def stats(self) -> dict[str, Any]: ...
    @staticmethod
    def list() -> Any: ...  # of dicts
    @staticmethod
    def info(shared: str | None = None, file: str | PathLike[str] | None = None) -> dict[str, Any]: ...
    def update_priorities(self, ids: ArrayLike, priorities: ArrayLike) -> int: ...
    def save(self, path: str | PathLike[str], threads: int | None = None) -> SnapshotResult: ...
    def save_in_background(self, path: str | PathLike[str], threads: int | None = None) -> Saving: ...
    def load(self, path: str | PathLike[str], threads: int | None = None) -> SnapshotResult: ...
    def export_npz(self, path: str | PathLike[str]) -> SnapshotResult: ...
    def import_npz(self, path: str | PathLike[str]) -> SnapshotResult: ...
    def __len__(self) -> int: ...
    @property
    def capacity(self) -> int: ...
    @property
    def total_added(self) -> int: ...
    @property
    def columns(self) -> dict[str, Column]: ...
    @property
    def prioritised(self) -> bool: ...
    @property
    def prioritized(self) -> bool: ...
    @property
    def terminal(self) -> str | None: ...
    @property
    def truncated(self) -> str | None: ...
    @property
    def row_bytes(self) -> int: ...
    @property
    def seed(self) -> int: ...
    @property
    def draws(self) -> int: ...
    @draws.setter
    def draws(self, value: int) -> None: ...

def snapshot_info(path: str | PathLike[str]) -> dict[str, Any]: ...
