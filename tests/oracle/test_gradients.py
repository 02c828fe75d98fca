"""Agreement with torch on gradients, over the sample inputs of its own operator database.

Each operator that both have and that torch differentiates is called with every sample of float64
and complex128: which results require grad, the gradients of all inputs for drawn gradients of the
results, and the gradients of those once more. `gradient_differences.txt` lists what is not the
same, with the reason of each; an entry that agrees meanwhile is a failure, too.
"""

from __future__ import annotations

import copy
import pathlib
import random
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db

import plait_autograd as pa
import plait_core as pc

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from torch_database import DRAWS, INPLACE, convert, flat, full_name, ours_of, samples_of

DTYPES = ("float64", "complex128")
SMALL = 1 << 11  # elements of all inputs: a matrix of a thousand rows says no more than a small one


def read_differences() -> dict[tuple[str, str, int], str]:
    """The table: an operator, its dtypes or ``*``, the order of the derivative, and the reason."""
    table = {}
    path = pathlib.Path(__file__).parent / "gradient_differences.txt"
    for line in path.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            name, dtypes, orders, reason = line.split(None, 3)
            for dtype in DTYPES if dtypes == "*" else dtypes.split(","):
                for order in (1, 2) if orders == "*" else (int(orders),):
                    table[name, dtype, order] = reason
    return table


DIFFERENCES = read_differences()


class NothingToCompare(Exception):
    """Torch has no derivative here."""


def tensors(value: Any) -> list[Any]:
    """All tensors in arguments, in order."""
    if isinstance(value, (torch.Tensor, pc.Tensor)):
        return [value]
    if isinstance(value, dict):
        return [x for item in value.values() for x in tensors(item)]
    if isinstance(value, (list, tuple)):
        return [x for item in value for x in tensors(item)]
    return []


def differentiable(value: Any) -> bool:
    return bool(value.is_floating_point() or value.is_complex())


def wrapped(info: Any, function: Any) -> Any:
    """The function on the domain that the database names: Hermitian or triangular matrices."""
    domain = info.gradcheck_wrapper.__name__.removeprefix("gradcheck_wrapper_")
    if domain == "hermitian_input":
        return lambda x, *args, **kwargs: function(x + x.mH, *args, **kwargs)
    if info.name in ("cholesky_inverse", "cholesky_solve"):
        at = ("cholesky_inverse", "cholesky_solve").index(info.name)

        def factor(*args: Any, upper: bool = False) -> Any:
            argument = args[at]
            one = 1 + 0 * argument.diagonal(0, -2, -1)
            off = argument.triu(1) if upper else argument.tril(-1)
            factor = off + one.detach().diag_embed()
            return function(*args[:at], factor, *args[at + 1 :], upper=upper)

        return factor
    return function


def seeds(results: list[Any], seed: int) -> list[Any]:
    """Gradients for results, as arrays."""
    rng = np.random.default_rng(seed)
    result = []
    for y in results:
        g = rng.standard_normal(tuple(y.shape))
        if y.is_complex():
            g = g + 1j * rng.standard_normal(tuple(y.shape))
        result.append(np.asarray(g, str(y.dtype).split(".")[-1]))
    return result


def seeds_of(again: list[Any], result: Any, leaves: list[Any]) -> list[Any]:
    """Gradients for those gradients of the leaves that require grad: each leaf has its own."""
    drawn = seeds(leaves, 1)
    return [g for y, g in zip(result, drawn, strict=True) if any(y is each for each in again)]


def theirs(info: Any, sample: Any, order: int) -> tuple[list[bool], list[Any], list[Any]]:
    """Whether each differentiable result requires grad, then the gradients of inputs that do."""
    arguments = (sample.input, *sample.args)
    leaves = [x for x in tensors((arguments, sample.kwargs)) if x.requires_grad]
    results = wrapped(info, info.op)(*arguments, **sample.kwargs)
    if sample.output_process_fn_grad is not None:
        results = sample.output_process_fn_grad(results)
    results = [y for y in tensors(results) if differentiable(y)]
    expected = [y.requires_grad for y in results]
    roots = [y for y in results if y.requires_grad]
    if not roots or not leaves:
        raise NothingToCompare
    g = [torch.from_numpy(x) for x in seeds(roots, 0)]
    result = torch.autograd.grad(roots, leaves, g, create_graph=order == 2, allow_unused=True)
    if order == 2:
        again = [y for y in result if y is not None and y.requires_grad]
        if not again:
            return expected, [None] * len(leaves), leaves
        g = [torch.from_numpy(x) for x in seeds_of(again, result, leaves)]
        result = torch.autograd.grad(again, leaves, g, allow_unused=True)
    return expected, list(result), leaves


def ours(info: Any, sample: Any, order: int, expected: list[bool]) -> list[Any]:
    """The gradients of the same inputs."""
    function = ours_of(info)
    assert function is not None
    arguments = ((sample.input, *sample.args), sample.kwargs)
    args, kwargs = convert(arguments[0]), convert(arguments[1])
    pairs = zip(tensors(arguments), tensors((args, kwargs)), strict=True)
    leaves = [own.requires_grad_() for other, own in pairs if other.requires_grad]
    results: Any = wrapped(info, function)(*args, **kwargs)
    if sample.output_process_fn_grad is not None:
        results = sample.output_process_fn_grad(results)
    results = [y for y in flat(results) if isinstance(y, pc.Tensor) and differentiable(y)]
    assert len(results) == len(expected), f"{len(results)} results, not {len(expected)}"
    roots = [y for y, wants in zip(results, expected, strict=True) if wants]
    seeded = [(y, g) for y, g in zip(roots, seeds(roots, 0), strict=True) if y.requires_grad]
    if not seeded:  # what does not require grad has a gradient of zeros
        return [None] * len(leaves)
    roots, g = [y for y, _ in seeded], [pc.from_numpy(g) for _, g in seeded]
    result = pa.grad(roots, leaves, g, create_graph=order == 2, allow_unused=True)
    if order == 2:
        again = [y for y in result if y is not None and y.requires_grad]
        if not again:
            return [None] * len(leaves)
        g = [pc.from_numpy(x) for x in seeds_of(again, result, leaves)]
        result = pa.grad(again, leaves, g, allow_unused=True)
    return list(result)


def compare(own: Any, other: Any) -> None:
    """Fail unless both are the same gradient; None is one of zeros."""
    if own is None and other is None:
        return
    a = np.zeros(()) if own is None else own.detach().numpy()
    other = None if other is None else other.detach().resolve_conj().resolve_neg()
    b = np.zeros(()) if other is None else other.numpy(force=True)
    if own is not None and other is not None:
        assert a.shape == b.shape and a.dtype == b.dtype, (a.shape, a.dtype, b.shape, b.dtype)
    size = float(np.max(np.abs(b), initial=0.0, where=np.isfinite(b)))
    np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-8 * max(size, 1.0), equal_nan=True)


def cases() -> Iterator[Any]:
    for info in op_db:
        name = full_name(info)
        if (
            name in DRAWS
            or name in INPLACE
            or name == "zero_"
            or ours_of(info) is None
            or not info.supports_autograd
        ):
            continue
        for dtype in DTYPES:
            if getattr(torch, dtype) in info.supported_backward_dtypes("cpu"):
                for order in (1, 2) if info.supports_gradgrad else (1,):
                    yield pytest.param(info, dtype, order, id=f"{name}-{dtype}-{order}")


def disagreements(info: Any, dtype: str, order: int) -> Iterator[str]:
    """One line for each sample on which plait differs."""
    for i, sample in samples_of(info, dtype, requires_grad=True):
        if sum(x.numel() for x in tensors((sample.input, sample.args, sample.kwargs))) > SMALL:
            continue
        try:
            target, expected, _leaves = theirs(info, copy.copy(sample), order)
        except NothingToCompare:
            continue
        except Exception:  # what torch refuses tells nothing
            continue
        try:
            got = ours(info, sample, order, target)
            for own, other in zip(got, expected, strict=True):
                compare(own, other)
        except Exception as error:
            text = " ".join(f"{type(error).__name__}: {error}".split())
            yield f"sample {i}, {sample.summary()}: {text}"[:600]


@pytest.mark.parametrize(("info", "dtype", "order"), list(cases()))
def test_agreement(info: Any, dtype: str, order: int) -> None:
    torch.manual_seed(0)
    random.seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lines = list(disagreements(info, dtype, order))
    reason = DIFFERENCES.get((full_name(info), dtype, order))
    if reason is None:
        assert not lines, f"{len(lines)} samples differ\n" + "\n".join(lines[:3])
    else:
        assert lines, f"gradient_differences.txt says {reason!r}, but all samples agree"
