"""Fixtures of several tests: examples, and the pretend accelerator."""

import ctypes
import gc
import importlib
import sys
from pathlib import Path

import pytest

import plait_abi

sys.path.insert(0, str(Path(__file__).parent))  # what several tests share
import plugins

EXAMPLES = plugins.EXAMPLES.parent


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


@pytest.fixture(scope="session")
def device_library():
    """The path of the pretend accelerator."""
    return plugins.compiled(plugins.EXAMPLES / "device.c")


@pytest.fixture(scope="module")
def device(device_library):
    """The pretend accelerator, loaded; other modules' tests do not see it."""
    plait_abi.load(str(device_library))
    yield ctypes.CDLL(str(device_library))
    gc.collect()
    importlib.import_module("plait_core").accelerator.synchronize()
    plait_abi.detach("example-device")
