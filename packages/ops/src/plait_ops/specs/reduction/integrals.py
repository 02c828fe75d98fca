"""Integrals of samples by the trapezoidal rule."""

from plait_ops import calls as op
from plait_ops.spec import Composite
from plait_ops.words import check, default_dtype, is_integral, part, to_dtype, wrap_dim

_TEXT = """
    Raises: IndexError for a `dim` out of range{}.
"""


def _rule(name, text, more=""):
    return Composite(
        f"{name}(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor",
        doc=f"""
    {text} of samples at distance `dx`, by the trapezoidal rule, along `dim`.
    {_TEXT.format("")}
    >>> import plait_core as pc
    >>> pc.{name}(pc.tensor([1.0, 2.0, 3.0])){more}
    """,
        dtypes="arithmetic",
        widens=True,
    ), Composite(
        f"{name}.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
        doc=f"""
    {text} of samples at the places `x`, by the trapezoidal rule, along `dim`. `x` has as many elements along `dim` as there
    are samples.
    {_TEXT.format(", ShapeError if `x` has another size")}
    >>> import plait_core as pc
    >>> pc.{name}(pc.tensor([1.0, 2.0, 3.0]), pc.tensor([0.0, 1.0, 2.0])){more}
    """,
        dtypes="arithmetic",
        widens=True,
    )


trapezoid_, trapezoid_x_ = _rule("trapezoid", "The integral", ".item()\n    4.0")
trapz, trapz_x = _rule("trapz", "`trapezoid`, the integral", ".item()\n    4.0")
cumulative_trapezoid_, cumulative_trapezoid_x_ = _rule(
    "cumulative_trapezoid", "The integrals up to every sample but the first",
    ".tolist()\n    [1.5, 4.0]",
)  # fmt: skip


@part
def as_floats(x):
    """Integers and bools as floats: sums and products of narrow integers wrap around."""
    if is_integral(x.dtype):
        return to_dtype(x, default_dtype())
    return x


@trapezoid_.decompose
def _(y, dx, dim):
    at = wrap_dim("dim", dim, y.shape)
    n = y.shape[at] if y.ndim > 0 else 0
    check(y.ndim > 0, "`y` must have at least 1 dimension; got shape ()", "IndexError")
    if n < 2:
        return op.sum(op.narrow(y, at, 0, 0), [at]) * dx
    samples = as_floats(y)
    ends = op.narrow(samples, at, 0, n - 1) + op.narrow(samples, at, 1, n - 1)
    return op.sum(ends, [at], dtype=ends.dtype) * dx / 2.0


@part
def distances(y, x, dim):
    """The distances between neighbours in x along `dim` of y."""
    check(
        y.ndim > 0 and x.ndim > 0,
        f"`y` and `x` must have at least 1 dimension; got shapes {y.shape} and {x.shape}",
        "IndexError",
    )
    at = wrap_dim("dim", dim, y.shape)
    n = y.shape[at]
    places = as_floats(x)
    if x.ndim == 1 and y.ndim > 1:
        places = op.reshape(places, [x.shape[0]] + [1] * (y.ndim - 1 - at))
        where = 0
    else:
        where = wrap_dim("dim", dim, x.shape)
    check(
        places.shape[where] == n,
        f"`x` of shape {x.shape} must have the same number of elements along `dim` {dim} as `y` of shape {y.shape}",
    )
    if n < 2:
        return op.narrow(places, where, 0, 0)
    return op.narrow(places, where, 1, n - 1) - op.narrow(places, where, 0, n - 1)


@trapezoid_x_.decompose
def _(y, x, dim):
    steps = distances(y, x, dim)
    at = wrap_dim("dim", dim, y.shape)
    n = y.shape[at]
    if n < 2:
        return op.sum(op.narrow(y, at, 0, 0), [at])
    samples = as_floats(y)
    ends = (op.narrow(samples, at, 0, n - 1) + op.narrow(samples, at, 1, n - 1)) * steps
    return op.sum(ends, [at - y.ndim], dtype=ends.dtype) / 2.0


@trapz.decompose
def _(y, dx, dim):
    return op.trapezoid(y, dx=dx, dim=dim)


@trapz_x.decompose
def _(y, x, dim):
    return op.trapezoid_x(y, x, dim=dim)


@cumulative_trapezoid_.decompose
def _(y, dx, dim):
    check(y.ndim > 0, "`y` must have at least 1 dimension; got shape ()", "IndexError")
    at = wrap_dim("dim", dim, y.shape)
    n = max(y.shape[at], 1)
    samples = as_floats(y)
    ends = op.narrow(samples, at, 0, n - 1) + op.narrow(samples, at, 1, n - 1)
    kind = ends.dtype  # so that `cumsum` reads `ends` last
    return op.cumsum(ends, at, dtype=kind) * dx / 2.0


@cumulative_trapezoid_x_.decompose
def _(y, x, dim):
    steps = distances(y, x, dim)
    at = wrap_dim("dim", dim, y.shape)
    n = max(y.shape[at], 1)
    samples = as_floats(y)
    ends = (op.narrow(samples, at, 0, n - 1) + op.narrow(samples, at, 1, n - 1)) * steps
    kind = ends.dtype
    return op.cumsum(ends, at - y.ndim, dtype=kind) / 2.0
