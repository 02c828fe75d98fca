"""Hostile calls of every operator: results or exceptions, never a signal.

`PLAIT_HOSTILE_CALLS` sets how many calls each operator gets; `nox -s sanitize` runs 500 under ASan
and UBSan. `PLAIT_HOSTILE_SEED` draws other calls. The last call that was started stands in the file
that `PLAIT_HOSTILE_LOG` names, for when the process dies.

`PLAIT_HOSTILE_GUARD` is the compiled tests/attack/guard_allocator.c: results and inputs then lie
between pages that nobody may touch (tests/attack/test_guard_pages.py).
"""

from __future__ import annotations

import ctypes
import os
import pathlib
import resource
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import plait_abi
import plait_core as pc
from plait_ops import hostile, specs
from plait_ops.spec import Operator

CALLS = int(os.environ.get("PLAIT_HOSTILE_CALLS", "40"))
SEED = int(os.environ.get("PLAIT_HOSTILE_SEED", "20261121"))
LOG = os.environ.get("PLAIT_HOSTILE_LOG")
EXPECTED = (
    ValueError,
    TypeError,
    IndexError,
    RuntimeError,
    NotImplementedError,
    OverflowError,
    MemoryError,
    BufferError,
)
READABLE = 1 << 20
# A sanitizer, whose own memory counts, gets more.
ROOM = (8 if "ASAN_OPTIONS" in os.environ else 1) << 30


def _load_guard() -> ctypes.CDLL | None:
    path = os.environ.get("PLAIT_HOSTILE_GUARD")
    if not path:
        return None
    plait_abi.load(path)
    library = ctypes.CDLL(path)
    library.guard_take.restype = ctypes.c_void_p
    library.guard_take.argtypes = [ctypes.c_uint64, ctypes.c_uint64]
    library.guard_give.restype = None
    library.guard_give.argtypes = [ctypes.c_void_p, ctypes.c_uint64]
    return library


GUARD = _load_guard()


@pytest.fixture(autouse=True, scope="module")
def little_room() -> Iterator[None]:
    """Leave little memory, so that calls asking for gigabytes fail instead of filling them."""
    pages = int(pathlib.Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + ROOM, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def tensors(value: Any, seen: dict[int, Any]) -> Any:
    """Arrays become tensors over the same bytes; what cannot become one stays what it is."""
    if isinstance(value, np.ndarray):
        try:
            if GUARD is not None and id(value) not in seen:
                seen[id(value)] = guarded(GUARD, value)
            result = pc.from_numpy(seen.get(id(value), value))
            # NumPy has no float8: every eighth array of floats becomes one
            is_eighth = value.dtype == np.float32 and value.size and value.nbytes % 32 == 8
            return result.to(pc.float8_e4m3fn) if is_eighth else result
        except EXPECTED:
            return value
    if isinstance(value, (list, tuple)):
        return type(value)(tensors(item, seen) for item in value)
    return value


def guarded(guard: ctypes.CDLL, array: np.ndarray) -> np.ndarray:
    """Return the same array, of the same layout, whose bytes end (or begin) at a guard page."""
    if array.size == 0:
        return array
    strides = [step * (n - 1) for step, n in zip(array.strides, array.shape, strict=True)]
    below = -sum(step for step in strides if step < 0)  # bytes before the first element
    span = below + sum(step for step in strides if step > 0) + array.itemsize
    odd = 0 if array.flags.aligned else 1  # stays unaligned
    where = guard.guard_take(span + odd, 1)
    if not where:
        raise MemoryError(f"no {span} bytes between guard pages")
    start = where + (odd if where % 4096 == 0 else 0)
    owner = (ctypes.c_char * span).from_address(start)
    weakref.finalize(owner, guard.guard_give, where, span + odd)
    ctypes.memmove(start, array.ctypes.data - below, span)
    copy = np.ndarray(array.shape, array.dtype, owner, below, array.strides)
    copy.flags.writeable = array.flags.writeable
    return copy


def touch(result: Any) -> None:
    """Read every byte that a result claims to have."""
    if isinstance(result, (tuple, list)):
        for item in result:
            touch(item)
    elif (
        isinstance(result, pc.Tensor) and result.device.type == "cpu" and result.numel() < READABLE
    ):
        repr(result)
        if result.dtype.name != "bfloat16" and not result.dtype.name.startswith("float8"):
            np.array(result.detach().numpy(), copy=True)


def note(call: hostile.HostileCall) -> None:
    if not LOG:
        return
    try:
        arguments = f"{call.args!r} {call.kwargs!r}"
    except MemoryError:
        arguments = "with arguments that little memory cannot show"
    with open(LOG, "w", encoding="utf-8", errors="replace") as file:
        file.write(f"{call.operator.name}{call.form} {arguments}\n")


def run(call: hostile.HostileCall) -> bool:
    """Make the call; True if it gave a result."""
    base, _, overload = call.operator.name.partition(".")
    name = base + call.form + (f".{overload}" if overload and not call.form else "")
    seen: dict[int, Any] = {}
    args = tensors(call.args, seen)
    kwargs = {key: tensors(value, seen) for key, value in call.kwargs.items()}
    try:
        touch(plait_abi.operator(name)(*args, **kwargs))
    except EXPECTED as error:
        assert str(error), f"{name}: an error without a text: {error!r}"
        return False
    return True


# A call may warn as well: `out` was resized, an imaginary part was dropped.
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("spec", list(specs.all()), ids=lambda spec: spec.name)
def test_hostile_calls(spec: Operator) -> None:
    outcomes = []
    for call in hostile.calls(spec, seed=SEED, n=CALLS):
        note(call)
        outcomes.append(run(call))
    assert len(outcomes) == CALLS


def test_guarded_arrays_are_equal_and_lie_at_the_border() -> None:
    if GUARD is None:
        pytest.skip("PLAIT_HOSTILE_GUARD is not set")
    blocks = ctypes.c_uint64.in_dll(GUARD, "guard_blocks")
    x = np.arange(12, dtype=np.int16).reshape(3, 4)
    unaligned = np.zeros(25, np.uint8)[1:].view(np.int16).reshape(3, 4)
    for array in (x, x.T, x[::-1, ::2], np.broadcast_to(x[:1], (5, 4)), x[0, 0:1], unaligned):
        before = blocks.value
        copy = guarded(GUARD, array)
        assert blocks.value == before + 1
        np.testing.assert_array_equal(copy, array)
        assert (copy.strides, copy.flags.aligned) == (array.strides, array.flags.aligned)
    assert pc.memory_stats()["allocator"] == "guard pages"


def test_the_calls_are_the_same_every_time() -> None:
    spec = specs.find("add")
    first, second = (list(map(repr, hostile.calls(spec, seed=1, n=50))) for _ in range(2))
    assert [text.split(" at 0x")[0] for text in first] == [
        text.split(" at 0x")[0] for text in second
    ]


def test_some_calls_work_and_some_do_not() -> None:
    outcomes = [run(call) for call in hostile.calls(specs.find("mul"), seed=5, n=200)]
    assert 10 < sum(outcomes) < 190
