// The bar at the top: which runs are shown, the x axis, smoothing, outliers, colours; and notices below it.

const kAxes = ['step', 'tokens', 'time'];

function build_toolbar() {
  const axes = element('div', {class: 'segments', role: 'radiogroup', 'aria-label': 'x axis'}, ...kAxes.map(axis =>
    element('button', {type: 'button', role: 'radio', 'data-axis': axis, click: () => page.set_axis(axis)}, axis)));
  const smoothing = element('input', {id: 'smoothing', type: 'range', min: '0', max: '0.99', step: '0.01',
    'aria-label': 'Smoothing', input: event => page.set_smoothing(Number(event.target.value))});
  by_id('bar').append(
    element('span', {class: 'brand'}, 'quern'),
    element('span', {id: 'connection', role: 'status'}),
    element('div', {id: 'chips', class: 'chips', role: 'group', 'aria-label': 'Runs in the charts'}),
    element('span', {class: 'space'}),
    button('reset', 'reset zoom', 'Show the whole run (0)', () => page.set_range(null)),
    axes,
    element('label', {class: 'slider', title: 'Exponential moving average, debiased'}, 'smoothing', smoothing,
      element('output', {id: 'smoothed'})),
    button('robust', 'ignore outliers', 'Fit the y axes without the outer 2% (o)', () => page.toggle_robust()),
    button('theme', '', 'Light or dark (d)', () => page.toggle_theme()),
    button('help', '?', 'Keys (?)', () => by_id('keys').showModal()));
}

function button(id, text, label, action) {
  return element('button', {id, type: 'button', class: 'tool', title: label, 'aria-label': label, click: action}, text);
}

function render_toolbar() {
  for (const node of by_id('bar').querySelectorAll('[data-axis]')) {
    const axis = node.dataset.axis;
    set_attribute(node, 'aria-checked', String(axis === page.axis));
    node.disabled = !page.has_axis(axis);
  }
  by_id('smoothing').value = String(page.smoothing);
  set_text(by_id('smoothed'), page.smoothing > 0 ? page.smoothing.toFixed(2) : 'off');
  set_attribute(by_id('robust'), 'aria-pressed', String(page.robust));
  set_text(by_id('theme'), is_dark() ? 'light' : 'dark');
  set_hidden(by_id('reset'), page.range === null);
  render_chips(page.all_runs());
  render_connection();
}

function render_chips(runs) {
  const chips = by_id('chips');
  const few = runs.length >= 2 && runs.length <= kSeriesColours;  // more are in the table alone
  set_hidden(chips, !few);
  rebuild(chips, [runs.map(run => [run.id, run.name]), [...page.hidden], is_dark()], () => !few ? [] :
    runs.map(run => {
      const chip = visibility_button(run);
      chip.append(run.name.split('/').at(-1));
      return chip;
    }));
}

const kConnections = {loading: 'connecting', live: 'live', lost: 'reconnecting', report: 'report'};

function render_connection() {
  const node = by_id('connection');
  set_text(node, kConnections[page.connection]);
  set_attribute(node, 'class', page.connection);
}

// What a person should know before reading the charts.
function notices() {
  const lines = [];
  if (page.connection === 'lost') {
    const since = page.received ? ` The page shows what was known at ${page.received.toLocaleTimeString()}.` : '';
    lines.push(['bad', `The connection is lost; trying again.${since}`]);
  }
  for (const run of page.all_runs()) {
    if (run.state === 'vanished') lines.push(['bad', `${run.name}: the run's folder is gone. The page shows what it last held.`]);
    const damage = (run.events ?? []).filter(event => event.kind === 'damage');
    if (damage.length) lines.push(['warn', `${run.name}: ${damage.at(-1).text}`]);
  }
  if (page.error) lines.push(['bad', page.error]);
  return lines;
}

function render_notices() {
  const lines = notices();
  rebuild(by_id('notices'), lines, () => lines.map(([kind, text]) => element('p', {class: kind}, text)));
}
