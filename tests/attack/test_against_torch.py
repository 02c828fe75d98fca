"""Random configurations of pools, interpolation, scans and bags against PyTorch's values.

The samples of PyTorch's own operator database are compared in `tests/oracle`; these are the shapes
and options that it does not have. What differs on purpose stands in `DIFFERS`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import plait  # noqa: E402
import plait_nn.functional as F  # noqa: E402

T = torch.nn.functional
Call = tuple[str, Callable[..., Any], Callable[..., Any], list[Any], dict[str, Any]]

DIFFERS = (
    "smaller than kernel size",  # avg_pool3d of torch forgets padding and ceil_mode in this check
    "Expected grad_output to have non-zero size",  # backward of an empty result
    "must be Tensor, not list",  # lp_pool1d of torch does not take a list
)
"""What PyTorch refuses with these words and plait computes."""


def convert(value: Any) -> Any:
    """A leaf of plait with the same elements."""
    if not isinstance(value, torch.Tensor):
        return value
    made = plait.from_numpy(value.detach().numpy().copy())
    return made.requires_grad_() if value.requires_grad else made


def outcome(function: Callable[..., Any], args: list[Any], options: dict[str, Any]) -> Any:
    """Results and gradients of floating arguments, or the exception."""
    try:
        made = function(*args, **options)
        parts = list(made) if isinstance(made, (tuple, list)) else [made]
        leaves = [a for a in args if getattr(a, "requires_grad", False)]
        if leaves and parts[0].requires_grad:
            parts[0].sum().backward()
            parts += [leaf.grad for leaf in leaves]
        return [part.detach().numpy() for part in parts]
    except Exception as error:
        return error


def compare(call: Call) -> None:
    name, ours, theirs, args, options = call
    shown = [tuple(a.shape) if isinstance(a, torch.Tensor) else a for a in args]
    what = f"{name}({shown}, {options})"
    mine = outcome(ours, [convert(a) for a in args], options)
    wanted = outcome(theirs, args, options)
    if isinstance(wanted, Exception):
        allowed = isinstance(mine, Exception) or any(text in str(wanted) for text in DIFFERS)
        assert allowed, f"{what}: PyTorch says {wanted!r}"
        return
    assert not isinstance(mine, Exception), f"{what}: {mine!r}"
    assert len(mine) == len(wanted), what
    for got, want in zip(mine, wanted, strict=True):
        assert got.shape == want.shape and got.dtype == want.dtype, what
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4, err_msg=what)


def pair(rng: random.Random, low: int, high: int, dims: int) -> Any:
    """One number, or one for each dimension."""
    return rng.choice([rng.randint(low, high), [rng.randint(low, high) for _ in range(dims)]])


def image(rng: random.Random, dims: int, batch: bool = False) -> Any:
    """A small image, sometimes not contiguous, that requires grad."""
    lead = [rng.randint(1, 2), rng.randint(1, 5)][0 if batch or rng.random() < 0.7 else 1 :]
    shape = [*lead, *(rng.randint(1, 8) for _ in range(dims))]
    x = torch.randn(shape, generator=torch.Generator().manual_seed(rng.randrange(2**31)))
    return x.requires_grad_()


def pool(rng: random.Random) -> Call:
    dims = rng.randint(1, 3)
    kind = rng.choice(["max", "avg", "adaptive_max", "adaptive_avg"])
    name = f"{kind}_pool{dims}d"
    x, options = image(rng, dims), {}
    if kind.startswith("adaptive"):
        return name, getattr(F, name), getattr(T, name), [x, pair(rng, 0, 6, dims)], {}
    options["kernel_size"] = pair(rng, 1, 5, dims)
    options["ceil_mode"] = rng.random() < 0.5
    if rng.random() < 0.7:
        options["stride"] = pair(rng, 1, 4, dims)
    if rng.random() < 0.5:
        options["padding"] = pair(rng, 0, 2, dims)
    if kind == "max":
        options["dilation"] = pair(rng, 1, 3, dims) if rng.random() < 0.4 else 1
        options["return_indices"] = rng.random() < 0.5
    else:
        options["count_include_pad"] = rng.random() < 0.5
    return name, getattr(F, name), getattr(T, name), [x], options


def interpolation(rng: random.Random) -> Call:
    dims = rng.randint(1, 3)
    linear = {1: ["linear"], 2: ["bilinear", "bicubic"], 3: ["trilinear"]}[dims]
    options: dict[str, Any] = {"mode": rng.choice(["nearest", "nearest-exact", *linear])}
    if rng.random() < 0.7:
        many = [rng.uniform(0.5, 2.5) for _ in range(dims)]
        options["scale_factor"] = rng.choice([many, 1.1, rng.uniform(1.0, 1.2), many[0]])
    else:
        options["size"] = pair(rng, 1, 12, dims)
    if options["mode"] in linear:
        options["align_corners"] = rng.choice([True, False])
    if rng.random() < 0.2:
        options["recompute_scale_factor"] = rng.choice([True, False])
    x = image(rng, dims, True)
    if options["mode"] in ("nearest", "nearest-exact", "bicubic"):
        # torch's gradient for equal sizes is of other places than its values
        x = x.detach()
    return "interpolate", F.interpolate, T.interpolate, [x], options


def bag(rng: random.Random) -> Call:
    """Offsets that PyTorch reads memory astray for are left out: it crashes on them."""
    rows, n = rng.randint(1, 5), rng.choice([0, 0, 1, 4, 7])
    weight = torch.randn(rows, rng.randint(1, 3)).requires_grad_()
    places = torch.tensor([rng.randrange(rows) for _ in range(n)], dtype=torch.int64)
    starts = sorted(rng.randint(0, n) for _ in range(rng.randint(0 if n == 0 else 1, 4)))
    starts = [0, *starts[1:]] if starts else []
    last = rng.random() < 0.5
    if last:
        starts = [*starts, n] if n else starts or [0]
    options = {"mode": rng.choice(["sum", "mean", "max"]), "include_last_offset": last}
    offsets = torch.tensor(starts, dtype=torch.int64)
    return "embedding_bag", F.embedding_bag, T.embedding_bag, [places, weight, offsets], options


def scan(rng: random.Random) -> Call:
    name = rng.choice(["cumsum", "cumprod", "logcumsumexp", "cummax", "cummin"])
    shape = [rng.choice([1, 2, 3, 70]) for _ in range(rng.randint(1, 3))]
    dtype = rng.choice([torch.float32, torch.float64])
    x = torch.randn(shape, dtype=dtype)
    x = x.transpose(0, -1) if rng.random() < 0.4 else x
    x = x.detach().requires_grad_()
    dim = rng.randrange(-len(shape), len(shape))
    return name, getattr(plait, name), getattr(torch, name), [x, dim], {}


def convolution(rng: random.Random) -> Call:
    dims, groups = rng.randint(1, 3), rng.choice([1, 1, 2])
    channels, made = groups * rng.randint(1, 3), groups * rng.randint(1, 3)
    x = torch.randn(rng.randint(1, 2), channels, *(rng.randint(1, 9) for _ in range(dims)))
    w = torch.randn(made, channels // groups, *(rng.randint(1, 4) for _ in range(dims)))
    options = {
        "stride": pair(rng, 1, 3, dims),
        "padding": pair(rng, 0, 2, dims),
        "dilation": pair(rng, 1, 2, dims),
        "groups": groups,
    }
    name = f"conv{dims}d"
    args = [x.requires_grad_(), w.requires_grad_()]
    return name, getattr(F, name), getattr(T, name), args, options


def product(rng: random.Random) -> Call:
    m, k, n = (rng.choice([0, 1, 2, 7, 33]) for _ in range(3))
    name = rng.choice(["matmul", "mm"])
    a, b = torch.randn(k, m).t(), torch.randn(k, n)
    args = [a.detach().requires_grad_(), b.requires_grad_()]
    return name, getattr(plait, name), getattr(torch, name), args, {}


@pytest.mark.parametrize("draw", [pool, interpolation, bag, scan, convolution, product])
def test_random_configurations(
    draw: Callable[[random.Random], Call], rounds: Iterable[random.Random]
) -> None:
    for rng in rounds:
        torch.manual_seed(rng.randrange(2**31))
        compare(draw(rng))
