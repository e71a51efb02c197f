"""Synthetic views of the dashboard: what a server would answer for runs of several kinds."""
import math

from curves import Curve, loss, noise, rate

HOSTILE = "</script><img src=x onerror=alert(1)><b>bold</b> & \"quotes\" \u202e \u0000"
OPERATIONS = ["matmul", "attention", "layernorm", "gelu", "loss", "optimizer", "data", "other"]
STORY = ("Long ago, at the end of the road, there lived a generous child named Dora. One sunny evening, Dora was woken by a "
         "strange noise. \u201cIs it a ghost?\u201d she whispered. She wanted to hide under the bed, but she opened the door.")
LINES = {"kind": "lines"}


class Run:
    """A run of `steps` steps whose view can be asked for at any step."""

    def __init__(self, id, name, steps, seed=1, every=1, end=1.45, selfplay=False):
        self.id, self.name, self.steps, self.seed, self.every, self.selfplay = id, name, steps, seed, every, selfplay
        self.revision = 0
        self.events = [{"step": 0, "seconds": 0.0, "kind": "start", "text": "2 threads, AVX-512"}]
        self.summary_label = "loss"
        ticks = range(every, steps + 1, every)
        sparse = range(max(steps // 24, 1), steps + 1, max(steps // 24, 1))
        curve = loss(seed, end=end, half=steps / 28)
        gaps = {int(steps * 0.31) // every * every, int(steps * 0.32) // every * every}
        self.curves = {
            "loss": Curve(ticks, lambda step: math.nan if step in gaps else curve(step)),
            "validation_loss": Curve(sparse, lambda step: curve(step) - 0.06 * noise(step, seed) + 0.09 + 0.02 * noise(step, 77)),
            "rate": Curve(ticks, rate(steps)),
            "gradient_norm": Curve(ticks, lambda step: 0.25 + 1.8 / (1 + step / steps * 30) + 0.12 * noise(step, seed + 5)
                                   + (9 if noise(step, 6) > 0.9985 else 0)),
            "tokens_per_s": Curve(ticks, lambda step: 47500 + 900 * noise(step, seed + 8) - (14000 if noise(step // 40, 9) > 0.93 else 0)),
            "mfu": Curve(ticks, lambda step: 0.58 + 0.012 * noise(step, 10)),
            "busy": Curve(ticks, lambda step: 0.965 + 0.012 * noise(step, 11)),
            "memory.planned": Curve(ticks, lambda step: 212 * 2**20),
            "memory.resident": Curve(ticks, lambda step: (188 + 14 * (1 - math.exp(-step / steps * 9))) * 2**20),
            "memory.peak": Curve(ticks, lambda step: (203 + 4 * (1 - math.exp(-step / steps * 9))) * 2**20),
        }
        if selfplay:
            for name, level in (("won", 0.46), ("drawn", 0.2), ("lost", 0.34)):
                self.curves[f"selfplay.{name}"] = Curve(ticks, share_of(name))
            self.curves["selfplay.games_per_s"] = Curve(ticks, lambda step: 84 + 6 * noise(step, 31))
            self.curves["rating.elo"] = Curve(sparse, lambda step: 1500 * (1 - math.exp(-step / steps * 4)) + 20 * noise(step, 41))

    def panels(self):
        def lines(id, title, unit, series, **more):
            return {"id": id, "title": title, "kind": "lines", "unit": unit, "scale": "linear", "help": f"Help about {title}.",
                    "series": [{"field": field, "label": label, "style": style, "smooth": smooth}
                               for field, label, style, smooth in series], **more}
        panels = [
            lines("loss", "Loss", "nats per token",
                  [("loss", "training", "line", True), ("validation_loss", "validation", "dots", False)],
                  rules=[{"value": 1.311, "label": "lowest achievable"}]),
            lines("speed", "Speed", "tokens per second", [("tokens_per_s", "tokens", "line", True)]),
            lines("efficiency", "Efficiency", "share", [("mfu", "of the peak", "line", True), ("busy", "threads busy", "line", True)]),
            lines("rate", "Learning rate", "", [("rate", "rate", "line", False)]),
            lines("gradient", "Gradient norm", "", [("gradient_norm", "norm", "line", True)], scale="log",
                  rules=[{"value": 1.0, "label": "clip", "series": "gradient_norm"}]),
            lines("memory", "Memory", "bytes", [("memory.planned", "planned", "step", False),
                                                ("memory.resident", "resident", "line", False), ("memory.peak", "peak", "line", False)]),
            {"id": "operations", "title": "Time by operation", "kind": "table", "field": "operations", "help": "Where a step goes."},
            {"id": "health", "title": "Gradient health", "kind": "heatmap", "field": "health", "help": "By tensor.",
             "measures": [{"name": "norm", "label": "gradient norm", "scale": "log"},
                          {"name": "update_ratio", "label": "update ratio", "scale": "log"}]},
            {"id": "samples", "title": "Samples", "kind": "text", "field": "samples", "help": "What the model writes."},
            {"id": "nothing", "title": "Never logged", "kind": "lines", "unit": "", "scale": "linear",
             "series": [{"field": "absent", "label": "absent"}]},
            {"id": "events", "title": "Events", "kind": "events"},
        ]
        if self.selfplay:
            panels[1:1] = [
                lines("results", "Results", "", [("selfplay.won", "won", "line", False), ("selfplay.drawn", "drawn", "line", False),
                                                 ("selfplay.lost", "lost", "line", False)], shares=True),
                lines("games", "Games", "games per second", [("selfplay.games_per_s", "games", "line", True)]),
                lines("rating", "Rating", "Elo", [("rating.elo", "against the solver", "dots", False)])]
        return panels

    def rows(self):
        parts = ["ln_1", "attn.qkv", "attn.out", "ln_2", "mlp.in", "mlp.out"]
        return ["wte", "wpe"] + [f"h.{layer}.{part}.weight" for layer in range(4) for part in parts] + ["ln_f.weight"]

    def heatmap(self, upto):
        every = max(self.steps // 60, 1)
        steps = list(range(every, upto + 1, every))
        rows = self.rows()

        def values(scale, seed):
            return [[None if noise(step * 31 + row, seed + 3) > 0.997 else
                     scale * math.exp(1.3 * noise(row, seed) - 1.6 * step / self.steps + 0.25 * noise(step * 7 + row, seed))
                     for step in steps] for row in range(len(rows))]
        return {"step": steps, "rows": rows, "measures": {"norm": values(0.3, 5), "update_ratio": values(2e-3, 6)}}

    def view(self, upto=None, state=None, x="step", lo=-math.inf, hi=math.inf, points=2000):
        upto = self.steps if upto is None else upto
        seconds = upto * 0.043
        series = {name: curve.series(upto, x, lo, hi, points) for name, curve in self.curves.items()}
        shown = [field for field in ("loss", "validation_loss", "tokens_per_s", "memory.peak")]
        labels = {"loss": ("loss", "nats per token", True), "validation_loss": ("validation loss", "nats per token", True),
                  "tokens_per_s": ("tokens/s", "tokens per second", False), "memory.peak": ("peak memory", "bytes", True)}
        summary = []
        for field in shown:
            label, unit, lower = labels[field]
            pairs = [(value, step) for value, step in zip(series[field]["value"], series[field]["step"]) if value is not None]
            if pairs:
                best = (min if lower else max)(pairs)
                summary.append({"label": label, "last": pairs[-1][0], "best": best[0] if field != "memory.peak" else None,
                                "best_step": best[1], "lower_is_better": lower, "unit": unit})
        samples = [{"step": step, "label": "Long ago", "text": STORY if step > self.steps // 2 else "day " * 24}
                   for step in range(self.steps // 10, upto + 1, max(self.steps // 10, 1))]
        return {
            "id": self.id, "name": self.name, "revision": self.revision,
            "state": state or ("finished" if upto == self.steps else "training"),
            "step": upto, "steps": self.steps, "seconds": seconds,
            "seconds_left": None if upto == self.steps else (self.steps - upto) * 0.043,
            "header": [{"label": "Model", "value": "GPT-2, 4 layers, width 128, 0.92M parameters"},
                       {"label": "Data", "value": "stories.txt, 12.4 MiB, char tokenizer, 68 tokens"},
                       {"label": "Batch", "value": "16 sequences of 128 tokens"},
                       {"label": "Optimizer", "value": "AdamW, peak rate 0.003, cosine"},
                       {"label": "Machine", "value": "AMD EPYC 9845, 2 cores, AVX-512"},
                       {"label": "Threads", "value": "2"},
                       {"label": "Command", "value": f"quern train stories.txt --run {self.name} --preset minute"},
                       {"label": "Commit", "value": "abc1234"},
                       {"label": "Weights hash", "value": "9f2c51c0a2d74b1e8f6d3a7705be1c44"}],
            "summary": summary, "panels": self.panels(), "series": series,
            "heatmaps": {"health": self.heatmap(upto)},
            "tables": {"operations": {
                "columns": [{"label": "operation"}, {"label": "share", "unit": "%"}, {"label": "per step", "unit": "s"}],
                "rows": [[name, 46.0 / 1.8**i, 0.0198 / 1.8**i] for i, name in enumerate(OPERATIONS)]}},
            "texts": {"samples": samples},
            "events": [event for event in self.events if event["step"] <= upto],
        }


def share_of(name):
    def value(step):
        won = 0.4 + 0.12 * math.tanh(step / 900) + 0.04 * noise(step // 20, 51)
        drawn = 0.12 + 0.1 * math.tanh(step / 1500) + 0.02 * noise(step // 20, 52)
        return {"won": won, "drawn": drawn, "lost": 1 - won - drawn}[name]
    return value


def history(run):
    """Gives a run some events."""
    def add(share, kind, text):
        step = max(int(run.steps * share), 1)
        run.events.append({"step": step, "seconds": step * 0.043, "kind": kind, "text": text})
    for i in range(1, 11):
        add(i / 10, "checkpoint", f"step-{int(run.steps * i / 10):08}")
        if i in (3, 6, 9):
            add(i / 10, "best", f"validation loss {1.9 - i / 25:.3f}")
    add(0.31, "incident", "the gradient is not finite; the update was skipped")
    add(0.44, "resume", "from step-00000400, after a kill")
    add(0.62, "warning", "memory: the process holds 3% more than planned")
    run.events.sort(key=lambda event: event["step"])
    return run


def wrap(*runs):
    return {"version": 1, "quern": "0.1.0 (abc1234)", "runs": list(runs)}


def hostile_view():
    """Every text of the view is markup, and numbers have gaps."""
    view = wrap(history(Run("0", HOSTILE, 200)).view())

    def poison(value, key=None):
        if isinstance(value, dict):
            return {name: poison(member, name) for name, member in value.items()}
        if isinstance(value, list):
            return [poison(member, key) for member in value]
        if isinstance(value, str) and key not in ("id", "kind", "state", "field", "scale", "style", "name"):
            return HOSTILE
        return value
    run = poison(view["runs"][0])
    run["name"] = HOSTILE
    run["heatmaps"]["health"]["rows"] = [HOSTILE + str(i) for i in range(27)]
    view["runs"] = [run]
    view["quern"] = HOSTILE
    return view
