"""`pip install .`: CMake builds the extension and the program, as it does without pip.

What it needs from Debian: scripts/install-deps. QUERN_BUILD_DIR=build/release takes both from a build that is already
there, which must be for the Python that pip runs.
"""

import os
import pathlib
import re
import subprocess
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from distutils.command.build_scripts import build_scripts  # setuptools has none of its own

ROOT = pathlib.Path(__file__).resolve().parent


def version():
    return re.search(r"project\(quern VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text()).group(1)


def pybind11_option():
    """Where pybind11 is when pip installed it for this build; CMake finds that of the system by itself."""
    try:
        import pybind11
    except ImportError:
        return []
    return [f"-Dpybind11_DIR={pybind11.get_cmake_dir()}"]


def configure(build):
    subprocess.check_call(["cmake", "-S", ROOT, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                           "-DCMAKE_CXX_FLAGS_RELEASE=-O3 -DNDEBUG", f"-DQUERN_PYTHON={sys.executable}",
                           "-DQUERN_BUILD_TESTS=OFF", "-DQUERN_BUILD_PEERS=OFF", *pybind11_option()])


class CMakeBuild(build_ext):
    """The extension and the program, in one build."""

    def build_extension(self, extension):
        target = pathlib.Path(self.get_ext_fullpath(extension.name)).resolve()
        existing = os.environ.get("QUERN_BUILD_DIR")
        build = pathlib.Path(existing or self.build_temp).resolve()
        if not existing:
            configure(build)
        subprocess.check_call(["cmake", "--build", build, "--target", "quern_python", "quern_program",
                               "--parallel", str(len(os.sched_getaffinity(0)))])
        target.parent.mkdir(parents=True, exist_ok=True)
        self.copy_file(str(build / "python" / "quern" / target.name), str(target))
        self.distribution.quern_program = build / "quern"


class CopyProgram(build_scripts):
    """The program as the command `quern`: the real one, so that exit codes and signals are its own."""

    def run(self):
        self.run_command("build_ext")
        self.mkpath(self.build_dir)
        self.copy_file(str(self.distribution.quern_program), os.path.join(self.build_dir, "quern"))


setup(version=version(),
      package_dir={"": "python"},
      packages=["quern"],
      package_data={"quern": ["*.pyi", "py.typed"]},
      ext_modules=[Extension("quern._quern", sources=[])],
      scripts=["quern"],  # what CopyProgram makes
      cmdclass={"build_ext": CMakeBuild, "build_scripts": CopyProgram})
