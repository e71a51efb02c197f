"""The model and the cost of its operations: shapes, segments, measured rates."""

import dataclasses
import json
import pathlib

PANEL_COLUMNS = 48  # kernels::kPanelColumns
SEGMENT_ROWS = 48   # nn/parameter_table.h
MICRO_BATCH_TOKENS = 256
PACK_FROM = 4       # min micro-batches per step for which weights are stored packed, train/trainer.h


@dataclasses.dataclass(frozen=True)
class Model:
    layers: int
    heads: int
    width: int
    context: int
    vocabulary: int
    batch: int  # sequences per step

    @property
    def sequences(self):
        """Sequences per micro-batch."""
        return max(1, min(self.batch, MICRO_BATCH_TOKENS // self.context))

    @property
    def rows(self):
        return self.sequences * self.context

    @property
    def micro_batches(self):
        return -(-self.batch // self.sequences)


PRESETS = {
    "tiny": Model(4, 4, 128, 128, 96, 16),
    "small": Model(6, 6, 384, 256, 96, 8),
    "gpt2": Model(12, 12, 768, 64, 50304, 4),
}


# For several ranks there is also one with the shape of TinyLlama, but with GPT-2's blocks: 1.18 billion parameters.
MODELS = {**PRESETS, "1.1b": Model(22, 32, 2048, 2048, 32000, 8)}
RANK_PRESETS = ("small", "gpt2", "1.1b")


@dataclasses.dataclass(frozen=True)
class Tensor:
    shape: tuple
    first_segment: int
    segments: tuple  # rows of each

    @property
    def size(self):
        return self.shape[0] * self.shape[1]


class ParameterLayout:
    """nn/parameters.cc: tensors in order, matrices cut into segments of full blocks of rows."""

    def __init__(self, model, segment_floats):
        self.tensors = {}
        self.segments = []  # (floats, whether it belongs to a matrix that is stored packed)
        self._segment_floats = segment_floats
        C = model.width
        self._add("wte", (model.vocabulary, C), True)
        self._add("wpe", (model.context, C), False)
        self.joins = len(self.segments)
        for layer in range(model.layers):
            for name, rows, columns in (("norm1", 1, C), ("qkv", C, 3 * C), ("project", C, C), ("norm2", 1, C),
                                        ("expand", C, 4 * C), ("contract", 4 * C, C)):
                self._add(f"{layer}.{name}", (rows, columns), rows > 1)
                self._add(f"{layer}.{name}.bias", (1, columns), False)
        self._add("norm", (1, C), False)
        self._add("norm.bias", (1, C), False)
        self.size = sum(floats for floats, _ in self.segments)

    def _add(self, name, shape, packed):
        rows, width = shape
        at_once = max(1, self._segment_floats // width // SEGMENT_ROWS) * SEGMENT_ROWS
        cut = tuple(min(at_once, rows - row) for row in range(0, rows, at_once))
        self.tensors[name] = Tensor(shape, len(self.segments), cut)
        self.segments += [(n * width, packed) for n in cut]


class Rates:
    """Duration of operations on one core in seconds, from the output of `quern bench kernels --json`.

    `own` has the rates that the benchmark does not report; see docs/data/kernel_rates.json.
    """

    def __init__(self, path):
        data = json.loads(pathlib.Path(path).read_text())
        self.machine = data["machine"]
        self.own = data.get("own", {})
        self._values = {}
        for result in data["results"]:
            self._values.setdefault(result["name"], result["value"])
        self._gemm_mean = self._values["gemm/geomean"] * 1e9

    def gemm(self, layout, M, N, K):
        """At the measured rate of the shape, or at the mean rate of all if it was not measured."""
        rate = self._values.get(f"gemm/{layout}/{M}x{N}x{K}")
        return 2 * M * N * K / (rate * 1e9 if rate else self._gemm_mean)

    def attention(self, model):
        """(forward, backward) of one head of one sequence."""
        T, head_dim = model.context, model.width // model.heads
        measured = min((int(name.split("=")[1]) for name in self._values if name.startswith("attention/forward/T=")),
                       key=lambda length: abs(length - T))
        product = 2 * head_dim * T * (T + 1) / 2 * 1e-9
        forward = 2 * product / self._values[f"attention/forward/T={measured}"]
        return forward, 6 * product / self._values[f"attention/forward_backward/T={measured}"] - forward

    def adamw(self, cached):
        """For one parameter."""
        return 1e-9 / self._values["adamw/2359296/threads=1" if cached else "adamw/124439808/threads=1"]

    def bytes(self, count):
        """For an operation that reads and writes this many bytes of cached activations."""
        return count / (self._values["layernorm/forward/512x512"] * 1e9)

    def exponentials(self, count):
        return count / (self.own.get("gelu_gelements", 2.0) * 1e9)

    def memory(self, count):
        return count / (self.machine["read_gbs"] * 1e9)

    def copied(self, count):
        return count / (self.machine["copy_gbs"] * 1e9)
