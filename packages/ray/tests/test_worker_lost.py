"""A process that dies while it is called. The last file of the folder: its victim is gone."""

from __future__ import annotations

import time

import pytest
import remote_functions as there

from plait_ray import rpc


@pytest.mark.usefixtures("world")
def test_a_callee_that_dies_is_named() -> None:
    reference = rpc.remote("victim", there.Counter)
    waiting = rpc.rpc_async("victim", there.sleep, args=(300.0,))
    began = time.monotonic()
    with pytest.raises(rpc.WorkerLost, match=r"'victim' \(rank 3, host .*, pid \d+\) died or left"):
        rpc.rpc_sync("victim", there.stop_process)
    with pytest.raises(rpc.WorkerLost, match="the call of sleep"):
        waiting.wait()
    with pytest.raises(rpc.WorkerLost, match="victim"):
        rpc.rpc_sync("victim", min, args=(1, 2))
    with pytest.raises(rpc.WorkerLost, match="victim"):
        reference.to_here()
    assert time.monotonic() - began < 55  # not the timeout
    assert rpc.rpc_sync("one", there.product, args=(2, 3)) == 6
