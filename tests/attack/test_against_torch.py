"""Random configurations of operators and layers against PyTorch's results and gradients.

The samples of PyTorch's own operator database are compared in `tests/oracle`; these are the shapes,
layouts, dtypes and options that it does not have. `torch_layers.py` and `torch_arrays.py` draw most
of them. What differs on purpose stands in `DIFFERS`.
"""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import plait  # noqa: E402

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "oracle")]
from torch_arrays import ARRAYS  # noqa: E402
from torch_database import convert, flat  # noqa: E402
from torch_layers import LAYERS  # noqa: E402
from torch_operands import Call  # noqa: E402

DIFFERS: list[tuple[str, str, str]] = [
    # function, what PyTorch says, reason
    ("pool3d", "smaller than kernel size", "it forgets padding and ceil_mode in this check"),
    ("pool", "Expected grad_output to have non-zero size", "backward of an empty result"),
    ("lp_pool1d", "must be Tensor, not list", "it does not take a list"),
    ("", "not (yet )?(implemented|supported) for", "a dtype that its kernel does not have"),
    ("", "Subtraction, the `-` operator, with", "bools count as 0 and 1 here, as the guide says"),
    ("", "expected dtype .* but got dtype|with differ(ing|ent) dtypes", "it does not promote"),
    ("", "derivative for .* is not implemented", "it is that of a step"),
    ("isclose", "did not match", "it does not promote"),
    ("index_reduce", "INTERNAL ASSERT", "an assertion of its own, for halves"),
    ("addcdiv", "desired output type|Integer division with addcdiv", "it promotes less"),
    ("", "Autograd not support dtype", "floats summed as integers: constants"),
    ("", "isFloatingType|isDifferentiableType", "its gradient does not promote"),
    ("setitem", "source and destination dtypes match", "values are cast in every form of key"),
    ("dist", "Expected a proper Tensor but got None", "its gradient of the norm 0"),
    ("logsumexp", "doesn't match the broadcast shape", "of bools"),
    ("nanmean", "could not infer output dtype", "the mean is computed, then cast"),
    ("quantile", "must be non-empty", "of no rows there are no quantiles"),
    ("unique", "0 sized dimensions", "there is nothing to compare"),
    ("triplet_margin_loss", "margin must be greater than 0", "a margin of 0 is one, too"),
    ("through", "function that returns multiple views", "allowed here, as the guide says"),
    ("pixel_", "memory format|invalid gradient|channel. dimension", "other layouts, empty batches"),
    ("nll_loss|cross_entropy", "grad_input must be contiguous", "its gradient needs a layout"),
    ("group_norm", "Expected more than 1 value", "such a value is its own mean"),
    ("local_response_norm|kron", "view size is not compatible", "it needs a layout"),
    ("group_norm", "tensor does not have a device", "its gradient needs a weight"),
    ("pad", "too small. Calculated output", "all is cut off: nothing is left"),
    ("atan2", "Negation, the `-` operator, on a bool", "its gradient negates the bools"),
]
"""Calls that PyTorch refuses and plait computes."""

REFUSED: list[tuple[str, str, str]] = [
    # function, what plait says, reason
    ("sum|mean|prod", "must be complex", "imaginary parts are not dropped in silence"),
    ("pad", "can put at most", "it crops first: less is left to repeat"),
    ("nextafter", "must be a floating-point dtype", "integers are not promoted"),
    ("logdet|slogdet", "is singular", "there is no gradient"),
    ("clamp", "must fit in uint8", "PyTorch's bounds below 0 wrap around"),
    ("median", "must be a floating-point dtype", "no integer stands for the median of none"),
    ("addcmul", "`value` must be an integer", "PyTorch drops the fraction of `value`"),
]
"""Calls that plait refuses and PyTorch computes."""

OTHERWISE: list[tuple[str, str]] = [
    # call, reason
    (r"^(any|all)\(\['uint8", "bool for every dtype, as the guide says"),
    (r"^bincount\(\['int64\[0\]", "sums of weights have their dtype, of none, too"),
    (r"^nanmean", "the gradient of a mean of none is 0, not nan"),
    (r"^(std|var).*correction': (1.5|2|1)\b", "nan is the gradient of a nan that has no divisor"),
    (r"^(ldexp|atan2)\(.*int", "its gradient is computed in the integers, which wrap around"),
    (r"(lu|relu6|softsign|hard\w+|\w+shrink|threshold)\(.*nan", "PyTorch's depend on the place"),
    (r"^ctc_loss.*zero_infinity': False", "an impossible target has the gradient 0, not nan"),
    (r"softsign\(.*inf", "the gradient is its limit, not nan"),
    (r"^batch_norm.*by \(\d+,\)", "PyTorch reads a weight with steps as if it were dense"),
    (
        r"^batch_norm\S*\(\['\w+\[(1,|\d+, \d+,[^']* 1\b)[^']* by \(\d+, 1, \d+, ",
        "PyTorch's gradient reads images whose channels lie together, beside sizes of 1, as dense",
    ),
    (
        r"gelu\(\['float32.*(?<!-)\binf.*'approximate': 'none'",
        "oneDNN's for AVX-512 is nan: PyTorch without it, or of one element, gives inf",
    ),
    (
        r"^(linalg\.vector_)?norm\(\['float16[^']*', -1,",
        "PyTorch's gradient has powers of -2, infinite in halves, but not at the end",
    ),
    (
        r"pad\(.*, \[(?=[^\]]*-)(-?\d+, ){5}.*'mode': 'reflect'",
        "PyTorch leaves gradients of volumes uninitialised where elements are cut off",
    ),
    (r"^std.*by \([^)]*\b0\b", "of equal elements: the gradient is 0, not a quotient of errors"),
    (r"^(addcdiv|div_).*complex", "over zero: parts are nan or infinite"),
    (r"^prod.*float16", "infinite on the way, but not at the end: it is carried in float32"),
    (r"'float16\b.*'complex|'complex.*'float16\b", "there is no complex32"),
    (r"'float16\[.*\dj\)", "there is no complex32"),
]
"""Calls whose results differ."""

# PyTorch rounds the terms of some gradients in halves
TOLERANCES = {"float16": 3e-2, "bfloat16": 1e-1, "float32": 1e-4, "complex64": 1e-4}
COARSE = 1e-8  # of float64 and complex128


def leaves(value: Any) -> list[Any]:
    """The tensors in arguments, in order."""
    if isinstance(value, (list, tuple)):
        return [x for each in value for x in leaves(each)]
    if isinstance(value, dict):
        return leaves(list(value.values()))
    return [value] if isinstance(value, (torch.Tensor, plait.Tensor)) else []


def ours(value: Any) -> Any:
    """The arguments as plait's, requiring grad where PyTorch's do."""
    result = convert(value)
    for own, other in zip(leaves(result), leaves(value), strict=True):
        if other.requires_grad:
            own.requires_grad_()
    return result


def name_of(dtype: Any) -> str:
    return str(dtype).split(".")[-1]


def to_numpy(x: Any) -> Any:
    x = x.detach()
    if isinstance(x, torch.Tensor):
        x = x.resolve_conj().resolve_neg()
    return (x.float() if name_of(x.dtype) == "bfloat16" else x).numpy()


def gradients(module: Any, results: list[Any], args: Any, expected: Any = None) -> list[Any]:
    """The gradients of the leaves for drawn ones of the results, which are the same for both."""
    roots, argument = [], []
    for i, y in enumerate(results):
        if not hasattr(y, "requires_grad") or not y.requires_grad:
            continue
        rng = np.random.default_rng(i)
        g = rng.standard_normal(tuple(y.shape))
        if y.is_complex():
            g = g + 1j * rng.standard_normal(tuple(y.shape))
        roots.append(y)
        argument.append(module.from_numpy(np.asarray(g)).to(y.dtype))
    expected = [x for x in leaves(args) if x.requires_grad]
    if not roots or not expected:
        return [None] * len(expected)
    return list(module.autograd.grad(roots, expected, argument, allow_unused=True))


def outcome(module: Any, call: Call, args: Any) -> Any:
    """Results, then gradients; or the exception."""
    try:
        results = list(flat(call.run(module, *args)))
        return results, gradients(module, results, args)
    except Exception as error:
        return error


def bar_of(call: Call, results: list[Any]) -> float:
    """The tolerance of the coarsest dtype that takes part."""
    arguments = [*call.args, *call.options.values(), *results]
    named = [x for x in arguments if isinstance(x, torch.dtype)]
    dtypes = [x.dtype for x in leaves(arguments) if x.is_floating_point() or x.is_complex()]
    return max(TOLERANCES.get(name_of(d), COARSE) for d in [*named, *dtypes, torch.float64])


def same(got: Any, want: Any, bar: float, label: str) -> None:
    """Fail unless one tensor or number is the other."""
    if not isinstance(want, torch.Tensor):
        assert name_of(got) == name_of(want) or got == want, f"{label}: {got} is not {want}"
        return
    assert isinstance(got, plait.Tensor), f"{label}: {type(got)}"
    assert tuple(got.shape) == tuple(want.shape), f"{label}: {got.shape} is not {want.shape}"
    dtype = name_of(want.dtype)
    assert name_of(got.dtype) == dtype, f"{label}: {got.dtype} is not {want.dtype}"
    exact = not (want.is_floating_point() or want.is_complex())
    bar = 0.0 if exact else bar
    a, b = to_numpy(got), to_numpy(want)
    size = 0.0 if exact else float(np.max(np.abs(b), initial=1.0, where=np.isfinite(b)))
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(a, b, rtol=bar, atol=bar * min(size, 1e4), err_msg=label)


def compare(call: Call) -> None:
    label = str(call)
    arguments = (call.args, call.options)
    own = outcome(plait, call, ours(arguments))
    target = outcome(torch, call, arguments)
    if isinstance(target, Exception):
        allowed = isinstance(own, Exception) or is_listed(DIFFERS, call.name, str(target))
        assert allowed, f"{label}: PyTorch says {target!r}"
        return
    if isinstance(own, Exception):
        assert is_listed(REFUSED, call.name, str(own)), f"{label}: {own!r}"
        return
    if any(re.search(pattern, label) for pattern, _ in OTHERWISE):
        return
    results, result = own
    others, expected = target
    bar = bar_of(call, others)
    assert len(results) == len(others), f"{label}: {len(results)} results, not {len(others)}"
    for got, want in zip(results, others, strict=True):
        same(got, want, bar, label)
    for i, (got, want) in enumerate(zip(result, expected, strict=True)):
        if got is None and want is None:
            continue
        if got is None or want is None:  # None is a gradient of zeros
            one = got if want is None else want
            assert not np.any(to_numpy(one)), f"{label}: gradient {i} is {got} and {want}"
            continue
        same(got, want, bar, f"gradient {i} of {label}")


def is_listed(table: list[tuple[str, str, str]], name: str, text: str) -> bool:
    return any(re.search(f, name) and re.search(t, text) for f, t, _ in table)


def pair(rng: random.Random, low: int, high: int, dims: int) -> Any:
    """One number, or one for each dimension."""
    return rng.choice([rng.randint(low, high), [rng.randint(low, high) for _ in range(dims)]])


def image(rng: random.Random, dims: int, batch: bool = False) -> Any:
    """A small image, sometimes not contiguous, that requires grad."""
    lead = [rng.randint(1, 2), rng.randint(1, 5)][0 if batch or rng.random() < 0.7 else 1 :]
    shape = [*lead, *(rng.randint(1, 8) for _ in range(dims))]
    x = torch.randn(shape, generator=torch.Generator().manual_seed(rng.randrange(2**31)))
    return x.requires_grad_()


def sees_nothing(sizes: Any, options: dict[str, Any]) -> bool:
    """Whether all that a window sees of a dimension may be padding."""

    def each(value: Any) -> list[int]:
        return value if isinstance(value, list) else [value] * len(sizes)

    padding = each(options.get("padding", 0))
    stride = each(options.get("stride", options["kernel_size"]))
    windows = zip(each(options["kernel_size"]), each(options["dilation"]), strict=True)
    return any(
        not any(0 <= start + i * separate < size for i in range(width))
        for size, pad, step, (width, separate) in zip(sizes, padding, stride, windows, strict=True)
        for start in range(-pad, 0, step)
    )


def pool(rng: random.Random) -> Call:
    """Dilated windows that see nothing of the image are left out: PyTorch gives them a place that
    they do not see, even one outside of the image, where its gradient writes.
    """
    dims = rng.randint(1, 3)
    kind = rng.choice(["max", "avg", "adaptive_max", "adaptive_avg"])
    name = f"{kind}_pool{dims}d"
    x, options = image(rng, dims), {}
    if kind.startswith("adaptive"):
        return Call(f"nn.functional.{name}", [x, pair(rng, 0, 6, dims)], {})
    options["kernel_size"] = pair(rng, 1, 5, dims)
    options["ceil_mode"] = rng.random() < 0.5
    if rng.random() < 0.7:
        options["stride"] = pair(rng, 1, 4, dims)
    if rng.random() < 0.5:
        options["padding"] = pair(rng, 0, 2, dims)
    if kind == "max":
        options["dilation"] = pair(rng, 1, 3, dims) if rng.random() < 0.4 else 1
        options["return_indices"] = rng.random() < 0.5
        if sees_nothing(x.shape[-dims:], options):
            options["dilation"] = 1
    else:
        options["count_include_pad"] = rng.random() < 0.5
    return Call(f"nn.functional.{name}", [x], options)


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
    return Call("nn.functional.interpolate", [x], options)


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
    return Call("nn.functional.embedding_bag", [places, weight, offsets], options)


def scan(rng: random.Random) -> Call:
    name = rng.choice(["cumsum", "cumprod", "logcumsumexp", "cummax", "cummin"])
    shape = [rng.choice([1, 2, 3, 70]) for _ in range(rng.randint(1, 3))]
    dtype = rng.choice([torch.float32, torch.float64])
    x = torch.randn(shape, dtype=dtype)
    x = x.transpose(0, -1) if rng.random() < 0.4 else x
    x = x.detach().requires_grad_()
    dim = rng.randrange(-len(shape), len(shape))
    return Call(name, [x, dim])


def convolution(rng: random.Random) -> Call:
    dims, groups = rng.randint(1, 3), rng.choice([1, 1, 2])
    channels, result = groups * rng.randint(1, 3), groups * rng.randint(1, 3)
    x = torch.randn(rng.randint(1, 2), channels, *(rng.randint(1, 9) for _ in range(dims)))
    w = torch.randn(result, channels // groups, *(rng.randint(1, 4) for _ in range(dims)))
    options = {
        "stride": pair(rng, 1, 3, dims),
        "padding": pair(rng, 0, 2, dims),
        "dilation": pair(rng, 1, 2, dims),
        "groups": groups,
    }
    name = f"conv{dims}d"
    args = [x.requires_grad_(), w.requires_grad_()]
    return Call(f"nn.functional.{name}", args, options)


def product(rng: random.Random) -> Call:
    m, k, n = (rng.choice([0, 1, 2, 7, 33]) for _ in range(3))
    name = rng.choice(["matmul", "mm"])
    a, b = torch.randn(k, m).t(), torch.randn(k, n)
    args = [a.detach().requires_grad_(), b.requires_grad_()]
    return Call(name, args)


HERE = [pool, interpolation, bag, scan, convolution, product]


@pytest.mark.parametrize("draw", [*HERE, *LAYERS, *ARRAYS])
@pytest.mark.filterwarnings("ignore")
def test_random_configurations(
    draw: Callable[[random.Random], Call], rounds: Iterable[random.Random]
) -> None:
    for rng in rounds:
        torch.manual_seed(rng.randrange(2**31))
        compare(draw(rng))
