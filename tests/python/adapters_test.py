"""Adapters in quern.import_model(base=...) and Model.export()."""

import numpy as np
import pytest

import quern
from calls_test import refuses
from conftest import program


@pytest.fixture(scope="module")
def adapted(run, tmp_path_factory):
    """A run that adapts `run`."""
    folder = tmp_path_factory.mktemp("adapted")
    (folder / "text.txt").write_text("Once upon a time there was a little dog. " * 200)
    program("train", "--from", run, folder / "text.txt", "--run", folder / "run", "--steps", "3", "--set", "lora.rank=2",
            "--set", "optimizer.rate=0.02")
    return folder / "run"


def test_adapters_come_back_unchanged(run, adapted, folder):
    model = quern.load(adapted)
    out = model.export(folder / "peft", to="peft")
    assert {"adapter_model.safetensors", "adapter_config.json"} <= {path.name for path in out.iterdir()}
    again = quern.import_model(out, folder / "again", base=run)
    assert again.weights_hash == model.weights_hash
    tokens = model.encode("Once upon a time")
    assert (again.logits(tokens) == model.logits(tokens)).all()
    program("export", "--run", adapted, "--to", "peft", folder / "program")
    for path in out.iterdir():
        assert path.read_bytes() == (folder / "program" / path.name).read_bytes()


def test_a_merged_model_has_the_same_logits(run, adapted, folder):
    model = quern.load(adapted)
    merged = quern.import_model(model.export(folder / "hf", merge=True), folder / "merged")
    tokens = model.encode("Once upon a time")
    expected = model.logits(tokens)
    assert np.abs(expected - quern.load(run).logits(tokens)).max() > 1e-3
    assert np.abs(expected - merged.logits(tokens)).max() <= 1e-5 * np.abs(expected).max()


def test_a_choice_is_needed(run, adapted, folder):
    model = quern.load(adapted)
    refuses(lambda: model.export(folder / "out"),
            f"[export] {adapted}: expected a choice for a run with adapters, found to= hf alone; add merge= for the whole model, "
            "or choose to= peft or to= gguf-lora for the adapters")
    refuses(lambda: quern.load(run).export(folder / "out", merge=True),
            f"[export] {run}: expected a run with adapters to merge, found a whole model; leave out merge=")
    refuses(lambda: model.export(folder / "out", to="lora"),
            "[export] to: expected hf, gguf, peft or gguf-lora, found 'lora'")
    out = model.export(folder / "a.gguf", to="gguf-lora", dtype="f16")
    assert out.read_bytes()[:4] == b"GGUF"
    with pytest.raises(quern.Error, match="found the adapters of one"):
        quern.import_model(model.export(folder / "peft", to="peft"), folder / "run")
