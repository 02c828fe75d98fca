"""A star import of each module leaves the names that PyTorch's leaves, and hides no other built-in
function.
"""

from __future__ import annotations

import builtins
import importlib
import json
import subprocess
import sys
from typing import Any

import pytest

from plait_torch import _module_names, _star_names
from plait_torch._finder import Facade

TABLE = {module: set(names.split()) for module, names in _star_names.table().items()}
BUILTINS = {name for name in dir(builtins) if not name.startswith("_")}
# PyTorch's need a package that is not there, or can't be imported with a star
OUTSIDE = {
    *("torch.ops", "torch.utils.tensorboard", "torch.utils.tensorboard.writer"),
    *("torch.utils.tensorboard.summary", "torch.distributed.rpc.api"),
}


def left_by(module: str) -> dict[str, Any]:
    space: dict[str, Any] = {}
    exec(f"from {module} import *", space)
    space.pop("__builtins__")
    return space


@pytest.mark.parametrize("module", TABLE)
def test_a_star_import_leaves_pytorchs_names(torch: Any, module: str) -> None:
    there = importlib.import_module(module)
    left = set(left_by(module))
    assert not (left - TABLE[module]) & BUILTINS
    if isinstance(there, Facade):
        assert left == {name for name in TABLE[module] if hasattr(there, name)}
    elif hasattr(there, "__all__"):  # a module of plait's own, with names of its own
        assert left == set(there.__all__)


def test_the_table_has_every_public_module() -> None:
    public = {
        name
        for name in _module_names.PLACES
        if not any(part.startswith("_") for part in name.split("."))
    }
    assert public - TABLE.keys() <= OUTSIDE


def test_names_that_programs_use_are_left(torch: Any) -> None:
    assert {"Dataset", "DataLoader", "random_split"} <= left_by("torch.utils.data").keys()
    assert {"Tensor", "zeros", "float32"} <= left_by("torch").keys()
    assert left_by("torch.nn.modules.linear").keys() >= {"Linear", "Bilinear"}
    assert "iter" not in left_by("torch.utils.data") and "abs" not in left_by("torch.functional")


def test_a_module_outside_of_the_table_hides_no_builtin() -> None:
    known = ["iter", "map", "Dataset", "_hidden"]
    assert _star_names.left_by("torch.not_in_the_table", known) == ["Dataset"]


# What a process finds: star imports of plait's modules, and the built-in names that they hide.
FIND = """
import builtins, json, pkgutil, types, warnings
import plait
warnings.simplefilter("ignore")
found = {}
for name in ["", *(n for n in dir(plait) if isinstance(getattr(plait, n), types.ModuleType))]:
    top = f"plait.{name}".rstrip(".")
    inner = pkgutil.walk_packages(getattr(getattr(plait, name, 0), "__path__", ()), f"{top}.")
    for path in [top, *(each.name for each in inner)]:
        if any(part.startswith("_") for part in path.split(".")) or "__main__" in path:
            continue
        space = {}
        try:
            exec(f"from {path} import *", space)
        except ImportError:  # it needs a package that is not there
            continue
        found[path] = [n for n in space if hasattr(builtins, n) and not n.startswith("_")]
print(json.dumps(found))
"""

# the array API's standard names, the language of operators' definitions, and `compile`, which
# PyTorch has in `torch`
ELSEWHERE = ("plait.array_api", "plait.core.array_api", "plait.ops", "plait.graph")


def test_own_modules_hide_no_other_builtin() -> None:
    """In a process of its own, as tests import what is optional."""
    output = subprocess.run(
        [sys.executable, "-c", FIND], capture_output=True, text=True, check=True
    )
    result: dict[str, list[str]] = json.loads(output.stdout)
    assert len(result) > 20
    for module, hidden in result.items():
        if module.startswith(ELSEWHERE):
            continue
        short = module.replace("plait.core", "plait", 1).replace("plait", "torch", 1)
        assert set(hidden) <= TABLE.get(short, set()), module
