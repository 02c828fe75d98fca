"""Anomaly mode: the lines of the forward call, of a write, and of the first NaN."""

from __future__ import annotations

import gc
import re
import sys
import threading
import warnings
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

import plait_autograd as pa
import plait_core as pc


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield
    assert not pa.is_anomaly_enabled()


def line_of(function: Any, text: str) -> int:
    import inspect

    lines, first = inspect.getsourcelines(function)
    return first + next(i for i, line in enumerate(lines) if text in line)


def root_of(x: pc.Tensor) -> pc.Tensor:
    return x.sqrt()  # the call


def overwrite(y: pc.Tensor) -> None:
    with pa.no_grad():
        y.add_(1)  # the write


def test_the_error_about_nan_names_operator_and_line() -> None:
    x = pc.tensor([0.0, 1.0], requires_grad=True)
    line = f"{__file__}:{line_of(root_of, 'the call')} in root_of"
    with pa.detect_anomaly():
        loss = (root_of(x) * 0).sum()
        with pytest.raises(RuntimeError, match="SqrtBackward: it returned NaN") as caught:
            loss.backward()
    assert line in str(caught.value)
    assert "forward pass" not in str(caught.value)
    assert x.grad is None


def test_the_first_nan_of_the_forward_pass_is_found() -> None:
    x = pc.tensor([-1.0, 1.0], requires_grad=True)
    with pa.detect_anomaly():
        y = root_of(x)
        loss = (y.exp() * 2).sum()
        origin = pa.find_nan(loss)
        with pytest.raises(RuntimeError, match="first NaN was made by sqrt at") as caught:
            loss.backward()
    assert f":{line_of(root_of, 'the call')} in root_of" in str(caught.value)
    assert origin is not None
    assert (origin.operator, origin.argument, origin.module) == ("SqrtBackward", "", "")
    assert "return x.sqrt()  # the call" in origin.traceback
    with pa.detect_anomaly():
        assert pa.find_nan(x * 2) is None


def diverged() -> pc.Tensor:
    return pc.tensor([float("nan"), 1.0], requires_grad=True)


def test_a_nan_in_a_leaf_is_an_origin() -> None:
    x, w = pc.ones(2, requires_grad=True), diverged()
    with pa.detect_anomaly():
        loss = ((x + 1) * w).exp().sum()
        origin = pa.find_nan(loss)
        named = pa.find_nan(loss, {"x": x, "w": w})
        with pytest.raises(RuntimeError, match="first NaN came in as `other` of mul at"):
            loss.backward()
    assert origin is not None and named is not None
    assert (origin.operator, origin.argument, origin.leaf) == ("MulBackward", "other", "")
    assert origin.shape == (2,)
    assert "loss = ((x + 1) * w)" in origin.traceback
    assert named == origin._replace(leaf="w")


def test_what_was_recorded_holds_when_a_leaf_changes_later() -> None:
    w = diverged()
    with pa.detect_anomaly():
        loss = (w * 2).sum()
        good = (pc.ones(2, requires_grad=True) * 2).sum()
    with pa.no_grad():
        w.fill_(1)
    origin = pa.find_nan(loss, {"w": w})
    assert origin is not None and (origin.operator, origin.leaf) == ("MulBackward", "w")
    assert pa.find_nan(good) is None


def test_named_leaves_are_looked_at_in_any_graph() -> None:
    x, w = pc.ones(2, requires_grad=True), diverged()
    origin = pa.find_nan(((x * 3) * w).exp().sum(), [("x", x), ("w", w)])
    assert origin is not None
    assert (origin.operator, origin.leaf, origin.shape) == ("MulBackward", "w", (2,))
    assert pa.find_nan(w, {"w": w}) == pa.NanOrigin("", "", "", "", "w", (2,))
    assert pa.find_nan(w) == pa.NanOrigin("", "", "", "", "", (2,))
    assert pa.find_nan(x) is None


def test_nothing_recorded_is_no_answer() -> None:
    x = pc.tensor([-1.0], requires_grad=True)
    with pytest.raises(RuntimeError, match="2 recorded calls were not looked at for NaN; run the"):
        pa.find_nan(x.sqrt() * 2)
    with pytest.raises(RuntimeError, match="the given leaves have no NaN"):
        pa.find_nan(x.sqrt(), {"x": x})
    with pytest.raises(RuntimeError, match="no recorded history"):
        pa.find_nan(x.detach().sqrt())
    with pa.detect_anomaly(check_nan=False):
        y = x.sqrt()
    with pytest.raises(RuntimeError, match="1 recorded calls were not looked at"):
        pa.find_nan(y)


class Halved(pa.Function):
    @staticmethod
    def forward(ctx, x):  # type: ignore[no-untyped-def]
        return x / 2

    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        return gradient / 2


def test_functions_are_looked_at() -> None:
    with pa.detect_anomaly():
        good = Halved.apply(pc.ones(2, requires_grad=True)).sum()
        bad = Halved.apply(diverged()).sum()
    assert pa.find_nan(good) is None
    origin = pa.find_nan(bad)
    assert origin is not None
    assert (origin.operator, origin.argument, origin.shape) == ("HalvedBackward", "input 0", (2,))


def test_a_nan_from_outside_is_named_by_its_argument() -> None:
    x = pc.ones(2, requires_grad=True)
    with pa.detect_anomaly():
        loss = (x * pc.tensor([float("nan"), 1.0])).exp().sum()
        origin = pa.find_nan(loss)
        assert origin is not None
        assert (origin.operator, origin.argument) == ("MulBackward", "other")
        with pytest.raises(RuntimeError, match="first NaN came in as `other` of mul at"):
            loss.backward()


def test_a_given_nan_is_an_error_that_says_so() -> None:
    x = pc.ones(2, requires_grad=True)
    with pa.detect_anomaly():
        y = x * 2
        with pytest.raises(RuntimeError, match="because it was given NaN"):
            y.backward(pc.tensor([float("nan"), 1.0]))


def test_without_check_nan_there_is_no_error() -> None:
    x = pc.zeros(2, requires_grad=True)
    with pa.detect_anomaly(check_nan=False):
        assert not pa.is_anomaly_check_nan_enabled()
        (root_of(x) * 0).sum().backward()
    assert str(x.grad.tolist()) == "[nan, nan]"


def test_the_overwritten_value_and_both_lines_are_named() -> None:
    x = pc.ones(3, requires_grad=True)
    with pa.detect_anomaly():
        y = root_of(x)
        overwrite(y)
        with pytest.raises(RuntimeError) as caught:
            y.sum().backward()
    text = str(caught.value)
    call, write = line_of(root_of, "the call"), line_of(overwrite, "the write")
    assert f"overwritten by `add_` at {__file__}:{write} in overwrite" in text
    assert f"by the call at {__file__}:{call} in root_of" in text
    assert "clone() the tensor first" in text


def test_the_first_write_is_named_not_the_last() -> None:
    x = pc.ones(3, requires_grad=True)
    with pa.detect_anomaly():
        y = root_of(x)
        y.mul_(2)
        overwrite(y)
        with pytest.raises(RuntimeError, match="overwritten by `mul_` at"):
            y.sum().backward()


def test_outside_of_anomaly_mode_recorded_calls_are_named_as_well() -> None:
    y = root_of(pc.ones(3, requires_grad=True))
    y.mul_(2)
    line = sys._getframe().f_lineno - 1
    overwrite(y)
    with pytest.raises(RuntimeError) as caught:
        y.sum().backward()
    text = str(caught.value)
    call = line_of(root_of, "the call")
    assert f"overwritten by `mul_` at {__file__}:{line} in test_outside" in text
    assert f"by the call at {__file__}:{call} in root_of" in text
    assert "set_detect_anomaly" not in text


def test_a_write_that_was_not_recorded_is_found_in_anomaly_mode_only() -> None:
    y = root_of(pc.ones(3, requires_grad=True))
    overwrite(y)
    with pytest.raises(RuntimeError, match=r"sqrt: .*set_detect_anomaly\(True\)") as caught:
        y.sum().backward()
    assert "overwritten by an in-place operator after" in str(caught.value)
    call = line_of(root_of, "the call")
    assert f"by the call at {__file__}:{call} in root_of" in str(caught.value)


def test_places_skip_plait_and_survive_their_code() -> None:
    source = "def made(x):\n    return x.exp()\n"
    for i in range(2000):  # more code objects than are remembered
        scope: dict[str, Any] = {}
        exec(compile(source, f"<made {i}>", "exec"), scope)
        y = scope["made"](pc.ones(1, requires_grad=True))
        del scope
        if i % 500 == 0:
            gc.collect()
            with pa.no_grad():
                y.add_(1)
            with pytest.raises(RuntimeError, match=f"at <made {i}>:2 in made"):
                y.backward()
    y = pa.checkpoint(pc.exp, pc.ones(1, requires_grad=True)).exp()
    with pa.no_grad():
        y.add_(1)
    with pytest.raises(RuntimeError, match="in test_places_skip_plait"):
        y.backward()


def test_large_operators_know_their_place_as_well() -> None:
    y = root_of(pc.ones(200_000, requires_grad=True))
    y.add_(1)
    with pytest.raises(RuntimeError, match=r"`add_` at .*by the call at .* in root_of"):
        y.sum().backward()


def test_an_error_in_backward_is_preceded_by_the_forward_traceback() -> None:
    class Fails(pa.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            raise KeyError("mine")

    def call(x: pc.Tensor) -> pc.Tensor:
        return Fails.apply(x)

    with pa.detect_anomaly():
        y = call(pc.ones(1, requires_grad=True))
        with (
            pytest.warns(RuntimeWarning, match="Error detected in FailsBackward") as record,
            pytest.raises(KeyError, match="mine"),
        ):
            y.backward()
    assert "return Fails.apply(x)" in str(record[0].message)


def test_a_node_from_before_says_so() -> None:
    x = pc.tensor([0.0], requires_grad=True)
    y = (root_of(x) * 0).sum()
    with (
        pa.detect_anomaly(),
        pytest.warns(RuntimeWarning, match="before anomaly mode"),
        pytest.raises(RuntimeError, match="returned NaN"),
    ):
        y.backward()


def test_the_mode_is_put_back() -> None:
    assert not pa.is_anomaly_enabled()
    pa.set_detect_anomaly(True, check_nan=False)
    try:
        with pa.set_detect_anomaly(False):
            assert not pa.is_anomaly_enabled()
        assert pa.is_anomaly_enabled()
        assert not pa.is_anomaly_check_nan_enabled()
        with pa.detect_anomaly():
            assert pa.is_anomaly_check_nan_enabled()
        assert not pa.is_anomaly_check_nan_enabled()
    finally:
        pa.set_detect_anomaly(False)
    with pytest.raises(ValueError, match="out"), pa.detect_anomaly():
        raise ValueError("out")


def test_frames_are_not_kept() -> None:
    class Big:
        pass

    def call() -> tuple[pc.Tensor, weakref.ref[Big]]:
        big = Big()
        y = pc.ones(1, requires_grad=True).exp()
        return y, weakref.ref(big)

    with pa.detect_anomaly():
        y, big = call()
    gc.collect()
    assert big() is None
    assert "in call" in pa.forward_traceback(y.grad_fn)
    assert re.search(r"exp\(\)", pa.forward_traceback(y.grad_fn))


def test_many_writes_forget_the_oldest() -> None:
    y = pc.zeros(1)
    with pa.detect_anomaly():
        for _ in range(100):
            y.add_(1)
        references = [pc.zeros(1).add_(1) for _ in range(5000)]
        z = root_of(pc.ones(1, requires_grad=True))
        overwrite(z)
        with pytest.raises(RuntimeError, match="overwritten by `add_` at"):
            z.backward()
    assert len(references) == 5000


def test_threads_with_anomaly_mode_agree_with_the_rest() -> None:
    w = pc.zeros(2, requires_grad=True)

    def work() -> None:
        for _ in range(50):
            ((w + 1) * 2).sum().backward()

    with pa.detect_anomaly():
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert w.grad.tolist() == [400.0, 400.0]
    assert sys.exc_info() == (None, None, None)


def test_a_write_into_another_storage_at_the_same_address_is_not_blamed() -> None:
    """Unrecorded writes have no line, though one is known of an older storage at the address."""
    x = pc.ones(3, requires_grad=True)
    for _ in range(100):
        y = x * 1
        y.mul_(2)
        y.mul_(2)  # versions that the next storage here has, too
        del y
        z = x * 1
        product = z * z
        with pa.no_grad():
            z.detach()[0] = 0
        with pytest.raises(RuntimeError, match="overwritten by an in-place operator after"):
            product.sum().backward()


def test_turning_it_on_and_off_keeps_no_memory() -> None:
    def resident() -> int:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    def switch(n: int) -> None:
        for _ in range(n):
            with pa.detect_anomaly():
                pass

    switch(5_000)
    before = resident()
    switch(100_000)
    assert resident() - before < 4_000_000


def test_an_error_within_a_derivative_names_the_call_that_it_belongs_to() -> None:
    x = pc.ones(5, requires_grad=True)
    y = x * x
    line = sys._getframe().f_lineno - 1
    x.data = pc.ones(3)
    with pytest.raises(pc.ShapeError, match=r"^mul: shapes must broadcast") as caught:
        y.sum().backward()
    assert f"(in the derivative of mul, called at {__file__}:{line} in test_an_error" in str(
        caught.value
    )
