"""What belongs to Fourier transforms: frequencies and shifts."""

import numpy as np

from plait_ops.calls import arange_start, cat, roll
from plait_ops.spec import Composite
from plait_ops.words import check, default_dtype, reduce_dims


def _frequencies(name, text, example):
    return Composite(
        f"fft_{name}(int n, float d=1.0, *, dtype? dtype=None, device? device=None) -> Tensor",
        doc=f"""
    {text}

    Dtypes: the default dtype, or `dtype`. Raises: ValueError for an `n` below 1.

    >>> import plait_core as pc
    >>> {example}
    """,
        method=False,
        dtypes="any",
    )


fftfreq = _frequencies(
    "fftfreq",
    "The frequencies of `fft.fft` of `n` samples that are `d` apart: 0, 1, ..., -2, -1, over ``n * d``.",
    "pc.fft.fftfreq(4).tolist()\n    [0.0, 0.25, -0.5, -0.25]",
)
rfftfreq = _frequencies(
    "rfftfreq",
    "The frequencies of `fft.rfft` of `n` samples that are `d` apart: 0, 1, ..., n // 2, over ``n * d``.",
    "pc.fft.rfftfreq(4).tolist()\n    [0.0, 0.25, 0.5]",
)


@fftfreq.decompose
def _(n, d, dtype, device):
    check(n >= 1, f"`n` must be positive; got {n}", "ValueError")
    chosen = dtype if dtype is not None else default_dtype()
    first = arange_start(0, (n + 1) // 2, 1, dtype=chosen, device=device)
    second = arange_start(-(n // 2), 0, 1, dtype=chosen, device=device)
    return cat([first, second]) * (1.0 / (float(n) * d))


@rfftfreq.decompose
def _(n, d, dtype, device):
    check(n >= 1, f"`n` must be positive; got {n}", "ValueError")
    chosen = dtype if dtype is not None else default_dtype()
    return arange_start(0, n // 2 + 1, 1, dtype=chosen, device=device) * (1.0 / (float(n) * d))


fftfreq.reference(
    lambda n, d=1.0, dtype=None, device=None: np.fft.fftfreq(n, d).astype(dtype or "float32")
)
rfftfreq.reference(
    lambda n, d=1.0, dtype=None, device=None: np.fft.rfftfreq(n, d).astype(dtype or "float32")
)
for _each in (fftfreq, rfftfreq):
    _each.samples(lambda s: iter([s(4), s(5, 0.5), s(1), s(6, 2.0, dtype="float64")]))
    _each.error("ValueError", lambda s: s(0), contains=[_each.schema.base, "`n`", "0"])


def _shift(name, text, example):
    return Composite(
        f"fft_{name}(Tensor input|self, int[]? dim|axes=None) -> Tensor",
        doc=f"""
    {text} along `dim` (None: along all dimensions).

    Raises: IndexError for a `dim` out of range.

    >>> import plait_core as pc
    >>> {example}
    """,
        method=False,
        dtypes="any",
    )


fftshift = _shift(
    "fftshift",
    "Move the frequency 0 from the front to the middle",
    "pc.fft.fftshift(pc.tensor([0, 1, -2, -1])).tolist()\n    [-2, -1, 0, 1]",
)
ifftshift = _shift(
    "ifftshift",
    "Move the frequency 0 from the middle to the front",
    "pc.fft.ifftshift(pc.tensor([-2, -1, 0, 1])).tolist()\n    [0, 1, -2, -1]",
)


@fftshift.decompose
def _(input, dim):
    dims = reduce_dims("dim", dim, input.shape)
    if len(dims) == 0:
        return roll(input, [0])
    return roll(input, [input.shape[d] // 2 for d in dims], dims)


@ifftshift.decompose
def _(input, dim):
    dims = reduce_dims("dim", dim, input.shape)
    if len(dims) == 0:
        return roll(input, [0])
    return roll(input, [(input.shape[d] + 1) // 2 for d in dims], dims)


def _axes(dim):
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return None
    return dim


fftshift.reference(lambda input, dim=None: np.fft.fftshift(input, _axes(dim)))
ifftshift.reference(lambda input, dim=None: np.fft.ifftshift(input, _axes(dim)))
for _each in (fftshift, ifftshift):
    _each.samples(
        lambda s: iter(
            [
                s(s.array(5)),
                s(s.array(4, 5)),
                s(s.array(4, 5), 1),
                s(s.array(2, 3, 4, dtype="complex64"), (0, -1)),
                s(s.array(4, 5, dtype="int64"), [0]),
                s(s.array(0, 3)),
            ]
        )
    )
    _each.error(
        "IndexError",
        lambda s: s(s.array(2, 3), 2),
        contains=[_each.schema.base, "dim", "(2, 3)", "2"],
    )
