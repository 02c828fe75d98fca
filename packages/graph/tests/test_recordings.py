"""Recordings: the memory that they need, and how they end."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import plait_autograd as autograd
import plait_core as pc
import plait_nn as nn
from plait_graph import _capture, _graph, compile

VALUE = 8 << 20  # bytes


def resident() -> int:
    """Return the bytes of this process that are in memory."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
    except OSError:
        pytest.skip("/proc/self/statm is required")


def test_a_recording_keeps_no_value_that_nobody_else_holds() -> None:
    """Of 60 values three are in use at a time, in the function itself too."""
    most = 0

    def function(x: Any) -> Any:
        nonlocal most
        before = resident()
        for _ in range(60):
            x = x * 1.01
            most = max(most, resident() - before)
        return x

    compiled, x = compile(function, frozen=True), pc.randn(VALUE // 4)
    with autograd.no_grad():
        for _ in range(2):  # both are recordings
            compiled(x)
    assert most <= 1.5 * 3 * VALUE


def test_a_recording_of_a_step_needs_the_memory_of_the_step() -> None:
    """The function itself needs 13 values for the backward pass, and two gradients."""
    w = pc.randn(VALUE // 4).requires_grad_()
    growths = []

    def step(x: Any) -> Any:
        before = resident()
        y = x * w
        for _ in range(12):
            y = y.sigmoid()
        w.grad = None
        y.sum().backward()
        growths.append(resident() - before)
        return y.detach().sum()

    compiled, x = compile(step, frozen=True), pc.randn(VALUE // 4)
    for _ in range(2):
        compiled(x)
    assert len(growths) == 2
    assert max(growths) <= 1.5 * 15 * VALUE


def test_names_of_values_that_are_gone_name_no_others() -> None:
    """Memory of a value that nobody holds is used again, by values with the same shape."""

    def function(x: Any) -> Any:
        total = x
        for i in range(20):
            total = total + (x * i).reshape(-1).reshape(x.shape)
            (x - i).abs()
        return total

    x = pc.randn(1 << 19)
    compiled = compile(function, frozen=True)
    with autograd.no_grad():
        expected = function(x)
        for _ in range(4):
            assert pc.equal(compiled(x), expected)
    (graph,) = compiled.graphs()
    results = [name for node in graph.nodes for name in node.outputs if name is not None]
    assert len(set(map(str, results))) == len(results)


def test_results_of_a_call_before_are_still_noticed() -> None:
    kept: list[Any] = []

    def function(x: Any) -> Any:
        y = x * 2
        if kept:
            y = y + kept[-1]
        kept.append(y)
        return y

    compiled = compile(function, frozen=True)
    x = pc.randn(1 << 19)
    with autograd.no_grad():
        for _ in range(4):
            compiled(x)
        with pytest.raises(RuntimeError, match="reads a tensor that an earlier call computed"):
            compiled(x)


class Interrupt(BaseException):
    """As that of a signal's handler."""


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_exception_of_a_signal_ends_a_recording() -> None:
    """Handlers of signals run, and raise, where functions begin and where calls of C return."""
    folder = str(Path(_capture.__file__).parent)
    model, x = nn.Linear(3, 3), pc.randn(2, 3)
    threads = pc.get_num_threads()
    count = 0

    def profile(frame: Any, event: str, arg: Any) -> None:
        nonlocal count
        if event in {"call", "c_return"} and frame.f_code.co_filename.startswith(folder):
            count -= 1
            if count == 0:
                raise Interrupt

    at, before, has_ended = 0, sys.getprofile(), False
    while not has_ended:
        at += 1
        count, compiled = at, compile(model, frozen=True)
        sys.setprofile(profile)
        try:
            compiled(x)
            has_ended = True
        except Interrupt:
            pass
        finally:
            sys.setprofile(before)
        assert _graph.current_capture() is None
        assert pc.get_num_threads() == threads
        assert autograd.is_grad_enabled()
    assert at > 100
    with autograd.no_grad():
        for _ in range(3):
            assert pc.equal(compiled(x), model(x))
