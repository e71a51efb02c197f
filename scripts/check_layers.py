#!/usr/bin/env python3
"""Checks that every #include in src/, python/ and benchmarks/ respects the layers in docs/architecture.md, that a trained
model can be used without the trainer, and that JSON is parsed only with limited nesting depth (src/core/json.h).

Prints each violation, and exits with 1 if there is one.
"""

import pathlib
import re
import sys

# A folder may include itself and the folders named here.
LAYERS = {
    "core": [],
    "kernels": ["core"],
    "nn": ["core", "kernels"],
    "data": ["core"],
    "chat": ["core", "data"],
    "replay": ["core"],
    "games": ["core"],
    "selfplay": ["core", "nn", "games", "replay"],
    "optim": ["core", "kernels", "nn"],
    "checkpoint": ["core", "nn", "data", "optim"],
    "formats": ["core", "kernels", "nn", "data", "chat", "checkpoint", "config"],
    "generate": ["core", "kernels", "nn", "data", "chat"],
    "dist": ["core"],
    "config": ["core", "nn"],
    "parallel": ["core", "nn"],
    "dataset": ["core", "data", "chat", "formats", "config"],
    "evaluate": ["core", "nn", "data", "chat", "checkpoint", "formats", "config", "parallel", "dataset"],
    "train": ["core", "kernels", "nn", "data", "optim", "checkpoint", "dist", "config", "parallel", "evaluate"],
    "diagnose": ["core", "kernels", "nn", "data", "checkpoint", "formats", "config", "evaluate", "train"],
    "run": ["core", "nn", "data", "chat", "optim", "checkpoint", "formats", "generate", "dist", "config", "dataset", "evaluate", "train", "diagnose"],
    "learn": ["core", "nn", "data", "replay", "games", "selfplay", "checkpoint", "config", "evaluate", "train", "diagnose", "run"],
    "report": ["core", "kernels", "config", "train", "run"],
    "dashboard": ["core", "config", "run", "report"],
    "api": ["core", "data", "games", "selfplay", "learn", "replay", "checkpoint", "formats", "generate", "config", "dataset", "evaluate", "run", "report"],
    "cli": ["core", "kernels", "data", "chat", "games", "selfplay", "learn", "replay", "checkpoint", "formats", "generate", "dist", "config", "dataset", "evaluate", "train", "diagnose",
            "run", "report", "dashboard"],
    "python": ["core", "kernels", "games", "selfplay", "learn", "replay", "checkpoint", "formats", "generate", "config", "evaluate", "api"],
    "benchmarks": ["core", "kernels", "nn", "data", "replay", "games", "selfplay", "config", "train", "diagnose", "run", "learn", "report", "dashboard", "cli"],
}
# Files that use a trained model must not reach the folders that train one, not even through other files.
TRAINING = ("train", "diagnose", "run")
WITHOUT_TRAINING = ("src/cli/eval.cc", "src/cli/generate.cc", "src/cli/chat.cc", "src/api/model.cc", "src/api/generate.cc",
                    "python/src/model.cc", "python/src/text_stream.cc")
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
JSON_PARSE = re.compile(r"\b[Jj]son::parse\(")


def sources(root: pathlib.Path):
    """Every C++ file, with the folder it belongs to."""
    for top in ("src", "python", "benchmarks"):
        for path in sorted((root / top).rglob("*")):
            if path.suffix in (".h", ".cc"):
                yield path, path.relative_to(root / "src").parts[0] if top == "src" else top


def violations(root: pathlib.Path):
    for path, folder in sources(root):
        if folder not in LAYERS:
            yield f"{path.relative_to(root)}: folder {folder} is not in the table of layers"
            continue
        for included in INCLUDE.findall(path.read_text()):
            other = included.split("/")[0]
            if other in LAYERS and other != folder and other not in LAYERS[folder]:
                allowed = ", ".join(LAYERS[folder]) or "nothing"
                yield f"{path.relative_to(root)}: includes {included}; {folder} may include {allowed}"


def reached(root: pathlib.Path, path: pathlib.Path):
    """The file, what it includes, and the .cc files of those headers, which a program has to link."""
    found, waiting = set(), [path]
    while waiting:
        path = waiting.pop()
        if path in found or not path.exists():
            continue
        found.add(path)
        waiting.append(path.with_suffix(".cc"))
        for included in INCLUDE.findall(path.read_text()):
            waiting += [root / "src" / included, path.parent / included]
    return found


def training_reached(root: pathlib.Path):
    for name in WITHOUT_TRAINING:
        for path in sorted(reached(root, root / name)):
            if path.relative_to(root).parts[1] in TRAINING:
                yield f"{name}: needs {path.relative_to(root)}; a trained model must work without the trainer"


def unlimited_json(root: pathlib.Path):
    for path, _ in sources(root):
        text = path.read_text()
        if JSON_PARSE.search(text) and "nested_too_deep(" not in text:
            yield f"{path.relative_to(root)}: parses JSON of any depth; parse_json() of core/json.h limits it"


def main() -> int:
    root = pathlib.Path(__file__).resolve().parent.parent
    found = [*violations(root), *training_reached(root), *unlimited_json(root)]
    for line in found:
        print(line)
    print(f"layers: {len(found)} violations")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
