"""Test data of linalg/svd: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.samples.matrices import singular_products
from plait_ops.specs.linalg.svd import linalg_svd_, linalg_svdvals_, singular_values_, svd

linalg_svd_.reference(
    lambda A, full_matrices=True, driver=None: tuple(np.linalg.svd(A, full_matrices))
)
linalg_svd_.compare(singular_products)
linalg_svdvals_.reference(lambda A, driver=None: np.linalg.svd(A, compute_uv=False))


@singular_values_.reference
def _(A, vectors):
    if not vectors:
        none = np.zeros(0, A.dtype)
        return np.linalg.svd(A, compute_uv=False), none, none
    u, s, vh = np.linalg.svd(A, False)
    return s, u, vh


singular_values_.compare(lambda s, u, vh: singular_products(u, s, vh))


def _matrices(s):
    yield s.array(3, 3)
    yield s.array(2, 4, 2, dtype="float64")
    yield s.array(2, 3)
    yield s.strided(3, 2)
    yield s.array(3, 2, dtype="complex64")
    yield s.array(0, 3, 2)


@linalg_svd_.samples
def _(s):
    for a in _matrices(s):
        # single vectors have arbitrary signs, which finite differences could see change
        phases = a.dtype.kind == "c"  # the phases are arbitrary too
        reduced = s(a, False).loosely(100)
        yield reduced.without_gradient() if phases else reduced
        # the vectors that complete a basis are arbitrary
        if a.shape[-2] == a.shape[-1]:
            yield s(a, True).loosely(100)
    yield s(s.array(3, 0))
    yield s(s.array(0, 2), full_matrices=False)


linalg_svdvals_.samples(
    lambda s: iter([*(s(a).loosely(10) for a in _matrices(s)), s(s.array(3, 0))])
)


@singular_values_.samples
def _(s):
    for a in _matrices(s):
        yield s(a, False).loosely(100)
    yield s(s.array(3, 3), True).loosely(100)
    yield s(s.array(2, 4, 2, dtype="float64"), True).loosely(100)


singular_values_.error(
    "ShapeError", lambda s: s(s.array(3), True), contains=["singular_values", "`A`", "(3,)"]
)

for _each in (linalg_svd_, linalg_svdvals_):
    _name = _each.schema.base
    _each.error("ShapeError", lambda s: s(s.array(3)), contains=[_name, "`A`", "(3,)"])
    _each.error("DTypeError", lambda s: s(s.array(2, 2, dtype="int64")), contains=[_name, "int64"])
    _each.error(
        "RuntimeError", lambda s: s(s.np.full((2, 2), s.np.nan)), contains=[_name, "`A`", "NaN"]
    )
    _each.error(
        "ValueError", lambda s: s(s.array(2, 2), driver="gesvd"), contains=[_name, "driver"]
    )


@svd.reference
def _(self, some=True, compute_uv=True):
    u, s, vh = np.linalg.svd(self, not some)
    if not compute_uv:
        *batch, m, n = self.shape
        return np.zeros((*batch, m, m), self.dtype), s, np.zeros((*batch, n, n), self.dtype)
    return u, s, vh.conj().swapaxes(-1, -2)


svd.compare(lambda u, s, v: singular_products(u, s, v.conj().swapaxes(-1, -2)))

svd.samples(
    lambda s: iter(
        [
            s(s.array(3, 2)).loosely(100),
            s(s.array(2, 3), compute_uv=False).loosely(10),
            s(s.array(2, 2, dtype="complex64")).loosely(100).without_gradient(),
        ]
    )
)
svd.error("ShapeError", lambda s: s(s.array(3)), contains=["`A`", "(3,)"])
