"""quern.load(checkpoint=...), Model.state_dict() and Model.export()."""

import json
import os
import struct

import numpy as np
import pytest

import quern
from conftest import SMALL, program, train_by_program
from calls_test import refuses


@pytest.fixture(scope="module")
def best(tmp_path_factory):
    """A run whose best checkpoint is not its newest: the rate at its end is far too high."""
    path = tmp_path_factory.mktemp("best") / "run"
    quern.train(out=path, steps=40, set={**SMALL, "checkpoint.interval": 10, "checkpoint.keep": 2,
                                         "optimizer.schedule": "constant", "optimizer.rate": 0.05, "optimizer.warmup": 30})
    return path


def test_load_chooses_a_checkpoint(best, monkeypatch):
    steps = sorted(int(path.name[5:]) for path in (best / "checkpoints").iterdir())
    losses = {step: json.loads((best / f"checkpoints/step-{step:08}/state.json").read_text())["validation_loss"]
              for step in steps}
    lowest = min(losses, key=losses.get)
    newest = quern.load(best)
    assert newest.step == 40 == quern.load(best, checkpoint="newest").step
    assert quern.load(best, checkpoint="best").step == lowest < 40
    folder = best / f"checkpoints/step-{lowest:08}"
    model = quern.load(best, checkpoint=np.int64(lowest))
    assert model.step == lowest and model.weights_hash != newest.weights_hash
    monkeypatch.chdir(best.parent)
    for other in (quern.load(best, checkpoint=folder), quern.load(best, checkpoint=folder.name), quern.load(folder),
                  quern.load(str(folder) + "/"), quern.load(os.path.relpath(folder)),
                  quern.load(folder, checkpoint=lowest)):
        assert (other.step, other.weights_hash) == (lowest, model.weights_hash)
        assert os.path.samefile(other.path, best) and other.generate("Once", tokens=3)


def test_a_checkpoint_that_is_not_there(best, folder):
    steps = ", ".join(str(int(path.name[5:])) for path in sorted((best / "checkpoints").iterdir()))
    for wanted in (7, "bset", folder / "none"):
        refuses(lambda: quern.load(best, checkpoint=wanted),
                f"[run] {best}: checkpoint: expected newest, best, the path of one, or one of the saved steps {steps}, "
                f"found '{wanted}'")
    for wanted in (2.5, True, "", [40], b"best"):
        refuses(lambda: quern.load(best, checkpoint=wanted),
                f"[run] checkpoint: expected \"newest\", \"best\", the number of a step, or a path, found {wanted!r}")
    refuses(lambda: quern.load(best, checkpoint=-1), "[run] checkpoint: expected a whole number from 0, found -1")
    (folder / "alone").mkdir()
    (folder / "alone/state.json").write_text("{}")
    with pytest.raises(quern.Error, match="expected a checkpoint in the directory of its run"):
        quern.load(folder / "alone")


def test_a_damaged_checkpoint_that_was_asked_for_is_an_error(run):
    path = run / "checkpoints" / "step-00000060" / "model.safetensors"
    whole = path.read_bytes()
    try:
        path.write_bytes(whole[:-1])
        with pytest.raises(quern.Error, match="model.safetensors: expected .* bytes, found"):
            quern.load(run, checkpoint=60)
    finally:
        path.write_bytes(whole)


def read_safetensors(path):
    """The tensors of a file, by the format's definition."""
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + size])
    metadata = header.pop("__metadata__")
    assert metadata["format"] == "pt"  # transformers requires it
    assert set(metadata) <= {"format", "quern.writer"}  # what marks an export
    return {name: np.frombuffer(data[8 + size:][slice(*entry["data_offsets"])], "<f4").reshape(entry["shape"])
            for name, entry in header.items()}


def test_state_dict_has_the_weights_as_copies(run):
    model = quern.load(run)
    weights = model.state_dict()
    stored = read_safetensors(run / "checkpoints/step-00000060/model.safetensors")
    assert weights.keys() == stored.keys()
    for name, array in weights.items():
        assert array.dtype == np.float32 and array.flags.c_contiguous and array.flags.owndata
        assert np.array_equal(array, stored[name]), name
    assert sum(array.size for array in weights.values()) == model.parameters
    before = model.weights_hash
    weights["wte.weight"][:] = 0
    assert model.weights_hash == before and model.state_dict()["wte.weight"].any()
    del model
    assert weights["wpe.weight"].any()


TOKENIZERS = {"byte": 256, "char": None, "bpe": 300}


@pytest.fixture(scope="module", params=TOKENIZERS)
def model(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("export") / "run"
    quern.train(out=path, steps=3, set={**SMALL, "data.tokenizer": request.param, "data.vocabulary": 300})
    return quern.load(path)


def test_the_files_of_an_export(model, folder):
    out = model.export(folder / "new/hf")
    kind = model.config["data"]["tokenizer"]
    names = {"model.safetensors", "config.json", "tokenizer.json", "tokenizer_config.json"}
    assert out == folder / "new/hf"
    assert {path.name for path in out.iterdir()} == names | ({"generation_config.json"} if kind == "bpe" else set())
    assert [path.name for path in out.parent.iterdir()] == ["hf"]
    stored = read_safetensors(out / "model.safetensors")
    assert all(np.array_equal(stored[name], array) for name, array in model.state_dict().items())
    assert (out / "tokenizer.json").read_bytes() == (model.path / "tokenizer.json").read_bytes()
    config = json.loads((out / "tokenizer_config.json").read_text())
    assert config["tokenizer_class"] == "PreTrainedTokenizerFast" and config["model_max_length"] == model.context
    end = "<|endoftext|>" if kind == "bpe" else None
    assert {config.get(role) for role in ("bos_token", "eos_token", "pad_token")} == {end}
    hf = json.loads((out / "config.json").read_text())
    assert (hf["model_type"], hf["vocab_size"]) == ("gpt2", model.vocabulary)
    if kind == "bpe":
        number = json.loads((out / "tokenizer.json").read_text())["model"]["vocab"][end]
        assert json.loads((out / "generation_config.json").read_text()) == {
            "bos_token_id": number, "eos_token_id": number, "pad_token_id": number}
        assert (hf["bos_token_id"], hf["eos_token_id"]) == (number, number)
    else:
        assert hf["eos_token_id"] is None


def test_a_checkpoint_has_the_same_tokenizer_files(model, folder):
    """AutoTokenizer opened the folder of a checkpoint without an error, with an empty vocabulary."""
    out = model.export(folder / "hf")
    (checkpoint,) = (model.path / "checkpoints").iterdir()
    state = json.loads((checkpoint / "state.json").read_text())
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        assert (checkpoint / name).read_bytes() == (out / name).read_bytes()
        assert state["files"][name]["bytes"] == (out / name).stat().st_size
    ours, exported = (read_safetensors(path / "model.safetensors") for path in (checkpoint, out))
    assert ours.keys() == exported.keys()
    assert all((ours[name] == exported[name]).all() for name in ours)


def test_the_program_exports_the_same_bytes(model, folder):
    ours = model.export(folder / "ours")
    program("export", model.path, "--out", folder / "theirs")
    for path in ours.iterdir():
        assert path.read_bytes() == (folder / "theirs" / path.name).read_bytes()
    assert len(list((folder / "theirs").iterdir())) == len(list(ours.iterdir()))


def test_an_export_replaces_nothing(run, folder):
    model = quern.load(run)
    (folder / "note.txt").write_text("mine")
    refuses(lambda: model.export(folder),
            f"[export] {folder}: expected a new or empty folder, found 'note.txt' in it; choose another folder")
    refuses(lambda: model.export(folder / "note.txt"),
            f"[export] {folder / 'note.txt'}: expected a new or empty folder, found a file; choose another name")
    (folder / "empty").mkdir()
    model.export(str(folder / "empty") + "/")
    with pytest.raises(quern.Error, match="expected a new or empty folder, found"):
        model.export(folder / "empty")
    assert (folder / "note.txt").read_text() == "mine"
    assert sorted(path.name for path in folder.iterdir()) == ["empty", "note.txt"]


def test_a_run_without_a_tokenizer(folder):
    train_by_program(folder / "run", "--steps", "1")
    (folder / "run/tokenizer.json").unlink()
    config = folder / "run/config.toml"
    text = config.read_text()
    config.write_text(text.replace("\nvocabulary = 0\n", "\nvocabulary = 53\n", 1))
    model = quern.load(folder / "run")
    with pytest.warns(UserWarning, match="the run has no tokenizer.json, so the folder has no tokenizer"):
        out = model.export(folder / "hf")
    assert {path.name for path in out.iterdir()} == {"model.safetensors", "config.json", "tokenizer_config.json"}
    assert "eos_token" not in json.loads((out / "tokenizer_config.json").read_text())
