"""Numbers as text, ticks, smoothing and searching: the page's functions, called in the browser."""
import math
import unittest

from browser import PageTest
from fixture import Fixture, Server


class Numbers(PageTest):
    def setUp(self):
        super().setUp()
        self.server = Server(Fixture())
        self.addCleanup(self.server.close)
        self.open(self.server.url, drawn=False)

    def check(self, expression, expected):
        self.assertEqual(self.run_js(expression), expected, expression)

    def test_numbers(self):
        for value, text in (("1.52", "1.520"), ("0", "0"), ("47582.3", "47.58k"), ("1200", "1,200"), ("9999.5", "10,000"), ("0.0003", "3e-4"),
                            ("0.0012345", "1.23e-3"), ("-0.25", "\u22120.2500"), ("1.5e9", "1.500G"), ("2e20", "2e20"),
                            ("null", "\u2013"), ("NaN", "\u2013"), ("Infinity", "\u2013")):
            self.check(f"format_value({value})", text)

    def test_bytes_shares_and_durations(self):
        for value, kind, text in ((0, "bytes", "0 B"), (1023, "bytes", "1023 B"), (1536, "bytes", "1.50 KiB"), (212 * 2**20, "bytes", "212 MiB"),
                                  (3 * 2**30 + 2**29, "bytes", "3.50 GiB"), (0.125, "share", "12.5%"), (46.04, "percent", "46.0%"),
                                  (0, "seconds", "0 s"), (0.0198, "seconds", "19.8 ms"), (4.25, "seconds", "4.3 s"), (59.6, "seconds", "1 min"),
                                  (200, "seconds", "3 min 20 s"), (7500, "seconds", "2 h 5 min"), (86400 * 3 + 3600 * 4, "seconds", "3 d 4 h"),
                                  (-200, "seconds", "\u22123 min 20 s")):
            self.check(f"format_value({value}, '{kind}')", text)

    def labels(self, expression):
        return self.run_js(f"{expression}.map(tick => tick.label)")

    def test_linear_ticks(self):
        self.assertEqual(self.labels("linear_ticks(0, 5000, 5)"), ["0", "1,000", "2,000", "3,000", "4,000", "5,000"])
        self.assertEqual(self.labels("linear_ticks(1.3, 1.9, 3)"), ["1.4", "1.6", "1.8"])
        self.assertEqual(self.labels("linear_ticks(45000, 48500, 4)"), ["45k", "46k", "47k", "48k"])
        self.assertEqual(self.labels("linear_ticks(0, 3e-4, 3)"), ["0", "1e-4", "2e-4", "3e-4"])
        self.assertEqual(self.labels("linear_ticks(-2, 2, 4)"), ["\u22122", "\u22121", "0", "1", "2"])
        self.assertEqual(self.labels("linear_ticks(0, 3 * 2 ** 30, 3, 'bytes')"), ["0 GiB", "1 GiB", "2 GiB", "3 GiB"])
        self.assertEqual(self.labels("linear_ticks(0, 1, 4, 'share')"), ["0%", "20%", "40%", "60%", "80%", "100%"])
        self.assertEqual(self.labels("linear_ticks(0, 90, 4, 'seconds')"), ["0", "30 s", "60 s", "90 s"])
        self.assertEqual(self.labels("linear_ticks(0, 3 * 3600, 4, 'seconds')"), ["0", "1 h", "2 h", "3 h"])
        self.assertEqual(self.labels("linear_ticks(0, 9000, 6, 'seconds')"), ["0", "0:30 h", "1:00 h", "1:30 h", "2:00 h", "2:30 h"])

    def test_log_ticks(self):
        self.assertEqual(self.labels("log_ticks(1, 1000, 4)"), ["1", "10", "100", "1000"])
        self.assertEqual(self.labels("log_ticks(0.2, 3, 6)"), ["0.2", "0.5", "1", "2"])
        self.assertEqual(self.labels("log_ticks(1e-6, 1e2, 4)"), ["1e-6", "1e-4", "0.01", "1", "100"])
        self.assertEqual(self.labels("log_ticks(1.2, 1.9, 4)"), ["1.2", "1.4", "1.6", "1.8"])

    def test_ticks_are_few_and_inside_for_any_range(self):
        worst = self.run_js("""(() => {
          const bad = [];
          for (let power = -12; power <= 14; ++power) {
            for (const [low, high] of [[0, 1], [1, 1.001], [-3, 7], [0.99, 5], [2, 1900]]) {
              for (const kind of ['number', 'seconds', 'bytes', 'share']) {
                for (const make of [linear_ticks, log_ticks]) {
                  const [lo, hi] = [low * 10 ** power, high * 10 ** power];
                  if (make === log_ticks && lo <= 0) continue;
                  const ticks = make(lo, hi, 5, kind), slack = (hi - lo) * 1e-6;
                  const inside = ticks.every(({value}) => value >= lo - slack && value <= hi + slack);
                  if (!inside || ticks.length > 16) bad.push([lo, hi, kind, make.name, ticks.length]);
                }
              }
            }
          }
          return bad;
        })()""")
        self.assertEqual(worst, [])

    def test_smoothing_is_a_debiased_average_and_keeps_gaps(self):
        values, beta = [4.0, 3.0, None, 5.0, 1.0], 0.9
        total = weight = 0.0
        expected = []
        for value in values:
            if value is None:
                expected.append(None)
                continue
            total, weight = beta * total + (1 - beta) * value, beta * weight + (1 - beta)
            expected.append(total / weight)
        found = self.run_js("""[...smoothed(prepare({step: [1, 2, 3, 4, 5], tokens: null, seconds: [1, 2, 3, 4, 5],
          value: [4, 3, null, 5, 1], low: null, high: null}), 0.9)].map(value => Number.isNaN(value) ? null : value)""")
        for one, other in zip(found, expected):
            self.assertTrue(one is None and other is None or math.isclose(one, other, rel_tol=1e-12), (found, expected))
        self.assertEqual(found[0], 4)

    def test_the_nearest_point_skips_gaps(self):
        self.check("nearest_point([1, 2, 3, 4], [1, NaN, NaN, 1], 2.4)", 0)
        self.check("nearest_point([1, 2, 3, 4], [1, NaN, NaN, 1], 2.6)", 3)
        self.check("nearest_point([1, 2], [NaN, NaN], 1)", -1)
        self.check("nearest_point([1, 100], [1, 1], 50, 10)", -1)
        self.check("nearest_point([], [], 1)", -1)

    def test_a_decimated_line_keeps_its_extremes(self):
        """A single high value among a hundred thousand points is drawn, at its height."""
        self.check("""(() => {
          const count = 100000, x = Float64Array.from({length: count}, (_, i) => i), y = new Float64Array(count).fill(1);
          y[54321] = 9;
          const points = [], context = {moveTo: (px, py) => points.push(py), lineTo: (px, py) => points.push(py)};
          trace(context, x, y, 0, count, new Scale(0, count, 0, 500), new Scale(0, 10, 100, 0));
          return [points.length < 2500, Math.min(...points), Math.max(...points)];
        })()""", [True, 10, 90])


if __name__ == "__main__":
    unittest.main()
