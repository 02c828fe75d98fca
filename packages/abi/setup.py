"""Build libplait_abi and its Python binding."""

import pathlib
import sys

# The helper builds the package that ships it.
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "src"))

from plait_abi.build import Extension, Library, setup

setup(
    package="plait_abi",
    libraries=[Library("plait_abi", ["cpp/**/*.cpp", "cpp/**/*.c", "!cpp/python/*"])],
    extensions=[Extension("plait_abi.binding", ["cpp/python/*.cpp"], flags=["-O2"])],
)
