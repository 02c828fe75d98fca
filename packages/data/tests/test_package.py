"""The package as a whole: light imports, names, examples that run."""

import doctest
import importlib
import inspect
import pkgutil
import subprocess
import sys

import pytest

import plait_data

MODULES = ["plait_data"] + [
    module.name for module in pkgutil.walk_packages(plait_data.__path__, "plait_data.")
]


def test_import_loads_numpy_and_nothing_else():
    code = (
        "import sys, numpy; before = set(sys.modules); import plait_data;"
        "tops = {name.partition('.')[0] for name in set(sys.modules) - before};"
        "print(sorted(tops - set(sys.stdlib_module_names) - {'numpy'}));"
        "print([m for m in ('gzip', 'multiprocessing', 'socket') if m in sys.modules"
        " and m not in before])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["['plait_data']", "[]"]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    module = importlib.import_module(name)
    assert doctest.testmod(module).failed == 0


def test_every_public_class_and_function_has_an_example():
    for name in plait_data.__all__:
        thing = getattr(plait_data, name)
        if inspect.ismodule(thing) or (inspect.isclass(thing) and issubclass(thing, BaseException)):
            continue
        assert ">>>" in (thing.__doc__ or ""), name


@pytest.mark.parametrize("name", [name for name in MODULES if "._" not in name])
def test_all_is_true(name):
    module = importlib.import_module(name)
    assert all(hasattr(module, public) for public in module.__all__)
