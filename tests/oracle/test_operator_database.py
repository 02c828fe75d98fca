"""Agreement with torch on the sample inputs of its own operator database.

Each operator that both have is called with every sample of float32, float64, int64, bool and
complex64 that torch accepts: shape, dtype and values must be the same. `differences.txt` lists what
is not, with the reason of each; an entry that agrees meanwhile is a failure, too.
"""

from __future__ import annotations

import pathlib
import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db

import plait_core as pc
import plait_nn

DTYPES = ("float32", "float64", "int64", "bool", "complex64")
TOLERANCES = {"float32": (2e-5, 2e-5), "float64": (1e-7, 1e-9), "complex64": (2e-5, 2e-5)}

DRAWS = {
    *("bernoulli", "cauchy", "exponential", "geometric", "log_normal", "multinomial", "normal"),
    *("normal.in_place", "normal.number_mean", "rand_like", "randint", "randint_like", "randn"),
    *("randn_like", "uniform", "nn.functional.dropout", "nn.functional.alpha_dropout"),
    *("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "empty_permuted"),
    *("nn.functional.dropout2d", "nn.functional.dropout3d", "nn.functional.rrelu"),
}
"""Of these only shape and dtype are known."""

INPLACE = {"cauchy", "exponential", "fill", "geometric", "log_normal", "normal.in_place", "uniform"}
"""Named like a function in the database, but run as the method ``name_``."""

WRAPPED: dict[str, Callable[..., Any]] = {
    "einsum": lambda operands, equation: pc.einsum(equation, operands),
    "where": lambda self, condition, other: pc.where(condition, self, other),
    "nn.functional.embedding": lambda weight, indices, **options: plait_nn.functional.embedding(
        indices, weight, **options
    ),
    "linalg.lstsq.grad_oriented": lambda a, b, driver: pc.linalg.lstsq(a, b, driver=driver)[:2],
    "linalg.pinv.singular": lambda a, b: pc.linalg.pinv(a @ b.mT),
}
"""What the database's own functions of these names do with their arguments."""


def elements(self: Any, results: Any, dim: int = -1) -> list[Any]:
    """The values, and the elements of self that the indices name."""
    values, indices = (*results[:-1],), results[-1]
    if self.ndim == 0:
        return [*values, self]
    short = indices.ndim < self.ndim
    chosen = self.gather(dim, indices.unsqueeze(dim) if short else indices)
    return [*values, chosen.squeeze(dim) if short else chosen]


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


def full_name(info: Any) -> str:
    return f"{info.name}.{info.variant_test_name}" if info.variant_test_name else str(info.name)


def ours_of(info: Any) -> Callable[..., Any] | None:
    """The function of plait that an entry is about, or None."""
    name = info.name
    if full_name(info) in WRAPPED:
        return WRAPPED[full_name(info)]
    if full_name(info) in INPLACE:
        return getattr(pc.Tensor, f"{name}_", None)
    if name.startswith("nn.functional."):
        return getattr(plait_nn.functional, name.removeprefix("nn.functional."), None)
    home: Any = pc
    for part in name.split("."):
        home = getattr(home, part, None)
    if name == "native_batch_norm":  # torch's name of a part of batch_norm that takes other things
        return None
    if home is None or isinstance(home, pc.dtype):
        home = getattr(pc.Tensor, name, None)
    if isinstance(home, property) or (home is not None and not callable(home)):
        return lambda x: getattr(x, name)
    return home  # type: ignore[no-any-return]


def convert(value: Any) -> Any:
    """Torch's objects as plait's, on copies of their elements."""
    if isinstance(value, torch.Tensor) and value.layout == torch.sparse_coo:
        return convert(value.to_dense()).to_sparse()
    if isinstance(value, torch.Tensor):
        value = value.detach().resolve_conj().resolve_neg()
        storage = torch.empty(0, dtype=value.dtype).set_(value.untyped_storage())
        whole = pc.from_dlpack(storage.clone())
        return whole.as_strided(value.shape, value.stride(), value.storage_offset())
    if isinstance(value, torch.dtype):
        return pc.dtype(str(value).removeprefix("torch."))
    if isinstance(value, torch.device):
        return value.type
    if isinstance(value, torch.memory_format):
        return getattr(pc, str(value).removeprefix("torch."))
    if isinstance(value, (list, tuple, torch.Size)):
        kind = list if isinstance(value, list) else tuple
        return kind(convert(each) for each in value)
    if isinstance(value, dict):
        return {key: convert(each) for key, each in value.items() if key != "layout"}
    return value


def flat(value: Any) -> Iterator[Any]:
    """The results one by one."""
    if isinstance(value, (tuple, list)):
        for each in value:
            yield from flat(each)
    else:
        yield value


def compare(ours: Any, theirs: Any, values: bool = True) -> None:
    """Fail unless one result has the other's shape, dtype and (if told so) values."""
    if not isinstance(theirs, torch.Tensor):
        assert ours == theirs or (ours != ours and theirs != theirs)
        return
    assert isinstance(ours, (pc.Tensor, pc.SparseTensor)), type(ours)
    theirs = theirs.detach().resolve_conj().resolve_neg()
    assert (ours.layout == pc.sparse_coo) == (theirs.layout == torch.sparse_coo)
    if theirs.layout == torch.sparse_coo:
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
    got, wanted = list(flat(ours)), list(flat(theirs))
    assert len(got) == len(wanted), f"{len(got)} results, not {len(wanted)}"
    for mine, other in zip(got, wanted, strict=True):
        compare(mine, other, values)


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
    samples = info.sample_inputs("cpu", getattr(torch, dtype), requires_grad=False)
    for i, sample in enumerate(samples):
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
