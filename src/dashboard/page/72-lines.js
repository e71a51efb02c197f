// The curves of a panel, from the series of each run.

// Lines of the panel `id` in `runs`. A colour per run if there are several, otherwise per series.
function panel_lines(id, runs, selected, stacked) {
  const several = page.all_runs().length > 1 && !stacked;
  return runs.flatMap(run => (run.panels.find(panel => panel.id === id)?.series ?? []).map((spec, i) => {
    const series = page.series(run, spec.field);
    const x = series ? prepare(series)[page.axis] ?? null : null;
    if (!x || x.length === 0) return null;
    return make_line(run, spec, i, several, prepare(series), x, series);
  })).filter(Boolean);
}

function make_line(run, spec, i, several, ready, x, series) {
  const label = spec.label ?? spec.field, dash_index = several ? i % kDashes.length : 0;
  const whole = run.series[spec.field] ? prepare(run.series[spec.field]).value : ready.value;
  return {
    run, label, x, dash_index,
    key: `${run.id} ${spec.field}`,
    name: several ? `${run.name} ${label}` : label,
    colour: series_colour(several ? run.index : i),
    dash: kDashes[dash_index],
    style: spec.style ?? 'line',
    value: ready.value,
    low: series.low && series.high ? ready.low : null,
    high: series.low && series.high ? ready.high : null,
    smooth: spec.smooth && page.smoothing > 0 ? smoothed(ready, page.smoothing) : null,
    last: last_finite(whole),
    spacing: x.length > 1 ? 1.5 * (x[x.length - 1] - x[0]) / (x.length - 1) : Infinity,
  };
}

function last_finite(values) {
  let i = values.length - 1;
  while (i >= 0 && Number.isNaN(values[i])) --i;
  return i >= 0 ? values[i] : null;
}

// The rules to draw: each value once, and none of a series that is switched off.
function panel_rules(spec, lines) {
  const shown = new Set(lines.filter(line => line.shown).map(line => line.key.slice(line.run.id.length + 1)));
  return (spec.rules ?? []).filter(rule => Number.isFinite(rule.value) && (!rule.series || shown.has(rule.series)));
}

// The columns of a heat map on the x axis in use: other axes through a curve of the same run.
function heat_columns(map, run) {
  const steps = Float64Array.from(map.step);
  return page.axis === 'step' ? steps : steps.map(step => convert_x(run, step, 'step', page.axis));
}

// A position on one x axis as one on another, between points of the run's longest curve.
function convert_x(run, value, from, to) {
  let curve = null;
  for (const series of Object.values(run.series)) {
    const ready = prepare(series);
    if (ready[from] && ready[to] && ready[from].length > (curve?.[from].length ?? 0)) curve = ready;
  }
  if (!curve) return value;
  const [x, y] = [curve[from], curve[to]], i = Math.min(Math.max(lower_bound(x, value), 1), x.length - 1);
  if (x.length < 2 || x[i] === x[i - 1]) return y[0];
  return y[i - 1] + (y[i] - y[i - 1]) * (value - x[i - 1]) / (x[i] - x[i - 1]);
}
