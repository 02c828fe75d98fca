"""Tests of kernels written in Python: their arguments, their results, and their removal."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plait_abi

pytestmark = pytest.mark.usefixtures("probe")


def values(result: Any) -> list[Any]:
    return list(np.from_dlpack(result).tolist())


def add(*args: Any, **kwargs: Any) -> Any:
    return plait_abi.operator("probe_add")(*args, **kwargs)


def fill(number: float) -> Callable[..., None]:
    def kernel(x: Any, y: Any, alpha: Any, out: Any) -> None:
        np.from_dlpack(out)[...] = number

    return kernel


def test_it_gets_arguments_and_results_and_fills_them() -> None:
    seen: list[Any] = []

    def subtract(x: Any, y: Any, alpha: Any, out: Any) -> None:
        seen.append((hasattr(x, "__dlpack__"), y, alpha, tuple(out.shape)))
        np.from_dlpack(out)[...] = np.from_dlpack(x) - y

    with plait_abi.kernel("probe_add", subtract):
        assert values(add(np.arange(3.0), 2)) == [-2.0, -1.0, 0.0]
    assert seen == [(True, 2, 1, (3,))]
    assert values(add(np.arange(3.0), 2)) == [2.0, 3.0, 4.0]


def test_every_kind_of_argument() -> None:
    got: list[Any] = []
    echo = plait_abi.operator("probe_echo")
    g = plait_abi.Generator()
    with plait_abi.kernel("probe_echo", lambda *all: got.extend(all)):
        echo(1 + 2j, 2, 0.5, True, e=(3, 4), f=[0.5], g="a", h="float32", i="cpu", j=g, k=[None])
        echo(1, 2, 3)
    assert got[:3] == [1 + 2j, 2, 0.5]
    assert got[3] is True
    assert got[4:7] == [(3, 4), (0.5,), "a"]
    assert got[7:9] == [plait_abi.dtype("float32"), plait_abi.device("cpu")]
    assert isinstance(got[9], plait_abi.Generator)
    assert got[10:12] == [(None,), None]
    assert got[13:17] == [1, 2, 3.0, False]


def test_the_latest_is_called_first_and_may_decline() -> None:
    with plait_abi.kernel("probe_add", fill(1)) as first:
        with plait_abi.kernel("probe_add", fill(2)):
            assert values(add(np.zeros(1), 0)) == [2.0]
            with plait_abi.kernel("probe_add", lambda *all: NotImplemented):
                assert values(add(np.zeros(1), 0)) == [2.0]
        assert values(add(np.zeros(1), 0)) == [1.0]
        first.close()
        first.close()
        assert values(add(np.zeros(1), 5)) == [5.0]


def test_an_exception_is_the_callers() -> None:
    class Mine(Exception):
        pass

    error = Mine("text")

    def fails(*all: Any) -> None:
        raise error

    with plait_abi.kernel("probe_add", fails), pytest.raises(Mine) as raised:
        add(np.zeros(1), 0)
    assert raised.value is error


def test_only_none_is_an_answer() -> None:
    with (
        plait_abi.kernel("probe_add", lambda *all: 3),
        pytest.raises(TypeError, match=r"probe_add: .*returns None.*got int"),
    ):
        add(np.zeros(1), 0)


def test_closing_gives_up_the_function() -> None:
    function = fill(1)
    reference = weakref.ref(function)
    kernel = plait_abi.kernel("probe_add", function)
    del function
    gc.collect()
    assert reference() is not None
    kernel.close()
    gc.collect()
    assert reference() is None


def test_it_runs_on_the_callers_thread_when_the_gil_was_given_up() -> None:
    """A large call runs without the GIL; its kernel takes it again."""
    seen: list[int] = []

    def kernel(x: Any, y: Any, alpha: Any, out: Any) -> None:
        seen.append(threading.get_ident())

    def call() -> None:
        add(np.zeros(100_000), 0)

    with plait_abi.kernel("probe_add", kernel):
        threads = [threading.Thread(target=call) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(seen) == 4
    assert threading.get_ident() not in seen


def test_the_report_names_the_module_and_detach_takes_its_kernels() -> None:
    kernel = plait_abi.kernel("probe_add", fill(7))
    own = [r for r in plait_abi.records() if (r.kind, r.name) == ("kernel", "probe_add")]
    assert [r.provider for r in own if r.active] == [__name__]
    assert repr(kernel) == "<kernel of probe_add>"
    plait_abi.detach(__name__)
    assert values(add(np.zeros(1), 5)) == [5.0]
    kernel.close()


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: plait_abi.kernel("no_such", fill(1)), AttributeError, "no operator named no_such"),
        (lambda: plait_abi.kernel("probe_add", 3), TypeError, "`function` must be callable"),
        (lambda: plait_abi.kernel("probe_view", fill(1)), ValueError, "probe_view is a view"),
        (lambda: plait_abi.kernel("probe_add", fill(1), "nothing"), ValueError, "nothing"),
        (lambda: plait_abi.kernel("probe_add", fill(1), 1j), TypeError, "`device` must be"),
    ],
)
def test_refusals(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_the_end_of_the_process(fresh: Callable[[str], str]) -> None:
    """A kernel that was never closed does no harm at exit."""
    code = (
        "import numpy as np, plait_abi\n"
        "plait_abi.load(PROBE)\n"
        "plait_abi.kernel('probe_add', lambda x, y, a, out: np.from_dlpack(out).fill(2))\n"
        "print(np.from_dlpack(plait_abi.operator('probe_add')(np.zeros(1), 0))[0])\n"
    )
    assert fresh(code) == "2.0\n"
