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

// The best value of each label among the runs, to be set in bold.
function winners(runs, labels) {
  return new Map(labels.map(label => {
    const rows = runs.flatMap(run => run.summary.filter(row => row.label === label && Number.isFinite(row.best)));
    const better = (a, b) => (rows[0].lower_is_better ? a.best < b.best : a.best > b.best) ? a : b;
    return [label, rows.length > 1 ? rows.reduce(better) : null];
  }));
}

function run_row(run, labels, best) {
  const cells = labels.flatMap(label => {
    const row = run.summary.find(candidate => candidate.label === label);
    const kind = unit_kind(row?.unit);
    return [element('td', {class: 'number'}, format_value(row?.last, kind)),
      element('td', {class: `number ${row && best.get(label) === row ? 'winner' : ''}`}, format_value(row?.best, kind))];
  });
  return element('tr', {'aria-selected': String(run.id === page.selected), class: page.hidden.has(run.id) ? 'off' : null},
    element('th', {scope: 'row'}, visibility_button(run),
      element('button', {type: 'button', class: 'link', click: () => page.select(run.id)}, run.name)),
    element('td', {}, state_chip(run)),
    element('td', {class: 'number'}, format_integer(run.step)),
    element('td', {class: 'number'}, format_duration(run.seconds)),
    ...cells);
}

function render_runs(runs) {
  const section = by_id('runs');
  set_hidden(section, runs.length < 2);
  if (section.hidden) return;
  const facts = runs.map(run => [run.id, run.name, run.state, run.step, run.seconds, run.summary]);
  rebuild(section, [facts, page.selected, [...page.hidden], is_dark()], () => {
    const labels = summary_labels(runs), best = winners(runs, labels);
    const plain = text => element('th', {scope: 'col', rowspan: '2', class: 'number'}, text);
    return [element('div', {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Runs'}, element('table', {},
      element('caption', {class: 'unseen'}, 'Runs, with last and best values'),
      element('thead', {},
        element('tr', {}, element('th', {scope: 'col', rowspan: '2'}, 'run'), element('th', {scope: 'col', rowspan: '2'}, 'state'),
          plain('step'), plain('time'), ...labels.map(label => element('th', {scope: 'colgroup', colspan: '2', class: 'number'}, label))),
        element('tr', {class: 'sub'}, ...labels.flatMap(() => ['last', 'best'].map(text =>
          element('th', {scope: 'col', class: 'number'}, text))))),
      element('tbody', {}, ...runs.map(run => run_row(run, labels, best)))))];
  });
}
