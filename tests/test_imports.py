"""What importing a package loads, and that the umbrella's names are the packages themselves."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

PACKAGES = (
    "plait_ops",
    "plait_core",
    "plait_autograd",
    "plait_nn",
    "plait_func",
    "plait_graph",
    "plait_optim",
    "plait_data",
    "plait_multiprocessing",
    "plait_profiler",
    "plait_distributed",
    "plait_onnx",
    "plait_ray",
    "plait",
)


def loaded_by(statement: str) -> set[str]:
    watched = (*PACKAGES, "numpy", "torch")
    code = f"import sys; {statement}; print(*[m for m in {watched!r} if m in sys.modules])"
    return set(
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.split()
    )


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        ("plait_abi", set()),
        ("plait_ops", {"plait_ops"}),
        ("plait_data", {"plait_data", "numpy"}),
        ("plait_optim", {"plait_optim"}),
        ("plait_multiprocessing", {"plait_multiprocessing"}),
        ("plait_profiler", {"plait_profiler"}),
        ("plait_distributed", {"plait_distributed", "plait_multiprocessing"}),
        (
            "plait_ray",
            {
                *("plait_ray", "plait_distributed", "plait_multiprocessing", "plait_autograd"),
                *("plait_ops", "numpy"),
            },
        ),
        ("plait_autograd", {"plait_autograd", "plait_ops"}),
        ("plait_core", {"plait_core", "plait_ops", "numpy"}),
        ("plait_nn", {"plait_nn", "plait_core", "plait_ops", "numpy"}),
        (
            "plait_func",
            {"plait_func", "plait_nn", "plait_autograd", "plait_core", "plait_ops", "numpy"},
        ),
        (
            "plait_graph",
            {
                *("plait_graph", "plait_func", "plait_nn", "plait_autograd", "plait_core"),
                *("plait_ops", "numpy"),
            },
        ),
        (
            "plait_onnx",
            {
                *("plait_onnx", "plait_graph", "plait_func", "plait_nn", "plait_autograd"),
                *("plait_core", "plait_ops", "numpy"),
            },
        ),
    ],
)
def test_an_import_loads_its_own_dependencies_alone(name: str, allowed: set[str]) -> None:
    assert loaded_by(f"import {name}") <= allowed


def test_the_umbrella_loads_on_access() -> None:
    assert not loaded_by("import plait") & {
        "plait_nn",
        "plait_func",
        "plait_optim",
        "plait_data",
        "plait_multiprocessing",
        "plait_profiler",
        "plait_distributed",
    }
    assert "plait_optim" in loaded_by("import plait; plait.optim.SGD")


def test_the_umbrella_is_the_packages() -> None:
    import plait
    import plait.nn.functional
    import plait_data
    import plait_nn
    import plait_nn.functional
    from plait.utils.data import DataLoader

    assert plait.nn is plait_nn
    assert plait.nn.functional is plait_nn.functional
    assert DataLoader is plait_data.DataLoader
    assert plait.nn.Linear.__module__.startswith("plait_nn")
    layer = pickle.loads(pickle.dumps(plait.nn.Linear(2, 3)))
    assert type(layer) is plait_nn.Linear
