"""Vandermonde matrices."""

from plait_ops import calls as op
from plait_ops.spec import Composite
from plait_ops.words import check, require

linalg_vander_ = Composite(
    "linalg_vander(Tensor x, *, int? N=None) -> Tensor",
    doc="""
    Vandermonde matrices: ``out[..., i, j] = x[..., i] ** j`` for j < `N` (by default n).

    Args:
        x: The numbers whose powers are taken, along the last dimension.

    Shapes: `x` is (..., n), the result (..., n, N). Dtypes: numbers.
    A 0-d `x` counts as one of shape (1,). Raises: ValueError for a negative `N`.

    >>> import plait_core as pc
    >>> pc.linalg.vander(pc.tensor([1, 2, 3])).tolist()
    [[1, 1, 1], [1, 2, 4], [1, 3, 9]]
    """,
    dtypes="arithmetic",
)
vander = Composite(
    "vander(Tensor x, int? N=None, bool increasing=False) -> Tensor",
    doc="""
    The Vandermonde matrix of a vector: its powers from the highest down to 0, or with `increasing` from 0 up.

    Args:
        x: The numbers whose powers are taken, along the last dimension.

    Shapes: `x` is (n,), the result (n, N). Raises: ShapeError for other shapes, ValueError for a negative `N`.

    >>> import plait_core as pc
    >>> pc.vander(pc.tensor([1, 2, 3])).tolist()
    [[1, 1, 1], [4, 2, 1], [9, 3, 1]]
    """,
    dtypes="arithmetic",
)


@linalg_vander_.decompose
def _(x, N):
    require("x", x.dtype, "arithmetic")
    if x.ndim == 0:
        return op.linalg_vander(op.reshape(x, [1]), N=N)
    count = x.shape[-1] if N is None else N
    check(count >= 0, f"`N` must not be negative; got {count}", "ValueError")
    return op.pow(op.unsqueeze(x, -1), op.arange(count, device=x.device))


@vander.decompose
def _(x, N, increasing):
    check(x.ndim == 1, f"`x` must have 1 dimension; got shape {x.shape}")
    made = op.linalg_vander(x, N=N)
    if increasing:
        return made
    return op.flip(made, [-1])
