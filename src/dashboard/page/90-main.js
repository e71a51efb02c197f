// Starts the page. `window.quern` is for tests and for a person at the browser's console; docs/dashboard.md describes it.

choose_theme(['light', 'dark'].includes(remembered('theme')) ? remembered('theme') : null);
const page = new Page();
build_toolbar();
build_keys();
document.addEventListener('keydown', handle_key);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
  read_palette();
  page.render();
});

// On paper: the light colours, all charts, sharper than the screen.
function print_mode(on) {
  printing = on;
  set_theme(on ? 'light' : chosen_theme);
  page.render();
  draw_waiting();
}
addEventListener('beforeprint', () => print_mode(true));
addEventListener('afterprint', () => print_mode(false));

window.quern = {
  get view() { return page.view ?? null; },
  get settings() {
    const {axis, range, smoothing, robust, selected, connection} = page;
    return {axis, range, smoothing, robust, selected, connection, hidden: [...page.hidden], cursor: cursor.x, dark: is_dark()};
  },
  // The curves as drawn: [{panel, log, lines: [{run, label, points, x, value, shown}]}].
  charts() {
    return page.plots().filter(plot => plot instanceof Chart).map(plot => ({
      panel: plot.node.closest('.panel').dataset.panel, log: plot.model.log, domain: plot.model.domain,
      lines: plot.model.lines.map(({run, label, x, value, shown, colour}) =>
        ({run: run.name, label, points: x.length, x: [...x], value: [...value], shown, colour}))}));
  },
  // Draws everything now; milliseconds.
  redraw() {
    const start = performance.now();
    for (const plot of page.plots()) plot.draw();
    return performance.now() - start;
  },
};

const embedded = by_id('data');
if (embedded) {
  page.connection = 'report';
  try {
    page.accept(JSON.parse(embedded.textContent));
  } catch (error) {
    page.error = `This report's data cannot be read: ${error.message}`;
    page.render();
  }
} else if (location.protocol === 'file:') {
  page.connection = 'report';
  page.error = 'This file has no data in it. `quern report` writes one that has; `quern dashboard` serves the page.';
  page.render();
} else {
  page.source = new LiveSource();
  page.render();
  page.source.start();
}
