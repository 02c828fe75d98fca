"""Calls of frozen functions that are checked: the function itself runs as well."""

from __future__ import annotations

import contextlib
import threading
from collections import defaultdict
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
    state = State(roots, frozen.reach.optimizers, frozen.reach.entries)
    try:
        with frozen.lock, _one_thread():
            frozen.bind_grads(frozen.distinct(tensors))
            comparison = _call(frozen, args, kwargs)
            state.restore()
            with comparison.on_this_thread():
                result = frozen.run_whole(tensors)
                _run_backward(frozen, tensors, result)
        comparison.end()
    except BaseException:
        state.restore()
        raise
    return result


def _call(frozen: Any, args: Any, kwargs: Any) -> _Comparison:
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
        raise RuntimeError(
            "compile: a checked call differs from what was recorded: the function raises "
            f"{type(error).__name__}: {error}"
        ) from error
    if recording is None:
        _fail("its gradients are not those that one node can give")
    OptimizerNumbers(recording)
    problem = difference(frozen.recording, recording)
    if problem is not None:
        _fail(problem)
    return _Comparison(frozen.recording.n_forward, recording.capture.copies)


def _fail(text: str) -> NoReturn:
    raise RuntimeError(f"compile: a checked call differs from what was recorded: {text}")


class _Comparison:
    """Values of a program, compared with those of the function, node by node."""

    def __init__(self, n_forward: int, copies: list[tuple[str, pc.Tensor]]) -> None:
        self._n_forward = n_forward
        self._expected: dict[str, list[pc.Tensor]] = defaultdict(list)  # in their order
        for name, copy in copies:
            self._expected[name].append(copy)
        self._counts: dict[str, int] = defaultdict(int)
        self._problem: str | None = None

    def see(self, part: Part, index: int) -> None:
        """Compare what a node made or wrote to."""
        if self._problem is not None:
            return
        node = part.graph["nodes"][index]
        for name in sorted(names_changed(node)):
            value, copies = part.program.value(name), self._expected[name]
            count = self._counts[name]
            self._counts[name] += 1
            if value is None or count >= len(copies):
                continue  # the program has no such value, by a pass
            problem = difference_of_elements(value, copies[count])
            if problem is not None:
                number = index + (self._n_forward if part.is_backward else 0)
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
