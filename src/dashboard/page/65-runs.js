// The table of several runs: colour and visibility, state, last and best values; a click on a name selects the run.

function swatch(run) {
  const mark = element('i', {class: 'swatch'});
  mark.style.background = series_colour(run.index);
  return mark;
}

function visibility_button(run) {
  const shown = !page.hidden.has(run.id);
  return element('button', {type: 'button', class: 'eye', 'aria-pressed': String(shown), 'data-run': run.id,
    'aria-label': `Show ${run.name} in the charts`, click: () => page.toggle_run(run.id)}, swatch(run));
}

// The rows of all summaries: labels in the order in which they first appear.
function summary_labels(runs) {
  return [...new Set(runs.flatMap(run => run.summary.map(row => row.label)))];
}

// The run with the best value of each label, to be set in bold; null if only one has it.
function winners(runs, labels) {
  return new Map(labels.map(label => {
    const rows = runs.flatMap(run => run.summary.filter(row => row.label === label && has_record(row))
      .map(row => ({...row, id: run.id})));
    const better = (a, b) => (rows[0].lower_is_better ? a.best < b.best : a.best > b.best) ? a : b;
    return [label, rows.length > 1 ? rows.reduce(better).id : null];
  }));
}

// The texts of a run's row.
function run_values(run, labels) {
  return [format_integer(run.step), format_duration(run.seconds), ...labels.flatMap(label => {
    const row = run.summary.find(candidate => candidate.label === label), kind = unit_kind(row?.unit);
    return [format_value(row?.last, kind), row && has_record(row) ? format_value(row.best, kind) : kNothing];
  })];
}

function run_row(run, labels, best) {
  const cell = name => element('td', {class: `number ${name}`, 'data-value': ''});
  return element('tr', {'aria-current': run.id === page.selected ? 'true' : null, class: page.hidden.has(run.id) ? 'off' : null},
    element('th', {scope: 'row'}, visibility_button(run),
      element('button', {type: 'button', class: 'link', click: () => page.select(run.id)}, run.name)),
    element('td', {}, state_chip(run)), cell(''), cell(''),
    ...labels.flatMap(label => [cell(''), cell(best.get(label) === run.id ? 'winner' : '')]));
}

function runs_head(labels) {
  const head = (text, more) => element('th', {scope: 'col', rowspan: '2', ...more}, text);
  return element('thead', {},
    element('tr', {}, head('run'), head('state'), head('step', {class: 'number'}), head('time', {class: 'number'}),
      ...labels.map(label => element('th', {scope: 'colgroup', colspan: '2', class: 'number'}, label))),
    element('tr', {class: 'sub'}, ...labels.flatMap(() => ['last', 'best'].map(text =>
      element('th', {scope: 'col', class: 'number'}, text)))));
}

function render_runs(runs) {
  const section = by_id('runs');
  set_hidden(section, runs.length < 2);
  if (section.hidden) return;
  const labels = summary_labels(runs), best = winners(runs, labels);
  const facts = runs.map(run => [run.id, run.name, run.state]);
  rebuild(section, [facts, labels, [...best], page.selected, [...page.hidden], is_dark()], () => [
    element('div', {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Runs'}, element('table', {},
      element('caption', {class: 'unseen'}, 'Runs, with last and best values'), runs_head(labels),
      element('tbody', {}, ...runs.map(run => run_row(run, labels, best)))))]);
  fill(section, runs.flatMap(run => run_values(run, labels)));
}
