"""Every public name of every package has a docstring with an example that prints what it shows.

Core's names, most of which come from the specs, are checked in packages/core/tests as well.
"""

from __future__ import annotations

import doctest
import inspect
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plait_data import set_batch_converter, set_seed_source

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))
from count_examples import needs_example, public_modules

PACKAGES = (
    "plait_abi",
    "plait_autograd",
    "plait_nn",
    "plait_optim",
    "plait_data",
    "plait_multiprocessing",
    "plait_profiler",
    "plait_distributed",
    "plait_func",
    "plait_graph",
    "plait_onnx",
    "plait_ray",
)


def ours(thing: Any) -> bool:
    """Return whether an object is of this repository and has a docstring of its own.

    Operators have theirs from the specs: the docstring of their type is that of an instance.
    """
    if inspect.isdatadescriptor(getattr(thing, "__doc__", None)):
        return False
    return not str(getattr(thing, "__module__", None) or "").startswith("multiprocessing")


def members() -> Iterator[tuple[str, Any]]:
    """Yield all public names with their objects."""
    for package in PACKAGES:
        for module in public_modules(package):
            for name in module.__all__:
                thing = getattr(module, name)
                if not ours(thing):
                    continue  # multiprocessing has the names of the standard module
                if not inspect.ismodule(thing) and callable(thing):
                    yield f"{module.__name__}.{name}", thing


MEMBERS = dict(members())
TEXTS = {inspect.getdoc(thing) or "": name for name, thing in MEMBERS.items()}


def test_the_walk_finds_the_names() -> None:
    assert {
        "plait_autograd.Node",
        "plait_autograd.forward_ad.make_dual",
        "plait_autograd.functional.jvp",
        "plait_autograd.graph.to_dot",
        "plait_data.WorkerInfo",
        "plait_distributed.DistributedDataParallel",
        "plait_distributed.nn.functional.all_to_all",
        "plait_func.pytree.tree_map",
        "plait_func.vmap",
        "plait_graph.Graph",
        "plait_graph.passes.fold_constants",
        "plait_multiprocessing.Group",
        "plait_multiprocessing.Queue",
        "plait_nn.functional.relu",
        "plait_optim.lr_scheduler.StepLR",
        "plait_profiler.Event",
    } <= set(MEMBERS)


@pytest.mark.parametrize("name", MEMBERS)
def test_the_docstring_has_an_example(name: str) -> None:
    text = inspect.getdoc(MEMBERS[name]) or ""
    lines = text.partition(">>>")[0].replace("Example:", "").splitlines()
    assert any(len(line.split()) > 1 and "->" not in line for line in lines), "no sentence"
    assert ">>>" in text or not needs_example(MEMBERS[name]), "no example"


@pytest.fixture(name="data_alone")
def plait_data_as_it_is_alone() -> Iterator[None]:
    """Undo, for one test, the settings that the umbrella package makes."""
    before = set_batch_converter(None), set_seed_source(None)
    yield
    set_batch_converter(before[0])
    set_seed_source(before[1])


@pytest.mark.usefixtures("data_alone")
@pytest.mark.parametrize("name", TEXTS.values())
def test_the_example_prints_its_output(name: str, tmp_path: Path) -> None:
    """Run examples in an empty folder, as some write files."""
    before = Path.cwd()
    os.chdir(tmp_path)
    try:
        text = inspect.getdoc(MEMBERS[name]) or ""
        names = {"__name__": "example"}  # functions of the example are of this module
        test = doctest.DocTestParser().get_doctest(text, names, name, None, 0)
        failures: list[str] = []
        doctest.DocTestRunner(verbose=False).run(test, out=failures.append)
    finally:
        os.chdir(before)
    assert not failures, "".join(failures)


def test_examples_of_methods_run(tmp_path: Path) -> None:
    """Doctests of methods, and of the modules themselves."""
    code = (
        "import doctest, importlib, pkgutil, sys\n"
        "failed = attempted = 0\n"
        f"for name in {PACKAGES!r}:\n"
        "    package = importlib.import_module(name)\n"
        "    names = [m.name for m in pkgutil.walk_packages(package.__path__, name + '.')]\n"
        "    for each in [name, *names]:\n"
        "        result = doctest.testmod(importlib.import_module(each))\n"
        "        failed, attempted = failed + result.failed, attempted + result.attempted\n"
        "sys.exit(failed > 0 or attempted < 100)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout + done.stderr
