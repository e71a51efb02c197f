#!/usr/bin/env python3
"""Checks that every #include in src/, python/ and benchmarks/ respects the layers in docs/architecture.md, and that
JSON is parsed only with limited nesting depth (src/core/json.h).

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
    "replay": ["core"],
    "optim": ["core", "kernels", "nn"],
    "checkpoint": ["core", "nn", "optim"],
    "generate": ["core", "kernels", "nn", "data"],
    "dist": ["core"],
}
# Not yet ordered among themselves.
TRAINING = ["config", "parallel", "dataset", "evaluate", "train", "diagnose", "run"]
LAYERS |= {folder: [*LAYERS, *TRAINING] for folder in TRAINING}
LAYERS["report"] = ["core", "kernels", *TRAINING]
LIBRARY = list(LAYERS)
LAYERS |= {
    "api": LIBRARY,
    "cli": LIBRARY,
    "python": [*LIBRARY, "api"],
    "benchmarks": [*LIBRARY, "cli"],
}
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


def unlimited_json(root: pathlib.Path):
    for path, _ in sources(root):
        text = path.read_text()
        if JSON_PARSE.search(text) and "nested_too_deep(" not in text:
            yield f"{path.relative_to(root)}: parses JSON of any depth; parse_json() of core/json.h limits it"


def main() -> int:
    root = pathlib.Path(__file__).resolve().parent.parent
    found = [*violations(root), *unlimited_json(root)]
    for line in found:
        print(line)
    print(f"layers: {len(found)} violations")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
