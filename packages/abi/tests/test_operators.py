"""Tests of binding arguments: schemas, overloads, forms, errors, overrides."""

from __future__ import annotations

import ctypes
import inspect
import math
import pickle
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest

import plait_abi

pytestmark = pytest.mark.usefixtures("probe")


def values(result: Any) -> list[Any]:
    return np.from_dlpack(result).tolist()


def op(name: str) -> plait_abi.Operator:
    return plait_abi.operator("probe_" + name)


@pytest.fixture
def x() -> np.ndarray:
    return np.arange(3.0)


def echo(*args: Any, **kwargs: Any) -> dict[str, tuple[int, int]]:
    names = "abcdefghijkl"
    pairs = np.from_dlpack(op("echo")(*args, **kwargs)).reshape(-1, 2)
    return {name: tuple(pair) for name, pair in zip(names, pairs.tolist(), strict=True)}


NONE, BOOL, INT, FLOAT, COMPLEX, INTS, FLOATS, TENSORS, STRING, DTYPE, DEVICE, OBJECT = (
    0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12,
)  # fmt: skip


def test_defaults_are_filled_in() -> None:
    got = echo(1, 2, 3)
    assert got["d"] == (BOOL, 0)
    assert got["e"][0] == INTS
    assert [got[name] for name in "fghijkl"] == [(NONE, 0)] * 7


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, (BOOL, 1)),
        (np.bool_(True), (BOOL, 1)),
        (7, (INT, 7)),
        (np.int16(7), (INT, 7)),
        (1.5, (FLOAT, 3)),
        (np.float32(1.5), (FLOAT, 3)),
        (2 + 3j, (COMPLEX, 32)),
        (np.complex64(2 + 3j), (COMPLEX, 32)),
    ],
)
def test_scalar_keeps_its_kind(value: object, expected: tuple[int, int]) -> None:
    assert echo(value, 0, 0)["a"] == expected


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("b", np.int64(4), (INT, 4)),
        ("c", 2, (FLOAT, 4)),
        ("c", np.float32(2.5), (FLOAT, 5)),
        ("d", np.bool_(1), (BOOL, 1)),
        ("e", 4, (INTS, 44)),
        ("e", [5], (INTS, 55)),
        ("e", (1, 2), (INTS, 12)),
        ("e", range(3, 5), (INTS, 34)),
        ("f", [0.5, 1], (FLOATS, 12)),
        ("f", 1.5, (FLOATS, 3)),
        ("g", "abc", (STRING, 3)),
        ("h", np.float32, (DTYPE, 2032)),
        ("h", "bool", (DTYPE, 6008)),
        ("i", "cpu", (DEVICE, 100)),
        ("k", [np.ones(1), None], (TENSORS, 1)),
        ("k", (), (TENSORS, 0)),
        ("l", (), (INTS, 0)),
        ("l", 3, (INTS, 3)),
        ("l", np.array([1, 2]), (INTS, 12)),
    ],
)
def test_conversions(name: str, values: object, expected: tuple[int, int]) -> None:
    required = {"a": 0, "b": 0, "c": 0}
    assert echo(**{**required, name: values})[name] == expected


def test_generator_arrives(x: np.ndarray) -> None:
    assert echo(0, 0, 0, j=plait_abi.Generator().manual_seed(11))["j"] == (OBJECT, 11)


@pytest.mark.parametrize(
    ("name", "values", "text"),
    [
        ("a", "x", "`a` must be a number, got str 'x'"),
        ("b", 1.0, "`b` must be an int, got float"),
        ("b", None, "`b` must be an int, got None"),
        ("c", "1", "`c` must be a float, got str '1'"),
        ("d", 1, "`d` must be a bool, got int"),
        ("e", (1, 2, 3), "`e` must be an int or 2 ints, got tuple (int, int, int)"),
        ("e", (1, "a"), "`e` must be an int or 2 ints, got tuple (int, str)"),
        ("f", ["a"], "`f` must be a list of floats or None, got list [str]"),
        ("g", 3, "`g` must be a str or None, got int"),
        ("h", 3, "`h` must be a dtype or None, got int"),
        ("j", 3, "`j` must be a Generator or None, got int"),
        ("k", [1], "`k` must be a list of Tensors or None, got list [int]"),
        ("l", "12", "`l` must be an int or a list of ints or None, got str '12'"),
        ("l", {1, 2}, "`l` must be an int or a list of ints or None, got set"),
    ],
)
def test_conversion_errors_name_operator_and_argument(name: str, values: object, text: str) -> None:
    with pytest.raises(TypeError) as caught:
        echo(**{"a": 0, "b": 0, "c": 0, name: values})
    assert str(caught.value) == f"probe_echo: {text}"


def test_overflow_and_nul() -> None:
    with pytest.raises(OverflowError, match="probe_echo: `b` must fit in 64 bits, got 18446"):
        echo(0, 2**64, 0)
    with pytest.raises(ValueError, match="without a null character"):
        echo(0, 0, 0, g="a\0b")


def test_what_an_index_raises_is_passed_on() -> None:
    class Bad:
        def __index__(self) -> int:
            raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        echo(0, Bad(), 0)


def test_argument_counts(x: np.ndarray) -> None:
    add = op("add")
    form = "probe_add(Tensor|Scalar self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor"
    for call, text in [
        (lambda: add(), f"missing argument `self`; the form is {form}"),
        (lambda: add(x), f"missing argument `other`; the form is {form}"),
        (lambda: add(x, x, 1), "at most 2 positional arguments are accepted, got 3"),
        (lambda: add(x, x, beta=1), "unexpected keyword `beta`"),
        (lambda: add(x, x, self=x), "`self` was given twice"),
        (lambda: add(x, x, out=3), "`out` must be a Tensor, got int"),
    ]:
        with pytest.raises(TypeError) as caught:
            call()
        assert str(caught.value) == f"probe_add: {text}"


def test_forms(x: np.ndarray) -> None:
    ones = np.ones(3)
    assert values(op("add")(x, ones, alpha=2)) == [2, 3, 4]
    assert values(op("add")(self=x, other=1)) == [1, 2, 3]
    assert op("add_")(x, ones) is x
    assert x.tolist() == [1, 2, 3]
    assert op("add")(x, 1, out=ones) is ones
    assert ones.tolist() == [2, 3, 4]
    assert values(op("add")(x, 1, out=None)) == [2, 3, 4]


def test_in_place_form_needs_a_tensor() -> None:
    with pytest.raises(TypeError, match="probe_add_: `self` must be a Tensor or a number, got int"):
        op("add_")(1, 2)


def test_errors_of_shape_functions_become_exceptions(x: np.ndarray) -> None:
    with pytest.raises(plait_abi.ShapeError) as caught:
        op("add")(x, np.ones(4))
    assert (
        str(caught.value) == "probe_add: `self` and `other` must have one shape, got (3,) and (4,)"
    )


def test_overloads_are_tried_in_order(x: np.ndarray) -> None:
    peak = op("max")
    assert values(peak(x)) == 2
    best, index = peak(x, 0)
    assert (values(best), values(index)) == (2, 0)
    assert values(peak(x, axis=0, keepdims=True)[1]) == 0
    with pytest.raises(
        TypeError, match=r"probe_max: no form takes \(.*str 'a'\); there are probe_max\("
    ):
        peak(x, "a")
    assert len(peak.schemas) == 2
    assert len(plait_abi.operator("probe_max.dim").schemas) == 1


def test_varargs(x: np.ndarray) -> None:
    view = op("view")
    for size in [(3, 1), ((3, 1),), ([3, 1],)]:
        assert np.from_dlpack(view(x, *size)).shape == (3, 1)
    assert np.from_dlpack(view(x, size=(1, 3))).shape == (1, 3)
    assert np.from_dlpack(view(x[:1])).shape == ()
    with pytest.raises(
        TypeError, match=r"probe_view: `size` must be an int or a list of ints, got str 'a'"
    ):
        view(x, 3, "a")


def test_views_share_memory_and_lists_become_tuples(x: np.ndarray) -> None:
    parts = op("halves")(np.arange(4.0))
    assert isinstance(parts, tuple)
    assert [values(part) for part in parts] == [[0, 1], [2, 3]]
    seen = np.from_dlpack(op("view")(x, 3))
    x[0] = 9
    assert seen[0] == 9


def test_lists_of_tensors_are_written_in_place() -> None:
    params, grads = [np.ones(2), np.zeros(3)], [np.ones(2), np.ones(3)]
    assert op("step")(params, grads, 0.5) is None
    assert [p.tolist() for p in params] == [[0.5, 0.5], [-0.5] * 3]


def test_operator_describes_itself() -> None:
    add, peak = op("add"), op("max")
    assert str(inspect.signature(add)) == "(self, other, *, alpha=1)"
    assert str(inspect.signature(op("view"))) == "(self, *size)"
    assert str(inspect.signature(peak)) == "(*args, **kwargs)"
    assert add.__name__ == add.__qualname__ == "probe_add"
    assert add.__doc__ is not None
    assert add.__doc__.startswith("probe_add(self: Tensor | Number, other")
    assert "self + alpha * other" in add.__doc__
    assert repr(add) == "<plait operator probe_add>"
    assert pickle.loads(pickle.dumps(op("add_"))).__name__ == "probe_add_"


def test_functions_do_not_bind_and_methods_do(x: np.ndarray) -> None:
    class Holder(np.ndarray):
        add = op("add")
        plus = plait_abi.operator_method("probe_add")

    holder = x.view(Holder)
    assert values(holder.add(x, 1)) == [1, 2, 3]
    assert values(holder.plus(1)) == values(Holder.plus(holder, 1)) == [1, 2, 3]
    assert holder.add is Holder.add and not hasattr(holder.add, "__get__")
    assert Holder.plus is Holder.__dict__["plus"]
    assert isinstance(Holder.plus, plait_abi.Operator)
    with pytest.raises(TypeError, match="cannot create"):
        plait_abi.OperatorMethod()


def test_a_method_describes_itself() -> None:
    method = plait_abi.operator_method("probe_add_")
    assert isinstance(method, plait_abi.OperatorMethod)
    assert type(pickle.loads(pickle.dumps(method))) is plait_abi.OperatorMethod
    assert method.__name__ == "probe_add_" and method.__doc__ == op("add_").__doc__
    assert method.__module__ == op("add_").__module__
    assert inspect.signature(method) == inspect.signature(op("add_"))
    with pytest.raises(TypeError, match="operator_method: `name` must be a str, got int"):
        plait_abi.operator_method(3)  # type: ignore[arg-type]


def test_unknown_operator() -> None:
    for name in ["probe_none", "probe_view_", "", "probe_max.none"]:
        with pytest.raises(AttributeError, match="no operator named"):
            plait_abi.operator(name)
    with pytest.raises(TypeError, match="`name` must be a str"):
        plait_abi.operator(3)  # type: ignore[arg-type]
    names = dict(plait_abi.operator_names())
    assert names["probe_add"] == "function method"
    assert names["probe_add_"] == "method"
    assert names["probe_max"] == "function"  # one of two overloads says so
    assert names["probe_halves"] == ""
    assert "probe_view_" not in names


def test_overrides_are_called_first(x: np.ndarray) -> None:
    class Logged(np.ndarray):
        calls: ClassVar[list[str]] = []

        def __plait_function__(self, operator: Any, args: Any, kwargs: Any) -> Any:
            Logged.calls.append(operator.__name__)
            if kwargs.get("alpha") == 0:
                return NotImplemented
            return "answer", args, kwargs

    logged = x.view(Logged)
    answer, args, kwargs = op("add")(logged, 1, alpha=3)
    assert (answer, kwargs) == ("answer", {"alpha": 3})
    assert args[0] is logged
    assert op("add")(1, logged)[0] == "answer"
    assert values(op("add")(logged, 1, alpha=0)) == [0, 1, 2]
    assert values(op("add").plain(logged, 1)) == [1, 2, 3]
    assert op("step")([logged], [logged], 1.0)[0] == "answer"
    assert Logged.calls == ["probe_add"] * 3 + ["probe_step"]


def test_the_subclass_is_called_before_its_base(x: np.ndarray) -> None:
    class Base(np.ndarray):
        def __plait_function__(self, operator: Any, args: Any, kwargs: Any) -> Any:
            return type(self).__name__

    class Derived(Base):
        pass

    assert op("add")(x.view(Base), x.view(Derived)) == "Derived"


def test_an_override_may_be_added_later(x: np.ndarray) -> None:
    class Late(np.ndarray):
        pass

    late = x.view(Late)
    assert values(op("add")(late, 1)) == [1, 2, 3]
    Late.__plait_function__ = lambda self, operator, args, kwargs: "now"  # type: ignore[attr-defined]
    assert op("add")(late, 1) == "now"
    del Late.__plait_function__  # type: ignore[attr-defined]
    assert values(op("add")(late, 1)) == [1, 2, 3]


def test_large_calls_run_without_the_gil(fresh: Callable[[str], str]) -> None:
    out = fresh(
        """
import sys, threading, numpy as np, plait_abi
plait_abi.load(PROBE)
add, big, small, seen = plait_abi.operator("probe_add"), np.ones(4_000_000), np.ones(2), []
go = threading.Lock()
go.acquire()
def other():
    with go:
        seen.append(1)
thread = threading.Thread(target=other)
thread.start()
sys.setswitchinterval(1000)   # from here on only giving the GIL up lets the other thread run
go.release()
add(small, small)
before = len(seen)
add(big, big)
after = len(seen)
sys.setswitchinterval(0.005)
thread.join()
print(before, after)
"""
    )
    assert out.split() == ["0", "1"]


def test_nothing_leaks(x: np.ndarray) -> None:
    import sys

    ones = np.ones(3)

    def use() -> None:
        op("add")(x, ones, alpha=2)
        op("add_")(x, ones)
        op("step")([x], [ones], 0.1)
        with pytest.raises(plait_abi.ShapeError):
            op("add")(x, np.ones(4))
        with pytest.raises(TypeError):
            op("add")(x, ones, beta=ones)

    use()
    before = sys.getrefcount(x), sys.getrefcount(ones)
    for _ in range(10):
        use()
    assert (sys.getrefcount(x), sys.getrefcount(ones)) == before
    assert math.isfinite(x.sum())
    assert ctypes.sizeof(ctypes.c_void_p) == 8
