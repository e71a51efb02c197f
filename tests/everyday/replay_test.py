"""Everyday use of the replay buffer, as users type it: Python calls and `quern replay`."""

import os
import sys
import tempfile
import unittest
import uuid
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
import program
import quern

run = program.quern


class Everyday(unittest.TestCase):
    def setUp(self):
        self.name = f"everyday-{uuid.uuid4().hex[:8]}"

    def tearDown(self):
        quern.ReplayBuffer.remove(shared=self.name)

    def says(self, call, *parts):
        with self.assertRaises(quern.Error) as caught:
            call()
        self.assertNotIn("\n", str(caught.exception))
        for part in parts:
            self.assertIn(part, str(caught.exception))

    def episodes(self, **options):
        """Ten episodes of five rows: obs 0, 1, 2, 3, 4, and a reward of 1 each."""
        buffer = quern.ReplayBuffer({"obs": "float32", "reward": "float32", "done": "bool"}, 1000, terminal="done", **options)
        writer = buffer.writer()
        for _ in range(10):
            for step in range(5):
                writer.add(obs=step, reward=1.0, done=step == 4)
        return buffer

    def test_sequences(self):
        batch = self.episodes().sample_sequences(32, length=3)
        self.assertEqual(batch["obs"].shape, (32, 3))
        self.assertTrue((np.diff(batch["obs"], axis=1) == 1).all())

    def test_padded_sequences(self):
        batch = self.episodes().sample_sequences(200, length=4, pad=True)
        self.assertEqual(set(batch.lengths), {1, 2, 3, 4})
        self.assertTrue((batch["obs"][~batch.mask] == 0).all())

    def test_n_step_returns(self):
        batch = self.episodes().sample_n_step(200, n=3, gamma=0.5, next=["obs"])
        early = batch["obs"] < 2
        self.assertTrue((batch.returns[early] == 1.75).all() and (batch.discounts[early] == 0.125).all())
        self.assertTrue((batch.next["obs"][early] == batch["obs"][early] + 3).all())
        self.assertTrue((batch.discounts[~early] == 0).all())

    def test_sequences_need_episodes(self):
        buffer = quern.ReplayBuffer({"obs": "float32", "done": "bool"}, 10)
        self.says(lambda: buffer.sample_sequences(1, 2), "expected a buffer with episodes", 'terminal="name of a column"')

    def test_nested_observations(self):
        buffer = quern.ReplayBuffer({"obs": {"image": ("uint8", (8, 8)), "vector": ("float32", 3)}, "action": "int64"}, 100)
        buffer.add(obs={"image": np.zeros((8, 8), np.uint8), "vector": [1, 2, 3]}, action=1)
        batch = buffer.sample(4)
        self.assertEqual(batch["obs"]["image"].shape, (4, 8, 8))
        self.assertEqual(list(batch), ["obs.image", "obs.vector", "action"])

    def test_get_many(self):
        buffer = self.episodes()
        rows = buffer.get(np.array([0, 3, 999], np.int32))
        self.assertEqual(rows["obs"].tolist(), [0, 3, 0])
        self.assertEqual(rows.mask.tolist(), [True, True, False])
        self.says(lambda: buffer.get([-1]), "found -1")

    def test_clear(self):
        buffer = self.episodes()
        buffer.clear()
        self.assertEqual((len(buffer), buffer.total_added), (0, 50))
        self.says(lambda: buffer.sample(1), "expected at least one row in the buffer, found none")

    def test_stats(self):
        buffer = self.episodes(prioritised=True)
        buffer.sample(100)
        stats = buffer.stats()
        self.assertEqual((stats["size"], stats["fill"], stats["sampled"], stats["episodes"]), (50, 0.05, 100, 10))
        self.assertEqual(stats["max_priority"], 1)

    def test_list_info_and_remove(self):
        self.episodes(shared=self.name)
        self.assertIn(self.name, [info["shared"] for info in quern.ReplayBuffer.list()])
        self.assertIn(self.name, run("replay", "list").stdout)
        found = run("replay", "info", self.name)
        self.assertIn("50 of 1000", found.stdout)
        self.assertIn("reward float32", found.stdout)
        self.assertIn("removed", run("replay", "remove", self.name).stdout)
        gone = run("replay", "remove", self.name)
        self.assertEqual(gone.returncode, 2, gone)
        self.assertIn("found none; run `quern replay list`", gone.stderr)

    def test_info_of_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            quern.ReplayBuffer({"x": "int8"}, 10, file=f"{folder}/rows")
            self.assertIn("0 of 10", run("replay", "info", f"{folder}/rows").stdout)
            Path(folder, "text").write_text("no buffer")
            self.assertIn("expected a replay buffer, found something else", run("replay", "info", f"{folder}/text").stderr)

    def test_open_or_create(self):
        for rows in (1, 2, 3):
            buffer = quern.ReplayBuffer.open_or_create({"x": "int32"}, 10, shared=self.name)
            buffer.add(x=rows)
            self.assertEqual(len(buffer), rows)
        self.says(lambda: quern.ReplayBuffer.open_or_create({"x": "int32"}, 11, shared=self.name), "expected 11, found 10")

    def test_prioritised_draws_by_priority(self):
        for word in ("prioritised", "prioritized"):
            buffer = quern.ReplayBuffer({"x": "int32"}, 10, **{word: True})
            buffer.add_batch(x=np.arange(3, dtype=np.int32), priorities=[0, 1, 0])
            self.assertEqual(set(buffer.sample(20)["x"]) | set(buffer.sample(20, rule=word)["x"]), {1})

    def test_float64_says_the_fix_or_is_cast(self):
        buffer = quern.ReplayBuffer({"x": ("float32", 2)}, 10)
        self.says(lambda: buffer.add_batch(x=np.zeros((3, 2))), "np.ascontiguousarray(x, dtype=np.float32)", "cast=True")
        self.says(lambda: buffer.add_batch(x=np.zeros((2, 3), np.float32).T), "np.ascontiguousarray(x, dtype=np.float32)")
        buffer.add_batch(x=np.zeros((3, 2)), cast=True)
        buffer.add_batch(x=np.zeros((2, 3)).T, cast=True)
        self.assertEqual(len(buffer), 6)

    def test_what_is_not_a_number(self):
        buffer = quern.ReplayBuffer({"x": "float32"}, 10)
        for bad in (None, "text", 1j, np.array("a"), np.array(None)):
            self.says(lambda: buffer.add(x=bad), "column 'x': expected", "float32")

    def test_a_forked_child_of_a_private_buffer(self):
        buffer = quern.ReplayBuffer({"x": "int32"}, 10)
        receive, send = os.pipe()
        if os.fork() == 0:
            try:
                buffer.add(x=1)
            except quern.Error as error:
                os.write(send, str(error).encode())
            finally:
                os._exit(0)
        os.close(send)
        self.assertIn('create the buffer with shared="name"', os.read(receive, 1000).decode())
        os.close(receive)
        os.wait()


if __name__ == "__main__":
    unittest.main()
