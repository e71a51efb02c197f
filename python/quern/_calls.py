"""How the functions of the extension are called: with real signatures, and errors of one line.

pybind11 reports wrong arguments as a TypeError of many lines about types of C++, and its functions have no signature
that `inspect` can read. present() wraps every public function and method once, when the package is imported. The
signature comes from the line that pybind11 writes at the top of a docstring, so there is one list of arguments, in the
binding. A call costs 0.2 us more; arguments are examined only after a call has failed.
"""

import ast
import difflib
import inspect

from ._quern import Error, _advise_setting

POSITIONAL, KEYWORD = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
MANY, NAMED = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD

# What an argument of a type that the binding checks itself must be, by the name of the type in the binding.
TEXT = ("text", (str, bytes))
PATH = ("a path", (str, bytes))
SWITCH = ("True or False", bool)
TYPES = {"str": TEXT, "os.PathLike": PATH, "bool": SWITCH, "int": ("a whole number", int), "float": ("a number", float)}


class Binding:
    """A function of the extension: what its docstring says of it."""

    def __init__(self, function, name, owner=None):
        line, _, self.doc = (function.__doc__ or "").partition("\n")
        arguments = arguments_in(line)
        self.function, self.name, self.owner = function, name, owner  # the class of a method, whose self is first
        self.parameters = list(parameters_of(arguments))
        self.own = self.parameters[1 if owner else 0:]
        self.types = {argument.arg: ast.unparse(argument.annotation)
                      for argument in arguments.args + arguments.kwonlyargs if argument.annotation}

    def signature(self):
        return inspect.Signature(self.parameters)

    def names(self, *kinds):
        """The arguments of these kinds, without self."""
        return [p.name for p in self.own if p.kind in kinds]


def arguments_in(line):
    """The arguments in the first line of a docstring. A type of C++ that Python cannot read hides all of them."""
    try:
        return ast.parse(f"def {line}: pass".replace("arg0: ", "value: ")).body[0].args  # of a special method
    except SyntaxError:
        return ast.parse("def call(*args, **kwargs): pass").body[0].args


def parameters_of(arguments):
    positional = arguments.args
    defaults = [inspect.Parameter.empty] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)
    for argument, default in zip(positional, defaults):
        yield inspect.Parameter(argument.arg, POSITIONAL, default=value_of(default))
    if arguments.vararg:
        yield inspect.Parameter(arguments.vararg.arg, MANY)
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults):
        yield inspect.Parameter(argument.arg, KEYWORD,
                                default=inspect.Parameter.empty if default is None else value_of(default))
    if arguments.kwarg:
        yield inspect.Parameter(arguments.kwarg.arg, NAMED)


def value_of(default):
    if not isinstance(default, ast.AST):
        return default
    try:
        return ast.literal_eval(default)
    except ValueError:
        return ...


def shown(value):
    """Its repr() as one line of limited length."""
    try:
        text = repr(value)
    except Exception:  # such as an int of thousands of digits
        return f"an object of type {type(value).__name__}"
    text = "".join(c if c.isprintable() else " " for c in text)
    return text if len(text) <= 40 else text[:37] + "..."


def listed(words):
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def nearest_setting(word):
    """The setting that `word` means in Quern or elsewhere, as train() and finetune() take it."""
    found = _advise_setting(word)
    if found == "init.from":
        return "init_from"  # the argument, which also checks the source
    return f'set={{"{found}": ...}}' if found else None


def nearest_argument(binding, word, names):
    """The argument that `word` means. If settings are arguments, the exact name of one counts more than a similar word."""
    similar = next(iter(difflib.get_close_matches(word, names, 1)), None)
    setting = nearest_setting(word) if binding.name in ("train", "finetune", "selfplay", "train_board") else None
    exact = setting and f'.{word}"' in setting
    return setting if exact else similar or setting


def problem(binding, args, kwargs):
    """What is wrong with the arguments of a call that the binding has refused."""
    if binding.owner:
        if not args or not isinstance(args[0], binding.owner):
            return f"expected a {binding.owner.__name__} to call it on, found {shown(args[0]) if args else 'none'}"
        args = args[1:]
    positional, keyword = binding.names(POSITIONAL), binding.names(POSITIONAL, KEYWORD)
    for name in kwargs:
        if name not in keyword and not binding.names(NAMED):
            near = nearest_argument(binding, name, keyword)
            hint = f"did you mean {near}?" if near else f"it takes {listed(keyword)}" if keyword else "it takes none"
            return f"expected the name of an argument, found {shown(name)}; {hint}"
    if len(args) > len(positional) and not binding.names(MANY):
        others = binding.names(KEYWORD)
        hint = f"; name the others, as in {others[0]}=..." if others else ""
        count = f"at most {len(positional)}" if positional else "no"
        names = f" ({listed(positional)})" if positional else ""
        return f"expected {count} positional argument{'s' * (len(positional) != 1)}{names}, found {len(args)}{hint}"
    given = dict(zip(positional, args))
    for name in kwargs:
        if name in given:
            return f"expected {name} once, found it twice"
    given.update(kwargs)
    required = [p.name for p in binding.own
                if p.kind in (POSITIONAL, KEYWORD) and p.default is p.empty]
    missing = [name for name in required if name not in given]
    if missing:
        return f"expected {listed([name + '=...' for name in missing])}, found no such argument"
    return wrong_type(binding, given)


def wrong_type(binding, given):
    for name, value in given.items():
        kind = binding.types.get(name, "")
        optional = kind.startswith("Optional[")
        expected, types = TYPES.get(kind[9:-1] if optional else kind, (None, None))
        if expected is None or isinstance(value, types) or (optional and value is None):
            continue
        if types == PATH[1] and hasattr(value, "__fspath__"):
            continue
        return f"{name}: expected {expected}{' or None' if optional else ''}, found {shown(value)}"
    return f"expected other types of arguments, found {listed([shown(value) for value in given.values()] or ['none'])}"


def is_refusal(error):
    """Whether pybind11 refused the arguments; a callback may raise a TypeError of its own."""
    return "arguments. The following argument types are supported:" in str(error)


def wrapped(binding):
    function = binding.function

    def call(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            if not is_refusal(error):
                raise
        raise Error(f"{binding.name}: {problem(binding, args, kwargs)}")

    call.__name__ = function.__name__
    call.__qualname__, call.__module__ = binding.name, "quern"
    call.__doc__ = binding.doc.strip()
    call.__signature__ = binding.signature()
    return call


def no_constructor(kind):
    def __init__(self, *args, **kwargs):
        name = kind.__name__
        raise Error(f"{name}: expected one that a function of quern returned, found a call; see help(quern.{name})")

    __init__.__doc__ = "Not for callers: functions of quern return such objects."
    __init__.__signature__ = inspect.Signature([inspect.Parameter("self", POSITIONAL)])
    return __init__


def present_class(kind):
    """Wraps the constructor, the public methods and the special ones, in place."""
    name = kind.__name__
    for member, value in list(vars(kind).items()):
        function = getattr(value, "__func__", None)  # of a staticmethod or a pybind11 method; a property has none
        private = member.startswith("_") and not member.endswith("__")
        if function is None or private:
            continue
        if isinstance(value, staticmethod):
            setattr(kind, member, staticmethod(wrapped(Binding(function, f"{name}.{member}"))))
        else:
            shown_name = name if member == "__init__" else f"{name}.{member}"
            setattr(kind, member, wrapped(Binding(function, shown_name, kind)))
    if not inspect.isfunction(kind.__init__):  # that of pybind11, which has no signature
        kind.__init__ = no_constructor(kind)


def present(names):
    """Makes the public `names` of the package, a dict, what users see."""
    for name, value in names.items():
        if inspect.isclass(value):
            if issubclass(value, Exception):
                value.__signature__ = inspect.Signature([inspect.Parameter("args", MANY)])
            else:
                present_class(value)
            value.__module__ = "quern"  # so that repr() and help() show the public module
        elif callable(value):
            names[name] = wrapped(Binding(value, name))
    return names
