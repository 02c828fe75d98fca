"""Calls that succeed with a warning, as in PyTorch: the class, and how the text begins.

A warning names the line of the program that called plait, and Python's filters make it an error.
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plait_core as pc

# what texts begin with, up to the end of a sentence or clause
FREEDOM = r"{}\(\): degrees of freedom is <= 0\."
COMPLEX = "Casting complex values to real discards the imaginary part"
COPY = (
    r"To copy construct from a tensor, it is recommended to use sourceTensor.detach\(\).clone\(\)"
)
REVERSED = (
    "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated"
)
GRID = "torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument"
WINDOW = "A window was not provided. A rectangular window will be applied"
READ_ONLY = "The given NumPy array is not writable"
RESIZED = "An output with one or more elements was resized since it had shape"


def _complex() -> pc.Tensor:
    return pc.complex(pc.ones(2), pc.ones(2))


def _read_only() -> Any:
    array = np.arange(3.0)
    array.flags.writeable = False
    return array


WARNING: dict[str, tuple[str, Callable[[], Any]]] = {
    "var of one element": (FREEDOM.format("var"), lambda: pc.ones(1).var()),
    "std of one row": (FREEDOM.format("std"), lambda: pc.std(pc.ones(1, 3), 0)),
    "var with a correction": (FREEDOM.format("var"), lambda: pc.var(pc.ones(3), correction=3)),
    "var of no elements": (FREEDOM.format("var"), lambda: pc.empty(0).var()),
    "var_mean": (FREEDOM.format("var_mean"), lambda: pc.var_mean(pc.ones(1))),
    "std_mean": (FREEDOM.format("std_mean"), lambda: pc.std_mean(pc.ones(1, 3), dim=0)),
    "var, unbiased": (FREEDOM.format("var"), lambda: pc.var(pc.ones(1), True)),
    "cov": (FREEDOM.format("cov"), lambda: pc.cov(pc.ones(3, 1))),
    "to": (COMPLEX, lambda: _complex().to(pc.float32)),
    "float": (COMPLEX, lambda: _complex().float()),
    "copy_": (COMPLEX, lambda: pc.zeros(2).copy_(_complex())),
    "setitem": (COMPLEX, lambda: pc.zeros(2).__setitem__(slice(None), _complex())),
    "tensor of a complex array": (
        COMPLEX,
        lambda: pc.tensor(np.array([1 + 2j]), dtype=pc.float32),
    ),
    "T of a vector": (REVERSED, lambda: pc.ones(3).T),
    "T of a batch": (REVERSED, lambda: pc.ones(2, 3, 4).T),
    "T of a number": (r"Tensor.T is deprecated on 0-D tensors\.", lambda: pc.tensor(1.0).T),
    "H of a number": (r"Tensor.H is deprecated on 0-D tensors\.", lambda: pc.tensor(1.0).H),
    "tensor of a tensor": (COPY, lambda: pc.tensor(pc.ones(2))),
    "new_tensor of a tensor": (COPY, lambda: pc.ones(2).new_tensor(pc.ones(2))),
    "meshgrid": (GRID, lambda: pc.meshgrid(pc.arange(2), pc.arange(3))),
    "stft": (WINDOW, lambda: pc.stft(pc.ones(64), 16, return_complex=True)),
    "istft": (WINDOW, lambda: pc.istft(pc.ones(9, 5, dtype=pc.complex64), 16)),
    "stft of pairs": (
        "stft with return_complex=False is deprecated",
        lambda: pc.stft(pc.ones(64), 16, window=pc.ones(16), return_complex=False),
    ),
    "cross": (
        r"Using torch.cross without specifying the dim arg is deprecated\.",
        lambda: pc.cross(pc.ones(3), pc.ones(3)),
    ),
    "from_numpy": (READ_ONLY, lambda: pc.from_numpy(_read_only())),
    "as_tensor": (READ_ONLY, lambda: pc.as_tensor(_read_only())),
    "asarray": (READ_ONLY, lambda: pc.asarray(_read_only())),
    "frombuffer": (
        "The given buffer is not writable",
        lambda: pc.frombuffer(bytes(4), dtype=pc.uint8),
    ),
    "out": (RESIZED, lambda: pc.add(pc.ones(3), 1, out=pc.empty(1))),
}

QUIET: dict[str, Callable[[], Any]] = {
    "var of two elements": lambda: pc.ones(2).var(),
    "var without a correction": lambda: pc.ones(1).var(correction=0),
    "cov": lambda: pc.cov(pc.ones(3, 2)),
    "abs": lambda: _complex().abs(),
    "real": lambda: _complex().real,
    "bool": lambda: _complex().bool(),
    "T of a matrix": lambda: pc.ones(2, 3).T,
    "mT": lambda: pc.ones(2, 3, 4).mT,
    "as_tensor of a tensor": lambda: pc.as_tensor(pc.ones(2)),
    "asarray with a copy": lambda: pc.asarray(_read_only(), copy=True),
    "tensor of an array": lambda: pc.tensor(_read_only()),
    "asarray of bytes with a copy": lambda: pc.asarray(bytes(4), copy=True, dtype=pc.uint8),
    "meshgrid": lambda: pc.meshgrid(pc.arange(2), indexing="ij"),
    "cartesian_prod": lambda: pc.cartesian_prod(pc.arange(2), pc.arange(3)),
    "stft": lambda: pc.stft(pc.ones(64), 16, window=pc.ones(16), return_complex=True),
    "cross": lambda: pc.cross(pc.ones(3), pc.ones(3), dim=0),
    "linalg.cross": lambda: pc.linalg.cross(pc.ones(3), pc.ones(3)),
    "out without elements": lambda: pc.add(pc.ones(3), 1, out=pc.empty(0)),
    "out of a function that creates": lambda: pc.full((3,), 1.0, out=pc.empty(2)),
}


@pytest.mark.parametrize("name", WARNING)
def test_a_call_warns_about_its_own_line(name: str) -> None:
    text, call = WARNING[name]
    with pytest.warns(UserWarning, match=f"^{text}") as seen:
        call()
    assert len(seen) == 1
    assert (seen[0].filename, seen[0].category) == (__file__, UserWarning)


@pytest.mark.parametrize("name", QUIET)
def test_a_call_does_not_warn(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        QUIET[name]()


def test_a_filter_makes_the_warning_of_an_operator_an_error() -> None:
    x = pc.zeros(2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            with pytest.raises(UserWarning, match=FREEDOM.format("var")):
                pc.ones(1).var()
            with pytest.raises(UserWarning, match=COMPLEX):
                x.copy_(_complex())
    assert pc.ones(2).var().item() == 0  # no error is left over


def test_a_loop_warns_once() -> None:
    program = "import plait_core as pc\nfor _ in range(3):\n    pc.ones(1).var()"
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stderr.count("degrees of freedom") == 1, run.stderr
