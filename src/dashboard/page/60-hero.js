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

function hero_value(label, value, note) {
  return element('div', {class: 'figure'}, element('dt', {}, label), element('dd', {}, value),
    element('dd', {class: 'note'}, note));
}

function time_figure(run) {
  const active = run.state === 'training' || run.state === 'preparing';
  if (active && run.seconds_left !== null) {
    return hero_value('time left', format_duration(run.seconds_left), `${format_duration(run.seconds)} so far`);
  }
  return hero_value('time', format_duration(run.seconds), active ? 'so far' : 'of training');
}

function summary_figure(row) {
  const kind = unit_kind(row.unit);
  const plain_unit = !Number.isFinite(row.best) || kind === 'bytes' || /per second$/.test(row.unit);  // no record to beat
  const best = plain_unit ? unit_text(row.unit) : `best ${format_value(row.best, kind)}${row.best_step ? ` at ${format_integer(row.best_step)}` : ''}`;
  return hero_value(row.label, format_value(row.last, kind), best);
}

function render_hero(run) {
  const hero = by_id('hero');
  const summary = run.summary.slice(0, kHeroValues);
  rebuild(hero, [run.name, run.state, run.step, run.steps, run.seconds, run.seconds_left, summary], () => [
    element('div', {class: 'name'}, element('h1', {}, run.name), state_chip(run)),
    element('dl', {class: 'figures'},
      hero_value('step', format_integer(run.step),
        run.steps ? `of ${format_integer(run.steps)}, ${(share_done(run) * 100).toFixed(share_done(run) < 1 ? 1 : 0)}%` : ''),
      time_figure(run),
      ...summary.map(summary_figure)),
  ]);
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
