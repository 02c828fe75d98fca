"""Settings of the engine of PyTorch that programs make, and what they ask of its profiler."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import plait
from plait_torch._autocast import (
    set_autocast_dtype as set_autocast_dtype,
    set_autocast_enabled as set_autocast_enabled,
)
from plait_torch._jit import ScriptFunction, ScriptModule, fork, wait
from plait_torch._zip_records import PyTorchFileReader, PyTorchFileWriter

__all__ = [
    "DeviceObjType",
    "PyTorchFileReader",
    "PyTorchFileWriter",
    "ScriptFunction",
    "ScriptModule",
    "autocast_decrement_nesting",
    "autocast_increment_nesting",
    "clear_autocast_cache",
    "cond",
    "fork",
    "is_autocast_cache_enabled",
    "is_distributed",
    "lobpcg",
    "set_anomaly_enabled",
    "set_autocast_cache_enabled",
    "set_autocast_cpu_dtype",
    "set_autocast_cpu_enabled",
    "set_autocast_dtype",
    "set_autocast_enabled",
    "set_autocast_gpu_dtype",
    "wait",
    "while_loop",
]

DeviceObjType = plait.device
_state = {"nesting": 0, "cache": True}


def autocast_increment_nesting() -> int:
    """Count one region of `autocast` more; return their number."""
    _state["nesting"] += 1
    return _state["nesting"]


def autocast_decrement_nesting() -> int:
    """Count one region of `autocast` less; return their number."""
    _state["nesting"] -= 1
    return _state["nesting"]


def clear_autocast_cache() -> None:
    """Do nothing: each call casts for itself, and nothing is kept."""


def is_autocast_cache_enabled() -> bool:
    """Return the flag of `set_autocast_cache_enabled`."""
    return bool(_state["cache"])


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Store the flag only: nothing is kept."""
    _state["cache"] = bool(enabled)


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """Begin or end a region of `autocast` for the CPU."""
    set_autocast_enabled("cpu", enabled)


def set_autocast_cpu_dtype(dtype: Any) -> None:
    """Set the dtype of regions of the CPU."""
    set_autocast_dtype("cpu", dtype)


def set_autocast_gpu_dtype(dtype: Any) -> None:
    """Set the dtype of regions of CUDA devices."""
    set_autocast_dtype("cuda", dtype)


def set_anomaly_enabled(mode: bool, check_nan: bool = True) -> None:
    """Turn on or off that backward passes name the operator whose derivative failed.

    Example:
        >>> import plait
        >>> from plait_torch._engine_settings import set_anomaly_enabled
        >>> set_anomaly_enabled(True)
        >>> plait.is_anomaly_enabled()
        True
        >>> set_anomaly_enabled(False)
    """
    plait.autograd.set_detect_anomaly(mode, check_nan)


def is_distributed(input: Any) -> bool:
    """Return False: tensors are whole."""
    return False


def cond(
    pred: Any,
    true_fn: Callable[..., Any],
    false_fn: Callable[..., Any],
    operands: Sequence[Any] = (),
) -> Any:
    """Return ``true_fn(*operands)`` if the condition is true, else ``false_fn(*operands)``.

    Example:
        >>> import plait
        >>> from plait_torch._engine_settings import cond
        >>> cond(plait.tensor(True), lambda x: x + 1, lambda x: x - 1, (plait.zeros(1),))
        tensor([1.])
    """
    if (of_graphs := _of_graphs("cond", operands)) is not None:
        return of_graphs(pred, true_fn, false_fn, tuple(operands))
    return (true_fn if pred else false_fn)(*operands)


def _of_graphs(name: str, values: Sequence[Any]) -> Any:
    """Return a function of plait-graph, if a program uses that and the values are tensors: graphs
    record it.
    """
    if not values or any(isinstance(value, (bool, int, float)) for value in values):
        return None
    return getattr(sys.modules.get("plait_graph"), name, None)


def while_loop(
    cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Sequence[Any]
) -> tuple[Any, ...]:
    """Return the values after ``body_fn``, which is called as long as ``cond_fn`` is true.

    Example:
        >>> from plait_torch._engine_settings import while_loop
        >>> while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, 2 * x), (0, 1))
        (3, 8)
    """

    def body(*values: Any) -> tuple[Any, ...]:
        result = body_fn(*values)
        return tuple(result) if isinstance(result, (tuple, list)) else (result,)

    values = tuple(carried_inputs)
    if (of_graphs := _of_graphs("while_loop", values)) is not None:
        result: tuple[Any, ...] = of_graphs(cond_fn, body, values)
        return result
    while cond_fn(*values):
        values = body(*values)
    return values


def lobpcg(
    A: Any,
    k: int | None = None,
    B: Any = None,
    X: Any = None,
    n: int | None = None,
    iK: Any = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    **options: Any,
) -> tuple[Any, Any]:
    """Return the `k` largest (or smallest) eigenvalues of ``A x = lambda B x`` and their vectors.

    PyTorch iterates. Plait computes the whole decomposition of the symmetric matrix and cuts it, so
    the result is exact and takes the time of `linalg.eigh`; what steers the iteration has no
    effect.

    Example:
        >>> import plait
        >>> from plait_torch._engine_settings import lobpcg
        >>> values, vectors = lobpcg(plait.eye(4) * plait.arange(1.0, 5), k=2)
        >>> values
        tensor([4., 3.])
    """
    k = (1 if X is None else X.shape[-1]) if k is None else k
    matrix = A.to_dense() if A.layout != plait.strided else A
    if X is None:  # the numbers that an iteration would begin with
        plait.randn(*matrix.shape[:-1], k, dtype=matrix.dtype)
    if B is None:
        values, vectors = plait.linalg.eigh(matrix)
    else:
        lower = plait.linalg.cholesky(B)
        half = plait.linalg.solve_triangular(lower, matrix, upper=False)
        whole = plait.linalg.solve_triangular(lower, half.mT, upper=False)
        values, vectors = plait.linalg.eigh((whole + whole.mT) / 2)
        vectors = plait.linalg.solve_triangular(lower.mT, vectors, upper=True)
    if largest is False:
        return values[..., :k], vectors[..., :k]
    return values[..., -k:].flip(-1), vectors[..., -k:].flip(-1)
