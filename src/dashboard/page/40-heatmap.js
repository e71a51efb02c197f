// A heat map: a row per tensor, a column per step, on the x axis of the charts.

const kHeatRow = 14, kHeatLeast = 120, kHeatMost = 440;

class HeatMap extends Plot {
  // `readout` is told {row, value} under the cursor, or null.
  constructor(readout) {
    super(kHeatLeast);
    this.readout = readout;
    this.row = 0;
    this.strip = element('canvas');  // a pixel per screen column and row, stretched to the rows' height
  }

  // Model: {axis, domain, marks, x, rows, values: [row][column], log, kind, name}.
  set(model) {
    const height = Math.min(Math.max(model.rows.length * kHeatRow + 32, kHeatLeast), kHeatMost);
    this.node.style.height = `${height}px`;
    this.row = Math.min(this.row, model.rows.length - 1);
    this.range = heat_range(model.values, model.log);
    super.set(model);
  }

  margin() {
    return Math.min(150, Math.max(92, this.width * 0.2));
  }

  row_height() {
    return (this.area.bottom - this.area.top) / this.model.rows.length;
  }

  // From 0 to 1 on the colour scale, NaN for a value that is missing.
  share(value) {
    const {lo, hi} = this.range, place = this.model.log ? Math.log : Number;
    if (value === null || (this.model.log && !(value > 0))) return NaN;
    return hi > lo ? (place(value) - place(lo)) / (place(hi) - place(lo)) : 0.5;
  }

  // The column nearest to x; -1 if that is further away than columns are apart.
  column_at(x) {
    const columns = this.model.x, after = lower_bound(columns, x);
    const i = after > 0 && (after === columns.length || columns[after] - x > x - columns[after - 1]) ? after - 1 : after;
    const reach = columns.length > 1 ? (columns[columns.length - 1] - columns[0]) / (columns.length - 1) : Infinity;
    return Math.abs(columns[i] - x) <= reach ? i : -1;
  }

  paint(context) {
    const {left, right, top, bottom} = this.area;
    const width = Math.max(1, Math.round(right - left)), rows = this.model.rows.length;
    this.strip.width = width;
    this.strip.height = rows;
    const strip = this.strip.getContext('2d'), image = strip.createImageData(width, rows);
    for (let pixel = 0; pixel < width; ++pixel) {
      const column = this.column_at(this.x.value(left + pixel + 0.5));
      if (column < 0) continue;
      for (let row = 0; row < rows; ++row) {
        const share = this.share(this.model.values[row][column] ?? null);
        if (Number.isNaN(share)) continue;
        const colour = heat_colour(share), at = (row * width + pixel) * 4;
        image.data[at] = colour[0];
        image.data[at + 1] = colour[1];
        image.data[at + 2] = colour[2];
        image.data[at + 3] = 255;
      }
    }
    strip.putImageData(image, 0, 0);
    context.fillStyle = palette.grid;
    context.fillRect(left, top, right - left, bottom - top);
    context.imageSmoothingEnabled = false;
    context.drawImage(this.strip, left, top, right - left, bottom - top);
    this.paint_rows(context);
  }

  paint_rows(context) {
    const height = this.row_height(), every = Math.ceil(11 / height);
    context.textAlign = 'right';
    context.textBaseline = 'middle';
    context.fillStyle = palette.quiet;
    this.model.rows.forEach((name, row) => {
      if (row % every === 0) {
        context.fillText(fit(context, plain(name).replace(/\.weight$/, ''), this.area.left - 10), this.area.left - 8, this.area.top + (row + 0.5) * height);
      }
      if (row > 0 && height >= 8) {
        context.fillStyle = palette.surface;
        context.fillRect(this.area.left, Math.round(this.area.top + row * height), this.area.right - this.area.left, 1);
        context.fillStyle = palette.quiet;
      }
    });
  }

  paint_cursor(context) {
    const height = this.row_height();
    context.strokeStyle = palette.ink;
    context.lineWidth = 1;
    if (cursor.plot === this) {
      context.strokeRect(this.area.left + 0.5, Math.round(this.area.top + this.row * height) + 0.5,
        this.area.right - this.area.left - 1, Math.max(Math.round(height) - 1, 2));
    }
  }

  draw_cursor() {
    super.draw_cursor();
    if (this.x) this.readout(this.inside(cursor.x) ? this.value_at(cursor.x) : null);
  }

  value_at(x) {
    const column = this.column_at(x);
    return {row: this.model.rows[this.row], value: column < 0 ? null : this.model.values[this.row][column] ?? null};
  }

  hover_row(pixel) {
    const row = Math.floor((pixel - this.area.top) / this.row_height());
    this.choose_row(row);
  }

  move_row(by) {
    this.choose_row(this.row + by);
    if (cursor.x === null) move_cursor(this.neighbour(null, 0), this);
  }

  choose_row(row) {
    this.row = Math.min(Math.max(row, 0), this.model.rows.length - 1);
    request_draw(this, 'cursor');
  }

  snap(x) {
    return this.model.x[Math.max(this.column_at(x), 0)] ?? x;
  }

  neighbour(x, count) {
    const columns = this.model.x;
    const at = x === null ? lower_bound(columns, this.model.domain[1] + 1e-9) - 1 : this.column_at(x) + count;
    return columns[Math.min(Math.max(at, 0), columns.length - 1)] ?? x;
  }

  describe() {
    const {row, value} = this.value_at(cursor.x);
    return `${format_x(cursor.x, this.model.axis)}: ${row} ${format_value(value, this.model.kind)}`;
  }
}

const heat_ranges = new WeakMap();  // values -> {lo, hi}

// The range of colours: without the outer 1%, so that one odd value does not hide the others.
function heat_range(values, log) {
  if (!heat_ranges.has(values)) heat_ranges.set(values, find_heat_range(values, log));
  return heat_ranges.get(values);
}

function find_heat_range(values, log) {
  const usable = Float64Array.from(values.flat().filter(value => Number.isFinite(value) && (!log || value > 0))).sort();
  return usable.length ? {lo: quantile(usable, 0.01), hi: quantile(usable, 0.99)} : {lo: log ? 1 : 0, hi: 1};
}

// The text shortened to a width, in the middle, where names of tensors differ least.
function fit(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let keep = Math.min(text.length - 1, Math.floor(width / 4));
  let short = text;
  do {
    short = `${text.slice(0, Math.ceil(keep / 2))}\u2026${text.slice(text.length - Math.floor(keep / 2))}`;
    --keep;
  } while (keep > 2 && context.measureText(short).width > width);
  return short;
}
