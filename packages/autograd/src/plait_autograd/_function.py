"""`Function`: operators whose forward and backward are written in Python."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ClassVar

from plait_abi import operator
from plait_autograd import _autograd, _function_forward
from plait_autograd._context import FunctionContext


class _Backward:
    """The callable for the engine: takes gradients of the outputs, returns gradients of the tensor
    inputs.
    """

    __slots__ = ("__name__", "_blank", "_context", "_function", "_positions")

    def __init__(
        self,
        function: type[Function],
        context: FunctionContext,
        positions: list[int],
        blank: tuple[tuple[int, Any, Any, Any], ...],
    ) -> None:
        self.__name__ = context._name
        self._function = function
        self._context = context
        self._positions = positions
        self._blank = blank  # (index, shape, dtype, device) of outputs that never have a gradient

    def __call__(self, *gradients: Any) -> tuple[Any, ...]:
        context = self._context
        if self._blank:
            filled = list(gradients)
            for i, shape, dtype, device in self._blank:
                filled[i] = operator("zeros")(shape, dtype=dtype, device=device)
            gradients = tuple(filled)
        context._runs_backward = True
        try:
            result = self._function._derivative()(context, *gradients)
        finally:
            context._runs_backward = False
        results = result if isinstance(result, tuple) else (result,)
        n = len(context.needs_input_grad)
        if len(results) < n or any(extra is not None for extra in results[n:]):
            raise RuntimeError(
                f"{self.__name__}: backward must return one gradient (or None) for each of the {n} "
                f"arguments of forward; got {len(results)}"
            )
        tensors = set(self._positions)
        for i, gradient in enumerate(results[:n]):
            if gradient is not None and i not in tensors:
                raise RuntimeError(
                    f"{self.__name__}: the gradient for argument {i} must be None, since the "
                    f"argument was not a tensor; got {type(gradient).__name__}"
                )
        if not _autograd.retains():
            context._saved = None if context._saved else []
        return tuple(results[i] for i in self._positions)


class Function:
    """An operator whose forward and backward are written in Python.

    Subclass it, write ``forward`` and ``backward`` as static methods, call ``apply``. Forward is
    not recorded; backward gets one gradient for each output (zeros where none arrived) and returns
    one gradient, or None, for each argument of forward. With ``create_graph=True`` the operators
    of backward are recorded, so that it can be differentiated in turn.

    Instead of a forward with ``ctx`` you may write ``forward(*args)`` and
    ``setup_context(ctx, inputs, output)``.

    The caller of the pass gets an exception of backward as the same object.

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

    _context_class: type[FunctionContext]
    generate_vmap_rule: bool = False
    """Read by `vmap` of PyTorch, which calls a function without a rule for its batch only if this
    is True; here forward, backward and jvp run in `vmap` as they are, whatever it is.
    """
    # called with the class and the arguments of each call: whether a rule of the class serves it
    _batcher: ClassVar[Callable[[type[Function], Any, Any], Any] | None] = None
    # called with the class, the outputs and the inputs of each recorded call
    _watcher: ClassVar[Callable[[type[Function], Any, Any], None] | None] = None
    # called before a pass of `backward`: it raises where that is not possible
    _backward_check: ClassVar[Callable[[], None] | None] = None

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the outputs: ``forward(ctx, *args)``, or no ctx with setup_context."""
        raise NotImplementedError("Function: a subclass must define forward as a static method")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Set up ``ctx`` for a forward that does not take it."""
        raise NotImplementedError

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """Return the gradient for each argument of forward."""
        raise NotImplementedError(
            "Function: a subclass must define backward as a static method to be differentiated"
        )

    @staticmethod
    def vjp(ctx: Any, *grad_outputs: Any) -> Any:
        """Another name for `backward`; define one of them."""
        raise NotImplementedError("Function: vjp is another name for backward")

    @classmethod
    def _derivative(cls) -> Callable[..., Any]:
        if cls.vjp is Function.vjp:
            return cls.backward
        if cls.backward is not Function.backward:
            raise RuntimeError(
                f"{cls.__name__}: backward and vjp are two names for one method; define one of them"
            )
        return cls.vjp

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """Return the tangent of each result of forward, from those of its arguments.

        It is called right after forward if an argument is a dual tensor (`forward_ad`).
        ``grad_inputs`` has one entry for each argument: zeros for a tensor without a tangent (None
        after ``set_materialize_grads(False)``), None for an argument that is not a tensor. Its
        operators are recorded if grad mode is on, so that tangents can be differentiated.

        Example:
            >>> import plait_core as pc, plait_autograd as pa
            >>> from plait_autograd import forward_ad
            >>> class Twice(pa.Function):
            ...     @staticmethod
            ...     def forward(ctx, x):
            ...         return x * 2
            ...     @staticmethod
            ...     def jvp(ctx, t):
            ...         return t * 2
            >>> with forward_ad.dual_level():
            ...     x = forward_ad.make_dual(pc.ones(2), pc.tensor([1.0, 3.0]))
            ...     forward_ad.unpack_dual(Twice.apply(x)).tangent.tolist()
            [2.0, 6.0]
        """
        raise NotImplementedError(
            "Function: a subclass must define jvp as a static method to be used with dual tensors"
        )

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *args: Any) -> Any:
        """Compute the outputs for all samples of a batch: a rule for `vmap`.

        Without it forward, backward and jvp run for all samples as they are. A rule is for a
        forward that leaves the tensors of this library, and for one that is faster by hand. It is
        recorded like any other code, not with the backward of this class: call `apply` of a
        function in it.

        Args:
            info: has the number of samples, ``batch_size``, and ``randomness``, as vmap got it.
            in_dims: for each argument the dimension of its samples; None for those that all
                samples share, and for what is no tensor.
            *args: the arguments of `apply`, with all samples.

        Returns:
            A pair: the outputs with all samples; the dimension of the samples in each output,
            or None, in a structure like theirs.

        Example:
            >>> import plait_core as pc, plait_autograd as pa
            >>> class Twice(pa.Function):
            ...     @staticmethod
            ...     def forward(x):
            ...         return x * 2
            ...     @staticmethod
            ...     def setup_context(ctx, inputs, output): ...
            ...     @staticmethod
            ...     def vmap(info, in_dims, x):
            ...         return Twice.apply(x), in_dims[0]
            >>> Twice.apply(pc.ones(2)).tolist()
            [2.0, 2.0]
        """
        raise NotImplementedError("Function: a subclass may define vmap as a static method")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run forward and record backward.

        Args:
            *args: passed to forward; tensors among them may get gradients, tensors inside of lists
                or dicts do not.
            **kwargs: passed to forward by name; for backward and jvp they follow the others, in the
                order of the call.

        Returns:
            The result of forward. An input that forward returns unchanged becomes a new tensor.
        """
        if cls.vmap is not Function.vmap and Function._batcher is not None:
            served = Function._batcher(cls, args, kwargs)
            if served is not NotImplemented:
                return served
        context = cls._new_context()
        names = tuple(kwargs)
        args = (*args, *kwargs.values()) if kwargs else args
        positions = [i for i, arg in enumerate(args) if _autograd.is_tensor(arg)]
        needs_grad = [False] * len(args)
        for i in positions:
            needs_grad[i] = _autograd.requires_grad(args[i])
        context.needs_input_grad = tuple(needs_grad)
        tangents = _function_forward.tangents(args)
        if tangents is not None and cls.jvp is Function.jvp:
            raise NotImplementedError(
                f"{cls.__name__}: a static method jvp must be defined to apply it to dual tensors "
                "(forward mode)"
            )
        # the inputs' histories are held before forward, which may write to their memory
        histories = {i: _autograd.hold(args[i]) for i in positions if needs_grad[i]}
        output = cls._quietly(context, args, names, tangents is not None)
        before = _autograd.is_grad_enabled()
        single = not isinstance(output, (tuple, list))
        raw = (output,) if single else tuple(output)
        inputs = tuple(args[i] for i in positions)
        if tangents is None and not (before and any(needs_grad)):
            return cls._apart(context, output, raw, inputs)
        outputs = cls._own(context, raw, list(inputs))
        gives = tuple(
            value if _autograd.is_tensor(value) and not _among(raw[i], context._constant) else None
            for i, value in enumerate(outputs)
        )
        if before and any(needs_grad):
            blank = tuple(
                (i, tuple(value.shape), value.dtype, value.device)
                for i, value in enumerate(outputs)
                if context._materialize and gives[i] is None and _autograd.is_tensor(value)
            )
            backward = _Backward(cls, context, positions, blank)
            cls._record(
                context, backward, [(args[i], histories.get(i, args[i])) for i in positions], gives
            )
        if tangents is not None:
            cls._carry(context, args, tangents, raw, outputs)
        # recording comes last, as it counts as a write to dirty tensors
        context._save(inputs, gives)
        return outputs[0] if single else _like(output, outputs)

    @staticmethod
    def _record(
        context: FunctionContext,
        backward: _Backward,
        inputs: list[tuple[Any, Any]],
        outputs: tuple[Any, ...],
    ) -> None:
        """Make backward the history of the outputs; each input comes with what held its history.

        The history of a view that forward wrote is part of its base's: an operator in place writes
        the view once more, from a copy whose history is the function's.
        """
        views = [value for value in outputs if _is_written_view(value, context._dirty)]
        copies = tuple(
            operator("clone")(_autograd.alias(value)) if _among(value, views) else value
            for value in outputs
        )
        sources = tuple(
            value if _among(value, context._dirty) and not _among(value, views) else history
            for value, history in inputs
        )
        context._node = _autograd.record(
            context._name, backward, sources, copies, not context._materialize
        )
        if Function._watcher is not None:
            Function._watcher(backward._function, copies, sources)
        for value, copy in zip(outputs, copies, strict=True):
            if value is not copy:
                operator("copy_")(value, copy)

    @classmethod
    def _new_context(cls) -> FunctionContext:
        """Return a context of the class that this function has for them."""
        kind = cls.__dict__.get("_context_class")
        if kind is None:
            members = {"__doc__": FunctionContext.__doc__, "__module__": cls.__module__}
            kind = type(f"{cls.__name__}Backward", (FunctionContext,), members)
            cls._context_class = kind
        context: FunctionContext = kind()
        context._name = kind.__name__
        return context

    @classmethod
    def _quietly(
        cls, context: FunctionContext, args: tuple[Any, ...], names: tuple[str, ...], dual: bool
    ) -> Any:
        """Run forward without recording and without forward mode."""
        before = _autograd.set_enabled(False)
        carrying = _autograd.carry_tangents(False) if dual else False
        try:
            return cls._run(context, args, names)
        finally:
            _autograd.set_enabled(before)
            if dual:
                _autograd.carry_tangents(carrying)

    @classmethod
    def _carry(
        cls,
        context: FunctionContext,
        args: tuple[Any, ...],
        tangents: tuple[Any, ...],
        raw: tuple[Any, ...],
        outputs: tuple[Any, ...],
    ) -> None:
        """Set the tangents of the outputs to those that jvp returns."""
        saved = context._to_save if context._to_save_for_jvp is None else context._to_save_for_jvp
        renewed = {id(old): new for old, new in zip(raw, outputs, strict=True)}
        arguments = {id(arg) for arg in args}
        context._for_jvp = tuple(
            value if id(value) in arguments else renewed.get(id(value), value) for value in saved
        )
        try:
            results = _function_forward.carry(cls, context, args, tangents, len(outputs))
        finally:
            context._for_jvp = context._to_save_for_jvp = None
        _function_forward.keep(cls.__name__, outputs, results, context._dirty, context._constant)

    @classmethod
    def _run(cls, context: FunctionContext, args: tuple[Any, ...], names: tuple[str, ...]) -> Any:
        n = len(args) - len(names)
        keywords = dict(zip(names, args[n:], strict=True))
        if cls.setup_context is Function.setup_context:
            return cls.forward(context, *args[:n], **keywords)
        output = cls.forward(*args[:n], **keywords)
        cls.setup_context(context, args, output)
        return output

    @staticmethod
    def _apart(
        context: FunctionContext, output: Any, raw: tuple[Any, ...], inputs: tuple[Any, ...]
    ) -> Any:
        """Return the result of forward when nothing is recorded, with new tensors for returned
        inputs.
        """
        same = [
            _autograd.is_tensor(value)
            and _among(value, inputs)
            and not _among(value, context._dirty)
            for value in raw
        ]
        if not any(same):
            return output
        new = tuple(
            _autograd.alias(value) if again else value
            for value, again in zip(raw, same, strict=True)
        )
        return _like(output, new) if isinstance(output, (tuple, list)) else new[0]

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
        """Return another tensor on the same bytes, whose history may become this function."""
        if _among(value, context._constant):
            return _autograd.alias(value)
        return _autograd.share(value)


def _like(output: Any, outputs: tuple[Any, ...]) -> Any:
    """Return the outputs in the container that forward returned: a tuple, a list, a named tuple."""
    make = getattr(type(output), "_make", type(output))
    return make(outputs)


def _is_written_view(value: Any, dirty: tuple[Any, ...]) -> bool:
    return (
        value is not None
        and _among(value, dirty)
        and (_autograd.is_floating(value) or _autograd.is_complex(value))
        and _autograd.is_view(value)
    )


def _among(value: Any, values: Any) -> bool:
    return any(value is other for other in values)


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a backward that cannot be differentiated itself, so that the attempt is an error.

    Args:
        backward: The static method `backward` of a `Function`.

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
        results = result if isinstance(result, tuple) else (result,)
        fresh = tuple(_autograd.alias(g) if _autograd.is_tensor(g) else g for g in results)

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
