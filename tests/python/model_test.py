"""quern.load() and quern.Model, beside the program and NumPy."""

import json
import shutil
import signal
import threading
import time

import numpy as np
import pytest

import quern
from conftest import program, program_json, train_by_program


@pytest.fixture(scope="module")
def model(run):
    return quern.load(run)


def loss_of(logits, tokens):
    """Mean cross entropy of each token given the logits before it, in double precision."""
    logits = logits[..., :-1, :].astype(np.float64)
    most = logits.max(-1)
    sums = most + np.log(np.exp(logits - most[..., None]).sum(-1))
    return (sums - np.take_along_axis(logits, tokens[..., 1:, None], -1)[..., 0]).mean()


def test_a_model_describes_its_run(model, run):
    info = program_json("info", "--run", run)
    assert model.step == info["step"] == 60
    assert model.parameters == info["parameters"]
    assert model.weights_hash == info["weights_hash"]
    assert model.path == run
    assert model.config["model"]["width"] == 32
    assert model.config["data"]["paths"] == []
    assert model.config["optimizer"]["schedule"] == "cosine"
    assert (model.context, model.config["model"]["context"]) == (32, 32)
    assert repr(model) == (f"<quern.Model {run}: step 60, {model.parameters} parameters, context 32, "
                           f"vocabulary {model.vocabulary}>")


def test_text_to_tokens_and_back(model):
    ids = model.encode("Once upon a time")
    assert ids.dtype == np.int32 and ids.shape == (16,)
    assert model.decode(ids) == "Once upon a time"
    assert model.decode(ids.tolist()) == "Once upon a time"
    assert model.decode([]) == ""
    assert model.encode("").shape == (0,)
    assert (model.encode(b"Once upon a time") == ids).all()


def test_invalid_utf8_is_replaced(folder):
    train_by_program(folder / "bytes", "--steps", "1", "--tokenizer", "byte")
    model = quern.load(folder / "bytes")
    ids = model.encode("é")
    assert len(ids) == 2
    assert model.decode(ids) == "é"
    assert model.decode(ids[:1]) == "\ufffd"


def test_logits_of_one_sequence_and_of_several(model):
    ids = model.encode("Once upon a time")
    one = model.logits(ids)
    assert one.dtype == np.float32 and one.shape == (16, model.vocabulary)
    several = model.logits(np.stack([ids, ids[::-1], ids]))
    assert several.shape == (3, 16, model.vocabulary)
    assert (several[0] == one).all() and (several[2] == one).all() and (several[1] != one).any()
    assert model.logits(np.zeros((0, 5), np.int32)).shape == (0, 5, model.vocabulary)


def test_logits_are_causal(model):
    ids = model.encode("Once upon a time")
    assert (model.logits(ids[:7]) == model.logits(ids)[:7]).all()


def test_logits_do_not_depend_on_threads_type_or_layout(model):
    tokens = np.stack([model.encode("Once upon a time"), model.encode("There was a cat ")])
    expected = model.logits(tokens, threads=1)
    assert (model.logits(tokens, threads=3) == expected).all()
    for same in (tokens.tolist(), tokens.astype(np.int64), tokens.astype(np.uint8), np.asfortranarray(tokens),
                 np.repeat(tokens, 2, axis=1)[:, ::2]):
        assert (model.logits(same) == expected).all()


def test_loss_matches_the_logits(model):
    tokens = np.stack([model.encode("Once upon a time"), model.encode("There was a cat ")])
    assert model.loss(tokens) == pytest.approx(loss_of(model.logits(tokens), tokens), abs=1e-5)
    assert model.loss(tokens[0]) == pytest.approx(loss_of(model.logits(tokens[0]), tokens[0]), abs=1e-5)
    assert model.loss(tokens, threads=3) == model.loss(tokens, threads=1)


def test_loss_and_evaluate_match_the_program(model, run, folder):
    text = "Once upon a time there was a cat. It was old. " * 20
    (folder / "text.txt").write_text(text)
    evaluation = program_json("eval", "--run", run, folder / "text.txt")
    tokens = model.encode(text)
    windows = np.stack([tokens[at:at + 33] for at in range(0, len(tokens) - 32, 32)])
    assert windows.size - len(windows) == evaluation["tokens"]
    assert model.loss(windows) == evaluation["loss"]
    evaluation.pop("step")
    assert model.evaluate(folder / "text.txt") == evaluation
    held_out = program_json("eval", "--run", run)
    assert model.evaluate(threads=1)["loss"] == held_out["loss"]


@pytest.mark.parametrize("options", [
    {"seed": 3}, {"temperature": 0}, {"temperature": 0.8, "top_k": 5, "seed": 1}, {"top_p": 0.5, "threads": 2},
    {"min_p": 0.2}, {"temperature": 0, "repeat_penalty": 1.3}, {"repeat_penalty": 1.2, "repeat_window": 5}])
def test_generate_matches_the_program(model, run, options):
    flags = [flag for name, value in options.items() for flag in ("--" + name.replace("_", "-"), value)]
    printed = program("generate", "--run", run, "--prompt", "Once", "--tokens", 60, *flags)
    written = model.generate("Once", tokens=60, **options)
    assert printed == "Once" + written + "\n"
    assert len(written) == 60
    assert "".join(model.stream("Once", tokens=60, **options)) == written


def test_generate_starts_with_a_line_end_by_default(model):
    assert model.generate(tokens=40) == model.generate("\n", tokens=40, seed=0, temperature=1.0)
    assert model.generate(tokens=0) == ""
    assert model.generate("", tokens=40) == model.generate("\n", tokens=40)  # characters have no <|endoftext|>


def test_samples_match_the_program(model, run):
    texts = model.generate("Once", tokens=30, seed=2, samples=3)
    assert texts[0] == model.generate("Once", tokens=30, seed=2)
    assert model.generate("Once", tokens=30, seed=2, samples=1) == texts[:1]
    assert len(set(texts)) == 3
    printed = program("generate", run, "--prompt", "Once", "--tokens", 30, "--seed", 2, "--samples", 3, "--json")
    assert [json.loads(line)["text"] for line in printed.splitlines()] == texts


def test_stop_strings_match_the_program(model, run):
    whole = model.generate("Once", tokens=60)
    for stop in ([whole[20:24]], ("never there", whole[7:9], whole[30:33])):
        text = model.generate("Once", tokens=60, stop=stop)
        assert text == whole[:min(whole.find(part) for part in stop if part in whole)]
        flags = [flag for part in stop for flag in ("--stop", part)]
        printed = program("generate", "--run", run, "--prompt", "Once", "--tokens", 60, *flags)
        assert printed == "Once" + text + "\n"
        pieces = model.stream("Once", tokens=60, stop=stop)
        assert pieces.finish is None
        assert "".join(pieces) == text
        assert pieces.finish == "stop"
        assert model.generate("Once", tokens=60, samples=2, stop=stop)[0] == text
    assert model.generate("Once", tokens=60, stop=[]) == whole
    assert model.generate("Once", tokens=60, stop=None) == whole


def test_end_tokens_of_generation_config(run, folder):
    shutil.copytree(run, folder / "run")
    plain = quern.load(run)
    whole = plain.generate("Once", tokens=60)
    (folder / "run/generation_config.json").write_text(json.dumps(
        {"eos_token_id": [int(plain.encode(whole[10])[0]), int(plain.encode(whole[25])[0])]}))
    model = quern.load(folder / "run")
    assert model.generate("Once", tokens=60) == whole[:min(whole.find(whole[10]), whole.find(whole[25]))]
    assert model.generate("Once", tokens=60, ignore_end=True) == whole


def test_an_interrupt_ends_a_long_prompt(folder):
    train_by_program(folder / "run", "--steps", "0", "--set", "model.context=32768", "--set", "model.width=128",
                     "--set", "model.layers=2", "--set", "train.batch=1", "--set", "data.stories_bytes=1000000")
    model = quern.load(folder / "run")
    timer = threading.Timer(0.2, signal.raise_signal, (signal.SIGINT,))
    timer.start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        model.generate("a" * 32000, tokens=1)  # 10 s
    assert time.monotonic() - start < 5


def test_padding_rows_are_not_generated(folder):
    """model.vocabulary may ask for more rows than the tokenizer has tokens; generate() drew them and failed."""
    train_by_program(folder / "run", "--steps", "2", "--set", "model.vocabulary=500")
    filled = quern.load(folder / "run")
    tokens = filled.encode("Once upon")
    assert filled.vocabulary == 500
    assert filled.logits(tokens).shape == (len(tokens), 500)
    for options in ({}, {"temperature": 0}, {"temperature": 50}, {"top_k": 400}, {"top_p": 0.99}):
        assert len(filled.generate("Once", tokens=80, **options)) == 80
    with pytest.raises(quern.Error, match="499"):
        filled.decode([499])
    assert filled.evaluate()["bits_per_byte"] > 0


def test_generation_stops_at_the_end_of_text(folder):
    lines = folder / "lines.jsonl"
    lines.write_text('{"text": "ab ab."}\n{"text": "ab."}\n' * 400)
    train_by_program(folder / "run", lines, "--steps", "150", "--tokenizer", "bpe", "--set", "data.vocabulary=300",
                     "--set", "optimizer.rate=0.01")
    writer = quern.load(folder / "run")
    for seed in range(3):
        text = writer.generate("ab", tokens=100, seed=seed)
        longer = writer.generate("ab", tokens=100, seed=seed, ignore_end=True)
        assert "<|endoftext|>" not in text
        assert longer.startswith(text + "<|endoftext|>")
        assert "".join(writer.stream("ab", tokens=100, seed=seed, ignore_end=True)) == longer


def test_a_stream_ends_and_keeps_its_model_alive(run):
    pieces = quern.load(run).stream("Once", tokens=3)
    assert iter(pieces) is pieces
    assert len(list(pieces)) == 3
    assert next(pieces, None) is None


def test_other_threads_run_while_a_model_works(model):
    # With Python's lock held, the other thread could not count before the work is done.
    count, done = 0, threading.Event()

    def work():
        model.generate(tokens=100_000, threads=1)  # 0.3 s
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    while not done.is_set():
        count += 1
        time.sleep(0.001)
    thread.join()
    assert count > 5


def test_several_threads_can_use_one_model(model):
    ids = model.encode("Once upon a time")
    expected, text = model.logits(ids), model.generate("Once", tokens=50, seed=9)
    found = []

    def work():
        for _ in range(20):
            found.append((model.logits(ids) == expected).all() and model.generate("Once", tokens=50, seed=9) == text)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 80 and all(found)


def test_an_interrupt_ends_a_long_text(model):
    timer = threading.Timer(0.2, signal.raise_signal, (signal.SIGINT,))
    timer.start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        model.generate(tokens=100_000_000)
    assert time.monotonic() - start < 5


def refuses(call, says):
    with pytest.raises(ValueError) as caught:
        call()
    assert type(caught.value) is quern.Error
    assert str(caught.value) == says


def test_bad_tokens_are_named(model):
    last = model.vocabulary - 1
    ids = model.encode("Once upon a time")
    many = np.zeros(33, np.int32)
    for function in (model.logits, model.loss):
        refuses(lambda: function([3, 4, last + 1]),
                f"[model] tokens: expected ids of 0 to {last}, found {last + 1} at position 2 of sequence 0")
        refuses(lambda: function([[3, 4], [-1, 4]]),
                f"[model] tokens: expected ids of 0 to {last}, found -1 at position 0 of sequence 1")
        refuses(lambda: function([2**40, 1]), f"[model] tokens: expected 32-bit ids, found {2**40}")
        refuses(lambda: function(np.array([2**64 - 1, 1], np.uint64)),
                f"[model] tokens: expected 32-bit ids, found {2**64 - 1}")
        refuses(lambda: function(ids.astype(np.float32)), "[model] tokens: expected whole numbers, found float32")
        refuses(lambda: function("Once"), "[model] tokens: expected 1 or 2 dimensions, found 0")
        refuses(lambda: function(np.zeros((1, 1, 3), np.int32)), "[model] tokens: expected 1 or 2 dimensions, found 3")
        refuses(lambda: function(ids, threads=0), "threads: expected 1 to 64, found 0")
    refuses(lambda: model.logits(many), "[model] tokens: expected sequences of 1 to 32 tokens, found 33")
    refuses(lambda: model.logits([]), "[model] tokens: expected sequences of 1 to 32 tokens, found 0")
    refuses(lambda: model.loss(np.zeros(34, np.int32)), "[model] tokens: expected sequences of 2 to 33 tokens, found 34")
    refuses(lambda: model.loss([3]), "[model] tokens: expected sequences of 2 to 33 tokens, found 1")
    refuses(lambda: model.loss(np.zeros((0, 3), np.int32)), "[model] tokens: expected at least one sequence, found none")
    assert model.loss(many) > 0


def test_bad_options_and_text_are_named(model):
    refuses(lambda: model.generate("Once", tokens=-1), "[generate] tokens: expected 0 or more, found -1")
    for options, name in (({"temperature": -1}, "temperature"), ({"top_p": 0}, "top_p"), ({"top_k": -3}, "top_k")):
        with pytest.raises(ValueError, match=name):
            model.generate("Once", **options)
    refuses(lambda: model.generate("Once", stop="end"), "[generate] stop: expected a list of str, found 'end'")
    refuses(lambda: model.stream("Once", stop=["a", 5]), "[generate] stop: expected a list of str, found 5 in it")
    refuses(lambda: model.generate("Once", stop=["a", ""]),
            "[generate] stop: expected at least one character, found an empty string")
    refuses(lambda: model.generate("Once", min_p=1.5), "[generate] min_p: expected 0 to 1, found 1.5")
    refuses(lambda: model.generate("Once", repeat_penalty=0),
            "[generate] repeat_penalty: expected more than 0 (1 for none), found 0")
    refuses(lambda: model.generate("Once", repeat_window=9),
            "[generate] repeat_window: expected together with a repeat_penalty other than 1, found 9 without one")
    refuses(lambda: model.generate("Once", repeat_penalty=2, repeat_window=-1),
            "[generate] repeat_window: expected 0 to 1048576, found -1")
    refuses(lambda: model.generate("Once", samples=0), "[generate] samples: expected 1 to 1000000, found 0")
    refuses(lambda: model.generate("Once", samples=2.0),
            "[generate] samples: expected a whole number from 1 to 1000000, found 2.0")
    with pytest.raises(ValueError, match=r"\(U\+4E00\)"):
        model.encode("\u4e00")  # no character of the stories
    with pytest.raises(ValueError):
        model.decode([model.vocabulary])
    with pytest.raises(ValueError, match="missing.txt: expected a file or folder, found nothing"):
        model.evaluate("missing.txt")


def test_a_missing_run_is_named(folder):
    refuses(lambda: quern.load(folder / "none"),
            f"[run] {folder / 'none'}: expected a run with a config.toml, found none")


def test_damaged_checkpoints_are_warnings(folder):
    train_by_program(folder / "run", "--steps", "4", "--set", "checkpoint.interval=2")
    newest = folder / "run" / "checkpoints" / "step-00000004" / "model.safetensors"
    newest.write_bytes(newest.read_bytes()[:-1])
    with pytest.warns(UserWarning, match="skipped .*step-00000004"):
        assert quern.load(folder / "run").step == 2
