"""Remote calls and references."""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np
import pytest
import remote_functions as there

import plait_core as pc
import plait_nn as nn
from plait_ray import rpc
from plait_ray._messages import writable

pytestmark = pytest.mark.usefixtures("world")


def test_workers_have_names_and_numbers() -> None:
    assert rpc.get_worker_info() == rpc.WorkerInfo("test", 0)
    assert rpc.get_worker_info("two").id == 2
    assert rpc.rpc_sync("one", rpc.get_worker_info) == rpc.WorkerInfo("one", 1)
    with pytest.raises(ValueError, match="`to` must be a worker's name or rank, got 'four'"):
        rpc.rpc_sync("four", min)
    with pytest.raises(ValueError, match="got 7; known: test, one, two, victim"):
        rpc.rpc_sync(7, min)


def test_a_call_runs_in_the_process_that_is_named() -> None:
    pids = [rpc.rpc_sync(to, there.keep, args=("x", to)) for to in ("one", "two", "test")]
    assert len(set(pids)) == 3 and pids[2] == os.getpid()
    results = [
        rpc.rpc_sync(rpc.get_worker_info(to), there.stored_value, args=("x",))
        for to in ("one", "two")
    ]
    assert results == ["one", "two"]
    assert rpc.rpc_sync("one", dict, kwargs={"a": 1}) == {"a": 1}
    factor = 3
    assert rpc.rpc_sync("one", lambda x: x * factor, args=(2,)) == 6  # sent with its code


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64", "int8", "bool"])
@pytest.mark.parametrize("shape", [(), (0, 3), (3,), (64, 1024)])
def test_tensors_travel(dtype: str, shape: tuple[int, ...]) -> None:
    x = pc.randint(0, 2, shape).to(getattr(pc, dtype))
    y = rpc.rpc_sync("one", there.product, args=(x, x))
    assert y.dtype == x.dtype and y.shape == x.shape
    assert bool((y == x * x).all())


def test_parts_of_tensors_and_their_containers() -> None:
    x = pc.arange(12.0).reshape(3, 4)
    array = np.arange(20000)
    arguments = {"a": [x.t(), x[1]], "b": (array, "text"), "c": x}
    results = (
        rpc.rpc_sync("two", there.product, args=(1, 1)),
        rpc.rpc_sync("two", dict, args=(arguments,)),
    )
    assert results[0] == 1
    one, other = results[1]["a"]
    assert one.equal(x.t()) and other.equal(x[1]) and results[1]["c"].equal(x)
    assert np.array_equal(results[1]["b"][0], array)


@pytest.mark.parametrize("size", [4, 100000])
def test_a_receiver_may_write_to_its_tensor(size: int) -> None:
    x = pc.ones(size)
    y = rpc.rpc_sync("one", there.double_in_place, args=(x,))
    assert float(x.sum()) == size and float(y.sum()) == 2 * size
    y.add_(1)
    assert float(y.sum()) == 3 * size


def test_large_tensors_are_not_copied_where_they_are_read(instance: Any) -> None:
    reference = instance.put(np.arange(100000, dtype=np.uint8))
    stored = instance.get(reference)
    assert not stored.flags.writeable
    shared = writable(stored)
    assert shared.flags.writeable and shared.ctypes.data == stored.ctypes.data
    constant = np.frombuffer(b"x" * 100000, np.uint8)  # no memory of the store
    assert np.array_equal(writable(constant), constant)


def test_other_classes_of_tensors_travel() -> None:
    sparse, parameter = pc.eye(2).to_sparse(), nn.Parameter(pc.ones(2))
    result = rpc.rpc_sync("one", there.product, args=(sparse, 2))
    assert result.is_sparse and result.to_dense().equal(2 * pc.eye(2))
    assert type(rpc.rpc_sync("one", max, args=([parameter],))) is nn.Parameter


def test_errors_come_back_with_their_traceback() -> None:
    with pytest.raises(KeyError) as caught:
        rpc.rpc_sync("one", there.raises, args=("oops",))
    text = caught.value.args[0]
    assert "On 'one' (rank 1, host " in text and "KeyError('oops')" in text
    assert "remote_functions.py" in text and "in raises" in text
    with pytest.raises(rpc.RemoteError, match=r"OwnError\(1, 2\)"):
        rpc.rpc_sync("one", there.raises, args=("own",))
    with pytest.raises(TypeError, match="`func` must be a function, got 3"):
        rpc.rpc_sync("one", 3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="`args` must be a tuple, got int"):
        rpc.rpc_sync("one", min, args=3)


def test_a_call_that_takes_too_long_is_an_error() -> None:
    with pytest.raises(RuntimeError, match=r"call of sleep in 'two' .* more than 0.2 s"):
        rpc.rpc_sync("two", there.sleep, args=(5.0,), timeout=0.2)


def test_futures() -> None:
    slow = rpc.rpc_async("one", there.wait_until_kept, args=("gate",))
    quick = rpc.rpc_async("one", there.product, args=(2, 3))  # calls do not wait for each other
    assert quick.wait() == 6 and quick.done() and not slow.done()
    seen: list[Any] = []
    then = slow.then(lambda done: seen.append(done.value()) or 7)
    slow.add_done_callback(lambda done: seen.append("called"))
    assert not slow.done()  # nobody waited for the result in order to add a callback
    rpc.rpc_sync("one", there.keep, args=("gate", "open"))
    assert then.wait() == 7 and seen[0] == "open"
    failing = rpc.rpc_async("one", there.raises, args=("x",)).then(lambda done: done.wait())
    with pytest.raises(KeyError):
        failing.wait()
    many = [
        rpc.rpc_async(to, there.product, args=(i, 2)) for i in range(50) for to in ("one", "two")
    ]
    assert [each.wait() for each in many] == [2 * i for i in range(50) for _ in range(2)]


def test_calls_within_calls() -> None:
    assert rpc.rpc_sync("one", there.call_on, args=("two", 3, 4)) == 15
    assert rpc.rpc_sync("one", there.call_on, args=("test", 3, 5)) == 18
    assert rpc.rpc_sync("one", there.back_and_forth, args=(20, 1)) == 2**20  # no threads run out
    assert rpc.rpc_sync("one", there.answer_later, args=("two", 4)) == 9


def test_references() -> None:
    counter = rpc.remote("one", there.Counter, args=(5,))
    assert (counter.owner_name(), counter.is_owner()) == ("one", False)
    assert counter.owner() == rpc.WorkerInfo("one", 1)
    assert counter.rpc_sync().add(2) == 7
    assert counter.rpc_async().add(3).wait() == 10
    assert counter.remote().add(1).to_here() == 11
    assert counter.to_here().number == 11 and counter.confirmed_by_owner()
    assert rpc.rpc_sync("one", there.read_counter, args=(counter,)) == 11  # its owner
    assert rpc.rpc_sync("two", there.read_counter, args=(counter,)) == 11  # a third process
    assert rpc.remote("two", there.read_counter, args=(counter,)).to_here() == 11
    with pytest.raises(RuntimeError, match=r"the value is in 'one' .*, not here; to_here"):
        counter.local_value()
    own = rpc.RRef(there.Counter(3))
    assert own.is_owner() and own.local_value() is own.to_here()
    assert rpc.rpc_sync("one", there.read_counter, args=(own,)) == 3
    broken = rpc.remote("one", there.raises, args=("later",))
    with pytest.raises(KeyError, match="later"):
        broken.to_here()


def until_there_are(count: int) -> None:
    """Wait until the worker two has so many counters."""
    deadline = time.monotonic() + 120
    while (found := rpc.rpc_sync("two", there.counters)) != count:
        assert time.monotonic() < deadline, f"{found} counters"
        time.sleep(0.1)


def test_values_are_dropped_when_nothing_refers_to_them() -> None:
    until_there_are(0)  # a call of an earlier test may not have ended yet
    counter = rpc.remote("two", there.Counter)
    rpc.rpc_sync("one", there.keep, args=("reference", counter))
    assert rpc.rpc_sync("two", there.counters) == 1
    del counter
    time.sleep(1.5)  # references that are gone are told once a second
    assert rpc.rpc_sync("two", there.counters) == 1
    rpc.rpc_sync("one", there.keep, args=("reference", None))
    until_there_are(0)


def test_an_agent_is_made_once() -> None:
    with pytest.raises(RuntimeError, match="this process has an RPC agent"):
        rpc.init_rpc("again", rank=0, world_size=1)
    with pytest.raises(NotImplementedError, match="`device_maps` must be None"):
        rpc.TensorPipeRpcBackendOptions(device_maps={"one": {0: 1}})
