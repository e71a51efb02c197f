"""scripts/simulate_workers.py: what holds for any rates, and that it cuts and divides as the engine does."""

import dataclasses
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from scaling.model import MODELS, PRESETS, ParameterLayout, Rates  # noqa: E402
from scaling.program import Program, part, segments_at_once  # noqa: E402
from scaling.ranks import (Network, RankStep, Setting, lane_nodes, measured_scale, owners_of,  # noqa: E402
                           simulate_ranks, step_of_one_rank)
from scaling.steps import Engine, Options, simulate  # noqa: E402

RATES = Rates(ROOT / "docs/data/kernel_rates.json")
EXACT = Options(jitter=0.0, steps=1)


def with_micro_batches(preset, count):
    model = PRESETS[preset]
    sequences = dataclasses.replace(model, batch=1 << 20).sequences
    return dataclasses.replace(model, batch=sequences * count)


class OneThread(unittest.TestCase):
    def test_is_busy_except_in_the_gap_and_while_it_is_fed(self):
        for preset in PRESETS:
            result = simulate(PRESETS[preset], RATES, 1, EXACT)
            idle = (EXACT.gap_us + EXACT.submit_us) * 1e-3 / result.step_ms
            self.assertAlmostEqual(result.utilisation, 1 - idle, places=9)
            self.assertEqual((result.ticket_wait, result.team_wait, result.bandwidth), (0, 0, 0))

    def test_time_is_the_sum_of_its_operations(self):
        model = with_micro_batches("tiny", 3)
        engine = Engine(model, RATES, 1, EXACT)
        passes = 2 * engine.programs[1, False].seconds() + engine.programs[1, True].seconds()
        self.assertAlmostEqual(engine.run().passes, passes + EXACT.submit_us * 1e-6, places=9)


class ManyThreads(unittest.TestCase):
    def test_every_second_of_every_thread_is_accounted_for(self):
        for preset, count, threads in (("tiny", 8, 4), ("tiny", 7, 5), ("small", 2, 7), ("gpt2", 1, 3), ("gpt2", 6, 6)):
            times = Engine(with_micro_batches(preset, count), RATES, threads, Options(steps=2)).run()
            parts = times.busy + times.tickets + times.team + times.queue + times.gap
            self.assertAlmostEqual(parts / (times.seconds * threads), 1, places=9, msg=f"{preset} {count} {threads}")

    def test_work_of_a_pass_does_not_depend_on_the_threads(self):
        for preset in ("tiny", "small"):  # the token table of gpt2 is cut into pieces that read an operand again
            layout = ParameterLayout(PRESETS[preset], EXACT.segment_floats)
            one = Program(PRESETS[preset], layout, RATES, EXACT, 1, 1, False).seconds()
            for members in (2, 3, 8):
                team = Program(PRESETS[preset], layout, RATES, EXACT, members, 1, False).seconds()
                self.assertGreaterEqual(team, one * (1 - 1e-9))
                self.assertLess(team, one * 1.05)  # dy is packed apart

    def test_more_threads_are_faster_and_never_better_than_ideal(self):
        for preset in ("tiny", "small"):
            speedups = [simulate(with_micro_batches(preset, 64), RATES, threads, EXACT).speedup
                        for threads in (1, 2, 4, 8, 16)]
            for i, (slower, faster) in enumerate(zip(speedups, speedups[1:])):
                self.assertGreater(faster, slower)
                self.assertLessEqual(faster, 2 ** (i + 1))

    def test_turns_limit_a_step_to_what_one_ticket_can_take(self):
        model = with_micro_batches("tiny", 96)
        engine = Engine(model, RATES, 48, dataclasses.replace(EXACT, segment_floats=1 << 30))
        longest = max(seconds for enter, seconds, _ in engine.programs[1, False].stages[0][0] if enter)
        times = engine.run()
        self.assertGreaterEqual(times.passes, 96 * longest)
        self.assertGreater(times.tickets / (times.seconds * 48), 0.1)

    def test_the_sockets_bandwidth_limits_the_update(self):
        model = PRESETS["gpt2"]
        narrow = simulate(model, RATES, 8, dataclasses.replace(EXACT, socket_gbs=20.0))
        wide = simulate(model, RATES, 8, dataclasses.replace(EXACT, socket_gbs=2000.0))
        self.assertEqual(wide.bandwidth, 0)
        self.assertGreater(narrow.bandwidth, 0.1)
        self.assertGreater(narrow.step_ms, wide.step_ms)


def rank_step(preset, sequences, setting, network, options=EXACT):
    """Of all ranks together: `sequences` for each of them."""
    model = dataclasses.replace(MODELS[preset], batch=sequences * setting.ranks)
    return RankStep(model, RATES, options, setting, network).run()


class Ranks(unittest.TestCase):
    def test_one_rank_is_the_engine(self):
        for preset, threads in (("small", 1), ("small", 4), ("gpt2", 2)):
            model = dataclasses.replace(MODELS[preset], batch=64)
            alone = step_of_one_rank(model, RATES, EXACT, Setting(1, threads))[1]
            self.assertAlmostEqual(alone * 1e3 / simulate(model, RATES, threads, EXACT).step_ms, 1, places=3)

    def test_a_network_without_cost_scales(self):
        for preset in ("small", "gpt2"):
            one = rank_step(preset, 32, Setting(1, 4), Network()).step
            for ranks in (2, 3, 16, 128):
                # With three ranks there are four lanes, and one rank has two of them.
                lanes = 12 if ranks == 3 else 0
                step = rank_step(preset, 32, Setting(ranks, 4, lanes=lanes), Network()).step
                self.assertGreater(one / step, 0.97, (preset, ranks))
                self.assertLess(one / step, 1.03, (preset, ranks))  # a smaller share of AdamW

    def test_a_slow_network_takes_what_it_has_to_send(self):
        """Both directions, balanced: (R - 1) / R of the gradient and as much of the weights."""
        bytes_of_all = 4 * ParameterLayout(MODELS["small"], EXACT.segment_floats).size
        for ranks in (2, 4, 16):
            network = Network(bandwidth=1e6)
            result = rank_step("small", 4, Setting(ranks, 4), network)
            expected = 2 * bytes_of_all * (ranks - 1) / ranks
            self.assertEqual(result.sent, expected)
            free = rank_step("small", 4, Setting(ranks, 4), Network()).step
            # Segments differ in size, so that owners have up to 5 % more than the mean.
            self.assertGreater(result.step, 0.999 * expected / network.bandwidth)
            self.assertLess(result.step, 1.05 * expected / network.bandwidth + free)

    def test_a_link_that_is_never_idle_adds_up_with_what_is_not_overlapped(self):
        """Nothing but embeddings, complete at the very end: the formula is exact."""
        model = dataclasses.replace(MODELS["small"], layers=0, vocabulary=96, context=64, batch=16)
        network = Network(bandwidth=1e8, alpha=1e-3)
        step = RankStep(model, RATES, EXACT, Setting(2), network)
        floats = [0, 0]
        for owner, (size, _) in zip(step.owners, step.segments):
            floats[owner] += size
        backward = step.run().backward
        gradient = backward + 3 * network.alpha + 4 * max(floats) / network.bandwidth
        numbers = 2 * network.alpha + 8 * (len(step.segments) + 16) / 2 / network.bandwidth
        self.assertAlmostEqual(step.run().gradient, gradient + numbers, delta=1e-4)  # adding up

    def test_more_bandwidth_and_less_latency_are_never_slower(self):
        for ranks in (2, 7, 64):
            steps = [rank_step("small", 4, Setting(ranks, 4), Network(bandwidth=rate, alpha=1e-4)).step
                     for rate in (1e7, 1e8, 1e9, 1e10)]
            self.assertEqual(steps, sorted(steps, reverse=True))
            steps = [rank_step("small", 4, Setting(ranks, 4), Network(bandwidth=1e9, alpha=alpha)).step
                     for alpha in (0, 1e-5, 1e-3, 1e-1)]
            self.assertEqual(steps, sorted(steps))
            self.assertGreater(steps[-1], steps[0] + 5 * 1e-1)  # gradient, losses, norms, weights: 3 + 1 + 1 + 3

    def test_overlap_is_never_slower(self):
        for preset, ranks in (("small", 2), ("small", 16), ("gpt2", 4)):
            for network in (Network(), Network(1.25e8, 3e-5, 1.6e9), Network(1.25e10, 1e-3, 1.6e9, 1e-6)):
                steps = [rank_step(preset, 16, Setting(ranks, 4, overlap=overlap), network).step
                         for overlap in ("both", "gradient", "none")]
                self.assertLessEqual(steps[0], steps[1] * (1 + 1e-9), (preset, ranks, network))
                self.assertLessEqual(steps[1], steps[2] * (1 + 1e-9), (preset, ranks, network))
        hidden = rank_step("gpt2", 16, Setting(4, 4, overlap="both"), Network(1.25e9)).step
        self.assertLess(hidden, 0.98 * rank_step("gpt2", 16, Setting(4, 4, overlap="none"), Network(1.25e9)).step)

    def test_ranks_that_share_a_core_take_turns(self):
        alone = rank_step("small", 4, Setting(2, 1, cores=1), Network()).step
        half = rank_step("small", 4, Setting(2, 1, cores=0.5), Network()).step
        self.assertAlmostEqual(half / alone, 2, places=2)

    def test_a_measured_step_replaces_the_rates(self):
        model = MODELS["small"]
        setting = Setting(1, 1)
        scale = measured_scale(model, RATES, EXACT, setting, 3.21)
        alone = step_of_one_rank(model, RATES, EXACT, dataclasses.replace(setting, scale=scale))
        self.assertAlmostEqual(alone[1], 3.21, places=9)
        row = simulate_ranks(model, RATES, EXACT, Setting(2, 1, scale=scale), Network(), alone)
        self.assertAlmostEqual(row.step, 3.21 / 2, delta=0.02)
        self.assertAlmostEqual(row.efficiency, 1, delta=0.02)

    def test_lanes_and_owners_are_those_of_the_engine(self):
        self.assertEqual(lane_nodes(8, 4), [1, 1, 1, 1])
        self.assertEqual(lane_nodes(8, 3), [1, 2, 2])  # lanes 0-1, 2-4, 5-7
        self.assertEqual(lane_nodes(4, 3), [1, 1, 1])
        self.assertEqual(lane_nodes(5, 2), [1, 2])
        self.assertAlmostEqual(sum(lane_nodes(16, 3)) / 3, 2.33, places=2)
        owners = owners_of([(4, True), (4, True), (1, False), (4, True), (1, False)], 2)
        self.assertEqual(owners, [0, 1, 0, 1, 0])
        self.assertEqual(ParameterLayout(MODELS["1.1b"], 64 << 10).size, 1_177_616_384)


class AsTheEngine(unittest.TestCase):
    def test_parts_cover_everything_once(self):
        for n, size, unit in ((128, 8, 48), (12, 5, 1), (50304, 7, 48), (3, 8, 1)):
            parts = [part(n, index, size, unit) for index in range(size)]
            self.assertEqual((parts[0][0], parts[-1][1]), (0, n))
            self.assertTrue(all(a[1] == b[0] for a, b in zip(parts, parts[1:])))

    def test_segments_match_the_layout(self):
        tensors = ParameterLayout(PRESETS["gpt2"], 64 << 10).tensors
        self.assertEqual(len(tensors["wte"].segments), 1048)         # of 48 rows
        self.assertEqual(len(tensors["0.expand"].segments), 16)      # 768 rows of 3,072
        self.assertEqual(len(tensors["0.contract"].segments), 64)
        self.assertEqual(segments_at_once(tensors["wte"], 768, 4, 4), 64)
        self.assertEqual(segments_at_once(tensors["0.contract"], 768, 64, 4), 4)
        self.assertEqual(ParameterLayout(PRESETS["tiny"], 64 << 10).tensors["0.expand"].segments, (96, 32))

    def test_number_of_parameters_matches_the_model(self):
        published = dataclasses.replace(PRESETS["gpt2"], context=1024, vocabulary=50257)
        self.assertEqual(ParameterLayout(published, 64 << 10).size, 124_439_808)


class Script(unittest.TestCase):
    def run_script(self, *arguments):
        return subprocess.run([sys.executable, ROOT / "scripts/simulate_workers.py", *map(str, arguments)],
                              capture_output=True, text=True, timeout=60, check=True).stdout

    def test_same_arguments_give_the_same_json(self):
        arguments = ("--preset", "tiny", "--threads", "1,3", "--batches", "preset", "--json")
        first = self.run_script(*arguments)
        self.assertEqual(first, self.run_script(*arguments))
        case = json.loads(first)["cases"][0]
        self.assertEqual([result["threads"] for result in case["results"]], [1, 3])

    def test_compares_with_measurements(self):
        measured = {"preset": "tiny", "threads": 2, "tokens_per_s": 50000.0, "utilisation": 0.97, "ticket_wait": 0.02,
                    "team_wait": 0.0, "queue_wait": 0.01, "results": [{"reference": "one thread", "ratio": 1.91}]}
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "tiny.json"
            path.write_text(json.dumps(measured))
            table = self.run_script("--compare", path)
        self.assertIn("| tiny, 2 | measured | 50000 | 1.91 | 0.970 | 0.020 | 0.000 | 0.010 |", table)
        self.assertIn("| tiny, 2 | simulated |", table)

    def test_ranks_give_a_row_for_each_network(self):
        table = self.run_script("--ranks", "1,2,4", "--preset", "small", "--gbits", "1,10", "--tokens-per-step", 512)
        rows = [line for line in table.splitlines() if line.startswith("| ")]
        self.assertEqual([row.split()[1] for row in rows], ["ranks", "1", "2"])  # 512 tokens are two sequences
        output = json.loads(self.run_script("--ranks", "2", "--preset", "small", "--tokens-per-rank", 2048, "--json",
                                            "--threads", 1, "--measured", 2.5))
        self.assertEqual([case["gbits"] for case in output["cases"]], [1, 10, 100])
        self.assertGreater(output["cases"][0]["rows"][0]["step"], 2.5)

    def test_plot_is_xml_with_a_line_for_each_case(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "plot.svg"
            self.run_script("--preset", "tiny", "--threads", "1,2", "--batches", "preset,4", "--svg", path)
            root = xml.etree.ElementTree.parse(path).getroot()
        texts = ["".join(element.itertext()) for element in root.iter() if element.tag.endswith("text")]
        for label in ("threads", "speed-up over one thread", "the preset's batch", "4 micro-batches per thread", "ideal"):
            self.assertIn(label, texts)


if __name__ == "__main__":
    unittest.main()
