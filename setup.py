"""`pip install .`: CMake builds the extension, as it does without pip. What it needs from Debian: scripts/install-deps."""

import os
import pathlib
import re
import subprocess
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

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


class CMakeBuild(build_ext):
    def build_extension(self, extension):
        target = pathlib.Path(self.get_ext_fullpath(extension.name)).resolve()
        build = pathlib.Path(self.build_temp).resolve()
        subprocess.check_call(["cmake", "-S", ROOT, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                               "-DCMAKE_CXX_FLAGS_RELEASE=-O3 -DNDEBUG", f"-DQUERN_PYTHON={sys.executable}",
                               "-DQUERN_BUILD_TESTS=OFF", "-DQUERN_BUILD_PEERS=OFF", *pybind11_option()])
        subprocess.check_call(["cmake", "--build", build, "--target", "quern_python",
                               "--parallel", str(len(os.sched_getaffinity(0)))])
        target.parent.mkdir(parents=True, exist_ok=True)
        self.copy_file(str(build / "python" / "quern" / target.name), str(target))


setup(version=version(),
      package_dir={"": "python"},
      packages=["quern"],
      package_data={"quern": ["*.pyi", "py.typed"]},
      ext_modules=[Extension("quern._quern", sources=[])],
      cmdclass={"build_ext": CMakeBuild})
