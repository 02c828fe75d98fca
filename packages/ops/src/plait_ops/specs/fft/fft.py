"""Fourier transforms over one dimension and over several."""

from plait_ops import calls as op
from plait_ops.fft_words import fft_dims, fft_dtype, fft_norm, fft_sizes, fft_swapped
from plait_ops.spec import Composite
from plait_ops.words import check, complex_dtype, is_complex, to_dtype, wrap_dim

fft_resized_ = Composite(
    "fft_resized(Tensor self, int[] sizes, int[] dim) -> Tensor",
    doc="`self` cut, or filled up with zeros, to `sizes` along `dim`.",
    internal=True,
    dtypes="inexact",
)


@fft_resized_.decompose
def _(self, sizes, dim):
    shape = list(self.shape)
    made = self
    for size, at in zip(sizes, dim):  # noqa: B905
        if size < shape[at]:
            made = op.narrow(made, at, 0, size)
            shape[at] = size
    wanted = list(shape)
    for size, at in zip(sizes, dim):  # noqa: B905
        wanted[at] = size
    if wanted != shape:
        made = op.pad_end(made, wanted)
    return made


_NORM = """`norm` says what is divided: with "backward" (the default) the inverse transform, by n; with "forward" the transform, by n; with "ortho" both, by the square root of n."""
_REAL = "Integers become the default dtype, halves float32."
_RAISES = """Raises: IndexError for a `dim` out of range, ValueError for sizes below 1, repeated dimensions or another
    `norm`{}."""
_N = "`n` is the size to which `input` is first cut, or filled up with zeros, along `dim`"
_S = "`s` are the sizes to which `input` is first cut, or filled up with zeros, along `dim` (-1 keeps a size)"


def _transform(schema, text, shapes, dtypes, example):
    return Composite(
        schema,
        doc=f"""
    {text}

    Shapes: {shapes} {_NORM}
    Dtypes: {dtypes} {_REAL}
    {_RAISES.format("")}

    >>> import plait_core as pc
    >>> {example}
    """,
        dtypes="any",
    )


def _several(name, text, default, sizes, dtypes, example):
    schema = (
        f"fft_{name}(Tensor input|self, int[]? s=None, int[]{default}, str? norm=None) -> Tensor"
    )
    shapes = f"{sizes} Without `dim`, the last ``len(s)`` dimensions are meant, or all if `s` is None too."
    return _transform(schema, text, shapes, dtypes, example)


def _single(name, text, sizes, dtypes, example):
    schema = (
        f"fft_{name}(Tensor input|self, int? n=None, int dim|axis=-1, str? norm=None) -> Tensor"
    )
    return _transform(schema, text, sizes, dtypes, example)


_ALL, _TWO = "? dim|axes=None", " dim|axes=(-2, -1)"
_C2C = "the result is complex."
_C2R = "the result is real."
_FROM_REAL = "`input` is real, the result complex."
_HALF = "the last dimension of the result has n // 2 + 1 elements, where n is its size before."
_WHOLE = "the last dimension of the result has the last size of `s`, by default 2 * (m - 1) for m elements."

# ---- several dimensions --------------------------------------------------------------------------
fftn = _several(
    "fftn", "The Fourier transform over several dimensions.", _ALL, f"{_S}.", _C2C,
    "pc.fft.fftn(pc.ones(2, 2)).real.tolist()\n    [[4.0, 0.0], [0.0, 0.0]]",
)  # fmt: skip
ifftn = _several(
    "ifftn", "The inverse Fourier transform over several dimensions.", _ALL, f"{_S}.", _C2C,
    "pc.fft.ifftn(pc.ones(2, 2)).real.tolist()\n    [[1.0, 0.0], [0.0, 0.0]]",
)  # fmt: skip
rfftn = _several(
    "rfftn", "`fftn` of real numbers, without the half that follows by symmetry.", _ALL, f"{_S}; {_HALF}", _FROM_REAL,
    "tuple(pc.fft.rfftn(pc.ones(2, 4)).shape)\n    (2, 3)",
)  # fmt: skip
irfftn = _several(
    "irfftn", "The inverse of `rfftn`.", _ALL, f"{_S}; {_WHOLE}", _C2R,
    "tuple(pc.fft.irfftn(pc.ones(2, 3)).shape)\n    (2, 4)",
)  # fmt: skip
hfftn = _several(
    "hfftn", "The Fourier transform of a signal that is Hermitian in the last dimension.", _ALL,
    f"{_S}; {_WHOLE}", _C2R, "tuple(pc.fft.hfftn(pc.ones(2, 3)).shape)\n    (2, 4)",
)  # fmt: skip
ihfftn = _several(
    "ihfftn", "The inverse of `hfftn`.", _ALL, f"{_S}; {_HALF}", _FROM_REAL,
    "tuple(pc.fft.ihfftn(pc.ones(2, 4)).shape)\n    (2, 3)",
)  # fmt: skip


@fftn.decompose
def _(input, s, dim, norm):
    dims = fft_dims(input.shape, s, dim)
    real = to_dtype(input, fft_dtype(input.dtype))
    x = op.fft_resized(real, fft_sizes(input.shape, s, dims), dims)
    scale = fft_norm(norm)
    if len(dims) == 0:
        return to_dtype(x, complex_dtype(x.dtype)) * 1
    if is_complex(x.dtype):
        return op.fft_c2c(x, dims, scale, True)
    return op.fft_r2c(x, dims, scale, False)


@ifftn.decompose
def _(input, s, dim, norm):
    dims = fft_dims(input.shape, s, dim)
    dtype = complex_dtype(fft_dtype(input.dtype))
    x = op.fft_resized(to_dtype(input, dtype), fft_sizes(input.shape, s, dims), dims)
    scale = fft_norm(norm)
    if len(dims) == 0:
        return x * 1
    return op.fft_c2c(x, dims, scale, False)


@rfftn.decompose
def _(input, s, dim, norm):
    check(not is_complex(input.dtype), f"`input` must be real; got {input.dtype}", "DTypeError")
    dims = fft_dims(input.shape, s, dim)
    check(len(dims) > 0, "`dim` must have at least 1 dimension; got ()", "ValueError")
    x = to_dtype(input, fft_dtype(input.dtype))
    return op.fft_r2c(
        op.fft_resized(x, fft_sizes(input.shape, s, dims), dims), dims, fft_norm(norm), True
    )


@irfftn.decompose
def _(input, s, dim, norm):
    dims = fft_dims(input.shape, s, dim)
    check(len(dims) > 0, "`dim` must have at least 1 dimension; got ()", "ValueError")
    sizes = fft_sizes(input.shape, s, dims)
    last = 2 * (input.shape[dims[-1]] - 1)
    if s is not None and s[-1] != -1:
        last = s[-1]
    check(
        last >= 1,
        f"the result must have at least 1 element along `dim` {dims[-1]}; got {last}",
        "ValueError",
    )
    sizes[-1] = last // 2 + 1
    x = to_dtype(input, complex_dtype(fft_dtype(input.dtype)))
    return op.fft_c2r(op.fft_resized(x, sizes, dims), dims, fft_norm(norm), last)


@hfftn.decompose
def _(input, s, dim, norm):
    x = op.conj(input) if is_complex(input.dtype) else input
    return op.fft_irfftn(x, s, dim, fft_swapped(norm))


@ihfftn.decompose
def _(input, s, dim, norm):
    return op.conj(op.fft_rfftn(input, s, dim, fft_swapped(norm)))


# ---- two dimensions ------------------------------------------------------------------------------
fft2 = _several(
    "fft2", "The Fourier transform over two dimensions.", _TWO, f"{_S}.", _C2C,
    "pc.fft.fft2(pc.ones(2, 2)).real.tolist()\n    [[4.0, 0.0], [0.0, 0.0]]",
)  # fmt: skip
ifft2 = _several(
    "ifft2", "The inverse Fourier transform over two dimensions.", _TWO, f"{_S}.", _C2C,
    "pc.fft.ifft2(pc.ones(2, 2)).real.tolist()\n    [[1.0, 0.0], [0.0, 0.0]]",
)  # fmt: skip
rfft2 = _several(
    "rfft2", "`fft2` of real numbers, without the half that follows by symmetry.", _TWO, f"{_S}; {_HALF}", _FROM_REAL,
    "tuple(pc.fft.rfft2(pc.ones(2, 4)).shape)\n    (2, 3)",
)  # fmt: skip
irfft2 = _several(
    "irfft2", "The inverse of `rfft2`.", _TWO, f"{_S}; {_WHOLE}", _C2R,
    "tuple(pc.fft.irfft2(pc.ones(2, 3)).shape)\n    (2, 4)",
)  # fmt: skip
hfft2 = _several(
    "hfft2", "`hfftn` over two dimensions.", _TWO, f"{_S}; {_WHOLE}", _C2R,
    "tuple(pc.fft.hfft2(pc.ones(2, 3)).shape)\n    (2, 4)",
)  # fmt: skip
ihfft2 = _several(
    "ihfft2", "`ihfftn` over two dimensions.", _TWO, f"{_S}; {_HALF}", _FROM_REAL,
    "tuple(pc.fft.ihfft2(pc.ones(2, 4)).shape)\n    (2, 3)",
)  # fmt: skip


def _same(several):
    def decompose(input, s, dim, norm):
        return several(input, s, dim, norm)

    return decompose


fft2.decompose(_same(op.fft_fftn))
ifft2.decompose(_same(op.fft_ifftn))
rfft2.decompose(_same(op.fft_rfftn))
irfft2.decompose(_same(op.fft_irfftn))
hfft2.decompose(_same(op.fft_hfftn))
ihfft2.decompose(_same(op.fft_ihfftn))


# ---- one dimension -------------------------------------------------------------------------------
fft = _single(
    "fft", "The Fourier transform: ``out[k] = sum_j input[j] exp(-2 pi i j k / n)``.", f"{_N}.", _C2C,
    "pc.fft.fft(pc.tensor([1.0, 0.0, 0.0, 0.0])).real.tolist()\n    [1.0, 1.0, 1.0, 1.0]",
)  # fmt: skip
ifft = _single(
    "ifft", "The inverse Fourier transform: ``out[j] = sum_k input[k] exp(2 pi i j k / n) / n``.", f"{_N}.",
    _C2C, "pc.fft.ifft(pc.ones(4)).real.tolist()\n    [1.0, 0.0, 0.0, 0.0]",
)  # fmt: skip
rfft = _single(
    "rfft", "`fft` of real numbers, without the half that follows by symmetry.",
    f"{_N}; the result has n // 2 + 1 elements there.", _FROM_REAL,
    "pc.fft.rfft(pc.ones(4)).real.tolist()\n    [4.0, 0.0, 0.0]",
)  # fmt: skip
irfft = _single(
    "irfft", "The inverse of `rfft`.",
    "`n` is the size of the result along `dim`, by default 2 * (m - 1) for m elements.", _C2R,
    "pc.fft.irfft(pc.tensor([4.0, 0.0, 0.0])).tolist()\n    [1.0, 1.0, 1.0, 1.0]",
)  # fmt: skip
hfft = _single(
    "hfft", "The Fourier transform of a Hermitian signal, of which `input` is the first half. The result is real.",
    "`n` is the size of the result along `dim`, by default 2 * (m - 1) for m elements.", _C2R,
    "pc.fft.hfft(pc.tensor([1.0, 0.0, 0.0])).tolist()\n    [1.0, 1.0, 1.0, 1.0]",
)  # fmt: skip
ihfft = _single(
    "ihfft", "The inverse of `hfft`.", f"{_N}; the result has n // 2 + 1 elements there.", _FROM_REAL,
    "pc.fft.ihfft(pc.ones(4)).real.tolist()\n    [1.0, 0.0, 0.0]",
)  # fmt: skip


def _along_one(several):
    def decompose(input, n, dim, norm):
        at = wrap_dim("dim", dim, input.shape)
        check(input.ndim > 0, "`input` must have at least 1 dimension; got shape ()", "IndexError")
        return several(input, [-1 if n is None else n], [at], norm)

    return decompose


fft.decompose(_along_one(op.fft_fftn))
ifft.decompose(_along_one(op.fft_ifftn))
rfft.decompose(_along_one(op.fft_rfftn))
irfft.decompose(_along_one(op.fft_irfftn))
hfft.decompose(_along_one(op.fft_hfftn))
ihfft.decompose(_along_one(op.fft_ihfftn))
