"""quern.ReplayBuffer with threads and processes: no torn rows, no waiting for killed processes, and Ctrl-C works."""

import multiprocessing
import os
import signal
import threading
import time

import numpy as np
import pytest

import quern
from replay_rows import COLUMNS, buffer, name, rows, same


def test_threads_add_and_sample_concurrently(buffer):
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
def test_sampling_waits_while_all_rows_are_in_flight(capacity, batch):
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


def draw_in_a_process(buffer, found):
    found.put(buffer.sample(20).ids.tolist())


def test_a_forked_process_draws_rows_of_its_own_unless_it_was_given_a_seed(name):
    context = multiprocessing.get_context("fork")
    for seed in (None, 7):
        quern.ReplayBuffer.remove(shared=name)
        buffer = quern.ReplayBuffer(COLUMNS, capacity=1000, seed=seed, shared=name)
        buffer.add_batch(**rows(1000))
        found = context.Queue()
        process = context.Process(target=draw_in_a_process, args=(buffer, found))
        process.start()
        ids = found.get()
        process.join()
        assert (ids == buffer.sample(20).ids.tolist()) == (seed is not None)


def add_for_ever(buffer):
    while True:
        buffer.add_batch(**rows(16))


def test_a_killed_process_does_not_block_others(name):
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


def test_a_rate_limit_balances_actors_and_learners():
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


def test_refused_calls_do_not_count_for_the_rate_limit():
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


def test_invalid_timeouts_are_refused():
    buffer = quern.ReplayBuffer({"x": "int32"}, capacity=10, min_size=5)
    with pytest.raises(ValueError, match="timeout: expected seconds or None, found nan"):
        buffer.sample(1, timeout=float("nan"))
    with pytest.raises(quern.Error, match="timeout: expected seconds or None, found 'soon'"):
        buffer.sample(1, timeout="soon")
    with pytest.raises(TimeoutError):
        buffer.sample(1, timeout=-1)
