"""Frequencies and shifts for Fourier transforms."""

from plait_ops import calls as op
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
        dtypes="any",
    )


fftfreq = _frequencies(
    "fftfreq",
    "The frequencies of `fft.fft` of `n` samples at distance `d`: the numbers 0, 1, ..., -2, -1, divided by ``n * d``.",
    "pc.fft.fftfreq(4).tolist()\n    [0.0, 0.25, -0.5, -0.25]",
)
rfftfreq = _frequencies(
    "rfftfreq",
    "The frequencies of `fft.rfft` of `n` samples at distance `d`: the numbers 0, 1, ..., n // 2, divided by ``n * d``.",
    "pc.fft.rfftfreq(4).tolist()\n    [0.0, 0.25, 0.5]",
)


@fftfreq.decompose
def _(n, d, dtype, device):
    check(n >= 1, f"`n` must be positive; got {n}", "ValueError")
    chosen = dtype if dtype is not None else default_dtype()
    first = op.arange_start(0, (n + 1) // 2, 1, dtype=chosen, device=device)
    second = op.arange_start(-(n // 2), 0, 1, dtype=chosen, device=device)
    return op.cat([first, second]) * (1.0 / (float(n) * d))


@rfftfreq.decompose
def _(n, d, dtype, device):
    check(n >= 1, f"`n` must be positive; got {n}", "ValueError")
    chosen = dtype if dtype is not None else default_dtype()
    return op.arange_start(0, n // 2 + 1, 1, dtype=chosen, device=device) * (1.0 / (float(n) * d))


def _shift(name, text, example):
    return Composite(
        f"fft_{name}(Tensor input|self, int[]? dim|axes=None) -> Tensor",
        doc=f"""
    {text} along `dim` (None: along all dimensions).

    Raises: IndexError for a `dim` out of range.

    >>> import plait_core as pc
    >>> {example}
    """,
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
        return op.roll(input, [0])
    return op.roll(input, [input.shape[d] // 2 for d in dims], dims)


@ifftshift.decompose
def _(input, dim):
    dims = reduce_dims("dim", dim, input.shape)
    if len(dims) == 0:
        return op.roll(input, [0])
    return op.roll(input, [(input.shape[d] + 1) // 2 for d in dims], dims)
