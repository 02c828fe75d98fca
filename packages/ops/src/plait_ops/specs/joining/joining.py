"""Tensors joined along a dimension that they have."""

from plait_ops import calls as op
from plait_ops.alias import under_another_name
from plait_ops.spec import Composite, Operator
from plait_ops.words import (
    cast_argument,
    check,
    format_strides,
    is_contiguous,
    is_in_format,
    promote_all,
    result_as,
    to_dtype,
    wrap_dim,
)

cat = Operator(
    "cat(Tensor[] tensors, int dim|axis=0) -> Tensor",
    doc="""
    The `tensors` one after the other along `dim`. They have the same sizes in all other dimensions; a 1-d tensor without
    elements is left out. Dtypes are promoted. If all tensors have the memory format channels_last or channels_last_3d, and
    are not in C order, the result has it too.

    Args:
        tensors: The tensors; their shapes differ in `dim` only.

    Raises: ValueError for an empty list, ShapeError if sizes differ, IndexError for a `dim` out of range.

    >>> import plait_core as pc
    >>> pc.cat([pc.tensor([1]), pc.tensor([2, 3])]).tolist()
    [1, 2, 3]
    """,
    dtypes="any",
    kernel="all tensors have the dtype of the result; those of shape (0,) among others are to be skipped.",
)
cat.batch("code")


@cat.shape
def _(tensors, dim):
    check(
        len(tensors) > 0, "`tensors` must hold at least one tensor; got an empty list", "ValueError"
    )
    first = tensors[0]
    for t in tensors:
        if t.ndim != 1 or t.shape[0] != 0:
            first = t
            break
    at = wrap_dim("dim", dim, first.shape)
    check(first.ndim > 0, "`tensors` must have at least 1 dimension; got shape ()")
    total = 0
    for i in range(len(tensors)):
        t = tensors[i]
        if t.ndim != 1 or t.shape[0] != 0 or first.ndim == 1:
            check(
                t.ndim == first.ndim,
                f"`tensors` must have the same number of dimensions; got shape {first.shape} and, at {i}, {t.shape}",
            )
            for d in range(first.ndim):
                check(
                    d == at or t.shape[d] == first.shape[d],
                    f"`tensors` must have the same sizes except in dimension {at}; got shape {first.shape} and, at {i}, {t.shape}",
                )
            total += t.shape[at]
    dtype = promote_all("tensors", tensors)
    cast_argument("tensors", dtype)
    shape = list(first.shape)
    shape[at] = total
    memory_format = "contiguous_format"
    if first.ndim == 4:
        memory_format = "channels_last"
    if first.ndim == 5:
        memory_format = "channels_last_3d"
    for t in tensors:
        if t.ndim != first.ndim or is_contiguous(t) or not is_in_format(memory_format, t):
            memory_format = "contiguous_format"
    return result_as(shape, dtype, format_strides(memory_format, shape, shape))


@cat.vjp("tensors", meta=["tensors"])
def _(g, tensors, dim):
    gradients = []
    offset = 0
    for t in tensors:
        if t.ndim == 1 and t.shape[0] == 0:
            gradients.append(op.zeros([0], dtype=t.dtype, device=g.device))
        else:
            gradients.append(to_dtype(op.narrow(g, dim, offset, t.shape[dim]), t.dtype))
            offset += t.shape[dim]
    return gradients


concat = Composite(
    "concat(Tensor[] tensors, int dim|axis=0) -> Tensor",
    doc=under_another_name("`cat` under the array API's name.", "concat", cat),
    dtypes="any",
)


concatenate = Composite(
    "concatenate(Tensor[] tensors, int dim|axis=0) -> Tensor",
    doc=under_another_name("`cat` under NumPy's name.", "concatenate", cat),
    dtypes="any",
)


@concat.decompose
@concatenate.decompose
def _(tensors, dim):
    return cat(tensors, dim)
