"""`python -m quern`: runs the `quern` program."""

import importlib.metadata
import os
import pathlib
import sys


def find_program():
    """Path of the program: next to the package in a build folder, or where pip installed it; None if not found."""
    candidates = [pathlib.Path(__file__).resolve().parents[2] / "quern"]
    for distribution in importlib.metadata.distributions(name="quern"):
        candidates += [file.locate() for file in distribution.files or [] if file.match("bin/quern")]
    return next((path for path in candidates if path.is_file() and os.access(path, os.X_OK)), None)


def main():
    program = find_program()
    if program is None:
        sys.exit("quern: expected the program next to the package, found none; install both with `pip install .`")
    try:
        os.execv(program, [str(program), *sys.argv[1:]])  # replaces Python, so exit codes and signals are the program's
    except OSError as error:
        sys.exit(f"quern: cannot run {program}: {error.strerror}")


if __name__ == "__main__":
    main()
