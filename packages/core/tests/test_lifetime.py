"""Wrappers and handles: identity, kept state, the collector, threads, fork, exit."""

from __future__ import annotations

import copy
import gc
import pickle
import subprocess
import sys
import sysconfig
import threading
import weakref
from typing import Any, ClassVar

import pytest

import plait_core as pc

# without a global lock the collector tracks wrappers from the start (note 0044)
ALL_TRACKED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


class Tagged(pc.Tensor):
    """A subclass with attributes and slots."""

    __slots__ = ("slot",)
    deaths: ClassVar[list[tuple[int, ...]]] = []

    def __del__(self) -> None:
        Tagged.deaths.append(tuple(self.shape))


def tagged(*sizes: int) -> Any:
    Tagged.deaths.clear()
    return pc.Tensor._make_subclass(Tagged, pc.ones(*sizes))


def keeper(tensor: pc.Tensor) -> Any:
    """Return an object that keeps the handle, and only the handle, alive.

    A DLPack capsule keeps a storage; a slice iterator or list would keep the wrapper. A view's base
    is the handle of what it was made from.
    """
    return tensor.view(-1)


def test_the_base_of_a_view_comes_back_as_the_same_object() -> None:
    x = pc.ones(4)
    assert x.view(2, 2)._base is x
    assert x[1:]._base is x
    assert x._base is None


def test_attributes_of_a_plain_tensor_outlive_the_wrapper() -> None:
    x = pc.ones(3)
    x.note = ["kept"]  # type: ignore[attr-defined]
    view = keeper(x)
    del x
    gc.collect()
    assert view._base.note == ["kept"]
    assert view._base is view._base


def test_a_wrapper_that_the_collector_cleared_is_recycled_like_any_other() -> None:
    gc.collect()
    for _ in range(20):
        x = pc.ones(3)
        x.first = 1  # type: ignore[attr-defined]  # so that the wrapper is cleared before the list
        x.cycle = [x]  # type: ignore[attr-defined]
    del x
    gc.collect()
    result = [pc.ones(2) for _ in range(40)]
    assert ALL_TRACKED or not any(gc.is_tracked(tensor) for tensor in result)
    gc.collect()
    result += [pc.ones(2) for _ in range(40)]
    assert len({id(tensor) for tensor in result}) == 80


def test_cycles_die_while_other_threads_make_tensors() -> None:
    wrong: list[Any] = []

    def work() -> None:
        for i in range(400):
            x = pc.full((2,), float(i))
            x.first = i  # type: ignore[attr-defined]
            x.cycle = [x]  # type: ignore[attr-defined]
            total = x.sum()
            if tuple(total.shape) != () or total.item() != 2 * i:
                wrong.append((i, tuple(total.shape)))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        gc.collect()
    assert not wrong


def test_a_plain_wrapper_without_attributes_is_made_anew() -> None:
    x = pc.ones(3)
    view = keeper(x)
    seen = weakref.ref(x)
    del x
    assert seen() is None
    assert view._base.tolist() == [1, 1, 1]


def test_a_subclass_wrapper_is_resurrected_again_and_again() -> None:
    x = tagged(3)
    x.slot, x.note = ["slot"], ["note"]
    view, address = keeper(x), id(x)
    del x
    for _ in range(3):
        gc.collect()
        back = view._base
        assert (type(back), id(back), back.slot, back.note) == (Tagged, address, ["slot"], ["note"])
        fresh = object()
        assert sys.getrefcount(back) == sys.getrefcount(fresh)
        assert gc.is_tracked(back)
        del back
    assert Tagged.deaths == []


def test_the_state_goes_with_the_handle() -> None:
    class Value:
        pass

    x = tagged(3)
    x.slot, x.note = Value(), Value()
    reference = weakref.ref(x.slot), weakref.ref(x.note)
    view = keeper(x)
    del x
    del view
    pc.ones(1) + 1  # the next operator call lets go of what waited
    assert [ref() for ref in reference] == [None, None]
    assert len(Tagged.deaths) == 1


def test_without_a_keeper_a_subclass_dies_at_once() -> None:
    x = tagged(2)
    seen = weakref.ref(x)
    del x
    assert seen() is None
    assert Tagged.deaths == [(2,)]


def test_weak_references_end_with_the_last_python_reference() -> None:
    calls = []
    x = tagged(2)
    seen = weakref.ref(x, calls.append)
    view = keeper(x)
    del x
    assert seen() is None
    assert len(calls) == 1
    assert type(view._base) is Tagged


def test_cycles_through_attributes_are_collected() -> None:
    x = pc.ones(2)
    assert gc.is_tracked(x) == ALL_TRACKED
    x.me = x  # type: ignore[attr-defined]
    assert gc.is_tracked(x)
    seen = weakref.ref(x)
    del x
    gc.collect()
    assert seen() is None
    y = tagged(2)
    y.me = y
    seen = weakref.ref(y)
    del y
    gc.collect()
    assert seen() is None


def test_the_collector_does_not_free_wrappers_with_a_handle() -> None:
    x = tagged(2)
    x.me, x.note = x, "note"
    view = keeper(x)
    del x
    gc.collect()
    assert view._base.note == "note"
    assert view._base.me is view._base
    view._base.me = None


def test_a_finalizer_may_keep_its_tensor() -> None:
    references = []

    class Phoenix(pc.Tensor):
        def __del__(self) -> None:
            references.append(self)

    x = pc.Tensor._make_subclass(Phoenix, pc.ones(2))
    del x
    assert references.pop().tolist() == [1, 1]


def test_deep_subclasses_and_new() -> None:
    class Inner(Tagged):
        def __new__(cls, data: Any, note: str) -> Inner:
            self = super().__new__(cls, data)
            self.note = note
            return self

        def __init__(self, data: Any, note: str) -> None:
            pass

    x = Inner(pc.ones(3), "a")
    view, address = keeper(x), id(x)
    del x
    assert (id(view._base), view._base.note) == (address, "a")
    assert type(view._base + 1) is pc.Tensor


def test_make_subclass_refuses_other_things() -> None:
    for args in [(int, pc.ones(1)), (Tagged, 3), (Tagged,)]:
        with pytest.raises(TypeError, match="_make_subclass: "):
            pc.Tensor._make_subclass(*args)


def test_many_wrappers_reuse_memory() -> None:
    for _ in range(3):
        tensors = [pc.ones(1) for _ in range(1000)]
        assert all(t.item() == 1 for t in tensors)
        del tensors
    before = pc.memory_stats()["live_bytes"]
    for _ in range(1000):
        pc.ones(100)
    assert pc.memory_stats()["live_bytes"] == before


def test_reference_counts_stay_level() -> None:
    x, y, note = pc.ones(3), pc.ones(3), object()
    x.note = note  # type: ignore[attr-defined]

    def use() -> None:
        x + y
        x + 1
        _ = x == y
        x[0], x[1:], x[[0, 1]]
        x[0] = y[1]
        repr(x), x.numpy(), x.tolist(), copy.copy(x), x.shape, x.data
        with pytest.raises(pc.ShapeError):
            x + pc.ones(2)

    use()
    gc.collect()
    before = [sys.getrefcount(o) for o in (x, y, note, pc.Tensor, pc.float32)]
    for _ in range(20):
        use()
    gc.collect()
    assert [sys.getrefcount(o) for o in (x, y, note, pc.Tensor, pc.float32)] == before


def test_pickle_and_copies() -> None:
    array = pc.arange(6).to(pc.float32).view(2, 3)
    for dtype in ("float32", "bfloat16", "bool", "int8", "complex64"):
        x = array.to(pc.dtype(dtype)).T
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
            y = pickle.loads(pickle.dumps(x, protocol))
            assert (y.tolist(), y.dtype, y.shape) == (x.tolist(), x.dtype, x.shape)
    x = tagged(2)
    x.note = ["deep"]
    for y in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert type(y) is Tagged
        assert y.note == ["deep"]
        assert y.note is not x.note
        assert y.data_ptr() != x.data_ptr()
    shallow = copy.copy(x)
    assert shallow.note is x.note
    assert shallow.data_ptr() == x.data_ptr()
    shared = copy.deepcopy([x, x])
    assert shared[0] is shared[1]


def test_threads_make_and_drop_tensors() -> None:
    failures: list[Any] = []
    shared = pc.ones(50)

    def work(seed: int) -> None:
        for i in range(300):
            x = pc.Tensor._make_subclass(Tagged, shared + seed)
            x.note = i
            view = keeper(x)
            del x
            if view._base.note != i or view._base[0].item() != seed + 1:
                failures.append((seed, i))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}{done.stderr}"
    assert done.stderr == ""
    return done.stdout


def test_fork_after_use() -> None:
    out = run(
        """
import os, warnings, plait_core as pc
warnings.simplefilter("ignore")
x = pc.ones(300, 300)
(x @ x).sum()
pid = os.fork()
if not pid:
    os._exit(int((x @ x)[0, 0].item() == 300))
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
    )
    assert out.strip() == "1"


def test_exit_with_live_tensors_and_threads() -> None:
    out = run(
        """
import threading, time, numpy as np, plait_core as pc
class P(pc.Tensor): pass
kept = pc.Tensor._make_subclass(P, pc.ones(3)); kept.note = 1
view = kept.view(-1); del kept
from_numpy = pc.from_numpy(np.ones(10))
array = pc.ones(10).numpy()
def forever():
    x = pc.ones(1000, 1000)
    while True: x = x * 1.0
threading.Thread(target=forever, daemon=True).start()
time.sleep(0.1)
print("end")
"""
    )
    assert out.strip() == "end"


def test_interrupt_in_a_loop_of_operators() -> None:
    out = run(
        """
import signal, threading, os, plait_core as pc
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
x = pc.ones(200, 200)
try:
    threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    while True:
        x = (x @ x) * 0.0 + 1
except KeyboardInterrupt:
    print("interrupted", x.shape)
"""
    )
    assert out.startswith("interrupted")


def test_import_loads_neither_numpy_nor_other_strands() -> None:
    out = run(
        """
import sys, plait_core
names = ("numpy", "plait_autograd", "plait_nn", "plait_ops")
print([name for name in names if name in sys.modules])
"""
    )
    assert out.strip() == "[]"
