"""The three transforms that all others are made of."""

from plait_ops import calls as op
from plait_ops.costs import log2
from plait_ops.fft_words import fft_swapped, fft_whole
from plait_ops.spec import Operator
from plait_ops.words import (
    check,
    complex_dtype,
    is_complex,
    numel,
    part,
    real_dtype,
    require,
    result,
    to_dtype,
)

_KERNEL = "`dim` counts from the front; `norm` is backward, ortho or forward, as in NumPy."

fft_c2c = Operator(
    "fft_c2c(Tensor self, int[] dim, str norm, bool forward) -> Tensor",
    doc="""
    The Fourier transform of complex numbers over `dim`, or its inverse.

    Raises: DTypeError unless `self` is complex.
    """,
    internal=True,
    dtypes="inexact",
    kernel=_KERNEL,
)
fft_c2c.batch("leading")
fft_r2c = Operator(
    "fft_r2c(Tensor self, int[] dim, str norm, bool onesided) -> Tensor",
    doc="""
    The Fourier transform of real numbers over `dim`. With `onesided` the last of these dimensions, of size n, has only the
    first n // 2 + 1 elements.

    Raises: DTypeError unless `self` is real and floating.
    """,
    internal=True,
    dtypes="floating",
    kernel=_KERNEL,
)
fft_r2c.batch("leading")
fft_c2r = Operator(
    "fft_c2r(Tensor self, int[] dim, str norm, int last) -> Tensor",
    doc="""
    The inverse Fourier transform over `dim`, with a real result of size `last` in the last of these dimensions. There
    `self` has the first last // 2 + 1 elements.

    Raises: DTypeError unless `self` is complex.
    """,
    internal=True,
    dtypes="inexact",
    kernel=_KERNEL,
)
fft_c2r.batch("leading")


@fft_c2c.shape
def _(self, dim, norm):
    check(is_complex(self.dtype), f"`self` must be complex; got {self.dtype}", "DTypeError")
    fft_whole(self.shape, dim, norm)
    return result(self.shape, self.dtype)


@part
def fft_steps(shape, dim):
    """The logarithm of the number of elements that are transformed at once."""
    made = 0
    for at in dim:
        made = made + log2(shape[at])
    return made


@fft_c2c.cost
def _(self, dim):
    return 5 * numel(self) * fft_steps(self.shape, dim)


@fft_r2c.shape
def _(self, dim, norm, onesided):
    require("self", self.dtype, "floating")
    fft_whole(self.shape, dim, norm)
    shape = list(self.shape)
    if onesided:
        shape[dim[-1]] = shape[dim[-1]] // 2 + 1
    return result(shape, complex_dtype(self.dtype))


@fft_r2c.cost
def _(self, dim):
    return 5 * numel(self) * fft_steps(self.shape, dim) // 2


@fft_c2r.shape
def _(self, dim, norm, last):
    check(is_complex(self.dtype), f"`self` must be complex; got {self.dtype}", "DTypeError")
    fft_whole(self.shape, dim, norm)
    check(
        last >= 1 and self.shape[dim[-1]] == last // 2 + 1,
        f"`last` must be one or two less than twice the size along {dim[-1]} of shape {self.shape}; got {last}",
    )
    shape = list(self.shape)
    shape[dim[-1]] = last
    return result(shape, real_dtype(self.dtype))


@fft_c2r.cost
def _(dim, result):
    return 5 * numel(result) * fft_steps(result.shape, dim) // 2


@fft_c2c.vjp("self")
def _(g, dim, norm, forward):
    return fft_c2c(g, dim, fft_swapped(norm), not forward)


@fft_r2c.vjp("self")
def _(g, self, dim, norm, onesided):
    last = dim[-1]
    whole = op.slice_backward(g, self.shape, last, 0, g.shape[last], 1) if onesided else g
    return op.real(fft_c2c(whole, dim, fft_swapped(norm), False))


@fft_c2r.vjp("self")
def _(g, dim, norm, last):
    half = fft_r2c(g, dim, fft_swapped(norm), True)
    at = dim[-1]
    size = half.shape[at]
    # all frequencies stand for two, except the first, and the middle one of an even number
    twice = last - size
    first = op.narrow(half, at, 0, 1)
    others = op.narrow(half, at, 1, twice) * 2.0
    return op.cat([first, others, op.narrow(half, at, 1 + twice, size - 1 - twice)], at)


@fft_r2c.decompose
def _(self, dim, norm, onesided):
    whole = fft_c2c(to_dtype(self, complex_dtype(self.dtype)), dim, norm, True)
    last = dim[-1]
    if onesided:
        return op.clone(op.narrow(whole, last, 0, self.shape[last] // 2 + 1))
    return whole


@fft_c2r.decompose
def _(self, dim, norm, last):
    at = dim[-1]
    half = fft_c2c(self, dim[:-1], norm, False) if len(dim) > 1 else self
    size = self.shape[at]
    # the other frequencies are the conjugates of these, in reverse order
    rest = op.conj(op.flip(op.narrow(half, at, 1, last - size), [at]))
    whole = fft_c2c(op.cat([half, rest], at), dim[-1:], norm, False)
    return op.clone(op.real(whole))
