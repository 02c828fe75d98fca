"""Writing where index tensors and masks point."""

import numpy as np

from plait_ops.calls import clone, index
from plait_ops.spec import Composite, Operator
from plait_ops.words import bool_, cast_argument, check, is_floating, is_integral, is_tensor, require, sum_to, to_dtype

TEXT = """
    `indices` holds a tensor for each dimension of `self`, from the first on: integers, or bools that stand for the indices
    of the True ones (and for as many dimensions as the mask has), or None for all of a dimension. Integer tensors
    broadcast together, as in NumPy. With `accumulate` the values are added, also where indices repeat; else the last one
    is written.

    Shapes: `values` (or a number) broadcasts to the shape of ``self[indices]`` and is cast to the dtype of `self`.
    Raises: IndexError if there are too many indices or one is out of range, ShapeError if `values` does not broadcast,
    DTypeError for indices that are neither integers nor bools or values of a higher category than `self`.
"""

index_put_ = Operator(
    "index_put_(Tensor(a)! self, Tensor?[] indices, Tensor|Scalar values, bool accumulate=False) -> Tensor(a)!",
    doc=f"""
    ``self[indices] = values``; returns `self`.
    {TEXT}
    >>> import plait_core as pc
    >>> pc.zeros(3).index_put_([pc.tensor([0, 2])], pc.tensor([1.0, 2.0])).tolist()
    [1.0, 0.0, 2.0]
    """,
    dtypes="any",
    kernel="in[0] has any strides; in[2] has its dtype or is a number.",
)
index_put = Composite(
    "index_put(Tensor self, Tensor?[] indices, Tensor|Scalar values, bool accumulate=False) -> Tensor",
    doc=f"""
    A copy of `self` in which ``copy[indices] = values``.
    {TEXT}
    >>> import plait_core as pc
    >>> pc.index_put(pc.zeros(3), [pc.tensor([0, 0])], 1.0, accumulate=True).tolist()
    [2.0, 0.0, 0.0]
    """,
    dtypes="any",
)


@index_put_.shape
def _(self, indices, values, accumulate):
    used = 0
    for each in indices:
        if each is None:
            used += 1
        else:
            require("indices", each.dtype, "integral")
            used += each.ndim if each.dtype == bool_ else 1
    check(
        used <= self.ndim,
        f"`indices` must index at most as many dimensions as `self` of shape {self.shape} has; got {used}",
        "IndexError",
    )
    if accumulate:
        require("self", self.dtype, "numeric")
    if is_tensor(values):
        lower = is_integral(values.dtype) or (is_floating(values.dtype) and not is_integral(self.dtype))
        check(
            lower or not (is_floating(self.dtype) or is_integral(self.dtype)),
            f"`values` of dtype {values.dtype} cannot be written to `self` of dtype {self.dtype}",
            "DTypeError",
        )
        cast_argument("values", self.dtype)
    return self


@index_put_.vjp("self")
def _(g, indices, accumulate):
    if accumulate:
        return g
    return index_put(g, indices, 0)


@index_put_.vjp("values")
def _(g, indices, values):
    return to_dtype(sum_to(index(g, indices), values.shape), values.dtype)


@index_put.decompose
def _(self, indices, values, accumulate):
    made = clone(self)
    index_put_(made, indices, values, accumulate)
    return made


def _indices(indices):
    return tuple(slice(None) if each is None else each for each in indices)


@index_put_.reference
def _(self, indices, values, accumulate=False):
    chosen = values.astype(self.dtype) if isinstance(values, np.ndarray) else values
    if accumulate:
        np.add.at(self, _indices(indices), chosen)
    else:
        self[_indices(indices)] = chosen
    return self


index_put.reference(
    lambda self, indices, values, accumulate=False: index_put_(self.copy(), indices, values, accumulate)
)


@index_put_.samples
@index_put.samples
def _(s):
    yield s(s.array(5), [np.array([0, 3])], s.array(2))
    yield s(s.array(5), [np.array([4, -5])], 2.5)
    yield s(s.array(5, 3), [np.array([4, 0])], s.array(3))
    yield s(s.array(5, 3), [None, np.array([2, 0])], s.array(5, 2))
    yield s(s.array(5, 3), [np.array([[1], [4]]), np.array([0, 2])], s.array(2, 2))
    yield s(s.array(2, 3, 4), [np.array([0, 1]), None, np.array([3, 0])], s.array(2, 3))
    yield s(s.array(3, 4), [s.array(3, 4, dtype="bool")], -1.0)
    yield s(s.array(3, 4), [np.array([True, False, True])], s.array(2, 4))
    yield s(s.array(3, 4), [None, np.array([True, False, True, True])], s.array(3, 1))
    yield s(s.strided(5, 3), [np.array([4, 0], "int32")], s.backwards(2, 3))
    yield s(s.array(5), [np.array([1, 1, 1, 4])], s.array(4), True)
    yield s(s.array(5, 3), [np.array([1, 1])], s.array(2, 1), True)
    yield s(s.array(5, dtype="int64"), [s.indices(5, 12)], 2, True)
    yield s(s.array(5, dtype="bool"), [np.array([1])], True)
    yield s(s.array(5, dtype="float64"), [np.array([1, 3])], s.array(2))
    yield s(s.array(5, dtype="complex64"), [np.array([1, 3])], s.array(2, dtype="complex64"))
    yield s(s.array(5), [np.zeros(0, "int64")], 1.0)
    yield s(s.array(0, 3), [np.zeros(0, "int64"), np.zeros(0, "int64")], s.array(0))
    yield s(s.array(3, 4), [], s.array(4))


for each in (index_put_, index_put):
    each.error(
        "IndexError", lambda s: s(s.array(3), [np.array([0]), np.array([0])], 1), contains=["index_put_", "indices", "(3,)", "2"]
    )
    each.error("IndexError", lambda s: s(s.array(3), [np.array([3])], 1), contains=["index_put_", "index", "3", "size 3"])
    each.error(
        "IndexError",
        lambda s: s(s.array(3, 4), [np.array([True, False])], 1),
        contains=["index_put_", "mask", "2", "3"],
    )
    each.error(
        "ShapeError",
        lambda s: s(s.array(3, 4), [np.array([0, 1])], s.array(3)),
        contains=["index_put_", "values", "(3)", "(2, 4)"],
    )
    each.error("DTypeError", lambda s: s(s.array(3), [s.array(1)], 1), contains=["index_put_", "indices", "float32"])
    each.error(
        "DTypeError",
        lambda s: s(s.array(3, dtype="int64"), [np.array([0])], s.array(1)),
        contains=["index_put_", "values", "float32", "int64"],
    )
