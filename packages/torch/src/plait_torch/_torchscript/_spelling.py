"""Calls of operators that PyTorch does not have, spelled with those that it has."""

from __future__ import annotations

import functools
import importlib.resources
from collections.abc import Callable
from typing import Any

from plait_torch._torchscript._errors import ScriptError

_REDUCTIONS = ("none", "mean", "sum")
Call = tuple[str, tuple[Any, ...], dict[str, Any]]


@functools.cache
def names_of_pytorch() -> frozenset[str]:
    """Return the names of PyTorch's operators: those of version 2.13."""
    text = importlib.resources.files(__package__).joinpath("aten_names.txt").read_text()
    return frozenset(text.split())


def _transposed(
    grad: Any, weight: Any, size: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Call:
    """The gradient of a convolution with respect to its input is a transposed convolution."""
    dims = range(2)
    smallest = [
        (grad.shape[2 + i] - 1) * stride[i] - 2 * padding[i]
        + dilation[i] * (weight.shape[2 + i] - 1) + 1
        for i in dims
    ]  # fmt: skip
    extra = tuple(int(size[len(size) - 2 + i]) - smallest[i] for i in dims)
    return "conv_transpose2d", (grad, weight, None, stride, padding, extra, groups, dilation), {}


def _attention(q: Any, k: Any, v: Any, mask: Any, causal: bool, scale: float) -> Call:
    return "scaled_dot_product_attention", (q, k, v, mask, 0.0, causal), {"scale": scale}


def _norm(x: Any, p: Any, dim: Any, keepdim: bool, dtype: Any = None) -> Call:
    if dtype is not None:
        raise ScriptError("torch.jit.save: a norm with a dtype is not written as TorchScript")
    return "norm", (x, p) if dim is None else (x, p, dim, keepdim), {}


def _cross_entropy(x: Any, target: Any, weight: Any, reduction: str, ignored: int) -> Call:
    number = _REDUCTIONS.index(reduction)
    return "cross_entropy_loss", (x, target, weight, number, ignored), {}


def _nll(x: Any, target: Any, weight: Any, reduction: str, ignored: int) -> Call:
    name = "nll_loss" if x.ndim < 3 else "nll_loss_nd"
    return name, (x, target, weight, _REDUCTIONS.index(reduction), ignored), {}


class SizeOf:
    """The size of a tensor among the arguments, as it is in each call."""

    def __init__(self, tensor: Any, dim: int) -> None:
        self.tensor, self.dim = tensor, dim


# PyTorch's numbers of normalisations: none, by the root of n, by n
_FORWARD = {"backward": 0, "ortho": 1, "forward": 2}
_INVERSE = {"backward": 2, "ortho": 1, "forward": 0}
# modes of interpolation, with the dimensions of the input
_RESAMPLED = {
    **{("nearest", n + 2): f"upsample_nearest{n}d" for n in (1, 2, 3)},
    **{("nearest-exact", n + 2): f"_upsample_nearest_exact{n}d" for n in (1, 2, 3)},
    ("linear", 3): "upsample_linear1d",
    ("linear", 4): "upsample_bilinear2d",
    ("linear", 5): "upsample_trilinear3d",
    ("cubic", 4): "upsample_bicubic2d",
}


def _resampled(
    x: Any, dim: int, size: Any, step: float, mode: str, corners: bool, smooth: bool
) -> Call:
    """Interpolation along one dimension is interpolation to the sizes that the others have."""
    name = _RESAMPLED.get((mode, x.ndim))
    if name is None or dim < 2:
        raise ScriptError(
            f"torch.jit.save: interpolation of {x.ndim} dimensions with the mode {mode!r} is not "
            "written as TorchScript"
        )
    sizes = tuple(size if each == dim else SizeOf(x, each) for each in range(2, x.ndim))
    scales = tuple(1.0 / step if each == dim else None for each in range(2, x.ndim))
    name = f"_{name}_aa" if smooth else name
    return name, (x, sizes, *scales) if "nearest" in mode else (x, sizes, corners, *scales), {}


def _padded(x: Any, size: Any) -> Call:
    if any(type(each) is not int for each in size):
        raise ScriptError("torch.jit.save: padding to a free size is not written as TorchScript")
    pads: list[int] = []
    for before, after in zip(reversed(x.shape), reversed(size), strict=True):
        pads += [0, after - before]
    return "constant_pad_nd", (x, tuple(pads), 0), {}


SPELLED: dict[str, Callable[..., Call]] = {
    "argsort_rows": lambda x: ("argsort", (x, -1), {}),
    "attention_forward": _attention,
    "bce_elements": lambda x, target: ("binary_cross_entropy", (x, target, None, 0), {}),
    "clamp_between": lambda x, low, high: ("clamp", (x, low, high), {}),
    "conv2d_backward_input": _transposed,
    "cross_entropy_forward": _cross_entropy,
    "div_trunc": lambda a, b: ("div", (a, b), {"rounding_mode": "trunc"}),
    "fft_c2c": lambda x, dim, norm, forward: (
        "_fft_c2c", (x, dim, (_FORWARD if forward else _INVERSE)[norm], forward), {}
    ),
    "fft_c2r": lambda x, dim, norm, last: ("_fft_c2r", (x, dim, _INVERSE[norm], last), {}),
    "fft_r2c": lambda x, dim, norm, half: ("_fft_r2c", (x, dim, _FORWARD[norm], half), {}),
    "gelu_erf": lambda x: ("gelu", (x,), {}),
    "gelu_tanh": lambda x: ("gelu", (x,), {"approximate": "tanh"}),
    "log_odds": lambda x: ("logit", (x,), {}),
    "logit_bce_elements": lambda target, x: (
        "binary_cross_entropy_with_logits", (x, target, None, None, 0), {}
    ),
    "native_batch_norm": lambda x, w, b, eps: (
        "native_batch_norm", (x, w, b, None, None, True, 0.0, eps), {}
    ),
    "native_dropout": lambda x, p, generator=None: ("native_dropout", (x, p, True), {}),
    "nll_loss": _nll,
    "norm": _norm,
    "pad": lambda x, widths, mode, value: ("pad", (x, widths, mode, float(value)), {}),
    "pad_end": _padded,
    "polygamma_elements": lambda x, n: ("polygamma", (n, x), {}),
    "replace_nonfinite": lambda x, *limits: ("nan_to_num", (x, *limits), {}),
    "resample": _resampled,
    "search_sorted": lambda places, x, right: ("searchsorted", (places, x), {"right": right}),
    "threshold_elements": lambda x, *limits: ("threshold", (x, *limits), {}),
}  # fmt: skip
"""The call of PyTorch for an operator of plait, whose first results are the same."""
