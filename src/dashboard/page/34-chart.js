// A chart of lines: axes, curves of one or several runs, rules, marks of events, and the values at the cursor.

const kMarkedKinds = {resume: 'accent', incident: 'bad', warning: 'warn', settings: 'accent', checkpoint: 'quiet', best: 'good'};

const kLeastMargin = 50;

class Chart extends Plot {
  // `readout` is told the values at the cursor: a map from line to {x, value}, or null without a cursor.
  constructor(height, readout) {
    super(height);
    this.readout = readout;
  }

  shown_lines() {
    return this.model.lines.filter(line => line.shown);
  }

  y_axis() {
    const [lo, hi] = this.model.domain;
    if (this.model.stacked) return {lo: 0, hi: 1, log: false};
    const lines = this.shown_lines();
    let log = this.model.log;
    const options = {robust: this.model.robust, zero: this.model.kind === 'bytes'};
    let range = y_range(lines, lo, hi, {log, ...options});
    if (!range && log) {  // nothing is positive
      log = false;
      range = y_range(lines, lo, hi, {log, ...options});
    }
    range ??= log ? {lo: 0.1, hi: 1} : {lo: 0, hi: 1};
    for (const rule of this.model.rules) include_rule(range, rule.value, log);
    return {...range, log};
  }

  // Prepares the y axis; returns the width that its labels need, at least that of most charts, so that they line up.
  margin(context) {
    const {top, bottom} = this.area, axis = this.y_axis();
    const count = Math.max(2, Math.floor((bottom - top) / 42));
    this.y = new Scale(axis.lo, axis.hi, bottom, top, axis.log);
    this.y_ticks = (axis.log ? log_ticks : linear_ticks)(axis.lo, axis.hi, count, this.model.kind);
    return Math.max(kLeastMargin, ...this.y_ticks.map(tick => context.measureText(tick.label).width + 12));
  }

  paint(context) {
    const {left, right, top, bottom} = this.area;
    this.paint_y_axis(context);
    context.save();
    context.beginPath();
    context.rect(left, top - 4, right - left + 6, bottom - top + 4);
    context.clip();
    this.paint_lines(context);
    this.paint_marks(context);
    context.restore();
    this.paint_rules(context);
  }

  paint_y_axis(context) {
    const {left, right, bottom} = this.area;
    context.textAlign = 'right';
    context.textBaseline = 'middle';
    for (const {value, label} of this.y_ticks) {
      const at = Math.round(this.y.at(value));
      context.fillStyle = palette.grid;
      if (at < bottom - 1) context.fillRect(left, at, right - left, 1);
      context.fillStyle = palette.quiet;
      context.fillText(label, left - 8, at);
    }
  }

  paint_lines(context) {
    const lines = this.shown_lines();
    if (this.model.stacked) return fill_stack(context, lines, this.x, this.y);
    for (const line of lines) {
      if (line.low) fill_band(context, line, this.x, this.y, this.area.bottom);
    }
    for (const line of lines) {
      if (line.style === 'dots') continue;
      const raw = line.smooth ? {alpha: 0.3, width: 1} : {alpha: 1, width: 1.6, dash: line.dash};
      stroke_line(context, line, line.value, this.x, this.y, raw);
    }
    for (const line of lines) {
      if (line.style === 'dots') draw_dots(context, line, this.x, this.y);
      else if (line.smooth) stroke_line(context, line, line.smooth, this.x, this.y, {alpha: 1, width: 2, dash: line.dash});
    }
  }

  // Horizontal lines with labels; a rule outside of the axis is named at its edge.
  paint_rules(context) {
    const {left, right, top, bottom} = this.area;
    const taken = [];
    for (const rule of this.model.rules) {
      const at = this.y.at(rule.value);
      if (Number.isNaN(at)) continue;
      const below = at > bottom + 1, above = at < top - 1;
      let text = `${shorten(rule.label, 40)} ${format_value(rule.value, this.model.kind)}`;
      if (!below && !above) {
        context.strokeStyle = palette.ink;
        context.lineWidth = 1;
        context.setLineDash([1, 3]);
        context.beginPath();
        context.moveTo(left, Math.round(at) + 0.5);
        context.lineTo(right, Math.round(at) + 0.5);
        context.stroke();
        context.setLineDash([]);
      } else {
        text += below ? ' \u2193' : ' \u2191';
      }
      let base = Math.min(Math.max(at - 4, top + 10), bottom - 4);
      while (taken.some(other => Math.abs(other - base) < 13)) base -= 13;
      taken.push(base);
      this.paint_label(context, text, right, base);
    }
  }

  paint_label(context, text, right, base) {
    context.textAlign = 'right';
    context.textBaseline = 'alphabetic';
    context.lineWidth = 3;
    context.strokeStyle = palette.surface;
    context.strokeText(text, right, base);
    context.fillStyle = palette.quiet;
    context.fillText(text, right, base);
  }

  // Events of the selected run: a tick on the axis; a dotted line for those that explain a change of the curves.
  paint_marks(context) {
    const {top, bottom} = this.area;
    for (const mark of this.model.marks) {
      const colour = kMarkedKinds[mark.kind];
      if (!colour || !this.inside(mark.x)) continue;
      const at = Math.round(this.x.at(mark.x)), quiet = mark.kind === 'checkpoint' || mark.kind === 'best';
      context.fillStyle = palette[colour];
      context.beginPath();
      context.moveTo(at, bottom - (quiet ? 5 : 7));
      context.lineTo(at + (quiet ? 3 : 4), bottom);
      context.lineTo(at - (quiet ? 3 : 4), bottom);
      context.fill();
      if (quiet) continue;
      context.globalAlpha = 0.6;
      for (let y = top; y < bottom; y += 5) context.fillRect(at, y, 1, 2);
      context.globalAlpha = 1;
    }
  }

  // Values at x: of dots the nearest, of lines the point within reach.
  values_at(x) {
    const values = new Map();
    const reach = Math.abs(this.x.value(24) - this.x.value(0));
    for (const line of this.shown_lines()) {
      const i = nearest_point(line.x, line.value, x, line.style === 'dots' ? Infinity : Math.max(reach, line.spacing));
      if (i >= 0) values.set(line, {x: line.x[i], value: line.value[i], smooth: line.smooth ? line.smooth[i] : null});
    }
    return values;
  }

  paint_cursor(context) {
    if (this.model.stacked) return;
    context.strokeStyle = palette.surface;
    context.lineWidth = 1.5;
    for (const [line, point] of this.values_at(cursor.x)) {
      const py = this.y.at(point.smooth ?? point.value);
      if (py < this.area.top - 1 || py > this.area.bottom + 1 || !this.inside(point.x)) continue;
      context.fillStyle = line.colour;
      dot(context, this.x.at(point.x), py, 4);
    }
  }

  draw_cursor() {
    super.draw_cursor();
    if (this.x) this.readout(this.inside(cursor.x) ? this.values_at(cursor.x) : null);
  }

  // The x of the point nearest to `x`, of the line with the most points.
  snap(x) {
    const line = this.densest();
    const i = line ? nearest_point(line.x, line.value, x) : -1;
    return i >= 0 ? line.x[i] : x;
  }

  // The x of the point `count` points after `x`; without a cursor, the last visible one.
  neighbour(x, count) {
    const line = this.densest();
    if (!line) return x;
    const [lo, hi] = this.model.domain;
    const last = lower_bound(line.x, hi + 1e-9) - 1;
    if (x === null) return line.x[Math.max(last, 0)];
    const at = nearest_point(line.x, line.value, x);
    return line.x[Math.min(Math.max(at + count, lower_bound(line.x, lo)), Math.max(last, 0))] ?? x;
  }

  densest() {
    return this.shown_lines().reduce((best, line) => best && best.x.length >= line.x.length ? best : line, null);
  }

  describe() {
    const parts = [...this.values_at(cursor.x)]
      .map(([line, point]) => `${line.name} ${format_value(point.value, this.model.kind)}`);
    return `${format_x(cursor.x, this.model.axis)}: ${parts.join(', ') || 'no value'}`;
  }
}
