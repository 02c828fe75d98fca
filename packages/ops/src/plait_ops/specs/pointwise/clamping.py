"""Elements limited to an interval."""

from plait_ops import calls as op
from plait_ops.alias import under_another_name
from plait_ops.spec import Composite, Pointwise
from plait_ops.words import check, is_tensor


def _bound(name, text, sign):
    return Pointwise(
        f"{name}(Tensor self, Tensor|Scalar {name[6:]}) -> Tensor",
        doc=f"""
    {text}

    >>> import plait_core as pc
    >>> pc.{name}(pc.tensor([1, 2, 3]), 2).tolist()
    {sign}
    """,
        dtypes="all",
        exact=True,
        variants="function function_ method",
    )


clamp_min = _bound("clamp_min", "``maximum(self, min)``; `min` may be a number.", "[2, 2, 3]")
clamp_max = _bound("clamp_max", "``minimum(self, max)``; `max` may be a number.", "[1, 2, 2]")
clamp_between = Pointwise(
    "clamp_between(Tensor self, Tensor|Scalar min, Tensor|Scalar max) -> Tensor",
    doc="``minimum(maximum(self, min), max)``: `clamp` with both bounds.",
    dtypes="numeric",
    scalar="clamp",
    exact=True,
    internal=True,
    inplace=True,
)


@clamp_min.decompose
def _(self, min):
    if is_tensor(min):
        return op.maximum(self, min)
    if float(min) != float(min):
        return op.full_like(self, min)
    return op.where(op.lt(self, min), min, self)


@clamp_max.decompose
def _(self, max):
    if is_tensor(max):
        return op.minimum(self, max)
    if float(max) != float(max):
        return op.full_like(self, max)
    return op.where(op.gt(self, max), max, self)


@clamp_between.decompose
def _(self, min, max):
    return clamp_max(clamp_min(self, min), max)


@clamp_min.vjp("self")
def _(g, self, min):
    return op.mul(g, op.ge(self, min))


@clamp_min.vjp("min")
def _(g, self, min):
    return op.mul(g, op.lt(self, min))


@clamp_max.vjp("self")
def _(g, self, max):
    return op.mul(g, op.le(self, max))


@clamp_max.vjp("max")
def _(g, self, max):
    return op.mul(g, op.gt(self, max))


@clamp_between.vjp("self")
def _(g, self, min, max):
    return op.mul(g, op.logical_and(op.ge(self, min), op.le(self, max)))


@clamp_between.vjp("min")
def _(g, self, min, max):
    return op.mul(g, op.logical_and(op.lt(self, min), op.lt(min, max)))


@clamp_between.vjp("max")
def _(g, self, min, max):
    if is_tensor(max):
        return op.mul(g, op.gt(clamp_min(self, min), max))
    return op.zeros_like(g)


clamp = Composite(
    "clamp(Tensor self, Tensor|Scalar? min=None, Tensor|Scalar? max=None) -> Tensor",
    doc="""
    ``minimum(maximum(self, min), max)``; None means no bound. Where `min` is above `max` the result is `max`.

    Raises: ValueError if both bounds are None, ShapeError if shapes do not broadcast, DTypeError for bool.

    >>> import plait_core as pc
    >>> pc.clamp(pc.tensor([1, 2, 3, 4]), 2, 3).tolist()
    [2, 2, 3, 3]
    """,
    inplace=True,
    dtypes="numeric",
    variants="function function_ method",
)
clamp.shard("elements")
clip = Composite(
    "clip(Tensor self, Tensor|Scalar? min=None, Tensor|Scalar? max=None) -> Tensor",
    doc=under_another_name("`clamp` under NumPy's name.", "clip", clamp),
    inplace=True,
    dtypes="numeric",
    variants="function function_ method",
)


@clamp.decompose
@clip.decompose
def _(self, min, max):
    check(
        min is not None or max is not None,
        "`min` or `max` must be given; got None for both",
        "ValueError",
    )
    if min is None:
        return clamp_max(self, max)
    if max is None:
        return clamp_min(self, min)
    return clamp_between(self, min, max)
