"""Test data of fft/fft: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.fft.fft import (
    fft,
    fft2,
    fft_resized_,
    fftn,
    hfft,
    hfft2,
    hfftn,
    ifft,
    ifft2,
    ifftn,
    ihfft,
    ihfft2,
    ihfftn,
    irfft,
    irfft2,
    irfftn,
    rfft,
    rfft2,
    rfftn,
)


@fft_resized_.reference
def _(self, sizes, dim):
    shape = list(self.shape)
    for size, at in zip(sizes, dim, strict=True):
        shape[at] = size
    result = np.zeros(shape, self.dtype)
    region = tuple(slice(min(a, b)) for a, b in zip(shape, self.shape, strict=True))
    result[region] = self[region]
    return result


fft_resized_.samples(lambda s: iter([s(s.array(3, 4), [5, 2], [0, 1]), s(s.array(3, 4), [4], [1])]))
fft_resized_.error("TypeError", lambda s: s(1, [2], [0]), contains=["fft_resized", "self"])


# ---- references and samples ----------------------------------------------------------------------
def _wide(x):
    return x.astype("float64") if x.dtype.kind in "bui" or x.dtype == "float16" else x


def _narrow(result, like):
    wide = like.dtype in ("float64", "complex128")
    if result.dtype.kind == "c":
        return result.astype("complex128" if wide else "complex64")
    return result.astype("float64" if wide else "float32")


def _reference(name, hermitian):
    """NumPy's function; the Hermitian ones over several dimensions are made of others."""
    swap = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}

    def several(input, s=None, dim=None, norm=None):
        x = _wide(input)
        axes = None if dim is None else tuple(dim)
        if axes is not None and not len(axes):
            return _narrow(x.astype("complex128"), input)
        if name.startswith("h"):
            return _narrow(np.fft.irfftn(np.conj(x), s, axes, swap[norm]), input)
        if name.startswith("ih"):
            return _narrow(np.conj(np.fft.rfftn(x, s, axes, swap[norm])), input)
        return _narrow(getattr(np.fft, name)(x, s, axes, norm), input)

    def two(input, s=None, dim=(-2, -1), norm=None):
        return several(input, s, dim, norm)

    def single(input, n=None, dim=-1, norm=None):
        return _narrow(getattr(np.fft, name)(_wide(input), n, dim, norm), input)

    return two if name.endswith("2") else several if name.endswith("n") else single


def _single_samples(kinds):
    def samples(s):
        for dtype in kinds:
            yield s(s.array(2, 6, dtype=dtype)).loosely(8)
            yield s(s.array(5, 3, dtype=dtype), 4, 0, "ortho").loosely(8)
            yield s(s.array(2, 5, dtype=dtype), 7, norm="forward").loosely(8)
        if "int64" in kinds:
            yield s(s.array(4, dtype="int64")).loosely(8)
        yield s(s.strided(2, 6, dtype=kinds[0])).loosely(8)
        yield s(s.array(0, 4, dtype=kinds[0]))

    return samples


def _several_samples(kinds):
    def samples(s):
        for dtype in kinds:
            yield s(s.array(2, 4, 6, dtype=dtype)).loosely(20)
            yield s(s.array(2, 4, 6, dtype=dtype), (5, 4), (0, 2)).loosely(20)
            yield s(s.array(4, 6, dtype=dtype), norm="ortho").loosely(20)
        yield (s(s.strided(4, 6, dtype=kinds[0]), (3, 8), (-2, -1), "forward").loosely(20))

    return samples


def _errors(operator, single, real):
    size = (
        (lambda s: s(s.array(2, 3), 0)) if single else (lambda s: s(s.array(2, 3), (2, 0), (0, 1)))
    )
    where = (
        (lambda s: s(s.array(2, 3), None, 2))
        if single
        else (lambda s: s(s.array(2, 3), None, (0, 2)))
    )
    operator.error("ValueError", size, contains=["fft", "at least 1 element", "0"])
    operator.error("IndexError", where, contains=["fft", "dim", "(2, 3)", "2"])
    operator.error(
        "ValueError", lambda s: s(s.array(4, 4), norm="none"), contains=["fft", "norm", "none"]
    )
    if not single:
        operator.error(
            "ValueError", lambda s: s(s.array(4, 4), (2,), (0, 1)), contains=["`s` and `dim`"]
        )
    if real:
        operator.error(
            "DTypeError",
            lambda s: s(s.array(4, 4, dtype="complex64")),
            contains=["fft", "`input`", "real", "complex64"],
        )


for _each in (
    fft, ifft, rfft, irfft, hfft, ihfft, fft2, ifft2, rfft2, irfft2, hfft2, ihfft2,
    fftn, ifftn, rfftn, irfftn, hfftn, ihfftn,
):  # fmt: skip
    _name = _each.schema.base.removeprefix("fft_")
    _one = not _name.endswith(("2", "n"))
    _real = _name.startswith(("rfft", "ihfft"))
    _kinds = (
        ("float32", "float64", "int64") if _real
        else ("complex64", "complex128") if "r" in _name or _name.startswith("h")
        else ("float32", "complex64", "complex128")
    )  # fmt: skip
    _each.reference(_reference(_name, _name.startswith(("h", "ih"))))
    _each.samples((_single_samples if _one else _several_samples)(_kinds))
    _errors(_each, _one, _real)
