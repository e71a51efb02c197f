"""Texts, names and dicts of Python arrive as they are, or are refused in one line. Half of a surrogate pair, which no
file has, and a list where a number belongs were a RuntimeError about C++ types, or a TypeError about the signature."""

import collections.abc
import types

import pytest

import quern
from conftest import SMALL
from numbers_test import refuses

HALF, ZERO = "a\ud800", "a\0b"


class Mapping(collections.abc.Mapping):
    def __init__(self, items):
        self.items_ = items

    def __getitem__(self, key):
        return self.items_[key]

    def __iter__(self):
        return iter(self.items_)

    def __len__(self):
        return len(self.items_)


def train(folder, **options):
    return quern.train(out=folder / "run", **{"steps": 2, "set": SMALL, **options})


def test_invalid_text_is_refused(folder, run):
    model = quern.load(run)
    buffer = quern.ReplayBuffer({"x": "int32"}, capacity=4)
    buffer.add(x=1)
    for call in (lambda: train(folder, set={HALF: 1}), lambda: train(folder, set={"data.tokenizer": HALF}),
                 lambda: train(folder, set={"data.paths": [HALF]}), lambda: train(folder, data=HALF),
                 lambda: train(folder, data=[HALF]), lambda: train(folder, preset=HALF), lambda: quern.preset(HALF),
                 lambda: model.encode(HALF), lambda: model.generate(HALF), lambda: model.stream(HALF),
                 lambda: quern.ReplayBuffer({HALF: "int32"}, capacity=4),
                 lambda: quern.ReplayBuffer({"x": HALF}, capacity=4), lambda: quern.Column("int32", encoding=HALF),
                 lambda: quern.ReplayBuffer({"x": "int32"}, capacity=4, shared=HALF), lambda: buffer.add({"x": 1, HALF: 1}),
                 lambda: buffer.sample(1, rule=HALF)):
        refuses(call, "expected text that can be written as UTF-8, found 'a\\ud800'")
    assert not (folder / "run").exists()


def test_invalid_paths_are_refused(folder, run):
    model = quern.load(run)
    buffer = quern.ReplayBuffer({"x": "int32"}, capacity=4)
    for name, says in ((HALF, "which no file can have"), (ZERO, "without a zero byte")):
        for call in (lambda: quern.train(out=folder / name, steps=2, set=SMALL), lambda: train(folder, config=name),
                     lambda: quern.load(name), lambda: model.evaluate(name), lambda: buffer.save(folder / name),
                     lambda: buffer.save_in_background(name), lambda: buffer.load(name), lambda: buffer.export_npz(name),
                     lambda: buffer.import_npz(name), lambda: quern.snapshot_info(name),
                     lambda: quern.ReplayBuffer.from_snapshot(name),
                     lambda: quern.ReplayBuffer({"x": "int32"}, capacity=4, file=folder / name),
                     lambda: quern.ReplayBuffer.attach(file=name), lambda: quern.ReplayBuffer.remove(file=name)):
            refuses(call, "expected the name of a file", says)
    assert list(folder.iterdir()) == []


def test_paths_that_are_not_utf8(folder):
    """Python shows them with halves of surrogate pairs, of another kind; they are names all the same."""
    name = b"a\xff".decode("utf-8", "surrogateescape")
    buffer = quern.ReplayBuffer({"x": "int32"}, capacity=4)
    buffer.save(folder / name)
    assert [path.name for path in folder.iterdir()] == [name]
    buffer.load(str(folder / name).encode("utf-8", "surrogateescape"))


def test_lists_are_refused_for_single_values(folder):
    refuses(lambda: train(folder, set={**SMALL, "train.batch": [1]}),
            "[config] set: train.batch: expected a list of strings, found int in it")
    refuses(lambda: train(folder, set={**SMALL, "train.batch": ["1"]}), "train.batch: expected a whole number", "a list")
    refuses(lambda: train(folder, data=[3]), "[config] data: data.paths: expected a list of strings, found int in it")
    refuses(lambda: train(folder, set=[("train.steps", 1)]), "[config] set: expected a dict, found list")
    refuses(lambda: train(folder, config=3), "[config] config: expected the name of a file, found int")
    refuses(lambda: quern.ReplayBuffer(["x"], capacity=3), "[replay] columns: expected a dict, found list")


@pytest.mark.parametrize("kind", [dict, Mapping, types.MappingProxyType])
def test_any_mapping_is_accepted(folder, kind):
    first = train(folder, set=kind(SMALL))
    other = quern.train(out=folder / "other", steps=2, set=kind({**SMALL, "train": kind({"batch": 8})}),
                        config=kind({"model": kind({"layers": 1})}))
    assert first.weights_hash == other.weights_hash
    buffer = quern.ReplayBuffer(kind({"x": "int32"}), capacity=3)
    buffer.add(kind({"x": 1}))
    assert len(buffer) == 1


def test_true_is_not_a_number_of_threads(folder, run):
    model = quern.load(run)
    for call in (lambda: train(folder, threads=True), lambda: model.logits([1], threads=True),
                 lambda: model.generate("a", tokens=1, threads=False)):
        refuses(call, "threads: expected a whole number from 1 to 64, found ")
