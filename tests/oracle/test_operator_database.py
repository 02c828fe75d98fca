"""Agreement with torch on the sample inputs of its own operator database.

Each operator that both have is called with every sample of float32, float64, int64, bool and
complex64 that torch accepts: shape, dtype and values must be the same. `differences.txt` lists what
is not, with the reason of each; an entry that agrees meanwhile is a failure, too.
"""

from __future__ import annotations

import pathlib
import random
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db

import plait_core as pc

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from torch_database import (
    DRAWS,
    INPLACE,
    convert,
    flat,
    full_name,
    ours_of,
    samples_of,
)

DTYPES = ("float32", "float64", "int64", "bool", "complex64")
TOLERANCES = {"float32": (2e-5, 2e-5), "float64": (1e-7, 1e-9), "complex64": (2e-5, 2e-5)}


def elements(self: Any, results: Any, dim: int = -1) -> list[Any]:
    """The values, and the elements of self that the indices name."""
    values, indices = (*results[:-1],), results[-1]
    if self.ndim == 0:
        return [*values, self]
    short = indices.ndim < self.ndim
    choice = self.gather(dim, indices.unsqueeze(dim) if short else indices)
    return [*values, choice.squeeze(dim) if short else choice]


INVARIANTS: dict[str, Callable[..., Any]] = {
    "kthvalue": lambda r, self, k, dim=-1, keepdim=False: elements(self, r, dim),
    "mode": lambda r, self, dim=-1, keepdim=False: elements(self, r, dim),
    "topk": lambda r, self, k, dim=-1, *rest: elements(self, r, dim),
    "sort": lambda r, self, dim=-1, descending=False, stable=False: (
        r if stable else elements(self, r, dim)
    ),
    "argsort": lambda r, self, dim=-1, descending=False, stable=False: (
        r if stable else elements(self, [r], dim)
    ),
    "matrix_exp": lambda r, self: (
        [size := r.abs().amax((-2, -1), keepdim=True), r / size] if r.shape[-1] else r
    ),
}
"""What must be the same of operators that have several right results: of equal elements any may be
named, so the elements that the indices name; an exponential is exact to its largest element."""

PHASES = {"svd", "linalg.svd", "linalg.eig", "linalg.eigh"}
"""Vectors are known up to a factor; the samples of the database say what of them is compared."""


def read_differences() -> dict[tuple[str, str], str]:
    """The table: an operator, its dtypes or ``*``, and the reason."""
    table = {}
    text = (pathlib.Path(__file__).parent / "differences.txt").read_text()
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            name, dtypes, reason = line.split(None, 2)
            for dtype in DTYPES if dtypes == "*" else dtypes.split(","):
                table[name, dtype] = reason
    return table


DIFFERENCES = read_differences()


def compare(ours: Any, theirs: Any, values: bool = True) -> None:
    """Fail unless one result has the other's shape, dtype and (if told so) values."""
    if not isinstance(theirs, torch.Tensor):
        assert ours == theirs or (ours != ours and theirs != theirs)
        return
    assert isinstance(ours, (pc.Tensor, pc.SparseTensor, pc.CompressedTensor)), type(ours)
    if theirs.layout == torch.strided:
        theirs = theirs.detach().resolve_conj().resolve_neg()
    assert str(ours.layout).split(".")[-1] == str(theirs.layout).split(".")[-1]
    if theirs.layout != torch.strided:
        ours, theirs = ours.to_dense(), theirs.to_dense()
    assert tuple(ours.shape) == tuple(theirs.shape)
    assert str(ours.dtype).split(".")[-1] == str(theirs.dtype).removeprefix("torch.")
    if not values:
        return
    dtype = str(theirs.dtype).removeprefix("torch.")
    rtol, atol = TOLERANCES.get(dtype.replace("complex128", "float64"), (0.0, 0.0))
    if dtype == "bfloat16":
        ours, theirs = ours.float(), theirs.float()
    np.testing.assert_allclose(
        ours.detach().numpy(), theirs.numpy(), rtol=rtol, atol=atol, equal_nan=True
    )


def compare_all(ours: Any, theirs: Any, values: bool = True) -> None:
    """Compare results one by one."""
    got, expected = list(flat(ours)), list(flat(theirs))
    assert len(got) == len(expected), f"{len(got)} results, not {len(expected)}"
    for own, other in zip(got, expected, strict=True):
        compare(own, other, values)


def cases() -> Iterator[Any]:
    for info in op_db:
        for dtype in DTYPES:
            if ours_of(info) is not None and getattr(torch, dtype) in info.dtypes:
                yield pytest.param(info, dtype, id=f"{full_name(info)}-{dtype}")


def disagreements(info: Any, dtype: str) -> Iterator[str]:
    """One line for each sample on which plait differs."""
    function, name = ours_of(info), full_name(info)
    assert function is not None
    variant = info.inplace_variant if name in INPLACE else info.op
    for i, sample in samples_of(info, dtype, requires_grad=False):
        try:
            arguments = convert((sample.input, *sample.args)), convert(sample.kwargs)
        except NotImplementedError as error:  # a layout that plait does not have
            yield f"sample {i}, {sample.summary()}: {error}"
            continue
        try:
            expected = variant(sample.input, *sample.args, **sample.kwargs)
        except Exception:  # what torch refuses tells nothing
            continue
        try:
            got = function(*arguments[0], **arguments[1])
            free = name in DRAWS or name in PHASES or name in INVARIANTS
            compare_all(got, expected, values=not free)
            if name in PHASES:
                compare_all(*map(sample.output_process_fn_grad, (got, expected)))
            elif name in INVARIANTS:
                ours = INVARIANTS[name](got, *arguments[0], **arguments[1])
                theirs = (sample.input, *sample.args)
                compare_all(ours, INVARIANTS[name](expected, *theirs, **sample.kwargs))
        except Exception as error:
            text = " ".join(f"{type(error).__name__}: {error}".split())
            yield f"sample {i}, {sample.summary()}: {text}"[:600]


@pytest.mark.parametrize(("info", "dtype"), list(cases()))
def test_agreement(info: Any, dtype: str) -> None:
    torch.manual_seed(0)
    random.seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lines = list(disagreements(info, dtype))
    reason = DIFFERENCES.get((full_name(info), dtype))
    if reason is None:
        assert not lines, f"{len(lines)} samples differ\n" + "\n".join(lines[:3])
    else:
        assert lines, f"differences.txt says {reason!r}, but all samples agree"
