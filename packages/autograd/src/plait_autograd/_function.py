"""`Function`: operators whose forward and backward are written in Python."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from plait_autograd import _autograd, _saved

__all__ = ["Function", "FunctionContext", "once_differentiable"]


class _Kept(NamedTuple):
    """What `save_for_backward` keeps of one tensor."""

    tensor: Any  # None if it was None or is packed
    version: int
    output: int | None
    """Which output it is."""
    input: int | None
    """Which of the tensor arguments it is; asked of packed ones only."""
    packed: tuple[Callable[[Any], Any], Any] | None


class FunctionContext:
    """What `Function.forward` leaves for `Function.backward`; any attribute may be set on it."""

    needs_input_grad: tuple[bool, ...]
    """For each argument of forward, whether a gradient for it is wanted."""

    def __init__(self) -> None:
        self._to_save: tuple[Any, ...] = ()
        self._saved: list[_Kept] | None = []
        self._dirty: tuple[Any, ...] = ()
        self._constant: tuple[Any, ...] = ()
        self._materialize = True
        self._name = "Function"
        self._results: dict[str, tuple[Any, int]] = {}

    def __getattr__(self, name: str) -> Any:
        """Return an output that was set as an attribute: a new tensor with its history."""
        kept = self.__dict__.get("_results", {}).get(name)
        if kept is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return _autograd.as_output(*kept)

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors (or None) for backward: inputs, outputs or anything else.

        Unlike attributes, what is kept here is checked for in-place writes and is freed as soon as
        the pass is over. An output may be kept here, or be an attribute itself; within an
        attribute's list or object it makes a cycle that only the pass breaks.
        """
        for tensor in tensors:
            if tensor is not None and not _autograd.is_tensor(tensor):
                raise TypeError(
                    "save_for_backward: tensors or None are required, got "
                    f"{type(tensor).__name__}; set an attribute for other things"
                )
        self._to_save = tensors

    def mark_dirty(self, *tensors: Any) -> None:
        """Say that forward wrote these inputs in place; it must also return them."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Say that no gradient flows through these outputs."""
        self._constant = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Say whether backward gets zeros (the default) or None for gradients that are missing.

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
        """What `save_for_backward` kept.

        Raises:
            RuntimeError: one was written in place since, or a pass that did not keep the graph
                has freed them.
        """
        if self._saved is None:
            raise RuntimeError(
                f"{self._name}: backward came here a second time, but what save_for_backward kept "
                "was freed after the first; call the first backward with retain_graph=True"
            )
        return tuple(self._unpack(i, entry) for i, entry in enumerate(self._saved))

    def _unpack(self, i: int, saved: _Kept) -> Any:
        if saved.packed is not None:  # its hooks are in charge
            tensor = _saved.unpack(saved.packed)
            if saved.input is not None:
                return _autograd.as_input(tensor, saved.input)
            return tensor if saved.output is None else _autograd.as_output(tensor, saved.output)
        tensor = saved.tensor
        if tensor is None:
            return None
        now = _autograd.version(tensor)
        if now != saved.version:
            raise RuntimeError(
                f"{self._name}: saved tensor {i} ({_autograd.describe(tensor)}) was overwritten by "
                f"an in-place operator after it was saved: it is at version {now}, saved at "
                f"version {saved.version}; use the out-of-place form of the operator that wrote "
                "it, or clone() the tensor first"
            )
        return tensor if saved.output is None else _autograd.as_output(tensor, saved.output)

    def _save(self, inputs: tuple[Any, ...], outputs: tuple[Any, ...]) -> None:
        """Keep what was asked for; an output under a handle of its own, which does not own us."""
        places = {id(output): i for i, output in enumerate(outputs) if output is not None}
        arguments = {id(value): i for i, value in enumerate(inputs)}
        saved: list[_Kept] = []
        for tensor in self._to_save:
            if tensor is None:
                saved.append(_Kept(None, 0, None, None, None))
                continue
            place = places.get(id(tensor))
            if _saved.active():
                packed = _saved.pack(_autograd.alias(tensor))
                argument = None if place is not None else arguments.get(id(tensor))
                saved.append(_Kept(None, 0, place, argument, packed))
                continue
            kept = tensor if place is None else _autograd.alias(tensor)
            saved.append(_Kept(kept, _autograd.version(tensor), place, None, None))
        self._saved = saved
        self._to_save = self._dirty = self._constant = ()
        attributes = vars(self)
        for name in [name for name, value in attributes.items() if id(value) in places]:
            output = attributes.pop(name)  # it owns us: we may not own it
            self._results[name] = (_autograd.alias(output), places[id(output)])


class _Backward:
    """What the engine calls: gradients of the outputs in, gradients of the tensor inputs out."""

    __slots__ = ("__name__", "_context", "_function", "_places")

    def __init__(
        self, function: type[Function], context: FunctionContext, places: list[int]
    ) -> None:
        self.__name__ = context._name
        self._function = function
        self._context = context
        self._places = places

    def __call__(self, *gradients: Any) -> tuple[Any, ...]:
        context = self._context
        result = self._function.backward(context, *gradients)
        found = result if isinstance(result, tuple) else (result,)
        n = len(context.needs_input_grad)
        if len(found) < n or any(extra is not None for extra in found[n:]):
            raise RuntimeError(
                f"{self.__name__}: backward must return one gradient (or None) for each of the {n} "
                f"arguments of forward; got {len(found)}"
            )
        tensors = set(self._places)
        for i, gradient in enumerate(found[:n]):
            if gradient is not None and i not in tensors:
                raise RuntimeError(
                    f"{self.__name__}: the gradient for argument {i} must be None, since the "
                    f"argument was no tensor; got {type(gradient).__name__}"
                )
        if not _autograd.retains():
            context._saved = None if context._saved else []
        return tuple(found[i] for i in self._places)


class Function:
    """An operator with a derivative of your own.

    Subclass it, write ``forward`` and ``backward`` as static methods, call ``apply``. Forward is
    not recorded; backward gets one gradient for each output (zeros where none arrived) and returns
    one gradient, or None, for each argument of forward. With ``create_graph=True`` the operators
    of backward are recorded, so that it can be differentiated in turn.

    Instead of a forward with ``ctx`` you may write ``forward(*args)`` and
    ``setup_context(ctx, inputs, output)``.

    An exception in backward arrives at the caller of the pass as the same object.

    Example:
        >>> import plait_core as pc, plait_autograd as pa
        >>> class Square(pa.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         ctx.save_for_backward(x)
        ...         return x * x
        ...     @staticmethod
        ...     def backward(ctx, g):
        ...         (x,) = ctx.saved_tensors
        ...         return 2 * x * g
        >>> x = pc.tensor(3.0, requires_grad=True)
        >>> Square.apply(x).backward()
        >>> x.grad.item()
        6.0
    """

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the outputs: ``forward(ctx, *args)``, or no ctx with setup_context."""
        raise NotImplementedError("Function: a subclass must define forward as a static method")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Fill in ``ctx`` after a forward that does not take it."""
        raise NotImplementedError

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """Return the gradient for each argument of forward."""
        raise NotImplementedError(
            "Function: a subclass must define backward as a static method to be differentiated"
        )

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Run forward and record backward.

        Args:
            *args: handed to forward; tensors among them may get gradients, those inside of lists
                or dicts may not.

        Returns:
            What forward returned. An input that forward returns unchanged becomes a new tensor.
        """
        context = FunctionContext()
        context._name = f"{cls.__name__}Backward"
        places = [i for i, arg in enumerate(args) if _autograd.is_tensor(arg)]
        wanted = [False] * len(args)
        for i in places:
            wanted[i] = _autograd.requires_grad(args[i])
        context.needs_input_grad = tuple(wanted)
        before = _autograd.set_enabled(False)
        try:
            output = cls._run(context, args)
        finally:
            _autograd.set_enabled(before)
        if not (before and any(wanted)):
            return output
        single = not isinstance(output, (tuple, list))
        raw = (output,) if single else tuple(output)
        outputs = cls._own(context, raw, [args[i] for i in places])
        gives = tuple(
            value if _autograd.is_tensor(value) and not _among(raw[i], context._constant) else None
            for i, value in enumerate(outputs)
        )
        backward = _Backward(cls, context, places)
        inputs = tuple(args[i] for i in places)
        _autograd.record(context._name, backward, inputs, gives, not context._materialize)
        context._save(inputs, gives)  # last: recording counts as a write of what is dirty
        return outputs[0] if single else type(output)(outputs)

    @classmethod
    def _run(cls, context: FunctionContext, args: tuple[Any, ...]) -> Any:
        if cls.setup_context is Function.setup_context:
            return cls.forward(context, *args)
        output = cls.forward(*args)
        cls.setup_context(context, args, output)
        return output

    @classmethod
    def _own(
        cls, context: FunctionContext, outputs: tuple[Any, ...], inputs: list[Any]
    ) -> tuple[Any, ...]:
        """Return the outputs as tensors whose history may become this function."""
        for tensor in context._dirty:
            if not _among(tensor, outputs):
                raise RuntimeError(
                    f"{context._name}: a tensor given to mark_dirty must be returned by forward"
                )
        return tuple(
            cls._renewed(value, context)
            if _autograd.is_tensor(value)
            and not _among(value, context._dirty)
            and (_among(value, inputs) or _autograd.requires_grad(value))
            else value
            for value in outputs
        )

    @staticmethod
    def _renewed(value: Any, context: FunctionContext) -> Any:
        """Return another tensor on the same bytes; it may get this function for its history."""
        if _among(value, context._constant):
            return _autograd.alias(value)
        return _autograd.share(value)


def _among(value: Any, values: Any) -> bool:
    return any(value is other for other in values)


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a backward that cannot be differentiated itself: trying to is an error.

    Example:
        >>> import plait_core as pc, plait_autograd as pa
        >>> class Twice(pa.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         return x * 2
        ...     @staticmethod
        ...     @pa.once_differentiable
        ...     def backward(ctx, g):
        ...         return g * 2
        >>> x = pc.tensor(1.0, requires_grad=True)
        >>> pa.grad(Twice.apply(x), x)[0].item()
        2.0
    """

    @functools.wraps(backward)
    def once(ctx: Any, *gradients: Any) -> Any:
        before = _autograd.set_enabled(False)
        try:
            result = backward(ctx, *gradients)
        finally:
            _autograd.set_enabled(before)
        watched = tuple(g for g in gradients if g is not None and _autograd.requires_grad(g))
        if not (before and watched):
            return result
        found = result if isinstance(result, tuple) else (result,)
        fresh = tuple(_autograd.alias(g) if _autograd.is_tensor(g) else g for g in found)

        def refuse(*_: Any) -> Any:
            raise RuntimeError(
                f"{ctx._name}: backward is marked once_differentiable and was differentiated again"
            )

        _autograd.record(
            f"{ctx._name}Once",
            refuse,
            watched,
            tuple(g if _autograd.is_tensor(g) else None for g in fresh),
        )
        return fresh if isinstance(result, tuple) else fresh[0]

    return once
