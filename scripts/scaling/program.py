"""The operations of a pass over a micro-batch, as in the code (nn/models/gpt2.cc, nn/layers/).

A program has stages; between two stages the members of a team synchronize. A stage has a list for each member:
(tickets to wait for, seconds, tickets to pass on).
"""

from scaling.model import PANEL_COLUMNS


def part(n, index, size, unit=1):
    """Member::part in core/team.h: this member's part of n items, in multiples of unit. (begin, end)"""
    units = -(-n // unit)
    return min(n, units * index // size * unit), min(n, units * (index + 1) // size * unit)


def segments_at_once(tensor, width, workers, divisor):
    """Gradient::segments_at_once; there, divisor is 4."""
    piece = 4 * width * width // max(1, workers // divisor)
    return min(max(len(tensor.segments) * piece // tensor.size, 1), len(tensor.segments))


class Program:
    """members: size of the team; workers: number the gradient was created for; last: the last micro-batch of its step,
    which computes the norms."""

    def __init__(self, model, layout, rates, options, members, workers, last):
        self.model, self.layout, self.rates, self.options = model, layout, rates, options
        self.members, self.workers, self.last = members, workers, last
        self.stages = [[[] for _ in range(members)]]
        self.inputs_ticket = len(layout.segments)
        self._forward()
        self._output()
        self._backward()
        if members == 1:
            self.stages = [[_without_meetings(self.stages)]]

    def seconds(self):
        """Seconds of work, over all members."""
        return sum(seconds for stage in self.stages for member in stage for _, seconds, _ in member)

    def of_one_ticket_each(self):
        """The same, for single-thread workers: all use the same pieces, so the first ticket of a piece is enough."""
        self.stages = [[[(enter[:1], seconds, leave[:1]) for enter, seconds, leave in member] for member in stage]
                       for stage in self.stages]
        return self

    def _meet(self):
        self.stages.append([[] for _ in range(self.members)])

    def _do(self, member, seconds, enter=(), leave=()):
        if seconds > 0 or enter or leave:
            self.stages[-1][member].append((enter, seconds, leave))

    def _share(self, seconds, n, unit=1):
        """An operation on n items that takes `seconds` in total; each member does its part."""
        for member in range(self.members):
            begin, end = part(n, member, self.members, unit)
            self._do(member, seconds * (end - begin) / n)

    def _elementwise(self, bytes_per_float, columns=1):
        rows, floats = self.model.rows, self.model.rows * columns * self.model.width
        self._share(self.rates.bytes(floats * bytes_per_float), rows)

    def _gemm(self, kind, M, N, K, exponentials=False):
        """gemm_part: columns in full panels; rows are split too when there are more members than panels."""
        seconds = self.rates.gemm(kind, M, N, K)
        if exponentials:
            seconds += self.rates.exponentials(M * N)
        panels = -(-N // PANEL_COLUMNS)
        across = min(self.members, panels)
        down = self.members // across
        for member in range(across * down):
            rows = part(M, member // across, down)
            columns = part(N, member % across, across, PANEL_COLUMNS)
            self._do(member, seconds * (rows[1] - rows[0]) * (columns[1] - columns[0]) / (M * N))

    def _add_product(self, name, rows, first=True, last=True):
        """add_product_in_turn: the weight gradient of a tensor, piece by piece, each in its turn."""
        tensor = self.layout.tensors[name]
        M, width = tensor.shape
        at_once = segments_at_once(tensor, self.model.width, self.workers, self.options.divisor)
        if at_once < len(tensor.segments) or self.members > 1:
            self._share(self.rates.bytes(rows * width * 8), width, PANEL_COLUMNS)
            self._meet()
        whole = self.rates.gemm("tn", M, width, rows)
        for member in range(self.members):
            begin, end = part(len(tensor.segments), member, self.members)
            for s in range(begin, end, at_once):
                stop = min(s + at_once, end)
                height = sum(tensor.segments[s:stop])
                seconds = whole * height / M + (self._read_again(rows, width) if height < M else 0)
                if self.last and last and tensor.first_segment >= self.layout.joins:
                    seconds += self.rates.bytes(height * width * 4)  # the squared norm
                tickets = tuple(range(tensor.first_segment + s, tensor.first_segment + stop))
                self._do(member, seconds, tickets if first else (), tickets if last else ())

    def _read_again(self, rows, width):
        """A piece costs more than its share when the packed right operand, which every piece reads, exceeds L2."""
        size = rows * width * 4
        return size / (self.options.piece_gbs * 1e9) if size > self.options.l2_mib * 2**20 else 0.0

    def _linear_backward(self, name, inputs, outputs):
        rows = self.model.rows
        self._add_product(name, rows)
        ticket = (self.layout.tensors[name + ".bias"].first_segment,)
        self._do(self.members - 1, self.rates.bytes(rows * outputs * 4), ticket, ticket)
        self._gemm("nt", rows, inputs, outputs)
        self._meet()

    def _norm_backward(self, name):
        ticket = (self.layout.tensors[name].first_segment,)
        seconds = self.rates.bytes(self.model.rows * self.model.width * 16)
        self._do(0, seconds, ticket, ticket)  # by one member
        self._meet()

    def _forward(self):
        model, C, rows = self.model, self.model.width, self.model.rows
        heads = model.sequences * model.heads
        self._elementwise(12)  # embedding
        self._meet()
        self._meet()
        for layer in range(model.layers):
            self._elementwise(8 if layer == 0 else 16)
            self._meet()
            self._gemm("nn", rows, 3 * C, C)
            self._meet()
            self._share(heads * self.rates.attention(model)[0], heads)
            self._meet()
            self._gemm("nn", rows, C, C)
            self._meet()
            self._elementwise(16)
            self._meet()
            self._gemm("nn", rows, 4 * C, C, exponentials=True)
            self._meet()
            self._gemm("nn", rows, C, 4 * C)
            self._meet()
        self._elementwise(16)
        self._meet()

    def _output(self):
        rows, C, V = self.model.rows, self.model.width, self.model.vocabulary
        for first in range(0, rows, 256):
            n = min(256, rows - first)
            self._gemm("nt", n, V, C)
            self._meet()
            self._share(self.rates.exponentials(n * V), n)
            self._meet()
            self._gemm("nn", n, C, V)
            self._add_product("wte", n, first=first == 0, last=first + n == rows)
            self._meet()

    def _backward(self):
        model, C, rows = self.model, self.model.width, self.model.rows
        heads = model.sequences * model.heads
        self._elementwise(4)
        self._meet()
        self._norm_backward("norm")
        for layer in reversed(range(model.layers)):
            self._linear_backward(f"{layer}.contract", 4 * C, C)
            self._share(self.rates.exponentials(rows * 4 * C), rows * 4 * C, 16)
            self._meet()
            self._linear_backward(f"{layer}.expand", C, 4 * C)
            self._norm_backward(f"{layer}.norm2")
            self._linear_backward(f"{layer}.project", C, C)
            self._share(heads * self.rates.attention(model)[1], heads)
            self._meet()
            self._linear_backward(f"{layer}.qkv", C, 3 * C)
            self._norm_backward(f"{layer}.norm1")
        self._meet()
        ticket = (self.inputs_ticket,)
        self._do(0, self.rates.bytes(rows * C * 20), ticket, ticket)


def _without_meetings(stages):
    """One list for a single thread; everything between two tickets is one operation."""
    merged = []
    for operation in (operation for stage in stages for operation in stage[0]):
        if merged and not any((merged[-1][0], merged[-1][2], operation[0], operation[2])):
            merged[-1] = ((), merged[-1][1] + operation[1], ())
        else:
            merged.append(operation)
    return merged
