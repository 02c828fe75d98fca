"""Linear layers with int8 weights, for inference, and the call that puts them into a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import plait_core as pc
from plait_core import Tensor
from plait_nn import _operators as operators
from plait_nn._attention import MultiheadAttention
from plait_nn._hooks import is_hooked
from plait_nn._linear import Linear, check_sizes
from plait_nn._module import Module

M = TypeVar("M", bound=Module)
_FLOATS = (pc.float32, pc.float16, pc.bfloat16)


class QuantizedLinear(Module):
    r"""Compute :math:`y = x W^T + b` with int8 weights; only for inference.

    Row :math:`j` of :math:`W` is ``weight[j] * scale[j]``. In memory this is a quarter of float32
    weights. Weights become floats in registers, sums are float32. It starts with weights that are
    0; `from_float` makes one of a `Linear`, `quantize_` of all in a model.

    Args:
        in_features: Size of the input's last dimension.
        out_features: Size of the output's last dimension.
        bias: Whether there is a ``b``.
        activations: Whether each row of the input is quantised too, when the layer is called: to
            int8 with a scale of its own, the largest size over 127. The product is then computed in
            integers, which are the same on every processor.
        device: Where the buffers live.
        dtype: Of the bias and the inputs: float32, float16 or bfloat16; None is float32.

    Attributes:
        weight: int8, shape (out_features, in_features).
        scale: float32, shape (out_features); no conversion of the module changes its dtype.
        bias: Shape (out_features), or None.

    Raises:
        RuntimeError: It is called in training mode. Int8 weights have no gradients.
        NotImplementedError: A backward pass reaches its input, for which there is no derivative.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> linear = nn.Linear(20, 30).eval()
        >>> layer = nn.QuantizedLinear.from_float(linear)
        >>> layer
        QuantizedLinear(in_features=20, out_features=30, bias=True, activations=False)
        >>> x = pc.randn(128, 20)
        >>> bool(((layer(x) - linear(x)).abs() < 0.02).all())
        True
    """

    weight: Tensor
    scale: Tensor
    bias: Tensor | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        activations: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        check_sizes("QuantizedLinear", in_features=in_features, out_features=out_features)
        self.in_features = in_features
        self.out_features = out_features
        self.activations = bool(activations)
        shape = out_features, in_features
        self.register_buffer("weight", pc.zeros(shape, device=device, dtype=pc.int8))
        self.register_buffer("scale", pc.ones(out_features, device=device, dtype=pc.float32))
        result = pc.zeros(out_features, device=device, dtype=dtype) if bias else None
        self.register_buffer("bias", result)
        self.eval()

    @classmethod
    def from_float(cls, linear: Linear, activations: bool = False) -> QuantizedLinear:
        """Return a layer with the rounded weights of `linear`, whose bias it copies.

        Args:
            activations: How the inputs are quantized; the class has the names.

        Raises:
            TypeError: `linear` is no `Linear`, or its weight is not float32, float16 or bfloat16.
            ValueError: A weight is nan or infinite.
        """
        if not isinstance(linear, Linear):
            raise TypeError(
                f"QuantizedLinear.from_float: `linear` must be a Linear; got "
                f"{type(linear).__name__}"
            )
        weight, bias = linear.weight.detach(), linear.bias
        if weight.dtype not in _FLOATS:
            raise TypeError(
                "QuantizedLinear.from_float: the weight must be float32, float16 or bfloat16; got "
                f"{weight.dtype}"
            )
        q, scale = _quantized(weight)
        result = cls(0, 0, bias is not None, activations, device=weight.device)
        result.in_features, result.out_features = linear.in_features, linear.out_features
        result.weight, result.scale = q, scale
        if bias is not None:
            result.bias = bias.detach().clone()
        return result

    def forward(self, input: Tensor) -> Tensor:
        if self.training:
            raise RuntimeError(
                "QuantizedLinear: int8 weights have no gradients: the layer is not for training; "
                "call eval()"
            )
        return operators.linear_int8(
            input, self.weight, self.scale, self.bias, activations=self.activations
        )

    def dequantize(self) -> Tensor:
        """Return the weights as floats: ``weight * scale`` for each row, shape (out, in).

        Example:
            >>> import plait_nn as nn
            >>> nn.QuantizedLinear(2, 1).dequantize().tolist()
            [[0.0, 0.0]]
        """
        return self.weight.to(pc.float32) * self.scale.unsqueeze(1)

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}, activations={self.activations}"
        )

    def _apply(
        self: Any, fn: Callable[[Tensor], Tensor], recurse: bool = True
    ) -> Any:  # the scale stays float32
        scale = self.scale
        super()._apply(fn, recurse)
        if self.scale.dtype != scale.dtype:
            self.scale = scale.to(self.scale.device)
        return self

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        weight = state_dict.get(prefix + "weight")
        dtype = getattr(weight, "dtype", None)
        if weight is not None and str(dtype).rpartition(".")[2] != "int8":
            error_msgs.append(
                f'"{prefix}weight": a QuantizedLinear loads int8 weights; got {dtype}. Load floats '
                "into the model before it is quantised"
            )
            return
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )


def quantize_(
    model: M, *, activations: bool = False, filter_fn: Callable[[Module, str], bool] | None = None
) -> M:
    """Replace each `Linear` in `model` by a `QuantizedLinear`, and return `model`.

    Other layers stay as they are, and so do subclasses of `Linear` and the ``out_proj`` of
    `MultiheadAttention`, whose weight is not used by a call. A weight that an embedding shares with
    a `Linear` stays float in the embedding. The name is torchao's, whose ``int8_weight_only`` and
    ``int8_dynamic_activation_int8_weight`` are the two kinds here.

    Args:
        model: A model in evaluation mode that has a `Linear` in it and is none itself.
        activations: See `QuantizedLinear`.
        filter_fn: ``filter_fn(module, name)`` says whether the `Linear` called `name` is replaced.

    Raises:
        RuntimeError: A layer is in training mode.
        TypeError: `model` is no module, or a `Linear` itself, or a weight is float64 or complex.
        ValueError: There is nothing to replace, a weight is nan or infinite, or a layer has hooks.

        After an error `model` is as it was.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).eval()
        >>> nn.quantize_(model, filter_fn=lambda module, name: name != "2")
        Sequential(
          (0): QuantizedLinear(in_features=8, out_features=16, bias=True, activations=False)
          (1): ReLU()
          (2): Linear(in_features=16, out_features=4, bias=True)
        )
        >>> tuple(model(pc.randn(3, 8)).shape)
        (3, 4)
    """
    if not isinstance(model, Module):
        raise TypeError(f"quantize_: `model` must be a Module; got {type(model).__name__}")
    if type(model) is Linear:
        raise TypeError(
            "quantize_: `model` is a Linear, which cannot be replaced in place; use "
            "QuantizedLinear.from_float"
        )
    result: dict[int, QuantizedLinear] = {}
    targets: list[tuple[Module, str, QuantizedLinear]] = []
    for owner, key, name, linear in _linears(model):
        if filter_fn is not None and not filter_fn(linear, name):
            continue
        if id(linear) not in result:
            result[id(linear)] = _replacement(name, linear, activations)
        targets.append((owner, key, result[id(linear)]))
    if not targets:
        raise ValueError(f"quantize_: {type(model).__name__} has no Linear to replace")
    for owner, key, layer in targets:
        owner._modules[key] = layer
    return model


def _linears(model: Module) -> Iterator[tuple[Module, str, str, Linear]]:
    """Yield each place of a `Linear`: its owner, its key there, its full name and itself."""
    for path, owner in model.named_modules():
        if isinstance(owner, MultiheadAttention):
            continue
        for key, child in owner._modules.items():
            if type(child) is Linear:
                yield owner, key, f"{path}.{key}" if path else key, child


def _replacement(name: str, linear: Linear, activations: bool) -> QuantizedLinear:
    if linear.training:
        raise RuntimeError(
            f"quantize_: `{name}` is in training mode, and int8 weights have no gradients; call "
            "eval()"
        )
    if is_hooked(linear):
        raise ValueError(f"quantize_: `{name}` has hooks, which would be lost; remove them first")
    try:
        return QuantizedLinear.from_float(linear, activations)
    except (TypeError, ValueError) as error:
        text = str(error).partition(": ")[2]
        raise type(error)(f"quantize_: `{name}`: {text}") from None


def _quantized(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Return int8 weights and the float32 scales of their rows."""
    wide = weight.to(pc.float32)
    if wide.numel() == 0:
        return wide.to(pc.int8), pc.ones(wide.shape[0], device=weight.device)
    scale = wide.abs().amax(1) / 127
    if not bool(scale.isfinite().all()):
        raise ValueError("QuantizedLinear.from_float: a weight is nan or infinite")
    step = pc.where(scale > 0, scale, pc.ones_like(scale)).unsqueeze(1)
    return (wide / step).round().clamp(-127, 127).to(pc.int8), scale
