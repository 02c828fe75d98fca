"""Long short-term memory over sequences, and functions that recurrent layers share."""

from plait_ops import calls as op
from plait_ops.spec import Composite, Operator
from plait_ops.words import (
    check,
    part,
    require,
    require_same,
    result,
    to_dtype,
    wide_dtype,
)

lstm_sequence = Composite(
    "lstm_sequence(Tensor gates, Tensor hx, Tensor cx, Tensor weight, int[] sizes, bool reverse=False)"
    " -> (Tensor, Tensor, Tensor)",
    doc="""
    Long short-term memory over sequences (Hochreiter and Schmidhuber 1997): ``c' = sigmoid(f) * c + sigmoid(i) * tanh(g)``
    and ``h' = sigmoid(o) * tanh(c')``, where i, f, g, o are the four parts of ``gates + h @ weight^T``; `gates` holds the
    part of the gates that comes from the input and the biases. The results are h of every step, and h and c of the last
    step of each sequence.

    Sequences are packed in rows: first the rows of all sequences for the first step, then those for the second, and so on.
    `sizes` says how many sequences each step has; no step has more than the step before. With `reverse` each sequence is
    run from its own end to its beginning.

    Args:
        weight: The weights of the hidden state.
        sizes: The number of sequences that take part in each step.

    Shapes: `gates` (rows, 4 H), `hx` and `cx` (N, H), `weight` (4 H, H), `sizes` begins with N, and its sum is the number
    of rows; the results are (rows, H), (N, H), (N, H). Dtypes: floating-point, the same for all.
    Raises: ShapeError for other shapes, ValueError for other `sizes`, DTypeError for other dtypes.

    >>> import plait_abi, plait_core as pc
    >>> x, h, w = pc.zeros(3, 4), pc.ones(2, 1), pc.zeros(4, 1)
    >>> output, h, c = plait_abi.operator("lstm_sequence")(x, h, h, w, [2, 1])
    >>> c.flatten().tolist()
    [0.25, 0.5]
    """,
    dtypes="floating",
    variants="",
)


lstm_forward = Operator(
    "lstm_forward(Tensor gates, Tensor hx, Tensor cx, Tensor weight, int[] sizes, bool reverse)"
    " -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
    doc="`lstm_sequence`, and what its derivative needs: c of every step, and the values of the four gates.",
    dtypes="floating",
    internal=True,
    auxiliary=[3, 4],
    kernel="optional; any strides, results in C order.",
    libm="wide",
)


lstm_backward = Operator(
    "lstm_backward(Tensor grad, Tensor grad_h, Tensor grad_c, Tensor gates, Tensor hx, Tensor cx, Tensor weight, "
    "Tensor output, Tensor cells, Tensor activated, int[] sizes, bool reverse) -> (Tensor, Tensor, Tensor, Tensor)",
    doc="The derivatives of `lstm_forward` with respect to gates, hx, cx and weight.",
    dtypes="floating",
    internal=True,
    kernel="optional; any strides, results in C order; only the decomposition needs `gates`.",
    libm="wide",
)


@part
def check_sequences(gates, hx, weight, sizes, parts):
    require("gates", gates.dtype, "floating")
    require_same("gates", gates, "hx", hx)
    require_same("gates", gates, "weight", weight)
    check(
        gates.ndim == 2 and hx.ndim == 2 and weight.ndim == 2,
        f"`gates`, `hx` and `weight` must have 2 dimensions; "
        f"got shapes {gates.shape}, {hx.shape} and {weight.shape}",
    )
    hidden = hx.shape[1]
    check(
        gates.shape[1] % parts == 0
        and gates.shape[1] // parts == hidden
        and weight.shape[0] == gates.shape[1]
        and weight.shape[1] == hidden,
        f"`gates` (rows, {parts} H), `hx` (N, H) and `weight` ({parts} H, H) must agree on H; "
        f"got shapes {gates.shape}, {hx.shape} and {weight.shape}",
    )
    rows = 0
    before = hx.shape[0]
    for n in sizes:
        check(
            n >= 0 and n <= before,
            f"`sizes` must not grow, nor be negative, and begin with the rows of `hx`, {hx.shape[0]}; got {tuple(sizes)}",
            "ValueError",
        )
        before = n
        rows = rows + n
    check(
        len(sizes) > 0 and sizes[0] == hx.shape[0] and rows == gates.shape[0],
        f"`sizes` must begin with the rows of `hx`, {hx.shape[0]}, and add up to those of `gates`, "
        f"{gates.shape[0]}; got {tuple(sizes)}",
        "ValueError",
    )


@part
def check_like(name, given, like, shape):
    require_same("gates", like, name, given)
    check(given.shape == shape, f"`{name}` must have shape {tuple(shape)}; got {given.shape}")


@lstm_forward.shape
def _(gates, hx, cx, weight, sizes):
    check_sequences(gates, hx, weight, sizes, 4)
    check_like("cx", cx, gates, list(hx.shape))
    rows = [gates.shape[0], hx.shape[1]]
    return (
        result(rows, gates.dtype),
        result(hx.shape, gates.dtype),
        result(hx.shape, gates.dtype),
        result(rows, gates.dtype),
        result(gates.shape, gates.dtype),
    )


@lstm_sequence.cost
@lstm_forward.cost
def _(gates, hx):
    # the product, whose sums begin with `gates`; five functions, three products and a sum
    states = gates.shape[0] * hx.shape[1]
    return states * (8 * hx.shape[1] + 9)


@lstm_backward.shape
def _(grad, grad_h, grad_c, gates, hx, cx, weight, output, cells, activated, sizes):
    check_sequences(gates, hx, weight, sizes, 4)
    rows = [gates.shape[0], hx.shape[1]]
    check_like("cx", cx, gates, list(hx.shape))
    check_like("grad", grad, gates, rows)
    check_like("grad_h", grad_h, gates, list(hx.shape))
    check_like("grad_c", grad_c, gates, list(hx.shape))
    check_like("output", output, gates, rows)
    check_like("cells", cells, gates, rows)
    check_like("activated", activated, gates, list(gates.shape))
    return (
        result(gates.shape, gates.dtype),
        result(hx.shape, gates.dtype),
        result(hx.shape, gates.dtype),
        result(weight.shape, gates.dtype),
    )


@lstm_backward.cost
def _(gates, hx):
    # the products for the state before and for the weight; three operations for each derivative of
    # a function, which are five, and nine for the gradients that they get
    states = gates.shape[0] * hx.shape[1]
    return states * (16 * hx.shape[1] + 24)


@part
def first_rows(sizes):
    """The first row of each step."""
    starts = []
    rows = 0
    for n in sizes:
        starts.append(rows)
        rows = rows + n
    return starts


@part
def state_before(h, first, n):
    """The state of the n sequences of a step: sequences that have ended are left out, and sequences
    that begin have their first state.
    """
    before = h.shape[0]
    made = op.narrow(h, 0, 0, min(n, before))
    if n > before:
        made = op.cat([h, op.narrow(first, 0, before, n - before)])
    return made


@lstm_sequence.decompose
def _(gates, hx, cx, weight, sizes, reverse):
    output, h, c, _cells, _activated = lstm_forward(gates, hx, cx, weight, sizes, reverse)
    return output, h, c


@part
def in_order(pieces, reverse):
    """The results of all steps as one tensor, in the order of the rows."""
    if not reverse:
        return op.cat(pieces)
    return op.cat([pieces[len(pieces) - 1 - i] for i in range(len(pieces))])


@part
def lstm_activations(x, h, weight):
    """i, f, g and o of one step, whose rows of `gates` are x and whose state before it is h."""
    width = h.shape[1]
    a = x + h @ op.t(weight)
    i = op.sigmoid(op.narrow(a, 1, 0, width))
    f = op.sigmoid(op.narrow(a, 1, width, width))
    g = op.tanh(op.narrow(a, 1, 2 * width, width))
    o = op.sigmoid(op.narrow(a, 1, 3 * width, width))
    return [i, f, g, o]


# halves: the same operators in float32, and each result is rounded once
@lstm_forward.decompose
def _(gates, hx, cx, weight, sizes, reverse):
    dtype = gates.dtype
    wide = wide_dtype(dtype)
    if dtype != wide:
        output, h_n, c_n, all_c, values = lstm_forward(
            to_dtype(gates, wide),
            to_dtype(hx, wide),
            to_dtype(cx, wide),
            to_dtype(weight, wide),
            sizes,
            reverse,
        )
        return (
            to_dtype(output, dtype),
            to_dtype(h_n, dtype),
            to_dtype(c_n, dtype),
            to_dtype(all_c, dtype),
            to_dtype(values, dtype),
        )
    starts = first_rows(sizes)
    steps = len(sizes)
    h = op.narrow(hx, 0, 0, sizes[steps - 1]) if reverse else hx
    c = op.narrow(cx, 0, 0, sizes[steps - 1]) if reverse else cx
    outputs = []
    cells = []
    activated = []
    last_h = []
    last_c = []
    for k in range(steps):
        at = steps - 1 - k if reverse else k
        n = sizes[at]
        if h.shape[0] > n:
            last_h.append(op.narrow(h, 0, n, h.shape[0] - n))
            last_c.append(op.narrow(c, 0, n, c.shape[0] - n))
        h = state_before(h, hx, n)
        c = state_before(c, cx, n)
        # i, f, g and o
        own = lstm_activations(op.narrow(gates, 0, starts[at], n), h, weight)
        c = own[1] * c + own[0] * own[2]
        h = own[3] * op.tanh(c)
        outputs.append(h)
        cells.append(c)
        activated.append(op.cat(own, 1))
    last_h.append(h)
    last_c.append(c)
    return (
        in_order(outputs, reverse),
        in_order(last_h, True),
        in_order(last_c, True),
        in_order(cells, reverse),
        in_order(activated, reverse),
    )


@lstm_forward.vjp("gates", "hx", "cx", "weight")
def _(g0, g1, g2, gates, hx, cx, weight, result0, result3, result4, sizes, reverse):
    gx, gh, gc, gw = lstm_backward(
        g0, g1, g2, gates, hx, cx, weight, result0, result3, result4, sizes, reverse
    )
    return gx, gh, gc, gw


@lstm_backward.decompose
def _(grad, grad_h, grad_c, gates, hx, cx, weight, output, cells, activated, sizes, reverse):
    dtype = gates.dtype
    wide = wide_dtype(dtype)
    if dtype != wide:
        by_gates_, by_h, by_c, by_weight = lstm_backward(
            to_dtype(grad, wide),
            to_dtype(grad_h, wide),
            to_dtype(grad_c, wide),
            to_dtype(gates, wide),
            to_dtype(hx, wide),
            to_dtype(cx, wide),
            to_dtype(weight, wide),
            to_dtype(output, wide),
            to_dtype(cells, wide),
            to_dtype(activated, wide),
            sizes,
            reverse,
        )
        return (
            to_dtype(by_gates_, dtype),
            to_dtype(by_h, dtype),
            to_dtype(by_c, dtype),
            to_dtype(by_weight, dtype),
        )
    # saved values depend on the operands: they are computed again here, so that they can be
    # differentiated
    starts = first_rows(sizes)
    steps = len(sizes)
    rows = hx.shape[0]
    h = op.narrow(hx, 0, 0, sizes[steps - 1]) if reverse else hx
    c = op.narrow(cx, 0, 0, sizes[steps - 1]) if reverse else cx
    before_h = []
    before_c = []
    ins = []
    forgets = []
    news = []
    outs = []
    squashed = []
    for k in range(steps):
        at = steps - 1 - k if reverse else k
        n = sizes[at]
        h = state_before(h, hx, n)
        c = state_before(c, cx, n)
        before_h.append(h)
        before_c.append(c)
        # i, f, g and o
        own = lstm_activations(op.narrow(gates, 0, starts[at], n), h, weight)
        c = own[1] * c + own[0] * own[2]
        s = op.tanh(c)
        h = own[3] * s
        ins.append(own[0])
        forgets.append(own[1])
        news.append(own[2])
        outs.append(own[3])
        squashed.append(s)
    gh = grad_h * 1.0
    gc = grad_c * 1.0
    by_gates = []
    for j in range(steps):
        k = steps - 1 - j
        at = steps - 1 - k if reverse else k
        n = sizes[at]
        own_h = op.narrow(gh, 0, 0, n) + op.narrow(grad, 0, starts[at], n)
        own_c = op.narrow(gc, 0, 0, n) + op.tanh_backward(own_h * outs[k], squashed[k])
        by_gate = op.cat(
            [
                op.sigmoid_backward(own_c * news[k], ins[k]),
                op.sigmoid_backward(own_c * before_c[k], forgets[k]),
                op.tanh_backward(own_c * ins[k], news[k]),
                op.sigmoid_backward(own_h * squashed[k], outs[k]),
            ],
            1,
        )
        by_gates.append(by_gate)
        gh = op.cat([by_gate @ weight, op.narrow(gh, 0, n, rows - n)])
        gc = op.cat([own_c * forgets[k], op.narrow(gc, 0, n, rows - n)])
    by_row = in_order(by_gates, not reverse)
    return by_row, gh, gc, op.t(by_row) @ in_order(before_h, reverse)
