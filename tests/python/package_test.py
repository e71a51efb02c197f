"""Every public name has a docstring with a working example and is in the stubs, and nothing else is."""

import ast
import doctest
import inspect
import pathlib
import pydoc
import re
import subprocess
import sys

import numpy
import pytest

import quern
import quern._quern
from conftest import SMALL

FOLDER = pathlib.Path(quern.__file__).parent
PYTHON = {"Game"}  # written in Python, with its types: python/quern/_games.py
SPECIAL = {"__iter__", "__next__", "__init__", "__len__", "__enter__", "__exit__", "__getitem__", "__contains__"}


def public(names):
    return {name for name in names if not name.startswith("_")}


def members(kind):
    """The public names that a class defines itself, and the special ones that are worth a line in the stubs."""
    return public(vars(kind)) | (SPECIAL & set(vars(kind)) - {"__init__"})


def classes():
    # What Error has, it has from ValueError.
    return {name: value for name, value in vars(quern).items()
            if inspect.isclass(value) and name in quern.__all__ and not issubclass(value, Exception)}


def documented():
    """Every public name with the object that has its docstring."""
    for name in quern.__all__:
        if name != "__version__":
            yield name, getattr(quern, name)
    for name, kind in classes().items():
        if name in PYTHON:
            continue  # one example shows all of it
        for member in public(vars(kind)):
            value = inspect.getattr_static(kind, member)
            yield f"{name}.{member}", value.__func__ if isinstance(value, staticmethod) else value


def stub():
    return ast.parse((FOLDER / "_quern.pyi").read_text()).body


def stub_names(body):
    functions = {node.name for node in body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    return functions | {node.target.id for node in body if isinstance(node, ast.AnnAssign)}


def test_every_name_of_the_extension_is_public():
    assert public(vars(quern._quern)) | PYTHON == set(quern.__all__) - {"__version__"}
    assert quern.__all__ == sorted(quern.__all__)


def test_every_public_name_has_a_docstring_with_an_example():
    for name, value in [("quern", quern), *documented()]:
        text = inspect.getdoc(value) or ""
        assert ">>> " in text, f"{name}: expected an example, found {text!r}"
        first = [line for line in text.splitlines() if line and not re.match(r"\w+\(.*\) -> ", line)][0]
        assert first.endswith((".", ":")), f"{name}: expected a sentence, found {first!r}"


@pytest.fixture(scope="module")
def names(run):
    """What the examples take for granted: they are in a folder with runs/first, and have trained runs/last."""
    with pytest.MonkeyPatch.context() as patch:
        (run.parent / "runs").mkdir()
        run.rename(run.parent / "runs" / "first")
        patch.chdir(run.parent)
        steps = []
        result = quern.train(out="runs/last", set={**SMALL, "train.steps": 7}, on_step=steps.append)
        columns = {"planes": ("float32", (2, 8, 8)), "value": "float32"}
        rows = {"planes": numpy.zeros((4, 2, 8, 8), numpy.float32), "value": numpy.arange(4, dtype=numpy.float32)}
        prioritised = quern.ReplayBuffer(columns, 1000, prioritised=True)
        prioritised.add_batch(rows)
        episodes = quern.ReplayBuffer({"obs": ("float32", (2,)), "reward": "float32", "done": "bool"}, 1000, terminal="done")
        episodes.add_batch(obs=numpy.zeros((50, 2), numpy.float32), reward=numpy.ones(50, numpy.float32),
                           done=numpy.arange(50) % 10 == 9)
        generations = []
        quern.selfplay("tictactoe", out="runs/played", steps=4, on_generation=generations.append,
                       set={"selfplay.generation_games": 8, "selfplay.generation_steps": 2})
        yield {"board": quern.load_board("runs/played"), "generation": generations[-1], "quern": quern, "np": numpy, "model": quern.load("runs/first"), "step": steps[-1], "result": result,
               "prioritised": prioritised, "rows": rows, "episodes": episodes}


@pytest.mark.parametrize("name, value", [("quern", quern), *documented()])
def test_the_examples_run(name, value, names):
    buffer = quern.ReplayBuffer(names["prioritised"].columns, 1000)  # four rows, whatever ran before
    buffer.add_batch(names["rows"])
    names = {**names, "buffer": buffer}
    example = doctest.DocTestParser().get_doctest(inspect.getdoc(value), dict(names), name, None, 0)
    output = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example, out=output.append)
    assert not output, "".join(output)


def test_the_stubs_have_every_public_name_and_no_other():
    assert public(stub_names(stub())) | {"__version__"} == set(quern.__all__) - PYTHON
    stubs = {node.name: stub_names(node.body) for node in stub() if isinstance(node, ast.ClassDef)}
    for name, kind in classes().items():
        if name in PYTHON:
            continue
        assert stubs[name] - {"__init__"} == members(kind), name


def stub_parameters(node):
    """The names, kinds and defaults of the arguments of a function in the stubs."""
    args = node.args
    defaults = [None] * (len(args.args) - len(args.defaults)) + args.defaults
    found = [(arg.arg, "POSITIONAL_OR_KEYWORD", default) for arg, default in zip(args.args, defaults)]
    found += [("args", "VAR_POSITIONAL", None)] if args.vararg else []  # pybind11 knows no other name for them
    found += [(arg.arg, "KEYWORD_ONLY", default) for arg, default in zip(args.kwonlyargs, args.kw_defaults)]
    found += [("kwargs", "VAR_KEYWORD", None)] if args.kwarg else []
    return [(name, kind, inspect.Parameter.empty if default is None else ast.literal_eval(default))
            for name, kind, default in found]


def functions():
    """Every public function, method and constructor in the stubs, with the object that `inspect` is asked about."""
    for node in stub():
        if getattr(node, "name", "").startswith("_"):
            continue
        if isinstance(node, ast.FunctionDef):
            yield node.name, node, getattr(quern, node.name)
        for member in getattr(node, "body", []) if isinstance(node, ast.ClassDef) else []:
            names = {getattr(decorator, "id", "setter") for decorator in getattr(member, "decorator_list", [])}
            special = getattr(member, "name", "_").startswith("_") and getattr(member, "name", "") != "__init__"
            if isinstance(member, ast.FunctionDef) and not special and not names & {"property", "setter"}:
                yield f"{node.name}.{member.name}", member, getattr(getattr(quern, node.name), member.name)


@pytest.mark.parametrize("name, node, function", functions())
def test_signatures_agree_with_the_stubs(name, node, function):
    signature = inspect.signature(function)
    found = [(p.name, p.kind.name, p.default) for p in signature.parameters.values()]
    expected = stub_parameters(node)
    assert [parameter[:2] for parameter in found] == [parameter[:2] for parameter in expected]
    required = {name for name, _, default in expected if default is inspect.Parameter.empty}
    if any(getattr(decorator, "id", "") == "overload" for decorator in node.decorator_list):
        found = [parameter for parameter in found if parameter[0] not in required]  # what tells it from the others
        expected = [parameter for parameter in expected if parameter[0] not in required]
    assert found == expected


def test_every_public_class_and_function_has_a_signature():
    for name in set(quern.__all__) - {"__version__"}:
        assert inspect.signature(getattr(quern, name)) is not None
    assert str(inspect.signature(quern.load)) == "(run, *, checkpoint=None)"
    assert list(inspect.signature(quern.ReplayBuffer).parameters)[:2] == ["columns", "capacity"]
    assert str(inspect.signature(quern.Model)) == "()"


def test_help_is_readable():
    """Types of C++ and `arg0` were in it."""
    for name in set(quern.__all__) - {"__version__"}:
        text = pydoc.render_doc(getattr(quern, name), renderer=pydoc.plaintext)
        for word in ("_quern", "arg0", r"handle\b", "os.PathLike", "Overloaded", "std::"):
            assert not re.search(word, text), (name, word)
    text = pydoc.render_doc(quern.Model, renderer=pydoc.plaintext)
    assert "generate(self, prompt=None, *, tokens=256, temperature=1.0" in text
    assert "load(run, *, checkpoint=None)\n    Loads a trained model" in pydoc.render_doc(quern.load, renderer=pydoc.plaintext)


def test_the_package_is_typed_and_has_a_version():
    assert (FOLDER / "py.typed").exists()
    assert re.fullmatch(r"\d+\.\d+\.\d+", quern.__version__)
    assert quern.Model.__module__ == quern.load.__module__ == "quern"


def test_a_numpy_that_the_extension_cannot_read_is_refused():
    """With pybind11 2.10 and NumPy 2, the strides of an array were 0: encode() repeated its first id."""
    code = ("import numpy, quern._quern\nimport sys\nfor name in [n for n in sys.modules if n == 'quern']: del sys.modules[name]\n"
            "numpy.__version__ = '2.4.6'\nsys.modules['quern._quern']._numpy_2 = {}\nimport quern")
    for able, says in ((False, "ImportError: quern was built with pybind11 before 2.12, which cannot use NumPy 2.4.6: install "
                               "'numpy<2', or build quern with a newer pybind11 (pip install . does)"), (True, "")):
        done = subprocess.run([sys.executable, "-B", "-c", code.format(able)], capture_output=True, text=True)
        assert (done.stderr.splitlines() or [""])[-1] == says
