"""Held-out loss over training time as an SVG, built from strings only. Time is logarithmic."""

import math
from xml.sax.saxutils import escape

from quality.curves import curves

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 760, 420, 64, 44, 200, 56
COLOURS = ("#1f618d", "#c0392b", "#117a65", "#b9770e", "#6c3483", "#424949")  # also distinguished by dashes
DASHES = ("none", "6 4", "2 3", "8 3 2 3", "none", "6 4")
FONT = 'font-family="DejaVu Sans, Verdana, Arial, sans-serif"'
TICKS = {1: "1 s", 3: "3 s", 10: "10 s", 30: "30 s", 60: "1 min", 180: "3 min", 600: "10 min", 1800: "30 min",
         3600: "1 h", 10800: "3 h"}


def _text(x, y, content, anchor="middle", extra=""):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="13" {FONT} fill="#222" {extra}>'
            f'{escape(str(content))}</text>')


class _Axes:
    def __init__(self, points):
        seconds, losses = [p.seconds for p in points], [p.loss for p in points]
        self.first, self.last = max(1.0, min(seconds) * 0.9), max(max(seconds) * 1.1, 10.0)
        self.low = math.floor(min(losses) * 10) / 10
        self.high = min(math.ceil(max(losses) * 10) / 10, self.low + 1.5)

    def x(self, seconds):
        return LEFT + (WIDTH - LEFT - RIGHT) * math.log(seconds / self.first) / math.log(self.last / self.first)

    def y(self, loss):
        return TOP + (HEIGHT - TOP - BOTTOM) * (self.high - loss) / (self.high - self.low)

    def grid(self, losses):
        right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
        out = []
        for seconds, name in TICKS.items():
            if self.first <= seconds <= self.last:
                out.append(f'<path d="M{self.x(seconds):.1f} {TOP} V{bottom}" stroke="#ddd" fill="none"/>')
                out.append(_text(self.x(seconds), bottom + 18, name))
        for tenth in range(round(self.low * 10), round(self.high * 10) + 1, 1 if self.high - self.low < 1 else 2):
            out.append(f'<path d="M{LEFT} {self.y(tenth / 10):.1f} H{right}" stroke="#ddd" fill="none"/>')
            out.append(_text(LEFT - 8, self.y(tenth / 10) + 4, f"{tenth / 10:.1f}", "end"))
        for loss in losses:
            if self.low < loss < self.high:
                out.append(f'<path d="M{LEFT} {self.y(loss):.1f} H{right}" stroke="#888" stroke-dasharray="1 3"/>')
                out.append(_text(right + 4, self.y(loss) + 4, f"{loss:.2f}", "start"))
        out.append(f'<path d="M{LEFT} {TOP} V{bottom} H{right}" stroke="#222" fill="none"/>')
        return out


def svg(points, losses):
    points = [p for p in points if p.seconds > 0]
    axes = _Axes(points)
    names = list(dict.fromkeys(p.name for p in points))
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
           _text((LEFT + WIDTH - RIGHT) / 2, 24, "Loss on held-out text, by training time"), *axes.grid(losses)]
    for (name, _), curve in curves(points).items():
        kind = names.index(name) % len(COLOURS)
        places = [f"{axes.x(p.seconds):.1f} {axes.y(p.loss):.1f}" for p in curve
                  if p.seconds >= axes.first and p.loss <= axes.high]
        if places:
            out.append(f'<path d="M{" L".join(places)}" stroke="{COLOURS[kind]}" stroke-width="1.6" '
                       f'stroke-dasharray="{DASHES[kind]}" fill="none"/>')
    for i, name in enumerate(names):
        kind, y = i % len(COLOURS), TOP + 14 + 22 * i
        out.append(f'<path d="M{WIDTH - RIGHT + 44} {y} h28" stroke="{COLOURS[kind]}" stroke-width="2" '
                   f'stroke-dasharray="{DASHES[kind]}"/>')
        out.append(_text(WIDTH - RIGHT + 78, y + 4, name, "start"))
    out.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, "training time on two cores"))
    out.append(_text(18, HEIGHT / 2, "nats per token", extra=f'transform="rotate(-90 18 {HEIGHT / 2:.1f})"'))
    return "\n".join([*out, "</svg>"]) + "\n"
