"""Batch normalisation."""

from plait_ops import calls as op
from plait_ops.spec import Composite, Operator
from plait_ops.words import (
    check,
    is_in_format,
    numel,
    part,
    require,
    require_same,
    result,
    to_dtype,
    wide_dtype,
)

# what may follow in the same pass, and the numbers that some of the activations have
_ACTIVATION = "str activation, float min_val, float max_val, float negative_slope"

batch_norm = Composite(
    "batch_norm(Tensor input, Tensor? weight=None, Tensor? bias=None, Tensor!? running_mean=None,"
    " Tensor!? running_var=None, bool training=False, float momentum=0.1, float eps=1e-5) -> Tensor",
    doc="""
    ``(input - mean) / sqrt(var + eps) * weight + bias`` for each channel (Ioffe and Szegedy 2015).

    With `training`, mean and (biased) variance are computed from the batch, and the running statistics, if given, move
    towards them: ``running = (1 - momentum) * running + momentum * batch``, with the unbiased variance. Without `training`
    the running statistics are used.

    Args:
        weight: The factors of the normalized elements, or None.
        bias: What is added to the normalized elements, or None.
        training: Whether the statistics are those of the batch; else the running ones.
        input: Shape (N, C, ...).

    Shapes: `input` and the result (N, C) or (N, C, *); the others (C).
    Dtypes: floating-point, the same for all.
    Raises: ShapeError or DTypeError otherwise; ShapeError with `training` if there is only one value for each channel;
    ValueError without `training` if there are no running statistics.

    >>> import plait_core as pc
    >>> pc.batch_norm(pc.tensor([[1.0], [3.0]]), training=True, eps=0.0).tolist()
    [[-1.0], [1.0]]
    """,
    dtypes="floating",
)
native_batch_norm = Operator(
    "native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, float eps) -> (Tensor, Tensor, Tensor)",
    doc="""
    `batch_norm` with the statistics of the batch: the result, and mean and biased variance of each channel, which are float32 for
    halves. No gradient flows through mean and variance.
    """,
    dtypes="floating",
    internal=True,
    kernel="optional; out[0] is in C order.",
)
native_batch_norm.batch("code")
native_batch_norm.slices(input=1, weight=0, bias=0, result0=1, result1=0, result2=0)
batch_norm_backward = Operator(
    "batch_norm_backward(Tensor grad, Tensor input, Tensor mean, Tensor var, Tensor? weight, float eps)"
    " -> (Tensor, Tensor, Tensor)",
    doc="""
    The derivatives of `native_batch_norm` with respect to input, weight and bias. With ``r = 1 / sqrt(var + eps)``,
    ``h = (input - mean) * r`` and ``a = grad * weight`` the first is ``r * (a - mean(a) - h * mean(a * h))``.
    """,
    dtypes="floating",
    internal=True,
    kernel="optional; out[1] and out[2] have shape (C), also without a weight.",
)
batch_norm_backward.batch("code")
batch_norm_backward.slices(
    grad=1, input=1, mean=0, var=0, weight=0, result0=1, result1=0, result2=0
)

move_statistics = Composite(
    "batch_norm_move_statistics(Tensor(a)! running_mean, Tensor! running_var, Tensor mean, Tensor var, float momentum,"
    " float var_momentum) -> Tensor(a)!",
    doc="""
    Move running statistics towards those of a batch: ``running_mean = (1 - momentum) * running_mean + momentum * mean``
    and ``running_var = (1 - momentum) * running_var + var_momentum * var``. Returns `running_mean`.
    """,
    dtypes="floating",
    internal=True,
    kernel="optional: without a kernel other operators compute it; writes in[0] and in[1].",
)


@part
def check_per_channel(name, given, input):
    require_same("input", input, name, given)
    c = input.shape[1]
    check(
        given.shape == [c],
        f"`{name}` must have shape ({c},) for `input` of shape {input.shape}; got {given.shape}",
    )


@part
def check_batch(input, weight, bias):
    require("input", input.dtype, "floating")
    check(input.ndim >= 2, f"`input` must have shape (N, C) or (N, C, ...); got {input.shape}")
    if weight is not None:
        check_per_channel("weight", weight, input)
    if bias is not None:
        check_per_channel("bias", bias, input)


@part
def require_saved(grad, name, given):
    """Fail unless a statistic has the dtype that the forward pass saves, or that of `grad`."""
    check(
        given.dtype == wide_dtype(grad.dtype) or given.dtype == grad.dtype,
        f"`{name}` must be {wide_dtype(grad.dtype)} for `grad` of {grad.dtype}; got {given.dtype}",
        "DTypeError",
    )


@part
def check_gradient(grad, input, mean, var, weight):
    require("grad", grad.dtype, "floating")
    require_same("grad", grad, "input", input)
    check(input.ndim >= 2, f"`input` must have shape (N, C) or (N, C, ...); got {input.shape}")
    check(
        grad.shape == input.shape,
        f"`grad` of shape {grad.shape} must have the shape of `input`, {input.shape}",
    )
    c = input.shape[1]
    require_saved(grad, "mean", mean)
    require_saved(grad, "var", var)
    check(
        mean.shape == [c] and var.shape == [c],
        f"`mean` and `var` must have shape ({c},) for `input` of shape {input.shape}; got {mean.shape} and {var.shape}",
    )
    if weight is not None:
        require_same("grad", grad, "weight", weight)
        check_per_channel("weight", weight, input)


@native_batch_norm.shape
def _(input, weight, bias):
    check_batch(input, weight, bias)
    c = input.shape[1]
    wide = wide_dtype(input.dtype)
    return result(input.shape, input.dtype), result([c], wide), result([c], wide)


@native_batch_norm.cost
def _(input, bias):
    # 1 for the mean, 3 for the variance, a difference, a product with the scale of the channel
    return numel(input) * (6 if bias is None else 7)


@native_batch_norm.decompose
def _(input, weight, bias, eps):
    dims = [i for i in range(input.ndim) if i != 1]
    wide = [1, input.shape[1]] + [1] * (input.ndim - 2)
    x = to_dtype(input, wide_dtype(input.dtype))
    m = op.mean(x, dims)
    v = op.var(x, dims, correction=0)
    r = op.rsqrt(v + eps)
    scale = r if weight is None else r * weight
    y = (x - op.reshape(m, wide)) * op.reshape(scale, wide)
    if bias is not None:
        y = y + op.reshape(bias, wide)
    return to_dtype(y, input.dtype), m, v


@native_batch_norm.vjp("input", "weight", "bias")
def _(g0, input, result1, result2, weight, eps):
    gx, gw, gb = batch_norm_backward(g0, input, result1, result2, weight, eps)
    return gx, gw, gb


@batch_norm_backward.shape
def _(grad, input, mean, var, weight):
    check_gradient(grad, input, mean, var, weight)
    c = input.shape[1]
    return result(input.shape, grad.dtype), result([c], grad.dtype), result([c], grad.dtype)


@batch_norm_backward.cost
def _(grad):
    # 2 for the normalised input, 3 for the sums, 4 for the gradient of the input
    return 9 * numel(grad)


@batch_norm_backward.decompose
def _(grad, input, mean, var, weight, eps):
    dims = [i for i in range(input.ndim) if i != 1]
    wide = [1, input.shape[1]] + [1] * (input.ndim - 2)
    r = op.rsqrt(var + eps)
    normal = (input - op.reshape(mean, wide)) * op.reshape(r, wide)
    scale = r if weight is None else r * weight
    gx = op.norm_centre(grad, normal, dims) * op.reshape(scale, wide)
    gw = op.sum(grad * normal, dims)
    return to_dtype(gx, grad.dtype), to_dtype(gw, grad.dtype), op.sum(grad, dims)


# the gradient through the statistics is part of the gradient of input
batch_norm_backward.constant("mean", "var")


@batch_norm_backward.vjp("grad", "input", "weight")
def _(g0, g1, g2, grad, input, mean, var, weight, eps):
    # mean and var depend on input: their part is in the gradient of input
    dims = [i for i in range(input.ndim) if i != 1]
    wide = [1, input.shape[1]] + [1] * (input.ndim - 2)
    n = numel(input.shape) / max(input.shape[1], 1)
    r = op.rsqrt(op.norm_var(op.reshape(var, wide), input, dims) + eps)
    normal = (input - op.norm_mean(op.reshape(mean, wide), input, dims)) * r
    v1 = op.reshape(g1, wide)
    scaled = grad * 1.0 if weight is None else grad * op.reshape(weight, wide)
    q = r * op.norm_centre(g0, normal, dims)
    along = op.sum(scaled * normal, dims, True) / n
    other = op.sum(g0 * normal, dims, True) / n
    by_normal = v1 * grad - r * (g0 * along + scaled * other)
    by_r = op.sum(g0 * op.norm_centre(scaled, normal, dims), dims, True) / n
    gx = r * op.norm_centre(by_normal, normal, dims) - by_r * r * r * normal
    gg = (
        (q if weight is None else q * op.reshape(weight, wide)) + v1 * normal + op.reshape(g2, wide)
    )
    gw = op.sum(q * grad, dims)
    return to_dtype(gg, grad.dtype), to_dtype(gx, grad.dtype), to_dtype(gw, grad.dtype)


# the running statistics are written in training alone, so halves are widened in an operator that
# only reads them
normalized_by = Composite(
    "batch_norm_by(Tensor input, Tensor mean, Tensor var, Tensor? weight, Tensor? bias, float eps) -> Tensor",
    doc="``(input - mean) / sqrt(var + eps) * weight + bias`` with a given mean and variance for each channel.",
    dtypes="floating",
    internal=True,
    widens=True,
)


@normalized_by.cost
def _(input):
    return 2 * numel(input)


@part
def in_known_order(input):
    """The input if it has the order of a memory format, else in C order."""
    if input.ndim == 4 and is_in_format("channels_last", input):
        return input
    if input.ndim == 5 and is_in_format("channels_last_3d", input):
        return input
    return op.contiguous(input)


@normalized_by.decompose
def _(input, mean, var, weight, bias, eps):
    check_batch(input, weight, bias)
    check_per_channel("mean", mean, input)
    check_per_channel("var", var, input)
    wide = [1, input.shape[1]] + [1] * (input.ndim - 2)
    scale = op.rsqrt(var + eps)
    if weight is not None:
        scale = scale * weight
    shift = -(mean * scale)
    if bias is not None:
        shift = shift + bias
    return op.addcmul(op.reshape(shift, wide), in_known_order(input), op.reshape(scale, wide))


@batch_norm.cost
def _(input, bias, training):
    if not training:
        return 2 * numel(input)
    return numel(input) * (6 if bias is None else 7)


@part
def check_running(input, running_mean, running_var):
    check(
        (running_mean is None) == (running_var is None),
        "`running_mean` and `running_var` must both be given or both be None",
        "ValueError",
    )
    if running_mean is not None and running_var is not None:
        c = input.shape[1]
        require_same("input", input, "running_mean", running_mean)
        require_same("input", input, "running_var", running_var)
        check(
            running_mean.shape == [c] and running_var.shape == [c],
            f"`running_mean` and `running_var` must have shape ({c},) for `input` of shape {input.shape}; "
            f"got {running_mean.shape} and {running_var.shape}",
        )


@part
def check_trainable(input):
    check(
        numel(input.shape) // max(input.shape[1], 1) != 1,
        f"`input` must have more than one value for each channel to train with; got shape {input.shape}",
    )


@part
def update_running(input, running_mean, running_var, m, v, momentum):
    n = numel(input.shape) // max(input.shape[1], 1)
    if running_mean is not None and running_var is not None and n > 1:
        move_statistics(
            running_mean,
            running_var,
            op.detach(m),
            op.detach(v),
            momentum,
            momentum * n / (n - 1),
        )


@part
def check_statistics(running_mean, name, given):
    check(
        given.shape == running_mean.shape,
        f"`{name}` must have the shape of `running_mean`, {running_mean.shape}; got {given.shape}",
    )


@move_statistics.shape
def _(running_mean, running_var, mean, var):
    check_statistics(running_mean, "running_var", running_var)
    check_statistics(running_mean, "mean", mean)
    check_statistics(running_mean, "var", var)
    return running_mean


@move_statistics.decompose
def _(running_mean, running_var, mean, var, momentum, var_momentum):
    kept = 1.0 - momentum
    moved = op.add(op.mul(running_var, kept), var, alpha=var_momentum)
    op.copy_(running_var, moved)
    moved = op.add(op.mul(running_mean, kept), mean, alpha=momentum)
    return op.copy_(running_mean, moved)


@batch_norm.decompose
def _(input, running_mean, running_var, weight, bias, training, momentum, eps):
    require("input", input.dtype, "floating")
    if input.ndim == 1 and input.shape[0] == 0:
        return op.clone(input)  # as in PyTorch: nothing to normalise
    check(input.ndim >= 2, f"`input` must have shape (N, C) or (N, C, ...); got {input.shape}")
    check_running(input, running_mean, running_var)
    if training:
        check_trainable(input)
        y, m, v = native_batch_norm(input, weight, bias, eps)
        update_running(input, running_mean, running_var, m, v, momentum)
        return y
    check(
        running_mean is not None,
        "`running_mean` and `running_var` must be given unless `training`",
        "ValueError",
    )
    if weight is not None:
        check_per_channel("weight", weight, input)
    if bias is not None:
        check_per_channel("bias", bias, input)
    return op.batch_norm_by(input, running_mean, running_var, weight, bias, eps)


# ---- with an activation in the same pass ---------------------------------------------------------
batch_norm_activation = Composite(
    "batch_norm_activation(Tensor input, Tensor? weight=None, Tensor? bias=None, Tensor!? running_mean=None,"
    ' Tensor!? running_var=None, bool training=False, float momentum=0.1, float eps=1e-5, *, str activation="relu",'
    " Tensor? residual=None, float min_val=0.0, float max_val=6.0, float negative_slope=0.01) -> Tensor",
    doc="""
    ``activation(batch_norm(input, ...) + residual)``. In training normalisation, addition and activation take one pass over
    memory forward and one backward.

    `activation` is one of "relu", "hardtanh" (with `min_val` and `max_val`; the defaults are those of relu6), "leaky_relu"
    (with `negative_slope`), "silu" and "hardswish". Without `residual`, the backward pass computes the argument of the
    activation again from `input`, so that only `input` is kept in memory; with `residual` the result is kept too. The
    numbers are the same as those of the separate operators.

    Args:
        weight: The factors of the normalized elements, or None.
        bias: What is added to the normalized elements, or None.
        training: Whether the statistics are those of the batch; else the running ones.
        input: Shape (N, C, ...).

    Shapes: those of `batch_norm`; `residual` has the shape of `input`. Dtypes: floating-point, the same for all.
    Raises: ValueError for another `activation`, and what `batch_norm` raises.

    >>> import plait_core as pc, plait_nn.functional as F
    >>> F.batch_norm_activation(pc.tensor([[1.0], [3.0]]), None, None, training=True, eps=0.0).tolist()
    [[0.0], [1.0]]
    """,
    dtypes="floating",
    variants="",
)
native_batch_norm_activation = Operator(
    f"native_batch_norm_activation(Tensor input, Tensor? weight, Tensor? bias, float eps, {_ACTIVATION})"
    " -> (Tensor, Tensor, Tensor)",
    doc="""
    `batch_norm_activation` with the statistics of the batch: the result, and mean and biased variance of each channel. No
    gradient flows through mean and variance.
    """,
    dtypes="floating",
    internal=True,
    kernel="optional; out[0] is in C order; in[4] is one of the names in `batch_norm_activation`.",
    libm="wide",
)
native_batch_norm_activation.slices(input=1, weight=0, bias=0, result0=1, result1=0, result2=0)
native_batch_norm_add_activation = Operator(
    "native_batch_norm_add_activation(Tensor input, Tensor residual, Tensor? weight, Tensor? bias, float eps,"
    f" {_ACTIVATION}) -> (Tensor, Tensor, Tensor)",
    doc="""
    `native_batch_norm_activation` with `residual` added before the activation, which is "relu", "hardtanh" or "leaky_relu"
    with a slope that is not negative: activations whose derivative follows from the result.
    """,
    dtypes="floating",
    internal=True,
    kernel="optional; out[0] is in C order; in[1] has the shape and dtype of in[0].",
    libm="wide",
)
native_batch_norm_add_activation.slices(
    input=1, residual=1, weight=0, bias=0, result0=1, result1=0, result2=0
)
batch_norm_activation_backward = Operator(
    "batch_norm_activation_backward(Tensor grad, Tensor input, Tensor mean, Tensor var, Tensor? weight, Tensor? bias,"
    f" float eps, {_ACTIVATION}) -> (Tensor, Tensor, Tensor)",
    doc="""
    The derivatives of `native_batch_norm_activation` with respect to input, weight and bias: `batch_norm_backward` of the
    activation's gradient. The argument of the activation is computed again.
    """,
    dtypes="floating",
    internal=True,
    kernel="optional; out[1] and out[2] have shape (C), also without a weight.",
    libm="wide",
)
batch_norm_activation_backward.slices(
    grad=1, input=1, mean=0, var=0, weight=0, bias=0, result0=1, result1=0, result2=0
)
batch_norm_add_activation_backward = Operator(
    "batch_norm_add_activation_backward(Tensor grad, Tensor output, Tensor input, Tensor mean, Tensor var, Tensor? weight,"
    f" float eps, {_ACTIVATION}) -> (Tensor, Tensor, Tensor, Tensor)",
    doc="""
    The derivatives of `native_batch_norm_add_activation` with respect to input, weight, bias and residual; `output` is its
    result.
    """,
    dtypes="floating",
    internal=True,
    kernel="optional; out[1] and out[2] have shape (C), also without a weight; out[3] has the shape of in[0].",
    libm="wide",
)
batch_norm_add_activation_backward.slices(
    grad=1, output=1, input=1, mean=0, var=0, weight=0, result0=1, result1=0, result2=0, result3=1
)


@part
def activated(x, activation, min_val, max_val, negative_slope):
    if activation == "relu":
        return op.relu(x)
    if activation == "hardtanh":
        return op.hardtanh(x, min_val, max_val)
    if activation == "leaky_relu":
        return op.leaky_relu(x, negative_slope)
    if activation == "silu":
        return op.silu(x)
    return op.hardswish(x)


@part
def activation_gradient(g, x, activation, min_val, max_val, negative_slope):
    """The gradient of what the activation saw, `x`; of straight lines `x` may be its result."""
    if activation == "relu":
        return op.relu_backward(g, x)
    if activation == "hardtanh":
        return op.hardtanh_backward(g, x, min_val, max_val)
    if activation == "leaky_relu":
        return op.leaky_relu_backward(g, x, negative_slope)
    if activation == "silu":
        return op.silu_backward(g, x)
    return op.hardswish_backward(g, x)


@part
def check_activation(activation):
    check(
        activation == "relu"
        or activation == "hardtanh"
        or activation == "leaky_relu"
        or activation == "silu"
        or activation == "hardswish",
        f"`activation` must be relu, hardtanh, leaky_relu, silu or hardswish; got {activation}",
        "ValueError",
    )


@part
def check_result_tells(activation, negative_slope):
    check(
        activation == "relu"
        or activation == "hardtanh"
        or (activation == "leaky_relu" and negative_slope >= 0.0),
        f"`activation` must be relu, hardtanh or leaky_relu with a slope that isn't negative; got {activation}",
        "ValueError",
    )


@native_batch_norm_activation.shape
def _(input, weight, bias, activation):
    check_batch(input, weight, bias)
    check_activation(activation)
    c = input.shape[1]
    wide = wide_dtype(input.dtype)
    return result(input.shape, input.dtype), result([c], wide), result([c], wide)


@native_batch_norm_activation.cost
def _(input, bias):
    return numel(input) * (7 if bias is None else 8)


@native_batch_norm_activation.decompose
def _(input, weight, bias, eps, activation, min_val, max_val, negative_slope):
    y, m, v = native_batch_norm(input, weight, bias, eps)
    return activated(y, activation, min_val, max_val, negative_slope), m, v


@native_batch_norm_activation.vjp("input", "weight", "bias")
def _(g0, input, result1, result2, weight, bias, eps, activation, min_val, max_val, negative_slope):
    gx, gw, gb = batch_norm_activation_backward(
        g0, input, result1, result2, weight, bias, eps, activation, min_val, max_val, negative_slope
    )
    return gx, gw, gb


@batch_norm_activation_backward.shape
def _(grad, input, mean, var, weight, bias, activation):
    check_gradient(grad, input, mean, var, weight)
    if bias is not None:
        check_per_channel("bias", bias, input)
    check_activation(activation)
    c = input.shape[1]
    return result(input.shape, grad.dtype), result([c], grad.dtype), result([c], grad.dtype)


@batch_norm_activation_backward.cost
def _(grad):
    # those of batch_norm_backward, 3 to see what the activation saw, 1 for its derivative
    return 13 * numel(grad)


@batch_norm_activation_backward.decompose
def _(grad, input, mean, var, weight, bias, eps, activation, min_val, max_val, negative_slope):
    # from the input, as mean and var pass no gradient on
    seen, _mean, _var = native_batch_norm(input, weight, bias, eps)
    passed = activation_gradient(grad, seen, activation, min_val, max_val, negative_slope)
    gx, gw, gb = batch_norm_backward(passed, input, mean, var, weight, eps)
    return gx, gw, gb


@native_batch_norm_add_activation.shape
def _(input, residual, weight, bias, activation, negative_slope):
    check_batch(input, weight, bias)
    require_same("input", input, "residual", residual)
    check(
        residual.shape == input.shape,
        f"`residual` of shape {residual.shape} must have the shape of `input`, {input.shape}",
    )
    check_result_tells(activation, negative_slope)
    c = input.shape[1]
    wide = wide_dtype(input.dtype)
    return result(input.shape, input.dtype), result([c], wide), result([c], wide)


@native_batch_norm_add_activation.cost
def _(input, bias):
    return numel(input) * (8 if bias is None else 9)


@native_batch_norm_add_activation.decompose
def _(input, residual, weight, bias, eps, activation, min_val, max_val, negative_slope):
    y, m, v = native_batch_norm(input, weight, bias, eps)
    return activated(y + residual, activation, min_val, max_val, negative_slope), m, v


@native_batch_norm_add_activation.vjp("input", "weight", "bias", "residual")
def _(
    g0, result0, input, result1, result2, weight, eps, activation, min_val, max_val, negative_slope
):
    gx, gw, gb, gr = batch_norm_add_activation_backward(
        g0,
        result0,
        input,
        result1,
        result2,
        weight,
        eps,
        activation,
        min_val,
        max_val,
        negative_slope,
    )
    return gx, gw, gb, gr


@batch_norm_add_activation_backward.shape
def _(grad, output, input, mean, var, weight, activation, negative_slope):
    check_gradient(grad, input, mean, var, weight)
    require_same("grad", grad, "output", output)
    check(
        output.shape == input.shape,
        f"`output` of shape {output.shape} must have the shape of `input`, {input.shape}",
    )
    check_result_tells(activation, negative_slope)
    c = input.shape[1]
    return (
        result(input.shape, grad.dtype),
        result([c], grad.dtype),
        result([c], grad.dtype),
        result(input.shape, grad.dtype),
    )


@batch_norm_add_activation_backward.cost
def _(grad):
    return 10 * numel(grad)


@batch_norm_add_activation_backward.decompose
def _(grad, output, input, mean, var, weight, eps, activation, min_val, max_val, negative_slope):
    passed = activation_gradient(grad, output, activation, min_val, max_val, negative_slope)
    gx, gw, gb = batch_norm_backward(passed, input, mean, var, weight, eps)
    return gx, gw, gb, passed


@batch_norm_activation.cost
def _(input, bias, training, residual):
    count = 3 if not training else 7 if bias is None else 8
    return numel(input) * (count if residual is None else count + 1)


@batch_norm_activation.decompose
def _(
    input,
    weight,
    bias,
    running_mean,
    running_var,
    training,
    momentum,
    eps,
    activation,
    residual,
    min_val,
    max_val,
    negative_slope,
):
    check_activation(activation)
    if not training or input.ndim < 2:
        y = batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)
        if residual is not None:
            y = y + residual
        return activated(y, activation, min_val, max_val, negative_slope)
    check_running(input, running_mean, running_var)
    check_trainable(input)
    kept = activation == "silu" or activation == "hardswish" or negative_slope < 0.0
    if residual is None:
        y, m, v = native_batch_norm_activation(
            input, weight, bias, eps, activation, min_val, max_val, negative_slope
        )
    elif kept:
        plain, m, v = native_batch_norm(input, weight, bias, eps)
        y = activated(plain + residual, activation, min_val, max_val, negative_slope)
    else:
        y, m, v = native_batch_norm_add_activation(
            input, residual, weight, bias, eps, activation, min_val, max_val, negative_slope
        )
    update_running(input, running_mean, running_var, m, v, momentum)
    return y
