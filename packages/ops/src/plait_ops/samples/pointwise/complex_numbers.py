"""Test data of pointwise/complex_numbers: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.samples.pointwise_samples import predicate
from plait_ops.specs.pointwise.complex_numbers import (
    angle,
    complex__,
    conj_,
    imag,
    isreal,
    polar,
    real_,
    view_as_complex,
    view_as_real,
)


def _parts_error(operator, *dtypes):
    for dtype in dtypes:
        operator.error(
            "DTypeError",
            lambda s, dtype=dtype: s(s.array(2, dtype=dtype)),
            contains=[operator.name, "self", "complex", dtype],
        )


def _complex_samples(s):
    yield s(s.array(2, 3, dtype="complex64"))
    yield s(s.array(2, 3, dtype="complex128"))
    yield s(s.array(6, 8, dtype="complex64")[::-2, ::3].T)
    yield s(s.array(dtype="complex128"))
    yield s(s.array(0, 3, dtype="complex64"))


real_.reference(lambda self: np.real(self))
imag.reference(lambda self: np.imag(self))


@view_as_real.reference
def _(self):
    return np.stack([self.real, self.imag], -1)


@view_as_complex.reference
def _(self):
    return self[..., 0] + self[..., 1] * np.array(1j, "complex64")


real_.samples(lambda s: (each for each in [*_complex_samples(s), s(s.array(2, 3))]))
imag.samples(_complex_samples)
view_as_real.samples(_complex_samples)


@view_as_complex.samples
def _(s):
    yield s(s.array(3, 2))
    yield s(s.array(4, 3, 2, dtype="float64")[::-2].swapaxes(0, 1))
    yield s(s.array(2))
    yield s(s.array(0, 2))


real_.error("TypeError", lambda s: s("x"), contains=["real", "self"])
_parts_error(imag, "float32", "int64")
_parts_error(view_as_real, "float64", "bool")
_parts_error(view_as_complex, "float16", "int64")
view_as_complex.error(
    "ShapeError", lambda s: s(s.array(2, 3)), contains=["view_as_complex", "self", "(2, 3)"]
)
view_as_complex.error(
    "ShapeError", lambda s: s(s.array(2, 3).T[:2]), contains=["view_as_complex", "self", "stride"]
)
view_as_complex.error(
    "ShapeError", lambda s: s(s.array(3, 3)[:, :2]), contains=["view_as_complex", "even", "3"]
)


complex__.reference(
    lambda real, imag: (real + imag * 1j).astype(
        "complex64" if real.dtype == "float32" else "complex128"
    )
)
polar.reference(
    lambda abs, angle: (abs * np.cos(angle) + abs * np.sin(angle) * 1j).astype(
        "complex64" if abs.dtype == "float32" else "complex128"
    )
)
for each, first, second in ((complex__, "real", "imag"), (polar, "abs", "angle")):

    @each.samples
    def _(s):
        for dtype in ("float32", "float64"):
            yield s(s.array(2, 3, dtype=dtype), s.array(2, 3, dtype=dtype))
        yield s(s.array(2, 1), s.array(3))
        yield s(s.strided(4, 3), s.backwards(4, 3))
        yield s(s.array(), s.array())
        yield s(s.array(0, 2), s.array(2))

    each.error(
        "DTypeError", lambda s: s(s.array(2, dtype="int64"), s.array(2)), contains=[first, "int64"]
    )
    each.error(
        "DTypeError",
        lambda s: s(s.array(2), s.array(2, dtype="float64")),
        contains=[first, second, "float32", "float64"],
    )
    each.error("ShapeError", lambda s: s(s.array(2), s.array(3)), contains=["broadcast", "(3,)"])

conj_.reference(np.conj)

angle.reference(
    lambda x: (
        np.angle(x) if x.dtype.kind == "c" else np.where(np.isnan(x), x, np.where(x < 0, np.pi, 0))
    )
)


predicate(isreal, np.isreal)
