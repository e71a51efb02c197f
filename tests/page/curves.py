"""Synthetic curves of a run, the same in every process, and their decimation as the server does it."""
import math
from array import array


def noise(i, seed):
    """Uniform in [-1, 1), a function of i and seed."""
    x = (i * 0x9E3779B1 + seed * 0x85EBCA6B) & 0xFFFFFFFF
    x = ((x ^ (x >> 15)) * 0x2C1B3C6D) & 0xFFFFFFFF
    x = ((x ^ (x >> 12)) * 0x297A2D39) & 0xFFFFFFFF
    return (x ^ (x >> 15)) / 2**31 - 1


class Curve:
    """One value per step: `value(i)` of step steps[i], NaN where nothing finite was logged."""

    def __init__(self, steps, value, tokens_per_step=2048, seconds_per_step=0.043):
        self.steps = array("d", steps)
        self.values = array("d", (value(int(step)) for step in self.steps))
        self.tokens = array("d", (step * tokens_per_step for step in self.steps))
        self.seconds = array("d", (step * seconds_per_step for step in self.steps))

    def axis(self, name):
        return {"step": self.steps, "tokens": self.tokens, "time": self.seconds}[name]

    def series(self, upto=None, x="step", lo=-math.inf, hi=math.inf, points=2000):
        """The series of the view, cut to steps <= upto and to [lo, hi] of x, with at most `points` points."""
        place = self.axis(x)
        chosen = [i for i in range(len(self.steps)) if lo <= place[i] <= hi and (upto is None or self.steps[i] <= upto)]
        group = max(1, math.ceil(len(chosen) / points))
        groups = [chosen[i:i + group] for i in range(0, len(chosen), group)]
        finite = [[self.values[i] for i in members if math.isfinite(self.values[i])] for members in groups]
        last = [members[-1] for members in groups]
        return {
            "step": [int(self.steps[i]) for i in last],
            "tokens": [int(self.tokens[i]) for i in last],
            "seconds": [round(self.seconds[i], 3) for i in last],
            "value": [sum(values) / len(values) if values else None for values in finite],
            "low": None if group == 1 else [min(values, default=None) for values in finite],
            "high": None if group == 1 else [max(values, default=None) for values in finite],
            "points": len(chosen),
        }


def loss(seed, start=4.6, end=1.45, half=180.0, wobble=0.06):
    def value(step):
        return end + (start - end) / (1 + step / half) ** 0.9 + wobble * noise(step, seed)
    return value


def rate(steps, peak=3e-3, warmup=0.05):
    def value(step):
        ramp = steps * warmup
        if step < ramp:
            return peak * step / ramp
        return peak * (0.1 + 0.45 * (1 + math.cos(math.pi * (step - ramp) / (steps - ramp))))
    return value
