// Curves as arrays of numbers: conversion from the view, smoothing, searching, and the range of y.

const prepared_series = new WeakMap();

// The view's lists as typed arrays, null as NaN; once per series of a view.
function prepare(series) {
  let ready = prepared_series.get(series);
  if (!ready) {
    const numbers = list => list ? Float64Array.from(list, value => value === null ? NaN : value) : null;
    ready = {step: numbers(series.step), tokens: numbers(series.tokens), time: numbers(series.seconds),
      value: numbers(series.value), low: numbers(series.low), high: numbers(series.high), smooth: null, beta: -1};
    prepared_series.set(series, ready);
  }
  return ready;
}

// Exponential moving average, debiased: the first average is the first value, not a share of it. Gaps stay gaps.
function smoothed(ready, beta) {
  if (ready.beta === beta) return ready.smooth;
  const result = new Float64Array(ready.value.length);
  let sum = 0, weight = 0;
  for (let i = 0; i < result.length; ++i) {
    const value = ready.value[i];
    if (Number.isNaN(value)) {
      result[i] = NaN;
      continue;
    }
    sum = beta * sum + (1 - beta) * value;
    weight = beta * weight + (1 - beta);
    result[i] = sum / weight;
  }
  ready.beta = beta;
  ready.smooth = result;
  return result;
}

// The first index whose x is at least `value`.
function lower_bound(x, value) {
  let low = 0, high = x.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (x[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

// The index of a finite y whose x is nearest to `value`; -1 if there is none within `reach` of it.
function nearest_point(x, y, value, reach = Infinity) {
  const middle = lower_bound(x, value);
  let left = middle - 1, right = middle;
  while (left >= 0 && Number.isNaN(y[left])) --left;
  while (right < x.length && Number.isNaN(y[right])) ++right;
  const best = left < 0 || (right < x.length && x[right] - value < value - x[left]) ? right : left;
  return best >= 0 && best < x.length && Math.abs(x[best] - value) <= reach ? best : -1;
}

// The indices to draw for x in [lo, hi]: with a neighbour on each side, so that lines leave the plot.
function visible_range(x, lo, hi) {
  return [Math.max(0, lower_bound(x, lo) - 1), Math.min(x.length, lower_bound(x, hi) + 2)];
}

function quantile(sorted, share) {
  return sorted[Math.round(share * (sorted.length - 1))];
}

// The lowest and highest value within [lo, hi] of x, with the bands of decimated points; null if there is none.
function extremes(lines, lo, hi, log) {
  const least = log ? Number.MIN_VALUE : -Infinity;
  let low = Infinity, high = -Infinity;
  const look = (values, first, last) => {
    for (let i = first; i < last; ++i) {
      const value = values[i];
      if (value >= least) {  // false for NaN
        if (value < low) low = value;
        if (value > high) high = value;
      }
    }
  };
  for (const line of lines) {
    const [first, last] = shown_range(line.x, lo, hi);
    look(line.value, first, last);
    if (!line.low) continue;
    look(line.low, first, last);
    look(line.high, first, last);
  }
  return low <= high ? [low, high] : null;
}

// The same without the outer 2% of the values on either side, and without bands.
function usual_extremes(lines, lo, hi, log) {
  const parts = lines.map(line => line.value.subarray(...shown_range(line.x, lo, hi)));
  const values = Float64Array.from(parts.flatMap(part => [...part])).filter(value => Number.isFinite(value) && (!log || value > 0));
  if (values.length < 20) return extremes(lines, lo, hi, log);
  values.sort();
  return [quantile(values, 0.02), quantile(values, 0.98)];
}

// Indices of the points in [lo, hi]; between two points, the next one.
function shown_range(x, lo, hi) {
  const first = lower_bound(x, lo), last = lower_bound(x, hi + (hi - lo) * 1e-9);
  return [first, Math.min(Math.max(last, first + 1), x.length)];
}

// The y axis for what is visible, or null if nothing is.
function y_range(lines, lo, hi, options) {
  const found = (options.robust ? usual_extremes : extremes)(lines, lo, hi, options.log);
  return found ? padded(found[0], found[1], options) : null;
}

function padded(low, high, options) {
  if (options.log) {
    const margin = high > low * 1.02 ? (high / low) ** 0.06 : 1.2;
    return {lo: low / margin, hi: high * margin};
  }
  const span = high > low ? high - low : Math.abs(high) * 0.2 || 1;
  const from_zero = low >= 0 && (options.zero || low <= span * 0.25);  // a curve near 0 is read against 0
  return {lo: from_zero ? 0 : low - span * 0.06, hi: high + span * 0.06};
}

// Extends a y axis to a rule that is close enough to leave room for the curves.
function include_rule(range, value, log) {
  if (!Number.isFinite(value) || (log && value <= 0)) return;
  const place = log ? Math.log : Number, back = log ? Math.exp : Number;
  const [lo, hi, at] = [place(range.lo), place(range.hi), place(value)];
  const span = hi - lo, margin = span * 0.06;
  if (at < lo - span * 0.5 || at > hi + span * 0.5) return;
  if (at - margin < lo) range.lo = !log && value >= 0 ? Math.max(Math.min(range.lo, 0), at - margin) : back(at - margin);
  if (at + margin > hi) range.hi = back(at + margin);
}
