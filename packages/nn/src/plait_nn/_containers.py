"""`Sequential`, `ModuleList`, `ModuleDict`: modules that hold modules."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, TypeVar, overload

from plait_abi.frames import warn
from plait_core import Tensor
from plait_nn._folded_layers import CONVOLUTIONS, call_folded
from plait_nn._joined_layers import BATCH_NORMS, call_joined
from plait_nn._module import Module
from plait_nn._nesting import Steps, run
from plait_nn._parameter import Parameter
from plait_nn._repr import Text, rendered, steps_of_repr, text_below

S = TypeVar("S", bound="Sequential")
L = TypeVar("L", bound="ModuleList")


def position(index: Any, length: int, owner: str) -> int:
    """Return an index into ``length`` elements as a number that isn't negative."""
    number = operator.index(index)
    if not -length <= number < length:
        raise IndexError(f"{owner}: index must be in [{-length}, {length - 1}]; got {number}")
    return number % length


class _Ordered(Module):
    """Submodules called "0", "1", ..., in order."""

    def _as_list(self) -> list[Module]:
        return list(self._modules.values())  # type: ignore[arg-type]

    def _hold(self, modules: Iterable[Module]) -> None:
        """Replace the container's modules."""
        fresh = list(modules)
        for name in list(self._modules):
            del self._modules[name]
        for number, module in enumerate(fresh):
            self.add_module(str(number), module)

    def _name(self, index: Any) -> str:
        return list(self._modules)[position(index, len(self), type(self).__name__)]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._as_list())

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def __setitem__(self, idx: int, module: Module) -> None:
        setattr(self, self._name(idx), module)

    def __delitem__(self, idx: int | slice) -> None:
        modules = self._as_list()
        if isinstance(idx, slice):
            del modules[idx]
        else:
            del modules[position(idx, len(modules), type(self).__name__)]
        self._hold(modules)


# (layers, of which the first is of this type and not the last one, input) -> what some of them make
# of it, and how many, or None
_TOGETHER: dict[type, Callable[[Sequence[Any], Any], tuple[Any, int] | None]] = {
    **dict.fromkeys(CONVOLUTIONS, call_folded),
    **dict.fromkeys(BATCH_NORMS, call_joined),
}


class Sequential(_Ordered):
    """Call modules one after the other, each with the output of the one before.

    In training a batch norm and the activation that follows it run in one pass
    (`plait.set_fusion`). Without gradients a convolution, the batch norm and the activation
    that follow it run as one convolution, if the batch norm is in evaluation or there is none
    (`plait.set_weight_cache` switches that off).

    Args:
        *args: The modules, or one mapping of names to modules.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        >>> tuple(model(pc.randn(3, 4)).shape)
        (3, 2)
        >>> model[0]
        Linear(in_features=4, out_features=8, bias=True)
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], Mapping):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for number, module in enumerate(args):
                self.add_module(str(number), module)

    def forward(self, input: Any) -> Any:
        layers = [*self._modules.values()]
        last, i = len(layers) - 1, 0
        while i <= last:
            layer: Any = layers[i]
            together = _TOGETHER.get(type(layer)) if i < last else None
            result = together(layers[i : i + 3], input) if together is not None else None
            input, count = (layer(input), 1) if result is None else result
            i += count
        return input

    @overload
    def __getitem__(self, idx: int) -> Module: ...

    @overload
    def __getitem__(self: S, idx: slice) -> S: ...

    def __getitem__(self: S, idx: int | slice) -> Module | S:
        if isinstance(idx, slice):
            return type(self)(dict(list(self._modules.items())[idx]))
        return self._as_list()[position(idx, len(self), type(self).__name__)]

    def __delitem__(self, idx: int | slice) -> None:
        if all(name.isdigit() for name in self._modules):
            super().__delitem__(idx)
        else:
            names = list(self._modules)
            removed = names[idx] if isinstance(idx, slice) else [self._name(idx)]
            for name in removed:
                del self._modules[name]

    def __add__(self: S, other: Sequential) -> S:
        if not isinstance(other, Sequential):
            raise TypeError(
                f"Sequential: only a Sequential can be added; got {type(other).__name__}"
            )
        return type(self)(*self, *other)

    def __iadd__(self: S, other: Sequential) -> S:
        if not isinstance(other, Sequential):
            raise TypeError(
                f"Sequential: only a Sequential can be added; got {type(other).__name__}"
            )
        return self.extend(other)

    def __mul__(self: S, times: int) -> S:
        return type(self)(*(list(self) * self._times(times)))

    __rmul__ = __mul__

    def __imul__(self: S, times: int) -> S:
        return self.extend(list(self) * (self._times(times) - 1))

    @staticmethod
    def _times(times: int) -> int:
        if not isinstance(times, int):
            raise TypeError(
                f"Sequential: it can be repeated an integer of times; got {type(times).__name__}"
            )
        if times < 1:
            raise ValueError(f"Sequential: it can be repeated once or more; got {times}")
        return times

    def append(self: S, module: Module) -> S:
        """Put a module at the end; return the container.

        Args:
            module: The new last module.
        """
        self.add_module(str(len(self)), module)
        return self

    def extend(self: S, sequential: Iterable[Module]) -> S:
        """Put several modules at the end; return the container.

        Args:
            sequential: The modules to add, in their order.
        """
        for module in list(sequential):
            self.append(module)
        return self

    def insert(self: S, index: int, module: Module) -> S:
        """Insert a module before another one; return the container.

        Args:
            index: The position of the module that it precedes.
            module: The module.
        """
        modules = self._as_list()
        if not -len(modules) <= index <= len(modules):
            raise IndexError(
                f"Sequential: index must be in [{-len(modules)}, {len(modules)}]; got {index}"
            )
        modules.insert(index, module)
        self._hold(modules)
        return self

    def pop(self, key: int) -> Module:
        """Remove a module and return it.

        Args:
            key: The position or the name.
        """
        module = self[key]
        del self[key]
        return module


class ModuleList(_Ordered):
    """A list of modules that are registered; it can't be called.

    Args:
        modules: The modules; or None.

    Example:
        >>> import plait_nn as nn
        >>> layers = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)])
        >>> len(layers), len(list(layers.parameters()))
        (3, 6)
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    @overload
    def __getitem__(self, idx: int) -> Module: ...

    @overload
    def __getitem__(self: L, idx: slice) -> L: ...

    def __getitem__(self: L, idx: int | slice) -> Module | L:
        if isinstance(idx, slice):
            return type(self)(self._as_list()[idx])
        return self._as_list()[position(idx, len(self), type(self).__name__)]

    def _get_abs_string_index(self, idx: int) -> str:
        """Return the name of a module by its index, which may be negative; subclasses call it."""
        return str(position(idx, len(self), type(self).__name__))

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList(chain(self, other))

    def __iadd__(self: L, modules: Iterable[Module]) -> L:
        return self.extend(modules)

    def append(self: L, module: Module) -> L:
        """Put a module at the end; return the list.

        Args:
            module: The new last module.
        """
        self.add_module(str(len(self)), module)
        return self

    def extend(self: L, modules: Iterable[Module]) -> L:
        """Put several modules at the end; return the list.

        Args:
            modules: The modules to add, in their order.
        """
        if not isinstance(modules, Iterable):
            raise TypeError(
                f"ModuleList: modules must come as an iterable; got {type(modules).__name__}"
            )
        for module in list(modules):
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> None:
        """Insert a module before another one, as ``list.insert`` does.

        Args:
            index: The position of the module that it precedes.
            module: The module.
        """
        modules = self._as_list()
        modules.insert(index, module)
        self._hold(modules)

    def pop(self, key: int = -1) -> Module:
        """Remove a module and return it.

        Args:
            key: The position; -1 is the last one.
        """
        module = self[key]
        del self[key]
        return module

    def __repr__(self) -> str:
        """Return the repr, in which equal neighbours appear once with their number."""
        return rendered(run(_runs(self), "repr"))


def _runs(modules: ModuleList) -> Steps:
    """Return the text of a list, in steps."""
    runs: list[tuple[int, int, Text, str]] = []
    for number, module in enumerate(modules):
        text = yield text_below(module)
        whole = rendered(text) if len(modules) > 1 else ""  # to compare it
        if runs and runs[-1][3] == whole:
            runs[-1] = (runs[-1][0], number, text, whole)
        else:
            runs.append((number, number, text, whole))
    return modules._get_name(), [
        (f"({first}): ", text)
        if first == last
        else (f"({first}-{last}): {last - first + 1} x ", text)
        for first, last, text, _ in runs
    ]


steps_of_repr(ModuleList.__repr__, _runs)


class ModuleDict(Module):
    """A dict of modules that are registered; it can't be called.

    Args:
        modules: The modules by name, a mapping or pairs; or None.

    Example:
        >>> import plait_nn as nn
        >>> heads = nn.ModuleDict({"digits": nn.Linear(8, 10), "parity": nn.Linear(8, 2)})
        >>> list(heads), "parity" in heads
        (['digits', 'parity'], True)
    """

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
        return self._modules[key]  # type: ignore[return-value]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: object) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Remove all modules."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Remove a module and return it.

        Args:
            key: Its name.
        """
        module = self[key]
        del self[key]
        return module

    def keys(self) -> Iterable[str]:
        """Return the names."""
        return self._modules.keys()

    def items(self) -> Iterable[tuple[str, Module]]:
        """Return ``(name, module)`` pairs."""
        return self._modules.items()  # type: ignore[return-value]

    def values(self) -> Iterable[Module]:
        """Return the modules."""
        return self._modules.values()  # type: ignore[return-value]

    def update(self, modules: Any) -> None:
        """Add modules from a mapping or from ``(name, module)`` pairs; equal names are replaced.

        Args:
            modules: A dict of modules, or pairs of a name and a module.
        """
        if isinstance(modules, (Mapping, ModuleDict)):
            modules = modules.items()
        elif isinstance(modules, (str, bytes)) or not isinstance(modules, Iterable):
            raise TypeError(
                f"ModuleDict: modules must come as a mapping or as pairs; "
                f"got {type(modules).__name__}"
            )
        for number, item in enumerate(modules):
            if isinstance(item, (str, bytes)) or len(item) != 2:
                raise ValueError(f"ModuleDict: element {number} must be a (name, module) pair")
            self[item[0]] = item[1]


class Container(Module):
    """A module of named submodules, a base class in older programs.

    Example:
        >>> import plait_nn as nn
        >>> nn.Container(first=nn.ReLU()).first
        ReLU()
    """

    def __init__(self, **kwargs: Any) -> None:
        warn(
            "`nn.Container` is deprecated. A subclass of `nn.Module` does the same.", FutureWarning
        )
        super().__init__()
        for name, module in kwargs.items():
            self.add_module(name, module)


P = TypeVar("P", bound="ParameterList")


def _wrapped(value: Any) -> Any:
    """Return a plain tensor as a parameter, and other values as they are."""
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        return Parameter(value)
    return value


def _line(name: str, value: Any) -> str:
    if not isinstance(value, Tensor):
        return f"  ({name}): Object of type: {type(value).__name__}"
    size = "x".join(map(str, value.shape))
    class_name = "Parameter" if isinstance(value, Parameter) else "Tensor"
    return f"  ({name}): {class_name} containing: [{value.dtype} of size {size}]"


class ParameterList(Module):
    """A list whose parameters are registered. Plain tensors become parameters.

    Other values are elements too, as attributes of the module.

    Args:
        values: The parameters; or None.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> weights = nn.ParameterList([pc.ones(2), pc.zeros(3)])
        >>> [name for name, _ in weights.named_parameters()]
        ['0', '1']
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter([getattr(self, str(n)) for n in range(len(self))])

    @overload
    def __getitem__(self, idx: int) -> Any: ...

    @overload
    def __getitem__(self: P, idx: slice) -> P: ...

    def __getitem__(self: P, idx: int | slice) -> Any:
        if isinstance(idx, slice):
            return type(self)(list(self)[idx])
        return getattr(self, str(position(idx, len(self), type(self).__name__)))

    def __setitem__(self, idx: int, param: Any) -> None:
        name = str(position(idx, len(self), type(self).__name__))
        setattr(self, name, _wrapped(param))

    def __iadd__(self: P, parameters: Iterable[Any]) -> P:
        return self.extend(parameters)

    def append(self: P, value: Any) -> P:
        """Put a value at the end; return the list.

        Args:
            value: A tensor, which becomes a parameter, or another value.
        """
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self: P, values: Iterable[Any]) -> P:
        """Put several values at the end; return the list.

        Args:
            values: The values to add, in their order.
        """
        if isinstance(values, Tensor) or not isinstance(values, Iterable):
            raise TypeError(
                f"ParameterList: parameters must come as an iterable; got {type(values).__name__}"
            )
        for value in list(values):
            self.append(value)
        return self

    def extra_repr(self) -> str:
        return "\n".join(_line(str(number), value) for number, value in enumerate(self))

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """A dict whose parameters are registered. Plain tensors become parameters.

    Other values are elements too, as attributes of the module. Keys are strings.

    Args:
        parameters: The parameters by name, a mapping or pairs; or None.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> scales = nn.ParameterDict({"in": pc.ones(2)})
        >>> scales["out"] = pc.ones(3)
        >>> list(scales)
        ['in', 'out']
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def _name(self, key: Any) -> str:
        if not isinstance(key, str):
            raise TypeError(
                "Index given to ParameterDict cannot be used as a key as it is not a string "
                f"(type is '{type(key).__name__}')."
            )
        return key

    def __getitem__(self, key: str) -> Any:
        return getattr(self, self._name(key))

    def __setitem__(self, key: str, value: Any) -> None:
        setattr(self, self._name(key), _wrapped(value))
        self._keys[key] = None

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, self._name(key))

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._keys))

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def keys(self) -> Iterable[str]:
        """Return the keys."""
        return self._keys.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Return ``(key, value)`` pairs."""
        return ((key, self[key]) for key in self._keys)

    def values(self) -> Iterable[Any]:
        """Return the values."""
        return (self[key] for key in self._keys)

    def get(self, key: str, default: Any = None) -> Any:
        """Return a value, or `default` if there is none.

        Args:
            key: The name.
        """
        return self[key] if key in self._keys else default

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Return a value; if there is none, `default`, which becomes it.

        Args:
            key: The name.
        """
        if key not in self:
            self[key] = default
        return self[key]

    def pop(self, key: str) -> Any:
        """Remove a value and return it.

        Args:
            key: The name.
        """
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Remove the last value and return its key and itself."""
        key, _ = self._keys.popitem()
        value = self[key]
        delattr(self, key)
        return key, value

    def clear(self) -> None:
        """Remove all values."""
        for key in list(self._keys):
            del self[key]

    def copy(self) -> ParameterDict:
        """Return a dict of the same values.

        Example:
            >>> import plait_core as pc, plait_nn as nn
            >>> scales = nn.ParameterDict({"in": pc.ones(2)})
            >>> scales.copy()["in"] is scales["in"]
            True
        """
        return ParameterDict(dict(self.items()))

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """Return another dict that has `default` under each key.

        Args:
            keys: The names.
        """
        return ParameterDict(dict.fromkeys(keys, default))

    def update(self, parameters: Any) -> None:
        """Add values from a mapping or from ``(key, value)`` pairs; equal keys are replaced.

        Args:
            parameters: A dict of tensors, or pairs of a name and a tensor.
        """
        if isinstance(parameters, (Mapping, ParameterDict)):
            parameters = parameters.items()
        elif not isinstance(parameters, Iterable):
            raise TypeError(
                "ParameterDict: parameters must come as a mapping or as pairs; got "
                f"{type(parameters).__name__}"
            )
        for number, item in enumerate(parameters):
            if isinstance(item, (str, bytes)) or len(item) != 2:
                raise ValueError(f"ParameterDict: element {number} must be a (key, value) pair")
            self[item[0]] = item[1]

    def __or__(self, other: ParameterDict) -> ParameterDict:
        result = self.copy()
        result.update(other)
        return result

    def __ior__(self, other: ParameterDict) -> ParameterDict:
        self.update(other)
        return self

    def extra_repr(self) -> str:
        return "\n".join(_line(name, value) for name, value in self.items())


class DataParallel(Module):
    """A wrapper that calls a module; there is only one device, so batches are not divided.

    Names in the state begin with ``module.``, as in PyTorch.

    Args:
        module: The module.
        device_ids: Unused: there are no further devices.
        output_device: Unused.
        dim: The dimension of the batch.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> model = nn.DataParallel(nn.Linear(2, 3))
        >>> tuple(model(pc.ones(4, 2)).shape), list(model.state_dict())
        ((4, 3), ['module.weight', 'module.bias'])
    """

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
    ) -> None:
        super().__init__()
        self.module = module
        self.device_ids: list[Any] = []
        self.output_device = output_device
        self.dim = dim

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)
