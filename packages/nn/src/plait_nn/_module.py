"""`Module`: parameters, buffers and submodules under one callable."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from plait_core import Tensor
from plait_nn._call import Call
from plait_nn._conversion_methods import ConversionMethods
from plait_nn._hook_methods import HookMethods
from plait_nn._hooks import GLOBAL, Hook, adopt_hooks, call_with_hooks, forget_hooks
from plait_nn._members import (
    KINDS,
    check_name,
    displace,
    find_absent,
    named_members,
    refuse_value,
    registered,
)
from plait_nn._parameter import Buffer, Parameter
from plait_nn._repr import module_html, module_text
from plait_nn._state import StateMethods
from plait_nn._trace import note_module

try:
    from plait_core.attribute_lookup import install as _look_up_in_c
except ImportError:  # another library's core: Python's own lookup finds the same

    def _look_up_in_c(cls: type, getattr: Callable[[Any, str], Any]) -> bool:
        return False


__all__ = ["Module"]

M = TypeVar("M", bound="Module")
_ABSENT: Any = object()


class Module(HookMethods, ConversionMethods, StateMethods):
    """Base of every layer and every model: members by name, and a ``forward`` that uses them.

    A subclass calls ``super().__init__()``, assigns its `Parameter` s and submodules as attributes,
    and defines ``forward``. Calling the module runs its hooks and ``forward``. An exception that
    leaves a module carries a note with the module's path (Python 3.11 and later).

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> class Scale(nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.factor = nn.Parameter(pc.full((1,), 3.0))
        ...     def forward(self, x):
        ...         return x * self.factor
        >>> layer = Scale()
        >>> layer(pc.ones(2)).tolist()
        [3.0, 3.0]
        >>> [name for name, _ in layer.named_parameters()]
        ['factor']
    """

    dump_patches: bool = False  # of old programs; it says nothing here
    call_super_init: bool = False  # whether __init__ goes on to a second base class

    training: bool
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Module | None]
    _non_persistent_buffers_set: set[str]
    _forward_hooks: dict[int, Hook]
    _forward_pre_hooks: dict[int, Hook]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if (args or kwargs) and not self.call_super_init:
            raise TypeError(
                f"{type(self).__name__}.__init__: Module takes no arguments; got "
                f"{', '.join([*(type(each).__name__ for each in args), *kwargs])}"
            )
        attributes = self.__dict__
        if "_hooked" in attributes:  # __init__ runs a second time
            forget_hooks(self)
        attributes["_parameters"] = {}  # the registries first: lookups in C expect them there
        attributes["_buffers"] = {}
        attributes["_modules"] = {}
        attributes["training"] = True
        attributes["_hooked"] = False
        attributes["_non_persistent_buffers_set"] = set()
        attributes["_forward_hooks"] = {}
        attributes["_forward_pre_hooks"] = {}
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _look_up_in_c(cls, _GETATTR)

    # ---- calling -------------------------------------------------------------------------------

    if TYPE_CHECKING:
        forward: Callable[..., Any]
        __call__: Call

        # names that register_buffer and its kin made
        def __getattr__(self, name: str) -> Any: ...

    else:

        def forward(self, *args, **kwargs):
            """Compute the module's output. Every subclass defines its own."""
            raise NotImplementedError(
                f"{type(self).__name__}: a Module must define `forward`; it has none"
            )

        def __call__(self, *args, **kwargs):
            try:
                if self._hooked or GLOBAL._hooked:
                    return call_with_hooks(self, args, kwargs)
                return self.forward(*args, **kwargs)
            except Exception as error:
                note_module(error, self)
                raise

        def __getattr__(self, name):
            # for what is in no class and not in __dict__; `_look_up_in_c` does the same
            attributes = self.__dict__
            for kind in KINDS:
                if kind in attributes:
                    members = attributes[kind]
                    if name in members:
                        return members[name]
            return find_absent(self, name)

    # ---- members -------------------------------------------------------------------------------

    def __setattr__(self, name: str, value: Any) -> None:
        attributes = self.__dict__
        if isinstance(value, Parameter):
            displace(self, "_parameters", name)
            self.register_parameter(name, value)
        elif name in attributes.get("_parameters", ()):
            if value is not None:
                refuse_value(self, name, "a Parameter", value)
            self.register_parameter(name, None)
        elif isinstance(value, Module):
            displace(self, "_modules", name)
            self._modules[name] = registered(self, "_modules", name, value)
        elif name in attributes.get("_modules", ()):
            if value is not None:
                refuse_value(self, name, "a Module", value)
            self._modules[name] = registered(self, "_modules", name, None)
        elif isinstance(value, Buffer):
            self.register_buffer(name, value, value.persistent)
        elif name in attributes.get("_buffers", ()):
            if not (value is None or isinstance(value, Tensor)):
                refuse_value(self, name, "a Tensor", value)
            self.register_buffer(name, value, name not in self._non_persistent_buffers_set)
        else:
            super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        if name in self._parameters:
            del self._parameters[name]
        elif name in self._buffers:
            del self._buffers[name]
            self._non_persistent_buffers_set.discard(name)
        elif name in self._modules:
            del self._modules[name]
        else:
            super().__delattr__(name)

    def __dir__(self) -> list[str]:
        names = {*dir(type(self)), *self.__dict__}
        names.update(self._parameters, self._buffers, self._modules)
        return sorted(name for name in names if not name[:1].isdigit())

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Make ``param`` the parameter called ``name``; None keeps the name free for one.

        Raises:
            TypeError: ``name`` is not a str, or ``param`` neither a Parameter nor None.
            KeyError: ``name`` is empty, contains a dot, or is an attribute already.
            ValueError: ``param`` is the result of a recorded operator.
        """
        check_name(self, "parameter", "_parameters", name)
        if param is not None:
            if not isinstance(param, Parameter):
                refuse_value(self, name, "a Parameter", param)
            if not param.is_leaf:
                raise ValueError(
                    f"{type(self).__name__}: parameter `{name}` must be a leaf; got the result of "
                    f"an operator. Compute it in `forward`"
                )
            param = registered(self, "_parameters", name, param)
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Make ``tensor`` a buffer: it moves with the module, but no optimizer changes it.

        Args:
            name: The attribute's name.
            tensor: The values, or None.
            persistent: Whether ``state_dict`` contains it.
        """
        check_name(self, "buffer", "_buffers", name)
        if tensor is not None and not isinstance(tensor, Tensor):
            refuse_value(self, name, "a Tensor", tensor)
        self._buffers[name] = registered(self, "_buffers", name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_module(self, name: str, module: Module | None) -> None:
        """Make ``module`` the submodule called ``name``; the same as `add_module`."""
        self.add_module(name, module)

    def add_module(self, name: str, module: Module | None) -> None:
        """Make ``module`` the submodule called ``name``."""
        if module is not None and not isinstance(module, Module):
            refuse_value(self, name, "a Module", module)
        check_name(self, "module", "_modules", name)
        self._modules[name] = registered(self, "_modules", name, module)

    def get_submodule(self, target: str) -> Module:
        """Return the submodule at a dotted path, such as ``"encoder.layers.0"``; ``""`` is self."""
        module: Module = self
        for name in target.split(".") if target else ():
            child = getattr(module, name, None)
            if not isinstance(child, Module):
                raise AttributeError(f"{type(module).__name__} has no submodule `{name}`")
            module = child
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Put a module at a dotted path, in the place of the one there.

        Args:
            target: The path.
            module: The module.
            strict: Whether there must be one already; else its last name may be new.

        Example:
            >>> import plait_nn as nn
            >>> model = nn.Sequential(nn.Sequential(nn.ReLU()))
            >>> model.set_submodule("0.0", nn.Tanh())
            >>> model[0][0]
            Tanh()
        """
        path, _, name = target.rpartition(".")
        if not name:
            raise ValueError("set_submodule: `target` must name a submodule; got ''")
        if not isinstance(module, Module):
            raise ValueError(
                f"set_submodule: `module` must be a Module; got {type(module).__name__}"
            )
        parent = self.get_submodule(path)
        present = getattr(parent, name, _ABSENT)
        if not isinstance(present, Module) and (strict or present is not _ABSENT):
            raise AttributeError(f"{type(parent).__name__} has no submodule `{name}`")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """Return the parameter at a dotted path."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        parameter = getattr(module, name, None)
        if not isinstance(parameter, Parameter):
            raise AttributeError(f"{type(module).__name__} has no parameter `{name}`")
        return parameter

    def get_buffer(self, target: str) -> Tensor:
        """Return the buffer at a dotted path."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        buffer: Tensor = getattr(module, name, _ABSENT)
        if buffer is _ABSENT or name not in module._buffers:
            raise AttributeError(f"{type(module).__name__} has no buffer `{name}`")
        return buffer

    # ---- walks ---------------------------------------------------------------------------------

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Iterate over the parameters, each once, of this module and (``recurse``) those below."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Iterate over ``(dotted name, parameter)``; a shared one appears under its first name."""
        yield from named_members(self, "_parameters", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Iterate over the buffers, each once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Iterate over ``(dotted name, buffer)``."""
        yield from named_members(self, "_buffers", prefix, recurse, remove_duplicate)

    def children(self) -> Iterator[Module]:
        """Iterate over the submodules one level down, each once."""
        for _, module in self.named_children():
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Iterate over ``(name, submodule)`` one level down."""
        seen: set[int] = set()
        for name, module in self._modules.items():
            if module is not None and id(module) not in seen:
                seen.add(id(module))
                yield name, module

    def modules(self) -> Iterator[Module]:
        """Iterate over this module and all below it, each once."""
        for _, module in self.named_modules():
            yield module

    def named_modules(
        self,
        memo: set[Module] | None = None,
        prefix: str = "",
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Module]]:
        """Iterate over ``(dotted path, module)``, this module first with ``prefix`` as its path."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                path = f"{prefix}.{name}" if prefix else name
                yield from module.named_modules(memo, path, remove_duplicate)

    # ---- modes and conversions -----------------------------------------------------------------

    def train(self: M, mode: bool = True) -> M:
        """Set training mode (``True``) or evaluation mode here and below; return the module."""
        if not isinstance(mode, bool):
            raise ValueError(
                f"{type(self).__name__}.train: `mode` must be bool; got {type(mode).__name__}"
            )
        self.training = mode
        for child in self.children():
            child.train(mode)
        return self

    def eval(self: M) -> M:
        """Set evaluation mode: `Dropout` and the like stand still. The same as ``train(False)``."""
        return self.train(False)

    def apply(self: M, fn: Callable[[Module], Any]) -> M:
        """Call ``fn`` on every submodule and then on the module itself; return the module."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def requires_grad_(self: M, requires_grad: bool = True) -> M:
        """Set ``requires_grad`` of every parameter; return the module."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def share_memory(self: M) -> M:
        """Move parameters, their gradients and buffers to shared memory by `share_memory_`.

        They stay the same objects, so an optimizer made before keeps them.
        """
        for tensor in [*self.parameters(), *self.buffers()]:
            for shared in (tensor, tensor.grad):
                if shared is not None and not shared.is_shared():
                    shared.share_memory_()
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the parameters' gradients, or with ``set_to_none=False`` fill them with zeros."""
        for parameter in self.parameters():
            if set_to_none:
                parameter.grad = None
            elif parameter.grad is not None:
                parameter.grad = parameter.grad.detach().zero_()

    # ---- pickles and copies --------------------------------------------------------------------

    # A state is the module's `__dict__`, as PyTorch's is: a shallow copy shares the registries.
    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__.copy()

    def __setstate__(self, state: dict[str, Any]) -> None:
        attributes = self.__dict__
        attributes.update((kind, state[kind]) for kind in KINDS if kind in state)  # first: see init
        attributes.update(state)
        attributes.setdefault("_non_persistent_buffers_set", set())  # older states lack it
        adopt_hooks(self)

    # ---- text ----------------------------------------------------------------------------------

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """Return what stands between the brackets of the repr. A subclass may define its own."""
        return ""

    def __repr__(self) -> str:
        return module_text(self)

    def _repr_html_(self) -> str:
        return module_html(self)


_GETATTR = Module.__getattr__
_look_up_in_c(Module, _GETATTR)
