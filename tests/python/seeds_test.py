"""Every seed from 0 to 2**64 - 1 is that seed, wherever it is given, and gives what it gave before. Seeds from 2**63 on
became 2**63 - 1: half of all that are drawn from 64 bits."""

import json

import numpy as np
import pytest

import quern
from conftest import SMALL, QUERN, program, program_json
import subprocess

SEEDS = [0, 1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1]
OUTSIDE = [-1, 2**64, 2**70, -2**63, 1.0, "1"]


def drawn(buffer):
    return buffer.sample(50).ids.tolist()


def filled(buffer):
    buffer.add_batch(x=np.arange(1000, dtype=np.int32))
    return buffer


def test_seed_of_a_buffer(folder):
    made = {}
    for seed in SEEDS:
        buffer = filled(quern.ReplayBuffer({"x": "int32"}, capacity=1000, seed=seed))
        assert buffer.seed == seed
        made[seed] = drawn(buffer)
    assert len(set(map(tuple, made.values()))) == len(SEEDS)
    buffer = filled(quern.ReplayBuffer({"x": "int32"}, capacity=1000, file=folder / "a.replay"))
    buffer.save(folder / "a.snapshot")
    for seed in (*SEEDS, np.uint64(2**64 - 1)):
        for other in (quern.ReplayBuffer.attach(file=folder / "a.replay", seed=seed),
                      quern.ReplayBuffer.from_snapshot(folder / "a.snapshot", seed=seed)):
            assert other.seed == seed and drawn(other) == made[seed]


def test_drawn_seeds_reproduce():
    for _ in range(16):
        first = filled(quern.ReplayBuffer({"x": "int32"}, capacity=1000))
        again = filled(quern.ReplayBuffer({"x": "int32"}, capacity=1000, seed=first.seed))
        assert again.seed == first.seed and drawn(again) == drawn(first)


def test_seed_of_generated_text(run):
    model = quern.load(run)
    texts = {seed: model.generate("Once", tokens=40, seed=seed) for seed in SEEDS}
    assert len(set(texts.values())) == len(SEEDS)
    for seed, text in texts.items():
        assert "".join(model.stream("Once", tokens=40, seed=seed)) == text
        assert program("generate", "--run", run, "--prompt", "Once", "--tokens", 40, "--seed", seed) == f"Once{text}\n"


def test_seed_of_a_run(folder):
    hashes = {}
    for seed in SEEDS:
        out = folder / str(seed)
        result = quern.train(out=out, steps=2, set={**SMALL, "train.seed": seed})
        hashes[seed] = result.weights_hash
        assert quern.load(out).config["train"]["seed"] == seed
        assert json.loads((out / "checkpoints" / "step-00000002" / "state.json").read_text())["random"]["seed"] == seed
        assert program_json("info", "--run", out)["seed"] == seed
    assert len(set(hashes.values())) == len(SEEDS)
    for seed in (2**63 - 1, 2**63, 2**64 - 1):
        flags = [flag for name, value in SMALL.items() for flag in ("--set", f"{name}={value}")]
        program("train", "--run", folder / f"flag{seed}", *flags, "--steps", 2, "--seed", seed)
        program("train", "--run", folder / f"file{seed}", "--config", folder / str(seed) / "config.toml")
        copy = quern.train(out=folder / f"copy{seed}", config=quern.load(folder / str(seed)).config)
        assert copy.weights_hash == hashes[seed]
        for name in ("flag", "file"):
            assert program_json("info", "--run", folder / f"{name}{seed}")["weights_hash"] == hashes[seed]


def test_a_run_resumes_with_its_seed(folder):
    settings = {**SMALL, "train.seed": 2**64 - 1}
    whole = quern.train(out=folder / "whole", steps=6, set=settings)
    quern.train(out=folder / "parts", steps=6, set=settings, on_step=lambda step: step.step < 3)
    resumed = quern.train(out=folder / "parts", steps=6, set=settings, resume=True)
    assert resumed.weights_hash == whole.weights_hash
    with pytest.raises(quern.Error, match=r"train.seed: expected \W?18446744073709551615\W?, as the run was started with, found 9223372036854775807"):
        quern.train(out=folder / "parts", steps=6, set={**settings, "train.seed": 2**63 - 1}, resume=True)


@pytest.mark.parametrize("seed", OUTSIDE)
def test_invalid_seeds_are_refused(run, folder, seed):
    for call in (lambda: quern.ReplayBuffer({"x": "int32"}, capacity=5, seed=seed),
                 lambda: quern.load(run).generate("Once", seed=seed),
                 lambda: quern.load(run).stream("Once", seed=seed),
                 lambda: quern.train(out=folder / "run", set={"train.seed": seed})):
        with pytest.raises(quern.Error, match=r"^\[\w+\] [^\n]*seed: expected [^\n]*0( to 18446744073709551615)?, found [^\n]*$"):
            call()
    assert not (folder / "run").exists()


@pytest.mark.parametrize("seed", ["-1", "18446744073709551616", "1.5", "1.5e0", "x"])
def test_invalid_seeds_are_refused_by_the_program(run, folder, seed):
    for arguments in (["generate", "--run", run, "--seed", seed], ["train", "--run", folder / "run", "--seed", seed]):
        done = subprocess.run([QUERN, *map(str, arguments)], capture_output=True, text=True, timeout=60)
        assert done.returncode == 2 and "--seed" in done.stderr and done.stderr.count("\n") == 1, done.stderr
    assert not (folder / "run").exists()
