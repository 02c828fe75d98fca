"""Names in `torch.nn.modules` that programs use: base classes and small functions."""

from __future__ import annotations

import copy
import importlib
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

import plait
from plait_nn._conv import _Conv, _ConvTransposeNd
from plait_nn._dropout import _DropoutNd
from plait_nn._hooks import GLOBAL, WrappedHook as _WrappedHook
from plait_nn._lazy import _Lazy as LazyModuleMixin
from plait_nn._loss import _Loss, _WeightedLoss
from plait_nn._normalization import _BatchNorm, _InstanceNorm, _Norm
from plait_nn._state_dict import IncompatibleKeys as _IncompatibleKeys
from plait_torch._tuples import _ntuple, _pair, _quadruple, _single, _triple

__all__ = [
    "LazyModuleMixin",
    "_EXTRA_STATE_KEY_SUFFIX",
    "_DropoutNd",
    "_IncompatibleKeys",
    "_BatchNorm",
    "_AdaptiveAvgPoolNd",
    "_AdaptiveMaxPoolNd",
    "_AvgPoolNd",
    "_CircularPadNd",
    "_ConstantPadNd",
    "_ConvNd",
    "_ConvTransposeMixin",
    "_ConvTransposeNd",
    "_InstanceNorm",
    "_LPPoolNd",
    "_MaxPoolNd",
    "_MaxUnpoolNd",
    "_Loss",
    "_NormBase",
    "_ReflectionPadNd",
    "_ReplicationPadNd",
    "_WeightedLoss",
    "_WrappedHook",
    "T",
    "_addindent",
    "_forward_unimplemented",
    "_get_activation_fn",
    "_get_clones",
    "_global_backward_hooks",
    "_global_backward_pre_hooks",
    "_global_buffer_registration_hooks",
    "_global_forward_hooks",
    "_global_forward_hooks_always_called",
    "_global_forward_hooks_with_kwargs",
    "_global_forward_pre_hooks",
    "_global_module_registration_hooks",
    "_global_parameter_registration_hooks",
    "_has_any_global_hook",
    "_grad_t",
    "_list_with_default",
    "_ntuple",
    "_pair",
    "_shape_t",
    "_quadruple",
    "_single",
    "_triple",
    "apply_permutation",
]

T = TypeVar("T", bound=plait.nn.Module)
_grad_t = tuple[plait.Tensor, ...] | plait.Tensor
_shape_t = int | list[int] | plait.Size
_FUNCTIONAL = "torch.nn.functional"
_EXTRA_STATE_KEY_SUFFIX = "_extra_state"
_ConvNd = _Conv  # in PyTorch the base of the transposed convolutions, too
_NormBase = _Norm


class _Family(type):
    """A class whose instances are those of its members: layers for 1, 2 and 3 dimensions that have
    no base of their own.
    """

    members: tuple[type, ...] = ()

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.members) or super().__instancecheck__(instance)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, cls.members) or super().__subclasscheck__(subclass)


_MaxPoolNd = _Family("_MaxPoolNd", (plait.nn.Module,), {
    "members": (plait.nn.MaxPool1d, plait.nn.MaxPool2d, plait.nn.MaxPool3d),
})  # fmt: skip
_AvgPoolNd = _Family("_AvgPoolNd", (plait.nn.Module,), {
    "members": (plait.nn.AvgPool1d, plait.nn.AvgPool2d, plait.nn.AvgPool3d),
})  # fmt: skip
_MaxUnpoolNd, _LPPoolNd, _AdaptiveMaxPoolNd, _AdaptiveAvgPoolNd = (
    each.__base__
    for each in (
        plait.nn.MaxUnpool1d,
        plait.nn.LPPool1d,
        plait.nn.AdaptiveMaxPool1d,
        plait.nn.AdaptiveAvgPool1d,
    )
)
# the bases of layers that pad, for any number of dimensions
_ConstantPadNd, _ReflectionPadNd, _ReplicationPadNd, _CircularPadNd = (
    each.__base__
    for each in (
        plait.nn.ConstantPad1d,
        plait.nn.ReflectionPad1d,
        plait.nn.ReplicationPad1d,
        plait.nn.CircularPad1d,
    )
)
_ConvTransposeMixin = _ConvTransposeNd  # the older name

# the hooks of all modules; programs may change these dicts
_global_backward_hooks = GLOBAL._backward_hooks
_global_backward_pre_hooks = GLOBAL._backward_pre_hooks
_global_buffer_registration_hooks = GLOBAL._buffers
_global_forward_hooks = GLOBAL._forward_hooks
_global_forward_hooks_always_called = GLOBAL._forward_hooks_always_called
_global_forward_hooks_with_kwargs = GLOBAL._forward_hooks_with_kwargs
_global_forward_pre_hooks = GLOBAL._forward_pre_hooks
_global_module_registration_hooks = GLOBAL._modules
_global_parameter_registration_hooks = GLOBAL._parameters


def __getattr__(name: str) -> Any:
    if name == "F":  # where programs replace functions that layers call
        return importlib.import_module(_FUNCTIONAL)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _has_any_global_hook() -> Any:
    return GLOBAL._hooked


def _get_clones(module: Any, N: int) -> Any:
    """Return a `ModuleList` of N copies."""
    return plait.nn.ModuleList([copy.deepcopy(module) for _ in range(N)])


def _get_activation_fn(activation: str) -> Callable[..., Any]:
    if activation not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    return getattr(plait.nn.functional, activation)  # type: ignore[no-any-return]


def _addindent(s_: str, numSpaces: int) -> str:
    """Indent all lines but the first."""
    return s_.replace("\n", "\n" + " " * numSpaces)


def _forward_unimplemented(self: Any, *input: Any) -> NoReturn:
    """Raise: a module must define `forward`."""
    raise NotImplementedError(f"{type(self).__name__}: a module must define `forward`")


def _list_with_default(out_size: Sequence[int | None] | int, defaults: Sequence[int]) -> Any:
    """Return sizes with those that are None replaced by the last ones of `defaults`.

    Example:
        >>> from plait_torch._nn_modules import _list_with_default
        >>> _list_with_default((None, 5), (3, 7, 9))
        [7, 5]
    """
    if isinstance(out_size, int):
        return out_size
    if len(defaults) <= len(out_size):
        raise ValueError(
            f"_list_with_default: more than {len(out_size)} sizes are required; got {len(defaults)}"
        )
    last = defaults[-len(out_size) :]
    return [d if size is None else size for size, d in zip(out_size, last, strict=True)]


def apply_permutation(tensor: Any, permutation: Any, dim: int = 1) -> Any:
    """Return the elements of a dimension in another order."""
    return tensor.index_select(dim, permutation)
