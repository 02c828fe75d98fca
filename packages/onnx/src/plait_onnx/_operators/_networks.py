"""Convolutions, pooling, normalization, softmax and dropout of networks."""

from __future__ import annotations

from typing import Any

from plait_onnx._builder import Builder, Unsupported, Value, is_fixed
from plait_onnx._operators._pointwise import activated
from plait_onnx._table import lowers


def convolution(
    b: Builder,
    input: Value,
    weight: Value,
    bias: Value | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
) -> str:
    """Return the node of a convolution in two dimensions."""
    return b.op(
        "Conv",
        input,
        weight,
        bias,
        strides=list(stride),
        pads=[*padding, *padding],
        dilations=list(dilation),
        group=groups,
        kernel_shape=list(weight.shape[2:]),
    )


@lowers("conv2d")
def conv2d(
    b: Builder,
    input: Value,
    weight: Value,
    bias: Value | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
) -> str:
    return convolution(b, input, weight, bias, stride, padding, dilation, groups)


@lowers("conv2d_activation")
def conv2d_activation(
    b: Builder,
    input: Value,
    weight: Value,
    bias: Value | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
    activation: str,
    min_val: float,
    max_val: float,
    negative_slope: float,
) -> str:
    x = convolution(b, input, weight, bias, stride, padding, dilation, groups)
    return activated(b, x, input.dtype, activation, min_val, max_val, negative_slope)


@lowers("conv2d_backward_input")
def transposed_convolution(
    b: Builder,
    arguments: dict[str, Any],
) -> str:
    grad, weight, _, stride, padding, dilation, groups = arguments.values()
    result = b.results[0]
    more = [
        result.shape[2 + i]
        - ((grad.shape[2 + i] - 1) * stride[i] - 2 * padding[i])
        - (dilation[i] * (weight.shape[2 + i] - 1) + 1)
        for i in range(2)
    ]
    return b.op(
        "ConvTranspose",
        grad,
        weight,
        strides=list(stride),
        pads=[*padding, *padding],
        dilations=list(dilation),
        group=groups,
        kernel_shape=list(weight.shape[2:]),
        output_padding=more if any(more) else None,
    )


def _pooled(b: Builder, kind: str, count: int, x: Value, arguments: dict[str, Any]) -> list[str]:
    kernel = arguments["kernel_size"]
    stride = arguments["stride"] or kernel
    padding = arguments["padding"]
    if not is_fixed([*kernel, *stride, *padding]):
        raise Unsupported("pooling with a window that depends on free sizes")
    attributes: dict[str, Any] = {
        "kernel_shape": list(kernel),
        "strides": list(stride),
        "pads": [*padding, *padding],
        "ceil_mode": int(arguments["ceil_mode"]),
    }
    if "dilation" in arguments:
        attributes["dilations"] = list(arguments["dilation"])
    if "count_include_pad" in arguments:
        attributes["count_include_pad"] = int(arguments["count_include_pad"])
    if x.ndim == 4:
        return b.ops(kind, count, x, **attributes)
    return [b.squeeze(each, 0) for each in b.ops(kind, count, b.unsqueeze(x, 0), **attributes)]


@lowers("max_pool2d")
def max_pool2d(b: Builder, arguments: dict[str, Any]) -> str:
    return _pooled(b, "MaxPool", 1, arguments["input"], arguments)[0]


@lowers("max_pool2d_with_indices", "native_max_pool2d")
def max_pool2d_with_indices(b: Builder, arguments: dict[str, Any]) -> tuple[str, str | None]:
    x = arguments["input"]
    if b.results[1] is None:
        return max_pool2d(b, arguments), None
    if b.call == "native_max_pool2d":
        raise Unsupported("the places in windows, which derivatives need")
    values, indices = _pooled(b, "MaxPool", 2, x, arguments)
    # ONNX counts from the first element of the tensor, plait from that of the channel
    plane = b.scalar(b.product([b.size(x, -2), b.size(x, -1)]))
    return values, b.op("Mod", indices, plane)


@lowers("avg_pool2d")
def avg_pool2d(b: Builder, arguments: dict[str, Any]) -> str:
    if arguments["ceil_mode"] and b.opset < 19:
        raise Unsupported("avg_pool2d with `ceil_mode` needs opset 19")
    return _pooled(b, "AveragePool", 1, arguments["input"], arguments)[0]


# ---- normalization -----------------------------------------------------------------------------


def _statistics_or_ones(b: Builder, x: Any, like: Value, value: float) -> Any:
    if x is not None:
        return x
    channels = like.dims[1]
    return b.filled(value, [channels], like.dtype)


def normalized(b: Builder, arguments: dict[str, Any]) -> str:
    """Return the node of a batch norm with the statistics that it has, or with those of a batch."""
    x = arguments["input"]
    scale = _statistics_or_ones(b, arguments["weight"], x, 1.0)
    shift = _statistics_or_ones(b, arguments["bias"], x, 0.0)
    mean, variance = arguments["running_mean"], arguments["running_var"]
    if not arguments["training"] and mean is not None:
        return b.op(
            "BatchNormalization", x, scale, shift, mean, variance, epsilon=float(arguments["eps"])
        )
    axes = [dim for dim in range(x.ndim) if dim != 1]
    average = b.reduce("ReduceMean", x, axes, True)
    centred = b.op("Sub", x, average)
    spread = b.reduce("ReduceMean", b.op("Mul", centred, centred), axes, True)
    spread = b.op("Sqrt", b.op("Add", spread, b.number(float(arguments["eps"]), x.dtype)))
    wide = [1, -1, *[1] * (x.ndim - 2)]
    scaled = b.op("Mul", b.op("Div", centred, spread), b.reshape(scale, wide))
    return b.op("Add", scaled, b.reshape(shift, wide))


@lowers("batch_norm")
def batch_norm(b: Builder, arguments: dict[str, Any]) -> str:
    return normalized(b, arguments)


@lowers("batch_norm_activation")
def batch_norm_activation(b: Builder, arguments: dict[str, Any]) -> str:
    x = normalized(b, arguments)
    if arguments["residual"] is not None:
        x = b.op("Add", x, arguments["residual"])
    numbers = (arguments[name] for name in ("min_val", "max_val", "negative_slope"))
    return activated(b, x, arguments["input"].dtype, arguments["activation"], *numbers)


@lowers("native_layer_norm", "layer_norm")
def layer_norm(
    b: Builder,
    input: Value,
    normalized_shape: Any,
    weight: Value | None,
    bias: Value | None,
    eps: float,
) -> Any:
    many = len(b.results) == 3
    if not many or (b.results[1] is None and b.results[2] is None):
        sizes = list(input.dims[input.ndim - len(normalized_shape) :])
        scale: Any = weight if weight is not None else b.filled(1.0, sizes, input.dtype)
        axis = -len(normalized_shape)
        name = b.op("LayerNormalization", input, scale, bias, axis=axis, epsilon=float(eps))
        return (name, None, None) if many else name
    axes = list(range(input.ndim - len(normalized_shape), input.ndim))
    average = b.reduce("ReduceMean", input, axes, True)
    centred = b.op("Sub", input, average)
    spread = b.reduce("ReduceMean", b.op("Mul", centred, centred), axes, True)
    shifted = b.op("Add", spread, b.number(float(eps), input.dtype))
    inverse = b.op("Reciprocal", b.op("Sqrt", shifted))
    x = b.op("Mul", centred, inverse)
    x = x if weight is None else b.op("Mul", x, weight)
    x = x if bias is None else b.op("Add", x, bias)
    return x, average, inverse


@lowers("softmax")
def softmax(b: Builder, self: Value, dim: int) -> str:
    x = b.cast(self, b.results[0].dtype)
    if not self.ndim:
        return b.op("Squeeze", b.op("Softmax", b.unsqueeze(x, 0), axis=0), b.constant([0]))
    return b.op("Softmax", x, axis=dim % self.ndim)


@lowers("log_softmax")
def log_softmax(b: Builder, self: Value, dim: int) -> str:
    x = b.cast(self, b.results[0].dtype)
    if not self.ndim:
        return b.op("Squeeze", b.op("LogSoftmax", b.unsqueeze(x, 0), axis=0), b.constant([0]))
    return b.op("LogSoftmax", x, axis=dim % self.ndim)


@lowers("native_dropout")
def native_dropout(b: Builder, input: Value, p: float) -> tuple[str, str | None]:
    training, ratio = b.constant(True, "bool"), b.constant(float(p), "float32")
    if b.results[1] is None:
        return b.op("Dropout", input, ratio, training), None
    values, mask = b.ops("Dropout", 2, input, ratio, training)
    return values, mask
