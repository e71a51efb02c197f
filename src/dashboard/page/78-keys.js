// Keys, and the dialog that lists them.

const kKeys = [
  ['\u2190 \u2192', 'move the cursor in a focused chart; with Shift, by ten points'],
  ['\u2191 \u2193', 'another row of a focused heat map'],
  ['Home End', 'first and last point'],
  ['+ \u2212', 'zoom in and out around the cursor'],
  ['[ ]', 'move the zoomed range'],
  ['0 Esc', 'show the whole run'],
  ['x', 'next x axis: step, tokens, time'],
  ['l', 'logarithmic axis of the focused chart'],
  ['t', 'values of the focused chart as a table'],
  ['o', 'fit the axes without outliers'],
  ['s S', 'smooth less, smooth more'],
  ['n p', 'next and previous run'],
  ['d', 'light or dark'],
  ['?', 'these keys'],
];

function build_keys() {
  by_id('keys').append(
    element('h2', {}, 'Keys'),
    element('dl', {}, ...kKeys.map(([keys, text]) => element('div', {},
      element('dt', {}, ...keys.split(' ').map(key => element('kbd', {}, key))), element('dd', {}, text)))),
    element('p', {}, 'With a mouse: drag to zoom, Shift and drag to move, double click to show the whole run.'),
    element('form', {method: 'dialog'}, element('button', {class: 'tool'}, 'Close')));
}

// The panel that a key is meant for: the focused one, or the one under the pointer.
function keyed_panel(event) {
  const node = event.target.closest?.('.panel') ?? cursor.plot?.node.closest('.panel');
  return node ? page.panel_of(node) : null;
}

function handle_key(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || by_id('keys').open) return;
  if (event.target.matches?.('select, textarea')) return;
  const plot = event.target.quern_plot;
  if ((plot && plot_key(plot, event)) || page_key(event)) event.preventDefault();
}

function page_key(event) {
  switch (event.key) {
    case '0': case 'Escape':
      if (event.key === 'Escape') move_cursor(null, null);
      page.set_range(null);
      return true;
    case 'x': page.next_axis(); return true;
    case 'l': keyed_panel(event)?.toggle_log(); return true;
    case 't': keyed_panel(event)?.toggle_table(); return true;
    case 'o': page.toggle_robust(); return true;
    case 's': page.set_smoothing(page.smoothing - 0.05); return true;
    case 'S': page.set_smoothing(page.smoothing + 0.05); return true;
    case 'n': page.select_next(1); return true;
    case 'p': page.select_next(-1); return true;
    case 'd': page.toggle_theme(); return true;
    case '?': by_id('keys').showModal(); return true;
    default: return false;
  }
}
