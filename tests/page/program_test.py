"""The page of the program itself: runs that train, are killed and resumed, and their report."""
import json
import math
import pathlib
import re
import signal
import sys
import unittest

from browser import PageTest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
import program  # noqa: E402

SETTINGS = (*program.SMALL, "--set", "log.interval=1", "--set", "diagnostics.health_interval=20", "--set", "checkpoint.interval=50",
            "--set", "train.validation_interval=50", "--set", "log.sample_interval=100")


class Program(PageTest):
    def setUp(self):
        super().setUp()
        folder = program.temporary_folder()
        self.addCleanup(folder.cleanup)
        self.run_folder = pathlib.Path(folder.name) / "run"

    def started(self, *arguments):
        """A process that is ended with the test, if it still runs."""
        process = program.start(*arguments)

        def end():
            process.kill()
            process.communicate()
        self.addCleanup(end)
        return process

    def train(self, *more):
        return self.started("train", "--run", self.run_folder, *more)

    def dashboard(self):
        process = self.started("dashboard", "--port", 0, self.run_folder.parent)
        self.addCleanup(self.browser.open, "about:blank")
        return re.search(r"http://127\.0\.0\.1:\d+/", process.stdout.readline()).group()

    def logged(self, field):
        lines = [json.loads(line) for line in (self.run_folder / "metrics.jsonl").read_text().splitlines()]
        return {line["step"]: line[field] for line in lines if field in line}

    def assert_curve(self, panel, label, field):
        """The curve in the page has the points of metrics.jsonl."""
        line = next(line for line in self.lines(panel) if line["label"] == label)
        logged = self.logged(field)
        self.assertEqual(line["x"], list(logged))
        for drawn, value in zip(line["value"], logged.values()):
            self.assertTrue(math.isclose(drawn, value, rel_tol=1e-6), (drawn, value))

    def test_a_run_trains_is_killed_resumes_and_is_reported(self):
        training = self.train(*SETTINGS, "--steps", 1000)
        self.open(self.dashboard())
        first = self.lines("loss")[0]["x"][-1]
        self.browser.wait(f"quern.charts()[0].lines[0].x.at(-1) > {first + 60}", "the curve moves", 60)
        self.assertEqual(self.run_js("quern.view.runs[0].state"), "training")
        training.send_signal(signal.SIGKILL)
        training.wait()
        self.browser.wait("quern.view.runs[0].state === 'interrupted'", "the kill is noticed", 30)
        stopped = self.run_js("quern.view.runs[0].step")
        self.assertLess(stopped, 1000)

        self.assertEqual(self.train("--resume", "--steps", stopped + 100).wait(program.TIMEOUT), 0)
        self.browser.wait(f"quern.view.runs[0].state === 'finished' && quern.view.runs[0].step === {stopped + 100}", "the end", 30)
        self.browser.wait("document.querySelector('.event.resume') !== null", "the resumption is listed")
        self.frame()
        self.assert_curve("loss", "training", "loss")
        self.assert_curve("loss", "validation", "validation_loss")
        self.assert_curve("gradient", "gradient norm", "gradient_norm")
        self.assertGreater(self.run_js("quern.view.runs[0].heatmaps.health.step.length"), 2)

        report = self.run_folder.parent / "report.html"
        self.assertEqual(program.quern("report", self.run_folder, "--html", report).stderr, "")
        self.open(report.as_uri())
        self.assertEqual(self.browser.requests, [report.as_uri()])
        self.assertEqual(self.settings()["connection"], "report")
        self.assert_curve("loss", "training", "loss")
        self.assert_curve("loss", "validation", "validation_loss")


if __name__ == "__main__":
    unittest.main()
