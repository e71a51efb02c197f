// Scales from values to pixels, and where their ticks are.

const kMinute = 60, kHour = 3600, kDay = 86400;
const kTimeSteps = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, kMinute, 2 * kMinute, 5 * kMinute, 10 * kMinute, 15 * kMinute,
  30 * kMinute, kHour, 2 * kHour, 3 * kHour, 6 * kHour, 12 * kHour, kDay, 2 * kDay, 5 * kDay, 10 * kDay, 30 * kDay];

// Maps [lo, hi] to [from, to], linearly or by logarithm. Values that a logarithm lacks become NaN.
class Scale {
  constructor(lo, hi, from, to, log = false) {
    this.lo = lo;
    this.hi = hi;
    this.log = log;
    this.from = from;
    this.origin = log ? Math.log(lo) : lo;
    this.factor = (to - from) / ((log ? Math.log(hi) : hi) - this.origin);
  }

  at(value) {
    if (this.log) return value > 0 ? this.from + (Math.log(value) - this.origin) * this.factor : NaN;
    return this.from + (value - this.origin) * this.factor;
  }

  value(pixel) {
    const linear = this.origin + (pixel - this.from) / this.factor;
    return this.log ? Math.exp(linear) : linear;
  }
}

// The step 1, 2 or 5 times a power of 10 that gives about `count` ticks.
function nice_step(span, count) {
  const power = 10 ** Math.floor(Math.log10(span / count));
  const share = span / count / power;
  return power * (share < 1.5 ? 1 : share < 3.5 ? 2 : share < 7.5 ? 5 : 10);
}

function multiples(lo, hi, step) {
  const values = [];
  for (let i = Math.ceil(lo / step - 1e-9); i * step <= hi + step * 1e-9 && values.length < 50; ++i) values.push(i * step);
  return values;
}

function plain_ticks(lo, hi, count, factor, suffix) {
  const step = nice_step((hi - lo) / factor, count);
  const decimals = Math.max(0, Math.min(9, -Math.floor(Math.log10(step) + 1e-9)));
  return multiples(lo / factor, hi / factor, step)
    .map(value => ({value: value * factor, label: with_sign((value || 0).toFixed(decimals)) + suffix}));
}

function number_ticks(lo, hi, count) {
  const size = Math.max(Math.abs(lo), Math.abs(hi));
  if (size < 5e-3) {
    return multiples(lo, hi, nice_step(hi - lo, count)).map(value => ({value,
      label: value ? with_sign(Number(value.toPrecision(6)).toExponential().replace('e+', 'e')) : '0'}));
  }
  const [factor, prefix] = size >= 1e4 ? kPrefixes.find(([unit]) => size >= unit) : [1, ''];
  const ticks = plain_ticks(lo, hi, count, factor, prefix);
  for (const tick of ticks) {
    if (tick.value === 0) tick.label = '0';
    else if (factor === 1 && size >= 1e3) tick.label = format_integer(tick.value);
  }
  return ticks;
}

function byte_ticks(lo, hi, count) {
  const power = Math.min(Math.max(Math.floor(Math.log(Math.max(hi, 1)) / Math.log(1024)), 0), kByteUnits.length - 1);
  return plain_ticks(lo, hi, count, 1024 ** power, ` ${kByteUnits[power]}`);
}

function time_label(value, step, hi) {
  const two = number => String(Math.round(number)).padStart(2, '0');
  if (value === 0) return '0';
  if (step < 1) return `${value.toFixed(1)} s`;
  if (step < kMinute) return hi < 2 * kMinute ? `${value} s` : `${Math.floor(value / kMinute)}:${two(value % kMinute)}`;
  if (step < kHour) {
    return hi < 2 * kHour ? `${value / kMinute} min` : `${Math.floor(value / kHour)}:${two(value % kHour / kMinute)} h`;
  }
  return step < kDay ? `${value / kHour} h` : `${value / kDay} d`;
}

function time_ticks(lo, hi, count) {
  if (hi - lo < 0.5) return multiples(lo, hi, nice_step(hi - lo, count)).map(value => ({value, label: format_duration(value)}));
  const step = kTimeSteps.find(candidate => (hi - lo) / candidate <= count * 1.3) ?? nice_step((hi - lo) / kDay, count) * kDay;
  return multiples(lo, hi, step).map(value => ({value, label: time_label(value, step, hi)}));
}

// About `count` ticks of [lo, hi] with their labels.
function linear_ticks(lo, hi, count, kind = 'number') {
  switch (kind) {
    case 'seconds': return time_ticks(lo, hi, count);
    case 'bytes': return byte_ticks(lo, hi, count);
    case 'share': return plain_ticks(lo, hi, count, 0.01, '%');
    case 'percent': return plain_ticks(lo, hi, count, 1, '%');
    default: return number_ticks(lo, hi, count);
  }
}

// Powers of ten, with 2 and 5 between if there are few; linear ticks within less than a decade.
function log_ticks(lo, hi, count, kind = 'number') {
  const decades = Math.log10(hi / lo);
  if (decades < 0.9) return linear_ticks(lo, hi, count, kind);
  const every = Math.max(1, Math.round(decades / count));
  const within = decades <= count / 3 ? [1, 2, 5] : decades <= count / 2 ? [1, 3] : [1];
  const ticks = [];
  for (let power = Math.floor(Math.log10(lo)); power <= Math.ceil(Math.log10(hi)); ++power) {
    if (power % every !== 0) continue;
    for (const digit of within) {
      const value = Number(`${digit}e${power}`);
      if (value >= lo && value <= hi) ticks.push({value, label: tick_text(value, kind)});
    }
  }
  return ticks;
}

function tick_text(value, kind) {
  if (kind !== 'number') return format_value(value, kind);
  if (value >= 1e-3 && value < 1e4) return String(value);
  return format_number(value, 2);
}
