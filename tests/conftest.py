"""Fixtures of the tests of the examples."""

import importlib
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture(scope="session")
def example():
    """A function that imports an example as a program in its folder would."""
    sys.path.insert(0, str(EXAMPLES))
    yield importlib.import_module
    sys.path.remove(str(EXAMPLES))


@pytest.fixture(scope="session")
def digits(example, tmp_path_factory):
    """A folder with the files of MNIST."""
    folder = tmp_path_factory.mktemp("mnist")
    example("mnist_files").write_files(folder)
    return folder


@pytest.fixture(scope="session")
def is_png():
    """A function that returns whether a file is a PNG file of over 5000 bytes."""

    def check(path):
        return path.read_bytes().startswith(b"\x89PNG") and path.stat().st_size > 5000

    return check
