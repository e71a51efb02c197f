// What charts and heat maps share: two canvases, one for the picture and one for the cursor, and the x axis.

const kTickFont = 11;
const waiting_plots = new Map();  // plot -> 'all' or 'cursor'
let frame_requested = false;

// Draws at the next frame, each plot once.
function request_draw(plot, part = 'all') {
  if (waiting_plots.get(plot) !== 'all') waiting_plots.set(plot, part);
  if (frame_requested) return;
  frame_requested = true;
  requestAnimationFrame(draw_waiting);
}

function draw_waiting() {
  frame_requested = false;
  const plots = [...waiting_plots];
  waiting_plots.clear();
  for (const [plot, part] of plots) {
    if (!plot.seen && !printing) plot.stale = true;
    else if (part === 'all') plot.draw();
    else plot.draw_cursor();
  }
  if (!first_drawn && plots.some(([plot]) => !plot.stale)) {
    first_drawn = true;
    performance.mark('quern-drawn');
  }
}

// Plots outside of the window wait until they are scrolled into view.
const plot_observer = new IntersectionObserver(entries => {
  for (const {target, isIntersecting} of entries) {
    target.quern_plot.seen = isIntersecting;
    if (isIntersecting && target.quern_plot.stale) request_draw(target.quern_plot);
  }
}, {rootMargin: '300px'});
const size_observer = new ResizeObserver(entries => {
  for (const {target} of entries) request_draw(target.quern_plot);
});
let printing = false;
let first_drawn = false;

class Plot {
  // `model` is set before the first draw: {axis, domain: [lo, hi], marks, ...}.
  constructor(height) {
    this.base = element('canvas', {'aria-hidden': 'true'});
    this.overlay = element('canvas', {'aria-hidden': 'true', class: 'overlay'});
    this.node = element('div', {class: 'plot', tabindex: '0', role: 'application', 'aria-roledescription': 'chart'}, this.base, this.overlay);
    this.node.quern_plot = this;
    this.node.style.height = `${height}px`;
    this.model = null;
    this.seen = false;
    this.stale = true;
    this.selection = null;  // [x, x] in pixels while a range is dragged
    plot_observer.observe(this.node);
    size_observer.observe(this.node);
  }

  set(model) {
    this.model = model;
    request_draw(this);
  }

  // It is no longer part of the page.
  forget() {
    plot_observer.unobserve(this.node);
    size_observer.unobserve(this.node);
  }

  // A cleared context in units of CSS pixels, as sharp as the screen.
  context(canvas) {
    const ratio = printing ? 3 : Math.max(1, devicePixelRatio || 1);
    const [width, height] = [Math.round(this.width * ratio), Math.round(this.height * ratio)];
    if (canvas.width !== width || canvas.height !== height) {
      canvas.width = width;
      canvas.height = height;
    }
    const context = canvas.getContext('2d');
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    context.font = `${kTickFont}px ${palette.font}`;
    return context;
  }

  draw() {
    if (!this.model) return;
    this.width = this.node.clientWidth;
    this.height = this.node.clientHeight;
    if (this.width < 60 || this.height < 60) return;
    this.stale = false;
    const context = this.context(this.base), [lo, hi] = this.model.domain;
    this.area = {right: this.width - 12, top: 8, bottom: this.height - 24};
    this.area.left = this.margin(context);
    this.x = new Scale(lo, hi, this.area.left, this.area.right);
    this.paint(context);
    this.paint_x_axis(context);
    this.draw_cursor();
  }

  paint_x_axis(context) {
    const {left, right, bottom} = this.area;
    const [lo, hi] = this.model.domain;
    const count = Math.max(2, Math.floor((right - left) / 90));
    const ticks = linear_ticks(lo, hi, count, this.model.axis === 'time' ? 'seconds' : 'number');
    context.fillStyle = palette.quiet;
    context.textBaseline = 'top';
    for (const {value, label} of ticks) {
      if (this.model.axis === 'step' && !Number.isInteger(value)) continue;
      const at = this.x.at(value), half = context.measureText(label).width / 2;
      context.textAlign = at + half > this.width ? 'right' : 'center';
      context.fillText(label, at + half > this.width ? this.width : at, bottom + 8);
      context.fillRect(Math.round(at), bottom, 1, 4);
    }
    context.fillStyle = palette.line;
    context.fillRect(left, bottom, right - left, 1);
  }

  inside(x) {
    return x !== null && x >= this.model.domain[0] && x <= this.model.domain[1];
  }

  // The cursor, and the range being dragged. A subclass marks its values at the cursor.
  draw_cursor() {
    if (!this.x || !this.model) return;
    const context = this.context(this.overlay);
    const {top, bottom} = this.area;
    if (this.selection) {
      const [from, to] = this.selection;
      context.globalAlpha = 0.14;
      context.fillStyle = palette.accent;
      context.fillRect(Math.min(from, to), top, Math.abs(to - from), bottom - top);
      context.globalAlpha = 1;
    }
    if (!this.inside(cursor.x)) return;
    context.fillStyle = palette.quiet;
    context.fillRect(Math.round(this.x.at(cursor.x)), top, 1, bottom - top);
    this.paint_cursor(context);
    if (cursor.plot === this) this.paint_position(context);
  }

  // The position in words, with events that happened there, in a box at the cursor.
  paint_position(context) {
    const reach = Math.abs(this.x.value(5) - this.x.value(0));
    const events = this.model.marks.filter(mark => Math.abs(mark.x - cursor.x) <= reach).slice(0, 3);
    const lines = [format_x(cursor.x, this.model.axis), ...events.map(mark => shorten(`${mark.kind}: ${mark.text}`, 60))];
    const width = Math.max(...lines.map(line => context.measureText(line).width)) + 14, height = lines.length * 15 + 7;
    const left = Math.min(Math.max(this.x.at(cursor.x) - width / 2, 0), Math.max(this.width - width, 0));
    const top = this.height - height;
    context.fillStyle = palette.ink;
    context.beginPath();
    context.roundRect(left, top, width, height, 3);
    context.fill();
    context.fillStyle = palette.surface;
    context.textAlign = 'left';
    context.textBaseline = 'top';
    lines.forEach((line, i) => context.fillText(line, left + 7, top + 6 + i * 15));
  }
}

function shorten(text, length) {
  const line = plain(text);
  return line.length > length ? line.slice(0, length - 1) + '\u2026' : line;
}
