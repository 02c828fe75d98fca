"""The package as a whole: its names, its documentation, its independence."""

import doctest
import importlib
import inspect
import pkgutil
import subprocess
import sys

import pytest

import plait_nn

MODULES = ["plait_nn"]
MODULES += [m.name for m in pkgutil.walk_packages(plait_nn.__path__, "plait_nn.")]
PUBLIC = ["plait_nn", "plait_nn.functional", "plait_nn.init", "plait_nn.utils"]


@pytest.mark.parametrize("name", MODULES)
def test_doctests(name):
    result = doctest.testmod(importlib.import_module(name), raise_on_error=False)
    assert result.failed == 0


@pytest.mark.parametrize("name", [name for name in MODULES if "._" not in name])
def test_all_names_exist(name):
    module = importlib.import_module(name)
    assert [n for n in module.__all__ if not hasattr(module, n)] == []


@pytest.mark.parametrize("name", PUBLIC)
def test_everything_public_is_documented(name):
    module = importlib.import_module(name)
    things = [getattr(module, n) for n in module.__all__]
    assert [t for t in things if not inspect.getdoc(t)] == []
    visible = [t for t in things if not inspect.ismodule(t)]
    assert [t for t in visible if ">>>" not in inspect.getdoc(t)] == []


def test_import_does_not_load_autograd():
    code = "import sys, plait_nn; sys.exit('plait_autograd' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_model_runs_without_autograd():
    code = (
        "import sys; sys.modules['plait_autograd'] = None\n"
        "import plait_core as pc, plait_nn as nn\n"
        "model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())\n"
        "model.load_state_dict(model.state_dict())\n"
        "assert model(pc.ones(1, 2)).shape == (1, 3)\n"
        "model.double().zero_grad()\n"
        "assert not model[0].weight.requires_grad\n"
        "try:\n"
        "    model(pc.ones(1, 2, dtype=pc.float64)).sum().backward()\n"
        "except ImportError as error:\n"
        "    assert 'plait-autograd' in str(error), error\n"
        "else:\n"
        "    raise AssertionError('backward ran without an engine')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
