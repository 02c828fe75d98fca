"""Batch normalisation."""

from plait_ops.calls import (
    add,
    addcmul,
    clone,
    copy_,
    detach,
    mean,
    mul,
    norm_centre,
    reshape,
    rsqrt,
    sum,
    var,
)
from plait_ops.spec import Composite, Operator
from plait_ops.words import check, numel, part, require, require_same, result

batch_norm = Composite(
    "batch_norm(Tensor input, Tensor? weight=None, Tensor? bias=None, Tensor!? running_mean=None,"
    " Tensor!? running_var=None, bool training=False, float momentum=0.1, float eps=1e-5) -> Tensor",
    doc="""
    ``(input - mean) / sqrt(var + eps) * weight + bias`` for each channel (Ioffe and Szegedy 2015).

    With `training` mean and (biased) variance are those of the batch, and the running ones, if given, move towards them:
    ``running = (1 - momentum) * running + momentum * batch``, with the unbiased variance. Else the running ones are used.

    Shapes: `input` (N, C) or (N, C, *), which is the result's; the others (C).
    Dtypes: floating-point, the same for all.
    Raises: ShapeError or DTypeError otherwise; ShapeError if there is but one value for each channel to train with;
    ValueError without running statistics if not `training`.

    >>> import plait_core as pc
    >>> pc.batch_norm(pc.tensor([[1.0], [3.0]]), training=True, eps=0.0).tolist()
    [[-1.0], [1.0]]
    """,
    dtypes="floating",
)
native_batch_norm = Operator(
    "native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, float eps) -> (Tensor, Tensor, Tensor)",
    doc="""
    `batch_norm` of a batch: the result, and mean and biased variance of each channel. Those two pass no gradient on.
    """,
    dtypes="floating",
    internal=True,
    kernel="optional; out[0] is in C order.",
)
batch_norm_backward = Operator(
    "batch_norm_backward(Tensor grad, Tensor input, Tensor mean, Tensor var, Tensor? weight, float eps)"
    " -> (Tensor, Tensor, Tensor)",
    doc="""
    The derivative of `native_batch_norm` by input, weight and bias. With ``r = 1 / sqrt(var + eps)``,
    ``h = (input - mean) * r`` and ``a = grad * weight`` the first is ``r * (a - mean(a) - h * mean(a * h))``.
    """,
    dtypes="floating",
    internal=True,
    kernel="optional; out[1] and out[2] have shape (C), also without a weight.",
)


@part
def check_per_channel(name, given, input):
    require_same("input", input, name, given)
    c = input.shape[1]
    check(
        given.shape == [c],
        f"`{name}` must have shape ({c},) for `input` of shape {input.shape}; got {given.shape}",
    )


@native_batch_norm.shape
def _(input, weight, bias):
    require("input", input.dtype, "floating")
    check(input.ndim >= 2, f"`input` must have shape (N, C) or (N, C, ...); got {input.shape}")
    c = input.shape[1]
    if weight is not None:
        check_per_channel("weight", weight, input)
    if bias is not None:
        check_per_channel("bias", bias, input)
    return result(input.shape, input.dtype), result([c], input.dtype), result([c], input.dtype)


@native_batch_norm.decompose
def _(input, weight, bias, eps):
    dims = [i for i in range(input.ndim) if i != 1]
    wide = [1, input.shape[1]] + [1] * (input.ndim - 2)
    m = mean(input, dims)
    v = var(input, dims, correction=0)
    r = rsqrt(v + eps)
    scale = r if weight is None else r * weight
    made = (input - reshape(m, wide)) * reshape(scale, wide)
    if bias is not None:
        made = made + reshape(bias, wide)
    return made, m, v


@native_batch_norm.vjp("input", "weight", "bias")
def _(g0, input, result1, result2, weight, eps):
    gx, gw, gb = batch_norm_backward(g0, input, result1, result2, weight, eps)
    return gx, gw, gb


@batch_norm_backward.shape
def _(grad, input, mean, var, weight):
    require("grad", grad.dtype, "floating")
    require_same("grad", grad, "input", input)
    check(input.ndim >= 2, f"`input` must have shape (N, C) or (N, C, ...); got {input.shape}")
    check(
        grad.shape == input.shape,
        f"`grad` of shape {grad.shape} must have the shape of `input`, {input.shape}",
    )
    c = input.shape[1]
    require_same("grad", grad, "mean", mean)
    require_same("grad", grad, "var", var)
    check(
        mean.shape == [c] and var.shape == [c],
        f"`mean` and `var` must have shape ({c},) for `input` of shape {input.shape}; got {mean.shape} and {var.shape}",
    )
    if weight is not None:
        require_same("grad", grad, "weight", weight)
        check_per_channel("weight", weight, input)
    return result(input.shape, grad.dtype), result([c], grad.dtype), result([c], grad.dtype)


@batch_norm_backward.decompose
def _(grad, input, mean, var, weight, eps):
    dims = [i for i in range(input.ndim) if i != 1]
    wide = [1, input.shape[1]] + [1] * (input.ndim - 2)
    r = rsqrt(var + eps)
    normal = (input - reshape(mean, wide)) * reshape(r, wide)
    scale = r if weight is None else r * weight
    gx = norm_centre(grad, normal, dims) * reshape(scale, wide)
    return gx, sum(grad * normal, dims), sum(grad, dims)


# the gradient through the statistics is part of the gradient of input
batch_norm_backward.constant("mean", "var")


@batch_norm_backward.vjp("grad", "input", "weight")
def _(g0, g1, g2, grad, input, mean, var, weight, eps):
    # mean and var depend on input: their part is in the gradient of input
    dims = [i for i in range(input.ndim) if i != 1]
    wide = [1, input.shape[1]] + [1] * (input.ndim - 2)
    n = numel(input.shape) / max(input.shape[1], 1)
    r = reshape(rsqrt(var + eps), wide)
    normal = (input - reshape(mean, wide)) * r
    v1 = reshape(g1, wide)
    scaled = grad * 1.0 if weight is None else grad * reshape(weight, wide)
    q = r * norm_centre(g0, normal, dims)
    along = sum(scaled * normal, dims, True) / n
    other = sum(g0 * normal, dims, True) / n
    by_normal = v1 * grad - r * (g0 * along + scaled * other)
    by_r = sum(g0 * norm_centre(scaled, normal, dims), dims, True) / n
    gx = r * norm_centre(by_normal, normal, dims) - by_r * r * r * normal
    gg = (q if weight is None else q * reshape(weight, wide)) + v1 * normal + reshape(g2, wide)
    return gg, gx, sum(q * grad, dims)


@batch_norm.decompose
def _(input, running_mean, running_var, weight, bias, training, momentum, eps):
    require("input", input.dtype, "floating")
    if input.ndim == 1 and input.shape[0] == 0:
        return clone(input)  # as in PyTorch: nothing to normalise
    check(input.ndim >= 2, f"`input` must have shape (N, C) or (N, C, ...); got {input.shape}")
    c = input.shape[1]
    check(
        (running_mean is None) == (running_var is None),
        "`running_mean` and `running_var` must both be given or both be None",
        "ValueError",
    )
    if running_mean is not None and running_var is not None:
        require_same("input", input, "running_mean", running_mean)
        require_same("input", input, "running_var", running_var)
        check(
            running_mean.shape == [c] and running_var.shape == [c],
            f"`running_mean` and `running_var` must have shape ({c},) for `input` of shape {input.shape}; "
            f"got {running_mean.shape} and {running_var.shape}",
        )
    if training:
        n = numel(input.shape) // max(c, 1)
        check(
            n != 1,
            f"`input` must have more than one value for each channel to train with; got shape {input.shape}",
        )
        made, m, v = native_batch_norm(input, weight, bias, eps)
        if running_mean is not None and running_var is not None and n > 1:
            kept = 1.0 - momentum
            copy_(running_mean, add(mul(detach(running_mean), kept), detach(m), alpha=momentum))
            copy_(
                running_var,
                add(mul(detach(running_var), kept), detach(v), alpha=momentum * n / (n - 1)),
            )
        return made
    check(
        running_mean is not None,
        "`running_mean` and `running_var` must be given unless `training`",
        "ValueError",
    )
    if weight is not None:
        check_per_channel("weight", weight, input)
    if bias is not None:
        check_per_channel("bias", bias, input)
    wide = [1, c] + [1] * (input.ndim - 2)
    scale = rsqrt(running_var + eps)
    if weight is not None:
        scale = scale * weight
    shift = -(running_mean * scale)
    if bias is not None:
        shift = shift + bias
    return addcmul(reshape(shift, wide), input, reshape(scale, wide))
