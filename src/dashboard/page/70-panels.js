// A panel: a title, its tools and a legend around a chart, heat map, table, text or list of events.

const kChartHeight = 210, kWideHeight = 320;

class Panel {
  constructor(spec, wide) {
    this.spec = spec;
    this.log = spec.scale === 'log';
    this.off = new Set();  // labels of series that are switched off
    this.as_table = false;
    this.title = element('h2', {id: `title-${spec.id}`});
    this.unit = element('span', {class: 'unit'});
    this.tools = element('div', {class: 'tools'});
    this.legend = element('div', {class: 'legend'});
    this.body = element('div', {class: 'body'});
    this.node = element('section', {class: `panel ${spec.kind} ${wide ? 'wide' : ''}`, 'aria-labelledby': `title-${spec.id}`,
      'data-panel': spec.id}, element('header', {}, this.title, this.unit, this.tools), this.legend, this.body);
    this.fill(wide);
  }

  fill(wide) {
    switch (this.spec.kind) {
      case 'lines':
        this.plot = new Chart(wide ? kWideHeight : kChartHeight, values => this.show_values(values));
        this.values = element('div', {class: 'values', hidden: ''});
        this.log_button = tool('log', 'Logarithmic axis (l)', () => this.toggle_log());
        this.table_button = tool('table', 'Values as a table (t)', () => this.toggle_table());
        this.tools.append(this.log_button, this.table_button);
        this.body.append(this.plot.node, this.values);
        break;
      case 'heatmap':
        this.plot = new HeatMap(value => this.show_cell(value));
        this.measure = element('select', {'aria-label': 'Measure', change: () => page.render()});
        this.tools.append(this.measure);
        this.body.append(this.plot.node);
        break;
      case 'text': this.content = new Texts(); break;
      case 'events': this.content = new Events(); break;
      case 'details': this.body.append(this.list = element('dl', {class: 'detail-list'})); break;
    }
    if (this.content) this.body.append(this.content.node);
    if (this.plot) new PlotPointer(this.plot);
  }

  remove() {
    this.node.remove();
    this.plot?.forget();
  }

  toggle_log() {
    if (!this.log_button || this.plot.model.stacked) return;
    this.log = !this.log;
    announce(`${this.spec.title}: ${this.log ? 'logarithmic' : 'linear'} axis`);
    page.render();
  }

  toggle_table() {
    if (!this.table_button) return;
    this.as_table = !this.as_table;
    page.render();
  }

  // True if the panel has something to show.
  update(spec, run) {
    this.spec = spec;
    set_text(this.title, spec.title);
    set_attribute(this.title, 'title', spec.help ?? '');
    set_text(this.unit, spec.kind === 'lines' ? unit_text(spec.unit) : page.all_runs().length > 1 ? run.name : '');
    switch (spec.kind) {
      case 'lines': return this.update_lines(run);
      case 'heatmap': return this.update_heatmap(run);
      case 'table': {
        const table = run.tables?.[spec.field];
        if (table) rebuild(this.body, table, () => [data_table(spec.title, table)]);
        return Boolean(table?.rows.length);
      }
      case 'text': {
        const texts = run.texts?.[spec.field] ?? [];
        if (texts.length) this.content.set(texts);
        return texts.length > 0;
      }
      case 'events':
        this.content.set(run.events ?? []);
        return this.content.events.length > 0;
      case 'details':
        render_details(this.list, run);
        return run.header.length > 0;
      default: return false;
    }
  }

  update_lines(run) {
    const stacked = Boolean(this.spec.shares);
    const lines = panel_lines(this.spec.id, stacked ? [run] : page.shown_runs(), run, stacked);
    for (const line of lines) line.shown = !this.off.has(line.label);
    const kind = stacked ? 'share' : unit_kind(this.spec.unit);
    this.plot.set({lines, stacked, kind, log: this.log, robust: page.robust, rules: panel_rules(this.spec, lines),
      axis: page.axis, domain: page.domain(), marks: page.marks()});
    set_attribute(this.log_button, 'aria-pressed', String(this.log));
    set_hidden(this.log_button, stacked);
    set_attribute(this.table_button, 'aria-pressed', String(this.as_table));
    set_attribute(this.plot.node, 'aria-label', describe_chart(this.spec, lines, kind));
    this.update_legend(lines);
    set_hidden(this.values, !this.as_table);
    if (this.as_table) {
      const facts = lines.map(line => [line.name, line.shown, line.x.length, line.x.at(-1)]);
      rebuild(this.values, [facts, page.axis, page.domain()], () => [chart_table(this.plot, this.spec.title)]);
    }
    return lines.length > 0;
  }

  // A key per series, which switches it; a value per run in it.
  update_legend(lines) {
    const keys = new Map();
    for (const line of lines) keys.set(line.label, [...keys.get(line.label) ?? [], line]);
    const source = [...keys].map(([label, group]) => [label, this.off.has(label), group.map(line => [line.run.id, line.colour])]);
    const rebuilt = rebuild(this.legend, source, () => [...keys].map(([label, group]) => this.legend_key(label, group)));
    if (rebuilt) this.value_nodes = new Map([...this.legend.querySelectorAll('.value')].map(node => [node.dataset.line, node]));
    this.show_values(null);
  }

  legend_key(label, group) {
    const glyph = element('i', {class: `glyph ${group[0].style} dash-${group[0].dash_index}`});
    glyph.style.color = group.length > 1 || page.all_runs().length > 1 ? palette.quiet : group[0].colour;
    const values = group.flatMap(line => {
      const mark = element('i', {class: 'swatch'});
      mark.style.background = line.colour;
      return [page.all_runs().length > 1 ? mark : null, element('span', {class: 'value', 'data-line': line.key})];
    });
    return element('button', {type: 'button', class: 'key', 'aria-pressed': String(!this.off.has(label)),
      'aria-label': `Show ${label}`, click: () => {
        if (!this.off.delete(label)) this.off.add(label);
        page.render();
      }}, glyph, label, ...values.filter(Boolean));
  }

  // Values at the cursor, or else the last ones.
  show_values(values) {
    if (!this.value_nodes) return;
    for (const line of this.plot.model.lines) {
      const node = this.value_nodes.get(line.key);
      const value = values ? values.get(line)?.value : line.last;
      if (node) set_text(node, line.shown ? format_value(value, this.plot.model.kind) : '');
    }
  }

  update_heatmap(run) {
    const map = run.heatmaps?.[this.spec.field];
    if (!map?.step.length || !map.rows.length) return false;
    const measures = (this.spec.measures ?? []).filter(measure => map.measures[measure.name]);
    rebuild(this.measure, measures, () => measures.map(measure => element('option', {value: measure.name}, measure.label)));
    const measure = measures.find(candidate => candidate.name === this.measure.value) ?? measures[0];
    if (!measure) return false;
    this.plot.set({rows: map.rows, values: map.measures[measure.name], x: heat_columns(map, run), log: measure.scale === 'log',
      kind: unit_kind(measure.unit), axis: page.axis, domain: page.domain(), marks: page.marks()});
    set_attribute(this.plot.node, 'aria-label', `${this.spec.title}: ${measure.label}, ${map.rows.length} rows. `
      + 'Arrow keys read values.');
    const {lo, hi} = this.plot.range;
    rebuild(this.legend, null, () => [element('span', {class: 'ramp'}, element('span', {'data-value': ''}), element('i', {}),
      element('span', {'data-value': ''})), this.cell = element('span', {class: 'value'})]);
    fill(this.legend, [lo, hi].map(value => format_value(value, this.plot.model.kind)));
    return true;
  }

  show_cell(cell) {
    if (this.cell) set_text(this.cell, cell ? `${cell.row}: ${format_value(cell.value, this.plot.model.kind)}` : '');
  }
}

function tool(text, label, action) {
  return element('button', {type: 'button', class: 'tool', 'aria-pressed': 'false', 'aria-label': label, title: label, click: action}, text);
}

function describe_chart(spec, lines, kind) {
  const last = lines.map(line => `${line.name} ${format_value(line.last, kind)}`).join(', ');
  return `${spec.title}, line chart. Last values: ${last}. Arrow keys read values.`;
}
