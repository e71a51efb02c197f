"""quern.ReplayBuffer: what goes in comes out, from threads and processes, and what is wrong is told and changes nothing."""

import multiprocessing
import os
import pickle
import signal
import threading
import time
import uuid

import numpy as np
import pytest

import quern

COLUMNS = {"planes": ("float32", (3, 4)), "move": "int16", "policy": quern.Column("float32", (40,), "sparse", most=5),
           "mask": quern.Column("uint8", (3, 7), encoding="bits")}


def rows(n, start=0):
    """Rows that differ, and that tell which they are."""
    number = np.arange(start, start + n)
    policy = np.zeros((n, 40), np.float32)
    policy[np.arange(n), number % 40] = number + 0.5
    return {"planes": (number[:, None, None] + np.arange(12).reshape(3, 4) / 16).astype(np.float32),
            "move": (number % 30_000).astype(np.int16), "policy": policy,
            "mask": (number[:, None, None] >> np.arange(21).reshape(3, 7) & 1).astype(np.uint8)}


def same(found, expected):
    assert set(found) == set(expected)
    for name, array in expected.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


@pytest.fixture
def buffer():
    return quern.ReplayBuffer(COLUMNS, capacity=100, seed=1)


@pytest.fixture
def name():
    text = f"test-{uuid.uuid4().hex}"
    yield text
    quern.ReplayBuffer.remove(shared=text)


def test_what_goes_in_comes_out(buffer):
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


def test_one_row_at_a_time_takes_numbers_and_lists():
    buffer = quern.ReplayBuffer({"x": ("float64", 2), "y": "bool"}, capacity=3)
    assert buffer.add(x=[1, 2], y=True) == 0
    assert buffer.add({"x": np.array([3.0, 4.0]), "y": np.bool_(False)}) == 1
    np.testing.assert_array_equal(buffer.get(0)["x"], [1.0, 2.0])
    assert buffer.get(1)["y"] == False  # noqa: E712


def test_numbers_that_do_not_fit_are_refused():
    buffer = quern.ReplayBuffer({"x": "int16", "y": "float32"}, capacity=3)
    for x in (70_000, 1.7, [1, 2], "seven"):
        with pytest.raises(ValueError, match="'x'"):
            buffer.add(x=x, y=1)
    with pytest.raises(ValueError, match=r"'y': expected float32 \(\), found nothing"):
        buffer.add(x=3)
    assert buffer.total_added == 0
    assert buffer.add(x=-7, y=3) == 0 and buffer.get(0)["x"] == -7


def test_rows_of_every_dtype():
    for dtype in ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32",
                  "float64"):
        buffer = quern.ReplayBuffer({"x": (dtype, (5,))}, capacity=4)
        given = np.random.default_rng(0).integers(0, 2, (4, 5)).astype(dtype)
        buffer.add_batch(x=given)
        batch = buffer.sample(4, rule="without_replacement")
        assert batch["x"].dtype == np.dtype(dtype)
        np.testing.assert_array_equal(batch["x"], given[batch.ids.astype(int)])


def test_sampling_into_arrays_of_the_caller(buffer):
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


def test_arrays_stay_while_they_are_filled():
    """sample() held the dict alone: emptied by another thread meanwhile, rows went to memory that was given back."""
    buffer = quern.ReplayBuffer({"x": ("float32", (1 << 16,))}, capacity=4, min_size=2)
    out = {"x": np.zeros((64, 1 << 16), np.float32)}

    def empty():
        out.clear()
        buffer.add_batch(x=np.ones((2, 1 << 16), np.float32))

    threading.Timer(0.1, empty).start()
    batch = buffer.sample(64, out=out)
    assert not out and (batch["x"] == 1).all()


def test_a_sample_is_used_like_a_dict(buffer):
    buffer.add_batch(rows(10))
    batch = buffer.sample(3)
    assert list(batch) == list(batch.keys()) == list(COLUMNS)
    assert "move" in batch and "nothing" not in batch
    assert all(array is batch[name] for name, array in batch.items()) and len(batch.values()) == len(COLUMNS)
    assert len(batch) == 3  # rows
    with pytest.raises(KeyError, match="nothing"):
        batch["nothing"]


def test_the_same_seed_draws_the_same():
    one, two = (quern.ReplayBuffer(COLUMNS, capacity=100, seed=5) for _ in range(2))
    for buffer in (one, two):
        buffer.add_batch(rows(100))
    for rule in ("uniform", "without_replacement", "recent"):
        first = one.sample(20, rule=rule, half_life=10)
        np.testing.assert_array_equal(first.ids, two.sample(20, rule=rule, half_life=10).ids)
    assert one.draws == 3
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


def test_ids_that_nobody_has():
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
def test_what_does_not_fit_is_told_and_nothing_is_written(buffer, spoil, says):
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
def test_what_cannot_be_a_buffer(arguments, says):
    with pytest.raises(ValueError) as error:
        quern.ReplayBuffer(*arguments)
    assert says in str(error.value) and "\n" not in str(error.value)


def test_whole_numbers_of_numpy_are_whole_numbers():
    buffer = quern.ReplayBuffer({"x": ("float32", (np.int64(3),))}, capacity=np.int32(5))
    assert (buffer.capacity, buffer.columns["x"].shape) == (5, (3,))
    assert buffer.columns["x"] != 3


def test_whole_numbers_are_checked(buffer):
    buffer.add_batch(rows(3))
    for call in (lambda: buffer.sample(-1), lambda: buffer.sample(2.5), lambda: buffer.sample("x"), lambda: buffer.get(-1),
                 lambda: quern.ReplayBuffer(COLUMNS, 5, seed=-1), lambda: quern.ReplayBuffer(COLUMNS, 5, min_size=0)):
        with pytest.raises(ValueError, match="expected a whole number from [01], found [^\\n]*$"):
            call()


def test_a_batch_larger_than_the_ring_leaves_rows_to_sample_meanwhile(buffer):
    assert buffer.add_batch(rows(330)) == 329
    assert sorted(buffer.sample(100, rule="without_replacement").ids) == list(range(230, 330))


def test_samples_that_cannot_be(buffer):
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


def test_threads_add_and_sample_at_once(buffer):
    stop = threading.Event()
    bad = []

    def add(first):
        for i in range(first, 10**6, 16):
            buffer.add_batch(**rows(8, i % 30_000))
            if stop.is_set():
                return

    def draw():
        batch = buffer.sample(32)
        for _ in range(200):
            batch = buffer.sample(32, out=batch)
            numbers = batch["move"].astype(int)
            expected = {name: np.stack([rows(1, number)[name][0] for number in numbers[:4]]) for name in ("planes", "policy", "mask")}
            for name, array in expected.items():
                if not np.array_equal(batch[name][:4], array):
                    bad.append((name, numbers))

    buffer.add_batch(**rows(8))
    writers = [threading.Thread(target=add, args=(i * 8,)) for i in range(2)]
    readers = [threading.Thread(target=draw) for _ in range(2)]
    for thread in writers + readers:
        thread.start()
    for thread in readers:
        thread.join()
    stop.set()
    for thread in writers:
        thread.join()
    assert not bad


def test_priorities_that_change_while_they_are_added():
    """A priority that went bad after the check was an Error in the middle of a row, whose slot stayed busy for ever."""
    buffer = quern.ReplayBuffer({"x": ("float32", (4096,))}, capacity=16, prioritised=True)
    rows, priorities, stop = np.ones((64, 4096), np.float32), np.ones(64, np.float32), threading.Event()

    def spoil():
        while not stop.is_set():
            priorities[:] = -1
            priorities[:] = 1

    thread = threading.Thread(target=spoil)
    thread.start()
    for _ in range(300):
        try:
            buffer.add_batch(x=rows, priorities=priorities)
        except ValueError:
            pass
    stop.set()
    thread.join()
    last = buffer.add_batch(x=rows)
    assert all(buffer.get(id) is not None for id in range(last - 15, last + 1))


@pytest.mark.parametrize("capacity, batch", [(1, 1), (50, 200)])
def test_rows_that_are_all_in_flight_are_waited_for(capacity, batch):
    """While the one row of a ring was overwritten, or a batch larger than the ring came, sample() said "found none"."""
    buffer = quern.ReplayBuffer({"x": ("float32", (4096,))}, capacity=capacity)
    many, stop = np.ones((batch, 4096), np.float32), threading.Event()
    buffer.add_batch(x=many)

    def add():
        while not stop.is_set():
            buffer.add_batch(x=many)

    thread = threading.Thread(target=add)
    thread.start()
    try:
        for _ in range(3000):
            assert (buffer.sample(1)["x"] == 1).all()
    finally:
        stop.set()
        thread.join()


def add_from_a_process(buffer, first, count):
    for i in range(count):
        buffer.add_batch(**rows(4, first + 4 * i))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_share_a_buffer(method, name):
    buffer = quern.ReplayBuffer(COLUMNS, capacity=4000, shared=name)
    context = multiprocessing.get_context(method)
    processes = [context.Process(target=add_from_a_process, args=(buffer, 1000 * i, 50)) for i in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert len(buffer) == buffer.total_added == 600
    batch = buffer.sample(600, rule="without_replacement")
    assert sorted(batch["move"]) == sorted(1000 * i + k for i in range(3) for k in range(200))


def add_for_ever(buffer):
    while True:
        buffer.add_batch(**rows(16))


def test_a_killed_process_blocks_nobody(name):
    buffer = quern.ReplayBuffer(COLUMNS, capacity=64, shared=name)
    for _ in range(5):
        process = multiprocessing.get_context("fork").Process(target=add_for_ever, args=(buffer,))
        process.start()
        before = buffer.total_added
        while buffer.total_added < before + 200:
            time.sleep(0.001)
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        buffer.add_batch(**rows(200))
        batch = buffer.sample(64)
        numbers = batch["move"].astype(int)
        same(dict(**batch), {name: np.stack([rows(1, n)[name][0] for n in numbers]) for name in COLUMNS})


def test_a_file_outlives_its_processes(folder):
    path = folder / "rows.replay"
    quern.ReplayBuffer(COLUMNS, capacity=50, file=path).add_batch(**rows(20))
    buffer = quern.ReplayBuffer.attach(file=path)
    assert (len(buffer), buffer.capacity) == (20, 50)
    assert buffer.columns == quern.ReplayBuffer(COLUMNS, 1).columns
    assert quern.ReplayBuffer.remove(file=path) and not path.exists()


def test_what_cannot_be_attached_to(folder, name):
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


def test_a_snapshot_brings_everything_back(folder):
    buffer = quern.ReplayBuffer(COLUMNS, capacity=100, prioritised=True, alpha=1.0)
    buffer.add_batch(**rows(150), priorities=np.arange(150))
    result = buffer.save(folder / "a.snapshot")
    assert (result.rows, result.skipped) == (100, 0)
    assert result.bytes == (folder / "a.snapshot").stat().st_size
    info = quern.snapshot_info(folder / "a.snapshot")
    assert (info["rows"], info["capacity"], info["prioritised"], info["columns"]) == (100, 100, True, buffer.columns)
    loaded = quern.ReplayBuffer.from_snapshot(folder / "a.snapshot")
    assert len(loaded) == 100 and loaded.prioritised
    expected = rows(150)
    for i in range(100):
        same({name: np.asarray(value) for name, value in loaded.get(i).items()},
             {name: array[50 + i] for name, array in expected.items()})
    chances = np.bincount(loaded.sample(40_000, rule="prioritised").ids.astype(int), minlength=100) / 40_000
    expected_chances = np.arange(50, 150) / np.arange(50, 150).sum()
    assert abs(chances[:50].sum() - expected_chances[:50].sum()) < 0.02
    assert abs(chances - expected_chances).max() < 0.005
    small = quern.ReplayBuffer(COLUMNS, capacity=30)
    small.load(folder / "a.snapshot")
    assert sorted(small.sample(30, rule="without_replacement")["move"]) == list(range(120, 150))
    other = quern.ReplayBuffer({**COLUMNS, "move": "int32"}, capacity=100)
    with pytest.raises(ValueError, match="move"):
        other.load(folder / "a.snapshot")
    data = bytearray((folder / "a.snapshot").read_bytes())
    data[len(data) // 2] ^= 1
    (folder / "b.snapshot").write_bytes(data)
    with pytest.raises(ValueError, match="b.snapshot"):
        loaded.load(folder / "b.snapshot")
    assert loaded.total_added == 100


def test_a_damaged_snapshot_leaves_no_buffer_behind(folder, name, buffer):
    buffer.add_batch(**rows(100))
    buffer.save(folder / "a.snapshot")
    data = bytearray((folder / "a.snapshot").read_bytes())
    data[len(data) // 2] ^= 1
    (folder / "a.snapshot").write_bytes(data)
    for place in ({"shared": name}, {"file": folder / "a.replay"}):
        with pytest.raises(ValueError, match="damaged"):
            quern.ReplayBuffer.from_snapshot(folder / "a.snapshot", **place)
        assert not quern.ReplayBuffer.remove(**place)


def test_npz_is_numpys(folder, buffer):
    buffer.add_batch(**rows(30))
    buffer.export_npz(folder / "rows.npz")
    same({name: array for name, array in np.load(folder / "rows.npz").items() if name != "__ids__"}, rows(30))
    for save in (np.savez, np.savez_compressed):
        save(folder / "more.npz", **rows(20, 30))
        assert buffer.import_npz(folder / "more.npz").rows == 20
    assert sorted(buffer.sample(70, rule="without_replacement")["move"]) == sorted([*range(50), *range(30, 50)])
    np.savez(folder / "bad.npz", **{**rows(2), "move": np.zeros(3, np.int16)})
    with pytest.raises(ValueError, match="move"):
        buffer.import_npz(folder / "bad.npz")
    assert buffer.total_added == 70


def test_saving_while_rows_come(folder, buffer):
    buffer.add_batch(**rows(100))
    saving = buffer.save_in_background(folder / "a.snapshot")
    for i in range(50):
        buffer.add_batch(**rows(10, 100 + 10 * i))
    result = saving.result()
    assert saving.done() and result.rows + result.skipped == 100
    failing = buffer.save_in_background(folder / "nowhere" / "a.snapshot")
    with pytest.raises(ValueError, match="nowhere"):
        failing.result()


def test_a_rate_limit_keeps_actors_and_learners_in_step():
    buffer = quern.ReplayBuffer({"x": "int32"}, capacity=1000, samples_per_insert=4, min_size=10, slack=40)
    with pytest.raises(TimeoutError, match="rows"):
        buffer.sample(8, timeout=0.01)
    one = np.zeros(1, np.int32)
    for _ in range(10):
        buffer.add_batch(x=one, timeout=1)
    added = 0
    with pytest.raises(TimeoutError, match="samples"):
        while True:
            buffer.add_batch(x=one, timeout=0.01)
            added += 1
    assert 5 <= added <= 15
    started = time.monotonic()
    learner = threading.Thread(target=lambda: (time.sleep(0.1), buffer.sample(64)))
    learner.start()
    buffer.add_batch(x=one)  # waits for the learner
    assert time.monotonic() - started > 0.05
    learner.join()


def test_what_is_refused_does_not_count_for_the_rate_limit():
    buffer = quern.ReplayBuffer({"x": quern.Column("uint8", 8, "bits")}, capacity=100, samples_per_insert=1, slack=10)
    good = np.zeros((1, 8), np.uint8)
    buffer.add_batch(x=good)
    with pytest.raises(ValueError, match="zeros and ones"):
        buffer.add_batch(x=np.full((1000, 8), 3, np.uint8))
    buffer.add_batch(x=good, timeout=0)
    with pytest.raises(ValueError, match="half_life"):
        buffer.sample(1000, rule="recent", timeout=0)
    assert len(buffer.sample(1, timeout=0)) == 1


def test_ctrl_c_ends_a_wait():
    buffer = quern.ReplayBuffer({"x": "int32"}, capacity=10, min_size=5)
    threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        buffer.sample(1)


def test_ctrl_c_ends_the_wait_for_a_buffer_to_appear(name):
    threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        quern.ReplayBuffer.attach(shared=name, patience=20)
    assert time.monotonic() - started < 10
    with pytest.raises(ValueError, match=name):
        quern.ReplayBuffer.attach(shared=name, patience=float("nan"))


def test_timeouts_that_are_none():
    buffer = quern.ReplayBuffer({"x": "int32"}, capacity=10, min_size=5)
    with pytest.raises(ValueError, match="timeout: expected seconds or None, found nan"):
        buffer.sample(1, timeout=float("nan"))
    with pytest.raises(TypeError):
        buffer.sample(1, timeout="soon")
    with pytest.raises(TimeoutError):
        buffer.sample(1, timeout=-1)


def test_a_column_may_be_called_like_an_argument():
    buffer = quern.ReplayBuffer({"timeout": "float32", "out": "float32"}, capacity=3)
    buffer.add_batch({"timeout": np.ones(2, np.float32), "out": np.zeros(2, np.float32)})
    assert buffer.sample(1)["timeout"][0] == 1


def test_what_it_says_about_itself(buffer):
    assert repr(buffer) == "<quern.ReplayBuffer: 0 of 100 rows, 4 columns>"
    assert buffer.row_bytes == 48 + 2 + buffer.columns["policy"].stored_bytes + 3
    assert quern.Column("uint8", [3, 7], "bits") == buffer.columns["mask"]
    assert repr(buffer.columns["policy"]) == "quern.Column('float32', (40,), encoding='sparse', most=5)"
