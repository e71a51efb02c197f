"""quern.ReplayBuffer: what goes in comes out, as it was and by the rule that was asked for."""

import threading

import numpy as np
import pytest

import quern
from replay_rows import COLUMNS, buffer, name, rows, same


def test_rows_round_trip(buffer):
    assert buffer.add_batch(**rows(7)) == 6
    assert len(buffer) == buffer.total_added == 7
    batch = buffer.sample(50)
    same(dict(**batch), {name: array[batch.ids.astype(int)] for name, array in rows(7).items()})
    assert (batch.ages == 6 - batch.ids).all()
    assert (batch.weights == 1).all()
    same({name: np.asarray(value) for name, value in buffer.get(3).items()},
         {name: array[3] for name, array in rows(7).items()})


def test_the_oldest_rows_are_overwritten(buffer):
    buffer.add_batch(rows(250))
    assert (len(buffer), buffer.total_added) == (100, 250)
    assert buffer.get(149) is None and buffer.get(150) is not None
    batch = buffer.sample(100, rule="without_replacement")
    assert sorted(batch.ids) == list(range(150, 250))


def test_add_accepts_numbers_and_lists():
    buffer = quern.ReplayBuffer({"x": ("float64", 2), "y": "bool"}, capacity=3)
    assert buffer.add(x=[1, 2], y=True) == 0
    assert buffer.add({"x": np.array([3.0, 4.0]), "y": np.bool_(False)}) == 1
    np.testing.assert_array_equal(buffer.get(0)["x"], [1.0, 2.0])
    assert buffer.get(1)["y"] == False  # noqa: E712


def test_rows_of_every_dtype():
    for dtype in ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32",
                  "float64"):
        buffer = quern.ReplayBuffer({"x": (dtype, (5,))}, capacity=4)
        given = np.random.default_rng(0).integers(0, 2, (4, 5)).astype(dtype)
        buffer.add_batch(x=given)
        batch = buffer.sample(4, rule="without_replacement")
        assert batch["x"].dtype == np.dtype(dtype)
        np.testing.assert_array_equal(batch["x"], given[batch.ids.astype(int)])


def test_sampling_into_existing_arrays(buffer):
    buffer.add_batch(rows(100))
    batch = buffer.sample(8)
    planes = batch["planes"]
    again = buffer.sample(8, out=batch)
    assert again["planes"] is planes
    np.testing.assert_array_equal(planes, rows(100)["planes"][again.ids.astype(int)])
    moves = np.zeros(8, np.int16)
    some = buffer.sample(8, out={"move": moves})
    np.testing.assert_array_equal(moves, some.ids)
    assert list(some.keys()) == ["move"]


def test_arrays_stay_alive_while_they_are_filled():
    """sample() held the dict alone: emptied by another thread meanwhile, rows went to memory that was given back."""
    buffer = quern.ReplayBuffer({"x": ("float32", (1 << 16,))}, capacity=4, min_size=2)
    out = {"x": np.zeros((64, 1 << 16), np.float32)}

    def empty():
        out.clear()
        buffer.add_batch(x=np.ones((2, 1 << 16), np.float32))

    threading.Timer(0.1, empty).start()
    batch = buffer.sample(64, out=out)
    assert not out and (batch["x"] == 1).all()


def test_a_sample_behaves_like_a_dict(buffer):
    buffer.add_batch(rows(10))
    batch = buffer.sample(3)
    assert list(batch) == list(batch.keys()) == list(COLUMNS)
    assert "move" in batch and "nothing" not in batch
    assert all(array is batch[name] for name, array in batch.items()) and len(batch.values()) == len(COLUMNS)
    assert len(batch) == 3  # rows
    with pytest.raises(KeyError, match="nothing"):
        batch["nothing"]


def test_the_same_seed_draws_the_same_rows():
    one, two = (quern.ReplayBuffer(COLUMNS, capacity=100, seed=5) for _ in range(2))
    for buffer in (one, two):
        buffer.add_batch(rows(100))
    for rule in ("uniform", "without_replacement", "recent"):
        first = one.sample(20, rule=rule, half_life=10)
        np.testing.assert_array_equal(first.ids, two.sample(20, rule=rule, half_life=10).ids)
    assert one.draws == 3
    empty = quern.ReplayBuffer(COLUMNS, capacity=5, seed=5)
    with pytest.raises(ValueError, match="at least one row"):
        empty.sample(1)
    assert empty.draws == 0
    one.draws = 0
    np.testing.assert_array_equal(one.sample(20).ids, quern_first_uniform(5))


def quern_first_uniform(seed):
    buffer = quern.ReplayBuffer(COLUMNS, capacity=100, seed=seed)
    buffer.add_batch(rows(100))
    return buffer.sample(20).ids


def test_priorities():
    buffer = quern.ReplayBuffer({"x": "int32"}, capacity=10, prioritised=True, alpha=1.0, seed=3)
    buffer.add_batch(x=np.arange(10, dtype=np.int32), priorities=[1, 0, 0, 0, 3, 0, 0, 0, 0, 0])
    batch = buffer.sample(4000, rule="prioritised", beta=1.0)
    assert set(batch["x"]) == {0, 4}
    assert abs((batch["x"] == 4).mean() - 0.75) < 0.05
    np.testing.assert_allclose(batch.weights[batch["x"] == 4] * 3, batch.weights[batch["x"] == 0][0], rtol=1e-5)
    assert buffer.update_priorities(batch.ids[:0], []) == 0
    assert buffer.update_priorities([0, 4, 99], [0.0, 0.0, 1.0]) == 2
    buffer.update_priorities([7], [1.0])
    assert set(buffer.sample(50, rule="prioritised")["x"]) == {7}
    assert buffer.add(x=55) == 10  # the highest so far
    assert set(buffer.sample(500, rule="prioritised")["x"]) == {7, 55}


def test_a_batch_larger_than_the_ring_leaves_rows_to_sample_meanwhile(buffer):
    assert buffer.add_batch(rows(330)) == 329
    assert sorted(buffer.sample(100, rule="without_replacement").ids) == list(range(230, 330))


def test_a_column_may_have_the_name_of_an_argument():
    buffer = quern.ReplayBuffer({"timeout": "float32", "out": "float32"}, capacity=3)
    buffer.add_batch({"timeout": np.ones(2, np.float32), "out": np.zeros(2, np.float32)})
    assert buffer.sample(1)["timeout"][0] == 1


def test_properties_and_repr(buffer):
    assert repr(buffer) == "<quern.ReplayBuffer: 0 of 100 rows, 4 columns>"
    assert buffer.row_bytes == 48 + 2 + buffer.columns["policy"].stored_bytes + 3
    assert quern.Column("uint8", [3, 7], "bits") == buffer.columns["mask"]
    assert repr(buffer.columns["policy"]) == "quern.Column('float32', (40,), encoding='sparse', max_nonzero=5)"
