// Where views come from: the data in a report, or a server that tells when something has changed.

const kLeastPause = 500, kMostPause = 10000;  // milliseconds between requests; after failures up to the second
const kPoints = 2000;
const kMargin = 0.25;  // of a zoomed range, fetched on either side so that moving it shows curves at once

// Asks for the whole view when runs have changed, and for finer curves when the page is zoomed; one request at a time.
class LiveSource {
  constructor() {
    this.want_whole = true;
    this.want_detail = false;
    this.busy = false;
    this.failures = 0;
    this.timer = null;
    this.asked = -Infinity;
  }

  start() {
    this.listen();
    this.pump();
    document.addEventListener('visibilitychange', () => this.pump());
  }

  listen() {
    const stream = new EventSource('/api/events');
    stream.addEventListener('open', () => {
      this.want_whole = true;
      this.pump();
    });
    stream.addEventListener('change', event => this.changed(event.data));
    stream.addEventListener('error', () => {
      this.lost();
      if (stream.readyState !== EventSource.CLOSED) return;  // the browser tries again by itself
      stream.close();
      setTimeout(() => this.listen(), 2000);
    });
  }

  changed(text) {
    const {runs} = JSON.parse(text);
    const same = runs.length === page.view?.runs.length
      && runs.every(run => page.view.runs.some(known => known.id === run.id && known.revision === run.revision));
    if (same) return;
    this.want_whole = true;
    if (page.range && page.range[1] >= page.bounds[1]) this.want_detail = true;
    this.pump();
  }

  // The page shows another range.
  zoomed() {
    this.want_detail = this.needs_detail();
    this.pump();
  }

  needs_detail() {
    const {range, detail, axis} = page;
    if (!range) return false;
    if (detail && detail.axis === axis && detail.lo <= range[0] && detail.hi >= range[1]
        && detail.hi - detail.lo < 3 * (range[1] - range[0])) return false;
    return page.shown_runs().some(run => Object.values(run.series).some(series => series.points > series.value.length));
  }

  lost() {
    if (page.connection === 'lost') return;
    page.connection = 'lost';
    page.render();
  }

  pump() {
    if (this.busy || this.timer || document.hidden || !(this.want_whole || this.want_detail)) return;
    const pause = this.failures ? Math.min(kLeastPause * 2 ** this.failures, kMostPause) : kLeastPause;
    const wait = this.asked + pause - performance.now();
    if (wait > 0) {
      this.timer = setTimeout(() => {
        this.timer = null;
        this.pump();
      }, wait);
      return;
    }
    this.ask();
  }

  async ask() {
    this.busy = true;
    this.asked = performance.now();
    const whole = this.want_whole, range = whole ? null : this.detail_range();
    if (whole) this.want_whole = false;
    else this.want_detail = false;
    try {
      const view = await fetch_view(range);
      this.failures = 0;
      page.connection = 'live';
      if (whole) page.accept(view);
      else page.accept_detail({...range, runs: new Map(view.runs.map(run => [run.id, run.series]))});
    } catch (error) {
      ++this.failures;
      if (whole) this.want_whole = true;
      else this.want_detail = true;
      console.info(`quern: ${error.message}`);
      this.lost();
    }
    this.busy = false;
    this.pump();
  }

  detail_range() {
    const [lo, hi] = page.range ?? page.bounds, margin = (hi - lo) * kMargin;
    return {axis: page.axis, lo: Math.max(page.bounds[0], lo - margin), hi: Math.min(page.bounds[1], hi + margin)};
  }
}

async function fetch_view(range) {
  const query = new URLSearchParams(range ? {x: range.axis, from: range.lo, to: range.hi, points: kPoints * 1.5} : {});
  const response = await fetch(`/api/view${range ? `?${query}` : ''}`, {signal: AbortSignal.timeout(30000), cache: 'no-store'});
  if (!response.ok) throw new Error(`the server answered ${response.status}`);
  return response.json();
}
