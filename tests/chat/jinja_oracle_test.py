#!/usr/bin/env python3
"""Compares the templates that Quern renders with Jinja2, byte for byte: random conversations through the templates of
this folder, and random statements and expressions.

JINJA_TOOL is the program of jinja_tool.cc. Without python3-jinja2 the test is skipped (exit code 77).
"""

import collections
import copy
import datetime
import json
import os
import pathlib
import random
import subprocess
import sys
import warnings

try:
    import jinja2
    import jinja2.ext
    import jinja2.sandbox
except ImportError:
    print("jinja_oracle: python3-jinja2 is not installed")
    sys.exit(77)

warnings.simplefilter("ignore", SyntaxWarning)  # of the Python that Jinja2 writes
FOLDER = pathlib.Path(__file__).resolve().parent
CONVERSATIONS = int(os.environ.get("JINJA_CONVERSATIONS", "600"))  # for each template
SEED = int(os.environ.get("JINJA_SEED", "1"))
EXPRESSIONS = int(os.environ.get("JINJA_EXPRESSIONS", "4000"))


class Generation(jinja2.ext.Extension):
    """{% generation %}: its contents, in a scope of their own."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("contents"), [], [], body).set_lineno(line)

    def contents(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.TemplateError(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment():
    """The environment of Hugging Face transformers."""
    result = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    result.filters["tojson"] = tojson
    result.globals["raise_exception"] = raise_exception
    result.globals["strftime_now"] = lambda format: datetime.datetime.now().strftime(format)
    return result


WORDS = ["Hello", "world", "naïve", "日本語", "🙂", "  ", "\n", "\n\n", "\t", "<think>", "</think>", "<|im_end|>", "{{ x }}",
         "{% if %}", "'", '"', "\\", "&<>", "\u00a0", "é", "a.b", "ÄÖÜ", "<tool_response>", "</tool_response>", "0", "\u2028",
         "\x1f", "ε", "\r\n", "end."]


def text(source, most=8):
    return "".join(source.choice(WORDS) + source.choice(["", " "]) for _ in range(source.randrange(most)))


def data(source, depth=3):
    """A JSON value."""
    kind = source.randrange(8 if depth > 0 else 6)
    if kind == 0:
        return source.choice([None, True, False])
    if kind == 1:
        return source.choice([0, 1, -7, 42, 10**12])
    if kind == 2:
        return source.choice([0.5, 1.0, -2.25, 1e16, 1e-7, 123456.789, 1e22, 0.1])
    if kind < 6:
        return text(source, 3)
    if kind == 6:
        return [data(source, depth - 1) for _ in range(source.randrange(4))]
    return {text(source, 2) or "key": data(source, depth - 1) for _ in range(source.randrange(4))}


def tool(source):
    return {"type": "function", "function": {
        "name": source.choice(["get_weather", "add", "suche"]), "description": text(source),
        "parameters": {"type": "object", "properties": {"city": {"type": "string", "description": text(source, 3)},
                                                        "extra": data(source)}, "required": ["city"]}}}


def assistant(source):
    turn = {"role": "assistant", "content": text(source)}
    if source.random() < 0.3:
        turn["content"] = "<think>\n" + text(source) + "\n</think>\n\n" + turn["content"]
    if source.random() < 0.2:
        turn["reasoning_content"] = text(source)
    if source.random() < 0.3:
        arguments = {"city": text(source, 2), "extra": data(source)}
        call = {"name": "get_weather", "arguments": arguments}
        turn["tool_calls"] = [{"type": "function", "function": call}] * source.choice([1, 1, 1, 2])
        turn["content"] = source.choice(["", turn["content"]])
    return turn


def conversation(source):
    turns = [{"role": "system", "content": text(source)}] if source.random() < 0.5 else []
    for _ in range(source.randrange(1, 5)):
        turns.append({"role": "user", "content": text(source)})
        if source.random() < 0.85:
            turns.append(assistant(source))
        for _ in range(source.choice([0, 0, 1, 2])):
            turns.append({"role": "tool", "content": source.choice([text(source), data(source)])})
    if source.random() < 0.05:
        turns.append({"role": source.choice(["critic", "system"]), "content": text(source)})
    variables = {"messages": turns, "bos_token": "<s>", "eos_token": "</s>"}
    optional = {"add_generation_prompt": source.random() < 0.5, "enable_thinking": source.random() < 0.5,
                "tools": source.choice([None, [], [tool(source)], [tool(source), tool(source)]]),
                "date_string": "26 Jul 2024", "tools_in_user_message": source.random() < 0.5,
                "builtin_tools": ["code_interpreter", "get_weather"]}
    variables.update({key: value for key, value in optional.items() if source.random() < 0.7})
    return variables


VARIABLES = {"s": " Grüße, World!\n ", "t": "a-b-c-b", "e": "", "n": 7, "m": -3, "f": 2.5, "z": 0, "y": True, "o": None,
             "l": [3, 1, 2], "w": ["b", "a", "C", "a"], "d": {"k": 1, "b": "two", "items": [1]},
             "r": [{"a": 1, "b": "x"}, {"a": 2}, {"a": 1, "b": "y", "c": {"d": [5]}}], "u": "日本語🙂é"}
ATOMS = [*VARIABLES, "'x'", '"a\\n\\tb"', "''", "0", "1", "2", "10", "1.5", "true", "false", "none", "undef", "[]", "[1, 'a']",
         "(1, 2)", "()", "{}", "{'a': 1, 2: [none]}", "loop", "d.k", "d['b']", "r[0]", "r[-1].c.d", "l[1]", "u[1]", "w[9]",
         "d.missing", "range(4)", "range(5, 1, -2)|list", "'it\\'s'", "'a' 'b'"]
BINARY = ["+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", ">", "<=", ">=", "in", "not in", "and", "or"]
FILTERS = ["trim", "tojson", "length", "upper", "lower", "capitalize", "title", "replace('a', 'bb')", "replace('b', '', 1)",
           "join(', ')", "join", "first", "last", "list", "items|list", "default('D')", "d('D', true)", "string", "int",
           "float", "reverse|list", "unique|list", "map('upper')|list", "map(attribute='a')|list",
           "map(attribute='b', default='-')|join('/')", "selectattr('b')|list", "selectattr('a', 'equalto', 1)|list",
           "rejectattr('b', 'defined')|list", "select('odd')|list", "reject('string')|list", "sort", "sort(reverse=true)",
           "sort(attribute='a')", "dictsort", "abs", "round", "round(1)", "round(method='ceil')", "indent", "indent(2, true)",
           "tojson(indent=2)", "tojson(indent=1, sort_keys=true)", "tojson(separators=(',', ':'))", "count",
           "tojson(ensure_ascii=true)", "sum", "min", "max", "trim('xa')", "map('length')|list", "select|list"]
METHODS = ["upper()", "lower()", "strip()", "lstrip()", "rstrip('!\\n ')", "split()", "split('-')", "split('-', 1)",
           "split('b')[-1]", "startswith('a')", "endswith(('c', 'b'))", "title()", "capitalize()", "replace('a', 'A')",
           "replace('', '.')", "find('b')", "rfind('b')", "count('b')", "join(w)", "keys()|list", "values()", "get('k')",
           "get('none', 5)", "items()|list", "splitlines()", "rsplit('-', 1)", "partition('-')", "removeprefix('a-')",
           "isdigit()", "isupper()", "islower()", "isalpha()", "isspace()", "index(1)"]
TESTS = ["defined", "undefined", "none", "string", "mapping", "iterable", "sequence", "number", "boolean", "true", "false", "odd",
         "even", "integer", "float", "equalto(1)", "eq 7", "ne 'x'", "in [1, 7]", "divisibleby 2", "gt(0)", "lower", "upper"]
SLICES = ["[1:]", "[:-1]", "[::-1]", "[::2]", "[-2:]", "[5:1:-2]", "[0]", "[-1]", "[:2]", "['k']", "[1:1]", "[-9:9]"]


def expression(source, depth=3):
    if depth == 0 or source.random() < 0.15:
        return source.choice(ATOMS)
    inner = expression(source, depth - 1)
    kind = source.randrange(9)
    if kind < 2:
        return f"({inner} {source.choice(BINARY)} {expression(source, depth - 1)})"
    if kind < 4:
        return f"({inner})|{source.choice(FILTERS)}"
    if kind == 4:
        return f"({inner}).{source.choice(METHODS)}"
    if kind == 5:
        return f"({inner} is {source.choice(['', 'not '])}{source.choice(TESTS)})"
    if kind == 6:
        return f"({inner}){source.choice(SLICES)}"
    if kind == 7:
        return f"({inner} if {expression(source, depth - 1)}{source.choice(['', ' else ' + source.choice(ATOMS)])})"
    return source.choice(["(not ({}))", "-({})", "[{}, 1]", "{{'q': {}}}", "({},)"]).format(inner)


SPACES = ["", "", " ", "\n", "  \n", "\n  ", "\t", "\n\n", " x ", "é"]
TAGS = ["{% for i in l %}|{% endfor %}", "{% for i in EXPR %}{{ loop.index }}{{ loop.last }}{{ i }}{% else %}none{% endfor %}",
        "{% if EXPR %}yes{% elif EXPR %}maybe{% else %}no{% endif %}", "{% set v = EXPR %}{{ v }}", "{{ EXPR }}", "{{ EXPR }}",
        "{# note #}", "{% raw %} {{ raw }} {% endraw %}", "{% set v %}|{{ EXPR }}|{% endset %}{{ v|upper }}",
        "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}", "{% set a, b = (1, 2) %}{{ a }}{{ b }}",
        "{% set ns = namespace(c=0) %}{% for i in range(3) %}{% set ns.c = ns.c + i %}{% endfor %}{{ ns.c }}",
        "{% macro show(p, q='Q') %}({{ p }}:{{ q }}){% endmacro %}{{ show(EXPR) }}{{ show(1, q=2) }}{{ show() }}",
        "{% for i in r if i.b is defined %}{{ i.b }}{{ loop.length }}{{ loop.previtem is defined }}{% endfor %}",
        "{% for i in range(9) %}{% if i is odd %}{% continue %}{% elif i > 5 %}{% break %}{% endif %}{{ i }}{% endfor %}",
        "{% generation %}{% set v = 9 %}{{ v }}{% endgeneration %}{{ v }}", "{% with v = EXPR %}{{ v }}{% endwith %}{{ v }}",
        "{% filter upper %}ab{{ EXPR }}{% endfilter %}", "{% if y %}{% set v = 5 %}{% endif %}{{ v }}",
        "{% for a in l %}{% for b in w %}{{ loop.index0 }}{% endfor %}{{ loop.revindex }}{% set v = a %}{% endfor %}{{ v }}",
        "{% set x = 1 %}{% macro g() %}{{ x }}{% endmacro %}{% set x = 2 %}{{ g() }}", "{{ EXPR }}, {{ EXPR }}", "{{ (EXPR)|escape }}", "{{ (EXPR)|safe }}"]


def with_signs(source, template):
    """The same, with some of its tags stripping the white space around them, or not."""
    for tag, signs in (("{%", "-+"), ("{#", "-+"), ("{{", "-")):
        parts = template.split(tag)
        template = parts[0] + "".join(
            tag + (source.choice(signs) if source.random() < 0.2 else "") + " " + part for part in parts[1:])
    for tag, signs in (("%}", "-+"), ("#}", "-+"), ("}}", "-")):
        parts = template.split(tag)
        template = "".join(
            part + " " + (source.choice(signs) if source.random() < 0.2 else "") + tag for part in parts[:-1]) + parts[-1]
    return template


def statements(source):
    template = source.choice(SPACES)
    for _ in range(source.randrange(1, 4)):
        tag = source.choice(TAGS)
        while "EXPR" in tag:
            tag = tag.replace("EXPR", expression(source, source.randrange(4)), 1)
        template += source.choice(SPACES) + tag + source.choice(SPACES)
    return with_signs(source, template) if source.random() < 0.5 else template


def expected(template, variables, cache={}):
    """What Jinja2 renders, or None if that is an error. Text that contains an address cannot be compared."""
    if template not in cache:
        cache.clear()
        try:
            cache[template] = environment().from_string(template)
        except Exception:  # whatever it is, the template is refused
            cache[template] = None
    try:
        return cache[template].render(**copy.deepcopy(variables)) if cache[template] else None
    except Exception:
        return None


def random_tasks():
    source = random.Random(SEED)
    for path in sorted((FOLDER / "templates").glob("*.jinja")):
        for _ in range(CONVERSATIONS):
            yield path.name, path.read_text(), conversation(source)
    for _ in range(EXPRESSIONS):
        yield "expression", "{{ " + expression(source) + " }}", VARIABLES
    for _ in range(EXPRESSIONS):
        yield "statements", statements(source), VARIABLES


def is_known_limit(wanted, found):
    """Where Quern reports an error although Jinja2 has a result: what is not supported, and slices of constants that
    have none, which Jinja2 folds at compile time to an undefined value."""
    known = ["not supported", "cannot be printed", "of more than 64 bits", "cannot be a key", "has no slices",
             "complex number"]
    return wanted is not None and "error" in found and any(word in found["error"] for word in known)


def main():
    tasks = list(random_tasks())
    lines = "".join(json.dumps({"template": template, "variables": variables}) + "\n" for _, template, variables in tasks)
    output = subprocess.run([os.environ["JINJA_TOOL"]], input=lines.encode(), stdout=subprocess.PIPE, check=True).stdout
    results = [json.loads(line) for line in output.decode().split("\n")[:-1]]
    assert len(results) == len(tasks), f"{len(tasks)} tasks, {len(results)} results"
    counts, failures = collections.Counter(), 0
    for (name, template, variables), found in zip(tasks, results):
        wanted = expected(template, variables)
        same = found.get("text") == wanted
        counts[name, "limit" if not same and is_known_limit(wanted, found) else "text" if wanted is not None else "error"] += 1
        if not same and not is_known_limit(wanted, found):
            failures += 1
            if failures <= 20:
                print(f"{name}: {template if name in ('expression', 'statements') else json.dumps(variables)}\n"
                      f"  Jinja2: {wanted!r}\n  Quern:  {found}")
    for (name, kind), count in sorted(counts.items()):
        print(f"{name}: {count} {kind}")
    limits = sum(count for (_, kind), count in counts.items() if kind == "limit")
    assert limits < len(tasks) / 20, f"{limits} of {len(tasks)} are not supported"
    print(f"jinja_oracle: {len(tasks)} compared, {failures} differ")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
