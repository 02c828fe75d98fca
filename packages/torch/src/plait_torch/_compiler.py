"""`torch.compile` and `torch.compiler`: calls that plait-graph compiles, where it is installed."""

from __future__ import annotations

import copy
import functools
import importlib.util
import threading
import types
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

import numpy

import plait
from plait.func.pytree import tree_map
from plait_torch import _named_only
from plait_torch._compiled_module import OptimizedModule

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "load_cache_artifacts",
    "nested_compile_region",
    "reset",
    "save_cache_artifacts",
    "set_stance",
    "substitute_in_graph",
    "wrap_numpy",
]

T = TypeVar("T")

exporting = threading.local()  # `now` is True during `torch.export.export`

_COMPILING = ("cudagraphs", "inductor")
# of these PyTorch says that they run operators one by one
_EAGER = ("eager", "eager_noexcept", "aot_eager", "aot_eager_decomp_partition")
_MODES = ("default", "lite", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


def _is_there() -> bool:
    """Return whether a package for graphs is installed."""
    return importlib.util.find_spec("plait_graph") is not None


def _compile(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return what calls a function, with Python running at each call."""
    import plait_graph

    compiled: Callable[..., Any] = plait_graph.compile(function)
    return compiled


class CompiledCall:
    """Calls of a function or a module, which are compiled from the first one on.

    Example:
        >>> from plait_torch._compiler import CompiledCall
        >>> CompiledCall(lambda x: x * 2)(3)
        6
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._run: Callable[..., Any] | None = None
        _calls.add(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if _stance == _FORCED:
            return self._function(*args, **kwargs)
        run = self._run
        if run is None:
            run = self._run = _compile(self._function)
        return run(*args, **kwargs)

    def __deepcopy__(self, memo: dict[int, Any]) -> CompiledCall:
        return CompiledCall(copy.deepcopy(self._function, memo))

    def __reduce__(self) -> Any:
        return CompiledCall, (self._function,)

    def forget(self) -> None:
        """Compile again at the next call."""
        self._run = None


_calls: weakref.WeakSet[CompiledCall] = weakref.WeakSet()
_stance = "default"
_STANCES = ("default", "eager_then_compile", "eager_on_recompile", "fail_on_recompile")
_FORCED = "force_eager"


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable[..., Any] = "inductor",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """Return a function whose calls are compiled, or a module in an `OptimizedModule`; without one,
    return a decorator that does so.

    Python runs at each call, so results, side effects and conditions are those of the function.
    The package plait-graph compiles; without it, and for a class or a builtin function, calls
    remain as they are.

    Args:
        model: a function or a module.
        fullgraph, dynamic, options: have no effect: a compiled function may do what the function
            does, for tensors of any sizes.
        backend: ``"inductor"`` and ``"cudagraphs"`` compile; ``"eager"`` and ``"aot_eager"`` do
            not.
        mode: one of PyTorch's. It has no effect.
        disable: return the function as it is.

    Raises:
        NotImplementedError: if `backend` is a function, which would get a graph of PyTorch.
        torch._dynamo.exc.InvalidBackend: if there is no backend of this name.
        RuntimeError: if there is no such mode, or with both `mode` and `options`.

    Example:
        >>> from plait_torch._compiler import compile
        >>> @compile(fullgraph=True)
        ... def double(x):
        ...     return x * 2
        >>> double(3)
        6
    """
    if mode is not None and options is not None:
        raise RuntimeError(
            "Either mode or options can be specified, but both can't be specified at the same time."
        )
    if mode not in (None, *_MODES):
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(_MODES)}")
    if not disable:
        _check_backend(backend)
    if model is None:
        return functools.partial(
            compile, backend=backend, mode=mode, options=options, disable=disable
        )
    if disable:
        return model
    runs = backend in _COMPILING and _is_there()
    if isinstance(model, plait.nn.Module):
        return OptimizedModule(model, CompiledCall if runs else None)
    if not callable(model):
        raise TypeError(
            f"torch.compile: a function or a module is required, got {type(model).__name__}"
        )
    if not runs or isinstance(model, (type, types.BuiltinFunctionType)):
        return model
    before = getattr(model, "_torchdynamo_orig_callable", model)
    if before is not model and isinstance(model, types.MethodType):
        before = types.MethodType(before, model.__self__)  # of a function that was compiled
    return _compiled_function(before)


def _check_backend(backend: Any) -> None:
    if callable(backend):
        name = getattr(backend, "__name__", type(backend).__name__)
        raise NotImplementedError(
            f"torch.compile: the backend {name} is a function, which would get a graph of PyTorch; "
            'plait has graphs of its own (plait_graph): use backend="inductor", or "eager"'
        )
    if backend not in (*_COMPILING, *_EAGER):
        known = ", ".join(map(repr, (*_COMPILING, *_EAGER)))
        errors = _named_only.__getattr__("_dynamo.exc")
        raise errors.InvalidBackend(f"Invalid backend: {backend!r}; plait has {known}")


def _compiled_function(function: Callable[..., Any]) -> Callable[..., Any]:
    call = CompiledCall(function)

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        return call(*args, **kwargs)

    run._torchdynamo_orig_callable = function  # type: ignore[attr-defined]
    run._call = call  # type: ignore[attr-defined]
    return run


def _compile_in_place(self: Any, *args: Any, **kwargs: Any) -> None:
    """Compile the module's calls of `forward`, with the arguments of `torch.compile`; its hooks run
    outside. A copy or a pickle of the module is not compiled.
    """
    result = compile(getattr(self, "_compiled_call_impl", None) or self.forward, *args, **kwargs)
    if getattr(result, "_torchdynamo_orig_callable", None) is not None:
        self.__dict__["forward"] = self.__dict__["_compiled_call_impl"] = result


_of_module: list[Any] = []


def bind() -> None:
    """Let `Module.compile` compile while `torch` means plait."""
    _of_module.append(plait.nn.Module.compile)
    plait.nn.Module.compile = _compile_in_place  # type: ignore[method-assign]


def unbind() -> None:
    """Undo `bind`."""
    plait.nn.Module.compile = _of_module.pop()  # type: ignore[method-assign]


def _same(obj: T, *args: Any, **kwargs: Any) -> T:
    return obj


def disable(fn: Any = None, recursive: bool = True, **kwargs: Any) -> Any:
    """Return the function unchanged; without one, return a decorator that does so."""
    return _same if fn is None else fn


allow_in_graph = assume_constant_result = _same


def nested_compile_region(fn: Any = None, **options: Any) -> Any:
    """Return the function unchanged; without one, return a decorator that does so."""
    return _same if fn is None else fn


def substitute_in_graph(original_fn: Callable[..., Any], **options: Any) -> Callable[[T], T]:
    """Return a decorator that changes nothing: Python runs the original function itself."""
    return _same


def wrap_numpy(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of tensors that calls a function of NumPy arrays.

    Args:
        fn: it gets the arrays of the tensors in its arguments; arrays in its result become tensors.

    Example:
        >>> import numpy, plait
        >>> from plait_torch._compiler import wrap_numpy
        >>> wrap_numpy(numpy.abs)(plait.tensor([-1.0, 2.0]))
        tensor([1., 2.])
    """

    @functools.wraps(fn)
    def run(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = tree_map(
            lambda each: each.numpy() if isinstance(each, plait.Tensor) else each, (args, kwargs)
        )
        return tree_map(
            lambda each: plait.from_numpy(each) if isinstance(each, numpy.ndarray) else each,
            fn(*args, **kwargs),
        )

    return run


def save_cache_artifacts() -> None:
    """Return None: nothing is compiled ahead that a file could keep."""


def load_cache_artifacts(serialized_artifacts: bytes) -> None:
    """Do nothing: there is no cache."""


def is_exporting() -> bool:
    """Return whether `torch.export.export` records a call on this thread."""
    return getattr(exporting, "now", False)


def is_dynamo_compiling() -> bool:
    """Return False: Python runs, and is not translated."""
    return False


is_compiling = is_exporting


def list_backends(exclude_tags: Any = ()) -> list[str]:
    """Return the names of backends that compile; without the package plait-graph there are none.

    Example:
        >>> from plait_torch._compiler import list_backends
        >>> list_backends() in ([], ["cudagraphs", "inductor"])
        True
    """
    return list(_COMPILING) if _is_there() else []


def reset() -> None:
    """Forget what was compiled; compiled functions are compiled again."""
    for call in list(_calls):
        call.forget()


def cudagraph_mark_step_begin() -> None:
    """Do nothing."""


class set_stance:  # noqa: N801 - PyTorch's name
    """Say how compiled functions run from now on, or as a context manager or a decorator.

    Args:
        stance: with ``"force_eager"`` they run as they are. ``"default"`` and PyTorch's other ones
            are the same here: a call that no program fits runs as it is.

    Example:
        >>> from plait_torch._compiler import set_stance
        >>> with set_stance("force_eager"):
        ...     pass
    """

    def __init__(self, stance: str = "default", **options: Any) -> None:
        if stance not in (*_STANCES, _FORCED):
            known = ", ".join((*_STANCES, _FORCED))
            raise RuntimeError(f"invalid torch.compile stance {stance!r}; there are {known}")
        global _stance
        self._stance, self._before = stance, _stance
        _stance = stance

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        global _stance
        _stance = self._before

    def __call__(self, function: Callable[..., T]) -> Callable[..., T]:
        global _stance
        _stance = self._before  # a decorator counts within the function

        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> T:
            with set_stance(self._stance):
                return function(*args, **kwargs)

        return run
