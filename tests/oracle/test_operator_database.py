"""Agreement with torch on the sample inputs of its own operator database.

Each operator that both have is called with every sample of float32, float64, int64, bool and
complex64 that torch accepts: shape, dtype and values must be the same. `differences.txt` lists what
is not, with the reason of each; an entry that agrees meanwhile is a failure, too.
"""

from __future__ import annotations

import pathlib
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
    return info.name + (f".{info.variant_test_name}" if info.variant_test_name else "")


def ours_of(info: Any) -> Callable[..., Any] | None:
    """The function of plait that an entry is about, or None."""
    name = info.name
    if full_name(info) in INPLACE:
        return getattr(pc.Tensor, f"{name}_", None)
    if name.startswith("nn.functional."):
        return getattr(plait_nn.functional, name.removeprefix("nn.functional."), None)
    home: Any = pc
    for part in name.split("."):
        home = getattr(home, part, None)
    if home is None or isinstance(home, pc.dtype):
        home = getattr(pc.Tensor, name, None)
    if isinstance(home, property) or (home is not None and not callable(home)):
        return lambda x: getattr(x, name)
    return home  # type: ignore[no-any-return]


def convert(value: Any) -> Any:
    """Torch's objects as plait's, on copies of their elements."""
    if isinstance(value, torch.Tensor):
        return pc.from_dlpack(value.detach().clone(memory_format=torch.preserve_format))
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


def compare(name: str, ours: Any, theirs: Any) -> None:
    """Fail unless one result has the other's shape, dtype and values."""
    if not isinstance(theirs, torch.Tensor):
        assert ours == theirs or (ours != ours and theirs != theirs)
        return
    assert isinstance(ours, pc.Tensor), type(ours)
    theirs = theirs.detach().resolve_conj().resolve_neg()
    assert tuple(ours.shape) == tuple(theirs.shape)
    assert str(ours.dtype).split(".")[-1] == str(theirs.dtype).removeprefix("torch.")
    if name in DRAWS:
        return
    dtype = str(theirs.dtype).removeprefix("torch.")
    rtol, atol = TOLERANCES.get(dtype.replace("complex128", "float64"), (0.0, 0.0))
    if dtype == "bfloat16":
        ours, theirs = ours.float(), theirs.float()
    np.testing.assert_allclose(
        ours.detach().numpy(), theirs.numpy(), rtol=rtol, atol=atol, equal_nan=True
    )


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
        arguments = convert((sample.input, *sample.args)), convert(sample.kwargs)
        try:
            expected = variant(sample.input, *sample.args, **sample.kwargs)
        except Exception:  # what torch refuses tells nothing
            continue
        try:
            got = list(flat(function(*arguments[0], **arguments[1])))
            wanted = list(flat(expected))
            assert len(got) == len(wanted), f"{len(got)} results, not {len(wanted)}"
            for ours, theirs in zip(got, wanted, strict=True):
                compare(name, ours, theirs)
        except Exception as error:
            text = " ".join(f"{type(error).__name__}: {error}".split())
            yield f"sample {i}, {sample.summary()}: {text}"[:600]


@pytest.mark.parametrize(("info", "dtype"), cases())
def test_agreement(info: Any, dtype: str) -> None:
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lines = list(disagreements(info, dtype))
    reason = DIFFERENCES.get((full_name(info), dtype))
    if reason is None:
        assert not lines, f"{len(lines)} samples differ\n" + "\n".join(lines[:3])
    else:
        assert lines, f"differences.txt says {reason!r}, but all samples agree"
