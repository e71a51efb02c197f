#!/usr/bin/env python3
"""Draws how often a network of self-play is wrong, by the time that it has learned.

    build/release/quern selfplay connect4 --run runs/four --set checkpoint.keep=1000 --set checkpoint.interval=250
    build/release/quern arena runs/four --mistakes --all --threads 2 --json > mistakes.json
    scripts/selfplay_curve.py mistakes.json runs/four/metrics.jsonl --svg curve.svg

Prints the points as a Markdown table, too. Time is that of the run; with --evaluations-per-s, it is the number of
evaluations divided by this speed, as `quern bench selfplay` measures it, for a run beside other work.
"""

import argparse
import json
import pathlib
from xml.sax.saxutils import escape

PANEL, HEIGHT, LEFT, TOP, GAP, BOTTOM = 300, 240, 64, 64, 60, 84
COLOURS = {"begin": "#1f618d", "middle": "#c0392b", "end": "#117a65", "all": "#1f618d"}
DASHES = {"begin": "none", "middle": "6 4", "end": "2 3", "all": "none"}
PARTS = (("network_mistakes", "network alone"), ("search_mistakes", "with search"))


def text(x, y, content, anchor="middle", extra=""):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="13" fill="#222" '
            f'font-family="DejaVu Sans, Verdana, Arial, sans-serif" {extra}>{escape(str(content))}</text>')


def minutes_by_step(metrics, speed):
    """Of every generation."""
    minutes, evaluations, seconds = {0: 0.0}, 0.0, 0.0
    for line in metrics.read_text().splitlines():
        entry = json.loads(line)
        if "selfplay" not in entry:
            continue
        played = entry["selfplay"]
        evaluations += played["evaluations_per_s"] * (played["seconds"] - seconds)
        seconds = played["seconds"]
        minutes[entry["step"]] = (evaluations / speed if speed else seconds) / 60
    return minutes


def panel(left, title, lines, last):
    """lines: {set: [(minutes, share), ...]}."""
    high = max(share for points in lines.values() for _, share in points)
    step = next(s for s in (0.005, 0.01, 0.02, 0.05, 0.1, 0.2) if high / s <= 7)
    top = step * (int(high / step) + 1)

    def place(minutes, share):
        return f"{left + PANEL * minutes / last:.1f} {TOP + HEIGHT * (1 - share / top):.1f}"

    out = [text(left + PANEL / 2, TOP - 10, title)]
    for i in range(round(top / step) + 1):
        y = TOP + HEIGHT * (1 - i * step / top)
        out += [f'<path d="M{left} {y:.1f} h{PANEL}" stroke="#ddd"/>', text(left - 6, y + 4, f"{100 * i * step:g} %", "end")]
    tick = next(t for t in (1, 2, 5, 10, 20, 30, 60, 120, 240) if last / t <= 7)
    for i in range(int(last / tick) + 1):
        out.append(text(left + PANEL * i * tick / last, TOP + HEIGHT + 18, i * tick))
    out += [text(left + PANEL / 2, TOP + HEIGHT + 38, "minutes"),
            f'<path d="M{left} {TOP} v{HEIGHT} h{PANEL}" stroke="#222" fill="none"/>']
    for name, points in lines.items():
        path = " L".join(place(*point) for point in points)
        out.append(f'<path d="M{path}" stroke="{COLOURS[name]}" stroke-width="2" stroke-dasharray="{DASHES[name]}" fill="none"/>')
    return out


def svg(title, panels, last):
    width, height = LEFT + len(panels) * (PANEL + GAP), TOP + HEIGHT + BOTTOM
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
           f'<rect width="{width}" height="{height}" fill="white"/>', text(width / 2, 26, title, extra='font-weight="bold"')]
    for i, (name, lines) in enumerate(panels):
        out += panel(LEFT + i * (PANEL + GAP), name, lines, last)
    for i, name in enumerate(panels[0][1]):
        x, y = LEFT + 140 * i, height - 20
        out += [f'<path d="M{x} {y} h34" stroke="{COLOURS[name]}" stroke-width="2" stroke-dasharray="{DASHES[name]}"/>',
                text(x + 42, y + 4, name, "start")]
    return "\n".join([*out, "</svg>"]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mistakes", type=pathlib.Path, help="output of `quern arena --mistakes --json`")
    parser.add_argument("metrics", type=pathlib.Path, help="metrics.jsonl of the run")
    parser.add_argument("--evaluations-per-s", type=float, help="speed of the loop, to compute the time from")
    parser.add_argument("--svg", type=pathlib.Path, metavar="FILE")
    options = parser.parse_args()
    found = json.loads(options.mistakes.read_text())
    minutes = minutes_by_step(options.metrics, options.evaluations_per_s)
    sets = list(found["checkpoints"][0]["sets"])
    lines = {part: {name: [] for name in sets} for part, _ in PARTS}
    head = [f"{title}: {name}" for _, title in PARTS for name in sets]
    print("| step | minutes | " + " | ".join(head) + " |\n|" + "---:|" * (2 + len(head)))
    for checkpoint in found["checkpoints"]:
        time, row = minutes[checkpoint["step"]], []
        for part, _ in PARTS:
            for name in sets:
                share = checkpoint["sets"][name][part]
                lines[part][name].append((time, share))
                row.append(f"{100 * share:.1f} %")
        print(f"| {checkpoint['step']} | {time:.1f} | " + " | ".join(row) + " |")
    if options.svg:
        last = max(minutes[checkpoint["step"]] for checkpoint in found["checkpoints"])
        panels = [(title, lines[part]) for part, title in PARTS]
        options.svg.write_text(svg(f"Wrong moves in {found['game']}, judged by perfect play", panels, last))


if __name__ == "__main__":
    main()
