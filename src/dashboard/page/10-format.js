'use strict';
// Numbers as text: SI prefixes, bytes, shares, durations.

const kNothing = '\u2013';
const kPrefixes = [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k']];
const kByteUnits = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

// How values of a unit are written: 'bytes', 'share' (of 1), 'percent', 'seconds' or 'number'.
function unit_kind(unit) {
  switch (unit) {
    case 'bytes': case 'B': return 'bytes';
    case 'share': return 'share';
    case '%': case 'percent': return 'percent';
    case 's': case 'seconds': return 'seconds';
    default: return 'number';
  }
}

function with_sign(text) {
  return text.replace(/^-/, '\u2212');
}

function format_integer(value) {
  if (value === null || !Number.isFinite(value)) return kNothing;
  return with_sign(Math.round(value).toString().replace(/\B(?=(\d{3})+$)/g, ','));
}

// 4 digits: 1.520, 47.58k, 3.12e-4; whole numbers below 10,000 as they are.
function format_number(value, digits = 4) {
  const size = Math.abs(value);
  if (value === 0) return '0';
  if (size >= 1e15 || size < 1e-2) {
    const [mantissa, exponent] = value.toExponential(digits - 2).split('e');
    return with_sign(`${Number(mantissa)}e${Number(exponent)}`);
  }
  if (Number.isInteger(value) && size < 1e4) return format_integer(value);
  for (const [factor, prefix] of kPrefixes) {
    if (size >= factor && size >= 1e4) return with_sign((value / factor).toPrecision(digits)) + prefix;
  }
  return with_sign(size >= 1e3 ? value.toFixed(0).replace(/\B(?=(\d{3})+$)/g, ',') : value.toPrecision(digits));
}

function format_bytes(value) {
  let power = 0;
  let scaled = Math.abs(value);
  while (scaled >= 1024 && power < kByteUnits.length - 1) {
    scaled /= 1024;
    ++power;
  }
  const decimals = power === 0 || scaled >= 100 ? 0 : scaled >= 10 ? 1 : 2;
  return `${value < 0 ? '\u2212' : ''}${scaled.toFixed(decimals)} ${kByteUnits[power]}`;
}

// 19.8 ms, 4.2 s, 42 s, 3 min 20 s, 2 h 5 min, 3 d 4 h
function format_duration(seconds) {
  if (seconds === null || !Number.isFinite(seconds)) return kNothing;
  if (seconds < 0) return '\u2212' + format_duration(-seconds);
  if (seconds === 0) return '0 s';
  if (seconds < 1e-3) return `${(seconds * 1e6).toPrecision(3)} \u00b5s`;
  if (seconds < 1) return `${(seconds * 1e3).toPrecision(3)} ms`;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  const parts = [[Math.floor(whole / 86400), 'd'], [Math.floor(whole / 3600) % 24, 'h'],
    [Math.floor(whole / 60) % 60, 'min'], [whole % 60, 's']];
  const first = parts.findIndex(([count]) => count > 0);
  return parts.slice(first, first + 2).filter(([count]) => count > 0)
    .map(([count, name]) => `${count} ${name}`).join(' ');
}

function format_value(value, kind = 'number') {
  if (value === null || value === undefined || !Number.isFinite(value)) return kNothing;
  switch (kind) {
    case 'bytes': return format_bytes(value);
    case 'share': return `${(value * 100).toFixed(1)}%`;
    case 'percent': return `${value.toFixed(1)}%`;
    case 'seconds': return format_duration(value);
    default: return format_number(value);
  }
}

// The unit where a title has to name it, because the values do not.
function unit_text(unit) {
  return unit && unit_kind(unit) === 'number' ? unit : '';
}

// Text for a canvas: without characters that have no shape or turn the direction of writing.
function plain(text) {
  return text.replace(/[\p{Cc}\p{Cf}\s]+/gu, ' ');
}

// A position on the x axis, in words: "step 1,200".
function format_x(value, axis) {
  switch (axis) {
    case 'time': return format_duration(value);
    case 'tokens': return `${format_number(value)} tokens`;
    default: return `step ${format_integer(value)}`;
  }
}
