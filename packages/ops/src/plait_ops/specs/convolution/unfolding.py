"""Windows of a dimension as a new one."""

from plait_ops import calls as op
from plait_ops.spec import Operator, View
from plait_ops.words import check, max_dims, result, sizes, view as look, wrap_dim

unfold = View(
    "unfold(Tensor(a) self, int dim|dimension, int size, int step) -> Tensor(a)",
    doc="""
    Windows of `size` elements along `dim`, `step` elements apart, as a new last dimension; windows may overlap in memory,
    so the result must not be written.

    Args:
        size: The size of each window.
        step: The distance of two windows.

    Raises: ValueError if `size` is negative or larger than the dimension, or if `step` is below 1.

    >>> import plait_core as pc
    >>> pc.arange(4).unfold(0, 2, 1).tolist()
    [[0, 1], [1, 2], [2, 3]]
    """,
    variants="method",
)
unfold.batch("dimensions")
unfold_backward = Operator(
    "unfold_backward(Tensor grad, int[] input_size, int dim, int size, int step) -> Tensor",
    doc="Windows added up where they came from: the derivative of `unfold`.",
    kernel="optional: without a kernel other operators compute it; in[2] may be negative; windows that overlap are added up; every element of the result is written, zeros included.",
    dtypes="floating",
    internal=True,
)
unfold_backward.batch("leading")


@unfold.shape
def _(self, dim, size, step):
    at = wrap_dim("dim", dim, self.shape)
    n = self.shape[at] if self.ndim > 0 else 1
    check(
        0 <= size <= n,
        f"`size` must be in [0, {n}] for dimension {dim} of shape {self.shape}; got {size}",
        "ValueError",
    )
    check(step >= 1, f"`step` must be at least 1; got {step}", "ValueError")
    max_dims("size", self.ndim + 1)
    if self.ndim == 0:
        return look(self, [size], [1])
    shape = list(self.shape)
    strides = list(self.strides)
    shape[at] = (n - size) // step + 1
    strides[at] = strides[at] * step if shape[at] > 1 else strides[at]
    return look(self, shape + [size], strides + [self.strides[at]])


@unfold.vjp("self")
def _(g, self, dim, size, step):
    if self.ndim == 0:
        return op.sum(g)
    return unfold_backward(g, self.shape, dim, size, step)


@unfold_backward.shape
def _(grad, input_size, dim, size, step):
    sizes("input_size", input_size)
    at = wrap_dim("dim", dim, input_size)
    check(step >= 1, f"`step` must be at least 1; got {step}", "ValueError")
    check(
        len(input_size) > 0
        and size >= 0
        and size <= input_size[at]
        and grad.ndim == len(input_size) + 1
        and grad.shape[at] == (input_size[at] - size) // step + 1,
        f"`grad` of shape {grad.shape} is not that of windows of `size` {size} and `step` {step} "
        f"along `dim` {dim} of {tuple(input_size)}",
    )
    return result(input_size, grad.dtype)


@unfold_backward.decompose
def _(grad, input_size, dim, size, step):
    made = op.zeros(input_size, dtype=grad.dtype, device=grad.device)
    at = wrap_dim("dim", dim, input_size)
    for k in range(size):
        windows = op.slice(made, at, k, k + (grad.shape[at] - 1) * step + 1, step)
        op.add_(windows, op.select(grad, -1, k))
    return made


@unfold_backward.vjp("grad")
def _(g, dim, size, step):
    return unfold(g, dim, size, step)
