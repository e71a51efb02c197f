"""Bad input to quern.ReplayBuffer is a one-line error and changes nothing."""

import pickle

import numpy as np
import pytest

import quern
from replay_rows import COLUMNS, buffer, name, rows


def test_numbers_that_do_not_fit_are_refused():
    buffer = quern.ReplayBuffer({"x": "int16", "y": "float32"}, capacity=3)
    for x in (70_000, 1.7, [1, 2], "seven"):
        with pytest.raises(ValueError, match="'x'"):
            buffer.add(x=x, y=1)
    with pytest.raises(ValueError, match=r"'y': expected float32 \(\), found nothing"):
        buffer.add(x=3)
    assert buffer.total_added == 0
    assert buffer.add(x=-7, y=3) == 0 and buffer.get(0)["x"] == -7


def test_unknown_ids_are_ignored_or_refused():
    """An id of 64 bits lost its upper ones in the word of a slot: 2**64 - 1 was a row of zeros in an empty slot."""
    buffer = quern.ReplayBuffer({"x": "int32"}, capacity=8, prioritised=True)
    buffer.add_batch(x=np.arange(3, dtype=np.int32))
    strange = np.array([2**64 - 1, 2**63 - 1, 2**63 + 1, 2**62 + 1, 2**47, 3], np.uint64)
    assert [buffer.get(int(id)) for id in strange] == [None] * len(strange)
    assert buffer.update_priorities(strange, np.full(len(strange), 1e6)) == 0


BAD_BATCHES = [
    (lambda good: good.pop("move"), "column 'move': expected int16 (rows,), found nothing"),
    (lambda good: good.update(extra=np.zeros(2)), "found also 'extra'"),
    (lambda good: good.update(move=good["move"].astype(np.int32)), "column 'move': expected int16 (rows,), found int32 (2,)"),
    (lambda good: good.update(planes=good["planes"][:, :, :3]), "expected float32 (rows, 3, 4), found float32 (2, 3, 3)"),
    (lambda good: good.update(planes=np.asfortranarray(good["planes"])), "column 'planes': expected a C-contiguous array"),
    (lambda good: good.update(planes=good["planes"].astype(">f4")), "column 'planes': expected float32 (rows, 3, 4), found >f4"),
    (lambda good: good.update(move=good["move"][:1]), "column 'move': expected 2 rows, as in 'planes', found 1"),
    (lambda good: good.update(move=[1, 2]), "column 'move': expected a NumPy array of int16 (rows,), found list"),
    (lambda good: good.update(mask=good["mask"] + 2), "column 'mask': row 0: expected zeros and ones"),
    (lambda good: good.update(policy=np.ones((2, 40), np.float32)), "column 'policy': row 0: expected at most 5 values"),
    (lambda good: good.update(priorities=[1, 2]), "the buffer is not prioritised"),
]


@pytest.mark.parametrize("spoil, says", BAD_BATCHES)
def test_mismatches_are_reported_and_nothing_is_written(buffer, spoil, says):
    batch = rows(2)
    spoil(batch)
    with pytest.raises(ValueError) as error:
        buffer.add_batch(**batch)
    assert says in str(error.value) and "\n" not in str(error.value)
    assert len(buffer) == buffer.total_added == 0
    assert buffer.add_batch(**rows(2)) == 1


@pytest.mark.parametrize("arguments, says", [
    (({}, 10), "columns"),
    ((COLUMNS, 0), "capacity: expected a whole number from 1, found 0"),
    ((COLUMNS, -5), "found -5"),
    ((COLUMNS, "many"), "found 'many'"),
    ((COLUMNS, 2**70), "capacity: expected 1 to"),
    (({"x": "complex64"}, 10), "column 'x': expected a dtype of bool"),
    (({"x": "flaot32"}, 10), "column 'x': expected a dtype of bool"),
    (({"x": None}, 10), "found 'None'"),
    (({"x": ("float32", (2**70,))}, 10), "column 'x'"),
    (({"x": ("float32", (0,))}, 10), "column 'x'"),
    (({"x": ("float32", (2.5,))}, 10), "column 'x'"),
    (({1: "float32"}, 10), "names"),
    (({"x": quern.Column("float32", 10, "sparse")}, 10), "column 'x'"),
])
def test_invalid_buffers_are_refused(arguments, says):
    with pytest.raises(ValueError) as error:
        quern.ReplayBuffer(*arguments)
    assert says in str(error.value) and "\n" not in str(error.value)


def test_numpy_integers_are_accepted():
    buffer = quern.ReplayBuffer({"x": ("float32", (np.int64(3),))}, capacity=np.int32(5))
    assert (buffer.capacity, buffer.columns["x"].shape) == (5, (3,))
    assert buffer.columns["x"] != 3


def test_integers_are_checked(buffer):
    buffer.add_batch(rows(3))
    for call in (lambda: buffer.sample(-1), lambda: buffer.sample(2.5), lambda: buffer.sample("x"), lambda: buffer.get(-1),
                 lambda: quern.ReplayBuffer(COLUMNS, 5, seed=-1), lambda: quern.ReplayBuffer(COLUMNS, 5, min_size=0)):
        with pytest.raises(ValueError, match="expected a whole number from [01], found [^\\n]*$"):
            call()


def test_invalid_samples_are_refused(buffer):
    with pytest.raises(ValueError, match="at least one row"):
        buffer.sample(1)
    buffer.add_batch(rows(10))
    for arguments, says in [({"rule": "best"}, "rule: expected uniform"), ({"rule": "prioritised"}, "prioritised"),
                            ({"rule": "recent"}, "half_life"), ({"out": {"nothing": np.zeros(4)}}, "found also 'nothing'"),
                            ({"out": {"move": np.zeros(5, np.int16)}}, "expected a writable array of 4 rows"),
                            ({"out": {"move": np.zeros(8, np.int16)[::2]}}, "C-contiguous"),
                            ({"out": [1]}, "expected a dict of arrays, found list")]:
        with pytest.raises(ValueError) as error:
            buffer.sample(4, **arguments)
        assert says in str(error.value), says
    with pytest.raises(ValueError, match="11"):
        buffer.sample(11, rule="without_replacement")
    frozen = np.zeros(4, np.int16)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        buffer.sample(4, out={"move": frozen})


def test_attaching_to_invalid_buffers_is_refused(folder, name):
    with pytest.raises(ValueError, match=name):
        quern.ReplayBuffer.attach(shared=name)
    (folder / "text").write_bytes(b"no buffer" * 2000)
    with pytest.raises(ValueError, match="text"):
        quern.ReplayBuffer.attach(file=folder / "text")
    with pytest.raises(ValueError, match="shared= or file="):
        quern.ReplayBuffer.attach()
    quern.ReplayBuffer(COLUMNS, capacity=5, shared=name)
    with pytest.raises(ValueError, match=name):
        quern.ReplayBuffer(COLUMNS, capacity=5, shared=name)
    with pytest.raises(ValueError, match="private"):
        pickle.dumps(quern.ReplayBuffer(COLUMNS, capacity=5))
