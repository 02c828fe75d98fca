"""Parameters that are computed from others, for example a weight of norm 1."""

from __future__ import annotations

import copyreg
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

from plait_core import Tensor
from plait_nn._containers import ModuleDict, ModuleList
from plait_nn._module import Module
from plait_nn._parameter import Parameter

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]

# tensors that are computed once within `cached`
_cache: dict[int, tuple[Module, Any]] = {}
# how many contexts of `cached` are entered; libraries that stay in one over several calls change it
_cache_enabled = 0


@contextmanager
def cached() -> Iterator[None]:
    """A context manager in which every parametrized tensor is computed at most once.

    It is useful for a recurrent cell, which reads its weight in every step. Changes of the
    originals in it have no effect until its end. It is in force for all threads.

    Example:
        >>> import plait_nn as nn
        >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(2, 3))
        >>> with nn.utils.parametrize.cached():
        ...     layer.weight is layer.weight
        True
        >>> layer.weight is layer.weight
        False
    """
    global _cache, _cache_enabled
    _cache_enabled += 1
    try:
        yield
    finally:
        _cache_enabled -= 1
        if not _cache_enabled:
            _cache = {}


def _register(module: Module, name: str, tensor: Tensor) -> None:
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, and the originals it is computed from.

    Args:
        modules: The parametrizations, the first one first.
        unsafe: Whether shapes and dtypes are not checked.

    Attributes:
        original: The argument of the first parametrization; ``original0``, ``original1``, ... if
            its ``right_inverse`` returns several tensors.

    Example:
        >>> import plait_nn as nn
        >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(2, 3))
        >>> [name for name, _ in layer.parametrizations.weight.named_parameters()]
        ['original0', 'original1']
    """

    def __init__(self, modules: list[Module], original: Tensor, unsafe: bool = False) -> None:
        super().__init__(modules)
        self.unsafe = unsafe
        result: Any = original
        for module in reversed(modules):
            inverse = getattr(module, "right_inverse", None)
            if inverse is not None:
                result = inverse(result)
        self.is_tensor = isinstance(result, Tensor)
        if self.is_tensor:  # the same object, so that existing optimizers refer to it
            self.ntensors = 1
            if result is not original:
                original.data = result.detach()
            _register(self, "original", original)
            return
        parts = list(result)
        self.ntensors = len(parts)
        for number, part in enumerate(parts):
            own = part.detach()
            if isinstance(original, Parameter):
                own = Parameter(own, original.requires_grad)
            _register(self, f"original{number}", own)

    def _originals(self) -> list[Tensor]:
        if self.is_tensor:
            return [self.original]
        return [getattr(self, f"original{i}") for i in range(self.ntensors)]

    def forward(self) -> Tensor:
        """Compute the tensor."""
        first, *rest = self
        result: Tensor = first(*self._originals())
        for module in rest:
            result = module(result)
        return result

    def right_inverse(self, value: Tensor) -> None:
        """Set the originals so that the tensor becomes ``value``."""
        result: Any = value
        for module in reversed(list(self)):
            if getattr(module, "right_inverse", None) is None:
                raise NotImplementedError(
                    f"{type(module).__name__}: `right_inverse` must be defined to assign a value"
                )
            result = module.right_inverse(result)
        parts = [result] if self.is_tensor else list(result)
        if not all(isinstance(part, Tensor) for part in parts):
            kinds = ", ".join(type(part).__name__ for part in parts)
            raise ValueError(
                f"ParametrizationList: `right_inverse` must return Tensors; got {kinds}"
            )
        for original, part in zip(self._originals(), parts, strict=True):
            original.detach().copy_(part.detach())


def _property(name: str) -> property:
    def read(self: Any) -> Any:
        if not _cache_enabled:
            return self.parametrizations[name]()
        result = self.parametrizations[name]
        if id(result) not in _cache:
            # stored with its owner, as ids of objects are used again
            _cache[id(result)] = (result, result())
        return _cache[id(result)][1]

    def write(self: Any, value: Tensor) -> None:
        self.parametrizations[name].right_inverse(value)

    return property(read, write)


def _refuse_state(module: Module) -> Any:
    raise RuntimeError(
        f"{type(module).__name__}: a parametrized module can't be pickled, as its class was made "
        f"by this program; save its state_dict. copy.deepcopy copies it"
    )


def _deepcopy(module: Module, memo: dict[int, Any]) -> Module:
    new: Module = module.__new__(type(module))
    memo[id(module)] = new
    new.__dict__.update(deepcopy(module.__dict__, memo))
    for slot in copyreg._slotnames(type(module)):  # type: ignore[attr-defined]
        if hasattr(module, slot):
            setattr(new, slot, deepcopy(getattr(module, slot), memo))
    return new


def _members_of_class(plain: type[Module]) -> dict[str, Any]:
    """Return the members of the class of a parametrized module, without its properties."""
    members: dict[str, Any] = {"_plain": plain, "__getstate__": _refuse_state}
    if not hasattr(plain, "__deepcopy__"):
        members["__deepcopy__"] = _deepcopy
    return members


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Return whether a module, or one tensor of it, has parametrizations.

    Args:
        module: The module.
        tensor_name: The parameter's name; None: any.

    Example:
        >>> import plait_nn as nn
        >>> nn.utils.parametrize.is_parametrized(nn.Linear(2, 3))
        False
    """
    parametrizations = getattr(module, "parametrizations", None)
    if not isinstance(parametrizations, ModuleDict):
        return False
    return len(parametrizations) > 0 if tensor_name is None else tensor_name in parametrizations


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Make a parameter or buffer a tensor that a module computes; return its owner.

    ``module.weight`` is then ``parametrization(original)``, computed again at every access; the
    original is the parameter ``module.parametrizations.weight.original``. If the parametrization
    has a ``right_inverse``, the original starts as its result for the present value.

    Args:
        module: The module.
        tensor_name: The name of its parameter or buffer.
        parametrization: A module from a tensor to a tensor of the same shape.
        unsafe: Don't compare the shapes.

    Raises:
        ValueError: There is no such tensor, or the shape changes.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> class Positive(nn.Module):
        ...     def forward(self, x):
        ...         return x.abs()
        >>> layer = nn.Linear(2, 3)
        >>> _ = nn.utils.parametrize.register_parametrization(layer, "weight", Positive())
        >>> bool((layer.weight >= 0).all())
        True
    """
    if is_parametrized(module, tensor_name):
        parametrizations: Any = module.parametrizations[tensor_name]
        value = parametrizations().detach()
        parametrizations.append(parametrization)
        if getattr(parametrization, "right_inverse", None) is not None:
            parametrizations.right_inverse(value)
        return module
    if tensor_name not in module._buffers and tensor_name not in module._parameters:
        tensor = None
    else:
        tensor = getattr(module, tensor_name)
    if tensor is None:
        raise ValueError(
            f"register_parametrization: `{tensor_name}` must be a parameter or buffer of "
            f"{type(module).__name__}"
        )
    before = tensor.detach()
    result = ParametrizationList([parametrization], tensor, unsafe)
    if not unsafe and tuple(result().shape) != tuple(before.shape):
        tensor.data = before
        raise ValueError(
            f"register_parametrization: {type(parametrization).__name__} must keep the shape "
            f"{tuple(before.shape)} of `{tensor_name}`; got {tuple(result().shape)}"
        )
    delattr(module, tensor_name)
    if hasattr(module, tensor_name):
        raise RuntimeError(
            f"register_parametrization: `{tensor_name}` must be gone after `delattr`; "
            f"{type(module).__name__} still has it"
        )
    if not is_parametrized(module):
        kind = type(module)
        module.__class__ = type(f"Parametrized{kind.__name__}", (kind,), _members_of_class(kind))
        module.parametrizations = ModuleDict()
    setattr(type(module), tensor_name, _property(tensor_name))
    module.parametrizations[tensor_name] = result
    return module


def remove_parametrizations(
    module: Module, tensor_name: str, leave_parametrized: bool = True
) -> Module:
    """Make a tensor an ordinary one again: its present value, or its original.

    Args:
        module: The module.
        tensor_name: The name of its parameter or buffer.
        leave_parametrized: Keep the computed value; else the original, if it is one tensor.

    Raises:
        ValueError: The tensor has no parametrization, or several originals.

    Example:
        >>> import plait_nn as nn
        >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(2, 3))
        >>> _ = nn.utils.parametrize.remove_parametrizations(layer, "weight")
        >>> sorted(layer.state_dict())
        ['bias', 'weight']
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(
            f"remove_parametrizations: {type(module).__name__} has no parametrization of "
            f"`{tensor_name}`"
        )
    entry: Any = module.parametrizations[tensor_name]
    if not leave_parametrized and not entry.is_tensor:
        raise ValueError(
            f"remove_parametrizations: `{tensor_name}` is made of {entry.ntensors} originals; "
            f"`leave_parametrized` must be True"
        )
    first = entry._originals()[0]
    if entry.is_tensor:
        value = first
        if leave_parametrized:
            value.data = getattr(module, tensor_name).detach()
    else:
        value = getattr(module, tensor_name).detach()
        if isinstance(first, Parameter):
            value = Parameter(value, first.requires_grad)
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register(module, tensor_name, value)
    if len(module.parametrizations) == 0:
        del module.parametrizations
        module.__class__ = type(module)._plain  # type: ignore[attr-defined]
    return module


def type_before_parametrizations(module: Module) -> Any:
    """Return the class that a module had before it was parametrized, or its class.

    Args:
        module: The module.

    Example:
        >>> import plait_nn as nn
        >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(2, 3))
        >>> nn.utils.parametrize.type_before_parametrizations(layer) is nn.Linear
        True
    """
    kind: Any = type(module)
    return kind._plain if is_parametrized(module) else kind


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Register the parametrizations of one module, with their originals, on another too.

    Args:
        from_module: A module; if it has no parametrizations, nothing is done.
        to_module: Another; a tensor that it lacks is made.
        tensor_name: The only tensor to transfer; None: all.

    Returns:
        The other module.

    Example:
        >>> import plait_nn as nn
        >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(2, 3))
        >>> other = nn.Linear(2, 3)
        >>> _ = nn.utils.parametrize.transfer_parametrizations_and_params(layer, other)
        >>> bool((other.weight == layer.weight).all())
        True
    """
    if not is_parametrized(from_module):
        return to_module
    lists: Any = from_module.parametrizations
    for name in list(lists) if tensor_name is None else [tensor_name]:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name).detach()))
        for parametrization in lists[name]:
            register_parametrization(to_module, name, parametrization)
        result: Any = to_module.parametrizations
        for label, original in lists[name]._parameters.items():
            setattr(result[name], label, original)
    return to_module
