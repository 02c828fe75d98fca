"""`Module`: parameters, buffers and submodules under one callable."""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar, overload

import plait_core as pc
from plait_abi.frames import warn
from plait_core import Tensor
from plait_nn._call import Forwards, P, R_co, call_with_hooks, note_module
from plait_nn._constructors import called_afterwards, check_constructor
from plait_nn._convert import conversion, floating, without_grad
from plait_nn._hooks import GLOBAL, RemovableHandle, WrappedHook, add_hook
from plait_nn._members import (
    KINDS,
    check_name,
    displace,
    find_absent,
    name_of_type,
    refuse_assignment,
    register_elsewhere,
    registered,
)
from plait_nn._nesting import check_depth, run
from plait_nn._parameter import Parameter, is_buffer
from plait_nn._repr import module_html, module_text, steps_of_repr, text_steps
from plait_nn._state_dict import (
    IncompatibleKeys,
    collect,
    load,
    load_members,
    note_own,
    save_members,
)

try:
    from plait_core.attribute_lookup import install as _look_up_in_c, install_calls as _call_in_c
except ImportError:  # with another library as core Python's own lookup is used

    def _look_up_in_c(cls: type, getattr: Callable[[Any, str], Any]) -> bool:
        return False

    def _call_in_c(
        cls: type,
        call: Callable[..., Any],
        note: Callable[[Exception, Any], None],
        attributes: dict[str, Any],
    ) -> bool:
        return False


M = TypeVar("M", bound="Module")
_ABSENT: Any = object()
# the dicts of hooks of all modules that a call runs
_BACKWARD, _BACKWARD_PRE = GLOBAL._backward_hooks, GLOBAL._backward_pre_hooks
_FORWARD, _FORWARD_PRE = GLOBAL._forward_hooks, GLOBAL._forward_pre_hooks


def _required(module: Module, name: str) -> Any:
    """Return an attribute of a module on the way along a path."""
    result = getattr(module, name, _ABSENT)
    if result is _ABSENT:
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    return result


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

    dump_patches: bool = False  # for old programs; it has no effect
    call_super_init: bool = False  # whether __init__ calls the one of a second base class

    _version: int = 1  # the version of this class's state

    _compiled_call_impl: Callable[..., Any] | None = None  # for programs that look at it

    training: bool
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Module | None]
    _non_persistent_buffers_set: set[str]
    # from numbers to hooks; the dicts beside them have the numbers of hooks with an option
    _backward_pre_hooks: dict[int, Callable[..., Any]]
    _backward_hooks: dict[int, Callable[..., Any]]
    _is_full_backward_hook: bool | None  # False: the hooks are of `register_backward_hook`
    _forward_hooks: dict[int, Callable[..., Any]]
    _forward_hooks_with_kwargs: dict[int, bool]
    _forward_hooks_always_called: dict[int, bool]
    _forward_pre_hooks: dict[int, Callable[..., Any]]
    _forward_pre_hooks_with_kwargs: dict[int, bool]
    _state_dict_hooks: dict[int, Callable[..., Any]]
    _load_state_dict_pre_hooks: dict[int, Callable[..., Any]]
    _state_dict_pre_hooks: dict[int, Callable[..., Any]]
    _load_state_dict_post_hooks: dict[int, Callable[..., Any]]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if (args or kwargs) and not self.call_super_init:
            name = f"{type(self).__name__}.__init__()"
            if kwargs:
                raise TypeError(f"{name} got an unexpected keyword argument '{next(iter(kwargs))}'")
            text = f"{name} takes 1 positional argument but {len(args) + 1} were given"
            if isinstance(args[0], Tensor):
                text += f". {called_afterwards(type(self).__name__)}"
            raise TypeError(text)
        attributes = self.__dict__
        # PyTorch's attributes, in its order
        attributes["training"] = True
        attributes["_parameters"] = {}
        attributes["_buffers"] = {}
        attributes["_non_persistent_buffers_set"] = set()
        attributes["_backward_pre_hooks"] = OrderedDict()
        attributes["_backward_hooks"] = OrderedDict()
        attributes["_is_full_backward_hook"] = None
        attributes["_forward_hooks"] = OrderedDict()
        attributes["_forward_hooks_with_kwargs"] = OrderedDict()
        attributes["_forward_hooks_always_called"] = OrderedDict()
        attributes["_forward_pre_hooks"] = OrderedDict()
        attributes["_forward_pre_hooks_with_kwargs"] = OrderedDict()
        attributes["_state_dict_hooks"] = OrderedDict()
        attributes["_state_dict_pre_hooks"] = OrderedDict()
        attributes["_load_state_dict_pre_hooks"] = OrderedDict()
        attributes["_load_state_dict_post_hooks"] = OrderedDict()
        attributes["_modules"] = {}
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        check_constructor(cls)
        _look_up_in_c(cls, _GETATTR)
        result: Any = cls
        if result._call_impl is not _CALL and result.__call__ is _CALL:
            result.__call__ = result._wrapped_call_impl
        _call_in_c(cls, _CALL, note_module, GLOBAL.__dict__)

    # ---- calling -------------------------------------------------------------------------------

    if TYPE_CHECKING:
        forward: Callable[..., Any]

        def __call__(self: Forwards[P, R_co], *args: P.args, **kwargs: P.kwargs) -> R_co: ...

        _call_impl: Callable[..., Any]

        # names that the register_ methods made
        def __getattr__(self, name: str) -> Any: ...

    else:

        def _forward_unimplemented(self, *input):
            """Compute the module's output. Every subclass defines its own."""
            raise NotImplementedError(
                f'Module [{type(self).__name__}] is missing the required "forward" function'
            )

        forward = _forward_unimplemented

        def _call_impl(self, *args, **kwargs):
            # `_call_in_c` does the same where there are no hooks
            try:
                if (
                    self._backward_hooks
                    or self._backward_pre_hooks
                    or self._forward_hooks
                    or self._forward_pre_hooks
                    or _BACKWARD
                    or _BACKWARD_PRE
                    or _FORWARD
                    or _FORWARD_PRE
                ):
                    return call_with_hooks(self, args, kwargs)
                return self.forward(*args, **kwargs)
            except Exception as error:
                note_module(error, self)
                raise

        __call__ = _call_impl

        def _wrapped_call_impl(self, *args, **kwargs):
            return self._call_impl(*args, **kwargs)

        def __getattr__(self, name):
            # for names that are neither in a class nor in __dict__; `_look_up_in_c` does the same
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
                refuse_assignment(self, "_parameters", name, value)
            self.register_parameter(name, None)
        elif isinstance(value, Module):
            displace(self, "_modules", name)
            attributes["_modules"][name] = registered(self, "_modules", name, value)
        elif name in attributes.get("_modules", ()):
            if value is not None:
                refuse_assignment(self, "_modules", name, value)
            attributes["_modules"][name] = registered(self, "_modules", name, None)
        elif isinstance(value, Tensor) and is_buffer(value):
            self._assign_buffer(name, value, getattr(value, "persistent", True))
        elif name in attributes.get("_buffers", ()):
            if not (value is None or isinstance(value, Tensor)):
                refuse_assignment(self, "_buffers", name, value)
            self._assign_buffer(name, value, name not in self._non_persistent_buffers_set)
        else:
            if name == "_call_impl":
                raise NotImplementedError(
                    f"{type(self).__name__}: a call would not look up `_call_impl` of a module; "
                    "set `forward`, or override `_call_impl` in a subclass"
                )
            super().__setattr__(name, value)

    def _assign_buffer(self, name: str, value: Any, persistent: bool) -> None:
        if getattr(self.register_buffer, "__func__", None) is Module.register_buffer:
            self.register_buffer(name, value, persistent)
        else:
            register_elsewhere(self, name, value, persistent)

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
        """Make ``param`` the parameter called ``name``; None reserves the name.

        Raises:
            TypeError: ``name`` is not a str, or ``param`` neither a Parameter nor None.
            KeyError: ``name`` is empty, contains a dot, or is an attribute already.
            ValueError: ``param`` is the result of a recorded operator.
        """
        check_name(self, "_parameters", name)
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(
                    f"{type(self).__name__}: cannot assign '{name_of_type(param)}' object to "
                    f"parameter '{name}' (Parameter or None required)"
                )
            if not param.is_leaf:
                raise ValueError(
                    f"{type(self).__name__}: Cannot assign non-leaf Tensor to parameter '{name}'. "
                    f"Model parameters must be created explicitly. To express '{name}' as a "
                    "function of another Tensor, compute the value in the forward() method."
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
        check_name(self, "_buffers", name)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"{type(self).__name__}: cannot assign '{name_of_type(tensor)}' object to buffer "
                f"'{name}' (Tensor or None required)"
            )
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
            raise TypeError(f"{type(self).__name__}: {_not_a_module(module)}")
        check_name(self, "_modules", name)
        self._modules[name] = registered(self, "_modules", name, module)

    def get_submodule(self, target: str) -> Module:
        """Return the submodule at a dotted path, such as ``"encoder.layers.0"``; ``""`` is self.

        Args:
            target: The names on the way to it, joined by dots; "" is the module itself.
        """
        module: Module = self
        for name in target.split(".") if target else ():
            child = _required(module, name)
            if not isinstance(child, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
            module = child
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Set the module at a dotted path, replacing the old one.

        Args:
            target: The path.
            module: The module.
            strict: Whether the path must exist; else its last name may be new.

        Example:
            >>> import plait_nn as nn
            >>> model = nn.Sequential(nn.Sequential(nn.ReLU()))
            >>> model.set_submodule("0.0", nn.Tanh())
            >>> model[0][0]
            Tanh()
        """
        path, _, name = target.rpartition(".")
        if not target:
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        parent = self.get_submodule(path)
        present = _required(parent, name) if strict else getattr(parent, name, _ABSENT)
        if present is not _ABSENT and not isinstance(present, Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """Return the parameter at a dotted path.

        Args:
            target: The names on the way to it, joined by dots.
        """
        path, _, name = target.rpartition(".")
        parameter = _required(self.get_submodule(path), name)
        if not isinstance(parameter, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return parameter

    def get_buffer(self, target: str) -> Tensor:
        """Return the buffer at a dotted path.

        Args:
            target: The names on the way to it, joined by dots.
        """
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        buffer: Tensor = _required(module, name)
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return buffer

    # ---- walks ---------------------------------------------------------------------------------

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Iterate over the parameters, each once, of this module and (``recurse``) those below."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Iterate over ``(dotted name, parameter)``; a shared one appears under its first name.

        Args:
            prefix: What precedes each name, with a dot.
            recurse: Whether those of submodules are included.
            remove_duplicate: Whether one that occurs twice is given once.
        """
        yield from self._named_members(
            lambda module: module._parameters.items(), prefix, recurse, remove_duplicate
        )

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Iterate over the buffers, each once.

        Args:
            recurse: Whether those of submodules are included.
        """
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Iterate over ``(dotted name, buffer)``.

        Args:
            prefix: What precedes each name, with a dot.
            recurse: Whether those of submodules are included.
            remove_duplicate: Whether one that occurs twice is given once.
        """
        yield from self._named_members(
            lambda module: module._buffers.items(), prefix, recurse, remove_duplicate
        )

    def _named_members(
        self,
        get_members_fn: Callable[[Module], Iterable[tuple[str, Any]]],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        """Iterate over ``(dotted name, member)`` of a function's result for each module."""
        seen: set[int] = set()
        modules = (
            self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
            if recurse
            else [(prefix, self)]
        )
        for path, owner in modules:
            for name, member in get_members_fn(owner):
                if member is None or (remove_duplicate and id(member) in seen):
                    continue
                seen.add(id(member))
                yield (f"{path}.{name}" if path else name), member

    def children(self) -> Iterator[Module]:
        """Iterate over the submodules one level down, each once."""
        for _, module in self.named_children():
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Iterate over ``(name, submodule)`` one level down."""
        seen: set[Module] = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """Iterate over this module and all below it, each once.

        Args:
            remove_duplicate: Whether one that occurs twice is given once.
        """
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """Iterate over ``(dotted path, module)``, this module first with ``prefix`` as its path.

        Args:
            memo: Modules that are left out; those that are given are added.
            remove_duplicate: Whether one that occurs twice is given once.
        """
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        below = [(prefix, iter(self._modules.items()))]
        while below:
            prefix, children = below[-1]
            name, module = next(children, ("", self))
            if module is self and not name:
                below.pop()
                continue
            if module is None:
                continue
            path = f"{prefix}.{name}" if prefix else name
            if not _inherits(module, "named_modules"):
                yield from module.named_modules(memo, path, remove_duplicate)
            elif module not in memo:
                if remove_duplicate:
                    memo.add(module)
                yield path, module
                if module._modules:
                    below.append((path, iter(module._modules.items())))
                    check_depth(len(below), "named_modules")

    # ---- modes -----------------------------------------------------------------------------------

    def train(self: M, mode: bool = True) -> M:
        """Set training mode (``True``) or evaluation mode here and below; return the module.

        Args:
            mode: True: training, False: evaluation.
        """
        if not isinstance(mode, bool):
            raise ValueError(
                f"{type(self).__name__}.train: training mode is expected to be boolean; got "
                f"{type(mode).__name__}"
            )
        for module, is_own in _children_first(self, "train"):
            if is_own:
                module.training = mode
            else:
                module.train(mode)
        return self

    def eval(self: M) -> M:
        """Set evaluation mode, in which `Dropout` does nothing, for example; the same as
        ``train(False)``.
        """
        return self.train(False)

    def apply(self: M, fn: Callable[[Module], Any]) -> M:
        """Call ``fn`` on every submodule and then on the module itself; return the module."""
        for module, is_own in _children_first(self, "apply"):
            if is_own:
                fn(module)
            else:
                module.apply(fn)
        return self

    def requires_grad_(self: M, requires_grad: bool = True) -> M:
        """Set ``requires_grad`` of every parameter; return the module."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the parameters' gradients, or with ``set_to_none=False`` fill them with zeros."""
        for parameter in self.parameters():
            gradient = parameter.grad
            if set_to_none:
                parameter.grad = None
            elif gradient is not None:
                if gradient.grad_fn is not None:
                    gradient.detach_()
                else:
                    gradient.requires_grad_(False)
                gradient.zero_()

    # ---- conversions -----------------------------------------------------------------------------

    @overload
    def to(self: M, device: Any = ..., dtype: Any = ..., non_blocking: bool = ...) -> M: ...

    @overload
    def to(self: M, dtype: Any, non_blocking: bool = ...) -> M: ...

    @overload
    def to(self: M, tensor: Tensor, non_blocking: bool = ...) -> M: ...

    def to(self: M, *args: Any, **kwargs: Any) -> M:
        """Convert parameters and buffers in place; return the module.

        ``to(device)``, ``to(dtype)``, ``to(device, dtype)`` and ``to(tensor)`` (its device and
        dtype). Only floating-point and complex members change their dtype, to a floating-point or
        complex one; ``memory_format=`` is for members of 4 and 5 dimensions.

        Example:
            >>> import plait_core as pc, plait_nn as nn
            >>> nn.Linear(2, 3).to(pc.float64).weight.dtype
            plait.float64
        """
        return self._apply(conversion(*args, **kwargs))

    def type(self: M, dst_type: Any) -> M:
        """Convert every parameter and buffer to ``dst_type``."""
        return self._apply(lambda tensor: tensor.type(dst_type))

    def float(self: M) -> M:
        """Convert floating-point parameters and buffers to float32."""
        return self._apply(floating(pc.float32))

    def double(self: M) -> M:
        """Convert floating-point parameters and buffers to float64."""
        return self._apply(floating(pc.float64))

    def half(self: M) -> M:
        """Convert floating-point parameters and buffers to float16."""
        return self._apply(floating(pc.float16))

    def bfloat16(self: M) -> M:
        """Convert floating-point parameters and buffers to bfloat16."""
        return self._apply(floating(pc.bfloat16))

    def cpu(self: M) -> M:
        """Move parameters and buffers to the CPU."""
        return self._apply(lambda tensor: tensor.cpu())

    def cuda(self: M, device: Any = None) -> M:
        """Move parameters and buffers to a CUDA device; it is an error if there is none.

        Args:
            device: The device or its number; None is the current one.
        """
        return self._apply(lambda tensor: tensor.cuda(device))

    def to_empty(self: M, *, device: Any, recurse: bool = True) -> M:
        """Give parameters and buffers new memory on ``device``, without copying the values.

        Args:
            recurse: Whether submodules are moved too.

        Example:
            >>> import plait_nn as nn
            >>> layer = nn.Linear(2, 3, device="meta")
            >>> layer.to_empty(device="cpu").weight.device
            device(type='cpu')
        """
        return self._apply(lambda tensor: pc.empty_like(tensor, device=device), recurse)

    def share_memory(self: M) -> M:
        """Move parameters, their gradients and buffers to shared memory by `share_memory_`.

        They stay the same objects, so that existing optimizers still refer to them.
        """
        return self._apply(lambda tensor: tensor if tensor.is_shared() else tensor.share_memory_())

    def _apply(self: M, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> M:
        """Replace the values of the members by ``fn`` of them; parameters keep their identity."""
        if not recurse:
            _convert(self, fn)
            return self
        for module, is_own in _children_first(self, "_apply"):
            if is_own:
                _convert(module, fn)
            else:
                module._apply(fn)
        return self

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing: operators run one by one. It exists for programs that call it, and compiles
        under ``python -m plait.torch``, if plait-graph is installed.
        """

    # ---- state_dict ------------------------------------------------------------------------------

    def state_dict(
        self,
        *args: Any,
        destination: dict[str, Any] | None = None,
        prefix: str = "",
        keep_vars: bool = False,
    ) -> dict[str, Any]:
        """Return the parameters and persistent buffers by dotted name, detached, sharing memory.

        The result of `get_extra_state` has the name ``_extra_state``. The dict's attribute
        ``_metadata`` has the version of each module's class, ``_version``.

        Args:
            destination: A dict to fill and return.
            prefix: Put before every name.
            keep_vars: Return the parameters themselves instead of detached tensors.

        Example:
            >>> import plait_nn as nn
            >>> list(nn.Sequential(nn.Linear(2, 3), nn.ReLU()).state_dict())
            ['0.weight', '0.bias']
        """
        if args:
            warn("Positional args are being deprecated, use kwargs instead.", FutureWarning)
            defaults: tuple[Any, ...] = (destination, prefix, keep_vars)
            destination, prefix, keep_vars = (*args, *defaults[len(args) :])
        result: dict[str, Any] = run(collect(self, destination, prefix, keep_vars), "state_dict")
        return result

    def load_state_dict(
        self, state_dict: Any, strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copy parameters and buffers from a mapping of dotted names to tensors or arrays.

        Everything is compared before anything is written: when it raises, the module is unchanged.
        This does not hold where modules have hooks of loading, `set_extra_state` or a
        ``_load_from_state_dict`` of their own: these see each module's values as soon as it has
        them.

        Args:
            state_dict: The values. Arrays with DLPack or NumPy's protocol are accepted.
            strict: Whether the names must be exactly those of `state_dict`.
            assign: Use the given tensors as members instead of copying their values.

        Returns:
            ``(missing_keys, unexpected_keys)``.

        Raises:
            RuntimeError: Names (if ``strict``) or shapes differ; the message lists all differences.
        """
        return load(self, state_dict, strict, assign)

    # of this module's own members, without those of submodules; they may be overridden
    _save_to_state_dict = save_members
    _load_from_state_dict = load_members

    def _defines(self, method: str) -> bool:
        """Whether a subclass has a ``get_extra_state`` or ``set_extra_state`` of its own."""
        return getattr(type(self), method) is not getattr(Module, method)

    def get_extra_state(self) -> Any:
        """Return additional state, for subclasses that define it together with `set_extra_state`.

        Example:
            >>> import plait_nn as nn
            >>> class Counts(nn.Module):
            ...     calls = 3
            ...     def get_extra_state(self):
            ...         return {"calls": self.calls}
            ...     def set_extra_state(self, state):
            ...         self.calls = state["calls"]
            >>> Counts().state_dict()["_extra_state"]
            {'calls': 3}
        """
        raise RuntimeError(f"{type(self).__name__}: get_extra_state is called, but not defined")

    def set_extra_state(self, state: Any) -> None:
        """Restore the additional state that `get_extra_state` returned.

        Args:
            state: What `get_extra_state` returned.
        """
        raise RuntimeError(
            f"{type(self).__name__}: a state has extra state, but set_extra_state is not defined"
        )

    # ---- hooks -----------------------------------------------------------------------------------

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args)`` before every ``forward``.

        It returns None or new positional arguments. With ``with_kwargs`` it is called as
        ``hook(module, args, kwargs)`` and returns None or ``(args, kwargs)``.

        Args:
            prepend: Whether it runs before the hooks that are there.
        """
        options = ((self._forward_pre_hooks_with_kwargs, with_kwargs),)
        return add_hook(self, self._forward_pre_hooks, hook, options=options, prepend=prepend)

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

        Args:
            prepend: Whether it runs before the hooks that are there.
        """
        options = (
            (self._forward_hooks_with_kwargs, with_kwargs),
            (self._forward_hooks_always_called, always_call),
        )
        return add_hook(self, self._forward_hooks, hook, options=options, prepend=prepend)

    def register_full_backward_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` when the inputs' gradients are complete.

        Both are tuples with one gradient for each positional argument and each result, None for
        those that are not tensors. The hook returns None or new gradients of the inputs; it must
        not write to the ones it got. If no input requires grad, it runs when the results' gradients
        are complete, with None for each input. Keyword arguments are ignored, and the module and
        its callers cannot write to inputs and results in place.

        Args:
            prepend: Whether it runs before the hooks that are there.

        Example:
            >>> import plait_core as pc, plait_nn as nn
            >>> layer = nn.Linear(2, 3)
            >>> def show(module, grad_input, grad_output):
            ...     print(tuple(grad_input[0].shape), tuple(grad_output[0].shape))
            >>> handle = layer.register_full_backward_hook(show)
            >>> layer(pc.ones(4, 2, requires_grad=True)).sum().backward()
            (4, 2) (4, 3)
        """
        self._use_backward_hooks(full=True)
        return add_hook(self, self._backward_hooks, hook, prepend=prepend)

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, grad_output)`` before the module's backward pass.

        It returns None or the gradients of the results to use instead.

        Args:
            prepend: Whether it runs before the hooks that are there.

        Example:
            >>> import plait_core as pc, plait_nn as nn
            >>> layer = nn.Identity()
            >>> handle = layer.register_full_backward_pre_hook(lambda m, grads: (grads[0] * 10,))
            >>> x = pc.ones(1, requires_grad=True)
            >>> layer(x).backward()
            >>> x.grad
            tensor([10.])
        """
        return add_hook(self, self._backward_pre_hooks, hook, prepend=prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` for the operator that made the result.

        It exists for old programs: the gradients are those of the module's last operator only. Use
        `register_full_backward_hook`.
        """
        self._use_backward_hooks(full=False)
        return add_hook(self, self._backward_hooks, hook)

    def _use_backward_hooks(self, full: bool) -> None:
        if self._is_full_backward_hook is (not full):
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single "
                "Module. Please use only one of them."
            )
        self._is_full_backward_hook = full

    def register_state_dict_pre_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Call ``hook(module, prefix, keep_vars)`` before ``state_dict`` takes the members."""
        return add_hook(self, self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, local_metadata)`` after ``state_dict``.

        It may change the state in place. The state contains the members of submodules.

        Example:
            >>> import plait_nn as nn
            >>> layer = nn.Linear(1, 1)
            >>> def forget(module, state, prefix, metadata):
            ...     del state[prefix + "bias"]
            >>> handle = layer.register_state_dict_post_hook(forget)
            >>> list(layer.state_dict())
            ['weight']
        """
        with contextlib.suppress(AttributeError):  # of a bound method, what it returns is used
            hook._from_public_api = True  # type: ignore[attr-defined]
        return add_hook(self, self._state_dict_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Call a hook before ``load_state_dict`` reads the module's members.

        It is called as ``hook(module, state_dict, prefix, local_metadata, strict, missing_keys,
        unexpected_keys, error_msgs)`` and may change ``state_dict``, a copy of the argument.

        Example:
            >>> import plait_core as pc, plait_nn as nn
            >>> layer = nn.Linear(1, 1, bias=False)
            >>> def rename(module, state, prefix, *rest):
            ...     state[prefix + "weight"] = state.pop(prefix + "kernel")
            >>> handle = layer.register_load_state_dict_pre_hook(rename)
            >>> layer.load_state_dict({"kernel": pc.ones(1, 1)})
            <All keys matched successfully>
        """
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def register_load_state_dict_post_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Call ``hook(module, incompatible_keys)`` after ``load_state_dict`` wrote the members.

        It may take names from ``incompatible_keys.missing_keys`` and ``unexpected_keys``; the
        remaining names are an error if the loading is strict. So the members of a module with such
        a hook are written before the names are compared, but after the shapes are.
        """
        return add_hook(self, self._load_state_dict_post_hooks, hook)

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Like `register_state_dict_post_hook`, but the hook may return another state."""
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was "
                "previously registered via register_state_dict_post_hook"
            )
        return add_hook(self, self._state_dict_hooks, hook)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., None], with_module: bool = False
    ) -> RemovableHandle:
        """Like `register_load_state_dict_pre_hook`; ``with_module`` passes the module too."""
        wrapped = WrappedHook(hook, self if with_module else None)
        return add_hook(self, self._load_state_dict_pre_hooks, wrapped)

    # ---- pickles and copies --------------------------------------------------------------------

    # A state is the module's `__dict__`, as PyTorch's is: a shallow copy shares the registries.
    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        if state.pop("_compiled_call_impl", None) is not None:
            state.pop("forward", None)  # the compiled calls
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        attributes = self.__dict__
        attributes.update(state)
        for name, result in _OF_NEWER_STATES.items():  # states of old versions of PyTorch lack them
            if name not in attributes:
                setattr(self, name, result())

    def _replicate_for_data_parallel(self: M) -> M:
        """Return a copy that shares the members, without parameters of its own."""
        replica = self.__new__(type(self))
        replica.__dict__ = self.__dict__.copy()
        replica._parameters = {}
        replica._buffers = self._buffers.copy()
        replica._modules = self._modules.copy()
        replica._is_replica = True
        return replica

    # ---- text ----------------------------------------------------------------------------------

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """Return the text between the parentheses of the repr. Subclasses may define their own."""
        return ""

    def __repr__(self) -> str:
        return module_text(self)

    def _repr_html_(self) -> str:
        return module_html(self)


def _inherits(module: Any, method: str) -> bool:
    """Return whether a method is `Module`'s own, which need not be called for what it does."""
    return getattr(type(module), method) is _OWN[method] and method not in module.__dict__


def _children_first(module: Module, method: str) -> Iterator[tuple[Module, bool]]:
    """Return a module and those below it, children first, and whether `method` of each is
    `Module`'s own. Of others, whose method does the rest, the modules below are left out.
    """
    results: list[tuple[Module, bool]] = []
    waiting = [(module, 0)]
    while waiting:
        each, depth = waiting.pop()
        is_own = each is module or _inherits(each, method)
        results.append((each, is_own))
        if is_own and each._modules:
            check_depth(depth, method)
            waiting += [(child, depth + 1) for child in each.children()]
    return reversed(results)


def _convert(module: Module, fn: Callable[[Tensor], Tensor]) -> None:
    """Replace the values of the module's own members by ``fn`` of them."""
    for parameter in module._parameters.values():
        if parameter is None:
            continue
        values = without_grad(fn, parameter)
        gradient = parameter.grad
        if gradient is not None:
            # the gradient must always have the parameter's shape and dtype
            parameter.grad = None
        if values is not parameter:
            parameter.data = values
        if gradient is not None:
            changed = without_grad(fn, gradient)
            if changed is not gradient:
                gradient.data = changed
            parameter.grad = gradient
    for name, buffer in module._buffers.items():
        if buffer is not None:
            module._buffers[name] = fn(buffer)


_OWN = {name: Module.__dict__[name] for name in ("apply", "_apply", "named_modules", "train")}
note_own(Module.state_dict)
steps_of_repr(Module.__repr__, text_steps)
_OF_NEWER_STATES: dict[str, Callable[[], Any]] = {
    "_forward_pre_hooks": OrderedDict,
    "_forward_pre_hooks_with_kwargs": OrderedDict,
    "_forward_hooks_with_kwargs": OrderedDict,
    "_forward_hooks_always_called": OrderedDict,
    "_state_dict_hooks": OrderedDict,
    "_state_dict_pre_hooks": OrderedDict,
    "_load_state_dict_pre_hooks": OrderedDict,
    "_load_state_dict_post_hooks": OrderedDict,
    "_non_persistent_buffers_set": set,
    "_is_full_backward_hook": lambda: None,
    "_backward_pre_hooks": OrderedDict,
}
_GETATTR = Module.__getattr__
_look_up_in_c(Module, _GETATTR)
_CALL: Callable[..., Any] = Module.__dict__["__call__"]
_call_in_c(Module, _CALL, note_module, GLOBAL.__dict__)


def _not_a_module(value: Any) -> str:
    items = value if isinstance(value, (list, tuple)) else ()
    hint = "; pass its modules one by one, as in Sequential(*layers)"
    are_modules = any(isinstance(each, Module) for each in items)
    return f"{name_of_type(value)} is not a Module subclass{hint if are_modules else ''}"
