"""The parts of `torch._dynamo` that programs use: settings, and functions besides `compile`."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import ModuleType, SimpleNamespace
from typing import Any

from plait_torch._compiled_module import OptimizedModule
from plait_torch._compiler import (
    allow_in_graph,
    assume_constant_result,
    compile,
    disable,
    is_compiling,
    list_backends,
    reset,
)

__all__ = [
    "cudagraph_mark_step_begin",
    "OptimizedModule",
    "TransformGetItemToIndex",
    "allow_in_graph",
    "assume_constant_result",
    "config",
    "counters",
    "disable",
    "disable_cache_limit",
    "graph_break",
    "is_compile_supported",
    "is_dynamo_supported",
    "is_inductor_supported",
    "is_compiling",
    "mark_dynamic",
    "mark_static",
    "mark_static_address",
    "mark_unbacked",
    "maybe_enable_compiled_autograd",
    "maybe_mark_dynamic",
    "list_backends",
    "optimize",
    "reset",
]

config = ModuleType("torch._dynamo.config", "Settings of PyTorch's compiler, which have no effect.")
# the values of PyTorch 2.13, which programs read before they change them
config.__dict__.update(
    accumulated_cache_size_limit=256,
    accumulated_recompile_limit=256,
    automatic_dynamic_shapes=True,
    cache_size_limit=8,
    capture_dynamic_output_shape_ops=False,
    capture_scalar_outputs=False,
    coordinate_descent_check_all_directions=False,
    coordinate_descent_tuning=False,
    cse=True,
    donated_buffer=True,
    force_fuse_int_mm_with_mul=False,
    freezing=False,
    fx_graph_cache=True,
    inline_inbuilt_nn_modules=True,
    optimize_ddp=True,
    recompile_limit=8,
    reorder_for_compute_comm_overlap=False,
    skip_fwd_side_effects_in_bwd_under_checkpoint=False,
    suppress_errors=False,
    triton=SimpleNamespace(cudagraphs=False, unique_kernel_names=True),
    use_duck_shape=True,
    verbose=False,
)
# what PyTorch's compiler counts, by the kind of event: nothing is compiled by it
counters: defaultdict[str, Counter[str]] = defaultdict(Counter)


@contextmanager
def _patch(arg: Any = None, value: Any = None, **changes: Any) -> Iterator[None]:
    """A context manager and decorator that changes settings: ``patch("name", value)``,
    ``patch({"name": value})`` or ``patch(name=value)``.

    Example:
        >>> from plait_torch._dynamo import config
        >>> config.cache_size_limit = 8
        >>> with config.patch(cache_size_limit=1):
        ...     config.cache_size_limit
        1
        >>> config.cache_size_limit
        8
    """
    argument = {arg: value} if isinstance(arg, str) else dict(arg or {})
    argument.update(changes)
    settings = config.__dict__
    before = {name: settings[name] for name in argument if name in settings}
    settings.update(argument)
    try:
        yield
    finally:
        for name in argument:
            settings.pop(name, None)
        settings.update(before)


config.__dict__["patch"] = _patch


def cudagraph_mark_step_begin() -> None:
    """Do nothing: there are no graphs of CUDA whose results a new step could overwrite."""


def graph_break() -> None:
    """Do nothing."""


def mark_dynamic(tensor: Any, index: Any = None, **kwargs: Any) -> None:
    """Do nothing."""


def mark_static_address(t: Any, guard: bool = True) -> None:
    """Do nothing."""


maybe_mark_dynamic = mark_static = mark_unbacked = mark_dynamic


def maybe_enable_compiled_autograd(
    should_enable: bool, fullgraph: bool = True, dynamic: bool = True
) -> nullcontext[None]:
    """Return a context manager in which backward passes are not compiled.

    Raises:
        NotImplementedError: if they should be.
    """
    if should_enable:
        raise NotImplementedError(
            "torch._dynamo.utils.maybe_enable_compiled_autograd: plait does not compile backward "
            "passes; call it with should_enable=False"
        )
    return nullcontext()


def disable_cache_limit() -> Any:
    """Return a context manager without a limit to compilations of a function, as it is here."""
    return _patch(recompile_limit=2**31, accumulated_recompile_limit=2**31)


def _never() -> bool:
    """Return False: there is no Inductor, which writes kernels from graphs."""
    return False


def is_compile_supported(device_type: Any) -> bool:
    """Return False: there is no Dynamo for any type of device."""
    return False


def is_dynamo_supported() -> bool:
    """Return True: `torch.compile` is there; tests of libraries that use it ask for Dynamo."""
    return True


is_inductor_supported = _never


class TransformGetItemToIndex(nullcontext[None]):
    """Does nothing, as in `vmap`, which is a loop, 0-d tensors can be indices."""


def optimize(
    backend: Any = "inductor", *, nopython: bool = False, disable: bool = False, **options: Any
) -> Any:
    """Return a decorator that is `torch.compile` with this backend.

    Example:
        >>> from plait_torch._dynamo import optimize
        >>> optimize("eager")(len) is len
        True
    """
    return compile(backend=backend, fullgraph=nopython, disable=disable)
