"""Wrong arguments are a quern.Error of one line in Python's words, for every function, method and class."""

import inspect
import pathlib

import numpy as np
import pytest

import quern
from conftest import SMALL


def refuses(call, says):
    with pytest.raises(quern.Error) as caught:
        call()
    assert str(caught.value) == says
    assert caught.value.__context__ is None  # no second traceback, of pybind11's error


@pytest.fixture(scope="module")
def model(run):
    return quern.load(run)


@pytest.fixture
def buffer():
    return quern.ReplayBuffer({"x": "int32"}, 10)


def test_missing_arguments():
    refuses(lambda: quern.train(), "train: expected out=..., found no such argument")
    refuses(lambda: quern.load(), "load: expected run=..., found no such argument")
    refuses(lambda: quern.ReplayBuffer(), "ReplayBuffer: expected columns=... and capacity=..., found no such argument")
    refuses(lambda: quern.ReplayBuffer({"x": "int32"}), "ReplayBuffer: expected capacity=..., found no such argument")


def test_unknown_arguments_have_a_suggestion(model, buffer):
    for call, says in [
            (lambda: quern.train(out="x", stepz=3), "train: expected the name of an argument, found 'stepz'; did you mean steps?"),
            (lambda: quern.train(out="x", rate=1e-3),
             "train: expected the name of an argument, found 'rate'; did you mean set={\"optimizer.rate\": ...}?"),
            (lambda: quern.train(out="x", dropout=0.1),
             "train: expected the name of an argument, found 'dropout'; did you mean set={\"model.dropout\": ...}?"),
            (lambda: quern.train(out="x", from_="y"),
             "train: expected the name of an argument, found 'from_'; did you mean init_from?"),
            (lambda: quern.load("x", step=3), "load: expected the name of an argument, found 'step'; it takes run and checkpoint"),
            (lambda: model.generate("a", temprature=1),
             "Model.generate: expected the name of an argument, found 'temprature'; did you mean temperature?"),
            (lambda: model.state_dict(copy=True),
             "Model.state_dict: expected the name of an argument, found 'copy'; it takes none"),
            (lambda: buffer.sample(1, sed=2), "ReplayBuffer.sample: expected the name of an argument, found 'sed'; it takes ")]:
        with pytest.raises(quern.Error) as caught:
            call()
        assert str(caught.value).startswith(says) and "\n" not in str(caught.value)


def test_too_many_positional_arguments(model):
    refuses(lambda: quern.train("a", "b", out="x"),
            "train: expected at most 1 positional argument (data), found 2; name the others, as in out=...")
    refuses(lambda: model.encode("a", "b"), "Model.encode: expected at most 1 positional argument (text), found 2")
    refuses(lambda: model.state_dict(1), "Model.state_dict: expected no positional arguments, found 1")
    refuses(lambda: quern.load("a", run="b"), "load: expected run once, found it twice")


def test_wrong_types(model, buffer):
    refuses(lambda: quern.train(out=3), "train: out: expected a path, found 3")
    refuses(lambda: quern.train(out="x", preset=3), "train: preset: expected text or None, found 3")
    refuses(lambda: quern.train(out="x", resume="no"), "train: resume: expected True or False, found 'no'")
    refuses(lambda: quern.train(out="x", on_step=3), "[train] on_step: expected a function, found 3")
    refuses(lambda: quern.load(None), "load: run: expected a path, found None")
    refuses(lambda: model.encode(3), "Model.encode: text: expected text, found 3")
    refuses(lambda: model.encode(np.zeros((3, 3))),
            "Model.encode: text: expected text, found array([[0., 0., 0.],        [0., 0., ...")
    refuses(lambda: buffer.sample(2, rule=4),
            "[replay] sample: rule: expected uniform, without_replacement, prioritised or recent, found 4")
    refuses(lambda: quern.Column(encoding=3), "Column: encoding: expected text, found 3")


def test_methods_called_on_the_class(model):
    refuses(lambda: quern.Model.encode("x"), "Model.encode: expected a Model to call it on, found 'x'")
    refuses(lambda: quern.Model.encode(), "Model.encode: expected a Model to call it on, found none")
    assert list(quern.Model.encode(model, "Once")) == list(model.encode("Once"))


@pytest.mark.parametrize("name", ["Model", "Step", "TrainResult", "TextStream", "Sample", "Saving", "SnapshotResult"])
def test_classes_that_only_quern_creates(name):
    for arguments in ((), (3,)):
        refuses(lambda: getattr(quern, name)(*arguments),
                f"{name}: expected one that a function of quern returned, found a call; see help(quern.{name})")


def test_every_function_refuses_nonsense_in_one_line(model, buffer):
    """Ten positional arguments, and a keyword of a name that nobody has."""
    objects = {"Model": model, "ReplayBuffer": buffer}
    calls = [getattr(quern, name) for name in quern.__all__ if inspect.isfunction(getattr(quern, name))]
    for name in quern.__all__:
        kind = getattr(quern, name)
        if kind is quern.Game:
            continue  # a base class in Python, for classes of one's own
        if inspect.isclass(kind) and not issubclass(kind, Exception):
            methods = [member for member in vars(kind) if not member.startswith("_")]
            calls.append(kind)
            calls += [getattr(objects.get(name, kind), member) for member in methods if callable(getattr(kind, member))]
    assert len(calls) > 30
    for call in calls:
        for arguments, named in ((range(10), {}), ((), {"nobody_": 1})):
            with pytest.raises(quern.Error) as caught:
                call(*arguments, **named)
            assert "\n" not in str(caught.value) and "incompatible" not in str(caught.value), call


def test_a_type_error_of_a_callback_is_its_own(folder):
    def callback(step):
        raise TypeError("f(): incompatible with my taste")

    with pytest.raises(TypeError):
        quern.train(out=folder / "run", set=SMALL, steps=2, on_step=lambda step: None + step)
    with pytest.raises(TypeError, match="my taste"):
        quern.train(out=folder / "other", set=SMALL, steps=2, on_step=callback)


def test_advice_is_in_the_words_of_python(folder):
    quern.train(out=folder / "run", set=SMALL, steps=1)
    refuses(lambda: quern.train(out=folder / "run", set=SMALL, steps=1),
            f"[run] {folder / 'run'}: holds a run already; resume it (resume=True) or choose another folder")
    refuses(lambda: quern.train(out=folder / "new", set={"zzz.qqq": 1}),
            "[config] set: expected the name of a setting, found 'zzz.qqq'; quern.preset(\"tiny\") has all of them")


@pytest.mark.parametrize("message, words", [
    ("resume it (--resume) or not", "resume it (resume=True) or not"),
    ("start a new run with --config", "start a new run with config="),
    ("try --steps 500; or --steps=500", "try steps=500; or steps=500"),
    ("use --set optimizer.rate=1e-4.", "use set={\"optimizer.rate\": 1e-4.}"),
    ("use `--set data.field=body`", "use `set={\"data.field\": body}`"),
    ("--keep-best and --from RUN", "keep_best= and init_from= RUN"),
    ("/my--run/a-b: 3 -- 4 --- 'x--y' --", "/my--run/a-b: 3 -- 4 --- 'x--y' --"),
    ("two\nlines \033[31m", "two lines \\x1b[31m"),
])
def test_flags_become_arguments(message, words):
    assert quern._quern._in_python_words(message) == words


def test_a_message_with_a_path_that_is_not_utf8_or_has_a_line_break(folder):
    for name, shown in ((b"a\xff", "a\\xff"), (b"a\nb", "a b")):
        path = bytes(folder) + b"/" + name
        refuses(lambda: quern.load(path), f"[run] {folder}/{shown}: expected a run with a config.toml, found none")


@pytest.mark.parametrize("name, setting", [("data", "data.paths"), ("tokenizer", "data.tokenizer"), ("steps", "train.steps")])
def test_a_dict_is_no_value_of_an_argument(folder, name, setting):
    refuses(lambda: quern.train(out=folder / "run", **{name: {}}),
            f"[config] {name}: expected a value of {setting}, found {{}}")
    assert not (folder / "run").exists()


def test_signatures_are_those_of_the_binding():
    assert str(inspect.signature(quern.Model.logits)) == "(self, tokens, *, threads=None)"
    assert str(inspect.signature(quern.ReplayBuffer.attach)) == "(shared=None, file=None, patience=0.0, seed=None)"
    assert str(inspect.signature(quern.ReplayBuffer.writer)) == "(self, streams=1)"
    assert quern.Model.logits.__qualname__ == "Model.logits" and quern.load.__module__ == "quern"
    assert pathlib.Path(inspect.getfile(quern.load)).name == "_calls.py"


def test_empty_names_are_refused(folder):
    refuses(lambda: quern.train(out=""), "[train] out: expected a folder for the run, found an empty name")
    refuses(lambda: quern.train("", out=folder / "run"),
            "[config] data.paths: expected the name of a file or folder, found an empty one")
