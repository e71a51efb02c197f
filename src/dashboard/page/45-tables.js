// Tables: a run's tables, and the values of a chart for people who do not see it or want to copy them.

const kValueRows = 40;

function make_table(caption, columns, rows, cell) {
  const head = element('tr', {}, ...columns.map(column =>
    element('th', {scope: 'col', class: column.text ? null : 'number'}, column.label,
      unit_text(column.unit) ? element('small', {}, ` ${column.unit}`) : null)));
  const body = rows.map(row => make_row(row.map((value, i) => cell(value, columns[i], i))));
  return element('div', {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': caption},
    element('table', {}, element('caption', {class: 'unseen'}, caption), element('thead', {}, head),
      element('tbody', {}, ...body)));
}

function make_row(cells) {
  const row = element('tr', {}, ...cells), share = cells.find(cell => cell.dataset.share)?.dataset.share;
  if (share) {
    row.className = 'barred';
    row.style.setProperty('--share', `${share * 100}%`);
  }
  return row;
}

// A cell as its column's unit says. A share is also a bar behind its row.
function data_cell(value, column, i) {
  if (typeof value !== 'number') {
    return element(i === 0 ? 'th' : 'td', i === 0 ? {scope: 'row'} : {}, value === null ? kNothing : String(value));
  }
  const kind = unit_kind(column.unit), cell = element('td', {class: 'number'}, format_value(value, kind));
  if (kind === 'percent' || kind === 'share') {
    const share = Math.min(Math.max(kind === 'percent' ? value / 100 : value, 0), 1);
    cell.dataset.share = share.toFixed(4);
  }
  return cell;
}

// A table of a run: {columns, rows}.
function data_table(title, table) {
  const columns = table.columns.map((column, i) => ({...column, text: table.rows.every(row => typeof row[i] !== 'number')}));
  return make_table(title, columns, table.rows, data_cell);
}

// Up to 40 values of each line, at positions of the line with the most points.
function chart_table(chart, title) {
  const {model} = chart, lines = chart.shown_lines(), densest = chart.densest();
  const columns = [{label: {step: 'step', tokens: 'tokens', time: 'time'}[model.axis]},
    ...lines.map(line => ({label: line.name}))];
  const rows = [];
  if (densest) {
    const first = lower_bound(densest.x, model.domain[0]), last = lower_bound(densest.x, model.domain[1] + 1e-9) - 1;
    const count = Math.min(kValueRows, last - first + 1);
    for (let i = 0; i < count; ++i) {
      const x = densest.x[count === 1 ? last : Math.round(last - (last - first) * i / (count - 1))];
      rows.push([x, ...lines.map(line => {
        const at = nearest_point(line.x, line.value, x, line.spacing * 0.75);
        return at < 0 ? null : line.value[at];
      })]);
    }
  }
  const place = value => model.axis === 'time' ? format_duration(value) : format_integer(value);
  return make_table(`${title}, values`, columns, rows, (value, column, i) => i === 0
    ? element('th', {scope: 'row', class: 'number'}, place(value))
    : element('td', {class: 'number'}, format_value(value, model.kind)));
}
