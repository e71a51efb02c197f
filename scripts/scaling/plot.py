"""A plot of speed-up against threads as an SVG, built from strings only."""

import math

PANEL, GAP, LEFT, TOP, HEIGHT, BOTTOM = 270, 48, 62, 64, 270, 92
COLOURS = ("#c0392b", "#d68910", "#1f618d")  # also distinguished by dashes and markers
DASHES = ("6 4", "2 3", "none")
FONT = 'font-family="DejaVu Sans, Verdana, Arial, sans-serif"'


def _text(x, y, content, anchor="middle", size=13, extra=""):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" {FONT} fill="#222" {extra}>'
            f'{content}</text>')


def _mark(kind, x, y, colour):
    if kind == 0:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.6" fill="{colour}"/>'
    if kind == 1:
        return f'<rect x="{x - 3.3:.1f}" y="{y - 3.3:.1f}" width="6.6" height="6.6" fill="{colour}"/>'
    return f'<path d="M{x:.1f} {y - 4.6:.1f} l4.3 7.4 h-8.6 z" fill="{colour}"/>'


def _panel(left, title, lines, most):
    def x(threads):
        return left + PANEL * math.log2(threads) / math.log2(most)

    def y(speedup):
        return TOP + HEIGHT * (1 - math.log2(speedup) / math.log2(most))

    out = [_text(left + PANEL / 2, TOP - 12, title, size=15, extra='font-weight="bold"')]
    ticks = [2**i for i in range(int(math.log2(most)) + 1)]
    for n in ticks:
        out.append(f'<path d="M{x(n):.1f} {TOP} v{HEIGHT} M{left} {y(n):.1f} h{PANEL}" stroke="#ddd" fill="none"/>')
        out.append(_text(x(n), TOP + HEIGHT + 18, n))
        out.append(_text(left - 8, y(n) + 4, n, "end"))
    out.append(f'<path d="M{left} {TOP} v{HEIGHT} h{PANEL}" stroke="#222" fill="none"/>')
    out.append(f'<path d="M{x(1):.1f} {y(1):.1f} L{x(most):.1f} {y(most):.1f}" stroke="#888" fill="none"/>')
    for kind, points in enumerate(lines):
        places = [(x(threads), y(max(1.0, speedup))) for threads, speedup in points]
        path = " L".join(f"{px:.1f} {py:.1f}" for px, py in places)
        out.append(f'<path d="M{path}" stroke="{COLOURS[kind]}" stroke-width="2" stroke-dasharray="{DASHES[kind]}" '
                   'fill="none"/>')
        out += [_mark(kind, px, py, COLOURS[kind]) for px, py in places]
    out.append(_text(left + PANEL / 2, TOP + HEIGHT + 40, "threads"))
    return out


def svg(title, panels, names):
    """panels: [(title, [[(threads, speed-up), ...] for every name])]; names: names of the lines, at most three."""
    most = max(threads for _, lines in panels for line in lines for threads, _ in line)
    width = LEFT + len(panels) * (PANEL + GAP)
    height = TOP + HEIGHT + BOTTOM
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
           f'<rect width="{width}" height="{height}" fill="white"/>', _text(width / 2, 24, title, size=16)]
    for i, (name, lines) in enumerate(panels):
        out += _panel(LEFT + i * (PANEL + GAP), name, lines, most)
    middle = TOP + HEIGHT / 2
    out.append(_text(20, middle, "speed-up over one thread", extra=f'transform="rotate(-90 20 {middle:.1f})"'))
    at, step = LEFT, (width - LEFT) / (len(names) + 1)
    for kind, name in enumerate((*names, "ideal")):
        colour, dash = (COLOURS[kind], DASHES[kind]) if kind < len(names) else ("#888", "none")
        y = height - 18
        out.append(f'<path d="M{at:.1f} {y} h34" stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}"/>')
        if kind < len(names):
            out.append(_mark(kind, at + 17, y, colour))
        out.append(_text(at + 42, y + 5, name, "start"))
        at += step
    return "\n".join([*out, "</svg>"]) + "\n"
