"""The context of a `Function`: values that forward keeps for backward and jvp."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from plait_abi.frames import warn
from plait_autograd import _autograd, _saved
from plait_autograd._removable_handle import RemovableHandle


class _Saved(NamedTuple):
    """A tensor that `save_for_backward` keeps."""

    tensor: Any  # None if the argument was None, or if the tensor is packed
    version: int
    output: int | None
    """The index of the tensor among the outputs; None if it is not an output."""
    input: int | None
    """The index of the tensor among the tensor arguments, for packed tensors only."""
    packed: tuple[Callable[[Any], Any], Any] | None
    tangent: tuple[int, Any] | None
    """The level and the tangent of a packed tensor; other tensors have theirs themselves."""


class FunctionContext:
    """The object in which `Function.forward` keeps values for `Function.backward`. Any attribute
    may be set.

    It is the ``grad_fn`` of the results too, and each `Function` has a class of its own for it.
    Like PyTorch's, it does not keep the graph alive: `next_functions` and similar members need a
    result that still exists.

    Example:
        >>> import plait_core as pc, plait_autograd as pa
        >>> class Power(pa.Function):
        ...     @staticmethod
        ...     def forward(ctx, x, n):
        ...         ctx.n = n
        ...         ctx.save_for_backward(x)
        ...         return x**n
        ...     @staticmethod
        ...     def backward(ctx, g):
        ...         (x,) = ctx.saved_tensors
        ...         print(type(ctx).__name__, ctx.needs_input_grad)
        ...         return ctx.n * x ** (ctx.n - 1) * g, None
        >>> x = pc.tensor(2.0, requires_grad=True)
        >>> y = Power.apply(x, 3)
        >>> y.grad_fn.n, y.grad_fn.saved_tensors[0].item()
        (3, 2.0)
        >>> y.backward()
        PowerBackward (True, False)
        >>> x.grad.item()
        12.0
    """

    needs_input_grad: tuple[bool, ...]
    """For each argument of forward, whether it needs a gradient."""

    def __init__(self) -> None:
        self._to_save: tuple[Any, ...] = ()
        # how values that consist of several tensors are put together
        self._forms: list[tuple[int, Any]] | None = None
        self._to_save_for_jvp: tuple[Any, ...] | None = None
        self._for_jvp: tuple[Any, ...] | None = None  # the saved tensors while jvp runs
        self._saved: list[_Saved] | None = []
        self._dirty: tuple[Any, ...] = ()
        self._constant: tuple[Any, ...] = ()
        self._materialize = True
        self._name = "Function"
        self._results: dict[str, tuple[Any, int]] = {}
        self._intermediate: int | None = None  # a saved tensor that is neither input nor output
        self._runs_backward = False
        self._node: object = None  # the engine's handle of the call's node

    # ---- the node of the graph ------------------------------------------------------------------

    def name(self) -> str:
        """Return the name of the node: that of the class of functions, and ``Backward``."""
        return self._name

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """(node, output number) for each input; (None, 0) where no gradient goes."""
        return _autograd.node(self).next_functions

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dict of your own that lives as long as the node."""
        return _autograd.node(self).metadata

    def register_hook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call ``fn(grad_inputs, grad_outputs)`` after the node has run; see `Node`."""
        return _autograd.node(self).register_hook(fn)

    def register_prehook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call ``fn(grad_outputs)`` before the node runs; see `Node`."""
        return _autograd.node(self).register_prehook(fn)

    def __getattr__(self, name: str) -> Any:
        """Return an output that was set as an attribute: a new tensor with its history."""
        copy = self.__dict__.get("_results", {}).get(name)
        if copy is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return self._as_output(*copy)

    def _as_output(self, tensor: Any, index: int) -> Any:
        return _with_tangent(tensor, _autograd.as_output(tensor, index, self))

    def _as_input(self, tensor: Any, index: int) -> Any:
        return _with_tangent(tensor, _autograd.as_input(tensor, index))

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors (or None) for backward: inputs, outputs or anything else.

        An object that consists of tensors, such as a sparse tensor, has a method
        ``__plait_parts__``, which returns the tensors and a function that makes the object from
        them.

        Unlike attributes, saved tensors are checked for in-place writes and are freed at the end of
        the pass. An output may be saved here or be an attribute itself; within a list or object of
        an attribute it makes a reference cycle until the pass.
        """
        self._forms = None
        if any(hasattr(tensor, "__plait_parts__") for tensor in tensors):
            tensors, self._forms = _to_parts(tensors)
        _require_tensors(tensors, "save_for_backward")
        self._to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Keep tensors (or None) for `Function.jvp`, which finds them in ``saved_tensors``.

        Without it ``jvp`` gets the tensors of `save_for_backward`. They are dropped after the call.

        Example:
            >>> import plait_core as pc, plait_autograd as pa
            >>> from plait_autograd import forward_ad
            >>> class Square(pa.Function):
            ...     @staticmethod
            ...     def forward(ctx, x):
            ...         ctx.save_for_forward(x)
            ...         return x * x
            ...     @staticmethod
            ...     def jvp(ctx, t):
            ...         (x,) = ctx.saved_tensors
            ...         return 2 * x * t
            >>> with forward_ad.dual_level():
            ...     x = forward_ad.make_dual(pc.tensor(3.0), pc.tensor(1.0))
            ...     forward_ad.unpack_dual(Square.apply(x)).tangent.item()
            6.0
        """
        _require_tensors(tensors, "save_for_forward")
        self._to_save_for_jvp = tensors

    def mark_dirty(self, *tensors: Any) -> None:
        """Declare that forward writes these inputs in place; it must also return them.

        They may be views: the history of their base then contains the function.
        """
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Declare that no gradient flows through these outputs."""
        self._constant = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Set whether backward gets zeros (the default) or None for missing gradients.

        Args:
            value: True: zeros.

        Example:
            >>> import plait_core as pc, plait_autograd as pa
            >>> class Both(pa.Function):
            ...     @staticmethod
            ...     def forward(ctx, x):
            ...         ctx.set_materialize_grads(False)
            ...         return x * 2, x * 3
            ...     @staticmethod
            ...     def backward(ctx, g2, g3):
            ...         print(g2 is None, g3 is None)
            ...         return 3 * g3
            >>> Both.apply(pc.ones(1, requires_grad=True))[1].backward()
            True False
        """
        self._materialize = bool(value)

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The tensors that `save_for_backward` saved.

        Raises:
            RuntimeError: one was written in place after it was saved, or a pass without
                ``retain_graph`` has freed them.
        """
        if self._for_jvp is not None:
            tensors = self._for_jvp
            if self._forms is None or self._to_save_for_jvp is not None:
                return tensors
            return _from_parts(tensors, self._forms)
        if self._intermediate is not None and self._runs_backward and _autograd.is_grad_enabled():
            self._warn_of_lost_derivative(self._intermediate)
        if self._saved is None:
            result = _autograd.account(None, 0)[1]
            raise RuntimeError(
                f"{self._name}: backward ran a second time, but the tensors that "
                "save_for_backward kept were freed after the first; call the first backward "
                "with retain_graph=True" + (f" (the call was made{result})" if result else "")
            )
        value = tuple(self._unpack(i, entry) for i, entry in enumerate(self._saved))
        return value if self._forms is None else _from_parts(value, self._forms)

    def _warn_of_lost_derivative(self, i: int) -> None:
        warn(
            f"{self._name}: saved tensor {i} is neither an input nor an output of forward, so "
            "create_graph=True records nothing of how it was made: derivatives of this backward "
            "pass lack what goes through it. Return the tensor as one more output of forward, or "
            "compute it in backward; if it does not depend on the inputs, keep it as an attribute "
            "of ctx"
        )
        self._intermediate = None

    def _unpack(self, i: int, saved: _Saved) -> Any:
        if saved.packed is not None:  # writes to packed tensors are not checked
            tensor = _saved.unpack(saved.packed)
            if saved.tangent is not None and saved.tangent[0] == _autograd.level():
                tensor = _autograd.alias(tensor)
                _autograd.set_tangent(tensor, saved.tangent[1])
            if saved.input is not None:
                return self._as_input(tensor, saved.input)
            return tensor if saved.output is None else self._as_output(tensor, saved.output)
        tensor = saved.tensor
        if tensor is None:
            return None
        now = _autograd.version(tensor)
        if now != saved.version:
            raise RuntimeError(self._overwritten(i, tensor, saved.version))
        return tensor if saved.output is None else self._as_output(tensor, saved.output)

    def _overwritten(self, i: int, tensor: Any, version: int) -> str:
        by, result = _autograd.account(tensor, version)
        text = (
            f"{self._name}: saved tensor {i} ({_autograd.describe(tensor)}) was overwritten by "
            f"{by or 'an in-place operator'} after it was saved"
            + (f" by the call{result}" if result else "")
            + f" (modified by an inplace operation: it is at version {_autograd.version(tensor)}, "
            f"saved at version {version}); use the out-of-place form of the operator that wrote "
            "it, or clone() the tensor first"
        )
        if by and result:
            return text
        return f"{text} (with set_detect_anomaly(True) this message names the lines of both)"

    def _save(self, inputs: tuple[Any, ...], outputs: tuple[Any, ...]) -> None:
        """Store the tensors to be saved; an output as another handle, which does not own this
        context.
        """
        positions = {id(output): i for i, output in enumerate(outputs) if output is not None}
        arguments = {id(value): i for i, value in enumerate(inputs)}
        constants = {id(value) for value in self._constant}
        saved: list[_Saved] = []
        for tensor in self._to_save:
            if tensor is None:
                saved.append(_Saved(None, 0, None, None, None, None))
                continue
            position = positions.get(id(tensor))
            is_saved = position is not None or id(tensor) in arguments or id(tensor) in constants
            if not is_saved and _is_inexact(tensor):
                self._intermediate = len(saved)
            if _saved.saved_hooks_are_active():
                own = position is None and id(tensor) in arguments
                packed = _saved.pack(tensor if own else _autograd.alias(tensor))
                argument = None if position is not None else arguments.get(id(tensor))
                level = _autograd.level()
                tangent = _autograd.tangent(tensor) if level else None
                dual = None if tangent is None else (level, tangent)
                saved.append(_Saved(None, 0, position, argument, packed, dual))
                continue
            copy = tensor if position is None else _alias(tensor)
            saved.append(_Saved(copy, _autograd.version(tensor), position, None, None, None))
        self._saved = saved
        self._to_save = self._dirty = self._constant = ()
        attributes = vars(self)
        for name in [name for name, value in attributes.items() if id(value) in positions]:
            # the output owns this context, so the context must not own it
            output = attributes.pop(name)
            self._results[name] = (_alias(output), positions[id(output)])


def _is_inexact(tensor: Any) -> bool:
    return bool(tensor.dtype.is_floating_point or tensor.dtype.is_complex)


def _alias(tensor: Any) -> Any:
    """Return another handle, without history, but with the tangent."""
    return _with_tangent(tensor, _autograd.alias(tensor))


def _with_tangent(tensor: Any, result: Any) -> Any:
    tangent = _autograd.tangent(tensor) if _autograd.level() else None
    if tangent is not None:
        _autograd.set_tangent(result, tangent)
    return result


def _to_parts(values: tuple[Any, ...]) -> tuple[tuple[Any, ...], list[tuple[int, Any]]]:
    """Split values into tensors. Return the tensors, and for each value how many they are and the
    function that builds it from them; None if the value is a tensor.
    """
    parts: list[Any] = []
    forms: list[tuple[int, Any]] = []
    for value in values:
        result = getattr(value, "__plait_parts__", None)
        own, build = ((value,), None) if result is None else result()
        parts += own
        forms.append((len(own), build))
    return tuple(parts), forms


def _from_parts(parts: tuple[Any, ...], forms: list[tuple[int, Any]]) -> tuple[Any, ...]:
    """Return the values that `_to_parts` split."""
    values, at = [], 0
    for count, build in forms:
        own = parts[at : at + count]
        values.append(own[0] if build is None else build(*own))
        at += count
    return tuple(values)


def _require_tensors(tensors: tuple[Any, ...], name: str) -> None:
    for tensor in tensors:
        if tensor is not None and not _autograd.is_tensor(tensor):
            raise TypeError(
                f"{name}: tensors or None are required, got {type(tensor).__name__}; set an "
                "attribute for other things"
            )
