"""Lazy layers, which take the size of their input from the first input."""

from __future__ import annotations

from typing import Any

import plait_core as pc
from plait_core import Tensor
from plait_nn import _conv as convolutions, _normalization as norms
from plait_nn._linear import Linear
from plait_nn._module import Module
from plait_nn._parameter import Buffer, Parameter


def _fill(tensor: Tensor, shape: Any, device: Any, dtype: Any) -> None:
    """Give a tensor without a shape uninitialised values; None keeps dtype or device."""
    device = tensor.device if device is None else device
    dtype = tensor.dtype if dtype is None else dtype
    tensor.data = pc.empty(tuple(shape), device=device, dtype=dtype)


class UninitializedParameter(Parameter):
    """A parameter whose shape is not known yet. It is an empty tensor until it is materialised.

    Args:
        requires_grad: Whether it requires grad.
        device: Where the parameters are; None is the default device.
        dtype: The parameters' dtype; None is the default dtype.

    Example:
        >>> import plait_nn as nn
        >>> isinstance(nn.LazyLinear(3).weight, nn.UninitializedParameter)
        True
    """

    def __new__(
        cls, requires_grad: bool = True, device: Any = None, dtype: Any = None
    ) -> UninitializedParameter:
        parameter = Parameter.__new__(cls, pc.empty(0, device=device, dtype=dtype), requires_grad)
        assert isinstance(parameter, UninitializedParameter)
        return parameter

    def __init__(self, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> None:
        """Accept the arguments of `__new__`, which has made the object."""

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Become an ordinary parameter of a shape, with uninitialised values.

        Args:
            shape: The shape.
            device: The device; None keeps it.
            dtype: The dtype; None keeps it.
        """
        _fill(self, shape, device, dtype)
        self.__class__ = Parameter  # type: ignore[assignment]

    def _arguments(self) -> tuple[Any, ...]:
        plain = self.detach()
        return self.requires_grad, plain.device, plain.dtype

    def __deepcopy__(self, memo: dict[int, Any]) -> UninitializedParameter:
        if id(self) not in memo:
            memo[id(self)] = type(self)(*self._arguments())
        copy: UninitializedParameter = memo[id(self)]
        return copy

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return type(self), self._arguments()


class UninitializedBuffer(Buffer):
    """A buffer whose shape is not known yet. It is an empty tensor until it is materialised.

    Args:
        requires_grad: Whether it requires grad.
        device: Where the parameters are; None is the default device.
        dtype: The parameters' dtype; None is the default dtype.
        persistent: Whether ``state_dict`` contains it.

    Example:
        >>> import plait_nn as nn
        >>> buffer = nn.UninitializedBuffer()
        >>> buffer.materialize((2, 3))
        >>> tuple(buffer.shape), type(buffer).__name__
        ((2, 3), 'Buffer')
    """

    def __new__(
        cls,
        requires_grad: bool = False,
        device: Any = None,
        dtype: Any = None,
        persistent: bool = True,
    ) -> UninitializedBuffer:
        empty = pc.empty(0, device=device, dtype=dtype, requires_grad=requires_grad)
        parameter = Buffer.__new__(cls, empty, persistent=persistent)
        assert isinstance(parameter, UninitializedBuffer)
        return parameter

    def __init__(
        self,
        requires_grad: bool = False,
        device: Any = None,
        dtype: Any = None,
        persistent: bool = True,
    ) -> None:
        """Accept the arguments of `__new__`, which has made the object."""

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Become an ordinary buffer of a shape, with uninitialised values.

        Args:
            shape: The shape.
            device: The device; None keeps it.
            dtype: The dtype; None keeps it.
        """
        _fill(self, shape, device, dtype)
        self.__class__ = Buffer  # type: ignore[assignment]

    def _arguments(self) -> tuple[Any, ...]:
        plain = self.detach()
        return self.requires_grad, plain.device, plain.dtype, self.persistent

    def __deepcopy__(self, memo: dict[int, Any]) -> UninitializedBuffer:
        if id(self) not in memo:
            memo[id(self)] = type(self)(*self._arguments())
        copy: UninitializedBuffer = memo[id(self)]
        return copy

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return type(self), self._arguments()


class _Lazy(Module):
    """A layer that becomes ``cls_to_become`` at the first input, whose dimension ``_dim`` gives the
    size.
    """

    cls_to_become: type[Module]
    _size: str
    _dim: int

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        layers: list[Any] = [base for base in cls.__bases__ if not issubclass(base, _Lazy)]
        if cls.__module__ == __name__ and layers:
            cls.cls_to_become = layers[-1]

    def _is_single(self, input: Tensor) -> bool:
        """Return whether an input has no batch, so that its channels are one dimension earlier."""
        return False

    def _wait(self) -> None:
        for name, parameter in list(self._parameters.items()):
            if parameter is not None:
                plain = parameter.detach()
                waiting = UninitializedParameter(True, plain.device, plain.dtype)
                self._parameters[name] = waiting
        # under PyTorch's names, so that its modules and these read each other's pickles
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(
            self._infer_parameters, with_kwargs=True
        )

    def has_uninitialized_params(self) -> bool:
        """Return whether the size of the input is not known yet."""
        return any(isinstance(p, UninitializedParameter) for p in self._parameters.values())

    def reset_parameters(self) -> None:
        """Draw new values, as soon as there are parameters."""
        if getattr(self, self._size):
            self.cls_to_become.reset_parameters(self)  # type: ignore[attr-defined]

    def _infer_parameters(
        self, module: Module, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None
    ) -> None:
        self.initialize_parameters(*args, **(kwargs or {}))

    def _lazy_load_hook(self, *arguments: Any) -> None:
        """Do nothing: `_load_from_state_dict` makes the parameters for a checkpoint."""

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:
        """Make the parameters for an input; further arguments are not used."""
        self.initialize_parameters_of_size(input.shape[self._dim - self._is_single(input)])

    def initialize_parameters_of_size(self, size: int) -> None:
        """Make the parameters for a size and become the layer.

        Args:
            size: The size of the input that the parameters depend on.
        """
        self.__dict__.pop("_evidence", None)
        setattr(self, self._size, size)
        for name, shape in self._shapes().items():
            parameter = self._parameters.get(name)
            if isinstance(parameter, UninitializedParameter):
                parameter.materialize(shape)
            buffer = self._buffers.get(name)
            if buffer is not None:
                self._buffers[name] = pc.empty(shape, device=buffer.device, dtype=buffer.dtype)
        self.reset_parameters()
        for name in ("_initialize_hook", "_load_hook"):
            handle = self.__dict__.pop(name, None)
            if handle is not None:
                handle.remove()
        self.__class__ = self.cls_to_become  # type: ignore[assignment]

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        raise NotImplementedError

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, *args: Any, **kwargs: Any
    ) -> None:
        weight = state_dict.get(f"{prefix}{self._evidence}")
        if weight is not None:
            self.initialize_parameters_of_size(self._size_of(tuple(weight.shape)))
            # the method of ``cls_to_become``
            self._load_from_state_dict(state_dict, prefix, *args, **kwargs)
            return
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)

    _evidence = "weight"

    def _size_of(self, shape: tuple[int, ...]) -> int:
        """Return the size that follows from a weight in a checkpoint."""
        raise NotImplementedError


class LazyLinear(_Lazy, Linear):
    """`Linear` that takes ``in_features`` from its first input.

    Args:
        out_features: Number of outputs.
        bias: Whether there is a bias.
        device: Where the parameters are; None is the default device.
        dtype: The parameters' dtype; None is the default dtype.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> layer = nn.LazyLinear(3)
        >>> tuple(layer(pc.ones(2, 5)).shape), layer
        ((2, 3), Linear(in_features=5, out_features=3, bias=True))
    """

    _size = "in_features"
    _dim = -1

    def __init__(
        self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(0, out_features, bias, device, dtype)
        self._wait()

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        return {"weight": (self.out_features, self.in_features), "bias": (self.out_features,)}

    def _size_of(self, shape: tuple[int, ...]) -> int:
        return shape[1]


class _LazyConv(_Lazy, convolutions._Conv):
    _size = "in_channels"
    _dim = 1

    def __init__(
        self,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        options = (kernel_size, stride, padding, dilation, groups, bias, padding_mode)
        super().__init__(0, out_channels, *options, device, dtype)
        self._wait()

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        first, second = self.out_channels, self.in_channels
        if self.in_channels % self.groups:
            raise ValueError(
                f"{type(self).__name__}: `in_channels` must be divisible by `groups`; "
                f"got {self.in_channels} and {self.groups}"
            )
        if self._transposed:
            first, second = second, first
        weight = (first, second // self.groups, *self.kernel_size)
        return {"weight": weight, "bias": (self.out_channels,)}

    def _is_single(self, input: Tensor) -> bool:
        return input.ndim == self._dims + 1

    def _size_of(self, shape: tuple[int, ...]) -> int:
        return shape[0] if self._transposed else shape[1] * self.groups


class _LazyConvTranspose(_LazyConv):
    def __init__(
        self,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        options = (stride, padding, output_padding, groups, bias, dilation, padding_mode)
        # the next class behind _LazyConv has these arguments
        super(_LazyConv, self).__init__(0, out_channels, kernel_size, *options, device, dtype)
        self._wait()


class _LazyNorm(_Lazy, norms._Norm):
    _size = "num_features"
    _dim = 1

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(0, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self._wait()

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        shape = (self.num_features,)
        return dict.fromkeys(("weight", "bias", "running_mean", "running_var"), shape)

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, *args: Any, **kwargs: Any
    ) -> None:
        if f"{prefix}weight" not in state_dict:
            self._evidence = "running_mean"
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)

    def _size_of(self, shape: tuple[int, ...]) -> int:
        return shape[0]


class _LazyInstanceNorm(_LazyNorm):
    # PyTorch's defaults here are those of the batch norms, not those of `InstanceNorm1d`
    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _is_single(self, input: Tensor) -> bool:
        return input.ndim == min(self._ndims)


class LazyConv1d(_LazyConv, convolutions.Conv1d):
    """`Conv1d` that takes ``in_channels`` from its first input.

    Args:
        out_channels: Channels of the output.
        kernel_size: The filters' size, one int or one for each dimension.
        stride: Distance of the windows.
        padding: Elements on every side, as ints; ``"valid"`` is 0; ``"same"`` keeps the size and
            requires stride 1.
        dilation: Distance of the kernel's elements.
        groups: Number of independent groups of channels.
        bias: Whether there is a bias.
        padding_mode: The elements of the padding: "zeros", "reflect", "replicate", "circular".
        device: Where the parameters are; None is the default device.
        dtype: The parameters' dtype; None is the default dtype.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> layer = nn.LazyConv1d(4, 3)
        >>> layer(pc.ones(2, 3, 8)).shape[1], type(layer).__name__, layer.in_channels
        (4, 'Conv1d', 3)
    """


class LazyConv2d(_LazyConv, convolutions.Conv2d):
    """`Conv2d` that takes ``in_channels`` from its first input.

    Args:
        out_channels: Channels of the output.
        kernel_size: The filters' size, one int or one for each dimension.
        stride: Distance of the windows.
        padding: Elements on every side, as ints; ``"valid"`` is 0; ``"same"`` keeps the size and
            requires stride 1.
        dilation: Distance of the kernel's elements.
        groups: Number of independent groups of channels.
        bias: Whether there is a bias.
        padding_mode: The elements of the padding: "zeros", "reflect", "replicate", "circular".
        device: Where the parameters are; None is the default device.
        dtype: The parameters' dtype; None is the default dtype.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> layer = nn.LazyConv2d(4, 3)
        >>> layer(pc.ones(2, 3, 8, 8)).shape[1], type(layer).__name__, layer.in_channels
        (4, 'Conv2d', 3)
    """


class LazyConv3d(_LazyConv, convolutions.Conv3d):
    """`Conv3d` that takes ``in_channels`` from its first input.

    Args:
        out_channels: Channels of the output.
        kernel_size: The filters' size, one int or one for each dimension.
        stride: Distance of the windows.
        padding: Elements on every side, as ints; ``"valid"`` is 0; ``"same"`` keeps the size and
            requires stride 1.
        dilation: Distance of the kernel's elements.
        groups: Number of independent groups of channels.
        bias: Whether there is a bias.
        padding_mode: The elements of the padding: "zeros", "reflect", "replicate", "circular".
        device: Where the parameters are; None is the default device.
        dtype: The parameters' dtype; None is the default dtype.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> layer = nn.LazyConv3d(4, 3)
        >>> layer(pc.ones(2, 3, 8, 8, 8)).shape[1], type(layer).__name__, layer.in_channels
        (4, 'Conv3d', 3)
    """


class LazyConvTranspose1d(_LazyConvTranspose, convolutions.ConvTranspose1d):
    """`ConvTranspose1d` that takes ``in_channels`` from its first input.

    Args:
        out_channels: Channels of the output.
        kernel_size: The filters' size, one int or one for each dimension.
        stride: Distance of the input's elements in the result.
        padding: Number of elements that are cut off on every side.
        output_padding: Number of elements that are not cut off at the end.
        groups: Number of independent groups of channels.
        bias: Whether there is a bias.
        dilation: Distance of the kernel's elements.
        padding_mode: "zeros".
        device: Where the parameters are; None is the default device.
        dtype: The parameters' dtype; None is the default dtype.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> layer = nn.LazyConvTranspose1d(4, 3)
        >>> layer(pc.ones(2, 3, 8)).shape[1], type(layer).__name__, layer.in_channels
        (4, 'ConvTranspose1d', 3)
    """


class LazyConvTranspose2d(_LazyConvTranspose, convolutions.ConvTranspose2d):
    """`ConvTranspose2d` that takes ``in_channels`` from its first input.

    Args:
        out_channels: Channels of the output.
        kernel_size: The filters' size, one int or one for each dimension.
        stride: Distance of the input's elements in the result.
        padding: Number of elements that are cut off on every side.
        output_padding: Number of elements that are not cut off at the end.
        groups: Number of independent groups of channels.
        bias: Whether there is a bias.
        dilation: Distance of the kernel's elements.
        padding_mode: "zeros".
        device: Where the parameters are; None is the default device.
        dtype: The parameters' dtype; None is the default dtype.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> layer = nn.LazyConvTranspose2d(4, 3)
        >>> layer(pc.ones(2, 3, 8, 8)).shape[1], type(layer).__name__, layer.in_channels
        (4, 'ConvTranspose2d', 3)
    """


class LazyConvTranspose3d(_LazyConvTranspose, convolutions.ConvTranspose3d):
    """`ConvTranspose3d` that takes ``in_channels`` from its first input.

    Args:
        out_channels: Channels of the output.
        kernel_size: The filters' size, one int or one for each dimension.
        stride: Distance of the input's elements in the result.
        padding: Number of elements that are cut off on every side.
        output_padding: Number of elements that are not cut off at the end.
        groups: Number of independent groups of channels.
        bias: Whether there is a bias.
        dilation: Distance of the kernel's elements.
        padding_mode: "zeros".
        device: Where the parameters are; None is the default device.
        dtype: The parameters' dtype; None is the default dtype.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> layer = nn.LazyConvTranspose3d(4, 3)
        >>> layer(pc.ones(2, 3, 8, 8, 8)).shape[1], type(layer).__name__, layer.in_channels
        (4, 'ConvTranspose3d', 3)
    """


class LazyBatchNorm1d(_LazyNorm, norms.BatchNorm1d):
    """`BatchNorm1d` that takes ``num_features`` from its first input.

    Args:
        eps: Added to the variance before its root is taken.
        momentum: Weight of a batch in the running statistics; None: their mean over all batches.
        affine: Whether there are learned factors and offsets of the channels.
        track_running_stats: Whether there are running statistics, which evaluation uses.
        device: Where the parameters are; None is the default device.
        dtype: The parameters' dtype; None is the default dtype.
        bias: Whether there are offsets, if `affine`.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> layer = nn.LazyBatchNorm1d()
        >>> layer(pc.randn(2, 3, 8)).shape[1], type(layer).__name__, layer.num_features
        (3, 'BatchNorm1d', 3)
    """


class LazyBatchNorm2d(_LazyNorm, norms.BatchNorm2d):
    """`BatchNorm2d` that takes ``num_features`` from its first input.

    Args:
        eps: Added to the variance before its root is taken.
        momentum: Weight of a batch in the running statistics; None: their mean over all batches.
        affine: Whether there are learned factors and offsets of the channels.
        track_running_stats: Whether there are running statistics, which evaluation uses.
        device: Where the parameters are; None is the default device.
        dtype: The parameters' dtype; None is the default dtype.
        bias: Whether there are offsets, if `affine`.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> layer = nn.LazyBatchNorm2d()
        >>> layer(pc.randn(2, 3, 8, 8)).shape[1], type(layer).__name__, layer.num_features
        (3, 'BatchNorm2d', 3)
    """


class LazyBatchNorm3d(_LazyNorm, norms.BatchNorm3d):
    """`BatchNorm3d` that takes ``num_features`` from its first input.

    Args:
        eps: Added to the variance before its root is taken.
        momentum: Weight of a batch in the running statistics; None: their mean over all batches.
        affine: Whether there are learned factors and offsets of the channels.
        track_running_stats: Whether there are running statistics, which evaluation uses.
        device: Where the parameters are; None is the default device.
        dtype: The parameters' dtype; None is the default dtype.
        bias: Whether there are offsets, if `affine`.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> layer = nn.LazyBatchNorm3d()
        >>> layer(pc.randn(2, 3, 8, 8, 8)).shape[1], type(layer).__name__, layer.num_features
        (3, 'BatchNorm3d', 3)
    """


class LazyInstanceNorm1d(_LazyInstanceNorm, norms.InstanceNorm1d):
    """`InstanceNorm1d` that takes ``num_features`` from its first input.

    As in PyTorch, it has a weight, a bias and running statistics unless ``affine=False`` and
    ``track_running_stats=False`` are given, which `InstanceNorm1d` has as defaults.

    Args:
        eps: Added to the variance before its root is taken.
        momentum: Weight of a batch in the running statistics; None: their mean over all batches.
        affine: Whether there are learned factors and offsets of the channels.
        track_running_stats: Whether there are running statistics, which evaluation uses.
        device: Where the parameters are; None is the default device.
        dtype: The parameters' dtype; None is the default dtype.
        bias: Whether there are offsets, if `affine`.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> layer = nn.LazyInstanceNorm1d()
        >>> layer(pc.randn(2, 3, 8)).shape[1], type(layer).__name__, layer.num_features
        (3, 'InstanceNorm1d', 3)
    """


class LazyInstanceNorm2d(_LazyInstanceNorm, norms.InstanceNorm2d):
    """`InstanceNorm2d` that takes ``num_features`` from its first input.

    Args:
        eps: Added to the variance before its root is taken.
        momentum: Weight of a batch in the running statistics; None: their mean over all batches.
        affine: Whether there are learned factors and offsets of the channels.
        track_running_stats: Whether there are running statistics, which evaluation uses.
        device: Where the parameters are; None is the default device.
        dtype: The parameters' dtype; None is the default dtype.
        bias: Whether there are offsets, if `affine`.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> layer = nn.LazyInstanceNorm2d()
        >>> layer(pc.randn(2, 3, 8, 8)).shape[1], type(layer).__name__, layer.num_features
        (3, 'InstanceNorm2d', 3)
    """


class LazyInstanceNorm3d(_LazyInstanceNorm, norms.InstanceNorm3d):
    """`InstanceNorm3d` that takes ``num_features`` from its first input.

    Args:
        eps: Added to the variance before its root is taken.
        momentum: Weight of a batch in the running statistics; None: their mean over all batches.
        affine: Whether there are learned factors and offsets of the channels.
        track_running_stats: Whether there are running statistics, which evaluation uses.
        device: Where the parameters are; None is the default device.
        dtype: The parameters' dtype; None is the default dtype.
        bias: Whether there are offsets, if `affine`.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> layer = nn.LazyInstanceNorm3d()
        >>> layer(pc.randn(2, 3, 8, 8, 8)).shape[1], type(layer).__name__, layer.num_features
        (3, 'InstanceNorm3d', 3)
    """
