"""scripts/bench_quality.py: what it says of given curves, its picture, and a short real run."""

import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from quality.curves import Point, read, summarize, write  # noqa: E402
from quality.plot import svg  # noqa: E402


def curve(name, seed, losses):
    return [Point(name, seed, 10 * i, 1000 * i, 2.0 * i, loss) for i, loss in enumerate(losses)]


class Curves(unittest.TestCase):
    points = curve("a", 1, [4.0, 2.0, 1.5, 1.6]) + curve("a", 2, [4.0, 2.5, 1.9, 1.4]) + curve("b", 1, [4.0, 3.0])

    def test_times_are_means_over_seeds_and_unknown_unless_all_arrived(self):
        a, b = summarize(self.points, [2.0, 1.45])
        self.assertEqual((a.name, a.seeds, b.name, b.seeds), ("a", 2, "b", 1))
        self.assertEqual(a.seconds_to[2.0], (2.0 + 4.0) / 2)
        self.assertTrue(math.isnan(a.seconds_to[1.45]) and math.isnan(b.seconds_to[2.0]))

    def test_the_final_loss_is_the_last_and_not_the_lowest(self):
        a = summarize(self.points, [])[0]
        self.assertEqual((a.final, a.lowest, a.highest), (1.5, 1.4, 1.6))
        self.assertEqual(a.tokens_per_second, 500)

    def test_files_round_trip(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "curves.jsonl"
            write(path, self.points)
            self.assertEqual(read(path), self.points)

    def test_the_picture_is_svg_with_every_name(self):
        root = xml.etree.ElementTree.fromstring(svg(self.points + curve("a < b", 1, [3.0, 2.0]), [1.6]))
        texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
        self.assertTrue({"a", "b", "a < b"} <= set(texts))


class Run(unittest.TestCase):
    def test_trains_and_reports(self):
        with tempfile.TemporaryDirectory() as folder:
            text, out, picture = (pathlib.Path(folder) / name for name in ("text.txt", "curves.jsonl", "curve.svg"))
            text.write_text("the cat sat on the mat. " * 800)
            settings = ("model.layers=1", "model.width=32", "model.heads=2", "model.context=32", "train.steps=40")
            command = [sys.executable, ROOT / "scripts/bench_quality.py", text, "--preset", "minute", "--seeds", "1", "2",
                       "--loss", "2", "0.01", "--interval", "10", "--quern", os.environ["QUERN"], "--out", out,
                       "--svg", picture, *(word for setting in settings for word in ("--set", setting))]
            done = subprocess.run(command, capture_output=True, text=True, timeout=120)
            self.assertEqual(done.returncode, 0, done.stderr)
            header, row = done.stdout.splitlines()
            self.assertIn("to 0.01", header)
            self.assertEqual(row.split()[:2], ["minute", "2"])
            points = [json.loads(line) for line in out.read_text().splitlines()]
            self.assertEqual([point["step"] for point in points], [10, 20, 30, 40] * 2)
            self.assertEqual(points[-1]["tokens"], 40 * 16 * 32)
            self.assertLess(points[-1]["loss"], points[0]["loss"])
            self.assertIn("</svg>", picture.read_text())


if __name__ == "__main__":
    unittest.main()
