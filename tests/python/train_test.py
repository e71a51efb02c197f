"""quern.train(), beside the program."""

import json
import math
import os
import signal
import threading

import numpy as np
import pytest

import quern
from conftest import SMALL, program, program_json, train_by_program

TEXT = "".join(f"A line of text with the number {i * i}.\n" for i in range(400))


def train(out, steps=12, **options):
    return quern.train(out=out, set={**SMALL, **options.pop("set", {})}, steps=steps, **options)


def lines(run):
    """metrics.jsonl without what time decides."""
    timed = ("tokens_per_s", "elapsed", "memory", "mfu", "busy")
    entries = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [{key: value for key, value in entry.items() if key not in timed} for entry in entries
            if not {"start", "end", "limit", "operations"} & set(entry)]


def refuses(call, says):
    with pytest.raises(quern.Error) as caught:
        call()
    assert str(caught.value) == says


def test_the_result_equals_that_of_the_program(folder):
    (folder / "text.txt").write_text(TEXT)
    train_by_program(folder / "program", folder / "text.txt", "--steps", "12", "--threads", "1")
    result = train(folder / "python", data=folder / "text.txt", threads=2)
    info = program_json("info", "--run", folder / "program")
    assert result.weights_hash == info["weights_hash"]
    assert result.validation_loss == info["val_loss"]
    assert (result.step, result.finished, result.path) == (12, True, folder / "python")
    assert lines(folder / "python") == lines(folder / "program")
    assert repr(result) == (f"<quern.TrainResult {folder / 'python'}: finished after step 12, loss {result.loss:.4f}, "
                            f"validation loss {result.validation_loss:.4f}>")
    assert quern.load(result.path).weights_hash == result.weights_hash
    assert "step" in program("report", "--run", result.path)


def test_changing_the_current_directory_has_no_effect(folder, monkeypatch):
    """A relative path was looked up again for each checkpoint: on_step that changed the folder led it to another run,
    whose checkpoints it replaced by its own."""
    here, there = folder / "here", folder / "there"
    here.mkdir()
    other = train(there / "run")
    monkeypatch.chdir(here)
    result = train("run", steps=8, on_step=lambda step: os.chdir(there))
    assert str(result.path) == "run"
    assert quern.load(here / "run").weights_hash == result.weights_hash
    assert quern.load(there / "run").weights_hash == other.weights_hash
    assert len(list((here / "run/checkpoints").iterdir())) == 1


def test_the_callback_gets_every_step(folder):
    steps = []
    result = train(folder / "run", on_step=steps.append, set={"train.validation_interval": 5})
    assert [step.step for step in steps] == list(range(1, 13))
    assert {step.step for step in steps if step.validation_loss is not None} == {5, 10, 12}
    assert steps[-1].validation_loss == result.validation_loss
    assert steps[-1].loss == result.loss < steps[0].loss
    assert steps[0].learning_rate < steps[1].learning_rate
    for step in steps:
        assert step.steps == 12 and step.tokens == 8 * 32
        assert step.gradient_norm > 0 and step.seconds > 0 and not step.skipped
        assert step.tokens_per_s == pytest.approx(step.tokens / step.seconds)
    assert repr(steps[6]).startswith(f"<quern.Step 7 of 12: loss {steps[6].loss:.4f}, ")
    logged = {entry["step"]: entry for entry in lines(folder / "run") if "loss" in entry}
    assert logged[10]["loss"] == steps[9].loss
    assert logged[10]["rate"] == steps[9].learning_rate


def test_false_stops_and_resume_gives_the_uninterrupted_result(folder):
    whole = train(folder / "whole")
    stopped = train(folder / "parts", on_step=lambda step: step.step < 5)
    assert (stopped.step, stopped.finished, stopped.validation_loss) == (5, False, None)
    assert quern.load(folder / "parts").step == 5
    steps = []
    resumed = quern.train(out=folder / "parts", resume=True, on_step=lambda step: steps.append(step.step))
    assert steps == list(range(6, 13))
    assert (resumed.finished, resumed.weights_hash) == (True, whole.weights_hash)


@pytest.mark.parametrize("value", [False, 0, 0.0, "", [], np.False_, np.float32(0), np.zeros(1)])
def test_anything_false_but_none_stops(folder, value):
    """Only the object False stopped a run: `return step.loss > 2.0` of a NumPy loss was numpy.False_, and ignored."""
    whole = train(folder / "whole", steps=6)
    stopped = train(folder / "run", steps=6, on_step=lambda step: value if step.step == 3 else None)
    assert (stopped.step, stopped.finished) == (3, False)
    assert train(folder / "run", steps=6, resume=True).weights_hash == whole.weights_hash


def test_none_and_anything_true_continue(folder):
    returned = iter([None, 1, "no", True, np.True_, np.float32(0.1), [0]])
    assert train(folder / "run", steps=7, on_step=lambda step: next(returned)).finished


def test_a_value_without_a_truth_saves_and_raises(folder):
    with pytest.raises(ValueError, match="ambiguous"):
        train(folder / "run", on_step=lambda step: np.zeros(2))
    assert quern.load(folder / "run").step == 1


def test_the_same_call_again_resumes(folder):
    def call(**options):
        return train(folder / "run", preset="tiny", data=None, resume="on_step" not in options, **options)

    call(on_step=lambda step: step.step < 3)
    assert call().finished
    again = call()  # nothing is left to do
    assert (again.step, again.finished) == (12, True)


def test_an_exception_in_the_callback_is_raised_after_saving(folder):
    class Own(Exception):
        pass

    def callback(step):
        if step.step == 4:
            raise Own("enough")

    with pytest.raises(Own, match="enough"):
        train(folder / "run", on_step=callback)
    assert quern.load(folder / "run").step == 4
    assert train(folder / "run", resume=True).finished


@pytest.mark.parametrize("callback", [None, lambda step: None])
def test_an_interrupt_saves_and_raises(folder, callback):
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        train(folder / "run", steps=1_000_000, on_step=callback)
    done = quern.load(folder / "run").step
    assert 0 < done < 1_000_000
    stopped = quern.train(out=folder / "run", resume=True, on_step=lambda step: False)
    assert stopped.step == done + 1


def test_other_threads_run_during_training(folder):
    counts, done = [0], threading.Event()

    def count():
        while not done.is_set():
            counts[0] += 1
            done.wait(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    train(folder / "run", steps=100)
    done.set()
    thread.join()
    assert counts[0] > 5


def test_a_model_can_be_used_while_it_is_trained(folder):
    texts = []

    def callback(step):
        if step.step in (4, 8):
            texts.append(quern.load(folder / "run").generate("Once", tokens=10))

    train(folder / "run", on_step=callback, set={"checkpoint.interval": 4})
    assert len(texts) == 2 and all(len(text) == 10 for text in texts)


def test_settings_in_every_notation(folder):
    config = quern.preset("small")
    assert config["model"]["width"] == 384
    (folder / "my.toml").write_text("[model]\nlayers = 2\n[train]\nseed = 3\n")
    (folder / "a.txt").write_text(TEXT)
    (folder / "b.txt").write_text(TEXT)
    run = quern.train([str(folder / "a.txt"), folder / "b.txt"], out=folder / "run", preset="tiny",
                      config=folder / "my.toml", steps=np.int64(2), threads=2,
                      set={**SMALL, "model": {"layers": np.int32(1)}, "optimizer.rate": np.float32(0.5),
                           "checkpoint.keep_best": False, "train.precision": "bf16"})
    config = quern.load(run.path).config
    assert config["data"]["paths"] == [str(folder / "a.txt"), str(folder / "b.txt")]
    assert (config["model"]["layers"], config["train"]["seed"], config["train"]["threads"]) == (1, 3, 2)
    assert (config["optimizer"]["rate"], config["checkpoint"]["keep_best"]) == (0.5, False)
    again = quern.train(out=folder / "again", config=config)
    assert again.weights_hash == run.weights_hash


def test_a_tokenizer_of_ones_own(folder):
    (folder / "text.txt").write_text(TEXT)
    program("tokenize", folder / "text.txt", "--vocabulary", 300, "--out", folder / "tokens")
    train_by_program(folder / "program", folder / "text.txt", "--steps", 3, "--tokenizer", folder / "tokens")
    hashes = {train(folder / f"run{i}", steps=3, data=folder / "text.txt", tokenizer=tokenizer).weights_hash
              for i, tokenizer in enumerate((folder / "tokens", str(folder / "tokens/tokenizer.json")))}
    hashes.add(program_json("info", folder / "program")["weights_hash"])
    assert len(hashes) == 1
    learned = train(folder / "learned", steps=3, data=folder / "text.txt", tokenizer="bpe", set={"data.vocabulary": 300})
    assert learned.weights_hash in hashes
    model = quern.load(folder / "run0")
    assert model.evaluate(folder / "tokens")["loss"] == model.evaluate(folder / "text.txt")["loss"]  # token shards
    os.remove(folder / "tokens/tokenizer.json")
    refuses(lambda: train(folder / "x", data=folder / "text.txt", tokenizer=folder / "tokens"),
            f"[data] data.tokenizer: expected byte, char, bpe or a tokenizer.json, found no file {folder}/tokens/tokenizer.json")
    assert train(folder / "run1", steps=3, resume=True).weights_hash in hashes  # the run has its own


def test_words_of_other_programs_lead_to_settings():
    for word, setting in (("lr", "optimizer.rate"), ("n_layer", "model.layers"), ("stpes", "train.steps"), ("xyzzy", "")):
        assert quern._quern._advise_setting(word) == setting


def test_bad_settings_are_named_and_nothing_is_written(folder):
    out = folder / "run"
    for options, says in [
            ({"set": {"train.stepz": 3}},
             "[config] set: expected the name of a setting, found 'train.stepz'; did you mean train.steps?"),
            ({"config": {"modle": {"layers": 3}}},
             "[config] config: expected the name of a setting, found 'modle.layers'; did you mean model.layers?"),
            ({"set": {"train.batch": "x"}},
             "[config] set: train.batch: expected a whole number from 1 to 1000000, found 'x'"),
            ({"set": {"train.batch": None}},
             "[config] set: 'train.batch': expected a number, a string, True, False or a list, found NoneType"),
            ({"set": {3: 4}}, "[config] set: expected names of settings, found 3"),
            ({"set": {"lr": 0.5}},
             "[config] set: expected the name of a setting, found 'lr'; did you mean optimizer.rate?"),
            ({"set": {"train.precision": "float32"}},
             "[config] set: train.precision: expected fp32, bf16 or fp16, found 'float32'; did you mean fp32?"),
            ({"steps": 1e3},
             "[config] steps: train.steps: expected a whole number from 0 to 1000000000, found 1000.0; write 1000"),
            ({"steps": -1}, "[config] steps: train.steps: expected a whole number from 0 to 1000000000, found -1"),
            ({"threads": 65}, "threads: expected 1 to 64, found 65"),
            ({"preset": "huge"}, "[config] preset: expected tiny, small, gpt2, minute, ten-minutes, llama-tiny or llama-small, found 'huge'"),
            ({"set": {"model.width": 33}},
             "[config] model.width: expected a multiple of model.heads, which is 4, found 33"),
            ({"data": folder / "none.txt"}, f"[data] {folder / 'none.txt'}: expected a file or folder, found nothing"),
            ({"resume": True}, f"[run] {out}: expected a run with a config.toml, found none")]:
        refuses(lambda: quern.train(out=out, **options), says)
        assert not out.exists()
    with pytest.raises(ValueError, match="none.toml"):
        quern.train(out=out, config=folder / "none.toml")
    refuses(quern.train, "train: expected out=..., found no such argument")
    assert not out.exists()


def test_a_run_is_not_overwritten(folder):
    train(folder / "run", steps=2)
    with pytest.raises(ValueError, match="holds a run already"):
        train(folder / "run", steps=2)


def test_resume_with_changes_is_recorded_and_replayed(folder):
    first = train(folder / "run", steps=4)
    finished = quern.train(out=folder / "run", resume=True)
    assert (finished.step, finished.loss, finished.weights_hash) == (4, first.loss, first.weights_hash)
    longer = quern.train(out=folder / "run", resume=True, steps=9, set={"optimizer.rate": 1e-4, "train.batch": 4})
    assert (longer.step, longer.finished) == (9, True)
    text = (folder / "run/config.toml").read_text()
    assert "[[history]]\nfrom_step = 5\ntrain.steps = 9\ntrain.batch = 4\noptimizer.rate = 0.0001\n" in text
    again = quern.train(out=folder / "again", config=folder / "run/config.toml")
    assert again.weights_hash == longer.weights_hash
    refuses(lambda: quern.train(out=folder / "run", resume=True, steps=5),
            "[config] train.steps: expected at least 9, the steps that the run has done, found 5")
    refuses(lambda: quern.train(out=folder / "run", resume=True, set={"model.layers": 2}),
            "[config] model.layers: expected 1, as the run was started with, found 2: the weights belong to that "
            "model; start a new run")
    refuses(lambda: quern.train(out=folder / "run", resume=True, preset="small"),
            "[config] model.layers: expected 1, as the run was started with, found 6: the weights belong to that "
            "model; start a new run")


def test_a_run_starts_from_another(folder):
    (folder / "a.txt").write_text(TEXT)
    (folder / "b.txt").write_text(TEXT[::-1])
    source = train(folder / "source", data=folder / "a.txt", steps=4)
    tuned = quern.train(folder / "b.txt", out=folder / "tuned", init_from=folder / "source", steps=3,
                        set={"optimizer.rate": 1e-4})
    assert tuned.step == 3 and tuned.weights_hash != source.weights_hash
    config = quern.load(folder / "tuned").config
    assert config["init"] == {"from": str(folder / "source/checkpoints/step-00000004"),
                              "weights_hash": source.weights_hash}
    untrained = quern.train(out=folder / "copy", init_from=f"{folder / 'source'}@best", steps=0)
    assert untrained.weights_hash == source.weights_hash and math.isnan(untrained.loss)
    refuses(lambda: quern.train(out=folder / "no", init_from=folder / "source", set={"model.width": 64}),
            f"[config] model.width: expected 32, as in {folder / 'source'}, whose weights the run starts from, found 64; "
            "omit it, or train a new model")
    refuses(lambda: quern.train(out=folder / "no", init_from=folder / "source", preset="tiny"),
            "[train] init_from: takes all settings that are not given from its run; omit preset")
    refuses(lambda: quern.train(out=folder / "tuned", init_from=folder / "source", resume=True),
            "[train] init_from starts a new run, resume continues one; give one of the two")
    assert not (folder / "no").exists()


def test_a_low_rate_needs_no_min_rate(folder):
    train(folder / "run", steps=1, set={"optimizer.rate": 1e-5})
    assert quern.load(folder / "run").config["optimizer"]["min_rate"] == pytest.approx(1e-6)


def test_an_incident_is_an_error(folder):
    # One sequence of step 202 is unlike all others.
    text = bytearray(ord("a") + i % 26 for i in range(30_000))
    bad = (201 * 4 + 3) * 16
    text[bad + 1:bad + 16] = (ord("a") + i * 7 % 25 for i in range(15))
    (folder / "text.txt").write_bytes(text)
    settings = {"model.context": 16, "train.batch": 4, "data.sampling": "stream", "data.validation_fraction": 0,
                "optimizer.rate": 0.01, "diagnostics.spike_z": 4}
    with pytest.raises(ValueError, match="step 202: the loss is .* deviations"):
        train(folder / "run", steps=205, data=folder / "text.txt", set=settings)
    assert quern.load(folder / "run").step == 201
    skipped = []
    result = train(folder / "run", steps=205, data=folder / "text.txt", resume=True,
                   set={**settings, "diagnostics.policy": "skip"},
                   on_step=lambda step: skipped.append(step.step) if step.skipped else None)
    assert result.finished and skipped == [202]


def test_a_warning_names_the_line_of_the_caller(folder):
    for name in "ab":
        (folder / f"{name}.txt").write_text(TEXT)
    with pytest.warns(UserWarning, match="documents are not separated") as caught:
        train(folder / "run", data=folder, steps=1)
    assert caught[0].filename == __file__
