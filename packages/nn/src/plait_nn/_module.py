"""`Module`: parameters, buffers and submodules under one callable."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar, overload

import plait_core as pc
from plait_core import Tensor
from plait_nn import _convert, _state
from plait_nn._call import Call
from plait_nn._hooks import Hook, RemovableHandle, add_hook, call_with_hooks
from plait_nn._members import attach, check_name, detach_name, find_member, named_members
from plait_nn._parameter import Parameter
from plait_nn._registry import Registry
from plait_nn._repr import module_text
from plait_nn._trace import note_module

__all__ = ["Module"]

M = TypeVar("M", bound="Module")
_KINDS = ("_parameters", "_buffers", "_modules")


class Module:
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

    training: bool
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Module | None]
    _non_persistent_buffers_set: set[str]
    _forward_hooks: dict[int, Hook]
    _forward_pre_hooks: dict[int, Hook]

    def __init__(self) -> None:
        attributes = self.__dict__
        attributes["training"] = True
        for kind in _KINDS:
            attributes[kind] = Registry(self)
        attributes["_non_persistent_buffers_set"] = set()
        attributes["_forward_hooks"] = {}
        attributes["_forward_pre_hooks"] = {}

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
                if self._forward_hooks or self._forward_pre_hooks:
                    return call_with_hooks(self, args, kwargs)
                return self.forward(*args, **kwargs)
            except Exception as error:
                note_module(error, self)
                raise

        def __getattr__(self, name):
            # members are instance attributes: only what is missing comes here
            return find_member(self, name)

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args)`` before every ``forward``.

        It returns None or new positional arguments. With ``with_kwargs`` it is called as
        ``hook(module, args, kwargs)`` and returns None or ``(args, kwargs)``.
        """
        return add_hook(self, "_forward_pre_hooks", Hook(hook, with_kwargs, False), prepend)

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Call ``hook(module, args, output)`` after every ``forward``.

        It returns None or a new output. With ``with_kwargs`` it is called as
        ``hook(module, args, kwargs, output)``; with ``always_call`` also when ``forward`` raised.
        """
        return add_hook(self, "_forward_hooks", Hook(hook, with_kwargs, always_call), prepend)

    # ---- members -------------------------------------------------------------------------------

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Parameter):
            attach(self, "_parameters", name, value)
        elif isinstance(value, Module):
            attach(self, "_modules", name, value)
        else:
            for kind, accepted in (("_parameters", "a Parameter"), ("_modules", "a Module")):
                if name in self.__dict__.get(kind, ()):
                    if value is not None:
                        raise TypeError(
                            f"{type(self).__name__}: `{name}` must be {accepted} or None; "
                            f"got {type(value).__name__}"
                        )
                    self.__dict__[kind][name] = None
                    return
            if name in self.__dict__.get("_buffers", ()):
                if not (value is None or isinstance(value, Tensor)):
                    raise TypeError(
                        f"{type(self).__name__}: buffer `{name}` must be a Tensor or None; "
                        f"got {type(value).__name__}"
                    )
                self._buffers[name] = value
                return
            object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        if not detach_name(self, name):
            object.__delattr__(self, name)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Make ``param`` the parameter called ``name``; None keeps the name free for one.

        Raises:
            TypeError: ``name`` is not a str, or ``param`` neither a Parameter nor None.
            KeyError: ``name`` is empty, contains a dot, or is an attribute already.
        """
        check_name(self, "parameter", "_parameters", name)
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"{type(self).__name__}: `{name}` must be a Parameter or None; "
                f"got {type(param).__name__}"
            )
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
            raise TypeError(
                f"{type(self).__name__}: buffer `{name}` must be a Tensor or None; "
                f"got {type(tensor).__name__}"
            )
        self._buffers[name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_module(self, name: str, module: Module | None) -> None:
        """Make ``module`` the submodule called ``name``; the same as `add_module`."""
        self.add_module(name, module)

    def add_module(self, name: str, module: Module | None) -> None:
        """Make ``module`` the submodule called ``name``."""
        check_name(self, "module", "_modules", name)
        if module is not None and not isinstance(module, Module):
            raise TypeError(
                f"{type(self).__name__}: `{name}` must be a Module or None; "
                f"got {type(module).__name__}"
            )
        self._modules[name] = module

    def get_submodule(self, target: str) -> Module:
        """Return the submodule at a dotted path, such as ``"encoder.layers.0"``; ``""`` is self."""
        module: Module = self
        for name in target.split(".") if target else ():
            child = module.__dict__["_modules"].get(name)
            if child is None:
                raise AttributeError(f"{type(module).__name__} has no submodule `{name}`")
            module = child
        return module

    def get_parameter(self, target: str) -> Parameter:
        """Return the parameter at a dotted path."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        parameter = module._parameters.get(name)
        if parameter is None:
            raise AttributeError(f"{type(module).__name__} has no parameter `{name}`")
        return parameter

    def get_buffer(self, target: str) -> Tensor:
        """Return the buffer at a dotted path."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        buffer = module._buffers.get(name)
        if buffer is None:
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

    @overload
    def to(self: M, device: Any = ..., dtype: Any = ..., non_blocking: bool = ...) -> M: ...

    @overload
    def to(self: M, dtype: Any, non_blocking: bool = ...) -> M: ...

    @overload
    def to(self: M, tensor: Tensor, non_blocking: bool = ...) -> M: ...

    def to(self: M, *args: Any, **kwargs: Any) -> M:
        """Convert parameters and buffers in place; return the module.

        ``to(device)``, ``to(dtype)``, ``to(device, dtype)`` and ``to(tensor)`` (its device and
        dtype). Only floating-point and complex members change their dtype, to such a one.

        Example:
            >>> import plait_core as pc, plait_nn as nn
            >>> nn.Linear(2, 3).to(pc.float64).weight.dtype
            plait.float64
        """
        return self._apply(_convert.conversion(*args, **kwargs))

    def type(self: M, dst_type: Any) -> M:
        """Convert every parameter and buffer to ``dst_type``."""
        return self._apply(lambda tensor: tensor.to(dst_type))

    def float(self: M) -> M:
        """Convert floating-point parameters and buffers to float32."""
        return self._apply(_convert.floating(pc.float32))

    def double(self: M) -> M:
        """Convert floating-point parameters and buffers to float64."""
        return self._apply(_convert.floating(pc.float64))

    def half(self: M) -> M:
        """Convert floating-point parameters and buffers to float16."""
        return self._apply(_convert.floating(pc.float16))

    def bfloat16(self: M) -> M:
        """Convert floating-point parameters and buffers to bfloat16."""
        return self._apply(_convert.floating(pc.bfloat16))

    def cpu(self: M) -> M:
        """Move parameters and buffers to the CPU."""
        return self.to("cpu")

    def _apply(self: M, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> M:
        """Replace the values of every parameter and buffer by ``fn`` of them."""
        _convert.apply(self, fn, recurse)
        return self

    # ---- state ---------------------------------------------------------------------------------

    def state_dict(
        self,
        *,
        destination: dict[str, Any] | None = None,
        prefix: str = "",
        keep_vars: bool = False,
    ) -> dict[str, Any]:
        """Return the parameters and persistent buffers by dotted name, detached, sharing memory.

        Args:
            destination: A dict to fill and return.
            prefix: Put before every name.
            keep_vars: Return the parameters themselves instead of detached tensors.

        Example:
            >>> import plait_nn as nn
            >>> list(nn.Sequential(nn.Linear(2, 3), nn.ReLU()).state_dict())
            ['0.weight', '0.bias']
        """
        return _state.collect(self, destination, prefix, keep_vars)

    def load_state_dict(
        self, state_dict: Any, strict: bool = True, assign: bool = False
    ) -> _state.IncompatibleKeys:
        """Copy parameters and buffers from a mapping of dotted names to tensors or arrays.

        Everything is compared before anything is written: when it raises, the module is unchanged.

        Args:
            state_dict: The values. Arrays that speak DLPack or the NumPy protocol will do.
            strict: Whether the names must be exactly those of `state_dict`.
            assign: Put the given tensors in the place of the present ones instead of copying.

        Returns:
            ``(missing_keys, unexpected_keys)``.

        Raises:
            RuntimeError: Names (if ``strict``) or shapes differ; the message lists all differences.
        """
        return _state.load(self, state_dict, strict, assign)

    def _save_to_state_dict(
        self, destination: dict[str, Any], prefix: str, keep_vars: bool
    ) -> None:
        """Add this module's own members; submodules follow by themselves. May be overridden."""
        _state.save_members(self, destination, prefix, keep_vars)

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
        """Take this module's own members from ``state_dict``. May be overridden."""
        _state.load_members(
            self,
            state_dict,
            prefix,
            local_metadata,
            strict,
            missing_keys,
            unexpected_keys,
            error_msgs,
        )

    # A state holds each member once, in its registry.
    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        for kind in _KINDS:
            members = dict(state[kind])
            state[kind] = members
            for name in members:
                state.pop(name, None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for kind in _KINDS:
            self.__dict__[kind] = Registry(self, state.get(kind))

    # ---- text ----------------------------------------------------------------------------------

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """Return what stands between the brackets of the repr. A subclass may define its own."""
        return ""

    def __repr__(self) -> str:
        return module_text(self)
