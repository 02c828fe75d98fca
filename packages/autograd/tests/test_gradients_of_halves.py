"""Gradients in float16 and bfloat16 are those of float64 for the same inputs, within a few units of
the half in the last place of the largest one.

Every operator is called on its samples, and on these made large, small, far from 0, and near 1.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from operator_problems import OPERATORS, names

import plait_autograd as pa
import plait_core as pc
from plait_abi import operator
from plait_ops import samples
from plait_ops.sampling import Sample
from plait_ops.spec import Operator

EPS = {"float16": 2.0**-10, "bfloat16": 2.0**-7}
LARGEST = {"float16": 6e3, "bfloat16": 1e37}  # of gradients: what they are made of is larger
UNITS = 5
SAMPLES = 3
DRAWS = 2  # of gradients of the results: one of them may be nearly orthogonal to the derivative
SMALLEST = 1e-3  # the size that the largest gradient counts as having at least

Array = np.ndarray[Any, Any]


def near_one(x: Array) -> Array:
    digits = np.clip(np.abs(np.nan_to_num(x)) * 3, 3, 9).round()
    return np.where(np.isfinite(x), np.sign(x) * (1 - 2.0**-digits), x)


CHANGES: dict[str, Callable[[Array], Array]] = {
    "as they are": lambda x: x,
    "far from 0": lambda x: x + 50,
    "large": lambda x: x * 10,
    "huge": lambda x: x * 300,
    "small": lambda x: x / 16,
    "tiny": lambda x: x / 1000,
    "near 1": near_one,
}
EXTREME = ("large", "huge", "near 1")
ALWAYS = tuple(CHANGES)

# where the error is larger, and why; PyTorch's is as large, or it has no such operator in halves
SATURATED = "it follows from the result, which is rounded: near its bounds few digits are left"
FACTORS = "it follows from factors, which are rounded, and whose condition counts"
EXCEPT: dict[str, tuple[tuple[str, ...], str]] = {
    **dict.fromkeys(("sigmoid", "special_expit", "tanh"), (EXTREME, SATURATED)),
    **dict.fromkeys(("softmax", "special_softmax", "softmin"), (EXTREME, SATURATED)),
    **dict.fromkeys(("lstm_sequence", "lstm_forward"), (EXTREME, SATURATED)),
    **dict.fromkeys(("gru_sequence", "gru_forward"), (EXTREME, SATURATED)),
    **dict.fromkeys(("cross_entropy", "cross_entropy_soft"), (("tiny",), SATURATED)),
    **dict.fromkeys(("cholesky_inverse", "cholesky_solve", "linalg_pinv"), (ALWAYS, FACTORS)),
    **dict.fromkeys(("linalg_pinv.rcond", "pinverse", "lstsq_parts"), (ALWAYS, FACTORS)),
    **dict.fromkeys(("linalg_lstsq", "linalg_qr", "qr", "linalg_svd"), (ALWAYS, FACTORS)),
    **dict.fromkeys(
        ("attention_forward", "attention_mask_backward", "scaled_dot_product_attention"),
        (
            ("far from 0", *EXTREME),
            "the mean gradient of a row is a small difference of large numbers",
        ),
    ),
    "deform_conv2d": (("huge",), "the products that it sums do not fit into float16"),
    "batch_norm_activation": (("tiny",), "a result rounds to the bound of its activation"),
}


class Complex(Exception):
    """A sample has complex numbers."""


def converted(value: Any, change: Callable[[Array], Array], dtype: str, wide: bool) -> Any:
    """Arrays as tensors of halves, or of float64 with the same values."""
    if isinstance(value, np.ndarray):
        if value.dtype.kind == "c":
            raise Complex
        if value.dtype.kind != "f":
            return pc.from_numpy(value.copy())
        half = pc.from_numpy(change(np.array(value, "float64"))).to(getattr(pc, dtype))
        return half.to(pc.float64) if wide else half
    if isinstance(value, (list, tuple)):
        return type(value)(converted(each, change, dtype, wide) for each in value)
    return value


def floating(value: Any) -> list[Any]:
    if isinstance(value, pc.Tensor):
        return [value] if value.dtype.is_floating_point else []
    return [x for each in value for x in floating(each)] if isinstance(value, (list, tuple)) else []


def call(spec: Operator, values: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    """The inputs that gradients are taken of, and the results."""
    expected = names(spec)
    leaves = [x for name, v in values.items() if name in expected for x in floating(v)]
    for x in leaves:
        x.requires_grad_()
    for argument in spec.schema.arguments:
        if argument.writes and isinstance(values[argument.name], pc.Tensor):
            values[argument.name] = values[argument.name].clone()
    positional = [values.pop(a.name) for a in spec.schema.arguments if not a.keyword_only]
    result = operator(spec.name)(*positional, **values)
    result = result if isinstance(result, (tuple, list)) else [result]
    return leaves, [x for i, x in enumerate(result) if i not in spec.auxiliary]


def units(spec: Operator, sample: Sample, change: str, dtype: str) -> float:
    """The distance of the gradients from those of float64; 0 if there is nothing to compare."""
    values = spec.schema.bind(sample.args, sample.kwargs)
    if values.get("dtype") is not None or not sample.gradient:
        return 0.0
    halves, doubles = (
        {name: converted(v, CHANGES[change], dtype, wide) for name, v in values.items()}
        for wide in (False, True)
    )
    leaves, result = call(spec, halves)
    wide_leaves, wide_made = call(spec, doubles)
    pairs = [
        (a, b)
        for a, b in zip(result, wide_made, strict=True)
        if a.requires_grad and b.requires_grad
    ]
    finite = all(x.detach().isfinite().all().item() for pair in pairs for x in pair)
    if not pairs or not leaves or not finite:
        return 0.0
    roots, wide_roots = zip(*pairs, strict=True)
    rng = np.random.default_rng(0)
    sizes = [SMALLEST] * len(leaves)
    exact: list[Any] = []
    results: list[Any] = []
    for draw in range(DRAWS):
        gs = [pc.from_numpy(np.asarray(rng.uniform(-1, 1, tuple(x.shape)))) for x in roots]
        gs = [g.to(x.dtype) for g, x in zip(gs, roots, strict=True)]
        wide_gs = [g.to(pc.float64) for g in gs]
        own = pa.grad(wide_roots, wide_leaves, wide_gs, allow_unused=True, retain_graph=True)
        if draw == 0:
            exact, results = list(own), list(pa.grad(roots, leaves, gs, allow_unused=True))
        largest = [0.0 if g is None or not g.numel() else g.abs().max().item() for g in own]
        sizes = [max(pair) for pair in zip(sizes, largest, strict=True)]
    worst = 0.0
    for got, want, size in zip(results, exact, sizes, strict=True):
        if got is None or want is None or not want.numel() or not size < LARGEST[dtype]:
            continue
        assert got.dtype is getattr(pc, dtype)
        difference = (got.to(pc.float64) - want).abs().max().item()
        worst = max(worst, difference / (size * EPS[dtype]) if difference == difference else np.inf)
    return worst


@pytest.mark.parametrize("spec", OPERATORS, ids=lambda spec: spec.name)
def test_gradients_are_rounded_once(spec: Operator) -> None:
    spared = EXCEPT.get(spec.name, ((), ""))[0]
    changes = [change for change in CHANGES if change not in spared]
    for dtype, change in itertools.product(EPS, changes):
        for sample in itertools.islice(samples.draw(spec), SAMPLES):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    separate = units(spec, sample, change, dtype)
                except (Complex, TypeError, ValueError, IndexError, RuntimeError):
                    continue  # outside the domain, or not for halves
            assert separate <= UNITS, (dtype, change, sample)


@pytest.mark.parametrize(
    ("name", "x", "arguments"),
    [
        ("sinc", [1e-3, -1e-2, 0.1, 0.149, 0.151], ()),
        ("expm1", [-17.0, -20.0, -30.0], ()),
        ("special_log_ndtr", [-1e4, -300.0, -30.1, -3.0, 0.0, 8.0], ()),
        ("logsumexp", [2e4, 2e4 + 1, 2e4 + 2], ([0],)),
    ],
)
def test_derivatives_of_float32_keep_their_digits(
    name: str, x: list[float], arguments: tuple[Any, ...]
) -> None:
    """Where a formula with the result, or with a difference, has none or few of them left."""
    gradients = []
    for dtype in (pc.float32, pc.float64):
        at = pc.tensor(x).to(dtype).requires_grad_()
        (g,) = pa.grad(operator(name)(at, *arguments).sum(), [at])
        gradients.append(g.numpy())
    np.testing.assert_allclose(*gradients, rtol=2e-6)
