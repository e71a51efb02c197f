// The cursor and the range of x that all charts share, moved by pointer and keys.

const cursor = {x: null, plot: null};
const kDragStart = 6;  // pixels until a press becomes a drag

function move_cursor(x, plot) {
  if (cursor.x === x && cursor.plot === plot) return;
  cursor.x = x;
  cursor.plot = plot;
  for (const other of page.plots()) request_draw(other, 'cursor');
}

function pointer_x(plot, event) {
  return event.clientX - plot.node.getBoundingClientRect().left;
}

// The pointer over a plot. Mouse: hover reads, drag zooms, Shift and drag moves, double click resets. Touch: a horizontal
// drag reads, two fingers zoom.
class PlotPointer {
  constructor(plot) {
    this.plot = plot;
    this.start = null;        // of a press: {pixel, pan, domain, moved}
    this.fingers = new Map(); // pointer -> pixel
    const {node} = plot, listen = (name, action, options) => node.addEventListener(name, event => plot.x && action(event), options);
    listen('pointerdown', event => this.press(event));
    listen('pointermove', event => this.move(event));
    listen('pointerup', event => this.release(event, true));
    listen('pointercancel', event => this.release(event, false));
    listen('pointerleave', event => {
      if (!this.start && event.pointerType !== 'touch') move_cursor(null, null);
    });
    listen('dblclick', () => page.set_range(null));
    listen('wheel', event => this.turn(event), {passive: false});
  }

  clamp(pixel) {
    return Math.min(Math.max(pixel, this.plot.area.left), this.plot.area.right);
  }

  press(event) {
    if (event.pointerType === 'touch') {
      this.fingers.set(event.pointerId, pointer_x(this.plot, event));
      this.pinched = [...this.fingers.values()].map(pixel => this.plot.x.value(pixel));
    } else if (event.button === 0) {
      this.start = {pixel: pointer_x(this.plot, event), pan: event.shiftKey, domain: this.plot.model.domain, moved: false};
      this.plot.node.setPointerCapture(event.pointerId);
    }
  }

  move(event) {
    const pixel = pointer_x(this.plot, event);
    if (this.fingers.has(event.pointerId)) this.fingers.set(event.pointerId, pixel);
    if (this.fingers.size === 2) this.pinch();
    else if (this.start) this.drag(pixel);
    else this.hover(event, pixel);
  }

  hover(event, pixel) {
    const {plot} = this;
    if (plot.hover_row) plot.hover_row(event.clientY - plot.node.getBoundingClientRect().top);
    move_cursor(pixel < plot.area.left - 8 ? null : plot.snap(plot.x.value(this.clamp(pixel))), plot);
  }

  drag(pixel) {
    const {start, plot} = this;
    start.moved ||= Math.abs(pixel - start.pixel) > kDragStart;
    if (!start.moved) return;
    if (start.pan) return page.move_range(start.domain, (start.pixel - pixel) / (plot.area.right - plot.area.left));
    plot.selection = [this.clamp(start.pixel), this.clamp(pixel)];
    request_draw(plot, 'cursor');
  }

  release(event, completed) {
    const {plot} = this, {selection} = plot;
    this.fingers.delete(event.pointerId);
    this.start = null;
    if (!selection) return;
    plot.selection = null;
    request_draw(plot, 'cursor');
    if (completed) page.set_range([plot.x.value(Math.min(...selection)), plot.x.value(Math.max(...selection))]);
  }

  // The values that were under two fingers stay there.
  pinch() {
    const {left, right} = this.plot.area, [a, b] = this.fingers.values();
    if (Math.abs(a - b) < 2 * kDragStart) return;
    const scale = (this.pinched[1] - this.pinched[0]) / (b - a);
    if (scale > 0) page.set_range([this.pinched[0] + (left - a) * scale, this.pinched[0] + (right - a) * scale]);
  }

  // Ctrl and wheel, or a pinch on a touchpad.
  turn(event) {
    if (!event.ctrlKey) return;
    event.preventDefault();
    page.zoom(Math.exp(event.deltaY * 0.005), this.plot.x.value(this.clamp(pointer_x(this.plot, event))));
  }
}

// Keys of a focused chart; true if the key was one of them.
function plot_key(plot, event) {
  const count = (event.shiftKey || event.key.startsWith('Page')) ? 10 : 1;
  switch (event.key) {
    case 'ArrowLeft': case 'PageDown': case 'ArrowRight': case 'PageUp': {
      if (!plot.x) return false;
      const direction = event.key === 'ArrowLeft' || event.key === 'PageDown' ? -1 : 1;
      move_cursor(plot.neighbour(plot.inside(cursor.x) ? cursor.x : null, direction * count), plot);
      break;
    }
    case 'Home': move_cursor(plot.snap(plot.model.domain[0]), plot); break;
    case 'End': move_cursor(plot.snap(plot.model.domain[1]), plot); break;
    case 'ArrowUp': case 'ArrowDown':
      if (!plot.move_row) return false;
      plot.move_row(event.key === 'ArrowUp' ? -1 : 1);
      break;
    case '+': case '=': page.zoom(0.5, cursor.x); return true;
    case '-': page.zoom(2, cursor.x); return true;
    case '[': page.move_range(page.domain(), -0.25); return true;
    case ']': page.move_range(page.domain(), 0.25); return true;
    default: return false;
  }
  if (cursor.x !== null) announce(plot.describe());
  return true;
}
