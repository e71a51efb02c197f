// The selected run at a glance: name, state, progress, time, and its main values.

const kStates = {
  preparing: 'preparing', training: 'training', finished: 'finished', stopped: 'stopped',
  interrupted: 'interrupted', vanished: 'vanished',
};
const kHeroValues = 5;

function share_done(run) {
  return run.steps > 0 ? Math.min(run.step / run.steps, 1) : 0;
}

function state_chip(run) {
  return element('span', {class: `state ${run.state}`}, kStates[run.state] ?? run.state);
}

function step_figure(run) {
  const share = share_done(run), percent = (share * 100).toFixed(share < 1 ? 1 : 0);
  return {label: 'step', value: format_integer(run.step), note: run.steps ? `of ${format_integer(run.steps)}, ${percent}%` : ''};
}

function time_figure(run) {
  const active = run.state === 'training' || run.state === 'preparing', so_far = format_duration(run.seconds);
  if (active && run.seconds_left !== null) {
    return {label: 'time left', value: format_duration(run.seconds_left), note: `${so_far} so far`};
  }
  return {label: 'time', value: so_far, note: active ? 'so far' : 'of training'};
}

// Whether the best value means something: the least memory and the fastest step do not.
function has_record(row) {
  return Number.isFinite(row.best) && unit_kind(row.unit) !== 'bytes' && !/per second$/.test(row.unit);
}

function summary_figure(row) {
  const kind = unit_kind(row.unit);
  return {label: row.label, value: format_value(row.last, kind), note: !has_record(row) ? unit_text(row.unit)
    : `best ${format_value(row.best, kind)}${row.best_step ? ` at ${format_integer(row.best_step)}` : ''}`};
}

function render_hero(run) {
  const hero = by_id('hero');
  const figures = [step_figure(run), time_figure(run), ...run.summary.slice(0, kHeroValues).map(summary_figure)];
  rebuild(hero, [run.name, run.state, figures.map(figure => figure.label)], () => [
    element('div', {class: 'name'}, element('h1', {}, run.name), state_chip(run)),
    element('dl', {class: 'figures'}, ...figures.map(({label}) => element('div', {class: 'figure'},
      element('dt', {}, label), element('dd', {'data-value': ''}), element('dd', {class: 'note', 'data-value': ''})))),
  ]);
  fill(hero, figures.flatMap(({value, note}) => [value, note]));
  render_progress(run);
}

function render_progress(run) {
  const percent = share_done(run) * 100, bar = by_id('progress');
  bar.firstElementChild.style.width = `${percent}%`;
  set_attribute(bar, 'aria-valuenow', percent.toFixed(0));
  set_attribute(bar, 'class', run.state);
  const title = `${run.state === 'training' ? `${percent.toFixed(0)}% ` : ''}${run.name} \u2013 Quern`;
  if (document.title !== title) document.title = title;
}

// Label and value of everything that the run says about itself.
function render_details(node, run) {
  rebuild(node, run.header, () => run.header.map(({label, value}) => element('div', {},
    element('dt', {}, label), element('dd', {class: /hash|command|commit/i.test(label) ? 'code' : null}, String(value)))));
}
