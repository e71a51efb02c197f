#!/usr/bin/python3
"""A run that goes wrong, as a user meets it: what is said, what is saved, and how the step is looked at again."""

import json
import pathlib
import shutil

from program import ProgramTest, main, quern
from tensorboard_test import events

CONTEXT, BATCH, SPIKE, BAD_SEQUENCE = 16, 4, 202, 3
SETTINGS = ("--layers", "2", "--heads", "2", "--width", "32", "--context", CONTEXT, "--batch", BATCH, "--steps", "210",
            "--set", "data.sampling=stream", "--set", "data.validation_fraction=0", "--set", "optimizer.rate=0.01", "--set", "optimizer.min_rate=0.001",
            "--set", "optimizer.warmup=5", "--set", "train.validation_interval=0", "--set", "train.validation_batches=1",
            "--set", "checkpoint.interval=20", "--set", "diagnostics.spike_z=4", "--set", "diagnostics.health_interval=90")


class IncidentTest(ProgramTest):
    def setUp(self):
        super().setUp()
        text = bytearray(ord("a") + i % 26 for i in range(30_000))
        bad = ((SPIKE - 1) * BATCH + BAD_SEQUENCE) * CONTEXT
        for i in range(bad + 1, bad + CONTEXT):
            text[i] = ord("a") + i * 7 % 25
        self.text = self.write("text.txt", bytes(text))

    def metrics(self, run):
        return [json.loads(line) for line in (self.folder / run / "metrics.jsonl").read_text().splitlines()]

    def test_a_run_stops_with_a_reason_and_resumes(self):
        run = self.path("run")
        incident = pathlib.Path(run) / "incidents" / "step-00000202"
        failed = self.fails("train", self.text, *SETTINGS, "--run", run,
                            says=["step 202: the loss is", "deviations", "sequence 4 of 4", str(incident)])
        self.assertIn(f"saved; to diagnose it, run `quern rerun-step {incident}`", failed.stdout)
        self.assertEqual(self.info("run")["step"], 201)
        self.assertEqual([line["incident"]["step"] for line in self.metrics("run") if "incident" in line], [202])
        for threads in (1, 4):
            printed = self.works("rerun-step", incident, "--threads", threads)
            self.assertIn("bit-identical to the recorded step\n", printed)
            self.assertIn("first bad tensor  none", printed)
            self.assertRegex(printed, r"highest losses    [0-9.]+ \(sequence 4\)")
        self.fails("train", "--run", run, "--resume", says=["step 202: the loss is"])
        self.works("train", "--run", run, "--resume", "--set", "diagnostics.policy=skip")
        self.works("train", self.text, *SETTINGS, "--set", "diagnostics.policy=skip", "--run", self.path("skip"))
        self.assertEqual(self.hash("run"), self.hash("skip"))
        skipped = [line for line in self.metrics("skip") if line.get("skipped")]
        self.assertEqual([line["step"] for line in skipped], [202])

    def test_a_rollback_is_logged_once(self):
        run = self.path("run")
        printed = self.works("train", self.text, *SETTINGS, "--set", "diagnostics.policy=rollback", "--set", "log.interval=1",
                             "--run", run)
        self.assertIn("; back to step 200\n", printed)
        lines = self.metrics("run")
        self.assertEqual([line["step"] for line in lines if "loss" in line], list(range(1, 211)))
        self.assertEqual([line["incident"]["action"] for line in lines if "incident" in line], ["rollback"])
        health = [line for line in lines if "health" in line]
        self.assertEqual([line["step"] for line in health], [90, 180])
        self.assertEqual(set(health[0]["health"]["h.1.ln_2.bias"]), {"norm", "mean", "largest", "zeros", "update_ratio"})
        self.assertRegex(self.works("report", "--run", run), r"incidents    step 202: the loss is .*; back to step 200\n")
        (incident,) = json.loads(self.works("report", "--run", run, "--json"))["incidents"]
        self.assertEqual((incident["step"], incident["action"], incident["resumed_after"], incident["folder"]),
                         (202, "rollback", 200, "step-00000202"))

    def test_a_kill_after_a_rollback_leaves_no_second_incident(self):
        """Killed before its next checkpoint, the run starts from the one it went back to and meets the incident again."""
        run = self.path("run")
        settings = ("--set", "diagnostics.policy=rollback", "--set", "log.interval=1")
        self.works("train", self.text, *SETTINGS, *settings, "--run", run)

        def steady(lines):
            moving, of_process = ("tokens_per_s", "elapsed", "memory", "mfu", "busy"), {"start", "end", "limit", "operations"}
            return [{name: value for name, value in line.items() if name not in moving} for line in lines
                    if not of_process & set(line)]

        uninterrupted, weights = steady(self.metrics("run")), self.hash("run")
        for _ in range(2):
            lines = (self.folder / "run" / "metrics.jsonl").read_text().splitlines(keepends=True)
            (at,) = [i for i, line in enumerate(lines) if "incident" in line]
            (self.folder / "run" / "metrics.jsonl").write_text("".join(lines[:at + 3]))
            shutil.rmtree(self.folder / "run" / "checkpoints" / "step-00000210")
            self.works("train", "--run", run, "--resume")
            self.assertEqual(steady(self.metrics("run")), uninterrupted)
            self.assertEqual(self.hash("run"), weights)

    def test_a_skipped_step_is_in_tensorboard(self):
        run = self.path("run")
        self.works("train", self.text, *SETTINGS, "--set", "diagnostics.policy=skip", "--set", "log.interval=100", "--set",
                   "log.tensorboard=true", "--run", run)
        (file,) = (self.folder / "run" / "tensorboard").iterdir()
        steps = [step for step, _, values in events(file) if "loss/train" in values]
        self.assertEqual(steps, [100, 200, 202, 210])
        self.assertEqual([line["step"] for line in self.metrics("run") if "loss" in line], steps)

    def test_a_rollback_is_removed_from_tensorboard(self):
        run = self.path("run")
        self.works("train", self.text, *SETTINGS, "--set", "diagnostics.policy=rollback", "--set", "log.interval=1", "--set",
                   "log.tensorboard=true", "--run", run)
        (file,) = (self.folder / "run" / "tensorboard").iterdir()
        steps = []
        for step, kind, values in events(file):
            if kind == "start":
                steps = [known for known in steps if known < step]  # as TensorBoard does
            if "loss/train" in values:
                steps.append(step)
        self.assertEqual(steps, list(range(1, 211)))

    def test_an_invalid_incident_is_refused(self):
        self.fails("rerun-step", says=["expected the folder of an incident"])
        self.fails("rerun-step", self.path("none"), says=["expected the folder of an incident"])
        quern("train", self.text, *SETTINGS, "--run", self.path("run"))
        self.fails("rerun-step", self.folder / "run" / "checkpoints" / "step-00000201", says=["found a checkpoint"])
        batch = self.folder / "run" / "incidents" / "step-00000202" / "batch.safetensors"
        batch.write_bytes(batch.read_bytes()[:-4])
        self.fails("rerun-step", batch.parent, says=["batch.safetensors", "bytes, found"])
        batch.unlink()
        self.fails("rerun-step", batch.parent, says=["batch.safetensors"])


if __name__ == "__main__":
    main()
