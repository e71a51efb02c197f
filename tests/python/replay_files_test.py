"""Snapshots and .npz files of a quern.ReplayBuffer."""

import pickle

import numpy as np
import pytest

import quern
from replay_rows import COLUMNS, buffer, name, rows, same


def test_a_snapshot_round_trips(folder):
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


def test_npz_is_compatible_with_numpy(folder, buffer):
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


def test_saving_while_rows_are_added(folder, buffer):
    buffer.add_batch(**rows(100))
    saving = buffer.save_in_background(folder / "a.snapshot")
    for i in range(50):
        buffer.add_batch(**rows(10, 100 + 10 * i))
    result = saving.result()
    assert saving.done() and result.rows + result.skipped == 100
    failing = buffer.save_in_background(folder / "nowhere" / "a.snapshot")
    with pytest.raises(ValueError, match="nowhere"):
        failing.result()


def test_changing_the_current_directory_has_no_effect(folder, monkeypatch, buffer):
    """Relative paths are those of the moment when they were given."""
    (folder / "here").mkdir()
    (folder / "there").mkdir()
    monkeypatch.chdir(folder / "here")
    saving = buffer.save_in_background("rows.snapshot")
    in_file = quern.ReplayBuffer({"x": "float32"}, capacity=4, file="buffer")
    monkeypatch.chdir(folder / "there")
    saving.result()
    pickle.loads(pickle.dumps(in_file)).add(x=1)
    assert len(in_file) == 1
    assert sorted(path.name for path in (folder / "here").iterdir()) == ["buffer", "rows.snapshot"]
    assert list((folder / "there").iterdir()) == []


def test_a_sample_whose_arrays_were_shrunk_is_refused(buffer):
    """NumPy can do that in place; rows were then written behind the array."""
    buffer.add_batch(rows(10))
    for array in ("ids", "ages", "weights"):
        sample = buffer.sample(3000)
        getattr(sample, array).resize(0, refcheck=False)
        with pytest.raises(quern.Error, match="expected a sample of 3000 rows, found 0"):
            buffer.sample(3000, out=sample)
