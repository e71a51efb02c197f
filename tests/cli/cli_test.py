"""The program as a user meets it: what it prints, where, and its exit code. QUERN names the program to test."""

import json
import os
import subprocess
import sys
import unittest

QUERN = os.environ["QUERN"]
RESULT_KEYS = {"name", "value", "unit", "reference", "reference_value", "ratio", "bar", "pass"}
MACHINE_KEYS = {"fma_peak_gflops", "read_gbs", "copy_gbs", "threads", "target"}


def quern(*arguments, target=None):
    environment = {key: value for key, value in os.environ.items() if key != "QUERN_TARGET"}
    if target is not None:
        environment["QUERN_TARGET"] = target
    return subprocess.run([QUERN, *arguments], capture_output=True, text=True, env=environment, timeout=500)


class Usage(unittest.TestCase):
    def assert_bad_usage(self, *arguments, says, target=None):
        run = quern(*arguments, target=target)
        self.assertEqual(run.returncode, 2, run)
        self.assertRegex(run.stderr, r"\Aquern: [^\n]+\n\Z")
        self.assertIn(says, run.stderr)

    def test_a_command_is_needed(self):
        self.assert_bad_usage(says="info or bench")

    def test_unknown_command(self):
        self.assert_bad_usage("frobnicate", says="unknown command 'frobnicate'; run `quern --help`")

    def test_unknown_benchmark(self):
        self.assert_bad_usage("bench", "frobnicate", says="unknown command 'frobnicate'; run `quern bench --help`")

    def test_bench_needs_a_benchmark(self):
        self.assert_bad_usage("bench", says="kernels, queue, replay, tokenize, selfplay, dashboard, train, diagnostics or --list")

    def test_unknown_flag(self):
        self.assert_bad_usage("info", "--frobnicate", says="unknown flag '--frobnicate'; run `quern info --help`")

    def test_threads_out_of_range(self):
        for command in (["info"], ["bench", "kernels"], ["bench", "queue"], ["bench", "replay"], ["bench", "train"],
                        ["train"], ["eval"], ["generate"]):
            for value in ("0", "-3", "65", "two", "99999999999999999999", ""):
                self.assert_bad_usage(*command, "--threads", value, says="--threads")

    def test_flag_without_its_value(self):
        self.assert_bad_usage("bench", "kernels", "--filter", says="--filter")

    def test_unknown_preset(self):
        self.assert_bad_usage("bench", "train", "--preset", "huge", says="--preset")

    def test_filter_that_matches_nothing(self):
        self.assert_bad_usage("bench", "queue", "--quick", "--filter", "nosuchname", says="nosuchname")

    def test_unknown_target(self):
        self.assert_bad_usage("info", target="mmx", says="QUERN_TARGET")
        self.assert_bad_usage("bench", "kernels", target="mmx", says="found 'mmx'")

    def test_output_that_cannot_be_written(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            run = subprocess.run([QUERN, "info", "--targets"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(run.returncode, 2)
        self.assertRegex(run.stderr, r"\Aquern: [^\n]+\n\Z")

    def test_help_has_examples(self):
        for command in ([], ["info"], ["bench"], ["bench", "kernels"], ["bench", "queue"], ["bench", "replay"],
                        ["bench", "tokenize"], ["bench", "train"], ["train"], ["generate"], ["eval"], ["tokenize"]):
            run = quern(*command, "--help")
            self.assertEqual((run.returncode, run.stderr), (0, ""))
            self.assertIn("Examples:\n  quern ", run.stdout)

    def test_help_works_with_a_bad_target(self):
        self.assertEqual(quern("--help", target="mmx").returncode, 0)

    def test_version(self):
        run = quern("--version")
        self.assertEqual(run.returncode, 0)
        self.assertRegex(run.stdout, r"\Aquern \d+\.\d+\.\d+ \(\S+\)\n\Z")


class Info(unittest.TestCase):
    def test_text(self):
        run = quern("info", "--quick")
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        for word in ("cpu", "targets", "caches", "memory", "FMA peak", "GB/s"):
            self.assertIn(word, run.stdout)

    def test_json(self):
        run = quern("info", "--quick", "--json", "--threads", "1")
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        info = json.loads(run.stdout)
        self.assertLessEqual(MACHINE_KEYS, set(info["machine"]))
        self.assertEqual(info["machine"]["threads"], 1)
        for limit in ("fma_peak_gflops", "fma_peak_one_gflops", "read_gbs", "copy_gbs"):
            self.assertGreater(info["machine"][limit], 0)
        self.assertEqual(info["targets"][-1], {"name": "scalar", "fma": False})
        self.assertGreaterEqual(info["system"]["usable_cores"], 1)

    def test_every_listed_target_can_be_forced(self):
        targets = quern("info", "--targets").stdout.split()
        self.assertEqual(targets[-1], "scalar")
        for target in targets:
            machine = json.loads(quern("info", "--quick", "--json", target=target).stdout)["machine"]
            self.assertEqual(machine["target"], target)

    def test_more_threads_than_cores(self):
        run = quern("info", "--quick", "--json", "--threads", "64")
        self.assertEqual(json.loads(run.stdout)["machine"]["threads"], 64)

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "needs two cores")
    def test_the_peak_of_a_busy_machine(self):
        """By wall time two threads looked like one: on a busy machine they hardly run side by side for a millisecond."""
        spin = [sys.executable, "-c", "while True: pass"]
        others = [subprocess.Popen(spin) for _ in range(3 * len(os.sched_getaffinity(0)))]
        try:
            run = quern("info", "--quick", "--json", "--threads", "2")
        finally:
            for other in others:
                other.kill()
                other.wait()
        machine = json.loads(run.stdout)["machine"]
        self.assertGreater(machine["fma_peak_gflops"], 1.4 * machine["fma_peak_one_gflops"])


class Bench(unittest.TestCase):
    def bench(self, *arguments):
        run = quern("bench", *arguments, "--quick", "--json")
        self.assertEqual((run.returncode, run.stderr), (0, ""), run.stdout)
        output = json.loads(run.stdout)
        self.assertLessEqual(MACHINE_KEYS | {"cpu", "commit", "blas"}, set(output["machine"]))
        self.assertTrue(output["results"])
        for result in output["results"]:
            self.assertEqual(set(result), RESULT_KEYS)
            self.assertIsInstance(result["pass"], bool)
            self.assertIsInstance(result["bar"], (int, float, type(None)))
            self.assertGreater(result["value"], 0, result)
        return output["results"]

    def test_list_names_the_workloads(self):
        run = quern("bench", "--list")
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        for name in ("gemm", "adamw", "layernorm", "rmsnorm", "attention", "gelu", "accumulate", "norm", "convert", "queue",
                     "replay", "tokenize", "tiny"):
            self.assertIn(name, run.stdout)

    def test_filter_selects_matching_results(self):
        for name in ("accumulate", "convert"):
            results = self.bench("kernels", "--filter", name)
            self.assertTrue(all(result["name"].startswith(name) for result in results), results)

    def test_replay(self):
        names = {result["name"] for result in self.bench("replay")}
        self.assertLessEqual({"replay/add_one", "replay/add_batch", "replay/sample_gather", "replay/threads/2w2r",
                              "replay/processes/4w", "replay/save", "replay/load"}, names)

    def test_queue(self):
        self.assertTrue(all(result["name"].startswith("queue") for result in self.bench("queue")))

    def test_tokenize(self):
        names = {result["name"] for result in self.bench("tokenize", "--threads", "2")}
        self.assertLessEqual({"tokenize/gpt2", "tokenize/llama3", "tokenize/sentencepiece/2threads"}, names)

    def test_selfplay(self):
        names = {result["name"] for result in self.bench("selfplay", "--threads", "2")}
        self.assertEqual({f"selfplay/connect4/{part}" for part in ("loop", "ingestion", "learner", "mfu")}, names)

    def test_train(self):
        run = quern("bench", "train", "--quick", "--json", "--threads", "2", "--batch", "3", "--context", "32")
        self.assertEqual((run.returncode, run.stderr), (0, ""), run.stdout)
        output = json.loads(run.stdout)
        self.assertEqual((output["preset"], output["threads"], output["teams"]), ("tiny", 2, 1))
        for key in ("tokens_per_s", "gflops", "fma_peak_gflops", "peak_rss_bytes"):
            self.assertGreater(output[key], 0, key)
        # By arithmetic: on a busy machine the peak may be that of a slow moment, and threads that get their core back late
        # report waits of the step before, of all the time that this one took or more.
        share = output["gflops"] / output["fma_peak_gflops"]
        self.assertEqual(output["mfu"] is None, share > 0.97, output)
        self.assertAlmostEqual(output["mfu"] or share, share, places=9)
        waits = [output[key] for key in ("ticket_wait", "team_wait", "queue_wait")]
        self.assertGreaterEqual(min(waits), 0, output)
        self.assertAlmostEqual(output["utilisation"], max(0, 1 - sum(waits)), places=9)
        operations_per_token = 1e9 * output["gflops"] / output["tokens_per_s"]  # 6 for each of 0.8 million parameters
        self.assertTrue(4.5e6 < operations_per_token < 7e6, operations_per_token)
        self.assertEqual(output["locks_per_step"] or 0, 0)
        self.assertGreaterEqual(output["sleeps_per_step"], 0)
        self.assertLessEqual(MACHINE_KEYS, set(output["machine"]))
        self.assertTrue(all(set(result) == RESULT_KEYS for result in output["results"]))
        self.assertIn("train/tiny/3x32/mfu", [result["name"] for result in output["results"]])

    def test_diagnostics(self):
        names = [result["name"] for result in self.bench("diagnostics", "--threads", "2")]
        self.assertIn("diagnostics/region/off", names)
        self.assertEqual(names[-1], "diagnostics/tiny/everything")

    def test_table_has_a_row_per_result_and_a_summary(self):
        run = quern("bench", "kernels", "--quick", "--filter", "accumulate")
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        rows = [line for line in run.stdout.splitlines() if line.startswith("accumulate")]
        self.assertTrue(rows)
        self.assertIn(f"results: {len(rows)};", run.stdout)


if __name__ == "__main__":
    unittest.main()
