"""Test data of fft/transforms: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.fft.transforms import fft_c2c, fft_c2r, fft_r2c


def _as(result, like, complex_=True):
    wide = like.dtype in ("float64", "complex128")
    return result.astype(
        ("complex128" if wide else "complex64") if complex_ else "float64" if wide else "float32"
    )


@fft_c2c.reference
def _(self, dim, norm, forward):
    result = (np.fft.fftn if forward else np.fft.ifftn)(self, axes=tuple(dim), norm=norm)
    return _as(result, self)


@fft_r2c.reference
def _(self, dim, norm, onesided):
    result = (np.fft.rfftn if onesided else np.fft.fftn)(self, axes=tuple(dim), norm=norm)
    return _as(result, self)


@fft_c2r.reference
def _(self, dim, norm, last):
    sizes = [self.shape[d] for d in dim[:-1]] + [last]
    return _as(np.fft.irfftn(self, sizes, axes=tuple(dim), norm=norm), self, False)


@fft_c2c.samples
def _(s):
    yield s(s.array(4, 3, dtype="complex64"), [1], "backward", True).loosely(4)
    yield s(s.array(4, 3, dtype="complex128"), [0, 1], "ortho", False).loosely(4)
    yield s(s.strided(4, 6, dtype="complex64"), [1], "forward", False).loosely(4)
    yield s(s.array(0, 4, dtype="complex64"), [1], "backward", True)


@fft_r2c.samples
def _(s):
    for onesided in (False, True):
        yield s(s.array(4, 5), [1], "backward", onesided).loosely(4)
        yield s(s.array(4, 6, dtype="float64"), [1, 0], "ortho", onesided).loosely(4)
    yield s(s.array(0, 4), [1], "backward", True)


@fft_c2r.samples
def _(s):
    yield s(s.array(4, 3, dtype="complex64"), [1], "backward", 5).loosely(4)
    yield s(s.array(4, 3, dtype="complex128"), [0, 1], "ortho", 4).loosely(4)
    yield s(s.array(0, 4, dtype="complex64"), [1], "backward", 6)


fft_c2c.error(
    "DTypeError", lambda s: s(s.array(2), [0], "ortho", True), contains=["fft_c2c", "float32"]
)
fft_r2c.error(
    "DTypeError",
    lambda s: s(s.array(2, dtype="complex64"), [0], "ortho", True),
    contains=["fft_r2c", "complex64"],
)
fft_c2r.error(
    "DTypeError", lambda s: s(s.array(2), [0], "ortho", 2), contains=["fft_c2r", "float32"]
)
for _each, _dtype, _last in (
    (fft_c2c, "complex64", (True,)),
    (fft_r2c, "float32", (True,)),
    (fft_c2r, "complex64", (2,)),
):
    for _dim, _kind in (([], "ValueError"), ([0, 0], "ValueError"), ([2], "IndexError")):
        _each.error(
            _kind,
            lambda s, d=_dim, t=_dtype, r=_last: s(s.array(2, 2, dtype=t), d, "ortho", *r),
            contains=[_each.schema.base, "`dim`"],
        )
fft_c2r.error(
    "ShapeError",
    lambda s: s(s.array(2, 2, dtype="complex64"), [1], "ortho", 2**40),
    contains=["fft_c2r", "`last`", "(2, 2)"],
)
