"""Every public name has a docstring with a working example and is in the stubs, and nothing else is."""

import ast
import doctest
import inspect
import pathlib
import re

import numpy
import pytest

import quern
import quern._quern
from conftest import SMALL

FOLDER = pathlib.Path(quern.__file__).parent
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
        for member in public(vars(kind)):
            value = inspect.getattr_static(kind, member)
            yield f"{name}.{member}", value.__func__ if isinstance(value, staticmethod) else value


def stub():
    return ast.parse((FOLDER / "_quern.pyi").read_text()).body


def stub_names(body):
    functions = {node.name for node in body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    return functions | {node.target.id for node in body if isinstance(node, ast.AnnAssign)}


def test_every_name_of_the_extension_is_public():
    assert public(vars(quern._quern)) == set(quern.__all__) - {"__version__"}
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
        yield {"quern": quern, "np": numpy, "model": quern.load("runs/first"), "step": steps[-1], "result": result,
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
    assert stub_names(stub()) == set(quern.__all__)
    stubs = {node.name: stub_names(node.body) for node in stub() if isinstance(node, ast.ClassDef)}
    for name, kind in classes().items():
        assert stubs[name] - {"__init__"} == members(kind), name


def test_the_stubs_have_every_argument():
    # pybind11 writes the arguments into the first line of a docstring.
    classes_and_module = [(quern, stub()), *((getattr(quern, node.name), node.body) for node in stub()
                                             if isinstance(node, ast.ClassDef))]
    for owner, body in classes_and_module:
        for node in body:
            if not isinstance(node, ast.FunctionDef) or node.name.startswith("_") or node.decorator_list:
                continue
            signature = getattr(owner, node.name).__doc__.splitlines()[0]
            arguments = [argument.arg for argument in node.args.args + node.args.kwonlyargs]
            assert re.findall(r"(?<=[(, ])(\w+): ", signature) == arguments, signature


def test_the_package_is_typed_and_has_a_version():
    assert (FOLDER / "py.typed").exists()
    assert re.fullmatch(r"\d+\.\d+\.\d+", quern.__version__)
    assert quern.Model.__module__ == quern.load.__module__ == "quern"
