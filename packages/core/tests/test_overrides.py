"""`plait_core.overrides`: who is asked about calls, in which order, and what is asked about."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

import plait_core as pc
from plait_core import overrides

OFF = "nobody"
asked: list[tuple[str, tuple[str, ...]]] = []


def handler(function: Any, asking: tuple[Any, ...], args: Any, kwargs: Any) -> Any:
    name = getattr(getattr(function, "__self__", None), "__name__", None) or function.__name__
    asked.append((name, tuple(type(each).__name__ for each in asking)))
    for each in asking:
        answer = type(each).__asked__(function, args, kwargs)
        if answer is not NotImplemented:
            return answer
    return NotImplemented


class Sub(pc.Tensor):
    @staticmethod
    def __asked__(function: Any, args: Any, kwargs: Any) -> Any:
        with overrides.asked(overrides.MODES):
            return function(*args, **kwargs)


class SubSub(Sub):
    pass


class Quiet(pc.Tensor):
    __asked__ = OFF


class Foreign:
    @staticmethod
    def __asked__(function: Any, args: Any, kwargs: Any) -> Any:
        return "foreign"


@pytest.fixture(autouse=True)
def protocol() -> Iterator[None]:
    overrides.set_protocol("__asked__", handler, OFF)
    asked.clear()
    yield
    overrides.set_protocol(None)


def names() -> list[str]:
    result = [name for name, _ in asked]
    asked.clear()
    return result


def test_operators_ask_arguments_of_other_classes() -> None:
    x = pc.ones(2).as_subclass(Sub)
    assert pc.relu(x).tolist() == [1, 1] and x.sum().item() == 2
    assert names() == ["relu", "sum"]
    assert pc.relu(pc.ones(2)).tolist() == [1, 1] and pc.relu(pc.ones(2).as_subclass(Quiet))[0] == 1
    assert not asked
    assert pc.relu(Foreign()) == "foreign"
    assert pc.cat([pc.ones(1), Foreign()]) == "foreign"
    assert pc.clamp(pc.ones(1), min=Foreign()) == "foreign"
    assert names() == ["relu", "cat", "clamp"]


def test_subclasses_are_called_before_their_bases() -> None:
    x, y = pc.ones(2).as_subclass(Sub), pc.ones(2).as_subclass(SubSub)
    pc.stack([x, y, x, pc.ones(2)])
    assert asked == [("stack", ("SubSub", "Sub"))]
    assert overrides.asking([x, 3, y, x]) == (y, x)


def test_python_operators_ask_about_methods() -> None:
    x = pc.tensor([4, 6]).as_subclass(Sub)
    results = [x + 1, 1 + x, x - 1, 1 - x, x // 4, 13 // x, x & 2, 2 & x, -x, abs(x), ~x, +x, x < 5]
    assert [r.tolist() for r in results] == [
        [5, 7], [5, 7], [3, 5], [-3, -5], [1, 1], [3, 2], [0, 2], [0, 2], [-4, -6], [4, 6],
        [-5, -7], [4, 6], [True, False],
    ]  # fmt: skip
    assert names()[:13] == [
        "add", "add", "sub", "__rsub__", "__floordiv__", "__rfloordiv__", "__and__", "bitwise_and",
        "neg", "abs", "__invert__", "positive", "lt",
    ]  # fmt: skip
    x += 1
    assert x.tolist() == [5, 7] and type(x) is Sub
    assert names() == ["add_", "tolist"]
    assert pc.ones(2) + Foreign() == "foreign" and names() == ["add"]


def test_a_type_error_lets_python_ask_the_other_operand() -> None:
    class Refusing(pc.Tensor):
        @staticmethod
        def __asked__(function: Any, args: Any, kwargs: Any) -> Any:
            raise TypeError("no")

    class Right:
        def __radd__(self, other: Any) -> str:
            return "right"

    x = pc.ones(1).as_subclass(Refusing)
    assert x + Right() == "right"
    with pytest.raises(TypeError, match="unsupported operand"):
        x + "text"


def test_attributes_methods_and_slots_ask() -> None:
    x = pc.zeros(2, 3).as_subclass(Sub)
    assert x.shape == (2, 3) and x.T.shape == (3, 2) and x.size(0) == 2 and x.numel() == 6
    assert names() == ["shape", "T", "size", "numel"]
    assert len(x) == 2 and not x[0, 0] and float(x[1, 2]) == 0 and 0 in x and x.is_contiguous()
    assert {"__len__", "__getitem__", "__contains__", "is_contiguous"} <= set(names())
    x[0] = 1
    x.data = pc.ones(1)
    assert x.tolist() == [1]
    assert names() == ["__setitem__", "data", "tolist"]
    assert int(x) == 1 and bool(x) and x.view(1, 1).item() == 1
    assert names()[:3] == ["__int__", "__bool__", "view"]
    assert [type(each) for each in x] == [pc.Tensor]


def test_asking_can_be_switched_off_for_a_thread() -> None:
    x = pc.ones(2).as_subclass(Sub)
    with overrides.asked(overrides.NOBODY):
        assert (x + x).tolist() == [2, 2] and x.shape == (2,) and not overrides.asking([x])
        with overrides.asked(overrides.EVERYBODY):
            assert not overrides.asking([x])
        thread = threading.Thread(target=lambda: x + 1)
        thread.start()
        thread.join()
    assert names() == ["add"]


def test_modes_see_every_call() -> None:
    x = pc.ones(2)
    assert overrides.count_modes(1) == 1
    try:
        y = x * 2 - pc.zeros(2)
        assert y.shape == (2,) and y[0] == 2 and -y[0] < 0
        with overrides.asked(overrides.NOBODY):
            assert y.sum() == 4
    finally:
        assert overrides.count_modes(-1) == 0
    result = names()  # an operator that nobody answers asks once more
    assert [name for i, name in enumerate(result) if result[i - 1] != name][:6] == [
        "mul", "zeros", "sub", "shape", "__getitem__", "__eq__",
    ]  # fmt: skip
    assert (x * 2).shape == (2,) and not asked


def test_errors_of_called_classes_are_raised() -> None:
    class Failing(pc.Tensor):
        @staticmethod
        def __asked__(function: Any, args: Any, kwargs: Any) -> Any:
            raise KeyError("failed")

    x = pc.ones(1).as_subclass(Failing)
    for call in (
        lambda: x + 1, lambda: x.shape, lambda: x[0], lambda: len(x), lambda: x.item(),
        lambda: pc.relu(x), lambda: bool(x), lambda: -x, lambda: x.view(1), lambda: 0 in x,
        lambda: setattr(x, "grad", None), lambda: x.__setitem__(0, 1),
    ):  # fmt: skip
        with pytest.raises(KeyError, match="failed"):
            call()
    with pytest.raises(TypeError):
        overrides.set_protocol("name", 3)


def test_classes_that_change_are_looked_at_again() -> None:
    class Late(pc.Tensor):
        pass

    x = pc.ones(1).as_subclass(Late)
    assert (x + 1).tolist() == [2]
    Late.__asked__ = staticmethod(lambda function, args, kwargs: "now")  # type: ignore[attr-defined]
    assert x + 1 == "now"
    overrides.set_protocol(None)
    assert (x + 1).tolist() == [2]


def test_as_subclass_keeps_the_history() -> None:
    pytest.importorskip("plait_autograd")
    x = pc.ones(2, requires_grad=True)
    y = (x * 3).as_subclass(Quiet) * 2
    y.sum().backward()
    assert x.grad is not None and x.grad.tolist() == [6, 6]
    z = x.as_subclass(Quiet)
    assert z.requires_grad and not z.is_leaf and pc.ones(1).as_subclass(Quiet).is_leaf
    with pytest.raises(TypeError, match="derived from Tensor"):
        x.as_subclass(int)


# ---- the layer


class Seen(pc.Tensor):
    __seen__ = True


@pytest.fixture
def calls() -> Iterator[list[Any]]:
    results: list[Any] = []

    def see(name: str, form: int, args: Any, targets: Any) -> Any:
        results.append((name, form, len(args), len(targets)))
        if name == "sqrt":
            return args[0]
        return Ellipsis if name == "linear" else NotImplemented

    overrides.set_layer(see, "__seen__")
    yield results
    overrides.watch_thread(False)
    overrides.set_layer(None, "__seen__")


def test_a_layer_sees_calls_of_its_thread(calls: list[Any]) -> None:
    x = pc.ones(2)
    assert not overrides.watch_thread(True)
    y = x + 1
    y.mul_(2)
    pc.add(x, x, out=y)
    assert y.sqrt() is y and (x * 0).tolist() == [0, 0]
    overrides.unseen(pc.relu, x)
    thread = threading.Thread(target=lambda: x + 1)
    thread.start()
    thread.join()
    assert overrides.watch_thread(False)
    x + 1
    assert [each[:2] for each in calls] == [
        ("add", 0), ("mul", 1), ("add", 2), ("sqrt", 0), ("mul", 0),
    ]  # fmt: skip
    assert [each[3] for each in calls] == [0, 1, 1, 0, 0]


def test_a_layer_sees_calls_on_its_classes(calls: list[Any]) -> None:
    x = pc.ones(2).as_subclass(Seen)
    pc.ones(2) + 1
    pc.ones(2) * x
    assert [each[0] for each in calls] == ["mul"]


def test_a_layer_sees_backward_passes_and_parts(calls: list[Any]) -> None:
    pytest.importorskip("plait_autograd")
    abi = pytest.importorskip("plait_abi")
    x, w = pc.ones(2, 3), pc.ones(4, 3, requires_grad=True)
    overrides.watch_thread(True)
    y = abi.operator("linear")(x, w, None)
    forward = [each[0] for each in calls]
    y.sum().backward()
    overrides.watch_thread(False)
    assert {"linear", "mm", "t"} <= set(forward) and len(calls) > len(forward)
    assert w.grad is not None and w.grad.tolist() == [[2.0] * 3] * 4


def test_results_of_a_layer_are_checked() -> None:
    answers: dict[str, Any] = {"relu": 3, "topk": (pc.ones(1),), "neg": None}
    overrides.set_layer(lambda name, *rest: answers.get(name, NotImplemented), "__seen__")
    overrides.watch_thread(True)
    x = pc.ones(2)
    try:
        for call in (lambda: x.relu(), lambda: x.topk(1)):
            with pytest.raises((TypeError, ValueError)):
                call()
        assert x.neg() is None
    finally:
        overrides.watch_thread(False)
        overrides.set_layer(None, "__seen__")
    with pytest.raises(TypeError):
        overrides.set_layer(3, "__seen__")  # type: ignore[arg-type]
