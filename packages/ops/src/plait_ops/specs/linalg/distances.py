"""Distances between vectors, and norms that are limited."""

from plait_ops import calls as op
from plait_ops.spec import Composite, Operator
from plait_ops.words import broadcast, check, numel, require, require_same, result, wrap_dim

cdist_ = Composite(
    "cdist(Tensor x1, Tensor x2, float p=2.0, str? compute_mode=None) -> Tensor",
    doc="""
    The p-norm of the difference of every row of `x1` and every row of `x2`: ``out[..., i, j] = |x1[..., i] - x2[..., j]|``.

    Shapes: `x1` is (..., n, k), `x2` (..., m, k), the result (..., n, m); batches broadcast. Dtypes: floating, the same for
    both. `compute_mode` is accepted and changes nothing: differences are always subtracted directly, so that no accuracy is
    lost by cancellation.
    Raises: ShapeError for other shapes, DTypeError for other dtypes, ValueError for a negative `p`.

    >>> import plait_core as pc
    >>> pc.cdist(pc.tensor([[0.0, 0.0]]), pc.tensor([[3.0, 4.0]])).item()
    5.0
    """,
    dtypes="floating",
    widens=True,
)


@cdist_.decompose
def _(x1, x2, p):
    check(
        x1.ndim >= 2 and x2.ndim >= 2,
        f"`x1` and `x2` must have at least 2 dimensions; got shapes {x1.shape} and {x2.shape}",
    )
    require("x1", x1.dtype, "floating")
    require_same("x1", x1, "x2", x2)
    check(
        x1.shape[-1] == x2.shape[-1],
        f"`x1` and `x2` must have the same last size; got shapes {x1.shape} and {x2.shape}",
    )
    check(p >= 0.0, f"`p` must not be negative; got {p}", "ValueError")
    batch = broadcast("x1", x1.shape[:-2], "x2", x2.shape[:-2])
    if x1.shape[-1] == 0:
        n = x1.shape[-2]
        m = x2.shape[-2]
        return op.expand(op.sum(x1, [-1], True) * 1.0, batch + [n, 1]) * op.expand(
            op.unsqueeze(op.sum(x2, [-1]), -2), batch + [1, m]
        )
    if p == 2.0:
        rows = batch + x1.shape[-2:]
        columns = batch + x2.shape[-2:]
        return euclidean_distances(op.expand(x1, rows), op.expand(x2, columns))
    return op.norm(op.unsqueeze(x1, -2) - op.unsqueeze(x2, -3), p, [-1])


euclidean_distances = Operator(
    "euclidean_distances(Tensor x1, Tensor x2) -> Tensor",
    doc="""
    The Euclidean distance of every row of `x1` and every row of `x2`, from differences of their elements:
    ``out[..., i, j] = sqrt(sum((x1[..., i] - x2[..., j]) ** 2))``. Shapes: `x1` is (..., n, k), `x2` (..., m, k) with the same
    other sizes, the result (..., n, m). Gradients are 0 where a distance is 0.
    """,
    dtypes="floating",
    internal=True,
    kernel="optional; any strides.",
    widens=True,
)


@euclidean_distances.shape
def _(x1, x2):
    require("x1", x1.dtype, "floating")
    require_same("x1", x1, "x2", x2)
    check(
        x1.ndim >= 2
        and x2.ndim == x1.ndim
        and x1.shape[:-2] == x2.shape[:-2]
        and x1.shape[-1] == x2.shape[-1],
        f"`x1` and `x2` must have shapes (..., n, k) and (..., m, k); got {x1.shape} and {x2.shape}",
    )
    return result(x1.shape[:-1] + [x2.shape[-2]], x1.dtype)


@euclidean_distances.cost
def _(x1, result):
    return numel(result) * (3 * x1.shape[-1] + 1)


@euclidean_distances.decompose
def _(x1, x2):
    return op.norm(op.unsqueeze(x1, -2) - op.unsqueeze(x2, -3), 2.0, [-1])


distances_backward = Operator(
    "distances_backward(Tensor grad, Tensor distances, Tensor x1, Tensor x2) -> Tensor",
    doc="""
    The gradient of `x1` from that of the `distances` to `x2`: the sum of ``grad_ij (x1_i - x2_j) / distances_ij`` over j,
    without those j whose distance is 0. Shapes: `grad` and `distances` are (..., n, m), `x1` is (..., n, k), `x2` (..., m, k).
    """,
    dtypes="floating",
    internal=True,
    kernel="optional; any strides; the result is in C order.",
    widens=True,
)


@distances_backward.shape
def _(grad, distances, x1, x2):
    require("grad", grad.dtype, "floating")
    require_same("grad", grad, "distances", distances)
    require_same("grad", grad, "x1", x1)
    require_same("grad", grad, "x2", x2)
    check(
        x1.ndim >= 2
        and x2.ndim == x1.ndim
        and x1.shape[:-2] == x2.shape[:-2]
        and x1.shape[-1] == x2.shape[-1]
        and grad.shape == x1.shape[:-1] + [x2.shape[-2]]
        and distances.shape == grad.shape,
        f"`grad` and `distances` must have shape (..., n, m), `x1` (..., n, k) and `x2` (..., m, k); got {grad.shape}, {distances.shape}, {x1.shape} and {x2.shape}",
    )
    return result(x1.shape, x1.dtype)


@distances_backward.cost
def _(grad, x1):
    return numel(grad) * (3 * x1.shape[-1] + 1)


@distances_backward.decompose
def _(grad, distances, x1, x2):
    if x2.shape[-2] == 0:
        return op.zeros_like(x1)
    near = op.eq(distances, 0.0)
    pull = op.masked_fill(grad / op.masked_fill(distances, near, 1.0), near, 0.0)
    # distances stay when both sets of points move; less is lost by differences around the mean
    center = op.mean(x2, [-2], True)
    return (x1 - center) * op.sum(pull, [-1], True) - op.matmul(pull, x2 - center)


@euclidean_distances.vjp("x1")
def _(g, x1, x2, result):
    return op.distances_backward(g, result, x1, x2)


@euclidean_distances.vjp("x2")
def _(g, x1, x2, result):
    return op.distances_backward(op.transpose(g, -1, -2), op.transpose(result, -1, -2), x2, x1)


pairwise_distance_ = Composite(
    "pairwise_distance(Tensor x1, Tensor x2, float p=2.0, float eps=1e-6, bool keepdim=False) -> Tensor",
    doc="""
    The p-norm of ``x1 - x2 + eps`` over the last dimension; `eps` keeps the gradient finite at equal vectors.

    Args:
        eps: A small number that is added to each difference.

    Shapes: both broadcast; the result lacks the last dimension, or with `keepdim` has it with size 1. Dtypes: floating.
    Raises: ShapeError if shapes do not broadcast.

    >>> import plait_core as pc
    >>> round(pc.pairwise_distance(pc.tensor([0.0, 0.0]), pc.tensor([3.0, 4.0])).item(), 3)
    5.0
    """,
    dtypes="floating",
    widens=True,
)


@pairwise_distance_.decompose
def _(x1, x2, p, eps, keepdim):
    return op.norm(x1 - x2 + eps, p, [-1], keepdim)


pdist = Composite(
    "pdist(Tensor self, float p=2.0) -> Tensor",
    doc="""
    The p-norms of the differences of all pairs of rows: the upper triangle of ``cdist(self, self, p)`` without the diagonal.

    Shapes: `self` is (n, k), the result (n * (n - 1) / 2,). Dtypes: floating.
    Raises: ShapeError unless `self` has 2 dimensions, ValueError for a negative `p`.

    >>> import plait_core as pc
    >>> pc.pdist(pc.tensor([[0.0], [1.0], [3.0]])).tolist()
    [1.0, 3.0, 2.0]
    """,
    dtypes="floating",
    widens=True,
)


@pdist.decompose
def _(self, p):
    check(self.ndim == 2, f"`self` must have 2 dimensions; got shape {self.shape}")
    require("self", self.dtype, "floating")
    check(p >= 0.0, f"`p` must not be negative; got {p}", "ValueError")
    n = self.shape[0]
    if n < 2:
        return op.zeros([0], dtype=self.dtype, device=self.device)
    parts = []
    for i in range(n - 1):
        rest = op.narrow(self, 0, i + 1, n - 1 - i)
        parts.append(op.norm(rest - op.narrow(self, 0, i, 1), p, [-1]))
    return op.cat(parts)


cosine_similarity = Composite(
    "cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-8) -> Tensor",
    doc="""
    The cosine of the angle between vectors along `dim`: ``x1 . x2 / (max(|x1|, eps) * max(|x2|, eps))``.

    Args:
        eps: The least value of the product of the norms, against division by 0.

    Shapes: both broadcast; the result lacks `dim`. Dtypes: floating.
    Raises: ShapeError if shapes do not broadcast, IndexError for a `dim` out of range.

    >>> import plait_core as pc
    >>> pc.cosine_similarity(pc.tensor([3.0, 4.0]), pc.tensor([6.0, 8.0]), dim=0).item()
    1.0
    """,
    dtypes="floating",
    widens=True,
)


@cosine_similarity.decompose
def _(x1, x2, dim, eps):
    require("x1", x1.dtype, "floating")
    shape = broadcast("x1", x1.shape, "x2", x2.shape)
    at = wrap_dim("dim", dim, shape)
    a = op.expand(x1, shape)
    b = op.expand(x2, shape)
    first = op.clamp_min(op.norm(a, 2, [at], True), eps)
    second = op.clamp_min(op.norm(b, 2, [at], True), eps)
    return op.sum((a / first) * (b / second), [at])


dist = Composite(
    "dist(Tensor self, Tensor other, Scalar p=2) -> Tensor",
    doc="""
    The p-norm of all elements of ``self - other``.

    Raises: ShapeError if shapes do not broadcast.

    >>> import plait_core as pc
    >>> pc.dist(pc.tensor([0.0, 0.0]), pc.tensor([3.0, 4.0])).item()
    5.0
    """,
    dtypes="inexact",
    variants="function method",
    widens=True,
)


@dist.decompose
def _(self, other, p):
    return op.linalg_vector_norm(self - other, p)


renorm = Composite(
    "renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor",
    doc="""
    `self` in which every slice along `dim` whose p-norm is larger than `maxnorm` is scaled so that its norm is `maxnorm`.

    Shape: that of `self`, at least 2 dimensions. Dtypes: floating and complex.
    Raises: ShapeError for fewer dimensions, IndexError for a `dim` out of range, ValueError for a `p` that is not positive or
    a negative `maxnorm`.

    >>> import plait_core as pc
    >>> pc.renorm(pc.tensor([[3.0, 4.0], [0.3, 0.4]]), 2, 0, 1.0).norm(dim=1).tolist()[1]
    0.5
    """,
    inplace=True,
    dtypes="inexact",
    variants="function method",
    widens=True,
)


@renorm.decompose
def _(self, p, dim, maxnorm):
    check(self.ndim >= 2, f"`self` must have at least 2 dimensions; got shape {self.shape}")
    check(float(p) > 0.0, f"`p` must be positive; got {float(p)}", "ValueError")
    check(
        float(maxnorm) >= 0.0, f"`maxnorm` must not be negative; got {float(maxnorm)}", "ValueError"
    )
    at = wrap_dim("dim", dim, self.shape)
    others = [i for i in range(self.ndim) if i != at]
    size = op.linalg_vector_norm(self, p, others, True)
    scale = op.where(op.gt(size, float(maxnorm)), float(maxnorm) / (size + 1e-7), 1.0)
    return op.contiguous(self) * scale
