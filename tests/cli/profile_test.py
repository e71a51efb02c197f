"""Where a run's time goes: --profile and --trace as a user types them."""

import json
import pathlib
import re
import tempfile

import program
from program import SMALL


class Profile(program.ProgramTest):
    def test_shares_add_up_to_the_workers_time(self):
        printed = self.train("run", "--steps", "60", "--threads", "2", "--profile")
        self.assertIn("profile of 60 steps:", printed)
        self.assertIn("limits of a worker:", printed)
        rows = dict(re.findall(r"(?m)^(\S.*?)  +([0-9.]+) %", printed[printed.index("operation"):]))
        for name in ("qkv forward", "attention backward", "expand weight gradient", "AdamW", "waiting for work", "other"):
            self.assertIn(name, rows)
        total = float(rows.pop("sum"))
        self.assertAlmostEqual(sum(map(float, rows.values())), total, delta=0.5)
        self.assertAlmostEqual(total, 100, delta=3)
        self.assertRegex(printed, r"(?m)^qkv forward .* GFLOPS +[0-9]+ %$")
        self.assertRegex(printed, r"(?m)^AdamW .* GB/s +[0-9]+ %$")
        self.assertRegex(printed, r"(?m)^step 60/60 .* limit: (compute|memory|data|waiting) ")

    def test_a_trace_has_a_track_per_worker(self):
        trace = self.path("trace.json")
        printed = self.train("run", "--steps", "10", "--threads", "2", "--trace", trace)
        self.assertIn("trace: steps 1 to 10, ", printed)
        self.assertNotIn("operation", printed)
        events = json.loads(pathlib.Path(trace).read_text())["traceEvents"]
        lanes = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
        self.assertEqual(lanes, {0: "worker 0", 1: "worker 1", 2: "trainer"})
        calls = [event for event in events if event["ph"] == "X"]
        self.assertEqual({call["args"].get("step") for call in calls if call["name"] == "qkv forward"}, set(range(1, 11)))
        self.assertLessEqual({"waiting for work", "checkpoint", "validation", "sample", "step", "AdamW"},
                             {call["name"] for call in calls})
        self.nest(calls)

    def nest(self, calls):
        """Calls of a lane lie one after the other or one inside the other."""
        for lane in {call["tid"] for call in calls}:
            open_until = []
            for call in sorted((c for c in calls if c["tid"] == lane), key=lambda c: (c["ts"], -c["dur"])):
                end = call["ts"] + call["dur"]
                while open_until and open_until[-1] <= call["ts"] + 0.002:
                    open_until.pop()
                if open_until:
                    self.assertLessEqual(end, open_until[-1] + 0.002, call)
                open_until.append(end)

    def test_neither_changes_the_result(self):
        self.train("plain", "--steps", "5")
        self.train("watched", "--steps", "5", "--profile", "--trace", self.path("trace.json"))
        self.assertEqual(self.hash("plain"), self.hash("watched"))

    def test_without_a_folder_the_run_is_temporary(self):
        before = set(pathlib.Path(tempfile.gettempdir()).glob("quern-*"))
        printed = self.works("train", *SMALL, "--steps", "3", "--profile")
        self.assertIn("profiling only, nothing was saved", printed)
        self.assertLessEqual(set(pathlib.Path(tempfile.gettempdir()).glob("quern-*")), before)
        self.fails("train", *SMALL, "--steps", "3", says=["--run"])
        self.fails("train", "--resume", "--profile", says=["--run"])

    def test_a_trace_that_cannot_be_written_is_an_error_before_training(self):
        for trace, reason in ((self.path("none/trace.json"), "cannot create"), (self.folder, "found a folder")):
            self.fails("train", *SMALL, "--steps", "3", "--run", self.path("run"), "--trace", trace,
                       says=[str(trace), reason])
            self.assertFalse((self.folder / "run" / "config.toml").exists())


if __name__ == "__main__":
    program.main()
