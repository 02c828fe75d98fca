"""Gated recurrent units over sequences."""

from plait_ops import calls as op
from plait_ops.spec import Composite, Operator
from plait_ops.specs.recurrent.lstm import (
    check_like,
    check_sequences,
    first_rows,
    in_order,
    state_before,
)
from plait_ops.words import part, result, to_dtype, wide_dtype

gru_sequence = Composite(
    "gru_sequence(Tensor gates, Tensor hx, Tensor weight, Tensor? bias, int[] sizes, bool reverse=False)"
    " -> (Tensor, Tensor)",
    doc="""
    Gated recurrent units over sequences (Cho et al. 2014): ``h' = (1 - z) * n + z * h`` with ``r = sigmoid(gates_r +
    u_r)``, ``z = sigmoid(gates_z + u_z)`` and ``n = tanh(gates_n + r * u_n)``, where u_r, u_z and u_n are the three parts
    of ``h @ weight^T + bias`` and `gates` holds the part of the gates that comes from the input. The results are h of every
    step, and h of the last step of each sequence.

    Sequences are packed in rows; `sizes` and `reverse` mean the same as in `lstm_sequence`.

    Args:
        weight: The weights of the hidden state.
        bias: The bias of the hidden state, or None.
        sizes: The number of sequences that take part in each step.

    Shapes: `gates` (rows, 3 H), `hx` (N, H), `weight` (3 H, H), `bias` (3 H,); the results are (rows, H) and (N, H).
    Dtypes: floating-point, the same for all.
    Raises: ShapeError for other shapes, ValueError for other `sizes`, DTypeError for other dtypes.

    >>> import plait_abi, plait_core as pc
    >>> x, h, w = pc.zeros(3, 3), pc.ones(2, 1), pc.zeros(3, 1)
    >>> output, last = plait_abi.operator("gru_sequence")(x, h, w, None, [2, 1])
    >>> last.flatten().tolist()
    [0.25, 0.5]
    """,
    dtypes="floating",
    variants="",
)


gru_forward = Operator(
    "gru_forward(Tensor gates, Tensor hx, Tensor weight, Tensor? bias, int[] sizes, bool reverse)"
    " -> (Tensor, Tensor, Tensor)",
    doc="`gru_sequence`, and what its derivative needs: r, z, n and u_n of every row, joined along the last dimension.",
    dtypes="floating",
    internal=True,
    auxiliary=[2],
    kernel="optional; any strides, results in C order.",
    libm="wide",
)


gru_backward = Operator(
    "gru_backward(Tensor grad, Tensor grad_h, Tensor gates, Tensor hx, Tensor weight, Tensor? bias, Tensor output, "
    "Tensor activated, int[] sizes, bool reverse) -> (Tensor, Tensor, Tensor, Tensor)",
    doc="The derivatives of `gru_forward` with respect to gates, hx, weight and bias; the last one has shape (3 H,), also without a bias.",
    dtypes="floating",
    internal=True,
    kernel="optional; any strides, results in C order; only the decomposition needs `gates` and `bias`.",
    libm="wide",
)


@gru_forward.shape
def _(gates, hx, weight, bias, sizes):
    check_sequences(gates, hx, weight, sizes, 3)
    if bias is not None:
        check_like("bias", bias, gates, [gates.shape[1]])
    return (
        result([gates.shape[0], hx.shape[1]], gates.dtype),
        result(hx.shape, gates.dtype),
        result([gates.shape[0], 4 * hx.shape[1]], gates.dtype),
    )


@gru_sequence.cost
@gru_forward.cost
def _(gates, hx):
    # the product, whose sums begin with the bias; three functions, two products, five sums
    states = gates.shape[0] * hx.shape[1]
    return states * (6 * hx.shape[1] + 10)


@gru_backward.shape
def _(grad, grad_h, gates, hx, weight, bias, output, activated, sizes):
    check_sequences(gates, hx, weight, sizes, 3)
    rows = [gates.shape[0], hx.shape[1]]
    if bias is not None:
        check_like("bias", bias, gates, [gates.shape[1]])
    check_like("grad", grad, gates, rows)
    check_like("grad_h", grad_h, gates, list(hx.shape))
    check_like("output", output, gates, rows)
    check_like("activated", activated, gates, [gates.shape[0], 4 * hx.shape[1]])
    return (
        result(gates.shape, gates.dtype),
        result(hx.shape, gates.dtype),
        result(weight.shape, gates.dtype),
        result([gates.shape[1]], gates.dtype),
    )


@gru_backward.cost
def _(gates, hx):
    # the products for the state before and for the weight; three operations for each derivative of
    # a function, which are three, seven for the gradients that they get, three for the bias
    states = gates.shape[0] * hx.shape[1]
    return states * (12 * hx.shape[1] + 19)


@gru_sequence.decompose
def _(gates, hx, weight, bias, sizes, reverse):
    output, h, _activated = gru_forward(gates, hx, weight, bias, sizes, reverse)
    return output, h


@part
def gru_activations(x, h, weight, bias):
    """r, z, n and u_n of one step, whose rows of `gates` are x and whose state before it is h."""
    width = h.shape[1]
    u = h @ op.t(weight)
    if bias is not None:
        u = u + bias
    r = op.sigmoid(op.narrow(x, 1, 0, width) + op.narrow(u, 1, 0, width))
    z = op.sigmoid(op.narrow(x, 1, width, width) + op.narrow(u, 1, width, width))
    own = op.narrow(u, 1, 2 * width, width)
    return [r, z, op.tanh(op.narrow(x, 1, 2 * width, width) + r * own), own]


# halves: the same operators in float32, and each result is rounded once
@gru_forward.decompose
def _(gates, hx, weight, bias, sizes, reverse):
    dtype = gates.dtype
    wide = wide_dtype(dtype)
    if dtype != wide:
        output, h_n, values = gru_forward(
            to_dtype(gates, wide),
            to_dtype(hx, wide),
            to_dtype(weight, wide),
            None if bias is None else to_dtype(bias, wide),
            sizes,
            reverse,
        )
        return to_dtype(output, dtype), to_dtype(h_n, dtype), to_dtype(values, dtype)
    starts = first_rows(sizes)
    steps = len(sizes)
    h = op.narrow(hx, 0, 0, sizes[steps - 1]) if reverse else hx
    outputs = []
    activated = []
    last = []
    for k in range(steps):
        at = steps - 1 - k if reverse else k
        n = sizes[at]
        if h.shape[0] > n:
            last.append(op.narrow(h, 0, n, h.shape[0] - n))
        h = state_before(h, hx, n)
        # r, z, n and u_n
        own = gru_activations(op.narrow(gates, 0, starts[at], n), h, weight, bias)
        z = own[1]
        new = own[2]
        h = new + z * (h - new)
        outputs.append(h)
        activated.append(op.cat(own, 1))
    last.append(h)
    return in_order(outputs, reverse), in_order(last, True), in_order(activated, reverse)


@gru_forward.vjp("gates", "hx", "weight", "bias")
def _(g0, g1, gates, hx, weight, bias, result0, result2, sizes, reverse):
    gx, gh, gw, gb = gru_backward(g0, g1, gates, hx, weight, bias, result0, result2, sizes, reverse)
    return gx, gh, gw, gb


@gru_backward.decompose
def _(grad, grad_h, gates, hx, weight, bias, output, activated, sizes, reverse):
    dtype = gates.dtype
    wide = wide_dtype(dtype)
    if dtype != wide:
        by_all, by_h, by_w, by_bias = gru_backward(
            to_dtype(grad, wide),
            to_dtype(grad_h, wide),
            to_dtype(gates, wide),
            to_dtype(hx, wide),
            to_dtype(weight, wide),
            None if bias is None else to_dtype(bias, wide),
            to_dtype(output, wide),
            to_dtype(activated, wide),
            sizes,
            reverse,
        )
        return (
            to_dtype(by_all, dtype),
            to_dtype(by_h, dtype),
            to_dtype(by_w, dtype),
            to_dtype(by_bias, dtype),
        )
    starts = first_rows(sizes)
    steps = len(sizes)
    rows = hx.shape[0]
    h = op.narrow(hx, 0, 0, sizes[steps - 1]) if reverse else hx
    before = []
    resets = []
    updates = []
    news = []
    owns = []
    for k in range(steps):
        at = steps - 1 - k if reverse else k
        n = sizes[at]
        h = state_before(h, hx, n)
        before.append(h)
        # r, z, n and u_n
        own = gru_activations(op.narrow(gates, 0, starts[at], n), h, weight, bias)
        z = own[1]
        new = own[2]
        h = new + z * (h - new)
        resets.append(own[0])
        updates.append(z)
        news.append(new)
        owns.append(own[3])
    gh = grad_h * 1.0
    by_gates = []
    by_recurrent = []
    for j in range(steps):
        k = steps - 1 - j
        at = steps - 1 - k if reverse else k
        n = sizes[at]
        own_h = op.narrow(gh, 0, 0, n) + op.narrow(grad, 0, starts[at], n)
        by_new = op.tanh_backward(own_h * (1.0 - updates[k]), news[k])
        by_reset = op.sigmoid_backward(by_new * owns[k], resets[k])
        by_update = op.sigmoid_backward(own_h * (before[k] - news[k]), updates[k])
        by_u = op.cat([by_reset, by_update, by_new * resets[k]], 1)
        by_gates.append(op.cat([by_reset, by_update, by_new], 1))
        by_recurrent.append(by_u)
        gh = op.cat([own_h * updates[k] + by_u @ weight, op.narrow(gh, 0, n, rows - n)])
    by_row = in_order(by_recurrent, not reverse)
    by_weight = op.t(by_row) @ in_order(before, reverse)
    return in_order(by_gates, not reverse), gh, by_weight, op.sum(by_row, [0])
