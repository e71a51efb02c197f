// The state of the page: the runs, what is shown of them, and how.

const kLeastZoom = 1e-6;  // of the whole range

class Page {
  constructor() {
    this.known = new Map();  // id -> run, in the order in which they appeared; a vanished run stays
    this.selected = null;
    this.hidden = new Set();
    this.axis = kAxes.includes(remembered('axis')) ? remembered('axis') : 'step';
    this.smoothing = Math.min(Math.max(Number(remembered('smoothing') ?? 0.9) || 0, 0), 0.99);
    this.robust = false;
    this.range = null;    // [lo, hi] of x when zoomed
    this.detail = null;   // {axis, lo, hi, runs: id -> series}: finer curves of a range
    this.connection = 'loading';
    this.received = null;
    this.error = null;
    this.board = new Board(by_id('panels'));
    this.source = null;   // asked for details after zooming, when live
  }

  all_runs() {
    return [...this.known.values()];
  }

  shown_runs() {
    return this.all_runs().filter(run => !this.hidden.has(run.id));
  }

  run() {
    return this.known.get(this.selected);
  }

  plots() {
    return this.board.plots();
  }

  panel_of(node) {
    return this.board.panel_of(node);
  }

  // Takes a view of all runs.
  accept(view) {
    this.view = view;
    this.received = new Date();
    const present = new Set(view.runs.map(run => run.id));
    for (const run of view.runs) {
      run.index = this.known.get(run.id)?.index ?? this.known.size;
      if (run.index >= kSeriesColours && !this.known.has(run.id)) this.hidden.add(run.id);  // no colour is left for it
      this.known.set(run.id, run);
    }
    for (const run of this.known.values()) {
      if (!present.has(run.id)) run.state = 'vanished';
    }
    if (!this.known.has(this.selected)) this.selected = (view.runs.find(run => run.state === 'training') ?? view.runs[0])?.id ?? null;
    this.render();
  }

  accept_detail(detail) {
    this.detail = detail;
    if (this.run()) this.board.update_plots(this.run());
  }

  // The curve of a field, finer where the page is zoomed and has it.
  series(run, field) {
    const {detail, range} = this;
    if (detail && range && detail.axis === this.axis && detail.lo <= range[0] && detail.hi >= range[1]) {
      const finer = detail.runs.get(run.id)?.[field];
      if (finer?.value.length) return finer;
    }
    return run.series[field] ?? null;
  }

  has_axis(axis) {
    return this.all_runs().some(run => Object.values(run.series).some(series => prepare(series)[axis]));
  }

  // From the first to the last point of all shown runs.
  whole() {
    let lo = Infinity, hi = -Infinity;
    for (const run of this.shown_runs()) {
      for (const series of Object.values(run.series)) {
        const x = prepare(series)[this.axis];
        if (!x?.length) continue;
        lo = Math.min(lo, x[0]);
        hi = Math.max(hi, x[x.length - 1]);
      }
    }
    if (!(hi > lo)) return Number.isFinite(lo) ? [Math.max(0, lo - 1), lo + 1] : [0, 1];
    return [lo < hi * 0.05 ? 0 : lo, hi];
  }

  domain() {
    return this.range ?? this.bounds;
  }

  marks() {
    return this.run_marks;
  }

  set_range(range) {
    const [lo, hi] = this.bounds;
    if (range) {
      range = [Math.max(range[0], lo), Math.min(range[1], hi)];
      if (range[1] - range[0] < (hi - lo) * kLeastZoom) return;
      if (range[0] <= lo && range[1] >= hi) range = null;
    }
    this.range = range;
    announce(range ? `${format_x(range[0], this.axis)} to ${format_x(range[1], this.axis)}` : 'The whole run');
    this.source?.zoomed();
    set_hidden(by_id('reset'), range === null);
    if (this.run()) this.board.update_plots(this.run());
  }

  // A factor below 1 zooms in, around `about` or the middle.
  zoom(factor, about) {
    const [lo, hi] = this.domain();
    const middle = about !== null && about >= lo && about <= hi ? about : (lo + hi) / 2;
    this.set_range([middle - (middle - lo) * factor, middle + (hi - middle) * factor]);
  }

  // Moves `domain` by a share of its width, within the whole range.
  move_range(domain, share) {
    if (!this.range) return;
    const [first, last] = this.bounds, [lo, hi] = domain;
    const by = Math.min(Math.max((hi - lo) * share, first - lo), last - hi);
    this.set_range([lo + by, hi + by]);
  }

  set_axis(axis) {
    if (axis === this.axis || !this.has_axis(axis)) return;
    if (this.range) this.range = this.range.map(value => convert_x(this.run(), value, this.axis, axis));
    this.axis = axis;
    remember('axis', axis);
    announce(`x axis: ${axis}`);
    cursor.x = null;
    this.source?.zoomed();
    this.render();
  }

  next_axis() {
    const usable = kAxes.filter(axis => this.has_axis(axis));
    if (usable.length) this.set_axis(usable[(usable.indexOf(this.axis) + 1) % usable.length]);
  }

  set_smoothing(value) {
    this.smoothing = Math.round(Math.min(Math.max(value, 0), 0.99) * 100) / 100;
    remember('smoothing', this.smoothing);
    this.render();
  }

  toggle_robust() {
    this.robust = !this.robust;
    this.render();
  }

  toggle_theme() {
    const theme = is_dark() ? 'light' : 'dark';
    choose_theme(theme);
    remember('theme', theme);
    this.render();
  }

  toggle_run(id) {
    if (!this.hidden.delete(id)) this.hidden.add(id);
    this.render();
  }

  select(id) {
    this.selected = id;
    this.hidden.delete(id);
    this.render();
  }

  select_next(by) {
    const ids = [...this.known.keys()];
    if (ids.length > 1) this.select(ids[(ids.indexOf(this.selected) + by + ids.length) % ids.length]);
  }

  render() {
    render_notices();
    const run = this.run();
    if (run && !this.has_axis(this.axis) && this.has_axis('step')) this.axis = 'step';
    this.bounds = this.whole();
    render_toolbar();
    render_empty(run);
    if (!run) return;
    this.run_marks = (run.events ?? []).map(event => ({...event, x: event_x(run, event, this.axis)}));
    render_hero(run);
    render_runs(this.all_runs());
    this.board.update(this.all_runs(), run);
    render_foot(this.view);
  }
}

function event_x(run, event, axis) {
  if (axis === 'step') return event.step;
  if (axis === 'time' && Number.isFinite(event.seconds)) return event.seconds;
  return convert_x(run, event.step, 'step', axis);
}

// Before there is anything to draw.
function render_empty(run) {
  const drawn = run && Object.values(run.series).some(series => series.step.length);
  const text = drawn ? '' : page.connection === 'loading' ? 'Loading\u2026'
    : !run ? 'There is no run here yet.'
      : run.state === 'training' || run.state === 'preparing' ? 'Waiting for the first logged step.'
        : 'This run has logged no step.';
  set_text(by_id('empty'), text);
  set_hidden(by_id('empty'), text === '');
}

function render_foot(view) {
  const written = view.written ? `, written ${view.written}` : '';
  set_text(by_id('foot'), `Quern ${view.quern}${written}`);
}
