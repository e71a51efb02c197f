// Curves, bands, dots and areas on a canvas. x and y are arrays of values, sx and sy their scales.

const kDashes = [[], [7, 4], [2, 3], [9, 3, 2, 3]];
const kDense = 3;  // points per pixel from which a column of pixels is drawn as its range

// The path of y over indices [from, to): interrupted at gaps; a lone point becomes a short dash.
function trace(context, x, y, from, to, sx, sy, stepped = false) {
  if ((to - from) > kDense * Math.abs(sx.at(x[to - 1]) - sx.at(x[from]))) {
    return trace_dense(context, x, y, from, to, sx, sy);
  }
  let open = false, last = 0;
  for (let i = from; i < to; ++i) {
    const py = sy.at(y[i]);
    if (Number.isNaN(py)) {
      open = false;
      continue;
    }
    const px = sx.at(x[i]);
    if (open) {
      if (stepped) context.lineTo(px, last);
      context.lineTo(px, py);
    } else {
      context.moveTo(px, py);
      if (i + 1 >= to || Number.isNaN(y[i + 1])) context.lineTo(px + 1.5, py);
      open = true;
    }
    last = py;
  }
}

// Many points per pixel: first, lowest, highest and last point of each column.
function trace_dense(context, x, y, from, to, sx, sy) {
  let column = NaN, low = 0, high = 0, last = 0, open = false;
  const close = () => {
    if (Number.isNaN(column)) return;
    context.lineTo(column, low);
    context.lineTo(column, high);
    context.lineTo(column, last);
  };
  for (let i = from; i < to; ++i) {
    const py = sy.at(y[i]);
    if (Number.isNaN(py)) {
      close();
      column = NaN;
      open = false;
      continue;
    }
    const px = Math.round(sx.at(x[i]));
    if (px === column) {
      low = Math.min(low, py);
      high = Math.max(high, py);
    } else {
      close();
      if (open) context.lineTo(px, py);
      else context.moveTo(px, py);
      open = true;
      column = px;
      low = high = py;
    }
    last = py;
  }
  close();
}

function stroke_line(context, line, y, sx, sy, style) {
  const [from, to] = visible_range(line.x, sx.lo, sx.hi);
  if (from >= to) return;
  context.beginPath();
  trace(context, line.x, y, from, to, sx, sy, line.style === 'step');
  context.strokeStyle = line.colour;
  context.globalAlpha = style.alpha;
  context.lineWidth = style.width;
  context.lineJoin = 'round';
  context.setLineDash(style.dash ?? []);
  context.stroke();
  context.setLineDash([]);
  context.globalAlpha = 1;
}

// The range that decimated points stand for. On a logarithmic axis it ends at the bottom where the minimum is not positive.
function fill_band(context, line, sx, sy, floor) {
  const [from, to] = visible_range(line.x, sx.lo, sx.hi);
  context.fillStyle = line.colour;
  context.globalAlpha = 0.16;
  let start = from;
  for (let i = from; i <= to; ++i) {
    if (i < to && !Number.isNaN(sy.at(line.high[i]))) continue;
    if (i - start > 1) fill_between(context, line, start, i, sx, sy, floor);
    start = i + 1;
  }
  context.globalAlpha = 1;
}

function fill_between(context, line, from, to, sx, sy, floor) {
  context.beginPath();
  for (let i = from; i < to; ++i) context.lineTo(sx.at(line.x[i]), sy.at(line.high[i]));
  for (let i = to - 1; i >= from; --i) {
    const low = sy.at(line.low[i]);
    context.lineTo(sx.at(line.x[i]), Number.isNaN(low) ? floor : low);
  }
  context.fill();
}

function draw_dots(context, line, sx, sy) {
  const [from, to] = visible_range(line.x, sx.lo, sx.hi);
  stroke_line(context, line, line.value, sx, sy, {alpha: 0.55, width: 1, dash: line.dash});
  const radius = to - from > 120 ? 1.6 : 3;
  context.fillStyle = line.colour;
  context.strokeStyle = palette.surface;
  context.lineWidth = 1.2;
  for (let i = from; i < to; ++i) {
    const py = sy.at(line.value[i]);
    if (!Number.isNaN(py)) dot(context, sx.at(line.x[i]), py, radius);
  }
}

function dot(context, x, y, radius) {
  context.beginPath();
  context.arc(x, y, radius, 0, 7);
  context.fill();
  context.stroke();
}

// Shares of 1 on top of each other, in the order of the lines; they have the same x.
function fill_stack(context, lines, sx, sy) {
  if (lines.length === 0) return;
  const x = lines[0].x;
  const [from, to] = visible_range(x, sx.lo, sx.hi);
  let below = new Float64Array(x.length);
  for (const line of lines) {
    const above = below.map((value, i) => value + (Number.isNaN(line.value[i]) ? 0 : line.value[i]));
    context.beginPath();
    for (let i = from; i < to; ++i) context.lineTo(sx.at(x[i]), sy.at(above[i]));
    for (let i = to - 1; i >= from; --i) context.lineTo(sx.at(x[i]), sy.at(below[i]));
    context.fillStyle = line.colour;
    context.globalAlpha = 0.82;
    context.fill();
    below = above;
  }
  context.globalAlpha = 1;
}
