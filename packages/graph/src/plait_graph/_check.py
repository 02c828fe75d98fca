"""Calls of frozen functions that are checked: the function itself runs as well."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any, NoReturn

import plait_autograd
import plait_core as pc
from plait_func.pytree import tree_flatten
from plait_graph._capture import Name, record
from plait_graph._differences import difference, difference_of_elements
from plait_graph._optimizers import OptimizerNumbers
from plait_graph._parts import Part, names_changed
from plait_graph._state import State

_thread = threading.local()
_UNDEFINED = ("empty", "new_empty", "resize_")  # operators whose results have any elements


def run_part(part: Part, inputs: list[pc.Tensor]) -> list[pc.Tensor]:
    """Run the program of a part; a check on this thread compares its values."""
    check: _Comparison | None = getattr(_thread, "comparison", None)
    if check is None:
        return part.program.run(inputs)
    return part.program.run(inputs, lambda node: check.see(part, node))


def run_checked(
    frozen: Any, args: tuple[Any, ...], kwargs: dict[str, Any], tensors: tuple[pc.Tensor, ...]
) -> Any:
    """Run a frozen function, and compare each value with that of the function itself.

    The function is called first, and recorded; then all that it changed is restored, and the
    program runs.

    Raises:
        RuntimeError: if the function makes other operator calls, or if an operator gives other
            values; everything is then as it was before the call.
    """
    roots = (*tensors, *frozen.recording.outside.values(), *frozen.reach.tensors)
    optimizers = [*frozen.reach.optimizers, *(step.optimizer for step in frozen.recording.steps)]
    state = State(roots, optimizers, frozen.reach.entries)
    try:
        with frozen.lock, _one_thread():
            frozen.bind_grads(frozen.distinct(tensors))
            comparison = _call(frozen, args, kwargs, tensors, state)
            state.restore()
            with comparison.on_this_thread():
                result = frozen.run_whole(tensors)
                _run_backward(frozen, tensors, result)
        comparison.end()
    except BaseException:
        state.restore()
        raise
    return result


def _call(
    frozen: Any, args: Any, kwargs: Any, tensors: tuple[pc.Tensor, ...], state: State
) -> _Comparison:
    """Call the function; return what the values of the program are compared with."""
    try:
        _, recording = record(
            frozen.function,
            args,
            kwargs,
            differentiate=plait_autograd.is_grad_enabled(),
            keeps_copies=True,
        )
    except Exception as error:
        state.restore()
        frozen.run_whole(tensors)  # which may raise the same
        _fail(f"the function raises {type(error).__name__}: {error}", error)
    if recording is None:
        _fail("its gradients are not those that one node can give")
    OptimizerNumbers(recording)
    problem = difference(frozen.recording, recording)
    if problem is not None:
        _fail(problem)
    return _Comparison(frozen.recording.n_forward, recording.capture.copies)


def _fail(text: str, cause: BaseException | None = None) -> NoReturn:
    text = f"compile: a checked call differs from what was recorded: {text}"
    raise RuntimeError(text) from cause


class _Comparison:
    """Values of a program, compared with those of the function, node by node."""

    def __init__(self, n_forward: int, copies: list[tuple[int, str, pc.Tensor]]) -> None:
        self._n_forward = n_forward
        self._expected = {(node, name): copy for node, name, copy in copies}
        self._problem: str | None = None

    def see(self, part: Part, index: int) -> None:
        """Compare what a node made or wrote to."""
        if self._problem is not None:
            return
        node = part.graph["nodes"][index]
        if node["op"].startswith(_UNDEFINED):
            return
        number = index + (self._n_forward if part.is_backward else 0)
        for name in sorted(names_changed(node)):
            value, copy = part.program.value(name), self._expected.get((number, name))
            if value is None or copy is None:
                continue  # the program keeps no such value
            problem = difference_of_elements(value, copy)
            if problem is not None:
                self._problem = f"{node['op']} (operator call {number}): its value {problem}"
                return

    @contextlib.contextmanager
    def on_this_thread(self) -> Iterator[None]:
        """See the programs that run on this thread."""
        _thread.comparison = self
        try:
            yield
        finally:
            _thread.comparison = None

    def end(self) -> None:
        """Raise if a value differed."""
        if self._problem is not None:
            _fail(self._problem)


def _run_backward(frozen: Any, tensors: tuple[pc.Tensor, ...], result: Any) -> None:
    """Run the derivative for the gradients with which it was recorded: ones."""
    recording = frozen.recording
    if not recording.gradients:
        return
    leaves = tree_flatten(result)[0]
    computed = [t for t, known in zip(leaves, recording.leaves, strict=True) if type(known) is Name]
    results = [t for t, name in zip(computed, recording.tangents, strict=True) if name]
    ones = [pc.ones_like(t) for t in results]
    sources = frozen.sources(frozen.distinct(tensors))
    plait_autograd.grad(results, sources, ones, retain_graph=True, allow_unused=True)


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    # as in captures: the engine runs derivatives on this thread, and sums have the same order
    threads = pc.get_num_threads()
    pc.set_num_threads(1)
    try:
        yield
    finally:
        pc.set_num_threads(threads)
