"""What users of a replay buffer do daily: nested columns, bulk reads, clear, statistics, lists, casts, forks."""

import multiprocessing
import os

import numpy as np
import pytest

import quern
from replay_rows import name


def message(call):
    with pytest.raises(quern.Error) as error:
        call()
    assert "\n" not in str(error.value)
    return str(error.value)


def test_nested_columns_are_flat_names_and_come_back_both_ways():
    buffer = quern.ReplayBuffer({"obs": {"image": ("uint8", (2, 2)), "inner": {"speed": "float32"}}, "action": "int64"}, 10)
    assert list(buffer.columns) == ["obs.image", "obs.inner.speed", "action"]
    buffer.add(obs={"image": np.ones((2, 2), np.uint8), "inner": {"speed": 2.5}}, action=3)
    buffer.add_batch({"obs.image": np.zeros((1, 2, 2), np.uint8), "obs": {"inner": {"speed": np.ones(1, np.float32)}},
                      "action": np.zeros(1, np.int64)})
    batch = buffer.sample(5)
    assert batch["obs"]["image"] is batch["obs.image"] and batch["obs"]["inner"]["speed"].shape == (5,)
    assert set(batch.nested) == {"obs", "action"} and batch.nested["obs"]["inner"]["speed"] is batch["obs.inner.speed"]
    images = np.empty((5, 2, 2), np.uint8)
    assert buffer.sample(5, out={"obs": {"image": images}})["obs.image"] is images
    with pytest.raises(KeyError):
        batch["nothing"]
    assert "expected it once, found it twice" in message(
        lambda: quern.ReplayBuffer({"obs.image": "uint8", "obs": {"image": "uint8"}}, 10))
    assert "expected columns in the dict, found none" in message(lambda: quern.ReplayBuffer({"obs": {}}, 10))
    assert "column 'obs.inner.speed': expected float32 (), found nothing" in message(
        lambda: buffer.add(obs={"image": np.ones((2, 2), np.uint8)}, action=3))


def test_a_name_is_a_column_or_a_group():
    for columns in ({"a": "int8", "a.b": "int8"}, {"a": {"b": {"c": "int8"}}, "a.b": "int8"}):
        with pytest.raises(quern.Error, match="to be a column or a dict of columns, found both"):
            quern.ReplayBuffer(columns, 8)
    with pytest.raises(quern.Error, match="expected names of columns, found ''"):
        quern.ReplayBuffer({"a": {"": "int8"}}, 8)


def test_masks_are_not_dropped():
    buffer = quern.ReplayBuffer({"x": "float32"}, 8)
    masked = np.ma.masked_array(np.ones(2, np.float32), [True, False])
    for cast in (False, True):
        with pytest.raises(quern.Error, match="expected an array without a mask"):
            buffer.add_batch(x=masked, cast=cast)
    assert len(buffer) == 0


def test_a_dict_that_contains_itself_is_refused():
    """It used to end the process: the columns were flattened without end."""
    endless = {"x": 1}
    endless["obs"] = endless
    buffer = quern.ReplayBuffer({"x": "float32", "obs": {"x": "float32"}}, 10)
    for call in (lambda: quern.ReplayBuffer(endless, 10), lambda: buffer.add(endless), lambda: buffer.add_batch(endless)):
        assert "expected at most 255 dicts in each other, found more" in message(call)


@pytest.mark.parametrize("wrong", [3, 2.5, [], b"actors", True])
def test_the_name_of_shared_memory_is_a_text(wrong):
    for call in (lambda: quern.ReplayBuffer({"x": "float32"}, 10, shared=wrong),
                 lambda: quern.ReplayBuffer.attach(shared=wrong), lambda: quern.ReplayBuffer.info(shared=wrong),
                 lambda: quern.ReplayBuffer.remove(shared=wrong)):
        assert message(call) == f"[replay] shared: expected a name, found {wrong!r}"


@pytest.mark.parametrize("ids", [[7, 2, 7], (7, 2, 7), np.array([7, 2, 7], np.int32), np.array([7, 2, 7], np.int64),
                                 np.array([7, 2, 7], np.uint64), np.array([7, 0, 2, 0, 7], np.uint8)[::2], range(7, 8)])
def test_get_takes_any_integers(ids):
    buffer = quern.ReplayBuffer({"x": "int32"}, 6)
    buffer.add_batch(x=np.arange(8, dtype=np.int32))
    rows = buffer.get(ids)
    assert rows["x"].tolist() == list(ids) and rows.mask.all()
    assert rows.ages.tolist() == [7 - id for id in ids]


def test_get_masks_rows_that_are_gone_and_keeps_shapes():
    buffer = quern.ReplayBuffer({"x": ("int32", (2,))}, 6)
    buffer.add_batch(x=np.arange(16, dtype=np.int32).reshape(8, 2))
    rows = buffer.get(np.array([[1, 2, 3], [7, 8, 2**63]], np.uint64))
    assert rows["x"].shape == (2, 3, 2) and rows.mask.tolist() == [[False, True, True], [True, False, False]]
    assert rows["x"][0, 0].tolist() == [0, 0] and rows["x"][1, 0].tolist() == [14, 15]
    mine = np.full((2, 2), -1, np.int32)
    assert buffer.get([3, 4], out={"x": mine})["x"] is mine and mine.tolist() == [[6, 7], [8, 9]]
    again = buffer.get([4, 5], out=buffer.get([3, 4]))
    assert again["x"].tolist() == [[8, 9], [10, 11]]
    assert "found -3" in message(lambda: buffer.get([1, -3, -4]))
    assert "expected" in message(lambda: buffer.get([1.5]))
    assert len(buffer.get([])) == 0 and buffer.get(np.int64(2))["x"].tolist() == [4, 5]


def test_clear_is_for_everyone(name):
    buffer = quern.ReplayBuffer({"x": "int32"}, 10, shared=name, prioritised=True)
    other = quern.ReplayBuffer.attach(shared=name)
    buffer.add_batch(x=np.arange(8, dtype=np.int32))
    other.clear()
    assert len(buffer) == 0 and buffer.total_added == 8 and buffer.get(7) is None
    assert "expected at least one row in the buffer, found none" in message(lambda: buffer.sample(1))
    assert buffer.add(x=5) == 8 and set(other.sample(20)["x"]) == {5}


def test_stats():
    buffer = quern.ReplayBuffer({"x": "int32"}, 10, prioritised=True, alpha=1.0)
    buffer.add_batch(x=np.arange(4, dtype=np.int32), priorities=[1, 2, 3, 6])
    buffer.sample(32)
    stats = buffer.stats()
    assert (stats["size"], stats["capacity"], stats["fill"], stats["added"], stats["sampled"]) == (4, 10, 0.4, 4, 32)
    assert (stats["oldest_age"], stats["mean_age"], stats["missing"], stats["handles"]) == (3, 1.5, 0, 1)
    assert np.allclose([stats["min_priority"], stats["mean_priority"], stats["max_priority"]], [1, 3, 6])
    assert stats["sampled_per_second"] > 0 and stats["balance"] is None and stats["age_seconds"] < 60
    assert buffer.stats()["added_per_second"] == 0


def test_list_and_info(name, folder):
    buffer = quern.ReplayBuffer({"x": "int32"}, 10, shared=name, terminal=None)
    buffer.add(x=1)
    found = [info for info in quern.ReplayBuffer.list() if info["shared"] == name]
    assert len(found) == 1 and found[0] == quern.ReplayBuffer.info(shared=name)
    assert (found[0]["rows"], found[0]["capacity"], found[0]["handles"], found[0]["problem"]) == (1, 10, 1, None)
    assert found[0]["path"] == f"/dev/shm/quern-{name}" and found[0]["columns"] == buffer.columns
    quern.ReplayBuffer({"x": "int32"}, 10, file=folder / "f")
    assert quern.ReplayBuffer.info(file=folder / "f")["rows"] == 0
    data = bytearray((folder / "f").read_bytes())
    data[30] ^= 1
    (folder / "f").write_bytes(data)
    assert "damaged" in quern.ReplayBuffer.info(file=folder / "f")["problem"]
    assert name in message(lambda: quern.ReplayBuffer.info(shared=name + "x"))


def open_and_add(name, results):
    buffer = quern.ReplayBuffer.open_or_create({"x": ("float32", (1000,))}, 20_000, shared=name)
    results.put(buffer.add(x=np.zeros(1000, np.float32)))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_open_or_create_in_many_processes_at_once(name, method):
    context = multiprocessing.get_context(method)
    results = context.Queue()
    processes = [context.Process(target=open_and_add, args=(name, results)) for _ in range(6)]
    for process in processes:
        process.start()
    assert sorted(results.get(timeout=60) for _ in processes) == list(range(6))
    for process in processes:
        process.join()
    assert len(quern.ReplayBuffer.attach(shared=name)) == 6
    assert "capacity: expected 5, found 20000" in message(
        lambda: quern.ReplayBuffer.open_or_create({"x": ("float32", (1000,))}, 5, shared=name))
    assert "expected shared= or file=" in message(lambda: quern.ReplayBuffer.open_or_create({"x": "int8"}, 5))


def test_prioritised_buffers_draw_by_priority_and_prioritized_is_the_same_word():
    for word in ("prioritised", "prioritized"):
        buffer = quern.ReplayBuffer({"x": "int32"}, 10, **{word: True})
        assert buffer.prioritised and buffer.prioritized
        buffer.add_batch(x=np.arange(5, dtype=np.int32), priorities=[0, 0, 1, 0, 0])
        assert set(buffer.sample(50).ids) == set(buffer.sample(50, rule=word).ids) == {2}
        assert len(set(buffer.sample(200, rule="uniform").ids)) == 5
    assert "found False and True" in message(
        lambda: quern.ReplayBuffer({"x": "int32"}, 10, prioritised=False, prioritized=True))


def test_other_dtypes_are_refused_with_the_fix_or_cast():
    buffer = quern.ReplayBuffer({"state": ("float32", (3,)), "n": "int16"}, 10)
    wide = np.arange(6.0).reshape(2, 3)
    says = message(lambda: buffer.add_batch(state=wide, n=np.zeros(2, np.int16)))
    assert says == ("[replay] add_batch: column 'state': expected float32 (rows, 3), found float64 (2, 3); pass "
                    "np.ascontiguousarray(state, dtype=np.float32), or cast=True")
    state = np.ascontiguousarray(wide, dtype=np.float32)
    says = message(lambda: buffer.add_batch(state=np.asfortranarray(state), n=np.zeros(2, np.int16)))
    assert says.endswith("; pass np.ascontiguousarray(state, dtype=np.float32), or cast=True")
    buffer.add_batch(state=wide, n=[3, 4], cast=True)
    buffer.add_batch(state=np.asfortranarray(state), n=np.array([3, 0, 4], np.int64)[::2], cast=True)
    buffer.add(state=wide[0], n=5, cast=True)
    assert buffer.get([0, 1, 2, 3, 4])["n"].tolist() == [3, 4, 3, 4, 5] and (buffer.get(1)["state"] == wide[1]).all()
    assert "found 70000" in message(lambda: buffer.add_batch(state=wide, n=[1, 70000], cast=True))
    always = quern.ReplayBuffer({"state": ("float32", (3,)), "n": "int16"}, 10, cast=True)
    always.add(state=wide[0], n=2)
    assert always.add_batch(state=wide, n=[1, 2]) == 2
    assert "expected" in message(lambda: always.add_batch(state=wide, n=np.zeros(2, np.int16), cast=False))


@pytest.mark.parametrize("bad", [None, "text", 1j, np.array([1j]), np.array(["a"]), np.array([None]), [None], b"x"])
@pytest.mark.parametrize("cast", [False, True])
def test_what_is_not_a_number_is_refused_in_one_line(bad, cast):
    buffer = quern.ReplayBuffer({"x": ("float32", (1,))}, 10)
    assert "column 'x'" in message(lambda: buffer.add(x=bad, cast=cast))
    batch = np.array([bad]) if isinstance(bad, np.ndarray) else bad
    assert "column 'x'" in message(lambda: buffer.add_batch(x=batch, cast=cast))
    assert buffer.total_added == 0


def test_a_private_buffer_in_a_forked_child_says_so(folder):
    buffer = quern.ReplayBuffer({"x": "int32"}, 10)
    buffer.add(x=7)
    receive, send = os.pipe()
    if os.fork() == 0:
        try:
            lines = []
            for call in (lambda: buffer.add(x=1), lambda: buffer.sample(1), buffer.clear):
                try:
                    call()
                except quern.Error as error:
                    lines.append(str(error))
            lines.append(f"{buffer.get(0)['x']} {buffer.save(folder / 'child').rows}")  # reading is allowed
            os.write(send, "\n".join(lines).encode())
        finally:
            os._exit(0)
    os.close(send)
    lines = os.read(receive, 10_000).decode().split("\n")
    os.close(receive)
    os.wait()
    assert len(lines) == 4 and lines[3] == "7 1"
    for line, what in zip(lines, ("add", "sample", "clear")):
        assert line.startswith(f"[replay] {what}: expected the process that created this private buffer")
        assert line.endswith('create the buffer with shared="name"')
    assert len(buffer) == 1
