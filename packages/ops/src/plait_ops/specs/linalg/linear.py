"""Affine maps: addmm, baddbmm and linear."""

from plait_ops import calls as op
from plait_ops.spec import Composite, Operator
from plait_ops.words import (
    bool_,
    broadcast,
    check,
    conjugate,
    dtype_of,
    fits_as_factor,
    is_complex,
    is_integral,
    numel,
    part,
    require,
    require_same,
    result,
    sum_to,
    to_dtype,
)

addmm = Operator(
    "addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    doc="""
    ``beta * self + alpha * (mat1 @ mat2)``.

    Args:
        alpha: The factor of the product.

    Shapes: `mat1` is (n, k), `mat2` is (k, m), `self` broadcasts to (n, m). Dtypes: integers and floats, the same for all.
    Raises: ShapeError for other shapes, DTypeError if the dtypes differ.

    >>> import plait_core as pc
    >>> pc.addmm(pc.tensor([[1.0]]), pc.ones(1, 3), pc.ones(3, 1)).tolist()
    [[4.0]]
    """,
    inplace=True,
    dtypes="arithmetic",
    kernel="in[0] broadcasts to the result; with beta 0 it is not read (it may hold nan).",
    variants="function method",
)
addmm.batch("code")


@addmm.shape
def _(self, mat1, mat2, beta, alpha):
    check(
        mat1.ndim == 2 and mat2.ndim == 2,
        f"`mat1` and `mat2` must have 2 dimensions; got shapes {mat1.shape} and {mat2.shape}",
    )
    check(
        mat1.shape[1] == mat2.shape[0],
        f"`mat1` of shape {mat1.shape} must have as many columns as `mat2` of shape {mat2.shape} has rows",
    )
    made = [mat1.shape[0], mat2.shape[1]]
    check(
        broadcast("self", self.shape, "mat1 @ mat2", made) == made,
        f"`self` of shape {self.shape} must broadcast to {tuple(made)}",
    )
    require("self", self.dtype, "arithmetic")
    fits_as_factor("alpha", alpha, self.dtype)
    fits_as_factor("beta", beta, self.dtype)
    require_same("self", self, "mat1", mat1)
    require_same("self", self, "mat2", mat2)
    return result(made, self.dtype)


@addmm.cost
def _(mat1, mat2):
    # the sums begin with `self`
    return 2 * numel(mat1) * mat2.shape[1]


@addmm.decompose
def _(self, mat1, mat2, beta, alpha):
    product = op.mm(mat1, mat2) * alpha
    return op.add(product, op.mul(self, beta))


@addmm.vjp("self")
def _(g, self, beta):
    return sum_to(g * conjugate(beta), self.shape)


@addmm.vjp("mat1")
def _(g, mat2, alpha):
    return op.mm(g, conjugate(op.t(mat2))) * conjugate(alpha)


@addmm.vjp("mat2")
def _(g, mat1, alpha):
    return op.mm(conjugate(op.t(mat1)), g) * conjugate(alpha)


@part
def scaled(self, factor):
    """``factor * self`` for integers; the fraction of the factor is cut off."""
    if is_integral(dtype_of(factor)):
        return self * factor
    return self * int(float(factor))


baddbmm = Composite(
    "baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    doc="""
    ``beta * self + alpha * bmm(batch1, batch2)``. For integer dtypes the fractions of `beta` and `alpha` are cut off, as in
    PyTorch.

    Args:
        alpha: The factor of the product.

    Raises: ShapeError if shapes do not fit, ValueError if `beta` or `alpha` do not fit in an integer dtype.

    >>> import plait_core as pc
    >>> pc.baddbmm(pc.ones(2, 1, 1), pc.ones(2, 1, 3), pc.ones(2, 3, 1)).tolist()
    [[[4.0]], [[4.0]]]
    """,
    inplace=True,
    dtypes="arithmetic",
    variants="function method",
)


@baddbmm.cost
def _(batch1, batch2):
    # the sums begin with `self`
    return 2 * numel(batch1) * batch2.shape[2]


@baddbmm.decompose
def _(self, batch1, batch2, beta, alpha):
    fits_as_factor("alpha", alpha, self.dtype)
    fits_as_factor("beta", beta, self.dtype)
    if is_integral(self.dtype):
        return op.add(scaled(op.bmm(batch1, batch2), alpha), scaled(self, beta))
    product = op.bmm(batch1, batch2) * alpha
    if not is_complex(dtype_of(beta)) and float(beta) == 0.0:  # the values of `self` do not matter
        check(
            broadcast("self", self.shape, "batch1 @ batch2", product.shape) == list(product.shape),
            f"`self` of shape {self.shape} must broadcast to {product.shape}",
        )
        return product
    return op.add(product, self * beta)


linear = Operator(
    "linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor",
    doc="""
    ``input @ weight.T + bias``.

    Args:
        weight: The weights: shape (out, in).
        bias: What is added to each output: shape (out), or None.
        input: Shape (..., in).

    Shapes: `input` is (..., k), `weight` (m, k), `bias` (m,), the result (..., m). Dtypes: numbers, the same for all.
    Raises: ShapeError for other shapes, DTypeError if the dtypes differ.

    >>> import plait_core as pc, plait_nn.functional as F
    >>> F.linear(pc.ones(1, 3), pc.ones(2, 3), pc.tensor([0.0, 1.0])).tolist()
    [[3.0, 4.0]]
    """,
    dtypes="arithmetic",
    kernel="in[0] has any number of leading dimensions; in[2] may be None.",
    variants="",
)
linear.shard("code")
linear.batch("linear", input="all")


@linear.shape
def _(input, weight, bias):
    check(input.ndim > 0, f"`input` must have at least 1 dimension; got shape {input.shape}")
    check(weight.ndim == 2, f"`weight` must have 2 dimensions; got shape {weight.shape}")
    check(
        input.shape[-1] == weight.shape[1],
        f"the last dimension of `input` {input.shape} must equal the last of `weight` {weight.shape}",
    )
    require("input", input.dtype, "arithmetic")
    require_same("input", input, "weight", weight)
    if bias is not None:
        check(
            bias.ndim == 1 and bias.shape[0] == weight.shape[0],
            f"`bias` must have shape {tuple(weight.shape[:1])} for `weight` of shape {weight.shape}; got {bias.shape}",
        )
        require_same("input", input, "bias", bias)
    return result(input.shape[:-1] + weight.shape[:1], input.dtype)


@linear.cost
def _(input, weight):
    # the sums begin with the bias
    return 2 * numel(input) * weight.shape[0]


@linear.decompose
def _(input, weight, bias):
    rows = op.reshape(input, [numel(input.shape[:-1]), input.shape[-1]])
    made = op.mm(rows, op.t(weight)) if bias is None else addmm(bias, rows, op.t(weight))
    return op.reshape(made, input.shape[:-1] + weight.shape[:1])


@linear.vjp("input")
def _(g, input, weight):
    if g.ndim == 2:
        return op.mm(g, conjugate(weight))
    rows = op.reshape(g, [numel(g.shape[:-1]), g.shape[-1]])
    return op.reshape(op.mm(rows, conjugate(weight)), input.shape)


@linear.vjp("weight")
def _(g, input):
    if g.ndim == 2:
        return op.mm(op.t(g), conjugate(input))
    n = numel(g.shape[:-1])
    rows = op.reshape(input, [n, input.shape[-1]])
    return op.mm(op.t(op.reshape(g, [n, g.shape[-1]])), conjugate(rows))


@linear.vjp("bias")
def _(g):
    if g.ndim == 2:
        return op.sum(g, [0])
    return op.sum(op.reshape(g, [numel(g.shape[:-1]), g.shape[-1]]), [0])


# ---- products that are added ---------------------------------------------------------------------
_BETA = """With `beta` 0, `self` is not read, so that infinities and nan in it do not matter.

    Dtypes: numbers, the same for all; for integer dtypes the fractions of `beta` and `alpha` are cut off, as in PyTorch. Raises: ShapeError for other shapes, DTypeError if dtypes differ, ValueError if `beta` or `alpha` do not fit in an integer dtype."""


addmv = Composite(
    "addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    doc=f"""
    ``beta * self + alpha * (mat @ vec)`` for a matrix (n, k) and a vector (k,); `self` broadcasts to (n,).
    {_BETA}

    >>> import plait_core as pc
    >>> pc.addmv(pc.ones(2), pc.eye(2), pc.tensor([3.0, 4.0])).tolist()
    [4.0, 5.0]
    """,
    inplace=True,
    dtypes="arithmetic",
    variants="function function_ method",
)
addr = Composite(
    "addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    doc=f"""
    ``beta * self + alpha * outer(vec1, vec2)`` for vectors (n,) and (m,); `self` broadcasts to (n, m).
    {_BETA}

    >>> import plait_core as pc
    >>> pc.addr(pc.zeros(1, 2), pc.ones(1), pc.tensor([3.0, 4.0])).tolist()
    [[3.0, 4.0]]
    """,
    inplace=True,
    dtypes="arithmetic",
    variants="function method",
)
addbmm = Composite(
    "addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    doc=f"""
    ``beta * self + alpha * sum_b(batch1[b] @ batch2[b])`` for (b, n, k) and (b, k, m); `self` broadcasts to (n, m).
    {_BETA}

    >>> import plait_core as pc
    >>> pc.addbmm(pc.zeros(1, 1), pc.ones(2, 1, 3), pc.ones(2, 3, 1)).item()
    6.0
    """,
    inplace=True,
    dtypes="arithmetic",
    variants="function method",
)


@part
def weighted_sum(self, product, beta, alpha):
    """``beta * self + alpha * product``; with beta 0 what `self` holds is no matter."""
    fits_as_factor("alpha", alpha, product.dtype)
    fits_as_factor("beta", beta, product.dtype)
    if is_integral(self.dtype) and is_integral(product.dtype):
        return scaled(product, alpha) + scaled(op.expand(self, product.shape), beta)
    made = product * alpha
    if not is_complex(dtype_of(beta)) and float(beta) == 0.0:
        return made
    return op.expand(self, product.shape) * beta + made


@addmv.decompose
def _(self, mat, vec, beta, alpha):
    require_same("self", self, "mat", mat)
    return weighted_sum(self, op.mv(mat, vec), beta, alpha)


@addr.decompose
def _(self, vec1, vec2, beta, alpha):
    product = op.outer(vec1, vec2)
    if is_integral(self.dtype) and is_integral(product.dtype):
        check(
            is_integral(dtype_of(beta)) and is_integral(dtype_of(alpha)),
            f"`beta` and `alpha` must be integers for {product.dtype} tensors; got {beta} and {alpha}",
            "TypeError",
        )
        fits_as_factor("alpha", alpha, product.dtype)
        fits_as_factor("beta", beta, product.dtype)
        whole = op.expand(self, product.shape)
        if self.dtype == bool_ and product.dtype == bool_:
            first, second = 0, 0
            if float(beta) != 0.0:
                first = 1
            if float(alpha) != 0.0:
                second = 1
            return to_dtype(whole * first + product * second, bool_)
        return scaled(whole, beta) + scaled(product, alpha)
    return weighted_sum(self, product, beta, alpha)


@addbmm.decompose
def _(self, batch1, batch2, beta, alpha):
    require_same("self", self, "batch1", batch1)
    product = op.sum(op.bmm(batch1, batch2), [0], dtype=self.dtype)
    return weighted_sum(self, product, beta, alpha)
