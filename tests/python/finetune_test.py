"""Fine-tuning and talking with the result: the same as the program does."""

import json

import pytest

import quern
from conftest import program

SMALL = {"model.layers": 1, "model.heads": 2, "model.width": 32, "model.context": 256, "train.batch": 8,
         "data.stories_bytes": 50_000, "train.validation_batches": 1, "optimizer.warmup": 2}
QUESTION = {"role": "user", "content": "What is red?"}


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A run with a model of bytes, and conversations next to it."""
    folder = tmp_path_factory.mktemp("finetune")
    quern.train(out=folder / "base", steps=60, tokenizer="byte", set=SMALL)
    with open(folder / "chats.jsonl", "w", encoding="utf-8") as file:
        for i in range(12):
            messages = [{"role": "user", "content": f"What is {i}?"}, {"role": "assistant", "content": f"It is {i}."}]
            print(json.dumps({"messages": messages}), file=file)
    return folder


def tuned(base, out, **arguments):
    return quern.finetune(base / "base", base / "chats.jsonl", out=out, chat_template="chatml", context=256, **arguments)


def test_is_bit_identical_to_the_program(base, folder):
    steps = []
    result = tuned(base, folder / "a", epochs=2, rank=4, alpha=8, seed=3, on_step=steps.append)
    assert result.finished and len(steps) == result.step == steps[-1].steps
    program("finetune", "--base", base / "base", base / "chats.jsonl", "--run", folder / "b", "--chat-template", "chatml",
            "--context", 256, "--epochs", 2, "--rank", 4, "--alpha", 8, "--seed", 3, "--threads", 1)
    assert quern.load(folder / "b").weights_hash == result.weights_hash
    config = quern.load(result.path).config
    assert (config["lora"]["rank"], config["lora"]["alpha"], config["train"]["seed"]) == (4, 8.0, 3)


def test_stopped_and_resumed(base, folder):
    expected = tuned(base, folder / "once", steps=6)
    stopped = tuned(base, folder / "twice", steps=6, on_step=lambda step: step.step < 2)
    assert (stopped.finished, stopped.step) == (False, 2)
    resumed = quern.finetune(out=folder / "twice", resume=True, threads=1)
    assert (resumed.finished, resumed.weights_hash) == (True, expected.weights_hash)


def test_full_and_settings(base, folder):
    full = quern.load(tuned(base, folder / "full", full=True, steps=2).path)
    assert full.config["lora"]["rank"] == 0
    chosen = quern.load(tuned(base, folder / "chosen", steps=2, rate=1e-3, batch=2, targets=["c_attn"], dropout=0.1,
                              set={"train.accumulation": 2, "optimizer.rate": 5e-3}).path).config
    assert (chosen["optimizer"]["rate"], chosen["train"]["batch"], chosen["train"]["accumulation"]) == (1e-3, 2, 2)
    assert (chosen["lora"]["targets"], chosen["lora"]["dropout"]) == (["c_attn"], 0.1)


@pytest.mark.parametrize("arguments, says", [
    ({}, "[finetune] base: expected a run, a Hugging Face folder or a GGUF file, found none"),
    ({"base": "base"}, "[finetune] data: expected JSON Lines with conversations, found none"),
    ({"base": "base", "resume": True}, "omit base, chat_template and full"),
    ({"base": "base", "data": "chats.jsonl", "rank": -1}, "rank"),
    ({"base": "base", "data": "chats.jsonl"}, "chat template"),
    ({"base": "base", "data": "none.jsonl", "chat_template": "chatml"}, "none.jsonl"),
    ({"base": "nowhere", "data": "chats.jsonl"}, "nowhere"),
    ({"base": "base", "data": "chats.jsonl", "on_step": 3}, "[finetune] on_step: expected a function, found 3"),
    ({"base": "base", "data": "chats.jsonl", "epoch": 3}, "did you mean epochs?"),
])
def test_bad_arguments(base, folder, monkeypatch, arguments, says):
    monkeypatch.chdir(base)
    with pytest.raises(quern.Error) as error:
        quern.finetune(out=folder / "run", **arguments)
    assert says in str(error.value) and "\n" not in str(error.value)
    assert not (folder / "run").exists()


def test_chat_is_what_the_program_answers(base, folder):
    model = quern.load(tuned(base, folder / "run", steps=2).path)
    for arguments in ({}, {"seed": 4, "temperature": 0.7, "top_k": 20, "top_p": 0.9}, {"temperature": 0, "threads": 1}):
        flags = [word for name, value in arguments.items() for word in (f"--{name.replace('_', '-')}", value)]
        printed = program("chat", "--run", folder / "run", "--prompt", QUESTION["content"], "--tokens", 30, *flags)
        assert model.chat([QUESTION], tokens=30, **arguments) + "\n" == printed
    system = {"role": "system", "content": "Be kind"}
    printed = program("chat", "--run", folder / "run", "--prompt", QUESTION["content"], "--tokens", 30, "--system", "Be kind")
    assert model.chat((system, QUESTION), tokens=30) + "\n" == printed
    answer = {"role": "assistant", "content": "It is 1."}
    assert model.chat([QUESTION, answer, QUESTION], tokens=30) != model.chat([QUESTION], tokens=30)


def test_chat_needs_messages_and_a_template(base):
    model = quern.load(base / "base")
    with pytest.raises(quern.Error, match=r'choose chat_template="chatml" or a file'):
        model.chat([QUESTION])
    assert isinstance(model.chat([QUESTION], chat_template="chatml", tokens=5), str)
    for messages in ("Hello", [], None, 3, {"role": "user", "content": "a"}):
        with pytest.raises(quern.Error, match="expected a list of messages"):
            model.chat(messages, chat_template="chatml")
    for message in ({}, {"role": "user"}, {"role": "user", "content": None}, {"role": 1, "content": "a"}):
        with pytest.raises(quern.Error, match='expected "role" and "content" with a str each'):
            model.chat([message], chat_template="chatml")
    with pytest.raises(quern.Error, match="messages"):
        model.chat(["Hello"], chat_template="chatml")
    with pytest.raises(quern.Error, match="top_p"):
        model.chat([QUESTION], chat_template="chatml", top_p=0)
    with pytest.raises(quern.Error, match="tokens"):
        model.chat([QUESTION], chat_template="chatml", tokens=-1)
