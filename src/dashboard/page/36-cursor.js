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

function clamp_to_area(plot, pixel) {
  return Math.min(Math.max(pixel, plot.area.left), plot.area.right);
}

// Mouse: hover reads, drag zooms, Shift and drag moves, double click resets. Touch: a horizontal drag reads.
function attach_pointer(plot) {
  const {node} = plot;
  let start = null, moved = null;
  const hover = event => {
    const pixel = pointer_x(plot, event);
    if (plot.hover_row) plot.hover_row(event.clientY - node.getBoundingClientRect().top);
    move_cursor(pixel < plot.area.left - 8 ? null : plot.snap(plot.x.value(clamp_to_area(plot, pixel))), plot);
  };
  node.addEventListener('pointerdown', event => {
    if (event.button !== 0 || !plot.x) return;
    start = {pixel: pointer_x(plot, event), pan: event.shiftKey, domain: plot.model.domain, touch: event.pointerType === 'touch'};
    moved = false;
    if (!start.touch) node.setPointerCapture(event.pointerId);
  });
  node.addEventListener('pointermove', event => {
    if (!plot.x) return;
    const pixel = pointer_x(plot, event);
    if (!start || start.touch) return hover(event);
    moved ||= Math.abs(pixel - start.pixel) > kDragStart;
    if (!moved) return;
    if (start.pan) {
      page.move_range(start.domain, (start.pixel - pixel) / (plot.area.right - plot.area.left));
    } else {
      plot.selection = [clamp_to_area(plot, start.pixel), clamp_to_area(plot, pixel)];
      request_draw(plot, 'cursor');
    }
  });
  const release = event => {
    const selection = plot.selection;
    plot.selection = null;
    start = null;
    if (selection && event.type === 'pointerup') {
      page.set_range([plot.x.value(Math.min(...selection)), plot.x.value(Math.max(...selection))]);
    }
    if (moved) request_draw(plot, 'cursor');
  };
  node.addEventListener('pointerup', release);
  node.addEventListener('pointercancel', release);
  node.addEventListener('pointerleave', () => {
    if (!start) move_cursor(null, null);
  });
  node.addEventListener('dblclick', () => page.set_range(null));
  node.addEventListener('wheel', event => {
    if (!event.ctrlKey || !plot.x) return;  // Ctrl and wheel, or a pinch on a touchpad
    event.preventDefault();
    page.zoom(Math.exp(event.deltaY * 0.005), plot.x.value(clamp_to_area(plot, pointer_x(plot, event))));
  }, {passive: false});
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
