"""Probes: their counts, and the initial content of the memory of kernels' results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plait_abi

pytestmark = pytest.mark.usefixtures("probe")
POISON = np.frombuffer(b"\x5b" * 8)[0]


def values(result: Any) -> list[Any]:
    return list(np.from_dlpack(result).tolist())


def add(*args: Any, **kwargs: Any) -> Any:
    return plait_abi.operator("probe_add")(*args, **kwargs)


def kernel_of(module: str, function: Callable[..., Any]) -> plait_abi.Kernel:
    """Register a function as the kernel of another module."""
    function.__module__ = module
    return plait_abi.kernel("probe_add", function)


def test_calls_are_counted_by_outcome() -> None:
    answers: list[Any] = [NotImplemented, None]

    def kernel(x: Any, y: Any, alpha: Any, out: Any) -> Any:
        answer = answers.pop(0)
        if answer is None:
            np.from_dlpack(out)[...] = 7
        return answer

    def fails(*args: Any) -> Any:
        if args[1] == 5:
            raise KeyError("five")
        return kernel(*args)

    with kernel_of("one", fails), plait_abi.Probe("probe_add", "one") as probe:
        assert values(add(np.arange(2.0), 1)) == [1, 2]
        assert values(add(np.arange(2.0), 1)) == [7, 7]
        with pytest.raises(KeyError, match="five"):
            add(np.arange(2.0), 5)
        assert probe.counts == (3, 1, 1, 1, 1, 0)
        assert repr(probe) == "<probe of one for probe_add>"
    assert values(add(np.arange(2.0), 5)) == [5, 6]
    assert probe.counts.calls == 3


def test_results_are_poisoned_before_kernels_are_called() -> None:
    seen: list[Any] = []

    def kernel(x: Any, y: Any, alpha: Any, out: Any) -> None:
        seen.append(np.from_dlpack(out).tolist())

    targets = np.ones((2, 6))
    with kernel_of("one", kernel), plait_abi.Probe("probe_add", "one") as probe:
        add(np.zeros((2, 3)), 1.0)
        add(np.zeros((2, 3)), 1.0, out=targets[:, ::-2])
    assert seen == [[[POISON] * 3] * 2] * 2
    assert targets.tolist() == [[1, POISON] * 3] * 2, "memory between the results is unchanged"
    assert probe.counts == (2, 2, 0, 0, 2, 2)


def test_memory_of_arguments_is_unchanged() -> None:
    x = np.arange(3.0)
    with plait_abi.Probe("probe_add", "probe") as probe:
        plait_abi.operator("probe_add_")(x, 1.0)
    assert x.tolist() == [1, 2, 3]
    assert probe.counts == (1, 1, 0, 0, 0, 0)


def test_kernels_are_called_in_their_order() -> None:
    def kernel(x: Any, y: Any, alpha: Any, out: Any) -> Any:
        if y == 1:
            return NotImplemented
        np.from_dlpack(out)[...] = 7
        return None

    with kernel_of("one", kernel), plait_abi.Probe("probe_add", "probe") as hidden:
        assert values(add(np.arange(2.0), 2)) == [7, 7]
        assert hidden.counts.calls == 0
        assert values(add(np.arange(2.0), 1)) == [1, 2]
        assert hidden.counts.calls == hidden.counts.accepted == 1


def test_an_unwritten_part_does_not_hold_an_old_result() -> None:
    def kernel(x: Any, y: Any, alpha: Any, out: Any) -> None:
        np.from_dlpack(out)[0] = 7

    with kernel_of("one", kernel), plait_abi.Probe("probe_add", "one") as probe:
        assert values(add(np.arange(2.0), 2)) == [7, POISON]
        assert probe.counts.untouched == 0


def test_two_probes_and_closing_twice() -> None:
    first = plait_abi.Probe("probe_add", "probe")
    second = plait_abi.Probe("probe_add", "probe")
    add(np.arange(2.0), 2)
    first.close()
    first.close()
    add(np.arange(2.0), 2)
    second.close()
    add(np.arange(2.0), 2)
    assert (first.counts.calls, second.counts.calls) == (1, 2)


def test_the_error_names_a_missing_operator_or_provider() -> None:
    with pytest.raises(AttributeError, match="no operator named nothing"):
        plait_abi.Probe("nothing", "probe")
    with pytest.raises(ValueError, match="no kernel of probe_add for 'cpu' is provided by nobody"):
        plait_abi.Probe("probe_add", "nobody")
    with pytest.raises(ValueError, match="for 'cuda' is provided by probe"):
        plait_abi.Probe("probe_add", "probe", "cuda")
    with pytest.raises(TypeError, match="device"):
        plait_abi.Probe("probe_add", "probe", 3.5)
