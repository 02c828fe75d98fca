# mypy: disallow-subclassing-any=False
# Tensor is a compiled type, which type checkers see as Any without a stub.
"""`Parameter`, which optimizers update, and `Buffer`, which is state without gradients."""

from __future__ import annotations

from typing import Any

import plait_core as pc
from plait_core import Tensor


class ParameterType(type):
    """The type of `Parameter`: a package whose parameters are of other classes may give it
    ``__instancecheck__``.
    """


class Parameter(Tensor, metaclass=ParameterType):
    """A tensor that becomes a parameter of the module it is assigned to.

    Assigned as an attribute of a `Module`, it appears in ``module.parameters()`` and in
    ``module.state_dict()``. Operators on a parameter return plain tensors.

    Args:
        data: The values; the parameter shares their memory. None makes an empty tensor.
        requires_grad: Whether ``backward`` computes its gradient. It is False if no package for
            automatic differentiation is installed.

    Raises:
        TypeError: ``data`` is not a tensor.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> w = nn.Parameter(pc.ones(2))
        >>> w.requires_grad
        True
        >>> isinstance(w, pc.Tensor), type(w * 2).__name__
        (True, 'Tensor')
    """

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        if data is None:
            data = pc.empty(0)
        elif not isinstance(data, Tensor):
            raise TypeError(f"Parameter: `data` must be a Tensor; got {type(data).__name__}")
        become = getattr(data, "__plait_parameter__", None)
        if become is not None and cls is Parameter:
            # a class of tensors whose parameters are of a class of their own
            result: Parameter = become(requires_grad)
            return result
        try:
            self: Parameter = Tensor._make_subclass(cls, data, requires_grad)
        except (
            ModuleNotFoundError
        ):  # without an engine the model still runs, and `backward` says what to install
            self = Tensor._make_subclass(cls, data, False)
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        if id(self) in memo:
            result: Parameter = memo[id(self)]
            return result
        copy = type(self)(self.detach().clone(), self.requires_grad)
        memo[id(self)] = copy
        return copy

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        result = _rebuild, (type(self), self.detach(), self.requires_grad)
        return (*result, self.__dict__) if self.__dict__ else result

    def __repr__(self) -> str:
        plain = self.detach()
        if self.requires_grad:
            plain.requires_grad = True
        return f"{type(self).__name__} containing:\n{plain!r}"

    def _repr_html_(self) -> str | None:
        # defined here too, as the text above would count as one without HTML
        return super()._repr_html_()


def _rebuild(cls: type[Parameter], data: Tensor, requires_grad: bool) -> Parameter:
    return cls(data, requires_grad)


class _BufferType(type):
    """The type of `Buffer`, whose instances are the tensors that it has marked."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if super().__instancecheck__(instance):
            return True
        return cls is Buffer and isinstance(instance, Tensor) and is_buffer(instance)


def is_buffer(tensor: Any) -> bool:
    """Whether a tensor was made by `Buffer`."""
    return getattr(tensor, "_is_buffer", False) is True


class Buffer(Tensor, metaclass=_BufferType):
    """A tensor that becomes a buffer of the module it is assigned to.

    ``self.mean = Buffer(tensor)`` does what ``self.register_buffer("mean", tensor)`` does. The
    result is a plain tensor with the attributes ``persistent`` and ``_is_buffer``.

    Args:
        data: The values; the buffer shares their memory. None makes an empty tensor.
        persistent: Whether the module's ``state_dict`` contains it.

    Raises:
        TypeError: ``data`` is not a tensor.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> layer = nn.Identity()
        >>> layer.count = nn.Buffer(pc.zeros(1))
        >>> list(layer.state_dict()), isinstance(layer.count, nn.Buffer)
        (['count'], True)
    """

    persistent: bool
    _is_buffer: bool

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Any:
        if data is None:
            data = pc.empty(0)
        elif not isinstance(data, Tensor):
            raise TypeError(f"Buffer: `data` must be a Tensor; got {type(data).__name__}")
        result: Any
        if cls is Buffer:
            result = data.detach()
            if data.requires_grad:
                result.requires_grad = True
        else:
            result = Tensor._make_subclass(cls, data, data.requires_grad)
        result.persistent = persistent
        result._is_buffer = True
        return result
