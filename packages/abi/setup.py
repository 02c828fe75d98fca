"""Build libplait_abi and its Python binding."""

import pathlib
import sys

# The helper builds the package that ships it.
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "src"))

from plait_abi.build import Extension, Library, setup, ship_sources

LIBRARY = Library("plait_abi", ["cpp/**/*.cpp", "cpp/**/*.c", "!cpp/python/*"])

setup(
    package="plait_abi",
    generate=[ship_sources("plait_abi", [LIBRARY], ["cpp/*.hpp", "cpp/cpython/*.hpp"])],
    libraries=[LIBRARY],
    extensions=[Extension("plait_abi.binding", ["cpp/python/*.cpp"], flags=["-O2"])],
)
